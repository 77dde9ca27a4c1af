//! Answers address requests (ARP, neighbour solicitations) for hosts, so that none is flooded.
//!
//! Only the host itself can answer some requests; they are passed to it alone:
//! - A unicast request, which asks whether the host is still there: only group packets come here.
//! - A probe, by which a host checks that an address is free before it takes it (RFC 5227 §2.1.1,
//!   RFC 4862 §5.4). The known host may have given up the address, and a wrong answer would make
//!   the prober decline it for ever.
//! - A request for an IPv6 link-local address: the answer contains whether the host is a router,
//!   and hosts remove a router that says it is none (RFC 4861 §7.2.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bellrock_api::{Host, Hosts, MacAddr};

const ETHERNET_LEN: usize = 14;
/// Minimum bytes of a (padded) Ethernet frame without its check sequence (IEEE 802.3 §3.2.8).
const SHORTEST_FRAME: usize = 60;
const TAG_LEN: usize = 4;
const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
const ARP: [u8; 2] = [0x08, 0x06];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// ARP request for IPv4 over Ethernet, and the answer (RFC 826).
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
const ARP_REPLY: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 2];

const ICMPV6: u8 = 58;
/// Only neighbours can send a packet that arrives with it (RFC 4861 §7.1).
const HOP_LIMIT: u8 = 255;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Marks the answer to a request (RFC 4861 §4.4).
const SOLICITED: u8 = 0x40;
const TARGET_LINK_ADDRESS: u8 = 2;

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
    let (addresses, rest) = frame.split_at_checked(ETHERNET_LEN - 2)?;
    let (tag, rest) = match TAGS.iter().any(|tag| rest.starts_with(tag)) {
        true => rest.split_at_checked(TAG_LEN)?,
        false => rest.split_at(0),
    };
    let asker = MacAddr(*addresses.last_chunk()?);
    let (eth_type, payload) = rest.split_first_chunk()?;
    let is_for_us = |host: &&Host| host.id.mac != asker && !others(host);
    let owner_of = |ip: IpAddr| hosts.by_ip(ip, vlan).filter(is_for_us);
    let (owner, reply) = match *eth_type {
        ARP => {
            let request = ArpRequest::read(payload)?;
            let owner = owner_of(request.target.into())?;
            (owner, (!request.is_probe()).then(|| request.reply(owner.id.mac)))
        }
        IPV6 => {
            let solicitation = NeighbourRequest::read(payload)?;
            let owner = owner_of(solicitation.target.into())?;
            let is_its_own = solicitation.is_probe() || solicitation.target.is_unicast_link_local();
            (owner, (!is_its_own).then(|| solicitation.reply(owner.id.mac)))
        }
        _ => return None,
    };
    let Some(reply) = reply else { return Some(NeighbourAnswer::By(owner)) };
    let mut frame = [&asker.0[..], &owner.id.mac.0, tag, eth_type, &reply].concat();
    frame.resize(frame.len().max(SHORTEST_FRAME), 0);
    Some(NeighbourAnswer::Frame(frame))
}

struct ArpRequest {
    sender: [u8; 10],
    target: Ipv4Addr,
}

impl ArpRequest {
    /// Reads an ARP request. `None` also for an announcement of the sender's own address.
    fn read(payload: &[u8]) -> Option<Self> {
        let (head, rest) = payload.split_first_chunk()?;
        let (sender, rest) = rest.split_first_chunk::<10>()?;
        let target: &[u8; 4] = rest.get(6..)?.first_chunk()?;
        let is_request = *head == ARP_REQUEST && !sender.ends_with(target);
        is_request.then(|| ArpRequest { sender: *sender, target: Ipv4Addr::from(*target) })
    }

    /// Returns whether the sender has no address yet (RFC 5227 §2.1.1).
    fn is_probe(&self) -> bool {
        self.sender.ends_with(&Ipv4Addr::UNSPECIFIED.octets())
    }

    fn reply(&self, owner: MacAddr) -> Vec<u8> {
        [&ARP_REPLY[..], &owner.0, &self.target.octets(), &self.sender].concat()
    }
}

struct NeighbourRequest {
    source: Ipv6Addr,
    target: Ipv6Addr,
}

impl NeighbourRequest {
    /// Reads a neighbour solicitation (RFC 4861 §4.3).
    fn read(payload: &[u8]) -> Option<Self> {
        let (header, message) = payload.split_first_chunk::<40>()?;
        let is_one = header[6..8] == [ICMPV6, HOP_LIMIT] && message.starts_with(&[SOLICITATION, 0]);
        let source: &[u8; 16] = header.get(8..)?.first_chunk()?;
        let target: &[u8; 16] = message.get(8..)?.first_chunk()?;
        let [source, target] = [source, target].map(|octets| Ipv6Addr::from(*octets));
        is_one.then_some(NeighbourRequest { source, target })
    }

    /// Returns whether the sender wants the address for itself (RFC 4862 §5.4).
    fn is_probe(&self) -> bool {
        self.source.is_unspecified()
    }

    /// A neighbour advertisement from a proxy, which does not override (RFC 4861 §7.2.8).
    fn reply(&self, owner: MacAddr) -> Vec<u8> {
        let mut message = [0; 32];
        [message[0], message[4]] = [ADVERTISEMENT, SOLICITED];
        message[8..24].copy_from_slice(&self.target.octets());
        [message[24], message[25]] = [TARGET_LINK_ADDRESS, 1];
        message[26..].copy_from_slice(&owner.0);
        let header = [0x60, 0, 0, 0, 0, message.len() as u8, ICMPV6, HOP_LIMIT];
        let addresses = [self.target.octets(), self.source.octets()].concat();
        let sum = checksum(&addresses, &message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        [&header[..], &addresses, &message].concat()
    }
}

/// The checksum of an ICMPv6 message (RFC 8200 §8.1).
fn checksum(addresses: &[u8], message: &[u8; 32]) -> u16 {
    let all = [addresses, &[0, 0, 0, message.len() as u8, 0, 0, 0, ICMPV6], message].concat();
    let (words, _) = all.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellrock_api::{Dpid, HostId, Port, SwitchPort};
    use etherparse::{
        ArpEthIpv4Packet, ArpHardwareId, ArpOperation, ArpPacket, EtherType, Icmpv6Type, NetSlice,
        PacketBuilder, SlicedPacket, TransportSlice,
    };

    use super::*;

    const ASKER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OWNER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    fn nobody(_: &Host) -> bool {
        false
    }

    const SOLICITED_NODE: [u8; 6] = [0x33, 0x33, 0xff, 0, 0, 2];

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
        let [sender, target] = [sender, target].map(|ip| ip.parse::<Ipv4Addr>().unwrap().octets());
        let arp = ArpPacket::new(
            ArpHardwareId::ETHERNET,
            EtherType::IPV4,
            ArpOperation::REQUEST,
            &from.0,
            &sender,
            &[0; 6],
            &target,
        );
        let mut frame = Vec::new();
        let begin = PacketBuilder::ethernet2(from.0, MacAddr::BROADCAST.0);
        match vlan {
            Some(id) => {
                begin.single_vlan(id.try_into().unwrap()).arp(arp.unwrap()).write(&mut frame)
            }
            None => begin.arp(arp.unwrap()).write(&mut frame),
        }
        .unwrap();
        frame
    }

    fn solicitation(source: &str, target: &str) -> Vec<u8> {
        let source: Ipv6Addr = source.parse().unwrap();
        let target: Ipv6Addr = target.parse().unwrap();
        let group: Ipv6Addr = "ff02::1:ff00:2".parse().unwrap();
        let mut frame = Vec::new();
        PacketBuilder::ethernet2(ASKER.0, SOLICITED_NODE)
            .ipv6(source.octets(), group.octets(), HOP_LIMIT)
            .icmpv6(Icmpv6Type::NeighborSolicitation)
            .write(&mut frame, &target.octets())
            .unwrap();
        frame
    }

    fn arp_of(frame: &[u8]) -> ArpEthIpv4Packet {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        let Some(NetSlice::Arp(arp)) = packet.net else { panic!("no ARP") };
        arp.to_packet().try_eth_ipv4().unwrap()
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
            let tag_len = if vlan.is_some() { TAG_LEN } else { 0 };
            assert_eq!(reply[12..14 + tag_len], frame[12..14 + tag_len], "type and tag");
            assert_eq!(
                (reply.len(), reply[42 + tag_len..].iter().max()),
                (SHORTEST_FRAME, Some(&0))
            );
            let arp = arp_of(&reply);
            assert_eq!(arp.operation, ArpOperation::REPLY);
            assert_eq!((arp.sender_mac, arp.sender_ipv4), (OWNER.0, [10, 0, 0, 2]));
            assert_eq!((arp.target_mac, arp.target_ipv4), (ASKER.0, [10, 0, 0, 1]));
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
        for frame in [request(ASKER, "10.0.0.1", "10.0.0.2", None), solicitation("::", "fe80::2")] {
            for len in 0..frame.len() {
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
        assert_eq!(header.destination_addr(), "2001:db8::1".parse::<Ipv6Addr>().unwrap());
        assert!(icmp.is_checksum_valid(header.source(), header.destination()));
        assert_eq!(reply[..6], ASKER.0);
        assert_eq!((icmp.slice()[0], icmp.slice()[4]), (ADVERTISEMENT, SOLICITED));
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
