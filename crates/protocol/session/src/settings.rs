//! Settings of a session: versions, times, limits.

use std::time::Duration;

use bellrock_openflow::Versions;

/// The role with which a connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstRole {
    /// Full access, as switches give it to every controller that requests no role (1.3.5 §6.3.4).
    #[default]
    Equal,
    /// Standby: the handshake only reads, and nothing that could change the switch is sent until
    /// [`Controller::configure`](crate::ControllerSession::configure).
    Standby,
}

/// Settings of all sessions of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// Versions of this end. Default: all.
    pub versions: Versions,
    /// Role with which a connection begins. Default: equal.
    pub first_role: FirstRole,
    /// Maximum time from the start of the connection to
    /// [`SessionEvent::Ready`](crate::SessionEvent::Ready). Without features by then, the
    /// connection is closed; without description or ports, the handshake ends. Default: 5 s.
    pub handshake_timeout: Duration,
    /// Silence after which an echo request is sent. Default: 15 s.
    pub echo_after: Duration,
    /// Further silence after which the connection is closed. Default: 15 s.
    pub dead_after: Duration,
    /// Bytes of a packet that a 1.0 switch sends on a table miss. Default: 0xffff, the whole
    /// packet.
    pub miss_send_len: u16,
    /// Maximum bytes of all unfinished multipart replies of a session together. A reply beyond it
    /// is dropped, and reported to its requester. Default: 16 MiB.
    pub max_multipart_bytes: usize,
    /// Maximum number of errors: so many at once, and so many a second after that. More are
    /// counted, but not sent. Default: 10.
    pub max_errors_per_second: u16,
    /// Maximum number of unanswered requests. More are refused. Default: 64.
    pub max_requests: u16,
    /// Time after which an unanswered request is given up, so that it does not block others.
    /// Default: 60 s.
    pub request_timeout: Duration,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings {
            versions: Versions::ALL,
            first_role: FirstRole::Equal,
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
