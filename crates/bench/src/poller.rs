//! Waiting for sockets: epoll, edge-triggered, with waits of less than a millisecond.
//!
//! Each thread has its own. (`mio` waits in whole milliseconds, which is too coarse for packets that
//! are due at a rate.)

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;

/// Sockets that one wait tells of; the others are told of by the next.
const EVENTS: usize = 256;

/// What is new about a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The number that it was added with.
    pub(crate) token: usize,
    /// It can be read, or is closed.
    pub(crate) readable: bool,
    /// It can be written to, or is connected, or could not be.
    pub(crate) writable: bool,
}

/// An epoll instance.
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Watches a socket, until it is closed.
    pub(crate) fn add(&self, socket: impl AsFd, token: usize) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token as u64), flags)?)
    }

    /// Waits at most so long for something to be new, and tells of it in place of what was in
    /// `ready`.
    pub(crate) fn wait(&self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        const READ: EventFlags =
            EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::HUP).union(EventFlags::ERR);
        const WRITE: EventFlags = EventFlags::OUT.union(EventFlags::HUP).union(EventFlags::ERR);
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        ready.clear();
        let events = match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        ready.extend(events.iter().map(|event| {
            let flags = event.flags;
            Ready {
                token: event.data.u64() as usize,
                readable: flags.intersects(READ),
                writable: flags.intersects(WRITE),
            }
        }));
        Ok(())
    }
}
