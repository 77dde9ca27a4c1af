//! A learning switch without a network: tests pass in packets and events, and decode the answers.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bellrock_api::openflow::{
    self, Bytes, FixedStr, FlowCommand, FromSwitch, Instruction, MAX_MESSAGE_LEN, MatchView,
    MultipartRequest, Out, PacketInReason, PacketInView, PacketOut, PortConfig, PortState,
    RequestBody, RequestKind, xid,
};
use bellrock_api::runtime::{BatchControl, Requests};
use bellrock_api::runtime::{DynApp, EmptyNetwork};
use bellrock_api::{
    Action, App, AppId, Batch, Cookie, Dpid, ErrorCode, ErrorMessage, FlowMod, Handler, HostEntry,
    MacAddr, PacketIn, Port, PortDesc, PortReason, PortStatus, Result, Switch, SwitchInfo,
    ToSwitch, Version, Xid,
};
use bellrock_apps::learning::LearningSwitch;
use bellrock_apps::{Learning, LearningSettings};
use bellrock_tables::Budget;
use etherparse::PacketBuilder;

pub const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;

pub const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
pub const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
pub const C: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xc]);

/// The learning switch sends no requests, except those that remove its flows in 1.0.
pub struct NoRequests;

impl Requests for NoRequests {
    fn expect_answer(
        &mut self,
        _: u32,
        kind: RequestKind,
        _: Duration,
    ) -> Result<(), bellrock_api::Error> {
        panic!("asked for an answer: {kind:?}");
    }

    fn expect_nothing(&mut self, _: u32) {}

    fn expect_removal(
        &mut self,
        _: u32,
        _: Cookie,
        _: Port,
        _: Duration,
    ) -> Result<(), bellrock_api::Error> {
        Ok(())
    }
}

/// The contents of a packet_in.
#[derive(Clone, Debug)]
pub struct Packet {
    pub port: Port,
    pub buffer_id: Option<u32>,
    pub total_len: u16,
    pub data: Vec<u8>,
}

impl Packet {
    /// A whole packet without a buffer.
    pub fn new(port: u32, data: Vec<u8>) -> Self {
        Packet { port: Port(port), buffer_id: None, total_len: data.len() as u16, data }
    }

    /// The switch buffers it and sends its first 128 bytes (1.0's default `miss_send_len`).
    pub fn buffered(self, buffer_id: u32) -> Self {
        let mut packet = Packet { buffer_id: Some(buffer_id), ..self };
        packet.data.truncate(128);
        packet
    }

    /// Only a part of it came.
    pub fn cut_to(mut self, len: usize) -> Self {
        self.data.truncate(len);
        self
    }

    /// The encoded packet_in.
    pub fn message(&self, version: Version) -> Vec<u8> {
        let packet = openflow::PacketInMessage {
            buffer_id: self.buffer_id,
            total_len: self.total_len,
            reason: PacketInReason::NoMatch,
            table: 0,
            cookie: openflow::PacketInMessage::NO_COOKIE,
            matching: MatchView::port(self.port),
            data: Bytes(&self.data),
        };
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        FromSwitch::PacketIn(packet).encode(version, 0, &mut out).unwrap();
        out.as_slice().to_vec()
    }
}

/// The batch of all packet_ins of a stream.
pub fn batch(version: Version, stream: &[u8]) -> Batch<'_> {
    let mut batch = Batch::new(stream);
    batch.begin(version);
    assert_eq!(batch.fill(0, usize::MAX), stream.len(), "packet_ins of the common form");
    batch
}

/// A UDP packet of more than 200 bytes, so that a buffered one is cut.
pub fn udp(src: MacAddr, dst: MacAddr) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(src.0, dst.0)
        .ipv4(Ipv4Addr::new(10, 0, 0, 1).octets(), Ipv4Addr::new(10, 0, 0, 2).octets(), 64)
        .udp(1000, 2000);
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[0x5a; 200]).unwrap();
    bytes
}

/// A UDP packet with a VLAN tag.
pub fn udp_in_vlan(src: MacAddr, dst: MacAddr, id: u16, pcp: u16) -> Vec<u8> {
    tagged(udp(src, dst), 0x8100, pcp << 13 | id)
}

/// Puts a tag behind the addresses of a frame.
pub fn tagged(mut frame: Vec<u8>, tpid: u16, tci: u16) -> Vec<u8> {
    let [a, b] = tpid.to_be_bytes();
    let [c, d] = tci.to_be_bytes();
    frame.splice(12..12, [a, b, c, d]);
    frame
}

pub struct Lab<H = LearningSwitch> {
    pub info: SwitchInfo,
    pub out: Out,
    pub xids: xid::XidSource,
    pub now: Duration,
    pub handler: H,
    pub app: AppId,
}

impl Lab {
    pub fn new(version: Version, settings: LearningSettings) -> Self {
        Self::with_budget(version, settings, &Budget::unlimited())
    }

    pub fn with_budget(version: Version, settings: LearningSettings, budget: &Budget) -> Self {
        Self::with_app(version, &Learning::new(settings, budget).with_seed(1))
    }
}

impl<H: Handler> Lab<H> {
    pub fn with_app(version: Version, app: &impl App<Handler = H>) -> Self {
        let info = switch_info(version);
        let id = AppId::new(0, app.name()).unwrap();
        let handler = app.switch_up(&EmptyNetwork::network_of(DynApp::name(app), id), &info);
        Lab {
            info,
            out: Out::with_capacity(1 << 20),
            xids: xid::XidSource::default(),
            now: Duration::from_secs(1_000),
            handler,
            app: id,
        }
    }

    /// Handles one event.
    pub fn with<T>(&mut self, event: impl FnOnce(&mut H, &mut Switch<'_>) -> T) -> T {
        let Lab { info, out, xids, now, handler, app } = self;
        event(handler, &mut Switch::new(info, out, xids, &mut NoRequests, *now, *app))
    }

    /// Handles one packet by `packet_in`; returns the messages.
    pub fn packet_in(&mut self, packet: &Packet) -> Vec<String> {
        let message = packet.message(self.info.version);
        let packet = PacketIn::new(PacketInView::of_any_form(&message).unwrap());
        self.with(|handler, switch| handler.packet_in(switch, &packet)).unwrap();
        self.sent()
    }

    /// Handles a whole packet without a buffer; returns the messages.
    pub fn see(&mut self, port: u32, src: MacAddr, dst: MacAddr) -> Vec<String> {
        self.packet_in(&Packet::new(port, udp(src, dst)))
    }

    /// Handles a batch of packets.
    pub fn batch(&mut self, packets: &[Packet]) -> Vec<String> {
        let version = self.info.version;
        let stream: Vec<u8> = packets.iter().flat_map(|packet| packet.message(version)).collect();
        let mut batch = batch(version, &stream);
        self.with(|handler, switch| handler.packet_ins(switch, &mut batch));
        assert_eq!(batch.errors(), (0, None));
        assert_eq!(batch.consumed(), packets.len() as u32);
        self.sent()
    }

    /// Lets seconds pass, with a tick for each; returns the messages.
    pub fn wait(&mut self, seconds: u64) -> Vec<String> {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            self.with(|handler, switch| handler.tick(switch)).unwrap();
        }
        self.sent()
    }

    pub fn port_status(&mut self, reason: PortReason, port: u32, state: PortState) -> Vec<String> {
        let status = PortStatus { reason, desc: port_desc(port, PortConfig::empty(), state) };
        self.with(|handler, switch| handler.port_status(switch, &status)).unwrap();
        self.sent()
    }

    pub fn refuse(&mut self, code: ErrorCode) {
        let error = ErrorMessage::Standard { code, data: Bytes(&[]) };
        self.with(|handler, switch| handler.error(switch, Xid(1), &error)).unwrap();
        assert!(self.out.is_empty());
    }

    /// The messages since the last call, one a line.
    pub fn sent(&mut self) -> Vec<String> {
        let lines = messages(self.out.as_slice(), self.info.version, self.app);
        self.out.clear();
        lines
    }

    pub fn counter(&self, name: &str) -> u64 {
        let found = self.counters().into_iter().find(|(other, _)| *other == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }

    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = Vec::new();
        self.handler.counters(&mut |name, value| counters.push((name, value)));
        counters
    }

    pub fn hosts(&self) -> Vec<HostEntry> {
        let mut hosts = Vec::new();
        self.handler.hosts(&mut |host| {
            hosts.push(host);
            std::ops::ControlFlow::Continue(())
        });
        hosts.sort_by_key(|host| (host.vlan, host.mac));
        hosts
    }
}

/// Messages as lines, each decoded from its bytes.
pub fn messages(mut bytes: &[u8], version: Version, app: AppId) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        let (message, rest) = bytes.split_at(length);
        bytes = rest;
        let message = ToSwitch::decode(message).unwrap();
        assert_eq!(message.version, version);
        lines.push(match message.body {
            ToSwitch::FlowMod(flow) => flow_line(&flow, app),
            ToSwitch::MultipartRequest(MultipartRequest {
                body: RequestBody::Flow(flows), ..
            }) if version == Version::V1_0 => {
                assert_eq!(flows.table, FlowMod::ALL_TABLES);
                format!("remove {} to {}", flows.matching.to_match(), flows.out_port)
            }
            ToSwitch::PacketOut(packet) => packet_line(&packet),
            // It follows the request for the flows to remove, which may stay unanswered.
            ToSwitch::BarrierRequest if version == Version::V1_0 => continue,
            other => panic!("not a message that a learning switch sends: {other:?}"),
        });
    }
    lines
}

fn flow_line(flow: &FlowMod<'_>, app: AppId) -> String {
    assert!(app.cookie().owns(flow.cookie));
    let matching = flow.matching.to_match();
    match flow.command {
        FlowCommand::Add => {
            let instructions: Vec<_> = flow.instructions.iter().collect();
            let [Instruction::ApplyActions(actions)] = instructions[..] else {
                panic!("one list of actions: {instructions:?}");
            };
            let buffer = flow.buffer_id.map_or(String::new(), |id| format!(" buffer {id}"));
            format!(
                "flow {matching} to {}{buffer} priority {} idle {} hard {}",
                ports(actions.iter()),
                app.band().lower(flow.priority).unwrap(),
                flow.idle_timeout,
                flow.hard_timeout
            )
        }
        FlowCommand::Delete => {
            assert_eq!(flow.cookie_mask, Cookie::MASK, "other apps' flows stay");
            assert_eq!((flow.table, flow.buffer_id), (FlowMod::ALL_TABLES, None));
            format!("remove {matching} to {}", flow.out_port)
        }
        other => panic!("{other:?}"),
    }
}

fn packet_line(packet: &PacketOut<'_>) -> String {
    let what = match packet.buffer_id {
        Some(id) => format!("buffer {id}"),
        None => format!("{} bytes", packet.data.len()),
    };
    format!("packet {what} from {} to {}", packet.in_port, ports(packet.actions.iter()))
}

fn ports<'a>(actions: impl Iterator<Item = Action<'a>>) -> String {
    let ports: Vec<String> = actions
        .map(|action| match action {
            Action::Output { port, .. } => port.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    if ports.is_empty() { "nowhere".to_owned() } else { ports.join(",") }
}

pub fn port_desc(port: u32, config: PortConfig, state: PortState) -> PortDesc {
    PortDesc {
        config,
        state,
        ..PortDesc::new(Port(port), MacAddr([0xe, 0, 0, 0, 0, port as u8]), FixedStr([0; 16]))
    }
}

fn switch_info(version: Version) -> SwitchInfo {
    let peer = SocketAddr::from(([127, 0, 0, 1], 40_000));
    let mut info = SwitchInfo::new(Dpid(0xa1), version, peer);
    (info.n_buffers, info.n_tables) = (256, 1);
    info.ports = (1..=4).map(|n| port_desc(n, PortConfig::empty(), PortState::empty())).collect();
    info
}
