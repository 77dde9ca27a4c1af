//! Messages to switches of which another controller of the cluster is master.
//!
//! Only a controller of a cluster has a way to them ([`Remote`]). A switch that is up here never
//! takes it: it is for switches at which this controller stands by.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellrock_openflow::{MAX_MESSAGE_LEN, Out, RequestKind, ToSwitch, Version};

use crate::runtime::{Changes, Program};
use crate::{AppId, ChangeOutcome, Dpid, Error, Network, ProgramFuture, RequestFuture, SwitchInfo};

/// Carries messages to switches of which another controller is master. A cluster implements it.
///
/// Messages for one switch keep their order, also when another controller becomes its master.
pub trait Remote: Send + Sync + 'static {
    /// Sends an encoded message. The switch's answer is discarded.
    ///
    /// # Errors
    /// Those of [`Network::send`]. `Ok`: it is on its way. The message is lost if the switch
    /// or the other controller is lost before it is there.
    fn send(&self, to: Dpid, message: &[u8]) -> Result<(), Error>;

    /// Sends encoded changes, followed by a barrier.
    fn program(&self, to: Dpid, program: EncodedProgram) -> ProgramFuture;

    /// Sends an encoded request of this kind to a switch of this version.
    fn request(&self, to: Dpid, to_send: EncodedRequest) -> RequestFuture;
}

/// Changes as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedProgram {
    /// A message for each change.
    pub messages: Vec<Box<[u8]>>,
    /// Time for the switch.
    pub within: Duration,
    /// Whether an operator orders them, and no app.
    pub is_order: bool,
}

/// A request as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRequest {
    /// Version of the switch.
    pub version: Version,
    /// Kind of the request.
    pub kind: RequestKind,
    /// The message.
    pub message: Box<[u8]>,
}

/// The way of a controller to switches of others, if it has one.
#[derive(Default)]
pub struct RemoteSlot(OnceLock<Arc<dyn Remote>>);

impl fmt::Debug for RemoteSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteSlot({})", if self.0.get().is_some() { "set" } else { "empty" })
    }
}

/// Both ends of the way to switches of other controllers, by a [`Network`]: for clusters.
///
/// The methods that end in `_here` are for the controller that another one has asked. They never
/// ask a third one: if the switch is not up here, nothing is sent.
pub trait RemoteControl {
    /// Gives the controller its way to switches of others. `false`: it has one already, which
    /// stays.
    fn set_remote(&self, remote: Arc<dyn Remote>) -> bool;

    /// Sends a message to a switch that is up here.
    ///
    /// # Errors
    /// Those of [`Network::send`].
    fn send_here(&self, dpid: Dpid, message: &ToSwitch<'_>) -> Result<(), Error>;

    /// Sends encoded messages to a switch that is up here, followed by a barrier.
    fn program_here(&self, dpid: Dpid, messages: Vec<Box<[u8]>>, within: Duration)
    -> ProgramFuture;

    /// Sends a request to a switch that is up here.
    fn request_here(&self, dpid: Dpid, request: &ToSwitch<'_>) -> RequestFuture;
}

impl RemoteControl for Network {
    fn set_remote(&self, remote: Arc<dyn Remote>) -> bool {
        self.runtime().state().remote.0.set(remote).is_ok()
    }

    fn send_here(&self, dpid: Dpid, message: &ToSwitch<'_>) -> Result<(), Error> {
        crate::role::refuse_role_change(message)?;
        self.runtime().send(None, dpid, message)
    }

    fn program_here(
        &self,
        dpid: Dpid,
        messages: Vec<Box<[u8]>>,
        within: Duration,
    ) -> ProgramFuture {
        let changes = Changes::Messages(messages);
        self.runtime().program(Program { dpid, changes, within })
    }

    fn request_here(&self, dpid: Dpid, request: &ToSwitch<'_>) -> RequestFuture {
        match crate::role::refuse_role_change(request) {
            Ok(()) => self.runtime().request(dpid, request),
            Err(error) => RequestFuture::not_sent(error),
        }
    }
}

impl Network {
    /// A switch that takes messages of this controller: it is up here, or another controller of the
    /// cluster is its master, and passes messages on. Its [`SwitchInfo::role`] tells which.
    #[must_use]
    pub fn reachable(&self, dpid: Dpid) -> Option<Arc<SwitchInfo>> {
        self.switch(dpid).or_else(|| self.remote(dpid).map(|(_, info)| info))
    }

    /// The way to a switch of another controller. `None`: it is up here, or there is none.
    fn remote(&self, dpid: Dpid) -> Option<(&dyn Remote, Arc<SwitchInfo>)> {
        let state = self.runtime().state();
        let remote = state.remote.0.get()?;
        if state.switches.load().get(dpid).is_some() {
            return None;
        }
        // It also has the ports and the version of a switch at which it stands by.
        let info = state.standbys.load().get(dpid).cloned()?;
        Some((&**remote, info))
    }

    /// Sends a message, to another controller if it must.
    pub(crate) fn carry(
        &self,
        from: Option<AppId>,
        to: Dpid,
        message: &ToSwitch<'_>,
    ) -> Result<(), Error> {
        let Some((remote, info)) = self.remote(to) else {
            return self.runtime().send(from, to, message);
        };
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        match (from, message) {
            (Some(app), ToSwitch::FlowMod(flow)) => {
                ToSwitch::FlowMod(app.owned_flow_mod(info.version, flow)?).encode(
                    info.version,
                    0,
                    &mut out,
                )?;
            }
            _ => message.encode(info.version, 0, &mut out)?,
        }
        remote.send(to, out.as_slice())
    }

    /// Sends a program, to another controller if it must.
    pub(crate) fn carry_program(&self, program: Program) -> ProgramFuture {
        let Some((remote, info)) = self.remote(program.dpid) else {
            return self.runtime().program(program);
        };
        let Program { dpid, changes, within } = program;
        let is_order = changes.app().is_none();
        match encode(changes, info.version) {
            Ok(messages) => remote.program(dpid, EncodedProgram { messages, within, is_order }),
            Err(outcomes) => ProgramFuture::ready(outcomes),
        }
    }

    /// Sends a request, to another controller if it must.
    pub(crate) fn carry_request(&self, to: Dpid, request: &ToSwitch<'_>) -> RequestFuture {
        let Some((remote, info)) = self.remote(to) else {
            return self.runtime().request(to, request);
        };
        let Some(kind) = RequestKind::awaited_by(request) else {
            return RequestFuture::not_sent(Error::NotARequest);
        };
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        match request.encode(info.version, 0, &mut out) {
            Ok(()) => {
                let message = out.as_slice().into();
                remote.request(to, EncodedRequest { version: info.version, kind, message })
            }
            Err(error) => RequestFuture::not_sent(error.into()),
        }
    }
}

/// Encodes changes, each to a message. If one cannot be encoded, returns the outcomes: none is
/// sent.
fn encode(changes: Changes, version: Version) -> Result<Vec<Box<[u8]>>, Vec<ChangeOutcome>> {
    let (app, changes) = match changes {
        Changes::Messages(messages) => return Ok(messages),
        Changes::OfApp(app, changes) => (app, changes),
    };
    let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
    let mut messages = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        out.clear();
        if let Err(error) = change.encode(app, version, 0, &mut out) {
            let mut outcomes = vec![ChangeOutcome::Withheld; changes.len()];
            outcomes[at] = ChangeOutcome::NotSent(error);
            return Err(outcomes);
        }
        messages.push(out.as_slice().into());
    }
    Ok(messages)
}
