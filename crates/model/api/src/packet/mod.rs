//! Packets that come to the controller, and packets that an app builds.
//!
//! [`Ethernet`] builds frames, with checksums and padding; [`EthHeader`] reads their headers.
//! [`Arp`] decodes ARP and builds the reply; [`Solicitation`] does the same for IPv6.
//! [`Switch::answer_arp`](crate::Switch::answer_arp) does both in one call, and
//! [`Switch::send_packet`](crate::Switch::send_packet) sends a frame.

mod arp;
mod build;
mod header;
mod neighbour;
#[cfg(test)]
mod tests;

use std::ops::Deref;

pub use arp::{Arp, arp_announcement, arp_request};
pub use build::{Ethernet, Ip, MIN_FRAME_BYTES, TooLong};
pub use header::{EthHeader, VlanTag, eth_type};
pub use neighbour::{NeighbourMessage, Solicitation};

use bellrock_openflow::{MacAddr, PacketInView};

/// A packet_in, with access to the headers of its packet.
///
/// It derefs to the message itself ([`PacketInView`]). Its bytes are those that the switch sent:
/// no app can change them for the next one.
///
/// ```compile_fail,E0594
/// # use bellrock_api::PacketIn;
/// fn forge(packet: &mut PacketIn<'_>) {
///     packet.data()[0] = 0xff;
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'b>(PacketInView<'b>);

impl<'b> PacketIn<'b> {
    /// Wraps a message.
    #[must_use]
    #[inline(always)]
    pub fn new(message: PacketInView<'b>) -> Self {
        PacketIn(message)
    }

    /// Ethernet destination. `None` if the packet is shorter than an Ethernet header.
    #[must_use]
    #[inline]
    pub fn eth_dst(&self) -> Option<MacAddr> {
        self.data().first_chunk().copied().map(MacAddr)
    }

    /// Ethernet source. `None` if the packet is shorter than an Ethernet header.
    #[must_use]
    #[inline]
    pub fn eth_src(&self) -> Option<MacAddr> {
        self.data().get(6..)?.first_chunk().copied().map(MacAddr)
    }

    /// The outermost VLAN tag, of type 0x8100 or 0x88a8.
    #[must_use]
    #[inline]
    pub fn vlan(&self) -> Option<VlanTag> {
        VlanTag::of(self.data())
    }

    /// The ARP packet, if it is ARP for IPv4.
    #[must_use]
    pub fn arp(&self) -> Option<Arp<'b>> {
        Arp::read(self.data())
    }

    /// All headers that can be parsed.
    ///
    /// # Errors
    /// The Ethernet header cannot be parsed.
    pub fn headers(&self) -> Result<etherparse::LaxSlicedPacket<'b>, etherparse::err::LenError> {
        etherparse::LaxSlicedPacket::from_ethernet(self.data())
    }
}

impl<'b> Deref for PacketIn<'b> {
    type Target = PacketInView<'b>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
