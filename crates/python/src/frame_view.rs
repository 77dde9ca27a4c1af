//! The bytes of a packet, and the parts of its link layer.

use bellrock::etherparse::{LaxSlicedPacket, err::LenError};
use bellrock::packet::VlanTag;

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

    /// The Ethernet type behind VLAN tags.
    pub(crate) fn ether_type(self) -> Option<u16> {
        const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
        let mut at = 12;
        loop {
            let eth_type = u16::from_be_bytes(self.chunk(at)?);
            if !TAGS.contains(&eth_type) {
                return Some(eth_type);
            }
            at += 4;
        }
    }

    pub(crate) fn tag(self) -> Option<VlanTag> {
        const TPIDS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
        let [a, b, high, low] = self.chunk(12)?;
        let tci = u16::from_be_bytes([high, low]);
        TPIDS.contains(&[a, b]).then_some(VlanTag { id: tci & 0x0fff, pcp: (tci >> 13) as u8 })
    }
}
