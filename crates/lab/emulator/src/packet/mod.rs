//! Packets: Ethernet frames, their fields, and the edits of OpenFlow.
//!
//! # What it is
//! - An [`EthernetFrame`] is bytes. A [`Packet`] is a frame in a switch: its bytes, and its match
//!   fields as a [`PacketKey`]. The key stays right while the packet is edited.
//! - A [`KeyPattern`] is a match, ready to be compared with keys.
//! - [`build`] makes frames for hosts and tests.
//!
//! # What it is not
//! It knows no ports, tables or groups. Here, an action that does not fit the packet does nothing;
//! [`crate::datapath`] decides whether a controller may use it.
//!
//! # Checksums
//! Edits update checksums by the difference (RFC 1624). So a wrong checksum stays wrong, a
//! fragment's stays right for the whole packet, and a UDP checksum of zero stays "none".

pub mod build;
pub(crate) mod checksum;
mod digest;
mod edit;
mod frame;
mod key;
pub(crate) mod parse;
mod tags;
#[cfg(test)]
mod tests;
mod ttl;

use bellrock_openflow::{Field, Port, Version};

pub(crate) use digest::digest;
pub use frame::EthernetFrame;
pub use key::{KEY_WORDS, KeyPattern, PacketKey};
use parse::HeaderLayout;
pub use ttl::InvalidTtl;

/// A frame on its way through a switch.
#[derive(Debug)]
pub struct Packet {
    frame: EthernetFrame,
    key: PacketKey,
    layout: HeaderLayout,
    rules: Version,
}

impl Packet {
    /// A frame that arrived at `in_port`, with metadata and tunnel id 0. `rules`: the version that
    /// decides how fields are read where versions differ (fragments, ARP operations, second tags).
    #[must_use]
    pub fn new(frame: EthernetFrame, in_port: Port, rules: Version) -> Self {
        let mut key = PacketKey::default();
        key.put(Field::InPort, in_port.0.into());
        // The emulator has no logical ports, so both are the same (1.3.5 §7.2.3.7).
        key.put(Field::InPhyPort, in_port.0.into());
        key.put(Field::Metadata, 0);
        key.put(Field::TunnelId, 0);
        let layout = parse::parse(&frame, rules, &mut key);
        Packet { frame, key, layout, rules }
    }

    /// Its bytes, after the edits so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.frame
    }

    /// Its fields, after the edits so far.
    #[must_use]
    #[inline]
    pub fn key(&self) -> &PacketKey {
        &self.key
    }

    /// The port where it arrived.
    #[must_use]
    pub fn in_port(&self) -> Port {
        Port(self.key.number(Field::InPort) as u32)
    }

    /// The metadata that tables have written.
    #[must_use]
    pub fn metadata(&self) -> u64 {
        self.key.number(Field::Metadata)
    }

    /// Writes the bits of `mask` in the metadata (1.3.5 §5.9).
    pub fn write_metadata(&mut self, value: u64, mask: u64) {
        let metadata = self.metadata() & !mask | value & mask;
        self.key.put(Field::Metadata, metadata.into());
    }

    /// Whether it is a fragment of an IP packet, the first one or a later one.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.layout.fragment
    }

    /// Copies the packet; its bytes go into `frame`.
    #[must_use]
    pub fn copy(&self, mut frame: EthernetFrame) -> Packet {
        frame.clear();
        frame.extend_from_slice(&self.frame);
        Packet { frame, ..*self }
    }

    /// Its frame.
    #[must_use]
    pub fn into_frame(self) -> EthernetFrame {
        self.frame
    }
}
