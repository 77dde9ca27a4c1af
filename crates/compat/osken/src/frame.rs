//! Frames whose headers os-ken's packet library reads without raising an exception, and without
//! a look at what is not asked for.
//!
//! The library reads all headers at once. Here a frame is only looked at: which headers would be
//! read. Frames with others than these, or with ports for which it reads further, are read by the
//! library at once, as before, so that its exceptions come where they came.

use bellrock_api::packet::{EthHeader, VlanTag, eth_type};

/// Headers that the library reads, as bits.
pub(super) const ETHERNET: u32 = 1;
pub(super) const VLAN: u32 = 2;
pub(super) const ARP: u32 = 4;
pub(super) const IPV4: u32 = 8;
pub(super) const IPV6: u32 = 16;
pub(super) const UDP: u32 = 32;
pub(super) const TCP: u32 = 64;

const ARP_LEN: usize = 28;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const UDP_LEN: usize = 8;
const TCP_LEN: usize = 20;

const PROTO_TCP: u8 = 6;
const PROTO_UDP: u8 = 17;

/// Ports of UDP behind whose header the library reads on: DHCP, VXLAN, Geneve.
const UDP_PORTS: [u16; 7] = [67, 68, 546, 547, 4789, 6081, 8472];
/// Ports of TCP behind whose header the library reads on: BGP, Zebra, OpenFlow.
const TCP_PORTS: [u16; 4] = [179, 2600, 6633, 6653];

/// Returns the headers that the library reads. `None`: it reads others too, or may raise.
pub(super) fn headers(frame: &[u8]) -> Option<u32> {
    let (head, mut rest) = header::<{ EthHeader::BYTES }>(frame)?;
    let mut found = ETHERNET;
    let mut kind = u16::from_be_bytes([head[12], head[13]]);
    while kind == eth_type::VLAN {
        let Some((tag, after)) = header::<{ VlanTag::BYTES }>(rest) else { return Some(found) };
        found |= VLAN;
        kind = u16::from_be_bytes([tag[2], tag[3]]);
        rest = after;
    }
    match kind {
        eth_type::ARP => Some(found | if header::<ARP_LEN>(rest).is_some() { ARP } else { 0 }),
        eth_type::IPV4 => {
            let Some((head, _)) = header::<IPV4_LEN>(rest) else { return Some(found) };
            let start = usize::from(head[0] & 15) * 4;
            let end = usize::from(u16::from_be_bytes([head[2], head[3]])).min(rest.len());
            let payload = rest.get(start..end).unwrap_or_default();
            Some(found | IPV4 | transport(head[9], payload)?)
        }
        eth_type::IPV6 => {
            let Some((head, after)) = header::<IPV6_LEN>(rest) else { return Some(found) };
            let len = usize::from(u16::from_be_bytes([head[4], head[5]])).min(after.len());
            Some(found | IPV6 | transport(head[6], &after[..len])?)
        }
        _ => None,
    }
}

/// Splits a header off, if the library reads it: it reads none that is cut off, and nothing of
/// zeros.
fn header<const LEN: usize>(bytes: &[u8]) -> Option<(&[u8; LEN], &[u8])> {
    bytes.iter().any(|byte| *byte != 0).then(|| bytes.split_first_chunk())?
}

fn transport(protocol: u8, payload: &[u8]) -> Option<u32> {
    let (ports, len, found): (&[u16], _, _) = match protocol {
        PROTO_UDP => (&UDP_PORTS, UDP_LEN, UDP),
        PROTO_TCP => (&TCP_PORTS, TCP_LEN, TCP),
        _ => return None,
    };
    let Some(([a, b, c, d], _)) = header::<4>(payload) else { return Some(0) };
    if payload.len() < len {
        return Some(0);
    }
    let is_known = |port| ports.contains(&port);
    if is_known(u16::from_be_bytes([*a, *b])) || is_known(u16::from_be_bytes([*c, *d])) {
        return None;
    }
    // Its options are read too.
    if found == TCP && usize::from(payload[12] >> 4) * 4 > TCP_LEN {
        return None;
    }
    Some(found)
}
