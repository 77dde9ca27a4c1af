//! What forwarding looks at: the Ethernet header, and the keys that the table has for its addresses.

use bellrock_api::{MacAddr, PacketIn, Port, VlanTag};

/// The Ethernet header of a packet, with its VLAN tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) src: MacAddr,
    pub(super) dst: MacAddr,
    /// The outermost tag.
    pub(super) vlan: Option<VlanTag>,
    /// The Ethernet type behind that tag.
    pub(super) eth_type: u16,
}

const ETH_TYPE_AT: usize = 12;
const ETH_TYPE_BEHIND_TAG_AT: usize = 16;
const ETH_TYPE_LLDP: u16 = 0x88cc;

impl Frame {
    /// `None` for a packet that ends before its Ethernet header (or its VLAN tag) does.
    pub(super) fn read(packet: &PacketIn<'_>) -> Option<Self> {
        let vlan = packet.vlan();
        let at = if vlan.is_some() { ETH_TYPE_BEHIND_TAG_AT } else { ETH_TYPE_AT };
        let eth_type = u16::from_be_bytes(*packet.data().get(at..)?.first_chunk()?);
        if vlan.is_none() && is_vlan_tag(eth_type) {
            return None;
        }
        Some(Frame { src: packet.eth_src()?, dst: packet.eth_dst()?, vlan, eth_type })
    }

    /// Bytes before what the Ethernet type is about.
    pub(super) fn header_len(&self) -> usize {
        let at = if self.vlan.is_some() { ETH_TYPE_BEHIND_TAG_AT } else { ETH_TYPE_AT };
        at + size_of::<u16>()
    }

    /// Whether bridges do not forward it: it is meant for the other end of its link.
    pub(super) fn is_link_local(&self) -> bool {
        self.dst.is_link_local() || self.eth_type == ETH_TYPE_LLDP
    }

    /// The table's key for where it comes from.
    pub(super) fn from(&self) -> HostKey {
        HostKey::new(self.vlan, self.src)
    }

    /// The table's key for where it goes to.
    pub(super) fn to(&self) -> HostKey {
        HostKey::new(self.vlan, self.dst)
    }
}

/// Whether an Ethernet type is that of a VLAN tag.
pub(super) fn is_vlan_tag(eth_type: u16) -> bool {
    matches!(eth_type, 0x8100 | 0x88a8)
}

/// A host: its VLAN in bits 48 to 59 and its address below.
///
/// A tag with the id 0 carries a priority only (IEEE 802.1Q §9.6), so that its host is the same as
/// without a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostKey(pub(super) u64);

const VLAN_SHIFT: u32 = 48;

impl HostKey {
    fn new(vlan: Option<VlanTag>, mac: MacAddr) -> Self {
        let id = vlan.map_or(0, |tag| tag.id);
        HostKey(u64::from(id) << VLAN_SHIFT | mac.to_u64())
    }

    pub(super) fn mac(self) -> MacAddr {
        MacAddr::from_u64(self.0)
    }

    /// `None` where its packets have no tag, or one without an id.
    pub(super) fn vlan(self) -> Option<u16> {
        let id = (self.0 >> VLAN_SHIFT) as u16;
        (id != 0).then_some(id)
    }
}

/// Where a host is, in the 32 bits that the table has for it: its port, and whether flows were
/// installed from it or to it, which have to go when the host does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place(u32);

const HAS_FLOWS: u32 = 1 << 31;
const LOCAL: u32 = Port::LOCAL.0 & !HAS_FLOWS;

impl Place {
    /// `None` for what is no port that hosts can be behind, and for numbers from 0x7ffffffe up, for
    /// which there is no room; no switch is known to use them.
    pub(super) fn at(port: Port) -> Option<Self> {
        match port {
            Port::LOCAL => Some(Place(LOCAL)),
            Port(1..LOCAL) => Some(Place(port.0)),
            _ => None,
        }
    }

    pub(super) fn port(self) -> Port {
        match self.0 & !HAS_FLOWS {
            LOCAL => Port::LOCAL,
            number => Port(number),
        }
    }

    pub(super) fn has_flows(self) -> bool {
        self.0 & HAS_FLOWS != 0
    }

    pub(super) fn with_flows(self) -> Self {
        Place(self.0 | HAS_FLOWS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_back_what_it_is_made_of() {
        let mac = MacAddr([2, 3, 4, 5, 6, 7]);
        let tagged = HostKey::new(Some(VlanTag { id: 4095, pcp: 7 }), mac);
        assert_eq!((tagged.vlan(), tagged.mac()), (Some(4095), mac));
        let priority_only = HostKey::new(Some(VlanTag { id: 0, pcp: 7 }), mac);
        assert_eq!(priority_only, HostKey::new(None, mac));
        assert_eq!((priority_only.vlan(), priority_only.mac()), (None, mac));
    }

    #[test]
    fn a_place_keeps_every_port_that_hosts_can_be_behind() {
        for port in [Port(1), Port(0xff00), Port(0x7fff_fffd), Port::LOCAL] {
            let place = Place::at(port).unwrap();
            assert_eq!((place.port(), place.has_flows()), (port, false));
            assert_eq!((place.with_flows().port(), place.with_flows().has_flows()), (port, true));
        }
        for port in [Port(0), Port(0x7fff_fffe), Port::MAX, Port::CONTROLLER, Port::ANY] {
            assert_eq!(Place::at(port), None);
        }
    }
}
