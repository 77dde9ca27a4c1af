//! The state that a worker keeps of each connection.

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellrock_api::openflow::{Desc, MultipartKind, PortReason, PortStatus, RequestKind};
use bellrock_api::runtime::Requests;
use bellrock_api::{
    AppId, Cookie, Counter, Description, Dpid, Error, Handler, Match, OwnFlow, Port, SwitchInfo,
};
use bellrock_session::{CloseReason, ControllerSession, PendingRequests, SwitchDescription};

use crate::admission::AdmissionError;
use crate::balance::SwitchLoad;
use crate::budget::PacketBudget;
use crate::confirm::Confirmations;
use crate::early::EarlyPackets;
use crate::guard::guarded;
use crate::mailbox::ConnectionId;
use crate::port_counts::{PortTally, PublishedPortCounts};
use crate::removal::{MAX_REMOVALS, Removal};
use crate::roles::Roles;
use crate::sight::{AllowedMatches, SightFlows};
use crate::table_miss::RemovedOutside;
use crate::turns::CleaningTurn;

/// A connection and its state.
pub(crate) struct Connection {
    /// Unique number: keys are used again.
    pub(crate) serial: u64,
    /// Number of times that it has begun to stand by. Mail of an earlier term is not delivered.
    pub(crate) term: u32,
    pub(crate) peer: SocketAddr,
    pub(crate) session: ControllerSession,
    /// Incomplete message at the end of the last read.
    pub(crate) carry: Vec<u8>,
    pub(crate) counts: Arc<ConnectionCounts>,
    /// Limits of its packet-ins, if there are any now.
    pub(crate) budget: Option<Box<PacketBudget>>,
    /// Packet-ins by port that are not in `counts` yet.
    pub(crate) port_tally: PortTally,
    /// What apps have asked for beside their messages.
    pub(crate) asked: AppRequests,
    /// Time of the last report that flows stay because the switch does not list them.
    pub(crate) removal_reported: Option<Duration>,
    /// Bytes of its unfinished multipart replies, as counted by the worker.
    pub(crate) unfinished: usize,
    /// Whether it has refused FLOOD: messages to it use ALL instead.
    pub(crate) uses_all_for_flood: bool,
    /// Pending work of tasks, if any.
    pub(crate) confirms: Option<Box<Confirmations>>,
    /// Its load, to decide which switches to hand over.
    pub(crate) load: SwitchLoad,
    pub(crate) stage: ConnectionStage,
    /// Time of its next timer.
    pub(crate) timer: Option<Duration>,
    /// Orders for roles, if there were any.
    pub(crate) roles: Option<Box<Roles>>,
    /// Packet-ins that came before the switch was up, if any.
    pub(crate) early_packets: Option<Box<EarlyPackets>>,
    /// Set while an echo checks whether it is alive, because another connection claims its datapath
    /// id.
    pub(crate) challenge: Option<Box<Challenge>>,
}

/// Counts of a connection. Only its worker writes them, any thread reads them.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    /// Number of bytes that wait to be written.
    pub(crate) backlog: AtomicUsize,
    /// Packet-ins that reached the apps.
    pub(crate) packet_ins: Counter,
    /// Packet-ins that were dropped before the apps.
    pub(crate) packet_ins_ignored: Counter,
    /// Packet-ins by port: those that reached the apps, and those that a budget dropped.
    pub(crate) ports: OnceLock<Box<PublishedPortCounts>>,
    /// OpenFlow errors that the switch sent.
    pub(crate) errors: Counter,
    /// Messages that were sent, without echoes. The worker adds them once a second.
    pub(crate) messages_sent: Counter,
}

impl Connection {
    /// The datapath id that this connection owns.
    pub(crate) fn dpid(&self) -> Option<Dpid> {
        self.stage.owned_info().map(|info| info.dpid)
    }
}

/// The stage of a connection.
pub(crate) enum ConnectionStage {
    /// The handshake is not finished.
    Handshake,
    /// Another connection owns its datapath id. An echo checks whether that one is alive.
    Claiming { info: Arc<SwitchInfo>, deadline: Duration },
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

/// The connections that claim the datapath id, and the time limit for a sign of life.
pub(crate) struct Challenge {
    pub(crate) claimants: Vec<ConnectionId>,
    pub(crate) deadline: Duration,
}

impl ConnectionStage {
    /// Data of the switch, if the connection owns its datapath id.
    pub(crate) fn owned_info(&self) -> Option<&Arc<SwitchInfo>> {
        match self {
            ConnectionStage::Standby(StandbySwitch { info, .. })
            | ConnectionStage::Cleaning(CleaningSwitch { info, .. })
            | ConnectionStage::Up(UpSwitch { info, .. }) => Some(info),
            ConnectionStage::Handshake | ConnectionStage::Claiming { .. } => None,
        }
    }

    /// The xid of the request for flows of an earlier run, if it has no answer.
    pub(crate) fn flows_request(&self) -> Option<u32> {
        let request = match self {
            ConnectionStage::Cleaning(cleaning) => cleaning.request,
            ConnectionStage::Up(up) => up.flows_request,
            ConnectionStage::Handshake
            | ConnectionStage::Claiming { .. }
            | ConnectionStage::Standby(_) => None,
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
            ConnectionStage::Handshake
            | ConnectionStage::Claiming { .. }
            | ConnectionStage::Cleaning(_) => {}
        }
    }

    pub(crate) fn info_mut(&mut self) -> Option<&mut Arc<SwitchInfo>> {
        match self {
            ConnectionStage::Claiming { info, .. }
            | ConnectionStage::Standby(StandbySwitch { info, .. })
            | ConnectionStage::Cleaning(CleaningSwitch { info, .. })
            | ConnectionStage::Up(UpSwitch { info, .. }) => Some(info),
            ConnectionStage::Handshake => None,
        }
    }
}

/// Converts the result of the handshake for apps.
pub(crate) fn info_of(
    mut switch: SwitchDescription,
    peer: SocketAddr,
    now: Duration,
) -> SwitchInfo {
    let mut ports = std::mem::take(&mut switch.ports);
    ports.shrink_to_fit();
    let mut info = SwitchInfo::new(Dpid(switch.datapath_id), switch.version, peer);
    info.n_buffers = switch.n_buffers;
    info.n_tables = switch.n_tables;
    info.capabilities = switch.capabilities;
    info.action_types = switch.actions;
    info.description = texts_of(switch);
    info.ports = ports;
    info.since = now;
    info
}

/// Converts the texts of a description for apps.
pub(crate) fn description_of(desc: &Desc<'_>) -> Description {
    let mut switch = SwitchDescription::new(0);
    switch.describe(desc);
    texts_of(switch)
}

/// What a switch writes where it has nothing to say, as Open vSwitch does.
const NOTHING: &str = "None";

fn texts_of(switch: SwitchDescription) -> Description {
    let text = |text: Box<str>| if &*text == NOTHING { Box::default() } else { text };
    Description {
        manufacturer: text(switch.manufacturer),
        hardware: text(switch.hardware),
        software: text(switch.software),
        serial_number: text(switch.serial_number),
        datapath: text(switch.datapath),
    }
}

/// Applies a change of a port. `false`: it is a new port, and the maximum number is reached.
pub(crate) fn apply(info: &mut SwitchInfo, status: &PortStatus) -> bool {
    let ports = &mut info.ports;
    let room = ports.len() < bellrock_session::MAX_PORTS;
    if status.reason == PortReason::Delete {
        ports.retain(|desc| desc.port != status.desc.port);
    } else if let Some(desc) = ports.iter_mut().find(|desc| desc.port == status.desc.port) {
        *desc = status.desc;
    } else if room {
        ports.push(status.desc);
    } else {
        return false;
    }
    true
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

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EndCause {
    #[error(transparent)]
    Session(#[from] CloseReason),
    #[error("the switch closed the connection")]
    Peer,
    #[error(
        "what came by TLS cannot be decrypted: something changed it on the way, or the switch's \
         TLS needs a fix"
    )]
    Corrupt,
    #[error(
        "auxiliary connection {0} refused: Bellrock uses main connections only; remove the \
         auxiliary connection from the switch's configuration"
    )]
    Auxiliary(u8),
    #[error(
        "datapath id {0} is connected already, and that connection is alive; give each switch a \
         datapath id of its own"
    )]
    Duplicate(Dpid),
    #[error("it may not speak for datapath id {0}: {1}")]
    Identity(Dpid, AdmissionError),
    /// By order of the operator, or of a rule: the sentence says which.
    #[error("{0}")]
    Ordered(Box<str>),
    #[error("a new connection with the same datapath id replaced this one, which was silent")]
    Replaced,
    #[error("the switch read none of the waiting bytes for too long")]
    Stalled,
    #[error(
        "unfinished replies of this worker's switches exceed {} MiB; send fewer requests at a time",
        crate::settings::UNFINISHED_REPLY_BYTES >> 20
    )]
    UnfinishedReplies,
    #[error(
        "the switch sent {} KiB of messages before its features; check the switch's load",
        crate::raw::MAX_EARLY_BYTES >> 10
    )]
    EarlyMessages,
    #[error("the controller stops")]
    Stop,
}
