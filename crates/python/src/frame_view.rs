//! The bytes of a packet, and the parts of its link layer.

use bellrock::etherparse::{LaxSlicedPacket, err::LenError};
use bellrock::packet::{EthHeader, VlanTag};

/// The bytes of a packet, from its Ethernet header on.
#[derive(Clone, Copy)]
pub(crate) struct FrameView<'p>(pub(crate) &'p [u8]);

impl<'p> FrameView<'p> {
    pub(crate) fn headers(self) -> Result<LaxSlicedPacket<'p>, LenError> {
        LaxSlicedPacket::from_ethernet(self.0)
    }

    /// The bytes from `at` on, as many as `N`.
    pub(crate) fn chunk<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    /// The Ethernet type behind all VLAN tags.
    pub(crate) fn ether_type(self) -> Option<u16> {
        EthHeader::read_tags(self.0, usize::MAX).map(|header| header.eth_type)
    }

    pub(crate) fn tag(self) -> Option<VlanTag> {
        VlanTag::of(self.0)
    }
}
