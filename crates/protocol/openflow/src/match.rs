//! A match that is built, read and compared field by field, the same in both versions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::field::{BASICS, VALUES_LEN};
use crate::wire::U16;
use crate::{EncodeError, Field, MacAddr, Port, oxm, prerequisite};

/// The packets that a flow applies to: a value and an optional mask for each field that it matches
/// (1.0 §5.2.3; 1.3.5 §7.2.3).
///
/// Each meaning has one form: a mask of all ones is stored as no mask, a mask of all zeros as no
/// field, and bits outside a mask are zero. Values of basic fields have fixed places, so building a
/// match of them needs no allocation.
///
/// ```
/// use bellrock_openflow::{Match, Port};
/// let web = Match::any().in_port(Port(1)).eth_type(0x0800).ip_proto(6).tcp_dst(80);
/// assert_eq!(web.to_string(), "in_port=1,eth_type=0x0800,ip_proto=6,tcp_dst=80");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Match {
    present: u64,
    masked: u64,
    values: [u8; VALUES_LEN],
    masks: [u8; VALUES_LEN],
    /// Never empty.
    rare: Option<Box<Rare>>,
}

/// Parts that few matches have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Rare {
    /// Fields that are not basic, by number.
    sparse: Vec<Sparse>,
    /// Fields without a meaning here, as received: header, value, mask.
    fields: Vec<u8>,
    /// Bytes after the last field that could be framed.
    unread: Vec<u8>,
}

/// A field that is not basic. Without a mask it is exact, and its mask is not all ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sparse {
    pub(crate) field: Field,
    pub(crate) value: u128,
    pub(crate) mask: Option<u128>,
}

/// Hashes only the fields that it has: tables of flows hash many, and most have few fields.
impl Hash for Match {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.present, self.masked).hash(state);
        for field in self.basic_fields() {
            state.write(self.value_bytes(field));
            if self.is_masked(field) {
                state.write(self.mask_bytes(field));
            }
        }
        self.rare.hash(state);
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident $field:ident ($($arg:ident: $type:ty),*) = $value:expr;)*) => {
        impl Match {
            $($(#[$doc])*
            #[must_use]
            #[inline]
            pub fn $name(mut self, $($arg: $type),*) -> Self {
                self.put(Field::$field, $value);
                self
            })*
        }
    };
}

setters! {
    /// Packets that came in by this port.
    in_port InPort (port: Port) = port.0.to_be_bytes();
    /// Packets to this Ethernet address.
    eth_dst EthDst (address: MacAddr) = address.0;
    /// Packets from this Ethernet address.
    eth_src EthSrc (address: MacAddr) = address.0;
    /// Packets of this Ethernet type (behind VLAN tags).
    eth_type EthType (eth_type: u16) = eth_type.to_be_bytes();
    /// Packets of this VLAN (12 bits; higher bits are cut off).
    vlan_id VlanVid (id: u16) = (Match::VLAN_PRESENT | id & 0x0fff).to_be_bytes();
    /// Packets without a VLAN tag.
    untagged VlanVid () = [0, 0];
    /// Packets of this VLAN priority (3 bits); needs a tag.
    vlan_pcp VlanPcp (pcp: u8) = [pcp & 7];
    /// Packets with this DSCP (6 bits); needs IPv4 or IPv6.
    ip_dscp IpDscp (dscp: u8) = [dscp & 0x3f];
    /// Packets of this IP protocol; needs IPv4 or IPv6.
    ip_proto IpProto (protocol: u8) = [protocol];
    /// Packets from this IPv4 address.
    ipv4_src Ipv4Src (address: Ipv4Addr) = address.octets();
    /// Packets to this IPv4 address.
    ipv4_dst Ipv4Dst (address: Ipv4Addr) = address.octets();
    /// TCP packets from this port.
    tcp_src TcpSrc (port: u16) = port.to_be_bytes();
    /// TCP packets to this port.
    tcp_dst TcpDst (port: u16) = port.to_be_bytes();
    /// UDP packets from this port.
    udp_src UdpSrc (port: u16) = port.to_be_bytes();
    /// UDP packets to this port.
    udp_dst UdpDst (port: u16) = port.to_be_bytes();
    /// SCTP packets from this port.
    sctp_src SctpSrc (port: u16) = port.to_be_bytes();
    /// SCTP packets to this port.
    sctp_dst SctpDst (port: u16) = port.to_be_bytes();
    /// ICMP packets of this type.
    icmpv4_type Icmpv4Type (kind: u8) = [kind];
    /// ICMP packets of this code.
    icmpv4_code Icmpv4Code (code: u8) = [code];
    /// ARP packets of this operation.
    arp_op ArpOp (operation: u16) = operation.to_be_bytes();
    /// ARP packets from this IPv4 address.
    arp_spa ArpSpa (address: Ipv4Addr) = address.octets();
    /// ARP packets for this IPv4 address.
    arp_tpa ArpTpa (address: Ipv4Addr) = address.octets();
    /// Packets from this IPv6 address.
    ipv6_src Ipv6Src (address: Ipv6Addr) = address.octets();
    /// Packets to this IPv6 address.
    ipv6_dst Ipv6Dst (address: Ipv6Addr) = address.octets();
    /// ICMPv6 packets of this type.
    icmpv6_type Icmpv6Type (kind: u8) = [kind];
    /// ICMPv6 packets of this code.
    icmpv6_code Icmpv6Code (code: u8) = [code];
    /// Packets with this metadata.
    metadata Metadata (metadata: u64) = metadata.to_be_bytes();
    /// Packets with this tunnel id.
    tunnel_id TunnelId (id: u64) = id.to_be_bytes();
}

impl Match {
    /// Bit 12 of `vlan_vid`: the packet has a tag (`OFPVID_PRESENT`, 1.3.5 §7.2.3.7).
    pub const VLAN_PRESENT: u16 = 0x1000;

    /// Every packet.
    #[must_use]
    #[inline]
    pub fn any() -> Self {
        Match { present: 0, masked: 0, values: [0; VALUES_LEN], masks: [0; VALUES_LEN], rare: None }
    }

    /// Matches packets with `value` in `field`. Bits beyond the field are cut off.
    #[must_use]
    pub fn with(mut self, field: Field, value: u128) -> Self {
        self.set(field, value);
        self
    }

    /// As [`Match::with`], in place, for code that builds a match step by step.
    // If the field is known at compile time, all of this is one or two moves.
    #[inline(always)]
    pub fn set(&mut self, field: Field, value: u128) {
        if !field.is_basic() {
            return self.set_sparse(Sparse { field, value: value & field.max(), mask: None });
        }
        if self.is_masked(field) {
            self.clear(field);
        }
        self.present |= field.bit();
        let value = (value & field.max()).to_be_bytes();
        let slot = field.slot();
        self.values[slot].copy_from_slice(&value[value.len() - field.bytes()..]);
    }

    /// Matches packets whose `field` equals `value` in the bits set in `mask`.
    #[must_use]
    pub fn with_masked(mut self, field: Field, value: u128, mask: u128) -> Self {
        self.set_masked(field, value, mask);
        self
    }

    /// Packets from this IPv4 prefix (at most 32 bits).
    #[must_use]
    pub fn ipv4_src_prefix(self, address: Ipv4Addr, bits: u8) -> Self {
        self.with_masked(Field::Ipv4Src, address.to_bits().into(), prefix_mask(bits).into())
    }

    /// Packets to this IPv4 prefix (at most 32 bits).
    #[must_use]
    pub fn ipv4_dst_prefix(self, address: Ipv4Addr, bits: u8) -> Self {
        self.with_masked(Field::Ipv4Dst, address.to_bits().into(), prefix_mask(bits).into())
    }

    /// Returns the value of a field, if it is matched. Bits outside its mask are zero.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<u128> {
        if !field.is_basic() {
            return self.find(field).map(|sparse| sparse.value);
        }
        self.has(field).then(|| oxm::number(self.value_bytes(field)))
    }

    /// Returns the mask of a field: all ones if it is matched without a mask, `None` if it is not
    /// matched.
    #[must_use]
    pub fn mask(&self, field: Field) -> Option<u128> {
        if !field.is_basic() {
            return self.find(field).map(|sparse| sparse.mask.unwrap_or(field.max()));
        }
        match (self.has(field), self.is_masked(field)) {
            (false, _) => None,
            (true, false) => Some(field.max()),
            (true, true) => Some(oxm::number(self.mask_bytes(field))),
        }
    }

    /// Returns whether a field is matched.
    #[must_use]
    #[inline]
    pub fn has(&self, field: Field) -> bool {
        if field.is_basic() { self.present & field.bit() != 0 } else { self.find(field).is_some() }
    }

    /// Returns whether a field is matched with a mask.
    #[must_use]
    #[inline]
    pub fn is_masked(&self, field: Field) -> bool {
        match field.is_basic() {
            true => self.masked & field.bit() != 0,
            false => self.find(field).is_some_and(|sparse| sparse.mask.is_some()),
        }
    }

    /// Returns the match of the packets that both match. `None`: there are none.
    ///
    /// Parts without a meaning here ([`Match::unknown`], [`Match::unread`]) are left out.
    #[must_use]
    pub fn intersection(&self, other: &Match) -> Option<Match> {
        let mut both = Match { rare: None, ..self.clone() };
        self.sparse().iter().for_each(|sparse| both.set_sparse(*sparse));
        for field in other.fields() {
            let (value, mask) = (other.value(field)?, other.mask(field)?);
            let (own, own_mask) = (both.value(field).unwrap_or(0), both.mask(field).unwrap_or(0));
            if (own ^ value) & own_mask & mask != 0 {
                return None;
            }
            both.set_masked(field, own | value, own_mask | mask);
        }
        Some(both)
    }

    /// Returns the matched fields, by number.
    pub fn fields(&self) -> impl Iterator<Item = Field> + use<> {
        let bit = |sparse: &Sparse| 1_u64 << (sparse.field as usize - BASICS);
        let sparse = self.sparse().iter().fold(0, |bits, sparse| bits | bit(sparse));
        let rest = Field::ALL.get(BASICS..).unwrap_or(&[]);
        self.basic_fields().chain(of_bits(rest, sparse))
    }

    /// As [`Match::fields`], of basic fields only.
    pub(crate) fn basic_fields(&self) -> impl Iterator<Item = Field> + use<> {
        of_bits(Field::BASIC, self.present)
    }

    /// The fields that are not basic.
    pub(crate) fn sparse(&self) -> &[Sparse] {
        self.rare.as_ref().map_or(&[], |rare| &rare.sparse)
    }

    /// Returns whether it consists of basic fields alone.
    #[inline]
    pub(crate) fn is_basic(&self) -> bool {
        self.rare.is_none()
    }

    #[cold]
    fn find(&self, field: Field) -> Option<Sparse> {
        self.sparse().iter().copied().find(|sparse| sparse.field == field)
    }

    #[cold]
    fn set_sparse(&mut self, sparse: Sparse) {
        let all = &mut self.rare.get_or_insert_default().sparse;
        match all.binary_search_by_key(&sparse.field, |other| other.field) {
            Ok(place) => all[place] = sparse,
            Err(place) => all.insert(place, sparse),
        }
    }

    /// Returns whether it matches every packet.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.present == 0 && self.rare.is_none()
    }

    /// Returns fields without a meaning here, as on the wire: unknown ones (of experimenters and of
    /// later versions), and, from a switch, fields that occur twice or have a wrong length or
    /// mask.
    #[must_use]
    pub fn unknown(&self) -> &[u8] {
        self.rare.as_ref().map_or(&[], |rare| &rare.fields)
    }

    /// Returns the unreadable bytes of a match from a switch: the whole match if its type is not
    /// `OFPMT_OXM`, or the rest from a field on that is longer than the match.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        self.rare.as_ref().map_or(&[], |rare| &rare.unread)
    }

    /// Returns whether every part has a meaning here, and every field the fields that it depends
    /// on. This is always true for matches that this controller sends, but not for those from a
    /// switch.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        self.unknown().is_empty() && self.unread().is_empty() && self.check().is_ok()
    }

    /// Checks that every field has the fields that it depends on (1.3.5 §7.2.3.8). Otherwise a
    /// switch of 1.3 refuses the match, and a switch of 1.0 silently ignores the field.
    ///
    /// # Errors
    /// [`EncodeError::Prerequisite`] for the first field that lacks one.
    #[inline]
    pub fn check(&self) -> Result<(), EncodeError> {
        let is_free = self.present & prerequisite::DEPENDENT == 0 && self.rare.is_none();
        if is_free { Ok(()) } else { prerequisite::check(self) }
    }

    /// As [`Match::with_masked`], in place. Stores each meaning in its one form.
    pub fn set_masked(&mut self, field: Field, value: u128, mask: u128) {
        let mask = mask & field.max();
        self.clear(field);
        if mask == 0 {
            return;
        }
        if !field.is_basic() {
            let (value, mask) = (value & mask, (mask != field.max()).then_some(mask));
            return self.set_sparse(Sparse { field, value, mask });
        }
        self.set(field, value & mask);
        if mask != field.max() {
            self.masked |= field.bit();
            let skip = 16 - field.bytes();
            self.masks[field.slot()].copy_from_slice(&mask.to_be_bytes()[skip..]);
        }
    }

    pub(crate) fn put_field(&mut self, field: Field, value: u128, mask: Option<u128>) {
        match mask {
            Some(mask) => self.set_masked(field, value, mask),
            None => self.set(field, value),
        }
    }

    pub(crate) fn push_unknown(&mut self, header: u32, payload: &[u8]) {
        let fields = &mut self.rare.get_or_insert_default().fields;
        fields.extend_from_slice(&header.to_be_bytes());
        fields.extend_from_slice(payload);
    }

    pub(crate) fn push_unread(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.rare.get_or_insert_default().unread.extend_from_slice(bytes);
        }
    }

    /// Returns the set of matched fields, as one bit per field number.
    #[inline]
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// Returns the set of fields with a mask, as one bit per field number.
    #[inline]
    pub(crate) fn masked(&self) -> u64 {
        self.masked
    }

    /// Returns the value of a field of `N` bytes, big-endian; zeros if the field is not matched.
    #[inline]
    pub(crate) fn bytes<const N: usize>(&self, field: Field) -> [u8; N] {
        debug_assert_eq!(field.bytes(), N);
        let mut value = [0; N];
        value.copy_from_slice(&self.values[field.slot().start..field.slot().start + N]);
        value
    }

    /// Returns the value of a field of two bytes.
    #[inline]
    pub(crate) fn number16(&self, field: Field) -> U16 {
        U16::from_bytes(self.bytes(field))
    }

    #[inline]
    pub(crate) fn number8(&self, field: Field) -> U16 {
        let [byte] = self.bytes(field);
        U16::new(byte.into())
    }

    #[inline]
    pub(crate) fn value_bytes(&self, field: Field) -> &[u8] {
        &self.values[field.slot()]
    }

    #[inline]
    pub(crate) fn mask_bytes(&self, field: Field) -> &[u8] {
        &self.masks[field.slot()]
    }

    #[inline]
    fn put<const N: usize>(&mut self, field: Field, value: [u8; N]) {
        debug_assert_eq!(field.bytes(), N);
        if self.is_masked(field) {
            self.clear(field);
        }
        self.present |= field.bit();
        self.values[field.slot().start..field.slot().start + N].copy_from_slice(&value);
    }

    #[cold]
    fn clear(&mut self, field: Field) {
        if !field.is_basic() {
            if let Some(rare) = &mut self.rare {
                rare.sparse.retain(|sparse| sparse.field != field);
                self.rare.take_if(|rare| **rare == Rare::default());
            }
            return;
        }
        self.present &= !field.bit();
        self.masked &= !field.bit();
        self.values[field.slot()].fill(0);
        self.masks[field.slot()].fill(0);
    }
}

/// Returns the fields whose bits are set.
fn of_bits(fields: &'static [Field], mut bits: u64) -> impl Iterator<Item = Field> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        fields.get(place as usize).copied()
    })
}

/// Returns the mask of the first `bits` bits of an IPv4 address; all 32 for more.
fn prefix_mask(bits: u8) -> u32 {
    u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0)
}

impl Default for Match {
    fn default() -> Self {
        Match::any()
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("any");
        }
        let mut comma = "";
        for field in self.fields() {
            write!(f, "{comma}{field}=")?;
            self.format_field(field, f)?;
            comma = ",";
        }
        let mut reader = crate::reader::Reader::new(self.unknown());
        while let Ok(tlv) = oxm::Tlv::read(&mut reader) {
            write!(f, "{comma}oxm({:#010x})={}", tlv.header, crate::Bytes(tlv.payload))?;
            comma = ",";
        }
        match self.unread() {
            [] => Ok(()),
            unread => write!(f, "{comma}unread={}", crate::Bytes(unread)),
        }
    }
}

impl Match {
    /// Prints the value of a matched field, with its mask if it has one.
    pub(crate) fn format_field(&self, field: Field, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value(field).unwrap_or_default();
        if !self.is_masked(field) {
            return field.format(value, f);
        }
        field.format_masked(value, f)?;
        f.write_str("/")?;
        field.format_mask(self.mask(field).unwrap_or_default(), f)
    }
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Match({self})")
    }
}

/// Serialises as an object: `{"in_port": 1, "eth_type": "0x0800", "ipv4_src": "10.0.0.0/8"}`.
/// Decimal values are numbers, all others texts.
#[cfg(feature = "serde")]
impl serde::Serialize for Match {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;

        let mut map = serializer.serialize_map(None)?;
        for field in self.fields() {
            map.serialize_key(field.name())?;
            if self.is_masked(field) {
                map.serialize_value(&fmt::from_fn(|f| self.format_field(field, f)).to_string())?;
            } else {
                let value = self.value(field).unwrap_or_default();
                map.serialize_value(&crate::field::Value { field, value })?;
            }
        }
        let mut reader = crate::reader::Reader::new(self.unknown());
        while let Ok(tlv) = oxm::Tlv::read(&mut reader) {
            map.serialize_entry(&format!("oxm({:#010x})", tlv.header), &crate::Bytes(tlv.payload))?;
        }
        if !self.unread().is_empty() {
            map.serialize_entry("unread", &crate::Bytes(self.unread()))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meaning_has_one_form() {
        let exact = Match::any().ipv4_src(Ipv4Addr::new(10, 1, 2, 3));
        assert_eq!(Match::any().ipv4_src_prefix(Ipv4Addr::new(10, 1, 2, 3), 32), exact);
        assert_eq!(exact.clone().ipv4_src_prefix(Ipv4Addr::UNSPECIFIED, 0), Match::any());
        let net = Match::any().ipv4_src_prefix(Ipv4Addr::new(10, 1, 2, 3), 8);
        assert_eq!(net, Match::any().ipv4_src_prefix(Ipv4Addr::new(10, 9, 9, 9), 8));
        assert_eq!(net.ipv4_src(Ipv4Addr::new(10, 1, 2, 3)), exact);
    }

    #[test]
    fn fields_of_vendors_are_as_others() {
        let tcp = || Match::any().eth_type(0x0800).ip_proto(6);
        let both = tcp().with(Field::Reg0, 7).with_masked(Field::TcpFlags, 0x12, 0x12);
        assert_eq!(both.to_string(), "eth_type=0x0800,ip_proto=6,tcp_flags=0x12/0x12,reg0=0x7");
        assert_eq!(both, tcp().with_masked(Field::TcpFlags, 0xf12, 0x12).with(Field::Reg0, 7));
        assert!(both.is_well_formed() && both.has(Field::Reg0) && !both.is_masked(Field::Reg0));
        assert_eq!(both.mask(Field::TcpFlags), Some(0x12));
        assert_eq!(both.fields().count(), 4);
        assert!(!Match::any().with(Field::TcpFlags, 1).is_well_formed(), "it needs TCP");
        // Without it, the match is as if it had never been there.
        assert_eq!(
            both.clone().with_masked(Field::Reg0, 0, 0).with_masked(Field::TcpFlags, 0, 0),
            tcp()
        );
        assert_eq!(
            Match::any().with_masked(Field::Reg0, 5, u128::MAX),
            Match::any().with(Field::Reg0, 5)
        );
        assert_eq!(
            Match::any().with(Field::Reg0, 1).with(Field::Reg0, 2).value(Field::Reg0),
            Some(2)
        );
        let low = Match::any().with_masked(Field::Reg0, 7, 0xff);
        assert_eq!(low.intersection(&both), Some(both.clone()));
        assert_eq!(both.intersection(&low), Some(both.clone()));
        assert_eq!(both.intersection(&Match::any().with(Field::Reg0, 8)), None);
    }

    #[test]
    fn two_matches_have_the_packets_that_both_match() {
        let tcp = Match::any().eth_type(0x0800).ip_proto(6);
        let port = Match::any().in_port(Port(1)).eth_type(0x0800);
        let both = tcp.intersection(&port).map(|it| it.to_string());
        assert_eq!(both.as_deref(), Some("in_port=1,eth_type=0x0800,ip_proto=6"));
        assert_eq!(tcp.intersection(&Match::any().ip_proto(17)), None);
        assert_eq!(Match::any().intersection(&tcp), Some(tcp.clone()));
        let net = |octets: [u8; 4], bits| Match::any().ipv4_src_prefix(octets.into(), bits);
        let narrow = net([10, 1, 0, 0], 16);
        assert_eq!(net([10, 0, 0, 0], 8).intersection(&narrow), Some(narrow.clone()));
        assert_eq!(narrow.intersection(&net([10, 0, 0, 0], 8)), Some(narrow.clone()));
        assert_eq!(narrow.intersection(&net([10, 2, 0, 0], 16)), None);
        let (even, host) = (
            Match::any().with_masked(Field::Ipv4Src, 0, 1),
            Match::any().ipv4_src([10, 1, 0, 2].into()),
        );
        assert_eq!(even.intersection(&host), Some(host.clone()));
        assert_eq!(even.intersection(&Match::any().ipv4_src([10, 1, 0, 3].into())), None);
    }

    #[test]
    fn it_prints_as_its_fields() {
        let m = Match::any()
            .eth_type(0x86dd)
            .with_masked(Field::Ipv6Src, 0x2001_0db8_u128 << 96, u128::MAX << 96)
            .with_masked(Field::EthDst, 0x0100_0000_0000, 0x0100_0000_0000)
            .vlan_id(7);
        assert_eq!(
            m.to_string(),
            "eth_dst=01:00:00:00:00:00/01:00:00:00:00:00,eth_type=0x86dd,vlan_vid=0x1007,ipv6_src=2001:db8::/32"
        );
        assert_eq!(Match::any().to_string(), "any");
    }
}
