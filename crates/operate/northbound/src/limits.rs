//! The bounds of the server. What happens at each is counted
//! ([`HttpCounters`](crate::HttpCounters)).

use std::time::Duration;

/// Maximum number of connections, and as many to each guest. For a further one, the
/// connection that is without a request for the longest time is closed (`connections_displaced`).
/// If all are busy, the further one is (`connections_refused`).
pub const MAX_CONNECTIONS: usize = 256;

/// Maximum number of connections of one remote address (IPv6: of a /64), except those of the
/// loopback. A further one displaces one of the same address, or is closed.
pub const MAX_CONNECTIONS_PER_CLIENT: usize = 64;

/// Minimum time for which a connection is without a request, a complete head or a handshake before
/// it can be displaced.
pub const MIN_QUIET_TIME: Duration = Duration::from_secs(1);

/// Maximum number of requests per second of one token, or of one remote address (IPv6: of a /64)
/// without a right one, and the most at once. Further ones are refused with status 429
/// (`requests_over_limit`).
pub const MAX_REQUESTS_PER_SECOND: u32 = 10_000;

/// Maximum number of wrong tokens per second of one remote address. Further ones are refused with
/// status 429 (`requests_over_limit`).
pub const MAX_WRONG_TOKENS_PER_SECOND: u32 = 10;

/// Maximum number of remote addresses and tokens whose rates are remembered. The one that was
/// silent longest is forgotten for a new one.
pub const MAX_CLIENTS: usize = 1024;

/// Maximum size of a request's body, in bytes. A larger one is refused with status 413
/// (`bodies_too_large`).
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// Maximum number of bytes of a body that is refused, or that nobody wants, which are read and
/// dropped so that the client gets to the answer. Then the connection is closed.
pub const MAX_UNWANTED_BYTES: usize = 64 << 20;

/// Time for reading them. Then the connection is closed.
pub const UNWANTED_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a request's line and header fields, in bytes. A larger one is refused with
/// status 431.
pub const MAX_HEAD_BYTES: usize = 32 << 10;

/// Time for a whole TLS handshake (`handshakes_failed`).
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for the head of a request, and for which a connection may be idle.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// Time for the body of a request, after its head. Then it is refused with status 408
/// (`requests_timed_out`).
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Time in which a client must take at least one byte of its answer. Then its connection is closed
/// (`answers_not_taken`).
pub const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// Time in which a client must take all that is ready of its answers. Then its connection is closed
/// (`answers_not_taken`). The metrics of 1,000 switches with 48 ports take 38 MB: 5 Mbit/s is
/// enough.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of bytes of answers that clients have not taken yet, of all connections together.
/// A further answer is replaced by status 503 (`answers_refused`).
pub const MAX_WAITING_ANSWER_BYTES: usize = 256 << 20;

/// Time for a request from its head to its answer. Then it is refused with status 503
/// (`requests_timed_out`).
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of requests that the controller answers from its memory at a time. Others wait
/// for their turn.
pub const MAX_ASKING: usize = 8;

/// Maximum number of requests to switches at a time. Others wait for their turn. They have turns of
/// their own, so that a silent switch delays none of the other requests.
pub const MAX_WAITING_FOR_SWITCHES: usize = 16;

/// Maximum number of orders at a time. Others wait for their turn. They have turns of their own, so
/// that who may only ask delays none.
pub const MAX_ORDERS: usize = 16;

/// Maximum number of large bodies that are parsed at a time. Others wait for their turn.
pub const MAX_PARSING: usize = 2;

/// Maximum length of a body that is parsed by the thread of all connections, in bytes: a fraction
/// of a millisecond. Larger ones are parsed elsewhere.
pub const MAX_BYTES_PARSED_AT_ONCE: usize = 8 * 1024;

/// Maximum time to wait for that turn. Then a request is refused with status 503
/// (`requests_timed_out`).
pub const TURN_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of streams of events. A further one is refused with status 503
/// (`streams_refused`).
pub const MAX_STREAMS: usize = 64;

/// Time after which a stream ends, and its client resumes it. A stream whose token is removed or
/// expires ends within [`TOKEN_FILE_LOOK`].
pub const MAX_STREAM_TIME: Duration = Duration::from_secs(15 * 60);

/// Maximum time without a byte on a stream.
pub const STREAM_KEEPALIVE: Duration = Duration::from_secs(15);

/// Maximum number of switches that are laid out for the web page. Further ones are not drawn, and
/// the page says so.
pub const MAX_LAYOUT_SWITCHES: usize = 10_000;

/// Time that requests have to end when the server stops.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of the file of the tokens, in bytes.
pub const MAX_TOKEN_FILE_BYTES: u64 = 1 << 20;

/// Time between two looks whether that file has changed.
pub const TOKEN_FILE_LOOK: Duration = Duration::from_secs(1);

/// Maximum number of ports whose counters are kept for the metrics: those of 1,000 switches with 48
/// ports. Each is 8 series. Ports of further switches are left out
/// (`bellrock_statistics_switches_left_out`).
pub const MAX_STATISTICS_PORTS: usize = 50_000;

/// Maximum number of ports whose state is in the metrics (`port_status`), for the same reason. The
/// others are counted (`bellrock_ports_left_out`).
pub const MAX_STATUS_PORTS: usize = 50_000;

/// Maximum number of switches that are asked for statistics at a time.
pub const MAX_STATISTICS_REQUESTS: usize = 4;

/// Minimum time between two requests to a switch for statistics.
pub const MIN_STATISTICS_INTERVAL: Duration = Duration::from_secs(1);
