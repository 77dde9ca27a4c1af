//! Where a message is written that goes into a mailbox: only then is it known how long it is.

use std::cell::RefCell;

use bellrock_api::openflow::{MAX_MESSAGE_LEN, Out};

thread_local! {
    /// Whoever sends has one of his own, for as long as his thread lives: 64 KiB, which would otherwise be taken and
    /// cleared for each message.
    static DRAFT: RefCell<Out> = RefCell::new(Out::with_capacity(MAX_MESSAGE_LEN));
}

/// Lends an empty buffer with room for a message. Not within another draft.
pub(crate) fn draft<T>(write: impl FnOnce(&mut Out) -> T) -> T {
    DRAFT.with_borrow_mut(|out| {
        out.clear();
        write(out)
    })
}
