//! However a worker waits, it handles all events: bytes, messages from other threads, new
//! connections, timers, and a stop.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bellrock_api::openflow::{Bytes, List, PacketOut, ToSwitch};
use bellrock_api::{
    Action, App, Dpid, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict,
    Version,
};
use bellrock_engine::IdleMode;
use peer::{Peer, counter, frame, start_with, until};

/// Answers packets, and counts ticks.
#[derive(Clone, Default)]
struct Ticking(Arc<AtomicU64>);

impl App for Ticking {
    type Handler = Ticking;

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Ticking {
        self.clone()
    }
}

impl Handler for Ticking {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }

    fn tick(&mut self, _: &mut Switch<'_>) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn a_worker_sees_what_comes(idle: IdleMode) {
    const ROUNDS: u64 = 500;
    let app = Ticking::default();
    let engine = start_with(2, vec![Box::new(app.clone())], |settings| settings.idle = idle);
    let mut first = Peer::up(&engine, Version::V1_3, 1);
    let mut second = Peer::up(&engine, Version::V1_0, 2);
    let network = engine.network();
    for round in 0..ROUNDS {
        first.ping(round);
        let (frame, actions) = (frame(ROUNDS + round, 64), [Action::output(Port::FLOOD)]);
        let packet = PacketOut {
            buffer_id: None,
            in_port: Port::CONTROLLER,
            actions: List::of(&actions),
            data: Bytes(&frame),
        };
        network.send(Dpid(2), &ToSwitch::PacketOut(packet)).unwrap();
        assert_eq!(second.sequence(), ROUNDS + round);
        if round % 100 == 0 {
            // Longer than any worker polls: each one that may sleep does.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(counter(&engine, "mail_in"), ROUNDS);
    until("time passes", || app.0.load(Ordering::Relaxed) >= 4);
    engine.stop();
    first.wait_closed();
    second.wait_closed();
}

#[test]
fn a_worker_that_sleeps_sees_what_comes() {
    a_worker_sees_what_comes(IdleMode::Sleep);
}

#[test]
fn a_worker_that_adapts_sees_what_comes() {
    a_worker_sees_what_comes(IdleMode::Adaptive);
}

#[test]
fn a_worker_that_spins_sees_what_comes() {
    a_worker_sees_what_comes(IdleMode::Spin);
}
