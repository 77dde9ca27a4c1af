//! Which actions are possible: the values that they may have, and the packets that they fit (1.3.5
//! §7.2.5, §7.4.4.3).
//!
//! This is what every switch has to refuse. What depends on the switch (ports, queues, groups,
//! fields that it can set) is not checked here.

use crate::prerequisite::unmet;
use crate::{Action, ErrorCode, Field, Match, Prerequisite};

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_MPLS: u16 = 0x8847;
const TYPE_MPLS_MULTICAST: u16 = 0x8848;
const TYPE_PBB: u16 = 0x88e7;
const TYPE_TAG: u16 = 0x8100;
const TYPE_SERVICE_TAG: u16 = 0x88a8;

const MAX_VLAN_ID: u16 = 0x0fff;
const MAX_VLAN_PRIORITY: u8 = 7;

/// Why no switch can carry out an action. It prints with what would be possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpossibleAction {
    /// The VLAN id is too large.
    #[error("{0:#x} is not a VLAN id; give at most {MAX_VLAN_ID:#x}")]
    VlanId(u16),
    /// The VLAN priority is too large.
    #[error("{0} is not a VLAN priority; give at most {MAX_VLAN_PRIORITY}")]
    VlanPriority(u8),
    /// A VLAN tag has another Ethernet type.
    #[error(
        "{0:#06x} is not the Ethernet type of a VLAN tag; give {TYPE_TAG:#06x} or {TYPE_SERVICE_TAG:#06x}"
    )]
    VlanType(u16),
    /// An MPLS label has another Ethernet type.
    #[error(
        "{0:#06x} is not the Ethernet type of an MPLS label; give {TYPE_MPLS:#06x} or {TYPE_MPLS_MULTICAST:#06x}"
    )]
    MplsType(u16),
    /// A PBB service tag has another Ethernet type.
    #[error("{0:#06x} is not the Ethernet type of a PBB service tag; give {TYPE_PBB:#06x}")]
    PbbType(u16),
    /// The field is not in the packet.
    #[error("{0} cannot be set: it is not a field of the packet's headers")]
    NotSettable(Field),
    /// The value does not fit the field.
    #[error("the value is too large for {0}; give at most {max:#x}", max = Field::max(*.0))]
    Value(Field),
    /// A VLAN id without the bit that stands for a tag.
    #[error(
        "vlan_vid {0:#x} lacks the bit {present:#x}, which stands for a tag; give {with:#x} for VLAN {0}",
        present = Match::VLAN_PRESENT, with = .0 | u128::from(Match::VLAN_PRESENT)
    )]
    NoTagBit(u128),
    /// The match and the actions before do not say that packets have this field.
    #[error("{0:#} to the match")]
    Field(Prerequisite),
    /// The match and the actions before do not say that packets have what the action changes.
    #[error("{action} needs {needs} to the match", needs = .needs.text())]
    Header {
        /// The action, as it is written.
        action: &'static str,
        /// What packets need.
        needs: NeededHeader,
    },
}

/// A header that an action changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededHeader {
    /// A VLAN tag.
    Tag,
    /// IPv4 or IPv6.
    Ip,
    /// An MPLS label.
    Mpls,
    /// A PBB service tag.
    Pbb,
}

impl NeededHeader {
    fn text(self) -> &'static str {
        match self {
            NeededHeader::Tag => "a VLAN tag: add vlan_vid=0x1000/0x1000",
            NeededHeader::Ip => "eth_type 0x0800 or 0x86dd: add eth_type=0x0800",
            NeededHeader::Mpls => "eth_type 0x8847 or 0x8848: add eth_type=0x8847",
            NeededHeader::Pbb => "eth_type 0x88e7: add eth_type=0x88e7",
        }
    }
}

impl ImpossibleAction {
    /// The error that the specification names (1.3.5 §7.4.4.3).
    #[must_use]
    pub fn answer(self) -> ErrorCode {
        match self {
            ImpossibleAction::VlanId(_)
            | ImpossibleAction::VlanPriority(_)
            | ImpossibleAction::VlanType(_)
            | ImpossibleAction::MplsType(_)
            | ImpossibleAction::PbbType(_) => ErrorCode::ActionBadArgument,
            ImpossibleAction::NotSettable(_) => ErrorCode::ActionBadSetType,
            ImpossibleAction::Value(_) | ImpossibleAction::NoTagBit(_) => {
                ErrorCode::ActionBadSetArgument
            }
            ImpossibleAction::Field(_) | ImpossibleAction::Header { .. } => {
                ErrorCode::ActionMatchInconsistent
            }
        }
    }
}

impl Action<'_> {
    /// Checks the value of the action by itself.
    ///
    /// # Errors
    /// No switch can carry it out.
    pub fn check(&self) -> Result<(), ImpossibleAction> {
        let require = |is_possible: bool, error| if is_possible { Ok(()) } else { Err(error) };
        match *self {
            Action::SetVlanVid(id) => require(id <= MAX_VLAN_ID, ImpossibleAction::VlanId(id)),
            Action::SetVlanPcp(priority) => {
                require(priority <= MAX_VLAN_PRIORITY, ImpossibleAction::VlanPriority(priority))
            }
            Action::PushVlan(kind) => require(is_tag(kind), ImpossibleAction::VlanType(kind)),
            Action::PushMpls(kind) => require(is_mpls(kind), ImpossibleAction::MplsType(kind)),
            Action::PushPbb(kind) => require(kind == TYPE_PBB, ImpossibleAction::PbbType(kind)),
            Action::SetField(field, value) => {
                require(field.is_settable(), ImpossibleAction::NotSettable(field))?;
                require(value <= field.max(), ImpossibleAction::Value(field))?;
                let has_tag = value & u128::from(Match::VLAN_PRESENT) != 0;
                // "No tag" cannot be set.
                require(field != Field::VlanVid || has_tag, ImpossibleAction::NoTagBit(value))
            }
            _ => Ok(()),
        }
    }
}

impl Field {
    /// Whether `set_field` can set it: it is in the packet. Fields of the pipeline are not, except
    /// the tunnel id (1.3.5 §7.2.5) and registers. The flags of extension headers only summarise
    /// them, and Open vSwitch sets no flags of TCP.
    #[must_use]
    pub fn is_settable(self) -> bool {
        !matches!(
            self,
            Field::InPort
                | Field::InPhyPort
                | Field::Metadata
                | Field::Ipv6Exthdr
                | Field::TcpFlags
        )
    }
}

/// What is known about a value in the packets that reach an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knowledge<T> {
    /// The match leaves it open: an action cannot rely on it.
    Open,
    Value(T),
    /// A tag was removed, and the match does not say what is under it, or an action without a
    /// meaning here was carried out: only the controller knows.
    Uncovered,
}

impl<T: Copy> Knowledge<T> {
    fn is(self, which: impl Fn(T) -> bool) -> bool {
        match self {
            Knowledge::Open => false,
            Knowledge::Value(value) => which(value),
            Knowledge::Uncovered => true,
        }
    }
}

/// What the match of a flow, and the actions before, say about the packets that reach an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownHeaders {
    tagged: Knowledge<bool>,
    eth_type: Knowledge<u16>,
    ip_proto: Knowledge<u16>,
    icmpv6_type: Knowledge<u16>,
}

const UNCOVERED: KnownHeaders = KnownHeaders {
    tagged: Knowledge::Uncovered,
    eth_type: Knowledge::Uncovered,
    ip_proto: Knowledge::Uncovered,
    icmpv6_type: Knowledge::Uncovered,
};

impl KnownHeaders {
    /// What a match says.
    #[must_use]
    pub fn of(matching: &Match) -> Self {
        let number = |field| match matching.value(field) {
            Some(value) if !matching.is_masked(field) => Knowledge::Value(value as u16),
            _ => Knowledge::Open,
        };
        // "Any tag" has a mask.
        let present = u128::from(Match::VLAN_PRESENT);
        let says_tag = matching.mask(Field::VlanVid).is_none_or(|mask| mask & present != 0);
        let tagged = matching.value(Field::VlanVid).filter(|_| says_tag);
        KnownHeaders {
            tagged: tagged.map_or(Knowledge::Open, |vid| Knowledge::Value(vid & present != 0)),
            eth_type: number(Field::EthType),
            ip_proto: number(Field::IpProto),
            icmpv6_type: number(Field::Icmpv6Type),
        }
    }

    /// Checks that packets have what an action changes (1.3).
    ///
    /// # Errors
    /// What the match lacks.
    pub fn check(&self, action: &Action<'_>) -> Result<(), ImpossibleAction> {
        let need = |has: bool, action, needs| match has {
            true => Ok(()),
            false => Err(ImpossibleAction::Header { action, needs }),
        };
        let is_pbb = |kind| kind == TYPE_PBB;
        match *action {
            Action::PopVlan => need(self.is_tagged(), "pop_vlan", NeededHeader::Tag),
            Action::PopMpls(_) => need(self.eth_type.is(is_mpls), "pop_mpls", NeededHeader::Mpls),
            Action::SetMplsTtl(_) => {
                need(self.eth_type.is(is_mpls), "set_mpls_ttl", NeededHeader::Mpls)
            }
            Action::DecMplsTtl => {
                need(self.eth_type.is(is_mpls), "dec_mpls_ttl", NeededHeader::Mpls)
            }
            Action::PopPbb => need(self.eth_type.is(is_pbb), "pop_pbb", NeededHeader::Pbb),
            Action::SetNwTtl(_) => need(self.eth_type.is(is_ip), "set_nw_ttl", NeededHeader::Ip),
            Action::DecNwTtl => need(self.eth_type.is(is_ip), "dec_nw_ttl", NeededHeader::Ip),
            Action::SetField(Field::VlanVid, _) => {
                need(self.is_tagged(), "set_field of vlan_vid", NeededHeader::Tag)
            }
            Action::SetField(field, _) => {
                match unmet(field, |field, values| self.has(field, values)) {
                    None => Ok(()),
                    Some(missing) => Err(ImpossibleAction::Field(missing)),
                }
            }
            _ => Ok(()),
        }
    }

    /// Updates what is known after an action.
    pub fn apply(&mut self, action: &Action<'_>) {
        match *action {
            Action::PushVlan(_) => self.tagged = Knowledge::Value(true),
            Action::PopVlan => self.tagged = Knowledge::Uncovered,
            // MPLS and PBB tags go in front of the tags that are there.
            Action::PushMpls(eth_type) | Action::PushPbb(eth_type) => {
                *self = KnownHeaders {
                    tagged: Knowledge::Value(false),
                    eth_type: Knowledge::Value(eth_type),
                    ip_proto: Knowledge::Open,
                    icmpv6_type: Knowledge::Open,
                };
            }
            Action::PopMpls(eth_type) if is_tag(eth_type) => {
                *self = KnownHeaders { tagged: Knowledge::Value(true), ..UNCOVERED };
            }
            Action::PopMpls(eth_type) => self.eth_type = Knowledge::Value(eth_type),
            Action::PopPbb => *self = UNCOVERED,
            Action::SetField(Field::EthType, value) => {
                self.eth_type = Knowledge::Value(value as u16);
            }
            Action::SetField(Field::IpProto, value) => {
                self.ip_proto = Knowledge::Value(value as u16);
            }
            Action::SetField(Field::Icmpv6Type, value) => {
                self.icmpv6_type = Knowledge::Value(value as u16);
            }
            // It may change anything.
            Action::Experimenter { .. } | Action::Unknown { .. } => *self = UNCOVERED,
            _ => {}
        }
    }

    fn is_tagged(&self) -> bool {
        self.tagged.is(|tagged| tagged)
    }

    /// Whether packets have one of these values in a field that others depend on.
    fn has(&self, field: Field, values: &[u16]) -> bool {
        let is_one = |value| values.contains(&value);
        match field {
            Field::VlanVid => self.is_tagged(),
            Field::EthType => self.eth_type.is(is_one),
            Field::IpProto => self.ip_proto.is(is_one),
            Field::Icmpv6Type => self.icmpv6_type.is(is_one),
            // `in_port`: no action depends on it.
            _ => true,
        }
    }
}

const fn is_ip(eth_type: u16) -> bool {
    matches!(eth_type, TYPE_IPV4 | TYPE_IPV6)
}

const fn is_mpls(eth_type: u16) -> bool {
    matches!(eth_type, TYPE_MPLS | TYPE_MPLS_MULTICAST)
}

const fn is_tag(eth_type: u16) -> bool {
    matches!(eth_type, TYPE_TAG | TYPE_SERVICE_TAG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(matching: &str, action: &str) -> String {
        let matching: Match = matching.parse().unwrap();
        let action: Action<'_> = action.parse().unwrap();
        let checked = action.check().and_then(|()| KnownHeaders::of(&matching).check(&action));
        checked.map_or_else(|error| error.to_string(), |()| "possible".to_owned())
    }

    #[test]
    fn an_impossible_action_says_what_would_be_possible() {
        for (matching, action, expected) in [
            ("any", "push_vlan:5", "give 0x8100 or 0x88a8"),
            ("any", "push_mpls:0x0800", "give 0x8847 or 0x8848"),
            ("any", "push_pbb:1", "give 0x88e7"),
            ("any", "set_vlan_vid:4096", "at most 0xfff"),
            ("any", "set_vlan_pcp:8", "at most 7"),
            ("any", "set_field:1->metadata", "metadata cannot be set"),
            ("vlan_vid=0x1005", "set_field:100->vlan_vid", "give 0x1064 for VLAN 100"),
            (
                "any",
                "dec_nw_ttl",
                "dec_nw_ttl needs eth_type 0x0800 or 0x86dd: add eth_type=0x0800 to the match",
            ),
            (
                "any",
                "pop_vlan",
                "pop_vlan needs a VLAN tag: add vlan_vid=0x1000/0x1000 to the match",
            ),
            ("any", "set_field:0x1064->vlan_vid", "needs a VLAN tag"),
            ("vlan_vid=0x0005/0x0fff", "pop_vlan", "needs a VLAN tag"),
            (
                "eth_type=0x86dd",
                "set_field:10.0.0.7->ipv4_dst",
                "ipv4_dst needs eth_type 0x0800: add eth_type=0x0800 to the match",
            ),
            ("eth_type=0x0800", "set_field:80->tcp_dst", "add ip_proto=6 to the match"),
            ("vlan_vid=0x1000/0x1000", "pop_vlan", "possible"),
            ("eth_type=0x0800,ip_proto=6", "set_field:80->tcp_dst", "possible"),
            ("any", "set_field:02:00:00:00:00:01->eth_dst", "possible"),
            ("any", "set_field:5->tunnel_id", "possible"),
        ] {
            let text = wrong(matching, action);
            assert!(text.contains(expected), "{matching} {action}: {text}");
        }
    }

    #[test]
    fn headers_added_by_an_action_are_there_for_the_next() {
        let possible = |matching: &str, actions: &[&str]| {
            let mut known = KnownHeaders::of(&matching.parse().unwrap());
            actions.iter().all(|text| {
                let action: Action<'_> = text.parse().unwrap();
                let is_possible = known.check(&action).is_ok();
                known.apply(&action);
                is_possible
            })
        };
        assert!(possible("any", &["push_vlan:0x8100", "set_field:0x1064->vlan_vid"]));
        assert!(!possible("any", &["set_field:0x1064->vlan_vid", "push_vlan:0x8100"]));
        assert!(possible("vlan_vid=0x1005", &["pop_vlan", "pop_vlan"]));
        let ip = "eth_type=0x0800";
        assert!(!possible(ip, &["push_mpls:0x8847", "dec_nw_ttl"]));
        assert!(possible(
            ip,
            &["push_mpls:0x8847", "dec_mpls_ttl", "pop_mpls:0x0800", "dec_nw_ttl"]
        ));
    }
}
