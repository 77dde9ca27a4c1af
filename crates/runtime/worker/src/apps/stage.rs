//! The stages of a connection with apps, and what else is kept of it.

use std::sync::Arc;
use std::time::Duration;

use bellrock_api::openflow::{MultipartKind, RequestKind};
use bellrock_api::runtime::Requests;
use bellrock_api::{AppId, Cookie, Error, Handler, Match, OwnFlow, Port, SwitchInfo};
use bellrock_session::PendingRequests;

use crate::apps::Apps;
use crate::apps::budget::PacketBudget;
use crate::apps::confirm::Confirmations;
use crate::apps::early::EarlyPackets;
use crate::apps::own_flows::RemovedOutside;
use crate::apps::removal::{MAX_REMOVALS, Removal};
use crate::apps::roles::Roles;
use crate::apps::sight::{AllowedMatches, SightFlows};
use crate::apps::turns::CleaningTurn;
use crate::balance::SwitchLoad;
use crate::connection::Connection;
use crate::guard::guarded;
use crate::port_counts::PortTally;

/// What is kept of a connection besides its stage.
#[derive(Default)]
pub(crate) struct AppConnection {
    /// Limits of its packet-ins, if there are any now.
    pub(super) budget: Option<Box<PacketBudget>>,
    /// Packet-ins by port that are not in the published counts yet.
    pub(super) port_tally: PortTally,
    /// What apps have asked for beside their messages.
    pub(super) asked: AppRequests,
    /// Time of the last report that flows stay because the switch does not list them.
    pub(super) removal_reported: Option<Duration>,
    /// Bytes of its unfinished multipart replies, as counted by the worker.
    pub(super) unfinished: usize,
    /// Whether it has refused FLOOD: messages to it use ALL instead.
    pub(super) uses_all_for_flood: bool,
    /// Pending work of tasks, if any.
    pub(super) confirms: Option<Box<Confirmations>>,
    /// Its load, to decide which switches to hand over.
    pub(super) load: SwitchLoad,
    /// Orders for roles, if there were any.
    pub(super) roles: Option<Box<Roles>>,
    /// Packet-ins that came before the switch was up, if any.
    pub(super) early_packets: Option<Box<EarlyPackets>>,
}

impl Connection<Apps> {
    /// Data of the switch, as soon as its datapath id is known.
    pub(super) fn info_mut(&mut self) -> Option<&mut Arc<SwitchInfo>> {
        if matches!(self.stage, ConnectionStage::Handshake) {
            return self.claimed_info_mut();
        }
        self.stage.info_mut()
    }
}

/// The stage of a connection.
#[derive(Default)]
pub(crate) enum ConnectionStage {
    /// The handshake is not finished, or another connection owns the datapath id.
    #[default]
    Handshake,
    /// It owns its datapath id, and the controller is slave or waits for a role. The switch is
    /// ready, and nothing that could change it is sent.
    Standby(StandbySwitch),
    /// It owns its datapath id. The flows of an earlier run are being requested.
    Cleaning(CleaningSwitch),
    /// The apps know the switch.
    Up(UpSwitch),
}

/// A switch that stands by.
pub(crate) struct StandbySwitch {
    pub(crate) info: Arc<SwitchInfo>,
    pub(crate) next_tick: Duration,
    /// See [`UpSwitch::changed`].
    pub(crate) changed: bool,
}

/// A switch whose flows are being requested.
pub(crate) struct CleaningSwitch {
    pub(crate) info: Arc<SwitchInfo>,
    /// Start time.
    pub(crate) since: Duration,
    /// The request; `None`: it waits for its turn.
    pub(crate) request: Option<FlowsRequest>,
    pub(crate) turn: CleaningTurn,
}

/// A request for the flows of an earlier run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowsRequest {
    pub(crate) xid: u32,
    /// Waiting packets count from this time on. A switch that waits for its turn is not to blame.
    pub(crate) packets_since: Duration,
    /// Time when the switch comes up without the answer.
    pub(crate) deadline: Duration,
}

/// A switch that is up.
pub(crate) struct UpSwitch {
    pub(crate) info: Arc<SwitchInfo>,
    /// The handlers, one of each app, in the order of the chain.
    pub(crate) handlers: Vec<Box<dyn Handler>>,
    pub(crate) next_tick: Duration,
    /// The request for flows of an earlier run, if the switch came up before its answer.
    pub(crate) flows_request: Option<FlowsRequest>,
    /// The table-miss entry (1.3).
    pub(crate) table_miss: OwnFlow,
    /// The flows that bring apps the packets that they see.
    pub(crate) sight: Vec<SightFlows>,
    /// When another program removed flows of the controller, until that is logged.
    pub(crate) removed_outside: RemovedOutside,
    /// The meter towards the controller, if there is to be one (1.3).
    pub(crate) controller_meter: Option<Box<OwnFlow>>,
    /// `info` has changed in this turn; the directory does not have the change yet.
    pub(crate) changed: bool,
}

impl UpSwitch {
    /// The controller's own flows in the switch, with its meter.
    pub(crate) fn own_flows(&mut self) -> impl Iterator<Item = &mut OwnFlow> {
        let sight = self.sight.iter_mut().flat_map(|of_app| &mut of_app.flows);
        let meter = self.controller_meter.as_deref_mut();
        std::iter::once(&mut self.table_miss).chain(sight).chain(meter)
    }
}

/// For a worker that is dropped without a stop: handlers are code of apps.
impl Drop for UpSwitch {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            let _ = guarded(|| drop(handler));
        }
    }
}

impl ConnectionStage {
    /// Data of the switch, if the connection owns its datapath id.
    pub(crate) fn owned_info(&self) -> Option<&Arc<SwitchInfo>> {
        match self {
            ConnectionStage::Standby(StandbySwitch { info, .. })
            | ConnectionStage::Cleaning(CleaningSwitch { info, .. })
            | ConnectionStage::Up(UpSwitch { info, .. }) => Some(info),
            ConnectionStage::Handshake => None,
        }
    }

    fn info_mut(&mut self) -> Option<&mut Arc<SwitchInfo>> {
        match self {
            ConnectionStage::Standby(StandbySwitch { info, .. })
            | ConnectionStage::Cleaning(CleaningSwitch { info, .. })
            | ConnectionStage::Up(UpSwitch { info, .. }) => Some(info),
            ConnectionStage::Handshake => None,
        }
    }

    /// The xid of the request for flows of an earlier run, if it has no answer.
    pub(crate) fn flows_request(&self) -> Option<u32> {
        let request = match self {
            ConnectionStage::Cleaning(cleaning) => cleaning.request,
            ConnectionStage::Up(up) => up.flows_request,
            ConnectionStage::Handshake | ConnectionStage::Standby(_) => None,
        };
        request.map(|request| request.xid)
    }

    /// Notes that the data of the switch has changed, if it is published.
    pub(crate) fn mark_changed(&mut self) {
        match self {
            ConnectionStage::Standby(StandbySwitch { changed, .. })
            | ConnectionStage::Up(UpSwitch { changed, .. }) => {
                *changed = true;
            }
            ConnectionStage::Handshake | ConnectionStage::Cleaning(_) => {}
        }
    }
}

/// What apps have asked for at a switch, beside their messages.
#[derive(Default)]
pub(crate) struct AppRequests {
    /// Flow removals that wait for the switch's list of flows (1.0).
    pub(crate) removals: Vec<Removal>,
    /// Matches that apps allow.
    pub(crate) allowed: AllowedMatches,
}

/// The requests of a session, for [`bellrock_api::Switch`].
pub(crate) struct SessionRequests<'a> {
    pub(crate) pending: PendingRequests<'a>,
    pub(crate) asked: &'a mut AppRequests,
}

impl Requests for SessionRequests<'_> {
    fn expect_overtaken(&mut self, request: u32, barrier: u32, now: Duration) {
        self.pending.follow(request, barrier, now);
    }

    fn expect_nothing(&mut self, xid: u32) {
        self.pending.cancel(xid);
        self.asked.removals.retain(|removal| removal.xid != xid);
    }

    fn expect_removal(
        &mut self,
        xid: u32,
        cookie: Cookie,
        out_port: Port,
        now: Duration,
    ) -> bellrock_api::Result<(), Error> {
        let waiting = self.asked.removals.len();
        if waiting >= MAX_REMOVALS {
            return Err(Error::TooManyRequests { unanswered: waiting });
        }
        // Bounded here, so that other requests keep their share.
        let others = self.pending.count();
        self.pending
            .request_beside(others, xid, RequestKind::Multipart(MultipartKind::Flow), now)
            .map_err(|_| Error::TooManyRequests { unanswered: waiting })?;
        self.asked.removals.push(Removal { xid, cookie, out_port });
        Ok(())
    }

    fn allow(&mut self, app: AppId, matching: &Match, until: Duration) {
        self.asked.allowed.allow(app, matching, until);
    }

    fn expect_answer(
        &mut self,
        xid: u32,
        kind: RequestKind,
        now: Duration,
    ) -> bellrock_api::Result<(), Error> {
        self.pending
            .request_beside(self.asked.removals.len(), xid, kind, now)
            .map_err(|_| Error::TooManyRequests { unanswered: self.pending.count() })
    }
}
