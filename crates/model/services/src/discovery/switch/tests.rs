//! Handlers of switches with too many ports: events go in, messages come out.

use bellrock_api::openflow::{
    self, Bytes, FromSwitch, MAX_MESSAGE_LEN, MatchView, Out, PacketInReason, PacketInView,
    PortState as LinkState, frame,
};
use bellrock_api::runtime::EmptyNetwork;
use bellrock_api::{ErrorCode, Event, MacAddr, RefusedFlows, ToSwitch, Version};

use super::super::Secrets;
use super::*;
use crate::discovery::{DiscoveryKey, DiscoverySettings};
use crate::exchange::{NumberedFrame, Peer, PeerFrame};
use crate::testing::{ROOM_BYTES, event, info, port};

const SECOND: Duration = Duration::from_secs(1);

/// A handler and its switch.
struct Scene {
    handler: DiscoverySwitch,
    network: Network,
    info: SwitchInfo,
    now: Duration,
}

impl Scene {
    fn new(ports: u32) -> Self {
        let info = info(ports);
        let shared =
            Arc::new(DiscoveryShared::new(Secrets::of_seed(1), &DiscoverySettings::default()));
        let network = EmptyNetwork::network();
        let handler = DiscoverySwitch::new(shared, Arc::default(), &info, &network);
        Scene { handler, network, info, now: SECOND }
    }

    /// Number of packets and flow_mods that an event sends, with `room` bytes of space.
    fn sends(
        &mut self,
        room: usize,
        call: impl FnOnce(&mut DiscoverySwitch, &mut Switch<'_>) -> Result<()>,
    ) -> (usize, usize) {
        let handler = &mut self.handler;
        let (done, out) = event(&self.info, self.now, room, |switch| call(handler, switch));
        done.unwrap();
        let (mut packets, mut flows, mut rest) = (0, 0, out.as_slice());
        while let Some(message) = frame(rest).unwrap() {
            match ToSwitch::decode(message.bytes).unwrap().body {
                ToSwitch::PacketOut(_) => packets += 1,
                ToSwitch::FlowMod(_) => flows += 1,
                _ => {}
            }
            rest = &rest[message.bytes.len()..];
        }
        (packets, flows)
    }

    fn second(&mut self, room: usize) -> usize {
        self.now += SECOND;
        self.sends(room, |handler, switch| handler.tick(switch)).0
    }
}

#[test]
fn a_switch_with_very_many_ports_is_asked_in_turns_and_has_its_flow() {
    let mut scene = Scene::new(8192);
    let (packets, flows) = scene.sends(ROOM_BYTES, |handler, switch| handler.switch_up(switch));
    assert_eq!((packets, flows), (ANNOUNCEMENTS_PER_TURN, 1));
    // Owed announcements come first.
    assert_eq!(scene.second(ROOM_BYTES), ANNOUNCEMENTS_PER_TURN);
    assert!(scene.handler.ports.values().skip(ANNOUNCEMENTS_PER_TURN).all(|port| !port.is_overdue));
    // The handler uses the space that is left.
    let some = scene.second(ROOM_BYTES / 16);
    assert!((100..ANNOUNCEMENTS_PER_TURN).contains(&some), "{some}");
}

#[test]
fn ports_that_a_switch_makes_up_take_no_room() {
    let mut scene = Scene::new(4);
    for number in 5..100 {
        let status = PortStatus { reason: PortReason::Add, desc: port(number) };
        let sent = scene.sends(ROOM_BYTES, |handler, switch| handler.port_status(switch, &status));
        assert_eq!((sent, scene.handler.ports.len()), ((0, 0), 0));
    }
    let status = PortStatus { reason: PortReason::Add, desc: port(4) };
    let sent = scene.sends(ROOM_BYTES, |handler, switch| handler.port_status(switch, &status));
    assert_eq!(sent, (2, 0), "one for cables, one for segments");
    let desc = PortDesc { state: LinkState::LINK_DOWN, ..port(4) };
    let status = PortStatus { reason: PortReason::Modify, desc };
    scene.sends(ROOM_BYTES, |handler, switch| handler.port_status(switch, &status));
    assert!(scene.handler.ports.is_empty());
}

/// A switch whose table is full refuses the flow.
#[test]
fn a_refused_flow_for_announcements_is_sent_again_until_it_is_there() {
    let mut scene = Scene::new(2);
    let flows = |scene: &mut Scene| {
        scene.now += SECOND;
        let (_, out) = event(&scene.info, scene.now, ROOM_BYTES, |switch| {
            scene.handler.tick(switch).unwrap();
        });
        messages(&out)
    };
    let (_, out) = event(&scene.info, scene.now, ROOM_BYTES, |switch| {
        scene.handler.switch_up(switch).unwrap();
    });
    let (flow, _) = messages(&out);
    let mut refused = flow.unwrap();
    let mut sent_after = Vec::new();
    for second in 0..8 {
        if second == 0 || sent_after.last() == Some(&second) {
            let error =
                ErrorMessage::Standard { code: ErrorCode::FlowModTableFull, data: Bytes(&[]) };
            event(&scene.info, scene.now, ROOM_BYTES, |switch| {
                scene.handler.error(switch, Xid(refused), &error).unwrap();
            });
        }
        if let (Some(flow), Some(barrier)) = flows(&mut scene) {
            (refused, _) = (flow, barrier);
            sent_after.push(second + 1);
        }
    }
    assert_eq!(sent_after, [1, 3, 7]);
    let of = scene.network.extension::<RefusedFlows>();
    assert_eq!(of.of_switch(scene.info.dpid).len(), 1);
    // The next flow is accepted: no error comes before its barrier reply.
    let barrier = loop {
        if let (Some(_), Some(barrier)) = flows(&mut scene) {
            break barrier;
        }
    };
    event(&scene.info, scene.now, ROOM_BYTES, |switch| {
        scene.handler.barrier(switch, Xid(barrier)).unwrap();
    });
    assert_eq!(of.of_switch(scene.info.dpid), []);
    for _ in 0..100 {
        assert_eq!(flows(&mut scene).0, None);
    }
}

/// Returns the transaction ids of the flow_mod and of the barrier behind it.
fn messages(out: &Out) -> (Option<u32>, Option<u32>) {
    let (mut flow, mut barrier, mut rest) = (None, None, out.as_slice());
    while let Some(message) = frame(rest).unwrap() {
        match ToSwitch::decode(message.bytes).unwrap().body {
            ToSwitch::FlowMod(_) => flow = Some(message.header.xid),
            ToSwitch::BarrierRequest if flow.is_some() => {
                barrier.get_or_insert(message.header.xid);
            }
            _ => {}
        }
        rest = &rest[message.bytes.len()..];
    }
    (flow, barrier)
}

/// An announcement of a controller for port 7 of switch 9.
fn announcement(instance: u64, key: &DiscoveryKey) -> Vec<u8> {
    let from = SwitchPort::new(Dpid(9), Port(7));
    let mut frame = PreparedAnnouncement::new(instance, from, MacAddr::from_u64(7), SECOND);
    frame.sign(key, Reach::Cable, SECOND, 1).to_vec()
}

/// Receives a packet, and returns what the task gets.
fn hear_in_this_second(scene: &mut Scene, port: u32, data: &[u8]) -> Option<DiscoveryMessage> {
    let packet = openflow::PacketInMessage {
        buffer_id: None,
        total_len: data.len() as u16,
        reason: PacketInReason::Action,
        table: 0,
        cookie: openflow::PacketInMessage::NO_COOKIE,
        matching: MatchView::port(Port(port)),
        data: Bytes(data),
    };
    let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
    FromSwitch::PacketIn(packet).encode(Version::V1_3, 0, &mut out).unwrap();
    let packet = PacketIn::new(PacketInView::of_any_form(out.as_slice()).unwrap());
    scene.sends(ROOM_BYTES, |handler, switch| handler.packet_in(switch, &packet).map(drop));
    scene.handler.shared.receiver.try_recv().ok()
}

#[test]
fn announcements_of_other_controllers_of_the_cluster_are_passed_on_and_others_are_not() {
    let mut scene = Scene::new(4);
    let key = |n: u8| DiscoveryKey::new(&[n; 32]).unwrap();
    let exchange = Exchange::of(&scene.network);
    scene.sends(ROOM_BYTES, |handler, switch| handler.switch_up(switch));
    let hear = |scene: &mut Scene, port: u32, data: &[u8]| {
        scene.now += SECOND;
        scene.sends(ROOM_BYTES, |handler, switch| handler.tick(switch));
        hear_in_this_second(scene, port, data)
    };
    let at = SwitchPort::new(Dpid(1), Port(2));
    // A controller that is alone has no others.
    let heard = hear(&mut scene, 2, &announcement(100, &key(1)));
    assert!(matches!(heard, Some(DiscoveryMessage::Forged(it)) if it == at), "{heard:?}");
    exchange.open(Peer(0), [Peer(1)], 1);
    let heard = hear(&mut scene, 2, &announcement(100, &key(1)));
    assert!(matches!(heard, Some(DiscoveryMessage::Unknown(it)) if it == at), "{heard:?}");
    let frame = PeerFrame::Key { instance: 100, key: vec![1; 32] };
    exchange.begin_links(1, key(9));
    exchange.receive(Peer(1), NumberedFrame { stream: 1, number: 1, frame }, SECOND).unwrap();
    let heard = hear(&mut scene, 2, &announcement(100, &key(1)));
    let Some(DiscoveryMessage::OfPeer(Peer(1), passed)) = heard else { panic!("{heard:?}") };
    assert_eq!((passed.instance, passed.nonce, passed.to), (100, 1, at));
    // The number of the other controller, and another key; then a number of nobody.
    for (instance, signed_by) in [(100, key(2)), (101, key(1))] {
        let heard = hear(&mut scene, 2, &announcement(instance, &signed_by));
        assert!(matches!(heard, Some(DiscoveryMessage::Forged(it)) if it == at), "{heard:?}");
    }
    // The key of the other controller makes nobody this controller.
    let own = scene.handler.shared.secrets.instance;
    let heard = hear(&mut scene, 2, &announcement(own, &key(1)));
    assert!(matches!(heard, Some(DiscoveryMessage::Forged(_))), "{heard:?}");
    // A flood is bounded at the port.
    let data = announcement(100, &key(1));
    let passed = (0..100).filter(|_| hear_in_this_second(&mut scene, 3, &data).is_some()).count();
    assert_eq!(passed, usize::from(LLDP_PER_PORT_PER_S));
}

/// Transaction ids and ports of announcements, and the barriers.
fn announced(out: &Out) -> (Vec<(Xid, Port)>, Vec<Xid>) {
    let (mut packets, mut barriers, mut rest) = (Vec::new(), Vec::new(), out.as_slice());
    while let Some(message) = frame(rest).unwrap() {
        let xid = Xid(message.header.xid);
        match ToSwitch::decode(message.bytes).unwrap().body {
            ToSwitch::PacketOut(packet) => {
                let Some(Action::Output { port, .. }) = packet.actions.iter().next() else {
                    panic!("{packet:?}")
                };
                packets.push((xid, port));
            }
            ToSwitch::BarrierRequest => barriers.push(xid),
            _ => {}
        }
        rest = &rest[message.bytes.len()..];
    }
    (packets, barriers)
}

/// Maximum number of messages of a second.
const XIDS_PER_S: u64 = 16;

/// A second of a switch that refuses announcements at ports from this one on. Returns their number.
fn refusing_second(scene: &mut Scene, refused_from: u32) -> [usize; 2] {
    scene.now += SECOND;
    let (_, out) = event(&scene.info, scene.now, ROOM_BYTES, |switch| {
        // Each event counts transaction ids from the start: those of this second are its own.
        for _ in 0..scene.now.as_secs() * XIDS_PER_S {
            switch.barrier().unwrap();
        }
        scene.handler.tick(switch).unwrap();
    });
    let (packets, barriers) = announced(&out);
    let (refused, taken): (Vec<_>, Vec<_>) =
        packets.into_iter().partition(|(_, port)| port.0 >= refused_from);
    let error = ErrorMessage::Standard { code: ErrorCode::ActionBadOutPort, data: Bytes(&[]) };
    event(&scene.info, scene.now, ROOM_BYTES, |switch| {
        for (xid, _) in &refused {
            scene.handler.error(switch, *xid, &error).unwrap();
        }
        for barrier in barriers {
            scene.handler.barrier(switch, barrier).unwrap();
        }
    });
    [taken.len(), refused.len()]
}

/// As switches do at ports of tunnels.
#[test]
fn ports_that_refuse_announcements_are_one_alarm_and_are_announced_less_and_less() {
    const NONE: u32 = 99;
    let mut scene = Scene::new(4);
    let names = |scene: &Scene| -> Vec<&str> {
        scene.network.events().latest(99).iter().map(|it| it.event.name()).collect()
    };
    scene.sends(ROOM_BYTES, |handler, switch| handler.switch_up(switch));
    let [mut taken, mut refused] = [0; 2];
    for _ in 0..600 {
        let [more_taken, more_refused] = refusing_second(&mut scene, 3);
        (taken, refused) = (taken + more_taken, refused + more_refused);
    }
    // Two ports, and two announcements each time.
    assert!((30..=80).contains(&refused), "{refused}");
    assert!(taken >= 2 * 2 * 600 / 5, "{taken}");
    assert_eq!(names(&scene), ["announcements_refused"]);
    let all = scene.network.events().latest(1);
    let Event::AnnouncementsRefused { ports, .. } = &all[0].event else { panic!("{all:?}") };
    assert_eq!(ports[..], [Port(3), Port(4)]);
    let text = all[0].event.to_string();
    assert!(text.contains("ports 3, 4, so") && text.contains("BAD_OUT_PORT"), "{text}");
    // The alarm outlasts the connection.
    scene.handler = DiscoverySwitch::new(
        scene.handler.shared.clone(),
        Arc::default(),
        &scene.info,
        &scene.network,
    );
    scene.sends(ROOM_BYTES, |handler, switch| handler.switch_up(switch));
    for _ in 0..60 {
        refusing_second(&mut scene, 3);
    }
    assert_eq!(names(&scene), ["announcements_refused"]);
    let reported = scene.network.extension::<RefusedAnnouncements>();
    assert_eq!(reported.of_switch(scene.info.dpid), [Port(3), Port(4)]);
    for _ in 0..120 {
        refusing_second(&mut scene, NONE);
    }
    assert_eq!(names(&scene), ["announcements_refused", "announcements_taken"]);
    assert_eq!(reported.of_switch(scene.info.dpid), []);
    assert!(all[0].event.has_end());
}

#[test]
fn a_port_that_refuses_one_announcement_is_no_alarm() {
    let mut scene = Scene::new(4);
    scene.sends(ROOM_BYTES, |handler, switch| handler.switch_up(switch));
    assert!(refusing_second(&mut scene, 4)[1] > 0);
    for _ in 0..60 {
        refusing_second(&mut scene, 99);
    }
    assert!(scene.network.events().latest(9).is_empty());
    assert!(scene.handler.ports.values().all(|port| port.refused.is_none()));
}
