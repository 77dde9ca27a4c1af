//! Answers address requests (ARP, neighbour solicitations) for hosts, so that none is flooded.
//!
//! Only the host itself can answer some requests; they are passed to it alone:
//! - A unicast request, which asks whether the host is still there: only group packets come here.
//! - A probe, by which a host checks that an address is free before it takes it (RFC 5227 §2.1.1,
//!   RFC 4862 §5.4). The known host may have given up the address, and a wrong answer would make
//!   the prober decline it for ever.
//! - A request for an IPv6 link-local address: the answer contains whether the host is a router,
//!   and hosts remove a router that says it is none (RFC 4861 §7.2.5).

use std::net::IpAddr;

use bellrock_api::packet::{Arp, EthHeader, NeighbourMessage, eth_type};
use bellrock_api::{Host, Hosts};

/// Answer to a request for the host with an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NeighbourAnswer<'h> {
    /// This frame answers it.
    Frame(Vec<u8>),
    /// This host must answer it.
    By(&'h Host),
}

/// Returns the answer to a group frame, if it requests the address of a known host that is not the
/// sender, and whose frames do not belong to `others`.
pub(super) fn answer<'h>(
    frame: &[u8],
    vlan: Option<u16>,
    hosts: &'h Hosts,
    others: impl Fn(&Host) -> bool,
) -> Option<NeighbourAnswer<'h>> {
    let header = EthHeader::read(frame)?;
    let is_for_us = |host: &&Host| host.id.mac != header.src && !others(host);
    let owner_of = |ip: IpAddr| hosts.by_ip(ip, vlan).filter(is_for_us);
    if header.eth_type == eth_type::ARP {
        let request = Arp::of(&header).filter(Arp::is_request)?;
        let owner = owner_of(request.target_ip.into())?;
        return Some(match request.is_probe() {
            true => NeighbourAnswer::By(owner),
            false => NeighbourAnswer::Frame(request.reply_to(header.src, owner.id.mac)),
        });
    }
    let solicitation = NeighbourMessage::of(&header)?;
    let (asker, target) = (solicitation.source, solicitation.requested()?);
    let owner = owner_of(target.into())?;
    if asker.is_unspecified() || target.is_unicast_link_local() {
        return Some(NeighbourAnswer::By(owner));
    }
    // From a proxy, which does not override (RFC 4861 §7.2.8).
    let (kind, flags) = (NeighbourMessage::ADVERTISEMENT, NeighbourMessage::SOLICITED);
    let reply = header.answer(owner.id.mac).neighbour(kind, flags, (target, asker), target);
    Some(NeighbourAnswer::Frame(reply))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock_api::packet::{Ethernet, MIN_FRAME_BYTES, VlanTag};
    use bellrock_api::{Dpid, HostId, MacAddr, Port, SwitchPort};
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    use super::*;

    const ASKER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OWNER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    fn nobody(_: &Host) -> bool {
        false
    }

    const SOLICITED_NODE: MacAddr = MacAddr([0x33, 0x33, 0xff, 0, 0, 2]);

    fn hosts(vlan: Option<u16>) -> Hosts {
        let mut hosts = Hosts::default();
        hosts.insert(Host {
            id: HostId::new(OWNER, vlan),
            at: SwitchPort::new(Dpid(1), Port(2)),
            addresses: ["10.0.0.2", "2001:db8::2", "fe80::2"].map(|ip| ip.parse().unwrap()).into(),
            since: Duration::ZERO,
        });
        hosts
    }

    /// An ARP request, optionally in a VLAN.
    fn request(from: MacAddr, sender: &str, target: &str, vlan: Option<u16>) -> Vec<u8> {
        let [sender, target] = [sender, target].map(|ip| ip.parse().unwrap());
        let ethernet = Ethernet::new(from, MacAddr::BROADCAST);
        let ethernet = vlan.map_or(ethernet, |id| ethernet.vlan(VlanTag { id, pcp: 0 }));
        ethernet.arp(Arp::REQUEST, (from, sender), (MacAddr::ZERO, target))
    }

    fn solicitation(source: &str, target: &str) -> Vec<u8> {
        let [source, group, target] =
            [source, "ff02::1:ff00:2", target].map(|ip| ip.parse().unwrap());
        let ethernet = Ethernet::new(ASKER, SOLICITED_NODE);
        ethernet.neighbour(NeighbourMessage::SOLICITATION, 0, (source, group), target)
    }

    #[test]
    fn an_arp_request_is_answered_for_the_host_that_has_the_address() {
        for vlan in [None, Some(7)] {
            let hosts = hosts(vlan);
            let frame = request(ASKER, "10.0.0.1", "10.0.0.2", vlan);
            let Some(NeighbourAnswer::Frame(reply)) = answer(&frame, vlan, &hosts, nobody) else {
                panic!("{vlan:?}")
            };
            assert_eq!((&reply[..6], &reply[6..12]), (&ASKER.0[..], &OWNER.0[..]));
            let tag_len = if vlan.is_some() { VlanTag::BYTES } else { 0 };
            assert_eq!(reply[12..14 + tag_len], frame[12..14 + tag_len], "type and tag");
            assert_eq!(
                (reply.len(), reply[42 + tag_len..].iter().max()),
                (MIN_FRAME_BYTES, Some(&0))
            );
            let arp = Arp::read(&reply).unwrap();
            assert_eq!(arp.operation, Arp::REPLY);
            assert_eq!((arp.sender_mac, arp.sender_ip), (OWNER, [10, 0, 0, 2].into()));
            assert_eq!((arp.target_mac, arp.target_ip), (ASKER, [10, 0, 0, 1].into()));
        }
    }

    #[test]
    fn requests_for_unknown_hosts_or_for_the_asker_get_no_answer() {
        let hosts = hosts(None);
        assert_eq!(
            answer(&request(ASKER, "10.0.0.1", "10.0.0.3", None), None, &hosts, nobody),
            None
        );
        assert_eq!(
            answer(&request(ASKER, "10.0.0.1", "10.0.0.2", Some(7)), Some(7), &hosts, nobody),
            None
        );
        assert_eq!(
            answer(&request(OWNER, "10.0.0.1", "10.0.0.2", None), None, &hosts, nobody),
            None
        );
        assert_eq!(
            answer(&request(ASKER, "10.0.0.2", "10.0.0.2", None), None, &hosts, nobody),
            None
        );
        assert_eq!(answer(&solicitation("2001:db8::1", "2001:db8::3"), None, &hosts, nobody), None);
        for (frame, needed) in [
            (request(ASKER, "10.0.0.1", "10.0.0.2", None), 42),
            (solicitation("::", "fe80::2"), 78),
        ] {
            for len in 0..needed {
                assert_eq!(answer(&frame[..len], None, &hosts, nobody), None, "cut to {len}");
            }
        }
    }

    #[test]
    fn a_solicitation_is_answered_with_an_advertisement() {
        let hosts = hosts(None);
        let frame = solicitation("2001:db8::1", "2001:db8::2");
        let Some(NeighbourAnswer::Frame(reply)) = answer(&frame, None, &hosts, nobody) else {
            panic!("no frame")
        };
        let packet = SlicedPacket::from_ethernet(&reply).unwrap();
        let Some(NetSlice::Ipv6(ip)) = &packet.net else { panic!("no IPv6") };
        let Some(TransportSlice::Icmpv6(icmp)) = &packet.transport else { panic!("no ICMPv6") };
        let header = ip.header();
        assert_eq!(header.destination_addr().to_string(), "2001:db8::1");
        assert!(icmp.is_checksum_valid(header.source(), header.destination()));
        assert_eq!(reply[..6], ASKER.0);
        let flags = NeighbourMessage::SOLICITED;
        assert_eq!((icmp.type_u8(), icmp.slice()[4]), (NeighbourMessage::ADVERTISEMENT, flags));
        assert_eq!(icmp.slice()[26..], OWNER.0);
    }

    #[test]
    fn whether_an_address_is_still_its_own_only_the_host_says_itself() {
        let hosts = hosts(None);
        for probe in
            [request(ASKER, "0.0.0.0", "10.0.0.2", None), solicitation("::", "2001:db8::2")]
        {
            let asked = answer(&probe, None, &hosts, nobody);
            let Some(NeighbourAnswer::By(host)) = asked else { panic!("{asked:?}") };
            assert_eq!(host.id.mac, OWNER);
        }
    }

    #[test]
    fn whether_a_neighbour_is_a_router_only_he_says_himself() {
        let hosts = hosts(None);
        let asked = answer(&solicitation("fe80::1", "fe80::2"), None, &hosts, nobody);
        let Some(NeighbourAnswer::By(host)) = asked else { panic!("{asked:?}") };
        assert_eq!(host.id.mac, OWNER);
    }
}
