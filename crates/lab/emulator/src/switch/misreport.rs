//! Flows that a switch reports otherwise than it has confirmed them, for tests of controllers.

use bellrock_openflow::{Action, FlowFlags, FlowStats, Instruction, List, Port};

use super::EmulatedSwitch;
use crate::datapath::flows::FlowEntry;

/// How the flow statistics of a switch deviate from its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misreport {
    /// All cookies are 0.
    Cookies,
    /// All flags are missing (1.3).
    Flags,
    /// Packets to the controller have at most this length.
    Lengths(u16),
    /// Actions are written that were to be applied (1.3).
    WrittenActions,
    /// Flows have `clear_actions` that were not sent (1.3).
    ClearActions,
    /// Flows with a masked address are missing, as if another flow had replaced them.
    MaskedAddresses,
}

impl EmulatedSwitch {
    /// Sets how it misreports its flows from now on; `None`: it reports them as they are.
    pub fn set_misreport(&mut self, how: Option<Misreport>) {
        self.misreport = how;
    }
}

impl Misreport {
    /// Whether the switch reports this flow.
    pub(super) fn has(self, flow: &FlowEntry) -> bool {
        let matching = || flow.matching();
        self != Misreport::MaskedAddresses
            || !matching().fields().any(|it| matching().is_masked(it))
    }

    /// Changes what a flow has besides its instructions.
    pub(super) fn alter(self, flow: &mut FlowStats<'_>) {
        match self {
            Misreport::Cookies => flow.cookie = 0,
            Misreport::Flags => flow.flags = FlowFlags::empty(),
            _ => {}
        }
    }

    /// Returns the lists of actions of a flow as they are reported, by instruction.
    pub(super) fn actions<'a>(self, instructions: &[Instruction<'a>]) -> Vec<Vec<Action<'a>>> {
        let reported = |action: Action<'a>| match (self, action) {
            (Misreport::Lengths(most), Action::Output { port: Port::CONTROLLER, max_len }) => {
                Action::Output { port: Port::CONTROLLER, max_len: max_len.min(most) }
            }
            (_, action) => action,
        };
        let list = |instruction: &Instruction<'a>| match instruction {
            Instruction::ApplyActions(actions) => actions.iter().map(reported).collect(),
            _ => Vec::new(),
        };
        instructions.iter().map(list).collect()
    }

    /// Returns the instructions of a flow as they are reported, with its lists of actions.
    pub(super) fn instructions<'a>(
        self,
        instructions: &[Instruction<'a>],
        lists: &'a [Vec<Action<'a>>],
    ) -> Vec<Instruction<'a>> {
        let reported = |(instruction, list): (&Instruction<'a>, &'a Vec<Action<'a>>)| match (
            self,
            instruction,
        ) {
            (Misreport::WrittenActions, Instruction::ApplyActions(_)) => {
                Instruction::WriteActions(List::of(list))
            }
            (_, Instruction::ApplyActions(_)) => Instruction::ApplyActions(List::of(list)),
            (_, other) => *other,
        };
        let clears = (self == Misreport::ClearActions).then_some(Instruction::ClearActions);
        clears.into_iter().chain(instructions.iter().zip(lists).map(reported)).collect()
    }
}
