//! The Ethernet header of a packet, and the table keys of its addresses.

use bellrock_api::packet::{EthHeader, eth_type};
use bellrock_api::{MacAddr, Match, PacketIn, Port, VlanTag};

/// The Ethernet header of a packet, with its VLAN tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameHeader {
    /// Source and destination, as in [`HostKey`].
    src: u64,
    dst: u64,
    /// Its VLAN, as in [`HostKey`].
    key_vlan: u64,
    /// The outermost tag.
    pub(super) vlan: Option<VlanTag>,
    /// The Ethernet type behind that tag.
    pub(super) eth_type: u16,
}

/// The group bit of an address, the first bit on the wire, in a key.
const GROUP: u64 = 1;

impl FrameHeader {
    /// Reads the header. `None` for a packet that ends within its Ethernet header or VLAN tag.
    pub(crate) fn read(packet: &PacketIn<'_>) -> Option<Self> {
        let frame = Self::read_untagged(packet)?;
        if eth_type::is_vlan_tag(frame.eth_type) { frame.with_tag(packet) } else { Some(frame) }
    }

    /// Reads the header of a packet without a tag. `None` also for a packet with a tag, and for
    /// LLDP, which bridges never forward.
    #[inline(always)]
    pub(crate) fn untagged(packet: &PacketIn<'_>) -> Option<Self> {
        let frame = Self::read_untagged(packet)?;
        let is_special = frame.eth_type == eth_type::LLDP || eth_type::is_vlan_tag(frame.eth_type);
        (frame.eth_type == eth_type::IPV4 || !is_special).then_some(frame)
    }

    /// Reads the header as if it had no tag. With a tag, the Ethernet type is that of the tag.
    #[inline(always)]
    pub(crate) fn read_untagged(packet: &PacketIn<'_>) -> Option<Self> {
        let header: &[u8; EthHeader::BYTES] = packet.data().first_chunk()?;
        // Reads eight bytes instead of six: the destination with two bytes behind it, the source
        // with two bytes before it.
        let dst = u64::from_le_bytes(*header.first_chunk()?) & ADDRESS;
        let (dst_and_src, eth_type) = header.split_last_chunk()?;
        let src = u64::from_le_bytes(*dst_and_src.last_chunk()?) >> (u64::BITS - VLAN_SHIFT);
        let eth_type = u16::from_be_bytes(*eth_type);
        Some(FrameHeader { src, dst, key_vlan: 0, vlan: None, eth_type })
    }

    fn with_tag(self, packet: &PacketIn<'_>) -> Option<Self> {
        let eth_type = *packet.data().get(EthHeader::BYTES + 2..)?.first_chunk()?;
        let tag = packet.vlan()?;
        let key_vlan = u64::from(tag.id) << VLAN_SHIFT;
        let eth_type = u16::from_be_bytes(eth_type);
        Some(FrameHeader { key_vlan, vlan: Some(tag), eth_type, ..self })
    }

    #[inline(always)]
    pub(crate) fn src(&self) -> MacAddr {
        HostKey(self.src).mac()
    }

    #[inline(always)]
    pub(crate) fn dst(&self) -> MacAddr {
        HostKey(self.dst).mac()
    }

    /// Returns whether its source is an address that a station can have.
    #[inline]
    pub(crate) fn is_from_station(&self) -> bool {
        self.src != 0 && self.src & GROUP == 0
    }

    /// Returns whether its destination is a group or broadcast address.
    #[inline]
    pub(crate) fn is_to_group(&self) -> bool {
        self.dst & GROUP != 0
    }

    /// `vlan_vid` of its flow (1.3.5 §7.2.3.7).
    #[inline]
    pub(crate) fn vlan_vid(&self) -> u16 {
        self.vlan.map_or(0, |tag| Match::VLAN_PRESENT | tag.id)
    }

    /// Number of bytes up to the payload of the Ethernet type.
    #[inline]
    pub(crate) fn header_len(&self) -> usize {
        EthHeader::BYTES + if self.vlan.is_some() { VlanTag::BYTES } else { 0 }
    }

    /// Returns whether bridges do not forward it: its destination is the other end of its link.
    #[inline]
    pub(crate) fn is_link_local(&self) -> bool {
        (self.is_to_group() && self.dst().is_link_local()) || self.eth_type == eth_type::LLDP
    }

    /// The table's key for its source.
    #[inline]
    pub(crate) fn from(&self) -> HostKey {
        HostKey(self.key_vlan | self.src)
    }

    /// The table's key for its destination.
    #[inline]
    pub(crate) fn to(&self) -> HostKey {
        HostKey(self.key_vlan | self.dst)
    }
}

/// A host: its VLAN in bits 48 to 59 and its address below, the first byte lowest, as a processor
/// loads it from the packet.
///
/// A tag with the id 0 has only a priority (IEEE 802.1Q §9.6): its host is as without a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostKey(pub(crate) u64);

const VLAN_SHIFT: u32 = 48;
/// The bits of the address.
const ADDRESS: u64 = (1 << VLAN_SHIFT) - 1;

impl HostKey {
    /// The host with this address and VLAN (0: none); `None` if no station can have the address.
    pub(super) fn of_station(mac: MacAddr, vlan: u16) -> Option<Self> {
        let [a, b, c, d, e, f] = mac.0;
        let address = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let is_station = address != 0 && address & GROUP == 0;
        is_station.then_some(HostKey(u64::from(vlan) << VLAN_SHIFT | address))
    }

    #[inline(always)]
    pub(crate) fn mac(self) -> MacAddr {
        let [a, b, c, d, e, f, ..] = self.0.to_le_bytes();
        MacAddr([a, b, c, d, e, f])
    }

    /// Its VLAN. `None` if its packets have no tag, or one without an id.
    pub(crate) fn vlan(self) -> Option<u16> {
        let id = (self.0 >> VLAN_SHIFT) as u16;
        (id != 0).then_some(id)
    }
}

/// The place of a host, in the 32 bits of a table's value: its port, and whether flows from or to
/// it were installed, which must be removed with the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostPlace(pub(crate) u32);

pub(crate) const HAS_FLOWS: u32 = 1 << 31;

impl HostPlace {
    /// `None` for a port that cannot have hosts, and for numbers from 2^30 up, which do not fit; no
    /// switch is known to use them.
    #[inline]
    pub(crate) fn at(port: Port) -> Option<Self> {
        match port {
            Port::LOCAL | Port(1..0x4000_0000) => Some(HostPlace(port.0 & !HAS_FLOWS)),
            _ => None,
        }
    }

    /// The place of a host with flows at a port, if the port can have hosts. For other ports, a
    /// value that no host with flows has.
    #[inline(always)]
    pub(crate) fn with_flows_at(port: Port) -> Self {
        HostPlace(port.0 ^ HAS_FLOWS)
    }

    #[inline]
    pub(crate) fn port(self) -> Port {
        // Restores the upper bit from the bit below it: both are set for LOCAL only.
        Port(((self.0 << 1).cast_signed() >> 1).cast_unsigned())
    }

    #[inline]
    pub(crate) fn has_flows(self) -> bool {
        self.0 & HAS_FLOWS != 0
    }

    #[inline]
    pub(crate) fn with_flows(self) -> Self {
        HostPlace(self.0 | HAS_FLOWS)
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::PacketInView;

    use super::super::prepared::tests::packet_in;

    use super::*;

    fn frame(tag: &[u8]) -> FrameHeader {
        let data = [&[2, 3, 4, 5, 6, 7, 2, 0, 0, 0, 0, 1][..], tag, &[8, 0]].concat();
        let message = packet_in(Port(1), &data);
        FrameHeader::read(&PacketIn::new(PacketInView::of_any_form(&message).unwrap())).unwrap()
    }

    #[test]
    fn a_key_gives_back_what_it_is_made_of() {
        let (src, dst) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 3, 4, 5, 6, 7]));
        let priority_only = [0x81, 0x00, 0xe0, 0x00];
        for (tag, vlan) in [
            (&[][..], None),
            (&[0x81, 0x00, 0xff, 0xff], Some(4095)),
            (&[0x88, 0xa8, 0x00, 0x07], Some(7)),
            (&priority_only, None),
        ] {
            let frame = frame(tag);
            assert_eq!((frame.src(), frame.dst(), frame.eth_type), (src, dst, 0x0800));
            assert_eq!((frame.from().vlan(), frame.from().mac()), (vlan, src));
            assert_eq!((frame.to().vlan(), frame.to().mac()), (vlan, dst));
        }
        assert_eq!(frame(&priority_only).to(), frame(&[]).to());
        let tagged = frame(&[0x81, 0x00, 0x00, 0x07]);
        assert_eq!(HostKey::of_station(src, 7), Some(tagged.from()));
        assert_eq!(HostKey::of_station(dst, 0), Some(frame(&[]).to()));
        assert_eq!(HostKey::of_station(MacAddr::BROADCAST, 0), None);
        assert_eq!(HostKey::of_station(MacAddr::ZERO, 7), None);
    }

    #[test]
    fn a_place_keeps_every_port_that_hosts_can_be_behind() {
        for port in [Port(1), Port(0xff00), Port(0x3fff_ffff), Port::LOCAL] {
            let place = HostPlace::at(port).unwrap();
            assert_eq!((place.port(), place.has_flows()), (port, false));
            assert_eq!((place.with_flows().port(), place.with_flows().has_flows()), (port, true));
        }
        for port in [Port(1), Port(0xff00), Port(0x3fff_ffff)] {
            assert_eq!(HostPlace::with_flows_at(port), HostPlace::at(port).unwrap().with_flows());
        }
        for number in [0, 0x4000_0000, 0x7fff_fffe, 0x8000_0001, Port::MAX.0, Port::ANY.0] {
            assert_eq!(HostPlace::at(Port(number)), None);
        }
        // No port that cannot have hosts looks like a port with hosts and flows.
        let places =
            [1, 5, 0x3fff_ffff].map(Port).map(|port| HostPlace::at(port).unwrap().with_flows());
        for number in [0, 0x4000_0000, 0x8000_0001, 0x8000_0005, 0xbfff_ffff, Port::ANY.0] {
            assert!(!places.contains(&HostPlace::with_flows_at(Port(number))), "{number:#x}");
        }
    }
}
