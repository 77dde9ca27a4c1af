//! Flows as switches tell of them, in a form in which the same meaning is the same value.
//!
//! What a switch tells is not what it was sent, byte by byte: fields of a match come in another order,
//! lengths that mean nothing come back as zero, an action set comes sorted, flags that were for the
//! command alone are gone, and 1.0 says some things in other words. To find out whether a flow is there,
//! what is wanted is brought into the same form as what is told: it is said in the switch's version, read
//! back, and both are put in order.

use bellrock_openflow::{
    Action, EncodeError, FlowCommand, FlowFlags, FlowMod, FlowStats, Instruction, Instructions,
    List, MAX_MESSAGE_LEN, Match, Out, Port, ToSwitch, Version,
};

use crate::{AppId, Error, Flow, Result};

/// What tells a flow from all others of a switch: a second one with the same takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Its table.
    pub table: u8,
    /// Its priority, as the switch has it.
    pub priority: u16,
    /// Its match.
    pub matching: Match,
}

/// A flow as a switch tells of it. Two are equal when they mean the same to switches of their version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldFlow {
    /// What tells it from others.
    pub key: FlowKey,
    /// Its cookie, the whole of it.
    pub cookie: u64,
    idle_timeout: u16,
    hard_timeout: u16,
    flags: FlowFlags,
    /// Its instructions in order, as they are said in the switch's version.
    instructions: Box<[u8]>,
}

impl ToldFlow {
    /// Whether it goes by itself, after a time or without packets.
    #[must_use]
    pub fn has_timeout(&self) -> bool {
        self.idle_timeout != 0 || self.hard_timeout != 0
    }
}

/// Flags that a flow keeps; the others are about the command that adds it. 1.0 tells none.
const KEPT_FLAGS: FlowFlags =
    FlowFlags::SEND_FLOW_REM.union(FlowFlags::NO_PKT_COUNTS).union(FlowFlags::NO_BYT_COUNTS);

/// Brings flows into the form in which they are compared, for the switches of one version.
pub struct ToldForm {
    version: Version,
    out: Out,
    /// Bytes of a flow_mod before its instructions, where it matches everything.
    before_instructions: usize,
}

impl ToldForm {
    /// For switches of this version.
    #[must_use]
    pub fn new(version: Version) -> Self {
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        // It fits: it is the shortest there is.
        let _ = ToSwitch::FlowMod(FlowMod::add(&Match::any())).encode(version, 0, &mut out);
        let before_instructions = out.len();
        ToldForm { version, out, before_instructions }
    }

    /// What a switch tells.
    ///
    /// # Errors
    /// [`EncodeError`]: none in practice, since the switch has said it in one message.
    pub fn of_stats(&mut self, flow: &FlowStats<'_>) -> Result<ToldFlow, Error> {
        let matching = flow.matching.to_match();
        Ok(ToldFlow {
            key: FlowKey { table: flow.table, priority: flow.priority, matching },
            cookie: flow.cookie,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            flags: self.kept(flow.flags),
            instructions: self.in_order(&flow.instructions)?,
        })
    }

    /// What a switch tells that has this flow of an app.
    ///
    /// # Errors
    /// [`crate::Error::Priority`], or what the version cannot say.
    pub fn of_flow(&mut self, app: AppId, flow: &Flow) -> Result<ToldFlow, Error> {
        let version = self.version;
        self.out.clear();
        flow.with_flow_mod(FlowCommand::Add, |flow| -> Result<(), Error> {
            let owned = app.own(version, flow)?;
            Ok(ToSwitch::FlowMod(owned).encode(version, 0, &mut self.out)?)
        })?;
        let said = self.out.as_slice().to_vec();
        // It was written a moment ago: it reads.
        let unreadable = EncodeError::Range { what: "flow_mod" };
        let message = ToSwitch::decode(&said).map_err(|_| unreadable)?;
        let ToSwitch::FlowMod(flow) = message.body else { return Err(unreadable.into()) };
        // What a switch would tell of it at once.
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

    fn kept(&self, flags: FlowFlags) -> FlowFlags {
        match self.version {
            Version::V1_0 => FlowFlags::empty(),
            Version::V1_3 => flags & KEPT_FLAGS,
        }
    }

    fn in_order(&mut self, instructions: &Instructions<'_>) -> Result<Box<[u8]>, Error> {
        let mut lists = Vec::new();
        for instruction in instructions.iter() {
            lists.push(match instruction {
                Instruction::ApplyActions(actions) => actions.iter().map(plain).collect(),
                Instruction::WriteActions(actions) => as_set(actions.iter().map(plain)),
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
        Ok(self.out.as_slice().get(self.before_instructions..).unwrap_or(&[]).into())
    }
}

/// An action without what means nothing: only the controller is sent a part of a packet.
fn plain(action: Action<'_>) -> Action<'_> {
    match action {
        Action::Output { port, .. } if port != Port::CONTROLLER => {
            Action::Output { port, max_len: 0 }
        }
        other => other,
    }
}

/// Instructions are a set: a switch does them in its own order, whatever order they are said in (1.3.5
/// §5.9).
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

/// An action set has one action of each kind, the last that was written, and an order of its own (1.3.5
/// §5.10).
fn as_set<'a>(actions: impl Iterator<Item = Action<'a>>) -> Vec<Action<'a>> {
    let mut set: Vec<Action<'a>> = Vec::new();
    for action in actions {
        set.retain(|other| rank(other) != rank(&action));
        set.push(action);
    }
    set.sort_by_key(rank);
    set
}

/// Where an action stands in an action set, and what it takes the place of.
fn rank(action: &Action<'_>) -> (u8, u32) {
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
    let which = match action {
        Action::PopVlan | Action::DecMplsTtl | Action::SetMplsTtl(_) | Action::SetVlanVid(_) => 0,
        Action::PopMpls(_) | Action::DecNwTtl | Action::SetNwTtl(_) | Action::SetVlanPcp(_) => 1,
        Action::PopPbb | Action::SetTpSrc(_) => 2,
        Action::SetTpDst(_) => 3,
        _ => 0,
    };
    (place, which)
}
