//! Settings of a worker, and constants for everything that could grow.

use std::time::Duration;

use bellrock_api::openflow::MAX_MESSAGE_LEN;

use crate::limits::Limits;

/// When answers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// All answers to one read, in one write.
    #[default]
    Coalesce,
    /// Each message in its own write, as soon as its packet is handled. More system calls, but less
    /// delay for the first of many answers (the NUST study's third guideline).
    Immediate,
}

/// Settings of a worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// Limits.
    pub limits: Limits,
    /// When answers are written.
    pub write: WriteMode,
    /// Whether a worker that stays overloaded hands switches over to an idle one.
    pub hand_over: bool,
    /// Settings of the sessions: versions and times.
    pub session: bellrock_session::SessionSettings,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        WorkerSettings {
            limits: Limits::default(),
            write: WriteMode::default(),
            hand_over: true,
            session: bellrock_session::SessionSettings::default(),
        }
    }
}

impl WorkerSettings {
    /// Bytes of the receive buffer: an incomplete message of the last read, and one read.
    pub(crate) fn receive_buffer_bytes(&self) -> usize {
        MAX_MESSAGE_LEN + self.limits.bytes_per_turn
    }
}

/// Bytes of the send buffer. It holds the answers to one batch, and goes to the transport above
/// [`FLUSH_BYTES`]. A single answer that does not fit is an error for the app.
pub(crate) const SEND_BUFFER_BYTES: usize = 1024 * 1024;

/// Bytes in the send buffer above which it is flushed in the middle of a turn.
pub(crate) const FLUSH_BYTES: usize = 128 * 1024;

/// Maximum bytes of packets in a batch. Even if several apps send every packet on whole, the
/// answers fit into the send buffer.
pub(crate) const BATCH_BYTES: usize = 96 * 1024;

/// Time between two calls of `Handler::tick`.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Timers fire at multiples of this, so that many share one wake-up.
pub(crate) const TIMER_GRAIN: Duration = Duration::from_millis(50);

/// Time for an old connection to answer an echo, when another one claims its datapath id.
pub(crate) const DUPLICATE_ECHO: Duration = Duration::from_secs(1);

/// Time that a new connection waits for the answer about the old one. It is refused after that,
/// which happens only if the old one's worker is severely overloaded.
pub(crate) const DUPLICATE_WAIT: Duration = Duration::from_secs(3);

/// Maximum number of connections that wait for the same old connection. More are refused.
pub(crate) const DUPLICATE_CLAIMANTS: usize = 4;

/// Maximum bytes of unfinished multipart replies of all switches of a worker. Each reply has its
/// own limit, but many together would exceed memory. A switch that goes beyond is closed.
pub(crate) const UNFINISHED_REPLY_BYTES: usize = 256 * 1024 * 1024;

/// Maximum number of switches of a worker that report flows of an earlier run at a time. Others
/// wait for their turn.
pub(crate) const FLOWS_ASKED_AT_A_TIME: usize = 64;

/// Duration of a switch's turn to report its flows. A slower switch goes on, beside the next one.
pub(crate) const FLOWS_TURN: Duration = Duration::from_millis(500);

/// Time for a switch to report the flows of an earlier run, from the request. After that it comes
/// up without them.
pub(crate) const CLEAN_WAIT: Duration = Duration::from_secs(5);

/// Maximum bytes of packet-ins that are kept of one switch until it is up. Further ones are
/// dropped.
pub(crate) const EARLY_PACKET_BYTES: usize = 64 * 1024;

/// Maximum number of port changes of one switch that wait between early packet-ins. A further one
/// drops these packet-ins.
pub(crate) const EARLY_PORT_STATUSES: usize = 64;

/// Maximum bytes of early packet-ins and changes of ports, for all switches of a worker together.
pub(crate) const EARLY_PACKET_BYTES_OF_ALL: usize = 64 * 1024 * 1024;

/// Maximum bytes of messages that a switch may send before its features, for a raw owner. Beyond
/// it, the connection ends: none of them may be dropped.
pub const MAX_EARLY_BYTES: usize = 1 << 20;

/// Maximum number of switches of a controller whose last order for a role is kept. Beyond it, an
/// order for a switch that is not connected is forgotten.
pub(crate) const KEPT_ORDERS: usize = 64 * 1024;

/// Maximum number of messages in a worker's mailbox. If it is full, senders get an error.
pub(crate) const MAILBOX_MESSAGES: usize = 16 * 1024;

/// Maximum bytes of messages in a worker's mailbox. Beyond it, senders get an error.
pub(crate) const MAILBOX_BYTES: usize = 64 * 1024 * 1024;

/// Maximum bytes that wait for a switch. Above it, mail for the switch is refused.
pub(crate) const MAIL_BACKLOG_BYTES: usize = 4 * 1024 * 1024;

/// Maximum number of messages processed before switches are read again.
pub(crate) const MAIL_PER_TURN: usize = 1024;

/// Time over which a worker measures its load, before it publishes it.
pub const LOAD_WINDOW: Duration = Duration::from_millis(100);

/// Minimum load of an overloaded worker, in thousandths of a window.
pub(crate) const OVERLOADED_PERMILLE: u16 = 900;

/// Maximum load of a worker that is given switches, in thousandths of a window. Far below
/// [`OVERLOADED_PERMILLE`], so that no switch moves back and forth.
pub(crate) const IDLE_PERMILLE: u16 = 500;

/// Number of consecutive windows of overload before a worker hands switches over. A burst is
/// shorter.
pub(crate) const HAND_OVER_WINDOWS: u32 = 5;

/// Maximum number of switches handed over at once; senders to any switch wait meanwhile. More
/// follow after the same number of windows.
pub(crate) const HAND_OVER_SWITCHES: usize = 256;

/// Minimum time that a switch stays at the worker that it was handed over to.
pub(crate) const HAND_OVER_REST: Duration = Duration::from_secs(10);

/// Maximum number of tasks of a controller that have not ended. A further one is not run.
pub(crate) const MAX_TASKS: usize = 64 * 1024;

/// Delay before a supervised task restarts after a panic. It doubles with each panic within
/// [`crate::PANIC_WINDOW`].
pub(crate) const TASK_STARTED_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Number of tasks' turns after which timers are checked.
pub(crate) const POLLS_PER_TURN: usize = 256;

/// Maximum number of panicked tasks that are still shown to the operator.
pub(crate) const PANICKED_TASKS_KEPT: usize = 64;
