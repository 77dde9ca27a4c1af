//! One flow entry.

use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{FlowFlags, FlowMod, FlowRemovedReason, Match, Version};

use crate::datapath::Program;
use crate::packet::Pattern;

/// A flow of a table, until the table is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub(super) u32);

/// A flow entry (1.0 §3.1; 1.3.5 §5.2).
#[derive(Clone, Debug)]
pub struct Flow {
    /// The packets that it is about. Boxed, so that what a packet touches lies close together.
    pub pattern: Box<Pattern>,
    /// Of several flows that match, the one with the highest counts.
    pub priority: u16,
    /// How it behaves.
    pub flags: FlowFlags,
    /// What the controller calls it.
    pub cookie: u64,
    /// Seconds without a packet after which it goes; 0 for never.
    pub idle_timeout: u16,
    /// Seconds after which it goes; 0 for never.
    pub hard_timeout: u16,
    /// What happens to packets that match. Shared by flows that one request has changed.
    pub program: Arc<Program>,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes of those.
    pub byte_count: u64,
    /// When it was added.
    pub created: Duration,
    /// When it last matched a packet; when it was added, if it never has.
    pub used: Duration,
    pub(super) rank: u32,
    /// When the table looks at its timeouts next.
    pub(super) due: Option<Duration>,
}

impl Flow {
    /// The flow that a request adds.
    #[must_use]
    pub fn new(
        version: Version,
        request: &FlowMod<'_>,
        matching: &Match,
        program: Arc<Program>,
        now: Duration,
    ) -> Self {
        Flow {
            rank: rank(version, matching, request.priority),
            pattern: Box::new(Pattern::of(matching)),
            priority: request.priority,
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
        self.rank == 0 && *self.pattern == Pattern::default()
    }

    /// Why it is to go at `now`, if it is. A hard timeout that runs out with the idle one is the
    /// reason.
    pub(super) fn expired(&self, now: Duration) -> Option<FlowRemovedReason> {
        let over = |since: Duration, seconds: u16| seconds != 0 && now >= since + secs(seconds);
        if over(self.created, self.hard_timeout) {
            return Some(FlowRemovedReason::HardTimeout);
        }
        over(self.used, self.idle_timeout).then_some(FlowRemovedReason::IdleTimeout)
    }

    /// When it goes if no packet comes.
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

/// A flow that is gone.
#[derive(Clone, Debug)]
pub struct Removed {
    /// The table that it was in.
    pub table: u8,
    /// Why it went.
    pub reason: FlowRemovedReason,
    /// The flow as it last was.
    pub flow: Flow,
}

/// Above every priority: 1.0 §3.4 puts entries without wildcards before all others.
const EXACT_RANK: u32 = 1 << 16;

/// What flows are ordered by: the priority, and in 1.0 whether anything is wildcarded.
///
/// A field of a 1.0 match that can mean nothing (a port where the protocol has none) is no
/// wildcard here, whatever its bit says: two such matches are the same match.
pub(super) fn rank(version: Version, matching: &Match, priority: u16) -> u32 {
    if version == Version::V1_0 && is_exact(matching) { EXACT_RANK } else { priority.into() }
}

/// Whether a match of 1.0 leaves nothing open.
fn is_exact(matching: &Match) -> bool {
    use bellrock_openflow::Field::{
        ArpOp, ArpSpa, ArpTpa, EthDst, EthSrc, EthType, Icmpv4Code, Icmpv4Type, InPort, IpDscp,
        IpProto, Ipv4Dst, Ipv4Src, TcpDst, TcpSrc, UdpDst, UdpSrc, VlanPcp, VlanVid,
    };
    let exact = |fields: &[_]| {
        fields.iter().all(|field| matching.has(*field) && !matching.is_masked(*field))
    };
    let tagged = matching.value(VlanVid).is_some_and(|vid| vid != 0);
    if !exact(&[InPort, EthSrc, EthDst, EthType, VlanVid]) || (tagged && !exact(&[VlanPcp])) {
        return false;
    }
    match (matching.value(EthType), matching.value(IpProto)) {
        (Some(0x0800), protocol) => {
            let transport: &[_] = match protocol {
                Some(1) => &[Icmpv4Type, Icmpv4Code],
                Some(6) => &[TcpSrc, TcpDst],
                Some(17) => &[UdpSrc, UdpDst],
                _ => &[],
            };
            exact(&[Ipv4Src, Ipv4Dst, IpDscp, IpProto]) && exact(transport)
        }
        (Some(0x0806), _) => exact(&[ArpOp, ArpSpa, ArpTpa]),
        _ => true,
    }
}
