//! From the hello to [`SessionEvent::Ready`].
//!
//! ```text
//! controller                          switch
//!   HELLO                          ->
//!                                  <-  HELLO
//!   FEATURES_REQUEST               ->
//!                                  <-  FEATURES_REPLY (1.0: with ports)
//!   SET_CONFIG, DESC               ->
//!   PORT_DESC (1.3)                ->
//!   BARRIER_REQUEST                ->
//!                                  <-  DESC
//!                                  <-  PORT_DESC
//!                                  <-  BARRIER_REPLY: what is not answered by now stays unanswered
//! ```
//!
//! A connection that begins as a standby ([`crate::FirstRole`]) sends no SET_CONFIG.
//!
//! Without features there is no switch. Texts and ports may be missing, if the switch refuses them,
//! does not answer, or sends answers that cannot be decoded. Then the texts stay empty, and ports
//! become known as they change. Answers after the handshake are ordinary events.

use std::time::Duration;

use bellrock_openflow::{
    DecodeError, ErrorCode, ErrorMessage, Features, FromSwitch, MessageFrame, MultipartKind,
    MultipartRequest, Out, PortStatus, ReplyBody, RequestBody, RequestKind, ToSwitch,
};

use super::ControllerSession;
use crate::close::{CloseReason, Stop};
use crate::description::{MAX_PORTS, MissingReply, SwitchDescription, distinct};
use crate::event::SessionEvent;
use crate::hello;
use crate::requests::CompleteReply;
use crate::settings::FirstRole;
use crate::xid;

/// Progress of the handshake.
#[derive(Debug)]
pub(super) enum HandshakeStage {
    /// Waits for the peer's hello.
    Hello,
    /// Waits for the features, with this xid.
    Features(u32),
    /// Waits for description and ports.
    Describing(Box<Describing>),
    /// Finished. The switch is here until it is taken.
    Ready(Option<Box<SwitchDescription>>),
}

impl HandshakeStage {
    /// Required message that is still missing.
    pub(super) fn waiting_for(&self) -> Option<&'static str> {
        match self {
            HandshakeStage::Hello => Some("hello"),
            HandshakeStage::Features(_) => Some("features reply"),
            HandshakeStage::Describing(_) | HandshakeStage::Ready(_) => None,
        }
    }
}

/// The last stage of the handshake.
#[derive(Debug)]
pub(super) struct Describing {
    switch: SwitchDescription,
    /// The xid of the description request, while it is unanswered.
    desc: Option<u32>,
    /// The xid of the ports request, while it is unanswered.
    ports: Option<u32>,
    /// Last status of each port that changed before the ports came.
    early: Vec<PortStatus>,
}

impl ControllerSession {
    /// Handles the first message: agrees on a version and requests the features.
    pub(super) fn hello<'b>(
        &mut self,
        message: MessageFrame<'b>,
        out: &mut Out,
    ) -> Result<SessionEvent<'b>, Stop> {
        let version = hello::agree(message, self.settings.versions, out)?;
        let xid = self.xids.next(xid::SESSION);
        ToSwitch::FeaturesRequest.encode(version, xid, out)?;
        self.version = version;
        self.stage = HandshakeStage::Features(xid);
        Ok(SessionEvent::Nothing)
    }

    /// Handles a message other than error, echo request and multipart reply.
    pub(super) fn early<'b>(
        &mut self,
        xid: u32,
        body: FromSwitch<'b>,
        now: Duration,
        out: &mut Out,
    ) -> Result<SessionEvent<'b>, Stop> {
        match (body, &self.stage) {
            (FromSwitch::FeaturesReply(features), HandshakeStage::Features(asked))
                if *asked == xid =>
            {
                self.features(&features, now, out)?;
                return Ok(SessionEvent::Identified { datapath_id: features.datapath_id });
            }
            (FromSwitch::PortStatus(status), _) => {
                self.early_port_status(status);
                return Ok(SessionEvent::PortStatus(status));
            }
            (FromSwitch::PacketIn(packet), _) => {
                self.packets_since.get_or_insert(now);
                return Ok(SessionEvent::PacketIn { xid, packet });
            }
            (FromSwitch::FlowRemoved(_) | FromSwitch::Experimenter(_), _) => {
                self.counters.early_others += 1;
            }
            _ => self.counters.unexpected += 1,
        }
        Ok(SessionEvent::Nothing)
    }

    /// Handles the features: configures the switch, unless it is a standby's, and requests the
    /// rest.
    fn features(
        &mut self,
        features: &Features<'_>,
        now: Duration,
        out: &mut Out,
    ) -> Result<(), Stop> {
        let version = self.version;
        if self.settings.first_role == FirstRole::Equal {
            self.configure(out)?;
        }
        let mut ask = |body: RequestBody<'_>| {
            let xid = self.xids.next(xid::SESSION);
            let request = ToSwitch::MultipartRequest(MultipartRequest::of(body));
            request.encode(version, xid, out).map(|()| xid)
        };
        let desc = ask(RequestBody::Desc)?;
        let ports = match version.has_port_desc() {
            true => Some(ask(RequestBody::PortDesc)?),
            false => None,
        };
        let barrier = self.xids.next(xid::SESSION);
        ToSwitch::BarrierRequest.encode(version, barrier, out)?;
        self.expect(desc, MultipartKind::Desc, now);
        if let Some(xid) = ports {
            self.expect(xid, MultipartKind::PortDesc, now);
        }
        self.requests.follow(&[Some(desc), ports].map(Option::unwrap_or_default), barrier, now);
        let switch = SwitchDescription::of(version, features);
        let desc = Some(desc);
        self.stage =
            HandshakeStage::Describing(Box::new(Describing { switch, desc, ports, early: vec![] }));
        Ok(())
    }

    /// Registers the session's own requests. They do not count for the limit of the apps, which
    /// have none yet.
    fn expect(&mut self, xid: u32, kind: MultipartKind, now: Duration) {
        let added = self.requests.add(xid, RequestKind::Multipart(kind), u16::MAX, now);
        debug_assert_eq!(added, Ok(()));
    }

    fn early_port_status(&mut self, status: PortStatus) {
        let HandshakeStage::Describing(describing) = &mut self.stage else {
            // The features or ports that are requested later will include it.
            return;
        };
        if describing.ports.is_none() {
            self.counters.ports_left_out += u32::from(!describing.switch.apply(&status));
            return;
        }
        let early = &mut describing.early;
        let room = early.len() < MAX_PORTS;
        match early.iter_mut().find(|earlier| earlier.desc.port == status.desc.port) {
            Some(earlier) => *earlier = status,
            None if room => early.push(status),
            None => self.counters.ports_left_out += 1,
        }
    }

    /// Handles the answer to one of the session's requests.
    pub(super) fn described<'b>(&mut self, reply: &CompleteReply<'_>) -> SessionEvent<'b> {
        let HandshakeStage::Describing(describing) = &mut self.stage else {
            return SessionEvent::Nothing;
        };
        match reply.body() {
            Ok(ReplyBody::Desc(desc)) => {
                describing.switch.describe(&desc);
                describing.desc = None;
            }
            Ok(ReplyBody::PortDesc(ports)) => {
                let mut ports = ports.iter();
                describing.switch.ports = distinct(ports.by_ref().take(MAX_PORTS));
                self.counters.ports_left_out += ports.count() as u32;
                describing.ports = None;
            }
            _ => {}
        }
        self.finish()
    }

    /// Continues the handshake without the answer to this request, for this reason.
    pub(super) fn without<'b>(&mut self, xid: u32, why: MissingReply) -> SessionEvent<'b> {
        let HandshakeStage::Describing(describing) = &mut self.stage else {
            return SessionEvent::Nothing;
        };
        self.requests.end(xid);
        if describing.desc == Some(xid) {
            describing.desc = None;
        }
        if describing.ports == Some(xid) {
            describing.ports = None;
            describing.switch.ports_missing = Some(why);
        }
        self.finish()
    }

    /// Ends the handshake at its time limit, without the missing descriptions. The requests stay
    /// registered for late answers.
    pub(super) fn undescribed(&mut self) {
        let HandshakeStage::Describing(describing) = &mut self.stage else { return };
        describing.desc = None;
        if describing.ports.take().is_some() {
            describing.switch.ports_missing = Some(MissingReply::Silent);
        }
        self.finish();
    }

    /// Handles the reply to a barrier behind requests: those without an answer get none.
    pub(super) fn overtaken<'b>(&mut self, barrier: u32) -> SessionEvent<'b> {
        let mut event = SessionEvent::Nothing;
        // Bounded: each turn ends a request.
        while let Some((xid, kind)) = self.requests.overtaken(barrier) {
            event = match self.is_ready() {
                true => SessionEvent::Silent { xid, kind },
                false => self.without(xid, MissingReply::Silent),
            };
        }
        event
    }

    /// Ends the handshake when nothing more is missing.
    fn finish<'b>(&mut self) -> SessionEvent<'b> {
        let HandshakeStage::Describing(describing) = &mut self.stage else {
            return SessionEvent::Nothing;
        };
        if describing.ports.is_none() {
            for status in describing.early.drain(..) {
                self.counters.ports_left_out += u32::from(!describing.switch.apply(&status));
            }
        }
        if describing.desc.is_some() || describing.ports.is_some() {
            return SessionEvent::Nothing;
        }
        let mut switch = std::mem::replace(&mut describing.switch, SwitchDescription::new(0));
        switch.ports.shrink_to_fit();
        self.stage = HandshakeStage::Ready(Some(Box::new(switch)));
        SessionEvent::Ready
    }

    /// Handles an error before the end of the handshake.
    pub(super) fn early_error<'b>(
        &mut self,
        xid: u32,
        error: &ErrorMessage<'_>,
    ) -> Result<SessionEvent<'b>, Stop> {
        if let HandshakeStage::Features(asked) = self.stage
            && asked == xid
        {
            let code = match *error {
                ErrorMessage::Standard { code, .. } => code,
                ErrorMessage::Experimenter { kind, .. } => {
                    ErrorCode::Unknown { kind: 0xffff, code: kind }
                }
            };
            return Err(CloseReason::FeaturesRefused(code).into());
        }
        // An error about SET_CONFIG needs no action: the switch keeps its configuration. After an
        // error about the barrier, only answers or the time limit end the requests.
        Ok(self.without(xid, MissingReply::Refused))
    }

    /// Handles a reply that cannot be decoded, before the end of the handshake. Without features
    /// there is no switch.
    pub(super) fn early_malformed<'b>(
        &mut self,
        xid: u32,
        error: DecodeError,
    ) -> Result<SessionEvent<'b>, Stop> {
        let what = match &self.stage {
            HandshakeStage::Features(asked) if *asked == xid => "features reply",
            _ => return Ok(self.without(xid, MissingReply::Unreadable)),
        };
        Err(CloseReason::BadReply { what, error }.into())
    }
}
