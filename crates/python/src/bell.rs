//! An eventfd: the thread of a program waits for it, and workers write to it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

/// Bytes of the counter of an eventfd.
const COUNTER_BYTES: usize = 8;

/// Readable from a [`ring`](Self::ring) to the next [`clear`](Self::clear).
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// Makes one that is not readable.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable. Never waits: a full counter is readable.
    pub(crate) fn ring(&self) {
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it not readable.
    pub(crate) fn clear(&self) -> io::Result<()> {
        match read(&self.0, &mut [0; COUNTER_BYTES]) {
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until it is readable, at most so long. Returns whether it may be.
    pub(crate) fn wait(&self, milliseconds: u32) -> io::Result<bool> {
        let seconds = i64::from(milliseconds / 1000);
        let nanoseconds = i64::from(milliseconds % 1000) * 1_000_000;
        let limit = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        match poll(&mut [PollFd::new(&self.0.as_fd(), PollFlags::IN)], Some(&limit)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn fileno(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
