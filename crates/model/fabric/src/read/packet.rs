//! Fields of packets in rules: names, and the values to match or to set.

use std::net::IpAddr;

use bellrock_openflow::{Field, Port};

use super::values::{self, number};
use crate::keys::{NICIRA_FIELDS, OLD_FIELDS};
use crate::yaml::{Node, Scalar};

/// A field that a rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldName {
    /// A field of OpenFlow 1.3.
    Basic(Field),
    /// A field of Nicira: its name, bits, and whether a mask is allowed.
    Nicira(&'static str, u32, bool),
}

/// How a field is written.
enum Form {
    Port,
    Vlan,
    Mac,
    Ip,
    Number { has_mask: bool },
}

impl FieldName {
    /// The field of this name. Old names are for matches only.
    pub(super) fn of(name: &str, is_old_allowed: bool) -> Option<FieldName> {
        let new = OLD_FIELDS.iter().find(|(old, _)| is_old_allowed && *old == name);
        let name = new.map_or(name, |(_, new)| *new);
        let basic = Field::BASIC.iter().find(|field| field.name() == name);
        let basic = basic.map(|field| FieldName::Basic(*field));
        basic.or_else(|| {
            let row = NICIRA_FIELDS.iter().find(|(known, ..)| *known == name);
            row.map(|(name, bits, has_mask)| FieldName::Nicira(name, *bits, *has_mask))
        })
    }

    /// All names, for errors.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        let basic = Field::BASIC.iter().map(|field| field.name());
        basic.chain(NICIRA_FIELDS.iter().map(|(name, ..)| *name))
    }

    fn bits(self) -> u32 {
        match self {
            FieldName::Basic(field) => field.bits(),
            FieldName::Nicira(_, bits, _) => bits,
        }
    }

    fn form(self) -> Form {
        let FieldName::Basic(field) = self else {
            return Form::Number { has_mask: matches!(self, FieldName::Nicira(_, _, true)) };
        };
        match field {
            Field::InPort => Form::Port,
            Field::VlanVid => Form::Vlan,
            Field::EthDst
            | Field::EthSrc
            | Field::ArpSha
            | Field::ArpTha
            | Field::Ipv6NdSll
            | Field::Ipv6NdTll => Form::Mac,
            Field::Ipv4Src
            | Field::Ipv4Dst
            | Field::ArpSpa
            | Field::ArpTpa
            | Field::Ipv6Src
            | Field::Ipv6Dst
            | Field::Ipv6NdTarget => Form::Ip,
            Field::Metadata
            | Field::TcpSrc
            | Field::TcpDst
            | Field::UdpSrc
            | Field::UdpDst
            | Field::SctpSrc
            | Field::SctpDst
            | Field::PbbIsid
            | Field::TunnelId
            | Field::Ipv6Exthdr => Form::Number { has_mask: true },
            _ => Form::Number { has_mask: false },
        }
    }

    /// The value and mask that a rule matches, or what would be right.
    pub(super) fn matched(self, node: &Node) -> Result<(u128, Option<u128>), String> {
        let expected = || self.expected();
        let scalar = node.scalar().ok_or_else(expected)?;
        let text = scalar.text();
        let (value, mask) = match text.and_then(|text| text.split_once('/')) {
            Some((value, mask)) => (value, Some(mask)),
            None => (text.unwrap_or_default(), None),
        };
        let in_text = |text: &str| number(&Scalar::Text(text.into()));
        let read = match (self.form(), mask) {
            (Form::Port, None) => port(scalar).map(|port| (port, None)),
            (Form::Vlan, None) => vlan(scalar).map(|vlan| (vlan, None)),
            (Form::Mac, None) => mac(value).map(|mac| (mac, None)),
            (Form::Mac, Some(mask)) => mac(value).zip(mac(mask)).map(|(v, m)| (v, Some(m))),
            (Form::Ip, mask) => self.ip(value, mask),
            (Form::Number { .. }, None) => number(scalar).map(|number| (number, None)),
            (Form::Vlan | Form::Number { has_mask: true }, Some(mask)) => {
                in_text(value).zip(in_text(mask)).map(|(value, mask)| (value, Some(mask)))
            }
            (Form::Port | Form::Number { has_mask: false }, Some(_)) => None,
        };
        let most = u128::MAX >> (128 - self.bits());
        read.filter(|(value, mask)| *value <= most && mask.is_none_or(|mask| mask <= most))
            .ok_or_else(expected)
    }

    /// The value that a rule sets, or what would be right.
    pub(super) fn set(self, node: &Node) -> Result<u128, String> {
        let scalar = node.scalar();
        let read = match self.form() {
            Form::Mac => scalar.and_then(Scalar::text).and_then(mac),
            Form::Ip => {
                let text = scalar.and_then(Scalar::text);
                text.and_then(|text| self.ip(text, None)).map(|(value, _)| value)
            }
            // A number in text is none here.
            _ => scalar.and_then(Scalar::int).and_then(|number| u128::try_from(number).ok()),
        };
        let most = u128::MAX >> (128 - self.bits());
        read.filter(|value| *value <= most).ok_or_else(|| match self.form() {
            Form::Mac => values::MAC.to_owned(),
            Form::Ip if self.bits() == 32 => "an IPv4 address, such as 10.0.0.1".to_owned(),
            Form::Ip => "an IPv6 address, such as fc00::1".to_owned(),
            _ => format!("a whole number from 0 to {most}, without quotes"),
        })
    }

    fn ip(self, address: &str, mask: Option<&str>) -> Option<(u128, Option<u128>)> {
        let is_v4 = self.bits() == 32;
        let bits = |text: &str| match text.parse().ok()? {
            IpAddr::V4(address) if is_v4 => Some(u128::from(address.to_bits())),
            IpAddr::V6(address) if !is_v4 => Some(address.to_bits()),
            _ => None,
        };
        let value = bits(address)?;
        let Some(mask) = mask else { return Some((value, None)) };
        if mask.is_empty() || !mask.bytes().all(|c| c.is_ascii_digit()) {
            return Some((value, Some(bits(mask)?)));
        }
        let len: u32 = mask.parse().ok().filter(|len| *len <= self.bits())?;
        let most = u128::MAX >> (128 - self.bits());
        let mask = most & !most.checked_shr(len).unwrap_or(0);
        Some((value, Some(mask)))
    }

    /// What would be right.
    fn expected(self) -> String {
        let most = u128::MAX >> (128 - self.bits());
        match self.form() {
            Form::Port => "a port number, or LOCAL".to_owned(),
            Form::Vlan => "a VLAN id".to_owned(),
            Form::Mac => format!("{}, also with /MASK", values::MAC),
            Form::Ip if self.bits() == 32 => {
                "an IPv4 address or network, such as 10.0.0.0/24".into()
            }
            Form::Ip => "an IPv6 address or network, such as fc00::/64".to_owned(),
            Form::Number { has_mask: true } => {
                format!("a whole number from 0 to {most}, also with /MASK")
            }
            Form::Number { .. } => format!("a whole number from 0 to {most}"),
        }
    }
}

fn mac(text: &str) -> Option<u128> {
    values::mac(text).map(|mac| mac.to_u64().into())
}

fn port(scalar: &Scalar) -> Option<u128> {
    number(scalar).or_else(|| {
        let name = scalar.text()?.to_ascii_lowercase();
        let name = name.strip_prefix("ofpp_").unwrap_or(&name);
        name.parse::<Port>().ok().map(|port| port.0.into())
    })
}

/// The value of `vlan_vid`. A decimal number is an id, and gets the bit for "tagged"; text in
/// another base is the whole value.
fn vlan(scalar: &Scalar) -> Option<u128> {
    const PRESENT: u128 = bellrock_openflow::Match::VLAN_PRESENT as u128;
    match scalar {
        Scalar::Int(_) => number(scalar).map(|id| id | PRESENT),
        Scalar::Text(text) if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) => {
            text.parse().ok().map(|id: u128| id | PRESENT)
        }
        scalar => number(scalar),
    }
}
