//! Log lines about messages that switches refuse, and about messages that cannot be decoded.
//! Without them, an author without [`bellrock_api::Handler::error`] finds no reason for a missing
//! flow.

use std::time::Duration;

use bellrock_api::openflow::{DecodeError, ErrorMessage, Excerpt, RequestKind};
use bellrock_api::{RateLimit, Refusal};
use tracing::warn;

use crate::apps::Worker;
use crate::apps::asker::Asker;
use crate::apps::worker_app::WorkerApp;
use crate::transport::ConnectionKey;

/// Maximum number of such lines of one worker, within its budget of log lines: so many at once, and
/// so many a second after that.
pub const FAULT_LINES_PER_SECOND: u32 = 10;

/// Name for messages of no app.
const CONTROLLER: &str = "controller";

/// Limits such lines. Lines left out are counted, and reported with the next line.
#[derive(Debug)]
pub(crate) struct FaultLines {
    limit: RateLimit,
    left_out: u64,
}

impl Default for FaultLines {
    fn default() -> Self {
        FaultLines { limit: RateLimit::per_second(FAULT_LINES_PER_SECOND), left_out: 0 }
    }
}

impl Worker {
    /// Logs that a switch has refused a message.
    pub(crate) fn log_refused(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        error: &ErrorMessage<'_>,
        request: Option<RequestKind>,
        now: Duration,
    ) {
        // A task handles the refusal of its request itself.
        let is_of_task = matches!(Asker::of(xid), Asker::Task | Asker::Program);
        if is_of_task && request.is_some() {
            return;
        }
        let sender = self.sender(key, xid);
        if sender.is_some_and(|app| app.reports_refusals) {
            return;
        }
        let app: &'static str = sender.map_or(CONTROLLER, |app| app.name);
        let Some(left_out) = self.fault_line(now) else { return };
        let (dpid, peer) = self.dpid_and_peer(key);
        let message = match error {
            ErrorMessage::Standard { data, .. } | ErrorMessage::Experimenter { data, .. } => {
                Excerpt::read(data)
                    .map_or_else(|| "unknown".to_owned(), |excerpt| excerpt.to_string())
            }
        };
        let error = Refusal::from(error);
        warn!(dpid, peer, app, %error, message, left_out, "the switch refused a message");
    }

    /// Logs that a message of a switch cannot be decoded.
    pub(crate) fn log_malformed(&mut self, key: ConnectionKey, error: DecodeError, now: Duration) {
        let Some(left_out) = self.fault_line(now) else { return };
        let (dpid, peer) = self.dpid_and_peer(key);
        warn!(dpid, peer, %error, left_out, "a message of the switch cannot be read");
    }

    /// If one more line may be written, returns the number of lines left out before it.
    fn fault_line(&mut self, now: Duration) -> Option<u64> {
        if !self.user.faults.limit.pass(now) {
            self.user.faults.left_out += 1;
            self.counters.log_lines_left_out.add(1);
            return None;
        }
        self.log.allows(now, &self.counters).then(|| std::mem::take(&mut self.user.faults.left_out))
    }

    fn dpid_and_peer(&self, key: ConnectionKey) -> (String, String) {
        let connection = self.connections.get(key);
        let dpid = connection.and_then(|connection| connection.dpid());
        let dpid = dpid.map_or_else(|| "unknown".to_owned(), |dpid| dpid.to_string());
        (dpid, connection.map_or_else(String::new, |connection| connection.peer.to_string()))
    }

    /// Returns the app that sent a message.
    fn sender(&self, key: ConnectionKey, xid: u32) -> Option<&WorkerApp> {
        match Asker::of(xid) {
            Asker::App(place) => self.user.chain.get(place),
            Asker::Program => {
                let app = self.app_of_change(key, xid)?;
                self.user.chain.iter().find(|it| it.id == app)
            }
            Asker::Session | Asker::Role | Asker::Cleaning | Asker::Task => None,
        }
    }
}
