//! Tests only: counts the lines that the calling thread touches, to hold operations to their bound.

use std::cell::Cell;

thread_local! {
    static LINES: Cell<usize> = const { Cell::new(0) };
}

/// Notes that `lines` lines were read or written.
pub(crate) fn touched(lines: usize) {
    LINES.set(LINES.get() + lines);
}

/// The lines touched since the last call.
pub(crate) fn take() -> usize {
    LINES.replace(0)
}
