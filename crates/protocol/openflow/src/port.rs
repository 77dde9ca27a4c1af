//! Ports: their numbers, their descriptions, and changes to them.

use std::fmt;
use std::str::FromStr;

use crate::flags::flags;
use crate::list::Element;
use crate::message::Body;
use crate::reader::Reader;
use crate::wire::{U16, U32, v10, v13};
use crate::wire_enum::wire_enum;
use crate::{DecodeError, EncodeError, Family, FixedStr, MacAddr, Out, Version};

/// A port number, in the numbering of 1.3 (1.3.5 §7.2.1). The 16-bit reserved numbers of 1.0 (1.0
/// §5.2.1) are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

impl Port {
    /// The maximum number of a physical or logical port, `OFPP_MAX`.
    pub const MAX: Port = Port(0xffff_ff00);
    /// The port that the packet came in by.
    pub const IN_PORT: Port = Port(0xffff_fff8);
    /// The flow tables; in packet_out only.
    pub const TABLE: Port = Port(0xffff_fff9);
    /// The switch's own forwarding, without OpenFlow.
    pub const NORMAL: Port = Port(0xffff_fffa);
    /// All ports of the spanning tree but the ingress port.
    pub const FLOOD: Port = Port(0xffff_fffb);
    /// All ports but the ingress port.
    pub const ALL: Port = Port(0xffff_fffc);
    /// The controller, as packet_in.
    pub const CONTROLLER: Port = Port(0xffff_fffd);
    /// The switch's own network stack.
    pub const LOCAL: Port = Port(0xffff_fffe);
    /// No particular port: "any" in requests and deletions, "none" as ingress port of a packet_out
    /// (`OFPP_NONE` in 1.0).
    pub const ANY: Port = Port(0xffff_ffff);

    /// The lowest reserved number of 1.0.
    const FIRST_RESERVED_V10: u16 = 0xfff8;

    /// Returns whether packets can come in by this port: a physical or logical port, or
    /// [`Port::LOCAL`].
    #[must_use]
    pub fn is_ingress(self) -> bool {
        (self.0 > 0 && self <= Port::MAX) || self == Port::LOCAL
    }

    #[inline]
    pub(crate) const fn from_v10(number: u16) -> Port {
        if number >= Self::FIRST_RESERVED_V10 {
            std::hint::cold_path();
            Port(0xffff_0000 | number as u32)
        } else {
            Port(number as u32)
        }
    }

    #[inline]
    pub(crate) fn to_v10(self) -> Result<u16, EncodeError> {
        if self.is_physical_v10() { Ok(self.0 as u16) } else { self.reserved_to_v10() }
    }

    /// Returns whether it has the same number in 1.0: not reserved, and small enough.
    #[inline(always)]
    pub(crate) const fn is_physical_v10(self) -> bool {
        self.0 < Self::FIRST_RESERVED_V10 as u32
    }

    #[cold]
    fn reserved_to_v10(self) -> Result<u16, EncodeError> {
        match self.0 {
            0xffff_fff8.. => Ok(self.0 as u16),
            _ => Err(EncodeError::Unsupported { what: "this port number", version: Version::V1_0 }),
        }
    }
}

/// The reserved ports, as they print and parse.
const PORT_NAMES: [(Port, &str); 8] = [
    (Port::IN_PORT, "IN_PORT"),
    (Port::TABLE, "TABLE"),
    (Port::NORMAL, "NORMAL"),
    (Port::FLOOD, "FLOOD"),
    (Port::ALL, "ALL"),
    (Port::CONTROLLER, "CONTROLLER"),
    (Port::LOCAL, "LOCAL"),
    (Port::ANY, "ANY"),
];

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PORT_NAMES.iter().find(|(port, _)| port == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A text that is not a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a port; give its number, such as 4, or LOCAL")]
pub struct ParsePortError(String);

/// Parses a number in decimal, or the name of a reserved port.
impl FromStr for Port {
    type Err = ParsePortError;

    fn from_str(text: &str) -> Result<Self, ParsePortError> {
        if let Some((port, _)) = PORT_NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(*port);
        }
        let number = Some(text).filter(|text| !text.starts_with('+'));
        let number = number.and_then(|text| text.parse().ok());
        number.map(Port).ok_or_else(|| ParsePortError(text.to_owned()))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Port {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            named if named >= Port::IN_PORT => serializer.collect_str(self),
            Port(number) => serializer.serialize_u32(number),
        }
    }
}

flags! {
    /// Configuration of a port (`ofp_port_config`). `NO_STP`, `NO_RECV_STP` and `NO_FLOOD` are only
    /// in 1.0.
    PortConfig: u32 {
        PORT_DOWN = 1 << 0;
        NO_STP = 1 << 1;
        NO_RECV = 1 << 2;
        NO_RECV_STP = 1 << 3;
        NO_FLOOD = 1 << 4;
        NO_FWD = 1 << 5;
        NO_PACKET_IN = 1 << 6;
    }
}

flags! {
    /// State of a port's link (`ofp_port_state`). `BLOCKED` and `LIVE` are only in 1.3, the
    /// spanning tree states only in 1.0 (two bits; `STP_LISTEN` is neither).
    PortState: u32 {
        LINK_DOWN = 1 << 0;
        BLOCKED = 1 << 1;
        LIVE = 1 << 2;
        STP_BLOCK = 3 << 8;
        STP_LEARN = 1 << 8;
        STP_FORWARD = 2 << 8;
    }
}

flags! {
    /// Rates, medium and negotiation of a port (`ofp_port_features`), in the bits of 1.3.
    PortFeatures: u32 {
        RATE_10MB_HD = 1 << 0;
        RATE_10MB_FD = 1 << 1;
        RATE_100MB_HD = 1 << 2;
        RATE_100MB_FD = 1 << 3;
        RATE_1GB_HD = 1 << 4;
        RATE_1GB_FD = 1 << 5;
        RATE_10GB_FD = 1 << 6;
        RATE_40GB_FD = 1 << 7;
        RATE_100GB_FD = 1 << 8;
        RATE_1TB_FD = 1 << 9;
        RATE_OTHER = 1 << 10;
        COPPER = 1 << 11;
        FIBER = 1 << 12;
        AUTONEG = 1 << 13;
        PAUSE = 1 << 14;
        PAUSE_ASYM = 1 << 15;
    }
}

impl PortFeatures {
    /// In 1.0 the bits from `COPPER` on are four places lower; it has no rates above 10 Gb/s. Its
    /// undefined bits (12 to 27) are kept, four places higher.
    fn from_v10(bits: u32) -> Self {
        PortFeatures::from_bits_retain(bits & 0x7f | bits << 4 & !0x7ff)
    }

    fn to_v10(self) -> Result<u32, EncodeError> {
        if self.bits() & 0x780 != 0 {
            let what = "a port rate above 10 Gb/s";
            return Err(EncodeError::Unsupported { what, version: Version::V1_0 });
        }
        Ok(self.bits() & 0x7f | self.bits() >> 4 & !0x7f)
    }
}

/// A port, described by its switch (`ofp_phy_port`, 1.0 §5.2.1; `ofp_port`, 1.3.5 §7.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PortDesc {
    /// Its number.
    pub port: Port,
    /// Its Ethernet address.
    pub address: MacAddr,
    /// Its name.
    pub name: FixedStr<16>,
    /// Its configuration.
    pub config: PortConfig,
    /// The state of its link.
    pub state: PortState,
    /// Current features.
    pub current: PortFeatures,
    /// Advertised features.
    pub advertised: PortFeatures,
    /// Supported features.
    pub supported: PortFeatures,
    /// Features that its peer advertises.
    pub peer: PortFeatures,
    /// Current rate in kb/s (0 in 1.0, which does not report it).
    pub current_speed: u32,
    /// Maximum rate in kb/s (0 in 1.0).
    pub max_speed: u32,
}

impl PortDesc {
    /// A port that is up, without features and rates.
    #[must_use]
    pub const fn new(port: Port, address: MacAddr, name: FixedStr<16>) -> Self {
        PortDesc {
            port,
            address,
            name,
            config: PortConfig::empty(),
            state: PortState::empty(),
            current: PortFeatures::empty(),
            advertised: PortFeatures::empty(),
            supported: PortFeatures::empty(),
            peer: PortFeatures::empty(),
            current_speed: 0,
            max_speed: 0,
        }
    }

    /// Returns the current rate of its link in kbit/s: as reported, or else the highest rate of its
    /// features. `None` if it reports neither.
    #[must_use]
    pub fn rate_kbps(&self) -> Option<u64> {
        const RATES: [(PortFeatures, u64); 10] = [
            (PortFeatures::RATE_1TB_FD, 1_000_000_000),
            (PortFeatures::RATE_100GB_FD, 100_000_000),
            (PortFeatures::RATE_40GB_FD, 40_000_000),
            (PortFeatures::RATE_10GB_FD, 10_000_000),
            (PortFeatures::RATE_1GB_FD, 1_000_000),
            (PortFeatures::RATE_1GB_HD, 1_000_000),
            (PortFeatures::RATE_100MB_FD, 100_000),
            (PortFeatures::RATE_100MB_HD, 100_000),
            (PortFeatures::RATE_10MB_FD, 10_000),
            (PortFeatures::RATE_10MB_HD, 10_000),
        ];
        if self.current_speed > 0 {
            return Some(self.current_speed.into());
        }
        RATES.iter().find(|(rate, _)| self.current.contains(*rate)).map(|(_, kbps)| *kbps)
    }

    /// Returns whether it carries packets: it is enabled and has a link.
    #[must_use]
    pub fn is_up(&self) -> bool {
        !self.config.contains(PortConfig::PORT_DOWN) && !self.state.contains(PortState::LINK_DOWN)
    }
}

impl<'a> Element<'a> for PortDesc {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match version.family() {
            Family::Fixed => {
                let wire: &v10::Port = reader.fixed("port")?;
                PortDesc {
                    port: Port::from_v10(wire.port_no.get()),
                    address: MacAddr(wire.hw_addr),
                    name: FixedStr(wire.name),
                    config: PortConfig::from_bits_retain(wire.config.get()),
                    state: PortState::from_bits_retain(wire.state.get()),
                    current: PortFeatures::from_v10(wire.curr.get()),
                    advertised: PortFeatures::from_v10(wire.advertised.get()),
                    supported: PortFeatures::from_v10(wire.supported.get()),
                    peer: PortFeatures::from_v10(wire.peer.get()),
                    current_speed: 0,
                    max_speed: 0,
                }
            }
            Family::Oxm => {
                let wire: &v13::Port = reader.fixed("port")?;
                PortDesc {
                    port: Port(wire.port_no.get()),
                    address: MacAddr(wire.hw_addr),
                    name: FixedStr(wire.name),
                    config: PortConfig::from_bits_retain(wire.config.get()),
                    state: PortState::from_bits_retain(wire.state.get()),
                    current: PortFeatures::from_bits_retain(wire.curr.get()),
                    advertised: PortFeatures::from_bits_retain(wire.advertised.get()),
                    supported: PortFeatures::from_bits_retain(wire.supported.get()),
                    peer: PortFeatures::from_bits_retain(wire.peer.get()),
                    current_speed: wire.curr_speed.get(),
                    max_speed: wire.max_speed.get(),
                }
            }
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match version.family() {
            Family::Fixed => out.put(&v10::Port {
                port_no: U16::new(self.port.to_v10()?),
                hw_addr: self.address.0,
                name: self.name.0,
                config: U32::new(self.config.bits()),
                state: U32::new(self.state.bits()),
                curr: U32::new(self.current.to_v10()?),
                advertised: U32::new(self.advertised.to_v10()?),
                supported: U32::new(self.supported.to_v10()?),
                peer: U32::new(self.peer.to_v10()?),
            }),
            Family::Oxm => out.put(&v13::Port {
                port_no: U32::new(self.port.0),
                hw_addr: self.address.0,
                name: self.name.0,
                config: U32::new(self.config.bits()),
                state: U32::new(self.state.bits()),
                curr: U32::new(self.current.bits()),
                advertised: U32::new(self.advertised.bits()),
                supported: U32::new(self.supported.bits()),
                peer: U32::new(self.peer.bits()),
                curr_speed: U32::new(self.current_speed),
                max_speed: U32::new(self.max_speed),
                ..Default::default()
            }),
        }
    }
}

wire_enum! {
    /// Change of a port (`ofp_port_reason`).
    PortReason: u8 {
        /// The port was added.
        Add = 0,
        /// The port was removed.
        Delete = 1,
        /// A property of the port changed.
        Modify = 2,
    }
}

/// A port was added, removed or changed (1.0 §5.4.3; 1.3.5 §7.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PortStatus {
    /// The change.
    pub reason: PortReason,
    /// The current description, or the last one of a removed port.
    pub desc: PortDesc,
}

impl<'a> Body<'a> for PortStatus {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &v10::PortStatus = reader.fixed("port_status")?;
        let desc = PortDesc::decode(version, reader)?;
        Ok(PortStatus { reason: PortReason::from_wire(wire.reason), desc })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v10::PortStatus { reason: self.reason.wire(), ..Default::default() })?;
        self.desc.encode(version, out)
    }
}

/// Changes the configuration of a port (1.0 §5.3.3; 1.3.5 §7.3.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PortMod {
    /// The port.
    pub port: Port,
    /// Its address, as a check: if the port has another, the switch refuses the change.
    pub address: MacAddr,
    /// The new values.
    pub config: PortConfig,
    /// The bits to change.
    pub mask: PortConfig,
    /// Features to advertise; empty for no change.
    pub advertise: PortFeatures,
}

impl<'a> Body<'a> for PortMod {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match version.family() {
            Family::Fixed => {
                let wire: &v10::PortMod = reader.fixed("port_mod")?;
                PortMod {
                    port: Port::from_v10(wire.port_no.get()),
                    address: MacAddr(wire.hw_addr),
                    config: PortConfig::from_bits_retain(wire.config.get()),
                    mask: PortConfig::from_bits_retain(wire.mask.get()),
                    advertise: PortFeatures::from_v10(wire.advertise.get()),
                }
            }
            Family::Oxm => {
                let wire: &v13::PortMod = reader.fixed("port_mod")?;
                PortMod {
                    port: Port(wire.port_no.get()),
                    address: MacAddr(wire.hw_addr),
                    config: PortConfig::from_bits_retain(wire.config.get()),
                    mask: PortConfig::from_bits_retain(wire.mask.get()),
                    advertise: PortFeatures::from_bits_retain(wire.advertise.get()),
                }
            }
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match version.family() {
            Family::Fixed => out.put(&v10::PortMod {
                port_no: U16::new(self.port.to_v10()?),
                hw_addr: self.address.0,
                config: U32::new(self.config.bits()),
                mask: U32::new(self.mask.bits()),
                advertise: U32::new(self.advertise.to_v10()?),
                ..Default::default()
            }),
            Family::Oxm => out.put(&v13::PortMod {
                port_no: U32::new(self.port.0),
                hw_addr: self.address.0,
                config: U32::new(self.config.bits()),
                mask: U32::new(self.mask.bits()),
                advertise: U32::new(self.advertise.bits()),
                ..Default::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_numbers_mean_the_same_in_both_versions() {
        for (v10, port) in [
            (0xfff8, Port::IN_PORT),
            (0xfffb, Port::FLOOD),
            (0xfffd, Port::CONTROLLER),
            (0xfffe, Port::LOCAL),
            (0xffff, Port::ANY),
            (0xff00, Port(0xff00)),
            (1, Port(1)),
        ] {
            assert_eq!(Port::from_v10(v10), port);
            assert_eq!(port.to_v10(), Ok(v10));
        }
        assert!(Port(0x1_0000).to_v10().is_err() && Port::MAX.to_v10().is_err());
    }

    #[test]
    fn features_of_1_0_keep_their_meaning() {
        let copper_auto = PortFeatures::from_v10(1 << 7 | 1 << 9 | 1 << 6);
        assert_eq!(
            copper_auto,
            PortFeatures::COPPER | PortFeatures::AUTONEG | PortFeatures::RATE_10GB_FD
        );
        assert_eq!(copper_auto.to_v10(), Ok(1 << 7 | 1 << 9 | 1 << 6));
        assert!(PortFeatures::RATE_40GB_FD.to_v10().is_err());
    }

    #[test]
    fn the_rate_of_a_link_is_what_its_port_says_or_the_highest_that_it_names() {
        let rate = |current_speed, current| {
            let port = PortDesc {
                current,
                current_speed,
                ..PortDesc::new(Port(1), MacAddr::ZERO, FixedStr([0; 16]))
            };
            port.rate_kbps()
        };
        assert_eq!(rate(2_500_000, PortFeatures::RATE_10GB_FD), Some(2_500_000));
        let named = PortFeatures::RATE_100MB_HD | PortFeatures::RATE_1GB_FD | PortFeatures::COPPER;
        assert_eq!(rate(0, named), Some(1_000_000));
        assert_eq!(rate(0, PortFeatures::COPPER), None);
    }

    #[test]
    fn ports_parse_as_they_print() {
        for port in [Port(0), Port(4), Port::MAX, Port::LOCAL, Port::IN_PORT, Port::ANY] {
            assert_eq!(port.to_string().parse(), Ok(port));
        }
        for text in ["", "+4", "-1", "local", "4294967296"] {
            assert!(text.parse::<Port>().is_err(), "{text}");
        }
    }
}
