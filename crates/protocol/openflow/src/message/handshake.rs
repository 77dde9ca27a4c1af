//! Messages about the connection and the whole switch.

use super::Body;
use crate::flags::flags;
use crate::list::{Element, List};
use crate::reader::{Reader, Strictness};
use crate::wire::{self, Tlv, U16, U32, U64, v10, v13};
use crate::{
    Bytes, DecodeError, EncodeError, ErrorCode, Family, HEADER_LEN, Header, Out, PortDesc, Reason,
    Version, Versions, property,
};

/// The first message from each side (1.0 §5.5.1; 1.3.5 §7.5.1).
///
/// The version in its header is the highest that the sender supports. Its elements can list all
/// supported versions. 1.3.1 added elements, but a peer may send them under any version: Open
/// vSwitch does if its versions are 1.0 and 1.2. In versions before 1.3 bytes after the header have
/// no meaning unless all of them are elements, among them a bitmap; they are not checked, and are
/// kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    body: Bytes<'a>,
}

/// Serialises its elements: `{"elements": [{"version_bitmap": [1, 4]}]}`. Before 1.3, bytes after
/// the header that cannot be read so are left out.
#[cfg(feature = "serde")]
impl serde::Serialize for Hello<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("elements", self.elements(FIRST_WITH_ELEMENTS))])
    }
}

/// The first wire version with elements in its hello (1.3.1).
const FIRST_WITH_ELEMENTS: u8 = 4;
const VERSION_BITMAP: u16 = 1;

impl<'a> Hello<'a> {
    /// A hello without elements: only the version in its header counts.
    #[must_use]
    pub const fn bare() -> Self {
        Hello { body: Bytes(&[]) }
    }

    /// Reads a hello of any version, supported or not. Returns the header and the hello. Elements
    /// with an invalid length are left out: the version in the header still counts.
    ///
    /// # Errors
    /// An invalid length in the header.
    pub fn decode_any(message: &'a [u8]) -> Result<(Header, Hello<'a>), DecodeError> {
        Hello::decode_any_as(message, Strictness::Liberal)
    }

    /// As [`Hello::decode_any`], with the given strictness.
    ///
    /// # Errors
    /// An invalid length in the header or, in a strict reading, in an element.
    pub fn decode_any_as(
        message: &'a [u8],
        reading: Strictness,
    ) -> Result<(Header, Hello<'a>), DecodeError> {
        let header = Header::read(message);
        let whole = header.filter(|header| usize::from(header.length) == message.len());
        let header = whole.ok_or(DecodeError {
            what: "header.length",
            offset: 2,
            reason: Reason::Length(message.len()),
            answer: ErrorCode::RequestBadLength,
        })?;
        let mut reader = Reader::new(message).reading(reading);
        reader.take(HEADER_LEN, "header")?;
        Ok((header, Hello::decode_body(header.version, &mut reader)?))
    }

    /// Writes a hello: the highest version in the header and, if that is 1.3 or later, a bitmap of
    /// all versions (1.3.5 §7.5.1).
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn write(
        versions: impl Into<Versions>,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), EncodeError> {
        let versions = versions.into();
        let highest = versions.highest().wire();
        out.message(highest, 0, xid, |out| {
            if highest < FIRST_WITH_ELEMENTS {
                return Ok(());
            }
            out.put(&Tlv { kind: U16::new(VERSION_BITMAP), length: U16::new(8) })?;
            out.put(&U32::new(versions.bitmap()))
        })
    }

    /// Returns its elements. Before version 1.3, these are none unless the whole body is elements,
    /// and one of them is a bitmap.
    #[must_use]
    pub fn elements(&self, version: u8) -> List<'a, HelloElement<'a>> {
        let body = Reader::new(self.body.0);
        if version >= FIRST_WITH_ELEMENTS {
            let body = body.reading(Strictness::Liberal);
            return List::decode_within(Version::HIGHEST, body).unwrap_or_default();
        }
        let elements = List::decode_within(Version::HIGHEST, body.reading(Strictness::Strict));
        let is_bitmap = |element| matches!(element, HelloElement::VersionBitmap(_));
        elements.ok().filter(|list| list.iter().any(is_bitmap)).unwrap_or_default()
    }

    /// Returns whether its bitmap contains a wire version; `None` if it has no bitmap.
    #[must_use]
    pub fn names(&self, version: u8, wanted: u8) -> Option<bool> {
        self.elements(version).iter().find_map(|element| match element {
            HelloElement::VersionBitmap(words) => {
                Some(bitmap_versions(&words).any(|version| version == wanted))
            }
            HelloElement::Unknown { .. } => None,
        })
    }

    fn decode_body(version: u8, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if version >= FIRST_WITH_ELEMENTS {
            List::<HelloElement<'_>>::decode_within(Version::HIGHEST, *reader)?;
        }
        Ok(Hello { body: Bytes(reader.take_rest()) })
    }
}

impl<'a> Body<'a> for Hello<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Hello::decode_body(version.wire(), reader)
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.append(&self.body)
    }
}

/// An element of a hello (1.3.5 §7.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum HelloElement<'a> {
    /// One bit per version, in big-endian words of 32 bits, the lowest first.
    VersionBitmap(#[cfg_attr(feature = "serde", serde(serialize_with = "as_versions"))] Bytes<'a>),
    /// An element that the specification does not name.
    Unknown {
        /// Its type.
        kind: u16,
        /// The bytes after its length.
        body: Bytes<'a>,
    },
}

/// Returns the wire versions in a bitmap. A version is a byte, so words after the eighth are
/// ignored.
pub(crate) fn bitmap_versions(words: &[u8]) -> impl Iterator<Item = u8> {
    (0..=u8::MAX).filter(|version| {
        let word = words.chunks_exact(4).nth(usize::from(version / 32));
        let word = word.and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
        word.is_some_and(|word| word >> (version % 32) & 1 != 0)
    })
}

#[cfg(feature = "serde")]
fn as_versions<S: serde::Serializer>(words: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(bitmap_versions(words))
}

/// Returns whether the next element begins where padding should be. Some switches omit the padding,
/// not only of the last element.
fn is_unpadded(rest: &[u8], padding: usize) -> bool {
    let (pad, behind) = rest.split_at_checked(padding).unwrap_or((rest, &[]));
    let is_padding = pad.iter().all(|byte| *byte == 0) && (behind.is_empty() || is_element(behind));
    !is_padding && is_element(rest)
}

/// Returns whether bytes begin with a complete element.
fn is_element(bytes: &[u8]) -> bool {
    let Some([_, _, high, low]) = bytes.first_chunk::<{ size_of::<Tlv>() }>() else { return false };
    (size_of::<Tlv>()..=bytes.len()).contains(&u16::from_be_bytes([*high, *low]).into())
}

impl<'a> Element<'a> for HelloElement<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (kind, body) = property::read_unpadded(reader, "hello element")?;
        let body = Bytes(body.peek());
        let length = size_of::<Tlv>() + body.len();
        let padding = (length.next_multiple_of(8) - length).min(reader.len());
        if !is_unpadded(reader.peek(), padding) {
            reader.take(padding, "hello element")?;
        }
        Ok(match kind {
            VERSION_BITMAP => HelloElement::VersionBitmap(body),
            kind => HelloElement::Unknown { kind, body },
        })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        let (kind, body) = match self {
            HelloElement::VersionBitmap(words) => (VERSION_BITMAP, words),
            HelloElement::Unknown { kind, body } => (*kind, body),
        };
        property::write(kind, "hello element", out, |out| out.append(body))
    }
}

/// Reports a fault in a message (1.0 §5.4.4; 1.3.5 §7.4.4). It has the xid of that message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ErrorMessage<'a> {
    /// An error with a name, or with numbers of the specification.
    Standard {
        /// The error.
        code: ErrorCode,
        /// At least 64 bytes of the faulty message, or all of it. For a failed hello, a text.
        data: Bytes<'a>,
    },
    /// An experimenter's error without a name (1.3).
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// Its type.
        kind: u16,
        /// The experimenter's data.
        data: Bytes<'a>,
    },
}

/// `OFPET_EXPERIMENTER`.
const ERROR_EXPERIMENTER: u16 = 0xffff;

/// Type and code of the errors that Open vSwitch sends in 1.0 for what 1.0 has no error for
/// (`NXET_VENDOR` and `NXVC_VENDOR_ERROR` of its `nicira-ext.h`). The vendor's id, type and code
/// follow, then the faulty message.
const ERROR_VENDOR: (u16, u16) = (0xb0c2, 0);

impl<'a> ErrorMessage<'a> {
    /// Bytes of the faulty message that an error contains. The specification requires at least 64,
    /// or the whole message if it is shorter.
    pub const DATA_LEN: usize = 64;
}

impl<'a> Body<'a> for ErrorMessage<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &wire::Error = reader.fixed("error")?;
        let (kind, code) = (wire.kind.get(), wire.code.get());
        if version.family() == Family::Oxm && kind == ERROR_EXPERIMENTER {
            let experimenter = reader.fixed::<U32>("error.experimenter")?.get();
            let data = Bytes(reader.take_rest());
            return Ok(match ErrorCode::from_experimenter(experimenter, code) {
                Some(code) => ErrorMessage::Standard { code, data },
                None => ErrorMessage::Experimenter { experimenter, kind: code, data },
            });
        }
        if version.family() == Family::Fixed
            && (kind, code) == ERROR_VENDOR
            && let Ok(error) = reader.fixed::<v10::VendorError>("error.vendor")
        {
            let (kind, code) = (error.kind.get(), error.code.get());
            let code = ErrorCode::from_vendor(error.vendor.get(), kind, code);
            return Ok(ErrorMessage::Standard { code, data: Bytes(reader.take_rest()) });
        }
        let code = ErrorCode::from_wire(version, kind, code);
        Ok(ErrorMessage::Standard { code, data: Bytes(reader.take_rest()) })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match self {
            ErrorMessage::Standard { code, data } => {
                encode_code(*code, version, out)?;
                out.append(data)
            }
            ErrorMessage::Experimenter { experimenter, kind, data } => {
                if version.family() == Family::Fixed {
                    let what = "an experimenter error";
                    return Err(EncodeError::Unsupported { what, version });
                }
                let kind = U16::new(*kind);
                out.put(&wire::Error { kind: U16::new(ERROR_EXPERIMENTER), code: kind })?;
                out.put(&U32::new(*experimenter))?;
                out.append(data)
            }
        }
    }
}

/// Writes the numbers of an error: those of the specification, otherwise those of a vendor.
fn encode_code(code: ErrorCode, version: Version, out: &mut Out) -> Result<(), EncodeError> {
    let head = |kind, code| wire::Error { kind: U16::new(kind), code: U16::new(code) };
    if let Some((kind, code)) = code.wire(version) {
        return out.put(&head(kind, code));
    }
    match version.family() {
        Family::Fixed => {
            if let Some((vendor, kind, code)) = code.vendor_numbers() {
                out.put(&head(ERROR_VENDOR.0, ERROR_VENDOR.1))?;
                let (kind, code) = (U16::new(kind), U16::new(code));
                return out.put(&v10::VendorError { vendor: U32::new(vendor), kind, code });
            }
        }
        Family::Oxm => {
            if let Some((experimenter, kind)) = code.experimenter_numbers() {
                out.put(&head(ERROR_EXPERIMENTER, kind))?;
                return out.put(&U32::new(experimenter));
            }
        }
    }
    Err(EncodeError::Unsupported { what: "this error", version })
}

/// A message of an experimenter (1.0: vendor) (1.0 §5.5.4; 1.3.5 §7.5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Experimenter<'a> {
    /// The experimenter's id: an IEEE OUI, or an id from the ONF.
    pub experimenter: u32,
    /// The experimenter's type. 1.0 has none: there it is in the first four bytes of the data.
    pub kind: Option<u32>,
    /// The experimenter's data.
    pub data: Bytes<'a>,
}

impl<'a> Body<'a> for Experimenter<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let experimenter = reader.fixed::<U32>("experimenter")?.get();
        let kind = match version.family() {
            Family::Fixed => None,
            Family::Oxm => Some(reader.fixed::<U32>("experimenter type")?.get()),
        };
        Ok(Experimenter { experimenter, kind, data: Bytes(reader.take_rest()) })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&U32::new(self.experimenter))?;
        match (version.family(), self.kind) {
            (Family::Fixed, None) => {}
            (Family::Oxm, Some(kind)) => out.put(&U32::new(kind))?,
            _ => {
                return Err(EncodeError::Unsupported {
                    what: "an experimenter message with (1.0) or without (1.3) a type",
                    version,
                });
            }
        }
        out.append(&self.data)
    }
}

flags! {
    /// Capabilities of a switch (`ofp_capabilities`). 1.0's `STP` has its own bit here, because 1.3
    /// uses its bit for `GROUP_STATS`.
    Capabilities: u64 {
        FLOW_STATS = 1 << 0;
        TABLE_STATS = 1 << 1;
        PORT_STATS = 1 << 2;
        GROUP_STATS = 1 << 3;
        IP_REASM = 1 << 5;
        QUEUE_STATS = 1 << 6;
        ARP_MATCH_IP = 1 << 7;
        PORT_BLOCKED = 1 << 8;
        STP = 1 << 32;
    }
}

impl Capabilities {
    fn from_wire(version: Version, bits: u32) -> Self {
        let bits = u64::from(bits);
        Capabilities::from_bits_retain(match version.family() {
            Family::Fixed => bits & !(1 << 3) | (bits >> 3 & 1) << 32,
            Family::Oxm => bits,
        })
    }

    fn wire(self, version: Version) -> Result<u32, EncodeError> {
        match version.family() {
            Family::Fixed if self.contains(Capabilities::GROUP_STATS) => {
                Err(EncodeError::Unsupported { what: "group statistics", version })
            }
            Family::Fixed => Ok(self.bits() as u32 | (((self.bits() >> 32) & 1) << 3) as u32),
            Family::Oxm => u32::try_from(self.bits())
                .map_err(|_| EncodeError::Unsupported { what: "the capability STP", version }),
        }
    }
}

/// Identity and capabilities of a switch (1.0 §5.3.1; 1.3.5 §7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Features<'a> {
    /// Datapath id. The lower 48 bits are usually a MAC address.
    pub datapath_id: u64,
    /// Number of packets that it can buffer.
    pub n_buffers: u32,
    /// Number of flow tables.
    pub n_tables: u8,
    /// 0 for a main connection (always so in 1.0).
    pub auxiliary_id: u8,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// 1.0: one bit per supported action type. Reserved in 1.3.
    pub actions: u32,
    /// 1.0: its ports. 1.3 requests them with [`crate::MultipartKind::PortDesc`].
    pub ports: List<'a, PortDesc>,
}

impl<'a> Body<'a> for Features<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &wire::Features = reader.fixed("features")?;
        let ports = match version.family() {
            Family::Fixed => {
                let ports = List::decode(version, *reader)?;
                reader.take_rest();
                ports
            }
            Family::Oxm => List::empty(),
        };
        Ok(Features {
            datapath_id: wire.datapath_id.get(),
            n_buffers: wire.n_buffers.get(),
            n_tables: wire.n_tables,
            auxiliary_id: if version.family() == Family::Fixed { 0 } else { wire.auxiliary_id },
            capabilities: Capabilities::from_wire(version, wire.capabilities.get()),
            actions: wire.reserved.get(),
            ports,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let unsupported = |what| Err(EncodeError::Unsupported { what, version });
        match version.family() {
            Family::Fixed if self.auxiliary_id != 0 => return unsupported("auxiliary connections"),
            Family::Oxm if !self.ports.is_empty() => return unsupported("ports in features"),
            _ => {}
        }
        out.put(&wire::Features {
            datapath_id: U64::new(self.datapath_id),
            n_buffers: U32::new(self.n_buffers),
            n_tables: self.n_tables,
            auxiliary_id: self.auxiliary_id,
            pad: [0; 2],
            capabilities: U32::new(self.capabilities.wire(version)?),
            reserved: U32::new(self.actions),
        })?;
        self.ports.encode(version, out)
    }
}

flags! {
    /// Treatment of IP fragments, and (until 1.2) of packets with an expired TTL
    /// (`ofp_config_flags`). Without `DROP` and `REASM`, fragments are treated like other packets.
    ConfigFlags: u16 {
        FRAG_DROP = 1 << 0;
        FRAG_REASM = 1 << 1;
        INVALID_TTL_TO_CONTROLLER = 1 << 2;
    }
}

/// Configuration of a switch (1.0 §5.3.2; 1.3.5 §7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SwitchConfig {
    /// Treatment of fragments.
    pub flags: ConfigFlags,
    /// Bytes of a packet that go to the controller on a table miss. In 1.3 the table-miss entry
    /// decides this instead, and 0xffff means the whole packet, unbuffered.
    pub miss_send_len: u16,
}

impl<'a> Body<'a> for SwitchConfig {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &wire::SwitchConfig = reader.fixed("switch config")?;
        Ok(SwitchConfig {
            flags: ConfigFlags::from_bits_retain(wire.flags.get()),
            miss_send_len: wire.miss_send_len.get(),
        })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&wire::SwitchConfig {
            flags: U16::new(self.flags.bits()),
            miss_send_len: U16::new(self.miss_send_len),
        })
    }
}

/// The messages that a switch sends by itself to one role: one bit per reason number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AsyncMasks {
    /// Reasons of packet_in.
    pub packet_in: u32,
    /// Reasons of port_status.
    pub port_status: u32,
    /// Reasons of flow_removed.
    pub flow_removed: u32,
}

/// Configuration of the messages that a switch sends by itself (1.3.5 §7.3.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AsyncConfig {
    /// To a master or equal.
    pub master: AsyncMasks,
    /// To a slave.
    pub slave: AsyncMasks,
}

impl<'a> Body<'a> for AsyncConfig {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &v13::Async = reader.fixed("async config")?;
        let masks = |i: usize| AsyncMasks {
            packet_in: wire.packet_in[i].get(),
            port_status: wire.port_status[i].get(),
            flow_removed: wire.flow_removed[i].get(),
        };
        Ok(AsyncConfig { master: masks(0), slave: masks(1) })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        let both =
            |of: fn(&AsyncMasks) -> u32| [U32::new(of(&self.master)), U32::new(of(&self.slave))];
        out.put(&v13::Async {
            packet_in: both(|masks| masks.packet_in),
            port_status: both(|masks| masks.port_status),
            flow_removed: both(|masks| masks.flow_removed),
        })
    }
}

/// Configures a table (1.3.5 §7.3.3). 1.3 has no settings left: `config` is deprecated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TableMod {
    /// The table; 255 for all.
    pub table: u8,
    /// Its settings (`ofp_table_config`).
    pub config: u32,
}

impl<'a> Body<'a> for TableMod {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let wire: &v13::TableMod = reader.fixed("table_mod")?;
        Ok(TableMod { table: wire.table_id, config: wire.config.get() })
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        out.put(&v13::TableMod { table_id: self.table, pad: [0; 3], config: U32::new(self.config) })
    }
}
