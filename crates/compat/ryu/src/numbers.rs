//! Numbers in requests and answers of Ryu, and the names of reserved ones.

use bellrock_api::openflow::{Action, FlowMod, Group, Meter, Port, Version};
use serde_json::Value;

/// Reads a number as Python's `int(str(value), 0)` does: a number, or a text in decimal,
/// hexadecimal, octal or binary form. Negative numbers are none here.
pub(super) fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => integer_of(text),
        _ => None,
    }
}

/// The same for text.
pub(super) fn integer_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let radix = |prefix: [&str; 2]| prefix.iter().find_map(|prefix| text.strip_prefix(prefix));
    let forms = [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)];
    let found = forms.iter().find_map(|(prefix, base)| Some((radix(*prefix)?, *base)));
    let (digits, base) = found.unwrap_or((text, 10));
    // `from_str_radix` takes a sign, and Python takes no number such as 010.
    let is_plain = digits.starts_with(|first: char| first.is_digit(base));
    let is_octal_of_old =
        base == 10 && digits.starts_with('0') && digits.bytes().any(|it| it != b'0');
    (is_plain && !is_octal_of_old).then(|| u64::from_str_radix(digits, base).ok()).flatten()
}

/// Reserved numbers of a kind, with their names.
pub(super) struct Names {
    /// What is before a name in the specification.
    prefix: &'static str,
    numbers: &'static [(&'static str, u64)],
}

pub(super) const PORTS: Names = Names {
    prefix: "OFPP_",
    numbers: &[
        ("MAX", Port::MAX.0 as u64),
        ("IN_PORT", Port::IN_PORT.0 as u64),
        ("TABLE", Port::TABLE.0 as u64),
        ("NORMAL", Port::NORMAL.0 as u64),
        ("FLOOD", Port::FLOOD.0 as u64),
        ("ALL", Port::ALL.0 as u64),
        ("CONTROLLER", Port::CONTROLLER.0 as u64),
        ("LOCAL", Port::LOCAL.0 as u64),
        ("ANY", Port::ANY.0 as u64),
    ],
};

/// Ports of 1.0, which have 16 bits.
pub(super) const PORTS_V10: Names = Names {
    prefix: "OFPP_",
    numbers: &[
        ("MAX", 0xff00),
        ("IN_PORT", 0xfff8),
        ("TABLE", 0xfff9),
        ("NORMAL", 0xfffa),
        ("FLOOD", 0xfffb),
        ("ALL", 0xfffc),
        ("CONTROLLER", 0xfffd),
        ("LOCAL", 0xfffe),
        ("NONE", 0xffff),
    ],
};

pub(super) const TABLES: Names =
    Names { prefix: "OFPTT_", numbers: &[("MAX", 0xfe), ("ALL", FlowMod::ALL_TABLES as u64)] };

pub(super) const GROUPS: Names = Names {
    prefix: "OFPG_",
    numbers: &[("MAX", Group::MAX as u64), ("ALL", Group::ALL as u64), ("ANY", Group::ANY as u64)],
};

pub(super) const METERS: Names = Names {
    prefix: "OFPM_",
    numbers: &[
        ("MAX", Meter::MAX as u64),
        ("SLOWPATH", Meter::SLOWPATH as u64),
        ("CONTROLLER", Meter::CONTROLLER as u64),
        ("ALL", Meter::ALL as u64),
    ],
};

/// All queues of a port.
pub(super) const ALL_QUEUES: u32 = 0xffff_ffff;

pub(super) const QUEUES: Names = Names { prefix: "OFPQ_", numbers: &[("ALL", ALL_QUEUES as u64)] };

/// `OFPCML_MAX`: what Ryu gives for the controller if nothing is said.
pub(super) const MAX_LEN: u16 = 0xffe5;

/// Maximum lengths of packets to the controller.
pub(super) const LENGTHS: Names = Names {
    prefix: "OFPCML_",
    numbers: &[("MAX", MAX_LEN as u64), ("NO_BUFFER", Action::NO_BUFFER as u64)],
};

impl Names {
    /// Reads a number or a name, with or without its prefix, in any case.
    pub(super) fn read(&self, value: &Value) -> Option<u64> {
        integer(value).or_else(|| self.read_text(value.as_str()?))
    }

    /// The same for text.
    pub(super) fn read_text(&self, text: &str) -> Option<u64> {
        let upper = text.trim().to_ascii_uppercase();
        let name = upper.strip_prefix(self.prefix).unwrap_or(&upper);
        let known = self.numbers.iter().find(|(known, _)| *known == name);
        known.map(|(_, number)| *number).or_else(|| integer_of(text))
    }

    /// Shows a number, or its name.
    pub(super) fn show(&self, number: impl Into<u64>) -> Value {
        let number = number.into();
        let known = self.numbers.iter().find(|(_, known)| *known == number);
        known.map_or_else(|| number.into(), |(name, _)| (*name).into())
    }

    /// The same as text.
    pub(super) fn text(&self, number: impl Into<u64>) -> String {
        match self.show(number) {
            Value::String(name) => name,
            number => number.to_string(),
        }
    }

    /// The names, for messages.
    pub(super) fn list(&self) -> String {
        self.numbers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

/// The names of ports of a version.
pub(super) fn ports(version: Version) -> &'static Names {
    if version.has_oxm() { &PORTS } else { &PORTS_V10 }
}

/// The port with a number of a version. `None`: there is none.
pub(super) fn port_of(version: Version, number: u64) -> Option<Port> {
    /// The first reserved number of 1.0, and the distance to that of 1.3.
    const RESERVED_V10: u32 = 0xff00;
    const DISTANCE: u32 = 0xffff_0000;
    if version.has_oxm() {
        return u32::try_from(number).ok().map(Port);
    }
    let number = u32::from(u16::try_from(number).ok()?);
    Some(Port(if number < RESERVED_V10 { number } else { number + DISTANCE }))
}

/// The number of a port in a version.
pub(super) fn port_number(version: Version, port: Port) -> u64 {
    const LOW: u32 = 0xffff;
    match version.has_oxm() {
        true => port.0.into(),
        false => (port.0 & LOW).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_read_as_in_python() {
        for (value, number) in [
            (json!(7), Some(7)),
            (json!("7"), Some(7)),
            (json!(" 0x1F "), Some(31)),
            (json!("0b11"), Some(3)),
            (json!("0o17"), Some(15)),
            (json!("000"), Some(0)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!("010"), None),
            (json!("+1"), None),
            (json!(-1), None),
            (json!("-1"), None),
            (json!(1.5), None),
            (json!(""), None),
            (json!("0x"), None),
            (json!(null), None),
            (json!(true), None),
        ] {
            assert_eq!(integer(&value), number, "{value}");
        }
    }

    #[test]
    fn names_read_with_and_without_their_prefix() {
        for text in ["ALL", "all", "OFPP_ALL", "ofpp_all", "0xfffffffc"] {
            assert_eq!(PORTS.read(&json!(text)), Some(Port::ALL.0.into()), "{text}");
        }
        assert_eq!(PORTS.read(&json!("nowhere")), None);
        assert_eq!((PORTS.text(3u64), PORTS.text(Port::LOCAL.0)), ("3".into(), "LOCAL".into()));
        assert_eq!(TABLES.show(255u64), json!("ALL"));
    }

    #[test]
    fn ports_of_both_versions_are_the_same_ports() {
        for (number, port) in [(1, Port(1)), (0xfffd, Port::CONTROLLER), (0xffff, Port::ANY)] {
            assert_eq!(port_of(Version::V1_0, number), Some(port));
            assert_eq!(port_number(Version::V1_0, port), number);
        }
        assert_eq!(port_of(Version::V1_0, 0x1_0000), None);
        assert_eq!(port_of(Version::V1_3, 0xffff_fffd), Some(Port::CONTROLLER));
    }
}
