//! Who decides how long a role holds: orders, the switch's reports, reconnects, and messages that
//! come too late.

use std::task::Poll;
use std::time::Duration;

use crate::lab::{FakeRoles, Lab, Notes};
use crate::watched::*;
use bellrock_api::openflow::{
    Bytes, Experimenter, FromSwitch, List, NICIRA, PacketOut, RoleExtension, RoleKind, RoleMessage,
    RoleReason, RoleStatus, ToSwitch,
};
use bellrock_api::{
    Action, App, ControllerRole, Dpid, Error, ErrorCode, ErrorMessage, Handler, Network, Port,
    Result, RoleError, RoleOrder, Switch, SwitchInfo, Version, Xid,
};
use bellrock_session::{FirstRole, SwitchDescription};
use bellrock_worker::WorkerSettings;

#[test]
fn a_standby_is_held_before_the_switch_answers_and_if_its_request_is_stale() {
    let stale = FakeRoles { elections: 3, ..FakeRoles::equal() };
    for roles in [FakeRoles::default(), stale] {
        let notes = Notes::default();
        let app = Box::new(Watching(notes.clone()));
        let mut lab = Lab::new(1, settings(FirstRole::Standby), vec![app]);
        let id = lab.connect(0, Version::V1_3, SwitchDescription::new(DPID.0));
        lab.switches[id].ignored_barriers = Some(Vec::new());
        lab.switches[id].roles = roles;
        lab.advance(Duration::from_secs(6));
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        for role in [RoleKind::Equal, RoleKind::Master] {
            role_status(&mut lab, id, role);
        }
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Master)));
        assert!(!lab.is_configured(id));
        assert_eq!(notes.take(), [""; 0]);
    }
}

#[test]
fn a_switch_gives_access_back_only_so_often() {
    const PAIRS: u64 = 500;
    let (mut lab, id, _) = connected(Version::V1_3, FirstRole::Equal);
    let mut out = bellrock_api::openflow::Out::with_capacity(1 << 17);
    let mut status = |role| {
        let role = RoleMessage { role, generation_id: 9 };
        let status = RoleStatus { role, reason: RoleReason::Config };
        RoleExtension::Status(status).write(Version::V1_3, 0, &mut out).unwrap();
    };
    for _ in 0..PAIRS {
        status(RoleKind::Slave);
        status(RoleKind::Equal);
    }
    lab.send_bytes(id, out.as_slice());
    lab.run();
    assert_eq!(lab.counters("switches_standby"), [1 + 4]);
    assert_eq!(lab.counters("role_reports_ignored"), [PAIRS - 4]);
    assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
    lab.advance(Duration::from_secs(60));
    role_status(&mut lab, id, RoleKind::Equal);
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
}

#[test]
fn an_order_to_stand_by_needs_no_answer_and_replaces_what_waits() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Equal);
        lab.switches[id].silent = true;
        let (first, second) = (order(&lab, master(1)), order(&lab, master(2)));
        lab.run();
        notes.take();
        let third = order(&lab, SLAVE);
        lab.run();
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        assert_eq!(poll(second), Poll::Ready(Err(RoleError::Replaced)), "{version}");
        lab.switches[id].silent = false;
        lab.run();
        let role = |role| Poll::Ready(granted(version, role, 1));
        assert_eq!(poll(first), role(ControllerRole::Master), "{version}");
        assert_eq!(poll(third), role(ControllerRole::Slave), "{version}");
        assert_eq!(notes.take(), ["down as equal"], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
    }
}

#[test]
fn a_switch_that_refuses_only_the_change_has_roles() {
    for order in [master(3), RoleOrder::Equal] {
        let (mut lab, id, notes) = connected(Version::V1_3, FirstRole::Standby);
        lab.switches[id].roles.refuses_changes = Some(ErrorCode::RoleUnsupported);
        let refused = ordered(&mut lab, order);
        assert!(matches!(refused, Err(RoleError::Refused(_))), "{refused:?}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        assert_eq!(notes.take(), [""; 0]);
    }
}

#[test]
fn another_role_than_the_ordered_one_ends_no_standby() {
    for version in BOTH {
        let (mut lab, id, notes) = connected(version, FirstRole::Standby);
        lab.switches[id].roles.grants = Some(RoleKind::Equal);
        let other = Err(RoleError::Other(ControllerRole::Equal));
        assert_eq!(ordered(&mut lab, master(3)), other, "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Equal)));
        assert_eq!(notes.take(), [""; 0]);
    }
}

#[test]
fn an_order_to_stand_by_holds_for_the_next_connection_too() {
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        ordered(&mut lab, SLAVE).unwrap();
        let id = reconnects(&mut lab, id, version, Some(4));
        assert!(!lab.is_configured(id), "{version}");
        assert_eq!(received(&mut lab, id), [""; 0], "{version}");
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)));
        // Other switches begin as ever.
        let other = lab.connect(0, version, SwitchDescription::new(99));
        lab.run();
        assert!(lab.is_configured(other) && lab.shared.network().switch(Dpid(99)).is_some());
        // Until the next order.
        assert!(ordered(&mut lab, master(5)).is_ok());
        assert!(lab.is_configured(id));
    }
}

#[test]
fn a_master_is_master_again_after_a_flap_unless_another_one_was_elected() {
    for (version, newest, comes_back) in [
        (Version::V1_0, None, true),
        (Version::V1_3, Some(3), true),
        (Version::V1_3, None, true),
        (Version::V1_3, Some(4), false),
    ] {
        for first in [FirstRole::Equal, FirstRole::Standby] {
            let (mut lab, id, _) = connected(version, first);
            ordered(&mut lab, master(3)).unwrap();
            let id = reconnects(&mut lab, id, version, newest);
            let roles = match comes_back {
                true => (Some(ControllerRole::Master), None),
                false => (None, Some(ControllerRole::Equal)),
            };
            assert_eq!((up(&lab), standby(&lab)), roles, "{version} {newest:?}");
            assert_eq!(lab.is_configured(id), comes_back);
        }
    }
    // Equal again, in a controller that stands by otherwise.
    for version in BOTH {
        let (mut lab, id, _) = connected(version, FirstRole::Standby);
        ordered(&mut lab, RoleOrder::Equal).unwrap();
        reconnects(&mut lab, id, version, None);
        assert_eq!(up(&lab), Some(ControllerRole::Equal), "{version}");
    }
}

#[test]
fn a_lost_election_is_not_forgotten_with_the_connection() {
    for (version, is_connected) in [
        (Version::V1_0, true),
        (Version::V1_3, true),
        (Version::V1_0, false),
        (Version::V1_3, false),
    ] {
        let (mut lab, id, _) = connected(version, FirstRole::Equal);
        ordered(&mut lab, master(3)).unwrap();
        if !is_connected {
            lab.hang_up(id);
            lab.run();
            let gone = Err(RoleError::NotSent(Error::UnknownSwitch(DPID)));
            assert_eq!(ordered(&mut lab, SLAVE), gone);
        } else if version == Version::V1_0 {
            refuse(&mut lab, id, ErrorCode::RequestPermission);
        } else {
            refuse(&mut lab, id, ErrorCode::RequestIsSlave);
        }
        if is_connected {
            lab.hang_up(id);
            lab.run();
        }
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.run();
        assert_eq!((up(&lab), standby(&lab)), (None, Some(ControllerRole::Slave)), "{version}");
    }
}

#[test]
fn in_1_0_no_permission_demotes_only_for_what_a_slave_may_not_send() {
    let (mut lab, id, notes) = connected(Version::V1_0, FirstRole::Equal);
    ordered(&mut lab, master(1)).unwrap();
    notes.take();
    refuse_message(&mut lab, id, ErrorCode::RequestPermission, STATS_REQUEST);
    assert_eq!(up(&lab), Some(ControllerRole::Master));
    assert_eq!(notes.take(), [""; 0]);
    refuse_message(&mut lab, id, ErrorCode::RequestPermission, FLOW_MOD);
    assert_eq!(up(&lab), None);
}

#[test]
fn no_handler_answers_the_error_that_ends_its_time() {
    #[derive(Clone)]
    struct Stubborn(Notes);
    impl App for Stubborn {
        type Handler = Stubborn;
        fn switch_up(&self, _: &Network, _: &SwitchInfo) -> Stubborn {
            self.clone()
        }
    }
    impl Handler for Stubborn {
        fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
            switch.barrier()?;
            Ok(())
        }
        fn error(&mut self, switch: &mut Switch<'_>, _: Xid, _: &ErrorMessage<'_>) -> Result<()> {
            self.0.note("error");
            switch.barrier()?;
            Ok(())
        }
    }
    let notes = Notes::default();
    let mut lab = Lab::with_app(Stubborn(notes.clone()));
    let id = lab.connect(0, Version::V1_3, SwitchDescription::new(DPID.0));
    lab.switches[id].ignored_barriers = Some(Vec::new());
    lab.advance(Duration::from_secs(6));
    let own = lab.switches[id].ignored_barriers.as_ref().unwrap().last().copied().unwrap();
    received(&mut lab, id);
    refuse_slave(&mut lab, id, own);
    assert_eq!(notes.take(), [""; 0]);
    assert_eq!(received(&mut lab, id), [""; 0]);
    assert_eq!(up(&lab), None);
}

#[test]
fn mail_of_one_term_is_not_delivered_in_the_next() {
    /// Adopts nothing, so that its switches come up at once.
    struct Plain;
    impl App for Plain {
        type Handler = ();
        fn switch_up(&self, _: &Network, _: &SwitchInfo) {}
    }
    let mut lab = Lab::with_app(Plain);
    let id = lab.up(Version::V1_3, DPID.0);
    let network = lab.shared.network();
    let actions = [Action::output(Port(9))];
    let message = ToSwitch::PacketOut(PacketOut {
        buffer_id: None,
        in_port: Port::CONTROLLER,
        actions: List::of(&actions),
        data: Bytes(&[0; 60]),
    });
    let is_packet_out = |text: &String| text.starts_with("packet_out");
    network.send(DPID, &message).unwrap();
    for role in [RoleKind::Slave, RoleKind::Equal] {
        let role = RoleMessage { role, generation_id: 9 };
        let status = RoleStatus { role, reason: RoleReason::Config };
        let mut out = bellrock_api::openflow::Out::with_capacity(64);
        RoleExtension::Status(status).write(Version::V1_3, 0, &mut out).unwrap();
        lab.send_bytes(id, out.as_slice());
    }
    lab.run();
    assert_eq!(up(&lab), Some(ControllerRole::Equal));
    assert!(!received(&mut lab, id).iter().any(is_packet_out));
    assert_eq!(lab.counters("mail_undeliverable"), [1]);
    // That of the present term is.
    network.send(DPID, &message).unwrap();
    lab.run();
    assert!(received(&mut lab, id).iter().any(is_packet_out));
}

#[test]
fn replies_reach_the_app_that_has_asked() {
    /// Asks for several things when the switch comes up.
    #[derive(Clone)]
    struct Asking(&'static str, Notes, bool, Network);
    impl App for Asking {
        type Handler = Asking;
        fn name(&self) -> &'static str {
            self.0
        }
        fn switch_up(&self, network: &Network, _: &SwitchInfo) -> Asking {
            Asking(self.0, self.1.clone(), self.2, network.clone())
        }
    }
    impl Handler for Asking {
        fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
            if !self.2 {
                return Ok(());
            }
            let version = switch.version();
            switch.send(&ToSwitch::GetConfigRequest)?;
            switch.send(&ToSwitch::EchoRequest(Bytes(b"hi")))?;
            switch.send(&ToSwitch::FeaturesRequest)?;
            let message = |experimenter, number: u32, data| {
                let kind = Some(number).filter(|_| version == Version::V1_3);
                ToSwitch::Experimenter(Experimenter { experimenter, kind, data: Bytes(data) })
            };
            if version == Version::V1_3 {
                let role = RoleKind::NoChange;
                switch.send(&ToSwitch::RoleRequest(RoleMessage { role, generation_id: 0 }))?;
            }
            // Only an order changes the role.
            let master = RoleMessage { role: RoleKind::Master, generation_id: 0 };
            let is_master = [0, 0, 0, 10, 0, 0, 0, 1];
            let by_extension = match version {
                Version::V1_0 => message(NICIRA, 10, &is_master),
                Version::V1_3 => message(NICIRA, 10, &is_master[4..]),
            };
            for change in [ToSwitch::RoleRequest(master), by_extension] {
                assert_eq!(switch.send(&change), Err(Error::RoleChange));
                assert_eq!(self.3.send(DPID, &change), Err(Error::RoleChange));
            }
            switch.send(&message(7, 1, &[0, 0, 0, 1]))?;
            Ok(())
        }
        fn answer(&mut self, _: &mut Switch<'_>, _: Xid, answer: &FromSwitch<'_>) -> Result<()> {
            self.1.note(format!("{} {:?}", self.0, answer.kind()));
            Ok(())
        }
    }
    for version in BOTH {
        let notes = Notes::default();
        let apps = [("first", false), ("second", true)];
        let apps = apps.map(|(name, asks)| {
            let network = bellrock_api::runtime::EmptyNetwork::network();
            Box::new(Asking(name, notes.clone(), asks, network)) as _
        });
        let mut lab = Lab::new(1, WorkerSettings::default(), apps.into());
        let id = lab.connect(0, version, SwitchDescription::new(DPID.0));
        lab.switches[id].roles = FakeRoles::equal();
        lab.run();
        let mut expected =
            vec!["second GetConfigReply", "second EchoReply", "second FeaturesReply"];
        expected.extend((version == Version::V1_3).then_some("second RoleReply"));
        assert_eq!(notes.take(), expected);
        // The reply to an experimenter's message.
        let xid = last_xid(&lab, id);
        let kind = (version == Version::V1_3).then_some(2);
        let reply = Experimenter { experimenter: 7, kind, data: Bytes(&[0, 0, 0, 2]) };
        let mut out = bellrock_api::openflow::Out::with_capacity(64);
        FromSwitch::Experimenter(reply).encode(version, xid, &mut out).unwrap();
        lab.send_bytes(id, out.as_slice());
        lab.run();
        assert_eq!(notes.take(), ["second Experimenter"]);
    }
}
