//! A connection of a replay: a socket that never waits, with bytes to send and to read.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use bellrock_openflow::{Header, frame};

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// Bytes that wait for the peer, above which no further recorded messages are sent.
const HIGH_WATER_BYTES: usize = 256 * 1024;

/// Bytes that wait for the peer, above which the connection fails: it asks, and does not read.
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    out: Vec<u8>,
    inbox: Vec<u8>,
    /// Time of the last bytes received.
    pub(super) heard: Instant,
    /// Why the connection has ended.
    pub(super) ended: Option<String>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let (out, inbox) = (Vec::new(), Vec::new());
        Ok(Wire { stream, out, inbox, heard: Instant::now(), ended: None })
    }

    /// Whether a recorded message may be sent now.
    pub(super) fn has_space(&self) -> bool {
        self.ended.is_none() && self.out.len() < HIGH_WATER_BYTES
    }

    /// Whether everything is sent.
    pub(super) fn is_drained(&self) -> bool {
        self.out.is_empty()
    }

    /// Sends a message, unless the connection has ended.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.ended.is_some() {
            return;
        }
        self.out.extend_from_slice(bytes);
        if self.out.len() > MAX_WAITING_BYTES {
            self.ended.get_or_insert("the peer does not read its answers".to_owned());
        }
    }

    /// Sends a message with another xid.
    pub(super) fn send_as(&mut self, xid: u32, bytes: &[u8]) {
        let start = self.out.len();
        self.send(bytes);
        if let Some(place) = self.out.get_mut(start + 4..start + 8) {
            place.copy_from_slice(&xid.to_be_bytes());
        }
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Writes and reads what is possible. Returns whether anything was.
    pub(super) fn pump(&mut self) -> bool {
        if self.ended.is_some() {
            return false;
        }
        let mut moved = false;
        if !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(n) => {
                    self.out.drain(..n);
                    moved = n > 0;
                }
                Err(error) if is_wait(&error) => {}
                Err(error) => self.ended = Some(error.to_string()),
            }
        }
        let mut buffer = [0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => {
                self.ended.get_or_insert("the peer closed the connection".to_owned());
            }
            Ok(n) => {
                self.inbox.extend_from_slice(buffer.get(..n).unwrap_or_default());
                self.heard = Instant::now();
                moved = true;
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => {
                self.ended.get_or_insert(error.to_string());
            }
        }
        moved
    }

    /// Takes the next whole message that has come. `None` too if too much waits for the peer: it
    /// gets no further answers.
    pub(super) fn next(&mut self) -> Option<(Header, Vec<u8>)> {
        if self.out.len() > MAX_WAITING_BYTES {
            return None;
        }
        match frame(&self.inbox) {
            Ok(message) => {
                let (header, bytes) = message.map(|one| (one.header, one.bytes.to_vec()))?;
                self.inbox.drain(..bytes.len());
                Some((header, bytes))
            }
            Err(error) => {
                self.ended.get_or_insert(format!("the peer's stream is broken: {error}"));
                self.inbox.clear();
                None
            }
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_peer_that_does_not_read_gets_no_further_answers() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let mut wire = Wire::new(stream).unwrap();
        peer.write_all(&[[4, 2, 0, 8, 0, 0, 0, 0]; 2].concat()).unwrap();
        while wire.inbox.len() < 16 {
            wire.pump();
        }
        assert!(wire.next().is_some());
        let answer = vec![0; 60_000];
        (0..2_000).for_each(|_| wire.send(&answer));
        assert!(wire.ended.as_ref().unwrap().contains("does not read"));
        assert!(wire.out.len() <= MAX_WAITING_BYTES + answer.len());
        assert!(wire.next().is_none(), "its other request is not answered");
    }
}
