//! A switch on a real socket, for tests of the command.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bellrock_api::openflow::{
    Bytes, FromSwitch, MatchView, Out, PacketInMessage, PacketInReason, Port,
};
use bellrock_engine::session::{SwitchDescription, SwitchSession, Versions};

/// Time limit of a read, between two checks of the test's condition.
const GRAIN: Duration = Duration::from_millis(20);

pub(crate) struct FakeSwitch {
    stream: TcpStream,
    session: SwitchSession,
    received: Vec<u8>,
    out: Out,
}

impl FakeSwitch {
    pub(crate) fn connect(address: &str, description: SwitchDescription) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(GRAIN)).unwrap();
        let mut out = Out::with_capacity(64 * 1024);
        let session = SwitchSession::new(description, Versions::ALL, &mut out).unwrap();
        FakeSwitch { stream, session, received: Vec::new(), out }
    }

    /// Answers the controller until `done`, or fails after `patience`.
    pub(crate) fn serve_until(&mut self, patience: Duration, mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < patience, "it does not happen");
            self.serve();
        }
    }

    fn serve(&mut self) {
        self.flush();
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => panic!("the controller hung up"),
            Ok(count) => self.received.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
        while let Some((used, _)) = self.session.next(&self.received, &mut self.out).unwrap() {
            self.received.drain(..used);
        }
        self.flush();
    }

    fn flush(&mut self) {
        self.stream.write_all(self.out.as_slice()).unwrap();
        self.out.clear();
    }

    /// Sends a packet to the controller, unbuffered, as one that matched no flow.
    pub(crate) fn packet_in(&mut self, port: u32, packet: &[u8]) {
        let message = FromSwitch::PacketIn(PacketInMessage {
            buffer_id: None,
            total_len: packet.len() as u16,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: 0,
            matching: MatchView::port(Port(port)),
            data: Bytes(packet),
        });
        self.session.send(0, &message, &mut self.out).unwrap();
        self.flush();
    }
}
