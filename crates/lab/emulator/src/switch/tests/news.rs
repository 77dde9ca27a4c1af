//! Messages of a switch that are not replies: which controllers get them, and in which form.

use bellrock_openflow::{
    AsyncConfig, AsyncMasks, ConfigFlags, FlowFlags, FlowRemovedReason, Instruction, Instructions,
    List, PacketInReason, PortConfig, PortMod, PortReason, RoleKind, RoleMessage, SwitchConfig,
};

use super::*;

/// A port_mod that takes this port up or down.
fn port_down(port: u32, down: bool) -> ToSwitch<'static> {
    let desc = crate::switch::port_desc(1, port);
    let mask = PortConfig::PORT_DOWN;
    let config = if down { mask } else { PortConfig::empty() };
    ToSwitch::PortMod(PortMod {
        port: desc.port,
        address: desc.address,
        config,
        mask,
        advertise: bellrock_openflow::PortFeatures::empty(),
    })
}

fn wants(packet_in: u32, port_status: u32, flow_removed: u32) -> AsyncMasks {
    AsyncMasks { packet_in, port_status, flow_removed }
}

#[test]
fn in_1_0_a_packet_without_a_flow_goes_to_every_controller_and_in_1_3_it_is_dropped() {
    let (mut lab, first) = Lab::with(V1_0);
    let second = lab.join(V1_0);
    lab.packet(3, &packet(60));
    for peer in [first, second] {
        let said = lab.take(peer);
        let FromSwitch::PacketIn(packet_in) = said.only() else { panic!() };
        assert_eq!((packet_in.in_port(), packet_in.reason), (Port(3), PacketInReason::NoMatch));
    }
    let (mut lab, peer) = Lab::with(V1_3);
    lab.packet(3, &packet(60));
    assert!(lab.take(peer).0.is_empty());
}

#[test]
fn a_buffered_packet_is_cut_to_the_length_that_was_set_and_another_comes_whole() {
    let (mut lab, peer) = Lab::with(V1_0);
    for (miss_send_len, len) in [(128, 128), (20, 20), (0, 0), (0xffff, 300)] {
        lab.tell(
            peer,
            &ToSwitch::SetConfig(SwitchConfig { flags: ConfigFlags::empty(), miss_send_len }),
        );
        lab.packet(1, &packet(300));
        let said = lab.take(peer);
        let FromSwitch::PacketIn(packet_in) = said.only() else { panic!() };
        assert!(packet_in.buffer_id.is_some() || packet_in.is_whole());
        assert_eq!((packet_in.data.len(), packet_in.total_len), (len, 300));
    }
    let mut lab = Lab::of(SwitchSettings { n_buffers: 0, ..SwitchSettings::new(1, 4) });
    let peer = lab.join(V1_0);
    lab.packet(1, &packet(300));
    let said = lab.take(peer);
    let FromSwitch::PacketIn(packet_in) = said.only() else { panic!() };
    assert_eq!((packet_in.buffer_id, packet_in.data.len()), (None, 300));
}

#[test]
fn a_packet_in_of_1_3_names_flow_table_and_pipeline_fields() {
    let (mut lab, peer) = Lab::with(V1_3);
    let any = Match::any();
    let write =
        [Instruction::WriteMetadata { metadata: 0xab, mask: 0xff }, Instruction::GotoTable(1)];
    lab.flow(peer, FlowMod { instructions: Instructions::of(&write), ..FlowMod::add(&any) });
    let up = [Action::output(Port::CONTROLLER)];
    lab.flow(peer, miss_to_controller(&any, &up).table(1).cookie(77));
    lab.packet(2, &packet(60));
    let said = lab.take(peer);
    let FromSwitch::PacketIn(packet_in) = said.only() else { panic!() };
    assert_eq!((packet_in.table, packet_in.cookie), (1, 77));
    assert_eq!(packet_in.matching.to_match(), Match::any().in_port(Port(2)).metadata(0xab));
    assert_eq!(packet_in.reason, PacketInReason::NoMatch);
    assert_eq!(&*packet_in.data, packet(60));
}

#[test]
fn slaves_hear_of_ports_only_until_they_ask_for_more() {
    let (mut lab, peer) = Lab::with(V1_3);
    let any = Match::any();
    let up = [Action::output(Port::CONTROLLER)];
    lab.flow(peer, miss_to_controller(&any, &up));
    lab.ask(peer, &ToSwitch::RoleRequest(RoleMessage { role: RoleKind::Slave, generation_id: 1 }));
    lab.packet(2, &packet(60));
    assert!(lab.take(peer).0.is_empty());
    lab.switch.set_link(1, false, &mut lab.effects);
    assert_eq!(lab.take(peer).kinds(), ["PortStatus"]);
    let more = AsyncConfig { master: wants(0, 0, 0), slave: wants(1, 0, 0) };
    lab.tell(peer, &ToSwitch::SetAsync(more));
    lab.packet(2, &packet(60));
    assert_eq!(lab.take(peer).kinds(), ["PacketIn"]);
    lab.switch.set_link(1, true, &mut lab.effects);
    assert!(lab.take(peer).0.is_empty());
    let said = lab.ask(peer, &ToSwitch::GetAsyncRequest);
    assert_eq!(said.only(), FromSwitch::GetAsyncReply(more));
}

#[test]
fn each_reason_has_its_bit_in_the_masks() {
    let (mut lab, peer) = Lab::with(V1_3);
    let (any, one) = (Match::any(), Match::any().in_port(Port(1)));
    let up = [Action::output(Port::CONTROLLER)];
    lab.flow(peer, miss_to_controller(&any, &up));
    lab.flow(peer, FlowMod::add(&one).actions(&up).hard_timeout(1).flags(FlowFlags::SEND_FLOW_REM));
    let only_actions = AsyncConfig { master: wants(0b10, 0, 0b100), ..AsyncConfig::default() };
    lab.tell(peer, &ToSwitch::SetAsync(only_actions));
    lab.packet(2, &packet(60));
    assert!(lab.take(peer).0.is_empty(), "the table-miss entry's");
    lab.packet(1, &packet(60));
    assert_eq!(lab.take(peer).kinds(), ["PacketIn"]);
    lab.now = Duration::from_secs(1);
    lab.switch.timers(lab.now, &mut lab.effects);
    assert!(lab.take(peer).0.is_empty(), "timed out, which is bit 1");
    lab.flow(peer, FlowMod::add(&one).flags(FlowFlags::SEND_FLOW_REM));
    let said = lab.ask(peer, &ToSwitch::FlowMod(FlowMod::delete(&one)));
    assert_eq!(said.kinds(), ["FlowRemoved"]);
}

#[test]
fn a_flow_that_is_to_be_told_of_is_when_it_goes() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let one = Match::any().in_port(Port(1));
        let flow = FlowMod::add(&one).cookie(9).idle_timeout(2).hard_timeout(30).priority(4);
        lab.flow(peer, flow.flags(FlowFlags::SEND_FLOW_REM));
        lab.now = Duration::from_millis(1_500);
        lab.packet(1, &packet(60));
        assert_eq!(lab.switch.next_timer(), Some(Duration::from_secs(2)));
        lab.now = Duration::from_millis(3_500);
        lab.switch.timers(lab.now, &mut lab.effects);
        let said = lab.take(peer);
        let FromSwitch::FlowRemoved(gone) = said.only() else { panic!() };
        assert_eq!(
            (gone.reason, gone.cookie, gone.priority),
            (FlowRemovedReason::IdleTimeout, 9, 4)
        );
        assert_eq!((gone.duration_sec, gone.duration_nsec), (3, 500_000_000));
        assert_eq!((gone.packet_count, gone.byte_count, gone.idle_timeout), (1, 60, 2));
        assert_eq!(gone.hard_timeout, if version == V1_0 { 0 } else { 30 });
        assert_eq!(gone.matching.to_match(), one);
    }
}

#[test]
fn flows_that_did_not_ask_for_it_or_were_replaced_go_in_silence() {
    let (mut lab, peer) = Lab::with(V1_3);
    let any = Match::any();
    lab.flow(peer, FlowMod::add(&any).flags(FlowFlags::SEND_FLOW_REM));
    lab.flow(peer, FlowMod::add(&any));
    lab.flow(peer, FlowMod::delete(&any));
}

#[test]
fn flows_go_with_their_group_and_with_their_meter() {
    use bellrock_openflow::{
        GroupCommand, GroupMod, GroupType, MeterCommand, MeterFlags, MeterMod,
    };
    let (mut lab, peer) = Lab::with(V1_3);
    let (one, two) = (Match::any().in_port(Port(1)), Match::any().in_port(Port(2)));
    let group = |command| {
        let buckets = List::empty();
        ToSwitch::GroupMod(GroupMod { command, kind: GroupType::All, group: 5, buckets })
    };
    let meter = |command| {
        let (flags, bands) = (MeterFlags::KBPS, List::empty());
        ToSwitch::MeterMod(MeterMod { command, flags, meter: 6, bands })
    };
    lab.tell(peer, &group(GroupCommand::Add));
    lab.tell(peer, &meter(MeterCommand::Add));
    let told = FlowFlags::SEND_FLOW_REM;
    lab.flow(peer, FlowMod::add(&one).actions(&[Action::Group(5)]).flags(told));
    let metered = [Instruction::Meter(6)];
    lab.flow(peer, FlowMod::add(&two).instructions(&metered).flags(told));
    let said = lab.ask(peer, &group(GroupCommand::Delete));
    let FromSwitch::FlowRemoved(gone) = said.only() else { panic!() };
    assert_eq!(gone.reason, FlowRemovedReason::GroupDelete);
    let said = lab.ask(peer, &meter(MeterCommand::Delete));
    let FromSwitch::FlowRemoved(gone) = said.only() else { panic!() };
    assert_eq!((gone.reason, gone.matching.to_match()), (FlowRemovedReason::Delete, two.clone()));
}

#[test]
fn a_port_that_changes_is_told_of_and_described_anew() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        lab.switch.set_link(2, false, &mut lab.effects);
        let said = lab.take(peer);
        let FromSwitch::PortStatus(status) = said.only() else { panic!() };
        assert_eq!((status.reason, status.desc.port), (PortReason::Modify, Port(2)));
        assert!(status.desc.state.contains(PortState::LINK_DOWN));
        lab.switch.set_link(2, false, &mut lab.effects);
        assert!(lab.take(peer).0.is_empty(), "nothing has changed");
        let said = lab.ask(peer, &ToSwitch::MultipartRequest(multipart(RequestBody::PortDesc)));
        let FromSwitch::MultipartReply(reply) = said.only() else { panic!() };
        let ReplyBody::PortDesc(ports) = reply.body else { panic!() };
        let up: Vec<_> = ports.iter().map(|port| port.is_up()).collect();
        assert_eq!(up, [true, false, true, true]);
    }
}

#[test]
fn a_port_mod_is_news_for_the_other_controllers() {
    for version in BOTH {
        let (mut lab, first) = Lab::with(version);
        let second = lab.join(version);
        lab.tell(first, &port_down(2, true));
        assert_eq!(lab.take(second).kinds(), ["PortStatus"]);
        let third = lab.join(version);
        for peer in [first, second, third] {
            let asked = ToSwitch::MultipartRequest(multipart(RequestBody::PortDesc));
            let said = lab.ask(peer, &asked);
            let FromSwitch::MultipartReply(reply) = said.only() else { panic!() };
            let ReplyBody::PortDesc(ports) = reply.body else { panic!() };
            assert!(!ports.iter().nth(1).unwrap().is_up());
        }
        lab.tell(first, &port_down(2, false));
    }
}

#[test]
fn packets_whose_ttl_ran_out_are_for_those_who_ask_for_them() {
    use crate::packet::build::{Eth, IpFields};
    use bellrock_openflow::MacAddr;
    use std::net::Ipv4Addr;
    let (mut lab, peer) = Lab::with(V1_3);
    let ip = Match::any().eth_type(0x0800);
    lab.flow(peer, FlowMod::add(&ip).actions(&[Action::DecNwTtl, Action::output(Port(2))]));
    let addresses = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let packet = IpFields::v4(addresses.0, addresses.1).ttl(1).udp(1, 2, b"data");
    let frame = Eth::new(MacAddr([2; 6]), MacAddr([4; 6])).ip(&packet);
    lab.packet(1, &frame);
    assert!(lab.take(peer).0.is_empty());
    let all = AsyncConfig { master: wants(0b111, 0, 0), ..AsyncConfig::default() };
    lab.tell(peer, &ToSwitch::SetAsync(all));
    lab.packet(1, &frame);
    let said = lab.take(peer);
    let FromSwitch::PacketIn(packet_in) = said.only() else { panic!() };
    assert_eq!(packet_in.reason, PacketInReason::InvalidTtl);
}
