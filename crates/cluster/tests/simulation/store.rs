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
}

impl Store {
    /// Writes a record, if the revision of the present one is the expected one.
    pub(crate) fn write(
        &mut self,
        dpid: Dpid,
        masters: Vec<NodeId>,
        floor: u64,
        expected: u64,
    ) -> WriteResult {
        let present = self.records.get(&dpid);
        if present.map_or(0, |record| record.revision) != expected {
            return WriteResult::Conflict(present.cloned());
        }
        self.revision += 1;
        let record = Record { masters, floor, revision: self.revision };
        self.records.insert(dpid, record.clone());
        WriteResult::Written(record)
    }

    pub(crate) fn all(&self) -> Vec<(Dpid, Record)> {
        self.records.iter().map(|(&dpid, record)| (dpid, record.clone())).collect()
    }

    /// The records that were written after a revision.
    pub(crate) fn since(&self, revision: u64) -> Vec<(Dpid, Record)> {
        let mut newer = self.all();
        newer.retain(|(_, record)| record.revision > revision);
        newer.sort_by_key(|(_, record)| record.revision);
        newer
    }

    pub(crate) fn record(&self, dpid: Dpid) -> Option<&Record> {
        self.records.get(&dpid)
    }
}
