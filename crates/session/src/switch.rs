//! The switch's end of one connection: for the emulator, the load generator and tests.
//!
//! It says hello and answers what can be answered from a [`SwitchDescription`]: echo, features,
//! config, barrier, description, port descriptions. Everything else is the caller's: the session
//! has no flow tables, buffers or packets. What the switch sends by itself is written by
//! [`Switch::send`].
//!
//! It has no timers: a switch waits for its controller.

use bellrock_openflow::{
    ConfigFlags, DecodeError, DescBuf, EncodeError, ErrorCode, Features, Frame, FromSwitch, Hello,
    List, MessageKind, MultipartReply, MultipartRequest, Out, PortDesc, Reason, ReplyBody,
    RequestBody, SwitchConfig, ToSwitch, Version, frame,
};

use crate::close::{Close, Stop};
use crate::description::SwitchDescription;
use crate::hello::{self, ERROR, write_error};
use crate::settings::Versions;
use crate::xid;

/// Bytes of a packet that go to the controller on a table miss until it says otherwise
/// (`OFP_DEFAULT_MISS_SEND_LEN`; 1.0 §5.3.2, 1.3.5 §7.3.2).
pub const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// Ports in one part of a port description: 64 bytes each, below the 64 KiB of a message.
const PORTS_PER_PART: usize = 1000;

/// What happens on the switch's end. Borrows from the received bytes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'b> {
    /// The session dealt with it.
    Nothing,
    /// `out` has no room for the session's answer. Nothing was consumed and nothing has changed:
    /// empty `out`, and call again with the same bytes.
    OutFull,
    /// A version is agreed on. What the controller wants to know, it asks.
    Ready,
    /// The controller set the switch up; [`Switch::config`] has it.
    Configured,
    /// A message that is the caller's to deal with, and to answer where it is a request.
    Message {
        /// Its xid: the reply and errors have the same.
        xid: u32,
        /// What it says.
        body: ToSwitch<'b>,
    },
    /// A message that cannot be read. It was answered, unless it is an error itself.
    Malformed {
        /// Its xid.
        xid: u32,
        /// What is wrong with it.
        error: DecodeError,
    },
}

/// The switch's end of one connection.
#[derive(Debug)]
pub struct Switch {
    description: SwitchDescription,
    versions: Versions,
    ready: bool,
    config: SwitchConfig,
    xids: xid::Counter,
}

impl Switch {
    /// Starts a connection: writes our hello.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn new(
        description: SwitchDescription,
        versions: Versions,
        out: &mut Out,
    ) -> Result<Self, EncodeError> {
        let mut xids = xid::Counter::default();
        Hello::write(versions.as_slice(), xids.next(xid::SESSION), out)?;
        let description = SwitchDescription { version: versions.highest(), ..description };
        let (flags, miss_send_len) = (ConfigFlags::empty(), DEFAULT_MISS_SEND_LEN);
        let config = SwitchConfig { flags, miss_send_len };
        Ok(Switch { description, versions, ready: false, config, xids })
    }

    /// Takes the next message off `stream`, all bytes that were received and are not consumed yet.
    /// Says how many bytes it was and what it meant; `Ok(None)` means that more are needed.
    ///
    /// # Errors
    /// The connection has to be closed.
    pub fn next<'b>(
        &mut self,
        stream: &'b [u8],
        out: &mut Out,
    ) -> Result<Option<(usize, Event<'b>)>, Close> {
        let message = if self.ready {
            frame(stream).map_err(Close::BadLength)?
        } else {
            hello::first_message(stream)?
        };
        let Some(message) = message else { return Ok(None) };
        let mark = out.len();
        match self.message(message, out) {
            Ok(event) => Ok(Some((message.bytes.len(), event))),
            Err(Stop::Close(close)) => Err(close),
            Err(Stop::Full) if mark == 0 => Err(Close::CannotWrite(EncodeError::Full)),
            Err(Stop::Full) => {
                out.truncate(mark);
                Ok(Some((0, Event::OutFull)))
            }
        }
    }

    /// The version agreed on. Before that, the highest that is spoken here.
    #[must_use]
    pub fn version(&self) -> Version {
        self.description.version
    }

    /// Whether a version is agreed on.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready
    }

    /// How the controller has set the switch up.
    #[must_use]
    pub fn config(&self) -> SwitchConfig {
        self.config
    }

    /// Changes what a controller is told that asks how the switch is set up: another one may have
    /// set it up, or the switch refuses a part of what was asked for.
    pub fn set_config(&mut self, config: SwitchConfig) {
        self.config = config;
    }

    /// What it says of itself.
    #[must_use]
    pub fn description(&self) -> &SwitchDescription {
        &self.description
    }

    /// To change what it says of itself. The caller tells the controller of ports that change, by
    /// a port_status.
    pub fn description_mut(&mut self) -> &mut SwitchDescription {
        &mut self.description
    }

    /// A new xid of the switch's own, for what it sends without being asked.
    pub fn next_xid(&mut self) -> u32 {
        self.xids.next(xid::SESSION)
    }

    /// Writes a message, such as a packet_in (xid 0), or a reply (xid of the request).
    ///
    /// # Errors
    /// [`EncodeError`]; nothing of the message is in `out` then.
    #[inline]
    pub fn send(
        &self,
        xid: u32,
        message: &FromSwitch<'_>,
        out: &mut Out,
    ) -> Result<(), EncodeError> {
        message.encode(self.version(), xid, out)
    }

    fn message<'b>(&mut self, message: Frame<'b>, out: &mut Out) -> Result<Event<'b>, Stop> {
        if !self.ready {
            self.description.version = hello::agree(message, self.versions, out)?;
            self.ready = true;
            return Ok(Event::Ready);
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
                Ok(Event::Malformed { xid, error })
            }
        }
    }

    fn decode<'b>(&self, message: Frame<'b>) -> Result<ToSwitch<'b>, DecodeError> {
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
    ) -> Result<Event<'b>, Stop> {
        let answer = match body {
            ToSwitch::Hello(_) => return Ok(Event::Nothing),
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
                return Ok(Event::Configured);
            }
            body => return Ok(Event::Message { xid, body }),
        };
        self.send(xid, &answer, out)?;
        Ok(Event::Nothing)
    }

    fn features(&self) -> Features<'_> {
        let switch = &self.description;
        let v10 = switch.version == Version::V1_0;
        Features {
            datapath_id: switch.datapath_id,
            n_buffers: switch.n_buffers,
            n_tables: switch.n_tables,
            auxiliary_id: switch.auxiliary_id,
            capabilities: switch.capabilities,
            actions: switch.actions,
            ports: if v10 { List::of(&switch.ports) } else { List::empty() },
        }
    }

    fn describe<'b>(&self, xid: u32, out: &mut Out) -> Result<Event<'b>, Stop> {
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
        Ok(Event::Nothing)
    }

    /// All ports, in as many parts as it takes. A switch without ports sends one empty part.
    fn ports<'b>(&self, xid: u32, out: &mut Out) -> Result<Event<'b>, Stop> {
        let mut rest: &[PortDesc] = &self.description.ports;
        loop {
            let (part, left) = rest.split_at(rest.len().min(PORTS_PER_PART));
            rest = left;
            let (more, body) = (!rest.is_empty(), ReplyBody::PortDesc(List::of(part)));
            self.send(xid, &FromSwitch::MultipartReply(MultipartReply { more, body }), out)?;
            if rest.is_empty() {
                return Ok(Event::Nothing);
            }
        }
    }
}

const _: () = assert!(matches!(MessageKind::Error.wire(Version::V1_3), Some(ERROR)));
