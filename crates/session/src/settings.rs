//! How a session behaves: versions, times, bounds.

use std::time::Duration;

use bellrock_openflow::Version;

/// The versions that an end speaks. There is always one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// 1.0 and 1.3; the higher one where the peer speaks both.
    #[default]
    Both,
    /// This one.
    Only(Version),
}

impl Versions {
    /// Them, the lowest first.
    #[must_use]
    pub const fn as_slice(self) -> &'static [Version] {
        match self {
            Versions::Both => &[Version::V1_0, Version::V1_3],
            Versions::Only(Version::V1_0) => &[Version::V1_0],
            Versions::Only(Version::V1_3) => &[Version::V1_3],
        }
    }

    /// The highest.
    #[must_use]
    pub const fn highest(self) -> Version {
        match self {
            Versions::Both => Version::V1_3,
            Versions::Only(version) => version,
        }
    }
}

/// What all sessions of a controller have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The versions that are spoken. Both.
    pub versions: Versions,
    /// Time from the start of the connection to [`Event::Ready`](crate::Event::Ready). A switch whose
    /// features are not there by then is closed; description and ports are waited for no longer. 5 s.
    pub handshake_timeout: Duration,
    /// Silence after which an echo is sent. 15 s.
    pub echo_after: Duration,
    /// Further silence after which the connection is closed. 15 s.
    pub dead_after: Duration,
    /// Bytes of a packet that a 1.0 switch sends on a table miss; 0xffff asks for all of it.
    pub miss_send_len: u16,
    /// Bytes that all unfinished multipart replies of a session hold together. A reply that would
    /// go beyond is dropped, and its requester is told. 16 MiB.
    pub max_multipart_bytes: usize,
    /// Errors sent within any second. More are not sent, but counted. 10.
    pub max_errors_per_second: u16,
    /// Requests that may be unanswered at a time. More are refused. 64.
    pub max_requests: u16,
    /// Time after which an unanswered request is given up, so that it does not stand in the way
    /// of others. 60 s.
    pub request_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            versions: Versions::Both,
            handshake_timeout: Duration::from_secs(5),
            echo_after: Duration::from_secs(15),
            dead_after: Duration::from_secs(15),
            miss_send_len: 0xffff,
            max_multipart_bytes: 16 << 20,
            max_errors_per_second: 10,
            max_requests: 64,
            request_timeout: Duration::from_secs(60),
        }
    }
}
