//! Static entries, orders that change them, and why an order is refused.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_api::openflow::Meter;
use bellrock_api::{Dpid, PriorityBand};
use bellrock_services::desired::DesiredEntry;

use super::references::Reference;
use crate::provisioning::FIRST_GROUP;

/// Maximum number of static entries of a controller.
pub const MAX_STATIC_ENTRIES: usize = 100_000;

/// Maximum length of an entry's name, in characters.
pub const MAX_ENTRY_NAME_CHARS: usize = 64;

/// A flow, group or meter that an operator wants in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticEntry {
    /// Its name, by which it is changed and removed.
    pub name: String,
    /// Who may change and remove it.
    pub owner: String,
    /// Its switch.
    pub dpid: Dpid,
    /// What is wanted.
    pub wanted: DesiredEntry,
    /// When it is removed, in the time of [`StaticEntries::now`](super::StaticEntries::now). An
    /// order rounds it up to seconds.
    pub end: Option<Duration>,
    /// Its number among the intents of the app. An order gives it, and keeps that of the name.
    pub number: u32,
}

/// An order: what one owner sets and removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticOrder {
    /// Who orders.
    pub owner: String,
    /// Entries to set. Those of the same names are replaced.
    pub set: Vec<StaticEntry>,
    /// Names of entries to remove.
    pub remove: Vec<String>,
    /// Whether to remove all other entries of this owner.
    pub replace: bool,
}

/// What an order has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticChange {
    /// Number of entries that are new, or differ from before.
    pub set: usize,
    /// Number of entries that were there before.
    pub unchanged: usize,
    /// Number of entries that were removed.
    pub removed: usize,
    /// The numbers of the entries of the order, and of the removed ones.
    pub numbers: BTreeSet<u32>,
}

/// Why an order is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StaticRefusal {
    /// It is wrong, or contradicts other entries.
    #[error(transparent)]
    NotSet(#[from] NotSet),
    /// Another controller has changed this entry at the same moment, so who orders has not seen
    /// what the order would replace.
    #[error(
        "the entry {0} was changed at another node of the cluster at the same moment, and the order was refused; look at the entry (bellrock static list), and order again"
    )]
    Conflict(String),
}

/// What is wrong with an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotSet {
    /// Index of the entry among those to set. `None`: one to remove.
    pub entry: Option<usize>,
    /// What is wrong, and what would be right.
    pub why: NotSetReason,
}

/// The reason of a [`NotSet`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSetReason {
    /// The name is empty, too long or has other characters.
    #[error(
        "{0:?} is not a name of an entry; give 1 to {MAX_ENTRY_NAME_CHARS} letters, digits, `.`, `-`, `_` and `:`"
    )]
    Name(String),
    /// Two entries of the order have the same name.
    #[error("the name {0} is there twice")]
    Twice(String),
    /// The entry belongs to somebody else.
    #[error(
        "the entry {name} belongs to {owner}, and only an order of this owner changes it; with the command: --owner {owner}"
    )]
    Owner {
        /// Its name.
        name: String,
        /// Its owner.
        owner: String,
    },
    /// Another entry is the same flow, group or meter.
    #[error("the entry {other} is the same {what} of this switch")]
    Taken {
        /// `flow`, `group` or `meter`.
        what: &'static str,
        /// The other entry.
        other: String,
    },
    /// Another entry is the same flow, as the switch gives both the same priority.
    #[error(
        "the entry {0} is the same flow of this switch: in OpenFlow 1.0, a flow without wildcards has the highest priority, whatever is ordered"
    )]
    SameExact(String),
    /// The priority is outside the app's.
    #[error("{0} is not a priority of a static flow; give 0 to {max}", max = PriorityBand::PRIORITIES - 1)]
    Priority(u16),
    /// The number of the group is not for operators.
    #[error("{0} is not a number of a static group; give 0 to {max}", max = FIRST_GROUP - 1)]
    Group(u32),
    /// The number of the meter is not for operators.
    #[error("{meter} is not a number of a static meter; give {first} to {max}", max = Meter::MAX)]
    Meter {
        /// The number.
        meter: u32,
        /// The first one that is free.
        first: u32,
    },
    /// There is no entry of this name.
    #[error("there is no entry {0}; `bellrock static list` shows all")]
    Missing(String),
    /// Another entry uses this group or meter.
    #[error(
        "{name} stays as it is: its {what} is used by the entry {user} of {owner}; remove that one before, or with it"
    )]
    InUse {
        /// The entry to remove or to change.
        name: String,
        /// What it is.
        what: Reference,
        /// The entry that uses it.
        user: String,
        /// The owner of that entry.
        owner: String,
    },
    /// The switch does not have a group or meter that the entry uses.
    #[error(
        "the switch has no {0}, and no static entry is it; set it before, or in the same order"
    )]
    Absent(Reference),
    /// There are too many entries.
    #[error("{MAX_STATIC_ENTRIES} entries is the maximum; this order would make it {0}")]
    Full(usize),
}
