//! Matches between Ryu's form and that of the codec.

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock_api::openflow::{EncodeError, Field, MacAddr, Match, Version};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value};

use super::Failure;
use super::body::Object;
use super::numbers::{integer, integer_of, port_number, ports};

const ARP: u64 = 0x0806;
const TCP: u64 = 6;
const UDP: u64 = 17;
const ICMP: u64 = 1;

/// `OFP_VLAN_NONE` (1.0 §5.2.3): packets without a tag.
const NO_VLAN_V10: u64 = 0xffff;

/// Number of bits of the type of service below the DSCP.
const ECN_BITS: u32 = 2;

/// The names of 1.0 in requests of 1.3, and the fields that they stand for.
const OLD_NAMES: &[(&str, Field)] = &[
    ("dl_dst", Field::EthDst),
    ("dl_src", Field::EthSrc),
    ("dl_type", Field::EthType),
    ("dl_vlan", Field::VlanVid),
    ("nw_proto", Field::IpProto),
    ("nw_src", Field::Ipv4Src),
    ("nw_dst", Field::Ipv4Dst),
];

/// Reads a match.
pub(super) fn read(object: Object<'_>) -> Result<Match, Failure> {
    let mut matching = Match::any();
    for (key, value) in object.fields() {
        let place = object.place(key);
        let field = field_of(object, key)?;
        if matching.has(field) {
            return Err(Failure::wrong(&place, format!("{field} is there twice")));
        }
        let (value, mask) =
            read_value(object, key, field, value).map_err(|why| Failure::wrong(&place, why))?;
        match mask {
            // Bits behind the mask stay out, as in a switch.
            Some(mask) => matching.set_masked(field, value, mask),
            None => matching.set(field, value),
        }
    }
    match matching.check() {
        Ok(()) => Ok(matching),
        Err(EncodeError::Prerequisite(missing)) => {
            Err(Failure::wrong(object.place("").trim_end_matches('.'), format!("{missing:#}")))
        }
        Err(error) => Err(Failure::wrong(object.place("").trim_end_matches('.'), error)),
    }
}

/// The field that a name stands for.
fn field_of(object: Object<'_>, key: &str) -> Result<Field, Failure> {
    let number = |keys: [&str; 2]| keys.iter().find_map(|key| integer(object.value(key)?));
    let is_arp = number(["dl_type", "eth_type"]) == Some(ARP);
    let protocol = number(["nw_proto", "ip_proto"]);
    let is_v10 = !object.version().has_oxm();
    let field = match (key, protocol) {
        ("nw_src", _) if is_arp => Some(Field::ArpSpa),
        ("nw_dst", _) if is_arp => Some(Field::ArpTpa),
        ("nw_proto", _) if is_arp && is_v10 => Some(Field::ArpOp),
        ("tp_src", Some(TCP)) => Some(Field::TcpSrc),
        ("tp_dst", Some(TCP)) => Some(Field::TcpDst),
        ("tp_src", Some(UDP)) => Some(Field::UdpSrc),
        ("tp_dst", Some(UDP)) => Some(Field::UdpDst),
        ("tp_src", Some(ICMP)) if is_v10 => Some(Field::Icmpv4Type),
        ("tp_dst", Some(ICMP)) if is_v10 => Some(Field::Icmpv4Code),
        ("tp_src" | "tp_dst", _) => {
            let why = "it needs nw_proto, 6 for TCP or 17 for UDP";
            return Err(Failure::wrong(&object.place(key), why));
        }
        ("in_port", _) => Some(Field::InPort),
        ("dl_vlan_pcp", _) if is_v10 => Some(Field::VlanPcp),
        ("nw_tos", _) if is_v10 => Some(Field::IpDscp),
        _ => OLD_NAMES.iter().find(|(name, _)| *name == key).map(|(_, field)| *field),
    };
    let field = field.or_else(|| if is_v10 { None } else { key.parse().ok() });
    field.ok_or_else(|| {
        let names = if is_v10 {
            "in_port, dl_src, dl_type and nw_dst"
        } else {
            "in_port, eth_src, dl_type and ipv4_dst"
        };
        let why = format!("there is no such field; examples are {names}");
        Failure::wrong(&object.place(key), why)
    })
}

/// Reads a value, and its mask.
fn read_value(
    object: Object<'_>,
    key: &str,
    field: Field,
    value: &Value,
) -> Result<(u128, Option<u128>), String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(format!("{value} is neither a text nor a number")),
    };
    match field {
        Field::InPort => {
            let port = object.port(key).map_err(|failure| failure.text)?;
            Ok((port.0.into(), None))
        }
        Field::VlanVid => read_vlan(object.version(), value, &text),
        Field::IpDscp if key == "nw_tos" => {
            let tos =
                integer_of(&text).filter(|tos| *tos <= 0xff && tos.trailing_zeros() >= ECN_BITS);
            let tos = tos.ok_or("give a multiple of 4 below 256: the DSCP, two bits higher")?;
            Ok(((tos >> ECN_BITS).into(), None))
        }
        _ => {
            let (value, mask) = match text.split_once('/') {
                Some((value, mask)) => (value, Some(mask)),
                None => (text.as_str(), None),
            };
            Ok((number_of(field, value)?, mask.map(|mask| mask_of(field, mask)).transpose()?))
        }
    }
}

/// Reads a VLAN. In 1.3 a decimal number is a VLAN id, and a hexadecimal one is the field with the
/// bit that stands for a tag.
fn read_vlan(version: Version, value: &Value, text: &str) -> Result<(u128, Option<u128>), String> {
    let present = u64::from(Match::VLAN_PRESENT);
    let wrong = || "give a VLAN id below 4096".to_owned();
    if let Some((value, mask)) = text.split_once('/').filter(|_| version.has_oxm()) {
        return Ok((number_of(Field::VlanVid, value)?, Some(mask_of(Field::VlanVid, mask)?)));
    }
    let number = integer(value).ok_or_else(wrong)?;
    if !version.has_oxm() && number == NO_VLAN_V10 {
        return Ok((0, None));
    }
    let is_field =
        version.has_oxm() && value.is_string() && !text.bytes().all(|it| it.is_ascii_digit());
    let number = if is_field {
        Some(number).filter(|number| *number <= present | (present - 1))
    } else {
        Some(number).filter(|number| *number < present).map(|number| number | present)
    };
    number.map(|number| (number.into(), None)).ok_or_else(wrong)
}

/// Reads a value of a field.
pub(super) fn number_of(field: Field, text: &str) -> Result<u128, String> {
    let Some(number) = integer_of(text).filter(|_| kind_of(field) == Kind::Number) else {
        return field.value_of(text.trim()).map_err(|error| error.to_string());
    };
    let number = u128::from(number);
    if number > field.max() {
        return Err(format!("{text} is too large for {field}; give at most {}", field.max()));
    }
    Ok(number)
}

fn mask_of(field: Field, text: &str) -> Result<u128, String> {
    match integer_of(text).filter(|_| kind_of(field) == Kind::Number && field.maskable()) {
        Some(mask) => Ok(mask.into()),
        None => field.mask_of(text.trim()).map_err(|error| error.to_string()),
    }
}

/// How a field prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Mac,
    Ipv4,
    Ipv6,
}

fn kind_of(field: Field) -> Kind {
    match field {
        Field::EthDst
        | Field::EthSrc
        | Field::ArpSha
        | Field::ArpTha
        | Field::Ipv6NdSll
        | Field::Ipv6NdTll => Kind::Mac,
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => Kind::Ipv4,
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => Kind::Ipv6,
        _ => Kind::Number,
    }
}

/// A value as text.
pub(super) fn text_of(field: Field, value: u128) -> String {
    /// Bits of an IPv4 address, and of an Ethernet address.
    const LOW: u128 = u32::MAX as u128;
    match kind_of(field) {
        Kind::Number => value.to_string(),
        Kind::Mac => MacAddr::from_u64(value as u64).to_string(),
        Kind::Ipv4 => Ipv4Addr::from_bits((value & LOW) as u32).to_string(),
        Kind::Ipv6 => Ipv6Addr::from_bits(value).to_string(),
    }
}

/// Shows a match.
pub(super) fn show(version: Version, matching: &Match) -> Value {
    let mut shown = Map::new();
    for field in matching.fields() {
        let (value, mask) = (matching.value(field), matching.mask(field));
        let (Some(value), Some(mask)) = (value, mask) else { continue };
        let mask = matching.is_masked(field).then_some(mask);
        let (name, value) = match version.has_oxm() {
            true => show_field(version, field, value, mask),
            false => show_field_v10(version, field, value, mask),
        };
        shown.entry(name).or_insert(value);
    }
    let unknown = [matching.unknown(), matching.unread()].concat();
    if !unknown.is_empty() {
        shown.insert("unknown".to_owned(), HEXLOWER.encode(&unknown).into());
    }
    Value::Object(shown)
}

fn show_field(version: Version, field: Field, value: u128, mask: Option<u128>) -> (String, Value) {
    let name = match field {
        Field::TcpSrc | Field::UdpSrc => "tp_src",
        Field::TcpDst | Field::UdpDst => "tp_dst",
        field => OLD_NAMES
            .iter()
            .find(|(_, known)| *known == field)
            .map_or(field.name(), |(name, _)| *name),
    };
    let present = u128::from(Match::VLAN_PRESENT);
    let value = match (field, mask) {
        (Field::InPort, _) => ports(version).show(value as u64),
        (Field::VlanVid, Some(mask)) => format!("{value:#06x}/{mask:#06x}").into(),
        (Field::VlanVid, None) if value & present != 0 => (value & !present).to_string().into(),
        (Field::VlanVid, None) => format!("{value:#06x}").into(),
        (field, Some(mask)) => format!("{}/{}", text_of(field, value), text_of(field, mask)).into(),
        (field, None) => value_of(field, value),
    };
    (name.to_owned(), value)
}

fn show_field_v10(
    version: Version,
    field: Field,
    value: u128,
    mask: Option<u128>,
) -> (String, Value) {
    let (name, value) = match field {
        Field::InPort => {
            let port = bellrock_api::Port(value as u32);
            ("in_port", ports(version).show(port_number(version, port)))
        }
        Field::VlanVid if value == 0 => ("dl_vlan", NO_VLAN_V10.into()),
        Field::VlanVid => ("dl_vlan", ((value as u64) & !u64::from(Match::VLAN_PRESENT)).into()),
        Field::VlanPcp => ("dl_vlan_pcp", value_of(field, value)),
        Field::IpDscp => ("nw_tos", ((value as u64) << ECN_BITS).into()),
        Field::ArpOp => ("nw_proto", value_of(field, value)),
        Field::Ipv4Src | Field::ArpSpa => ("nw_src", with_length(field, value, mask)),
        Field::Ipv4Dst | Field::ArpTpa => ("nw_dst", with_length(field, value, mask)),
        Field::TcpSrc | Field::UdpSrc | Field::Icmpv4Type => ("tp_src", value_of(field, value)),
        Field::TcpDst | Field::UdpDst | Field::Icmpv4Code => ("tp_dst", value_of(field, value)),
        field => {
            let old = OLD_NAMES.iter().find(|(_, known)| *known == field);
            (old.map_or(field.name(), |(name, _)| *name), value_of(field, value))
        }
    };
    (name.to_owned(), value)
}

/// A value as a number, if it is one, else as text.
fn value_of(field: Field, value: u128) -> Value {
    match (kind_of(field), u64::try_from(value)) {
        (Kind::Number, Ok(number)) => number.into(),
        _ => text_of(field, value).into(),
    }
}

/// An IPv4 address with the length of its prefix, if it has a mask.
fn with_length(field: Field, value: u128, mask: Option<u128>) -> Value {
    let address = text_of(field, value);
    match mask {
        Some(mask) => format!("{address}/{}", mask.count_ones()).into(),
        None => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::body::Ignored;
    use super::*;

    fn read_json(version: Version, value: &Value) -> Result<Match, Failure> {
        let (ignored, body) = (Ignored::default(), Map::new());
        read(Object::new(&body, version, &ignored).inside(value, "match.")?)
    }

    #[test]
    fn matches_are_shown_in_ryu_s_form() {
        for (version, form, shown) in [
            (
                Version::V1_3,
                json!({"dl_type": 2048, "nw_dst": "10.0.0.5/24"}),
                json!({"dl_type": 2048, "nw_dst": "10.0.0.0/255.255.255.0"}),
            ),
            (Version::V1_3, json!({"dl_vlan": "0x0000"}), json!({"dl_vlan": "0x0000"})),
            (Version::V1_3, json!({"vlan_vid": 5}), json!({"dl_vlan": "5"})),
            (Version::V1_0, json!({"dl_vlan": 65535}), json!({"dl_vlan": 65535})),
            (
                Version::V1_0,
                json!({"dl_type": 2048, "nw_tos": 40, "nw_src": "10.0.0.0/8"}),
                json!({"dl_type": 2048, "nw_tos": 40, "nw_src": "10.0.0.0/8"}),
            ),
            (
                Version::V1_0,
                json!({"dl_type": 2048, "nw_proto": 1, "tp_src": 8}),
                json!({"dl_type": 2048, "nw_proto": 1, "tp_src": 8}),
            ),
        ] {
            let matching = read_json(version, &form).unwrap();
            assert_eq!(show(version, &matching), shown);
        }
    }

    #[test]
    fn a_wrong_match_is_refused_with_its_field() {
        for (version, form, text) in [
            (Version::V1_3, json!({"nonsense": 1}), "match.nonsense: there is no such field"),
            (Version::V1_0, json!({"eth_type": 2048}), "match.eth_type: there is no such field"),
            (
                Version::V1_3,
                json!({"dl_type": 2048, "nw_src": "10.0.0"}),
                "match.nw_src: \"10.0.0\" is not a value",
            ),
            (Version::V1_3, json!({"nw_src": "10.0.0.1"}), "match: ipv4_src"),
            (Version::V1_3, json!({"dl_type": 65536}), "match.dl_type: 65536 is too large"),
            (
                Version::V1_3,
                json!({"dl_type": "2048/255"}),
                "match.dl_type: eth_type cannot have a mask",
            ),
            (
                Version::V1_3,
                json!({"dl_type": 2048, "eth_type": 2048}),
                "match.eth_type: eth_type is there twice",
            ),
            (
                Version::V1_3,
                json!({"dl_type": 2048, "tp_src": 80}),
                "match.tp_src: it needs nw_proto",
            ),
            (Version::V1_3, json!({"dl_vlan": 4096}), "match.dl_vlan: give a VLAN id"),
            (Version::V1_3, json!({"dl_src": null}), "match.dl_src: null is neither"),
            (
                Version::V1_0,
                json!({"dl_type": 2048, "nw_tos": 41}),
                "match.nw_tos: give a multiple of 4",
            ),
        ] {
            let failure = read_json(version, &form).unwrap_err();
            assert_eq!(failure.status, 400);
            assert!(failure.text.starts_with(text), "{}", failure.text);
        }
    }
}
