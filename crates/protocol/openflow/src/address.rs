//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// An Ethernet (MAC) address, 48 bits, first byte first.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// 00:00:00:00:00:00, never a valid source.
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// Returns whether the group bit is set: multicast or broadcast (IEEE 802 §8.2).
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns whether a station can own it: neither group nor zero.
    #[must_use]
    pub fn is_station(self) -> bool {
        !self.is_group() && self != MacAddr::ZERO
    }

    /// Returns whether bridges do not forward it: 01:80:c2:00:00:00 to :0f (IEEE 802.1Q §8.6.3),
    /// which includes LLDP and spanning tree.
    #[must_use]
    pub const fn is_link_local(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xc2, 0, 0, 0x00..=0x0f])
    }

    /// Returns the address in the low 48 bits of a number.
    #[must_use]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Makes an address from the low 48 bits of `n`. The upper 16 are ignored.
    #[must_use]
    pub const fn from_u64(n: u64) -> MacAddr {
        let [_, _, a, b, c, d, e, f] = n.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six two-digit hexadecimal numbers separated by colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an Ethernet address is written like 00:1b:21:3c:9d:f8")]
pub struct ParseMacError;

impl FromStr for MacAddr {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(ParseMacError)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| ParseMacError)?;
        }
        if parts.next().is_some() { Err(ParseMacError) } else { Ok(MacAddr(bytes)) }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for MacAddr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_round_trip() {
        let mac: MacAddr = "00:1b:21:3c:9d:f8".parse().unwrap();
        assert_eq!(mac.to_string(), "00:1b:21:3c:9d:f8");
        assert_eq!(MacAddr::from_u64(mac.to_u64()), mac);
        for bad in
            ["", "00:1b:21:3c:9d", "00:1b:21:3c:9d:f8:00", "0:1b:21:3c:9d:f8", "g0:1b:21:3c:9d:f8"]
        {
            assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
        }
    }

    #[test]
    fn link_local_addresses_are_the_sixteen_that_bridges_keep() {
        assert!(MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]).is_link_local());
        assert!(!MacAddr([1, 0x80, 0xc2, 0, 0, 0x10]).is_link_local());
        assert!(MacAddr::BROADCAST.is_group() && !MacAddr::ZERO.is_station());
    }
}
