//! An app so slow that a flooding switch would wait for long: it gets a share, and what else it
//! sends is seen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

mod peer;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellrock_api::openflow::{FixedStr, FromSwitch, Out, PortDesc, PortReason, PortStatus};
use bellrock_api::{
    App, Dpid, Handler, MacAddr, Network, PacketIn, Port, Result, Switch, SwitchInfo, Verdict,
    Version,
};
use peer::{Peer, counter, packet_in, start_with, until};

/// Time for a packet of a flooding switch.
const SLOW: Duration = Duration::from_millis(2);

/// Packets of each flooding switch: all of them would take 20 s each.
const FLOOD: u64 = 10_000;

/// Flooding switches.
const FLOODERS: u64 = 2;

/// The honest switch.
const HONEST: u64 = 99;

/// Answers packets at once, until it becomes slow for all but the honest switch.
#[derive(Clone, Default)]
struct Slow {
    is_slow: Arc<AtomicBool>,
    statuses: Arc<AtomicU64>,
}

impl App for Slow {
    type Handler = Slow;
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Slow {
        self.clone()
    }
}

impl Handler for Slow {
    fn packet_in(&mut self, switch: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        if self.is_slow.load(Ordering::Relaxed) && switch.dpid() != Dpid(HONEST) {
            std::thread::sleep(SLOW);
        } else {
            switch.packet_out(packet, Port::FLOOD)?;
        }
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, _: &mut Switch<'_>, _: &PortStatus) -> Result<()> {
        self.statuses.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn port_added() -> Vec<u8> {
    let desc = PortDesc::new(Port(9), MacAddr::from_u64(9), FixedStr::new("eth"));
    let mut out = Out::with_capacity(256);
    let status = PortStatus { reason: PortReason::Add, desc };
    FromSwitch::PortStatus(status).encode(Version::V1_3, 0, &mut out).unwrap();
    out.as_slice().to_vec()
}

#[test]
fn a_flood_is_cut_before_an_app_that_is_too_slow_for_it_and_other_messages_are_seen() {
    let slow = Slow::default();
    let engine = start_with(1, vec![Box::new(slow.clone())], |_| {});
    let mut honest = Peer::up(&engine, Version::V1_3, HONEST);
    let flooders: Vec<Peer> =
        (1..=FLOODERS).map(|dpid| Peer::up(&engine, Version::V1_3, dpid)).collect();
    let before = counter(&engine, "packet_ins");
    slow.is_slow.store(true, Ordering::Relaxed);
    let flood: Vec<_> = flooders
        .into_iter()
        .map(|mut peer| {
            std::thread::spawn(move || {
                let packets: Vec<u8> =
                    (0..100).flat_map(|i| packet_in(Version::V1_3, i, 64)).collect();
                for _ in 0..FLOOD / 100 {
                    peer.stream.write_all(&packets).unwrap();
                }
                peer.stream.write_all(&port_added()).unwrap();
                peer
            })
        })
        .collect();
    // While they flood, the honest switch is served.
    let mut pings = 0;
    until("changes of ports behind the floods are seen", || {
        honest.ping(pings);
        pings += 1;
        slow.statuses.load(Ordering::Relaxed) == FLOODERS
    });
    let peers: Vec<Peer> = flood.into_iter().map(|thread| thread.join().unwrap()).collect();
    let (seen, shed) =
        (counter(&engine, "packet_ins") - before, counter(&engine, "packet_ins_shed"));
    assert_eq!(seen + shed, FLOODERS * FLOOD + pings, "each packet reached the app, or is counted");
    assert!(shed > FLOOD, "only {shed} were dropped");
    for dpid in 1..=FLOODERS {
        let ports = engine.monitor().packet_ins_by_port(Dpid(dpid));
        assert!(ports.keys().eq(&[Port(1)]) && ports[&Port(1)].dropped > 0, "{ports:?}");
        assert_eq!(ports[&Port(1)].dropped, engine.monitor().drops_of(Dpid(dpid)));
    }
    assert_eq!(engine.monitor().drops_of(Dpid(HONEST)), 0);
    assert_eq!(counter(&engine, "connections_closed"), 0);
    drop(peers);
}
