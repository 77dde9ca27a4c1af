//! Keys for flow tables: all fields of a packet at fixed positions, and patterns over them.

use bellrock_openflow::{Field, Match};

/// Number of 64-bit words of a [`PacketKey`].
pub const KEY_WORDS: usize = 15;

/// All match fields of one packet (1.3.5 §7.2.3.7), pipeline fields included.
///
/// The first word has a bit for each field of the packet, by the field's number. The other words
/// hold the values. Fields that no packet can have together share a position: the bits of the first
/// word distinguish them. Fields that the packet does not have are zero.
///
/// Every packet has `vlan_vid`: 0 without a tag, bit 12 and the id with one. Every packet also has
/// `in_port`, `in_phy_port`, `metadata`, `tunnel_id` and the Ethernet header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PacketKey([u64; KEY_WORDS]);

/// Position of a field's lowest bit. A field of 128 bits fills its word and the next.
#[derive(Clone, Copy)]
struct BitPosition {
    word: usize,
    shift: u32,
}

const fn at(word: usize, shift: u32) -> BitPosition {
    BitPosition { word, shift }
}

const fn place(field: Field) -> BitPosition {
    match field {
        Field::InPort => at(1, 32),
        Field::InPhyPort => at(1, 0),
        Field::Metadata => at(2, 0),
        Field::TunnelId => at(3, 0),
        Field::EthDst => at(4, 16),
        Field::EthType => at(4, 0),
        Field::EthSrc => at(5, 16),
        Field::VlanVid => at(5, 3),
        Field::VlanPcp => at(5, 0),
        // An Ethernet type means IP, MPLS or PBB.
        Field::MplsLabel => at(6, 44),
        Field::MplsTc => at(6, 41),
        Field::MplsBos => at(6, 40),
        Field::PbbIsid => at(6, 40),
        Field::IpProto => at(6, 32),
        Field::IpDscp => at(6, 26),
        Field::IpEcn => at(6, 24),
        Field::Ipv6Flabel => at(6, 0),
        // One protocol above IP, or ARP.
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => at(7, 48),
        Field::Icmpv4Type | Field::Icmpv6Type | Field::ArpOp => at(7, 48),
        Field::TcpDst | Field::UdpDst | Field::SctpDst => at(7, 32),
        Field::Icmpv4Code | Field::Icmpv6Code => at(7, 32),
        Field::Ipv6Exthdr => at(7, 0),
        // One kind of address.
        Field::Ipv4Src | Field::ArpSpa => at(8, 32),
        Field::Ipv4Dst | Field::ArpTpa => at(8, 0),
        Field::ArpSha => at(9, 0),
        Field::ArpTha => at(10, 0),
        Field::Ipv6Src => at(8, 0),
        Field::Ipv6Dst => at(10, 0),
        Field::Ipv6NdTarget => at(12, 0),
        // A solicitation has the first, an advertisement the second.
        Field::Ipv6NdSll | Field::Ipv6NdTll => at(14, 0),
        // Packets here do not have them: `KeyPattern::of` ignores them.
        Field::TcpFlags | Field::Reg0 => at(0, 0),
    }
}

const fn bit(field: Field) -> u64 {
    1 << field as u8
}

impl PacketKey {
    /// The words: the set of fields, then their values.
    #[must_use]
    #[inline]
    pub const fn words(&self) -> &[u64; KEY_WORDS] {
        &self.0
    }

    /// Whether the packet has this field.
    #[must_use]
    #[inline]
    pub const fn has(&self, field: Field) -> bool {
        self.0[0] & bit(field) != 0
    }

    /// The value of a field, if the packet has it.
    #[must_use]
    #[inline]
    pub fn value(&self, field: Field) -> Option<u128> {
        self.has(field).then(|| self.read(field))
    }

    /// The value of a field of at most 64 bits; 0 if the packet does not have it.
    #[must_use]
    #[inline]
    pub const fn number(&self, field: Field) -> u64 {
        if !self.has(field) {
            return 0;
        }
        let BitPosition { word, shift } = place(field);
        (self.0[word] >> shift) & field.max() as u64
    }

    /// Sets a field. Bits beyond the field's width are cut off.
    #[inline]
    pub(super) fn put(&mut self, field: Field, value: u128) {
        self.0[0] |= bit(field);
        self.write(field, value);
    }

    /// The fields that are in no header: ports, metadata, tunnel id.
    pub(super) fn pipeline(&self) -> PacketKey {
        let mut key = PacketKey::default();
        for field in [Field::InPort, Field::InPhyPort, Field::Metadata, Field::TunnelId] {
            key.put(field, self.read(field));
        }
        key
    }

    #[inline]
    fn read(&self, field: Field) -> u128 {
        let BitPosition { word, shift } = place(field);
        if field.bits() > u64::BITS {
            return u128::from(self.0[word]) << 64 | u128::from(self.0[word + 1]);
        }
        u128::from(self.0[word] >> shift) & field.max()
    }

    #[inline]
    fn write(&mut self, field: Field, value: u128) {
        let BitPosition { word, shift } = place(field);
        if field.bits() > u64::BITS {
            self.0[word] = (value >> 64) as u64;
            self.0[word + 1] = value as u64;
            return;
        }
        let max = field.max() as u64;
        self.0[word] = self.0[word] & !(max << shift) | (value as u64 & max) << shift;
    }
}

/// The packets of a [`Match`]: their key has these values in these bits.
///
/// The mask includes the bits of the first word that say which fields are present. So a packet
/// without a field matches no pattern with that field. Two matches have the same meaning exactly
/// when their patterns are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyPattern {
    value: PacketKey,
    mask: PacketKey,
}

impl KeyPattern {
    /// The pattern of a match. It ignores fields that are not basic, and unknown ones
    /// ([`Match::unknown`]): the code that takes a match from a controller must refuse them first.
    #[must_use]
    pub fn of(matching: &Match) -> Self {
        let mut pattern = KeyPattern::default();
        for field in matching.fields().filter(|field| field.is_basic()) {
            let (value, mask) = (matching.value(field), matching.mask(field));
            pattern.value.put(field, value.unwrap_or_default());
            // Not `put`: fields that share a position must keep each other's bits of the mask.
            let old = pattern.mask.read(field);
            pattern.mask.put(field, old | mask.unwrap_or_default());
        }
        pattern
    }

    /// The match of the pattern; `KeyPattern::of(&pattern.to_match()) == pattern`.
    #[must_use]
    pub fn to_match(&self) -> Match {
        let mut matching = Match::any();
        for field in Field::BASIC.iter().copied().filter(|field| self.mask.has(*field)) {
            matching.set_masked(field, self.value.read(field), self.mask.read(field));
        }
        matching
    }

    /// The values; bits outside the mask are zero.
    #[must_use]
    #[inline]
    pub const fn value(&self) -> &[u64; KEY_WORDS] {
        &self.value.0
    }

    /// The bits that are compared.
    #[must_use]
    #[inline]
    pub const fn mask(&self) -> &[u64; KEY_WORDS] {
        &self.mask.0
    }

    /// Whether a packet matches.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn matches(&self, key: &PacketKey) -> bool {
        let words = key.0.iter().zip(&self.value.0).zip(&self.mask.0);
        words.fold(0, |wrong, ((key, value), mask)| wrong | (key & mask) ^ value) == 0
    }

    /// Whether this pattern matches every packet of `other`: `other` has at least these bits, with
    /// the same values (1.3.5 §6.4: loose modify and delete).
    #[cfg(test)]
    #[must_use]
    pub(crate) fn covers(&self, other: &KeyPattern) -> bool {
        let own = self.value.0.iter().zip(&self.mask.0);
        let others = other.value.0.iter().zip(&other.mask.0);
        own.zip(others).all(|((value, mask), (their_value, their_mask))| {
            mask & !their_mask == 0 && their_value & mask == *value
        })
    }

    /// Whether one packet can match both (1.3.5 §6.4: the check for overlaps).
    #[cfg(test)]
    #[must_use]
    pub(crate) fn overlaps(&self, other: &KeyPattern) -> bool {
        let own = self.value.0.iter().zip(&self.mask.0);
        let others = other.value.0.iter().zip(&other.mask.0);
        own.zip(others).all(|((value, mask), (their_value, their_mask))| {
            (value ^ their_value) & mask & their_mask == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn fields_that_a_packet_can_have_together_have_places_of_their_own() {
        let apart = |fields: &[Field]| {
            let mut taken = [0_u64; KEY_WORDS];
            for field in fields.iter().copied() {
                let mut key = PacketKey::default();
                key.write(field, Field::max(field));
                for (taken, word) in taken.iter_mut().zip(key.0) {
                    assert_eq!(*taken & word, 0, "{field}");
                    *taken |= word;
                }
            }
        };
        use Field::*;
        let frame =
            [InPort, InPhyPort, Metadata, TunnelId, EthDst, EthSrc, EthType, VlanVid, VlanPcp];
        let with = |more: &[Field]| [&frame[..], more].concat();
        apart(&with(&[MplsLabel, MplsTc, MplsBos]));
        apart(&with(&[PbbIsid]));
        apart(&with(&[ArpOp, ArpSpa, ArpTpa, ArpSha, ArpTha]));
        apart(&with(&[IpProto, IpDscp, IpEcn, Ipv4Src, Ipv4Dst, TcpSrc, TcpDst]));
        let ipv6 = [IpProto, IpDscp, IpEcn, Ipv6Flabel, Ipv6Exthdr, Ipv6Src, Ipv6Dst];
        for (source, destination) in [(UdpSrc, UdpDst), (SctpSrc, SctpDst)] {
            apart(&with(&[&ipv6[..], &[source, destination]].concat()));
        }
        for link in [Ipv6NdSll, Ipv6NdTll] {
            apart(&with(&[&ipv6[..], &[Icmpv6Type, Icmpv6Code, Ipv6NdTarget, link]].concat()));
        }
    }

    #[test]
    fn every_field_keeps_its_value() {
        for field in Field::BASIC.iter().copied() {
            let mut key = PacketKey::default();
            key.put(field, Field::max(field) / 3);
            assert_eq!(key.value(field), Some(Field::max(field) / 3), "{field}");
            let exact = Match::any().with(field, Field::max(field) / 3);
            let pattern = KeyPattern::of(&exact);
            assert!(pattern.matches(&key) && !pattern.matches(&PacketKey::default()), "{field}");
            assert_eq!(pattern.to_match(), exact);
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        let ip = Match::any().eth_type(0x0800);
        let net = KeyPattern::of(&ip.clone().ipv4_dst_prefix(Ipv4Addr::new(10, 0, 0, 0), 8));
        let host = KeyPattern::of(&ip.clone().ipv4_dst(Ipv4Addr::new(10, 0, 0, 1)));
        let other = KeyPattern::of(&ip.clone().ipv4_dst(Ipv4Addr::new(11, 0, 0, 1)));
        assert!(net.covers(&host) && !host.covers(&net) && !net.covers(&other));
        assert!(KeyPattern::of(&Match::any()).covers(&net) && net.covers(&net));
        assert!(net.overlaps(&host) && host.overlaps(&net) && !net.overlaps(&other));
        let from = KeyPattern::of(&ip.ipv4_src(Ipv4Addr::new(1, 2, 3, 4)));
        assert!(from.overlaps(&host) && !from.covers(&host));
    }

    #[test]
    fn a_field_that_is_not_there_does_not_match_as_zero() {
        let pattern = KeyPattern::of(&Match::any().vlan_pcp(0));
        assert!(!pattern.matches(&PacketKey::default()));
    }
}
