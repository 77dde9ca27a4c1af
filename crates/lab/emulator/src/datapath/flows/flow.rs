//! One flow entry.

use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{FlowFlags, FlowMod, FlowRemovedReason, Match, Version};

use crate::datapath::FlowProgram;
use crate::packet::KeyPattern;

/// Id of a flow in a table; valid until the table changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIndex(pub(super) u32);

/// A flow entry (1.0 §3.1; 1.3.5 §5.2).
#[derive(Clone, Debug)]
pub struct FlowEntry {
    /// The packets that it matches. Boxed, so that the data for each packet lies close together.
    pub pattern: Box<KeyPattern>,
    /// If several flows match, the one with the highest priority applies.
    pub priority: u16,
    /// How it behaves.
    pub flags: FlowFlags,
    /// The controller's own value.
    pub cookie: u64,
    /// Seconds without a packet after which the flow is removed; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which the flow is removed; 0 for never.
    pub hard_timeout: u16,
    /// What happens to packets that match. Flows changed by one request share it.
    pub program: Arc<FlowProgram>,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes that it matched.
    pub byte_count: u64,
    /// When it was added.
    pub created: Duration,
    /// Time of the last packet that it matched; `created` before the first.
    pub used: Duration,
    pub(super) rank: u32,
    /// Next time at which the table checks its timeouts.
    pub(super) due: Option<Duration>,
}

impl FlowEntry {
    /// Makes the flow that a request adds.
    #[must_use]
    pub fn new(
        version: Version,
        request: &FlowMod<'_>,
        matching: &Match,
        program: Arc<FlowProgram>,
        now: Duration,
    ) -> Self {
        FlowEntry {
            rank: rank(version, matching, request.priority),
            pattern: Box::new(KeyPattern::of(matching)),
            // As Open vSwitch reports it.
            priority: version.priority_in_switch(request.priority, || matching.is_exact()),
            flags: request.flags,
            cookie: request.cookie,
            idle_timeout: request.idle_timeout,
            hard_timeout: request.hard_timeout,
            program,
            packet_count: 0,
            byte_count: 0,
            created: now,
            used: now,
            due: None,
        }
    }

    /// Its match.
    #[must_use]
    pub fn matching(&self) -> Match {
        self.pattern.to_match()
    }

    /// Whether it is the table-miss entry: it matches all packets, with priority 0 (1.3.5 §5.4).
    #[must_use]
    pub fn is_table_miss(&self) -> bool {
        self.rank == 0 && *self.pattern == KeyPattern::default()
    }

    /// The reason why the flow expires at `now`, if it does. If both timeouts have run out, the
    /// reason is the hard one.
    pub(super) fn expired(&self, now: Duration) -> Option<FlowRemovedReason> {
        let over = |since: Duration, seconds: u16| seconds != 0 && now >= since + secs(seconds);
        if over(self.created, self.hard_timeout) {
            return Some(FlowRemovedReason::HardTimeout);
        }
        over(self.used, self.idle_timeout).then_some(FlowRemovedReason::IdleTimeout)
    }

    /// Time at which it expires if no more packets match.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let after = |since, seconds| (seconds != 0).then(|| since + secs(seconds));
        let hard = after(self.created, self.hard_timeout);
        let idle = after(self.used, self.idle_timeout);
        hard.into_iter().chain(idle).min()
    }
}

fn secs(seconds: u16) -> Duration {
    Duration::from_secs(seconds.into())
}

/// A flow that was removed.
#[derive(Clone, Debug)]
pub struct Removed {
    /// The table that it was in.
    pub table: u8,
    /// Why it was removed.
    pub reason: FlowRemovedReason,
    /// The flow's last state.
    pub flow: FlowEntry,
}

/// Above every priority: entries without wildcards come first (1.0 §3.4).
const EXACT_RANK: u32 = 1 << 16;

/// The order of flows: by priority, and in 1.0 also by whether the match has a wildcard.
pub(super) fn rank(version: Version, matching: &Match, priority: u16) -> u32 {
    if version.ranks_exact_flows_first() && matching.is_exact() {
        EXACT_RANK
    } else {
        priority.into()
    }
}
