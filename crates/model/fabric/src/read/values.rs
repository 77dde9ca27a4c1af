//! Values of files: addresses, prefixes, names.

use std::net::IpAddr;

use bellrock_openflow::MacAddr;

use crate::intent::{Name, Prefix};
use crate::yaml::{Node, Scalar};

/// What is right for an Ethernet address.
pub(crate) const MAC: &str = "an Ethernet address, such as 0e:00:00:00:00:01";

/// An Ethernet address in any of the forms that Faucet's library takes: six bytes of one or two
/// digits, three words of up to four, two of five or six, or twelve digits.
pub(crate) fn mac(text: &str) -> Option<MacAddr> {
    let words = |separator: char, count: usize, digits: std::ops::RangeInclusive<usize>| {
        let words: Vec<&str> = text.split(separator).collect();
        let is_word = |word: &&str| {
            digits.contains(&word.len()) && word.bytes().all(|c| c.is_ascii_hexdigit())
        };
        (words.len() == count && words.iter().all(is_word)).then(|| {
            let bits = 48 / count;
            words.iter().fold(0u64, |sum, word| {
                sum << bits | u64::from_str_radix(word, 16).unwrap_or_default()
            })
        })
    };
    let number = words(':', 6, 1..=2)
        .or_else(|| words('-', 6, 1..=2))
        .or_else(|| words(':', 3, 1..=4))
        .or_else(|| words('-', 3, 1..=4))
        .or_else(|| words('.', 3, 1..=4))
        .or_else(|| words('-', 2, 5..=6))
        .or_else(|| words(':', 2, 5..=6))
        .or_else(|| words('\0', 1, 11..=12));
    number.map(MacAddr::from_u64)
}

/// An address with a prefix length or a netmask; without either, of all bits.
pub(crate) fn prefix(text: &str) -> Option<Prefix> {
    let Some((address, len)) = text.split_once('/') else {
        let address: IpAddr = text.parse().ok()?;
        return Some(Prefix { address, len: if address.is_ipv4() { 32 } else { 128 } });
    };
    let address: IpAddr = address.parse().ok()?;
    let whole = Prefix { address, len: 0 };
    if !len.is_empty() && len.bytes().all(|c| c.is_ascii_digit()) {
        let len = len.parse().ok().filter(|len| *len <= whole.max_len())?;
        return Some(Prefix { address, len });
    }
    let IpAddr::V4(mask) = len.parse().ok()? else { return None };
    let bits = mask.to_bits();
    let is_mask = bits.leading_ones() + bits.trailing_zeros() >= 32;
    // Python takes the inverse too, 0.0.0.255.
    let bits = if is_mask { bits } else { !bits };
    let len = bits.leading_ones();
    (address.is_ipv4() && len + bits.trailing_zeros() >= 32)
        .then_some(Prefix { address, len: len as u8 })
}

/// A number or a text, as a key or a reference to one.
pub(crate) fn name_of(scalar: &Scalar) -> Option<Name> {
    match scalar {
        Scalar::Text(text) => Some(Name::Text(text.clone())),
        scalar => scalar.int().and_then(|number| i64::try_from(number).ok()).map(Name::Number),
    }
}

/// As [`name_of`], of a node.
pub(crate) fn name(node: &Node) -> Option<Name> {
    node.scalar().and_then(name_of)
}

/// A number as Python's `int(text, 0)` reads it: decimal without zeros before it, or `0x`, `0o`,
/// `0b`.
pub(crate) fn number(scalar: &Scalar) -> Option<u128> {
    match scalar {
        Scalar::Int(number) => u128::try_from(*number).ok(),
        Scalar::Text(text) => {
            let text = text.trim();
            let lower = text.to_ascii_lowercase();
            let (radix, digits) = match lower.get(..2) {
                Some("0x") => (16, &lower[2..]),
                Some("0o") => (8, &lower[2..]),
                Some("0b") => (2, &lower[2..]),
                _ => (10, &*lower),
            };
            let is_zero = digits.bytes().all(|c| c == b'0' || c == b'_');
            if radix == 10 && digits.starts_with('0') && !is_zero || digits.starts_with(['_', '+'])
            {
                return None;
            }
            u128::from_str_radix(&digits.replace('_', ""), radix).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_forms_that_faucet_takes() {
        let right = MacAddr([0x0e, 0, 0, 0x0f, 2, 3]);
        for text in [
            "0e:00:00:0f:02:03",
            "E:0:0:F:2:3",
            "0e-00-00-0f-02-03",
            "0e00.000f.0203",
            "0e00:000f:0203",
            "e00-f-203",
            "0e0000-0f0203",
            "0e00000f0203",
        ] {
            assert_eq!(mac(text), Some(right), "{text}");
        }
        for text in ["", "0e:00:00:00:00", "11:22:33:44:55:66:77:88", "0g:00:00:00:00:01", "x"] {
            assert_eq!(mac(text), None, "{text}");
        }
    }

    #[test]
    fn prefixes_have_lengths_or_masks() {
        for (text, shown) in [
            ("10.0.0.1/24", "10.0.0.1/24"),
            ("10.0.0.1", "10.0.0.1/32"),
            ("10.0.0.0/255.255.0.0", "10.0.0.0/16"),
            ("10.0.0.0/0.0.0.255", "10.0.0.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("fc00::1:254/112", "fc00::1:254/112"),
        ] {
            assert_eq!(prefix(text).map(|it| it.to_string()).as_deref(), Some(shown), "{text}");
        }
        for text in
            ["", "/", "10.0.0.1/33", "10.0.0/24", "q0.0.0.0/24", "10/8", "::/129", "1.2.3.4/"]
        {
            assert_eq!(prefix(text), None, "{text}");
        }
        let net = prefix("10.0.0.1/24").unwrap();
        assert!(net.contains("10.0.0.200".parse().unwrap()));
        assert!(!net.contains("10.0.1.1".parse().unwrap()));
        assert!(!net.contains("::1".parse().unwrap()));
        assert!(prefix("::/0").unwrap().contains("::1".parse().unwrap()));
    }

    #[test]
    fn numbers_in_text_are_those_of_python() {
        let text = |text: &str| number(&Scalar::Text(text.into()));
        assert_eq!(text("0x800"), Some(0x800));
        assert_eq!(text("0o17"), Some(15));
        assert_eq!(text("1_000"), Some(1000));
        assert_eq!(text("00"), Some(0));
        for wrong in ["010", "", "x", "-1", "v7", "1.5"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
        assert_eq!(number(&Scalar::Bool(true)), None);
    }
}
