//! Probes, which ask one host whether it is there: an ARP probe or a neighbour solicitation.

use std::net::{IpAddr, Ipv6Addr};

use bellrock_api::{HostId, MacAddr};

use super::frame::{ETH_TYPE_ARP, ETH_TYPE_IPV6, header_len};

/// Source address of probes, locally administered. Frames to it are answers.
pub const PROBE_SOURCE: MacAddr = MacAddr([0x02, b'B', b'R', 0, 0, 1]);

/// The link-local address of [`PROBE_SOURCE`] (RFC 4291, appendix A).
const PROBE_SOURCE_IPV6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x0042, 0x52ff, 0xfe00, 1);

/// Minimum length of an Ethernet frame, without its check sequence.
const SHORTEST_FRAME: usize = 60;

/// Returns the frame that asks a host whether it has an address.
///
/// An ARP probe has no sender address (RFC 5227 §1.1), so it changes nothing at the host.
pub(super) fn probe(host: HostId, ip: IpAddr) -> Vec<u8> {
    let mut frame = Vec::with_capacity(header_len(host.vlan) + 72);
    frame.extend(host.mac.0);
    frame.extend(PROBE_SOURCE.0);
    if let Some(vlan) = host.vlan {
        frame.extend([0x81, 0x00]);
        frame.extend(vlan.to_be_bytes());
    }
    match ip {
        IpAddr::V4(ip) => {
            frame.extend(ETH_TYPE_ARP.to_be_bytes());
            frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
            frame.extend(PROBE_SOURCE.0);
            frame.extend([0; 4]);
            frame.extend([0; 6]);
            frame.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            frame.extend(ETH_TYPE_IPV6.to_be_bytes());
            let message = solicitation(ip);
            frame.extend([0x60, 0, 0, 0, 0, message.len() as u8, 58, 255]);
            frame.extend(PROBE_SOURCE_IPV6.octets());
            frame.extend(ip.octets());
            frame.extend(message);
        }
    }
    if frame.len() < SHORTEST_FRAME {
        frame.resize(SHORTEST_FRAME, 0);
    }
    frame
}

/// Returns a neighbour solicitation (RFC 4861 §4.3) with the address to answer to.
fn solicitation(target: Ipv6Addr) -> [u8; 32] {
    let mut message = [0; 32];
    let [a, b, c, d, e, f] = PROBE_SOURCE.0;
    message[0] = 135;
    message[8..24].copy_from_slice(&target.octets());
    message[24..].copy_from_slice(&[1, 1, a, b, c, d, e, f]);
    let sum = checksum(PROBE_SOURCE_IPV6, target, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Returns the checksum of an ICMPv6 message (RFC 8200 §8.1).
fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8; 32]) -> u16 {
    let pseudo = [0, 0, 0, message.len() as u8, 0, 0, 0, 58];
    let all = [&source.octets()[..], &destination.octets(), &pseudo, message].concat();
    let (words, _) = all.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::super::frame::{FrameHeader, SenderAddresses};
    use super::*;

    #[test]
    fn a_probe_is_for_one_host_and_tells_nothing_of_its_sender() {
        let host = HostId::new(MacAddr([2, 0, 0, 0, 0, 7]), Some(9));
        let frame = probe(host, "10.0.0.7".parse().unwrap());
        let read = FrameHeader::read(&frame).unwrap();
        assert_eq!((read.dst, read.vlan, read.eth_type), (host.mac, Some(9), ETH_TYPE_ARP));
        assert_eq!(read.sender_addresses(), SenderAddresses::Nothing);
        assert_eq!(frame.len(), SHORTEST_FRAME);
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
        assert_eq!(
            FrameHeader::read(&frame).unwrap().sender_addresses(),
            SenderAddresses::Address(PROBE_SOURCE_IPV6.into())
        );
    }
}
