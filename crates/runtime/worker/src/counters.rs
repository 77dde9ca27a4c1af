//! Counters of a worker: only it writes them, any thread reads them.

use bellrock_api::{Counter, counters};

/// Name and meaning of each counter of a worker.
pub const COUNTERS: &[(&str, &str)] = WorkerCounters::ALL;

/// Name and meaning of each counter of the tasks.
pub const TASK_COUNTERS: &[(&str, &str)] = TaskCounters::ALL;

counters! {
    /// Counters of a worker since its start.
    ///
    /// One thread writes; reading from others is safe and a moment old. Aligned so that no two
    /// workers' counters share a cache line (two lines, because lines are fetched in pairs).
    #[repr(align(128))]
    pub struct WorkerCounters: Counter {
        /// Connections that were accepted.
        connections_opened,
        /// Connections that ended, for any reason.
        connections_closed,
        /// Connections whose handshake was not finished in time.
        handshake_timeouts,
        /// Connections that were closed because they broke the protocol.
        protocol_closes,
        /// Connections that were closed because nothing more came from them.
        dead_closes,
        /// Connections that were closed because their switches read no more bytes.
        stalled_closes,
        /// Connections that were closed because unfinished replies took up too much memory.
        unfinished_closes,
        /// Switches that came up.
        switches_up,
        /// Switches that went down.
        switches_down,
        /// Times that a switch began to stand by: at its connect, or when the controller was made
        /// slave.
        switches_standby,
        /// Reports of switches that the controller is master or equal that did not end a standby:
        /// an order was needed, or there were too many.
        role_reports_ignored,
        /// Switches that were handed over to another worker.
        switches_handed_over,
        /// Switches that were taken over from another worker.
        switches_taken_over,
        /// Auxiliary connections that were refused.
        auxiliary_refused,
        /// Connections that were refused because their datapath id is connected and alive.
        duplicates_refused,
        /// Connections that were closed because they may not speak for their datapath id, by their
        /// certificate or without one.
        identity_refusals,
        /// Connections that were closed because a new one with the same datapath id replaced them.
        duplicates_replaced,
        /// Bytes received.
        bytes_in,
        /// Bytes passed to the transport.
        bytes_out,
        /// Reads that brought bytes.
        reads,
        /// Writes of answers to the transport.
        writes,
        /// Times that a switch was not read because too much waits to be written to it.
        pauses,
        /// Packet-ins that reached the apps.
        packet_ins,
        /// Packet-ins that were dropped because a switch sent more than its limit a second.
        packet_ins_over_limit,
        /// Packet-ins that were dropped because the worker was overloaded, and their switch sent
        /// more than its share.
        packet_ins_shed,
        /// Packet-ins that were dropped because the switch was not up yet.
        packet_ins_early,
        /// Packet-ins that were dropped because the controller stands by at their switch.
        packet_ins_standby,
        /// Messages other than packet-ins that were dropped during the handshake.
        messages_early,
        /// Ports that were left out, because a switch has more than 8,192.
        ports_left_out,
        /// Packet-ins that no app consumed.
        packet_ins_unhandled,
        /// Errors that handlers returned.
        handler_errors,
        /// Panics of handlers that were caught.
        handler_panics,
        /// Events for which a handler took longer than `handler_time`. A watchdog counts them while
        /// they last.
        handlers_blocked,
        /// Messages that handlers wrote and that were not sent, because their app is not allowed
        /// to.
        messages_refused,
        /// Apps that were disabled because their handlers panicked repeatedly.
        apps_disabled,
        /// OpenFlow errors that switches sent.
        errors_received,
        /// Table-miss entries that switches refused.
        table_miss_refused,
        /// Messages that could not be decoded.
        malformed,
        /// Replies to no request, and hellos after the first.
        unexpected,
        /// OpenFlow errors that were not sent, because a switch caused more than the limit a
        /// second.
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
        /// Changes with an unknown outcome: the connection ended, or the switch did not confirm in
        /// time.
        changes_unknown,
        /// Messages from other threads for switches of this worker.
        mail_in,
        /// Messages from other threads whose switch was gone before they were sent.
        mail_undeliverable,
        /// Flows of an earlier run that were removed when their switch came up.
        stale_flows_removed,
        /// Flows of an earlier run that their app adopted.
        flows_adopted,
        /// Flows that were raised above what an app in front sees, as it allows.
        flows_raised,
        /// Flows without wildcards that were not sent in 1.0, as they would rank above what an app
        /// in front sees.
        exact_flows_left_out,
        /// Events of switches that were not published, because there were too many.
        events_left_out,
        /// Log lines about switches that were not written, because there were too many.
        log_lines_left_out,
    }
}

counters! {
    /// Counters of the tasks of a controller since its start. One thread at a time writes each of
    /// them: the task worker, or a thread with the lock of the list of tasks.
    #[repr(align(128))]
    pub struct TaskCounters: Counter {
        /// Tasks that were started.
        tasks_started,
        /// Tasks that finished.
        tasks_finished,
        /// Tasks that were cancelled, or that ended when the controller stopped.
        tasks_cancelled,
        /// Panics of tasks.
        tasks_panicked,
        /// Restarts of supervised tasks after a panic.
        tasks_started_again,
        /// Tasks that were not run, because there were too many or the controller had stopped.
        tasks_refused,
        /// Turns of tasks.
        task_polls,
    }
}
