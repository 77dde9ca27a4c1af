//! Tables: their counters and features (1.0 §5.3.5; 1.3.5 §7.3.5.4, §7.3.5.5).

use super::flow::entry;
use crate::list::{Element, List};
use crate::reader::Reader;
use crate::wire::{U16, U32, U64, v10, v13};
use crate::{
    Bytes, DecodeError, EncodeError, ErrorCode, Family, Field, FixedStr, Out, Version, oxm,
    property,
};

/// Counters of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TableStats {
    /// The table.
    pub table: u8,
    /// Details that only 1.0 has here. 1.3 has more in [`TableFeatures`].
    pub v1_0: Option<TableDetails>,
    /// Number of its flows.
    pub active_count: u32,
    /// Packets that were looked up.
    pub lookup_count: u64,
    /// Packets that matched a flow.
    pub matched_count: u64,
}

/// Details of a table in the statistics of 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TableDetails {
    /// Its name.
    pub name: FixedStr<32>,
    /// Supported wildcards (`ofp_flow_wildcards`).
    pub wildcards: u32,
    /// Maximum number of flows.
    pub max_entries: u32,
}

impl<'a> Element<'a> for TableStats {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match version.family() {
            Family::Fixed => {
                let wire: &v10::TableStats = reader.fixed("table stats")?;
                TableStats {
                    table: wire.table_id,
                    v1_0: Some(TableDetails {
                        name: FixedStr(wire.name),
                        wildcards: wire.wildcards.get(),
                        max_entries: wire.max_entries.get(),
                    }),
                    active_count: wire.active_count.get(),
                    lookup_count: wire.lookup_count.get(),
                    matched_count: wire.matched_count.get(),
                }
            }
            Family::Oxm => {
                let wire: &v13::TableStats = reader.fixed("table stats")?;
                TableStats {
                    table: wire.table_id,
                    v1_0: None,
                    active_count: wire.active_count.get(),
                    lookup_count: wire.lookup_count.get(),
                    matched_count: wire.matched_count.get(),
                }
            }
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let active_count = U32::new(self.active_count);
        let lookup_count = U64::new(self.lookup_count);
        let matched_count = U64::new(self.matched_count);
        match (version.family(), self.v1_0) {
            (Family::Fixed, Some(details)) => out.put(&v10::TableStats {
                table_id: self.table,
                pad: [0; 3],
                name: details.name.0,
                wildcards: U32::new(details.wildcards),
                max_entries: U32::new(details.max_entries),
                active_count,
                lookup_count,
                matched_count,
            }),
            (Family::Oxm, None) => out.put(&v13::TableStats {
                table_id: self.table,
                pad: [0; 3],
                active_count,
                lookup_count,
                matched_count,
            }),
            _ => Err(EncodeError::Unsupported {
                what: "table stats with (1.3) or without (1.0) name, wildcards and size",
                version,
            }),
        }
    }
}

/// Features of a table, reported or requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TableFeatures<'a> {
    /// The table.
    pub table: u8,
    /// Its name.
    pub name: FixedStr<32>,
    /// Bits of metadata that it supports in matches.
    pub metadata_match: u64,
    /// Bits of metadata that it supports in writes.
    pub metadata_write: u64,
    /// Its settings (`ofp_table_config`).
    pub config: u32,
    /// Maximum number of flows.
    pub max_entries: u32,
    /// Its features, property by property.
    pub properties: List<'a, TableProperty<'a>>,
}

impl<'a> Element<'a> for TableFeatures<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let wire: &v13::TableFeatures = reader.fixed("table features")?;
        let body = entry(&start, reader, wire.length.get(), size_of::<v13::TableFeatures>())?;
        Ok(TableFeatures {
            table: wire.table_id,
            name: FixedStr(wire.name),
            metadata_match: wire.metadata_match.get(),
            metadata_write: wire.metadata_write.get(),
            config: wire.config.get(),
            max_entries: wire.max_entries.get(),
            properties: List::decode_within(
                version,
                body.answering(ErrorCode::TableFeaturesBadLength),
            )?,
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        out.put(&v13::TableFeatures {
            length: U16::ZERO,
            table_id: self.table,
            pad: [0; 5],
            name: self.name.0,
            metadata_match: U64::new(self.metadata_match),
            metadata_write: U64::new(self.metadata_write),
            config: U32::new(self.config),
            max_entries: U32::new(self.max_entries),
        })?;
        self.properties.encode(version, out)?;
        out.patch_length(start, 0, "table features")
    }
}

/// A property of a table (`ofp_table_feature_prop_type`). `miss` marks properties of the table-miss
/// entry, if they differ from those of other flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[allow(missing_docs, reason = "every `miss` is as said above")]
pub enum TableProperty<'a> {
    /// Supported instructions.
    Instructions { miss: bool, ids: List<'a, InstructionId<'a>> },
    /// Tables that a flow can go to.
    NextTables {
        miss: bool,
        #[cfg_attr(feature = "serde", serde(serialize_with = "as_numbers"))]
        tables: Bytes<'a>,
    },
    /// Actions that a flow can write to the action set.
    WriteActions { miss: bool, ids: List<'a, ActionId<'a>> },
    /// Actions that a flow can apply.
    ApplyActions { miss: bool, ids: List<'a, ActionId<'a>> },
    /// Fields that flows can match, as OXM headers.
    Match { oxm: List<'a, OxmId> },
    /// Fields that flows can leave out, as OXM headers.
    Wildcards { oxm: List<'a, OxmId> },
    /// Fields that `write_actions` can set, as OXM headers.
    WriteSetField { miss: bool, oxm: List<'a, OxmId> },
    /// Fields that `apply_actions` can set, as OXM headers.
    ApplySetField { miss: bool, oxm: List<'a, OxmId> },
    /// A property of an experimenter, or a type that the specification does not name.
    Unknown { kind: u16, body: Bytes<'a> },
}

/// An OXM header without a value. Its mask bit shows whether masks are supported (1.3.5
/// §7.3.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OxmId {
    /// Class, field, mask bit and length.
    pub header: u32,
    /// The experimenter's id, if the class is `OFPXMC_EXPERIMENTER`: such a header has 64 bits.
    pub experimenter: Option<u32>,
}

impl OxmId {
    /// Makes the header of a field, with or without a mask.
    #[must_use]
    pub const fn of(field: Field, masked: bool) -> Self {
        OxmId { header: oxm::header(field, masked), experimenter: field.experimenter() }
    }

    /// Returns its field; `None` for unknown ones.
    #[must_use]
    pub fn field(self) -> Option<Field> {
        oxm::field(self.header, self.experimenter)
    }

    /// Returns whether its mask bit is set.
    #[must_use]
    pub const fn has_mask(self) -> bool {
        oxm::has_mask(self.header)
    }
}

impl<'a> Element<'a> for OxmId {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let header = reader.fixed::<U32>("oxm id")?.get();
        let experimenter = match oxm::has_experimenter(header) {
            true => Some(reader.fixed::<U32>("oxm experimenter")?.get()),
            false => None,
        };
        Ok(OxmId { header, experimenter })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        if oxm::has_experimenter(self.header) != self.experimenter.is_some() {
            let what = "an OXM class with or without an experimenter";
            return Err(EncodeError::Unsupported { what, version });
        }
        out.put(&U32::new(self.header))?;
        self.experimenter.map_or(Ok(()), |experimenter| out.put(&U32::new(experimenter)))
    }
}

/// Serialises as it prints: `eth_dst/mask`.
#[cfg(feature = "serde")]
impl serde::Serialize for OxmId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        pub struct $name<'a> {
            /// The number of the type.
            pub kind: u16,
            /// An experimenter's id and data; empty for other types.
            pub body: Bytes<'a>,
        }

        impl<'a> Element<'a> for $name<'a> {
            fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                let (kind, body) = property::read_unpadded(reader, $what)?;
                Ok($name { kind, body: Bytes(body.peek()) })
            }

            fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
                property::write_unpadded(self.kind, $what, out, |out| out.append(&self.body))
            }
        }
    )*};
}

ids! {
    /// An instruction type, without its content.
    InstructionId "instruction id";
    /// An action type, without its content.
    ActionId "action id";
}

impl<'a> Element<'a> for TableProperty<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (kind, body) = property::read(reader, "table property")?;
        // Each even type is followed by the same type for the table-miss entry.
        let miss = kind % 2 == 1;
        Ok(match kind {
            0 | 1 => TableProperty::Instructions { miss, ids: List::decode_within(version, body)? },
            2 | 3 => TableProperty::NextTables { miss, tables: Bytes(body.peek()) },
            4 | 5 => TableProperty::WriteActions { miss, ids: List::decode_within(version, body)? },
            6 | 7 => TableProperty::ApplyActions { miss, ids: List::decode_within(version, body)? },
            8 => TableProperty::Match { oxm: List::decode_within(version, body)? },
            10 => TableProperty::Wildcards { oxm: List::decode_within(version, body)? },
            12 | 13 => {
                TableProperty::WriteSetField { miss, oxm: List::decode_within(version, body)? }
            }
            14 | 15 => {
                TableProperty::ApplySetField { miss, oxm: List::decode_within(version, body)? }
            }
            kind => TableProperty::Unknown { kind, body: Bytes(body.peek()) },
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        property::write(self.wire_kind(), "table property", out, |out| match self {
            TableProperty::Instructions { ids, .. } => ids.encode(version, out),
            TableProperty::NextTables { tables: body, .. }
            | TableProperty::Unknown { body, .. } => out.append(body),
            TableProperty::WriteActions { ids, .. } | TableProperty::ApplyActions { ids, .. } => {
                ids.encode(version, out)
            }
            TableProperty::Match { oxm }
            | TableProperty::Wildcards { oxm }
            | TableProperty::WriteSetField { oxm, .. }
            | TableProperty::ApplySetField { oxm, .. } => oxm.encode(version, out),
        })
    }
}

#[cfg(feature = "serde")]
fn as_numbers<S: serde::Serializer>(tables: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(tables)
}

impl TableProperty<'_> {
    fn wire_kind(&self) -> u16 {
        match *self {
            TableProperty::Instructions { miss, .. } => u16::from(miss),
            TableProperty::NextTables { miss, .. } => 2 + u16::from(miss),
            TableProperty::WriteActions { miss, .. } => 4 + u16::from(miss),
            TableProperty::ApplyActions { miss, .. } => 6 + u16::from(miss),
            TableProperty::Match { .. } => 8,
            TableProperty::Wildcards { .. } => 10,
            TableProperty::WriteSetField { miss, .. } => 12 + u16::from(miss),
            TableProperty::ApplySetField { miss, .. } => 14 + u16::from(miss),
            TableProperty::Unknown { kind, .. } => kind,
        }
    }
}
