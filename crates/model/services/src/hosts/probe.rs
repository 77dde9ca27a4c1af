//! Probes, which ask one host whether it is there: an ARP probe or a neighbour solicitation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bellrock_api::packet::{Arp, Ethernet, NeighbourMessage, VlanTag};
use bellrock_api::{HostId, MacAddr};

/// Source address of probes, locally administered. Frames to it are answers.
pub const PROBE_SOURCE: MacAddr = MacAddr([0x02, b'B', b'R', 0, 0, 1]);

/// The link-local address of [`PROBE_SOURCE`] (RFC 4291, appendix A).
const PROBE_SOURCE_IPV6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x0042, 0x52ff, 0xfe00, 1);

/// Returns the frame that asks a host whether it has an address.
///
/// An ARP probe has no sender address (RFC 5227 §1.1), so it changes nothing at the host.
pub(super) fn probe(host: HostId, ip: IpAddr) -> Vec<u8> {
    let ethernet = Ethernet::new(PROBE_SOURCE, host.mac);
    let ethernet = host.vlan.map_or(ethernet, |id| ethernet.vlan(VlanTag { id, pcp: 0 }));
    match ip {
        IpAddr::V4(ip) => {
            let sender = (PROBE_SOURCE, Ipv4Addr::UNSPECIFIED);
            ethernet.arp(Arp::REQUEST, sender, (MacAddr::ZERO, ip))
        }
        IpAddr::V6(ip) => {
            let kind = NeighbourMessage::SOLICITATION;
            ethernet.neighbour(kind, 0, (PROBE_SOURCE_IPV6, ip), ip)
        }
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::packet::{EthHeader, MIN_FRAME_BYTES, eth_type};

    use super::super::frame::{SenderAddresses, sender};
    use super::*;

    #[test]
    fn a_probe_is_for_one_host_and_tells_nothing_of_its_sender() {
        let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 7]), Some(9));
        let frame = probe(host, "10.0.0.7".parse().unwrap());
        let read = EthHeader::read(&frame).unwrap();
        assert_eq!((read.dst, read.eth_type), (host.mac, eth_type::ARP));
        assert_eq!(sender(&read), HostId::new(PROBE_SOURCE, Some(9)));
        assert_eq!(SenderAddresses::of(&read), SenderAddresses::Nothing);
        assert_eq!(frame.len(), MIN_FRAME_BYTES);
        assert_eq!(frame[42..46], [10, 0, 0, 7]);
    }

    #[test]
    fn a_solicitation_has_a_right_checksum_and_says_where_to_answer() {
        let ip: Ipv6Addr = "fe80::7".parse().unwrap();
        let frame = probe(HostId::new(MacAddr([2, 0, 0, 0, 0, 7]), None), ip.into());
        let read = etherparse::SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(etherparse::TransportSlice::Icmpv6(icmp)) = read.transport else {
            panic!("ICMPv6")
        };
        let etherparse::Icmpv6Type::NeighborSolicitation = icmp.icmp_type() else {
            panic!("{icmp:?}")
        };
        let (from, to) = (PROBE_SOURCE_IPV6.octets(), ip.octets());
        assert!(icmp.is_checksum_valid(from, to));
        let stated = SenderAddresses::of(&EthHeader::read(&frame).unwrap());
        assert_eq!(stated, SenderAddresses::Address(PROBE_SOURCE_IPV6.into()));
    }
}
