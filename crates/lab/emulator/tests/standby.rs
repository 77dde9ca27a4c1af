//! Two controllers of one network, on both versions: a standby touches nothing of the master's, and
//! takes over and gives back without a change of what stays right.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails so")]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bellrock_api::runtime::RoleControl;
use bellrock_api::{
    App, ControllerRole, Dpid, GrantedRole, Network, RoleError, RoleOrder, RoleOrderFuture,
    ToSwitch,
};
use bellrock_apps::{Learning, Routing};
use bellrock_emulator::lab::{Lab, Version, on_both_versions};
use bellrock_emulator::network::MessageDirection;
use bellrock_emulator::topology::{linear, ring};
use bellrock_openflow::MessageKind;
use bellrock_session::FirstRole;
use bellrock_worker::WorkerSettings;

const SECOND: Duration = Duration::from_secs(1);

/// Messages that change nothing (1.3.5 §6.3.4). In 1.0, a request for a role is an experimenter's.
const READING: [MessageKind; 8] = [
    MessageKind::Hello,
    MessageKind::FeaturesRequest,
    MessageKind::MultipartRequest,
    MessageKind::BarrierRequest,
    MessageKind::EchoRequest,
    MessageKind::EchoReply,
    MessageKind::RoleRequest,
    MessageKind::Experimenter,
];

fn standby() -> WorkerSettings {
    let mut settings = WorkerSettings::default();
    settings.session.first_role = FirstRole::Standby;
    settings
}

fn switches(lab: &Lab) -> Vec<(String, Dpid)> {
    let names = (1..=lab.topology().switches().len()).map(|n| format!("s{n}"));
    names.map(|name| (name.clone(), Dpid(lab.switch(&name).dpid()))).collect()
}

fn network(lab: &Lab, controller: usize) -> Network {
    lab.controller_of(controller).unwrap()
}

/// Orders a role at all switches, and returns the outcomes.
fn order(lab: &mut Lab, controller: usize, role: RoleOrder) -> Vec<Result<GrantedRole, RoleError>> {
    let network = network(lab, controller);
    let all = switches(lab).into_iter();
    let orders: Vec<RoleOrderFuture> = all.map(|(_, dpid)| network.set_role(dpid, role)).collect();
    lab.run_for(SECOND);
    orders.into_iter().map(|order| outcome(pin!(order))).collect()
}

fn outcome(order: Pin<&mut RoleOrderFuture>) -> Result<GrantedRole, RoleError> {
    match order.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("the order has no outcome after a second"),
    }
}

/// Orders a role at all switches, which grant it.
fn becomes(lab: &mut Lab, controller: usize, role: RoleOrder) {
    for granted in order(lab, controller, role) {
        assert_eq!(granted.map(|granted| granted.role), Ok(role.role()));
    }
}

/// Number of switches that are up and that stand by, for a controller.
fn counts(lab: &Lab, controller: usize) -> (usize, usize) {
    let network = network(lab, controller);
    (network.switches().len(), network.standbys().load().len())
}

/// All flows of all switches, with the times when they were installed.
fn flows(lab: &Lab) -> BTreeSet<String> {
    let mut flows = BTreeSet::new();
    for (name, _) in switches(lab) {
        for (table, its) in lab.switch(&name).datapath().tables().iter() {
            for (_, flow) in its.flows() {
                // Each connect replaces the table-miss entry by the same one.
                if !flow.is_table_miss() {
                    let (matching, created) = (flow.matching(), flow.created);
                    let (priority, cookie) = (flow.priority, flow.cookie);
                    flows.insert(format!(
                        "{name} {table} {matching} {priority} {cookie:x} {created:?}"
                    ));
                }
            }
        }
    }
    flows
}

/// Types of the messages that the controller of the newest channel has sent.
fn sent_by_newest(lab: &Lab) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for (name, _) in switches(lab) {
        let newest = lab.switch(&name).channels().last().unwrap();
        let to_switch = lab.messages(&name).filter(|message| {
            message.direction == MessageDirection::ToSwitch && message.channel == newest
        });
        kinds.extend(to_switch.map(|message| format!("{:?}", message.kind())));
    }
    kinds
}

/// A network with a master, and a second controller that stands by. Checks that the second one has
/// only read.
fn with_standby<A: App>(mut lab: Lab, app: A) -> (Lab, usize) {
    let all = switches(&lab).len();
    becomes(&mut lab, 0, RoleOrder::Master { generation_id: 1 });
    assert!(lab.ping_all().is_complete());
    let before = flows(&lab);
    assert!(!before.is_empty());
    let second = lab.add_controller(standby(), app);
    lab.run_for(5 * SECOND);
    // New packets are the master's.
    assert!(lab.ping_all().is_complete());
    lab.run_for(5 * SECOND);
    let reading: BTreeSet<String> =
        READING.iter().map(|kind| format!("{:?}", Some(*kind))).collect();
    let sent = sent_by_newest(&lab);
    assert!(sent.is_subset(&reading) && sent.len() > 4, "{sent:?}");
    assert!(flows(&lab).is_superset(&before));
    assert_eq!((counts(&lab, 0), counts(&lab, second)), ((all, 0), (0, all)));
    for info in network(&lab, second).standbys().load().iter() {
        assert_eq!(info.role, ControllerRole::Slave);
        assert!(!info.ports.is_empty());
    }
    (lab, second)
}

on_both_versions!(
    a_standby_touches_nothing_and_takes_over_what_is_there,
    a_standby_with_services_touches_nothing_until_it_takes_over,
    by_default_two_controllers_are_equal
);

fn a_standby_touches_nothing_and_takes_over_what_is_there(version: Version) {
    let lab = Lab::seeded(7).topology(linear(2, 2)).version(version).run(Learning::default());
    let (mut lab, second) = with_standby(lab, Learning::default());
    let before = flows(&lab);
    becomes(&mut lab, second, RoleOrder::Master { generation_id: 2 });
    assert_eq!(flows(&lab), before);
    assert_eq!(counts(&lab, second), (2, 0));
    if version == Version::V1_0 {
        // 1.0 has no message for it: the old master learns of it by its next write.
        assert_eq!(counts(&lab, 0), (2, 0));
        for (_, dpid) in switches(&lab) {
            let any = bellrock_api::Match::any();
            let flow = bellrock_api::FlowMod::delete(&any);
            network(&lab, 0).send(dpid, &ToSwitch::FlowMod(flow)).unwrap();
        }
        lab.run_for(SECOND);
    }
    assert_eq!(flows(&lab), before);
    assert_eq!(counts(&lab, 0), (0, 2));
    // The new master handles new packets; an older election is over.
    assert!(lab.ping_all().is_complete());
    if version == Version::V1_3 {
        let stale = order(&mut lab, 0, RoleOrder::Master { generation_id: 1 });
        assert_eq!(stale, [Err(RoleError::Stale { newest: Some(2) }); 2]);
    }
    assert_eq!(counts(&lab, 0), (0, 2));
    // Back, by agreement: first the one stands by, then the other takes over.
    let before = flows(&lab);
    becomes(&mut lab, second, RoleOrder::Slave { generation_id: None });
    assert_eq!((counts(&lab, 0), counts(&lab, second)), ((0, 2), (0, 2)));
    becomes(&mut lab, 0, RoleOrder::Master { generation_id: 3 });
    assert_eq!((counts(&lab, 0), counts(&lab, second)), ((2, 0), (0, 2)));
    assert_eq!(flows(&lab), before);
    assert!(lab.ping_all().is_complete());
}

fn a_standby_with_services_touches_nothing_until_it_takes_over(version: Version) {
    let lab = Lab::seeded(7).topology(ring(3, 1)).version(version).run(Routing::default());
    let (mut lab, second) = with_standby(lab, Routing::default());
    assert_eq!(network(&lab, second).topology().load().links.len(), 0);
    let before = flows(&lab);
    let seeds = [0, second].map(|number| network(&lab, number).seed());
    assert_ne!(seeds[0], seeds[1]);
    becomes(&mut lab, second, RoleOrder::Master { generation_id: 2 });
    lab.run_for(5 * SECOND);
    assert_eq!(counts(&lab, second), (3, 0));
    assert_eq!(network(&lab, second).topology().load().links.len(), 6);
    // The services install their own flows anew, the same ones.
    let kinds = |flows: &BTreeSet<String>| -> BTreeSet<String> {
        flows.iter().filter_map(|flow| Some(flow.rsplit_once(' ')?.0.to_owned())).collect()
    };
    assert!(kinds(&flows(&lab)).is_superset(&kinds(&before)));
    assert!(lab.ping_all().is_complete());
}

/// Nothing of this changes for who uses no roles.
fn by_default_two_controllers_are_equal(version: Version) {
    let mut lab = Lab::seeded(7).topology(linear(2, 1)).version(version).run(Learning::default());
    let second = lab.add_controller(WorkerSettings::default(), Learning::default());
    lab.run_for(SECOND);
    assert_eq!((counts(&lab, 0), counts(&lab, second)), ((2, 0), (2, 0)));
    for number in [0, second] {
        for info in network(&lab, number).switches().iter() {
            assert_eq!(info.role, ControllerRole::Equal);
        }
    }
    let sent = sent_by_newest(&lab);
    assert!(sent.iter().all(|kind| !kind.contains("Role") && !kind.contains("Experimenter")));
}
