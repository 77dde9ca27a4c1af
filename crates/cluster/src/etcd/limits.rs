//! Bounds of the client, each with its unit and what happens at it.

use std::time::Duration;

/// Maximum number of addresses. More are refused: a cluster of etcd has 3, 5 or 7 members.
pub const MAX_ENDPOINTS: usize = 16;
/// Port of addresses without one: that of etcd.
pub const DEFAULT_PORT: u16 = 2379;
/// Maximum length of the prefix of all keys, in bytes. A longer one is refused.
pub const MAX_PREFIX_BYTES: usize = 256;

/// Default time limit of one attempt at one address. Then the next address is tried. A put takes
/// milliseconds; through a leader that is gone, etcd itself gives up after five to seven seconds.
pub const ATTEMPT: Duration = Duration::from_millis(200);
/// Default time limit of an operation with all its attempts. etcd elects a leader within two
/// seconds.
pub const TOTAL: Duration = Duration::from_secs(5);
/// Time limit for the rest of an answer after its first bytes: pages of a read are large.
pub(super) const BODY: Duration = Duration::from_secs(1);
/// Time limit to prove user and password. etcd hashes passwords slowly by design.
pub(super) const AUTHENTICATION: Duration = Duration::from_secs(2);
/// Pause after all addresses failed, before the first is tried again.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// Time limit, after that of the operation, to find out what became of a write whose answer was
/// lost. Then its outcome is unknown.
pub(super) const SETTLEMENT: Duration = Duration::from_secs(1);

/// Maximum number of connections to an address, watches not counted. Further requests wait for one.
pub const MAX_CONNECTIONS: usize = 16;
/// Maximum number of unused connections to an address that stay open. Others are closed.
pub(super) const MAX_IDLE_CONNECTIONS: usize = 4;

/// Maximum size of an answer, in bytes of JSON. A page above it is read in smaller pages; another
/// answer above it is an error.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Characters of an answer that is none of etcd's that are shown in an error. The rest is left out.
pub(super) const MAX_SAID_CHARS: usize = 100;
/// Maximum number of entries of a page. Fewer are asked for when a page is too large.
pub const PAGE_ENTRIES: usize = 1000;
/// Maximum number of entries of a snapshot. More are an error.
pub const MAX_SNAPSHOT_ENTRIES: usize = 1_000_000;
/// Maximum size of a snapshot, in bytes of keys and values. More are an error.
pub const MAX_SNAPSHOT_BYTES: usize = 256 << 20;
/// A read whose revision was compacted between two pages begins again up to this number of times.
pub(super) const MAX_READ_RESTARTS: usize = 3;

/// Maximum number of compares and of operations of a transaction: etcd's default (`--max-txn-ops`).
pub const MAX_OPERATIONS: usize = 128;
/// Maximum size of a transaction, in bytes of keys and values. etcd's default is 1.5 MiB a request.
pub const MAX_TRANSACTION_BYTES: usize = 1 << 20;
/// Maximum number of independent writes that share a transaction. Each takes two of etcd's
/// operations.
pub const MAX_BATCH: usize = 60;
/// A write with an unknown outcome is looked for in up to this number of earlier values of its key.
pub(super) const MAX_HISTORY_STEPS: usize = 16;

/// Minimum and maximum time to live of a lease, in seconds. Others are refused.
pub const LEASE_SECONDS: std::ops::RangeInclusive<i64> = 1..=86_400;

/// Maximum size of a message of a watch, in bytes of JSON. After a larger one a read is needed.
pub const MAX_WATCH_MESSAGE_BYTES: usize = 8 << 20;
/// Maximum size of all messages of a watch that wait for their reader, in bytes of JSON. At the
/// bound the client stops reading, and etcd waits.
pub const MAX_WAITING_BYTES: usize = 8 << 20;
/// Maximum number of messages of a watch that wait for their reader; as above.
pub const MAX_WAITING_MESSAGES: usize = 1024;
/// etcd is asked for a sign of life on a watch that was silent for this time.
pub const WATCH_PROBE: Duration = Duration::from_millis(500);
/// A watch that was silent for this time is asked itself, also while another one of the same client
/// shows that the member lives: its own connection may be gone.
pub const WATCH_PROBE_EACH: Duration = Duration::from_secs(5);
/// A watch that was silent for this time although a sign of life was asked for goes to the next
/// address.
pub const WATCH_SILENCE: Duration = Duration::from_millis(1000);
/// Pauses of a watch after all addresses failed double from [`PAUSE`] to this.
pub(super) const MAX_WATCH_PAUSE: Duration = Duration::from_secs(1);
