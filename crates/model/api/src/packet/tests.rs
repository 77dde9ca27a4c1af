//! Built frames and replies, compared byte by byte and decoded by another library.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock_openflow::MacAddr;
use etherparse::{
    ArpEthIpv4Packet, ArpOperation, IpNumber, SlicedPacket, TcpHeader, TransportSlice,
};

use super::*;

const US: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const VIP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 100);
const HOST_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn ones_complement(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether the sum over the pseudo-header and the segment is all ones: then its checksum is right.
fn is_summed(frame: &[u8]) -> bool {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let net = packet.net.as_ref().unwrap();
    let (addresses, payload, header) = match net {
        etherparse::NetSlice::Ipv4(ip) => {
            let header = ip.header();
            let addresses = [header.source(), header.destination()].concat();
            (addresses, ip.payload(), ones_complement(header.slice()) == 0xffff)
        }
        etherparse::NetSlice::Ipv6(ip) => {
            let header = ip.header();
            ([header.source(), header.destination()].concat(), ip.payload(), true)
        }
        _ => return false,
    };
    let mut summed = addresses;
    if payload.ip_number == IpNumber::ICMP {
        summed.clear();
    } else {
        summed.extend_from_slice(&(payload.payload.len() as u32).to_be_bytes());
        summed.extend_from_slice(&[0, 0, 0, payload.ip_number.0]);
    }
    summed.extend_from_slice(payload.payload);
    header && ones_complement(&summed) == 0xffff
}

#[test]
fn frames_have_right_checksums_and_lengths_and_are_padded() {
    let vlan = VlanTag { id: 7, pcp: 5 };
    for ethernet in [Ethernet::new(US, HOST), Ethernet::new(US, HOST).vlan(vlan)] {
        for ip in [
            ethernet.ipv4(VIP, HOST_IP).dscp(46).ttl(9),
            ethernet.ipv6(Ipv6Addr::LOCALHOST, "2001:db8::2".parse().unwrap()).dscp(46).ttl(9),
        ] {
            for data in [&b""[..], b"odd", &[0xa5; 1000]] {
                let tcp = TcpHeader { syn: true, ..TcpHeader::new(80, 4000, 7, 512) };
                for frame in [
                    ip.udp(80, 4000, data).unwrap(),
                    ip.tcp(tcp, data).unwrap(),
                    ip.echo_request(1, 2, data).unwrap(),
                    ip.echo_reply(1, 2, data).unwrap(),
                    ip.unreachable(3, data).unwrap(),
                    ip.time_exceeded(data).unwrap(),
                ] {
                    assert!(frame.len() >= MIN_FRAME_BYTES && is_summed(&frame), "{frame:02x?}");
                    assert_eq!((&frame[..6], &frame[6..12]), (&HOST.0[..], &US.0[..]));
                    let tag = VlanTag::of(&frame);
                    assert_eq!(tag, (frame[12] == 0x81).then_some(vlan));
                }
            }
        }
    }
    let frame = Ethernet::new(US, HOST).ipv4(VIP, HOST_IP).udp(80, 4000, b"odd").unwrap();
    let packet = SlicedPacket::from_ethernet(&frame).unwrap();
    let Some(TransportSlice::Udp(udp)) = packet.transport else { unreachable!() };
    assert_eq!((udp.source_port(), udp.destination_port(), udp.payload()), (80, 4000, &b"odd"[..]));
}

#[test]
fn a_payload_of_any_protocol_stands_behind_an_ip_header() {
    let report = [0x16, 0, 0x09, 0x04, 224, 0, 0, 251];
    let frame = Ethernet::new(US, HOST).ipv4(VIP, HOST_IP).ttl(1).payload(2, &report).unwrap();
    assert_eq!((frame[23], &frame[34..42]), (2, &report[..]));
    let ip = Ethernet::new(US, HOST).ipv4(VIP, HOST_IP);
    assert!(ip.payload(2, &[0; 65_516]).is_err());
}

#[test]
fn an_error_returns_as_much_of_a_packet_as_it_may() {
    let original = [0xa5; 1500];
    let v4 = Ethernet::new(US, HOST).ipv4(VIP, HOST_IP).unreachable(1, &original).unwrap();
    assert_eq!((v4.len(), v4[34], v4[35]), (14 + 576, 3, 1));
    let six = Ethernet::new(US, HOST).ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    let v6 = six.time_exceeded(&original).unwrap();
    assert_eq!((v6.len(), v6[54], v6[55]), (14 + 1280, 3, 0));
}

#[test]
fn a_payload_that_no_ip_packet_holds_is_refused() {
    let ip = Ethernet::new(US, HOST).ipv4(VIP, HOST_IP);
    assert!(ip.udp(1, 2, &[0; 65_507]).is_ok());
    assert_eq!(ip.udp(1, 2, &[0; 65_508]), Err(TooLong { bytes: 65_508 }));
    assert_eq!(ip.echo_request(1, 2, &[0; 70_000]), Err(TooLong { bytes: 70_000 }));
}

#[test]
fn a_header_has_the_outermost_tag_or_all() {
    let (ends, kind) = ([HOST.0, US.0].concat(), [8, 0, 0x45]);
    let (tag, outer, old) = ([0x81, 0, 0x60, 7], [0x88, 0xa8, 0, 9], [0x91, 0, 0, 3]);
    let vlan = Some(VlanTag { id: 7, pcp: 3 });
    for (tags, read, read_all) in [
        (vec![], (None, eth_type::IPV4), (None, eth_type::IPV4)),
        (vec![tag], (vlan, eth_type::IPV4), (vlan, eth_type::IPV4)),
        (vec![tag, outer, tag], (vlan, eth_type::PROVIDER_VLAN), (vlan, eth_type::IPV4)),
        (vec![old, tag], (None, eth_type::OLD_PROVIDER_VLAN), (None, eth_type::IPV4)),
    ] {
        let frame = [&ends[..], tags.as_flattened(), &kind].concat();
        let header = EthHeader::read(&frame).unwrap();
        assert_eq!((header.dst, header.src), (HOST, US));
        assert_eq!((header.vlan(), header.eth_type), read, "{tags:x?}");
        let header = EthHeader::read_tags(&frame, Ethernet::MAX_TAGS).unwrap();
        assert_eq!((header.vlan(), header.eth_type), read_all, "{tags:x?}");
        assert_eq!(header.payload, [0x45]);
        let answer = header.answer(HOST).payload(eth_type::IPV4, &[]);
        assert_eq!(answer[..12], [US.0, HOST.0].concat());
        assert_eq!(&answer[12..12 + tags.len() * VlanTag::BYTES], tags.as_flattened());
        for len in 0..frame.len() - 1 {
            assert_eq!(EthHeader::read_tags(&frame[..len], usize::MAX), None, "{len}");
        }
    }
}

#[test]
fn a_request_is_answered_to_the_asker_alone() {
    let request = arp_request(HOST, HOST_IP, VIP);
    let expected = ArpEthIpv4Packet {
        operation: ArpOperation::REQUEST,
        sender_mac: HOST.0,
        sender_ipv4: HOST_IP.octets(),
        target_mac: [0; 6],
        target_ipv4: VIP.octets(),
    };
    assert_eq!(request[14..42], expected.to_bytes());
    let arp = Arp::read(&request).unwrap();
    assert!(arp.is_request_for(VIP) && !arp.is_request_for(HOST_IP) && !arp.is_probe());
    let frame = arp.reply(US);
    assert_eq!((&frame[..6], &frame[6..12], frame.len()), (&HOST.0[..], &US.0[..], 60));
    let reply = Arp::read(&frame).unwrap();
    assert_eq!(reply.operation, Arp::REPLY);
    assert_eq!((reply.sender_mac, reply.sender_ip), (US, VIP));
    assert_eq!((reply.target_mac, reply.target_ip), (HOST, HOST_IP));
    assert!(!reply.is_request_for(VIP) && !reply.is_request_for(HOST_IP), "a reply asks nobody");
    let to_proxy = arp.reply_to(MacAddr::BROADCAST, US);
    assert_eq!((&to_proxy[..6], &to_proxy[6..]), (&[0xff; 6][..], &frame[6..]));
}

#[test]
fn a_probe_is_answered_and_an_announcement_is_not() {
    let probe = arp_request(HOST, Ipv4Addr::UNSPECIFIED, VIP);
    let probe = Arp::read(&probe).unwrap();
    assert!(probe.is_probe() && probe.is_request_for(VIP));
    let frame = probe.reply(US);
    assert_eq!(Arp::read(&frame).unwrap().target_ip, Ipv4Addr::UNSPECIFIED);
    let announcement = arp_announcement(HOST, VIP);
    let announcement = Arp::read(&announcement).unwrap();
    assert!(announcement.is_announcement() && !announcement.is_request_for(VIP));
}

#[test]
fn a_reply_keeps_the_tags_of_the_request() {
    let request = arp_request(HOST, HOST_IP, VIP);
    for tags in [&[0x81, 0, 0x60, 7][..], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7]] {
        let tagged = [&request[..12], tags, &request[12..]].concat();
        let frame = Arp::read(&tagged).unwrap().reply(US);
        assert_eq!(&frame[12..12 + tags.len()], tags);
        assert!(Arp::read(&frame).is_some_and(|arp| arp.sender_ip == VIP));
    }
}

#[test]
fn truncated_and_other_packets_are_no_arp() {
    let request = arp_request(HOST, HOST_IP, VIP);
    for len in 0..42 {
        assert_eq!(Arp::read(&request[..len]), None, "{len}");
    }
    for at in [12, 14, 16, 18, 19] {
        let mut other = request.clone();
        other[at] ^= 1;
        assert_eq!(Arp::read(&other), None, "{at}");
    }
}

#[test]
fn a_solicitation_is_answered_by_an_advertisement() {
    let vip: Ipv6Addr = "2001:db8::100".parse().unwrap();
    let solicited: Ipv6Addr = "ff02::1:ff00:100".parse().unwrap();
    let group = MacAddr([0x33, 0x33, 0xff, 0, 1, 0]);
    for (asker, to, flags) in [
        ("2001:db8::2".parse().unwrap(), HOST, 0x60),
        (Ipv6Addr::UNSPECIFIED, MacAddr([0x33, 0x33, 0, 0, 0, 1]), 0x20),
    ] {
        let ip = Ethernet::new(HOST, group).ipv6(asker, solicited);
        let frame = ip.ttl(255).icmpv6(135, 0, [0; 4], &vip.octets()).unwrap();
        let asked = Solicitation::read(&frame).unwrap();
        assert_eq!((asked.sender_mac, asked.sender_ip, asked.target), (HOST, asker, vip));
        let answer = asked.advertisement(US);
        assert!(is_summed(&answer));
        assert_eq!((&answer[..6], &answer[6..12]), (&to.0[..], &US.0[..]));
        assert_eq!((answer[21], answer[54], answer[58]), (255, 136, flags));
        assert_eq!((&answer[62..78], &answer[80..86]), (&vip.octets()[..], &US.0[..]));

        let routed = ip.ttl(254).icmpv6(135, 0, [0; 4], &vip.octets()).unwrap();
        assert_eq!(Solicitation::read(&routed), None, "it has passed a router");
    }
}

#[test]
fn messages_of_neighbour_discovery_have_the_addresses_of_their_senders() {
    let [source, target] = ["2001:db8::2", "2001:db8::100"].map(|ip| ip.parse().unwrap());
    let ethernet = Ethernet::new(US, HOST);
    for (kind, requested, target_mac) in [
        (NeighbourMessage::SOLICITATION, Some(target), None),
        (NeighbourMessage::ADVERTISEMENT, None, Some(US)),
    ] {
        let frame = ethernet.neighbour(kind, 0, (source, target), target);
        assert!(is_summed(&frame));
        let header = EthHeader::read(&frame).unwrap();
        let message = NeighbourMessage::of(&header).unwrap();
        assert_eq!((message.kind(), message.source), (Some(kind), source));
        assert_eq!((message.requested(), message.target()), (requested, Some(target)));
        assert_eq!((message.target_mac(), &frame[80..]), (target_mac, &US.0[..]));
        let cut = EthHeader { payload: &header.payload[..60], ..header };
        let message = NeighbourMessage::of(&cut).unwrap();
        assert_eq!((message.source, message.target(), message.target_mac()), (source, None, None));
    }
    let echo = ethernet.ipv6(source, target).ttl(254).echo_request(1, 2, &[]).unwrap();
    assert_eq!(NeighbourMessage::of(&EthHeader::read(&echo).unwrap()), None, "a router's");
}
