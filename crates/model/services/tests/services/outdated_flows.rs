//! Flows that an earlier version of discovery or host tracking has left in a switch.

use std::time::Duration;

use crate::lab::*;
use bellrock_api::openflow::MultipartKind;
use bellrock_api::{Cookie, Dpid, Event, FlowMod, Match, Needs, ToSwitch, Version};
use bellrock_emulator::lab::{Lab, Unanswered};
use bellrock_services::outdated_flows::ASKED_AFTER;

/// By then a switch that has come up has been asked by both services, and has lost its flows.
const CLEANED: Duration = ASKED_AFTER.saturating_mul(2);

/// Longer than the pause of a switch before it connects again.
const CONNECTED_AGAIN: Duration = Duration::from_secs(20);

/// A priority of the band of an app behind the services.
const ANY_PRIORITY: u16 = 77;

/// Ethernet types of the flows of the tests.
const OUTDATED: u16 = 0x88b5;
const OF_OTHERS: u16 = 0x88b6;

fn services() -> Reads {
    Reads(Needs::TOPOLOGY | Needs::HOSTS)
}

/// A lab whose controller is stopped. `s1` has flows with these cookies and Ethernet types besides.
fn left(version: Version, flows: &[(u64, u16)]) -> Lab {
    let mut lab = builder(version).run(services());
    settle(&mut lab);
    lab.run_for(CLEANED);
    for (cookie, eth_type) in flows {
        let matching = Match::any().eth_type(*eth_type);
        let flow = FlowMod::add(&matching).priority(ANY_PRIORITY).cookie(*cookie);
        network(&lab).send(Dpid(1), &ToSwitch::FlowMod(flow)).unwrap();
    }
    lab.run_for(Duration::from_secs(1));
    lab.stop_controller();
    lab.run_for(Duration::from_secs(1));
    lab
}

fn start(lab: &mut Lab) {
    lab.start_controller(services());
    assert!(lab.run_until(CONNECTED_AGAIN, Lab::is_all_up));
    lab.run_for(CLEANED);
}

/// Number of flows in `s1` with this Ethernet type.
fn count(lab: &Lab, eth_type: u16) -> usize {
    let text = format!("dl_type={eth_type:#x}");
    lab.flows("s1").iter().filter(|flow| flow.contains(&text)).count()
}

/// Numbers of found and removed flows of each service, as events report them.
fn reconciled(lab: &Lab) -> Vec<(&'static str, usize, usize)> {
    let events = all_events(lab).into_iter();
    let found = events.filter_map(|event| match event {
        Event::Reconciled { app, found, changes, .. } => Some((app, found, changes)),
        _ => None,
    });
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    found
}

#[test]
fn flows_that_no_service_wants_any_more_are_removed_and_those_of_others_stay() {
    for version in VERSIONS {
        let of = |name| Cookie::of_app(name).with(0);
        let mut lab = left(
            version,
            &[(of("discovery"), OUTDATED), (0x77, OF_OTHERS), (of("somebody"), OF_OTHERS + 1)],
        );
        let own = lab.flows("s1").len() - 3;
        start(&mut lab);
        assert_eq!(count(&lab, OUTDATED), 0, "{version}: {:?}", lab.flows("s1"));
        assert_eq!(count(&lab, OF_OTHERS) + count(&lab, OF_OTHERS + 1), 2, "{version}");
        assert_eq!(lab.flows("s1").len(), own + 2, "{version}: the wanted ones stay");
        assert_eq!(reconciled(&lab), [("discovery", 2, 1)], "{version}");
    }
}

#[test]
fn each_service_removes_its_own_and_a_wanted_match_at_another_priority_is_outdated() {
    for version in VERSIONS {
        let of = |name| Cookie::of_app(name).with(0);
        let mut lab = left(version, &[(of("hosts"), OUTDATED), (of("discovery"), 0x88cc)]);
        assert_eq!(count(&lab, 0x88cc), 2, "{version}: {:?}", lab.flows("s1"));
        start(&mut lab);
        assert_eq!((count(&lab, OUTDATED), count(&lab, 0x88cc)), (0, 1), "{version}");
        assert_eq!(reconciled(&lab), [("discovery", 2, 1), ("hosts", 3, 1)], "{version}");
    }
}

#[test]
fn a_switch_that_reports_no_flows_keeps_them() {
    for version in VERSIONS {
        for how in [Unanswered::Silent, Unanswered::Refused, Unanswered::Garbled] {
            let mut lab = left(version, &[(Cookie::of_app("discovery").with(0), OUTDATED)]);
            lab.unanswered("s1", MultipartKind::Flow, Some(how));
            start(&mut lab);
            assert_eq!(count(&lab, OUTDATED), 1, "{version} {how:?}");
            assert_eq!(reconciled(&lab), [], "{version} {how:?}");
            // The next connection asks again.
            lab.unanswered("s1", MultipartKind::Flow, None);
            lab.disconnect("s1");
            lab.run_for(Duration::from_secs(1));
            lab.reconnect("s1");
            assert!(lab.run_until(CONNECTED_AGAIN, Lab::is_all_up));
            lab.run_for(CLEANED);
            assert_eq!(count(&lab, OUTDATED), 0, "{version} {how:?}");
        }
    }
}
