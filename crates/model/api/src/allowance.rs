//! What an app may do and read, and the budgets of every app.
//!
//! What an app does by its [`Network`] is checked there. The messages that its handlers write are
//! checked after each event if the app has an allowance about them, and only counted if not.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellrock_openflow::{MessageKind, MultipartKind, ToSwitch};
use bellrock_pace::RateLimit;

use crate::{AppEvent, Change, Dpid, Error, Needs, Network};

/// Maximum number of tasks of an app that have not ended, unless its allowance has another. Apps
/// have a few for themselves, or for each switch.
pub const APP_TASKS: usize = 16_384;

/// Messages that an app may send to switches each second, at all switches together, before it is
/// named. [`APP_MESSAGES_PER_PACKET_IN`] come on top.
pub const APP_MESSAGES_PER_SECOND: u64 = 1_000_000;

/// Messages that an app may send for each packet-in that comes, on top of
/// [`APP_MESSAGES_PER_SECOND`]. Twice the number of switches on a long path.
pub const APP_MESSAGES_PER_PACKET_IN: u64 = 16;

/// Minimum time between two events about refused messages and tasks of an app, and between two
/// about too many messages.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// What an app may do. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Which messages it may send.
    pub write: AllowedWrites,
    /// Its switches: it gets no events of others, and cannot send to them. `None`: all.
    pub switches: Option<BTreeSet<Dpid>>,
    /// Messages that change switches or send packets, at all switches together: so many at once,
    /// and so many a second after that. `None`: any number, and the app is named when it sends more
    /// than [`APP_MESSAGES_PER_SECOND`].
    pub messages_per_second: Option<u32>,
    /// Tasks that have not ended. `None`: [`APP_TASKS`].
    pub tasks: Option<usize>,
}

/// Which messages an app may send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowedWrites {
    /// All.
    #[default]
    All,
    /// Flows with its own cookies, packets, and questions. No groups, meters, ports, tables,
    /// configuration, or experimenters' messages: they belong to nobody.
    Own,
    /// Only questions: it reads.
    None,
}

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Reads,
    /// It changes only what the app owns, or sends a packet.
    ChangesOwn,
    ChangesShared,
}

impl Effect {
    fn of(message: &ToSwitch<'_>) -> Self {
        if let ToSwitch::MultipartRequest(request) = message
            && request.body.kind() == MultipartKind::TableFeatures
        {
            // With tables in it, it changes them (1.3.5 §7.3.5.5).
            return Effect::ChangesShared;
        }
        match message.kind() {
            MessageKind::Hello
            | MessageKind::Error
            | MessageKind::EchoRequest
            | MessageKind::EchoReply
            | MessageKind::FeaturesRequest
            | MessageKind::GetConfigRequest
            | MessageKind::BarrierRequest
            | MessageKind::QueueGetConfigRequest
            | MessageKind::GetAsyncRequest
            // A change of the role is refused to every app.
            | MessageKind::RoleRequest
            | MessageKind::MultipartRequest => Effect::Reads,
            MessageKind::FlowMod | MessageKind::PacketOut => Effect::ChangesOwn,
            _ => Effect::ChangesShared,
        }
    }
}

/// Keeps an app to its allowance, in all threads.
#[derive(Debug)]
pub struct AppGuard {
    allowance: Allowance,
    /// The services that it needs.
    needs: Needs,
    limit: Option<Mutex<RateLimit>>,
    tasks: Arc<AtomicUsize>,
    refused: AtomicU64,
    /// Messages that it has sent by its [`Network`].
    sent: AtomicU64,
    /// Seconds in which it sent too many messages.
    excesses: AtomicU64,
    refusals_reported: ReportedAt,
    excesses_reported: ReportedAt,
}

/// Time of the last event of a kind.
#[derive(Debug, Default)]
struct ReportedAt(Mutex<Option<Duration>>);

impl ReportedAt {
    /// Whether the next event is due.
    fn is_due(&self, now: Duration) -> bool {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = reported.is_none_or(|at| now.saturating_sub(at) >= REPORTED_EVERY);
        if is_due {
            *reported = Some(now);
        }
        is_due
    }
}

impl AppGuard {
    /// For runtimes: a guard of an app with this allowance, which needs these services.
    #[must_use]
    pub fn new(allowance: Allowance, needs: Needs) -> Self {
        let limit = allowance.messages_per_second;
        AppGuard {
            limit: limit.map(|limit| Mutex::new(RateLimit::per_second(limit))),
            allowance,
            needs,
            tasks: Arc::default(),
            refused: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            excesses: AtomicU64::new(0),
            refusals_reported: ReportedAt::default(),
            excesses_reported: ReportedAt::default(),
        }
    }

    /// The services that the app needs.
    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }

    /// Whether the messages of the app's handlers have to be checked.
    #[must_use]
    pub fn checks_handlers(&self) -> bool {
        let Allowance { write, switches, messages_per_second, tasks: _ } = &self.allowance;
        *write != AllowedWrites::All || switches.is_some() || messages_per_second.is_some()
    }

    /// Number of messages that the app has sent by its [`Network`].
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Number of seconds in which the app sent too many messages.
    #[must_use]
    pub fn excesses(&self) -> u64 {
        self.excesses.load(Ordering::Relaxed)
    }

    /// Checks the messages that the app has sent in some time, a second or a little more: counts
    /// the time if they are too many, and names the app. `packet_ins` came meanwhile.
    pub fn note_sent(&self, network: &Network, sent: u64, packet_ins: u64, time: Duration) {
        let milliseconds = (time.as_millis() as u64).max(1000);
        let of_time = APP_MESSAGES_PER_SECOND.saturating_mul(milliseconds) / 1000;
        let of_packet_ins = packet_ins.saturating_mul(APP_MESSAGES_PER_PACKET_IN);
        if self.allowance.messages_per_second.is_some()
            || sent <= of_time.saturating_add(of_packet_ins)
        {
            return;
        }
        let excesses = self.excesses.fetch_add(1, Ordering::Relaxed) + 1;
        if self.excesses_reported.is_due(network.now()) {
            let text = format!(
                "the app {} sent {sent} messages to switches within {:.1} s, and got {packet_ins} packet-ins; \
                 it did so {excesses} times so far. `messages_per_second` of the setting `allow` limits it",
                network.app(),
                time.as_secs_f64()
            );
            network.publish(AppEvent::new("too_many_messages", &text).alarming());
        }
    }

    /// Number of messages and tasks that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether the app has this switch.
    #[must_use]
    pub fn has_switch(&self, dpid: Dpid) -> bool {
        self.allowance.switches.as_ref().is_none_or(|switches| switches.contains(&dpid))
    }

    /// Whether the app may change what it owns.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.allowance.write != AllowedWrites::None
    }

    /// Checks a message of the app.
    ///
    /// # Errors
    /// [`Error::NotAllowed`], which is counted, and published once a minute.
    pub fn check(
        &self,
        network: &Network,
        dpid: Dpid,
        message: &ToSwitch<'_>,
    ) -> Result<(), Error> {
        self.check_effect(network, dpid, Effect::of(message), message.kind())
    }

    fn check_effect(
        &self,
        network: &Network,
        dpid: Dpid,
        effect: Effect,
        kind: MessageKind,
    ) -> Result<(), Error> {
        let allowed = match self.allowance.write {
            AllowedWrites::All => Effect::ChangesShared,
            AllowedWrites::Own => Effect::ChangesOwn,
            AllowedWrites::None => Effect::Reads,
        };
        let what = if !self.has_switch(dpid) {
            "use this switch"
        } else if effect > allowed {
            match kind {
                MessageKind::FlowMod => "change flows",
                MessageKind::PacketOut => "send packets",
                _ => "change what it does not own",
            }
        } else if effect > Effect::Reads && !self.has_token(network.now()) {
            "send so many messages a second"
        } else {
            return Ok(());
        };
        Err(self.refuse(network, what))
    }

    /// Checks a message of a task, or of a handler to another switch, and counts it.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    pub(crate) fn check_sent(
        &self,
        network: &Network,
        dpid: Dpid,
        message: &ToSwitch<'_>,
    ) -> Result<(), Error> {
        self.check(network, dpid, message)?;
        self.count_sent(1);
        Ok(())
    }

    fn count_sent(&self, messages: usize) {
        self.sent.fetch_add(messages as u64, Ordering::Relaxed);
    }

    /// Checks changes that are to be confirmed, and counts them.
    ///
    /// # Errors
    /// [`Error::NotAllowed`], for all of them.
    pub(crate) fn check_changes(
        &self,
        network: &Network,
        dpid: Dpid,
        changes: &[Change],
    ) -> Result<(), Error> {
        changes.iter().try_for_each(|change| {
            let (effect, kind) = match change {
                Change::Add(_) | Change::Remove(_) | Change::RemoveReported(_) => {
                    (Effect::ChangesOwn, MessageKind::FlowMod)
                }
                _ => (Effect::ChangesShared, MessageKind::GroupMod),
            };
            self.check_effect(network, dpid, effect, kind)
        })?;
        self.count_sent(changes.len());
        Ok(())
    }

    /// Checks whether the app may send encoded messages, which belong to nobody, and counts one.
    ///
    /// # Errors
    /// [`Error::NotAllowed`].
    pub(crate) fn check_raw(&self, network: &Network, dpid: Dpid) -> Result<(), Error> {
        self.check_all(network, "send encoded messages")?;
        self.check_effect(network, dpid, Effect::ChangesShared, MessageKind::Experimenter)?;
        self.count_sent(1);
        Ok(())
    }

    /// Refuses what only the controller itself may do.
    ///
    /// # Errors
    /// [`Error::NotAllowed`].
    pub(crate) fn check_all(&self, network: &Network, what: &'static str) -> Result<(), Error> {
        match self.allowance.write {
            AllowedWrites::All => Ok(()),
            _ => Err(self.refuse(network, what)),
        }
    }

    /// Counts a task until the returned value is dropped. `None`: the app has too many.
    pub(crate) fn start_task(&self, network: &Network) -> Option<TaskPermit> {
        let permit = TaskPermit(Arc::clone(&self.tasks));
        let running = self.tasks.fetch_add(1, Ordering::Relaxed);
        if running >= self.allowance.tasks.unwrap_or(APP_TASKS) {
            // The drop of the permit takes it back.
            self.refuse(network, "run so many tasks");
            return None;
        }
        Some(permit)
    }

    fn has_token(&self, now: Duration) -> bool {
        let limit = self.limit.as_ref();
        limit.is_none_or(|it| it.lock().unwrap_or_else(PoisonError::into_inner).pass(now))
    }

    /// Counts a refusal, and publishes it, at most once a minute.
    pub fn refuse(&self, network: &Network, what: &'static str) -> Error {
        let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if self.refusals_reported.is_due(network.now()) {
            let text = format!(
                "the app {} is not allowed to {what}; {refused} of its messages and tasks were refused \
                 so far (setting `allow`)",
                network.app()
            );
            network.publish(AppEvent::new("refused_to_app", &text).alarming());
        }
        Error::NotAllowed { what }
    }
}

/// A task of an app that has not ended.
#[derive(Debug)]
pub(crate) struct TaskPermit(Arc<AtomicUsize>);

impl Drop for TaskPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::AppId;
    use crate::runtime::EmptyNetwork;

    /// What the app panics with when it reads something.
    fn panic_of(needs: Needs, read: fn(&Network)) -> Option<String> {
        let guard = Arc::new(AppGuard::new(Allowance::default(), needs));
        let network = EmptyNetwork::network_of("asks", AppId::new(0, "asks").unwrap());
        let network = network.with_guard(Some(guard));
        let result = catch_unwind(AssertUnwindSafe(|| read(&network)));
        result.err().map(|panic| *panic.downcast::<String>().unwrap())
    }

    #[test]
    fn an_app_reads_what_it_needs_and_is_told_what_it_lacks() {
        let topology: fn(&Network) = |network| _ = network.topology();
        let hosts: fn(&Network) = |network| _ = network.hosts();
        for (needs, read) in
            [(Needs::TOPOLOGY, topology), (Needs::PATHS, topology), (Needs::HOSTS, hosts)]
        {
            assert_eq!(panic_of(needs, read), None, "{needs:?}");
        }
        let lacking = panic_of(Needs::empty(), topology).unwrap();
        assert!(lacking.ends_with("let its `App::needs` return `Needs::TOPOLOGY`"), "{lacking}");
        assert_eq!(
            panic_of(Needs::TOPOLOGY, hosts).unwrap(),
            "the app \"asks\" reads hosts, and does not need it: let its `App::needs` return \
             `Needs::TOPOLOGY | Needs::HOSTS`"
        );
        // The controller itself reads everything.
        let _ = EmptyNetwork::network().hosts();
    }
}
