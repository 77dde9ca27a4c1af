//! The messages between switches and controllers, kept on request.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use bellrock_openflow::{FromSwitch, Header, MessageKind, ToSwitch, Version, frame};

use crate::switch::ChannelId;
use crate::topology::SwitchIndex;

/// Maximum bytes of a message that are kept: the beginning of it.
pub const MAX_KEPT_BYTES: usize = 2048;

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageDirection {
    /// From a switch to a controller.
    FromSwitch,
    /// From a controller to a switch.
    ToSwitch,
}

/// A message. It prints as in `bellrock decode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMessage {
    /// When its last byte was sent or received.
    pub at: Duration,
    /// The channel of the switch.
    pub channel: ChannelId,
    /// Its direction.
    pub direction: MessageDirection,
    /// Its length.
    pub len: usize,
    /// Its bytes, at most [`MAX_KEPT_BYTES`] of them.
    pub bytes: Box<[u8]>,
}

impl LoggedMessage {
    /// The type of message; `None` for one that its version does not have.
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
        let text = match self.direction {
            MessageDirection::FromSwitch => {
                FromSwitch::decode(&self.bytes).map(|message| message.to_string())
            }
            MessageDirection::ToSwitch => {
                ToSwitch::decode(&self.bytes).map(|message| message.to_string())
            }
        };
        match text {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "malformed: {error}"),
        }
    }
}

/// The last messages of each switch, and the number of all.
pub struct MessageLog {
    /// Maximum number of messages that are kept for each switch.
    maximum: usize,
    switches: Vec<SwitchLog>,
}

#[derive(Default)]
struct SwitchLog {
    messages: VecDeque<LoggedMessage>,
    counts: BTreeMap<MessageDirection, u64>,
    /// The beginning of an incomplete message.
    unfinished: BTreeMap<(ChannelId, MessageDirection), Vec<u8>>,
}

impl MessageLog {
    /// Keeps the last `maximum` messages for each of this many switches; 0 keeps and counts none.
    pub(super) fn new(switches: usize, maximum: usize) -> Self {
        MessageLog { maximum, switches: (0..switches).map(|_| SwitchLog::default()).collect() }
    }

    /// The last messages of a switch, the oldest first.
    pub fn of(&self, switch: SwitchIndex) -> impl DoubleEndedIterator<Item = &LoggedMessage> {
        self.switches[switch.index()].messages.iter()
    }

    /// Number of messages of a switch in one direction, including those that are no longer kept.
    #[must_use]
    pub fn count(&self, switch: SwitchIndex, direction: MessageDirection) -> u64 {
        self.switches[switch.index()].counts.get(&direction).copied().unwrap_or(0)
    }

    pub(super) fn note(
        &mut self,
        switch: SwitchIndex,
        channel: ChannelId,
        direction: MessageDirection,
        at: Duration,
        bytes: &[u8],
    ) {
        if self.maximum == 0 {
            return;
        }
        let log = &mut self.switches[switch.index()];
        let mut stream = log.unfinished.remove(&(channel, direction)).unwrap_or_default();
        stream.extend_from_slice(bytes);
        let mut rest = &*stream;
        // An invalid length ends the connection; the bytes after it have no meaning.
        while let Ok(Some(message)) = frame(rest) {
            let bytes = message.bytes;
            rest = &rest[bytes.len()..];
            *log.counts.entry(direction).or_default() += 1;
            if log.messages.len() == self.maximum {
                log.messages.pop_front();
            }
            let (len, bytes) = (bytes.len(), bytes[..bytes.len().min(MAX_KEPT_BYTES)].into());
            log.messages.push_back(LoggedMessage { at, channel, direction, len, bytes });
        }
        if frame(rest).is_ok() && !rest.is_empty() {
            log.unfinished.insert((channel, direction), rest.to_vec());
        }
    }

    /// Handles the end of a channel.
    pub(super) fn disconnect(&mut self, switch: SwitchIndex, channel: ChannelId) {
        self.switches[switch.index()].unfinished.retain(|(other, _), _| *other != channel);
    }

    /// Handles the end of all channels of a switch.
    pub(super) fn restart(&mut self, switch: SwitchIndex) {
        self.switches[switch.index()].unfinished.clear();
    }
}
