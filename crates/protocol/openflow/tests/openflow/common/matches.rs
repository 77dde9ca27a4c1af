//! Generators of matches: any set of fields with their prerequisites, with any masks.

use bellrock_openflow::*;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::generate::port;

/// A field that others depend on, and its required value.
type Needed = (Field, u128);

/// Kinds of packets, and the fields that have a meaning in each.
const PACKETS: &[(&[Needed], &[Field])] = {
    use Field::*;
    const IPV4: Needed = (EthType, 0x0800);
    const IPV6: Needed = (EthType, 0x86dd);
    &[
        (&[], &[]),
        (&[(EthType, 0x88cc)], &[]),
        (&[(EthType, 0x0806)], &[ArpOp, ArpSpa, ArpTpa, ArpSha, ArpTha]),
        (&[(EthType, 0x8847)], &[MplsLabel, MplsTc, MplsBos]),
        (&[(EthType, 0x8848)], &[MplsLabel, MplsTc, MplsBos]),
        (&[(EthType, 0x88e7)], &[PbbIsid]),
        (&[IPV4], &[IpDscp, IpEcn, Ipv4Src, Ipv4Dst]),
        (&[IPV4, (IpProto, 1)], &[Ipv4Src, Icmpv4Type, Icmpv4Code]),
        (&[IPV4, (IpProto, 6)], &[IpDscp, Ipv4Src, Ipv4Dst, TcpSrc, TcpDst, TcpFlags]),
        (&[IPV4, (IpProto, 17)], &[Ipv4Dst, UdpSrc, UdpDst]),
        (&[IPV4, (IpProto, 132)], &[SctpSrc, SctpDst]),
        (&[IPV6], &[IpDscp, IpEcn, Ipv6Src, Ipv6Dst, Ipv6Flabel, Ipv6Exthdr]),
        (&[IPV6, (IpProto, 6)], &[Ipv6Src, TcpSrc, TcpDst]),
        (&[IPV6, (IpProto, 58)], &[Icmpv6Type, Icmpv6Code]),
        (&[IPV6, (IpProto, 58), (Icmpv6Type, 135)], &[Icmpv6Code, Ipv6NdTarget, Ipv6NdSll]),
        (&[IPV6, (IpProto, 58), (Icmpv6Type, 136)], &[Ipv6NdTarget, Ipv6NdTll]),
    ]
};

/// Fields without prerequisites.
const FREE: [Field; 6] = {
    use Field::*;
    [InPort, Metadata, EthDst, EthSrc, TunnelId, Reg0]
};

pub fn matching(version: Version) -> BoxedStrategy<MatchView<'static>> {
    let m = match version {
        Version::V1_0 => match_v10().boxed(),
        Version::V1_3 => match_v13().boxed(),
    };
    m.prop_map(view).boxed()
}

fn view(m: Match) -> MatchView<'static> {
    let m: &'static Match = Box::leak(Box::new(m));
    MatchView::from(m)
}

/// The match of a packet_in: in 1.0, only the port.
pub fn packet_fields(version: Version) -> BoxedStrategy<MatchView<'static>> {
    let ingress = port(version).prop_map(MatchView::port);
    match version {
        Version::V1_0 => ingress.boxed(),
        Version::V1_3 => prop_oneof![3 => ingress, 1 => matching(version)].boxed(),
    }
}

fn match_v13() -> impl Strategy<Value = Match> {
    (select(PACKETS), subsequence(&FREE, 0..=FREE.len()), vlan_v13(), any::<bool>())
        .prop_flat_map(|((needed, fields), free, vlan, physical)| {
            let chosen = subsequence(fields, 0..=fields.len());
            let numbers = proptest::collection::vec(any::<(u128, u128, bool)>(), 12);
            (Just((needed, free, vlan, physical)), chosen, numbers)
        })
        .prop_map(|((needed, free, vlan, physical), chosen, numbers)| {
            let m = needed.iter().fold(vlan, |m, &(field, value)| m.with(field, value));
            let ingress = free.contains(&Field::InPort) && physical;
            let m = if ingress { m.with(Field::InPhyPort, numbers[11].0) } else { m };
            free.iter().chain(chosen.iter()).zip(&numbers).fold(
                m,
                |m, (&field, &(value, mask, masked))| match masked && field.maskable() {
                    true => m.with_masked(field, value, mask),
                    false => m.with(field, value),
                },
            )
        })
}

fn vlan_v13() -> impl Strategy<Value = Match> {
    let pcp = || any::<u8>().prop_map(|pcp| pcp & 7);
    let tagged = u128::from(Match::VLAN_PRESENT);
    prop_oneof![
        Just(Match::any()),
        Just(Match::any().untagged()),
        any::<u16>().prop_map(|id| Match::any().vlan_id(id)),
        (any::<u16>(), pcp()).prop_map(|(id, pcp)| Match::any().vlan_id(id).vlan_pcp(pcp)),
        pcp().prop_map(move |pcp| {
            Match::any().with_masked(Field::VlanVid, tagged, tagged).vlan_pcp(pcp)
        }),
        any::<u16>().prop_map(move |mask| {
            let mask = u128::from(mask) | tagged;
            Match::any().with_masked(Field::VlanVid, u128::MAX, mask)
        }),
    ]
}

fn match_v10() -> impl Strategy<Value = Match> {
    let tagged = u128::from(Match::VLAN_PRESENT);
    let vlan = prop_oneof![
        Just(Match::any()),
        Just(Match::any().untagged()),
        any::<u16>().prop_map(|id| Match::any().vlan_id(id)),
        any::<(u16, u8)>().prop_map(|(id, pcp)| Match::any().vlan_id(id).vlan_pcp(pcp)),
        any::<u8>().prop_map(move |pcp| {
            Match::any().with_masked(Field::VlanVid, tagged, tagged).vlan_pcp(pcp)
        }),
    ];
    let ports = proptest::option::of(port(Version::V1_0));
    let frame = proptest::option::of(any::<(u64, u64)>());
    let upper =
        (0_u8..8, any::<(u32, u32, u8, u8)>(), any::<(bool, bool, bool)>(), any::<(u16, u16)>());
    (vlan, ports, frame, upper).prop_map(|(m, in_port, frame, upper)| {
        let m = in_port.into_iter().fold(m, Match::in_port);
        let m = frame.into_iter().fold(m, |m, (dst, src)| {
            m.eth_dst(MacAddr::from_u64(dst)).eth_src(MacAddr::from_u64(src))
        });
        network_v10(m, upper)
    })
}

type Upper = (u8, (u32, u32, u8, u8), (bool, bool, bool), (u16, u16));

fn network_v10(m: Match, (kind, net, has, ports): Upper) -> Match {
    let (src, dst, src_bits, dst_bits) = net;
    let prefix = |m: Match, field, address: u32, bits: u8| {
        let mask = u32::MAX.checked_shl(32 - u32::from(bits % 33)).unwrap_or(0);
        m.with_masked(field, address.into(), mask.into())
    };
    let ip = |m: Match| {
        let m = m.eth_type(0x0800);
        let m = prefix(prefix(m, Field::Ipv4Src, src, src_bits), Field::Ipv4Dst, dst, dst_bits);
        if has.0 { m.ip_dscp(src_bits) } else { m }
    };
    let arp = |m: Match| {
        let m = m.eth_type(0x0806);
        prefix(prefix(m, Field::ArpSpa, src, src_bits), Field::ArpTpa, dst, dst_bits)
    };
    let upper = |m: Match, protocol, source, destination| {
        let m = m.ip_proto(protocol);
        let m = if has.1 { m.with(source, ports.0.into()) } else { m };
        if has.2 { m.with(destination, ports.1.into()) } else { m }
    };
    match kind {
        0 => m,
        1 => m.eth_type(0x88cc),
        2 => ip(m),
        3 => upper(ip(m), 6, Field::TcpSrc, Field::TcpDst),
        4 => upper(ip(m), 17, Field::UdpSrc, Field::UdpDst),
        5 => upper(ip(m), 1, Field::Icmpv4Type, Field::Icmpv4Code),
        6 => ip(m).ip_proto(132),
        _ if has.0 => arp(m).arp_op(ports.0 & 0xff),
        _ => arp(m),
    }
}
