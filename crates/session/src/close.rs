//! Why a connection has to be closed.

use bellrock_openflow::{DecodeError, EncodeError, ErrorCode};

use crate::hello::PeerVersions;
use crate::settings::Versions;

/// Why a connection has to be closed, and what the operator can do about it.
///
/// What stands in `out` by then (often an OpenFlow error that tells the peer the same) should be
/// given one chance to be written before the socket is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Close {
    /// What came first is no hello: another protocol, or garbage.
    #[error(
        "the peer does not speak OpenFlow (it starts with {start:02x?}){}; check what connects to this port",
        tls_hint(start)
    )]
    NotOpenFlow {
        /// Its first bytes; zeros where there were fewer.
        start: [u8; 8],
    },
    /// The hello cannot be read.
    #[error("the peer's hello is broken ({0}); its OpenFlow implementation needs a fix")]
    BadHello(DecodeError),
    /// There is no version that both ends speak.
    #[error(
        "no common version: the peer speaks {theirs}, this end {ours:?}; allow another version at one of them"
    )]
    NoCommonVersion {
        /// The peer's.
        theirs: PeerVersions,
        /// This end's.
        ours: Versions,
    },
    /// The peer refused the hello (`OFPET_HELLO_FAILED`).
    #[error(
        "the peer refused the hello ({code}: \"{text}\"); check which versions and controllers it allows"
    )]
    HelloRefused {
        /// Its error.
        code: ErrorCode,
        /// Its text, cut and with control characters escaped.
        text: Box<str>,
    },
    /// The handshake took too long.
    #[error(
        "the handshake was not finished in time: no {waiting_for}; check the switch's load and the path to it"
    )]
    HandshakeTimeout {
        /// What was missing.
        waiting_for: &'static str,
    },
    /// A reply that the handshake cannot do without is broken.
    #[error("the switch's {what} is broken ({error}); its OpenFlow implementation needs a fix")]
    BadReply {
        /// Which reply.
        what: &'static str,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// The switch answered the features request with an error.
    #[error(
        "the switch refused to tell its features ({0}); check whether it accepts this controller"
    )]
    FeaturesRefused(ErrorCode),
    /// Nothing came for too long, not even the answer to an echo.
    #[error("the switch went silent and did not answer an echo; check its link and its load")]
    Dead,
    /// A length below that of the header: where the next message starts cannot be known.
    #[error("the stream is broken ({0}); the peer's OpenFlow implementation needs a fix")]
    BadLength(DecodeError),
    /// Something that has to be sent does not fit even an empty send buffer.
    #[error("an answer could not be written ({0}); the send buffer has to hold 65,535 bytes")]
    CannotWrite(EncodeError),
}

/// Operators who switch TLS on at one end only should be told.
fn tls_hint(start: &[u8; 8]) -> &'static str {
    const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];
    if start.starts_with(&TLS_HANDSHAKE) { ", but TLS" } else { "" }
}

/// Why a message was not dealt with: the connection is over, or `out` had no room for the answer.
#[derive(Debug)]
pub(crate) enum Stop {
    Close(Close),
    Full,
}

impl From<Close> for Stop {
    fn from(close: Close) -> Self {
        Stop::Close(close)
    }
}

impl From<EncodeError> for Stop {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::Full => Stop::Full,
            other => Stop::Close(Close::CannotWrite(other)),
        }
    }
}
