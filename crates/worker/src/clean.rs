//! Flows that an earlier run of the apps left in a switch go before the apps see it, but for those of
//! apps that take them on ([`LeftFlows::Keep`]).
//!
//! 1.3 removes them by their cookies. 1.0 cannot: its flows are listed, and those with an app's
//! cookie are removed one by one. Flows with other cookies stay.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{
    EncodeError, FlowStatsRequest, MultipartKind, MultipartRequest, RequestBody,
};
use bellrock_api::{Cookie, FlowMod, LeftFlows, Match, ReplyBody, SwitchInfo, ToSwitch, Version};
use bellrock_session::{Gathered, RequestKind, xid};
use tracing::{debug, warn};

use crate::connection::Stage;
use crate::dispatch::App;
use crate::settings::CLEAN_WAIT;
use crate::transport::{Key, Transport};
use crate::worker::Worker;

impl Worker {
    /// The datapath id is this connection's own: remove what an earlier run left, then come up.
    pub(crate) fn clean<T: Transport>(
        &mut self,
        key: Key,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let mut cleaned = self.apps.iter().filter(|app| app.leaves_nothing());
        let all = Match::any();
        let xid = connection.session.next_xid(xid::SESSION);
        if info.version == Version::V1_3 {
            // A table-miss entry that is wanted takes the place of the old one, so that no packet falls
            // into the gap between the two.
            let entry = (!self.wants_packet_ins()).then_some(Cookie::CONTROLLER);
            for cookie in cleaned.map(|app| app.id.cookie()).chain(entry) {
                let cookie = cookie.with(0);
                let old = FlowMod::delete(&all).cookie_mask(cookie, Cookie::MASK);
                // The buffer is empty at this point: there is room for one message an app.
                let _ = ToSwitch::FlowMod(old).encode(info.version, xid, &mut self.out);
            }
            return self.up(key, info, now);
        }
        if cleaned.next().is_none() {
            return self.up(key, info, now);
        }
        let request = MultipartRequest::of(RequestBody::Flow(FlowStatsRequest::all(&all)));
        let kind = RequestKind::Multipart(MultipartKind::Flow);
        let asked = connection.session.request(xid, kind, now).is_ok()
            && ToSwitch::MultipartRequest(request).encode(info.version, xid, &mut self.out).is_ok();
        let until = now + CLEAN_WAIT;
        connection.stage = Stage::Cleaning { info, xid, until };
        if !asked {
            return self.cleaned(key, None, now, transport);
        }
        self.set_timer(key);
    }

    pub(crate) fn is_cleaning(&self, key: Key, answered: u32) -> bool {
        let stage = self.connections.get(key).map(|connection| &connection.stage);
        matches!(stage, Some(Stage::Cleaning { xid, .. }) if *xid == answered)
    }

    /// The switch has told its flows, or will not (`None`).
    pub(crate) fn cleaned<T: Transport>(
        &mut self,
        key: Key,
        flows: Option<&Gathered<'_>>,
        now: Duration,
        transport: &mut T,
    ) {
        let stage = self.connections.get(key).map(|connection| &connection.stage);
        let Some(Stage::Cleaning { info, .. }) = stage else { return };
        let info = Arc::clone(info);
        match flows.map(Gathered::body) {
            Some(Ok(ReplyBody::Flow(flows))) => {
                for flow in flows {
                    if !self.is_ours(flow.cookie) {
                        continue;
                    }
                    let old = FlowMod::delete(flow.matching).strict().priority(flow.priority);
                    if let Some(connection) = self.connections.get_mut(key) {
                        let xid = connection.session.next_xid(xid::SESSION);
                        self.remove(key, xid, &old, info.version, transport);
                        self.counters.stale_flows_removed.add(1);
                    }
                }
            }
            _ => {
                if self.log.allows(now, &self.counters) {
                    warn!(dpid = %info.dpid, "the switch did not tell its flows: old ones stay");
                }
            }
        }
        self.up(key, info, now);
    }

    /// Whether any app wants packets that match no flow.
    pub(crate) fn wants_packet_ins(&self) -> bool {
        self.shared.apps().iter().any(|app| app.wants_packet_ins())
    }

    fn is_ours(&self, cookie: u64) -> bool {
        self.apps.iter().any(|app| app.leaves_nothing() && app.id.cookie().owns(cookie))
    }

    pub(crate) fn remove<T: Transport>(
        &mut self,
        key: Key,
        xid: u32,
        flow: &FlowMod<'_>,
        version: Version,
        transport: &mut T,
    ) {
        let message = ToSwitch::FlowMod(*flow);
        let mut written = message.encode(version, xid, &mut self.out);
        if written == Err(EncodeError::Full) {
            self.flush(key, transport);
            written = message.encode(version, xid, &mut self.out);
        }
        if let Err(error) = written {
            debug!(key, %error, "an old flow could not be removed");
        }
    }
}

impl App {
    /// Whether the flows of its earlier runs go when a switch comes up. Those of an app that is disabled
    /// stay, as it is not asked any more.
    fn leaves_nothing(&self) -> bool {
        self.left_flows == LeftFlows::Remove && !self.health.is_disabled()
    }
}
