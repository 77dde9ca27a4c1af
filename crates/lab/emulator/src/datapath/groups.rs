//! Groups: their buckets, liveness and chains (1.3.5 §5.6, §6.5).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellrock_openflow::{
    Action, Bucket, ErrorCode, Field, Group, GroupCommand, GroupMod, GroupType, List,
    PacketByteCount, Port,
};

use super::action_set::ActionSet;
use super::actions::{CheckedActions, Checker, MAX_ACTIONS};
use super::ports::{DatapathPorts, PortEntry};
use crate::packet::Packet;

/// Maximum number of groups of a switch.
pub const MAX_GROUPS: usize = 65_536;
/// Maximum number of buckets of a group.
pub const MAX_BUCKETS: usize = 1_024;

/// A bucket of a group.
#[derive(Clone, Debug)]
pub struct DatapathBucket {
    /// Its weight in select groups.
    pub weight: u16,
    /// The port that it watches for liveness; [`Port::ANY`] for none.
    pub watch_port: Port,
    /// The group that it watches for liveness; [`Group::ANY`] for none.
    pub watch_group: u32,
    /// Its actions, as the controller gave them.
    pub actions: CheckedActions,
    /// Packets that it processed, and their bytes.
    pub counter: PacketByteCount,
    set: ActionSet,
}

impl DatapathBucket {
    /// The bucket, as the controller gave it.
    #[must_use]
    pub fn bucket(&self) -> Bucket<'_> {
        Bucket {
            weight: self.weight,
            watch_port: self.watch_port,
            watch_group: self.watch_group,
            actions: List::of(&self.actions),
        }
    }

    /// Takes out the actions, in the order in which they run, until they are put back.
    pub(super) fn take_set(&mut self) -> ActionSet {
        std::mem::take(&mut self.set)
    }

    pub(super) fn put_back(&mut self, set: ActionSet) {
        self.set = set;
    }

    /// The groups that its actions send to.
    fn groups(&self) -> impl Iterator<Item = u32> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Group(group) => Some(*group),
            _ => None,
        })
    }

    fn watched_group(&self) -> Option<u32> {
        Some(self.watch_group).filter(|group| *group != Group::ANY)
    }

    /// The groups that its actions send to, and the group that it watches.
    fn next_groups(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups().chain(self.watched_group())
    }

    fn watches(&self) -> bool {
        self.watch_port != Port::ANY || self.watched_group().is_some()
    }
}

/// A group.
#[derive(Clone, Debug)]
pub struct DatapathGroup {
    /// How it uses its buckets.
    pub kind: GroupType,
    /// Its buckets.
    pub buckets: Vec<DatapathBucket>,
    /// Packets that it processed, and their bytes.
    pub counter: PacketByteCount,
    /// When it was added.
    pub created: Duration,
}

/// The groups of a switch, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Groups(BTreeMap<u32, DatapathGroup>);

impl Groups {
    /// A group.
    #[must_use]
    pub fn get(&self, group: u32) -> Option<&DatapathGroup> {
        self.0.get(&group)
    }

    pub(super) fn get_mut(&mut self, group: u32) -> Option<&mut DatapathGroup> {
        self.0.get_mut(&group)
    }

    /// All groups, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &DatapathGroup)> {
        self.0.iter().map(|(group, entry)| (*group, entry))
    }

    /// The groups that buckets send to, once for each output to a group.
    pub(super) fn references(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.values().flat_map(|entry| &entry.buckets).flat_map(DatapathBucket::groups)
    }

    /// Index of the bucket that a packet takes, in a group that uses only one.
    pub(super) fn choose(
        &self,
        entry: &DatapathGroup,
        packet: &Packet,
        ports: &DatapathPorts,
    ) -> Option<usize> {
        match entry.kind {
            GroupType::FastFailover => {
                entry.buckets.iter().position(|bucket| self.is_live(bucket, ports))
            }
            GroupType::Select => self.select(entry, packet, ports),
            _ => (!entry.buckets.is_empty()).then_some(0),
        }
    }

    /// Chooses a bucket by a hash of the packet's flow and by the weights. A flow keeps its bucket
    /// while that bucket is live. A bucket that watches nothing counts as live: the specification
    /// defines liveness for fast failover.
    fn select(
        &self,
        entry: &DatapathGroup,
        packet: &Packet,
        ports: &DatapathPorts,
    ) -> Option<usize> {
        let hash = flow_hash(packet);
        let usable = |bucket: &DatapathBucket| !bucket.watches() || self.is_live(bucket, ports);
        let first = pick(&entry.buckets, hash, |_| true)?;
        if usable(&entry.buckets[first]) {
            return Some(first);
        }
        pick(&entry.buckets, hash, usable)
    }

    /// Whether a bucket is live: its watched port or group is live. A group is live if one of its
    /// buckets is (1.3.5 §6.5). So the search is for one live port.
    fn is_live(&self, bucket: &DatapathBucket, ports: &DatapathPorts) -> bool {
        let by_port = |bucket: &DatapathBucket| {
            ports.get(bucket.watch_port.0).is_some_and(PortEntry::is_live)
        };
        by_port(bucket)
            || self.search(
                bucket.watched_group().into_iter().collect(),
                |_, buckets| buckets.iter().any(by_port),
                |bucket, left| left.extend(bucket.watched_group()),
            )
    }

    /// Searches these groups and all groups that their buckets lead to, each group once. Returns
    /// whether `is_it` holds for one of them.
    fn search(
        &self,
        mut remaining: Vec<u32>,
        is_it: impl Fn(u32, &[DatapathBucket]) -> bool,
        next: impl Fn(&DatapathBucket, &mut Vec<u32>),
    ) -> bool {
        let mut seen = BTreeSet::new();
        while let Some(number) = remaining.pop() {
            if !seen.insert(number) {
                continue;
            }
            let buckets = self.0.get(&number).map_or(&[][..], |entry| &entry.buckets);
            if is_it(number, buckets) {
                return true;
            }
            buckets.iter().for_each(|bucket| next(bucket, &mut remaining));
        }
        false
    }

    /// Adds or changes a group, or removes groups. `removed` gets the removed numbers, in order.
    ///
    /// # Errors
    /// The errors of the specification (1.3.5 §7.4.4.7); nothing has changed then.
    pub(super) fn modify(
        &mut self,
        request: &GroupMod<'_>,
        buckets: Vec<DatapathBucket>,
        now: Duration,
        removed: &mut Vec<u32>,
    ) -> Result<(), ErrorCode> {
        let number = request.group;
        let (counter, created) = match request.command {
            GroupCommand::Delete => return self.delete(number, removed),
            GroupCommand::Add if number > Group::MAX => return Err(ErrorCode::GroupModInvalid),
            GroupCommand::Add if self.0.contains_key(&number) => {
                return Err(ErrorCode::GroupModExists);
            }
            GroupCommand::Add if self.0.len() >= MAX_GROUPS => {
                return Err(ErrorCode::GroupModOutOfGroups);
            }
            GroupCommand::Add => (PacketByteCount::default(), now),
            GroupCommand::Modify => {
                let old = self.0.get(&number).ok_or(ErrorCode::GroupModUnknownGroup)?;
                (old.counter, old.created)
            }
        };
        check_buckets(request.kind, &buckets)?;
        if self.reaches(&buckets, number) {
            return Err(ErrorCode::GroupModLoop);
        }
        self.0.insert(number, DatapathGroup { kind: request.kind, buckets, counter, created });
        Ok(())
    }

    fn delete(&mut self, number: u32, removed: &mut Vec<u32>) -> Result<(), ErrorCode> {
        if number == Group::ALL {
            removed.extend(self.0.keys());
            self.0.clear();
            return Ok(());
        }
        if number > Group::MAX {
            return Err(ErrorCode::GroupModInvalid);
        }
        // Groups have no loops, so no reference comes from the group itself.
        if self.references().any(|used| used == number) {
            return Err(ErrorCode::GroupModChained);
        }
        // A group that does not exist is no error (1.3.5 §6.5).
        removed.extend(self.0.remove(&number).map(|_| number));
        Ok(())
    }

    /// Whether these buckets send to this group or watch it, directly or through other groups.
    fn reaches(&self, buckets: &[DatapathBucket], target: u32) -> bool {
        self.search(
            buckets.iter().flat_map(DatapathBucket::next_groups).collect(),
            |group, _| group == target,
            |bucket, left| left.extend(bucket.next_groups()),
        )
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Checks and compiles the buckets of a request, except for what depends on the group's type.
///
/// # Errors
/// The error of an action; `OFPBAC_TOO_MANY` for more than [`MAX_ACTIONS`]; `OFPGMFC_BAD_WATCH` for
/// a port or group that does not exist; `OFPGMFC_OUT_OF_BUCKETS`.
pub(super) fn compile(
    request: &GroupMod<'_>,
    checker: &Checker<'_>,
) -> Result<Vec<DatapathBucket>, ErrorCode> {
    if request.command == GroupCommand::Delete {
        return Ok(Vec::new());
    }
    if request.buckets.len() > MAX_BUCKETS {
        return Err(ErrorCode::GroupModOutOfBuckets);
    }
    let mut actions_in_all = 0;
    let compiled = request.buckets.iter().map(|bucket| {
        let port = bucket.watch_port;
        let watched = port == Port::ANY || checker.ports.get(port.0).is_some();
        let group = bucket.watch_group;
        let itself = group == request.group;
        if !watched || !(group == Group::ANY || itself || checker.groups.get(group).is_some()) {
            return Err(ErrorCode::GroupModBadWatch);
        }
        let actions = checker.bucket(request.group, bucket.actions.iter())?;
        actions_in_all += actions.len();
        if actions_in_all > MAX_ACTIONS {
            return Err(ErrorCode::ActionTooMany);
        }
        Ok(DatapathBucket {
            weight: bucket.weight,
            watch_port: port,
            watch_group: group,
            set: ActionSet::of(&actions),
            actions,
            counter: PacketByteCount::default(),
        })
    });
    compiled.collect()
}

/// Checks the buckets against the type of their group.
fn check_buckets(kind: GroupType, buckets: &[DatapathBucket]) -> Result<(), ErrorCode> {
    let is_valid = match kind {
        GroupType::All => true,
        GroupType::Select => return Ok(()),
        GroupType::Indirect => buckets.len() == 1,
        GroupType::FastFailover => buckets.iter().all(DatapathBucket::watches),
        GroupType::Unknown(_) => return Err(ErrorCode::GroupModBadType),
    };
    // Only select groups have weights; in other groups they must be zero (1.3.5 §7.3.4.2).
    let unweighted = buckets.iter().all(|bucket| bucket.weight == 0);
    if is_valid && unweighted { Ok(()) } else { Err(ErrorCode::GroupModInvalid) }
}

/// Picks one of the usable buckets, in proportion to the weights.
fn pick(
    buckets: &[DatapathBucket],
    hash: u64,
    usable: impl Fn(&DatapathBucket) -> bool,
) -> Option<usize> {
    let shares = || {
        let usable = buckets.iter().enumerate().filter(|(_, bucket)| usable(bucket));
        usable.map(|(index, bucket)| (index, u64::from(bucket.weight)))
    };
    let total: u64 = shares().map(|(_, weight)| weight).sum();
    let mut point = hash.checked_rem(total)?;
    for (index, weight) in shares() {
        if point < weight {
            return Some(index);
        }
        point -= weight;
    }
    None
}

/// The fields that identify a flow for select groups.
const FLOW_FIELDS: [Field; 13] = [
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::ArpSpa,
    Field::ArpTpa,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::Ipv6Flabel,
    Field::MplsLabel,
];
/// More of them, but not for fragments: only the first has them, and all must stay together.
const PORT_FIELDS: [Field; 6] =
    [Field::TcpSrc, Field::TcpDst, Field::UdpSrc, Field::UdpDst, Field::SctpSrc, Field::SctpDst];

/// A hash that is equal for all packets of a flow, in every run.
fn flow_hash(packet: &Packet) -> u64 {
    // FNV-1a over 64-bit words, then the finalizer of splitmix64: short, and even enough.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let ports = if packet.is_fragment() { &[] } else { &PORT_FIELDS[..] };
    for field in FLOW_FIELDS.iter().chain(ports) {
        if let Some(value) = packet.key().value(*field) {
            for word in [*field as u64, (value >> 64) as u64, value as u64] {
                hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}
