//! Buffer for messages that go into a mailbox, whose length is known only after they are encoded.

use std::cell::RefCell;

use bellrock_api::openflow::{MAX_MESSAGE_LEN, Out};

thread_local! {
    /// One for each sending thread, for its lifetime: 64 KiB, too much to allocate and clear for
    /// each message.
    static DRAFT: RefCell<Out> = RefCell::new(Out::with_capacity(MAX_MESSAGE_LEN));
}

/// Lends an empty buffer of one message's maximum length. Calls must not nest.
pub(crate) fn draft<T>(write: impl FnOnce(&mut Out) -> T) -> T {
    DRAFT.with_borrow_mut(|out| {
        out.clear();
        write(out)
    })
}
