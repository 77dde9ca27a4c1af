//! What a handler reports to the task, and how often.

use std::time::Duration;

use bellrock_api::openflow::{
    self, Bytes, FromSwitch, MAX_MESSAGE_LEN, MatchView, Out, PacketInReason, PacketInView,
};
use bellrock_api::runtime::EmptyNetwork;
use bellrock_api::{Dpid, Host, HostId, MacAddr, Publisher, Version};

use super::*;
use crate::hosts::MAX_WAITING;
use crate::testing::{ROOM_BYTES, event, info};

const AT: SwitchPort = SwitchPort { dpid: Dpid(1), port: Port(1) };

struct Scene {
    handler: HostTrackingSwitch,
    info: SwitchInfo,
}

impl Scene {
    /// A switch with one port and `known` known hosts.
    fn new(known: u64) -> Self {
        let mut hosts = Hosts::default();
        for n in 0..known {
            let (id, since) = (HostId::new(mac(n), None), Duration::ZERO);
            hosts.insert(Host { id, at: AT, addresses: Vec::new(), since });
        }
        let topology = Publisher::new(Topology::of([(AT.dpid, vec![AT.port])], []));
        let (info, network) = (info(1), EmptyNetwork::network());
        let shared = Arc::new(TrackingShared::new(1, true));
        let mut handler = HostTrackingSwitch::new(shared, Arc::default(), &network, &info);
        handler.topology = topology.watch().reader();
        handler.hosts = Publisher::new(hosts).watch().reader();
        Scene { handler, info }
    }

    /// Receives a packet from host `n`.
    fn sees(&mut self, n: u64) {
        let mut data = [0; 60];
        data[..6].fill(0xff);
        data[6..12].copy_from_slice(&mac(n).0);
        data[12..14].copy_from_slice(&eth_type::IPV4.to_be_bytes());
        let packet = openflow::PacketInMessage {
            buffer_id: None,
            total_len: 60,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: openflow::PacketInMessage::NO_COOKIE,
            matching: MatchView::port(AT.port),
            data: Bytes(&data),
        };
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        FromSwitch::PacketIn(packet).encode(Version::V1_3, 0, &mut out).unwrap();
        let packet = PacketIn::new(PacketInView::of_any_form(out.as_slice()).unwrap());
        let (handler, now) = (&mut self.handler, Duration::from_secs(9));
        if handler.wants(&packet) {
            let (verdict, _) =
                event(&self.info, now, ROOM_BYTES, |switch| handler.packet_in(switch, &packet));
            assert_eq!(verdict, Ok(Verdict::Pass));
        }
    }

    /// Takes the sightings that wait for the task, and returns their number.
    fn told(&self) -> usize {
        std::iter::from_fn(|| self.handler.shared.receiver.try_recv().ok()).count()
    }
}

fn mac(n: u64) -> MacAddr {
    MacAddr::from_u64(0x0200_0000_0000 + n)
}

#[test]
fn a_sighting_that_is_lost_comes_with_the_next_packet() {
    let mut scene = Scene::new(1);
    let other = TrackingMessage::Seen(Sighting {
        host: HostId::new(mac(7), None),
        at: AT,
        addresses: SenderAddresses::Nothing,
        time: Duration::ZERO,
    });
    for _ in 0..MAX_WAITING {
        scene.handler.shared.sender.try_send(other).unwrap();
    }
    scene.sees(0);
    assert_eq!((scene.told(), scene.handler.state.counts.sightings_lost.get()), (MAX_WAITING, 1));
    scene.sees(0);
    scene.sees(0);
    assert_eq!(scene.told(), 1);
}

#[test]
fn more_hosts_than_are_remembered_are_told_of_within_a_bound() {
    const HOSTS: u64 = 10_000;
    let mut scene = Scene::new(HOSTS);
    (0..3 * HOSTS).for_each(|n| scene.sees(n % HOSTS));
    assert_eq!(scene.told(), usize::from(SEEN_AGAIN_PER_PORT_PER_S));
    // New hosts are reported all the same.
    scene.sees(HOSTS);
    assert_eq!(scene.told(), 1);
}
