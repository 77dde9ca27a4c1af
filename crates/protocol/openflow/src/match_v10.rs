//! The match of OpenFlow 1.0 (§5.2.3), and its meaning in fields.
//!
//! A field is matched if its wildcard bit is clear *and* the fields that it depends on are matched
//! (§3.4): network fields only for IPv4 and ARP, ports only for TCP, UDP and ICMP.

use crate::wire::{U16, U32, v10};
use crate::{EncodeError, Field, Match, Port, Version};

const W_IN_PORT: u32 = 1 << 0;
const W_VLAN: u32 = 1 << 1;
const W_ETH_SRC: u32 = 1 << 2;
const W_ETH_DST: u32 = 1 << 3;
const W_ETH_TYPE: u32 = 1 << 4;
const W_PROTO: u32 = 1 << 5;
const W_TP_SRC: u32 = 1 << 6;
const W_TP_DST: u32 = 1 << 7;
const W_SRC_SHIFT: u32 = 8;
const W_DST_SHIFT: u32 = 14;
const W_NET_BITS: u32 = 0x3f;
const W_PCP: u32 = 1 << 20;
const W_TOS: u32 = 1 << 21;
/// All wildcards. Addresses have the value 32, which means "any" (`OFPFW_ALL` has 63, which means
/// the same).
const W_ALL: u32 = ((1 << 22) - 1) & !(0x1f << W_SRC_SHIFT) & !(0x1f << W_DST_SHIFT);

/// `dl_vlan` of packets without a tag, `OFP_VLAN_NONE`.
const VLAN_NONE: u16 = 0xffff;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;

/// Returns the meaning of a match of 1.0.
pub(crate) fn to_match(wire: &v10::Match) -> Match {
    let wildcards = wire.wildcards.get();
    let exact = |bit: u32| wildcards & bit == 0;
    let mut m = Match::any();
    if exact(W_IN_PORT) {
        m = m.in_port(Port::from_v10(wire.in_port.get()));
    }
    if exact(W_ETH_SRC) {
        m = m.eth_src(crate::MacAddr(wire.dl_src));
    }
    if exact(W_ETH_DST) {
        m = m.eth_dst(crate::MacAddr(wire.dl_dst));
    }
    m = vlan(m, wire, exact(W_VLAN), exact(W_PCP));
    if !exact(W_ETH_TYPE) {
        return m;
    }
    let eth_type = wire.dl_type.get();
    m = m.eth_type(eth_type);
    let src = prefix(wire.nw_src, wildcards >> W_SRC_SHIFT & W_NET_BITS);
    let dst = prefix(wire.nw_dst, wildcards >> W_DST_SHIFT & W_NET_BITS);
    match eth_type {
        IPV4 => {
            m.set_masked(Field::Ipv4Src, src.0, src.1);
            m.set_masked(Field::Ipv4Dst, dst.0, dst.1);
            if exact(W_TOS) {
                m = m.ip_dscp(wire.nw_tos >> 2);
            }
            if exact(W_PROTO) {
                m = transport(m.ip_proto(wire.nw_proto), wire, exact(W_TP_SRC), exact(W_TP_DST));
            }
        }
        ARP => {
            m.set_masked(Field::ArpSpa, src.0, src.1);
            m.set_masked(Field::ArpTpa, dst.0, dst.1);
            if exact(W_PROTO) {
                m = m.arp_op(wire.nw_proto.into());
            }
        }
        _ => {}
    }
    m
}

fn vlan(m: Match, wire: &v10::Match, vid: bool, pcp: bool) -> Match {
    let pcp_of = |m: Match| if pcp { m.vlan_pcp(wire.dl_vlan_pcp) } else { m };
    match wire.dl_vlan.get() {
        VLAN_NONE if vid => m.untagged(),
        id if vid => pcp_of(m.vlan_id(id)),
        // A priority without an id: tagged, with any id.
        _ if pcp => {
            let tagged = u128::from(Match::VLAN_PRESENT);
            pcp_of(m.with_masked(Field::VlanVid, tagged, tagged))
        }
        _ => m,
    }
}

fn transport(mut m: Match, wire: &v10::Match, src: bool, dst: bool) -> Match {
    let (src_field, dst_field) = match wire.nw_proto {
        6 => (Field::TcpSrc, Field::TcpDst),
        17 => (Field::UdpSrc, Field::UdpDst),
        1 => (Field::Icmpv4Type, Field::Icmpv4Code),
        _ => return m,
    };
    for (field, value, counts) in [(src_field, wire.tp_src, src), (dst_field, wire.tp_dst, dst)] {
        if counts {
            m.set(field, value.get().into());
        }
    }
    m
}

/// Returns value and mask of an address whose lowest `wild` bits are ignored.
fn prefix(address: [u8; 4], wild: u32) -> (u128, u128) {
    let mask = u32::MAX.checked_shl(wild).unwrap_or(0);
    (u32::from_be_bytes(address).into(), mask.into())
}

/// Fields of the link that an exact match has, besides the priority of a tag.
const LINK: u64 = Field::InPort.bit()
    | Field::EthSrc.bit()
    | Field::EthDst.bit()
    | Field::EthType.bit()
    | Field::VlanVid.bit();

impl Match {
    /// Whether it matches, as a match of 1.0, without wildcards (1.0 §3.4).
    ///
    /// A field that has no meaning in the packets of the match is no wildcard, whatever its bit
    /// says: the priority of a missing tag, an address of a packet without IP or ARP, a port of a
    /// protocol without ports.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let bits = |fields: &[Field]| fields.iter().fold(0, |bits, field| bits | field.bit());
        let mut needed = LINK;
        if self.value(Field::VlanVid).is_some_and(|vid| vid != 0) {
            needed |= Field::VlanPcp.bit();
        }
        match self.value(Field::EthType).and_then(|eth_type| u16::try_from(eth_type).ok()) {
            Some(IPV4) => {
                use Field::{IpDscp, IpProto, Ipv4Dst, Ipv4Src};
                needed |= bits(&[Ipv4Src, Ipv4Dst, IpDscp, IpProto]);
                needed |= match self.value(IpProto) {
                    Some(1) => bits(&[Field::Icmpv4Type, Field::Icmpv4Code]),
                    Some(6) => bits(&[Field::TcpSrc, Field::TcpDst]),
                    Some(17) => bits(&[Field::UdpSrc, Field::UdpDst]),
                    _ => 0,
                };
            }
            Some(ARP) => needed |= bits(&[Field::ArpOp, Field::ArpSpa, Field::ArpTpa]),
            _ => {}
        }
        needed & !self.present() == 0 && needed & self.masked() == 0
    }
}

/// The fields that a match of 1.0 can express.
const SAYABLE: u64 = Field::InPort.bit()
    | Field::EthSrc.bit()
    | Field::EthDst.bit()
    | Field::EthType.bit()
    | Field::VlanVid.bit()
    | Field::VlanPcp.bit()
    | Field::IpDscp.bit()
    | Field::IpProto.bit()
    | Field::Ipv4Src.bit()
    | Field::Ipv4Dst.bit()
    | Field::ArpOp.bit()
    | Field::ArpSpa.bit()
    | Field::ArpTpa.bit()
    | Field::TcpSrc.bit()
    | Field::TcpDst.bit()
    | Field::UdpSrc.bit()
    | Field::UdpDst.bit()
    | Field::Icmpv4Type.bit()
    | Field::Icmpv4Code.bit();

/// The fields that may have a mask: addresses with a prefix, and "any tag".
const MASKABLE: u64 = Field::VlanVid.bit()
    | Field::Ipv4Src.bit()
    | Field::Ipv4Dst.bit()
    | Field::ArpSpa.bit()
    | Field::ArpTpa.bit();

/// Converts `m` to a match of 1.0. Fields that are not matched are zero.
///
/// # Errors
/// [`EncodeError::Unsupported`] with the name of the first field that 1.0 cannot express.
#[inline]
pub(crate) fn from_match(m: &Match) -> Result<v10::Match, EncodeError> {
    if m.present() & !SAYABLE != 0 || m.masked() & !MASKABLE != 0 || !m.is_basic() {
        return Err(unsayable(m));
    }
    let mut wire = v10::Match::default();
    let mut wildcards = W_ALL;
    if m.has(Field::InPort) {
        wire.in_port = U16::new(Port(u32::from_be_bytes(m.bytes(Field::InPort))).to_v10()?);
        wildcards &= !W_IN_PORT;
    }
    if m.has(Field::EthSrc) {
        wire.dl_src = m.bytes(Field::EthSrc);
        wildcards &= !W_ETH_SRC;
    }
    if m.has(Field::EthDst) {
        wire.dl_dst = m.bytes(Field::EthDst);
        wildcards &= !W_ETH_DST;
    }
    wildcards &= !put_vlan(m, &mut wire)?;
    let eth_type = if m.has(Field::EthType) {
        wire.dl_type = U16::from_bytes(m.bytes(Field::EthType));
        wildcards &= !W_ETH_TYPE;
        wire.dl_type.get()
    } else {
        0
    };
    match eth_type {
        IPV4 => {
            wildcards &= !put_ipv4(m, &mut wire)?;
            wildcards = put_prefix(m, Field::Ipv4Src, &mut wire.nw_src, wildcards, W_SRC_SHIFT)?;
            wildcards = put_prefix(m, Field::Ipv4Dst, &mut wire.nw_dst, wildcards, W_DST_SHIFT)?;
        }
        ARP => {
            wildcards &= !put_arp(m, &mut wire)?;
            wildcards = put_prefix(m, Field::ArpSpa, &mut wire.nw_src, wildcards, W_SRC_SHIFT)?;
            wildcards = put_prefix(m, Field::ArpTpa, &mut wire.nw_dst, wildcards, W_DST_SHIFT)?;
        }
        _ => only(m, 0)?,
    }
    wire.wildcards = U32::new(wildcards);
    Ok(wire)
}

/// Names a field that 1.0 cannot express.
#[cold]
fn unsayable(m: &Match) -> EncodeError {
    let beyond = m.fields().find(|field| {
        SAYABLE & field.bit() == 0 || (m.is_masked(*field) && MASKABLE & field.bit() == 0)
    });
    unsupported(beyond.map_or("a match field of another class", Field::name))
}

/// Fields that are matched only with certain Ethernet types.
const NETWORK: u64 = SAYABLE
    & !(Field::InPort.bit()
        | Field::EthSrc.bit()
        | Field::EthDst.bit()
        | Field::EthType.bit()
        | Field::VlanVid.bit()
        | Field::VlanPcp.bit());

/// Checks that of the fields that need an Ethernet type, only those in `allowed` are matched: 1.0
/// would ignore the others.
#[inline]
fn only(m: &Match, allowed: u64) -> Result<(), EncodeError> {
    if m.present() & NETWORK & !allowed == 0 { Ok(()) } else { Err(without_meaning(m, allowed)) }
}

/// Names a field that 1.0 would ignore: it lacks a field that it depends on, or 1.0 does not match
/// it in packets of this kind.
#[cold]
fn without_meaning(m: &Match, allowed: u64) -> EncodeError {
    let ignored = m.fields().find(|field| NETWORK & !allowed & field.bit() != 0);
    let unsayable = || unsupported(ignored.map_or("this match", Field::name));
    m.check().err().unwrap_or_else(unsayable)
}

/// Fills in the VLAN. Returns the wildcard bits to clear.
#[inline]
fn put_vlan(m: &Match, wire: &mut v10::Match) -> Result<u32, EncodeError> {
    let mut pcp = 0;
    if m.has(Field::VlanPcp) {
        [wire.dl_vlan_pcp] = m.bytes(Field::VlanPcp);
        pcp = W_PCP;
    }
    let vid = u16::from_be_bytes(m.bytes(Field::VlanVid));
    if !m.has(Field::VlanVid) {
        return if pcp == 0 { Ok(0) } else { Err(without_meaning(m, 0)) };
    }
    if m.is_masked(Field::VlanVid) {
        // "Any tag" is expressible with a priority, which implies it.
        let any_tag = m.mask(Field::VlanVid) == Some(Match::VLAN_PRESENT.into());
        return if any_tag && vid == Match::VLAN_PRESENT && pcp != 0 {
            Ok(pcp)
        } else {
            Err(unsupported("this value or mask of vlan_vid"))
        };
    }
    if vid & Match::VLAN_PRESENT != 0 {
        wire.dl_vlan = U16::new(vid & 0x0fff);
        Ok(W_VLAN | pcp)
    } else if vid == 0 && pcp == 0 {
        wire.dl_vlan = U16::new(VLAN_NONE);
        Ok(W_VLAN)
    } else {
        Err(unsupported("this value or mask of vlan_vid"))
    }
}

#[inline]
fn put_ipv4(m: &Match, wire: &mut v10::Match) -> Result<u32, EncodeError> {
    let mut clear = 0;
    let mut allowed =
        Field::Ipv4Src.bit() | Field::Ipv4Dst.bit() | Field::IpDscp.bit() | Field::IpProto.bit();
    if m.has(Field::IpDscp) {
        let [dscp] = m.bytes(Field::IpDscp);
        wire.nw_tos = dscp << 2;
        clear |= W_TOS;
    }
    if m.has(Field::IpProto) {
        [wire.nw_proto] = m.bytes(Field::IpProto);
        clear |= W_PROTO;
        let (src, dst) = match wire.nw_proto {
            6 => (Field::TcpSrc, Field::TcpDst),
            17 => (Field::UdpSrc, Field::UdpDst),
            1 => (Field::Icmpv4Type, Field::Icmpv4Code),
            _ => return only(m, allowed).map(|()| clear),
        };
        // Fields that are not matched are zero.
        (wire.tp_src, wire.tp_dst) = match wire.nw_proto {
            6 => (m.number16(Field::TcpSrc), m.number16(Field::TcpDst)),
            17 => (m.number16(Field::UdpSrc), m.number16(Field::UdpDst)),
            _ => (m.number8(Field::Icmpv4Type), m.number8(Field::Icmpv4Code)),
        };
        allowed |= src.bit() | dst.bit();
        clear |= if m.has(src) { W_TP_SRC } else { 0 } | if m.has(dst) { W_TP_DST } else { 0 };
    }
    only(m, allowed).map(|()| clear)
}

#[inline]
fn put_arp(m: &Match, wire: &mut v10::Match) -> Result<u32, EncodeError> {
    only(m, Field::ArpOp.bit() | Field::ArpSpa.bit() | Field::ArpTpa.bit())?;
    if !m.has(Field::ArpOp) {
        return Ok(0);
    }
    // 1.0 matches only the low 8 bits of the operation.
    let operation = m.number16(Field::ArpOp);
    wire.nw_proto = u8::try_from(operation.get()).map_err(|_| unsupported("arp_op above 255"))?;
    Ok(W_PROTO)
}

#[inline]
fn put_prefix(
    m: &Match,
    field: Field,
    address: &mut [u8; 4],
    wildcards: u32,
    shift: u32,
) -> Result<u32, EncodeError> {
    if !m.has(field) {
        return Ok(wildcards);
    }
    *address = m.bytes(field);
    if !m.is_masked(field) {
        return Ok(wildcards & !(W_NET_BITS << shift));
    }
    let mask = m.mask(field).unwrap_or_default() as u32;
    let wild = mask.trailing_zeros();
    if mask.leading_ones() + wild != u32::BITS {
        return Err(unsupported("an address mask that is no prefix"));
    }
    Ok((wildcards & !(W_NET_BITS << shift)) | (wild << shift))
}

fn unsupported(what: &'static str) -> EncodeError {
    EncodeError::Unsupported { what, version: Version::V1_0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn round_trip(m: &Match) {
        assert_eq!(&to_match(&from_match(m).unwrap()), m);
    }

    #[test]
    fn matches_of_openflow_1_0_round_trip() {
        round_trip(&Match::any());
        round_trip(&Match::any().in_port(Port::LOCAL).untagged());
        round_trip(&Match::any().vlan_id(0).vlan_pcp(7));
        round_trip(&Match::any().with_masked(Field::VlanVid, 0x1000, 0x1000).vlan_pcp(3));
        let ip = Match::any().eth_type(IPV4).ipv4_src_prefix(Ipv4Addr::new(10, 0, 0, 0), 8);
        round_trip(&ip.clone().ip_dscp(46).ip_proto(6).tcp_src(1).tcp_dst(0));
        round_trip(&ip.clone().ip_proto(1).icmpv4_type(8).icmpv4_code(0));
        round_trip(&ip.ip_proto(132));
        round_trip(&Match::any().eth_type(ARP).arp_op(2).arp_tpa(Ipv4Addr::new(10, 0, 0, 1)));
    }

    #[test]
    fn the_error_names_the_part_that_openflow_1_0_lacks() {
        for (m, what) in [
            (Match::any().metadata(1), "metadata"),
            (Match::any().with_masked(Field::EthDst, 1 << 40, 1 << 40), "eth_dst"),
            (
                Match::any().eth_type(IPV4).with_masked(Field::Ipv4Src, 1, 0xff),
                "an address mask that is no prefix",
            ),
            (Match::any().eth_type(0x86dd).ip_proto(6).tcp_dst(80), "ip_proto"),
            (Match::any().in_port(Port(70_000)), "this port number"),
        ] {
            assert_eq!(from_match(&m).err(), Some(unsupported(what)));
        }
        for m in [Match::any().vlan_pcp(1), Match::any().tcp_dst(80)] {
            assert_eq!(from_match(&m).err(), m.check().err());
        }
    }

    #[test]
    fn fields_without_meaning_do_not_count() {
        // Ports without a protocol, addresses without a type: 1.0 ignores them (§3.4).
        let wire = v10::Match { tp_dst: U16::new(80), nw_src: [10, 0, 0, 1], ..Default::default() };
        let m = to_match(&wire);
        assert!(!m.has(Field::TcpDst) && !m.has(Field::Ipv4Src));
    }
}
