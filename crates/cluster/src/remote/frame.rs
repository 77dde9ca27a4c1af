//! What nodes send to each other for switches of each other.

use std::time::Duration;

use bellrock_api::{ChangeOutcome, Dpid};
use serde::{Deserialize, Serialize};

use super::wire::{self, WireChange, WireError, WireRequestError};

/// A request to the master of a switch, or the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemoteFrame {
    /// A request.
    Request(Request),
    /// An answer.
    Answer(Answer),
}

/// A request to the master of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Number of the request, unique among those of its node.
    pub number: u64,
    /// Number of the stream of requests that it is a part of. When one of them is refused, so are
    /// all that follow.
    pub stream: u64,
    /// The switch.
    pub dpid: Dpid,
    /// What to do.
    pub job: Job,
}

/// What the master does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Job {
    /// Sends a message.
    Send {
        /// The message, encoded.
        #[serde(with = "wire::base64")]
        message: Vec<u8>,
    },
    /// Sends changes, followed by a barrier.
    Program {
        /// A message for each change, encoded, one after the other.
        #[serde(with = "wire::base64")]
        messages: Vec<u8>,
        /// Time for the switch.
        within: Duration,
        /// Whether an operator orders them.
        is_order: bool,
    },
    /// Sends a request, and returns its reply.
    Ask {
        /// The message, encoded.
        #[serde(with = "wire::base64")]
        message: Vec<u8>,
    },
}

/// An answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Number of the request.
    pub number: u64,
    /// What has become of it.
    pub body: AnswerBody,
}

/// What has become of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerBody {
    /// This node is not the master of the switch. Nothing was sent.
    NotMaster,
    /// A single message is on its way to the switch.
    Taken,
    /// Nothing was sent, for this reason.
    NotSent(WireError),
    /// The outcome of each change.
    Outcomes(Vec<WireChange>),
    /// A part of a reply, with more to come.
    Part(#[serde(with = "wire::base64")] Vec<u8>),
    /// A reply, or its last part.
    Reply(#[serde(with = "wire::base64")] Vec<u8>),
    /// There is no reply, for this reason.
    NoReply(WireRequestError),
}

impl Job {
    /// Number of bytes of its messages.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Job::Send { message } | Job::Ask { message } => message.len(),
            Job::Program { messages, .. } => messages.len(),
        }
    }
}

impl AnswerBody {
    /// The outcomes of changes.
    #[must_use]
    pub fn outcomes(outcomes: &[ChangeOutcome]) -> Self {
        AnswerBody::Outcomes(outcomes.iter().copied().map(WireChange::from).collect())
    }
}

impl RemoteFrame {
    /// Number of bytes of OpenFlow that it carries.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            RemoteFrame::Request(request) => request.job.bytes(),
            RemoteFrame::Answer(Answer { body, .. }) => match body {
                AnswerBody::Part(bytes) | AnswerBody::Reply(bytes) => bytes.len(),
                _ => 0,
            },
        }
    }
}
