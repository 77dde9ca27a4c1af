//! A faulty controller, played by a test. It sends the canned responder's answers, with changes.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "shared by tests")]
#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use bellrock_bench::responder::answer::Answerer;
use bellrock_openflow::{
    Bytes, FromSwitch, Hello, Message, Out, ToSwitch, Version, Versions, frame,
};

/// Maps the answers to a packet_in to the messages to send. Arguments: the number of the packet_in
/// in its connection, and the right answers. `None` closes the connection.
pub type Change = dyn Fn(u64, Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> + Send + Sync;

/// Starts a controller. It runs until the test's process ends.
pub fn controller(
    change: impl Fn(u64, Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> + Send + Sync + 'static,
) -> SocketAddr {
    let change: Arc<Change> = Arc::new(change);
    serve(move |stream| {
        let _ = Connection { stream, out: Out::with_capacity(1 << 17) }.run(&*change);
    })
}

/// Starts a listener with a thread per connection.
pub fn serve(connection: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let connection = Arc::new(connection);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = Arc::clone(&connection);
            let stream = stream.unwrap();
            std::thread::spawn(move || connection(stream));
        }
    });
    address
}

struct Connection {
    stream: TcpStream,
    out: Out,
}

impl Connection {
    fn run(mut self, change: &Change) -> std::io::Result<()> {
        let mut answerer = Answerer::new().unwrap();
        let (mut inbox, mut buffer, mut count) = (Vec::new(), vec![0; 1 << 16], 0);
        Hello::write(Versions::ALL, 0, &mut self.out).unwrap();
        let mut greeted = false;
        loop {
            self.stream.write_all(self.out.as_slice())?;
            self.out.clear();
            let n = self.stream.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            inbox.extend_from_slice(&buffer[..n]);
            let mut used = 0;
            while let Some(message) = frame(&inbox[used..]).unwrap() {
                used += message.bytes.len();
                let (taken, answers) = answerer.answer(message.bytes);
                if taken > 0 {
                    let Some(changed) = change(count, cut(answers)) else { return Ok(()) };
                    count += 1;
                    changed.iter().for_each(|message| self.out.append(message).unwrap());
                } else {
                    self.control(message.bytes, &mut greeted);
                }
                if self.out.room() < 1 << 12 {
                    self.stream.write_all(self.out.as_slice())?;
                    self.out.clear();
                }
            }
            inbox.drain(..used);
        }
    }

    fn control(&mut self, message: &[u8], greeted: &mut bool) {
        let version = if message[0] == 1 { Version::V1_0 } else { Version::V1_3 };
        if !std::mem::replace(greeted, true) {
            ToSwitch::FeaturesRequest.encode(version, 1, &mut self.out).unwrap();
        }
        if let Ok(Message { body: FromSwitch::EchoRequest(Bytes(data)), xid, .. }) =
            FromSwitch::decode(message)
        {
            ToSwitch::EchoReply(Bytes(data)).encode(version, xid, &mut self.out).unwrap();
        }
    }
}

/// Cuts bytes into whole messages.
fn cut(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some(message) = frame(bytes).unwrap() {
        messages.push(message.bytes.to_vec());
        bytes = &bytes[message.bytes.len()..];
    }
    messages
}
