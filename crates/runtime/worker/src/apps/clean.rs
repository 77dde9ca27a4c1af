//! Cleans a switch of the flows of an earlier run, before the apps see it. For each app, the flows
//! are removed, kept ([`EarlierFlows::Keep`]), or offered to the app one by one
//! ([`EarlierFlows::Adopt`]).
//!
//! In 1.3, an app's flows are removed by cookie. In 1.0 that is impossible: flows are requested,
//! and those with an app's cookie are removed one by one. Flows to adopt are requested in all
//! versions. Flows with other cookies stay.
//!
//! A worker asks a limited number of switches at a time: see `turns`.
//!
//! A switch that is asked is not up yet, and its packet-ins wait (see `early`). So a barrier
//! follows the request: if its reply comes without an answer before it, the switch does not report
//! flows. If neither comes while packet-ins wait, the switch comes up after
//! [`bellrock_session::PACKET_WAIT`]. An answer that comes later is still processed: flows older
//! than the connection are those of an earlier run.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{
    EncodeError, FlowStats, FlowStatsRequest, List, MultipartKind, MultipartRequest, RequestBody,
    RequestKind,
};
use bellrock_api::{
    Cookie, EarlierFlows, FlowMod, Match, ReplyBody, SwitchInfo, ToSwitch, Version,
};
use bellrock_session::{MissingReply, xid};
use tracing::{debug, info, warn};

use crate::apps::Worker;
use crate::apps::asker::{CLEANING, Ended};
use crate::apps::stage::{CleaningSwitch, ConnectionStage, FlowsRequest};
use crate::apps::turns::CleaningTurn;
use crate::apps::worker_app::WorkerApp;
use crate::settings::{CLEAN_WAIT, FLUSH_BYTES};
use crate::transport::{ConnectionKey, Transport};

impl Worker {
    /// Removes the flows of an earlier run, or requests them, then brings the switch up. The
    /// connection already owns its datapath id.
    pub(crate) fn clean<T: Transport>(
        &mut self,
        key: ConnectionKey,
        info: Arc<SwitchInfo>,
        now: Duration,
        transport: &mut T,
    ) {
        if info.version.selects_by_cookie() {
            // A wanted table-miss entry replaces the old one, so that no packet is lost between the
            // two.
            let entry = (!self.wants_packet_ins()).then_some(Cookie::CONTROLLER);
            let seeing = self.user.chain.iter().filter(|app| !app.sees.is_empty());
            let sights: Vec<Cookie> = seeing.map(|app| app.id.cookie().of_sight()).collect();
            let removed = self.cookies(EarlierFlows::Remove).into_iter().chain(entry);
            let removed = removed.chain(sights).collect();
            self.remove_all_of(key, removed);
        }
        if self.earlier_flows_request(&Match::any(), info.version).is_none() {
            return self.up(key, info, None, now, transport);
        }
        // Removals need not wait.
        self.flush(key, transport);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (since, asked, turn) = (now, None, CleaningTurn::Waits);
        connection.stage =
            ConnectionStage::Cleaning(CleaningSwitch { info, since, request: asked, turn });
        self.wait_for_turn(key, now, transport);
    }

    /// Requests the flows of a switch. If that is impossible, the switch comes up without them at
    /// its next timer.
    pub(crate) fn request_flows(&mut self, key: ConnectionKey, now: Duration) {
        let Some(connection) = self.connections.get(key) else { return };
        let version = connection.session.version();
        let all = Match::any();
        let Some(request) = self.earlier_flows_request(&all, version) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let xid = connection.session.next_xid(CLEANING);
        let request = ToSwitch::MultipartRequest(MultipartRequest::of(RequestBody::Flow(request)));
        let kind = RequestKind::Multipart(MultipartKind::Flow);
        // The buffer is empty here.
        let is_requested = connection.session.request(xid, kind, now).is_ok()
            && request.encode(version, xid, &mut self.out).is_ok();
        if is_requested {
            // If this fails, only an answer or the time limit ends the request.
            let _ = connection.session.follow(xid, now, &mut self.out);
        }
        let deadline = if is_requested { now + CLEAN_WAIT } else { now };
        if let ConnectionStage::Cleaning(cleaning) = &mut connection.stage {
            let packets_since = if now > cleaning.since { now } else { Duration::ZERO };
            cleaning.request = Some(FlowsRequest { xid, packets_since, deadline });
        }
    }

    /// The request for the flows that a switch must report before it comes up, if any.
    fn earlier_flows_request<'m>(
        &self,
        all: &'m Match,
        version: Version,
    ) -> Option<FlowStatsRequest<'m>> {
        let all = FlowStatsRequest::all(all);
        let cookies = self.cookies(EarlierFlows::Adopt);
        match (version.selects_by_cookie(), cookies.as_slice()) {
            (false, []) if self.removes_nothing() => None,
            (true, []) => None,
            (true, [one]) => {
                Some(FlowStatsRequest { cookie: one.with(0), cookie_mask: Cookie::MASK, ..all })
            }
            _ => Some(all),
        }
    }

    /// Whether no flow of an earlier run is removed, neither of an app nor one that brings an app
    /// its packets.
    fn removes_nothing(&self) -> bool {
        self.cookies(EarlierFlows::Remove).is_empty()
            && self.user.chain.iter().all(|app| app.sees.is_empty())
    }

    /// Handles the end of a request for the flows of an earlier run, if the switch still waits for
    /// it.
    pub(crate) fn cleaning_ended<T: Transport>(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        ended: &Ended<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get(key) else { return };
        let is_present = connection.stage.flows_request() == Some(xid);
        if is_present && !matches!(ended, Ended::Reply(_)) {
            self.handle_earlier_flows(key, ended, now, transport);
        }
    }

    /// Handles the reported flows, or the reason why there are none.
    pub(crate) fn handle_earlier_flows<T: Transport>(
        &mut self,
        key: ConnectionKey,
        ended: &Ended<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (info, is_up) = match &mut connection.stage {
            ConnectionStage::Cleaning(cleaning) => (Arc::clone(&cleaning.info), false),
            ConnectionStage::Up(up) if up.flows_request.is_some() => {
                up.flows_request = None;
                (Arc::clone(&up.info), true)
            }
            _ => return,
        };
        // If the switch is already up, younger flows belong to this run.
        let min_age = if is_up { now.saturating_sub(info.since) } else { Duration::ZERO };
        let reported = match ended {
            Ended::Multipart(reply) => match reply.body() {
                Ok(ReplyBody::Flow(flows)) => Ok(flows),
                _ => Err(MissingReply::Unreadable),
            },
            Ended::Refused(_) => Err(MissingReply::Refused),
            Ended::Silent | Ended::Late => Err(MissingReply::Silent),
            Ended::Reply(_) | Ended::TooLarge | Ended::Unreadable(_) => {
                Err(MissingReply::Unreadable)
            }
        };
        match reported {
            Ok(flows) if !info.version.selects_by_cookie() => {
                let is_removed = |app: &WorkerApp, flow: &FlowStats<'_>| {
                    let is_sight = app.id.cookie().of_sight().owns_flow(flow);
                    (app.has_policy(EarlierFlows::Remove) && app.owns(flow)) || is_sight
                };
                for flow in flows.iter().filter(|flow| age(flow) >= min_age) {
                    if self.user.chain.iter().any(|app| is_removed(app, &flow)) {
                        self.remove_earlier(key, &flow, info.version, transport);
                    }
                }
            }
            Ok(_) => {}
            Err(why) => self.handle_missing_report(key, &info, why, now),
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

    /// Brings the switch up before its answer, because packet-ins wait and neither the answer nor
    /// the barrier reply has come. A later answer is still processed.
    pub(crate) fn up_before_answer<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let ConnectionStage::Cleaning(CleaningSwitch { info, request, .. }) = &connection.stage
        else {
            return;
        };
        let (info, request) = (Arc::clone(info), *request);
        debug!(dpid = %info.dpid, "packets wait: the switch comes up before it has reported its flows");
        self.end_turn(key);
        self.up(key, info, None, now, transport);
        if let Some(connection) = self.connections.get_mut(key)
            && let ConnectionStage::Up(up) = &mut connection.stage
        {
            up.flows_request = request;
        }
        self.next_turns(now, transport);
    }

    /// Handles a switch that does not report its flows: in 1.3, removes those to adopt, since
    /// unknown flows could hide packets from their app.
    fn handle_missing_report(
        &mut self,
        key: ConnectionKey,
        info: &SwitchInfo,
        why: MissingReply,
        now: Duration,
    ) {
        let can_remove = info.version.selects_by_cookie();
        let becomes = match can_remove {
            true => "flows that apps could adopt are removed",
            false => "flows of earlier runs stay",
        };
        if self.log.allows(now, &self.counters) {
            let dpid = info.dpid;
            warn!(%dpid, reason = %why, "the switch does not report its flows: {becomes}");
        }
        if can_remove {
            self.remove_all_of(key, self.cookies(EarlierFlows::Adopt));
        }
    }

    /// Offers flows of at least this age to their apps, and removes those that are not adopted.
    pub(crate) fn adopt<T: Transport>(
        &mut self,
        key: ConnectionKey,
        flows: List<'_, FlowStats<'_>>,
        min_age: Duration,
        now: Duration,
        transport: &mut T,
    ) {
        let info = self
            .connections
            .get(key)
            .and_then(|connection| connection.stage.owned_info())
            .map(Arc::clone);
        let Some(info) = info else { return };
        let (mut adopted, mut removed) = (0, 0);
        for flow in flows.iter().filter(|flow| age(flow) >= min_age) {
            let adopts = |app: &WorkerApp| app.has_policy(EarlierFlows::Adopt) && app.owns(&flow);
            // An app that was disabled meanwhile is not asked: its flows stay.
            let Some(place) = self.user.chain.iter().position(adopts) else { continue };
            if self.offer_flow(key, place, flow, now) {
                adopted += 1;
            } else {
                self.remove_earlier(key, &flow, info.version, transport);
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

    /// Cookies of the apps whose old flows are treated this way.
    fn cookies(&self, policy: EarlierFlows) -> Vec<Cookie> {
        self.user
            .chain
            .iter()
            .filter(|app| app.has_policy(policy))
            .map(|app| app.id.cookie())
            .collect()
    }

    /// Removes all flows with these cookies, in a version that selects flows by cookie.
    fn remove_all_of(&mut self, key: ConnectionKey, cookies: Vec<Cookie>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (all, version) = (Match::any(), connection.session.version());
        for cookie in cookies {
            let xid = connection.session.next_xid(xid::SESSION);
            let old = FlowMod::delete(&all).cookie_mask(cookie.with(0), Cookie::MASK);
            // The buffer is almost empty here: one message for each app fits.
            let _ = ToSwitch::FlowMod(old).encode(version, xid, &mut self.out);
        }
    }

    /// Removes exactly one flow of an earlier run.
    fn remove_earlier<T: Transport>(
        &mut self,
        key: ConnectionKey,
        flow: &FlowStats<'_>,
        version: Version,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let xid = connection.session.next_xid(xid::SESSION);
        let old = FlowMod::delete(flow.matching).strict().priority(flow.priority);
        let old = if version.names_tables() { old.table(flow.table) } else { old };
        let old = match version.selects_by_cookie() {
            true => old.cookie_mask(flow.cookie, u64::MAX),
            false => old,
        };
        self.remove(key, xid, &old, version, transport);
        self.counters.stale_flows_removed.add(1);
    }

    pub(crate) fn remove<T: Transport>(
        &mut self,
        key: ConnectionKey,
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

/// Time since the flow was installed.
fn age(flow: &FlowStats<'_>) -> Duration {
    Duration::new(flow.duration_sec.into(), flow.duration_nsec.min(999_999_999))
}

impl WorkerApp {
    /// Whether the app's old flows are treated this way. False for a disabled app: its flows stay,
    /// as it gets no calls.
    fn has_policy(&self, policy: EarlierFlows) -> bool {
        self.earlier_flows == policy && !self.health.is_disabled()
    }

    fn owns(&self, flow: &FlowStats<'_>) -> bool {
        self.id.cookie().owns_flow(flow)
    }
}
