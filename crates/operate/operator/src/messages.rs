//! Messages to switches as operators give them, and the replies.

use std::fmt::{self, Write};
use std::time::{Duration, Instant};

use bellrock_api::openflow::{FlowMod, MessageKind, RequestKind};
use bellrock_api::runtime::RawMessages;
use bellrock_api::{
    ChangeOutcome, Error, Names, Network, Reply, RequestError, RequestFuture, SwitchInfo, ToSwitch,
    Version,
};
use bellrock_query::{
    AskSwitch, ErrorKind, MAX_MESSAGES, MAX_REPLY_TEXT_BYTES, MessageBytes, MessageOutcome,
    MessageState, QueryError, SendMessages, SentMessages, SwitchReply,
};
use bellrock_services::desired::OperatorChange;
use bellrock_services::encoded::{self, experimenter};

use super::wait::wait_until;
use super::{ORDER_TIMEOUT, name_of};

/// Time limit for the reply of a switch. Clients wait a little longer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(4);

/// Sends a request to a switch that is up, and waits for its reply.
///
/// # Errors
/// The message is no request that an operator may send, or the switch does not answer it.
pub(super) fn ask(
    network: &Network,
    names: &Names,
    info: &SwitchInfo,
    query: &AskSwitch,
) -> Result<SwitchReply, QueryError> {
    let request = decode(info, &query.request, "request")?;
    check_request(&request, info.version).map_err(|why| QueryError::invalid("request", why))?;
    let reply = reply(network.send_request(info.dpid, &request)).map_err(|(kind, why)| {
        QueryError::new(kind, format!("switch {}: {why}", query.switch)).at("request")
    })?;
    let multipart = match reply.kind() {
        RequestKind::Multipart(kind) => kind.wire(info.version),
        _ => None,
    };
    Ok(SwitchReply {
        dpid: info.dpid,
        name: name_of(names, info.dpid),
        version: reply.version(),
        multipart,
        text: text(&reply),
        bytes: MessageBytes(reply.bytes().to_vec()),
    })
}

/// Sends messages that change a switch that is up, and waits for their confirmation.
///
/// # Errors
/// One of the messages is not one that an operator may send. None goes out then.
pub(super) fn send(
    network: &Network,
    names: &Names,
    info: &SwitchInfo,
    order: &SendMessages,
) -> Result<SentMessages, QueryError> {
    let number = order.messages.len();
    if number > MAX_MESSAGES {
        let why = format!("{number} messages are too many; send at most {MAX_MESSAGES} at a time");
        return Err(QueryError::invalid("messages", why));
    }
    let mut changes_tables = false;
    for (index, bytes) in order.messages.iter().enumerate() {
        let field = format!("messages[{index}]");
        let message = decode(info, bytes, &field)?;
        check_change(network, &message)
            .map_err(|why| QueryError::invalid(&field, format!("message {}: {why}", index + 1)))?;
        changes_tables |= encoded::may_change_tables(&message);
    }
    // Until the switch has confirmed the messages or has failed to. Then apps put back what is
    // wanted.
    let _change = changes_tables.then(|| OperatorChange::begin(network, info.dpid));
    let messages = order.messages.iter().map(|bytes| bytes.0.as_slice().into()).collect();
    let sent = network.send_messages(info.dpid, messages);
    let outcomes = match wait_until(Instant::now() + ORDER_TIMEOUT, sent) {
        Some(outcomes) => outcomes.into_iter().map(outcome).collect(),
        None => {
            let limit = ORDER_TIMEOUT.as_secs();
            let why = format!("the switch has not confirmed it within {limit} s");
            vec![MessageOutcome { state: MessageState::Unconfirmed, why: Some(why) }; number]
        }
    };
    Ok(SentMessages {
        dpid: info.dpid,
        name: name_of(names, info.dpid),
        version: info.version,
        outcomes,
    })
}

fn decode<'m>(
    info: &SwitchInfo,
    bytes: &'m MessageBytes,
    field: &str,
) -> Result<ToSwitch<'m>, QueryError> {
    encoded::decode(&bytes.0, info.version).map_err(|why| QueryError::invalid(field, why))
}

/// Why an operator may not send this request.
fn check_request(message: &ToSwitch<'_>, version: Version) -> Result<(), String> {
    encoded::check_any_request(message)?;
    match RequestKind::of(message) {
        Some(_) => Ok(()),
        None => {
            let name = message.kind().name(version);
            Err(format!(
                "a switch does not answer a message of the type {name}; `bellrock send` sends changes"
            ))
        }
    }
}

/// Why an operator may not send this change. What `encoded` refuses to apps, to remove all groups
/// or all meters and to change the controller's meter, an operator may do: it is an order by hand,
/// and apps put back what they keep.
fn check_change(network: &Network, message: &ToSwitch<'_>) -> Result<(), String> {
    match message {
        ToSwitch::FlowMod(flow) => check_cookie(network, flow),
        ToSwitch::PacketOut(_)
        | ToSwitch::GroupMod(_)
        | ToSwitch::PortMod(_)
        | ToSwitch::TableMod(_)
        | ToSwitch::MeterMod(_) => Ok(()),
        ToSwitch::Experimenter(message) => experimenter::check(message),
        ToSwitch::SetConfig(_) | ToSwitch::SetAsync(_) => {
            Err("the controller sets what switches report; see `bellrock config`".to_owned())
        }
        message if RequestKind::of(message).is_some() => {
            Err("it is a request; `bellrock request` sends requests".to_owned())
        }
        _ => Err("the controller sends such messages itself".to_owned()),
    }
}

/// A flow with the cookie of an app would be taken for that app's, and be changed by it.
fn check_cookie(network: &Network, flow: &FlowMod<'_>) -> Result<(), String> {
    match network.app_of(flow.cookie) {
        Some(app) if !flow.command.is_delete() => {
            let cookie = flow.cookie;
            Err(format!(
                "flows with the cookie {cookie:#018x} belong to the app {app}; give one below 0x100000000"
            ))
        }
        _ => Ok(()),
    }
}

/// Waits for the reply of a switch.
fn reply(request: RequestFuture) -> Result<Reply, (ErrorKind, String)> {
    let limit = REPLY_TIMEOUT.as_secs();
    match wait_until(Instant::now() + REPLY_TIMEOUT, request) {
        Some(Ok(reply)) => Ok(reply),
        // The switch says that it has none.
        Some(Err(error)) if error.is_none() => Err((ErrorKind::Refused, error.to_string())),
        // The request is right, and this controller is not the one that can send it.
        Some(Err(error @ RequestError::NotSent(Error::NoMaster(_)))) => {
            Err((ErrorKind::Refused, error.to_string()))
        }
        Some(Err(error @ RequestError::NotSent(_))) => Err((ErrorKind::Invalid, error.to_string())),
        Some(Err(error)) => Err((ErrorKind::Timeout, error.to_string())),
        None => Err((ErrorKind::Timeout, format!("there is no reply within {limit} s"))),
    }
}

fn outcome(outcome: ChangeOutcome) -> MessageOutcome {
    let (state, why) = match outcome {
        ChangeOutcome::Installed => (MessageState::Confirmed, None),
        ChangeOutcome::Refused(why) => (MessageState::Refused, Some(why.to_string())),
        ChangeOutcome::NotSent(why) => (MessageState::NotSent, Some(why.to_string())),
        ChangeOutcome::Withheld => (MessageState::NotSent, None),
        ChangeOutcome::Unknown(why) => (MessageState::Unconfirmed, Some(why.to_string())),
    };
    MessageOutcome { state, why }
}

/// The text of a reply, cut after [`MAX_REPLY_TEXT_BYTES`].
fn text(reply: &Reply) -> String {
    let mut text = Bounded(String::new());
    let written = match (reply.body(), reply.message()) {
        (Ok(body), _) => write!(text, "{body}"),
        (Err(_), Ok(message)) => match message.kind() {
            // It has no content.
            MessageKind::BarrierReply => write!(text, "{}", message.kind().name(reply.version())),
            _ => write!(text, "{message}"),
        },
        (Err(error), Err(_)) => write!(text, "{error}"),
    };
    if written.is_err() {
        text.0.push_str("...");
    }
    text.0
}

/// Text up to a length. What is longer ends with an error, so that nobody formats the rest.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let left = MAX_REPLY_TEXT_BYTES - self.0.len();
        let part_len = part.floor_char_boundary(left.min(part.len()));
        self.0.push_str(&part[..part_len]);
        if part_len < part.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_bound() {
        let mut text = Bounded(String::new());
        let long = "é".repeat(MAX_REPLY_TEXT_BYTES);
        assert!(write!(text, "a{long}").is_err());
        assert_eq!(text.0.len(), MAX_REPLY_TEXT_BYTES - 1);
        assert!(write!(text, "b").is_ok(), "one byte is left");
        assert!(write!(text, "c").is_err());
    }
}
