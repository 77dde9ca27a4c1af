//! Routing when the controller restarts: flows of an earlier run stay until the network is
//! complete, and are then changed to match the hosts and paths.

use std::time::Duration;

use bellrock_api::{Dpid, MacAddr, Version};
use bellrock_apps::RoutingMode::{Proactive, Reactive};
use bellrock_apps::{Routing, RoutingMode, RoutingSettings};
use bellrock_emulator::lab::{Lab, LabBuilder};
use bellrock_emulator::topology::ring;

/// By then discovery has probed all ports, and flows have been read.
const SETTLED: Duration = Duration::from_secs(20);

/// Switches retry 1, 3, 7, 15 and 23 s after the controller stopped, and then every 8 s.
const LONG_GONE: Duration = Duration::from_secs(24);

/// By then a restarted controller counts any network as complete.
const WAITED: Duration = Duration::from_secs(90);

fn app(mode: RoutingMode) -> Routing {
    Routing::new(RoutingSettings { mode, idle_timeout_s: 0, ..RoutingSettings::default() })
}

/// A ring with a host at each switch; all hosts have talked, then the controller was stopped.
fn left(mode: RoutingMode) -> Lab {
    left_in(Lab::seeded(1), mode)
}

fn left_in(lab: LabBuilder, mode: RoutingMode) -> Lab {
    let mut lab = lab.topology(ring(4, 1)).version(Version::V1_3).run(app(mode));
    lab.run_for(SETTLED);
    lab.announce_all();
    lab.run_for(Duration::from_secs(1));
    assert!(lab.ping_all().is_complete() && lab.ping_all().is_complete());
    lab.stop_controller();
    lab.run_for(LONG_GONE);
    lab
}

/// The flows to hosts: their matches and output ports.
fn flows(lab: &Lab, switch: &str) -> Vec<String> {
    let of_hosts = lab.flows(switch).into_iter().filter(|flow| flow.contains("dl_dst=00:00"));
    let told = |word: &&str| word.starts_with("eth_") || word.starts_with("output:");
    of_hosts.map(|flow| flow.split(' ').filter(told).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_link_that_flaps_does_not_keep_flows_as_they_are_for_ever() {
    const FLAPS_EVERY: Duration = Duration::from_secs(5);
    for mode in [Reactive, Proactive] {
        let mut lab = left(mode);
        lab.start_controller(app(mode));
        lab.run_for(SETTLED / 2);
        lab.move_host("h3", "s1");
        let end = lab.now() + WAITED;
        while lab.now() < end {
            lab.link_down("s2", "s3");
            lab.run_for(FLAPS_EVERY);
            lab.link_up("s2", "s3");
            lab.announce("h3");
            lab.run_for(FLAPS_EVERY);
        }
        assert!(lab.ping("h2", "h3") && lab.ping("h4", "h3"), "{mode:?}: {:?}", flows(&lab, "s2"));
        assert_eq!(lab.findings(), [""; 0], "{mode:?}");
    }
}

#[test]
fn flows_stay_if_the_first_switch_to_come_back_has_none_and_is_alone_for_long() {
    const OTHERS: [&str; 3] = ["s2", "s3", "s4"];
    for mode in [Reactive, Proactive] {
        let mut lab = left(mode);
        let before = OTHERS.map(|switch| flows(&lab, switch));
        assert!(before.iter().all(|flows| !flows.is_empty()), "{mode:?}");
        // It reconnects at once, the others after up to 8 s.
        lab.restart("s1", false);
        lab.start_controller(app(mode));
        let alone = |lab: &Lab| lab.is_up("s1") && OTHERS.iter().all(|switch| !lab.is_up(switch));
        assert!(lab.run_until(Duration::from_secs(4), alone), "{mode:?}");
        lab.run_for(Duration::from_secs(3));
        assert!(alone(&lab), "{mode:?}: alone for as long as discovery asks its ports");
        while !lab.is_all_up() {
            lab.run_for(Duration::from_secs(1));
        }
        for second in 0..8 {
            if second == 4 {
                // No flow leads to it any more. It is found when it sends a packet.
                lab.announce("h1");
            }
            lab.run_for(Duration::from_secs(1));
            assert_eq!(OTHERS.map(|switch| flows(&lab, switch)), before, "{mode:?}");
        }
        // It gets its lost flows again, and the other switches keep their flows.
        lab.run_for(SETTLED);
        let changed = lab.counter("changes_sent");
        assert!(!flows(&lab, "s1").is_empty(), "{mode:?}");
        assert_eq!(OTHERS.map(|switch| flows(&lab, switch)), before, "{mode:?}");
        assert!(lab.ping_all().is_complete(), "{mode:?}");
        assert!(changed <= lab.flows("s1").len() as u64, "{mode:?}: {changed}");
    }
}

#[test]
fn flows_to_a_switch_that_leaves_before_it_has_told_its_own_stay() {
    /// Longer than the time without changes, shorter than the maximum wait.
    const AWAY: Duration = Duration::from_secs(30);
    /// Delay of bytes to a switch: it is connected before it can have reported its flows.
    const DELAY: Duration = Duration::from_millis(20);
    const ALL: [&str; 4] = ["s1", "s2", "s3", "s4"];
    for mode in [Reactive, Proactive] {
        let mut lab = left_in(Lab::seeded(1).control_delay(DELAY), mode);
        let before = ALL.map(|switch| flows(&lab, switch));
        lab.start_controller(app(mode));
        assert!(lab.run_until(SETTLED, |lab| lab.is_up("s2")), "{mode:?}");
        lab.disconnect("s2");
        lab.run_for(AWAY);
        assert_eq!(ALL.map(|switch| flows(&lab, switch)), before, "{mode:?}");
        lab.reconnect("s2");
        lab.run_for(WAITED);
        assert_eq!(ALL.map(|switch| flows(&lab, switch)), before, "{mode:?}");
        assert!(lab.ping_all().is_complete(), "{mode:?}");
    }
}

#[test]
fn a_host_that_is_gone_is_not_taken_to_be_where_flows_of_an_earlier_run_lead() {
    /// A silent host is forgotten after five minutes.
    const FORGOTTEN: Duration = Duration::from_secs(400);
    const H3: &str = "dl_dst=00:00:00:00:00:03";
    for mode in [Reactive, Proactive] {
        let mut lab = left(mode);
        lab.start_controller(app(mode));
        lab.run_for(SETTLED);
        lab.announce_all();
        lab.run_for(Duration::from_secs(1));
        // The move is invisible: the old port stays up.
        lab.move_host_unseen("h3", "s1");
        lab.run_for(FORGOTTEN);
        assert!(flows(&lab, "s2").iter().all(|flow| !flow.contains(H3)), "{mode:?}");
        // A host sends a request for it, it answers, and is found.
        lab.ping("h2", "h3");
        let hosts = lab.controller().unwrap().hosts().load();
        assert!(lab.ping("h2", "h3"), "{mode:?}: {:?} {hosts:?}", flows(&lab, "s2"));
    }
}

/// Nobody sends a packet that the controller sees: all follow flows of before.
#[test]
fn hosts_are_known_after_a_restart_by_the_flows_that_lead_to_them() {
    for mode in [Reactive, Proactive] {
        let mut lab = left(mode);
        lab.start_controller(app(mode));
        lab.run_for(SETTLED);
        let hosts = lab.controller().unwrap().hosts().load();
        let known: Vec<(MacAddr, Dpid)> =
            hosts.iter().map(|host| (host.id.mac, host.at.dpid)).collect();
        let expected: Vec<(MacAddr, Dpid)> =
            (1..=4).map(|n| (MacAddr([0, 0, 0, 0, 0, n]), Dpid(n.into()))).collect();
        assert_eq!(known, expected, "{mode:?}");
    }
}

/// No packet is missed between two flows, and a hardware switch is spared the work.
#[test]
fn flows_of_services_are_replaced_and_not_deleted() {
    for version in Version::ALL {
        let mut lab = Lab::seeded(1).topology(ring(4, 1)).version(version).run(app(Reactive));
        lab.run_for(SETTLED);
        lab.stop_controller();
        lab.run_for(LONG_GONE);
        let before = lab.flows("s1");
        let since = lab.now();
        lab.start_controller(app(Reactive));
        assert!(lab.run_until(SETTLED, Lab::is_all_up));
        lab.run_for(Duration::from_secs(1));
        let sent: Vec<String> = lab
            .messages("s1")
            .filter(|message| message.at > since)
            .map(|it| it.to_string())
            .collect();
        let of_kind = |kind: &str| {
            let flow_mods = sent.iter().filter(|text| text.starts_with("OFPT_FLOW_MOD"));
            flow_mods.filter(|text| text.contains(kind)).count()
        };
        assert!(of_kind(": ADD ") >= 3, "{version}: {sent:?}");
        assert_eq!(of_kind(": DEL"), 0, "{version}: {sent:?}");
        let counters = ["duration=", "packets=", "bytes="];
        let without_counters = |flows: Vec<String>| -> Vec<String> {
            let kept = |flow: String| {
                let words = flow.split(' ');
                words
                    .filter(|word| counters.iter().all(|counter| !word.starts_with(counter)))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            flows.into_iter().map(kept).collect()
        };
        assert_eq!(without_counters(lab.flows("s1")), without_counters(before), "{version}");
    }
}
