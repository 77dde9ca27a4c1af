//! The switch's end of a connection: for the emulator, the load generator and tests.
//!
//! It sends a hello and answers what a [`SwitchDescription`] can answer: echo, features, config,
//! barrier, description, port descriptions. Everything else is left to the caller: the session has
//! no flow tables, buffers or packets. [`SwitchSession::send`] writes the switch's own messages.
//!
//! It has no timers: a switch waits for its controller.

use bellrock_openflow::{
    ConfigFlags, DecodeError, DescBuf, EncodeError, ErrorCode, Features, FromSwitch, Hello, List,
    MessageFrame, MessageKind, MultipartReply, MultipartRequest, Out, PortDesc, Reason, ReplyBody,
    RequestBody, SwitchConfig, ToSwitch, Version, Versions, frame,
};

use crate::close::{CloseReason, Stop};
use crate::description::SwitchDescription;
use crate::hello::{self, ERROR, write_error};
use crate::xid;

/// Default number of bytes of a packet that go to the controller on a table miss
/// (`OFP_DEFAULT_MISS_SEND_LEN`; 1.0 §5.3.2, 1.3.5 §7.3.2).
pub const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// Number of ports in one part of a port description: 64 bytes each, below the 64 KiB of a message.
const PORTS_PER_PART: usize = 1000;

/// An event of the switch's end. Borrows from the received bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum SwitchSessionEvent<'b> {
    /// The session has processed the message.
    Nothing,
    /// `out` has no space for the session's answer. Nothing was consumed or changed: empty `out`,
    /// and call again with the same bytes.
    OutFull,
    /// A version is agreed on. The controller requests what it needs.
    Ready,
    /// The controller configured the switch: see [`SwitchSession::config`].
    Configured,
    /// A message that the caller must process, and answer if it is a request.
    Message {
        /// Its xid, also for the reply and errors.
        xid: u32,
        /// The message.
        body: ToSwitch<'b>,
    },
    /// A message that cannot be decoded. It was answered, unless it is an error.
    Malformed {
        /// Its xid.
        xid: u32,
        /// The error in it.
        error: DecodeError,
    },
}

/// The switch's end of a connection.
#[derive(Debug)]
pub struct SwitchSession {
    description: SwitchDescription,
    versions: Versions,
    ready: bool,
    config: SwitchConfig,
    xids: xid::XidSource,
}

impl SwitchSession {
    /// Starts a connection: writes a hello.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn new(
        description: SwitchDescription,
        versions: Versions,
        out: &mut Out,
    ) -> Result<Self, EncodeError> {
        let mut xids = xid::XidSource::default();
        Hello::write(versions, xids.next(xid::SESSION), out)?;
        let description = SwitchDescription { version: versions.highest(), ..description };
        let (flags, miss_send_len) = (ConfigFlags::empty(), DEFAULT_MISS_SEND_LEN);
        let config = SwitchConfig { flags, miss_send_len };
        Ok(SwitchSession { description, versions, ready: false, config, xids })
    }

    /// Processes the next message of `stream`, which has all received bytes that are not consumed
    /// yet. Returns its length and its event; `Ok(None)` if more bytes are needed.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn next<'b>(
        &mut self,
        stream: &'b [u8],
        out: &mut Out,
    ) -> Result<Option<(usize, SwitchSessionEvent<'b>)>, CloseReason> {
        let message = if self.ready {
            frame(stream).map_err(CloseReason::BadLength)?
        } else {
            hello::first_message(stream)?
        };
        let Some(message) = message else { return Ok(None) };
        let mark = out.len();
        match self.message(message, out) {
            Ok(event) => Ok(Some((message.bytes.len(), event))),
            Err(Stop::Close(close)) => Err(close),
            Err(Stop::Full) if mark == 0 => Err(CloseReason::CannotWrite(EncodeError::Full)),
            Err(Stop::Full) => {
                out.truncate(mark);
                Ok(Some((0, SwitchSessionEvent::OutFull)))
            }
        }
    }

    /// The agreed version; before, the highest of this end.
    #[must_use]
    pub fn version(&self) -> Version {
        self.description.version
    }

    /// Whether a version is agreed on.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// The configuration that the controller set.
    #[must_use]
    pub fn config(&self) -> SwitchConfig {
        self.config
    }

    /// Changes the answer to a config request: another controller may have configured the switch,
    /// or the switch refuses a part of the request.
    pub fn set_config(&mut self, config: SwitchConfig) {
        self.config = config;
    }

    /// Its description.
    #[must_use]
    pub fn description(&self) -> &SwitchDescription {
        &self.description
    }

    /// Its description, to change it. The caller reports changed ports to the controller with a
    /// port_status.
    pub fn description_mut(&mut self) -> &mut SwitchDescription {
        &mut self.description
    }

    /// A new xid for a message that the switch sends on its own.
    pub fn next_xid(&mut self) -> u32 {
        self.xids.next(xid::SESSION)
    }

    /// Writes a message, such as a packet_in (xid 0), or a reply (xid of the request).
    ///
    /// # Errors
    /// [`EncodeError`]. `out` then has no part of the message.
    #[inline]
    pub fn send(
        &self,
        xid: u32,
        message: &FromSwitch<'_>,
        out: &mut Out,
    ) -> Result<(), EncodeError> {
        message.encode(self.version(), xid, out)
    }

    fn message<'b>(
        &mut self,
        message: MessageFrame<'b>,
        out: &mut Out,
    ) -> Result<SwitchSessionEvent<'b>, Stop> {
        if !self.ready {
            self.description.version = hello::agree(message, self.versions, out)?;
            self.ready = true;
            return Ok(SwitchSessionEvent::Ready);
        }
        if let Some(refused) = hello::refusal(message) {
            return Err(refused.into());
        }
        let xid = message.header.xid;
        match self.decode(message) {
            Ok(body) => self.dispatch(xid, body, out),
            Err(error) => {
                if message.header.kind != ERROR {
                    write_error(self.version(), message, error.answer, out)?;
                }
                Ok(SwitchSessionEvent::Malformed { xid, error })
            }
        }
    }

    fn decode<'b>(&self, message: MessageFrame<'b>) -> Result<ToSwitch<'b>, DecodeError> {
        if message.header.version != self.version().wire() {
            return Err(DecodeError {
                what: "header.version",
                offset: 0,
                reason: Reason::Version(message.header.version),
                answer: ErrorCode::RequestBadVersion,
            });
        }
        ToSwitch::decode(message.bytes).map(|decoded| decoded.body)
    }

    fn dispatch<'b>(
        &mut self,
        xid: u32,
        body: ToSwitch<'b>,
        out: &mut Out,
    ) -> Result<SwitchSessionEvent<'b>, Stop> {
        let answer = match body {
            ToSwitch::Hello(_) => return Ok(SwitchSessionEvent::Nothing),
            ToSwitch::EchoRequest(payload) => FromSwitch::EchoReply(payload),
            ToSwitch::FeaturesRequest => FromSwitch::FeaturesReply(self.features()),
            ToSwitch::GetConfigRequest => FromSwitch::GetConfigReply(self.config),
            ToSwitch::BarrierRequest => FromSwitch::BarrierReply,
            ToSwitch::MultipartRequest(MultipartRequest { body: RequestBody::Desc, .. }) => {
                return self.describe(xid, out);
            }
            ToSwitch::MultipartRequest(MultipartRequest {
                body: RequestBody::PortDesc, ..
            }) => {
                return self.ports(xid, out);
            }
            ToSwitch::SetConfig(config) => {
                self.config = config;
                return Ok(SwitchSessionEvent::Configured);
            }
            body => return Ok(SwitchSessionEvent::Message { xid, body }),
        };
        self.send(xid, &answer, out)?;
        Ok(SwitchSessionEvent::Nothing)
    }

    fn features(&self) -> Features<'_> {
        let switch = &self.description;
        let ports = match switch.version.has_port_desc() {
            true => List::empty(),
            false => List::of(&switch.ports),
        };
        Features {
            datapath_id: switch.datapath_id,
            n_buffers: switch.n_buffers,
            n_tables: switch.n_tables,
            auxiliary_id: switch.auxiliary_id,
            capabilities: switch.capabilities,
            actions: switch.actions,
            ports,
        }
    }

    fn describe<'b>(&self, xid: u32, out: &mut Out) -> Result<SwitchSessionEvent<'b>, Stop> {
        let switch = &self.description;
        let texts = DescBuf::new(
            &switch.manufacturer,
            &switch.hardware,
            &switch.software,
            &switch.serial_number,
            &switch.datapath,
        );
        let reply = MultipartReply::of(ReplyBody::Desc(texts.view()));
        self.send(xid, &FromSwitch::MultipartReply(reply), out)?;
        Ok(SwitchSessionEvent::Nothing)
    }

    /// Writes all ports, in as many parts as needed. A switch without ports sends one empty part.
    fn ports<'b>(&self, xid: u32, out: &mut Out) -> Result<SwitchSessionEvent<'b>, Stop> {
        let mut rest: &[PortDesc] = &self.description.ports;
        loop {
            let (part, left) = rest.split_at(rest.len().min(PORTS_PER_PART));
            rest = left;
            let (more, body) = (!rest.is_empty(), ReplyBody::PortDesc(List::of(part)));
            self.send(xid, &FromSwitch::MultipartReply(MultipartReply { more, body }), out)?;
            if rest.is_empty() {
                return Ok(SwitchSessionEvent::Nothing);
            }
        }
    }
}

const _: () = {
    let mut place = 0;
    while place < Version::ALL.len() {
        assert!(matches!(MessageKind::Error.wire(Version::ALL[place]), Some(ERROR)));
        place += 1;
    }
};
