//! The match fields: the 40 basic ones of OpenFlow 1.3 (1.3.5 §7.2.3.7, tables 11 and 12), and some
//! of vendors.
//!
//! A field is a row. Basic fields come first, and have places in a [`crate::Match`]. The others are
//! few in a match, so it has a list of them: a row of a vendor costs nothing where it is not used.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::prerequisite::{self as needs, Need};
use crate::{MacAddr, Port};

/// How the values of a field print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Decimal,
    Hex,
    Port,
    Mac,
    Ipv4,
    Ipv6,
}

/// One row per field: variant, OXM class ([`Class`]) and number, the first minor version that has
/// it, bytes, bits, whether it allows a mask, format, the fields that it depends on, name.
macro_rules! fields {
    ($($variant:ident $class:ident $number:literal $since:literal $bytes:literal $bits:literal
       $mask:literal $style:ident $needs:ident $name:literal $doc:literal;)*) => {
        /// A match field. As a number, its place in [`Field::ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Field { $(#[doc = $doc] $variant,)* }

        struct Row {
            class: Class,
            number: u8,
            header: u32,
            since: u8,
            bytes: u8,
            bits: u8,
            maskable: bool,
            style: Style,
            needs: &'static [Need],
            name: &'static str,
            set_name: &'static str,
        }

        const TABLE: &[Row] = &[$(
            Row {
                class: $class,
                number: $number,
                header: $class.header($number, $bytes),
                since: $since,
                bytes: $bytes,
                bits: $bits,
                maskable: $mask,
                style: Style::$style,
                needs: needs::$needs,
                name: $name,
                set_name: concat!("set_", $name),
            },
        )*];

        impl Field {
            /// All fields, in the order in which they are written.
            pub const ALL: &'static [Field] = &[$(Field::$variant,)*];
        }
    };
}

/// A class of fields (1.3.5 §7.2.3.3).
#[derive(Clone, Copy)]
struct Class {
    number: u16,
    /// The experimenter's number, if the class is `OFPXMC_EXPERIMENTER`.
    experimenter: Option<u32>,
}

impl Class {
    /// The first 32 bits of the header of a field without a mask (1.3.5 §7.2.3.2): class, number
    /// and length.
    const fn header(self, number: u8, bytes: u8) -> u32 {
        let head = if self.experimenter.is_some() { EXPERIMENTER_LEN } else { 0 };
        (self.number as u32) << 16 | (number as u32) << 9 | (head as u32 + bytes as u32)
    }
}

/// Length of the number of an experimenter, in bytes. The length in the header counts it.
pub(crate) const EXPERIMENTER_LEN: usize = 4;

/// `OFPXMC_EXPERIMENTER`. The number of the experimenter follows the header, which so has 64 bits.
pub(crate) const EXPERIMENTER_CLASS: u16 = 0xffff;

/// `OFPXMC_OPENFLOW_BASIC`.
const BASIC: Class = Class { number: 0x8000, experimenter: None };
/// `OFPXMC_NXM_1`: fields that Nicira has added (Open vSwitch's `meta-flow.h`). `OFPXMC_NXM_0` has
/// those of OpenFlow 1.0 again, which have basic fields.
const NXM_1: Class = Class { number: 0x0001, experimenter: None };
/// Fields of later versions, for 1.3 (ONF extensions).
const ONF: Class = Class { number: EXPERIMENTER_CLASS, experimenter: Some(crate::ONF) };

/// Number of OXM numbers in a class.
const NUMBERS: usize = 1 << 7;

fields! {
    InPort BASIC 0 0 4 32 false Port NOTHING "in_port" "Ingress port.";
    InPhyPort BASIC 1 2 4 32 false Port PORT "in_phy_port" "Physical port; needs `in_port`.";
    Metadata BASIC 2 2 8 64 true Hex NOTHING "metadata" "Metadata passed between tables.";
    EthDst BASIC 3 0 6 48 true Mac NOTHING "eth_dst" "Ethernet destination.";
    EthSrc BASIC 4 0 6 48 true Mac NOTHING "eth_src" "Ethernet source.";
    EthType BASIC 5 0 2 16 false Hex NOTHING "eth_type" "Ethernet type, after VLAN tags.";
    VlanVid BASIC 6 0 2 13 true Hex NOTHING "vlan_vid" "VLAN id with bit 12 set for \"tagged\"; 0 for untagged.";
    VlanPcp BASIC 7 0 1 3 false Decimal TAG "vlan_pcp" "VLAN priority; needs a tag.";
    IpDscp BASIC 8 0 1 6 false Decimal IP "ip_dscp" "DSCP, 6 bits.";
    IpEcn BASIC 9 2 1 2 false Decimal IP "ip_ecn" "ECN, 2 bits.";
    IpProto BASIC 10 0 1 8 false Decimal IP "ip_proto" "IP protocol.";
    Ipv4Src BASIC 11 0 4 32 true Ipv4 IPV4 "ipv4_src" "IPv4 source.";
    Ipv4Dst BASIC 12 0 4 32 true Ipv4 IPV4 "ipv4_dst" "IPv4 destination.";
    TcpSrc BASIC 13 0 2 16 false Decimal TCP "tcp_src" "TCP source port.";
    TcpDst BASIC 14 0 2 16 false Decimal TCP "tcp_dst" "TCP destination port.";
    UdpSrc BASIC 15 0 2 16 false Decimal UDP "udp_src" "UDP source port.";
    UdpDst BASIC 16 0 2 16 false Decimal UDP "udp_dst" "UDP destination port.";
    SctpSrc BASIC 17 2 2 16 false Decimal SCTP "sctp_src" "SCTP source port.";
    SctpDst BASIC 18 2 2 16 false Decimal SCTP "sctp_dst" "SCTP destination port.";
    Icmpv4Type BASIC 19 0 1 8 false Decimal ICMPV4 "icmpv4_type" "ICMP type.";
    Icmpv4Code BASIC 20 0 1 8 false Decimal ICMPV4 "icmpv4_code" "ICMP code.";
    ArpOp BASIC 21 0 2 16 false Decimal ARP "arp_op" "ARP operation.";
    ArpSpa BASIC 22 0 4 32 true Ipv4 ARP "arp_spa" "ARP sender's IPv4 address.";
    ArpTpa BASIC 23 0 4 32 true Ipv4 ARP "arp_tpa" "ARP target's IPv4 address.";
    ArpSha BASIC 24 2 6 48 true Mac ARP "arp_sha" "ARP sender's Ethernet address.";
    ArpTha BASIC 25 2 6 48 true Mac ARP "arp_tha" "ARP target's Ethernet address.";
    Ipv6Src BASIC 26 2 16 128 true Ipv6 IPV6 "ipv6_src" "IPv6 source.";
    Ipv6Dst BASIC 27 2 16 128 true Ipv6 IPV6 "ipv6_dst" "IPv6 destination.";
    Ipv6Flabel BASIC 28 2 4 20 true Hex IPV6 "ipv6_flabel" "IPv6 flow label.";
    Icmpv6Type BASIC 29 2 1 8 false Decimal ICMPV6 "icmpv6_type" "ICMPv6 type.";
    Icmpv6Code BASIC 30 2 1 8 false Decimal ICMPV6 "icmpv6_code" "ICMPv6 code.";
    Ipv6NdTarget BASIC 31 2 16 128 false Ipv6 ND "ipv6_nd_target" "Target of a neighbour discovery.";
    Ipv6NdSll BASIC 32 2 6 48 false Mac ND_SOLICITATION "ipv6_nd_sll" "Source link layer of a neighbour solicitation.";
    Ipv6NdTll BASIC 33 2 6 48 false Mac ND_ADVERTISEMENT "ipv6_nd_tll" "Target link layer of a neighbour advertisement.";
    MplsLabel BASIC 34 2 4 20 false Decimal MPLS "mpls_label" "MPLS label.";
    MplsTc BASIC 35 2 1 3 false Decimal MPLS "mpls_tc" "MPLS traffic class.";
    MplsBos BASIC 36 2 1 1 false Decimal MPLS "mpls_bos" "MPLS bottom of stack.";
    PbbIsid BASIC 37 3 3 24 true Hex PBB "pbb_isid" "PBB service id.";
    TunnelId BASIC 38 3 8 64 true Hex NOTHING "tunnel_id" "Logical port's metadata, such as a tunnel key.";
    Ipv6Exthdr BASIC 39 3 2 9 true Hex IPV6 "ipv6_exthdr" "Flags of the IPv6 extension headers.";
    TcpFlags ONF 42 2 2 12 true Hex TCP "tcp_flags" "TCP flags, in an extension of the ONF (Open vSwitch has it).";
    Reg0 NXM_1 0 2 4 32 true Hex NOTHING "reg0" "Register 0 of Open vSwitch, passed between tables.";
}

pub(crate) const FIELDS: usize = TABLE.len();

/// Number of basic fields, which come first.
pub(crate) const BASICS: usize = {
    let mut count = 0;
    while count < FIELDS && TABLE[count].class.number == BASIC.number {
        count += 1;
    }
    let mut place = count;
    while place < FIELDS {
        assert!(TABLE[place].class.number != BASIC.number, "basic fields come first");
        place += 1;
    }
    count
};

/// Offset of each basic field's value in a [`crate::Match`]: the sum of the sizes before it.
const OFFSETS: [usize; BASICS + 1] = {
    let mut offsets = [0; BASICS + 1];
    let mut i = 0;
    while i < BASICS {
        offsets[i + 1] = offsets[i] + TABLE[i].bytes as usize;
        i += 1;
    }
    offsets
};

/// Length of all values, in bytes.
pub(crate) const VALUES_LEN: usize = OFFSETS[BASICS];

impl Field {
    /// The fields of the specification's own class.
    pub const BASIC: &'static [Field] = Field::ALL.split_at(BASICS).0;

    /// The basic fields by number.
    const BY_NUMBER: [Option<Field>; NUMBERS] = {
        let (mut fields, mut place) = ([None; NUMBERS], 0);
        while place < BASICS {
            fields[TABLE[place].number as usize] = Some(Field::ALL[place]);
            place += 1;
        }
        fields
    };

    /// Returns the field with this OXM class, experimenter (in class 0xffff) and number, if it is
    /// one of [`Field::ALL`].
    #[must_use]
    pub fn from_oxm(class: u16, experimenter: Option<u32>, number: u8) -> Option<Field> {
        if class == BASIC.number {
            return Field::BY_NUMBER.get(usize::from(number)).copied().flatten();
        }
        let rest = Field::ALL.get(BASICS..).unwrap_or(&[]);
        rest.iter().copied().find(|field| {
            (field.class(), field.experimenter(), field.number()) == (class, experimenter, number)
        })
    }

    /// Its OXM class (1.3.5 §7.2.3.3).
    #[must_use]
    #[inline]
    pub const fn class(self) -> u16 {
        TABLE[self as usize].class.number
    }

    /// The experimenter that its class belongs to: its header has 64 bits then, otherwise 32.
    #[must_use]
    #[inline]
    pub const fn experimenter(self) -> Option<u32> {
        TABLE[self as usize].class.experimenter
    }

    /// The first 32 bits of its header without a mask.
    #[inline]
    pub(crate) const fn header(self) -> u32 {
        TABLE[self as usize].header
    }

    /// Returns whether it is one of [`Field::BASIC`].
    #[must_use]
    #[inline(always)]
    pub const fn is_basic(self) -> bool {
        (self as usize) < BASICS
    }

    /// Its OXM number within the class.
    #[must_use]
    #[inline]
    pub const fn number(self) -> u8 {
        TABLE[self as usize].number
    }

    /// The first minor version whose matches can have it ([`crate::Version::can_match`]).
    pub(crate) const fn since(self) -> u8 {
        TABLE[self as usize].since
    }

    /// The fields that it depends on, the outermost header first.
    pub(crate) const fn needs(self) -> &'static [Need] {
        TABLE[self as usize].needs
    }

    /// Length of its value on the wire, in bytes.
    #[must_use]
    #[inline]
    pub const fn bytes(self) -> usize {
        TABLE[self as usize].bytes as usize
    }

    /// Number of bits that its value uses.
    #[must_use]
    pub const fn bits(self) -> u32 {
        TABLE[self as usize].bits as u32
    }

    /// Its maximum value: all bits set. Also the mask that means "exact".
    #[must_use]
    pub const fn max(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// Returns whether the specification allows a mask on it.
    #[must_use]
    pub const fn maskable(self) -> bool {
        TABLE[self as usize].maskable
    }

    /// Returns its name in the specification, in lower case: `eth_dst`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// How its values print.
    pub(crate) const fn style(self) -> Style {
        TABLE[self as usize].style
    }

    /// Returns the name of the action that sets it: `set_eth_dst`.
    pub(crate) const fn set_name(self) -> &'static str {
        TABLE[self as usize].set_name
    }

    /// Place of a basic field's value in a [`crate::Match`].
    #[inline]
    pub(crate) const fn slot(self) -> std::ops::Range<usize> {
        OFFSETS[self as usize]..OFFSETS[self as usize + 1]
    }

    /// Its bit in a set of basic fields; none if it is not basic.
    #[inline]
    pub(crate) const fn bit(self) -> u64 {
        if self.is_basic() { 1 << self as u8 } else { 0 }
    }

    /// Its bit in a set of any fields.
    pub(crate) const fn bit_of_all(self) -> u128 {
        1 << self as u8
    }

    pub(crate) fn format(self, value: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style() {
            Style::Decimal => write!(f, "{value}"),
            Style::Hex if self == Field::EthType => write!(f, "{value:#06x}"),
            Style::Hex => write!(f, "{value:#x}"),
            Style::Port => write!(f, "{}", Port(value as u32)),
            Style::Mac => write!(f, "{}", MacAddr::from_u64(value as u64)),
            Style::Ipv4 => write!(f, "{}", Ipv4Addr::from_bits(value as u32)),
            Style::Ipv6 => write!(f, "{}", Ipv6Addr::from_bits(value)),
        }
    }

    /// Prints a value that has a mask: bits of a number read better in hexadecimal.
    pub(crate) fn format_masked(self, value: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style() {
            Style::Decimal | Style::Port => write!(f, "{value:#x}"),
            _ => self.format(value, f),
        }
    }

    /// Prints a mask: as a prefix length if possible, otherwise as a value.
    pub(crate) fn format_mask(self, mask: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ones = mask.count_ones();
        let prefix = self.max() & !(self.max().checked_shr(ones).unwrap_or(0));
        match self.style() {
            Style::Ipv4 | Style::Ipv6 if mask == prefix => write!(f, "{ones}"),
            _ => self.format_masked(mask, f),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value of a field. Prints in the field's format, serialises as a number if that is decimal.
pub(crate) struct Value {
    pub(crate) field: Field,
    pub(crate) value: u128,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.field.format(self.value, f)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.field.style() {
            // No field with this format has more than 32 bits.
            Style::Decimal => serializer.serialize_u64(self.value as u64),
            Style::Port => Port(self.value as u32).serialize(serializer),
            _ => serializer.collect_str(self),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Field {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_specification() {
        assert_eq!(Field::BASIC.len(), 40);
        for (field, number) in [
            (Field::InPort, 0),
            (Field::EthType, 5),
            (Field::IpProto, 10),
            (Field::ArpOp, 21),
            (Field::Ipv6Src, 26),
            (Field::MplsLabel, 34),
            (Field::PbbIsid, 37),
            (Field::Ipv6Exthdr, 39),
        ] {
            assert_eq!(Field::from_oxm(0x8000, None, number), Some(field));
        }
        assert_eq!(Field::from_oxm(0x8000, None, 40), None);
        assert_eq!(Field::from_oxm(0xffff, Some(crate::ONF), 42), Some(Field::TcpFlags));
        assert_eq!(Field::from_oxm(0xffff, Some(crate::NICIRA), 42), None);
        assert_eq!(Field::from_oxm(1, None, 0), Some(Field::Reg0));
        assert_eq!(Field::from_oxm(0, None, 0), None);
    }

    #[test]
    fn a_value_fits_its_bytes() {
        for field in Field::ALL {
            assert!(field.bits() as usize <= field.bytes() * 8, "{field}");
            assert!(
                field.bits() as usize > (field.bytes() - 1) * 8
                    || *field == Field::Ipv6Flabel
                    || *field == Field::MplsLabel
                    || *field == Field::TcpFlags,
                "{field}"
            );
        }
    }
}
