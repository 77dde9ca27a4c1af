//! A packet for the controller, as an app sees it.

use std::ops::Deref;

use bellrock_openflow::{self as openflow, MacAddr, Port};

/// A packet_in, with its ingress port at hand and its headers readable.
///
/// It dereferences to the message itself ([`openflow::PacketIn`]).
#[derive(Clone, Copy, Debug)]
pub struct PacketIn<'b> {
    message: openflow::PacketIn<'b>,
    in_port: Port,
}

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
    #[inline]
    pub fn new(message: openflow::PacketIn<'b>) -> Self {
        let in_port = message.in_port();
        PacketIn { message, in_port }
    }

    /// Where it came in; [`Port::ANY`] if the switch did not say.
    #[must_use]
    #[inline]
    pub fn in_port(&self) -> Port {
        self.in_port
    }

    /// The packet's bytes, from its Ethernet header on. Cut short where the switch buffers it.
    #[must_use]
    #[inline]
    pub fn data(&self) -> &'b [u8] {
        self.message.data.0
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
    type Target = openflow::PacketIn<'b>;

    fn deref(&self) -> &Self::Target {
        &self.message
    }
}
