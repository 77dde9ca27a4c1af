//! Runs conversations with a subject.

use bellrock_openflow::{FromSwitch, PortDesc, ReplyBody, Version};

use super::answer::{Asked, items};
use super::frame::{self, Result};
use super::message;
use super::script::{Conversation, Step};
use super::subject::Subject;
use super::words::{Addresses, Context};

/// The xid of the request before the conversation; the first message has the next one.
const FIRST_XID: u32 = 0x10;

/// Runs a conversation. Returns the outcome of each step, in order.
///
/// # Errors
/// A step that cannot be read or carried out, or a subject that does not answer.
pub(crate) fn hold(
    conversation: &Conversation,
    subject: &mut dyn Subject,
) -> Result<Vec<Vec<String>>> {
    let name = subject.name();
    steps(conversation, subject).map_err(|error| format!("{name}: {error}"))
}

fn steps(conversation: &Conversation, subject: &mut dyn Subject) -> Result<Vec<Vec<String>>> {
    let setup = &conversation.setup;
    subject.begin(setup)?;
    let addresses = ask_for_addresses(setup.version, subject)?;
    let context = Context { version: setup.version, addresses: &addresses };
    let mut links_down = Vec::new();
    let mut outcomes = Vec::new();
    for (number, (line, step)) in conversation.steps.iter().enumerate() {
        let place = |error| format!("line {line}: {error}");
        let xid = FIRST_XID + number as u32 + 1;
        let mut bytes = Vec::new();
        match step {
            Step::Send { controller, message } => {
                bytes = message::build(message, xid, context).map_err(place)?;
                subject.send(*controller, &bytes).map_err(place)?;
            }
            Step::Frame { port, times, frame } => {
                let frame = frame::build(frame).map_err(place)?;
                for _ in 0..*times {
                    subject.frame(*port, &frame).map_err(place)?;
                }
            }
            Step::Wait(time) => subject.wait(*time).map_err(place)?,
            Step::Link { port, up } => {
                links_down.retain(|down| down != port);
                if !up {
                    links_down.push(*port);
                }
                subject.link(*port, *up).map_err(place)?;
            }
        }
        let heard = subject.heard().map_err(place)?;
        let (controllers, addresses, links_down) = (setup.controllers, &addresses, &links_down);
        outcomes
            .push(items(&heard, &Asked { xid, bytes: &bytes, controllers, addresses, links_down }));
    }
    Ok(outcomes)
}

/// The Ethernet addresses of the switch's ports.
fn ask_for_addresses(version: Version, subject: &mut dyn Subject) -> Result<Addresses> {
    let question = match version {
        Version::V1_0 => "features",
        Version::V1_3 => "port_desc",
    };
    let nothing = Addresses::new();
    let context = Context { version, addresses: &nothing };
    subject.send(0, &message::build(question, FIRST_XID, context)?)?;
    let heard = subject.heard()?;
    let [(0, answer)] = heard.messages.as_slice() else {
        return Err(format!("its ports are not what it tells: {heard:?}"));
    };
    let answer = FromSwitch::decode(answer).map_err(|error| error.to_string())?;
    let of = |port: PortDesc| (port.port.0, port.address);
    match answer.body {
        FromSwitch::FeaturesReply(features) => Ok(features.ports.iter().map(of).collect()),
        FromSwitch::MultipartReply(reply) => match reply.body {
            ReplyBody::PortDesc(ports) => Ok(ports.iter().map(of).collect()),
            other => Err(format!("its ports are not what it tells: {other:?}")),
        },
        other => Err(format!("its ports are not what it tells: {other:?}")),
    }
}
