//! Keeps the messages of an app to its allowance.
//!
//! They are checked after each event, in the send buffer, so an app without an allowance pays
//! nothing. A refused message is taken out, and its handler gets the error that a switch would have
//! sent: the permission is missing (`EPERM`).

use std::time::Duration;

use bellrock_api::openflow::{Bytes, ErrorCode, ErrorMessage, Out, frame};
use bellrock_api::runtime::Requests;
use bellrock_api::{AppGuard, Handler, Switch, SwitchInfo, ToSwitch, Xid};
use bellrock_session::ControllerSession;
use tracing::error;

use crate::apps::stage::{AppRequests, SessionRequests};
use crate::apps::worker_app::WorkerApp;
use crate::counters::WorkerCounters;
use crate::guard::guarded;

/// Maximum number of refused messages of an event that the handler gets an error for.
const MAX_ERRORS: usize = 64;

/// Bytes of a refused message that its error quotes (1.0 §5.4.4, 1.3.5 §7.4.4).
const QUOTED_BYTES: usize = 64;

/// What a check needs of the switch.
pub(crate) struct Checked<'a> {
    pub(crate) info: &'a SwitchInfo,
    pub(crate) out: &'a mut Out,
    pub(crate) session: &'a mut ControllerSession,
    pub(crate) asked: &'a mut AppRequests,
    pub(crate) now: Duration,
    pub(crate) counters: &'a WorkerCounters,
}

/// Takes the messages out that the app may not send, of those that it has written since `mark`, and
/// tells its handler.
#[cold]
#[inline(never)]
pub(crate) fn keep_allowed(
    (app, guard): (&WorkerApp, &AppGuard),
    handler: &mut dyn Handler,
    mark: usize,
    mut checked: Checked<'_>,
) {
    let refused = checked.take_refused(app, guard, mark);
    if refused.is_empty() {
        return;
    }
    let second_mark = checked.out.len();
    for (xid, head) in refused.iter().take(MAX_ERRORS) {
        let Checked { info, out, session, asked, now, counters } = &mut checked;
        let (xids, pending) = session.split();
        let mut requests = SessionRequests { pending, asked };
        let mut switch = Switch::new(info, out, xids, &mut requests, *now, app.id);
        let error =
            ErrorMessage::Standard { code: ErrorCode::RequestPermission, data: Bytes(head) };
        match guarded(|| handler.error(&mut switch, Xid(*xid), &error)) {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                counters.handler_errors.add(1);
                app.health.failed(1);
                // Its `Drop` is code of the app.
                let _ = guarded(move || drop(error));
            }
            None => {
                app.panicked(*now, counters);
                error!(dpid = %info.dpid, app = app.name, "a handler panicked at a refusal");
                break;
            }
        }
    }
    // What it answers is checked too, without further errors: this could go on for ever.
    let _ = checked.take_refused(app, guard, second_mark);
}

impl Checked<'_> {
    /// Returns ids and beginnings of the messages that it takes out.
    fn take_refused(
        &mut self,
        app: &WorkerApp,
        guard: &AppGuard,
        mark: usize,
    ) -> Vec<(u32, Vec<u8>)> {
        let written = self.out.as_slice().get(mark..).unwrap_or(&[]).to_vec();
        let (_, pending) = self.session.split();
        let mut requests = SessionRequests { pending, asked: self.asked };
        let (mut allowed, mut refused) = (Vec::new(), Vec::new());
        let mut rest = written.as_slice();
        while let Ok(Some(message)) = frame(rest) {
            rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
            let xid = message.header.xid;
            // In 1.0 a removal is a question first.
            let removes = requests.asked.removals.iter().any(|removal| removal.xid == xid);
            let may_send = match ToSwitch::decode(message.bytes) {
                Ok(decoded) if removes && !guard.may_write() => {
                    guard.refuse(&app.network, "change flows");
                    let _ = decoded;
                    false
                }
                Ok(decoded) => guard.check(&app.network, self.info.dpid, &decoded.body).is_ok(),
                Err(_) => false,
            };
            if may_send {
                allowed.extend_from_slice(message.bytes);
            } else {
                requests.expect_nothing(xid);
                let quoted = message.bytes.len().min(QUOTED_BYTES);
                refused.push((xid, message.bytes.get(..quoted).unwrap_or(&[]).to_vec()));
            }
        }
        if !refused.is_empty() {
            self.out.truncate(mark);
            // They came from there.
            let _ = self.out.append(&allowed);
            self.counters.messages_refused.add(refused.len() as u64);
        }
        refused
    }
}
