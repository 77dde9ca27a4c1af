//! Messages from other threads, and a stop that loses none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bellrock_api::openflow::{Bytes, List, PacketOut, ToSwitch};
use bellrock_api::{
    Action, App, Dpid, Error, Handler, Network, PacketIn, Port, Switch, SwitchInfo, Verdict,
    Version,
};
use peer::{Background, Peer, counter, frame, sequence_of, start, start_with, until};

/// Maximum time of a stop. It does not wait longer for switches that read nothing.
const STOP_BOUND: Duration = Duration::from_secs(40);

fn send(network: &Network, dpid: u64, sequence: u64, len: usize) -> Result<(), Error> {
    let (frame, actions) = (frame(sequence, len), [Action::output(Port::FLOOD)]);
    let packet = PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: List::of(&actions),
        data: Bytes(&frame),
    };
    network.send(Dpid(dpid), &ToSwitch::PacketOut(packet))
}

/// Reads packet_outs until the controller closes the connection.
fn sequences(mut peer: Peer, pause: Duration) -> Vec<u64> {
    let mut sequences = Vec::new();
    while let Some(message) = peer.message() {
        sequences.extend(sequence_of(&message));
        std::thread::sleep(pause);
    }
    sequences
}

#[test]
fn messages_of_many_threads_arrive_whole_and_in_order_of_each() {
    const THREADS: u64 = 4;
    const EACH: u64 = 2000;
    let engine = start(2, |_| {});
    let mut peer = Peer::up(&engine, Version::V1_3, 1);
    // Interleaved with answers of the switch's own worker.
    let pings = 200;
    for sequence in 0..pings {
        peer.packet_in(THREADS * EACH + sequence, 64);
    }
    let network = engine.network();
    let senders = (0..THREADS).map(|thread| {
        let network = network.clone();
        std::thread::spawn(move || {
            for i in 0..EACH {
                let len = 64 + (i as usize * 37) % 1400;
                while let Err(error) = send(&network, 1, thread * EACH + i, len) {
                    assert_eq!(error, Error::Full(Dpid(1)));
                    std::thread::yield_now();
                }
            }
        })
    });
    let senders: Vec<_> = senders.collect();
    let mut next: Vec<u64> = (0..=THREADS).map(|thread| thread * EACH).collect();
    for _ in 0..THREADS * EACH + pings {
        let sequence = peer.sequence();
        let thread = (sequence / EACH) as usize;
        assert_eq!(sequence, next[thread], "of thread {thread}");
        next[thread] += 1;
    }
    for sender in senders {
        sender.join().unwrap();
    }
    assert_eq!(counter(&engine, "mail_in"), THREADS * EACH);
    assert_eq!(counter(&engine, "mail_undeliverable"), 0);
}

#[test]
fn a_message_to_nobody_is_refused_and_so_is_one_too_many() {
    let engine = start(1, |settings| settings.worker.limits.stalled = Duration::from_secs(60));
    let network = engine.network();
    assert_eq!(send(&network, 1, 0, 64), Err(Error::UnknownSwitch(Dpid(1))));
    let peer = Peer::connect_narrow(engine.addresses()[0], Version::V1_3, 1).come_up(&engine);
    let mut accepted = 0;
    let refused = loop {
        match send(&network, 1, accepted, 32 * 1024) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 100_000, "a switch that reads nothing is sent messages without end");
    };
    assert_eq!(refused, Error::Full(Dpid(1)));
    // Accepted messages arrive.
    let reader = std::thread::spawn(move || {
        let mut peer = peer;
        for sequence in 0..accepted {
            assert_eq!(peer.sequence(), sequence);
        }
        peer
    });
    let mut peer = reader.join().unwrap();
    until("it takes messages again", || send(&network, 1, accepted, 64).is_ok());
    assert_eq!(peer.sequence(), accepted);
}

#[test]
fn a_stop_sends_accepted_messages_first_and_no_switch_can_delay_it() {
    let engine = start(2, |settings| settings.worker.limits.stalled = Duration::from_secs(60));
    let address = engine.addresses()[0];
    let slow = Peer::connect_narrow(address, Version::V1_3, 1).come_up(&engine);
    let stuck = Peer::connect_narrow(address, Version::V1_0, 2).come_up(&engine);
    let idle = Background::run(Peer::up(&engine, Version::V1_3, 3));
    let network = engine.network();
    // More than the kernel takes: bytes are queued, and the last ones may still be in the mailbox.
    // Only those beyond a switch's maximum backlog are refused. Few enough for a reader on a busy
    // machine: bytes not read two seconds after the stop are lost.
    let fill = |dpid| (0..80).take_while(|n| send(&network, dpid, *n, 30_000).is_ok()).count();
    let (to_slow, to_stuck) = (fill(1) as u64, fill(2));
    assert!(to_slow > 60 && to_stuck > 60, "{to_slow} and {to_stuck} were accepted");
    assert_eq!(engine.monitor().status().switches, 3);
    let reader = std::thread::spawn(move || sequences(slow, Duration::from_millis(1)));
    let start = Instant::now();
    engine.stop();
    assert!(start.elapsed() < STOP_BOUND, "it stopped after {:?}", start.elapsed());
    let received = reader.join().unwrap();
    assert!(received.iter().copied().eq(0..to_slow), "{} of {to_slow} came", received.len());
    assert_eq!(send(&network, 1, 0, 64), Err(Error::UnknownSwitch(Dpid(1))));
    let mut idle = idle.stop();
    idle.wait_closed();
    drop(stuck);
}

/// Blocks its worker at a packet until it is released.
#[derive(Clone, Default)]
struct Hold {
    held: Arc<AtomicBool>,
    released: Arc<AtomicBool>,
}

impl App for Hold {
    type Handler = Hold;

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Hold {
        self.clone()
    }
}

impl Handler for Hold {
    fn packet_in(
        &mut self,
        switch: &mut Switch<'_>,
        packet: &PacketIn<'_>,
    ) -> bellrock_api::Result<Verdict> {
        if packet.data().len() == HOLDING_BYTES {
            self.held.store(true, Ordering::Relaxed);
            until("the worker is released", || self.released.load(Ordering::Relaxed));
        }
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

/// Length of the packet that blocks a worker.
const HOLDING_BYTES: usize = 100;

#[test]
fn messages_that_a_worker_has_not_looked_at_when_it_stops_arrive() {
    // More than a worker takes from its mailbox in a turn.
    const SENT: u64 = 5000;
    let hold = Hold::default();
    let engine = start_with(1, vec![Box::new(hold.clone())], |_| {});
    let mut peer = Peer::up(&engine, Version::V1_3, 1);
    peer.packet_in(SENT, HOLDING_BYTES);
    until("the worker is held up", || hold.held.load(Ordering::Relaxed));
    let network = engine.network();
    for sequence in 0..SENT {
        send(&network, 1, sequence, 64).unwrap();
    }
    let stopping = std::thread::spawn(move || engine.stop());
    std::thread::sleep(Duration::from_millis(200));
    hold.released.store(true, Ordering::Relaxed);
    assert_eq!(peer.sequence(), SENT);
    let received = sequences(peer, Duration::ZERO);
    assert!(received.iter().copied().eq(0..SENT), "{} of {SENT} came", received.len());
    stopping.join().unwrap();
}

#[test]
fn a_stop_does_not_wait_for_a_flood_or_for_silent_connections() {
    let engine = start(2, |_| {});
    let address = engine.addresses()[0];
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    // New connections come all the time.
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let knocking = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            // Fails when the listener is closed.
            let _ = TcpStream::connect(address);
        }
    });
    until("the silent ones are in", || engine.monitor().status().accepted > 100);
    let start = Instant::now();
    engine.stop();
    assert!(start.elapsed() < STOP_BOUND, "it stopped after {:?}", start.elapsed());
    stop.store(true, Ordering::Relaxed);
    knocking.join().unwrap();
    drop(silent);
}
