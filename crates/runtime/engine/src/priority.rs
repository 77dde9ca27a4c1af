//! Priority of the threads beside the workers.

/// What is added to the niceness of these threads. A worker that wakes up then runs at once. With
/// the same niceness it waits for the rest of a time slice, some 3 ms.
const ADDED_NICENESS: i32 = 10;

/// Lowers the priority of this thread, for where cores are few.
pub(crate) fn let_workers_go_first() {
    // On Linux it is of this thread alone. If it fails, packets wait a little longer.
    let _ = rustix::process::nice(ADDED_NICENESS);
}
