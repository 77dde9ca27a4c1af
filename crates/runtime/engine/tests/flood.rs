//! Both directions flooded: a switch that sends without pause and reads slowly. Alone in its
//! process, because it measures the process's memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bellrock_api::Version;
use peer::{PATIENCE, Peer, counter, packet_in, start};

/// Number of packets and their length: far more than all kernel buffers hold.
const PACKETS: u64 = 80_000;
const PACKET_BYTES: usize = 1400;

/// Receive buffer of the switch. Into much smaller ones the kernel drops segments of a loopback
/// device, and sends them again up to half a minute later.
const RECEIVE_BYTES: usize = 64 * 1024;

/// Maximum growth of the process's memory: the buffers of the worker and of the test. The answers
/// are a hundred times that.
const MAX_GROWTH_KIB: u64 = 12 * 1024;

fn memory_kib(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn nothing_is_lost_or_out_of_order_or_hoarded() {
    let engine = start(1, |settings| {
        settings.worker.limits.high_water_bytes = 64 * 1024;
        settings.worker.limits.stalled = PATIENCE;
        // Two threads write to the connection, so an answer to an echo would go in between.
        settings.worker.session.echo_after = 2 * PATIENCE;
    });
    let peer = Peer::connect_buffered(RECEIVE_BYTES, engine.addresses()[0], Version::V1_3, 1);
    let mut peer = peer.come_up(&engine);
    let before = memory_kib("VmRSS");

    let mut writing = peer.stream.try_clone().unwrap();
    writing.set_write_timeout(Some(2 * PATIENCE)).unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&sent);
    let writer = std::thread::spawn(move || {
        for sequence in 0..PACKETS {
            writing.write_all(&packet_in(Version::V1_3, sequence, PACKET_BYTES)).unwrap();
            counting.store(sequence + 1, Ordering::Relaxed);
        }
    });

    // It does not read until the controller does not read either, and its own writes block.
    let deadline = Instant::now() + PATIENCE;
    let mut last = (0, Instant::now());
    while counter(&engine, "pauses") == 0 || last.1.elapsed() < Duration::from_millis(300) {
        assert!(Instant::now() < deadline, "the flood never blocked");
        std::thread::sleep(Duration::from_millis(10));
        let now = sent.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    assert!(last.0 < PACKETS, "back-pressure reaches the switch");

    for sequence in 0..PACKETS {
        assert_eq!(peer.sequence(), sequence);
        if sequence % 4096 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    writer.join().unwrap();
    let grown = memory_kib("VmHWM").saturating_sub(before);
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB more at the peak");
    assert_eq!(counter(&engine, "stalled_closes"), 0);
    peer.ping(1);
}
