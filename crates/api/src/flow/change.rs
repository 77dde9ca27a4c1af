//! What is to change in a switch, and what became of it.

use std::fmt;

use bellrock_openflow::{
    Action, Band, BandType, Bucket, EncodeError, ErrorCode, ErrorMessage, FlowCommand, FlowMod,
    Group, GroupCommand, GroupMod, GroupType, List, MeterCommand, MeterFlags, MeterMod, Out, Port,
    ToSwitch, Version,
};

use super::{Flow, ToldFlow};
use crate::{AppId, Cookie, Error, Result};

/// One change of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds a flow; it takes the place of one with the same match and priority in the same table.
    Add(Flow),
    /// Removes the flow with this match and priority in this table. What it does with packets does
    /// not matter. It is no error if there is none.
    Remove(Flow),
    /// Removes a flow of this app's that the switch has told of, whatever its priority: one that an
    /// earlier run left.
    RemoveTold(ToldFlow),
    /// Adds a group (1.3).
    AddGroup(GroupEntry),
    /// Changes a group (1.3).
    ModifyGroup(GroupEntry),
    /// Removes a group, and the flows that use it (1.3).
    RemoveGroup(u32),
    /// Adds a meter (1.3).
    AddMeter(MeterEntry),
    /// Changes a meter (1.3).
    ModifyMeter(MeterEntry),
    /// Removes a meter, and the flows that use it (1.3).
    RemoveMeter(u32),
}

/// A group (1.3.5 §5.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// Its number.
    pub id: u32,
    /// How it uses its buckets.
    pub kind: GroupType,
    /// Its buckets, in order.
    pub buckets: Vec<BucketEntry>,
}

/// A bucket of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    /// Its share, in select groups.
    pub weight: u16,
    /// The port that has to be up for it to be live; [`Port::ANY`] for none.
    pub watch_port: Port,
    /// The group that has to be live for it to be live; [`Group::ANY`] for none.
    pub watch_group: u32,
    /// Its action set.
    pub actions: Vec<Action<'static>>,
}

/// A meter (1.3.5 §5.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterEntry {
    /// Its number.
    pub id: u32,
    /// How it counts.
    pub flags: MeterFlags,
    /// Its bands.
    pub bands: Vec<Band<'static>>,
}

impl GroupEntry {
    /// A group without buckets.
    #[must_use]
    pub fn new(id: u32, kind: GroupType) -> Self {
        GroupEntry { id, kind, buckets: Vec::new() }
    }

    /// With one more bucket.
    #[must_use]
    pub fn bucket(mut self, bucket: BucketEntry) -> Self {
        self.buckets.push(bucket);
        self
    }
}

impl BucketEntry {
    /// A bucket that watches nothing.
    /// A bucket of a select group needs a [weight](BucketEntry::weight).
    #[must_use]
    pub fn of(actions: &[Action<'static>]) -> Self {
        let actions = actions.to_vec();
        BucketEntry { weight: 0, watch_port: Port::ANY, watch_group: Group::ANY, actions }
    }

    /// With this share (select groups).
    #[must_use]
    pub fn weight(self, weight: u16) -> Self {
        BucketEntry { weight, ..self }
    }

    /// Live only while this port is up (fast-failover groups).
    #[must_use]
    pub fn watch_port(self, port: Port) -> Self {
        BucketEntry { watch_port: port, ..self }
    }
}

impl MeterEntry {
    /// A meter that drops what comes faster than this, in kbit/s.
    #[must_use]
    pub fn drop_above_kbps(id: u32, rate: u32) -> Self {
        let band = Band { rate, burst_size: 0, kind: BandType::Drop };
        MeterEntry { id, flags: MeterFlags::KBPS, bands: vec![band] }
    }

    /// With bursts of this size, in kbit.
    #[must_use]
    pub fn burst_kbits(mut self, size: u32) -> Self {
        self.flags |= MeterFlags::BURST;
        for band in &mut self.bands {
            band.burst_size = size;
        }
        self
    }
}

impl Change {
    /// Writes it as a message of this app's.
    ///
    /// # Errors
    /// [`Error::Priority`], or what the version cannot say. Nothing is written then.
    pub fn encode(
        &self,
        app: AppId,
        version: Version,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), Error> {
        let flow = |command, flow: &Flow, out: &mut Out| {
            flow.with_flow_mod(command, |flow| -> Result<(), Error> {
                Ok(ToSwitch::FlowMod(app.own(version, flow)?).encode(version, xid, out)?)
            })
        };
        match self {
            Change::Add(added) => flow(FlowCommand::Add, added, out),
            Change::Remove(removed) => {
                // Only its match and priority name it; what else it says a version may not be able to.
                let named = Flow::new(removed.matching.clone())
                    .table(removed.table)
                    .priority(removed.priority);
                flow(FlowCommand::DeleteStrict, &named, out)
            }
            Change::RemoveTold(told) => told.encode_removal(app, version, xid, out),
            Change::AddGroup(group) => group.encode(GroupCommand::Add, version, xid, out),
            Change::ModifyGroup(group) => group.encode(GroupCommand::Modify, version, xid, out),
            Change::RemoveGroup(id) => {
                GroupEntry::new(*id, GroupType::All).encode(GroupCommand::Delete, version, xid, out)
            }
            Change::AddMeter(meter) => meter.encode(MeterCommand::Add, version, xid, out),
            Change::ModifyMeter(meter) => meter.encode(MeterCommand::Modify, version, xid, out),
            Change::RemoveMeter(id) => {
                let named = MeterEntry { id: *id, flags: MeterFlags::KBPS, bands: Vec::new() };
                named.encode(MeterCommand::Delete, version, xid, out)
            }
        }
    }
}

impl ToldFlow {
    fn encode_removal(
        &self,
        app: AppId,
        version: Version,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), Error> {
        if !app.cookie().owns(self.cookie) {
            let what = "removing a flow of somebody else";
            return Err(EncodeError::Unsupported { what, version }.into());
        }
        let flow = FlowMod::delete(&self.key.matching).strict().priority(self.key.priority);
        let flow = match version {
            Version::V1_0 => flow,
            Version::V1_3 => {
                flow.table(self.key.table).cookie_mask(app.cookie().with(0), Cookie::MASK)
            }
        };
        Ok(ToSwitch::FlowMod(flow).encode(version, xid, out)?)
    }
}

impl GroupEntry {
    fn encode(
        &self,
        command: GroupCommand,
        version: Version,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), Error> {
        let buckets: Vec<Bucket<'_>> = self.buckets.iter().map(BucketEntry::borrowed).collect();
        let (kind, group, buckets) = (self.kind, self.id, List::of(&buckets));
        let message = ToSwitch::GroupMod(GroupMod { command, kind, group, buckets });
        Ok(message.encode(version, xid, out)?)
    }
}

impl BucketEntry {
    fn borrowed(&self) -> Bucket<'_> {
        Bucket {
            weight: self.weight,
            watch_port: self.watch_port,
            watch_group: self.watch_group,
            actions: List::of(&self.actions),
        }
    }
}

impl MeterEntry {
    fn encode(
        &self,
        command: MeterCommand,
        version: Version,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), Error> {
        let (flags, meter, bands) = (self.flags, self.id, List::of(&self.bands));
        let message = ToSwitch::MeterMod(MeterMod { command, flags, meter, bands });
        Ok(message.encode(version, xid, out)?)
    }
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The switch has confirmed it: its barrier came back, and no error before.
    Installed,
    /// The switch refused it. It has changed nothing.
    Refused(Refusal),
    /// It was not sent, and has changed nothing.
    NotSent(Error),
    /// It was not sent, because another change that was to go with it could not be.
    Withheld,
    /// It was sent, and what came of it is not known: it may be there or not.
    Unknown(Loss),
}

/// Why the outcome of a change is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// The connection ended first.
    #[error("the connection to the switch ended before it confirmed")]
    Disconnected,
    /// The switch did not answer the barrier in time.
    #[error("the switch did not confirm in time")]
    TimedOut,
}

/// The OpenFlow error with which a switch refused a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// One that the specification numbers.
    #[error("{0}")]
    Standard(ErrorCode),
    /// An experimenter's.
    #[error("an error of experimenter {experimenter:#010x}, type {kind}")]
    Experimenter {
        /// Whose.
        experimenter: u32,
        /// Its type.
        kind: u16,
    },
}

impl From<&ErrorMessage<'_>> for Refusal {
    fn from(error: &ErrorMessage<'_>) -> Self {
        match *error {
            ErrorMessage::Standard { code, .. } => Refusal::Standard(code),
            ErrorMessage::Experimenter { experimenter, kind, .. } => {
                Refusal::Experimenter { experimenter, kind }
            }
        }
    }
}

impl Outcome {
    /// Whether the switch has confirmed it.
    #[must_use]
    pub fn is_installed(self) -> bool {
        self == Outcome::Installed
    }

    /// Whether it is certain that it has changed nothing.
    #[must_use]
    pub fn is_without_effect(self) -> bool {
        matches!(self, Outcome::Refused(_) | Outcome::NotSent(_) | Outcome::Withheld)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Installed => f.write_str("installed"),
            Outcome::Refused(refusal) => write!(f, "refused: {refusal}"),
            Outcome::NotSent(error) => write!(f, "not sent: {error}"),
            Outcome::Withheld => f.write_str("not sent, with another that could not be"),
            Outcome::Unknown(loss) => write!(f, "unknown: {loss}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Add(flow) => write!(f, "add {flow}"),
            Change::Remove(flow) => {
                write!(f, "remove {} priority={}", flow.matching, flow.priority)
            }
            Change::RemoveTold(told) => {
                write!(f, "remove {} of an earlier run", told.key.matching)
            }
            Change::AddGroup(group) => write!(f, "add group {}", group.id),
            Change::ModifyGroup(group) => write!(f, "change group {}", group.id),
            Change::RemoveGroup(id) => write!(f, "remove group {id}"),
            Change::AddMeter(meter) => write!(f, "add meter {}", meter.id),
            Change::ModifyMeter(meter) => write!(f, "change meter {}", meter.id),
            Change::RemoveMeter(id) => write!(f, "remove meter {id}"),
        }
    }
}
