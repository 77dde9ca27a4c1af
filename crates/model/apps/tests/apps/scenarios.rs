//! The purpose of the learning app, in a lab: the scenarios of `tests/system`, which runs them in
//! Mininet on Open vSwitch and in real time, and of `crates/cli/tests/command/live.rs`, over real
//! sockets. They have the same names in all three places.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use bellrock_api::{Field, Port, Version};
use bellrock_apps::{Learning, LearningSettings};
use bellrock_emulator::check::MessageDirection;
use bellrock_emulator::host::FlowState;
use bellrock_emulator::lab::{Lab, Pings, ReconnectBackoff, on_both_versions};
use bellrock_emulator::topology::{TopologySpec, tree};
use bellrock_tables::Budget;

const SEED: u64 = 42;
const PING_INTERVAL: Duration = Duration::from_millis(50);
/// How long the peers ping before the move; below, how long the moved host stays silent after it.
const SETTLE: Duration = Duration::from_secs(1);
const SILENCE: Duration = Duration::from_millis(400);
/// Duration of pings after the host is reachable again; none may be lost.
const STEADY: Duration = Duration::from_secs(1);
/// Promised maximum time after the controller has noticed the move.
const PROMPT: Duration = Duration::from_secs(1);

/// Every ping of a period is answered, except one under way at each end.
fn assert_steady(lab: &mut Lab, pings: &[Pings], interval: Duration) {
    let before: Vec<u32> = pings.iter().map(|pings| lab.statistics(pings).received).collect();
    lab.run_for(STEADY);
    let sent = (STEADY.as_millis() / interval.as_millis()) as u32;
    for (pings, before) in pings.iter().zip(before) {
        let answered = lab.statistics(pings).received - before;
        assert!(answered + 1 >= sent, "{answered} of {sent} pings were answered");
    }
}

/// Number of flows of a switch that match a port or send to it.
fn flows_at(lab: &Lab, switch: &str, port: u32) -> usize {
    let tables = lab.switch(switch).datapath().tables().iter();
    let flows = tables.flat_map(|(_, table)| table.flows());
    let at_port = flows.filter(|(_, flow)| {
        flow.program.outputs_to(Port(port))
            || flow.matching().value(Field::InPort) == Some(port.into())
    });
    at_port.count()
}

/// Hosts of a tree reach each other by flows, not by the controller.
mod reach {
    use super::*;

    /// ARP and a ping over three switches need 10 to 16.
    const MAX_PACKET_INS: usize = 20;
    const STREAM_BYTES: u64 = 10_000_000;

    on_both_versions!(pingall, iperf);

    fn lab(version: Version) -> Lab {
        Lab::seeded(SEED).topology(tree(2, 3)).version(version).run(Learning::default())
    }

    fn packet_ins(lab: &Lab) -> usize {
        let switches = ["s1", "s2", "s3", "s4"];
        let messages = switches.iter().flat_map(|switch| lab.messages(switch));
        messages.filter(|message| message.to_string().starts_with("OFPT_PACKET_IN")).count()
    }

    /// All pairs reach each other, and no packet was malformed.
    fn pingall(version: Version) {
        let mut lab = lab(version);
        let pinged = lab.ping_all();
        assert!(pinged.is_complete(), "{pinged}");
        assert_eq!(lab.duplicates(), []);
        assert!(packet_ins(&lab) > 0, "nothing was asked: the switches forward by themselves");
        assert_eq!(lab.counter("malformed") + lab.counter("errors_received"), 0);
        assert!(lab.message_count("s1", MessageDirection::ToSwitch) > 0);
    }

    /// A stream over three switches uses installed flows.
    fn iperf(version: Version) {
        let mut lab = lab(version);
        assert!(lab.ping("h1", "h9"));
        let report = lab.tcp("h1", "h9", STREAM_BYTES);
        assert_eq!((report.state, report.bytes), (FlowState::Done, STREAM_BYTES));
        assert!(packet_ins(&lab) <= MAX_PACKET_INS, "{} for one stream", packet_ins(&lab));
    }
}

/// The host h1 moves while h2 and h3 ping it.
mod moves {
    use super::*;

    const HARD_TIMEOUT_S: u16 = 2;
    const MAX_AGE_S: u32 = 2;
    /// Maximum delay of an expiry: the controller looks for old hosts once a second.
    const EXPIRY: Duration = Duration::from_millis(1500);
    /// The port of h1 before it moves.
    const OLD_PORT: u32 = 1;

    on_both_versions!(
        to_another_port,
        to_another_port_link_down,
        to_another_switch_link_down,
        to_another_switch_port_up,
        to_another_switch_unheard
    );

    /// h1 and h2 at s1, h3 at the last switch. The peers ping.
    fn prepare(version: Version, switches: u32, settings: LearningSettings) -> (Lab, [Pings; 2]) {
        let mut text = String::from("host h1\nhost h2\nhost h3\n");
        for number in 1..=switches {
            text.push_str(&format!("switch s{number}\n"));
        }
        text.push_str(&format!("link s1:{OLD_PORT} h1\nlink s1 h2\nlink s{switches} h3\n"));
        for number in 1..switches {
            text.push_str(&format!("link s{number} s{}\n", number + 1));
        }
        let lab = Lab::seeded(SEED).topology(TopologySpec::parse(&text).unwrap()).version(version);
        let mut lab = lab.run(Learning::new(settings, &Budget::unlimited()));
        let pings = ["h2", "h3"].map(|from| lab.start_pings(from, "h1", u16::MAX, PING_INTERVAL));
        lab.run_for(SETTLE);
        assert_ne!(flows_at(&lab, "s1", OLD_PORT), 0, "flows to the host");
        (lab, pings)
    }

    /// No ping is answered in this time.
    fn assert_silent(lab: &mut Lab, pings: &[Pings], time: Duration) {
        let received = |lab: &Lab| pings.iter().map(|pings| lab.statistics(pings).received).sum();
        let before: u32 = received(lab);
        lab.run_for(time);
        assert_eq!(received(lab), before, "the host should not be reachable");
    }

    fn assert_back(lab: &mut Lab, pings: &[Pings], limit: Duration) {
        lab.run_for(limit);
        assert_steady(lab, pings, PING_INTERVAL);
    }

    fn settings(hard_timeout_s: u16, max_age_s: u32) -> LearningSettings {
        LearningSettings { hard_timeout_s, max_age_s, ..LearningSettings::default() }
    }

    /// Same switch, old port still up: reachable within a second of the host's first packet
    /// (unicast).
    fn to_another_port(version: Version) {
        let (mut lab, pings) = prepare(version, 1, LearningSettings::default());
        lab.move_host_unseen("h1", "s1");
        assert_silent(&mut lab, &pings, SILENCE);
        lab.send_datagram("h1", "h2");
        assert_back(&mut lab, &pings, PROMPT);
    }

    /// Same switch, old link down: reachable within a second, although the host sends nothing by
    /// itself. Its peers still send to its address, so no flow to the old port becomes idle; only
    /// the port event shows the move.
    fn to_another_port_link_down(version: Version) {
        let (mut lab, pings) = prepare(version, 1, LearningSettings::default());
        lab.move_host("h1", "s1");
        assert_back(&mut lab, &pings, PROMPT);
        assert_eq!(flows_at(&lab, "s1", OLD_PORT), 0);
    }

    /// The old link goes down: flows are removed; reachable within a second of the first broadcast.
    fn to_another_switch_link_down(version: Version) {
        let (mut lab, pings) = prepare(version, 2, LearningSettings::default());
        lab.move_host("h1", "s2");
        lab.run_for(SILENCE);
        assert_eq!(flows_at(&lab, "s1", OLD_PORT), 0, "flows of the port that is down");
        lab.announce("h1");
        assert_back(&mut lab, &pings, PROMPT);
    }

    /// The old port stays up: reachable within the hard timeout of the flows. Traffic without a
    /// pause does not extend it.
    fn to_another_switch_port_up(version: Version) {
        let (mut lab, pings) = prepare(version, 2, settings(HARD_TIMEOUT_S, 300));
        lab.move_host_unseen("h1", "s2");
        assert_silent(&mut lab, &pings, SILENCE);
        lab.announce("h1");
        assert_back(&mut lab, &pings, Duration::from_secs(HARD_TIMEOUT_S.into()));
        let tables = lab.switch("s1").datapath().tables();
        let flows: Vec<_> = tables.iter().flat_map(|(_, table)| table.flows()).collect();
        let learnt: Vec<_> = flows.iter().filter(|(_, flow)| flow.priority > 0).collect();
        assert!(!learnt.is_empty());
        for (_, flow) in learnt {
            assert_eq!(flow.hard_timeout, HARD_TIMEOUT_S);
            assert!(lab.now() - flow.created <= Duration::from_secs(HARD_TIMEOUT_S.into()));
        }
    }

    /// As before, but the host talks only to h3, so the old switch sees none of its packets:
    /// reachable when the old entry has aged out. A hard timeout alone would not be enough: the
    /// table of hosts would install the flow again.
    fn to_another_switch_unheard(version: Version) {
        let (mut lab, pings) = prepare(version, 2, settings(HARD_TIMEOUT_S, MAX_AGE_S));
        lab.move_host_unseen("h1", "s2");
        assert_silent(&mut lab, &pings, SILENCE);
        lab.start_pings("h1", "h3", u16::MAX, PING_INTERVAL);
        assert_back(&mut lab, &pings, Duration::from_secs(MAX_AGE_S.into()) + EXPIRY);
    }
}

/// The controller stops under running traffic and comes back.
mod restart {
    use super::*;

    /// Maximum time from the start of the new controller until every pair is reachable.
    const BACK_LIMIT: Duration = Duration::from_secs(5);
    /// Time without a controller.
    const AWAY: Duration = Duration::from_secs(3);
    const PING_INTERVAL: Duration = Duration::from_millis(200);
    /// Interval at which switches retry their controller.
    const RETRY: Duration = Duration::from_secs(1);

    on_both_versions!(under_traffic);

    fn under_traffic(version: Version) {
        let lab = Lab::seeded(SEED).topology(tree(2, 3)).version(version);
        let mut lab =
            lab.backoff(ReconnectBackoff { first: RETRY, maximum: RETRY }).run(Learning::default());
        // Each host talks to its neighbour; no other pair has talked when the controller stops.
        let names: Vec<String> = (1..=9).map(|number| format!("h{number}")).collect();
        let neighbours = names.iter().zip(names.iter().cycle().skip(1));
        let running: Vec<Pings> = neighbours
            .map(|(one, other)| lab.start_pings(one, other, u16::MAX, PING_INTERVAL))
            .collect();
        lab.run_for(SETTLE);
        assert_steady(&mut lab, &running, PING_INTERVAL);
        lab.stop_controller();
        lab.run_for(AWAY);
        assert!(!lab.ping("h1", "h5"), "a new pair, while nobody is in control");

        lab.start_controller(Learning::default());
        lab.run_for(BACK_LIMIT);
        let pinged = lab.ping_all();
        assert!(pinged.is_complete(), "{pinged}");
        assert_steady(&mut lab, &running, PING_INTERVAL);
    }
}

/// Names in `text` behind `before`, in lines whose previous line is `allowed`.
fn names<'t>(text: &'t str, before: &str, allowed: impl Fn(&str) -> bool) -> BTreeSet<&'t str> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| allowed(pair[0]));
    let names = pairs.filter_map(|pair| pair[1].trim().strip_prefix(before)?.split('(').next());
    names.collect()
}

#[test]
fn mininet_the_lab_and_live_have_the_same_scenarios() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let mut mininet = BTreeSet::new();
    let files = ["test_reach.py", "test_moves.py", "test_restart.py"];
    let texts = files.map(|file| read(&format!("tests/system/{file}")));
    for text in &texts {
        // The class Stop is about the command, not the app.
        let text = text.split("\nclass Stop").next().unwrap();
        // Decorators in any order; each scenario has the one for the versions.
        let is_scenario = |above: &str| {
            above.contains("@on_both_versions") || above.contains("@under_all_tcp_buffers")
        };
        mininet.extend(names(text, "def ", is_scenario));
    }
    assert!(mininet.len() >= 8, "{mininet:?}");
    for file in ["crates/model/apps/tests/apps/scenarios.rs", "crates/cli/tests/command/live.rs"] {
        let text = read(file);
        let there = names(&text, "fn ", |_| true);
        let missing: Vec<_> = mininet.difference(&there).collect();
        assert!(missing.is_empty(), "{file} has no {missing:?}");
    }
}
