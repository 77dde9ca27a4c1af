//! What an app may do, if it may not do everything.
//!
//! An app without an allowance is not checked anywhere. The messages of one with an allowance are
//! checked after each of its events, and where it uses its [`Network`].

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellrock_openflow::{MessageKind, MultipartKind, ToSwitch};
use bellrock_pace::RateLimit;

use crate::{AppEvent, Change, Dpid, Error, Network};

/// Minimum time between two events about refused messages and tasks of an app.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// What an app may do. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Which messages it may send.
    pub write: AllowedWrites,
    /// Its switches: it gets no events of others, and cannot send to them. `None`: all.
    pub switches: Option<BTreeSet<Dpid>>,
    /// Messages that change switches or send packets, at all switches together: so many at once,
    /// and so many a second after that. `None`: any number.
    pub messages_per_second: Option<u32>,
    /// Tasks that have not ended. `None`: as many as the controller allows.
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
    limit: Option<Mutex<RateLimit>>,
    tasks: Arc<AtomicUsize>,
    refused: AtomicU64,
    /// Time of the last event about refusals.
    reported: Mutex<Option<Duration>>,
}

impl AppGuard {
    /// For runtimes: a guard of an app with this allowance.
    #[must_use]
    pub fn new(allowance: Allowance) -> Self {
        let limit = allowance.messages_per_second;
        AppGuard {
            limit: limit.map(|limit| Mutex::new(RateLimit::per_second(limit))),
            allowance,
            tasks: Arc::default(),
            refused: AtomicU64::new(0),
            reported: Mutex::new(None),
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

    /// Checks changes that are to be confirmed.
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
        })
    }

    /// Checks whether the app may send encoded messages, which belong to nobody.
    ///
    /// # Errors
    /// [`Error::NotAllowed`].
    pub(crate) fn check_raw(&self, network: &Network, dpid: Dpid) -> Result<(), Error> {
        self.check_all(network, "send encoded messages")?;
        self.check_effect(network, dpid, Effect::ChangesShared, MessageKind::Experimenter)
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
        if self.allowance.tasks.is_some_and(|maximum| running >= maximum) {
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
        let now = network.now();
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.is_none_or(|at| now.saturating_sub(at) >= REPORTED_EVERY) {
            *reported = Some(now);
            drop(reported);
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
