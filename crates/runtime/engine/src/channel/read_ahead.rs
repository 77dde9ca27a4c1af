//! A channel for tests that reads more from the kernel than it returns, as TLS does: it takes all
//! that came, and returns one short record for each read.

use std::io::{self, Read};

use mio::net::TcpStream;

use super::Received;

/// Maximum number of bytes that one read returns.
pub(crate) const RECORD_BYTES: usize = 16;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct ReadAhead {
    stream: TcpStream,
    /// Bytes read from the kernel.
    buffered: Vec<u8>,
}

impl ReadAhead {
    pub(crate) fn new(stream: TcpStream) -> ReadAhead {
        ReadAhead { stream, buffered: Vec::new() }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buffered.len()
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        if self.buffered.is_empty() {
            match self.stream.read_to_end(&mut self.buffered) {
                // What came before "would block" is in the buffer.
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && !self.buffered.is_empty() => {}
                outcome => {
                    outcome?;
                }
            }
        }
        let bytes = self.buffered.len().min(RECORD_BYTES).min(buffer.len());
        buffer[..bytes].copy_from_slice(&self.buffered[..bytes]);
        self.buffered.drain(..bytes);
        Ok(Received { bytes, has_more: !self.buffered.is_empty() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use std::io::Write;
    use std::net::TcpStream as Peer;
    use std::time::Duration;

    use bellrock_api::runtime::DynApp;
    use bellrock_worker::{ConnectionKey, Limits, ReadOutcome, Transport};
    use mio::Poll;
    use mio::event::Events;

    use crate::channel::ChannelKind;
    use crate::engine::Engine;
    use crate::listener::Listener;
    use crate::settings::EngineSettings;
    use crate::sockets::{ReadTurn, Sockets};

    use super::*;

    /// Time limit of a wait, far more than needed on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// Bytes that a peer sends at once. Several records.
    const SENT: [u8; 5 * RECORD_BYTES + 1] = [7; 5 * RECORD_BYTES + 1];

    /// A worker's sockets with their poller.
    fn sockets() -> (Poll, Sockets) {
        let poll = Poll::new().unwrap();
        let registry = poll.registry().try_clone().unwrap();
        (poll, Sockets::new(registry, &Limits::default()))
    }

    /// Keys of the connections that the poller reports as readable.
    fn readable(poll: &mut Poll, timeout: Duration) -> Vec<ConnectionKey> {
        let mut events = Events::with_capacity(8);
        poll.poll(&mut events, Some(timeout)).unwrap();
        events.iter().filter(|event| event.is_readable()).map(|event| event.token().0).collect()
    }

    /// A connection with key 0 that has read all of [`SENT`] from the kernel and has returned one
    /// record.
    fn connection_with_buffered_bytes(poll: &mut Poll, sockets: &mut Sockets) -> Peer {
        let address = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(address, ChannelKind::ReadAhead).unwrap();
        let mut peer = Peer::connect(listener.address()).unwrap();
        peer.write_all(&SENT).unwrap();
        let channel = listener.wait();
        while !channel.stream().peek(&mut [0; 1024]).is_ok_and(|bytes| bytes == SENT.len()) {
            std::thread::yield_now();
        }
        sockets.insert(0, channel).unwrap();
        while readable(poll, PATIENCE) != [0] {}
        assert_eq!(record(sockets, 0), (RECORD_BYTES, true));
        peer
    }

    /// Reads once. Returns the number of bytes, and whether there is more.
    fn record(sockets: &mut Sockets, key: ConnectionKey) -> (usize, bool) {
        match sockets.read(key, &mut [0; 1024]) {
            ReadOutcome::Bytes { n, has_more: more } => (n, more),
            other => unreachable!("{other:?}"),
        }
    }

    /// Reads until there is no more. Returns the lengths.
    fn records(sockets: &mut Sockets, key: ConnectionKey) -> Vec<usize> {
        let mut lengths = Vec::new();
        loop {
            let (bytes, more) = record(sockets, key);
            lengths.push(bytes);
            if !more {
                return lengths;
            }
        }
    }

    #[test]
    fn buffered_bytes_are_more_to_read_though_no_event_reports_them() {
        let (mut poll, mut sockets) = sockets();
        let _peer = connection_with_buffered_bytes(&mut poll, &mut sockets);
        assert_eq!(readable(&mut poll, Duration::ZERO), []);
        assert_eq!(records(&mut sockets, 0), [16, 16, 16, 16, 1]);
        assert_eq!(sockets.read(0, &mut [0; 1024]), ReadOutcome::Empty);
    }

    #[test]
    fn a_connection_that_moves_with_buffered_bytes_is_ready_at_its_new_worker() {
        let (mut poll, mut from) = sockets();
        let _peer = connection_with_buffered_bytes(&mut poll, &mut from);
        let (mut new_poll, mut to) = sockets();
        to.attach(3, from.detach(0).unwrap());
        assert_eq!(readable(&mut new_poll, Duration::ZERO), []);
        assert_eq!(to.ready.pop_fresh(), Some(3));
        assert!(to.ready.is_empty());
        assert_eq!(to.take_turn(3), ReadTurn::Read);
        assert_eq!(records(&mut to, 3), [16, 16, 16, 16, 1]);
        // A connection without such bytes waits for an event.
        from.attach(0, to.detach(3).unwrap());
        assert!(from.ready.is_empty());
    }

    #[test]
    fn a_worker_answers_all_messages_of_a_channel_that_reads_ahead() {
        const REQUESTS: u8 = 100;
        let settings = EngineSettings {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            workers: 1,
            ..EngineSettings::default()
        };
        let apps: Vec<Box<dyn DynApp>> = Vec::new();
        let engine =
            Engine::start_with(&settings, apps.into(), ChannelKind::ReadAhead, None).unwrap();
        let mut peer = Peer::connect(engine.addresses()[0]).unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        // One hello and many echo requests, in one segment: one readiness event.
        let mut messages = vec![4, 0, 0, 8, 0, 0, 0, 0];
        (0..REQUESTS).for_each(|xid| messages.extend([4, 2, 0, 8, 0, 0, 1, xid]));
        peer.write_all(&messages).unwrap();
        let mut answered = 0;
        while answered < REQUESTS {
            let mut header = [0; 8];
            peer.read_exact(&mut header).unwrap();
            let rest = u16::from_be_bytes([header[2], header[3]]) - 8;
            peer.read_exact(&mut vec![0; rest.into()]).unwrap();
            if header[1] == 3 {
                assert_eq!(header, [4, 3, 0, 8, 0, 0, 1, answered]);
                answered += 1;
            }
        }
    }
}
