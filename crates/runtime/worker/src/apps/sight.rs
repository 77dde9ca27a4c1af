//! What apps in front see ([`App::sees`](bellrock_api::App::sees)): flows that bring it to the
//! controller, and flows of apps behind that an app in front allows.
//!
//! The flows that bring packets have the lowest priority of the band of their app, so flows of apps
//! behind never match before them. When an app allows a match ([`Switch::allow`]), the next flow
//! that an app behind adds for some of its packets is raised: it is added a second time, narrowed
//! to the match, with a priority of the band of the app in front. The copy keeps the cookie of its
//! app, so what that app removes, it removes too, and it ends with the allowance.
//!
//! [`Switch::allow`]: bellrock_api::Switch::allow

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{FlowCommand, FlowFlags, Out, Version, frame};
use bellrock_api::{
    Action, AppId, Cookie, Dpid, EarlierFlows, FlowMod, MAX_ALLOWED, Match, OwnFlow, Port,
    PriorityBand, ToSwitch,
};
use bellrock_session::{ControllerSession, xid};
use tracing::warn;

use crate::apps::Apps;
use crate::apps::own_flows::record_sent;
use crate::apps::stage::ConnectionStage;
use crate::apps::worker_app::WorkerApp;
use crate::connection::Connection;
use crate::counters::WorkerCounters;
use crate::log_budget::LogBudget;

/// Name of the flows that bring packets to the controller, for operators.
pub(crate) const SIGHT: &str = "flow of what an app sees";

/// Their priority in the band of the app.
const SIGHT_PRIORITY: u16 = 0;

/// Their number in the cookie.
const SIGHT_NUMBER: u64 = 1;

/// Number of priorities for the raised flows of each app behind, in the band of an app in front.
/// All of them lie below the middle of the band, where the flows of the app in front begin.
const RAISED_PRIORITIES: u16 = PriorityBand::MIDDLE / (PriorityBand::PLACES as u16 + 1);

/// An app in front that sees packets, as an app behind needs it.
#[derive(Clone)]
pub(crate) struct Front {
    place: usize,
    band: PriorityBand,
    sees: Arc<[Match]>,
}

/// Returns the apps in front that see packets, the nearest first.
pub(crate) fn fronts(apps: &[WorkerApp]) -> Box<[Front]> {
    let seeing = apps.iter().rev().filter(|app| !app.sees.is_empty());
    seeing
        .map(|app| Front { place: app.place(), band: app.id.band(), sees: Arc::clone(&app.sees) })
        .collect()
}

/// A match that an app allows, until a flow is raised for it.
struct Allowed {
    place: usize,
    matching: Match,
    until: Duration,
}

/// The matches of a switch that apps allow and that wait for a flow, the oldest first.
#[derive(Default)]
pub(crate) struct AllowedMatches(VecDeque<Allowed>);

impl AllowedMatches {
    pub(crate) fn allow(&mut self, app: AppId, matching: &Match, until: Duration) {
        let place = usize::from(app.owner()).saturating_sub(1);
        self.0.retain(|it| it.place != place || it.matching != *matching);
        if self.0.len() >= MAX_ALLOWED {
            self.0.pop_front();
        }
        self.0.push_back(Allowed { place, matching: matching.clone(), until });
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes what raises a flow with this match: the part that may be raised, the band, and the end
    /// of its time. `None`: the flow stays where it is.
    fn take_raised(
        &mut self,
        fronts: &[Front],
        matching: &Match,
        now: Duration,
    ) -> Option<(Match, PriorityBand, Duration)> {
        let (mut part, mut until) = (matching.clone(), Duration::MAX);
        let (mut band, mut used) = (None, Vec::new());
        for front in fronts {
            if !front.sees.iter().any(|seen| seen.intersection(&part).is_some()) {
                continue;
            }
            let allowed = self.0.iter().enumerate().filter(|(_, it)| it.place == front.place);
            let allowed = allowed
                .filter(|(_, it)| it.until > now)
                .find_map(|(index, it)| Some((index, it.matching.intersection(&part)?, it.until)));
            // The app in front still has to see these packets.
            let Some((index, both, end)) = allowed else { break };
            used.push(index);
            (part, until, band) = (both, until.min(end), Some(front.band));
        }
        let band = band?;
        used.sort_unstable();
        for index in used.into_iter().rev() {
            self.0.remove(index);
        }
        Some((part, band, until))
    }
}

/// What raising needs of the switch.
pub(crate) struct Raising<'a> {
    pub(crate) out: &'a mut Out,
    pub(crate) session: &'a mut ControllerSession,
    pub(crate) allowed: &'a mut AllowedMatches,
    pub(crate) now: Duration,
    pub(crate) counters: &'a WorkerCounters,
    pub(crate) log: &'a mut LogBudget,
}

impl Raising<'_> {
    /// Looks through the messages that an app behind has written since `mark`, and raises the flows
    /// that apps in front allow.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise(mut self, app: &WorkerApp, mark: usize) {
        let version = self.session.version();
        // Desired state would remove what it did not order.
        let may_raise = !self.allowed.0.is_empty() && app.earlier_flows != EarlierFlows::Keep;
        if !may_raise && !version.ranks_exact_flows_first() {
            return;
        }
        let written = self.out.as_slice().get(mark..).unwrap_or(&[]).to_vec();
        self.out.truncate(mark);
        let mut rest = written.as_slice();
        while let Ok(Some(message)) = frame(rest) {
            rest = rest.get(message.bytes.len()..).unwrap_or(&[]);
            let is_kept = match ToSwitch::decode(message.bytes) {
                Ok(decoded) => match &decoded.body {
                    ToSwitch::FlowMod(flow) if adds(flow) => {
                        if may_raise {
                            self.raise_flow(app, flow, written.len());
                        }
                        !self.takes_away(app, flow, version)
                    }
                    _ => true,
                },
                Err(_) => true,
            };
            if is_kept {
                // It came from there, and `raise_flow` leaves room for it.
                let _ = self.out.append(message.bytes);
            }
        }
    }

    /// Writes the raised copies of a flow, as far as they fit beside `reserved` bytes.
    fn raise_flow(&mut self, app: &WorkerApp, flow: &FlowMod<'_>, reserved: usize) {
        let matching = flow.matching.to_match();
        let Some(priority) = app.id.band().lower(flow.priority) else { return };
        if !matching.is_well_formed() {
            return;
        }
        let version = self.session.version();
        // Each turn takes an allowed match.
        while let Some((part, band, until)) =
            self.allowed.take_raised(&app.fronts, &matching, self.now)
        {
            if version.ranks_exact_flows_first() && part.is_exact() {
                // It would rank above the flows of the app in front too.
                continue;
            }
            let rank = (PriorityBand::PLACES.saturating_sub(app.place())) as u16;
            let step = PriorityBand::PRIORITIES / RAISED_PRIORITIES;
            let priority = SIGHT_PRIORITY + 1 + rank * RAISED_PRIORITIES + priority / step;
            let left = seconds(until.saturating_sub(self.now));
            let hard_timeout =
                if flow.hard_timeout == 0 { left } else { left.min(flow.hard_timeout) };
            let copy = FlowMod {
                matching: (&part).into(),
                priority: band.base() | priority,
                hard_timeout,
                buffer_id: None,
                // The app did not install it, so it does not hear of its end.
                flags: flow.flags - (FlowFlags::SEND_FLOW_REM | FlowFlags::CHECK_OVERLAP),
                ..*flow
            };
            let mark = self.out.len();
            let xid = self.session.next_xid(xid::SESSION);
            let written = ToSwitch::FlowMod(copy).encode(version, xid, self.out);
            if written.is_ok() && self.out.room() >= reserved {
                self.counters.flows_raised.add(1);
            } else {
                // The match is impossible in this version, or the buffer is full: the packets come
                // to the app in front again.
                self.out.truncate(mark);
            }
        }
    }

    /// Whether a flow without wildcards would take packets away from an app in front: 1.0 ranks it
    /// above all priorities. It is left out.
    fn takes_away(&mut self, app: &WorkerApp, flow: &FlowMod<'_>, version: Version) -> bool {
        if !version.ranks_exact_flows_first() {
            return false;
        }
        let matching = flow.matching.to_match();
        let sees = |front: &Front| front.sees.iter().any(|it| it.intersection(&matching).is_some());
        if !matching.is_exact() || !app.fronts.iter().any(sees) {
            return false;
        }
        self.counters.exact_flows_left_out.add(1);
        if self.log.allows(self.now, self.counters) {
            warn!(
                app = app.name, flow = %matching,
                "a flow without wildcards ranks above all others in OpenFlow 1.0, also above what an app in \
                 front sees: it is left out. Let it leave a field open, such as ip_dscp"
            );
        }
        true
    }
}

/// Whether a flow could take packets away from an app in front. Packets come to other tables only
/// through the first one.
fn adds(flow: &FlowMod<'_>) -> bool {
    flow.command == FlowCommand::Add && flow.table == 0
}

/// Whole seconds, rounded up, as a timeout.
fn seconds(time: Duration) -> u16 {
    let up = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u16::try_from(up.max(1)).unwrap_or(u16::MAX)
}

/// The flows in one switch that bring an app the packets that it sees.
pub(crate) struct SightFlows {
    cookie: Cookie,
    priority: u16,
    sees: Arc<[Match]>,
    /// One for each match.
    pub(crate) flows: Vec<OwnFlow>,
}

impl SightFlows {
    /// The flows of all apps of a chain that have this switch.
    pub(crate) fn of(apps: &[WorkerApp], dpid: Dpid) -> Vec<Self> {
        let has_switch =
            |app: &&WorkerApp| app.guard.as_ref().is_none_or(|guard| guard.has_switch(dpid));
        let seeing = apps.iter().filter(|app| !app.sees.is_empty()).filter(has_switch);
        seeing
            .map(|app| SightFlows {
                cookie: app.id.cookie().of_sight(),
                priority: app.id.band().base() | SIGHT_PRIORITY,
                sees: Arc::clone(&app.sees),
                flows: app.sees.iter().map(|_| OwnFlow::new(SIGHT)).collect(),
            })
            .collect()
    }

    /// Whether a flow with this cookie is one of them.
    pub(super) fn owns(&self, cookie: u64) -> bool {
        self.cookie.owns(cookie)
    }
}

impl Connection<Apps> {
    /// Writes the flows that bring apps the packets that they see: all of them, or those that are
    /// due again, with this barrier behind them.
    pub(super) fn write_sight(&mut self, out: &mut Out, barrier: Option<u32>, now: Duration) {
        let ConnectionStage::Up(up) = &mut self.stage else { return };
        let (version, actions) = (self.session.version(), [Action::output(Port::CONTROLLER)]);
        for SightFlows { cookie, priority, sees, flows } in &mut up.sight {
            for (flow, seen) in flows.iter_mut().zip(sees.iter()) {
                if barrier.is_some() && !flow.is_due(now) {
                    continue;
                }
                let add = FlowMod::add(seen).priority(*priority).actions(&actions);
                let add = add.cookie(cookie.with(SIGHT_NUMBER)).flags(FlowFlags::SEND_FLOW_REM);
                let xid = self.session.next_xid(xid::SESSION);
                if ToSwitch::FlowMod(add).encode(version, xid, out).is_ok() {
                    record_sent(flow, xid, barrier, now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(place: usize, sees: Match) -> Front {
        let band = PriorityBand::of_place(place).unwrap();
        Front { place, band, sees: Arc::new([sees]) }
    }

    fn app(place: usize) -> AppId {
        AppId::new(place, "test").unwrap()
    }

    const NOW: Duration = Duration::from_secs(10);
    const UNTIL: Duration = Duration::from_secs(40);

    fn tcp() -> Match {
        Match::any().eth_type(0x0800).ip_proto(6)
    }

    #[test]
    fn a_flow_is_raised_only_for_what_is_allowed_and_only_once() {
        let (fronts, mut allowed) = ([front(0, tcp())], AllowedMatches::default());
        let pair = Match::any().in_port(Port(1)).eth_dst(bellrock_api::MacAddr([2; 6]));
        let web = tcp().tcp_dst(80);
        assert!(allowed.take_raised(&fronts, &pair, NOW).is_none(), "nothing is allowed");
        allowed.allow(app(0), &web, UNTIL);
        let udp = Match::any().eth_type(0x0800).ip_proto(17);
        assert!(allowed.take_raised(&fronts, &udp, NOW).is_none(), "it is not seen");
        let (part, band, until) = allowed.take_raised(&fronts, &pair, NOW).unwrap();
        assert_eq!((part, until), (pair.intersection(&web).unwrap(), UNTIL));
        assert_eq!(Some(band), PriorityBand::of_place(0));
        assert!(allowed.take_raised(&fronts, &pair, NOW).is_none(), "it is used");
        allowed.allow(app(0), &web, UNTIL);
        assert!(allowed.take_raised(&fronts, &pair, UNTIL).is_none(), "its time is over");
    }

    #[test]
    fn each_app_in_front_that_sees_the_packets_must_allow_them() {
        // The nearest first.
        let fronts = [front(1, Match::any().eth_type(0x0800)), front(0, tcp())];
        let web = tcp().tcp_dst(80);
        let raised = |who: &[usize], flow: &Match| {
            let mut allowed = AllowedMatches::default();
            who.iter().for_each(|place| allowed.allow(app(*place), &web, UNTIL));
            allowed.take_raised(&fronts, flow, NOW).map(|(_, band, _)| band)
        };
        let any = Match::any();
        assert_eq!(raised(&[0], &any), None, "the nearer one sees it");
        assert_eq!(raised(&[1], &any), PriorityBand::of_place(1));
        assert_eq!(raised(&[0, 1], &any), PriorityBand::of_place(0));
    }

    #[test]
    fn allowed_matches_are_bounded_and_the_oldest_give_way() {
        let mut allowed = AllowedMatches::default();
        for port in 0..2 * MAX_ALLOWED as u16 {
            allowed.allow(app(0), &tcp().tcp_dst(port), UNTIL);
            allowed.allow(app(0), &tcp().tcp_dst(port), UNTIL);
        }
        assert_eq!(allowed.0.len(), MAX_ALLOWED);
        assert_eq!(allowed.0[0].matching, tcp().tcp_dst(MAX_ALLOWED as u16));
    }

    #[test]
    fn raised_flows_stay_between_the_flows_that_bring_packets_and_those_of_the_app_in_front() {
        let step = PriorityBand::PRIORITIES / RAISED_PRIORITIES;
        let highest = (PriorityBand::PLACES as u16 - 1) * RAISED_PRIORITIES
            + 1
            + (PriorityBand::PRIORITIES - 1) / step;
        assert!(highest < PriorityBand::MIDDLE, "{highest}");
    }
}
