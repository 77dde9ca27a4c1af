//! Roles: standbys, orders, and what the switch says of them, on both versions.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::lab::{FakeRoles, Lab, Notes, SwitchId, told};
use crate::watched::*;
use bellrock_api::openflow::{
    Bytes, FlowStatsRequest, FromSwitch, List, PacketOut, PortState, RequestBody, RoleKind,
    ToSwitch,
};
use bellrock_api::runtime::RoleControl;
use bellrock_api::{
    Action, App, Change, ChangeOutcome, ControllerRole, Cookie, EndReason, Error, ErrorCode, Flow,
    GrantedRole, Match, Network, NoConfirmation, Port, PortReason, PortStatus, RequestError,
    RoleError, RoleOrder, SwitchInfo, Version,
};
use bellrock_session::{FirstRole, SwitchDescription};
use bellrock_worker::WorkerSettings;

#[test]
fn a_standby_is_ready_and_neither_cleaned_nor_up() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Standby);
        let left = told(version, &[(Cookie::of_app("watching").with(1), 7, Port(2))]);
        lab.switches[id].flows = Some(left);
        lab.packet_in(id, 1, None, &[0; 60]);
        let mut down = port(1);
        down.state = PortState::LINK_DOWN;
        let status = PortStatus { reason: PortReason::Modify, desc: down };
        lab.send(id, &FromSwitch::PortStatus(status));
        lab.advance(Duration::from_secs(90));
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!(lab.switches[id].asked_for_flows, None, "{version}");
        assert!(!lab.is_configured(id) && !lab.is_closed(id));
        assert_eq!(notes.take(), [""; 0]);
        assert_eq!(lab.counters("packet_ins_standby"), [1]);
        assert_eq!(up(&lab), None);
        // The switch knows that it stands by.
        assert_eq!(lab.switches[id].roles.kind, Some(RoleKind::Slave));
        assert_eq!(standby(&lab), Some(ControllerRole::Slave));
        let info = lab.shared.network().standbys().load().get(DPID).cloned().unwrap();
        assert!(info.version == version && info.ports.iter().all(|port| !port.is_up()));
    }
}

#[test]
fn packets_of_a_standby_are_dropped_from_the_first_one() {
    for version in BOTH {
        let notes = Notes::default();
        let app = Box::new(Watching(notes.clone()));
        let mut lab = Lab::new(1, settings(FirstRole::Standby), vec![app]);
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.early_packet_in(id, 1, &[0; 60]);
        lab.run();
        assert_eq!(ordered(&mut lab, master(3)), granted(version, ControllerRole::Master, 3));
        assert_eq!(notes.take(), ["made as master", "up"], "{version}");
        assert_eq!(lab.counters("packet_ins_standby"), [1]);
    }
}

#[test]
fn a_connection_requests_no_role_unless_it_is_ordered_to() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        lab.advance(Duration::from_millis(900));
        let sent = lab.switches[id].take();
        assert!(sent.iter().all(|text| text != "RoleRequest" && text != "Experimenter"));
        assert!(lab.is_configured(id));
        assert_eq!(notes.take(), ["made as equal", "up"]);
        assert_eq!((up(&lab), standby(&lab)), (Some(ControllerRole::Equal), None));
    }
}

#[test]
fn a_standby_that_takes_over_comes_up_as_after_a_connect() {
    for version in BOTH {
        for (role, generation) in [(master(7), 7), (RoleOrder::Equal, 0)] {
            let (mut lab, id, notes) = connected(version, FirstRole::Standby);
            let left = told(version, &[(Cookie::of_app("watching").with(1), 0x8001, Port(2))]);
            lab.switches[id].flows = Some(left);
            let expected = granted(version, role.role(), generation);
            assert_eq!(ordered(&mut lab, role), expected, "{version}");
            assert!(lab.is_configured(id));
            assert_eq!((up(&lab), standby(&lab)), (Some(role.role()), None));
            let seen = notes.take();
            let made = format!("made as {}", role.role());
            assert_eq!(seen.first(), Some(&made), "{version}");
            assert_eq!(seen.last().map(String::as_str), Some("up"), "{version}");
            assert!(lab.switches[id].asked_for_flows.is_some());
            let sent = received(&mut lab, id);
            let entries = sent.iter().filter(|text| text.starts_with("flow_mod Add any"));
            assert_eq!(entries.count(), usize::from(version == Version::V1_3), "{sent:?}");
            lab.packet_in(id, 1, None, &[0; 60]);
            lab.run();
            assert_eq!(notes.take(), ["packet of 60"]);
        }
    }
}

#[test]
fn each_connection_has_an_entry_whatever_its_role() {
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Standby);
        let entries = lab.shared.network().connected().clone();
        let entry = || entries.load().get(DPID).cloned();
        let first = entry().unwrap();
        let published = entries.load().version();
        for role in [master(1), SLAVE, master(2)] {
            ordered(&mut lab, role).unwrap();
        }
        assert_eq!(entries.load().version(), published);
        lab.hang_up(id);
        lab.run();
        assert!(entry().is_none());
        lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.run();
        assert!(!Arc::ptr_eq(&first, &entry().unwrap()));
    }
}

#[test]
fn a_switch_that_is_up_stands_by_on_an_order_and_comes_back() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        assert_eq!(ordered(&mut lab, master(1)), granted(version, ControllerRole::Master, 1));
        // Only its role has changed.
        assert_eq!(notes.take(), ["made as equal", "up"]);
        assert_eq!(up(&lab), Some(ControllerRole::Master));
        received(&mut lab, id);
        assert_eq!(ordered(&mut lab, SLAVE), granted(version, ControllerRole::Slave, 1));
        lab.packet_in(id, 1, None, &[0; 60]);
        lab.advance(Duration::from_secs(3));
        // At once: the switch has not answered yet.
        assert_eq!(notes.take(), ["down as master"], "{version}");
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        assert_eq!(why_down(&lab), [EndReason::StoodBy]);
        let barrier = lab.shared.network().send(DPID, &ToSwitch::BarrierRequest);
        assert_eq!(barrier, Err(Error::NoMaster(DPID)), "it is connected");
        assert_eq!(ordered(&mut lab, master(2)), granted(version, ControllerRole::Master, 2));
        assert_eq!(notes.take(), ["made as master", "up"]);
        assert_eq!((up(&lab), standby(&lab)), (Some(ControllerRole::Master), None));
        assert_eq!(
            (lab.counters("switches_up"), lab.counters("switches_down")),
            (vec![2], vec![1])
        );
        assert_eq!(lab.counters("switches_standby"), [1]);
    }
}

#[test]
fn a_node_of_a_cluster_that_another_one_replaces_loses_nothing() {
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Standby);
    ordered(&mut lab, master(1)).unwrap();
    assert_eq!(up(&lab), Some(ControllerRole::Master));
    role_status(&mut lab, id, RoleKind::Slave);
    assert_eq!(why_down(&lab), [EndReason::TakenOver]);
    let events = lab.shared.network().events().latest(usize::MAX);
    assert!(events.iter().all(|record| !record.event.is_alarming()), "{events:?}");
}

#[test]
fn a_controller_that_is_made_slave_stands_by_at_once() {
    let status = |lab: &mut Lab, id| role_status(lab, id, RoleKind::Slave);
    let is_slave = |lab: &mut Lab, id| refuse(lab, id, ErrorCode::RequestIsSlave);
    let no_permission = |lab: &mut Lab, id| refuse(lab, id, ErrorCode::RequestPermission);
    type Demotes = fn(&mut Lab, SwitchId);
    let ways: [(Version, Demotes); 3] =
        [(Version::V1_3, status), (Version::V1_3, is_slave), (Version::V1_0, no_permission)];
    for (version, demote) in ways {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        ordered(&mut lab, master(1)).unwrap();
        received(&mut lab, id);
        notes.take();
        demote(&mut lab, id);
        // Errors of what was sent before are no news.
        demote(&mut lab, id);
        lab.advance(Duration::from_secs(3));
        assert_eq!(notes.take(), ["down as slave"], "{version}");
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        assert_eq!(why_down(&lab), [EndReason::Demoted]);
        // Who was ordered to be master needs an order to be it again.
        if version == Version::V1_3 {
            role_status(&mut lab, id, RoleKind::Equal);
            assert_eq!(up(&lab), None);
            assert_eq!(lab.counters("role_reports_ignored"), [1]);
        }
        assert_eq!(ordered(&mut lab, master(10)), granted(version, ControllerRole::Master, 10));
        assert_eq!(notes.take(), ["made as master", "up"]);
    }
}

#[test]
fn without_a_role_no_permission_of_1_0_is_an_error_as_any() {
    let (mut lab, id, notes) = connected(Version::V1_0, FirstRole::Equal);
    refuse(&mut lab, id, ErrorCode::RequestPermission);
    assert_eq!(notes.take(), ["made as equal", "up"]);
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
}

#[test]
fn a_switch_may_give_access_back_but_not_to_who_was_ordered_to_stand_by() {
    let (mut lab, id, notes) = connected(Version::V1_3, FirstRole::Equal);
    role_status(&mut lab, id, RoleKind::Slave);
    assert_eq!(up(&lab), None);
    role_status(&mut lab, id, RoleKind::Equal);
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
    let all = ["made as equal", "up", "down as slave", "made as equal", "up"];
    assert_eq!(notes.take(), all);
    for order in [Some(SLAVE), None] {
        let first = order.map_or(FirstRole::Standby, |_| FirstRole::Equal);
        let (mut lab, id, _) = connected(Version::V1_3, first);
        if let Some(order) = order {
            ordered(&mut lab, order).unwrap();
        }
        role_status(&mut lab, id, RoleKind::Master);
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Master)));
    }
}

#[test]
fn a_stale_order_changes_nothing_and_names_the_newest_generation() {
    for first in [FirstRole::Equal, FirstRole::Standby] {
        let (mut lab, id, _) = connected(Version::V1_3, first);
        lab.switches[id].roles.generation = Some(9);
        let before = (up(&lab), standby(&lab));
        for stale in [master(8), RoleOrder::Slave { generation_id: Some(8) }] {
            let error = Err(RoleError::Stale { newest: Some(9) });
            assert_eq!(ordered(&mut lab, stale), error);
            assert_eq!((up(&lab), standby(&lab)), before);
        }
        let granted = granted(Version::V1_3, ControllerRole::Master, 10);
        assert_eq!(ordered(&mut lab, master(10)), granted);
    }
}

#[test]
fn a_slave_takes_the_newest_generation_of_the_switch_even_if_elections_come_between() {
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    lab.switches[id].roles.generation = Some(u64::MAX / 2);
    let expected = granted(Version::V1_3, ControllerRole::Slave, u64::MAX / 2);
    assert_eq!(ordered(&mut lab, SLAVE), expected);
    // Always a newer one between the question and the request: the number of requests is bounded.
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    lab.switches[id].roles.elections = 3;
    assert_eq!(ordered(&mut lab, SLAVE), Err(RoleError::Stale { newest: Some(12) }));
    let requests = lab.switches[id].take();
    assert_eq!(requests.iter().filter(|text| *text == "RoleRequest").count(), 4 + 4 + 1);
    // It was ordered to stand by, whatever the switch takes it for.
    assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
    role_status(&mut lab, id, RoleKind::Master);
    assert_eq!(up(&lab), None);
}

#[test]
fn a_generation_id_after_the_wrap_around_is_newer() {
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    lab.switches[id].roles.generation = Some(u64::MAX - 1);
    let expected = granted(Version::V1_3, ControllerRole::Master, 3);
    assert_eq!(ordered(&mut lab, master(3)), expected);
}

#[test]
fn a_switch_without_roles_obeys_whoever_writes() {
    let refuses = |code| FakeRoles { refuses: Some(code), ..FakeRoles::default() };
    for (version, code) in [
        (Version::V1_0, None),
        (Version::V1_0, Some(ErrorCode::RequestBadExperimenter)),
        (Version::V1_0, Some(ErrorCode::RequestBadType)),
        (Version::V1_3, None),
        (Version::V1_3, Some(ErrorCode::RoleUnsupported)),
    ] {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        lab.switches[id].roles = code.map_or_else(FakeRoles::default, refuses);
        assert_eq!(ordered(&mut lab, master(1)), Err(RoleError::Unsupported), "{code:?}");
        assert_eq!(up(&lab), Some(ControllerRole::Equal));
        let equal = GrantedRole { role: ControllerRole::Equal, generation_id: None };
        assert_eq!(ordered(&mut lab, RoleOrder::Equal), Ok(equal));
        notes.take();
        // Nobody else keeps it from writing, so it does so itself.
        assert_eq!(ordered(&mut lab, SLAVE), Err(RoleError::Unsupported));
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        assert_eq!(notes.take(), ["down as equal"]);
        assert_eq!(ordered(&mut lab, master(2)), Err(RoleError::Unsupported));
        assert_eq!(up(&lab), None);
        assert_eq!(ordered(&mut lab, RoleOrder::Equal), Ok(equal));
        assert_eq!(up(&lab), Some(ControllerRole::Equal));
    }
}

#[test]
fn another_refusal_is_reported_and_no_answer_too() {
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        lab.switches[id].roles.refuses = Some(ErrorCode::RequestBadLength);
        let refused = ordered(&mut lab, master(1));
        assert!(matches!(refused, Err(RoleError::Refused(_))), "{refused:?}");
        assert_eq!(up(&lab), Some(ControllerRole::Equal));
        lab.switches[id].roles = FakeRoles::default();
        lab.switches[id].ignored_barriers = Some(Vec::new());
        let (as_master, as_slave) = (order(&lab, master(1)), order(&lab, SLAVE));
        lab.advance(Duration::from_secs(130));
        assert_eq!(poll(as_master), Poll::Ready(Err(RoleError::Unanswered)));
        assert_eq!(poll(as_slave), Poll::Ready(Err(RoleError::Unanswered)));
        // It was ordered to stand by, so it does.
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
    }
}

#[test]
fn orders_are_bounded_and_end_with_the_connection() {
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        lab.switches[id].silent = true;
        let orders: Vec<_> = (1..=9).map(|generation| order(&lab, master(generation))).collect();
        lab.run();
        lab.hang_up(id);
        lab.run();
        let outcomes = orders.into_iter().map(poll).collect::<Vec<_>>();
        let (last, first) = outcomes.split_last().unwrap();
        assert!(first.iter().all(|its| *its == Poll::Ready(Err(RoleError::Disconnected))));
        let full = Error::TooManyRequests { unanswered: 8 };
        assert_eq!(*last, Poll::Ready(Err(RoleError::NotSent(full))));
        let gone = order(&lab, SLAVE);
        assert_eq!(poll(gone), Poll::Ready(Err(RoleError::NotSent(Error::UnknownSwitch(DPID)))));
    }
}

#[test]
fn mail_on_its_way_is_not_sent_as_a_slave() {
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    received(&mut lab, id);
    let actions = [Action::output(Port(9))];
    let packet = PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: List::of(&actions),
        data: Bytes(&[0; 60]),
    };
    let network = lab.shared.network();
    network.send(DPID, &ToSwitch::PacketOut(packet)).unwrap();
    role_status(&mut lab, id, RoleKind::Slave);
    assert_eq!(received(&mut lab, id), [""; 0]);
    assert_eq!(lab.counters("mail_undeliverable"), [1]);
}

#[test]
fn a_program_that_a_demotion_overtakes_is_unknown_or_not_sent() {
    struct Programming;
    impl App for Programming {
        type Handler = ();
        fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
        fn start(&self, network: &Network) {
            let network = network.clone();
            let notes: Arc<Outcomes> = network.extension();
            network.clone().spawn("program", async move {
                while network.switch(DPID).is_none() {
                    network.watch_switches().changed(network.switches().version()).await;
                }
                let flow = Flow::new(Match::any()).output(Port(2));
                let outcomes = network.program(DPID, vec![Change::Add(flow)]).await;
                notes.0.lock().unwrap().extend(outcomes);
            });
        }
    }
    #[derive(Default)]
    struct Outcomes(std::sync::Mutex<Vec<ChangeOutcome>>);
    for version in BOTH {
        let mut lab = Lab::with_app(Programming);
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.switches[id].ignored_barriers = Some(Vec::new());
        lab.advance(Duration::from_secs(6));
        lab.switches[id].flows = None;
        let (network, all) = (lab.shared.network(), Match::any());
        let ask = || network.request(DPID, RequestBody::Flow(FlowStatsRequest::all(&all)));
        let asked = ask();
        lab.run();
        ordered(&mut lab, SLAVE).unwrap();
        assert_eq!(poll(asked), Poll::Ready(Err(RequestError::StoodBy)), "{version}");
        let late = RequestError::NotSent(Error::NoMaster(DPID));
        assert_eq!(poll(ask()), Poll::Ready(Err(late)), "{version}");
        let outcomes: Arc<Outcomes> = lab.shared.network().extension();
        let lost = ChangeOutcome::Unknown(NoConfirmation::Disconnected);
        assert_eq!(*outcomes.0.lock().unwrap(), [lost], "{version}");
    }
    // A refusal that demotes is that of its change.
    let mut lab = Lab::with_app(Programming);
    let id = lab.connect(0, Version::V1_3, SwitchDescription::new(DPID.0));
    lab.switches[id].ignored_barriers = Some(Vec::new());
    lab.advance(Duration::from_secs(6));
    let change = last_xid(&lab, id);
    refuse_slave(&mut lab, id, change);
    let outcomes: Arc<Outcomes> = lab.shared.network().extension();
    let outcomes = outcomes.0.lock().unwrap();
    assert!(matches!(outcomes[..], [ChangeOutcome::Refused(_)]), "{outcomes:?}");
    assert_eq!(up(&lab), None);
}

#[test]
fn an_order_follows_its_switch_to_another_worker() {
    for version in BOTH {
        let app = Box::new(Watching::default());
        let mut lab = Lab::new(2, WorkerSettings::default(), vec![app]);
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.run();
        // One is on its way when the switch moves, one waits in the mailbox, one comes later.
        lab.switches[id].silent = true;
        let first = order(&lab, master(1));
        lab.run();
        let second = order(&lab, RoleOrder::Equal);
        assert!(lab.shared.hand_over(DPID, 1));
        let third = order(&lab, master(2));
        lab.run();
        lab.switches[id].silent = false;
        lab.run();
        let role = |role, generation| Poll::Ready(granted(version, role, generation));
        assert_eq!(poll(first), role(ControllerRole::Master, 1), "{version}");
        assert_eq!(poll(second), role(ControllerRole::Equal, 1), "{version}");
        assert_eq!(poll(third), role(ControllerRole::Master, 2), "{version}");
        assert_eq!(lab.shared.worker_of(DPID), Some(1));
        assert_eq!(up(&lab), Some(ControllerRole::Master));
    }
}

#[test]
fn a_standby_owns_its_datapath_id() {
    for version in BOTH {
        let (mut lab, first, _) = connected(version, FirstRole::Standby);
        let second = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.run();
        assert!(lab.is_closed(second) && !lab.is_closed(first), "{version}");
        lab.hang_up(first);
        lab.run();
        assert_eq!(standby(&lab), None);
    }
}
