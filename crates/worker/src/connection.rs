//! What a worker keeps of a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bellrock_api::openflow::{Desc, MultipartKind, PortReason, PortStatus};
use bellrock_api::{
    Cookie, Description, Dpid, Error, Handler, OwnFlow, Port, Requests, SwitchInfo, ToSwitch,
};
use bellrock_session::{Close, Controller, Pending, RequestKind, SwitchDescription};

use crate::balance::Burden;
use crate::confirm::Confirms;
use crate::early::EarlyPackets;
use crate::guard::guarded;
use crate::limit::RateLimit;
use crate::mailbox::ConnectionId;
use crate::removal::{MAX_REMOVALS, Removal};
use crate::turns::Turn;

/// A connection and how far it has come.
pub(crate) struct Connection {
    /// Tells it from others that had the same key.
    pub(crate) serial: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) session: Controller,
    /// The unfinished message at the end of the last read.
    pub(crate) carry: Vec<u8>,
    /// Bytes that wait to be written to it, for senders in other threads.
    pub(crate) backlog: Arc<AtomicUsize>,
    pub(crate) limit: Option<RateLimit>,
    /// Flows that are to be removed when the switch has told them (1.0).
    pub(crate) removals: Vec<Removal>,
    /// When it was last reported that flows stay, since the switch does not say which ones it has.
    pub(crate) removal_reported: Option<Duration>,
    /// Bytes of its unfinished multipart replies, as the worker has counted them.
    pub(crate) unfinished: usize,
    /// It has refused FLOOD: what is written to it says ALL instead.
    pub(crate) floods_by_all: bool,
    /// What tasks wait for, where any do.
    pub(crate) confirms: Option<Box<Confirms>>,
    /// What it brings, for the decision who is handed over.
    pub(crate) burden: Burden,
    pub(crate) stage: Stage,
    /// When it is looked at again.
    pub(crate) timer: Option<Duration>,
    /// Packet-ins that came before it is up, where any did.
    pub(crate) early: Option<Box<EarlyPackets>>,
    /// Set while it is asked for a sign of life because another claims its datapath id.
    pub(crate) challenge: Option<Box<Challenge>>,
}

impl Connection {
    /// The datapath id that is this connection's own.
    pub(crate) fn dpid(&self) -> Option<Dpid> {
        self.stage.claimed().map(|info| info.dpid)
    }
}

/// How far a connection has come.
pub(crate) enum Stage {
    /// The session is not ready.
    Handshake,
    /// Another connection has its datapath id, and is asked whether it is alive.
    Claiming { info: Arc<SwitchInfo>, until: Duration },
    /// Its datapath id is its own; the flows that it was left with are being listed.
    Cleaning(Cleaning),
    /// The apps have it.
    Up(Up),
}

/// A switch that is asked for its flows.
pub(crate) struct Cleaning {
    pub(crate) info: Arc<SwitchInfo>,
    /// Since when.
    pub(crate) since: Duration,
    /// What it was asked; `None`: it waits for its turn.
    pub(crate) asked: Option<FlowsAsked>,
    pub(crate) turn: Turn,
}

/// A question for flows that an earlier run has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowsAsked {
    pub(crate) xid: u32,
    /// From when on packets that wait count: those of a switch that had to wait for its turn wait for the controller.
    pub(crate) packets_since: Duration,
    /// When the switch comes up without the answer.
    pub(crate) until: Duration,
}

/// A switch that the apps have.
pub(crate) struct Up {
    pub(crate) info: Arc<SwitchInfo>,
    /// One of each app, in the order of the chain.
    pub(crate) handlers: Vec<Box<dyn Handler>>,
    pub(crate) next_tick: Duration,
    /// The question for flows of an earlier run, where the switch came up before it has answered.
    pub(crate) flows_asked: Option<FlowsAsked>,
    /// The entry that brings packets without a flow (1.3).
    pub(crate) table_miss: OwnFlow,
    /// `info` has changed in this turn, and the directory does not know yet.
    pub(crate) changed: bool,
}

/// Where a worker is dropped that has not been stopped: the handlers are code of apps.
impl Drop for Up {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            let _ = guarded(|| drop(handler));
        }
    }
}

/// Who wants to know whether a connection is alive, and until when it may show that it is.
pub(crate) struct Challenge {
    pub(crate) claimants: Vec<ConnectionId>,
    pub(crate) until: Duration,
}

impl Stage {
    /// What is known of the switch, where its datapath id is the connection's own.
    pub(crate) fn claimed(&self) -> Option<&Arc<SwitchInfo>> {
        match self {
            Stage::Cleaning(Cleaning { info, .. }) | Stage::Up(Up { info, .. }) => Some(info),
            Stage::Handshake | Stage::Claiming { .. } => None,
        }
    }

    pub(crate) fn info_mut(&mut self) -> Option<&mut Arc<SwitchInfo>> {
        match self {
            Stage::Claiming { info, .. }
            | Stage::Cleaning(Cleaning { info, .. })
            | Stage::Up(Up { info, .. }) => Some(info),
            Stage::Handshake => None,
        }
    }
}

/// What the session learnt in the handshake, as apps see it.
pub(crate) fn info_of(switch: SwitchDescription, peer: SocketAddr, now: Duration) -> SwitchInfo {
    let mut ports = switch.ports;
    ports.shrink_to_fit();
    SwitchInfo {
        dpid: Dpid(switch.datapath_id),
        version: switch.version,
        peer,
        n_buffers: switch.n_buffers,
        n_tables: switch.n_tables,
        capabilities: switch.capabilities,
        description: Description {
            manufacturer: switch.manufacturer,
            hardware: switch.hardware,
            software: switch.software,
            serial_number: switch.serial_number,
            datapath: switch.datapath,
        },
        ports,
        since: now,
    }
}

/// The texts of a description, as apps see them.
pub(crate) fn description_of(desc: &Desc<'_>) -> Description {
    let mut switch = SwitchDescription::new(0);
    switch.describe(desc);
    Description {
        manufacturer: switch.manufacturer,
        hardware: switch.hardware,
        software: switch.software,
        serial_number: switch.serial_number,
        datapath: switch.datapath,
    }
}

/// Brings the ports up to date. `false`: it is a new one beyond those that are kept, and left out.
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

/// The requests of a session, as [`bellrock_api::Switch`] needs them.
pub(crate) struct Asked<'a> {
    pub(crate) pending: Pending<'a>,
    pub(crate) removals: &'a mut Vec<Removal>,
}

impl Requests for Asked<'_> {
    fn expect_overtaken(&mut self, question: u32, barrier: u32, now: Duration) {
        self.pending.follow(question, barrier, now);
    }

    fn expect_nothing(&mut self, xid: u32) {
        self.pending.cancel(xid);
        self.removals.retain(|removal| removal.xid != xid);
    }

    fn expect_removal(
        &mut self,
        xid: u32,
        cookie: Cookie,
        out_port: Port,
        now: Duration,
    ) -> bellrock_api::Result<(), Error> {
        let waiting = self.removals.len();
        if waiting >= MAX_REMOVALS {
            return Err(Error::TooManyRequests { waiting });
        }
        // They are bounded here, and leave room for the others.
        let others = self.pending.count();
        self.pending
            .request_beside(others, xid, RequestKind::Multipart(MultipartKind::Flow), now)
            .map_err(|_| Error::TooManyRequests { waiting })?;
        self.removals.push(Removal { xid, cookie, out_port });
        Ok(())
    }

    fn expect_answer(
        &mut self,
        xid: u32,
        message: &ToSwitch<'_>,
        now: Duration,
    ) -> bellrock_api::Result<(), Error> {
        let kind = match message {
            ToSwitch::MultipartRequest(request) => RequestKind::Multipart(request.body.kind()),
            ToSwitch::BarrierRequest => RequestKind::Barrier,
            ToSwitch::RoleRequest(_) => RequestKind::Role,
            ToSwitch::GetAsyncRequest => RequestKind::Async,
            ToSwitch::GetConfigRequest => RequestKind::Config,
            ToSwitch::QueueGetConfigRequest(_) => RequestKind::QueueConfig,
            ToSwitch::FeaturesRequest => RequestKind::Features,
            ToSwitch::EchoRequest(_) => RequestKind::Echo,
            _ => return Ok(()),
        };
        self.pending
            .request_beside(self.removals.len(), xid, kind, now)
            .map_err(|_| Error::TooManyRequests { waiting: self.pending.count() })
    }
}

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum End {
    #[error(transparent)]
    Session(#[from] Close),
    #[error("the switch closed the connection")]
    Peer,
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
    #[error("a new connection with the same datapath id took its place; this one was silent")]
    Replaced,
    #[error("the switch took none of the bytes that wait for it for too long")]
    Stalled,
    #[error(
        "the unfinished replies of this worker's switches have used up their {} MiB; ask less at a time",
        crate::settings::UNFINISHED_REPLY_BYTES >> 20
    )]
    UnfinishedReplies,
    #[error("the controller stops")]
    Stop,
}
