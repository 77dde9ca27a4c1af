//! Counters of a worker: only it writes them, any thread reads them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Defines counters, with their names and descriptions.
macro_rules! counters {
    ($what:literal $counters:ident $table:ident
     $($(#[doc = $doc:literal])* $name:ident,)*) => {
        #[doc = $what]
        ///
        /// One thread writes; reading from others is safe and a moment old. Aligned so that no
        /// two workers' counters share a cache line (two lines, because lines are fetched in
        /// pairs).
        #[repr(align(128))]
        #[derive(Debug, Default)]
        pub struct $counters { $($(#[doc = $doc])* pub $name: Counter,)* }

        /// Name and meaning of each counter.
        pub const $table: &[(&str, &str)] = &[$((stringify!($name), concat!($($doc),*)),)*];

        impl $counters {
            /// All counters, by name.
            pub fn read(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

counters! {
    "What a worker has counted since it started."
    Counters COUNTERS
    /// Connections that were accepted.
    connections_opened,
    /// Connections that ended, for whatever reason.
    connections_closed,
    /// Connections whose handshake was not finished in time.
    handshake_timeouts,
    /// Connections that were closed because they broke the protocol.
    protocol_closes,
    /// Connections that were closed because nothing came from them any more.
    dead_closes,
    /// Connections that were closed because they took no bytes any more.
    stalled_closes,
    /// Connections that were closed because unfinished replies took up too much memory.
    unfinished_closes,
    /// Switches that came up.
    switches_up,
    /// Switches that went down.
    switches_down,
    /// Switches that were handed over to another worker.
    switches_handed_over,
    /// Switches that were taken over from another worker.
    switches_taken_over,
    /// Auxiliary connections that were refused.
    auxiliary_refused,
    /// Connections that were refused because their datapath id is connected and alive.
    duplicates_refused,
    /// Connections that were closed because a new one with the same datapath id took their place.
    duplicates_replaced,
    /// Bytes received.
    bytes_in,
    /// Bytes handed to the transport.
    bytes_out,
    /// Reads that brought bytes.
    reads,
    /// Times that answers were handed to the transport.
    writes,
    /// Times that a switch was not read because too much waits to be written to it.
    pauses,
    /// Packet-ins that reached the apps.
    packet_ins,
    /// Packet-ins that were dropped because a switch sent more than its limit a second.
    packet_ins_over_limit,
    /// Packet-ins that were dropped because the switch was not up yet.
    packet_ins_early,
    /// Messages other than packet-ins that were dropped because the handshake was not over.
    messages_early,
    /// Ports of switches that were left out, because a switch has more than are kept (8,192).
    ports_left_out,
    /// Packet-ins that no app consumed.
    packet_ins_unhandled,
    /// Errors that handlers returned.
    handler_errors,
    /// Panics of handlers that were caught.
    handler_panics,
    /// Apps that were disabled because their handlers panicked again and again.
    apps_disabled,
    /// OpenFlow errors that switches sent.
    errors_received,
    /// Table-miss entries that switches refused.
    table_miss_refused,
    /// Messages that could not be read.
    malformed,
    /// Replies to no request of ours, and hellos after the first.
    unexpected,
    /// OpenFlow errors that were not sent, because a switch earned more than its limit a second.
    errors_suppressed,
    /// Requests that were given up because no answer came in time.
    requests_unanswered,
    /// Removals of apps that did not happen, because the switch did not report its flows (1.0).
    removals_unanswered,
    /// Multipart replies that were dropped because they grew too large.
    multipart_overflows,
    /// Changes of switches that were sent to be confirmed.
    changes_sent,
    /// Changes that switches have confirmed.
    changes_confirmed,
    /// Changes that switches have refused.
    changes_refused,
    /// Changes of which it is not known what became of them: the connection ended, or the switch did not
    /// confirm in time.
    changes_unknown,
    /// Messages for switches of this worker that came from elsewhere.
    mail_in,
    /// Messages from elsewhere whose switch was gone when they were to be sent.
    mail_undeliverable,
    /// Flows that an earlier run had left and that were removed when their switch came up.
    stale_flows_removed,
    /// Flows that an earlier run had left and that their app has taken on.
    flows_adopted,
    /// Events of switches that came up or went that were not published, because too many came.
    events_left_out,
    /// Log lines about switches that were not written, because too many came.
    log_lines_left_out,
}

counters! {
    "What the tasks of a controller have come to since it started."
    TaskCounters TASK_COUNTERS
    /// Tasks that were started.
    tasks_started,
    /// Tasks that came to their end.
    tasks_finished,
    /// Tasks that were ended where they waited: cancelled, or because the controller stopped.
    tasks_cancelled,
    /// Panics of tasks.
    tasks_panicked,
    /// Panics after which a supervised task was started again.
    tasks_started_again,
    /// Tasks that were not run because there were too many, or because the controller had stopped.
    tasks_refused,
    /// Turns that tasks had.
    task_polls,
}

/// A number that one thread adds to and other threads read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds, without an atomic read-modify-write: only the owner calls it.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The current value.
    #[must_use]
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
