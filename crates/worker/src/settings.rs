//! What a worker can be told, and the bounds of everything that could grow.

use std::time::Duration;

use bellrock_api::openflow::MAX_MESSAGE_LEN;

/// When answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// All answers to what one read brought, in one write.
    #[default]
    Coalesce,
    /// Each message in a write of its own, as soon as its packet is dealt with. More system calls
    /// for less delay of the first of many answers (the NUST study's third guideline).
    Immediate,
}

/// Bounds against switches that are broken, hostile, or simply many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// TCP connections, with or without a finished handshake; a further one is closed at once.
    pub connections: usize,
    /// Connections of one worker; when all workers have so many, a further one is closed at once.
    pub switches_per_worker: usize,
    /// Bytes that one read takes from a switch before it is the next one's turn.
    pub bytes_per_turn: usize,
    /// Packet-ins a second of one switch; more are dropped and counted. `None`: as many as come.
    pub packet_ins_per_second: Option<u32>,
    /// Bytes that wait to be written to a switch above which nothing more is read from it.
    pub high_water_bytes: usize,
    /// How long a switch may take none of the bytes that wait for it before it is closed.
    pub stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 20_000,
            switches_per_worker: 10_000,
            bytes_per_turn: 128 * 1024,
            packet_ins_per_second: None,
            high_water_bytes: 1024 * 1024,
            stalled: Duration::from_secs(10),
        }
    }
}

/// What a worker can be told.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bounds.
    pub limits: Limits,
    /// When answers are written.
    pub write: WriteMode,
    /// Whether a worker that stays overloaded hands switches over to an idle one.
    pub hand_over: bool,
    /// Versions and times of the sessions.
    pub session: bellrock_session::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            limits: Limits::default(),
            write: WriteMode::default(),
            hand_over: true,
            session: bellrock_session::Settings::default(),
        }
    }
}

impl Settings {
    /// Bytes of the receive buffer: an unfinished message of the read before, and one read.
    pub(crate) fn receive_buffer_bytes(&self) -> usize {
        MAX_MESSAGE_LEN + self.limits.bytes_per_turn
    }
}

/// Bytes of the send buffer. It holds what the apps answer to one batch, and is handed to the
/// transport when it holds more than [`FLUSH_BYTES`]; a single answer that does not fit is an
/// error that the app sees.
pub(crate) const SEND_BUFFER_BYTES: usize = 1024 * 1024;

/// Bytes in the send buffer above which it is emptied in the middle of a turn.
pub(crate) const FLUSH_BYTES: usize = 128 * 1024;

/// Bytes of packets in a batch above which it is closed early, so that even if every packet is
/// sent on whole by several apps, the answers fit the send buffer.
pub(crate) const BATCH_BYTES: usize = 96 * 1024;

/// How often handlers are told that time has passed.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Timers fire at multiples of this, so that many of them share one wake-up.
pub(crate) const TIMER_GRAIN: Duration = Duration::from_millis(50);

/// How long an old connection has to answer an echo when another comes with its datapath id.
pub(crate) const DUPLICATE_ECHO: Duration = Duration::from_secs(1);

/// How long a new connection waits to hear what became of the old one. Only when the old one's
/// worker is hopelessly overloaded does it not hear in time; the new connection is refused then.
pub(crate) const DUPLICATE_WAIT: Duration = Duration::from_secs(3);

/// Connections that may wait at a time for the same old connection to answer; more are refused.
pub(crate) const DUPLICATE_CLAIMANTS: usize = 4;

/// Bytes of unfinished multipart replies of all switches of a worker. A switch that goes beyond is
/// closed: each has a bound of its own, but many of them together would not.
pub(crate) const UNFINISHED_REPLY_BYTES: usize = 256 * 1024 * 1024;

/// Switches of a worker that report the flows of an earlier run at a time; further ones wait for their turn.
pub(crate) const FLOWS_ASKED_AT_A_TIME: usize = 64;

/// How long a switch has its turn to report its flows. One that takes longer goes on, and the next one has its turn beside it.
pub(crate) const FLOWS_TURN: Duration = Duration::from_millis(500);

/// How long a switch has to tell the flows that it was left with, from when it is asked, before it comes up without.
pub(crate) const CLEAN_WAIT: Duration = Duration::from_secs(5);

/// Bytes of packet-ins of one switch that are kept for the apps until it is up; further ones are dropped.
pub(crate) const EARLY_PACKET_BYTES: usize = 64 * 1024;

/// The same of all switches of a worker together.
pub(crate) const EARLY_PACKET_BYTES_OF_ALL: usize = 64 * 1024 * 1024;

/// Messages in a worker's mailbox; a sender that finds it full gets an error.
pub(crate) const MAILBOX_MESSAGES: usize = 16 * 1024;

/// Bytes of messages in a worker's mailbox; a sender whose message would exceed it gets an error.
pub(crate) const MAILBOX_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that wait for a switch above which other workers' messages to it are refused.
pub(crate) const MAIL_BACKLOG_BYTES: usize = 4 * 1024 * 1024;

/// Mail that is dealt with before switches are read again.
pub(crate) const MAIL_PER_TURN: usize = 1024;

/// How long a worker counts how busy it is, before it tells the others.
pub const LOAD_WINDOW: Duration = Duration::from_millis(100);

/// Thousandths of a window that a worker is busy at least to be overloaded.
pub(crate) const OVERLOADED_PERMILLE: u16 = 900;

/// Thousandths of a window that a worker may be busy to be handed switches over: so far below
/// [`OVERLOADED_PERMILLE`] that none goes to and fro.
pub(crate) const IDLE_PERMILLE: u16 = 500;

/// Windows without a break that a worker is overloaded before it hands switches over: a burst is
/// over by then.
pub(crate) const HAND_OVER_WINDOWS: u32 = 5;

/// Switches that are handed over at once; nobody can send to any switch meanwhile. More go after as
/// many windows again.
pub(crate) const HAND_OVER_SWITCHES: usize = 256;

/// How long a switch stays with the worker that it was handed over to.
pub(crate) const HAND_OVER_REST: Duration = Duration::from_secs(10);

/// Tasks of a controller that are not over; a further one is not run.
pub(crate) const MAX_TASKS: usize = 64 * 1024;

/// How long a supervised task that panicked waits until it is started again; twice as long after each panic within
/// [`crate::PANIC_WINDOW`].
pub(crate) const TASK_STARTED_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Turns of tasks after which timers are looked at.
pub(crate) const POLLS_PER_TURN: usize = 256;

/// Tasks that panicked and are still shown to the operator.
pub(crate) const PANICKED_TASKS_KEPT: usize = 64;
