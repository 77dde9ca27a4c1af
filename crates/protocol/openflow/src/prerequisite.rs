//! The fields that a match field depends on (1.3.5 §7.2.3.8, and tables 11 and 12).

use std::fmt;

use crate::{EncodeError, Field, Match};

const IP_V4: u16 = 0x0800;
const IP_V6: u16 = 0x86dd;

/// A field that another depends on, with its allowed values; empty for any value.
pub(crate) struct Need {
    field: Field,
    values: &'static [u16],
}

const fn need(field: Field, values: &'static [u16]) -> Need {
    Need { field, values }
}

const IS_IP: Need = need(Field::EthType, &[IP_V4, IP_V6]);
const IS_IPV4: Need = need(Field::EthType, &[IP_V4]);
const IS_IPV6: Need = need(Field::EthType, &[IP_V6]);
const IS_ICMPV6: Need = need(Field::IpProto, &[58]);

// What the fields depend on, the outermost header first: a column of the table of fields.
pub(crate) const NOTHING: &[Need] = &[];
pub(crate) const PORT: &[Need] = &[need(Field::InPort, &[])];
pub(crate) const TAG: &[Need] = &[need(Field::VlanVid, &[])];
pub(crate) const IP: &[Need] = &[IS_IP];
pub(crate) const IPV4: &[Need] = &[IS_IPV4];
pub(crate) const IPV6: &[Need] = &[IS_IPV6];
pub(crate) const ARP: &[Need] = &[need(Field::EthType, &[0x0806])];
pub(crate) const MPLS: &[Need] = &[need(Field::EthType, &[0x8847, 0x8848])];
pub(crate) const PBB: &[Need] = &[need(Field::EthType, &[0x88e7])];
pub(crate) const TCP: &[Need] = &[IS_IP, need(Field::IpProto, &[6])];
pub(crate) const UDP: &[Need] = &[IS_IP, need(Field::IpProto, &[17])];
pub(crate) const SCTP: &[Need] = &[IS_IP, need(Field::IpProto, &[132])];
pub(crate) const ICMPV4: &[Need] = &[IS_IPV4, need(Field::IpProto, &[1])];
pub(crate) const ICMPV6: &[Need] = &[IS_IPV6, IS_ICMPV6];
pub(crate) const ND: &[Need] = &[IS_IPV6, IS_ICMPV6, need(Field::Icmpv6Type, &[135, 136])];
pub(crate) const ND_SOLICITATION: &[Need] = &[IS_IPV6, IS_ICMPV6, need(Field::Icmpv6Type, &[135])];
pub(crate) const ND_ADVERTISEMENT: &[Need] = &[IS_IPV6, IS_ICMPV6, need(Field::Icmpv6Type, &[136])];

/// The fields that depend on others, one bit each.
pub(crate) const DEPENDENT: u64 = {
    let (mut all, mut number) = (0, 0);
    while number < Field::ALL.len() {
        if !Field::ALL[number].needs().is_empty() {
            all |= Field::ALL[number].bit();
        }
        number += 1;
    }
    all
};

impl Need {
    /// Returns whether the match satisfies it. `value` is the field's value, if it has one without
    /// a mask.
    fn is_met(&self, value: Option<u16>) -> bool {
        match (self.field, value) {
            (_, None) => false,
            (Field::VlanVid, Some(vid)) => vid & Match::VLAN_PRESENT != 0,
            (_, Some(value)) => self.values.is_empty() || self.values.contains(&value),
        }
    }
}

/// Returns the unsatisfied needs of `field`, one bit for each of [`Field::needs`].
pub(crate) fn missing(field: Field, value: impl Fn(Field) -> Option<u16>) -> u8 {
    let needs = field.needs().iter().enumerate();
    needs.fold(0, |bits, (i, need)| bits | u8::from(!need.is_met(value(need.field))) << i)
}

/// Returns the unsatisfied needs of `field`, where `is_met` says whether a field has one of these
/// values, or any value if there are none.
pub(crate) fn unmet(field: Field, is_met: impl Fn(Field, &[u16]) -> bool) -> Option<Prerequisite> {
    let needs = field.needs().iter().enumerate();
    let missing =
        needs.fold(0, |bits, (i, need)| bits | u8::from(!is_met(need.field, need.values)) << i);
    (missing != 0).then_some(Prerequisite { field, missing })
}

/// See [`Match::check`].
#[cold]
pub(crate) fn check(m: &Match) -> Result<(), EncodeError> {
    let value = |field| match field {
        Field::InPort => m.has(field).then_some(0),
        // "Any tag" has a mask.
        Field::VlanVid => m.value(field).map(|value| value as u16),
        field if m.is_masked(field) => None,
        field => m.value(field).map(|value| value as u16),
    };
    for field in m.fields() {
        let missing = missing(field, value);
        if missing != 0 {
            return Err(EncodeError::Prerequisite(Prerequisite { field, missing }));
        }
    }
    Ok(())
}

/// A match field without the fields that it depends on. Prints what is missing and how to add it:
/// `tcp_dst needs ip_proto 6: add .ip_proto(6)`. With `{:#}` the advice is for a match as text:
/// `add ip_proto=6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prerequisite {
    field: Field,
    missing: u8,
}

impl Prerequisite {
    /// Returns the field that depends on others.
    #[must_use]
    pub fn field(&self) -> Field {
        self.field
    }

    /// Returns the fields that it needs and that are missing or have another value.
    pub fn missing(&self) -> impl Iterator<Item = Field> + use<> {
        self.needs().map(|need| need.field)
    }

    fn needs(&self) -> impl Iterator<Item = &'static Need> + use<> {
        let missing = self.missing;
        let needs = self.field.needs().iter().enumerate();
        needs.filter(move |(i, _)| missing >> i & 1 != 0).map(|(_, need)| need)
    }
}

impl fmt::Display for Prerequisite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} needs ", self.field)?;
        for (i, need) in self.needs().enumerate() {
            f.write_str(if i == 0 { "" } else { " and " })?;
            match need.field {
                Field::VlanVid => f.write_str("a VLAN tag")?,
                field => write!(f, "{field}")?,
            }
            for (i, value) in need.values.iter().enumerate() {
                f.write_str(if i == 0 { " " } else { " or " })?;
                need.field.format((*value).into(), f)?;
            }
        }
        f.write_str(": add ")?;
        if f.alternate() { self.advise_for_text(f) } else { self.advise_for_code(f) }
    }
}

impl Prerequisite {
    fn advise_for_code(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for need in self.needs() {
            match (need.field, need.values.first()) {
                (Field::VlanVid, _) => f.write_str(".vlan_id(id)")?,
                (field, None) => write!(f, ".{field}(port)")?,
                (field, Some(value)) => {
                    write!(f, ".{field}(")?;
                    field.format((*value).into(), f)?;
                    f.write_str(")")?;
                }
            }
        }
        Ok(())
    }

    fn advise_for_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, need) in self.needs().enumerate() {
            f.write_str(if i == 0 { "" } else { "," })?;
            match (need.field, need.values.first()) {
                (Field::VlanVid, _) => f.write_str("vlan_vid=0x1000/0x1000")?,
                (field, None) => write!(f, "{field}=PORT")?,
                (field, Some(value)) => {
                    write!(f, "{field}=")?;
                    field.format((*value).into(), f)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Port;

    fn text(m: &Match) -> String {
        m.check().map_or_else(|error| error.to_string(), |()| "sound".to_owned())
    }

    #[test]
    fn the_error_names_the_missing_prerequisite_and_how_to_add_it() {
        let any = Match::any;
        for (m, expected) in [
            (
                any().tcp_dst(80),
                "tcp_dst needs eth_type 0x0800 or 0x86dd and ip_proto 6: \
                 add .eth_type(0x0800).ip_proto(6)",
            ),
            (any().eth_type(0x86dd).tcp_dst(80), "tcp_dst needs ip_proto 6: add .ip_proto(6)"),
            (
                any().eth_type(0x0800).ip_proto(17).tcp_dst(80),
                "tcp_dst needs ip_proto 6: add .ip_proto(6)",
            ),
            (
                any().ip_proto(6).tcp_dst(80),
                "ip_proto needs eth_type 0x0800 or 0x86dd: add .eth_type(0x0800)",
            ),
            (any().vlan_pcp(3), "vlan_pcp needs a VLAN tag: add .vlan_id(id)"),
            (any().untagged().vlan_pcp(3), "vlan_pcp needs a VLAN tag: add .vlan_id(id)"),
            (
                any().eth_type(0x86dd).ip_proto(58).with(Field::Ipv6NdSll, 1),
                "ipv6_nd_sll needs icmpv6_type 135: add .icmpv6_type(135)",
            ),
            (any().with(Field::InPhyPort, 1), "in_phy_port needs in_port: add .in_port(port)"),
            (
                any().with_masked(Field::EthType, 0x0800, 0xff00).ip_dscp(1),
                "ip_dscp needs eth_type 0x0800 or 0x86dd: add .eth_type(0x0800)",
            ),
        ] {
            assert_eq!(text(&m), expected, "{m}");
            assert!(!m.is_well_formed(), "{m}");
        }
    }

    #[test]
    fn a_field_stands_with_what_it_needs_in_whatever_order_it_was_set() {
        let any = Match::any;
        for m in [
            any(),
            any().in_port(Port(1)).with(Field::InPhyPort, 2),
            any().tcp_dst(80).ip_proto(6).eth_type(0x0800),
            any().vlan_pcp(1).with_masked(Field::VlanVid, 0x1000, 0x1000),
            any().metadata(1).eth_dst(crate::MacAddr([1; 6])),
        ] {
            assert_eq!(text(&m), "sound", "{m}");
            assert!(m.is_well_formed(), "{m}");
        }
    }
}
