//! The lab: its runs repeat, its control connections behave as real ones, and it reports misuse.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bellrock_api::{
    App, Dpid, FlowMod, Handler, Match, Network, PacketIn, Result, Switch, SwitchInfo, ToSwitch,
    Verdict, Version,
};
use bellrock_apps::{Hub, Learning};
use bellrock_emulator::check::MessageDirection;
use bellrock_emulator::lab::{
    FaultKind, Faults, Lab, LabBuilder, PROBE_AFTER, PROBE_WAIT, ReconnectBackoff,
};
use bellrock_emulator::topology::{TopologySpec, linear, ring, single, tree};

const SECOND: Duration = Duration::from_secs(1);

fn learning(topology: LabBuilder) -> Lab {
    topology.run(Learning::default())
}

#[test]
fn hosts_of_a_tree_reach_each_other() {
    for version in Version::ALL {
        let mut lab = learning(Lab::seeded(42).topology(tree(2, 3)).version(version));
        assert!(lab.ping("h1", "h9"));
        let pinged = lab.ping_all();
        assert!(pinged.is_complete(), "{pinged}");
        assert_eq!(lab.duplicates(), []);
        assert_eq!(lab.findings(), [] as [String; 0]);
        assert_eq!(lab.counter("switches_up"), 4);
    }
}

#[test]
fn each_switch_can_speak_its_own_version() {
    let lab = Lab::seeded(1).topology(linear(2, 1)).switch_version("s2", Version::V1_0);
    let mut lab = learning(lab);
    assert!(lab.ping_all().is_complete());
    assert!(lab.messages("s1").any(|message| message.to_string().contains("(OF1.3)")));
    assert!(lab.messages("s2").any(|message| message.to_string().contains("(OF1.0)")));
    assert!(
        !lab.messages("s2").any(|message| message.to_string().contains("FEATURES_REPLY (OF1.3)"))
    );
}

#[test]
fn a_run_repeats_to_the_last_byte_and_another_seed_is_another_run() {
    let run = |seed| {
        let mut lab = learning(Lab::seeded(seed).topology(tree(2, 2)).workers(2));
        let plan = lab.inject(&Faults::of(seed, &FaultKind::ALL));
        for _ in 0..50 {
            lab.send_datagram("h1", "h4");
            lab.send_datagram("h3", "h2");
            lab.run_for(SECOND / 2);
        }
        assert!(plan.lasts() <= lab.now());
        lab.ping_all();
        lab.digest()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn flows_paths_and_messages_can_be_looked_at() {
    let mut lab = learning(Lab::seeded(3).topology(linear(3, 1)));
    assert!(lab.ping("h1", "h3"));
    let flows = lab.flows("s2");
    assert_eq!(flows.len(), 3, "to h3, to h1, and the table miss: {flows:#?}");
    assert!(flows[0].contains("dl_dst=00:00:00:00:00:0"), "{flows:#?}");
    assert_eq!(lab.paths("h1", "h3"), [["h1", "s1", "s2", "s3", "h3"]]);
    assert!(lab.message_count("s1", MessageDirection::FromSwitch) >= 4);
    assert!(lab.messages("s1").any(|message| message.to_string().contains("OFPT_PACKET_IN")));
    assert_eq!(lab.app_counter("learning", "moves"), Some(0));
    assert_eq!(lab.hosts_known().len(), 6, "each of two hosts at each of three switches");
}

#[test]
fn streams_and_flows_arrive() {
    let mut lab = learning(Lab::seeded(3).topology(linear(2, 1)));
    assert_eq!(lab.udp("h1", "h2", 100, Duration::from_millis(10)), 100);
    let report = lab.tcp("h1", "h2", 1_000_000);
    assert_eq!((report.bytes, report.retransmissions), (1_000_000, 0));
}

#[test]
fn a_link_that_is_down_carries_nothing_until_it_is_up_again() {
    let mut lab = learning(Lab::seeded(5).topology(linear(2, 1)));
    assert!(lab.ping("h1", "h2"));
    lab.link_down("s1", "s2");
    assert!(!lab.ping("h1", "h2"));
    lab.link_up("s1", "s2");
    assert!(lab.ping("h1", "h2"));
}

#[test]
fn a_host_that_moves_is_found_again() {
    let mut lab = learning(Lab::seeded(5).topology(tree(2, 2)));
    assert!(lab.ping("h1", "h4"));
    lab.move_host("h4", "s2");
    assert!(lab.ping("h4", "h1"), "the first packet of the host tells where it is");
    assert!(lab.ping("h1", "h4"));
}

#[test]
fn a_switch_that_is_disconnected_forwards_by_its_flows_and_asks_nobody() {
    let mut lab = learning(Lab::seeded(5).topology(single(3)));
    assert!(lab.ping("h1", "h2"));
    lab.disconnect("s1");
    lab.run_for(SECOND);
    assert!(!lab.is_up("s1"));
    assert!(lab.ping("h1", "h2"), "flows stay");
    assert!(!lab.ping("h1", "h3"), "nobody tells where h3 is");
    lab.reconnect("s1");
    lab.run_for(SECOND);
    assert!(lab.is_up("s1"));
    assert!(lab.ping("h1", "h3"));
}

#[test]
fn a_restart_loses_the_flows_or_keeps_them_and_the_controller_takes_its_own_on() {
    for keep_tables in [true, false] {
        let mut lab = learning(Lab::seeded(5).topology(single(2)));
        assert!(lab.ping("h1", "h2"));
        let before = lab.flows("s1").len();
        lab.disconnect("s1");
        lab.restart("s1", keep_tables);
        assert_eq!(lab.flows("s1").len(), if keep_tables { before } else { 0 });
        lab.reconnect("s1");
        lab.run_for(SECOND);
        // Without its tables it has only the table-miss flow.
        let after = lab.flows("s1");
        assert_eq!(after.len(), if keep_tables { before } else { 1 }, "{after:#?}");
        assert!(lab.ping("h1", "h2"));
    }
}

#[test]
fn a_silent_connection_is_found_by_the_switch_and_replaced() {
    let mut lab = learning(Lab::seeded(5).topology(single(2)));
    lab.silence("s1");
    assert!(!lab.ping("h1", "h2"), "no packet reaches the controller");
    lab.run_for(PROBE_AFTER + PROBE_WAIT + ReconnectBackoff::default().first + 2 * SECOND);
    assert_eq!(lab.counter("duplicates_replaced"), 1);
    assert!(lab.ping("h1", "h2"));
}

#[test]
fn an_idle_connection_stays_because_both_ends_ask_for_signs_of_life() {
    let mut lab = learning(Lab::seeded(5).topology(single(2)));
    lab.run_for(Duration::from_secs(3600));
    assert_eq!(lab.counter("connections_opened"), 1);
    assert!(lab.is_up("s1"));
}

#[test]
fn switches_look_for_a_controller_that_is_gone_and_find_the_next_one() {
    let mut lab = learning(Lab::seeded(5).topology(tree(2, 2)));
    assert!(lab.ping_all().is_complete());
    lab.stop_controller();
    lab.run_for(Duration::from_secs(60));
    assert!(!lab.is_all_up());
    lab.start_controller(Learning::default());
    assert!(lab.run_until(ReconnectBackoff::default().maximum + SECOND, Lab::is_all_up));
    assert!(lab.ping_all().is_complete());
}

#[test]
fn the_waits_of_a_switch_double() {
    let mut lab = learning(Lab::seeded(5).topology(single(2)));
    lab.stop_controller();
    // Attempts after 1, 2, 4 and 8 s have failed; the next one comes 8 s later.
    lab.run_for(Duration::from_millis(15_500));
    lab.start_controller(Learning::default());
    lab.run_for(7 * SECOND);
    assert!(!lab.is_up("s1"));
    lab.run_for(SECOND);
    assert!(lab.is_up("s1"));
}

#[test]
fn a_switch_is_handed_over_to_another_worker_under_traffic() {
    let mut lab = learning(Lab::seeded(5).topology(tree(2, 2)).workers(2));
    assert!(lab.ping("h1", "h2"));
    let from = lab.worker_of("s1").unwrap();
    lab.hand_over("s1", 1 - from);
    assert_eq!(lab.worker_of("s1"), Some(1 - from));
    assert!(lab.ping_all().is_complete());
    assert_eq!(lab.counter("switches_handed_over"), 1);
}

#[test]
fn an_app_before_another_sees_packets_first() {
    let lab = || Lab::seeded(5).topology(single(2)).app(Hub);
    let mut unchecked = lab().unchecked().run(Learning::default());
    assert!(unchecked.ping("h1", "h2"));
    let flows = unchecked.flows("s1");
    assert_eq!(flows.len(), 1, "the hub floods everything: {flows:#?}");
    // A controller refuses such a chain, and so does the lab.
    let refused = lab().try_run(Learning::default()).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("leave one of the two out")));
    let twice = lab().try_run(Hub).err().map(|error| error.to_string());
    assert!(twice.is_some_and(|why| why.starts_with("two apps are called hub")));
}

#[test]
fn an_app_that_is_disabled_has_its_name_in_the_lab() {
    struct Panics;
    impl App for Panics {
        type Handler = Panics;
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Panics {
            Panics
        }
    }
    impl Handler for Panics {
        fn packet_in(&mut self, _: &mut Switch<'_>, _: &PacketIn<'_>) -> Result<Verdict> {
            panic!("always")
        }
    }
    let mut lab = Lab::seeded(5).topology(single(2)).app(Panics).run(Learning::default());
    assert!(lab.disabled_apps().is_empty());
    assert!(lab.warnings().iter().any(|warning| warning.contains("\"Panics\"")));
    for _ in 0..12 {
        lab.ping("h1", "h2");
        lab.run_for(Duration::from_millis(100));
    }
    assert_eq!(lab.disabled_apps(), ["Panics"]);
}

#[test]
fn misuse_is_told_with_what_would_be_right() {
    let told = |misuse: fn(&mut Lab)| {
        let mut lab = Lab::seeded(5).topology(tree(2, 3)).run(Hub);
        let panic = catch_unwind(AssertUnwindSafe(|| misuse(&mut lab))).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    assert_eq!(told(|lab| _ = lab.ping("h99", "h1")), "no host h99; there are h1 to h9");
    assert_eq!(told(|lab| _ = lab.flows("s9")), "no switch s9; there are s1 to s4");
    assert_eq!(
        told(|lab| lab.link_down("s2", "s3")),
        "no link between s2 and s3; s2 has links to h1, h2, h3, s1"
    );
    assert_eq!(told(|lab| _ = lab.ping("h1", "h1")), "a host cannot send to itself");
    assert_eq!(
        told(|lab| _ = lab.counter("packets")),
        "workers have no counter packets; bellrock_worker::COUNTERS lists them"
    );
    assert_eq!(
        told(|lab| lab.start_controller(Hub)),
        "a controller runs already; stop_controller() stops it"
    );
}

#[test]
fn a_topology_that_is_none_or_has_a_cycle_is_refused() {
    let refused = |lab: LabBuilder| lab.try_run(Hub).err().unwrap().to_string();
    let text = refused(Lab::seeded(1).topology(ring(3, 1)).loop_free());
    assert!(text.contains("s1"), "{text}");
    let file = "switch s1\nswitch s2\nlink s1 s3\n";
    let parsed = TopologySpec::parse(file).unwrap_err().to_string();
    assert!(parsed.contains("line 3") && parsed.contains("s3"), "{parsed}");
}

#[test]
fn a_message_sent_by_the_test_goes_out_at_once() {
    let mut lab = Lab::seeded(5).topology(single(2)).run(Hub);
    lab.run_for(Duration::from_secs(1));
    let any = Match::any();
    let message = ToSwitch::FlowMod(FlowMod::add(&any).priority(9).cookie(0xa));
    lab.controller().unwrap().send(Dpid(1), &message).unwrap();
    lab.run_for(Duration::from_millis(20));
    assert!(
        lab.flows("s1").iter().any(|flow| flow.contains("cookie=0xa")),
        "{:?}",
        lab.flows("s1")
    );
}
