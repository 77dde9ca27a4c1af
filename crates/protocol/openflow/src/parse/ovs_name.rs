//! Reads the fields of a match under their names of Open vSwitch, as [`OvsMatch`](crate::print)
//! prints them.

use super::{add_value, number};
use crate::{Field, Match};

const IPV4: u128 = 0x0800;
const ARP: u128 = 0x0806;
const IPV6: u128 = 0x86dd;
const TCP: u128 = 6;
const UDP: u128 = 17;
const SCTP: u128 = 132;
const ICMPV6: u128 = 58;

/// Keywords: `eth_type` and, if the keyword names it, `ip_proto`.
const KEYWORDS: &[(&str, u128, Option<u128>)] = &[
    ("ip", IPV4, None),
    ("ipv6", IPV6, None),
    ("arp", ARP, None),
    ("rarp", 0x8035, None),
    ("mpls", 0x8847, None),
    ("mplsm", 0x8848, None),
    ("icmp", IPV4, Some(1)),
    ("tcp", IPV4, Some(TCP)),
    ("udp", IPV4, Some(UDP)),
    ("sctp", IPV4, Some(SCTP)),
    ("icmp6", IPV6, Some(ICMPV6)),
    ("tcp6", IPV6, Some(TCP)),
    ("udp6", IPV6, Some(UDP)),
    ("sctp6", IPV6, Some(SCTP)),
];

/// Names that always mean the same field.
const NAMES: &[(&str, Field)] = &[
    ("dl_dst", Field::EthDst),
    ("dl_src", Field::EthSrc),
    ("dl_type", Field::EthType),
    ("nw_proto", Field::IpProto),
    ("nw_ecn", Field::IpEcn),
    ("tun_id", Field::TunnelId),
    ("nd_target", Field::Ipv6NdTarget),
    ("nd_sll", Field::Ipv6NdSll),
    ("nd_tll", Field::Ipv6NdTll),
    ("ipv6_label", Field::Ipv6Flabel),
];

/// Names whose meaning depends on other fields, or that mean several.
const DEPENDENT: &[&str] = &[
    "nw_src",
    "nw_dst",
    "ip_src",
    "ip_dst",
    "nw_tos",
    "tp_src",
    "tp_dst",
    "icmp_type",
    "icmp_code",
    "dl_vlan",
    "dl_vlan_pcp",
    "vlan_tci",
];

/// Bits of `vlan_vid`, and of them that for "there is a tag".
const VLAN_VID: u128 = 0x1fff;
const VLAN_ID: u128 = 0x0fff;
const VLAN_PRESENT: u128 = Match::VLAN_PRESENT as u128;
const VLAN_PCP_SHIFT: u32 = 13;

/// Adds a part of a match, if it is a keyword or has a name of Open vSwitch. Returns whether it is
/// one. Parts that depend on others go to `others`.
pub(super) fn add<'t>(
    matching: &mut Match,
    part: &'t str,
    others: &mut Vec<(&'t str, &'t str)>,
) -> Result<bool, String> {
    let Some((name, value)) = part.split_once('=') else {
        let Some((_, eth_type, protocol)) = KEYWORDS.iter().find(|(word, ..)| *word == part) else {
            return Ok(false);
        };
        put(matching, Field::EthType, *eth_type)?;
        if let Some(protocol) = protocol {
            put(matching, Field::IpProto, *protocol)?;
        }
        return Ok(true);
    };
    let (name, value) = (name.trim(), value.trim());
    if DEPENDENT.contains(&name) {
        others.push((name, value));
        return Ok(true);
    }
    let Some((_, field)) = NAMES.iter().find(|(other, _)| *other == name) else { return Ok(false) };
    add_value(matching, *field, value)?;
    Ok(true)
}

fn put(matching: &mut Match, field: Field, value: u128) -> Result<(), String> {
    put_masked(matching, field, value, field.max())
}

fn put_masked(matching: &mut Match, field: Field, value: u128, mask: u128) -> Result<(), String> {
    if matching.has(field) {
        return Err(format!("{field} is there twice; give it once"));
    }
    matching.put_field(field, value, (mask != field.max()).then_some(mask));
    Ok(())
}

/// Adds a part whose meaning depends on the others, which are there.
pub(super) fn add_dependent(matching: &mut Match, name: &str, value: &str) -> Result<(), String> {
    match name {
        "nw_src" | "nw_dst" => {
            let is_arp = matching.value(Field::EthType) == Some(ARP);
            let field = match (name, is_arp) {
                ("nw_src", true) => Field::ArpSpa,
                ("nw_src", false) => Field::Ipv4Src,
                (_, true) => Field::ArpTpa,
                (_, false) => Field::Ipv4Dst,
            };
            add_value(matching, field, value)
        }
        "ip_src" | "ip_dst" => {
            let is_ipv6 = value.contains(':');
            if !matching.has(Field::EthType) {
                put(matching, Field::EthType, if is_ipv6 { IPV6 } else { IPV4 })?;
            }
            let field = match (name, is_ipv6) {
                ("ip_src", true) => Field::Ipv6Src,
                ("ip_src", false) => Field::Ipv4Src,
                (_, true) => Field::Ipv6Dst,
                (_, false) => Field::Ipv4Dst,
            };
            add_value(matching, field, value)
        }
        "nw_tos" => {
            let tos = number(value).filter(|tos| *tos <= 0xfc && tos & 3 == 0);
            let tos =
                tos.ok_or_else(|| format!("nw_tos={value}: give a multiple of 4, up to 252"))?;
            put(matching, Field::IpDscp, tos >> 2)
        }
        "tp_src" | "tp_dst" => {
            let is_source = name == "tp_src";
            let field = match matching.value(Field::IpProto) {
                Some(TCP) if is_source => Field::TcpSrc,
                Some(TCP) => Field::TcpDst,
                Some(UDP) if is_source => Field::UdpSrc,
                Some(UDP) => Field::UdpDst,
                Some(SCTP) if is_source => Field::SctpSrc,
                Some(SCTP) => Field::SctpDst,
                _ => return Err(format!("{name} needs a protocol: add tcp, udp or sctp")),
            };
            add_value(matching, field, value)
        }
        "icmp_type" | "icmp_code" => {
            let is_ipv6 = matching.value(Field::IpProto) == Some(ICMPV6);
            let field = match (name, is_ipv6) {
                ("icmp_type", true) => Field::Icmpv6Type,
                ("icmp_type", false) => Field::Icmpv4Type,
                (_, true) => Field::Icmpv6Code,
                (_, false) => Field::Icmpv4Code,
            };
            add_value(matching, field, value)
        }
        _ => vlan(matching, name, value),
    }
}

/// Adds a part about the VLAN tag.
fn vlan(matching: &mut Match, name: &str, value: &str) -> Result<(), String> {
    match name {
        "dl_vlan" => {
            let id = number(value).filter(|id| *id <= VLAN_ID);
            let id = id.ok_or_else(|| {
                format!("dl_vlan={value}: give the number of a VLAN, such as 100")
            })?;
            // The priority alone stands for a tag too.
            if matching.mask(Field::VlanVid) == Some(VLAN_PRESENT) {
                matching.put_field(Field::VlanVid, id | VLAN_PRESENT, None);
                return Ok(());
            }
            put(matching, Field::VlanVid, id | VLAN_PRESENT)
        }
        "dl_vlan_pcp" => {
            let priority = number(value).filter(|priority| *priority <= 7);
            let priority =
                priority.ok_or_else(|| format!("dl_vlan_pcp={value}: give a priority, 0 to 7"))?;
            if !matching.has(Field::VlanVid) {
                put_masked(matching, Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT)?;
            }
            put(matching, Field::VlanPcp, priority)
        }
        _ => {
            let (tag, mask) = value.split_once('/').unwrap_or((value, "0xffff"));
            let [tag, mask] = [tag, mask].map(|text| number(text).filter(|bits| *bits <= 0xffff));
            let (Some(tag), Some(mask)) = (tag, mask) else {
                return Err(format!("vlan_tci={value}: give 16 bits, such as 0x1064/0x1fff"));
            };
            if tag & !mask != 0 {
                return Err(
                    "vlan_tci has bits of its value outside its mask; set them to 0".to_owned()
                );
            }
            if mask & VLAN_VID != 0 {
                put_masked(matching, Field::VlanVid, tag & VLAN_VID, mask & VLAN_VID)?;
            }
            // All bits of no tag are just that.
            let is_untagged = tag == 0 && mask == 0xffff;
            let (priority, mask) = (tag >> VLAN_PCP_SHIFT, mask >> VLAN_PCP_SHIFT);
            match mask {
                0 => Ok(()),
                _ if is_untagged => Ok(()),
                7 => put(matching, Field::VlanPcp, priority),
                _ => Err("vlan_tci needs all bits of the priority, 0xe000, or none".to_owned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::print::OvsMatch;

    /// Matches with which some fields have their prerequisites.
    const BASES: &[&str] = &[
        "any",
        "in_port=1",
        "vlan_vid=0x1064",
        "vlan_vid=0x1000/0x1000",
        "ip",
        "ipv6",
        "arp",
        "rarp",
        "mpls",
        "mplsm",
        "icmp",
        "tcp",
        "udp",
        "sctp",
        "icmp6",
        "tcp6",
        "udp6",
        "sctp6",
        "icmp6,icmp_type=135",
        "icmp6,icmp_type=136",
        "eth_type=0x88e7",
        "tcp,vlan_vid=0x1001,vlan_pcp=7,ip_dscp=3,ip_ecn=1",
        "vlan_vid=0",
    ];

    #[test]
    fn printed_matches_are_read_again_for_all_fields() {
        let mut read = BTreeSet::new();
        for base in BASES {
            let base: Match = base.parse().unwrap_or_else(|error| panic!("{base}: {error}"));
            for field in Field::ALL.iter().copied().filter(|field| !base.has(*field)) {
                let top = field.max() & !(field.max() >> 1);
                for (value, mask) in
                    [(0, None), (1, None), (field.max(), None), (top, Some(top)), (1, Some(1))]
                {
                    let mask = mask.filter(|_| field.maskable());
                    let mut matching = base.clone();
                    matching.put_field(field, value, mask.filter(|mask| *mask != field.max()));
                    if matching.check().is_err() {
                        continue;
                    }
                    for is_v10 in [false, true] {
                        let printed = OvsMatch { matching: &matching, is_v10 }.to_string();
                        let again: Match =
                            printed.parse().unwrap_or_else(|error| panic!("{printed}: {error}"));
                        assert_eq!(again, matching, "{printed}");
                    }
                    read.insert(field.name());
                }
            }
        }
        let missing: Vec<_> =
            Field::ALL.iter().filter(|field| !read.contains(field.name())).collect();
        assert_eq!(missing, Vec::<&Field>::new());
    }

    #[test]
    fn an_address_of_either_version_brings_its_protocol() {
        let read = |text: &str| text.parse::<Match>().unwrap().to_string();
        assert_eq!(read("ip_src=10.0.0.0/8"), read("eth_type=0x0800,ipv4_src=10.0.0.0/8"));
        assert_eq!(read("ip_dst=2001:db8::1"), read("eth_type=0x86dd,ipv6_dst=2001:db8::1"));
        assert_eq!(read("tp_dst=23,tcp,in_port=3"), read("in_port=3,tcp,tcp_dst=23"));
        assert_eq!(read("arp,nw_src=10.0.0.1"), read("arp,arp_spa=10.0.0.1"));
        assert_eq!(read("dl_vlan_pcp=3,dl_vlan=5"), read("vlan_vid=0x1005,vlan_pcp=3"));
    }
}
