//! What gives workers the world: one acceptor, pinned threads, a poller and sockets for each.
//!
//! [`Engine::start`] binds the listeners and starts the threads. The acceptor only accepts, and
//! gives each connection to the least loaded worker; from then on that worker alone reads, decides
//! and writes for it. Nothing that happens to a packet happens here: a thread feeds its
//! [`bellrock_worker::Worker`] with bytes, time and mail, and carries what it writes.
//!
//! Fairness: a switch that is ready is read once, at most `limits.bytes_per_turn` bytes, and goes
//! to the tail of the ready list if there was more. Back-pressure: what the kernel does not take is
//! queued by switch; above `limits.high_water_bytes` that switch is not read, so a slow switch slows
//! only itself. A switch with waiting bytes is closed when it acknowledges none of them for `limits.stalled`.
//!
//! Background tasks have a thread of their own, so that a long computation delays no packet.

mod acceptor;
mod engine;
mod halt;
mod held;
mod idle;
mod linger;
mod monitor;
mod queue;
mod settings;
mod sockets;
mod tasks;
mod thread;
mod unacknowledged;
mod waker;

pub use bellrock_session as session;
pub use bellrock_worker::{
    AppState, COUNTERS, Limits, MIN_REQUESTS, Settings as WorkerSettings, TASK_COUNTERS, TaskInfo,
    TaskState, WriteMode,
};
pub use engine::Engine;
pub use idle::Idle;
pub use monitor::{AppCounter, Monitor, SeenHost, Status, WorkerCounters};
pub use settings::{
    DEFAULT_LISTEN, MAX_BYTES_PER_TURN, MAX_WORKERS, Pinning, Settings, StartError,
};
