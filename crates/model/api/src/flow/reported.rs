//! Flows that switches report, in a normal form: flows of equal meaning are equal values.
//!
//! A reported flow is not byte for byte the flow that was sent. Match fields come in another order,
//! unused lengths come back as zero, action sets come sorted, flags of the command are gone, and
//! 1.0 has other forms. To compare a wanted flow with reported ones, it is encoded in the switch's
//! version, decoded again, and both are normalized.

use bellrock_openflow::{
    Action, EncodeError, FlowCommand, FlowFlags, FlowMod, FlowStats, Instruction, Instructions,
    List, MAX_MESSAGE_LEN, Match, Message, Out, Port, ToSwitch, Version,
};

use crate::{AppId, Error, Flow, Result};

/// Identifies a flow in a switch: a second flow with the same key replaces the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Its table.
    pub table: u8,
    /// Its priority in the switch.
    pub priority: u16,
    /// Its match.
    pub matching: Match,
}

/// A flow that a switch reports. Two are equal if they mean the same to switches of their version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedFlow {
    /// Its table, priority and match.
    pub key: FlowKey,
    /// Its whole cookie.
    pub cookie: u64,
    idle_timeout: u16,
    hard_timeout: u16,
    flags: FlowFlags,
    /// Its instructions in order, encoded in the switch's version.
    instructions: Box<[u8]>,
}

impl ReportedFlow {
    /// How it deviates from a flow with the same key that the switch reports.
    #[must_use]
    pub fn deviation(&self, reported: Option<&ReportedFlow>) -> Deviation {
        match reported {
            None => Deviation::Missing,
            Some(reported) if reported.cookie != self.cookie => Deviation::Cookie,
            Some(_) => Deviation::Contents,
        }
    }

    /// Whether it expires: after a time, or after a time without packets.
    #[must_use]
    pub fn has_timeout(&self) -> bool {
        self.idle_timeout != 0 || self.hard_timeout != 0
    }
}

/// How a switch reports an entry after it has confirmed a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Deviation {
    /// It does not report the entry.
    #[error("does not report it")]
    Missing,
    /// It reports the flow under a cookie that is not the app's.
    #[error("reports it with another cookie")]
    Cookie,
    /// It reports the entry with other contents.
    #[error("reports it with other contents")]
    Contents,
    /// It reports the entry after its removal.
    #[error("still reports it")]
    Present,
}

/// Flags that a flow keeps. The others concern only the command that adds it. 1.0 reports none.
const KEPT_FLAGS: FlowFlags =
    FlowFlags::SEND_FLOW_REM.union(FlowFlags::NO_PKT_COUNTS).union(FlowFlags::NO_BYT_COUNTS);

/// Normalizes flows for comparison, for switches of one version.
pub struct FlowNormalizer {
    version: Version,
    out: Out,
    /// Number of bytes of a flow_mod before its instructions, if it matches everything.
    header_len: usize,
}

impl FlowNormalizer {
    /// A form for switches of this version.
    #[must_use]
    pub fn new(version: Version) -> Self {
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        // The shortest flow_mod always fits.
        let _ = ToSwitch::FlowMod(FlowMod::add(&Match::any())).encode(version, 0, &mut out);
        let header_len = out.len();
        FlowNormalizer { version, out, header_len }
    }

    /// Normalizes a reported flow.
    ///
    /// # Errors
    /// [`EncodeError`]: none in practice, since the flow came in one message.
    pub fn of_stats(&mut self, flow: &FlowStats<'_>) -> Result<ReportedFlow, Error> {
        let matching = flow.matching.to_match();
        Ok(ReportedFlow {
            key: FlowKey { table: flow.table, priority: flow.priority, matching },
            cookie: flow.cookie,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            flags: self.reported_flags(flow.flags),
            instructions: self.normalized_instructions(&flow.instructions)?,
        })
    }

    /// Normalizes a flow of an app, as a switch that has it would report it.
    ///
    /// # Errors
    /// [`crate::Error::Priority`], or what the version does not support.
    pub fn of_flow(&mut self, app: AppId, flow: &Flow) -> Result<ReportedFlow, Error> {
        let version = self.version;
        self.out.clear();
        flow.with_flow_mod(FlowCommand::Add, |flow| -> Result<(), Error> {
            let owned = app.owned_flow_mod(version, flow)?;
            Ok(ToSwitch::FlowMod(owned).encode(version, 0, &mut self.out)?)
        })?;
        let bytes = self.out.as_slice().to_vec();
        // It was just encoded, so it decodes.
        let unreadable = EncodeError::Range { what: "flow_mod" };
        let message = ToSwitch::decode(&bytes).map_err(|_| unreadable)?;
        let ToSwitch::FlowMod(flow) = message.body else { return Err(unreadable.into()) };
        // As a switch would report it at once.
        self.of_stats(&FlowStats {
            table: flow.table,
            duration_sec: 0,
            duration_nsec: 0,
            priority: flow.priority,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            flags: flow.flags,
            cookie: flow.cookie,
            packet_count: 0,
            byte_count: 0,
            matching: flow.matching,
            instructions: flow.instructions,
        })
    }

    /// Names what differs between a flow and the one that a switch reports, as `actions output:1
    /// instead of output:2`.
    #[must_use]
    pub fn difference(&mut self, wanted: &ReportedFlow, reported: &ReportedFlow) -> String {
        let mut parts = Vec::new();
        let mut add = |what: &str, reported: String, wanted: String| {
            if reported != wanted {
                parts.push(format!("{what} {reported} instead of {wanted}"));
            }
        };
        add("cookie", format!("{:#x}", reported.cookie), format!("{:#x}", wanted.cookie));
        let timeouts =
            |flow: &ReportedFlow| format!("{}/{} s", flow.idle_timeout, flow.hard_timeout);
        add("timeouts", timeouts(reported), timeouts(wanted));
        let flags = |flow: &ReportedFlow| format!("{:#x}", flow.flags.bits());
        add("flags", flags(reported), flags(wanted));
        let reported_text = self.instructions_text(&reported.instructions);
        add("actions", reported_text, self.instructions_text(&wanted.instructions));
        parts.join(", ")
    }

    fn instructions_text(&mut self, instructions: &[u8]) -> String {
        self.out.clear();
        let any = Match::any();
        let flow = ToSwitch::FlowMod(FlowMod::add(&any));
        // The shortest flow_mod always fits.
        let _ = flow.encode(self.version, 0, &mut self.out);
        let mut message = self.out.as_slice().to_vec();
        message.extend_from_slice(instructions);
        let length = u16::try_from(message.len()).unwrap_or(u16::MAX).to_be_bytes();
        if let Some(field) = message.get_mut(2..4) {
            field.copy_from_slice(&length);
        }
        match ToSwitch::decode(&message) {
            Ok(Message { body: ToSwitch::FlowMod(flow), .. }) => flow.instructions.to_string(),
            _ => format!("{instructions:02x?}"),
        }
    }

    fn reported_flags(&self, flags: FlowFlags) -> FlowFlags {
        match self.version.reports_flow_flags() {
            true => flags & KEPT_FLAGS,
            false => FlowFlags::empty(),
        }
    }

    fn normalized_instructions(
        &mut self,
        instructions: &Instructions<'_>,
    ) -> Result<Box<[u8]>, Error> {
        let mut lists = Vec::new();
        for instruction in instructions.iter() {
            lists.push(match instruction {
                Instruction::ApplyActions(actions) => {
                    actions.iter().map(normalized_action).collect()
                }
                Instruction::WriteActions(actions) => {
                    action_set(actions.iter().map(normalized_action))
                }
                _ => Vec::new(),
            });
        }
        let mut ordered: Vec<Instruction<'_>> = instructions
            .iter()
            .zip(&lists)
            .filter_map(|(instruction, actions)| match instruction {
                Instruction::ApplyActions(_) | Instruction::WriteActions(_)
                    if actions.is_empty() =>
                {
                    None
                }
                Instruction::ApplyActions(_) => Some(Instruction::ApplyActions(List::of(actions))),
                Instruction::WriteActions(_) => Some(Instruction::WriteActions(List::of(actions))),
                Instruction::WriteMetadata { mask: 0, .. } => None,
                Instruction::WriteMetadata { metadata, mask } => {
                    Some(Instruction::WriteMetadata { metadata: metadata & mask, mask })
                }
                other => Some(other),
            })
            .collect();
        ordered.sort_by_key(order);
        self.out.clear();
        let any = Match::any();
        let flow = FlowMod::add(&any).instructions(&ordered);
        ToSwitch::FlowMod(flow).encode(self.version, 0, &mut self.out)?;
        Ok(self.out.as_slice().get(self.header_len..).unwrap_or(&[]).into())
    }
}

/// Clears the length of an output action unless it sends to the controller: it has no effect
/// elsewhere.
fn normalized_action(action: Action<'_>) -> Action<'_> {
    match action {
        Action::Output { port, .. } if port != Port::CONTROLLER => {
            Action::Output { port, max_len: 0 }
        }
        other => other,
    }
}

/// Sort key of an instruction. Instructions are a set: a switch executes them in its own order
/// (1.3.5 §5.9).
fn order(instruction: &Instruction<'_>) -> u8 {
    match instruction {
        Instruction::Meter(_) => 0,
        Instruction::ApplyActions(_) => 1,
        Instruction::ClearActions => 2,
        Instruction::WriteActions(_) => 3,
        Instruction::WriteMetadata { .. } => 4,
        Instruction::GotoTable(_) => 5,
        Instruction::Experimenter { .. } | Instruction::Unknown { .. } => 6,
    }
}

/// Normalizes an action set: it has one action of each kind, the last one written, in a fixed order
/// (1.3.5 §5.10).
fn action_set<'a>(actions: impl Iterator<Item = Action<'a>>) -> Vec<Action<'a>> {
    let mut set: Vec<Action<'a>> = Vec::new();
    for action in actions {
        set.retain(|other| rank(other) != rank(&action));
        set.push(action);
    }
    set.sort_by_key(rank);
    set
}

/// Position of an action in an action set. Actions with the same rank replace each other.
pub(super) fn rank(action: &Action<'_>) -> (u8, u32) {
    let place = match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 1,
        Action::PushMpls(_) => 2,
        Action::PushPbb(_) => 3,
        Action::PushVlan(_) => 4,
        Action::CopyTtlOut => 5,
        Action::DecMplsTtl | Action::DecNwTtl => 6,
        Action::SetField(field, _) => return (7, *field as u32),
        Action::SetUnknownField { header, .. } => return (8, *header),
        Action::SetMplsTtl(_) | Action::SetNwTtl(_) => 9,
        Action::SetVlanVid(_) | Action::SetVlanPcp(_) => 10,
        Action::SetTpSrc(_) | Action::SetTpDst(_) => 11,
        Action::SetQueue(_) => 12,
        Action::Group(_) => 13,
        Action::Output { .. } | Action::Enqueue { .. } => 14,
        Action::Experimenter { experimenter, .. } => return (15, *experimenter),
        Action::Unknown { kind, .. } => return (16, (*kind).into()),
    };
    let position = match action {
        Action::PopVlan | Action::DecMplsTtl | Action::SetMplsTtl(_) | Action::SetVlanVid(_) => 0,
        Action::PopMpls(_) | Action::DecNwTtl | Action::SetNwTtl(_) | Action::SetVlanPcp(_) => 1,
        Action::PopPbb | Action::SetTpSrc(_) => 2,
        Action::SetTpDst(_) => 3,
        _ => 0,
    };
    (place, position)
}
