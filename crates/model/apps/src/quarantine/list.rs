//! Blocked hosts, and their text form.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use bellrock_api::packet::eth_type;
use bellrock_api::{Field, MacAddr, Match, Version};

/// Maximum number of entries of a block list. Each takes two to four flows in every switch.
pub const MAX_BLOCKED: usize = 10_000;

/// Maximum number of bad lines reported for a text.
pub const MAX_BAD_LINES_REPORTED: usize = 20;

/// A host, or the hosts of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blocked {
    /// The host with this Ethernet address.
    Mac(MacAddr),
    /// The hosts whose IPv4 address begins with these bits. The other bits are zero.
    Ipv4(Ipv4Addr, u8),
    /// The hosts whose IPv6 address begins with these bits. The other bits are zero.
    Ipv6(Ipv6Addr, u8),
}

/// Reason why a text cannot be blocked, and a correct form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBlockable {
    /// It is not an address.
    #[error(
        "{0:?} is not an address; give an Ethernet or IP address or an IP prefix, such as \
         00:1b:21:3c:9d:f8, 10.0.0.7, 10.1.0.0/16 or 2001:db8::/32"
    )]
    NoAddress(String),
    /// It is an Ethernet address that no host has.
    #[error("{0} is a group address or zero; give the address that a host sends from")]
    NoStation(MacAddr),
    /// It is an IP address that no host sends from.
    #[error(
        "{0} is a multicast, broadcast, loopback or unspecified address; give the address of a host"
    )]
    NoHost(IpAddr),
    /// The prefix length is invalid for the kind of address, or would block all hosts.
    #[error(
        "/{length} is not a valid prefix length; give a number from 1 to {maximum}, such as {address}/{maximum}"
    )]
    Length {
        /// The address before it.
        address: String,
        /// The length as written.
        length: String,
        /// Bits of such an address.
        maximum: u8,
    },
    /// There are bits set behind the prefix, so the meaning is unclear.
    #[error(
        "{address}/{length} has bits behind the prefix; give {prefix}/{length}, or {address} for that host alone"
    )]
    BitsBehind {
        /// The address as written.
        address: String,
        /// Bits of the prefix.
        length: u8,
        /// The same address with the bits behind the prefix cleared.
        prefix: String,
    },
}

impl FromStr for Blocked {
    type Err = NotBlockable;

    fn from_str(text: &str) -> Result<Self, NotBlockable> {
        if let Ok(mac) = text.parse::<MacAddr>() {
            return if mac.is_station() {
                Ok(Blocked::Mac(mac))
            } else {
                Err(NotBlockable::NoStation(mac))
            };
        }
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        if let Ok(ip) = address.parse::<Ipv4Addr>() {
            let (bits, length) = prefix(u128::from(ip.to_bits()), 32, address, length, |bits| {
                // It was built from 32 bits.
                Ipv4Addr::from_bits(bits as u32).to_string()
            })?;
            let ip = Ipv4Addr::from_bits(bits as u32);
            return host(ip.into(), length == 32).map(|()| Blocked::Ipv4(ip, length));
        }
        if let Ok(ip) = address.parse::<Ipv6Addr>() {
            let show = |bits| Ipv6Addr::from_bits(bits).to_string();
            let (bits, length) = prefix(ip.to_bits(), 128, address, length, show)?;
            let ip = Ipv6Addr::from_bits(bits);
            return host(ip.into(), length == 128).map(|()| Blocked::Ipv6(ip, length));
        }
        Err(NotBlockable::NoAddress(text.to_owned()))
    }
}

/// Checks that hosts can have such an address. The first address of a prefix stands for all.
///
/// All hosts send from the unspecified address, in DHCP requests and ARP probes. It is refused
/// alone; a prefix may begin with it.
fn host(ip: IpAddr, is_single: bool) -> Result<(), NotBlockable> {
    let is_excluded = ip.is_multicast()
        || ip.is_loopback()
        || ip == Ipv4Addr::BROADCAST
        || is_single && ip.is_unspecified();
    if is_excluded { Err(NotBlockable::NoHost(ip)) } else { Ok(()) }
}

/// Returns the bits of a prefix and their number, for an address of `maximum` bits.
fn prefix(
    bits: u128,
    maximum: u8,
    address: &str,
    length: Option<&str>,
    show: impl Fn(u128) -> String,
) -> Result<(u128, u8), NotBlockable> {
    let Some(text) = length else { return Ok((bits, maximum)) };
    let length = text.parse().ok().filter(|length| (1..=maximum).contains(length));
    let length = length.ok_or_else(|| {
        let (address, length) = (address.to_owned(), text.to_owned());
        NotBlockable::Length { address, length, maximum }
    })?;
    let shift = maximum - length;
    let cut = bits >> shift << shift;
    if cut != bits {
        let (address, prefix) = (address.to_owned(), show(cut));
        return Err(NotBlockable::BitsBehind { address, length, prefix });
    }
    Ok((bits, length))
}

/// The text parses to the same value. A prefix of full length is shown as an address.
impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocked::Mac(mac) => mac.fmt(f),
            Blocked::Ipv4(ip, 32) => ip.fmt(f),
            Blocked::Ipv4(ip, length) => write!(f, "{ip}/{length}"),
            Blocked::Ipv6(ip, 128) => ip.fmt(f),
            Blocked::Ipv6(ip, length) => write!(f, "{ip}/{length}"),
        }
    }
}

impl Blocked {
    /// Returns whether switches of this version can drop it. 1.0 does not support IPv6 (§5.2.3).
    #[must_use]
    pub fn is_known_to(self, version: Version) -> bool {
        version.can_match(Field::Ipv6Src) || !matches!(self, Blocked::Ipv6(..))
    }

    /// Matches of the dropped packets, from and to the host. For an IPv4 address also ARP:
    /// otherwise the host would still answer requests.
    pub(super) fn matches(self) -> Vec<Match> {
        let any = Match::any();
        match self {
            Blocked::Mac(mac) => vec![any.clone().eth_src(mac), any.eth_dst(mac)],
            Blocked::Ipv4(ip, length) => {
                let (ip, mask) = (u128::from(ip.to_bits()), mask(32, length));
                let matching =
                    |eth_type, field| Match::any().eth_type(eth_type).with_masked(field, ip, mask);
                vec![
                    matching(eth_type::IPV4, Field::Ipv4Src),
                    matching(eth_type::IPV4, Field::Ipv4Dst),
                    matching(eth_type::ARP, Field::ArpSpa),
                    matching(eth_type::ARP, Field::ArpTpa),
                ]
            }
            Blocked::Ipv6(ip, length) => {
                let (ip, mask) = (ip.to_bits(), mask(128, length));
                [Field::Ipv6Src, Field::Ipv6Dst]
                    .map(|field| Match::any().eth_type(eth_type::IPV6).with_masked(field, ip, mask))
                    .into()
            }
        }
    }
}

/// Mask of the first `length` of `bits` bits; `length` is at least 1.
fn mask(bits: u8, length: u8) -> u128 {
    let shift = bits - length;
    u128::MAX >> (128 - bits) >> shift << shift
}

/// The entries of one text, each with its first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList(BTreeMap<Blocked, usize>);

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// The problem, and a correct form.
    pub problem: String,
}

impl BlockList {
    /// Reads a list, one address or prefix a line. A `#` starts a comment; empty lines are skipped.
    ///
    /// # Errors
    /// All bad lines in order, at most [`MAX_BAD_LINES_REPORTED`]. One bad line makes the whole
    /// list invalid: a typo must not silently unblock other hosts.
    pub fn parse(text: &str) -> Result<Self, Vec<BadLine>> {
        let (mut list, mut bad) = (BTreeMap::new(), Vec::new());
        for (line, text) in text.lines().enumerate().map(|(index, text)| (index + 1, text)) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            match text.parse::<Blocked>() {
                Ok(_) if list.len() >= MAX_BLOCKED => {
                    let problem = format!("a list has at most {MAX_BLOCKED} entries; use prefixes");
                    bad.push(BadLine { line, problem });
                }
                Ok(blocked) => {
                    list.entry(blocked).or_insert(line);
                }
                Err(problem) => bad.push(BadLine { line, problem: problem.to_string() }),
            }
            if bad.len() >= MAX_BAD_LINES_REPORTED {
                break;
            }
        }
        if bad.is_empty() { Ok(BlockList(list)) } else { Err(bad) }
    }

    /// The line of an entry.
    #[must_use]
    pub fn line(&self, blocked: &Blocked) -> Option<usize> {
        self.0.get(blocked).copied()
    }

    /// The entries, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Blocked> {
        self.0.keys()
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        text.parse::<Blocked>().unwrap_err().to_string()
    }

    #[test]
    fn a_parsed_address_prints_as_it_was() {
        for text in ["00:1b:21:3c:9d:f8", "10.0.0.7", "10.1.0.0/16", "2001:db8::1", "2001:db8::/32"]
        {
            assert_eq!(text.parse::<Blocked>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.7/32".parse::<Blocked>().unwrap().to_string(), "10.0.0.7");
    }

    #[test]
    fn a_wrong_address_is_an_error_with_the_right_form() {
        assert!(
            problem("printer-3").starts_with("\"printer-3\" is not an address; give an Ethernet")
        );
        assert!(problem("10.0.0.300").contains("is not an address"));
        assert!(problem("ff:ff:ff:ff:ff:ff").contains("is a group address"));
        for nobody in [
            "224.0.0.1",
            "224.0.0.0/4",
            "127.0.0.1",
            "255.255.255.255",
            "0.0.0.0",
            "::",
            "::1",
            "ff02::1",
        ] {
            assert!(problem(nobody).contains("is a multicast, broadcast, loopback or"), "{nobody}");
        }
        assert!(problem("0.0.0.0/0").starts_with("/0 is not a valid prefix length; give"));
        assert_eq!(
            problem("10.1.2.3/16"),
            "10.1.2.3/16 has bits behind the prefix; give 10.1.0.0/16, or 10.1.2.3 for that host alone"
        );
        assert_eq!(
            problem("2001:db8::1/32"),
            "2001:db8::1/32 has bits behind the prefix; give 2001:db8::/32, or 2001:db8::1 for that host alone"
        );
        for (text, most) in [("10.0.0.0/33", 32), ("0.0.0.0/0", 32), ("::/0", 128), ("::1/x", 128)]
        {
            assert!(problem(text).contains(&format!("from 1 to {most}")), "{text}");
        }
    }

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        let list = BlockList::parse("# guests\n10.1.0.0/16\n\n  00:00:00:00:00:01  # printer\r\n");
        let list = list.unwrap();
        assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>().len(), 2);
        assert_eq!(list.line(&"00:00:00:00:00:01".parse().unwrap()), Some(4));
        let bad = BlockList::parse("10.1.0.0/16\nnobody\n10.0.0.1\n00:00:00:00:00:00\n");
        let lines: Vec<usize> = bad.unwrap_err().iter().map(|bad| bad.line).collect();
        assert_eq!(lines, [2, 4]);
        let many: String = (0..=MAX_BLOCKED as u32)
            .map(|n| format!("{}\n", Ipv4Addr::from_bits(0x0a00_0000 + n)))
            .collect();
        assert_eq!(BlockList::parse(&many).unwrap_err()[0].line, MAX_BLOCKED + 1);
        let nonsense = "x\n".repeat(1000);
        assert_eq!(BlockList::parse(&nonsense).unwrap_err().len(), MAX_BAD_LINES_REPORTED);
    }

    #[test]
    fn masks_keep_the_first_bits() {
        assert_eq!(mask(32, 16), 0xffff_0000);
        assert_eq!(mask(32, 32), 0xffff_ffff);
        assert_eq!(mask(128, 128), u128::MAX);
        assert_eq!(mask(128, 1), 1 << 127);
    }
}
