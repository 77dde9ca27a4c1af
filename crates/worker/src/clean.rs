//! What an earlier run of the apps left in a switch, before the apps see it: each app's flows are removed, kept
//! ([`LeftFlows::Keep`]), or it is asked about each of them ([`LeftFlows::Adopt`]).
//!
//! 1.3 removes an app's flows by their cookies. 1.0 cannot: its flows are listed, and those with an app's
//! cookie are removed one by one. Where an app is to be asked, they are listed in both versions. Flows with other cookies stay.
//!
//! So many switches of a worker are asked at a time: see `turns`.
//!
//! A switch that is asked is not up, and its packet-ins wait (see `early`). So the question is followed by a barrier: the
//! barrier's reply without the answer means that the switch does not report flows. Where neither comes while packet-ins
//! wait, the switch comes up after [`bellrock_session::PACKET_WAIT`], and a later answer is dealt with then: of the flows in it, those that are
//! older than the connection are an earlier run's.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{
    EncodeError, FlowStats, FlowStatsRequest, List, MultipartKind, MultipartRequest, RequestBody,
};
use bellrock_api::{Cookie, FlowMod, LeftFlows, Match, ReplyBody, SwitchInfo, ToSwitch, Version};
use bellrock_session::{Gathered, Missing, RequestKind, xid};
use tracing::{debug, info, warn};

use crate::connection::{Cleaning, FlowsAsked, Stage};
use crate::dispatch::App;
use crate::settings::{CLEAN_WAIT, FLUSH_BYTES};
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
        let (since, asked, turn) = (now, None, Turn::Waits);
        connection.stage = Stage::Cleaning(Cleaning { info, since, asked, turn });
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
        if is_asked {
            // Without it, the question is ended by its answer or by time.
            let _ = connection.session.follow(xid, now, &mut self.out);
        }
        let until = if is_asked { now + CLEAN_WAIT } else { now };
        if let Stage::Cleaning(cleaning) = &mut connection.stage {
            let packets_since = if now > cleaning.since { now } else { Duration::ZERO };
            cleaning.asked = Some(FlowsAsked { xid, packets_since, until });
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

    /// Whether this answers the question for the flows of an earlier run.
    pub(crate) fn is_cleaning(&self, key: Key, answered: u32) -> bool {
        let stage = self.connections.get(key).map(|connection| &connection.stage);
        let asked = match stage {
            Some(Stage::Cleaning(cleaning)) => cleaning.asked,
            Some(Stage::Up(up)) => up.flows_asked,
            _ => None,
        };
        asked.is_some_and(|asked| asked.xid == answered)
    }

    /// The switch has reported its flows, or does not: then why.
    pub(crate) fn cleaned<T: Transport>(
        &mut self,
        key: Key,
        reply: Result<&Gathered<'_>, Missing>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (info, is_up) = match &mut connection.stage {
            Stage::Cleaning(cleaning) => (Arc::clone(&cleaning.info), false),
            Stage::Up(up) if up.flows_asked.is_some() => {
                up.flows_asked = None;
                (Arc::clone(&up.info), true)
            }
            _ => return,
        };
        // Of a switch that is up already, younger flows are this run's.
        let min_age = if is_up { now.saturating_sub(info.since) } else { Duration::ZERO };
        let reported = reply.and_then(|reply| match reply.body() {
            Ok(ReplyBody::Flow(flows)) => Ok(flows),
            _ => Err(Missing::Unreadable),
        });
        match reported {
            Ok(flows) if info.version == Version::V1_0 => {
                let goes =
                    |app: &App, flow: &FlowStats<'_>| app.does(LeftFlows::Remove) && app.owns(flow);
                for flow in flows.iter().filter(|flow| age(flow) >= min_age) {
                    if self.apps.iter().any(|app| goes(app, &flow)) {
                        self.remove_left(key, &flow, info.version, transport);
                    }
                }
            }
            Ok(_) => {}
            Err(why) => self.not_reported(key, &info, why, now),
        }
        if is_up {
            if let Ok(flows) = reported {
                self.adopt(key, flows, min_age, now, transport);
            }
            return self.flush(key, transport);
        }
        self.end_turn(key);
        self.up(key, info, reported.ok(), now, transport);
        self.next_turns(now, transport);
    }

    /// Packet-ins wait, and neither an answer nor the reply to the barrier has come: the switch comes up, and
    /// the answer is dealt with when it comes.
    pub(crate) fn up_before_answer<T: Transport>(
        &mut self,
        key: Key,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Stage::Cleaning(Cleaning { info, asked, .. }) = &connection.stage else { return };
        let (info, asked) = (Arc::clone(info), *asked);
        debug!(dpid = %info.dpid, "packets wait: the switch comes up before it has reported its flows");
        self.end_turn(key);
        self.up(key, info, None, now, transport);
        if let Some(connection) = self.connections.get_mut(key)
            && let Stage::Up(up) = &mut connection.stage
        {
            up.flows_asked = asked;
        }
        self.next_turns(now, transport);
    }

    /// What the switch has is not known: no flow that nobody knows is to hide packets from its app.
    fn not_reported(&mut self, key: Key, info: &SwitchInfo, why: Missing, now: Duration) {
        let becomes = match info.version {
            Version::V1_0 => "old ones stay",
            Version::V1_3 => "those of apps that would have been asked about them are removed",
        };
        if self.log.allows(now, &self.counters) {
            let dpid = info.dpid;
            warn!(%dpid, reason = %why, "the switch does not report its flows: {becomes}");
        }
        if info.version == Version::V1_3 {
            self.remove_all_of(key, self.cookies(LeftFlows::Adopt));
        }
    }

    /// Asks the apps that want it about each of their flows of at least this age, and removes those that they do not take on.
    pub(crate) fn adopt<T: Transport>(
        &mut self,
        key: Key,
        flows: List<'_, FlowStats<'_>>,
        min_age: Duration,
        now: Duration,
        transport: &mut T,
    ) {
        let info = self.connections.get(key).and_then(|its| its.stage.claimed()).map(Arc::clone);
        let Some(info) = info else { return };
        let (mut adopted, mut removed) = (0, 0);
        for flow in flows.iter().filter(|flow| age(flow) >= min_age) {
            let asks = |app: &App| app.does(LeftFlows::Adopt) && app.owns(&flow);
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

    /// Whether any app wants packets that match no flow.
    pub(crate) fn wants_packet_ins(&self) -> bool {
        self.shared.wants_packet_ins()
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

/// How long a flow has been in its switch.
fn age(flow: &FlowStats<'_>) -> Duration {
    Duration::new(flow.duration_sec.into(), flow.duration_nsec.min(999_999_999))
}

impl App {
    /// Whether this is what becomes of the flows of its earlier runs. Those of an app that is disabled
    /// stay, as it is not asked any more.
    fn does(&self, left: LeftFlows) -> bool {
        self.left_flows == left && !self.health.is_disabled()
    }

    fn owns(&self, flow: &FlowStats<'_>) -> bool {
        self.id.cookie().owns_flow(flow)
    }
}
