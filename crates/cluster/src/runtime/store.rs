//! Records in etcd: how they are written, read and followed.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::Dpid;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::info;

use super::member::Event;
use crate::etcd::{self, Change, Client, Outcome, ReadNeeded, Transaction, WatchEvent, Write};
use crate::mastership::WriteResult;
use crate::node::NodeId;
use crate::record::Record;

/// Keys of records begin so; the datapath id follows, in hexadecimal digits.
const MASTERS: &str = "masters/";
/// The key of the names of all nodes.
pub(crate) const NODES: &str = "nodes";
/// After a failure, etcd is read again after so long.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// What has happened in etcd.
#[derive(Debug)]
pub(crate) enum StoreEvent {
    /// All records.
    Read(Vec<(Dpid, Record)>),
    /// A record.
    Changed(Dpid, Option<Record>),
    /// All changes up to this revision are reported.
    UpTo(i64),
    /// etcd was heard.
    Alive,
    /// Whether etcd serves this node, and what is wrong if not.
    Reachable(Result<(), String>),
}

/// Why etcd does not serve this node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// An old snapshot was restored.
    #[error("{0}")]
    WentBack(etcd::Error),
    /// An address is of another cluster of etcd.
    #[error("{0}")]
    OtherCluster(etcd::Error),
    #[error("{0}")]
    Other(String),
}

impl From<etcd::Error> for Trouble {
    fn from(error: etcd::Error) -> Self {
        match error {
            etcd::Error::WentBack { .. } | etcd::Error::Rewritten { .. } => {
                Trouble::WentBack(error)
            }
            etcd::Error::OtherCluster { .. } => Trouble::OtherCluster(error),
            error => Trouble::Other(error.to_string()),
        }
    }
}

/// A record as etcd keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct Value {
    masters: Vec<String>,
    floor: u64,
    /// Older releases ignore it, and leave it out of what they write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    placed: bool,
}

/// A record that is to be written.
pub(crate) struct NewRecord {
    pub(crate) dpid: Dpid,
    pub(crate) masters: Vec<NodeId>,
    pub(crate) floor: u64,
    pub(crate) placed: bool,
    pub(crate) expected: u64,
}

/// The store of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    client: Client,
    /// Names of the nodes, sorted.
    nodes: Vec<String>,
}

impl Store {
    pub(crate) fn new(client: Client, nodes: Vec<String>) -> Self {
        Store { client, nodes }
    }

    /// Reads all records, and follows their changes, for ever.
    pub(crate) async fn follow(self, events: mpsc::Sender<Event>) {
        loop {
            let trouble = match self.follow_once(&events).await {
                Ok(()) => return,
                Err(trouble) => trouble,
            };
            let is_replaced = match &trouble {
                Trouble::WentBack(_) => true,
                Trouble::OtherCluster(_) => self.client.is_replaced().await,
                Trouble::Other(_) => false,
            };
            if is_replaced {
                // It is reported, and the old snapshot is what there is: epochs go on from the
                // newest that a node or switch knows.
                self.client.forget_history();
            }
            let trouble = trouble.to_string();
            let event = Event::Store(StoreEvent::Reachable(Err(trouble)));
            if events.send(event).await.is_err() {
                return;
            }
            sleep(READ_AGAIN).await;
        }
    }

    async fn follow_once(&self, events: &mpsc::Sender<Event>) -> Result<(), Trouble> {
        self.check_nodes().await?;
        let snapshot = self.client.read(MASTERS).await?;
        let mut watch = self.client.watch_after(MASTERS, &snapshot);
        let records = snapshot.entries.iter();
        let records = records.filter_map(|entry| {
            let key = entry.key.as_slice();
            Some((dpid_of(key)?, self.record(&entry.value, entry.mod_revision)?))
        });
        let up_to = StoreEvent::UpTo(snapshot.revision);
        let read = [StoreEvent::Read(records.collect()), up_to, StoreEvent::Reachable(Ok(()))];
        for event in read {
            if events.send(Event::Store(event)).await.is_err() {
                return Ok(());
            }
        }
        while let Some(event) = watch.next().await {
            let reported = match event {
                WatchEvent::Connected { .. } => vec![StoreEvent::Reachable(Ok(()))],
                WatchEvent::Disconnected { error } => {
                    vec![StoreEvent::Reachable(Err(error.to_string()))]
                }
                WatchEvent::Changes { changes, revision } => {
                    let changed = changes.into_iter().filter_map(|change| self.changed(change));
                    changed.chain([StoreEvent::UpTo(revision)]).collect()
                }
                WatchEvent::Progress { revision } => vec![StoreEvent::UpTo(revision)],
                WatchEvent::Alive => vec![StoreEvent::Alive],
                WatchEvent::ReadNeeded(
                    ReadNeeded::WentBack(error) | ReadNeeded::OtherCluster(error),
                ) => return Err(error.into()),
                WatchEvent::ReadNeeded(why) => return Err(Trouble::Other(why.to_string())),
            };
            for event in reported {
                if events.send(Event::Store(event)).await.is_err() {
                    return Ok(());
                }
            }
        }
        Err(Trouble::Other("the watch of etcd has ended".into()))
    }

    /// Refuses an etcd whose cluster of this name has other nodes.
    pub(crate) async fn check_nodes(&self) -> Result<(), Trouble> {
        let ours =
            serde_json::to_vec(&self.nodes).map_err(|error| Trouble::Other(error.to_string()))?;
        loop {
            let entry = self.client.read_key(NODES.as_bytes()).await?;
            let Some(entry) = entry else {
                let create = Transaction::new().unchanged(NODES, 0).put(NODES, ours.clone());
                match self.client.transact(&create).await {
                    Ok(Outcome::Committed { .. }) => return Ok(()),
                    Ok(Outcome::Conflict { .. }) => continue,
                    Ok(Outcome::Unknown { why }) | Err(why) => return Err(why.into()),
                }
            };
            let theirs: Vec<String> = serde_json::from_slice(&entry.value).unwrap_or_default();
            if theirs == self.nodes {
                return Ok(());
            }
            return Err(Trouble::Other(format!(
                "in etcd this cluster has the nodes {}, and here {}: another cluster has the same name, \
                 or its nodes have changed (then stop all nodes, and remove the key {NODES} of the cluster)",
                theirs.join(" "),
                self.nodes.join(" ")
            )));
        }
    }

    fn changed(&self, change: Change) -> Option<StoreEvent> {
        match change {
            Change::Put(entry) => {
                let record = self.record(&entry.value, entry.mod_revision);
                Some(StoreEvent::Changed(dpid_of(&entry.key)?, record))
            }
            Change::Delete { key, .. } => Some(StoreEvent::Changed(dpid_of(&key)?, None)),
        }
    }

    /// Writes records, each on condition of its revision.
    pub(crate) async fn write(&self, records: &[NewRecord]) -> Vec<(Dpid, WriteResult)> {
        let with_writes = records.iter().filter_map(|new| Some((new, self.write_of(new)?)));
        let (records, writes): (Vec<&NewRecord>, Vec<Write>) = with_writes.unzip();
        let outcomes = self.client.write_each(&writes).await;
        let results = records.into_iter().zip(outcomes).map(|(new, outcome)| {
            let result = match outcome {
                Ok(Outcome::Committed { revision }) => WriteResult::Written(Record {
                    masters: new.masters.clone(),
                    floor: new.floor,
                    placed: new.placed,
                    revision: u64::try_from(revision).unwrap_or_default(),
                }),
                Ok(Outcome::Conflict { found }) => {
                    let found = found.first();
                    let found = found.and_then(|it| self.record(&it.value, it.mod_revision));
                    WriteResult::Conflict(found)
                }
                Ok(Outcome::Unknown { .. }) | Err(_) => WriteResult::Failed,
            };
            (new.dpid, result)
        });
        results.collect()
    }

    /// Removes records of switches that are gone, each on condition of its revision. Those that
    /// stay are found again.
    pub(crate) async fn remove(&self, records: &[(Dpid, u64)]) {
        let removal = |&(dpid, expected): &(Dpid, u64)| {
            Some(Write::delete(format!("{MASTERS}{dpid}"), i64::try_from(expected).ok()?))
        };
        let removals: Vec<Write> = records.iter().filter_map(removal).collect();
        let outcomes = self.client.write_each(&removals).await;
        let removed = outcomes.iter().flatten().filter(|outcome| outcome.is_committed()).count();
        if removed > 0 {
            info!(removed, "records of switches that no node has had for long are removed");
        }
    }

    fn write_of(&self, new: &NewRecord) -> Option<Write> {
        let names = new.masters.iter().filter_map(|node| self.nodes.get(node.index()).cloned());
        let value = Value { masters: names.collect(), floor: new.floor, placed: new.placed };
        let value = serde_json::to_vec(&value).ok()?;
        let expected = i64::try_from(new.expected).ok()?;
        Some(Write::put(format!("{MASTERS}{}", new.dpid), value, expected))
    }

    /// A record of its value. Names that are no nodes are left out.
    fn record(&self, value: &[u8], revision: i64) -> Option<Record> {
        let value: Value = serde_json::from_slice(value).ok()?;
        let places: BTreeMap<&str, NodeId> = self
            .nodes
            .iter()
            .enumerate()
            .filter_map(|(place, name)| Some((name.as_str(), NodeId::new(place)?)))
            .collect();
        let mut masters = Vec::new();
        for name in &value.masters {
            if let Some(&node) = places.get(name.as_str())
                && !masters.contains(&node)
            {
                masters.push(node);
            }
        }
        let Value { floor, placed, .. } = value;
        Some(Record { masters, floor, placed, revision: u64::try_from(revision).ok()? })
    }
}

fn dpid_of(key: &[u8]) -> Option<Dpid> {
    let digits = std::str::from_utf8(key).ok()?.strip_prefix(MASTERS)?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_releases_that_know_no_mark_are_read_and_written_as_they_do() {
        let unmarked = r#"{"masters":["a","b"],"floor":7}"#;
        let value: Value = serde_json::from_str(unmarked).unwrap();
        assert!(!value.placed);
        assert_eq!(serde_json::to_string(&value).unwrap(), unmarked);
        let marked = r#"{"masters":["a","b"],"floor":7,"placed":true}"#;
        let value: Value = serde_json::from_str(marked).unwrap();
        assert!(value.placed);
        assert_eq!(serde_json::to_string(&value).unwrap(), marked);
    }
}
