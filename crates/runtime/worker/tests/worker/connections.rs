//! Connections come up, contend for a datapath id, are cleaned, and end.

use std::time::Duration;

use crate::lab::{Lab, flow_removed};
use bellrock_api::openflow::{
    Capabilities, FlowFlags, FlowRemovedReason, FlowStats, FromSwitch, Instructions, List,
    MatchView, MultipartReply, Out, PortState, ReplyBody,
};
use bellrock_api::{
    App, Cookie, Dpid, Handler, MacAddr, Network, Port, PortDesc, PortReason, PortStatus,
    RefusedFlows, SwitchInfo, Version,
};
use bellrock_session::SwitchDescription;
use bellrock_worker::{Drive, WorkerSettings};

struct Idle;
impl App for Idle {
    type Handler = Idle;
    fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Idle {
        Idle
    }
}
impl Handler for Idle {}

const BOTH: [Version; Version::ALL.len()] = Version::ALL;

fn port(number: u32) -> PortDesc {
    PortDesc::new(
        Port(number),
        MacAddr::from_u64(number.into()),
        bellrock_api::openflow::FixedStr::new("eth"),
    )
}

#[test]
fn a_switch_that_is_up_shows_in_the_network_with_its_ports() {
    for version in BOTH {
        let mut lab = Lab::with_app(Idle);
        let mut description = SwitchDescription::new(5);
        description.ports = vec![port(1), port(2)];
        description.capabilities = Capabilities::FLOW_STATS;
        let s = lab.connect(0, version, description);
        lab.run();
        let network = lab.shared.network();
        let info = network.switch(Dpid(5)).unwrap();
        assert_eq!((info.version, info.ports.len()), (version, 2));
        let mut down = port(2);
        down.state = PortState::LINK_DOWN;
        for (reason, desc) in
            [(PortReason::Add, port(3)), (PortReason::Delete, port(1)), (PortReason::Modify, down)]
        {
            lab.send(s, &FromSwitch::PortStatus(PortStatus { reason, desc }));
        }
        lab.run();
        let info = network.switch(Dpid(5)).unwrap();
        let ports: Vec<(u32, bool)> =
            info.ports.iter().map(|desc| (desc.port.0, desc.is_up())).collect();
        assert_eq!(ports, [(2, false), (3, true)]);
    }
}

#[test]
fn a_table_miss_entry_goes_to_1_3_only() {
    for (version, expected) in [(Version::V1_0, 0), (Version::V1_3, 1)] {
        let mut lab = Lab::with_app(Idle);
        let s = lab.connect(0, version, SwitchDescription::new(5));
        lab.run();
        let adds = lab.switches[s].take();
        let adds = adds.iter().filter(|text| text.starts_with("flow_mod Add any"));
        assert_eq!(adds.count(), expected);
    }
}

#[test]
fn a_table_miss_entry_that_somebody_else_removes_is_put_back() {
    let (ours, theirs) = (Cookie::CONTROLLER.with(0), 0xbad);
    let (deleted, idle) = (FlowRemovedReason::Delete, FlowRemovedReason::IdleTimeout);
    for (version, cookie, reason, expected) in [
        (Version::V1_3, ours, deleted, 1),
        (Version::V1_3, ours, idle, 0),
        (Version::V1_3, theirs, deleted, 0),
        (Version::V1_0, ours, deleted, 0),
    ] {
        let mut lab = Lab::with_app(Idle);
        let s = lab.connect(0, version, SwitchDescription::new(5));
        lab.run();
        lab.switches[s].take();
        lab.send(s, &FromSwitch::FlowRemoved(flow_removed(cookie, 0, reason)));
        lab.run();
        let adds = lab.switches[s].take();
        let adds = adds.iter().filter(|text| text.starts_with("flow_mod Add any"));
        assert_eq!(adds.count(), expected, "{version} {cookie:#x} {reason:?}");
    }
}

#[test]
fn an_app_that_wants_no_packets_gets_no_table_miss_entry() {
    struct Deaf;
    impl App for Deaf {
        type Handler = Idle;
        fn wants_packet_ins(&self) -> bool {
            false
        }
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Idle {
            Idle
        }
    }
    let mut lab = Lab::with_app(Deaf);
    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(5));
    lab.run();
    assert!(lab.switches[s].take().iter().all(|text| !text.contains("Add")));
}

#[test]
fn flows_of_an_earlier_run_go_and_others_stay() {
    let flow = |cookie, number| FlowStats {
        table: 0,
        duration_sec: 1,
        duration_nsec: 0,
        priority: 100,
        idle_timeout: 0,
        hard_timeout: 0,
        flags: FlowFlags::empty(),
        cookie,
        packet_count: 0,
        byte_count: 0,
        matching: MatchView::port(Port(number)),
        instructions: Instructions::none(),
    };
    let ours = Cookie::of_app("Idle");
    let flows = [flow(ours.with(1), 1), flow(0x1234, 2), flow(ours.with(2), 3)];
    let mut out = Out::with_capacity(4096);
    let reply = MultipartReply::of(ReplyBody::Flow(List::of(&flows)));
    FromSwitch::MultipartReply(reply).encode(Version::V1_0, 0, &mut out).unwrap();
    let mut lab = Lab::with_app(Idle);
    let s = lab.connect(0, Version::V1_0, SwitchDescription::new(5));
    // The body of the reply, behind header, type and flags.
    lab.switches[s].flows = Some(out.as_slice()[12..].to_vec());
    lab.run();
    let cookie = format!("cookie={:x}", 0);
    assert_eq!(
        lab.switches[s].take(),
        [
            format!("flow_mod DeleteStrict in_port=1 {cookie}"),
            format!("flow_mod DeleteStrict in_port=3 {cookie}"),
        ]
    );
    assert!(lab.shared.network().switch(Dpid(5)).is_some());

    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(6));
    lab.run();
    let delete = format!("flow_mod Delete any cookie={:x}", ours.with(0));
    assert_eq!(lab.switches[s].take().first(), Some(&delete));
}

#[test]
fn a_switch_that_never_tells_its_flows_comes_up_all_the_same() {
    let mut lab = Lab::with_app(Idle);
    let s = lab.connect(0, Version::V1_0, SwitchDescription::new(5));
    lab.switches[s].flows = None;
    lab.advance(Duration::from_secs(4));
    assert!(lab.shared.network().switch(Dpid(5)).is_none(), "it is waited for");
    lab.advance(Duration::from_secs(2));
    assert!(lab.shared.network().switch(Dpid(5)).is_some());
}

#[test]
fn an_auxiliary_connection_is_refused() {
    let mut lab = Lab::with_app(Idle);
    let mut description = SwitchDescription::new(5);
    description.auxiliary_id = 1;
    let s = lab.connect(0, Version::V1_3, description);
    lab.run();
    assert!(lab.is_closed(s));
    assert_eq!(lab.workers[0].0.counters().auxiliary_refused.get(), 1);
}

/// Two connections with one datapath id, at one worker and at two.
fn contend(old_is_silent: bool) {
    for (old_worker, new_worker) in [(0, 0), (0, 1)] {
        for version in BOTH {
            let mut lab = Lab::new(2, WorkerSettings::default(), vec![Box::new(Idle)]);
            let old = lab.connect(old_worker, version, SwitchDescription::new(5));
            lab.run();
            lab.switches[old].silent = old_is_silent;
            let new = lab.connect(new_worker, version, SwitchDescription::new(5));
            lab.advance(Duration::from_millis(1200));
            assert_eq!(lab.is_closed(old), old_is_silent);
            assert_eq!(lab.is_closed(new), !old_is_silent);
            assert_eq!(lab.shared.network().switches().len(), 1);
            let counters = |of: fn(&bellrock_worker::WorkerCounters) -> u64| -> u64 {
                lab.shared.counters().iter().map(|counters| of(counters)).sum()
            };
            assert_eq!(counters(|c| c.duplicates_refused.get()), u64::from(!old_is_silent));
            assert_eq!(counters(|c| c.duplicates_replaced.get()), u64::from(old_is_silent));
        }
    }
}

#[test]
fn a_duplicate_is_refused_while_the_old_connection_answers() {
    contend(false);
}

#[test]
fn a_duplicate_takes_the_place_of_a_silent_connection() {
    contend(true);
}

#[test]
fn a_crowd_with_one_datapath_id_ends_with_one_connection() {
    let mut lab = Lab::new(3, WorkerSettings::default(), vec![Box::new(Idle)]);
    let crowd: Vec<_> =
        (0..12).map(|i| lab.connect(i % 3, Version::V1_3, SwitchDescription::new(5))).collect();
    lab.advance(Duration::from_secs(4));
    let alive = crowd.iter().filter(|id| !lab.is_closed(**id)).count();
    assert_eq!(alive, 1);
    assert_eq!(lab.shared.network().switches().len(), 1);
}

#[test]
fn a_handshake_that_is_not_finished_in_time_is_closed() {
    let mut lab = Lab::with_app(Idle);
    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(5));
    lab.switches[s].silent = true;
    lab.advance(Duration::from_millis(4900));
    assert!(!lab.is_closed(s));
    lab.advance(Duration::from_millis(300));
    assert!(lab.is_closed(s));
    assert_eq!(lab.workers[0].0.counters().handshake_timeouts.get(), 1);
}

#[test]
fn a_silent_switch_is_asked_and_then_closed() {
    let mut lab = Lab::with_app(Idle);
    let s = lab.up(Version::V1_3, 5);
    lab.advance(Duration::from_secs(60));
    assert!(!lab.is_closed(s), "it answers echoes");
    lab.switches[s].silent = true;
    lab.advance(Duration::from_secs(29));
    assert!(!lab.is_closed(s));
    lab.advance(Duration::from_secs(18));
    assert!(lab.is_closed(s));
    assert_eq!(lab.workers[0].0.counters().dead_closes.get(), 1);
}

#[test]
fn garbage_closes_its_own_connection_only() {
    let mut lab = Lab::with_app(Idle);
    let good = lab.up(Version::V1_3, 5);
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 64],
        &[4, 0, 0, 16, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    ] {
        let bad = lab.connect(0, Version::V1_3, SwitchDescription::new(6));
        lab.switches[bad].silent = true;
        lab.send_bytes(bad, garbage);
        lab.advance(Duration::from_secs(6));
        assert!(lab.is_closed(bad), "{garbage:?}");
    }
    assert!(!lab.is_closed(good));
}

#[test]
fn stopping_closes_everything() {
    let mut lab = Lab::with_app(Idle);
    let s = lab.up(Version::V1_3, 5);
    let (worker, wires) = &mut lab.workers[0];
    worker.stop(Duration::from_secs(10), wires);
    assert_eq!(worker.connections(), 0);
    assert!(lab.is_closed(s));
    assert!(lab.shared.network().switches().is_empty());
}

#[test]
fn an_old_connection_that_takes_bytes_is_alive_even_if_its_echo_is_late() {
    let mut lab = Lab::with_app(Idle);
    let old = lab.up(Version::V1_3, 5);
    lab.switches[old].silent = true;
    let new = lab.connect(0, Version::V1_3, SwitchDescription::new(5));
    lab.run();
    let (key, now) = (lab.switches[old].key, lab.now);
    // The switch has read some of its queued bytes.
    lab.workers[0].0.drained(key, 1000, now);
    lab.advance(Duration::from_millis(1200));
    assert!(!lab.is_closed(old));
    assert!(lab.is_closed(new));
}

#[test]
fn unfinished_replies_of_many_switches_together_are_bounded() {
    let mut lab = Lab::with_app(Idle);
    // A part of an endless reply, with 681 flows.
    let mut part = vec![1, 17, 0xea, 0x24, 0, 0, 0, 0, 0, 1, 0, 1];
    let mut flow = vec![0; 88];
    flow[1] = 88;
    (0..681).for_each(|_| part.extend(&flow));
    assert_eq!(part.len(), 0xea24);
    let mut closed = 0;
    for dpid in 1..40 {
        let s = lab.connect(0, Version::V1_0, SwitchDescription::new(dpid));
        lab.switches[s].flows = None;
        lab.run();
        // The xid of the request for its flows.
        let xid = lab.switches[s].asked_for_flows.unwrap();
        part[4..8].copy_from_slice(&xid.to_be_bytes());
        for _ in 0..270 {
            lab.send_bytes(s, &part);
        }
        lab.run();
        closed += usize::from(lab.is_closed(s));
    }
    let counters = lab.workers[0].0.counters();
    assert!(closed > 10, "each has 16 MiB, all together 256: {closed}");
    assert_eq!(counters.unfinished_closes.get(), closed as u64);
}

#[test]
fn ports_beyond_the_bound_and_early_messages_are_counted() {
    use bellrock_session::MAX_PORTS;

    let mut lab = Lab::with_app(Idle);
    let mut description = SwitchDescription::new(5);
    description.ports = (1..=MAX_PORTS as u32).map(port).collect();
    let s = lab.connect(0, Version::V1_3, description);
    lab.run();
    assert_eq!(lab.counters("ports_left_out"), [0]);
    for number in [1, 100_000, 100_001] {
        let status = PortStatus { reason: PortReason::Add, desc: port(number) };
        lab.send(s, &FromSwitch::PortStatus(status));
    }
    lab.run();
    assert_eq!(lab.counters("ports_left_out"), [2]);
    let early = lab.connect(0, Version::V1_3, SwitchDescription::new(6));
    let removed = flow_removed(0, 0, FlowRemovedReason::Delete);
    // Only its hello has come.
    lab.switches[early].silent = true;
    lab.hello(early);
    lab.send(early, &FromSwitch::FlowRemoved(removed));
    lab.run();
    lab.switches[early].silent = false;
    lab.run();
    lab.advance(Duration::from_secs(2));
    assert_eq!(lab.counters("messages_early"), [1]);
}

/// A switch with a full table refuses the entry, and would never send a packet. That is an alarm,
/// and the entry is sent again until it is installed.
#[test]
fn a_refused_table_miss_entry_is_an_alarm_and_is_sent_again_until_it_is_there() {
    let mut lab = Lab::with_app(Idle);
    let s = lab.connect(0, Version::V1_3, SwitchDescription::new(5));
    lab.switches[s].refused = vec![0];
    lab.run();
    let network = lab.shared.network();
    let refused = network.extension::<RefusedFlows>();
    let entries = |lab: &mut Lab| {
        let sent = lab.switches[s].take();
        sent.iter().filter(|text| text.starts_with("flow_mod Add any")).count()
    };
    assert_eq!(entries(&mut lab), 1);
    assert_eq!(refused.of_switch(Dpid(5)).len(), 1);
    let events = |of: &Network| {
        let latest = of.events().latest(usize::MAX);
        let own = latest.iter().filter(|it| it.event.name().starts_with("own_flow"));
        own.map(|it| it.event.to_string()).collect::<Vec<_>>()
    };
    let alarms = events(&network);
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    assert!(alarms[0].contains("refuses the table-miss entry"), "{alarms:?}");
    // After 1, 2, 4, 8 and 16 s.
    lab.advance(Duration::from_secs(40));
    assert_eq!(entries(&mut lab), 5);
    assert_eq!(events(&network).len(), 1, "one alarm");
    lab.switches[s].refused.clear();
    lab.advance(Duration::from_secs(60));
    assert_eq!(entries(&mut lab), 1);
    assert_eq!(refused.of_switch(Dpid(5)), []);
    assert!(events(&network)[1].contains("has the table-miss entry"), "{:?}", events(&network));
    lab.advance(Duration::from_secs(200));
    assert_eq!(entries(&mut lab), 0);
    // No state stays of a switch that goes.
    lab.switches[s].refused = vec![0];
    let other = lab.connect(0, Version::V1_3, SwitchDescription::new(6));
    lab.switches[other].refused = vec![0];
    lab.run();
    assert_eq!(refused.of_switch(Dpid(6)).len(), 1);
    lab.hang_up(other);
    lab.run();
    assert_eq!(refused.of_switch(Dpid(6)), []);
}
