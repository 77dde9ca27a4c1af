//! Two hosts and a wire between them.

use super::*;

const TRIP: Duration = Duration::from_millis(1);

struct Wire {
    hosts: [EmulatedHost; 2],
    now: Duration,
    flying: VecDeque<(Duration, usize, EthernetFrame)>,
    effects: Effects,
    /// Whether each frame of host 0 arrives twice.
    doubles: bool,
}

impl Wire {
    fn new() -> Wire {
        let host =
            |n: u8| EmulatedHost::new(MacAddr([0, 0, 0, 0, 0, n]), Ipv4Addr::new(10, 0, 0, n));
        let (hosts, effects) = ([host(1), host(2)], Effects::default());
        Wire { hosts, now: Duration::ZERO, flying: VecDeque::new(), effects, doubles: false }
    }

    fn act<T>(
        &mut self,
        host: usize,
        act: impl FnOnce(&mut EmulatedHost, Duration, &mut Effects) -> T,
    ) -> T {
        let result = act(&mut self.hosts[host], self.now, &mut self.effects);
        for (_, frame) in self.effects.frames.drain(..) {
            if self.doubles && host == 0 {
                self.flying.push_back((self.now + TRIP, 1, frame.clone()));
            }
            self.flying.push_back((self.now + TRIP, 1 - host, frame));
        }
        result
    }

    fn run(&mut self, until: Duration) {
        loop {
            let arrival = self.flying.front().map(|(at, ..)| *at);
            let timer = (0..2).filter_map(|h| Some((self.hosts[h].next_timer()?, h))).min();
            match (arrival, timer) {
                (Some(at), timer) if at <= until && timer.is_none_or(|(t, _)| at <= t) => {
                    let (_, to, frame) = self.flying.pop_front().unwrap();
                    self.now = at;
                    self.act(to, |host, now, out| host.receive(&frame, now, out));
                }
                (_, Some((at, host))) if at <= until => {
                    self.now = at;
                    self.act(host, |host, now, out| host.timers(now, out));
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn ip(&self, host: usize) -> Ipv4Addr {
        self.hosts[host].ip()
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn a_ping_asks_for_the_address_and_is_answered() {
    let mut wire = Wire::new();
    let settings = PingSettings { count: 3, ..PingSettings::default() };
    let to = wire.ip(1);
    let id = wire.act(0, |host, now, out| host.ping(to, settings, now, out)).unwrap();
    wire.run(seconds(1));
    assert!(!wire.hosts[0].is_ping_over(id));
    wire.run(seconds(10));
    let statistics = wire.hosts[0].ping_statistics(id).unwrap();
    assert!(wire.hosts[0].is_ping_over(id) && statistics.complete());
    // The first echo request waits for the address.
    assert_eq!((statistics.min, statistics.max), (TRIP * 2, TRIP * 4));
    assert_eq!(
        statistics.to_string(),
        "3 sent, 3 received, 0 lost; round trip min/avg/max/mdev 2.000/2.667/4.000/0.943 ms"
    );
    let sent = wire.hosts[0].counters().frames_out;
    assert_eq!(sent, 4, "one request for the address, three of ping");
    assert_eq!(wire.hosts[1].counters().echo_requests, 3);
    assert_eq!(wire.hosts[0].end_ping(id), Some(statistics));
    assert_eq!(wire.hosts[0].next_timer(), None);
}

#[test]
fn a_ping_to_nobody_is_lost_and_its_packets_are_dropped() {
    let mut wire = Wire::new();
    let settings = PingSettings { count: 2, timeout: seconds(2), ..PingSettings::default() };
    let nobody = Ipv4Addr::new(10, 0, 0, 9);
    let id = wire.act(0, |host, now, out| host.ping(nobody, settings, now, out)).unwrap();
    wire.run(seconds(20));
    let statistics = wire.hosts[0].end_ping(id).unwrap();
    assert_eq!((statistics.sent, statistics.lost), (2, 2));
    assert_eq!(wire.hosts[0].counters().no_address, 2);
    assert_eq!(wire.hosts[0].counters().frames_out, 3, "it asked three times");
}

#[test]
fn an_answer_that_comes_late_is_no_answer() {
    let mut wire = Wire::new();
    let settings = PingSettings { timeout: TRIP, ..PingSettings::default() };
    let to = wire.ip(1);
    let id = wire.act(0, |host, now, out| host.ping(to, settings, now, out)).unwrap();
    wire.run(seconds(1));
    let statistics = wire.hosts[0].ping_statistics(id).unwrap();
    assert_eq!((statistics.received, statistics.lost, statistics.duplicates), (0, 1, 1));
}

#[test]
fn an_answer_to_a_ping_that_was_ended_is_not_unexpected() {
    let mut wire = Wire::new();
    let to = wire.ip(1);
    let id =
        wire.act(0, |host, now, out| host.ping(to, PingSettings::default(), now, out)).unwrap();
    assert_eq!(wire.hosts[0].end_ping(id).unwrap().received, 0);
    wire.run(seconds(1));
    let counters = wire.hosts[0].counters();
    assert_eq!((counters.stray_replies, counters.unexpected), (1, 0));
    assert_eq!(wire.hosts[0].ping_statistics(id), None);
}

#[test]
fn a_unicast_frame_that_comes_twice_is_counted() {
    let mut wire = Wire::new();
    wire.doubles = true;
    let to = wire.ip(1);
    let id =
        wire.act(0, |host, now, out| host.ping(to, PingSettings::default(), now, out)).unwrap();
    wire.run(seconds(1));
    // The ARP request is a broadcast: two answers to it are no duplicate. The echo request is
    // unicast.
    assert_eq!(wire.hosts[1].counters().duplicates, 1);
    assert_eq!(wire.hosts[0].counters().duplicates, 0);
    assert_eq!(wire.hosts[0].ping_statistics(id).unwrap().duplicates, 1);
}

#[test]
fn frames_for_other_hosts_are_not_taken() {
    let mut wire = Wire::new();
    wire.hosts[1].mac = MacAddr([0, 0, 0, 0, 0, 9]);
    let mut frame = EthernetFrame::new();
    frame.extend_from_slice(&[0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0x08, 0x00]);
    wire.act(1, |host, now, out| host.receive(&frame, now, out));
    assert_eq!(wire.hosts[1].counters().for_others, 1);
    frame[5] = 9;
    wire.act(1, |host, now, out| host.receive(&frame, now, out));
    assert_eq!(wire.hosts[1].counters().unexpected, 1);
    frame[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    frame[12..14].copy_from_slice(&[0x88, 0xcc]);
    wire.act(1, |host, now, out| host.receive(&frame, now, out));
    assert_eq!(wire.hosts[1].counters().ignored, 1);
    wire.act(1, |host, now, out| host.receive(&[0; 13], now, out));
    assert_eq!(wire.hosts[1].counters().unexpected, 2);
}

#[test]
fn datagrams_come_to_who_listens_and_others_are_told() {
    let mut wire = Wire::new();
    let to = wire.ip(1);
    wire.hosts[1].udp_listen(53);
    for port in [53, 54] {
        wire.act(0, |host, now, out| host.udp_send(to, (7, port), b"hello", now, out)).unwrap();
    }
    wire.run(seconds(1));
    let datagram = wire.hosts[1].udp_receive(53).unwrap();
    assert_eq!(
        (datagram.from, datagram.from_port, &*datagram.data),
        (wire.ip(0), 7, &b"hello"[..])
    );
    assert_eq!(datagram.at, TRIP * 3);
    assert_eq!(wire.hosts[1].udp_receive(53), None);
    assert_eq!(wire.hosts[0].counters().unreachable, 1);
    let error = wire.act(0, |host, now, out| host.udp_send(to, (7, 53), &[0; 1473], now, out));
    assert_eq!(
        error.unwrap_err().to_string(),
        "a datagram has at most 1472 bytes of data, not 1473"
    );
}

#[test]
fn a_stream_sends_at_its_rate_and_ends() {
    let mut wire = Wire::new();
    wire.hosts[1].udp_sink(9);
    let settings = StreamSettings {
        to: wire.ip(1),
        from_port: 8,
        to_port: 9,
        data_len: 100,
        interval: Duration::from_millis(10),
        count: 1000,
    };
    wire.act(0, |host, now, out| host.udp_stream(settings, now, out)).unwrap();
    wire.run(seconds(5));
    let half = wire.hosts[1].udp_counters(9).unwrap();
    assert_eq!((half.datagrams, half.bytes, half.unread), (500, 50_000, 0));
    wire.run(seconds(20));
    assert_eq!(wire.hosts[1].udp_counters(9).unwrap().datagrams, 1000);
    assert_eq!(wire.hosts[0].next_timer(), None);
    assert_eq!(wire.hosts[1].counters().duplicates, 0, "no two datagrams are the same frame");
}

#[test]
fn a_flow_carries_its_bytes_and_a_closed_port_refuses() {
    let mut wire = Wire::new();
    let to = wire.ip(1);
    wire.hosts[1].listen(5001);
    let mut open = |port| {
        let goal = FlowGoal::Bytes(1_000_000);
        wire.act(0, |host, now, out| host.open_flow(to, port, goal, now, out)).unwrap()
    };
    let (good, refused) = (open(5001), open(5002));
    wire.run(seconds(5));
    let report = wire.hosts[0].flow(good).unwrap();
    assert_eq!((report.state, report.bytes), (FlowState::Done, 1_000_000));
    assert!(report.bits_per_second() > 1e8, "{report:?}");
    assert_eq!(wire.hosts[0].flow(refused).unwrap().state, FlowState::Reset);
    let (from, _, port, there) = wire.hosts[1].flows_in().next().unwrap();
    assert_eq!(
        (from, port, there.state, there.bytes),
        (wire.ip(0), 5001, FlowState::Done, 1_000_000)
    );
    assert_eq!(wire.hosts.each_ref().map(EmulatedHost::next_timer), [None, None]);
    assert_eq!(wire.hosts[1].counters().unexpected, 0);
}

#[test]
fn an_announcement_corrects_an_address() {
    let mut wire = Wire::new();
    let to = wire.ip(1);
    wire.act(0, |host, now, out| host.ping(to, PingSettings::default(), now, out)).unwrap();
    wire.run(seconds(1));
    let moved = MacAddr([2, 0, 0, 0, 0, 2]);
    wire.hosts[1].mac = moved;
    wire.act(1, |host, _, out| host.announce(out));
    wire.run(seconds(2));
    assert_eq!(wire.hosts[0].neighbours().collect::<Vec<_>>(), [(to, moved)]);
}

#[test]
fn a_host_does_not_talk_to_itself() {
    let mut wire = Wire::new();
    let own = wire.ip(0);
    let result = wire.act(0, |host, now, out| host.ping(own, PingSettings::default(), now, out));
    assert_eq!(result, Err(HostError::ToItself));
}

/// A SYN from a port of 10.0.0.9 to port 80 of host 1, or the reset that ends its flow.
fn segment(from: u16, flags: u8) -> EthernetFrame {
    let [src, dst] = [Ipv4Addr::new(10, 0, 0, 9), Ipv4Addr::new(10, 0, 0, 1)];
    let [src_mac, dst_mac] = [9, 1].map(MacAddr::from_u64);
    let sequence = u32::from(flags == wire::RST);
    let segment = TcpSegment { from, to: 80, sequence, flags, ..TcpSegment::default() };
    let mut frame = EthernetFrame::new();
    PacketAddresses { src_mac, dst_mac, src, dst, identification: from }.tcp(&segment, &mut frame);
    frame
}

#[test]
fn a_host_forgets_flows_that_have_ended_for_new_ones() {
    let mut wire = Wire::new();
    wire.hosts[0].listen(80);
    let mut say = |from, flags| {
        wire.act(0, |host, now, out| host.receive(&segment(from, flags), now, out));
        wire.hosts[0].counters().no_flow
    };
    for from in 1..=4096 {
        say(from, wire::SYN);
    }
    assert_eq!(say(5000, wire::SYN), 1, "all are open: a further one is refused");
    say(7, wire::RST);
    assert_eq!(say(5000, wire::SYN), 1);
    let ports: Vec<u16> = wire.hosts[0].flows_in().map(|(_, from, ..)| from).collect();
    assert!(ports.len() == 4096 && ports.contains(&5000) && !ports.contains(&7));
}

#[test]
fn a_host_asks_for_so_many_addresses_at_a_time() {
    let mut wire = Wire::new();
    for last in 0..1025_u16 {
        let [high, low] = last.to_be_bytes();
        let to = Ipv4Addr::new(10, 1, high, low);
        wire.act(0, |host, now, out| host.udp_send(to, (1, 2), b"", now, out)).unwrap();
    }
    let counters = wire.hosts[0].counters();
    assert_eq!((counters.frames_out, counters.no_address), (1024, 1));
}

#[test]
fn a_host_in_a_vlan_tags_its_frames_and_ignores_those_of_others() {
    let mut wire = Wire::new();
    let vlan = |id| HostNetwork { vlan: Some(id), ..HostNetwork::default() };
    wire.hosts = wire.hosts.map(|host| host.in_network(vlan(7)));
    let to = wire.ip(1);
    let ping = |wire: &mut Wire| {
        let settings = PingSettings::default();
        let id = wire.act(0, |host, now, out| host.ping(to, settings, now, out)).unwrap();
        wire.run(wire.now + Duration::from_secs(10));
        wire.hosts[0].end_ping(id).unwrap().complete()
    };
    wire.hosts[1].capture();
    assert!(ping(&mut wire));
    let frames = wire.hosts[1].capture();
    assert!(frames.iter().all(|frame| frame[12..16] == [0x81, 0, 0, 7]), "{frames:x?}");
    let [first, second] = wire.hosts;
    wire.hosts = [first, second.in_network(vlan(8))];
    wire.hosts[0].forget_neighbours();
    assert!(!ping(&mut wire));
    assert!(wire.hosts[1].counters().ignored > 0);
}

#[test]
fn a_host_reaches_other_subnets_by_its_gateway_only() {
    let mut wire = Wire::new();
    let gateway = wire.ip(1);
    let network = HostNetwork { prefix: Some(24), gateway: Some(gateway), vlan: None };
    let [first, second] = wire.hosts;
    wire.hosts = [first.in_network(network), second];
    wire.hosts[1].capture();
    let far = Ipv4Addr::new(192, 0, 2, 1);
    let settings = PingSettings::default();
    wire.act(0, |host, now, out| host.ping(far, settings, now, out)).unwrap();
    wire.run(Duration::from_secs(5));
    let to_far = wire.hosts[1].capture().into_iter().filter(|frame| frame[30..34] == far.octets());
    let macs: Vec<_> = to_far.map(|frame| frame[..6].to_vec()).collect();
    assert_eq!(macs, [wire.hosts[1].mac().0.to_vec()], "one packet, to the gateway");
    let [first, second] = wire.hosts;
    let lonely = HostNetwork { gateway: None, ..network };
    wire.hosts = [first.in_network(lonely), second];
    wire.act(0, |host, now, out| host.ping(far, settings, now, out)).unwrap();
    assert_eq!(wire.hosts[0].counters().no_address, 1);
}
