//! Changes of a switch, and their outcomes.

use std::fmt;

use bellrock_openflow::{
    Action, Band, BandType, Bucket, EncodeError, ErrorCode, ErrorMessage, FlowCommand, FlowMod,
    Group, GroupCommand, GroupMod, GroupType, List, MeterCommand, MeterFlags, MeterMod, Out, Port,
    ToSwitch, Version,
};

use super::{Flow, ReportedFlow};
use crate::{AppId, Cookie, Error, Result};

/// One change of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds a flow. It replaces a flow with the same match and priority in the same table.
    Add(Flow),
    /// Removes the flow with this match and priority in this table; its actions do not matter. It
    /// is no error if there is none.
    Remove(Flow),
    /// Removes a flow of this app that the switch reported and an earlier run left, of any
    /// priority.
    RemoveReported(ReportedFlow),
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
    /// Its type: how it uses its buckets.
    pub kind: GroupType,
    /// Its buckets, in order.
    pub buckets: Vec<BucketEntry>,
}

/// A bucket of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    /// Its weight, in select groups.
    pub weight: u16,
    /// Port that must be up for the bucket to be live; [`Port::ANY`] for none.
    pub watch_port: Port,
    /// Group that must be live for the bucket to be live; [`Group::ANY`] for none.
    pub watch_group: u32,
    /// Its action set.
    pub actions: Vec<Action<'static>>,
}

/// A meter (1.3.5 §5.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterEntry {
    /// Its number.
    pub id: u32,
    /// Its flags: how it measures.
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

    /// Appends a bucket.
    #[must_use]
    pub fn bucket(mut self, bucket: BucketEntry) -> Self {
        self.buckets.push(bucket);
        self
    }
}

impl BucketEntry {
    /// A bucket that watches nothing. In a select group it needs a [weight](BucketEntry::weight).
    #[must_use]
    pub fn of(actions: &[Action<'static>]) -> Self {
        let actions = actions.to_vec();
        BucketEntry { weight: 0, watch_port: Port::ANY, watch_group: Group::ANY, actions }
    }

    /// Sets the weight (select groups).
    #[must_use]
    pub fn weight(self, weight: u16) -> Self {
        BucketEntry { weight, ..self }
    }

    /// Makes the bucket live only while this port is up (fast-failover groups).
    #[must_use]
    pub fn watch_port(self, port: Port) -> Self {
        BucketEntry { watch_port: port, ..self }
    }
}

impl MeterEntry {
    /// A meter that drops packets above this rate, in kbit/s.
    #[must_use]
    pub fn drop_above_kbps(id: u32, rate: u32) -> Self {
        let band = Band { rate, burst_size: 0, kind: BandType::Drop };
        MeterEntry { id, flags: MeterFlags::KBPS, bands: vec![band] }
    }

    /// A meter that drops packets above this rate, in packets per second.
    #[must_use]
    pub fn drop_above_packets(id: u32, rate: u32) -> Self {
        MeterEntry { flags: MeterFlags::PKTPS, ..Self::drop_above_kbps(id, rate) }
    }

    /// Sets the burst size of all bands, in packets, for rates in packets per second.
    #[must_use]
    pub fn burst_packets(self, size: u32) -> Self {
        self.burst_kbits(size)
    }

    /// Sets the burst size of all bands, in kbit.
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
    /// Writes the change as a message of this app.
    ///
    /// # Errors
    /// [`Error::Priority`], or what the version does not support. Nothing is written then.
    pub fn encode(
        &self,
        app: AppId,
        version: Version,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), Error> {
        let flow = |command, flow: &Flow, out: &mut Out| {
            flow.with_flow_mod(command, |flow| -> Result<(), Error> {
                Ok(ToSwitch::FlowMod(app.owned_flow_mod(version, flow)?)
                    .encode(version, xid, out)?)
            })
        };
        match self {
            Change::Add(added) => flow(FlowCommand::Add, added, out),
            Change::Remove(removed) => {
                // Match and priority identify it; the version may not support the rest.
                let strict = Flow::new(removed.matching.clone())
                    .table(removed.table)
                    .priority(removed.priority);
                flow(FlowCommand::DeleteStrict, &strict, out)
            }
            Change::RemoveReported(reported) => reported.encode_removal(app, version, xid, out),
            Change::AddGroup(group) => group.encode(GroupCommand::Add, version, xid, out),
            Change::ModifyGroup(group) => group.encode(GroupCommand::Modify, version, xid, out),
            Change::RemoveGroup(id) => {
                GroupEntry::new(*id, GroupType::All).encode(GroupCommand::Delete, version, xid, out)
            }
            Change::AddMeter(meter) => meter.encode(MeterCommand::Add, version, xid, out),
            Change::ModifyMeter(meter) => meter.encode(MeterCommand::Modify, version, xid, out),
            Change::RemoveMeter(id) => {
                let meter = MeterEntry { id: *id, flags: MeterFlags::KBPS, bands: Vec::new() };
                meter.encode(MeterCommand::Delete, version, xid, out)
            }
        }
    }
}

impl ReportedFlow {
    fn encode_removal(
        &self,
        app: AppId,
        version: Version,
        xid: u32,
        out: &mut Out,
    ) -> Result<(), Error> {
        if !app.cookie().owns(self.cookie) {
            let what = "removing a flow of another app";
            return Err(EncodeError::Unsupported { what, version }.into());
        }
        let flow = FlowMod::delete(&self.key.matching).strict().priority(self.key.priority);
        let flow = if version.names_tables() { flow.table(self.key.table) } else { flow };
        let flow = match version.selects_by_cookie() {
            true => flow.cookie_mask(app.cookie().with(0), Cookie::MASK),
            false => flow,
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

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The switch has confirmed it: the barrier reply came, and no error before it.
    Installed,
    /// The switch refused the change, which had no effect.
    Refused(Refusal),
    /// It was not sent, and had no effect.
    NotSent(Error),
    /// It was not sent, because another change of the same program could not be sent.
    Withheld,
    /// It was sent, but its effect is unknown.
    Unknown(NoConfirmation),
}

/// Why the outcome of a change is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoConfirmation {
    /// The connection ended before the confirmation.
    #[error("the connection to the switch ended before it confirmed")]
    Disconnected,
    /// The barrier reply did not come in time.
    #[error("the switch did not confirm in time")]
    TimedOut,
}

/// The OpenFlow error with which a switch refused a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// An error of the specification.
    #[error("{0}")]
    Standard(ErrorCode),
    /// An error of an experimenter.
    #[error("an error of experimenter {experimenter:#010x}, type {kind}")]
    Experimenter {
        /// Id of the experimenter.
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

impl ChangeOutcome {
    /// Whether the switch has confirmed the change.
    #[must_use]
    pub fn is_installed(self) -> bool {
        self == ChangeOutcome::Installed
    }

    /// Whether the change certainly had no effect.
    #[must_use]
    pub fn is_without_effect(self) -> bool {
        matches!(
            self,
            ChangeOutcome::Refused(_) | ChangeOutcome::NotSent(_) | ChangeOutcome::Withheld
        )
    }
}

impl fmt::Display for ChangeOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeOutcome::Installed => f.write_str("installed"),
            ChangeOutcome::Refused(refusal) => write!(f, "refused: {refusal}"),
            ChangeOutcome::NotSent(error) => write!(f, "not sent: {error}"),
            ChangeOutcome::Withheld => {
                f.write_str("not sent, because another change of the program could not be sent")
            }
            ChangeOutcome::Unknown(loss) => write!(f, "unknown: {loss}"),
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
            Change::RemoveReported(reported) => {
                write!(f, "remove {} of an earlier run", reported.key.matching)
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
