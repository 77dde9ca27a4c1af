//! Whole networks with hand-written flows, set up in OpenFlow bytes.

mod behaviour;
mod scale;

use std::collections::VecDeque;

use bellrock_openflow::{
    Action, Field, FlowMod, Hello, MacAddr, Match, Out, Port, ToSwitch, Version,
};

use super::*;
use crate::switch::ChannelId;
use crate::topology::NamedTopology;

/// A network whose switches have a controller under the test's control.
pub(crate) struct Driven {
    pub(crate) network: EmulatedNetwork,
    version: Version,
    channels: Vec<ChannelId>,
    /// All bytes from each switch.
    pub(crate) said: Vec<Vec<u8>>,
}

impl Driven {
    pub(crate) fn new(topology: &str, settings: NetworkSettings, version: Version) -> Self {
        let topology = match topology.parse::<NamedTopology>() {
            Ok(named) => named.build().unwrap(),
            Err(_) => TopologySpec::parse(topology).unwrap(),
        };
        let network = EmulatedNetwork::new(&topology, settings);
        let said = vec![Vec::new(); topology.switches().len()];
        let mut driven = Driven { network, version, channels: Vec::new(), said };
        let mut hello = Out::with_capacity(64);
        Hello::write(version, 1, &mut hello).unwrap();
        for index in 0..topology.switches().len() {
            let switch = SwitchIndex::of(index);
            let channel = driven.network.connect(switch).unwrap();
            driven.channels.push(channel);
            driven.network.control(switch, channel, hello.as_slice()).unwrap();
            assert!(driven.network.switch(switch).is_ready(channel));
        }
        driven.hear();
        driven
    }

    /// Takes all output of the switches.
    pub(crate) fn hear(&mut self) {
        let mut dirty = Vec::new();
        self.network.take_dirty(|switch| dirty.push(switch));
        for switch in dirty {
            let channel = self.channels[switch.index()];
            let bytes = self.network.switch(switch).output(channel).to_vec();
            self.said[switch.index()].extend(&bytes);
            self.network.sent(switch, channel, bytes.len()).unwrap();
        }
    }

    pub(crate) fn tell(&mut self, switch: SwitchIndex, message: &ToSwitch<'_>) {
        let mut out = Out::with_capacity(4096);
        message.encode(self.version, 7, &mut out).unwrap();
        self.network.control(switch, self.channels[switch.index()], out.as_slice()).unwrap();
    }

    /// Adds a flow: matching packets go to these ports.
    pub(crate) fn flow(&mut self, switch: &str, matching: &Match, ports: &[Port]) {
        let id = self.network.topology().switch(switch).unwrap();
        let actions: Vec<_> = ports.iter().map(|port| Action::output(*port)).collect();
        self.tell(id, &ToSwitch::FlowMod(FlowMod::add(matching).actions(&actions)));
    }

    /// Floods broadcasts at every switch.
    pub(crate) fn flood_broadcasts(&mut self) {
        let matching = Match::any().with(Field::EthDst, MacAddr::BROADCAST.to_u64().into());
        for index in 0..self.said.len() {
            let name =
                self.network.topology().name(Node::Switch(SwitchIndex::of(index))).to_owned();
            self.flow(&name, &matching, &[Port::FLOOD]);
        }
    }

    /// Adds flows to a host at every switch, along the shortest paths.
    pub(crate) fn route_to(&mut self, host: HostIndex) {
        let mac = self.network.host(host).mac();
        let matching = Match::any().with(Field::EthDst, mac.to_u64().into());
        let (first, port) = self.network.place(host).unwrap();
        let mut known = vec![false; self.said.len()];
        known[first.index()] = true;
        let mut waiting = VecDeque::from([(first, port)]);
        while let Some((switch, port)) = waiting.pop_front() {
            let name = self.network.topology().name(Node::Switch(switch)).to_owned();
            self.flow(&name, &matching, &[Port(port)]);
            for port in 1..=self.network.topology().last_port(switch) {
                if let Some(LinkEnd { node: Node::Switch(next), port }) =
                    self.network.peer(switch, port)
                    && !std::mem::replace(&mut known[next.index()], true)
                {
                    waiting.push_back((next, port));
                }
            }
        }
    }

    pub(crate) fn route_all(&mut self) {
        self.flood_broadcasts();
        for index in 0..self.network.topology().hosts().len() {
            self.route_to(HostIndex::of(index));
        }
    }

    pub(crate) fn host(&self, name: &str) -> HostIndex {
        self.network.topology().host(name).unwrap()
    }

    pub(crate) fn id(&self, name: &str) -> SwitchIndex {
        self.network.topology().switch(name).unwrap()
    }

    /// The link between two switches.
    pub(crate) fn trunk(&self, a: &str, b: &str) -> LinkIndex {
        let [a, b] = [a, b].map(|name| Node::Switch(self.id(name)));
        self.network.topology().links_between(a, b).next().unwrap()
    }

    /// Whether a ping is answered.
    pub(crate) fn pings(&mut self, from: &str, to: &str) -> bool {
        let (from, to) = (self.host(from), self.host(to));
        let ping = self.network.ping(from, to, PingSettings::default()).unwrap();
        self.network.advance(self.network.now() + Duration::from_secs(6));
        self.network.end_ping(from, ping).unwrap().complete()
    }

    /// The messages of a switch since the last call, printed.
    pub(crate) fn news(&mut self, switch: &str) -> Vec<String> {
        self.hear();
        let id = self.id(switch);
        let said = std::mem::take(&mut self.said[id.index()]);
        let (mut rest, mut news) = (&*said, Vec::new());
        while let Some(message) = bellrock_openflow::frame(rest).unwrap() {
            rest = &rest[message.bytes.len()..];
            news.push(bellrock_openflow::FromSwitch::decode(message.bytes).unwrap().to_string());
        }
        news
    }
}

pub(crate) fn settings() -> NetworkSettings {
    NetworkSettings { table_capacity: 5000, ..NetworkSettings::default() }
}
