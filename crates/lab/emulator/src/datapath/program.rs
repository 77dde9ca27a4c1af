//! The instructions of a flow, checked and ready to run.

use bellrock_openflow::{Action, ErrorCode, Field, Instruction, Instructions, List, Match, Port};

use super::actions::{CheckedActions, Checker, MAX_ACTIONS};

/// What happens to a packet that matches a flow (1.3.5 §5.9; 1.0: its actions).
///
/// Instructions run in the order of the specification, whatever order they came in: meter, apply,
/// clear, write, metadata, goto.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowProgram {
    /// The meter that packets pass through first.
    pub meter: Option<u32>,
    /// Actions to apply at once, in order.
    pub apply: Option<CheckedActions>,
    /// Whether to clear the action set.
    pub clear: bool,
    /// Actions to merge into the action set.
    pub write: Option<CheckedActions>,
    /// Metadata to write, and its mask.
    pub metadata: Option<(u64, u64)>,
    /// The table to continue in.
    pub goto: Option<u8>,
    /// Whether the key after the program can hold values that do not follow from the key before it.
    pub(super) unpredictable: bool,
}

/// Maximum number of instructions of a program: one of each kind.
const INSTRUCTION_KINDS: usize = 6;

impl FlowProgram {
    /// Checks the instructions of a flow with this match in this table.
    ///
    /// # Errors
    /// The error that the specification names for the first fault: of an action
    /// (`OFPET_BAD_ACTION`; `OFPBAC_TOO_MANY` for more than [`MAX_ACTIONS`]), of an instruction
    /// (`OFPET_BAD_INSTRUCTION`), or `OFPMMFC_INVALID_METER` for a meter that does not exist.
    pub fn compile(
        instructions: &Instructions<'_>,
        table: u8,
        matching: &Match,
        checker: &Checker<'_>,
    ) -> Result<Self, ErrorCode> {
        let mut program = FlowProgram::default();
        for instruction in instructions.iter() {
            let twice = match instruction {
                Instruction::GotoTable(next) => {
                    if next <= table || next >= checker.tables {
                        return Err(ErrorCode::InstructionBadTable);
                    }
                    program.goto.replace(next).is_some()
                }
                Instruction::WriteMetadata { metadata, mask } => {
                    program.metadata.replace((metadata & mask, mask)).is_some()
                }
                Instruction::WriteActions(actions) => {
                    let actions = checker.check(actions.iter(), Some(matching))?;
                    program.write.replace(actions).is_some()
                }
                Instruction::ApplyActions(actions) => {
                    let actions = checker.check(actions.iter(), Some(matching))?;
                    program.apply.replace(actions).is_some()
                }
                Instruction::ClearActions => std::mem::replace(&mut program.clear, true),
                Instruction::Meter(meter) => {
                    if checker.meters.get(meter).is_none() {
                        return Err(ErrorCode::MeterModInvalid);
                    }
                    program.meter.replace(meter).is_some()
                }
                Instruction::Experimenter { .. } => {
                    return Err(ErrorCode::InstructionBadExperimenter);
                }
                Instruction::Unknown { .. } => return Err(ErrorCode::InstructionUnknown),
            };
            // One instruction of each kind (1.3.5 §5.9); the specification names no error for two.
            if twice {
                return Err(ErrorCode::InstructionUnsupported);
            }
        }
        if program.actions().count() > MAX_ACTIONS {
            return Err(ErrorCode::ActionTooMany);
        }
        let mut applied = program.apply.iter().flat_map(|actions| actions.iter());
        program.unpredictable =
            program.meter.is_some() || applied.any(|action| !keeps_key_known(action));
        Ok(program)
    }

    /// Whether the packet's key after the program follows from the key before it.
    pub(super) fn is_predictable(&self) -> bool {
        !self.unpredictable
    }

    /// The instructions in the order in which they run, for statistics. Encode them with
    /// [`Instructions::of`].
    #[must_use]
    pub fn instructions(&self) -> Vec<Instruction<'_>> {
        let mut list = Vec::with_capacity(INSTRUCTION_KINDS);
        list.extend(self.meter.map(Instruction::Meter));
        list.extend(self.apply.as_deref().map(|a| Instruction::ApplyActions(List::of(a))));
        list.extend(self.clear.then_some(Instruction::ClearActions));
        list.extend(self.write.as_deref().map(|a| Instruction::WriteActions(List::of(a))));
        list.extend(
            self.metadata.map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask }),
        );
        list.extend(self.goto.map(Instruction::GotoTable));
        list
    }

    /// Whether one of its actions outputs to this port: the filter `out_port` (1.3.5 §6.4).
    #[must_use]
    pub fn outputs_to(&self, port: Port) -> bool {
        self.actions().any(|action| match *action {
            Action::Output { port: to, .. } | Action::Enqueue { port: to, .. } => to == port,
            _ => false,
        })
    }

    /// Whether one of its actions sends to this group: the filter `out_group` (1.3.5 §6.4).
    #[must_use]
    pub fn uses_group(&self, group: u32) -> bool {
        self.groups().any(|used| used == group)
    }

    /// The groups that its actions send to.
    pub fn groups(&self) -> impl Iterator<Item = u32> + '_ {
        self.actions().filter_map(|action| match *action {
            Action::Group(group) => Some(group),
            _ => None,
        })
    }

    fn actions(&self) -> impl Iterator<Item = &Action<'static>> {
        self.apply.iter().chain(&self.write).flat_map(|actions| actions.iter())
    }
}

/// Whether the packet's key after an action follows from the key before it.
///
/// Pushed or popped tags and changed types show fields that were not in the key. A meter (which is
/// not an action) may remark one packet and not the next.
fn keeps_key_known(action: &Action<'_>) -> bool {
    match action {
        Action::SetField(field, _) => {
            !matches!(field, Field::EthType | Field::IpProto | Field::Icmpv6Type)
        }
        // These change only copies of the packet, or values that are in no key.
        Action::Output { .. }
        | Action::Enqueue { .. }
        | Action::SetQueue(_)
        | Action::Group(_)
        | Action::SetNwTtl(_)
        | Action::DecNwTtl
        | Action::SetMplsTtl(_)
        | Action::DecMplsTtl
        | Action::CopyTtlIn
        | Action::CopyTtlOut => true,
        _ => false,
    }
}
