//! Checks of actions: which ones a controller may use, and the errors for the rest (1.0 §5.4.4;
//! 1.3.5 §5.12, §7.2.5, §7.4.4.3).

use bellrock_openflow::{Action, ErrorCode, Field, Group, Match, Port, Version};

use super::groups::Groups;
use super::meters::Meters;
use super::ports::DatapathPorts;
use crate::packet::parse::{
    ADVERTISEMENT, ICMP, ICMPV6, SCTP, SOLICITATION, TCP, TYPE_ARP, TYPE_IPV4, TYPE_IPV6,
    TYPE_MPLS, TYPE_MPLS_MULTICAST, TYPE_PBB, UDP, is_tag,
};

/// Actions that were checked. None borrows: the check refuses actions that carry bytes.
pub type CheckedActions = Box<[Action<'static>]>;

/// Maximum number of actions of a flow, and of all buckets of a group. A request of 64 KiB could
/// have twice as many. A statistics reply says more about a flow than the request did, and could
/// then not hold it.
pub const MAX_ACTIONS: usize = 2_000;

/// Checks actions against the ports, groups, meters and tables of the switch.
#[derive(Clone, Copy, Debug)]
pub struct Checker<'a> {
    pub(super) version: Version,
    pub(super) tables: u8,
    pub(super) ports: &'a DatapathPorts,
    pub(super) groups: &'a Groups,
    pub(super) meters: &'a Meters,
    /// Whether the actions belong to a packet_out: only these may output to `TABLE`.
    pub(super) packet_out: bool,
    /// Whether the switch refuses FLOOD as an output port.
    pub(super) refuses_flood: bool,
}

impl Checker<'_> {
    /// Checks a list of actions. If the match of their flow is given, they must fit the packets
    /// that it matches (1.3).
    ///
    /// # Errors
    /// The OpenFlow error (`OFPET_BAD_ACTION`) of the first action that is wrong.
    pub(super) fn check<'a>(
        &self,
        actions: impl Iterator<Item = Action<'a>>,
        matching: Option<&Match>,
    ) -> Result<CheckedActions, ErrorCode> {
        // 1.0 has no such error: an action that does not fit a packet leaves it as it is.
        let inconsistent = ErrorCode::ActionMatchInconsistent;
        let mut known = matching.map(KnownValues::of);
        let checked = actions.map(|action| {
            let action = self.action(&action)?;
            if let Some(known) = &mut known {
                if !known.admits(&action) && inconsistent.exists_in(self.version) {
                    return Err(inconsistent);
                }
                known.after(&action);
            }
            Ok(action)
        });
        checked.collect()
    }

    /// Checks the actions of a bucket of `group`. They may name the group itself: loops of groups
    /// are searched for when all buckets are known.
    pub(super) fn bucket<'a>(
        &self,
        group: u32,
        actions: impl Iterator<Item = Action<'a>>,
    ) -> Result<CheckedActions, ErrorCode> {
        let checked = actions.map(|action| match action {
            Action::Group(number) if number == group => Ok(Action::Group(number)),
            action => self.action(&action),
        });
        checked.collect()
    }

    /// Checks one action by itself.
    fn action(&self, action: &Action<'_>) -> Result<Action<'static>, ErrorCode> {
        let require = |ok: bool, error| if ok { Ok(()) } else { Err(error) };
        let bad_argument = ErrorCode::ActionBadArgument;
        let bad_queue = ErrorCode::ActionBadQueue;
        Ok(match *action {
            Action::Output { port, max_len } => {
                require(self.is_output(port), ErrorCode::ActionBadOutPort)?;
                Action::Output { port, max_len }
            }
            Action::Enqueue { port, queue } => {
                // A queue belongs to a port. The queue of `IN_PORT` is looked up for each packet.
                let entry = self.ports.get(port.0);
                let known = port == Port::IN_PORT || entry.is_some();
                require(known, ErrorCode::ActionBadOutPort)?;
                require(entry.is_none_or(|entry| entry.queue(queue).is_some()), bad_queue)?;
                Action::Enqueue { port, queue }
            }
            Action::SetQueue(queue) => {
                // The output that follows decides the port.
                require(self.ports.iter().any(|port| port.queue(queue).is_some()), bad_queue)?;
                Action::SetQueue(queue)
            }
            Action::Group(group) => {
                let known = group <= Group::MAX && self.groups.get(group).is_some();
                require(known, ErrorCode::ActionBadOutGroup)?;
                Action::Group(group)
            }
            Action::SetVlanVid(vid) => {
                require(vid <= 0x0fff, bad_argument)?;
                Action::SetVlanVid(vid)
            }
            Action::SetVlanPcp(pcp) => {
                require(pcp <= 7, bad_argument)?;
                Action::SetVlanPcp(pcp)
            }
            Action::PushVlan(eth_type) => {
                require(is_tag(eth_type), bad_argument)?;
                Action::PushVlan(eth_type)
            }
            Action::PushMpls(eth_type) => {
                require(is_mpls(eth_type), bad_argument)?;
                Action::PushMpls(eth_type)
            }
            Action::PushPbb(eth_type) => {
                require(eth_type == TYPE_PBB, bad_argument)?;
                Action::PushPbb(eth_type)
            }
            Action::SetField(field, value) => {
                require(is_settable(field), ErrorCode::ActionBadSetType)?;
                require(is_value(field, value), ErrorCode::ActionBadSetArgument)?;
                Action::SetField(field, value)
            }
            Action::SetUnknownField { .. } => return Err(ErrorCode::ActionBadSetType),
            Action::Experimenter { .. } => return Err(ErrorCode::ActionBadExperimenter),
            Action::Unknown { .. } => return Err(ErrorCode::ActionBadType),
            Action::SetTpSrc(port) => Action::SetTpSrc(port),
            Action::SetTpDst(port) => Action::SetTpDst(port),
            Action::CopyTtlOut => Action::CopyTtlOut,
            Action::CopyTtlIn => Action::CopyTtlIn,
            Action::SetMplsTtl(ttl) => Action::SetMplsTtl(ttl),
            Action::DecMplsTtl => Action::DecMplsTtl,
            Action::PopVlan => Action::PopVlan,
            Action::PopMpls(eth_type) => Action::PopMpls(eth_type),
            Action::SetNwTtl(ttl) => Action::SetNwTtl(ttl),
            Action::DecNwTtl => Action::DecNwTtl,
            Action::PopPbb => Action::PopPbb,
        })
    }

    /// Whether packets can be output to this port.
    ///
    /// A port that the switch does not have is refused. Both versions allow this: ports of the
    /// emulator do not come and go. `NORMAL` is refused: an OpenFlow-only switch has no other
    /// forwarding (1.3.5 §4.5).
    fn is_output(&self, port: Port) -> bool {
        match port {
            Port::FLOOD => !self.refuses_flood,
            Port::IN_PORT | Port::ALL | Port::CONTROLLER => true,
            Port::TABLE => self.packet_out,
            Port(number) => self.ports.get(number).is_some(),
        }
    }
}

/// Whether a field can be set: it must be a header field that stands in the packet. Pipeline fields
/// do not, except the tunnel id (1.3.5 §7.2.5). The flags of extension headers only summarise them.
pub(crate) fn is_settable(field: Field) -> bool {
    !matches!(field, Field::InPort | Field::InPhyPort | Field::Metadata | Field::Ipv6Exthdr)
}

/// Whether a field can have this value. A VLAN id says that there is a tag; "no tag" cannot be set.
fn is_value(field: Field, value: u128) -> bool {
    let tagged = value & u128::from(Match::VLAN_PRESENT) != 0;
    value <= field.max() && (field != Field::VlanVid || tagged)
}

const fn is_mpls(eth_type: u16) -> bool {
    matches!(eth_type, TYPE_MPLS | TYPE_MPLS_MULTICAST)
}

/// What is known about a value in the packets that reach an action.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKnowledge<T> {
    /// The match leaves it open: an action cannot rely on it.
    Open,
    Value(T),
    /// A tag was popped, and the match does not say what is under it: only the controller knows.
    Uncovered,
}

/// What the match and earlier actions say about the packets that reach an action.
struct KnownValues {
    tagged: ValueKnowledge<bool>,
    eth_type: ValueKnowledge<u16>,
    ip_proto: ValueKnowledge<u8>,
    icmpv6_type: ValueKnowledge<u8>,
}

impl KnownValues {
    fn of(matching: &Match) -> Self {
        let value = |field| matching.value(field);
        let tagged = value(Field::VlanVid).map(|vid| vid & u128::from(Match::VLAN_PRESENT) != 0);
        KnownValues {
            tagged: tagged.map_or(ValueKnowledge::Open, ValueKnowledge::Value),
            eth_type: value(Field::EthType)
                .map_or(ValueKnowledge::Open, |value| ValueKnowledge::Value(value as u16)),
            ip_proto: value(Field::IpProto)
                .map_or(ValueKnowledge::Open, |value| ValueKnowledge::Value(value as u8)),
            icmpv6_type: value(Field::Icmpv6Type)
                .map_or(ValueKnowledge::Open, |value| ValueKnowledge::Value(value as u8)),
        }
    }

    /// Whether an action fits: the packet has what the action changes.
    fn admits(&self, action: &Action<'_>) -> bool {
        match *action {
            Action::PopVlan => self.is_tagged(),
            Action::PopMpls(_) | Action::SetMplsTtl(_) | Action::DecMplsTtl => {
                self.is_type(is_mpls)
            }
            Action::PopPbb => self.is_type(|eth_type| eth_type == TYPE_PBB),
            Action::SetNwTtl(_) | Action::DecNwTtl => self.is_type(is_ip),
            Action::SetField(field, _) => self.has(field),
            _ => true,
        }
    }

    /// Whether the prerequisites of a field hold (1.3.5 table 12).
    fn has(&self, field: Field) -> bool {
        use Field::*;
        let ipv4 = || self.is_type(|eth_type| eth_type == TYPE_IPV4);
        let ipv6 = || self.is_type(|eth_type| eth_type == TYPE_IPV6);
        let over = |protocol| self.is_type(is_ip) && is(self.ip_proto, |p| p == protocol);
        let neighbour = |first, last| {
            ipv6() && over(ICMPV6) && is(self.icmpv6_type, |kind| (first..=last).contains(&kind))
        };
        match field {
            VlanVid | VlanPcp => self.is_tagged(),
            IpDscp | IpEcn | IpProto => self.is_type(is_ip),
            Ipv4Src | Ipv4Dst => ipv4(),
            TcpSrc | TcpDst => over(TCP),
            UdpSrc | UdpDst => over(UDP),
            SctpSrc | SctpDst => over(SCTP),
            Icmpv4Type | Icmpv4Code => ipv4() && over(ICMP),
            ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => {
                self.is_type(|eth_type| eth_type == TYPE_ARP)
            }
            Ipv6Src | Ipv6Dst | Ipv6Flabel | Ipv6Exthdr => ipv6(),
            Icmpv6Type | Icmpv6Code => ipv6() && over(ICMPV6),
            Ipv6NdTarget => neighbour(SOLICITATION, ADVERTISEMENT),
            Ipv6NdSll => neighbour(SOLICITATION, SOLICITATION),
            Ipv6NdTll => neighbour(ADVERTISEMENT, ADVERTISEMENT),
            MplsLabel | MplsTc | MplsBos => self.is_type(is_mpls),
            PbbIsid => self.is_type(|eth_type| eth_type == TYPE_PBB),
            InPort | InPhyPort | Metadata | TunnelId | EthDst | EthSrc | EthType => true,
        }
    }

    /// Updates what is known after an action.
    fn after(&mut self, action: &Action<'_>) {
        match *action {
            Action::PushVlan(_) => self.tagged = ValueKnowledge::Value(true),
            Action::PopVlan => self.tagged = ValueKnowledge::Uncovered,
            // MPLS and PBB tags go in front of the tags that are there.
            Action::PushMpls(eth_type) | Action::PushPbb(eth_type) => {
                *self = KnownValues {
                    tagged: ValueKnowledge::Value(false),
                    eth_type: ValueKnowledge::Value(eth_type),
                    ip_proto: ValueKnowledge::Open,
                    icmpv6_type: ValueKnowledge::Open,
                };
            }
            Action::PopMpls(eth_type) if is_tag(eth_type) => {
                *self = KnownValues { tagged: ValueKnowledge::Value(true), ..UNCOVERED };
            }
            Action::PopMpls(eth_type) => self.eth_type = ValueKnowledge::Value(eth_type),
            Action::PopPbb => *self = UNCOVERED,
            Action::SetField(Field::EthType, value) => {
                self.eth_type = ValueKnowledge::Value(value as u16);
            }
            Action::SetField(Field::IpProto, value) => {
                self.ip_proto = ValueKnowledge::Value(value as u8);
            }
            Action::SetField(Field::Icmpv6Type, value) => {
                self.icmpv6_type = ValueKnowledge::Value(value as u8);
            }
            _ => {}
        }
    }

    fn is_tagged(&self) -> bool {
        is(self.tagged, |tagged| tagged)
    }

    fn is_type(&self, which: impl Fn(u16) -> bool) -> bool {
        is(self.eth_type, which)
    }
}

const UNCOVERED: KnownValues = KnownValues {
    tagged: ValueKnowledge::Uncovered,
    eth_type: ValueKnowledge::Uncovered,
    ip_proto: ValueKnowledge::Uncovered,
    icmpv6_type: ValueKnowledge::Uncovered,
};

fn is<T>(what: ValueKnowledge<T>, which: impl Fn(T) -> bool) -> bool {
    match what {
        ValueKnowledge::Open => false,
        ValueKnowledge::Value(value) => which(value),
        ValueKnowledge::Uncovered => true,
    }
}

const fn is_ip(eth_type: u16) -> bool {
    matches!(eth_type, TYPE_IPV4 | TYPE_IPV6)
}
