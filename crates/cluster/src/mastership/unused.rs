//! Records of switches that are gone: they are removed, so that new switches find a place.
//!
//! A record can be made again at any time: a new one has a later epoch than all before it, by
//! etcd's revision, and by what the switch says that it has seen. So nothing is lost but the order
//! of masters.

use std::collections::BTreeSet;
use std::time::Duration;

use bellrock_api::Dpid;

use super::{MAX_SWITCHES, Mastership, Output};
use crate::node::NodeId;

/// Time between two looks for records of switches that are gone.
const SWEEP: Duration = Duration::from_secs(10);
/// Time without its switch at any node after which a record is removed. It is longer than most
/// maintenance, so a switch that comes back has the masters of before.
pub const KEEP_RECORDS: Duration = Duration::from_secs(24 * 3600);
/// The same above [`MANY_RECORDS`]. Without certificates of switches anybody may invent datapath
/// ids, which must not keep new switches out.
const KEEP_MANY: Duration = Duration::from_secs(60);
/// Number of records above which they are kept for [`KEEP_MANY`] only.
const MANY_RECORDS: usize = MAX_SWITCHES / 4 * 3;
/// Maximum number of records that are removed at once. The others follow with the next look.
const MAX_REMOVALS: usize = 256;

impl Mastership {
    /// Removes records of switches that no node has had for long. One node does it: the first one
    /// that serves.
    pub(super) fn remove_unused(&mut self, now: Duration, out: &mut Vec<Output>) {
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP.min(self.keep_records / 2);
        let keep = if self.records > MANY_RECORDS { KEEP_MANY } else { self.keep_records };
        let keep = keep.min(self.keep_records);
        let is_first = NodeId::all(self.nodes).find(|&node| self.may_serve(node)) == Some(self.me);
        let is_gone = |&(&dpid, entry): &(&Dpid, &super::switch::Entry)| {
            entry.record.is_some() && !self.is_used(dpid)
        };
        let gone: BTreeSet<Dpid> =
            self.switches.iter().filter(is_gone).map(|(&dpid, _)| dpid).collect();
        let mut removals = 0;
        for (&dpid, entry) in &mut self.switches {
            if !gone.contains(&dpid) {
                entry.unused_since = None;
                continue;
            }
            let since = *entry.unused_since.get_or_insert(now);
            let is_due = is_first && now >= since + keep && removals < MAX_REMOVALS;
            if let Some(record) = entry.record.as_ref().filter(|_| is_due) {
                removals += 1;
                out.push(Output::Remove { dpid, expected: record.revision });
            }
        }
    }

    /// Whether a node may have the switch. One that was not heard yet may have it.
    fn is_used(&self, dpid: Dpid) -> bool {
        NodeId::all(self.nodes).any(|node| self.is_connected(node, dpid))
    }

    /// Forgets a switch of which nothing is known that somebody could need.
    pub(super) fn forget_unknown(&mut self, dpid: Dpid) {
        let Some(entry) = self.switches.get(&dpid) else { return };
        if entry.record.is_some() || entry.here.is_some() || entry.is_writing() {
            return;
        }
        if let Some(at) = entry.wake {
            self.timers.remove(&(at, dpid));
        }
        self.switches.remove(&dpid);
    }
}
