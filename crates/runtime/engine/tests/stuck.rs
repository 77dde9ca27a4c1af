//! A handler that does not return, as an app of DELTA's cases 3.1.030 (infinite loops) and 3.1.120
//! (CPU exhaustion): the switches of its worker wait, those of other workers do not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellrock_api::{
    App, Dpid, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict, Version,
};
use peer::{Peer, start_with, until};

const STUCK: Dpid = Dpid(1);
const OTHER: Dpid = Dpid(2);

/// Answers packets, but does not return from one at [`STUCK`] while it is held.
#[derive(Clone, Default)]
struct Looping {
    is_held: Arc<AtomicBool>,
    loops: Arc<AtomicBool>,
}

/// Lets the handler go, also when the test fails: the engine waits for its workers.
struct LetGo(Looping);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.is_held.store(false, Ordering::Relaxed);
    }
}

impl App for Looping {
    type Handler = Looping;

    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Looping {
        self.clone()
    }
}

impl Handler for Looping {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        while switch.info().dpid == STUCK && self.is_held.load(Ordering::Relaxed) {
            self.loops.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

#[test]
fn a_handler_that_never_ends_holds_up_its_own_worker_only() {
    let app = Looping::default();
    let engine = start_with(2, vec![Box::new(app.clone())], |_| {});
    let mut stuck = Peer::up(&engine, Version::V1_3, STUCK.0);
    let mut other = Peer::up(&engine, Version::V1_0, OTHER.0);
    let monitor = engine.monitor();
    assert_ne!(monitor.worker_of(STUCK), monitor.worker_of(OTHER));
    app.is_held.store(true, Ordering::Relaxed);
    let held = LetGo(app.clone());
    stuck.packet_in(1, 100);
    until("the handler loops", || app.loops.load(Ordering::Relaxed));
    for sequence in 0..1000 {
        other.ping(sequence);
    }
    drop(held);
    assert_eq!(stuck.sequence(), 1, "nothing of it is lost");
}
