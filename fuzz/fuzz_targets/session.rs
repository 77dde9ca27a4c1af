//! A controller's end accepts any bytes in any chunks, before and after the handshake.
//!
//! The first byte of the input decides whether a switch completes a handshake first, in which
//! version, and the size of chunks. The other bytes come from the peer.
#![no_main]

use std::time::Duration;

use bellrock_openflow::{MultipartKind, Out, RequestKind, Version};
use bellrock_session::{
    ControllerSession, SessionEvent, SessionSettings, SwitchDescription, SwitchSession, Versions,
    xid,
};
use libfuzzer_sys::fuzz_target;

/// Small, so that answers sometimes do not fit.
const OUT_BYTES: usize = 2048;
/// Maximum number of rounds of a handshake; more would mean that it never ends.
const HANDSHAKE_ROUNDS: usize = 32;
const TICK: Duration = Duration::from_millis(700);

fuzz_target!(|input: &[u8]| {
    let Some((&how, bytes)) = input.split_first() else { return };
    let mut now = Duration::ZERO;
    let mut out = Out::with_capacity(OUT_BYTES);
    let mut controller =
        ControllerSession::new(&SessionSettings::default(), now, &mut out).expect("a hello fits");
    if how & 1 != 0 {
        let versions = if how & 2 != 0 { Versions::only(Version::V1_0) } else { Versions::ALL };
        shake_hands(&mut controller, versions, now);
        ask(&mut controller, now);
    }
    let chunk = 1 << (how >> 4);
    let mut stream = Vec::new();
    for piece in bytes.chunks(chunk) {
        stream.extend_from_slice(piece);
        now += TICK;
        controller.received(now);
        let Some(used) = take(&mut controller, &stream, now, &mut out) else { return };
        stream.drain(..used);
        if controller.timeout(now, &mut out).is_err() {
            return;
        }
        while controller.give_up(now).is_some() {}
        if now.as_millis().is_multiple_of(3) {
            out.clear();
        }
    }
});

/// Takes all whole messages from `stream`. Returns their length in bytes; `None` if the connection
/// closes.
fn take(
    controller: &mut ControllerSession,
    stream: &[u8],
    now: Duration,
    out: &mut Out,
) -> Option<usize> {
    let mut used = 0;
    loop {
        match controller.next(&stream[used..], now, out).ok()? {
            None => return Some(used),
            Some((0, SessionEvent::OutFull)) => out.clear(),
            Some((n, event)) => {
                assert!(n >= 8, "{n} bytes consumed for {event:?}");
                used += n;
                if let SessionEvent::Multipart { reply, .. } = event {
                    reply.body().expect("it was checked");
                }
            }
        }
    }
}

fn shake_hands(controller: &mut ControllerSession, versions: Versions, now: Duration) {
    let (mut up, mut down) = (Out::with_capacity(OUT_BYTES), Out::with_capacity(OUT_BYTES));
    let mut fresh =
        ControllerSession::new(&SessionSettings::default(), now, &mut down).expect("a hello fits");
    std::mem::swap(controller, &mut fresh);
    let mut switch =
        SwitchSession::new(SwitchDescription::new(1), versions, &mut up).expect("a hello fits");
    for _ in 0..HANDSHAKE_ROUNDS {
        let mut bytes = down.as_slice();
        while let Some((used, _)) = switch.next(bytes, &mut up).expect("an honest controller") {
            bytes = &bytes[used..];
        }
        down.clear();
        take(controller, up.as_slice(), now, &mut down).expect("an honest switch");
        up.clear();
        if controller.is_ready() {
            return;
        }
    }
    panic!("the handshake does not end");
}

/// Sends requests, so that replies are expected. Their xids are small numbers in the owner's lowest
/// bits.
fn ask(controller: &mut ControllerSession, now: Duration) {
    for kind in MultipartKind::ALL {
        let xid = controller.next_xid(xid::SESSION);
        controller.request(xid, RequestKind::Multipart(*kind), now).expect("few are unanswered");
    }
    for kind in [RequestKind::Barrier, RequestKind::Role, RequestKind::Async] {
        let xid = controller.next_xid(xid::SESSION);
        controller.request(xid, kind, now).expect("few are unanswered");
    }
}
