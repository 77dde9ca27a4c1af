//! Datapath ids: which connection owns one, and whether it may.

use std::sync::Arc;

use bellrock_api::{Dpid, SwitchIdentity, SwitchInfo};

use super::{DirectoryEntry, SharedState, Shown};
use crate::admission::AdmissionError;
use crate::connection::ConnectionCounts;
use crate::mailbox::{ConnectionId, Mail};

impl SharedState {
    /// Closes the connections of the switches for which `why` gives a reason. Returns their number.
    pub fn close_switches(&self, why: impl Fn(&SwitchInfo) -> Option<Box<str>>) -> usize {
        // Not under the lock: `why` may take its time.
        let entries: Vec<_> = {
            let entries = self.posts.read();
            entries.switches.values().map(|entry| (entry.id, Arc::clone(&entry.info))).collect()
        };
        let close = |(id, info): (ConnectionId, Arc<SwitchInfo>)| {
            let why = why(&info)?;
            // Under the lock, so that the mail finds a switch that is handed over.
            let entries = self.posts.read();
            let entry = entries.switches.get(&info.dpid)?;
            let id = entry.has_serial(id.serial).then_some(entry.id)?;
            self.post(id.worker, Mail::Close { id, why }).then_some(())
        };
        entries.into_iter().filter_map(close).count()
    }

    /// Whether a connection may speak for its datapath id.
    pub(crate) fn check_admission(
        &self,
        dpid: Dpid,
        identity: Option<&SwitchIdentity>,
    ) -> Result<(), AdmissionError> {
        self.admission.as_ref().map_or(Ok(()), |admission| admission.check(dpid, identity))
    }

    /// Notes that a connection, which owns its datapath id, speaks for it.
    pub(crate) fn admit(
        &self,
        dpid: Dpid,
        identity: Option<&SwitchIdentity>,
    ) -> Result<(), AdmissionError> {
        self.admission.as_ref().map_or(Ok(()), |admission| admission.admit(dpid, identity))
    }

    /// Claims a datapath id for a connection. `Err` returns the connection that owns it.
    pub(crate) fn claim(
        &self,
        id: ConnectionId,
        info: &Arc<SwitchInfo>,
        counts: &Arc<ConnectionCounts>,
    ) -> Result<(), ConnectionId> {
        let entries = &mut *self.posts.write();
        let (switches, history) = (&mut entries.switches, &mut entries.history);
        if let Some(entry) = switches.get(&info.dpid) {
            return Err(entry.id);
        }
        let shown = Shown::Nowhere;
        let entry =
            DirectoryEntry { id, info: Arc::clone(info), counts: Arc::clone(counts), shown };
        switches.insert(info.dpid, entry);
        history.connected(info.dpid, switches.len(), |dpid| switches.contains_key(dpid));
        self.posts.connected.update(|connected| connected.with(Arc::clone(info)));
        Ok(())
    }

    /// Publishes a switch that belongs to a raw owner: operators see it, and nobody else writes to
    /// it.
    pub(crate) fn publish_raw(&self, id: ConnectionId, info: &Arc<SwitchInfo>) {
        let switches = &mut self.posts.write().switches;
        if let Some(entry) =
            switches.get_mut(&info.dpid).filter(|entry| entry.has_serial(id.serial))
        {
            entry.shown = Shown::Raw;
            self.posts.switches.update(|switches| switches.with(Arc::clone(info)));
        }
    }

    /// Releases the datapath id of a connection.
    pub(crate) fn release(&self, id: ConnectionId, dpid: Dpid) {
        self.hide(id, dpid);
        let entries = &mut *self.posts.write();
        if entries.switches.get(&dpid).is_some_and(|entry| entry.has_serial(id.serial))
            && let Some(entry) = entries.switches.remove(&dpid)
        {
            entries.history.ended(dpid, &entry.counts);
            self.posts.connected.update(|connected| connected.without(dpid));
        }
    }
}
