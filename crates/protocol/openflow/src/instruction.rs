//! Instructions (1.3.5 §7.2.4). 1.0 has none: its action list is one `ApplyActions`.

use std::fmt;

use crate::list::{Element, List};
use crate::reader::Reader;
use crate::wire::{Tlv, U16, U32, U64, v13};
use crate::{Action, Bytes, DecodeError, EncodeError, ErrorCode, Family, Out, Reason, Version};

/// An instruction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Instruction<'a> {
    /// Continue in a later table.
    GotoTable(u8),
    /// Write metadata in the bits of the mask.
    WriteMetadata {
        /// The bits to write.
        metadata: u64,
        /// The bits to change.
        mask: u64,
    },
    /// Merge these actions into the action set.
    WriteActions(List<'a, Action<'a>>),
    /// Apply these actions now, in order. 1.0 has only this instruction.
    ApplyActions(List<'a, Action<'a>>),
    /// Empty the action set.
    ClearActions,
    /// Pass through this meter first.
    Meter(u32),
    /// An experimenter's instruction.
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The bytes after the id.
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

const GOTO_TABLE: u16 = 1;
const WRITE_METADATA: u16 = 2;
pub(crate) const WRITE_ACTIONS: u16 = 3;
pub(crate) const APPLY_ACTIONS: u16 = 4;
const CLEAR_ACTIONS: u16 = 5;
const METER: u16 = 6;
const EXPERIMENTER: u16 = 0xffff;

impl<'a> Element<'a> for Instruction<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if version.family() == Family::Fixed {
            let answer = ErrorCode::RequestBadVersion;
            return Err(reader.error("instruction", Reason::Version(version.wire()), answer));
        }
        let start = *reader;
        let head: &Tlv = reader.fixed("instruction")?;
        let (kind, length) = (head.kind.get(), usize::from(head.length.get()));
        let is_odd = length < 8 || !length.is_multiple_of(8);
        if length < size_of::<Tlv>() || (is_odd && !reader.is_liberal()) {
            return Err(start.bad_length("instruction.length", length));
        }
        let body = reader.sub(length - size_of::<Tlv>(), "instruction")?;
        if is_odd {
            return Ok(Instruction::Unknown { kind, body: Bytes(body.peek()) });
        }
        body.or_keep(
            |body| Instruction::decode_body(version, kind, body),
            |body| Instruction::Unknown { kind, body: Bytes(body) },
        )
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        self.encode_in(version, out)
    }
}

impl<'a> Instruction<'a> {
    /// Reads the bytes after type and length.
    fn decode_body(version: Version, kind: u16, mut body: Reader<'a>) -> Result<Self, DecodeError> {
        let actions = |body: &mut Reader<'a>| {
            body.take(4, "instruction padding")?;
            let list = List::decode_within(version, body.answering(ErrorCode::ActionBadLength))?;
            body.take_rest();
            Ok(list)
        };
        let instruction = match kind {
            GOTO_TABLE => {
                let wire: &v13::InstructionGotoTable = body.fixed("goto_table")?;
                Instruction::GotoTable(wire.table_id)
            }
            WRITE_METADATA => {
                let wire: &v13::InstructionWriteMetadata = body.fixed("write_metadata")?;
                Instruction::WriteMetadata { metadata: wire.metadata.get(), mask: wire.mask.get() }
            }
            WRITE_ACTIONS => Instruction::WriteActions(actions(&mut body)?),
            APPLY_ACTIONS => Instruction::ApplyActions(actions(&mut body)?),
            CLEAR_ACTIONS => {
                body.take(4, "clear_actions")?;
                Instruction::ClearActions
            }
            METER => Instruction::Meter(body.fixed::<U32>("meter")?.get()),
            EXPERIMENTER => Instruction::Experimenter {
                experimenter: body.fixed::<U32>("experimenter")?.get(),
                data: Bytes(body.take_rest()),
            },
            kind => Instruction::Unknown { kind, body: Bytes(body.take_rest()) },
        };
        body.finish("instruction")?;
        Ok(instruction)
    }

    fn encode_in(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        if version.family() == Family::Fixed {
            return match self {
                Instruction::ApplyActions(actions) => actions.encode(version, out),
                _ => Err(EncodeError::Unsupported {
                    what: "instructions other than apply_actions",
                    version,
                }),
            };
        }
        let start = out.len();
        let mut head = |kind: u16| out.put(&Tlv { kind: U16::new(kind), length: U16::ZERO });
        match *self {
            Instruction::GotoTable(table_id) => {
                head(GOTO_TABLE)?;
                out.put(&v13::InstructionGotoTable { table_id, pad: [0; 3] })?;
            }
            Instruction::WriteMetadata { metadata, mask } => {
                head(WRITE_METADATA)?;
                out.put(&v13::InstructionWriteMetadata {
                    pad: [0; 4],
                    metadata: U64::new(metadata),
                    mask: U64::new(mask),
                })?;
            }
            Instruction::WriteActions(actions) => {
                head(WRITE_ACTIONS)?;
                out.zeros(4)?;
                actions.encode(version, out)?;
            }
            Instruction::ApplyActions(actions) => {
                head(APPLY_ACTIONS)?;
                out.zeros(4)?;
                actions.encode(version, out)?;
            }
            Instruction::ClearActions => {
                head(CLEAR_ACTIONS)?;
                out.zeros(4)?;
            }
            Instruction::Meter(meter) => {
                head(METER)?;
                out.put(&U32::new(meter))?;
            }
            Instruction::Experimenter { experimenter, data } => {
                head(EXPERIMENTER)?;
                out.put(&U32::new(experimenter))?;
                out.append(&data)?;
            }
            Instruction::Unknown { kind, body } => {
                head(kind)?;
                out.append(&body)?;
            }
        }
        out.pad8(start)?;
        out.patch_length(start, 2, "instruction")
    }
}

/// The instructions of a flow: a list, or just actions to apply. 1.0 has only actions, and most
/// flows need only actions.
#[derive(Clone, Copy)]
pub struct Instructions<'a>(Repr<'a>);

#[derive(Clone, Copy)]
enum Repr<'a> {
    List(List<'a, Instruction<'a>>),
    Apply(List<'a, Action<'a>>),
}

impl<'a> Instructions<'a> {
    /// Makes a list of instructions.
    #[must_use]
    pub const fn of(items: &'a [Instruction<'a>]) -> Self {
        Instructions(Repr::List(List::of(items)))
    }

    /// Applies these actions, in order. No actions mean drop.
    #[must_use]
    pub const fn apply(actions: &'a [Action<'a>]) -> Self {
        Instructions(Repr::Apply(List::of(actions)))
    }

    /// No instructions: matching packets are dropped.
    #[must_use]
    pub const fn none() -> Self {
        Instructions(Repr::Apply(List::empty()))
    }

    /// Iterates over the instructions. Plain actions come as one [`Instruction::ApplyActions`]; no
    /// actions as no item.
    pub fn iter(&self) -> impl Iterator<Item = Instruction<'a>> + use<'a> {
        let (apply, list) = match self.0 {
            Repr::List(list) => (None, list),
            Repr::Apply(actions) if actions.is_empty() => (None, List::empty()),
            Repr::Apply(actions) => (Some(Instruction::ApplyActions(actions)), List::empty()),
        };
        apply.into_iter().chain(list)
    }

    /// Returns the bytes after the last readable instruction (1.0: action); see [`List::unread`].
    #[must_use]
    pub fn unread(&self) -> &'a [u8] {
        match self.0 {
            Repr::List(list) => list.unread(),
            Repr::Apply(actions) => actions.unread(),
        }
    }

    /// Returns whether this is a list of actions, without instructions around it.
    pub(crate) fn is_apply(&self) -> bool {
        matches!(self.0, Repr::Apply(_))
    }

    /// Returns whether all of them follow the specification.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        match self.0 {
            Repr::List(list) => list.is_strict(),
            Repr::Apply(actions) => actions.is_strict(),
        }
    }

    pub(crate) fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let repr = match version.family() {
            Family::Fixed => Repr::Apply(List::decode_within(
                version,
                reader.answering(ErrorCode::ActionBadLength),
            )?),
            Family::Oxm => Repr::List(List::decode_within(
                version,
                reader.answering(ErrorCode::InstructionBadLength),
            )?),
        };
        reader.take_rest();
        Ok(Instructions(repr))
    }

    pub(crate) fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match (self.0, version.family()) {
            (Repr::List(list), _) => list.encode(version, out),
            (Repr::Apply(actions), Family::Fixed) => actions.encode(version, out),
            (Repr::Apply(actions), Family::Oxm) if actions.is_empty() => Ok(()),
            (Repr::Apply(actions), Family::Oxm) => {
                Instruction::ApplyActions(actions).encode(version, out)
            }
        }
    }
}

impl Default for Instructions<'_> {
    fn default() -> Self {
        Instructions::none()
    }
}

impl PartialEq for Instructions<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter()) && self.unread() == other.unread()
    }
}

impl Eq for Instructions<'_> {}

impl fmt::Debug for Instructions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Instructions<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
