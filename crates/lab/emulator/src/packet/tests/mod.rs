//! Parsing and editing of packets.

mod edits;
mod fields;
mod properties;
mod tags;

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock_openflow::{MacAddr, Port, Version};

use super::build::{Eth, IpFields};
use super::{EthernetFrame, Packet};

const A: MacAddr = MacAddr([0, 0, 0, 0, 0, 0x0a]);
const B: MacAddr = MacAddr([0, 0, 0, 0, 0, 0x0b]);

fn eth() -> Eth {
    Eth::new(A, B)
}

fn ip4() -> IpFields {
    IpFields::v4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
}

fn ip6() -> IpFields {
    IpFields::v6(
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    )
}

fn read(frame: EthernetFrame) -> Packet {
    Packet::new(frame, Port(7), Version::V1_3)
}

/// An IPv6 fragment: the fragment header, then `payload`.
fn ipv6_fragment(protocol: u8, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![protocol, 0];
    bytes.extend((offset << 3 | u16::from(more)).to_be_bytes());
    bytes.extend([0, 0, 0, 9]);
    bytes.extend(payload);
    bytes
}
