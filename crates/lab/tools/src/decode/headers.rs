//! One line for the headers of a packet in a packet_in or packet_out, much as tcpdump prints it:
//! `02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff, ARP, who has 10.0.0.2, tell 10.0.0.1`.
//!
//! Hosts send these packets, so they may contain anything. The end of the line says what is cut off
//! or broken. No text of a packet is printed, only numbers and addresses.

use std::fmt::{self, Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock_openflow::MacAddr;
use etherparse::{
    ArpOperation, ArpPacketSlice, EtherType, Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type,
    IpNumber, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, LinkSlice, TcpSlice, TransportSlice,
};

/// Ethernet types that are printed by name and not decoded further.
const NAMES: [(u16, &str); 6] = [
    (0x0800, "IPv4"),
    (0x0806, "ARP"),
    (0x86dd, "IPv6"),
    (0x8847, "MPLS"),
    (0x88cc, "LLDP"),
    (0x8942, "BDDP"),
];

/// Ethernet types below this are lengths of IEEE 802.3 frames.
const FIRST_ETHER_TYPE: u16 = 0x0600;

/// Bytes of an IPv6 address. The payload of a neighbour discovery begins with its target address.
const IPV6_BYTES: usize = 16;

/// The headers of an Ethernet frame, as one line without its end.
pub(crate) struct Headers<'a>(pub &'a [u8]);

impl Display for Headers<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Ok(packet) = LaxSlicedPacket::from_ethernet(self.0) else {
            return write!(f, "{} bytes, too short for Ethernet", self.0.len());
        };
        let Some(LinkSlice::Ethernet2(ethernet)) = &packet.link else { return Ok(()) };
        write!(f, "{} > {}", MacAddr(ethernet.source()), MacAddr(ethernet.destination()))?;
        let mut eth_type = ethernet.ether_type();
        for extension in &packet.link_exts {
            if let LaxLinkExtSlice::Vlan(tag) = extension {
                eth_type = tag.ether_type();
                write!(f, ", VLAN {}", tag.vlan_identifier().value())?;
                if tag.priority_code_point().value() != 0 {
                    write!(f, " priority {}", tag.priority_code_point().value())?;
                }
            }
        }
        match &packet.net {
            Some(LaxNetSlice::Arp(packet)) => arp(packet, f)?,
            Some(net) => ip(net, packet.transport.as_ref(), f)?,
            None => name(eth_type, f)?,
        }
        match &packet.stop_err {
            Some(_) => f.write_str(", cut off or broken behind this"),
            None => Ok(()),
        }
    }
}

fn name(eth_type: EtherType, f: &mut Formatter<'_>) -> fmt::Result {
    match NAMES.iter().find(|(number, _)| *number == eth_type.0) {
        Some((_, name)) => write!(f, ", {name}"),
        None if eth_type.0 < FIRST_ETHER_TYPE => write!(f, ", IEEE 802.3"),
        None => write!(f, ", type {:#06x}", eth_type.0),
    }
}

fn arp(packet: &ArpPacketSlice<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let addresses = (
        packet.sender_hw_addr().try_into().map(MacAddr),
        <[u8; 4]>::try_from(packet.sender_protocol_addr()).map(Ipv4Addr::from),
        <[u8; 4]>::try_from(packet.target_protocol_addr()).map(Ipv4Addr::from),
    );
    let (Ok(hardware), Ok(sender), Ok(target)) = addresses else {
        return f.write_str(", ARP, not of IPv4 over Ethernet");
    };
    match packet.operation() {
        ArpOperation::REQUEST => write!(f, ", ARP, who has {target}, tell {sender}"),
        ArpOperation::REPLY => write!(f, ", ARP, {sender} is at {hardware}"),
        ArpOperation(other) => write!(f, ", ARP operation {other}, {sender} to {target}"),
    }
}

fn ip(
    net: &LaxNetSlice<'_>,
    transport: Option<&TransportSlice<'_>>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let (payload, ends) = match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            write!(f, ", IPv4")?;
            (ip.payload(), [header.source_addr().into(), header.destination_addr().into()])
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            write!(f, ", IPv6")?;
            (ip.payload(), [header.source_addr().into(), header.destination_addr().into()])
        }
        LaxNetSlice::Arp(_) => return Ok(()),
    };
    let [source, destination]: [std::net::IpAddr; 2] = ends;
    write!(f, ", {source} > {destination}")?;
    if payload.fragmented {
        f.write_str(", fragment")?;
    }
    match transport {
        Some(TransportSlice::Tcp(tcp)) => self::tcp(tcp, f),
        Some(TransportSlice::Udp(udp)) => {
            write!(f, ", UDP {} > {}", udp.source_port(), udp.destination_port())
        }
        Some(TransportSlice::Icmpv4(icmp)) => icmpv4(icmp, f),
        Some(TransportSlice::Icmpv6(icmp)) => icmpv6(icmp, f),
        _ => protocol(payload.ip_number, f),
    }
}

fn protocol(number: IpNumber, f: &mut Formatter<'_>) -> fmt::Result {
    match number.keyword_str() {
        Some(name) => write!(f, ", {name}"),
        None => write!(f, ", protocol {}", number.0),
    }
}

fn tcp(tcp: &TcpSlice<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, ", TCP {} > {}", tcp.source_port(), tcp.destination_port())?;
    let flags = [(tcp.syn(), "SYN"), (tcp.fin(), "FIN"), (tcp.rst(), "RST"), (tcp.ack(), "ACK")];
    let mut separator = ", ";
    for (_, name) in flags.into_iter().filter(|(is_set, _)| *is_set) {
        write!(f, "{separator}{name}")?;
        separator = "|";
    }
    Ok(())
}

fn icmpv4(icmp: &Icmpv4Slice<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    match icmp.icmp_type() {
        Icmpv4Type::EchoRequest(echo) => {
            write!(f, ", ICMP echo request, id {}, sequence {}", echo.id, echo.seq)
        }
        Icmpv4Type::EchoReply(echo) => {
            write!(f, ", ICMP echo reply, id {}, sequence {}", echo.id, echo.seq)
        }
        Icmpv4Type::DestinationUnreachable(_) => {
            write!(f, ", ICMP destination unreachable, code {}", icmp.code_u8())
        }
        Icmpv4Type::TimeExceeded(_) => write!(f, ", ICMP time exceeded, code {}", icmp.code_u8()),
        _ => write!(f, ", ICMP type {}, code {}", icmp.type_u8(), icmp.code_u8()),
    }
}

fn icmpv6(icmp: &Icmpv6Slice<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let target = || icmp.payload().first_chunk::<IPV6_BYTES>().copied().map(Ipv6Addr::from);
    match (icmp.icmp_type(), target()) {
        (Icmpv6Type::EchoRequest(echo), _) => {
            write!(f, ", ICMPv6 echo request, id {}, sequence {}", echo.id, echo.seq)
        }
        (Icmpv6Type::EchoReply(echo), _) => {
            write!(f, ", ICMPv6 echo reply, id {}, sequence {}", echo.id, echo.seq)
        }
        (Icmpv6Type::NeighborSolicitation, Some(target)) => {
            write!(f, ", ICMPv6 neighbour solicitation, who has {target}")
        }
        (Icmpv6Type::NeighborAdvertisement(_), Some(target)) => {
            write!(f, ", ICMPv6 neighbour advertisement, {target}")
        }
        (Icmpv6Type::RouterSolicitation, _) => f.write_str(", ICMPv6 router solicitation"),
        (Icmpv6Type::RouterAdvertisement(_), _) => f.write_str(", ICMPv6 router advertisement"),
        _ => write!(f, ", ICMPv6 type {}, code {}", icmp.type_u8(), icmp.code_u8()),
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, VlanId};
    use proptest::prelude::*;

    use super::*;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ENDS: &str = "02:00:00:00:00:01 > 02:00:00:00:00:02";

    fn line(frame: &[u8]) -> String {
        Headers(frame).to_string()
    }

    fn arp(operation: u8) -> Vec<u8> {
        let head = [&[0xff; 6][..], &A, &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation]].concat();
        [&head[..], &A, &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, 2]].concat()
    }

    #[test]
    fn arp_reads_as_a_question_and_an_answer() {
        let ends = "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff";
        assert_eq!(line(&arp(1)), format!("{ends}, ARP, who has 10.0.0.2, tell 10.0.0.1"));
        assert_eq!(line(&arp(2)), format!("{ends}, ARP, 10.0.0.1 is at 02:00:00:00:00:01"));
        assert_eq!(line(&arp(9)), format!("{ends}, ARP operation 9, 10.0.0.1 to 10.0.0.2"));
    }

    #[test]
    fn ip_has_addresses_ports_flags_and_messages() {
        let v4 = || PacketBuilder::ethernet2(A, B).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let v6 = || PacketBuilder::ethernet2(A, B).ipv6([1; 16], [2; 16], 64);
        let mut frame = Vec::new();
        v4().tcp(1234, 80, 1, 1000).syn().ack(7).write(&mut frame, b"x").unwrap();
        let expected = format!("{ENDS}, IPv4, 10.0.0.1 > 10.0.0.2, TCP 1234 > 80, SYN|ACK");
        assert_eq!(line(&frame), expected);

        frame.clear();
        v6().udp(53, 5353).write(&mut frame, b"x").unwrap();
        assert!(line(&frame).ends_with("202:202:202:202:202:202:202:202, UDP 53 > 5353"));

        frame.clear();
        v4().icmpv4_echo_request(7, 3).write(&mut frame, b"x").unwrap();
        assert!(line(&frame).ends_with(", ICMP echo request, id 7, sequence 3"));

        frame.clear();
        v6().icmpv6(Icmpv6Type::NeighborSolicitation).write(&mut frame, &[3; 16]).unwrap();
        let end = ", ICMPv6 neighbour solicitation, who has 303:303:303:303:303:303:303:303";
        assert!(line(&frame).ends_with(end), "{}", line(&frame));
    }

    #[test]
    fn tags_are_shown_and_other_types_named() {
        let mut frame = Vec::new();
        let tagged = PacketBuilder::ethernet2(A, B).single_vlan(VlanId::try_new(42).unwrap());
        let ip = tagged.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        ip.udp(1, 2).write(&mut frame, b"x").unwrap();
        assert_eq!(line(&frame), format!("{ENDS}, VLAN 42, IPv4, 10.0.0.1 > 10.0.0.2, UDP 1 > 2"));
        let with = |eth_type: [u8; 2]| [&B[..], &A, &eth_type, &[0; 30]].concat();
        assert_eq!(line(&with([0x88, 0xcc])), format!("{ENDS}, LLDP"));
        assert_eq!(line(&with([0x88, 0xb5])), format!("{ENDS}, type 0x88b5"));
    }

    #[test]
    fn a_truncated_packet_is_shown_as_cut_off() {
        assert_eq!(line(&[1, 2, 3]), "3 bytes, too short for Ethernet");
        let cut = &arp(1)[..20];
        assert!(line(cut).ends_with(", ARP, cut off or broken behind this"), "{}", line(cut));
    }

    proptest! {
        #[test]
        fn any_bytes_are_one_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(!line(&bytes).contains('\n'));
        }
    }
}
