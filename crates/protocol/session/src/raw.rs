//! The controller's end of a raw connection: its messages belong to an owner, as they are.
//!
//! ```text
//! controller                          switch
//!   HELLO                          ->
//!                                  <-  HELLO
//!   FEATURES_REQUEST               ->
//!                                  <-  FEATURES_REPLY
//!                  from here on, the owner reads and writes
//! ```
//!
//! The session does what must not depend on the owner's speed or goodwill: it agrees on a version,
//! learns the datapath id, answers echo requests, and sends its own when the switch is silent. All
//! other messages are the owner's: their types, xids and contents are not looked at. The owner may
//! use any xid: the session knows the replies to its echo requests by their payload.

use std::time::Duration;

use bellrock_openflow::{
    Bytes, EncodeError, ErrorCode, ErrorMessage, FromSwitch, HEADER_LEN, Header, Hello,
    MessageFrame, MessageKind, Out, ToSwitch, Version, frame,
};

use crate::close::{CloseReason, Stop};
use crate::description::SwitchDescription;
use crate::hello::{self, ERROR, write_error};
use crate::settings::SessionSettings;

/// `OFPT_ECHO_REQUEST` and `OFPT_ECHO_REPLY`, the same numbers in every version.
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;

/// Payload of the session's echo requests, in front of their number.
const ECHO_MARK: [u8; 8] = *b"bellrock";

/// The xid of the features request. No owner has written anything before its reply.
const FEATURES_XID: u32 = 1;

/// The event of a message of a raw connection. Its bytes are those at the start of the stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum RawSessionEvent {
    /// The session has processed it: an echo request, or the reply to its own.
    Nothing,
    /// `out` has no space for the session's answer. Nothing was consumed or changed: empty `out`,
    /// and call again with the same bytes.
    OutFull,
    /// The switch's hello: a version is agreed on.
    Hello,
    /// The features have come: the description has what they contain. From here on the owner may
    /// write.
    Identified(Box<SwitchDescription>),
    /// A message for the owner. It may come before `Identified`: keep it until then.
    Message,
    /// The answer to [`RawSession::probe`].
    ProbeAnswered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RawStage {
    Hello,
    Features,
    Open,
}

/// The controller's end of a raw connection. It is called like
/// [`ControllerSession`](crate::ControllerSession), and uses no heap memory.
#[derive(Debug)]
pub struct RawSession {
    settings: SessionSettings,
    stage: RawStage,
    version: Version,
    /// Start of the connection before the features. Later, the last sign of life or the last echo
    /// request.
    since: Duration,
    /// An echo request was sent, and nothing has come since.
    echoed: bool,
    /// Number of the last echo request.
    echoes: u32,
    /// Number of the echo request of an unanswered probe.
    probe: Option<u32>,
}

impl RawSession {
    /// Starts a connection: writes a hello. Of the settings, only versions and times are used.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn new(
        settings: &SessionSettings,
        now: Duration,
        out: &mut Out,
    ) -> Result<Self, EncodeError> {
        Hello::write(settings.versions, FEATURES_XID, out)?;
        Ok(RawSession {
            settings: *settings,
            stage: RawStage::Hello,
            version: settings.versions.highest(),
            since: now,
            echoed: false,
            echoes: 0,
            probe: None,
        })
    }

    /// Processes the next message of `stream`, which has all received bytes that are not consumed
    /// yet. Returns its length and its event; `Ok(None)` if more bytes are needed. `out` gets the
    /// session's own answers.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn next(
        &mut self,
        stream: &[u8],
        now: Duration,
        out: &mut Out,
    ) -> Result<Option<(usize, RawSessionEvent)>, CloseReason> {
        let message = if self.stage == RawStage::Hello {
            hello::first_message(stream)?
        } else {
            frame(stream).map_err(|error| {
                if let (Some(header), Some(bytes)) =
                    (Header::read(stream), stream.get(..HEADER_LEN))
                    && header.kind != ERROR
                {
                    // The connection ends, so nobody misses it if `out` is full.
                    let message = MessageFrame { header, bytes };
                    let _ = write_error(self.version, message, error.answer, out);
                }
                CloseReason::BadLength(error)
            })?
        };
        let Some(message) = message else { return Ok(None) };
        let mark = out.len();
        match self.message(message, now, out) {
            Ok(event) => Ok(Some((message.bytes.len(), event))),
            Err(Stop::Close(close)) => Err(close),
            Err(Stop::Full) if mark == 0 => Err(CloseReason::CannotWrite(EncodeError::Full)),
            Err(Stop::Full) => {
                out.truncate(mark);
                Ok(Some((0, RawSessionEvent::OutFull)))
            }
        }
    }

    fn message(
        &mut self,
        message: MessageFrame<'_>,
        now: Duration,
        out: &mut Out,
    ) -> Result<RawSessionEvent, Stop> {
        match self.stage {
            RawStage::Hello => {
                let version = hello::agree(message, self.settings.versions, out)?;
                ToSwitch::FeaturesRequest.encode(version, FEATURES_XID, out)?;
                (self.version, self.stage) = (version, RawStage::Features);
                return Ok(RawSessionEvent::Hello);
            }
            RawStage::Features => {
                if let Some(refused) = hello::refusal(message) {
                    return Err(refused.into());
                }
                if let Some(switch) = self.features(message)? {
                    (self.stage, self.since) = (RawStage::Open, now);
                    return Ok(RawSessionEvent::Identified(switch));
                }
            }
            RawStage::Open => {}
        }
        // An echo of another version is none of ours, and passes.
        if message.header.version != self.version.wire() {
            return Ok(RawSessionEvent::Message);
        }
        let payload = message.bytes.get(HEADER_LEN..).unwrap_or_default();
        match message.header.kind {
            ECHO_REQUEST => {
                let reply = ToSwitch::EchoReply(Bytes(payload));
                reply.encode(self.version, message.header.xid, out)?;
                Ok(RawSessionEvent::Nothing)
            }
            ECHO_REPLY => Ok(self.echo_reply(payload)),
            _ => Ok(RawSessionEvent::Message),
        }
    }

    fn echo_reply(&mut self, payload: &[u8]) -> RawSessionEvent {
        let number = payload.strip_prefix(&ECHO_MARK).and_then(|rest| rest.try_into().ok());
        match number.map(u32::from_be_bytes) {
            Some(number) if self.probe == Some(number) => {
                self.probe = None;
                RawSessionEvent::ProbeAnswered
            }
            Some(number) if number <= self.echoes => RawSessionEvent::Nothing,
            _ => RawSessionEvent::Message,
        }
    }

    /// Reads the answer to the features request, if the message is one.
    fn features(
        &self,
        message: MessageFrame<'_>,
    ) -> Result<Option<Box<SwitchDescription>>, CloseReason> {
        let header = message.header;
        if header.xid != FEATURES_XID || header.version != self.version.wire() {
            return Ok(None);
        }
        match MessageKind::from_wire(self.version, header.kind) {
            Some(MessageKind::FeaturesReply | MessageKind::Error) => {}
            _ => return Ok(None),
        }
        match FromSwitch::decode(message.bytes).map(|decoded| decoded.body) {
            Ok(FromSwitch::FeaturesReply(features)) => {
                Ok(Some(Box::new(SwitchDescription::of(self.version, &features))))
            }
            Ok(FromSwitch::Error(ErrorMessage::Standard { code, .. })) => {
                Err(CloseReason::FeaturesRefused(code))
            }
            Ok(FromSwitch::Error(ErrorMessage::Experimenter { kind, .. })) => {
                let code = ErrorCode::Unknown { kind: 0xffff, code: kind };
                Err(CloseReason::FeaturesRefused(code))
            }
            Ok(_) => Ok(None),
            Err(error) => Err(CloseReason::BadReply { what: "features reply", error }),
        }
    }

    /// Notes that the peer is alive: bytes came, or it took waiting bytes.
    pub fn received(&mut self, now: Duration) {
        if self.is_open() {
            self.since = now;
            self.echoed = false;
        }
    }

    /// Time when [`RawSession::timeout`] must be called. Signs of life postpone it.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let settings = &self.settings;
        self.since.saturating_add(match (self.stage, self.echoed) {
            (RawStage::Open, false) => settings.echo_after,
            (RawStage::Open, true) => settings.dead_after,
            _ => settings.handshake_timeout,
        })
    }

    /// Handles the deadline: sends an echo request, or ends a dead connection. Does nothing before
    /// the deadline. An echo request that does not fit `out` is not sent, and the peer gets the
    /// same time.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn timeout(&mut self, now: Duration, out: &mut Out) -> Result<(), CloseReason> {
        if now < self.deadline() {
            return Ok(());
        }
        match (self.stage, self.echoed) {
            (RawStage::Hello, _) => Err(CloseReason::HandshakeTimeout { waiting_for: "hello" }),
            (RawStage::Features, _) => {
                Err(CloseReason::HandshakeTimeout { waiting_for: "features reply" })
            }
            (RawStage::Open, true) => Err(CloseReason::Dead),
            (RawStage::Open, false) => {
                (self.since, self.echoed) = (now, true);
                match self.echo(out) {
                    Ok(_) | Err(EncodeError::Full) => Ok(()),
                    Err(error) => Err(CloseReason::CannotWrite(error)),
                }
            }
        }
    }

    /// Sends an echo request at once, to check whether the switch is alive. The answer is
    /// [`RawSessionEvent::ProbeAnswered`]. A second probe replaces the first.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn probe(&mut self, out: &mut Out) -> Result<(), EncodeError> {
        self.probe = Some(self.echo(out)?);
        Ok(())
    }

    fn echo(&mut self, out: &mut Out) -> Result<u32, EncodeError> {
        let number = self.echoes.wrapping_add(1);
        let mut payload = [0; ECHO_MARK.len() + size_of::<u32>()];
        let (mark, count) = payload.split_at_mut(ECHO_MARK.len());
        mark.copy_from_slice(&ECHO_MARK);
        count.copy_from_slice(&number.to_be_bytes());
        ToSwitch::EchoRequest(Bytes(&payload)).encode(self.version, number, out)?;
        self.echoes = number;
        Ok(number)
    }

    /// The agreed version; before, the highest of this end.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the features have come.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.stage == RawStage::Open
    }
}

const _: () = {
    let mut place = 0;
    while place < Version::ALL.len() {
        let version = Version::ALL[place];
        assert!(matches!(MessageKind::EchoRequest.wire(version), Some(ECHO_REQUEST)));
        assert!(matches!(MessageKind::EchoReply.wire(version), Some(ECHO_REPLY)));
        place += 1;
    }
};
