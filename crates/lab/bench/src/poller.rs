//! Waits for sockets: epoll, edge-triggered, with a resolution below a millisecond.
//!
//! Each thread has its own poller. `mio` waits in whole milliseconds, which is too coarse for
//! packets at a rate. `epoll_pwait2` waits finely, but needs Linux 5.11, and valgrind does not know
//! it. `ppoll` on the epoll instance waits as finely everywhere.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Maximum number of sockets that one wait reports. The next wait reports the rest.
const EVENTS: usize = 256;

/// Events of one socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The token given to [`Poller::add`].
    pub(crate) token: usize,
    /// The socket can be read, or is closed.
    pub(crate) readable: bool,
    /// The socket can be written to, or its connect has ended.
    pub(crate) writable: bool,
}

pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Watches a socket until it is closed.
    pub(crate) fn add(&self, socket: impl AsFd, token: usize) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(token as u64), flags)?)
    }

    /// Waits at most `timeout` for events, and replaces the contents of `ready` with them.
    pub(crate) fn wait(&self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        const READ: EventFlags =
            EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::HUP).union(EventFlags::ERR);
        const WRITE: EventFlags = EventFlags::OUT.union(EventFlags::HUP).union(EventFlags::ERR);
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        ready.clear();
        let events = match self.wait_for(timeout, &mut events) {
            Ok(events) => events,
            Err(Errno::INTR) => return Ok(()),
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

    /// Returns the events within `timeout`.
    fn wait_for<'e>(
        &self,
        timeout: Duration,
        events: &'e mut [MaybeUninit<Event>; EVENTS],
    ) -> Result<&'e [Event], Errno> {
        const NS_PER_MS: u32 = 1_000_000;
        let time = |timeout: Duration| Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut left = timeout;
        // Otherwise epoll would round the time up to whole milliseconds.
        if !timeout.subsec_nanos().is_multiple_of(NS_PER_MS) {
            poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&time(timeout)))?;
            left = Duration::ZERO;
        }
        let (events, _) = epoll::wait(&self.epoll, events, Some(&time(left)))?;
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    #[test]
    fn it_waits_for_whole_and_for_broken_milliseconds() {
        let poller = Poller::new().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        poller.add(&theirs, 7).unwrap();
        let mut ready = Vec::new();
        poller.wait(Duration::ZERO, &mut ready).unwrap();
        assert!(ready.iter().all(|ready| ready.token == 7 && !ready.readable), "{ready:?}");
        assert_eq!(ready.len(), 1);
        for timeout in [Duration::from_millis(2), Duration::from_micros(2_500)] {
            let start = Instant::now();
            poller.wait(timeout, &mut ready).unwrap();
            assert!(ready.is_empty() && start.elapsed() >= timeout);
            ours.write_all(b"x").unwrap();
            poller.wait(Duration::from_secs(3600) + timeout, &mut ready).unwrap();
            assert!(ready.iter().all(|ready| ready.token == 7 && ready.readable), "{ready:?}");
            assert_eq!(ready.len(), 1);
        }
    }
}
