//! The specification of forwarding, one test for each rule.

mod allocations;
mod buffers;
mod checks;
mod groups;
mod meters;
mod paths;
mod pipeline;
mod ports;

use std::net::Ipv4Addr;
use std::time::Duration;

use bellrock_openflow::{
    Action, Bucket, Bytes, ErrorCode, FixedStr, FlowMod, GroupCommand, GroupMod, GroupType,
    Instruction, List, MacAddr, Match, PacketOut, Port, PortConfig, PortDesc, PortFeatures,
    PortState, Version,
};

use super::{Datapath, DatapathSettings, Effects, Notice, PacketInNotice};
use crate::packet::EthernetFrame;
use crate::packet::build::{Eth, IpFields};

const V10: Version = Version::V1_0;
const V13: Version = Version::V1_3;

/// A switch with ports 1 to 4 and LOCAL, and the effects of the last events.
struct Lab {
    datapath: Datapath,
    effects: Effects,
    now: Duration,
}

fn port(number: Port) -> PortDesc {
    PortDesc {
        port: number,
        address: MacAddr::from_u64(0x0200_0000_0000 + u64::from(number.0)),
        name: FixedStr::new("port"),
        config: PortConfig::empty(),
        state: PortState::empty(),
        current: PortFeatures::RATE_1GB_FD,
        advertised: PortFeatures::RATE_1GB_FD,
        supported: PortFeatures::RATE_1GB_FD | PortFeatures::RATE_100MB_FD,
        peer: PortFeatures::empty(),
        current_speed: 1_000_000,
        max_speed: 1_000_000,
    }
}

impl Lab {
    fn new(rules: Version) -> Self {
        let ports = [1, 2, 3, 4].map(Port).into_iter().chain([Port::LOCAL]);
        let settings = DatapathSettings {
            ports: ports.map(port).collect(),
            queues: vec![(Port(2), 7)],
            tables: 4,
            table_capacity: 100,
            buffers: 4,
            rules,
        };
        let now = Duration::from_secs(1_000);
        Lab { datapath: Datapath::new(settings, now), effects: Effects::new(), now }
    }

    /// Adds a flow for `matching`, with these instructions.
    #[track_caller]
    fn flow(&mut self, table: u8, matching: &Match, instructions: &[Instruction<'_>]) {
        let flow = FlowMod::add(matching).table(table).cookie(0xc0).instructions(instructions);
        self.ask(&flow).unwrap();
    }

    /// Adds a flow for all packets to table 0, which applies these actions.
    #[track_caller]
    fn apply(&mut self, actions: &[Action<'_>]) {
        let any = Match::any();
        let version = self.datapath.rules();
        let flow = FlowMod::add(&any).cookie(0xc0).actions(actions);
        self.datapath.flow_mod(version, &flow, self.now, &mut self.effects).unwrap();
    }

    fn ask(&mut self, flow: &FlowMod<'_>) -> Result<(), ErrorCode> {
        let version = self.datapath.rules();
        self.datapath.flow_mod(version, flow, self.now, &mut self.effects)
    }

    fn group(
        &mut self,
        kind: GroupType,
        group: u32,
        buckets: &[Bucket<'_>],
    ) -> Result<(), ErrorCode> {
        self.group_mod(GroupCommand::Add, kind, group, buckets)
    }

    fn group_mod(
        &mut self,
        command: GroupCommand,
        kind: GroupType,
        group: u32,
        buckets: &[Bucket<'_>],
    ) -> Result<(), ErrorCode> {
        let request = GroupMod { command, kind, group, buckets: List::of(buckets) };
        self.datapath.group_mod(self.datapath.rules(), &request, self.now, &mut self.effects)
    }

    /// Receives a frame by port 1. Returns the ports where it or its copies leave.
    fn send(&mut self, frame: &EthernetFrame) -> Vec<u32> {
        self.receive(1, frame);
        self.left()
    }

    fn receive(&mut self, port: u32, frame: &EthernetFrame) {
        self.effects.frames.clear();
        self.effects.notices.clear();
        self.datapath.receive(port, frame.clone(), self.now, &mut self.effects);
    }

    fn left(&self) -> Vec<u32> {
        self.effects.frames.iter().map(|(port, _)| *port).collect()
    }

    /// The frames of the last event.
    fn frames(&self) -> Vec<(u32, &[u8])> {
        self.effects.frames.iter().map(|(port, frame)| (*port, &frame[..])).collect()
    }

    /// The packet_ins of the last event.
    fn packet_ins(&self) -> Vec<&PacketInNotice> {
        let notices = self.effects.notices.iter();
        notices.filter_map(|n| if let Notice::PacketIn(p) = n { Some(p) } else { None }).collect()
    }

    fn packet_out(
        &mut self,
        in_port: Port,
        actions: &[Action<'_>],
        data: &[u8],
    ) -> Result<(), ErrorCode> {
        self.effects.frames.clear();
        self.effects.notices.clear();
        let request =
            PacketOut { buffer_id: None, in_port, actions: List::of(actions), data: Bytes(data) };
        let version = self.datapath.rules();
        self.datapath.packet_out(version, &request, self.now, &mut self.effects)
    }
}

const A: MacAddr = MacAddr([0, 0, 0, 0, 0, 0x0a]);
const B: MacAddr = MacAddr([0, 0, 0, 0, 0, 0x0b]);

fn eth() -> Eth {
    Eth::new(A, B)
}

fn ip() -> IpFields {
    IpFields::v4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
}

fn frame() -> EthernetFrame {
    eth().ip(&ip().udp(1_000, 53, b"a question"))
}

fn out(port: u32) -> Action<'static> {
    Action::output(Port(port))
}
