//! The 40 basic match fields of OpenFlow 1.3 (1.3.5 §7.2.3.7, tables 11 and 12).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

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

/// One row per field: variant, bytes, bits, whether it allows a mask, format, name.
macro_rules! fields {
    ($($variant:ident $bytes:literal $bits:literal $mask:literal $style:ident $name:literal $doc:literal;)*) => {
        /// A basic match field; as a number, its OXM field number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Field { $(#[doc = $doc] $variant,)* }

        struct Row {
            bytes: u8,
            bits: u8,
            maskable: bool,
            style: Style,
            name: &'static str,
            set_name: &'static str,
        }

        const TABLE: &[Row] = &[$(
            Row {
                bytes: $bytes,
                bits: $bits,
                maskable: $mask,
                style: Style::$style,
                name: $name,
                set_name: concat!("set_", $name),
            },
        )*];

        impl Field {
            /// All fields, by number.
            pub const ALL: &'static [Field] = &[$(Field::$variant,)*];
        }
    };
}

fields! {
    InPort 4 32 false Port "in_port" "Ingress port.";
    InPhyPort 4 32 false Port "in_phy_port" "Physical port; needs `in_port`.";
    Metadata 8 64 true Hex "metadata" "Metadata passed between tables.";
    EthDst 6 48 true Mac "eth_dst" "Ethernet destination.";
    EthSrc 6 48 true Mac "eth_src" "Ethernet source.";
    EthType 2 16 false Hex "eth_type" "Ethernet type, after VLAN tags.";
    VlanVid 2 13 true Hex "vlan_vid" "VLAN id with bit 12 set for \"tagged\"; 0 for untagged.";
    VlanPcp 1 3 false Decimal "vlan_pcp" "VLAN priority; needs a tag.";
    IpDscp 1 6 false Decimal "ip_dscp" "DSCP, 6 bits.";
    IpEcn 1 2 false Decimal "ip_ecn" "ECN, 2 bits.";
    IpProto 1 8 false Decimal "ip_proto" "IP protocol.";
    Ipv4Src 4 32 true Ipv4 "ipv4_src" "IPv4 source.";
    Ipv4Dst 4 32 true Ipv4 "ipv4_dst" "IPv4 destination.";
    TcpSrc 2 16 false Decimal "tcp_src" "TCP source port.";
    TcpDst 2 16 false Decimal "tcp_dst" "TCP destination port.";
    UdpSrc 2 16 false Decimal "udp_src" "UDP source port.";
    UdpDst 2 16 false Decimal "udp_dst" "UDP destination port.";
    SctpSrc 2 16 false Decimal "sctp_src" "SCTP source port.";
    SctpDst 2 16 false Decimal "sctp_dst" "SCTP destination port.";
    Icmpv4Type 1 8 false Decimal "icmpv4_type" "ICMP type.";
    Icmpv4Code 1 8 false Decimal "icmpv4_code" "ICMP code.";
    ArpOp 2 16 false Decimal "arp_op" "ARP operation.";
    ArpSpa 4 32 true Ipv4 "arp_spa" "ARP sender's IPv4 address.";
    ArpTpa 4 32 true Ipv4 "arp_tpa" "ARP target's IPv4 address.";
    ArpSha 6 48 true Mac "arp_sha" "ARP sender's Ethernet address.";
    ArpTha 6 48 true Mac "arp_tha" "ARP target's Ethernet address.";
    Ipv6Src 16 128 true Ipv6 "ipv6_src" "IPv6 source.";
    Ipv6Dst 16 128 true Ipv6 "ipv6_dst" "IPv6 destination.";
    Ipv6Flabel 4 20 true Hex "ipv6_flabel" "IPv6 flow label.";
    Icmpv6Type 1 8 false Decimal "icmpv6_type" "ICMPv6 type.";
    Icmpv6Code 1 8 false Decimal "icmpv6_code" "ICMPv6 code.";
    Ipv6NdTarget 16 128 false Ipv6 "ipv6_nd_target" "Target of a neighbour discovery.";
    Ipv6NdSll 6 48 false Mac "ipv6_nd_sll" "Source link layer of a neighbour solicitation.";
    Ipv6NdTll 6 48 false Mac "ipv6_nd_tll" "Target link layer of a neighbour advertisement.";
    MplsLabel 4 20 false Decimal "mpls_label" "MPLS label.";
    MplsTc 1 3 false Decimal "mpls_tc" "MPLS traffic class.";
    MplsBos 1 1 false Decimal "mpls_bos" "MPLS bottom of stack.";
    PbbIsid 3 24 true Hex "pbb_isid" "PBB service id.";
    TunnelId 8 64 true Hex "tunnel_id" "Logical port's metadata, such as a tunnel key.";
    Ipv6Exthdr 2 9 true Hex "ipv6_exthdr" "Flags of the IPv6 extension headers.";
}

pub(crate) const FIELDS: usize = TABLE.len();

/// Offset of each field's value in a [`crate::Match`]: the sum of the sizes before it.
const OFFSETS: [usize; FIELDS + 1] = {
    let mut offsets = [0; FIELDS + 1];
    let mut i = 0;
    while i < FIELDS {
        offsets[i + 1] = offsets[i] + TABLE[i].bytes as usize;
        i += 1;
    }
    offsets
};

/// Length of all values, in bytes.
pub(crate) const VALUES_LEN: usize = OFFSETS[FIELDS];

impl Field {
    /// Returns the field with this OXM number (class 0x8000), if it is one of the 40.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Field> {
        Field::ALL.get(usize::from(number)).copied()
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

    /// Place of its value in a [`crate::Match`].
    #[inline]
    pub(crate) const fn slot(self) -> std::ops::Range<usize> {
        OFFSETS[self as usize]..OFFSETS[self as usize + 1]
    }

    /// Its bit in a set of fields.
    #[inline]
    pub(crate) const fn bit(self) -> u64 {
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
        assert_eq!(FIELDS, 40);
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
            assert_eq!(Field::from_number(number), Some(field));
        }
        assert_eq!(Field::from_number(40), None);
    }

    #[test]
    fn a_value_fits_its_bytes() {
        for field in Field::ALL {
            assert!(field.bits() as usize <= field.bytes() * 8, "{field}");
            assert!(
                field.bits() as usize > (field.bytes() - 1) * 8
                    || *field == Field::Ipv6Flabel
                    || *field == Field::MplsLabel,
                "{field}"
            );
        }
    }
}
