//! Measures the time to decode a packet-in and to write its packet-out, on both versions. Run it
//! with `cargo bench -p bellrock-openflow`. The figures depend on the machine.

#![allow(clippy::expect_used, reason = "a benchmark that cannot run has to stop")]

use std::hint::black_box;
use std::time::Instant;

use bellrock_openflow::{
    Action, Bytes, FromSwitch, List, MatchView, Out, PacketInMessage, PacketInReason, PacketOut,
    Port, ToSwitch, Version, frame,
};

/// Messages in the stream, which is decoded repeatedly. It stays in the first-level cache.
const STREAM: usize = 100;
const PACKET_LEN: usize = 64;

fn main() {
    // Cargo passes `--test` only to check that the program runs.
    let test = std::env::args().any(|argument| argument == "--test");
    let rounds = if test { 1 } else { 100_000 };
    for version in Version::ALL {
        measure(version, rounds);
    }
}

fn measure(version: Version, rounds: usize) {
    let stream = stream(version);
    let start = Instant::now();
    let mut ports = 0_u64;
    for _ in 0..rounds {
        each(black_box(stream.as_slice()), |packet| {
            ports += u64::from(packet.in_port().0) + packet.data.len() as u64;
        });
    }
    let decode = nanoseconds(start, rounds);

    let mut out = Out::with_capacity(STREAM * 2 * PACKET_LEN);
    let flood = [Action::output(Port::FLOOD)];
    let start = Instant::now();
    for _ in 0..rounds {
        out.clear();
        each(black_box(stream.as_slice()), |packet| {
            let answer = ToSwitch::PacketOut(PacketOut {
                buffer_id: None,
                in_port: packet.in_port(),
                actions: List::of(&flood),
                data: packet.data,
            });
            answer.encode(version, 0, &mut out).expect("the buffer holds all answers");
        });
        black_box(out.as_slice());
    }
    let answer = nanoseconds(start, rounds);
    println!("OpenFlow {version}: decode {decode:.1} ns, decode and answer {answer:.1} ns");
    assert!(ports > 0);
}

/// Calls `handle` for each packet-in of a stream.
fn each<'a>(mut stream: &'a [u8], mut handle: impl FnMut(&PacketInMessage<'a>)) {
    while let Ok(Some(frame)) = frame(stream) {
        if let Ok(message) = FromSwitch::decode(frame.bytes)
            && let FromSwitch::PacketIn(packet) = &message.body
        {
            handle(packet);
        }
        stream = &stream[frame.bytes.len()..];
    }
}

fn stream(version: Version) -> Out {
    let mut out = Out::with_capacity(STREAM * 2 * PACKET_LEN);
    for port in 1..=STREAM as u32 {
        let packet = FromSwitch::PacketIn(PacketInMessage {
            buffer_id: None,
            total_len: PACKET_LEN as u16,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: PacketInMessage::NO_COOKIE,
            matching: MatchView::port(Port(port)),
            data: Bytes(&[0; PACKET_LEN]),
        });
        packet.encode(version, 0, &mut out).expect("the buffer holds the stream");
    }
    out
}

fn nanoseconds(start: Instant, rounds: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / (rounds * STREAM) as f64
}
