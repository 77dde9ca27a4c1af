//! Packets that come to the controller, and packets that an app builds.
//!
//! [`Ethernet`] builds frames, with checksums and padding. [`Arp`] decodes ARP and builds the
//! reply; [`Solicitation`] does the same for IPv6.
//! [`Switch::answer_arp`](crate::Switch::answer_arp) does both in one call, and
//! [`Switch::send_packet`](crate::Switch::send_packet) sends a frame.

mod arp;
mod build;
mod solicitation;
#[cfg(test)]
mod tests;

use std::ops::Deref;

pub use arp::{Arp, arp_announcement, arp_request};
pub use build::{Ethernet, Ip, MIN_FRAME_BYTES, TooLong};
pub use solicitation::Solicitation;

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

/// A customer's or provider's VLAN tag (IEEE 802.1Q §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// VLAN id, 12 bits. Zero means a priority without a VLAN.
    pub id: u16,
    /// Priority, 3 bits.
    pub pcp: u8,
}

const ETHERTYPE_AT: usize = 12;
const TPID_CUSTOMER: [u8; 2] = [0x81, 0x00];
const TPID_PROVIDER: [u8; 2] = [0x88, 0xa8];

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
        PacketIn::vlan_of(self.data())
    }

    #[inline]
    fn vlan_of(frame: &[u8]) -> Option<VlanTag> {
        let [a, b, tci_high, tci_low] = *frame.get(ETHERTYPE_AT..)?.first_chunk()?;
        if ![TPID_CUSTOMER, TPID_PROVIDER].contains(&[a, b]) {
            return None;
        }
        let tci = u16::from_be_bytes([tci_high, tci_low]);
        Some(VlanTag { id: tci & 0x0fff, pcp: (tci >> 13) as u8 })
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
