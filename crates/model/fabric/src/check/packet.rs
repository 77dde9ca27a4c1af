//! A packet: where it comes in, its tags, the values of its fields.

use std::fmt;

use bellrock_openflow::{Field, MacAddr, Match, Port};

/// Ethernet type of a VLAN tag (IEEE 802.1Q).
const TAG: u16 = 0x8100;
/// Destination of a packet that says nothing about it: a host that nobody knows.
const UNKNOWN: MacAddr = MacAddr([0x02, 0x5a, 0x5a, 0x5a, 0x5a, 0x01]);
/// Source of a packet that says nothing about it.
const STRANGER: MacAddr = MacAddr([0x02, 0x5a, 0x5a, 0x5a, 0x5a, 0x02]);
/// Ethernet type of a packet that says nothing about it: one for experiments (IEEE 802).
const OTHER: u16 = 0x88b5;
/// What bits become that a match leaves open.
const FILL: u128 = 0x5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a;

/// A VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tag {
    eth_type: u16,
    vid: u16,
    pcp: u8,
}

/// A packet that shows something: one that comes in by a port, as tables see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    in_port: u32,
    metadata: u64,
    /// The outermost is the last.
    tags: Vec<Tag>,
    /// Values of other fields. One that is not here is 0.
    fields: Match,
}

impl Packet {
    /// A packet that comes in by a port, with a tag or without, and with the fields of a header.
    /// Fields of the header that are no header's (port, VLAN, metadata) do not count.
    #[must_use]
    pub fn new(in_port: u32, vid: Option<u16>, header: &Match) -> Self {
        Self::filled(in_port, vid, header, 0)
    }

    /// The same. Bits that the header leaves open in a field that it has are neither all 0 nor all
    /// 1, so that flows for a part of those packets hardly match.
    pub(super) fn inside(in_port: u32, vid: Option<u16>, header: &Match) -> Self {
        Self::filled(in_port, vid, header, FILL)
    }

    fn filled(in_port: u32, vid: Option<u16>, header: &Match, fill: u128) -> Self {
        let mut fields = Match::any().eth_dst(UNKNOWN).eth_src(STRANGER).eth_type(OTHER);
        for field in header.fields() {
            let (value, mask) = (header.value(field), header.mask(field));
            if let (false, Some(value), Some(mask)) = (is_outside(field), value, mask) {
                fields.set(field, value | fill & !mask);
            }
        }
        let pcp = header.value(Field::VlanPcp).unwrap_or(0) as u8;
        let tags = vid.map(|vid| Tag { eth_type: TAG, vid, pcp }).into_iter().collect();
        Packet { in_port, metadata: 0, tags, fields }
    }

    /// The port that it comes in by.
    #[must_use]
    pub fn in_port(&self) -> u32 {
        self.in_port
    }

    /// The VLAN id of its outermost tag.
    #[must_use]
    pub fn vid(&self) -> Option<u16> {
        self.tags.last().map(|tag| tag.vid)
    }

    /// The VLAN id of the tag below the outermost one.
    pub(super) fn inner_vid(&self) -> Option<u16> {
        let below = self.tags.len().checked_sub(2)?;
        self.tags.get(below).map(|tag| tag.vid)
    }

    /// Number of its tags.
    pub(super) fn tags(&self) -> usize {
        self.tags.len()
    }

    pub(super) fn pcp(&self) -> u8 {
        self.tags.last().map_or(0, |tag| tag.pcp)
    }

    pub(super) fn mac(&self, field: Field) -> MacAddr {
        MacAddr::from_u64(self.value(field) as u64)
    }

    pub(super) fn eth_type(&self) -> u16 {
        self.value(Field::EthType) as u16
    }

    /// The value that a flow sees in a field.
    pub(super) fn value(&self, field: Field) -> u128 {
        match field {
            Field::InPort => self.in_port.into(),
            Field::Metadata => self.metadata.into(),
            Field::VlanVid => self.vid().map_or(0, |vid| (Match::VLAN_PRESENT | vid).into()),
            Field::VlanPcp => self.pcp().into(),
            field => self.fields.value(field).unwrap_or(0),
        }
    }

    /// Whether a match is for it, with the exception of a field.
    pub(super) fn is_matched(&self, matching: &Match, except: Option<Field>) -> bool {
        let mut fields = matching.fields().filter(|field| Some(*field) != except);
        fields.all(|field| {
            let mask = matching.mask(field).unwrap_or(0);
            self.value(field) & mask == matching.value(field).unwrap_or(0)
        })
    }

    /// Gives a field a value. Without a tag, those of tags do nothing.
    pub(super) fn set(&mut self, field: Field, value: u128) {
        match (field, self.tags.last_mut()) {
            (Field::VlanVid, Some(tag)) => tag.vid = value as u16 & 0x0fff,
            (Field::VlanPcp, Some(tag)) => tag.pcp = value as u8,
            (Field::VlanVid | Field::VlanPcp, None) => {}
            (field, _) => self.fields.set(field, value),
        }
    }

    pub(super) fn set_metadata(&mut self, metadata: u64, mask: u64) {
        self.metadata = self.metadata & !mask | metadata & mask;
    }

    /// Adds a tag like the outermost one: a switch copies the VLAN (1.3.5 §5.12.1).
    pub(super) fn push(&mut self, eth_type: u16) {
        let (vid, pcp) = self.tags.last().map_or((0, 0), |tag| (tag.vid, tag.pcp));
        self.tags.push(Tag { eth_type, vid, pcp });
    }

    pub(super) fn pop(&mut self) {
        self.tags.pop();
    }

    /// Whether another is the same on the wire.
    pub(super) fn is_same_frame(&self, other: &Packet) -> bool {
        self.tags == other.tags && self.fields == other.fields
    }
}

/// Whether a field is no header's that a packet is free to have, or is a tag's.
pub(super) fn is_outside(field: Field) -> bool {
    matches!(field, Field::InPort | Field::Metadata | Field::VlanVid | Field::VlanPcp)
}

/// Its fields, as in a match: `in_port=1,eth_dst=02:00:00:00:00:07,vlan_vid=0x1064`.
impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.fields.clone().in_port(Port(self.in_port));
        if let Some(vid) = self.vid() {
            shown = shown.vlan_id(vid);
        }
        write!(f, "{shown}")
    }
}
