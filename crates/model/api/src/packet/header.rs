//! Ethernet headers: the addresses, the VLAN tags, and the type of what is behind them.
//!
//! [`EthHeader`] is the reader of all apps and services, and [`eth_type`] has the numbers. Two
//! handlers read the bytes themselves, because each packet costs them a few instructions: learning
//! packs a table's key from them, and host tracking looks the source up. The emulator has a parser
//! of its own, so that a fault in this one is found.

use bellrock_openflow::MacAddr;

use super::build::Ethernet;

/// Ethernet types (IEEE 802.3 §3.2.6), as in the registry of IANA.
pub mod eth_type {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// A customer's VLAN tag (IEEE 802.1Q §9.5).
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// A provider's VLAN tag (IEEE 802.1Q §9.5).
    pub const PROVIDER_VLAN: u16 = 0x88a8;
    /// LLDP.
    pub const LLDP: u16 = 0x88cc;
    /// A provider's VLAN tag before there was a standard. OpenFlow does not know it.
    pub const OLD_PROVIDER_VLAN: u16 = 0x9100;

    /// Whether it is the type of a VLAN tag that OpenFlow knows: a customer's or a provider's.
    #[must_use]
    #[inline]
    pub const fn is_vlan_tag(eth_type: u16) -> bool {
        matches!(eth_type, VLAN | PROVIDER_VLAN)
    }
}

/// A customer's or provider's VLAN tag (IEEE 802.1Q §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// VLAN id, 12 bits. Zero means a priority without a VLAN.
    pub id: u16,
    /// Priority, 3 bits.
    pub pcp: u8,
}

impl VlanTag {
    /// Length of a tag with its type, in bytes.
    pub const BYTES: usize = 4;

    /// Reads the outermost tag of a frame, of type 0x8100 or 0x88a8.
    #[must_use]
    #[inline]
    pub fn of(frame: &[u8]) -> Option<Self> {
        const TAG_AT: usize = 12;
        Self::first(frame.get(TAG_AT..)?)
    }

    /// The VLAN of the frame. `None` if the tag has only a priority.
    #[must_use]
    #[inline]
    pub fn vlan(self) -> Option<u16> {
        (self.id != 0).then_some(self.id)
    }

    /// Reads a tag that begins these bytes.
    #[inline]
    fn first(bytes: &[u8]) -> Option<Self> {
        let [type_high, type_low, tci_high, tci_low] = *bytes.first_chunk()?;
        if !eth_type::is_vlan_tag(u16::from_be_bytes([type_high, type_low])) {
            return None;
        }
        let tci = u16::from_be_bytes([tci_high, tci_low]);
        Some(VlanTag { id: tci & 0x0fff, pcp: (tci >> 13) as u8 })
    }
}

/// The Ethernet header of a frame, and the bytes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthHeader<'p> {
    /// Source address.
    pub src: MacAddr,
    /// Destination address.
    pub dst: MacAddr,
    /// The VLAN tags as the frame has them, [`VlanTag::BYTES`] each, the outermost first.
    pub(super) tags: &'p [u8],
    /// The Ethernet type behind the tags: that of a tag, if the frame has more than were read.
    pub eth_type: u16,
    /// The bytes behind the header.
    pub payload: &'p [u8],
}

impl<'p> EthHeader<'p> {
    /// Length of a header without tags, in bytes.
    pub const BYTES: usize = 14;

    /// Reads a header, with the outermost VLAN tag if its type is 0x8100 or 0x88a8: as far as flows
    /// match it. `None` for a frame that ends within its header.
    #[must_use]
    #[inline]
    pub fn read(frame: &'p [u8]) -> Option<Self> {
        Self::read_with(frame, 1, eth_type::is_vlan_tag)
    }

    /// Reads a header with its VLAN tags, at most `max_tags`, of type 0x9100 too. `None` for a
    /// frame that ends within its header.
    #[must_use]
    pub fn read_tags(frame: &'p [u8], max_tags: usize) -> Option<Self> {
        let is_tag =
            |eth_type| eth_type::is_vlan_tag(eth_type) || eth_type == eth_type::OLD_PROVIDER_VLAN;
        Self::read_with(frame, max_tags, is_tag)
    }

    #[inline]
    fn read_with(frame: &'p [u8], max_tags: usize, is_tag: impl Fn(u16) -> bool) -> Option<Self> {
        let (dst, rest) = frame.split_first_chunk()?;
        let (src, rest) = rest.split_first_chunk()?;
        let (src, dst) = (MacAddr(*src), MacAddr(*dst));
        let mut read = 0;
        loop {
            let (tags, rest) = rest.split_at_checked(read * VlanTag::BYTES)?;
            let (eth_type, payload) = rest.split_first_chunk()?;
            let eth_type = u16::from_be_bytes(*eth_type);
            if read == max_tags || !is_tag(eth_type) {
                return Some(EthHeader { src, dst, tags, eth_type, payload });
            }
            read += 1;
        }
    }

    /// The outermost VLAN tag, if its type is 0x8100 or 0x88a8.
    #[must_use]
    #[inline]
    pub fn vlan(&self) -> Option<VlanTag> {
        VlanTag::first(self.tags)
    }

    /// Starts an answer from `source`: to the frame's source, with the frame's VLAN tags, of which
    /// an answer has at most [`Ethernet::MAX_TAGS`].
    #[must_use]
    pub fn answer(&self, source: MacAddr) -> Ethernet {
        Ethernet::new(source, self.src).tags(self.tags)
    }
}
