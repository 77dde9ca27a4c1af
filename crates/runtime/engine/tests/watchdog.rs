//! A handler that does not return is named while it lasts, and after.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellrock_api::{
    App, Dpid, Handler, Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict, Version,
};
use peer::{Peer, counter, start_with, until};

/// Blocks at packets until it is released.
#[derive(Clone, Default)]
struct Blocking {
    blocks: Arc<AtomicBool>,
}

impl App for Blocking {
    type Handler = Blocking;
    fn name(&self) -> &'static str {
        "blocking"
    }
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Blocking {
        self.clone()
    }
}

impl Handler for Blocking {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        while self.blocks.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        switch.packet_out(packet, Port::FLOOD)?;
        Ok(Verdict::Consume)
    }
}

#[test]
fn a_handler_that_blocks_is_named_with_its_event_and_switch_and_counted_once() {
    let app = Blocking::default();
    let engine = start_with(1, vec![Box::new(app.clone())], |settings| {
        settings.worker.limits.handler_time = Duration::from_millis(200);
    });
    let mut peer = Peer::up(&engine, Version::V1_3, 0xa1);
    let network = engine.network();
    let find = |words: &[&str]| {
        let texts = network.events().latest(100);
        let has = |text: &str| words.iter().all(|word| text.contains(word));
        texts.iter().filter(|one| has(&one.event.to_string())).count()
    };
    assert_eq!(counter(&engine, "handlers_blocked"), 0);
    app.blocks.store(true, Ordering::Relaxed);
    peer.packet_in(1, 64);
    let switch = Dpid(0xa1).to_string();
    let blocks = ["app blocking has not returned from packet_in", &*switch];
    until("the app is named while it blocks", || find(&blocks) == 1);
    assert_eq!(counter(&engine, "handlers_blocked"), 1);
    assert_eq!(find(&["app blocking returned"]), 0);
    app.blocks.store(false, Ordering::Relaxed);
    assert_eq!(peer.sequence(), 1, "the switch is not lost");
    until("its return is reported", || {
        find(&["app blocking returned from packet_in", &*switch]) == 1
    });
    let states = engine.monitor().apps();
    assert_eq!((states[0].name, states[0].blocked), ("blocking", 1));
    assert_eq!((find(&blocks), counter(&engine, "handlers_blocked")), (1, 1));
}
