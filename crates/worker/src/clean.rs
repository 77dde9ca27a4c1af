//! What an earlier run of the apps left in a switch, before the apps see it: each app's flows are removed, kept
//! ([`LeftFlows::Keep`]), or it is asked about each of them ([`LeftFlows::Adopt`]).
//!
//! 1.3 removes an app's flows by their cookies. 1.0 cannot: its flows are listed, and those with an app's
//! cookie are removed one by one. Where an app is to be asked, they are listed in both versions. Flows with other cookies stay.
//!
//! So many switches of a worker are asked at a time: see `turns`.
//!
//! While a switch waits for its turn and tells its flows, its packet-ins wait, as many as [`EARLY_PACKET_BYTES`] hold: in 1.3, where the entry that
//! brings them is there from the last run, they would otherwise be lost at each reconnect.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{
    EncodeError, FlowStats, FlowStatsRequest, List, MultipartKind, MultipartRequest, RequestBody,
    frame,
};
use bellrock_api::{
    Batch, Cookie, FlowMod, LeftFlows, Match, ReplyBody, SwitchInfo, ToSwitch, Version,
};
use bellrock_session::{Gathered, RequestKind, xid};
use tracing::{debug, info, warn};

use crate::connection::{Cleaning, FlowsAsked, Stage};
use crate::dispatch::App;
use crate::settings::{CLEAN_WAIT, EARLY_PACKET_BYTES, FLUSH_BYTES};
use crate::transport::{Key, Transport};
use crate::turns::Turn;
use crate::worker::Worker;

impl Worker {
    /// The datapath id is this connection's own: remove what an earlier run left, or ask for it, then come
    /// up.
    pub(crate) fn clean<T: Transport>(
        &mut self,
        key: Key,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        if info.version == Version::V1_3 {
            // A table-miss entry that is wanted takes the place of the old one, so that no packet falls
            // into the gap between the two.
            let entry = (!self.wants_packet_ins()).then_some(Cookie::CONTROLLER);
            let removed = self.cookies(LeftFlows::Remove).into_iter().chain(entry).collect();
            self.remove_all_of(key, removed);
        }
        if self.flows_to_ask_for(&Match::any(), info.version).is_none() {
            return self.up(key, info, None, now, transport);
        }
        // What is removed need not wait.
        self.flush(key, transport);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (asked, turn, early) = (None, Turn::Waits, Vec::new());
        connection.stage = Stage::Cleaning(Cleaning { info, asked, turn, early });
        self.wait_for_turn(key, now, transport);
    }

    /// Asks a switch for its flows. If it cannot be asked, it comes up without at its next timer.
    pub(crate) fn ask_for_flows(&mut self, key: Key, now: Duration) {
        let Some(connection) = self.connections.get(key) else { return };
        let version = connection.session.version();
        let all = Match::any();
        let Some(request) = self.flows_to_ask_for(&all, version) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let xid = connection.session.next_xid(xid::SESSION);
        let request = ToSwitch::MultipartRequest(MultipartRequest::of(RequestBody::Flow(request)));
        let kind = RequestKind::Multipart(MultipartKind::Flow);
        // The buffer is empty at this point.
        let is_asked = connection.session.request(xid, kind, now).is_ok()
            && request.encode(version, xid, &mut self.out).is_ok();
        let until = if is_asked { now + CLEAN_WAIT } else { now };
        if let Stage::Cleaning(cleaning) = &mut connection.stage {
            cleaning.asked = Some(FlowsAsked { xid, until });
        }
    }

    /// The flows that a switch has to tell before it comes up, if it has to.
    fn flows_to_ask_for<'m>(
        &self,
        all: &'m Match,
        version: Version,
    ) -> Option<FlowStatsRequest<'m>> {
        let all = FlowStatsRequest::all(all);
        let asking = self.cookies(LeftFlows::Adopt);
        match (version, asking.as_slice()) {
            (Version::V1_0, []) if self.cookies(LeftFlows::Remove).is_empty() => None,
            (Version::V1_3, []) => None,
            (Version::V1_3, [one]) => {
                Some(FlowStatsRequest { cookie: one.with(0), cookie_mask: Cookie::MASK, ..all })
            }
            _ => Some(all),
        }
    }

    pub(crate) fn is_cleaning(&self, key: Key, answered: u32) -> bool {
        let stage = self.connections.get(key).map(|connection| &connection.stage);
        let asked = |cleaning: &Cleaning| cleaning.asked.is_some_and(|asked| asked.xid == answered);
        matches!(stage, Some(Stage::Cleaning(cleaning)) if asked(cleaning))
    }

    /// The switch has told its flows, or will not (`None`).
    pub(crate) fn cleaned<T: Transport>(
        &mut self,
        key: Key,
        told: Option<&Gathered<'_>>,
        now: Duration,
        transport: &mut T,
    ) {
        let stage = self.connections.get_mut(key).map(|connection| &mut connection.stage);
        let Some(Stage::Cleaning(cleaning)) = stage else { return };
        let (info, early) = (Arc::clone(&cleaning.info), std::mem::take(&mut cleaning.early));
        let told = match told.map(Gathered::body) {
            Some(Ok(ReplyBody::Flow(flows))) => Some(flows),
            _ => None,
        };
        match told {
            Some(flows) if info.version == Version::V1_0 => {
                let goes = |app: &App, cookie| app.does(LeftFlows::Remove) && app.owns(cookie);
                for flow in flows.iter() {
                    if self.apps.iter().any(|app| goes(app, flow.cookie)) {
                        self.remove_left(key, &flow, info.version, transport);
                    }
                }
            }
            Some(_) => {}
            None => self.not_told(key, &info, now),
        }
        self.end_turn(key);
        self.up(key, info, told, now, transport);
        self.early_packets(key, &early, now, transport);
        self.next_turns(now, transport);
    }

    /// What the switch has is not known: no flow that nobody knows is to hide packets from its app.
    fn not_told(&mut self, key: Key, info: &SwitchInfo, now: Duration) {
        let becomes = match info.version {
            Version::V1_0 => "old ones stay",
            Version::V1_3 => "those of apps that would have been asked about them are removed",
        };
        if self.log.allows(now, &self.counters) {
            warn!(dpid = %info.dpid, "the switch did not tell its flows: {becomes}");
        }
        if info.version == Version::V1_3 {
            self.remove_all_of(key, self.cookies(LeftFlows::Adopt));
        }
    }

    /// Asks the apps that want it about each of their flows, and removes those that they do not take on.
    pub(crate) fn adopt<T: Transport>(
        &mut self,
        key: Key,
        flows: List<'_, FlowStats<'_>>,
        now: Duration,
        transport: &mut T,
    ) {
        let info = self.connections.get(key).and_then(|its| its.stage.claimed()).map(Arc::clone);
        let Some(info) = info else { return };
        let (mut adopted, mut removed) = (0, 0);
        for flow in flows.iter() {
            let asks = |app: &App| app.does(LeftFlows::Adopt) && app.owns(flow.cookie);
            // One that is disabled meanwhile is not asked any more: its flows stay.
            let Some(place) = self.apps.iter().position(asks) else { continue };
            if self.adopts(key, place, flow, now) {
                adopted += 1;
            } else {
                self.remove_left(key, &flow, info.version, transport);
                removed += 1;
            }
            if self.out.len() > FLUSH_BYTES {
                self.flush(key, transport);
            }
        }
        self.counters.flows_adopted.add(adopted);
        if adopted + removed > 0 && self.log.allows(now, &self.counters) {
            info!(dpid = %info.dpid, adopted, removed, "flows of an earlier run");
        }
    }

    /// A packet-in has come before the apps have its switch. It is kept until the switch has told its flows, if it is
    /// telling them, and within the limits of packets and of memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn early_packet(&mut self, key: Key, message: &[u8], now: Duration) {
        if let Some(connection) = self.connections.get_mut(key)
            && let Stage::Cleaning(Cleaning { early, .. }) = &mut connection.stage
            && early.len() + message.len() <= EARLY_PACKET_BYTES
            && connection.limit.as_mut().is_none_or(|limit| limit.pass(now))
        {
            early.extend_from_slice(message);
        } else {
            self.counters.packet_ins_early.add(1);
        }
    }

    /// Packets that came while the switch told its flows.
    fn early_packets<T: Transport>(
        &mut self,
        key: Key,
        early: &[u8],
        now: Duration,
        transport: &mut T,
    ) {
        let mut rest = early;
        while let Some(connection) = self.connections.get(key) {
            let mut batch = Batch::new(early);
            batch.begin(connection.session.version());
            while let Ok(Some(message)) = frame(rest)
                && !batch.is_full()
            {
                batch.push(message.bytes);
                rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
            }
            if batch.is_empty() {
                return;
            }
            self.packets(key, &mut batch, now);
            self.flush(key, transport);
        }
    }

    /// Whether any app wants packets that match no flow.
    pub(crate) fn wants_packet_ins(&self) -> bool {
        self.shared.apps().iter().any(|app| app.wants_packet_ins())
    }

    /// The cookies of the apps with whose flows this is to be done.
    fn cookies(&self, left: LeftFlows) -> Vec<Cookie> {
        self.apps.iter().filter(|app| app.does(left)).map(|app| app.id.cookie()).collect()
    }

    /// Removes all flows with these cookies (1.3).
    fn remove_all_of(&mut self, key: Key, cookies: Vec<Cookie>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let all = Match::any();
        for cookie in cookies {
            let xid = connection.session.next_xid(xid::SESSION);
            let old = FlowMod::delete(&all).cookie_mask(cookie.with(0), Cookie::MASK);
            // The buffer is as good as empty at this point: there is room for one message an app.
            let _ = ToSwitch::FlowMod(old).encode(Version::V1_3, xid, &mut self.out);
        }
    }

    /// Removes one flow that an earlier run has left, and no other.
    fn remove_left<T: Transport>(
        &mut self,
        key: Key,
        flow: &FlowStats<'_>,
        version: Version,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let xid = connection.session.next_xid(xid::SESSION);
        let old = FlowMod::delete(flow.matching).strict().priority(flow.priority);
        let old = match version {
            Version::V1_0 => old,
            Version::V1_3 => old.table(flow.table).cookie_mask(flow.cookie, u64::MAX),
        };
        self.remove(key, xid, &old, version, transport);
        self.counters.stale_flows_removed.add(1);
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
    /// Whether this is what becomes of the flows of its earlier runs. Those of an app that is disabled
    /// stay, as it is not asked any more.
    fn does(&self, left: LeftFlows) -> bool {
        self.left_flows == left && !self.health.is_disabled()
    }

    fn owns(&self, cookie: u64) -> bool {
        self.id.cookie().owns(cookie)
    }
}
