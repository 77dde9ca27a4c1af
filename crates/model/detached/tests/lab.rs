//! A learning switch whose handlers run outside the workers, in the lab: it does what one in the
//! workers does, stays in its place in the chain, and costs nobody anything when it is slow.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bellrock_api::openflow::{List, frame, xid::XidSource};
use bellrock_api::{
    Action, EarlierFlows, FlowMod, Forwards, Instruction, MacAddr, Match, Needs, Network, PacketIn,
    PacketInView, Port, Scope, SwitchInfo, Version,
};
use bellrock_detached::{
    Delivery, DetachedApp, DetachedEvent, DetachedSettings, Doorbell, Feed, MAX_ADOPT_BYTES,
    Wanted, Writer,
};
use bellrock_emulator::lab::Lab;
use bellrock_emulator::topology::{linear, single};

const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

/// Number of actions of a large flow, and of the flows installed at a tick.
const LARGE_ACTIONS: usize = 1000;
const LARGE_FLOWS: u64 = 10;

/// A switch at the other end.
struct Remote {
    info: Arc<SwitchInfo>,
    xids: XidSource,
    ports: BTreeMap<MacAddr, Port>,
}

#[derive(Default)]
struct Told {
    up: AtomicU64,
    down: AtomicU64,
    refused: AtomicU64,
    barriers: AtomicU64,
    to_adopt: AtomicU64,
    /// Number of flows that it installed.
    installed: AtomicU64,
    /// Whether it installs flows at each tick.
    installs: AtomicBool,
    ticks: AtomicU64,
    ports: AtomicU64,
    /// Whether the app only counts.
    only_passes: AtomicBool,
    /// Whether every packet is an error.
    fails: AtomicBool,
}

/// The app, and the counts of what its thread received.
fn app(name: &str) -> (DetachedApp, Arc<Told>) {
    let bell = Arc::new(Doorbell::default());
    let ring = Arc::clone(&bell);
    let feed = Arc::new(Feed::new(move || ring.ring()));
    let told = Arc::new(Told::default());
    let (its_feed, its_told) = (Arc::clone(&feed), Arc::clone(&told));
    let settings = DetachedSettings {
        name: name.to_owned(),
        forwards: Forwards::Unknown,
        sees: None,
        needs: Needs::empty(),
        scope: Scope::PerSwitch,
        earlier_flows: EarlierFlows::Adopt,
        wanted: Wanted { packet_ins: true, port_status: true, flow_removed: true, tick: true },
        counters: vec![("ports_changed", "Changes of ports.")],
    };
    let app = DetachedApp::new(settings, &feed, move |network| {
        let (feed, told, bell) = (Arc::clone(&its_feed), Arc::clone(&its_told), Arc::clone(&bell));
        let its_network = network.clone();
        network.spawn("other end", async move {
            let (mut switches, mut writer) = (BTreeMap::new(), Writer::default());
            loop {
                while let Some(delivery) = feed.pop() {
                    handle(delivery, &mut switches, &mut writer, (&its_network, &told));
                }
                if feed.sleep() {
                    bell.rung().await;
                }
            }
        });
    });
    (app, told)
}

type Switches = BTreeMap<u64, Remote>;

fn handle(
    Delivery { link, event }: Delivery,
    switches: &mut Switches,
    writer: &mut Writer,
    (network, told): (&Network, &Told),
) {
    let key = link.number();
    let now = network.now();
    match event {
        DetachedEvent::SwitchUp(info, to_adopt) => {
            told.up.fetch_add(1, Ordering::Relaxed);
            told.to_adopt.fetch_add(messages(&to_adopt), Ordering::Relaxed);
            let mut remote = Remote { info, xids: XidSource::default(), ports: BTreeMap::new() };
            let xids = &mut remote.xids;
            writer
                .write(&link, &remote.info, (xids, now), |switch| {
                    switch.remove(&Match::any().eth_type(0x1234), Port::ANY)?;
                    switch.barrier()
                })
                .unwrap();
            switches.insert(key, remote);
        }
        DetachedEvent::PacketIns(messages) => {
            let remote = switches.get_mut(&key).unwrap();
            let mut rest = &messages[..];
            while let Ok(Some(message)) = frame(rest) {
                rest = &rest[message.bytes.len()..];
                if told.only_passes.load(Ordering::Relaxed) {
                    writer.pass(message.bytes);
                    continue;
                }
                let mark = writer.mark();
                let packet = PacketIn::new(PacketInView::of_any_form(message.bytes).unwrap());
                let (from, to) = (packet.eth_src().unwrap(), packet.eth_dst().unwrap());
                remote.ports.insert(from, packet.in_port());
                let out = remote.ports.get(&to).copied().unwrap_or(Port::FLOOD);
                let xids = &mut remote.xids;
                writer
                    .write(&link, &remote.info, (xids, now), |switch| {
                        switch.packet_out(&packet, out)
                    })
                    .unwrap();
                if told.fails.load(Ordering::Relaxed) {
                    writer.undo_to(mark);
                    writer.fault(&link, network, "it fails");
                }
            }
        }
        DetachedEvent::PortStatus(..) => {
            told.ports.fetch_add(1, Ordering::Relaxed);
            assert!(link.count("ports_changed", 1) && !link.count("no_counter", 1));
        }
        DetachedEvent::Barrier(_) => _ = told.barriers.fetch_add(1, Ordering::Relaxed),
        DetachedEvent::Error(_) => _ = told.refused.fetch_add(1, Ordering::Relaxed),
        DetachedEvent::Tick => {
            told.ticks.fetch_add(1, Ordering::Relaxed);
            if told.installs.load(Ordering::Relaxed) {
                let remote = switches.get_mut(&key).unwrap();
                let mut install = |number: u64| {
                    let actions = [Action::output(Port(1)); LARGE_ACTIONS];
                    let of_number = Match::any().in_port(Port(u32::try_from(number).unwrap()));
                    let instructions = [Instruction::ApplyActions(List::of(&actions))];
                    let flow = FlowMod::add(&of_number).instructions(&instructions);
                    let xids = &mut remote.xids;
                    writer
                        .write(&link, &remote.info, (xids, now), |switch| switch.install(&flow))
                        .unwrap();
                };
                (0..LARGE_FLOWS).for_each(|_| {
                    install(1 + told.installed.fetch_add(1, Ordering::Relaxed));
                });
            }
        }
        DetachedEvent::Adopt(message) => {
            told.to_adopt.fetch_add(messages(&message), Ordering::Relaxed);
        }
        DetachedEvent::FlowRemoved(_) | DetachedEvent::Unanswered(_) => {}
        DetachedEvent::SwitchDown => {
            told.down.fetch_add(1, Ordering::Relaxed);
            switches.remove(&key);
        }
    }
    writer.post(&link, network);
}

/// Number of whole messages.
fn messages(mut bytes: &[u8]) -> u64 {
    let mut n = 0;
    while let Ok(Some(message)) = frame(bytes) {
        bytes = &bytes[message.bytes.len()..];
        n += 1;
    }
    n
}

fn count(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

#[test]
fn its_packets_arrive_and_it_hears_of_its_switches() {
    for version in VERSIONS {
        let (app, told) = app("detached");
        let mut lab = Lab::seeded(1).topology(linear(3, 1)).version(version).run(app);
        for (from, to) in [("h1", "h3"), ("h3", "h1"), ("h2", "h3")] {
            assert!(lab.ping(from, to), "{version} {from} {to}");
        }
        assert_eq!((count(&told.up), count(&told.barriers)), (3, 3), "{version}");
        lab.link_down("s1", "s2");
        lab.run_for(Duration::from_secs(2));
        assert_eq!((count(&told.ports), count(&told.refused)), (2, 0), "{version}");
        assert!(count(&told.ticks) >= 3, "{version}");
        assert_eq!(lab.app_counter("detached", "ports_changed"), Some(2), "{version}");
        lab.disconnect("s2");
        lab.run_for(Duration::from_secs(1));
        assert_eq!(count(&told.down), 1, "{version}");
        let changed = lab.app_counter("detached", "ports_changed");
        assert_eq!(changed, Some(2), "{version}: a switch that is gone leaves its counts");
        lab.reconnect("s2");
        lab.run_for(Duration::from_secs(5));
        assert_eq!(count(&told.up), 4, "{version}");
    }
}

#[test]
fn packets_that_it_passes_on_go_to_the_next_app() {
    for version in VERSIONS {
        let ((first, told), (second, _)) = (app("first"), app("second"));
        told.only_passes.store(true, Ordering::Relaxed);
        let mut lab = Lab::seeded(2).topology(single(2)).version(version).app(first).run(second);
        assert!(lab.ping("h1", "h2") && lab.ping("h2", "h1"), "{version}");
    }
}

#[test]
fn ten_failures_disable_it_and_no_other() {
    let ((first, told), (second, _)) = (app("first"), app("second"));
    told.fails.store(true, Ordering::Relaxed);
    let mut lab = Lab::seeded(3).topology(single(2)).app(first).run(second);
    for _ in 0..12 {
        lab.ping("h1", "h2");
    }
    assert!(lab.ping("h1", "h2"), "the second app does it alone");
}

#[test]
fn flows_of_an_earlier_run_wait_for_its_thread_up_to_a_bound() {
    // The length of the report of such a flow: the actions, and at most this for the rest.
    const OTHER_BYTES: usize = 128;
    for (version, action_bytes) in [(Version::V1_0, 8), (Version::V1_3, 16)] {
        let (app, told) = app("detached");
        let mut lab = Lab::seeded(1).topology(single(1)).version(version).run(app);
        told.installs.store(true, Ordering::Relaxed);
        let flow_bytes = LARGE_ACTIONS * action_bytes;
        let too_many = MAX_ADOPT_BYTES / flow_bytes + LARGE_FLOWS as usize;
        while count(&told.installed) < too_many as u64 {
            lab.run_for(Duration::from_secs(1));
        }
        told.installs.store(false, Ordering::Relaxed);
        lab.run_for(Duration::from_secs(1));
        let large =
            |lab: &Lab| lab.flows("s1").iter().filter(|flow| flow.contains("in_port=")).count();
        assert_eq!(large(&lab) as u64, count(&told.installed));
        lab.disconnect("s1");
        lab.run_for(Duration::from_secs(1));
        lab.reconnect("s1");
        lab.run_for(Duration::from_secs(10));
        let asked = count(&told.to_adopt) as usize;
        let bound = MAX_ADOPT_BYTES / (flow_bytes + OTHER_BYTES)..=MAX_ADOPT_BYTES / flow_bytes;
        assert!(bound.contains(&asked), "{version}: {asked}");
        assert_eq!(
            large(&lab),
            asked,
            "{version}: it has decided about none, and further ones are removed"
        );
    }
}
