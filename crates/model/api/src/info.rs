//! Data about switches and hosts.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bellrock_openflow::{Action, Capabilities, FlowStats, MacAddr, Match, Port, PortDesc, Version};

use crate::{ControllerRole, SwitchIdentity};

/// A datapath id: the 64-bit identifier of a switch. Prints as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Dpid(pub u64);

impl fmt::Display for Dpid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A text that is not a datapath id.
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

/// A switch's own description (`OFPMP_DESC`). Fields that it leaves out, or sets to `None` as Open
/// vSwitch does, are empty.
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
    /// Name that its operator gave it.
    pub datapath: Box<str>,
}

/// Number of types of actions that have a bit in [`SwitchInfo::action_types`].
const ACTION_TYPES: u16 = 32;

/// A connected switch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwitchInfo {
    /// Its datapath id.
    pub dpid: Dpid,
    /// OpenFlow version of the connection.
    pub version: Version,
    /// Remote address of the connection.
    pub peer: SocketAddr,
    /// What it has proved by TLS. `None`: the connection is plain.
    pub identity: Option<Arc<SwitchIdentity>>,
    /// Maximum number of packets that it can buffer.
    pub n_buffers: u32,
    /// Number of flow tables.
    pub n_tables: u8,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Types of actions that it has, one bit for each number, as switches of 1.0 report them. Zero
    /// if it reports none.
    pub action_types: u32,
    /// Its own description.
    pub description: Description,
    /// This controller's role at the switch, as the switch reported it last. `Equal` if it has
    /// reported none.
    pub role: ControllerRole,
    /// Its ports, updated by port_status messages.
    pub ports: Vec<PortDesc>,
    /// Time when it came up, or began to stand by, on the worker's clock.
    pub since: Duration,
}

impl SwitchInfo {
    /// A switch without ports, tables and texts, up since the start of the clock.
    #[must_use]
    pub fn new(dpid: Dpid, version: Version, peer: SocketAddr) -> Self {
        SwitchInfo {
            dpid,
            version,
            peer,
            identity: None,
            n_buffers: 0,
            n_tables: 0,
            capabilities: Capabilities::empty(),
            action_types: 0,
            description: Description::default(),
            role: ControllerRole::default(),
            ports: Vec::new(),
            since: Duration::ZERO,
        }
    }

    /// Returns whether flows of the switch can have this action: its version expresses it, and the
    /// switch has it, if it reports its actions (1.0). A switch of 1.3 may still refuse one.
    ///
    /// ```
    /// use bellrock_api::{Action, Dpid, SwitchInfo, Version};
    ///
    /// let info = |version| SwitchInfo::new(Dpid(1), version, ([127, 0, 0, 1], 6633).into());
    /// assert!(info(Version::V1_3).supports(&Action::dec_ttl()));
    /// assert!(!info(Version::V1_0).supports(&Action::dec_ttl()));
    /// ```
    #[must_use]
    pub fn supports(&self, action: &Action<'_>) -> bool {
        match self.version.action_number(action) {
            None => false,
            // Numbers without a bit are those of experimenters.
            Some(number @ 0..ACTION_TYPES) if self.action_types != 0 => {
                self.action_types >> number & 1 != 0
            }
            Some(_) => true,
        }
    }

    /// Returns whether flows of the switch can have this match: its version has all its fields. A
    /// switch of 1.3 may still refuse some.
    #[must_use]
    pub fn can_match(&self, matching: &Match) -> bool {
        matching.fields().all(|field| self.version.can_match(field))
    }

    /// Finds a port by its number.
    #[must_use]
    pub fn port(&self, port: Port) -> Option<&PortDesc> {
        self.ports.iter().find(|desc| desc.port == port)
    }
}

/// A host at a port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its VLAN, if its packets have a tag.
    pub vlan: Option<u16>,
    /// The port of the host.
    pub port: Port,
    /// Time since it was last seen, in whole seconds.
    pub age: Duration,
    /// Whether it was seen at different ports in quick succession: likely a loop.
    pub flapping: bool,
}

/// The cookies of an app. The upper 32 bits are derived from its name, so they are the same after a
/// restart. The lower 32 bits are free for the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie(u64);

impl Cookie {
    /// Mask of the bits that identify the app.
    pub const MASK: u64 = 0xffff_ffff_0000_0000;

    /// Cookies of the controller's own flows: the table-miss entry.
    pub const CONTROLLER: Cookie = Cookie::of_app("bellrock");

    /// Cookies of the app with this name. Never zero, which other controllers use.
    #[must_use]
    pub const fn of_app(name: &str) -> Self {
        // FNV-1a, 64 bit: short, and stable across releases.
        let bytes = name.as_bytes();
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        Cookie((hash | 1 << 32) & Self::MASK)
    }

    /// The cookie with this number in its lower half.
    #[must_use]
    pub const fn with(self, number: u64) -> u64 {
        self.0 | (number & !Self::MASK)
    }

    /// Whether a reported flow belongs to this app: its cookie does, and its match and instructions
    /// are such as an app can install. Other programs may install flows with any cookie.
    #[must_use]
    pub fn owns_flow(self, flow: &FlowStats<'_>) -> bool {
        self.owns(flow.cookie) && flow.is_well_formed()
    }

    /// Cookies of the controller's flows that bring this app the packets that it sees
    /// ([`App::sees`](crate::App::sees)). They are not the app's own, so it cannot remove them.
    #[must_use]
    pub const fn of_sight(self) -> Self {
        Cookie(self.0 ^ 1 << 63)
    }

    /// Whether a flow's cookie belongs to this app.
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
    fn a_switch_supports_what_its_version_has_and_what_it_reports() {
        let mut info = SwitchInfo::new(Dpid(1), Version::V1_0, ([127, 0, 0, 1], 6633).into());
        let (output, strip) = (Action::output(Port(1)), Action::untag());
        assert!(info.supports(&output) && info.supports(&strip));
        info.action_types = 1;
        assert!(info.supports(&output) && !info.supports(&strip));
        assert!(!info.supports(&Action::group(1)));
        let vendor = Action::Experimenter { experimenter: 0x2320, data: Default::default() };
        assert!(info.supports(&vendor));
        let (old, new) =
            (Match::any().vlan_id(7), Match::any().with(bellrock_openflow::Field::Metadata, 7));
        assert!(info.can_match(&old) && !info.can_match(&new));
        // A switch of 1.3 lists no actions when it connects.
        (info.version, info.action_types) = (Version::V1_3, 0);
        assert!(info.can_match(&new) && info.supports(&Action::group(1)));
    }

    #[test]
    fn the_cookies_of_two_apps_differ_and_stay_the_same() {
        let (learning, hub) = (Cookie::of_app("learning"), Cookie::of_app("hub"));
        assert!(learning.owns(learning.with(7)) && !hub.owns(learning.with(7)));
        assert_eq!(learning.with(u64::MAX) & !Cookie::MASK, 0xffff_ffff);
        // Flows in switches carry this value: a new one would orphan them.
        assert_eq!(learning.with(0), Cookie::of_app("learning").with(0));
        assert!(!learning.owns(0));
        let sight = learning.of_sight();
        assert!(sight.owns(sight.with(1)) && !sight.owns(learning.with(1)));
        assert!(!learning.owns(sight.with(1)) && !hub.of_sight().owns(sight.with(1)));
    }
}
