//! Tests only: counts the lines that the calling thread touches, to check the bounds of operations,
//! and the lines of a shared table that it holds, to check that it reads no other line.

use std::cell::Cell;

thread_local! {
    static LINES: Cell<usize> = const { Cell::new(0) };
    #[cfg(not(loom))]
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Records that `lines` lines were read or written.
pub(crate) fn touched(lines: usize) {
    LINES.set(LINES.get() + lines);
}

/// Returns the number of lines touched since the last call.
pub(crate) fn take() -> usize {
    LINES.replace(0)
}

/// Records that the thread has locked a line of a shared table for writing.
#[cfg(not(loom))]
pub(crate) fn holds_one_more() {
    HELD.set(HELD.get() + 1);
}

/// Records that the thread has released a line.
#[cfg(not(loom))]
pub(crate) fn holds_one_less() {
    HELD.set(HELD.get() - 1);
}

/// Runs `others` as if they were another thread: the lines that this thread holds do not count.
#[cfg(not(loom))]
pub(crate) fn by_another<R>(others: impl FnOnce() -> R) -> R {
    let held = HELD.replace(0);
    let result = others();
    HELD.set(held);
    result
}

/// Records that the thread begins to read a line.
#[cfg(not(loom))]
pub(crate) fn reads_a_line() {
    assert_eq!(HELD.get(), 0, "a thread that holds a line must not read another");
}
