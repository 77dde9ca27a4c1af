//! The purpose of the learning app, on emulated switches over real sockets. The controller is a
//! separate process; the network is in the test's process. The scenarios have the names of those in
//! `tests/system`, which use Open vSwitch and real time.

use std::time::Duration;

use bellrock_api::{Field, Port, Version};
use bellrock_emulator::check::{Matrix, Reachability};
use bellrock_emulator::host::{FlowGoal, FlowState, PingId, PingSettings};
use bellrock_emulator::live::{LiveNetwork, LiveSettings, ReconnectBackoff};
use bellrock_emulator::on_both_versions;
use bellrock_emulator::topology::{
    HostIndex, LinkRate, Node, SwitchIndex, TopologySpec, linear, tree,
};
use bellrock_engine::session::Versions;
use serde_json::Value;

use crate::running::{Controller, PATIENCE, Place};

/// Time between two tries of a switch to connect.
const RETRY: Duration = Duration::from_millis(250);

/// Silence of the controller after which the switches count as set up.
const QUIET: Duration = Duration::from_millis(200);

/// Length of the links' queues: enough for the window of a stream and other frames.
const QUEUE_FRAMES: u32 = 1000;

const PING_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of packet-ins of ARP, a ping and a stream over three switches. A stream over the
/// controller has more in its first millisecond.
const MAX_PACKET_INS: u64 = 20;

/// An emulated network, connected.
struct Net(LiveNetwork);

impl Net {
    fn connect(mut topology: TopologySpec, controller: &Controller, version: Version) -> Self {
        topology.limit_links(LinkRate::bits_per_second(100_000_000), QUEUE_FRAMES);
        let mut settings = LiveSettings::new(controller.address);
        settings.backoff = ReconnectBackoff { first: RETRY, maximum: RETRY };
        settings.network.versions = Versions::only(version);
        let mut net = Net(LiveNetwork::new(&topology, settings).unwrap());
        net.wait_until_connected();
        net
    }

    fn wait_until_connected(&mut self) {
        let all = self.0.network().topology().switches().len();
        self.until("all switches connect", |live| {
            live.connected() == all && live.quiet_for() >= QUIET
        });
    }

    fn until(&mut self, what: &str, done: impl FnMut(&LiveNetwork) -> bool) {
        assert!(self.0.run_until(PATIENCE, done).unwrap(), "{what}: it does not happen");
    }

    fn host(&self, name: &str) -> HostIndex {
        self.0.network().topology().host(name).unwrap()
    }

    fn ping_all(&mut self) -> Matrix {
        let settings = PingSettings::default();
        let pings = Reachability::begin_all(self.0.network_mut(), settings);
        self.until("pings end", |live| pings.is_over(live.network()));
        pings.finish(self.0.network_mut())
    }

    /// Whether one ping is answered within `timeout`.
    fn ping(&mut self, from: &str, to: &str, timeout: Duration) -> bool {
        let (from, to) = (self.host(from), self.host(to));
        let settings = PingSettings { timeout, ..PingSettings::default() };
        let id = self.0.network_mut().ping(from, to, settings).unwrap();
        self.until("the ping ends", |live| live.network().host(from).is_ping_over(id));
        self.0.network_mut().end_ping(from, id).unwrap().complete()
    }

    /// Starts pings that continue.
    fn keep_pinging(&mut self, from: &str, to: &str) -> (HostIndex, PingId) {
        let (from, to) = (self.host(from), self.host(to));
        let settings =
            PingSettings { count: u16::MAX, interval: PING_INTERVAL, ..PingSettings::default() };
        (from, self.0.network_mut().ping(from, to, settings).unwrap())
    }

    /// Number of answered pings so far.
    fn answers(&self, (host, ping): (HostIndex, PingId)) -> u32 {
        self.0.network().host(host).ping_statistics(ping).unwrap().received
    }

    /// Waits until the pings are answered again, and then for several more answers.
    fn answered_again(&mut self, pings: &[(HostIndex, PingId)]) {
        for pings in pings {
            let before = self.answers(*pings);
            self.until("an answer", |live| {
                let (host, ping) = *pings;
                live.network().host(host).ping_statistics(ping).unwrap().received > before + 10
            });
        }
    }

    fn packet_ins(&self) -> u64 {
        let switches = 0..self.0.network().topology().switches().len() as u32;
        switches.map(|id| self.0.network().switch(SwitchIndex(id)).counters().packet_ins).sum()
    }

    /// Number of flows of a switch that match on a port or output to it.
    fn flows_at(&self, switch: &str, port: u32) -> usize {
        flows_at(&self.0, switch, port)
    }
}

fn flows_at(live: &LiveNetwork, switch: &str, port: u32) -> usize {
    let network = live.network();
    let id = network.topology().switch(switch).unwrap();
    let tables = network.switch(id).datapath().tables().iter();
    let flows = tables.flat_map(|(_, table)| table.flows());
    let at_port = flows.filter(|(_, flow)| {
        flow.program.outputs_to(Port(port))
            || flow.matching().value(Field::InPort) == Some(port.into())
    });
    at_port.count()
}

fn controller(scenario: &str, version: Version) -> (Place, Controller) {
    let place = Place::new(&format!("live-{scenario}-{version}"));
    let controller = Controller::start(&place, &[]);
    (place, controller)
}

/// Hosts of a tree reach each other by flows, not by the controller.
mod reach {
    use super::*;

    on_both_versions!(pingall, iperf);

    /// All pairs of Mininet's tree of depth 2 and fanout 3.
    fn pingall(version: Version) {
        let (_place, controller) = controller("pingall", version);
        let mut net = Net::connect(tree(2, 3).build().unwrap(), &controller, version);
        let matrix = net.ping_all();
        assert!(matrix.is_complete(), "{:?}", matrix.lost);
        assert_eq!(controller.ask("switches").as_array().unwrap().len(), 4);
        assert!(net.packet_ins() > 0, "nothing was asked: the switches forward by themselves");
    }

    /// A stream over three switches uses installed flows.
    fn iperf(version: Version) {
        let (_place, controller) = controller("iperf", version);
        let mut net = Net::connect(tree(2, 3).build().unwrap(), &controller, version);
        assert!(net.ping("h1", "h9", PATIENCE));
        let (from, to) = (net.host("h1"), net.host("h9"));
        let network = net.0.network_mut();
        let goal = FlowGoal::Until(network.now() + Duration::from_secs(1));
        let flow = network.open_flow(from, to, 5001, goal).unwrap();
        net.until("the stream ends", |live| {
            live.network().host(from).flow(flow).unwrap().state.is_over()
        });
        let report = net.0.network().host(from).flow(flow).unwrap();
        assert_eq!(report.state, FlowState::Done);
        assert!(report.bytes > 1_000_000, "{report:?}");
        assert!(net.packet_ins() <= MAX_PACKET_INS, "{} for one stream", net.packet_ins());
    }
}

/// The host h1 moves while other hosts ping it. Its old port goes down, or stays up.
mod moves {
    use super::*;

    const HARD_TIMEOUT_S: u16 = 2;
    const MAX_AGE_S: u32 = 2;
    /// Time that the moved host sends nothing.
    const SILENCE: Duration = Duration::from_millis(400);
    /// Time for frames in transit to its peers to arrive before it moves.
    const UNDER_WAY: Duration = Duration::from_millis(20);

    on_both_versions!(
        to_another_port,
        to_another_port_link_down,
        to_another_switch_link_down,
        to_another_switch_port_up,
        to_another_switch_unheard
    );

    /// h1 and h2 at s1, h3 at the last switch.
    fn moving(switches: u32) -> TopologySpec {
        let mut text = String::from("host h1\nhost h2\nhost h3\n");
        for number in 1..=switches {
            text.push_str(&format!("switch s{number}\n"));
        }
        text.push_str(&format!("link s1:1 h1\nlink s1:2 h2\nlink s{switches}:3 h3\n"));
        for number in 1..switches {
            text.push_str(&format!("link s{number} s{}\n", number + 1));
        }
        TopologySpec::parse(&text).unwrap()
    }

    fn move_h1(version: Version, switches: u32, announce: bool) {
        let (_place, controller) = controller(&format!("move-{switches}"), version);
        let mut net = Net::connect(moving(switches), &controller, version);
        let pings = [net.keep_pinging("h2", "h1"), net.keep_pinging("h3", "h1")];
        net.answered_again(&pings);
        assert_ne!(net.flows_at("s1", 1), 0, "flows to the host");
        let (host, to) = (net.host("h1"), SwitchIndex(switches - 1));
        net.0.network_mut().move_host(host, to, None, announce).unwrap();
        // Its peers continue to send to its address, so no flow to the old port ends by idle
        // timeout. Only the event of the port removes them.
        net.until("no flows of the old port", |live| flows_at(live, "s1", 1) == 0);
        net.answered_again(&pings);
    }

    /// The host moves, its old port stays up, and it sends nothing until `speak`.
    fn move_unseen(
        version: Version,
        switches: u32,
        settings: &str,
        speak: impl Fn(&mut Net),
    ) -> Net {
        let place = Place::new(&format!("live-unseen-{switches}-{version}"));
        let config = place.write("config.yaml", &format!("apps:\n  - learning: {settings}\n"));
        let controller = Controller::start(&place, &["--config", &config]);
        let mut net = Net::connect(moving(switches), &controller, version);
        let pings = [net.keep_pinging("h2", "h1"), net.keep_pinging("h3", "h1")];
        net.answered_again(&pings);
        let (host, to) = (net.host("h1"), SwitchIndex(switches - 1));
        net.0.network_mut().move_host_unseen(host, to, None).unwrap();
        net.0.run_for(UNDER_WAY).unwrap();
        let answers = |net: &Net| pings.map(|pings| net.answers(pings));
        let before = answers(&net);
        net.0.run_for(SILENCE).unwrap();
        assert_eq!(answers(&net), before, "the host should not be reachable");
        speak(&mut net);
        net.answered_again(&pings);
        net
    }

    fn announce(net: &mut Net) {
        let host = net.host("h1");
        net.0.network_mut().with(host, |host, _, out| host.announce(out));
    }

    /// To another port of the same switch. The old port stays up; a unicast shows the move.
    fn to_another_port(version: Version) {
        move_unseen(version, 1, "{}", |net| {
            let (from, to) = (net.host("h1"), net.host("h2"));
            // This ping need not be answered.
            net.0.network_mut().ping(from, to, PingSettings::default()).unwrap();
        });
    }

    /// To another switch. The old port stays up; a broadcast shows the move.
    fn to_another_switch_port_up(version: Version) {
        let settings = format!("{{ hard_timeout: {HARD_TIMEOUT_S} }}");
        let net = move_unseen(version, 2, &settings, announce);
        let tables = net.0.network().switch(SwitchIndex(0)).datapath().tables().iter();
        let flows = tables.flat_map(|(_, table)| table.flows());
        let timeouts: Vec<u16> = flows
            .filter(|(_, flow)| flow.priority > 0)
            .map(|(_, flow)| flow.hard_timeout)
            .collect();
        assert!(!timeouts.is_empty() && timeouts.iter().all(|time| *time == HARD_TIMEOUT_S));
    }

    /// The same, but it sends only to h3, unseen by the old switch, whose entry must age out.
    fn to_another_switch_unheard(version: Version) {
        let settings = format!("{{ hard_timeout: {HARD_TIMEOUT_S}, max_age: {MAX_AGE_S} }}");
        move_unseen(version, 2, &settings, |net| {
            net.keep_pinging("h1", "h3");
        });
    }

    /// To another port of the same switch. The host sends nothing by itself.
    fn to_another_port_link_down(version: Version) {
        move_h1(version, 1, false);
    }

    /// To another switch, which the host announces.
    fn to_another_switch_link_down(version: Version) {
        move_h1(version, 2, true);
    }
}

/// The controller stops under running traffic and starts again.
mod restart {
    use super::*;

    on_both_versions!(under_traffic);

    fn under_traffic(version: Version) {
        let (place, controller) = controller("restart", version);
        let mut net = Net::connect(tree(2, 3).build().unwrap(), &controller, version);
        let address = controller.address;
        // Each host sends to its neighbour only, until the controller stops.
        let names: Vec<String> = (1..=9).map(|number| format!("h{number}")).collect();
        let neighbours = names.iter().zip(names.iter().cycle().skip(1));
        let running: Vec<_> = neighbours.map(|(one, other)| net.keep_pinging(one, other)).collect();
        net.answered_again(&running);
        controller.stop();
        net.until("the switches notice", |live| live.connected() == 0);
        assert!(!net.ping("h1", "h5", RETRY), "a new pair, while nobody is in control");

        let controller = Controller::start_at(address, &place, &[]);
        net.wait_until_connected();
        let matrix = net.ping_all();
        assert!(matrix.is_complete(), "{:?}", matrix.lost);
        net.answered_again(&running);
        assert_eq!(controller.ask("switches").as_array().unwrap().len(), 4);
    }
}

/// A switch that restarts reconnects, and gets the flows again that it lost.
#[test]
fn a_switch_that_forgot_its_flows_gets_them_again() {
    let version = Version::V1_3;
    let (_place, controller) = controller("switch", version);
    let mut net = Net::connect(tree(2, 3).build().unwrap(), &controller, version);
    assert!(net.ping("h1", "h9", PATIENCE));
    let switch = match net.0.network().topology().node("s1") {
        Some(Node::Switch(id)) => id,
        other => panic!("s1 is {other:?}"),
    };
    net.0.restart(switch, false);
    assert_eq!(net.flows_at("s1", 1), 0, "it starts with empty tables");
    net.wait_until_connected();
    assert!(net.ping("h1", "h9", PATIENCE));
    assert_ne!(net.flows_at("s1", 1), 0);
}

/// Programs read fields, people read the text.
#[test]
fn the_log_has_the_ports_of_a_link_in_fields_for_programs_only() {
    for format in ["json", "human"] {
        let place = Place::new(&format!("live-log-{format}"));
        let options = ["--app", "routing", "--log-format", format];
        let mut controller = Controller::start(&place, &options);
        let log = controller.log_lines();
        let mut net = Net::connect(linear(2, 1).build().unwrap(), &controller, Version::V1_3);
        let mut links = Vec::new();
        net.until("both directions of the link are logged", |_| {
            links.extend(log.try_iter().filter(|line| line.contains("link up: ")));
            links.len() == 2
        });
        let mut senders = Vec::new();
        for line in links {
            if format == "human" {
                assert!(line.contains("event=\"link_up\"") && !line.contains("port="), "{line}");
                continue;
            }
            let line: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["event"], "link_up");
            let text = |field: &str| line[field].as_str().unwrap().to_owned();
            let (from, to) = (text("dpid"), text("other_dpid"));
            let (out, into) =
                (line["port"].as_u64().unwrap(), line["other_port"].as_u64().unwrap());
            let ports = format!("{from}:{out} -> {to}:{into}");
            assert!(text("message").contains(&ports), "{ports}: {line}");
            assert!(line.get("mac").is_none(), "an event has only what it is about: {line}");
            senders.push(from);
        }
        senders.sort();
        let expected: &[&str] = match format {
            "json" => &["0000000000000001", "0000000000000002"],
            _ => &[],
        };
        assert_eq!(senders, expected);
    }
}
