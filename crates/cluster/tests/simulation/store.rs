//! A model of etcd: records with revisions, and any earlier state may be restored.

use std::collections::BTreeMap;

use bellrock_api::Dpid;
use bellrock_cluster::mastership::WriteResult;
use bellrock_cluster::node::NodeId;
use bellrock_cluster::record::Record;

#[derive(Clone, Default)]
pub(crate) struct Store {
    pub(crate) revision: u64,
    /// Number of restores before. What nodes compare to notice one.
    pub(crate) history: u64,
    records: BTreeMap<Dpid, Record>,
    /// The revisions at which records were removed.
    removed: BTreeMap<Dpid, u64>,
}

impl Store {
    /// Writes a record, if the revision of the present one is the expected one.
    pub(crate) fn write(
        &mut self,
        dpid: Dpid,
        masters: Vec<NodeId>,
        floor: u64,
        placed: bool,
        expected: u64,
    ) -> WriteResult {
        let present = self.records.get(&dpid);
        if present.map_or(0, |record| record.revision) != expected {
            return WriteResult::Conflict(present.cloned());
        }
        self.revision += 1;
        let record = Record { masters, floor, placed, revision: self.revision };
        self.records.insert(dpid, record.clone());
        WriteResult::Written(record)
    }

    /// Removes a record of this revision. Returns whether it was there.
    pub(crate) fn remove(&mut self, dpid: Dpid, expected: u64) -> bool {
        let is_it = self.records.get(&dpid).is_some_and(|record| record.revision == expected);
        if is_it {
            self.revision += 1;
            self.records.remove(&dpid);
            self.removed.insert(dpid, self.revision);
        }
        is_it
    }

    pub(crate) fn all(&self) -> Vec<(Dpid, Record)> {
        self.records.iter().map(|(&dpid, record)| (dpid, record.clone())).collect()
    }

    /// The records that were written or removed after a revision.
    pub(crate) fn since(&self, revision: u64) -> Vec<(Dpid, Option<Record>)> {
        let written = self.all().into_iter().map(|(dpid, it)| (it.revision, dpid, Some(it)));
        let removed = self.removed.iter().map(|(&dpid, &at)| (at, dpid, None));
        let mut newer: Vec<_> = written.chain(removed).filter(|it| it.0 > revision).collect();
        newer.sort_by_key(|it| it.0);
        newer.into_iter().map(|(_, dpid, record)| (dpid, record)).collect()
    }

    pub(crate) fn record(&self, dpid: Dpid) -> Option<&Record> {
        self.records.get(&dpid)
    }
}
