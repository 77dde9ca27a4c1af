//! The OpenFlow end of a switch: its datapath, behind a channel to each controller.
//!
//! # What it is
//! A [`Switch`] takes bytes of its controllers, frames of its links and the time, and gives bytes
//! for its controllers and frames for its links. Requests are carried out one after the other as
//! they are read, so a barrier is answered when everything before it has happened and was answered.
//!
//! # What it is not
//! It has no socket and no clock. What flows do to packets is [`crate::datapath`]'s; hello, echo and
//! the framing of messages are those of crate `session`.
//!
//! # Several controllers
//! A switch has as many as [`MAX_CHANNELS`], all of one version: the first one's. A controller that
//! speaks another is refused (`OFPHFC_INCOMPATIBLE`), because what a flow table means depends on the
//! version (what a miss does, which match comes first), and what a controller of 1.3 sets up cannot
//! be told to one of 1.0. When the version changes, after all controllers have gone, the switch
//! starts with empty tables. When controllers go, its flows stay and do their work.
//!
//! # Bounds
//! A controller that does not read is spared first ([`PAUSE_BYTES`]): packet_ins for it are dropped
//! and counted, and its requests wait. When too much waits all the same ([`CLOSE_BYTES`],
//! [`INPUT_BYTES`]), its connection ends.

mod channel;
mod messages;
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
use bellrock_session::{self as session, SwitchDescription, Versions, switch::Event};

use channel::Channel;
pub use channel::{CLOSE_BYTES, ChannelId, INPUT_BYTES, PAUSE_BYTES, REQUEST_PARTS_BYTES};
pub(crate) use settings::set_rate;
pub use settings::{SwitchSettings, port_desc};
pub use unanswered::Unanswered;

use crate::datapath::{DEFAULT_CONFIG, Datapath, DatapathSettings, Effects};
use crate::packet::Frame;

/// Controllers that a switch has at a time. More are refused.
pub const MAX_CHANNELS: usize = 16;

/// Why a connection to a controller has to be closed. What stands in [`Switch::output`] by then
/// should be given one chance to be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Close {
    /// The session cannot go on.
    #[error(transparent)]
    Session(#[from] session::Close),
    /// Another controller is served in another version.
    #[error(
        "the switch is used in OpenFlow {used} by another controller, this one speaks {asked}; use one version"
    )]
    OtherVersion {
        /// The version of the others.
        used: Version,
        /// This controller's.
        asked: Version,
    },
    /// It does not read what it is sent.
    #[error(
        "{waiting} bytes wait for the controller and it does not read; bring it to life or its requests down"
    )]
    NotReading {
        /// Bytes that wait.
        waiting: usize,
    },
    /// It asks faster than it reads the answers.
    #[error(
        "{waiting} bytes of requests wait until the controller reads what it has asked for; let it read more"
    )]
    TooManyRequests {
        /// Bytes that wait.
        waiting: usize,
    },
}

/// A switch has no room for another controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the switch has {MAX_CHANNELS} controllers already, and that is its limit")]
pub struct NoRoom;

/// What a switch has done for its controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Messages read, hellos among them.
    pub messages: u64,
    /// Errors answered.
    pub errors: u64,
    /// Packet_ins given to a controller.
    pub packet_ins: u64,
    /// Packet_ins dropped because too much waited for their controller.
    pub packet_ins_dropped: u64,
    /// News that the version of a controller cannot say, such as of a port whose number is too high.
    pub unsayable: u64,
}

/// A switch with its channels. See [the module](self).
#[derive(Debug)]
pub struct Switch {
    datapath: Datapath,
    /// What it says of itself; the ports are the datapath's.
    description: SwitchDescription,
    versions: Versions,
    channels: Vec<Channel>,
    next_channel: u64,
    /// The newest election that a controller told of (1.3.5 §6.3.4).
    generation: Option<u64>,
    counters: SwitchCounters,
    /// Entries of flow statistics that it reports behind its own.
    reported_beside: Vec<u8>,
    /// Where each message is written before it goes to its outbox.
    scratch: Out,
    /// Questions that it does not answer as it should.
    unanswered: Vec<(MultipartKind, Unanswered)>,
}

impl Switch {
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
        // The longest answer is that of a session with all ports in it, in several parts.
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
        Switch {
            description: SwitchDescription { n_buffers: datapath.buffers(), ..description },
            datapath,
            versions: settings.versions,
            channels: Vec::new(),
            next_channel: 0,
            generation: None,
            counters: SwitchCounters::default(),
            reported_beside: Vec::new(),
            scratch,
            unanswered: Vec::new(),
        }
    }

    /// From now on it refuses actions that send to FLOOD.
    pub fn refuse_flood(&mut self) {
        self.datapath.refuse_flood();
    }

    /// From now on it reports these entries of flow statistics behind its own, as they are, whatever flows it
    /// is asked for: flows that were put there by other ways than OpenFlow, with matches that OpenFlow does not
    /// allow. They are in the form of the version that is spoken, and together fit one message.
    pub fn report_beside(&mut self, entries: &[u8]) {
        self.reported_beside = entries.to_vec();
    }

    /// Its datapath id.
    #[must_use]
    pub fn dpid(&self) -> u64 {
        self.description.datapath_id
    }

    /// Its forwarding, to be looked at.
    #[must_use]
    pub fn datapath(&self) -> &Datapath {
        &self.datapath
    }

    /// What it has done for its controllers.
    #[must_use]
    pub fn counters(&self) -> SwitchCounters {
        self.counters
    }

    /// Opens a channel to a controller: its first bytes stand in [`Switch::output`].
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn connect(&mut self) -> Result<ChannelId, NoRoom> {
        if self.channels.len() >= MAX_CHANNELS {
            return Err(NoRoom);
        }
        let used = self.version_in_use();
        let versions = used.map_or(self.versions, Versions::Only);
        self.scratch.clear();
        // There is room for a hello in an empty buffer.
        let session = session::Switch::new(self.description.clone(), versions, &mut self.scratch)
            .map_err(|_| NoRoom)?;
        let id = ChannelId(self.next_channel);
        self.next_channel += 1;
        let mut channel = Channel::new(id, session);
        channel.outbox.append(self.scratch.as_slice());
        self.channels.push(channel);
        Ok(id)
    }

    /// Forgets a channel: its connection is closed, or lost. Flows stay.
    pub fn disconnect(&mut self, channel: ChannelId) {
        self.channels.retain(|known| known.id != channel);
    }

    /// The channels that are open, the oldest first.
    pub fn channels(&self) -> impl Iterator<Item = ChannelId> {
        self.channels.iter().map(|channel| channel.id)
    }

    /// Whether a controller has agreed on a version over this channel.
    #[must_use]
    pub fn is_ready(&self, channel: ChannelId) -> bool {
        self.channel(channel).is_some_and(|channel| channel.session.is_ready())
    }

    /// The version that a controller has agreed on over this channel.
    #[must_use]
    pub fn version(&self, channel: ChannelId) -> Option<Version> {
        let channel = self.channel(channel)?;
        channel.session.is_ready().then(|| channel.version())
    }

    /// Asks a controller for an echo (1.0 §5.5.2; 1.3.5 §7.5.2), as switches do that have not heard
    /// of it for long. Whoever has the connection knows when bytes come, and so takes any for an
    /// answer. Before a version is agreed on there is nothing to ask by.
    pub fn ask_echo(&mut self, channel: ChannelId) {
        let Some(index) = self.index(channel) else { return };
        let session = &mut self.channels[index].session;
        if session.is_ready() {
            self.scratch.clear();
            let xid = session.next_xid();
            // There is room for an echo in an empty buffer.
            let _ = session.send(xid, &FromSwitch::EchoRequest(Bytes(&[])), &mut self.scratch);
            self.flush(index);
        }
    }

    /// The versions that it speaks over channels that are opened from now on.
    pub fn set_versions(&mut self, versions: Versions) {
        self.versions = versions;
    }

    /// The role of a controller.
    #[must_use]
    pub fn role(&self, channel: ChannelId) -> Option<RoleKind> {
        self.channel(channel).map(|channel| channel.role)
    }

    /// Takes bytes from a controller, in any portions. Nothing is done for a channel that is closed.
    ///
    /// # Errors
    /// The connection has to be closed.
    pub fn control(
        &mut self,
        channel: ChannelId,
        bytes: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Close> {
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
            return Err(Close::TooManyRequests { waiting });
        }
        Ok(())
    }

    /// Whether more bytes of this controller are welcome. When not, its requests wait until it has
    /// read some of what it is sent; who drives sockets stops reading.
    #[must_use]
    pub fn wants_input(&self, channel: ChannelId) -> bool {
        self.channel(channel).is_some_and(Channel::is_reading)
    }

    /// The bytes that wait for a controller.
    #[must_use]
    pub fn output(&self, channel: ChannelId) -> &[u8] {
        self.channel(channel).map_or(&[], |channel| channel.outbox.as_slice())
    }

    /// The first `n` bytes of [`Switch::output`] are sent. Requests that waited for that are carried
    /// out, so there may be more output afterwards.
    ///
    /// # Errors
    /// The connection has to be closed.
    pub fn sent(
        &mut self,
        channel: ChannelId,
        n: usize,
        now: Duration,
        effects: &mut Effects,
    ) -> Result<(), Close> {
        let Some(index) = self.index(channel) else { return Ok(()) };
        self.channels[index].outbox.consume(n);
        self.go_on(index, now, effects)
    }

    /// A channel that has to be closed though its controller did nothing: what it must not miss
    /// could not be kept for it. To be asked after every event, until there is none.
    #[must_use]
    pub fn overrun(&self) -> Option<(ChannelId, Close)> {
        let overrun = self.channels.iter().find(|channel| channel.overrun)?;
        Some((overrun.id, Close::NotReading { waiting: overrun.outbox.len() }))
    }

    /// A frame comes in by a port.
    pub fn frame(&mut self, port: u32, frame: Frame, now: Duration, effects: &mut Effects) {
        self.datapath.receive(port, frame, now, effects);
        self.tell(None, effects);
    }

    /// A port lost or found its link.
    pub fn set_link(&mut self, port: u32, up: bool, effects: &mut Effects) {
        self.datapath.link(port, up, effects);
        self.tell(None, effects);
    }

    /// Does what is due by `now`: flows whose timeouts have run out go.
    pub fn timers(&mut self, now: Duration, effects: &mut Effects) {
        self.datapath.timers(now, effects);
        self.tell(None, effects);
    }

    /// When [`Switch::timers`] has something to do next, at the earliest.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.datapath.next_timer()
    }

    /// Stops and starts again: all connections are lost, and without `keep_tables` the flows,
    /// groups, meters and buffered packets too. Ports and links are as they were.
    pub fn restart(&mut self, keep_tables: bool) {
        self.channels.clear();
        self.generation = None;
        if !keep_tables {
            self.datapath.clear();
        }
        let rules = self.datapath.rules();
        // Without flags there is nothing to refuse.
        let _ = self.datapath.set_config(rules, &DEFAULT_CONFIG);
    }

    fn channel(&self, id: ChannelId) -> Option<&Channel> {
        self.channels.iter().find(|channel| channel.id == id)
    }

    fn index(&self, id: ChannelId) -> Option<usize> {
        self.channels.iter().position(|channel| channel.id == id)
    }

    /// The version that controllers use now.
    fn version_in_use(&self) -> Option<Version> {
        self.channels.iter().find(|channel| channel.session.is_ready()).map(Channel::version)
    }

    /// Goes on with what a controller sent and what waited.
    fn go_on(&mut self, index: usize, now: Duration, effects: &mut Effects) -> Result<(), Close> {
        let mut input = std::mem::take(&mut self.channels[index].input);
        let used = self.read(index, &input, now, effects)?;
        input.drain(..used);
        if !input.is_empty() {
            self.channels[index].input = input;
        }
        Ok(())
    }

    /// Reads messages as long as there is one and the controller reads the answers. Says how many
    /// bytes were used.
    fn read(
        &mut self,
        index: usize,
        bytes: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) -> Result<usize, Close> {
        let mut used = 0;
        while self.channels[index].is_reading() {
            self.scratch.clear();
            let read = self.next(index, &bytes[used..], now, effects);
            // Also what tells the controller why its connection ends.
            self.flush(index);
            self.tell(Some(index), effects);
            let Some(len) = read? else { break };
            self.counters.messages += 1;
            used += len;
        }
        Ok(used)
    }

    /// Moves what was written to the outbox of a channel.
    fn flush(&mut self, index: usize) {
        self.channels[index].outbox.append(self.scratch.as_slice());
        self.scratch.clear();
    }

    /// Deals with one message. Says how many bytes it had; `None` when it is not all there.
    fn next(
        &mut self,
        index: usize,
        stream: &[u8],
        now: Duration,
        effects: &mut Effects,
    ) -> Result<Option<usize>, Close> {
        if let Some(len) = self.set_config(index, stream)? {
            return Ok(Some(len));
        }
        let session = &mut self.channels[index].session;
        let Some((len, event)) = session.next(stream, &mut self.scratch)? else {
            return Ok(None);
        };
        match event {
            Event::Ready => self.ready(index)?,
            Event::Message { xid, body } => {
                let request = Request { xid, bytes: &stream[..len] };
                self.message(index, request, body, now, effects)?;
            }
            Event::Malformed { .. } => self.counters.errors += 1,
            _ => {}
        }
        Ok(Some(len))
    }
}

/// Bytes of a port in a reply of the session, with some to spare for the heads of its parts.
const PORT_BYTES: usize = 72;

/// A message that is dealt with: what errors about it need.
#[derive(Clone, Copy)]
struct Request<'a> {
    xid: u32,
    bytes: &'a [u8],
}
