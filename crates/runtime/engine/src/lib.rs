//! Runs workers on real sockets: one acceptor, pinned threads, and a poller and sockets for each.
//!
//! [`Engine::start`] binds the listeners and starts the threads. The acceptor only accepts, and
//! gives each connection to the least loaded worker. From then on, only that worker reads, decides
//! and writes for it. Packets are not processed here: a thread passes bytes, time and mail to its
//! [`bellrock_worker::Worker`], and sends what the worker writes.
//!
//! Fairness: a switch that is ready is read once, at most `limits.bytes_per_turn` bytes. If there
//! is more, it goes to the end of the ready list. Back-pressure: bytes that the kernel does not
//! take are queued for each switch. Above `limits.high_water_bytes` the switch is not read, so a
//! slow switch slows only itself. A switch with waiting bytes is closed if it acknowledges none of
//! them for `limits.stalled`.
//!
//! Transports: a connection is a `Channel`, and a `Listener` accepts channels of one kind: plain
//! TCP, or TLS (feature `tls`). The module `channel` has reads, writes, what the peer has
//! acknowledged, the kernel's buffers and the close. A channel also reports whether there is more
//! to read. This includes bytes that it has buffered, which no readiness event reports. TLS
//! handshakes have threads of their own, and a worker gets an established session.
//!
//! Background tasks have their own thread, so a long computation delays no packet.

mod acceptor;
mod channel;
mod engine;
mod halt;
mod idle;
mod linger;
mod listener;
mod monitor;
mod priority;
mod queue;
mod ready;
mod refusals;
mod settings;
mod short_answers;
mod sockets;
mod tasks;
mod thread;
#[cfg(feature = "tls")]
mod tls;
mod waker;
mod watchdog;

pub use bellrock_session as session;
pub use bellrock_worker::{
    AppState, COUNTERS, LimitError, Limits, MIN_REQUESTS, PortPacketIns, SWITCH_COUNTERS,
    SwitchCounters, TASK_COUNTERS, TaskInfo, TaskState, WorkerSettings, WriteMode,
};
pub use engine::Engine;
pub use idle::IdleMode;
pub use monitor::{AppCounter, EngineStatus, Monitor, NamedCounters, SeenHost};
pub use settings::{DEFAULT_LISTEN, EngineSettings, MAX_WORKERS, Pinning, StartError};
#[cfg(all(feature = "tls", fuzzing))]
pub use tls::FuzzedSession;
#[cfg(feature = "tls")]
pub use tls::{
    Identities, IdentityMap, MAX_PINS, MAX_PINS_PER_KEY, Pin, Pins, PinsChanged, TlsFileError,
    TlsFiles, TlsServer, TlsSettings, UnnamedIdentity,
};
