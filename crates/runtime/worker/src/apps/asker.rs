//! Who asked a switch, and what becomes of the answer.
//!
//! The xid of each message names its asker, by its owner byte ([`xid`]). What a switch sends back
//! has that xid, so no list of sent messages is needed: [`Asker::of`] is the only place where the
//! owner of an xid is looked at.
//!
//! A request ends in one of the ways of [`Ended`], and [`Worker::end`] hands the end to the asker.
//! An error about a message that expects no reply, such as a flow_mod, is an end too. A switch may
//! send any xid, so each asker looks first whether it waits for this one.
//!
//! The end of a connection, or of its time as master or equal, is not in [`Ended`]: it ends all
//! requests together (`Confirmations::end` for tasks, `Handler::switch_down` for apps), also those
//! that were not sent yet.

use std::time::Duration;

use bellrock_api::openflow::{DecodeError, ErrorMessage, FlowStats, FromSwitch, List};
use bellrock_api::{AppId, Handler, ReplyBody, Result, Switch, Xid};
use bellrock_session::{CompleteReply, xid};

use crate::activity::EventKind;
use crate::apps::Worker;
use crate::apps::worker_app::MAX_APPS;
use crate::transport::{ConnectionKey, Transport};

/// Owner of requests for roles.
pub(crate) const ROLE: u8 = 252;

/// Owner of requests for the flows of an earlier run.
pub(crate) const CLEANING: u8 = 253;

/// Owner of tasks' requests.
pub(crate) const TASK: u8 = 254;

/// Owner of the changes of programs, and of the barriers behind them.
pub(crate) const PROGRAM: u8 = 255;

// Apps are the owners from 1 on.
const _: () = assert!(MAX_APPS < ROLE as usize);

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The session, or the worker for the controller's own flows and its meter.
    Session,
    /// An order for a role.
    Role,
    /// The search for flows of an earlier run.
    Cleaning,
    /// A task, by a request.
    Task,
    /// A task, by a program of changes.
    Program,
    /// The handler of the app at this place of the chain.
    App(usize),
}

impl Asker {
    /// Returns the sender of the message with this xid.
    pub(crate) fn of(xid: u32) -> Self {
        match xid::owner(xid) {
            xid::SESSION => Asker::Session,
            ROLE => Asker::Role,
            CLEANING => Asker::Cleaning,
            TASK => Asker::Task,
            PROGRAM => Asker::Program,
            app => Asker::App(usize::from(app) - 1),
        }
    }
}

/// How a request ends.
#[derive(Debug)]
pub(crate) enum Ended<'b> {
    /// The whole reply to a multipart request.
    Multipart(CompleteReply<'b>),
    /// The reply to any other request. An experimenter's message may come without a request.
    Reply(FromSwitch<'b>),
    /// The switch refuses the message.
    Refused(ErrorMessage<'b>),
    /// The reply to the barrier behind the request came before any answer.
    Silent,
    /// No answer came in time.
    Late,
    /// The multipart reply grew too large and was dropped.
    TooLarge,
    /// The reply cannot be decoded.
    Unreadable(DecodeError),
}

impl Worker {
    /// Hands the end of a request, or the refusal of any other message, to its asker.
    pub(crate) fn end<T: Transport>(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        ended: Ended<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        match Asker::of(xid) {
            Asker::Session => self.session_ended(key, xid, &ended, now),
            Asker::Role => self.role_ended(key, xid, &ended, now, transport),
            Asker::Cleaning => self.cleaning_ended(key, xid, &ended, now, transport),
            Asker::Task => self.task_ended(key, xid, ended),
            Asker::Program => self.program_ended(key, xid, &ended, now, transport),
            Asker::App(place) => self.app_ended(key, (place, xid), &ended, now, transport),
        }
    }

    /// Takes late descriptions, and what happens to the controller's own flows. Nobody waits for
    /// the rest.
    fn session_ended(&mut self, key: ConnectionKey, xid: u32, ended: &Ended<'_>, now: Duration) {
        match ended {
            Ended::Multipart(reply) => self.handle_description(key, reply, now),
            Ended::Reply(FromSwitch::BarrierReply) => self.own_flows_installed(key, xid, now),
            Ended::Refused(error) => self.own_flow_refused(key, xid, error, now),
            Ended::Reply(_)
            | Ended::Silent
            | Ended::Late
            | Ended::TooLarge
            | Ended::Unreadable(_) => {}
        }
    }

    /// Calls the handler that asked. If it asked for a removal of flows (1.0), removes them, or
    /// reports that they stay.
    fn app_ended<T: Transport>(
        &mut self,
        key: ConnectionKey,
        (place, xid): (usize, u32),
        ended: &Ended<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        // The flows of a switch come in a multipart reply: any other reply ends no removal.
        let is_other = matches!(ended, Ended::Reply(_));
        let removal = if is_other { None } else { self.take_removal(key, xid) };
        match (removal, ended) {
            (Some(removal), Ended::Multipart(reply)) => {
                return self.remove_reported(key, removal, reply, transport);
            }
            (Some(_), _) => self.report_removal(key, place, now),
            (None, _) => {}
        }
        let (id, event) = (Xid(xid), (EventKind::Answer, now));
        self.call_handler_at(key, place, event, |app, handler, switch| match ended {
            Ended::Multipart(reply) => pass_reply((app, handler), switch, id, reply),
            Ended::Reply(FromSwitch::BarrierReply) => handler.barrier(switch, id),
            Ended::Reply(body) => handler.answer(switch, id, body),
            Ended::Refused(error) => handler.error(switch, id, error),
            Ended::Silent | Ended::Late => handler.unanswered(switch, id),
            Ended::TooLarge | Ended::Unreadable(_) => Ok(()),
        });
        // After these it has been called.
        if removal.is_some() && !matches!(ended, Ended::Silent | Ended::Late) {
            self.call_handler_at(key, place, event, |_, handler, switch| {
                handler.unanswered(switch, id)
            });
        }
    }
}

/// Passes the reply to a multipart request to the handler of an app. Its own flows have the
/// priorities that it gave.
fn pass_reply(
    (app, handler): (AppId, &mut dyn Handler),
    switch: &mut Switch<'_>,
    id: Xid,
    reply: &CompleteReply<'_>,
) -> Result<()> {
    // It was checked when it was complete.
    let Ok(body) = reply.body() else { return Ok(()) };
    let ReplyBody::Flow(flows) = body else { return handler.reply(switch, id, &body) };
    let flows: Vec<FlowStats<'_>> = flows.iter().map(|flow| with_app_priority(app, flow)).collect();
    handler.reply(switch, id, &ReplyBody::Flow(List::of(&flows)))
}

/// A reported flow as an app sees it.
fn with_app_priority(app: AppId, mut flow: FlowStats<'_>) -> FlowStats<'_> {
    if app.cookie().owns(flow.cookie) {
        flow.priority = app.band().lower(flow.priority).unwrap_or(flow.priority);
    }
    flow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_asker_has_an_owner_of_its_own_and_an_app_has_that_of_its_place() {
        for (owner, asker) in [
            (xid::SESSION, Asker::Session),
            (ROLE, Asker::Role),
            (CLEANING, Asker::Cleaning),
            (TASK, Asker::Task),
            (PROGRAM, Asker::Program),
        ] {
            for count in [1, xid::MAX_COUNT] {
                assert_eq!(Asker::of(xid::xid(owner, count)), asker);
            }
        }
        for place in 0..MAX_APPS {
            let app = AppId::new(place, "app").unwrap();
            assert_eq!(Asker::of(xid::xid(app.owner(), 1)), Asker::App(place));
        }
    }
}
