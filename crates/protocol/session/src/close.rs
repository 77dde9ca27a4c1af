//! Why a connection must be closed.

use bellrock_openflow::{DecodeError, EncodeError, ErrorCode, Versions};

use crate::hello::PeerVersions;

/// Why a connection must be closed, and what the operator can do about it.
///
/// Try once to send the content of `out` before closing the socket: it is often an OpenFlow error
/// that gives the peer the same reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The first message is not a hello: another protocol, or garbage.
    #[error(
        "the peer does not speak OpenFlow (it starts with {start:02x?}){}; check what connects to this port",
        tls_hint(start)
    )]
    NotOpenFlow {
        /// The first bytes, padded with zeros.
        start: [u8; 8],
    },
    /// The hello cannot be decoded.
    #[error("the peer's hello is broken ({0}); its OpenFlow implementation needs a fix")]
    BadHello(DecodeError),
    /// Both ends have no version in common.
    #[error(
        "no common version: the peer speaks {theirs}, this end {ours}; allow another version at one of them"
    )]
    NoCommonVersion {
        /// Versions of the peer.
        theirs: PeerVersions,
        /// Versions of this end.
        ours: Versions,
    },
    /// The peer refused the hello (`OFPET_HELLO_FAILED`).
    #[error(
        "the peer refused the hello ({code}: \"{text}\"); check which versions and controllers it allows"
    )]
    HelloRefused {
        /// The peer's error.
        code: ErrorCode,
        /// The peer's text, truncated, with control characters escaped.
        text: Box<str>,
    },
    /// The handshake took too long.
    #[error(
        "the handshake was not finished in time: no {waiting_for}; check the switch's load and the path to it"
    )]
    HandshakeTimeout {
        /// The missing message.
        waiting_for: &'static str,
    },
    /// A reply that the handshake needs cannot be decoded.
    #[error("the switch's {what} is broken ({error}); its OpenFlow implementation needs a fix")]
    BadReply {
        /// The reply.
        what: &'static str,
        /// The error in it.
        error: DecodeError,
    },
    /// The switch answered the features request with an error.
    #[error(
        "the switch refused the features request ({0}); check whether it accepts this controller"
    )]
    FeaturesRefused(ErrorCode),
    /// Nothing came for too long, not even an echo reply.
    #[error("the switch went silent and did not answer an echo; check its link and its load")]
    Dead,
    /// A length below that of the header: the start of the next message is unknown.
    #[error("the stream is broken ({0}); the peer's OpenFlow implementation needs a fix")]
    BadLength(DecodeError),
    /// A message does not even fit an empty send buffer.
    #[error("an answer could not be written ({0}); the send buffer has to hold 65,535 bytes")]
    CannotWrite(EncodeError),
}

/// A hint for operators who have switched on TLS at one end only.
fn tls_hint(start: &[u8; 8]) -> &'static str {
    const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];
    if start.starts_with(&TLS_HANDSHAKE) { ", but TLS" } else { "" }
}

/// Why a message was not processed: the connection must be closed, or `out` is full.
#[derive(Debug)]
pub(crate) enum Stop {
    Close(CloseReason),
    Full,
}

impl From<CloseReason> for Stop {
    fn from(close: CloseReason) -> Self {
        Stop::Close(close)
    }
}

impl From<EncodeError> for Stop {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Full => Stop::Full,
            other => Stop::Close(CloseReason::CannotWrite(other)),
        }
    }
}
