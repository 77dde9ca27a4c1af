//! A packet for the controller, as an app sees it.

use std::ops::Deref;

use bellrock_openflow::{MacAddr, PacketInView};

/// A packet_in, with the headers of its packet readable.
///
/// It dereferences to the message itself ([`PacketInView`]).
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'b>(PacketInView<'b>);

/// A VLAN tag, a customer's or a provider's (IEEE 802.1Q §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// VLAN id, 12 bits. Zero: a priority without a VLAN.
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

    /// Its (outermost) VLAN tag, of type 0x8100 or 0x88a8.
    #[must_use]
    #[inline]
    pub fn vlan(&self) -> Option<VlanTag> {
        let [a, b, tci_high, tci_low] = *self.data().get(ETHERTYPE_AT..)?.first_chunk()?;
        if ![TPID_CUSTOMER, TPID_PROVIDER].contains(&[a, b]) {
            return None;
        }
        let tci = u16::from_be_bytes([tci_high, tci_low]);
        Some(VlanTag { id: tci & 0x0fff, pcp: (tci >> 13) as u8 })
    }

    /// All its headers, as far as they can be read.
    ///
    /// # Errors
    /// A packet whose Ethernet header cannot be read.
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
