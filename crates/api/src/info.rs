//! What is known of a switch: plain data.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use bellrock_openflow::{Capabilities, FlowStats, MacAddr, Port, PortDesc, Version};

/// A datapath id: the 64-bit name of a switch. Prints as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dpid(pub u64);

impl fmt::Display for Dpid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The text is not a datapath id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datapath id is 1 to 16 hexadecimal digits, like 00000000000000a1 or 0xa1")]
pub struct ParseDpidError;

impl FromStr for Dpid {
    type Err = ParseDpidError;

    fn from_str(text: &str) -> Result<Self, ParseDpidError> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if digits.starts_with('+') {
            return Err(ParseDpidError);
        }
        u64::from_str_radix(digits, 16).map(Dpid).map_err(|_| ParseDpidError)
    }
}

/// What a switch says of itself, in its maker's words (`OFPMP_DESC`). Empty where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Its maker.
    pub manufacturer: Box<str>,
    /// Its hardware.
    pub hardware: Box<str>,
    /// Its software.
    pub software: Box<str>,
    /// Its serial number.
    pub serial_number: Box<str>,
    /// What its operator calls it.
    pub datapath: Box<str>,
}

/// A connected switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// Its datapath id.
    pub dpid: Dpid,
    /// The version that it speaks with us.
    pub version: Version,
    /// Where it connected from.
    pub peer: SocketAddr,
    /// Packets that it can buffer.
    pub n_buffers: u32,
    /// Flow tables.
    pub n_tables: u8,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What it says of itself.
    pub description: Description,
    /// Its ports, kept up to date by port_status.
    pub ports: Vec<PortDesc>,
    /// When it came up, on the worker's clock.
    pub since: Duration,
}

impl SwitchInfo {
    /// A port by its number.
    #[must_use]
    pub fn port(&self, port: Port) -> Option<&PortDesc> {
        self.ports.iter().find(|desc| desc.port == port)
    }
}

/// Where a host was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its VLAN, if its packets have a tag.
    pub vlan: Option<u16>,
    /// The port that it is behind.
    pub port: Port,
    /// How long ago it was last seen, to the second.
    pub age: Duration,
    /// Whether it was seen at different ports in quick turn: there is likely a loop.
    pub flapping: bool,
}

/// The cookies of an app: the upper 32 bits are its own, derived from its name and so the same
/// after a restart; the lower 32 bits are the app's to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie(u64);

impl Cookie {
    /// The bits of a cookie that tell the app.
    pub const MASK: u64 = 0xffff_ffff_0000_0000;

    /// The cookies of the flows that are no app's but the controller's own: the table-miss entry.
    pub const CONTROLLER: Cookie = Cookie::of_app("bellrock");

    /// The cookies of the app with this name. Never zero, which is what other controllers leave.
    #[must_use]
    pub const fn of_app(name: &str) -> Self {
        // FNV-1a, 64 bit: short, and the same for ever.
        let bytes = name.as_bytes();
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        Cookie((hash | 1 << 32) & Self::MASK)
    }

    /// The cookie with the app's own number in its lower half.
    #[must_use]
    pub const fn with(self, number: u64) -> u64 {
        self.0 | (number & !Self::MASK)
    }

    /// Whether a flow that a switch reports is one of this app's: its cookie is, and its match and
    /// instructions are such as an app can give. Others put flows into a switch too, with whatever cookie.
    #[must_use]
    pub fn owns_flow(self, flow: &FlowStats<'_>) -> bool {
        self.owns(flow.cookie) && flow.is_well_formed()
    }

    /// Whether a flow's cookie is one of this app's.
    #[must_use]
    pub const fn owns(self, cookie: u64) -> bool {
        cookie & Self::MASK == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datapath_ids_read_and_print() {
        assert_eq!("0xa1".parse(), Ok(Dpid(0xa1)));
        assert_eq!("00000000000000a1".parse(), Ok(Dpid(0xa1)));
        assert_eq!(Dpid(0xa1).to_string(), "00000000000000a1");
        for bad in ["", "0x", "+1", "1ffffffffffffffff", "s1"] {
            assert_eq!(bad.parse::<Dpid>(), Err(ParseDpidError), "{bad}");
        }
    }

    #[test]
    fn the_cookies_of_two_apps_differ_and_stay_the_same() {
        let (learning, hub) = (Cookie::of_app("learning"), Cookie::of_app("hub"));
        assert!(learning.owns(learning.with(7)) && !hub.owns(learning.with(7)));
        assert_eq!(learning.with(u64::MAX) & !Cookie::MASK, 0xffff_ffff);
        // Flows in switches carry it: a new value would orphan them.
        assert_eq!(learning.with(0), Cookie::of_app("learning").with(0));
        assert!(!learning.owns(0));
    }
}
