//! Actions (1.0 §5.2.4; 1.3.5 §7.2.5).
//!
//! Numbers in each version:
//!
//! | Meaning | 1.0 | 1.3 |
//! |---|---|---|
//! | `Output` | 0 | 0 |
//! | `SetVlanVid`, `SetVlanPcp` (add a tag if there is none) | 1, 2 | — |
//! | `PopVlan` | 3 (`STRIP_VLAN`) | 18 |
//! | `SetField` of `eth_src`, `eth_dst` | 4, 5 | 25 |
//! | `SetField` of `ipv4_src`, `ipv4_dst`, `ip_dscp` | 6, 7, 8 (`NW_TOS`) | 25 |
//! | `SetTpSrc`, `SetTpDst` (TCP or UDP) | 9, 10 | — |
//! | `SetField` of anything else | — | 25 |
//! | `Enqueue` | 11 | — (`SetQueue`, then `Output`) |
//! | `CopyTtlOut`, `CopyTtlIn` | — | 11, 12 |
//! | `SetMplsTtl`, `DecMplsTtl` | — | 15, 16 |
//! | `PushVlan`, `PushMpls`, `PopMpls` | — | 17, 19, 20 |
//! | `SetQueue`, `Group` | — | 21, 22 |
//! | `SetNwTtl`, `DecNwTtl` | — | 23, 24 |
//! | `PushPbb`, `PopPbb` | — | 26, 27 |
//! | `Experimenter` | 0xffff (vendor) | 0xffff |
//!
//! `SetField` of `tcp_src` or `vlan_vid` is written as the nearest action of 1.0 (`SET_TP_SRC`,
//! `SET_VLAN_VID`). It has the same effect on the packets that 1.3 allows it for. So has `PushVlan`
//! of a customer's tag with `SetField` of its `vlan_vid` behind it ([`Action::tag`]): in 1.0,
//! `SET_VLAN_VID` alone tags a packet that has no tag.

use crate::list::Element;
use crate::oxm;
use crate::reader::Reader;
use crate::wire::{Tlv, U16, U32, v10, v13};
use crate::{
    Bytes, DecodeError, EncodeError, ErrorCode, Family, Field, MAX_MESSAGE_LEN, Out, Port, Reason,
    Version,
};

/// An action on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Action<'a> {
    /// Send the packet out of a port. `max_len` limits the bytes sent to the controller;
    /// [`Action::NO_BUFFER`] for all.
    Output {
        /// The port.
        port: Port,
        /// Maximum bytes, for [`Port::CONTROLLER`] only.
        max_len: u16,
    },
    /// Set the VLAN id; add a tag if there is none (1.0).
    SetVlanVid(u16),
    /// Set the VLAN priority; add a tag if there is none (1.0).
    SetVlanPcp(u8),
    /// Set the source port of a TCP or UDP packet (1.0).
    SetTpSrc(u16),
    /// Set the destination port of a TCP or UDP packet (1.0).
    SetTpDst(u16),
    /// Send the packet through a queue of a port (1.0).
    Enqueue {
        /// The port.
        port: Port,
        /// The queue at that port.
        queue: u32,
    },
    /// Copy the TTL from the second-outermost header to the outermost.
    CopyTtlOut,
    /// Copy the TTL from the outermost header to the next.
    CopyTtlIn,
    /// Set the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrement the MPLS TTL.
    DecMplsTtl,
    /// Add a VLAN tag of this Ethernet type.
    PushVlan(u16),
    /// Remove the outermost VLAN tag.
    PopVlan,
    /// Add an MPLS label of this Ethernet type.
    PushMpls(u16),
    /// Remove the outermost MPLS label. The remaining packet has this Ethernet type.
    PopMpls(u16),
    /// Use this queue at the output port.
    SetQueue(u32),
    /// Process the packet with this group.
    Group(u32),
    /// Set the IP TTL or hop limit.
    SetNwTtl(u8),
    /// Decrement the IP TTL or hop limit.
    DecNwTtl,
    /// Set a header field.
    #[cfg_attr(feature = "serde", serde(serialize_with = "set_field_as_object"))]
    SetField(Field, u128),
    /// Set a field of another class, or one that is unknown here.
    SetUnknownField {
        /// The OXM header: class, field and length.
        header: u32,
        /// The value.
        value: Bytes<'a>,
    },
    /// Add a PBB service tag of this Ethernet type.
    PushPbb(u16),
    /// Remove the outermost PBB service tag.
    PopPbb,
    /// An action of an experimenter (1.0: vendor).
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the id, padding included.
        data: Bytes<'a>,
    },
    /// A type that the specification does not name, with the bytes after its length.
    Unknown {
        /// The type.
        kind: u16,
        /// The body.
        body: Bytes<'a>,
    },
}

impl<'a> Action<'a> {
    /// Returns the bytes that the action borrows: the data of an experimenter, the value of an
    /// unknown field, the body of an unknown action. Others have none.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        match *self {
            Action::SetUnknownField { value: Bytes(bytes), .. }
            | Action::Experimenter { data: Bytes(bytes), .. }
            | Action::Unknown { body: Bytes(bytes), .. } => bytes,
            _ => &[],
        }
    }

    /// Returns the action with other [bytes](Action::bytes), if it borrows any.
    #[must_use]
    pub fn with_bytes(self, bytes: &[u8]) -> Action<'_> {
        match self {
            Action::Output { port, max_len } => Action::Output { port, max_len },
            Action::SetVlanVid(vid) => Action::SetVlanVid(vid),
            Action::SetVlanPcp(pcp) => Action::SetVlanPcp(pcp),
            Action::SetTpSrc(port) => Action::SetTpSrc(port),
            Action::SetTpDst(port) => Action::SetTpDst(port),
            Action::Enqueue { port, queue } => Action::Enqueue { port, queue },
            Action::CopyTtlOut => Action::CopyTtlOut,
            Action::CopyTtlIn => Action::CopyTtlIn,
            Action::SetMplsTtl(ttl) => Action::SetMplsTtl(ttl),
            Action::DecMplsTtl => Action::DecMplsTtl,
            Action::PushVlan(eth_type) => Action::PushVlan(eth_type),
            Action::PopVlan => Action::PopVlan,
            Action::PushMpls(eth_type) => Action::PushMpls(eth_type),
            Action::PopMpls(eth_type) => Action::PopMpls(eth_type),
            Action::SetQueue(queue) => Action::SetQueue(queue),
            Action::Group(group) => Action::Group(group),
            Action::SetNwTtl(ttl) => Action::SetNwTtl(ttl),
            Action::DecNwTtl => Action::DecNwTtl,
            Action::SetField(field, value) => Action::SetField(field, value),
            Action::SetUnknownField { header, value: _ } => {
                Action::SetUnknownField { header, value: Bytes(bytes) }
            }
            Action::PushPbb(eth_type) => Action::PushPbb(eth_type),
            Action::PopPbb => Action::PopPbb,
            Action::Experimenter { experimenter, data: _ } => {
                Action::Experimenter { experimenter, data: Bytes(bytes) }
            }
            Action::Unknown { kind, body: _ } => Action::Unknown { kind, body: Bytes(bytes) },
        }
    }

    /// `max_len` for the whole packet, unbuffered (`OFPCML_NO_BUFFER`; in 1.0 just the maximum
    /// length).
    pub const NO_BUFFER: u16 = 0xffff;

    /// Sends the packet out of `port`. The controller gets the whole packet.
    #[must_use]
    pub const fn output(port: Port) -> Self {
        Action::Output {
            port,
            max_len: if port.0 == Port::CONTROLLER.0 { Self::NO_BUFFER } else { 0 },
        }
    }
}

impl Version {
    /// Returns the number that actions of this kind have in this version. `None`: it cannot express
    /// the action.
    #[must_use]
    pub fn action_number(self, action: &Action<'_>) -> Option<u16> {
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        action.encode(self, &mut out).ok()?;
        Some(u16::from_be_bytes(*out.as_slice().first_chunk()?))
    }
}

/// Serialises as `{"eth_dst": "00:1b:21:3c:9d:f8"}`.
#[cfg(feature = "serde")]
fn set_field_as_object<S: serde::Serializer>(
    field: &Field,
    value: &u128,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map([(field, crate::field::Value { field: *field, value: *value })])
}

const EXPERIMENTER: u16 = 0xffff;
const SET_FIELD: u16 = 25;
/// Ethernet type of a customer's VLAN tag (IEEE 802.1Q §9.6).
pub(crate) const CUSTOMER_TAG: u16 = 0x8100;

impl<'a> Element<'a> for Action<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let head: &Tlv = reader.fixed("action")?;
        let (kind, length) = (head.kind.get(), usize::from(head.length.get()));
        let is_odd = length < 8 || !length.is_multiple_of(8);
        if length < size_of::<Tlv>() || (is_odd && !reader.is_liberal()) {
            return Err(start.bad_length("action.length", length));
        }
        let body = reader.sub(length - size_of::<Tlv>(), "action")?;
        let unknown = |body| Action::Unknown { kind, body: Bytes(body) };
        if is_odd {
            return Ok(unknown(body.peek()));
        }
        let read = |mut body: Reader<'a>| {
            let action = match version.family() {
                Family::Fixed => decode_v10(kind, &mut body)?,
                Family::Oxm => decode_v13(kind, &mut body)?,
            };
            body.finish("action")?;
            Ok(action)
        };
        body.or_keep(read, unknown)
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match *self {
            Action::SetField(field, value) if value > field.max() => {
                return Err(EncodeError::Range { what: field.name() });
            }
            Action::SetUnknownField { header, value }
                if (header & 0xff) as usize != value.len() =>
            {
                return Err(EncodeError::Range { what: "length in the header of a set_field" });
            }
            _ => {}
        }
        match version.family() {
            Family::Fixed => encode_v10(self, out),
            Family::Oxm => encode_v13(self, version, out),
        }
    }

    /// Setting the VLAN id tags an untagged packet, where no action pushes tags.
    #[inline]
    fn is_said_by_next(&self, next: &Self, version: Version) -> bool {
        !version.pushes_vlan_tags()
            && matches!(self, Action::PushVlan(CUSTOMER_TAG))
            && matches!(next, Action::SetField(Field::VlanVid, _) | Action::SetVlanVid(_))
    }
}

fn decode_v10<'a>(kind: u16, body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let ipv4 = |field, bytes: &[u8]| Action::SetField(field, oxm::number(bytes));
    Ok(match kind {
        0 => {
            let wire: &v10::ActionOutput = body.fixed("output")?;
            Action::Output { port: Port::from_v10(wire.port.get()), max_len: wire.max_len.get() }
        }
        1 => Action::SetVlanVid(body.fixed::<v10::ActionU16>("set_vlan_vid")?.value.get()),
        2 => Action::SetVlanPcp(body.fixed::<v10::ActionU8>("set_vlan_pcp")?.value),
        3 => {
            body.take(4, "strip_vlan")?;
            Action::PopVlan
        }
        4 | 5 => {
            let wire: &v10::ActionMac = body.fixed("set_dl_addr")?;
            let field = if kind == 4 { Field::EthSrc } else { Field::EthDst };
            Action::SetField(field, oxm::number(&wire.address))
        }
        6 => ipv4(Field::Ipv4Src, body.take(4, "set_nw_src")?),
        7 => ipv4(Field::Ipv4Dst, body.take(4, "set_nw_dst")?),
        8 => {
            let tos = body.fixed::<v10::ActionU8>("set_nw_tos")?.value;
            Action::SetField(Field::IpDscp, (tos >> 2).into())
        }
        9 => Action::SetTpSrc(body.fixed::<v10::ActionU16>("set_tp_src")?.value.get()),
        10 => Action::SetTpDst(body.fixed::<v10::ActionU16>("set_tp_dst")?.value.get()),
        11 => {
            let wire: &v10::ActionEnqueue = body.fixed("enqueue")?;
            Action::Enqueue { port: Port::from_v10(wire.port.get()), queue: wire.queue_id.get() }
        }
        EXPERIMENTER => decode_experimenter(body)?,
        kind => Action::Unknown { kind, body: Bytes(body.take_rest()) },
    })
}

fn decode_v13<'a>(kind: u16, body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let number16 = |body: &mut Reader<'_>, what| {
        body.fixed::<v13::ActionU16>(what).map(|wire| wire.value.get())
    };
    let number32 = |body: &mut Reader<'_>, what| {
        body.fixed::<v13::ActionU32>(what).map(|wire| wire.value.get())
    };
    let bare = |body: &mut Reader<'_>, action: Action<'a>| body.take(4, "action").map(|_| action);
    Ok(match kind {
        0 => {
            let wire: &v13::ActionOutput = body.fixed("output")?;
            Action::Output { port: Port(wire.port.get()), max_len: wire.max_len.get() }
        }
        11 => bare(body, Action::CopyTtlOut)?,
        12 => bare(body, Action::CopyTtlIn)?,
        15 => Action::SetMplsTtl(body.fixed::<v13::ActionU8>("set_mpls_ttl")?.value),
        16 => bare(body, Action::DecMplsTtl)?,
        17 => Action::PushVlan(number16(body, "push_vlan")?),
        18 => bare(body, Action::PopVlan)?,
        19 => Action::PushMpls(number16(body, "push_mpls")?),
        20 => Action::PopMpls(number16(body, "pop_mpls")?),
        21 => Action::SetQueue(number32(body, "set_queue")?),
        22 => Action::Group(number32(body, "group")?),
        23 => Action::SetNwTtl(body.fixed::<v13::ActionU8>("set_nw_ttl")?.value),
        24 => bare(body, Action::DecNwTtl)?,
        SET_FIELD => decode_set_field(body)?,
        26 => Action::PushPbb(number16(body, "push_pbb")?),
        27 => bare(body, Action::PopPbb)?,
        EXPERIMENTER => decode_experimenter(body)?,
        kind => Action::Unknown { kind, body: Bytes(body.take_rest()) },
    })
}

/// Reads one field without a mask, then padding to the end of the action (1.3.5 §7.2.5).
fn decode_set_field<'a>(body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let mut reader = body.answering(ErrorCode::ActionBadSetLength);
    let tlv = oxm::Tlv::read(&mut reader)?;
    if reader.len() >= 8 {
        return Err(reader.bad_length("set_field", body.len()));
    }
    body.take_rest();
    let Some(field) = tlv.field() else {
        return Ok(Action::SetUnknownField { header: tlv.header, value: Bytes(tlv.payload) });
    };
    if tlv.has_mask() {
        return Err(tlv.error(field.name(), Reason::Mask, ErrorCode::ActionBadSetType));
    }
    match tlv.value(field) {
        Ok((value, _)) => Ok(Action::SetField(field, value)),
        Err(error) => Err(DecodeError {
            answer: match error.reason {
                Reason::Length(_) => ErrorCode::ActionBadSetLength,
                _ => ErrorCode::ActionBadSetArgument,
            },
            ..error
        }),
    }
}

fn decode_experimenter<'a>(body: &mut Reader<'a>) -> Result<Action<'a>, DecodeError> {
    let experimenter = body.fixed::<U32>("experimenter")?.get();
    Ok(Action::Experimenter { experimenter, data: Bytes(body.take_rest()) })
}

/// Writes type and length, then the output of `body`, padded to eight bytes.
fn put(
    out: &mut Out,
    kind: u16,
    body: impl FnOnce(&mut Out) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    out.put(&Tlv { kind: U16::new(kind), length: U16::ZERO })?;
    body(out)?;
    out.pad8(start)?;
    out.patch_length(start, 2, "action")
}

fn encode_v10(action: &Action<'_>, out: &mut Out) -> Result<(), EncodeError> {
    let u16_arg = |out: &mut Out, kind, value| {
        put(out, kind, |out| out.put(&v10::ActionU16 { value: U16::new(value), pad: [0; 2] }))
    };
    let u8_arg = |out: &mut Out, kind, value| {
        put(out, kind, |out| out.put(&v10::ActionU8 { value, pad: [0; 3] }))
    };
    match *action {
        Action::Output { port, max_len } => {
            let (port, max_len) = (U16::new(port.to_v10()?), U16::new(max_len));
            out.put(&v10::Output { kind: U16::ZERO, length: U16::new(8), port, max_len })
        }
        Action::SetVlanVid(vid) => u16_arg(out, 1, vid),
        Action::SetVlanPcp(pcp) => u8_arg(out, 2, pcp),
        Action::PopVlan => put(out, 3, |out| out.zeros(4)),
        Action::SetTpSrc(port) => u16_arg(out, 9, port),
        Action::SetTpDst(port) => u16_arg(out, 10, port),
        Action::Enqueue { port, queue } => {
            let port = U16::new(port.to_v10()?);
            let wire = v10::ActionEnqueue { port, pad: [0; 6], queue_id: U32::new(queue) };
            put(out, 11, |out| out.put(&wire))
        }
        Action::SetField(field, value) => {
            let mac = |out: &mut Out, kind| {
                let address = crate::MacAddr::from_u64(value as u64).0;
                put(out, kind, |out| out.put(&v10::ActionMac { address, pad: [0; 6] }))
            };
            let ipv4 = |out: &mut Out, kind| put(out, kind, |out| out.put(&U32::new(value as u32)));
            match field {
                Field::VlanVid => u16_arg(out, 1, value as u16 & 0x0fff),
                Field::VlanPcp => u8_arg(out, 2, value as u8),
                Field::EthSrc => mac(out, 4),
                Field::EthDst => mac(out, 5),
                Field::Ipv4Src => ipv4(out, 6),
                Field::Ipv4Dst => ipv4(out, 7),
                Field::IpDscp => u8_arg(out, 8, (value as u8) << 2),
                Field::TcpSrc | Field::UdpSrc => u16_arg(out, 9, value as u16),
                Field::TcpDst | Field::UdpDst => u16_arg(out, 10, value as u16),
                _ => Err(unsupported(field.set_name(), Version::V1_0)),
            }
        }
        Action::Experimenter { experimenter, data } => put_experimenter(out, experimenter, data),
        Action::Unknown { kind, body } => put(out, kind, |out| out.append(&body)),
        Action::CopyTtlOut | Action::CopyTtlIn => Err(unsupported("copy_ttl", Version::V1_0)),
        Action::SetMplsTtl(_) | Action::DecMplsTtl | Action::PushMpls(_) | Action::PopMpls(_) => {
            Err(unsupported("MPLS actions", Version::V1_0))
        }
        Action::PushVlan(_) => Err(unsupported("push_vlan (use tag)", Version::V1_0)),
        Action::SetQueue(_) => Err(unsupported("set_queue (use enqueue)", Version::V1_0)),
        Action::Group(_) => Err(unsupported("groups", Version::V1_0)),
        Action::SetNwTtl(_) | Action::DecNwTtl => {
            Err(unsupported("set_ip_ttl and dec_ttl", Version::V1_0))
        }
        Action::SetUnknownField { .. } => {
            Err(unsupported("set_field of this field", Version::V1_0))
        }
        Action::PushPbb(_) | Action::PopPbb => Err(unsupported("PBB actions", Version::V1_0)),
    }
}

fn encode_v13(action: &Action<'_>, version: Version, out: &mut Out) -> Result<(), EncodeError> {
    let bare = |out: &mut Out, kind| put(out, kind, |out| out.zeros(4));
    let u8_arg = |out: &mut Out, kind, value| {
        put(out, kind, |out| out.put(&v13::ActionU8 { value, pad: [0; 3] }))
    };
    let u16_arg = |out: &mut Out, kind, value| {
        put(out, kind, |out| out.put(&v13::ActionU16 { value: U16::new(value), pad: [0; 2] }))
    };
    let u32_arg = |out: &mut Out, kind, value| {
        put(out, kind, |out| out.put(&v13::ActionU32 { value: U32::new(value) }))
    };
    match *action {
        Action::Output { port, max_len } => out.put(&v13::Output {
            kind: U16::ZERO,
            length: U16::new(16),
            port: U32::new(port.0),
            max_len: U16::new(max_len),
            pad: [0; 6],
        }),
        Action::CopyTtlOut => bare(out, 11),
        Action::CopyTtlIn => bare(out, 12),
        Action::SetMplsTtl(ttl) => u8_arg(out, 15, ttl),
        Action::DecMplsTtl => bare(out, 16),
        Action::PushVlan(eth_type) => u16_arg(out, 17, eth_type),
        Action::PopVlan => bare(out, 18),
        Action::PushMpls(eth_type) => u16_arg(out, 19, eth_type),
        Action::PopMpls(eth_type) => u16_arg(out, 20, eth_type),
        Action::SetQueue(queue) => u32_arg(out, 21, queue),
        Action::Group(group) => u32_arg(out, 22, group),
        Action::SetNwTtl(ttl) => u8_arg(out, 23, ttl),
        Action::DecNwTtl => bare(out, 24),
        Action::SetField(field, value) => put(out, SET_FIELD, |out| {
            oxm::put_header(field, false, out)?;
            out.append(value.to_be_bytes().get(16 - field.bytes()..).unwrap_or(&[]))
        }),
        Action::SetUnknownField { header, value } => put(out, SET_FIELD, |out| {
            out.put(&U32::new(header))?;
            out.append(&value)
        }),
        Action::PushPbb(eth_type) => u16_arg(out, 26, eth_type),
        Action::PopPbb => bare(out, 27),
        Action::Experimenter { experimenter, data } => put_experimenter(out, experimenter, data),
        Action::Unknown { kind, body } => put(out, kind, |out| out.append(&body)),
        Action::SetVlanVid(_) | Action::SetVlanPcp(_) => {
            Err(unsupported("set_vlan that adds a tag (use push_vlan and set_field)", version))
        }
        Action::SetTpSrc(_) | Action::SetTpDst(_) => {
            Err(unsupported("set_tp without a protocol (use set_field)", version))
        }
        Action::Enqueue { .. } => Err(unsupported("enqueue (use set_queue and output)", version)),
    }
}

fn put_experimenter(out: &mut Out, experimenter: u32, data: Bytes<'_>) -> Result<(), EncodeError> {
    put(out, EXPERIMENTER, |out| {
        out.put(&U32::new(experimenter))?;
        out.append(&data)
    })
}

fn unsupported(what: &'static str, version: Version) -> EncodeError {
    EncodeError::Unsupported { what, version }
}
