//! Static entries as earlier releases have stored them, in files and in etcd: they are read, and
//! written in the form of this release when they change.
//!
//! A value was a JSON object with the entry in the form of requests, and an entry `orders` counted
//! the orders. The first form of the file was a list.

use std::time::Duration;

use bellrock_apps::static_entries::{self as app, entry_name, show_stored, stored_name};
use bellrock_book::file::NamedValues;
use bellrock_query::{QueryError, StaticEntry, SwitchRef};
use serde::{Deserialize, Serialize};

use super::static_forms;

/// An entry in an earlier form.
#[derive(Deserialize, Serialize)]
struct OldEntry {
    number: u32,
    owner: String,
    /// When it ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    /// Without its time to live.
    entry: StaticEntry,
}

/// A file in its first form.
#[derive(Deserialize)]
struct FirstFile {
    entries: Vec<OldEntry>,
}

impl OldEntry {
    fn read(self) -> Result<app::StaticEntry, QueryError> {
        let wanted = static_forms::read(&self.entry)?;
        let SwitchRef::Dpid(dpid) = self.entry.switch else {
            let why = "the switch is not a datapath id";
            return Err(QueryError::invalid("switch", why));
        };
        Ok(app::StaticEntry {
            name: self.entry.name,
            owner: self.owner,
            dpid,
            wanted,
            end: self.end.map(Duration::from_secs),
            number: self.number,
        })
    }
}

/// Returns the value of an entry in the form of this release. What is not in that of an earlier one
/// is returned as it is.
///
/// # Errors
/// What is wrong, for the log.
pub fn upgraded_entry(name: &str, value: &str) -> Result<String, String> {
    if entry_name(name).is_none() || !value.starts_with('{') {
        return Ok(value.to_owned());
    }
    let old: OldEntry = serde_json::from_str(value).map_err(|error| error.to_string())?;
    old.read().map(|entry| show_stored(&entry)).map_err(|error| error.to_string())
}

/// Reads a file in its first form.
pub(super) fn read_first_file(bytes: &[u8]) -> Result<NamedValues, serde_json::Error> {
    let FirstFile { entries } = serde_json::from_slice(bytes)?;
    let named =
        |entry: OldEntry| Ok((stored_name(&entry.entry.name), serde_json::to_string(&entry)?));
    entries.into_iter().map(named).collect()
}
