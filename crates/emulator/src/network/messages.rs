//! The messages that switches and controllers exchange, remembered on request.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use bellrock_openflow::{FromSwitch, Header, MessageKind, ToSwitch, Version, frame};

use crate::switch::ChannelId;
use crate::topology::SwitchId;

/// Bytes of a message that are remembered; of a longer one only the beginning is.
pub const MAX_KEPT_BYTES: usize = 2048;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From a switch to a controller.
    FromSwitch,
    /// From a controller to a switch.
    ToSwitch,
}

/// A message. It prints as `bellrock decode` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMessage {
    /// When its last byte was sent, or came.
    pub at: Duration,
    /// Over which channel of the switch.
    pub channel: ChannelId,
    /// Which way.
    pub way: Way,
    /// Its length.
    pub len: usize,
    /// Its bytes, at most [`MAX_KEPT_BYTES`] of them.
    pub bytes: Box<[u8]>,
}

impl LoggedMessage {
    /// What kind of message it is; None for one that its version does not have.
    #[must_use]
    pub fn kind(&self) -> Option<MessageKind> {
        let header = Header::read(&self.bytes)?;
        MessageKind::from_wire(Version::from_wire(header.version)?, header.kind)
    }
}

impl fmt::Display for LoggedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.len > self.bytes.len() {
            return match self.kind() {
                Some(kind) => write!(f, "{kind:?} of {} bytes", self.len),
                None => write!(f, "a message of {} bytes", self.len),
            };
        }
        let text = match self.way {
            Way::FromSwitch => FromSwitch::decode(&self.bytes).map(|message| message.to_string()),
            Way::ToSwitch => ToSwitch::decode(&self.bytes).map(|message| message.to_string()),
        };
        match text {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "malformed: {error}"),
        }
    }
}

/// The last messages of each switch, and how many there were.
pub struct MessageLog {
    /// How many are remembered of each switch.
    most: usize,
    switches: Vec<Log>,
}

#[derive(Default)]
struct Log {
    messages: VecDeque<LoggedMessage>,
    counts: BTreeMap<Way, u64>,
    /// The beginning of a message whose rest has not come yet.
    unfinished: BTreeMap<(ChannelId, Way), Vec<u8>>,
}

impl MessageLog {
    /// For so many switches, and the last so many messages of each; 0 remembers and counts none.
    pub(super) fn new(switches: usize, most: usize) -> Self {
        MessageLog { most, switches: (0..switches).map(|_| Log::default()).collect() }
    }

    /// The last messages of a switch, the oldest first.
    pub fn of(&self, switch: SwitchId) -> impl DoubleEndedIterator<Item = &LoggedMessage> {
        self.switches[switch.index()].messages.iter()
    }

    /// How many messages a switch has exchanged in a direction, those that are forgotten among them.
    #[must_use]
    pub fn count(&self, switch: SwitchId, way: Way) -> u64 {
        self.switches[switch.index()].counts.get(&way).copied().unwrap_or(0)
    }

    pub(super) fn note(
        &mut self,
        switch: SwitchId,
        channel: ChannelId,
        way: Way,
        at: Duration,
        bytes: &[u8],
    ) {
        if self.most == 0 {
            return;
        }
        let log = &mut self.switches[switch.index()];
        let mut stream = log.unfinished.remove(&(channel, way)).unwrap_or_default();
        stream.extend_from_slice(bytes);
        let mut rest = &*stream;
        // A length that cannot be ends the connection, and what is behind it means nothing.
        while let Ok(Some(message)) = frame(rest) {
            let bytes = message.bytes;
            rest = &rest[bytes.len()..];
            *log.counts.entry(way).or_default() += 1;
            if log.messages.len() == self.most {
                log.messages.pop_front();
            }
            let (len, bytes) = (bytes.len(), bytes[..bytes.len().min(MAX_KEPT_BYTES)].into());
            log.messages.push_back(LoggedMessage { at, channel, way, len, bytes });
        }
        if frame(rest).is_ok() && !rest.is_empty() {
            log.unfinished.insert((channel, way), rest.to_vec());
        }
    }

    /// A channel has ended.
    pub(super) fn disconnect(&mut self, switch: SwitchId, channel: ChannelId) {
        self.switches[switch.index()].unfinished.retain(|(of, _), _| *of != channel);
    }

    /// All channels of a switch have ended.
    pub(super) fn restart(&mut self, switch: SwitchId) {
        self.switches[switch.index()].unfinished.clear();
    }
}
