//! The form in which a static entry is stored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellrock_apps::static_entries as app;
use bellrock_query::{QueryError, StaticEntry, SwitchRef};
use serde::{Deserialize, Serialize};

use super::super::static_forms::{self, Shown};
use crate::file_store::NamedValues;

/// Names of entries begin so in the store.
const PREFIX: &str = "entry/";
/// Name of the number of orders in the store.
pub(super) const ORDERS: &str = "orders";

/// An entry in the store.
#[derive(Deserialize, Serialize)]
pub(super) struct SavedEntry {
    number: u32,
    owner: String,
    /// When it ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    /// Without its time to live.
    entry: StaticEntry,
}

/// The number of orders. Every order writes it: so two orders never pass each other unseen.
#[derive(Deserialize, Serialize)]
pub(super) struct SavedOrders {
    pub(super) orders: u64,
}

/// The form of the first release that had a file.
#[derive(Deserialize)]
struct FirstVersion {
    entries: Vec<SavedEntry>,
}

impl SavedEntry {
    /// `now`: the time of the network. `unix`: the same, in seconds since 1970.
    pub(super) fn of(entry: app::StaticEntry, now: Duration, unix: u64) -> Self {
        let Shown { flow, group, meter } = static_forms::show(&entry.wanted);
        let switch = SwitchRef::Dpid(entry.dpid);
        SavedEntry {
            number: entry.number,
            owner: entry.owner,
            end: entry.end.map(|end| unix + end.saturating_sub(now).as_secs()),
            entry: StaticEntry { name: entry.name, switch, ttl_seconds: None, flow, group, meter },
        }
    }

    /// The time of the network begins with the start of the controller, so ends are moved.
    pub(super) fn restore(self, now: Duration, unix: u64) -> Result<app::StaticEntry, QueryError> {
        let wanted = static_forms::read(&self.entry)?;
        let SwitchRef::Dpid(dpid) = self.entry.switch else {
            let why = "the switch is not a datapath id";
            return Err(QueryError::invalid("switch", why));
        };
        let left = |end: u64| Duration::from_secs(end.saturating_sub(unix));
        Ok(app::StaticEntry {
            name: self.entry.name,
            owner: self.owner,
            dpid,
            wanted,
            end: self.end.map(|end| now + left(end)),
            number: self.number,
        })
    }
}

/// Reads an entry from its value.
///
/// # Errors
/// What is wrong, for the log.
pub(super) fn read(value: &str, now: Duration, unix: u64) -> Result<app::StaticEntry, String> {
    let saved: SavedEntry = serde_json::from_str(value).map_err(|error| error.to_string())?;
    saved.restore(now, unix).map_err(|error| error.to_string())
}

/// The value of an entry.
pub(super) fn show(entry: app::StaticEntry, now: Duration, unix: u64) -> String {
    // The types have no maps with other keys than text.
    serde_json::to_string(&SavedEntry::of(entry, now, unix)).unwrap_or_default()
}

/// The name of an entry in the store.
pub(super) fn stored_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The name of the entry that a name in the store is of.
pub(super) fn entry_name(stored: &str) -> Option<&str> {
    stored.strip_prefix(PREFIX)
}

/// Reads a file of version 1.
pub(super) fn read_first_version(bytes: &[u8]) -> Result<NamedValues, serde_json::Error> {
    let FirstVersion { entries } = serde_json::from_slice(bytes)?;
    let named =
        |entry: SavedEntry| Ok((stored_name(&entry.entry.name), serde_json::to_string(&entry)?));
    entries.into_iter().map(named).collect()
}

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
