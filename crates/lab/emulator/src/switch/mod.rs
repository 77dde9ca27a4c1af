//! The OpenFlow end of a switch: its datapath, with a channel to each controller.
//!
//! # What it is
//! Bytes from controllers, frames from links and the time go into an [`EmulatedSwitch`]; bytes for
//! controllers and frames for links come out. It carries out requests one after the other as it
//! reads them. So when it answers a barrier, all earlier requests are done and answered.
//!
//! # What it is not
//! It has no socket and no clock. [`crate::datapath`] decides what flows do to packets; the crate
//! `session` handles hello, echo and the framing of messages.
//!
//! # Several controllers
//! A switch has up to [`MAX_CHANNELS`] controllers, all with the version of the first one. A
//! controller with another version is refused (`OFPHFC_INCOMPATIBLE`): a flow table means different
//! things (table misses, the order of matches), and 1.0 cannot express what 1.3 sets up. Flows stay
//! in use after all controllers have gone, until a controller brings another version: then the
//! switch starts with empty tables.
//!
//! # Bounds
//! If a controller does not read, the switch pauses first ([`PAUSE_BYTES`]): packet_ins for it are
//! dropped and counted, and its requests wait. If too many bytes wait all the same
//! ([`CLOSE_BYTES`], [`INPUT_BYTES`]), the connection closes.

mod channel;
mod messages;
mod misreport;
mod notices;
mod outbox;
mod replies;
mod roles;
mod settings;
mod statistics;
mod tables;
#[cfg(test)]
mod tests;
mod unanswered;

use std::time::Duration;

use bellrock_openflow::{
    Bytes, FromSwitch, MAX_MESSAGE_LEN, MultipartKind, Out, RoleKind, Version,
};
use bellrock_session::{self as session, SwitchDescription, Versions, switch::SwitchSessionEvent};

use channel::ControllerChannel;
pub use channel::{CLOSE_BYTES, ChannelId, INPUT_BYTES, PAUSE_BYTES, REQUEST_PARTS_BYTES};
pub use misreport::Misreport;
pub(crate) use settings::set_rate;
pub use settings::{SwitchSettings, port_desc};
pub use unanswered::Unanswered;

use crate::datapath::{DEFAULT_CONFIG, Datapath, DatapathSettings, Effects};
use crate::packet::EthernetFrame;

/// Maximum number of controllers of a switch at a time; more are refused.
pub const MAX_CHANNELS: usize = 16;

/// Why a connection to a controller must be closed. Try once to send the bytes in
/// [`EmulatedSwitch::output`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelClose {
    /// The session cannot go on.
    #[error(transparent)]
    Session(#[from] session::CloseReason),
    /// Another controller uses another version.
    #[error(
        "the switch speaks OpenFlow {used} with another controller, and {requested} with this one; use one version"
    )]
    OtherVersion {
        /// The version of the other controllers.
        used: Version,
        /// The version of this controller.
        requested: Version,
    },
    /// The controller does not read.
    #[error(
        "the controller does not read, and {waiting} bytes wait for it; restart it, or send fewer requests"
    )]
    NotReading {
        /// Bytes that wait for it.
        waiting: usize,
    },
    /// It sends requests faster than it reads the answers.
    #[error(
        "the controller does not read its replies, and {waiting} bytes of its requests wait; read faster"
    )]
    TooManyRequests {
        /// Bytes of requests that wait.
        waiting: usize,
    },
}

/// A switch has its maximum number of controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the switch has {MAX_CHANNELS} controllers, its maximum")]
pub struct TooManyControllers;

/// A switch's counters for its controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Messages read, including hellos.
    pub messages: u64,
    /// Errors sent.
    pub errors: u64,
    /// Packet_ins queued for a controller.
    pub packet_ins: u64,
    /// Packet_ins dropped because too many bytes waited for their controller.
    pub packet_ins_dropped: u64,
    /// Notices that a controller's version cannot express, such as a port with too high a number.
    pub unsayable: u64,
}

/// A switch with its channels. See [the module](self).
#[derive(Debug)]
pub struct EmulatedSwitch {
    datapath: Datapath,
    /// Its description; the ports come from the datapath.
    description: SwitchDescription,
    versions: Versions,
    channels: Vec<ControllerChannel>,
    next_channel: u64,
    /// The newest generation of a controller's election (1.3.5 §6.3.4).
    generation: Option<u64>,
    counters: SwitchCounters,
    /// Entries of flow statistics that are appended to its own.
    reported_beside: Vec<u8>,
    misreport: Option<Misreport>,
    /// Buffer for a message before it goes to its outbox.
    scratch: Out,
    /// Multipart requests that it does not answer as it should.
    unanswered: Vec<(MultipartKind, Unanswered)>,
}

impl EmulatedSwitch {
    /// A switch without controllers.
    #[must_use]
    pub fn new(settings: SwitchSettings) -> Self {
        let description = SwitchDescription {
            n_tables: settings.tables,
            manufacturer: "Bellrock".into(),
            hardware: "emulated".into(),
            software: env!("CARGO_PKG_VERSION").into(),
            serial_number: settings.dpid.to_string().into(),
            datapath: settings.name,
            ..SwitchDescription::new(settings.dpid)
        };
        // The longest answer is the session's, with all ports in several parts.
        let ports_bytes = settings.ports.len() * PORT_BYTES;
        let scratch = Out::with_capacity(2 * MAX_MESSAGE_LEN + ports_bytes);
        let datapath = Datapath::new(
            DatapathSettings {
                ports: settings.ports,
                queues: settings.queues,
                tables: settings.tables,
                table_capacity: settings.table_capacity,
                buffers: settings.n_buffers,
                rules: settings.versions.highest(),
            },
            settings.started,
        );
        EmulatedSwitch {
            description: SwitchDescription { n_buffers: datapath.buffers(), ..description },
            datapath,
            versions: settings.versions,
            channels: Vec::new(),
            next_channel: 0,
            generation: None,
            counters: SwitchCounters::default(),
            reported_beside: Vec::new(),
            misreport: None,
            scratch,
            unanswered: Vec::new(),
        }
    }

    /// Refuses actions that output to FLOOD from now on.
    pub fn refuse_flood(&mut self) {
        self.datapath.refuse_flood();
    }

    /// Appends these entries to its flow statistics from now on, unchanged, for every request. They
    /// stand for flows that were installed without OpenFlow, with matches that OpenFlow does not
    /// allow. They must have the form of the agreed version, and fit one message together.
    pub fn report_beside(&mut self, entries: &[u8]) {
        self.reported_beside = entries.to_vec();
    }

    /// Its datapath id.
    #[must_use]
    pub fn dpid(&self) -> u64 {
        self.description.datapath_id
    }

    /// Its forwarding, for reading.
    #[must_use]
    pub fn datapath(&self) -> &Datapath {
        &self.datapath
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> SwitchCounters {
        self.counters
    }

    /// Opens a channel to a controller: the first bytes are in [`EmulatedSwitch::output`].
    ///
    /// # Errors
    /// [`TooManyControllers`]: the switch has [`MAX_CHANNELS`] controllers.
    pub fn connect(&mut self) -> Result<ChannelId, TooManyControllers> {
        if self.channels.len() >= MAX_CHANNELS {
            return Err(TooManyControllers);
        }
        let used = self.version_in_use();
        let versions = used.map_or(self.versions, Versions::only);
        self.scratch.clear();
        // A hello fits into an empty buffer.
        let session =
            session::SwitchSession::new(self.description.clone(), versions, &mut self.scratch)
                .map_err(|_| TooManyControllers)?;
        let id = ChannelId(self.next_channel);
        self.next_channel += 1;
        let mut channel = ControllerChannel::new(id, session);
        channel.outbox.append(self.scratch.as_slice());
        self.channels.push(channel);
        Ok(id)
    }

    /// Removes a channel whose connection is closed or lost. Flows stay.
    pub fn disconnect(&mut self, channel: ChannelId) {
        self.channels.retain(|known| known.id != channel);
    }

    /// The open channels, the oldest first.
    pub fn channels(&self) -> impl Iterator<Item = ChannelId> {
        self.channels.iter().map(|channel| channel.id)
    }

    /// Whether a version is agreed on this channel.
    #[must_use]
    pub fn is_ready(&self, channel: ChannelId) -> bool {
        self.channel(channel).is_some_and(|channel| channel.session.is_ready())
    }

    /// The version that is agreed on this channel.
    #[must_use]
    pub fn version(&self, channel: ChannelId) -> Option<Version> {
        let channel = self.channel(channel)?;
        channel.session.is_ready().then(|| channel.version())
    }

    /// Sends an echo request to a controller (1.0 §5.5.2; 1.3.5 §7.5.2), as switches do after a
    /// long silence. The caller sees bytes arrive, and takes any as an answer. Does nothing before
    /// a version is agreed.
    pub fn ask_echo(&mut self, channel: ChannelId) {
        let Some(index) = self.index(channel) else { return };
        let session = &mut self.channels[index].session;
        if session.is_ready() {
            self.scratch.clear();
            let xid = session.next_xid();
            // An echo fits into an empty buffer.
            let _ = session.send(xid, &FromSwitch::EchoRequest(Bytes(&[])), &mut self.scratch);
            self.flush(index);
        }
    }

    /// Sets its versions for channels that are opened from now on.
    pub fn set_versions(&mut self, versions: Versions) {
        self.versions = versions;
    }

    /// The role of a controller.
    #[must_use]
    pub fn role(&self, channel: ChannelId) -> Option<RoleKind> {
        self.channel(channel).map(|channel| channel.role)
    }

    /// Takes bytes from a controller, in any portions. For a closed channel it does nothing.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn control(
        &mut self,
        channel: ChannelId,
        bytes: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ChannelClose> {
        let Some(index) = self.index(channel) else { return Ok(()) };
        if self.channels[index].input.is_empty() {
            let used = self.read(index, bytes, now, effects)?;
            self.channels[index].input.extend_from_slice(&bytes[used..]);
        } else {
            self.channels[index].input.extend_from_slice(bytes);
            self.go_on(index, now, effects)?;
        }
        let waiting = self.channels[index].input.len();
        if waiting > INPUT_BYTES {
            return Err(ChannelClose::TooManyRequests { waiting });
        }
        Ok(())
    }

    /// Whether to read more bytes from this controller. If not, its requests wait until it has read
    /// some of the output; the owner of the socket stops reading.
    #[must_use]
    pub fn wants_input(&self, channel: ChannelId) -> bool {
        self.channel(channel).is_some_and(ControllerChannel::is_reading)
    }

    /// The bytes that wait for a controller.
    #[must_use]
    pub fn output(&self, channel: ChannelId) -> &[u8] {
        self.channel(channel).map_or(&[], |channel| channel.outbox.as_slice())
    }

    /// The first `n` bytes of [`EmulatedSwitch::output`] were sent. Requests that waited for this
    /// are carried out, so there may be more output afterwards.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn sent(
        &mut self,
        channel: ChannelId,
        n: usize,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ChannelClose> {
        let Some(index) = self.index(channel) else { return Ok(()) };
        self.channels[index].outbox.consume(n);
        self.go_on(index, now, effects)
    }

    /// A channel that must be closed because a message that its controller must not miss could not
    /// be queued. Call this after every event until it returns `None`.
    #[must_use]
    pub fn overrun(&self) -> Option<(ChannelId, ChannelClose)> {
        let overrun = self.channels.iter().find(|channel| channel.overrun)?;
        Some((overrun.id, ChannelClose::NotReading { waiting: overrun.outbox.len() }))
    }

    /// Receives a frame by a port.
    pub fn frame(&mut self, port: u32, frame: EthernetFrame, now: Duration, effects: &mut Effects) {
        self.datapath.receive(port, frame, now, effects);
        self.send_notices(None, effects);
    }

    /// Sets whether a port's link is up.
    pub fn set_link(&mut self, port: u32, up: bool, effects: &mut Effects) {
        self.datapath.link(port, up, effects);
        self.send_notices(None, effects);
    }

    /// Removes the flows whose timeouts have expired by `now`.
    pub fn timers(&mut self, now: Duration, effects: &mut Effects) {
        self.datapath.timers(now, effects);
        self.send_notices(None, effects);
    }

    /// Earliest time at which [`EmulatedSwitch::timers`] has work.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.datapath.next_timer()
    }

    /// Restarts the switch: all connections are lost, and without `keep_tables` also the flows,
    /// groups, meters and buffered packets. Ports and links stay.
    pub fn restart(&mut self, keep_tables: bool) {
        self.channels.clear();
        self.generation = None;
        if !keep_tables {
            self.datapath.clear();
        }
        let rules = self.datapath.rules();
        // Without flags nothing is refused.
        let _ = self.datapath.set_config(rules, &DEFAULT_CONFIG);
    }

    fn channel(&self, id: ChannelId) -> Option<&ControllerChannel> {
        self.channels.iter().find(|channel| channel.id == id)
    }

    fn index(&self, id: ChannelId) -> Option<usize> {
        self.channels.iter().position(|channel| channel.id == id)
    }

    /// The version that controllers use now.
    fn version_in_use(&self) -> Option<Version> {
        self.channels
            .iter()
            .find(|channel| channel.session.is_ready())
            .map(ControllerChannel::version)
    }

    /// Handles a controller's waiting bytes.
    fn go_on(
        &mut self,
        index: usize,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), ChannelClose> {
        let mut input = std::mem::take(&mut self.channels[index].input);
        let used = self.read(index, &input, now, effects)?;
        input.drain(..used);
        if !input.is_empty() {
            self.channels[index].input = input;
        }
        Ok(())
    }

    /// Handles whole messages while the controller reads the answers. Returns the number of bytes
    /// used.
    fn read(
        &mut self,
        index: usize,
        bytes: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) -> Result<usize, ChannelClose> {
        let mut used = 0;
        while self.channels[index].is_reading() {
            self.scratch.clear();
            let read = self.next(index, &bytes[used..], now, effects);
            // Also when the connection ends: this tells the controller why.
            self.flush(index);
            self.send_notices(Some(index), effects);
            let Some(len) = read? else { break };
            self.counters.messages += 1;
            used += len;
        }
        Ok(used)
    }

    /// Moves the written bytes to the outbox of a channel.
    fn flush(&mut self, index: usize) {
        self.channels[index].outbox.append(self.scratch.as_slice());
        self.scratch.clear();
    }

    /// Handles one message. Returns its length, or `None` if it is incomplete.
    fn next(
        &mut self,
        index: usize,
        stream: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) -> Result<Option<usize>, ChannelClose> {
        if let Some(len) = self.set_config(index, stream)? {
            return Ok(Some(len));
        }
        let session = &mut self.channels[index].session;
        let Some((len, event)) = session.next(stream, &mut self.scratch)? else {
            return Ok(None);
        };
        match event {
            SwitchSessionEvent::Ready => self.ready(index)?,
            SwitchSessionEvent::Message { xid, body } => {
                let request = RequestContext { xid, bytes: &stream[..len] };
                self.message(index, request, body, now, effects)?;
            }
            SwitchSessionEvent::Malformed { .. } => self.counters.errors += 1,
            _ => {}
        }
        Ok(Some(len))
    }
}

/// Maximum bytes of a port in a reply of the session, with some for the headers of its parts.
const PORT_BYTES: usize = 72;

/// The message that is handled: its data for errors.
#[derive(Clone, Copy)]
struct RequestContext<'a> {
    xid: u32,
    bytes: &'a [u8],
}
