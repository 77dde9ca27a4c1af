//! Flows as values: those that an app wants in a switch, and those that a switch reports.

mod as_flow_mod;
mod change;
mod owned_actions;
mod parse;
mod possible;
mod reported;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use bellrock_openflow::{Action, FlowCommand, FlowFlags, FlowMod, Instruction, List, Match, Port};

pub use as_flow_mod::AsFlowMod;
pub use change::{
    BucketEntry, Change, ChangeOutcome, GroupEntry, MeterEntry, NoConfirmation, Refusal,
};
pub use parse::{InstructionPart, ParseInstructionsError, parse_actions, parse_instructions};
pub use possible::{
    ALL_TABLES, ImpossibleBuckets, ImpossibleInstruction, ImpossibleReason, check_bucket,
    check_instructions,
};
pub use reported::{Deviation, FlowKey, FlowNormalizer, ReportedFlow};

use crate::PriorityBand;
use owned_actions::OwnedActions;

/// A flow of an app, owned and comparable. The switch and the OpenFlow version are not part of it.
///
/// ```
/// use bellrock_api::{Flow, Match, Port};
///
/// let web = Match::any().eth_type(0x0800).ip_proto(6).tcp_dst(80);
/// let flow = Flow::new(web).priority(200).output(Port(3));
/// assert_eq!(flow.to_string(), "eth_type=0x0800,ip_proto=6,tcp_dst=80 priority=200 output:3");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The packets that it matches.
    pub matching: Match,
    /// Number of its table (1.0 has only table 0).
    pub table: u8,
    /// Its priority among the app's flows, 0 to 4095 ([`PriorityBand`]).
    pub priority: u16,
    /// The app's own number: the lower half of the cookie.
    pub number: u32,
    /// Seconds without a packet until the flow expires; 0 for never.
    pub idle_timeout: u16,
    /// Seconds until the flow expires; 0 for never.
    pub hard_timeout: u16,
    /// Its flags.
    pub flags: FlowFlags,
    treatment: Treatment,
}

/// What a flow does with packets, in the order in which a switch does it (1.3.5 §5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Treatment {
    meter: Option<u32>,
    apply: OwnedActions,
    write: OwnedActions,
    metadata: Option<(u64, u64)>,
    goto_table: Option<u8>,
}

impl Flow {
    /// A permanent flow that drops its packets, in table 0, at the middle of the app's priorities.
    #[must_use]
    pub fn new(matching: Match) -> Self {
        Flow {
            matching,
            table: 0,
            priority: PriorityBand::MIDDLE,
            number: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            flags: FlowFlags::empty(),
            treatment: Treatment::default(),
        }
    }

    /// Sets the table (1.3).
    #[must_use]
    pub fn table(self, table: u8) -> Self {
        Flow { table, ..self }
    }

    /// Sets the priority, 0 to 4095.
    #[must_use]
    pub fn priority(self, priority: u16) -> Self {
        Flow { priority, ..self }
    }

    /// Sets the app's own number in the cookie.
    #[must_use]
    pub fn number(self, number: u32) -> Self {
        Flow { number, ..self }
    }

    /// Expires after this many seconds without a packet.
    #[must_use]
    pub fn idle(self, seconds: u16) -> Self {
        Flow { idle_timeout: seconds, ..self }
    }

    /// Expires after this many seconds.
    #[must_use]
    pub fn hard(self, seconds: u16) -> Self {
        Flow { hard_timeout: seconds, ..self }
    }

    /// Sets the flags.
    #[must_use]
    pub fn flags(self, flags: FlowFlags) -> Self {
        Flow { flags, ..self }
    }

    /// Appends actions. The flow owns them: it copies the bytes of those of experimenters.
    ///
    /// ```
    /// use bellrock_api::openflow::Bytes;
    /// use bellrock_api::{Action, Flow, Match};
    ///
    /// /// Nicira's `resubmit` to a table.
    /// fn resubmit(table: u8) -> Flow {
    ///     let data = [0, 14, 0xff, 0xf8, table, 0, 0, 0];
    ///     let action = Action::Experimenter { experimenter: 0x2320, data: Bytes(&data) };
    ///     Flow::new(Match::any()).actions(&[action])
    /// }
    /// let printed = resubmit(7).to_string();
    /// assert_eq!(printed, "any priority=2048 experimenter(0x00002320,000efff807000000)");
    /// ```
    #[must_use]
    pub fn actions(mut self, actions: &[Action<'_>]) -> Self {
        self.treatment.apply.extend(actions);
        self
    }

    /// Inserts actions before all others.
    pub fn prepend(&mut self, actions: &[Action<'_>]) {
        self.treatment.apply.prepend(actions);
    }

    /// Sends packets out of this port.
    #[must_use]
    pub fn output(self, port: Port) -> Self {
        self.actions(&[Action::output(port)])
    }

    /// Sends packets to this group (1.3).
    #[must_use]
    pub fn group(self, group: u32) -> Self {
        self.actions(&[Action::Group(group)])
    }

    /// Adds a VLAN tag to packets without one: the same in every version ([`Action::tag`]).
    #[must_use]
    pub fn tag(self, id: u16) -> Self {
        self.actions(&Action::tag(id))
    }

    /// Removes the VLAN tag of packets that have one: the same in every version. In 1.3, the match
    /// names the tag ([`Match::vlan_id`]).
    #[must_use]
    pub fn untag(self) -> Self {
        self.actions(&[Action::untag()])
    }

    /// Sends packets through this meter first (1.3).
    #[must_use]
    pub fn meter(mut self, meter: u32) -> Self {
        self.treatment.meter = Some(meter);
        self
    }

    /// Merges these into the action set (1.3).
    #[must_use]
    pub fn write_actions(mut self, actions: &[Action<'_>]) -> Self {
        self.treatment.write.extend(actions);
        self
    }

    /// Writes the masked bits of the metadata (1.3).
    #[must_use]
    pub fn write_metadata(mut self, metadata: u64, mask: u64) -> Self {
        self.treatment.metadata = (mask != 0).then_some((metadata & mask, mask));
        self
    }

    /// Continues in this later table (1.3).
    #[must_use]
    pub fn goto_table(mut self, table: u8) -> Self {
        self.treatment.goto_table = Some(table);
        self
    }

    /// Actions that are applied at once, in order.
    #[must_use]
    pub fn applied(&self) -> Cow<'_, [Action<'_>]> {
        self.treatment.apply.all()
    }

    /// The ports that applied actions send packets to.
    pub fn outputs(&self) -> impl Iterator<Item = Port> + '_ {
        self.treatment.apply.without_bytes().iter().filter_map(|action| match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => Some(*port),
            _ => None,
        })
    }

    /// Calls `call` with this flow as a flow_mod. Priority and cookie are still the app's own
    /// ([`crate::AppId::owned_flow_mod`] converts them).
    pub fn with_flow_mod<T>(
        &self,
        command: FlowCommand,
        call: impl FnOnce(&FlowMod<'_>) -> T,
    ) -> T {
        let Treatment { meter, apply, write, metadata, goto_table } = &self.treatment;
        let (apply, write) = (apply.all(), write.all());
        let instructions: Vec<Instruction<'_>> = [
            meter.map(Instruction::Meter),
            (!apply.is_empty()).then(|| Instruction::ApplyActions(List::of(&apply))),
            (!write.is_empty()).then(|| Instruction::WriteActions(List::of(&write))),
            metadata.map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask }),
            goto_table.map(Instruction::GotoTable),
        ]
        .into_iter()
        .flatten()
        .collect();
        call(&FlowMod {
            command,
            cookie: self.number.into(),
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            flags: self.flags,
            ..FlowMod::add(&self.matching)
                .table(self.table)
                .priority(self.priority)
                .instructions(&instructions)
        })
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.matching)?;
        if self.table != 0 {
            write!(f, " table={}", self.table)?;
        }
        write!(f, " priority={}", self.priority)?;
        let Treatment { meter, apply, write, metadata, goto_table } = &self.treatment;
        if let Some(meter) = meter {
            write!(f, " meter:{meter}")?;
        }
        for action in &*apply.all() {
            write!(f, " {action}")?;
        }
        for action in &*write.all() {
            write!(f, " write:{action}")?;
        }
        if let Some((metadata, mask)) = metadata {
            write!(f, " metadata:{metadata:#x}/{mask:#x}")?;
        }
        if let Some(table) = goto_table {
            write!(f, " goto_table:{table}")?;
        }
        if self.treatment == Treatment::default() {
            f.write_str(" drop")?;
        }
        Ok(())
    }
}
