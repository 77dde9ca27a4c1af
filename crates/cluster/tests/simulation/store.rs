//! A model of etcd: records with revisions, and snapshots that may be restored.

use std::collections::BTreeMap;

use bellrock_api::Dpid;
use bellrock_cluster::mastership::WriteResult;
use bellrock_cluster::node::NodeId;
use bellrock_cluster::record::Record;

#[derive(Clone, Default)]
pub(crate) struct Store {
    revision: u64,
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

    pub(crate) fn record(&self, dpid: Dpid) -> Option<&Record> {
        self.records.get(&dpid)
    }
}
