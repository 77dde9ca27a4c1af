//! Connections: versions, roles, restarts.

use bellrock_openflow::{
    Bytes, ConfigFlags, FlowMod, FromSwitch, Match, RoleExtension, RoleKind, RoleMessage,
    RoleReason, RoleStatus, SwitchConfig, TableMod,
};

use super::*;
use crate::switch::{MAX_CHANNELS, TooManyControllers};

fn role(role: RoleKind, generation_id: u64) -> ToSwitch<'static> {
    ToSwitch::RoleRequest(RoleMessage { role, generation_id })
}

#[test]
fn a_controller_of_another_version_is_refused_while_there_is_one() {
    let (mut lab, _) = Lab::with(V1_3);
    let second = Peer { id: lab.switch.connect().unwrap(), version: V1_0 };
    assert!(lab.give(second, &hello(V1_0)).is_err());
    // The switch's hello, then the reason why it closes.
    assert_eq!(lab.take(second).errors(), [(1, ErrorCode::HelloIncompatible)]);
    lab.switch.disconnect(second.id);
    let third = lab.join(V1_3);
    assert_eq!(lab.switch.channels().count(), 2);
    assert_eq!(lab.ask(third, &ToSwitch::BarrierRequest).kinds(), ["BarrierReply"]);
}

#[test]
fn of_two_that_say_hello_at_once_the_second_with_another_version_is_refused() {
    let mut lab = Lab::new();
    let ids = [lab.switch.connect().unwrap(), lab.switch.connect().unwrap()];
    let [first, second] =
        [(ids[0], V1_0), (ids[1], V1_3)].map(|(id, version)| Peer { id, version });
    lab.give(first, &hello(V1_0)).unwrap();
    let close = lab.give(second, &hello(V1_3)).unwrap_err();
    assert_eq!(close, ChannelClose::OtherVersion { used: V1_0, requested: V1_3 });
    let errors = lab.take(second).errors();
    assert_eq!(
        errors.iter().map(|error| error.1).collect::<Vec<_>>(),
        [ErrorCode::HelloIncompatible]
    );
}

#[test]
fn flows_outlive_their_controller_and_not_a_change_of_version() {
    let (mut lab, peer) = Lab::with(V1_3);
    let any = Match::any();
    let to_two = [Action::output(Port(2))];
    lab.flow(peer, FlowMod::add(&any).actions(&to_two));
    lab.switch.disconnect(peer.id);
    assert_eq!(lab.packet(1, &packet(60)), [2]);
    let again = lab.join(V1_3);
    assert_eq!(lab.packet(1, &packet(60)), [2]);
    lab.switch.disconnect(again.id);
    lab.join(V1_0);
    assert_eq!(lab.packet(1, &packet(60)), [0; 0]);
}

#[test]
fn a_restart_loses_connections_and_on_request_flows() {
    for keep in [true, false] {
        let (mut lab, peer) = Lab::with(V1_3);
        let any = Match::any();
        lab.flow(peer, FlowMod::add(&any).actions(&[Action::output(Port(2))]));
        lab.tell(
            peer,
            &ToSwitch::SetConfig(SwitchConfig {
                flags: ConfigFlags::FRAG_DROP,
                miss_send_len: 1_000,
            }),
        );
        lab.ask(peer, &role(RoleKind::Master, 9));
        lab.switch.restart(keep);
        assert_eq!(lab.switch.channels().count(), 0);
        // A closed channel takes no bytes and has none.
        lab.give(peer, &[1, 2, 3]).unwrap();
        assert!(lab.switch.output(peer.id).is_empty());
        assert_eq!(lab.packet(1, &packet(60)).len(), usize::from(keep));
        let peer = lab.join(V1_3);
        let said = lab.ask(peer, &ToSwitch::GetConfigRequest);
        let FromSwitch::GetConfigReply(config) = said.only() else { panic!() };
        assert_eq!((config.flags, config.miss_send_len), (ConfigFlags::empty(), 128));
        // The election before the restart is forgotten.
        assert_eq!(lab.ask(peer, &role(RoleKind::Master, 3)).kinds(), ["RoleReply"]);
    }
}

#[test]
fn a_switch_has_room_for_so_many_controllers_and_no_more() {
    let mut lab = Lab::new();
    let first = lab.switch.connect().unwrap();
    for _ in 1..MAX_CHANNELS {
        lab.switch.connect().unwrap();
    }
    assert_eq!(lab.switch.connect(), Err(TooManyControllers));
    lab.switch.disconnect(first);
    assert!(lab.switch.connect().is_ok_and(|id| id != first));
}

#[test]
fn an_echo_comes_back_as_it_was() {
    let (mut lab, peer) = Lab::with(V1_3);
    let said = lab.ask(peer, &ToSwitch::EchoRequest(Bytes(b"data")));
    assert_eq!(said.only(), FromSwitch::EchoReply(Bytes(b"data")));
}

#[test]
fn a_new_master_makes_the_old_one_a_slave() {
    let (mut lab, first) = Lab::with(V1_3);
    let second = lab.join(V1_3);
    let said = lab.ask(first, &role(RoleKind::NoChange, 0));
    let none_yet = RoleMessage { role: RoleKind::Equal, generation_id: u64::MAX };
    assert_eq!(said.only(), FromSwitch::RoleReply(none_yet));
    let said = lab.ask(first, &role(RoleKind::Master, 5));
    let master = RoleMessage { role: RoleKind::Master, generation_id: 5 };
    assert_eq!(said.only(), FromSwitch::RoleReply(master));
    lab.ask(second, &role(RoleKind::Master, 6));
    // The switch tells it at once.
    let slave = RoleMessage { role: RoleKind::Slave, generation_id: 6 };
    let status = RoleStatus { role: slave, reason: RoleReason::MasterRequest };
    let said = lab.take(first);
    let FromSwitch::Experimenter(told) = said.only() else { panic!() };
    assert_eq!(RoleExtension::read(&told), Some(RoleExtension::Status(status)));
    let said = lab.ask(first, &role(RoleKind::NoChange, 0));
    assert_eq!(said.only(), FromSwitch::RoleReply(slave));
    assert_eq!(lab.switch.role(second.id), Some(RoleKind::Master));
    // Who is master already tells nobody.
    lab.ask(second, &role(RoleKind::Master, 7));
    assert_eq!(lab.take(first).kinds(), [""; 0]);
}

/// Sends Open vSwitch's request for a role, which makes 1.0 know roles.
fn nicira(lab: &mut Lab, peer: Peer, role: RoleKind) -> Said {
    let mut out = Out::with_capacity(64);
    RoleExtension::Request(role).write(V1_0, 7, &mut out).unwrap();
    lab.give(peer, out.as_slice()).unwrap();
    lab.take(peer)
}

#[test]
fn in_1_0_a_master_makes_the_other_one_a_slave_by_an_extension() {
    let (mut lab, first) = Lab::with(V1_0);
    let second = lab.join(V1_0);
    for (peer, role) in [(first, RoleKind::Master), (second, RoleKind::Master)] {
        let said = nicira(&mut lab, peer, role);
        let FromSwitch::Experimenter(reply) = said.only() else { panic!() };
        assert_eq!(RoleExtension::read(&reply), Some(RoleExtension::Reply(role)));
    }
    // 1.0 has no message about that.
    assert_eq!(lab.take(first).kinds(), [""; 0]);
    assert_eq!(lab.switch.role(first.id), Some(RoleKind::Slave));
    let any = Match::any();
    let flow = ToSwitch::FlowMod(FlowMod::add(&any));
    assert_eq!(lab.refused(first, &flow), ErrorCode::RequestPermission);
    // A slave hears of ports, and of nothing else.
    lab.packet(1, &packet(60));
    lab.switch.set_link(2, false, &mut lab.effects);
    assert_eq!(lab.take(first).kinds(), ["PortStatus"]);
    assert_eq!(lab.take(second).kinds(), ["PacketIn", "PortStatus"]);
    nicira(&mut lab, first, RoleKind::Equal);
    assert_eq!(lab.ask(first, &flow).kinds(), [""; 0]);
    let said = nicira(&mut lab, first, RoleKind::Unknown(9));
    assert_eq!(said.error(), ErrorCode::RoleBadRole.nearest(V1_0));
}

#[test]
fn a_role_of_an_older_election_is_stale_and_numbers_go_round() {
    let (mut lab, peer) = Lab::with(V1_3);
    lab.ask(peer, &role(RoleKind::Slave, u64::MAX - 1));
    for stale in [u64::MAX - 2, u64::MAX / 2] {
        for kind in [RoleKind::Master, RoleKind::Slave] {
            assert_eq!(lab.refused(peer, &role(kind, stale)), ErrorCode::RoleStale);
        }
    }
    // A request for the role equal takes part in no election.
    assert_eq!(lab.ask(peer, &role(RoleKind::Equal, 0)).kinds(), ["RoleReply"]);
    assert_eq!(lab.ask(peer, &role(RoleKind::Master, 3)).kinds(), ["RoleReply"]);
    assert_eq!(lab.refused(peer, &role(RoleKind::Slave, u64::MAX)), ErrorCode::RoleStale);
    assert_eq!(lab.refused(peer, &role(RoleKind::Unknown(9), 9)), ErrorCode::RoleBadRole);
    assert_eq!(lab.switch.role(peer.id), Some(RoleKind::Master));
}

#[test]
fn a_slave_may_ask_and_not_change() {
    let (mut lab, peer) = Lab::with(V1_3);
    lab.ask(peer, &role(RoleKind::Slave, 1));
    let any = Match::any();
    let config = SwitchConfig { flags: ConfigFlags::empty(), miss_send_len: 5 };
    for change in [
        ToSwitch::FlowMod(FlowMod::add(&any)),
        ToSwitch::TableMod(TableMod { table: 0, config: 0 }),
        ToSwitch::SetConfig(config),
    ] {
        assert_eq!(lab.refused(peer, &change), ErrorCode::RequestIsSlave);
    }
    assert_eq!(lab.ask(peer, &ToSwitch::BarrierRequest).kinds(), ["BarrierReply"]);
    let tables = multipart(RequestBody::Table);
    assert_eq!(lab.ask(peer, &ToSwitch::MultipartRequest(tables)).kinds(), ["MultipartReply"]);
    assert_eq!(lab.switch.datapath().tables().table(0).unwrap().len(), 0);
}
