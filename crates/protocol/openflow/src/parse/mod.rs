//! Reads matches and actions in the form in which they print:
//! `in_port=1,eth_type=0x0800,ipv4_dst=10.0.0.0/8` and `set_field:10.0.0.7->ipv4_dst,output:3`.

mod ovs_name;

use std::fmt::Display;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::field::Style;
use crate::{Action, EncodeError, Field, MacAddr, Match, Port};

/// A text that is no match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseMatchError(String);

/// A text that is no action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseActionError(String);

/// Names of Open vSwitch and of OpenFlow 1.0, and the fields that operators mean by them.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("dl_dst", "eth_dst"),
    ("dl_src", "eth_src"),
    ("dl_type", "eth_type"),
    ("dl_vlan", "vlan_vid"),
    ("vlan_tci", "vlan_vid"),
    ("dl_vlan_pcp", "vlan_pcp"),
    ("nw_dst", "ipv4_dst"),
    ("nw_src", "ipv4_src"),
    ("nw_proto", "ip_proto"),
    ("nw_tos", "ip_dscp"),
    ("nw_ecn", "ip_ecn"),
    ("tp_dst", "tcp_dst or udp_dst"),
    ("tp_src", "tcp_src or udp_src"),
    ("icmp_type", "icmpv4_type"),
    ("icmp_code", "icmpv4_code"),
    ("tun_id", "tunnel_id"),
    ("nd_target", "ipv6_nd_target"),
];

/// Reads `any`, or fields with commas between them: `NAME=VALUE` or `NAME=VALUE/MASK`. Names are
/// those of the specification, or those of Open vSwitch, with its keywords (`tcp`, `arp`), as flows
/// print. `ip_src` and `ip_dst` take an address of either version. The mask of an IP address may be
/// a prefix length.
impl FromStr for Match {
    type Err = ParseMatchError;

    fn from_str(text: &str) -> Result<Self, ParseMatchError> {
        let mut matching = Match::any();
        let text = text.trim();
        if text.is_empty() || text == "any" {
            return Ok(matching);
        }
        // What a name of Open vSwitch means can depend on the protocol, which may stand behind it.
        let mut others = Vec::new();
        for part in text.split(',').map(str::trim) {
            if !ovs_name::add(&mut matching, part, &mut others).map_err(ParseMatchError)? {
                add_field(&mut matching, part).map_err(ParseMatchError)?;
            }
        }
        for (name, value) in others {
            ovs_name::add_dependent(&mut matching, name, value).map_err(ParseMatchError)?;
        }
        match matching.check() {
            Ok(()) => Ok(matching),
            Err(EncodeError::Prerequisite(missing)) => Err(ParseMatchError(format!("{missing:#}"))),
            Err(error) => Err(ParseMatchError(error.to_string())),
        }
    }
}

fn add_field(matching: &mut Match, part: &str) -> Result<(), String> {
    let Some((name, value)) = part.split_once('=') else {
        return Err(format!("{part:?} is not a field; write NAME=VALUE, such as in_port=1"));
    };
    add_value(matching, field_named(name.trim())?, value.trim())
}

/// Adds a field with its value, or its value and mask.
fn add_value(matching: &mut Match, field: Field, text: &str) -> Result<(), String> {
    if matching.has(field) {
        return Err(format!("{field} is there twice; give it once"));
    }
    let (value, mask) = match text.split_once('/') {
        None => (field.parse_value(text)?, None),
        Some((value, mask)) => {
            if !field.maskable() {
                return Err(format!("{field} cannot have a mask; give one value"));
            }
            (field.parse_value(value.trim())?, Some(field.parse_mask(mask.trim())?))
        }
    };
    if let Some(mask) = mask
        && value & !mask != 0
    {
        return Err(format!("{field} has bits of its value outside its mask; set them to 0"));
    }
    if field == Field::VlanVid && mask.is_none() && (1..Match::VLAN_PRESENT.into()).contains(&value)
    {
        let present = Match::VLAN_PRESENT;
        return Err(format!(
            "vlan_vid={value:#x} lacks the bit {present:#x}, which stands for a tag; give vlan_vid={:#x} for VLAN \
             {value}, or 0 for untagged packets",
            value | u128::from(present)
        ));
    }
    matching.put_field(field, value, mask);
    Ok(())
}

/// Returns the field with this name.
fn field_named(name: &str) -> Result<Field, String> {
    if let Some(field) = Field::ALL.iter().find(|field| field.name() == name) {
        return Ok(*field);
    }
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    Err(match other {
        Some((_, right)) => format!("there is no field {name:?}; its name is {right}"),
        None => format!(
            "there is no field {name:?}; the names are those of OpenFlow 1.3, such as in_port, eth_dst and ipv4_src"
        ),
    })
}

/// Reads the name of a field: that of the specification.
impl FromStr for Field {
    type Err = ParseMatchError;

    fn from_str(name: &str) -> Result<Self, ParseMatchError> {
        field_named(name).map_err(ParseMatchError)
    }
}

impl Field {
    /// Reads a value in the form in which it prints, such as `10.0.0.7` or `0x0800`. Numbers may be
    /// decimal or hexadecimal.
    ///
    /// # Errors
    /// The text is no value of this field.
    pub fn value_of(self, text: &str) -> Result<u128, ParseMatchError> {
        self.parse_value(text).map_err(ParseMatchError)
    }

    /// Reads a mask in the form in which it prints; for IP addresses also a prefix length.
    ///
    /// # Errors
    /// The text is no mask of this field, or the field has none.
    pub fn mask_of(self, text: &str) -> Result<u128, ParseMatchError> {
        if !self.maskable() {
            return Err(ParseMatchError(format!("{self} cannot have a mask; give one value")));
        }
        self.parse_mask(text).map_err(ParseMatchError)
    }

    fn parse_value(self, text: &str) -> Result<u128, String> {
        let wrong = |form: &str| format!("{text:?} is not a value of {self}; give {form}");
        let value = match self.style() {
            Style::Mac => {
                let address: Result<MacAddr, _> = text.parse();
                address.map_err(|_| wrong("an address, such as 00:1b:21:3c:9d:f8"))?.to_u64().into()
            }
            Style::Ipv4 => {
                let address: Result<Ipv4Addr, _> = text.parse();
                address.map_err(|_| wrong("an address, such as 10.0.0.7"))?.to_bits().into()
            }
            Style::Ipv6 => {
                let address: Result<Ipv6Addr, _> = text.parse();
                address.map_err(|_| wrong("an address, such as 2001:db8::7"))?.to_bits()
            }
            Style::Port => {
                let port: Port = text.parse().map_err(|error| format!("{self}: {error}"))?;
                port.0.into()
            }
            Style::Decimal | Style::Hex => {
                number(text).ok_or_else(|| wrong("a number, such as 6 or 0x0800"))?
            }
        };
        match value <= self.max() {
            true => Ok(value),
            false => Err(wrong(&format!("at most {:#x}", self.max()))),
        }
    }

    /// Reads a mask: a prefix length for IP addresses, or else a value.
    fn parse_mask(self, text: &str) -> Result<u128, String> {
        if !matches!(self.style(), Style::Ipv4 | Style::Ipv6) {
            return self.parse_value(text);
        }
        let Ok(length) = text.parse::<u32>() else { return self.parse_value(text) };
        match length <= self.bits() {
            true => Ok(self.max() & !self.max().checked_shr(length).unwrap_or(0)),
            false => Err(format!("/{length} is longer than {self}; give up to /{}", self.bits())),
        }
    }
}

/// Reads one action in the form in which it prints, such as `output:3`, `FLOOD`, `group:7` or
/// `set_field:10.0.0.7->ipv4_dst`.
impl FromStr for Action<'static> {
    type Err = ParseActionError;

    fn from_str(text: &str) -> Result<Self, ParseActionError> {
        action(text.trim()).map_err(ParseActionError)
    }
}

fn action(text: &str) -> Result<Action<'static>, String> {
    let (name, argument) = match text.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (text, None),
    };
    let plain = match name {
        "copy_ttl_out" => Some(Action::CopyTtlOut),
        "copy_ttl_in" => Some(Action::CopyTtlIn),
        "dec_mpls_ttl" => Some(Action::DecMplsTtl),
        "dec_nw_ttl" => Some(Action::DecNwTtl),
        "pop_vlan" => Some(Action::PopVlan),
        "pop_pbb" => Some(Action::PopPbb),
        _ => None,
    };
    if let Some(plain) = plain {
        return match argument {
            None => Ok(plain),
            Some(_) => Err(format!("{text:?}: {name} has no value; write {name}")),
        };
    }
    let port = name.parse().ok().filter(|port: &Port| *port >= Port::IN_PORT);
    if let Some(port) = port.filter(|port| *port != Port::ANY) {
        return match argument {
            None => Ok(Action::output(port)),
            Some(max_len) if port == Port::CONTROLLER => {
                Ok(Action::Output { port, max_len: argument_of(name, Some(max_len))? })
            }
            Some(_) => Err(format!("{text:?}: {name} has no value; write {name}")),
        };
    }
    Ok(match name {
        "output" => Action::output(parse_argument(name, argument)?),
        "group" => Action::Group(argument_of(name, argument)?),
        "set_queue" => Action::SetQueue(argument_of(name, argument)?),
        "set_nw_ttl" => Action::SetNwTtl(argument_of(name, argument)?),
        "set_mpls_ttl" => Action::SetMplsTtl(argument_of(name, argument)?),
        "push_vlan" => Action::PushVlan(argument_of(name, argument)?),
        "push_mpls" => Action::PushMpls(argument_of(name, argument)?),
        "pop_mpls" => Action::PopMpls(argument_of(name, argument)?),
        "push_pbb" => Action::PushPbb(argument_of(name, argument)?),
        "set_vlan_vid" => Action::SetVlanVid(argument_of(name, argument)?),
        "set_vlan_pcp" => Action::SetVlanPcp(argument_of(name, argument)?),
        "set_tp_src" => Action::SetTpSrc(argument_of(name, argument)?),
        "set_tp_dst" => Action::SetTpDst(argument_of(name, argument)?),
        "enqueue" => {
            let parts = argument.and_then(|argument| argument.split_once(':'));
            let Some((port, queue)) = parts else {
                return Err(format!("{text:?}: write enqueue:PORT:QUEUE"));
            };
            Action::Enqueue {
                port: parse_argument("enqueue", Some(port))?,
                queue: argument_of("enqueue", Some(queue))?,
            }
        }
        "set_field" => {
            let parts = argument.and_then(|argument| argument.rsplit_once("->"));
            let Some((value, field)) = parts else {
                // The form of a match, and of other tools.
                let form = match argument.and_then(|argument| argument.split_once('=')) {
                    Some((field, value)) => format!("set_field:{}->{}", value.trim(), field.trim()),
                    None => "set_field:VALUE->FIELD".to_owned(),
                };
                return Err(format!("{text:?}: write {form}"));
            };
            let field = field_named(field.trim())?;
            Action::SetField(field, field.parse_value(value.trim())?)
        }
        _ => {
            return Err(format!(
                "there is no action {text:?}; examples are output:3, FLOOD, CONTROLLER, group:7, \
                 set_field:10.0.0.7->ipv4_dst, push_vlan:0x8100, pop_vlan and dec_nw_ttl"
            ));
        }
    })
}

/// Reads the number after the colon.
fn argument_of<T: TryFrom<u128>>(name: &str, argument: Option<&str>) -> Result<T, String> {
    let Some(text) = argument else {
        return Err(format!("{name} needs a number; write {name}:NUMBER"));
    };
    let value = number(text.trim()).and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        let bits = size_of::<T>() * 8;
        format!("{name}:{text} is not possible; give a number of at most {bits} bits")
    })
}

/// Reads a value of another type after the colon.
fn parse_argument<T: FromStr<Err: Display>>(
    name: &str,
    argument: Option<&str>,
) -> Result<T, String> {
    let Some(text) = argument else {
        return Err(format!("{name} needs a port; write {name}:PORT"));
    };
    text.trim().parse().map_err(|error: T::Err| format!("{name}: {error}"))
}

/// Reads a decimal or hexadecimal number.
fn number(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let is_plain = digits.starts_with(|first: char| first.is_ascii_hexdigit());
    is_plain.then(|| u128::from_str_radix(digits, radix).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong_match(text: &str) -> String {
        text.parse::<Match>().unwrap_err().to_string()
    }

    fn wrong_action(text: &str) -> String {
        text.parse::<Action<'static>>().unwrap_err().to_string()
    }

    #[test]
    fn matches_read_as_they_print() {
        for text in [
            "any",
            "in_port=LOCAL",
            "in_port=1,eth_type=0x0800,ip_proto=6,ipv4_dst=10.0.0.0/8,tcp_dst=80",
            "eth_dst=01:00:00:00:00:00/01:00:00:00:00:00",
            "eth_type=0x86dd,ipv6_src=2001:db8::/32",
            "vlan_vid=0x1064,vlan_pcp=3",
            "metadata=0xf0/0xff",
            "eth_type=0x0800,ipv4_src=10.0.0.1/255.0.0.255",
        ] {
            let matching: Match = text.parse().unwrap();
            let printed = matching.to_string();
            assert_eq!(printed.parse(), Ok(matching), "{text} printed as {printed}");
        }
        let spaced: Match = " in_port = 1 , eth_type=2048 ".parse().unwrap();
        assert_eq!(spaced, Match::any().in_port(Port(1)).eth_type(0x0800));
    }

    #[test]
    fn a_wrong_match_says_what_would_be_right() {
        let cases = [
            ("nonsense=1", "there is no field \"nonsense\""),
            ("nw_dst=10.0.0.1", "ipv4_dst needs eth_type 0x0800"),
            ("tcp,eth_type=0x86dd", "eth_type is there twice"),
            ("tp_dst=80", "tp_dst needs a protocol: add tcp, udp or sctp"),
            ("ip_src=web", "\"web\" is not a value of ipv4_src"),
            ("in_port", "write NAME=VALUE"),
            ("in_port=1,in_port=2", "in_port is there twice"),
            ("eth_dst=nobody", "\"nobody\" is not a value of eth_dst; give an address"),
            ("eth_type=0x800/0xff", "eth_type cannot have a mask"),
            ("eth_type=65536", "at most 0xffff"),
            ("eth_type=-1", "give a number"),
            ("ipv4_dst=10.0.0.1", "ipv4_dst needs eth_type 0x0800"),
            ("eth_type=0x0800,ipv4_dst=10.0.0.1/8", "bits of its value outside its mask"),
            ("eth_type=0x0800,ipv4_dst=10.0.0.0/33", "up to /32"),
            ("vlan_vid=100", "give vlan_vid=0x1064 for VLAN 100"),
        ];
        for (text, part) in cases {
            let message = wrong_match(text);
            assert!(message.contains(part), "{text}: {message}");
        }
        let advice = "tcp_dst needs ip_proto 6: add ip_proto=6";
        assert_eq!(wrong_match("eth_type=0x0800,tcp_dst=80"), advice);
    }

    #[test]
    fn a_wrong_action_says_what_would_be_right() {
        let cases = [
            ("fly", "there is no action \"fly\""),
            ("output", "write output:PORT"),
            ("output:x", "\"x\" is not a port"),
            ("group", "write group:NUMBER"),
            ("group:x", "group:x is not possible"),
            ("push_vlan:65536", "at most 16 bits"),
            ("pop_vlan:1", "write pop_vlan"),
            ("FLOOD:1", "write FLOOD"),
            ("enqueue:1", "write enqueue:PORT:QUEUE"),
            ("set_field:1", "write set_field:VALUE->FIELD"),
            ("set_field:ipv4_dst=10.0.0.7", "write set_field:10.0.0.7->ipv4_dst"),
            ("set_field:1->nonsense", "there is no field \"nonsense\""),
        ];
        for (text, part) in cases {
            let message = wrong_action(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
