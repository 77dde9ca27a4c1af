//! Groups and meters that other entries use. When a switch loses one, it removes the flows that use
//! it (1.3.5 §6.7.1, §6.8): so an entry stays as long as another one needs it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use bellrock_api::Dpid;
use bellrock_api::openflow::{Action, FlowCommand, Group, Instruction, Meter};
use bellrock_services::desired::DesiredEntry;

use super::order::StaticEntry;

/// A group or meter of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference {
    /// The group with this number.
    Group(u32),
    /// The meter with this number.
    Meter(u32),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Group(id) => write!(f, "group {id}"),
            Reference::Meter(id) => write!(f, "meter {id}"),
        }
    }
}

/// A use of a group or meter that no static entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// Index of the entry among those to set.
    pub entry: usize,
    /// The switch.
    pub dpid: Dpid,
    /// What the entry uses.
    pub used: Reference,
}

impl Reference {
    /// The group or meter that an entry is.
    pub(super) fn of(wanted: &DesiredEntry) -> Option<Self> {
        match wanted {
            DesiredEntry::Flow(_) => None,
            DesiredEntry::Group(group) => Some(Reference::Group(group.id)),
            DesiredEntry::Meter(meter) => Some(Reference::Meter(meter.id)),
        }
    }

    /// The groups and meters that an entry uses, except itself.
    pub(super) fn used_by(wanted: &DesiredEntry) -> BTreeSet<Self> {
        let mut used = BTreeSet::new();
        let group_of = |action: Action<'_>| match action {
            Action::Group(id) => Some(Reference::Group(id)),
            _ => None,
        };
        match wanted {
            DesiredEntry::Flow(flow) => flow.with_flow_mod(FlowCommand::Add, |flow| {
                for instruction in flow.instructions.iter() {
                    match instruction {
                        Instruction::Meter(id) if id <= Meter::MAX => {
                            used.insert(Reference::Meter(id));
                        }
                        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
                            used.extend(actions.iter().filter_map(group_of));
                        }
                        _ => {}
                    }
                }
            }),
            DesiredEntry::Group(group) => {
                for bucket in &group.buckets {
                    used.extend(bucket.actions.iter().copied().filter_map(group_of));
                    if bucket.watch_group != Group::ANY {
                        used.insert(Reference::Group(bucket.watch_group));
                    }
                }
                used.remove(&Reference::Group(group.id));
            }
            DesiredEntry::Meter(_) => {}
        }
        used
    }
}

/// Which entries use which groups and meters.
#[derive(Debug, Default)]
pub(super) struct References {
    users: HashMap<(Dpid, Reference), BTreeSet<u32>>,
    /// Groups and meters that were static entries in this run. The app removes one that is none any
    /// more, so nothing can use it until it is one again.
    past: HashSet<(Dpid, Reference)>,
}

impl References {
    /// Adds what an entry uses.
    pub(super) fn add(&mut self, entry: &StaticEntry) {
        for used in Reference::used_by(&entry.wanted) {
            self.users.entry((entry.dpid, used)).or_default().insert(entry.number);
        }
    }

    /// Notes that an entry is stored.
    pub(super) fn note(&mut self, entry: &StaticEntry) {
        self.past.extend(Reference::of(&entry.wanted).map(|it| (entry.dpid, it)));
    }

    /// Removes what an entry uses.
    pub(super) fn remove(&mut self, entry: &StaticEntry) {
        for used in Reference::used_by(&entry.wanted) {
            let place = (entry.dpid, used);
            if let Some(users) = self.users.get_mut(&place) {
                users.remove(&entry.number);
                if users.is_empty() {
                    self.users.remove(&place);
                }
            }
        }
    }

    /// The numbers of the entries that use a group or meter.
    pub(super) fn users(&self, dpid: Dpid, used: Reference) -> impl Iterator<Item = u32> {
        self.users.get(&(dpid, used)).into_iter().flatten().copied()
    }

    /// Whether a group or meter was a static entry in this run.
    pub(super) fn was_static(&self, dpid: Dpid, used: Reference) -> bool {
        self.past.contains(&(dpid, used))
    }
}
