//! The specification of a switch's OpenFlow end, one test for each rule.

mod bounds;
mod channels;
mod news;
mod requests;
mod statistics;

use std::time::Duration;

use bellrock_openflow::{
    Action, Capabilities, ErrorCode, ErrorMessage, FlowMod, FromSwitch, Hello, Match,
    MultipartRequest, Out, Port, PortState, ReplyBody, RequestBody, ToSwitch, Version, frame,
};

use super::{ChannelClose, ChannelId, EmulatedSwitch, SwitchSettings};
use crate::datapath::Effects;
use crate::packet::EthernetFrame;

const V1_0: Version = Version::V1_0;
const V1_3: Version = Version::V1_3;
const BOTH: [Version; Version::ALL.len()] = Version::ALL;

/// A switch with ports 1 to 4, and the effects of the last events.
struct Lab {
    switch: EmulatedSwitch,
    effects: Effects,
    now: Duration,
}

/// A controller's end.
#[derive(Clone, Copy)]
struct Peer {
    id: ChannelId,
    version: Version,
}

/// Messages of a switch, as bytes.
struct Said(Vec<Vec<u8>>);

impl Said {
    fn messages(&self) -> impl Iterator<Item = (u32, FromSwitch<'_>)> {
        self.0.iter().map(|bytes| {
            let message = FromSwitch::decode(bytes).unwrap();
            (message.xid, message.body)
        })
    }

    /// The only message.
    fn only(&self) -> FromSwitch<'_> {
        let messages: Vec<_> = self.messages().collect();
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages[0].1
    }

    /// The errors, with their xids.
    fn errors(&self) -> Vec<(u32, ErrorCode)> {
        let errors = self.messages().filter_map(|(xid, message)| match message {
            FromSwitch::Error(ErrorMessage::Standard { code, .. }) => Some((xid, code)),
            _ => None,
        });
        errors.collect()
    }

    /// The error in the only message.
    fn error(&self) -> ErrorCode {
        self.only();
        self.errors()[0].1
    }

    /// The types of the messages, printed.
    fn kinds(&self) -> Vec<String> {
        self.messages().map(|(_, message)| format!("{:?}", message.kind())).collect()
    }
}

fn bytes(version: Version, xid: u32, message: &ToSwitch<'_>) -> Vec<u8> {
    let mut out = Out::with_capacity(1 << 16);
    message.encode(version, xid, &mut out).unwrap();
    out.as_slice().to_vec()
}

impl Lab {
    fn new() -> Self {
        Lab::of(SwitchSettings { tables: 3, table_capacity: 5_000, ..SwitchSettings::new(1, 4) })
    }

    fn of(settings: SwitchSettings) -> Self {
        Lab { switch: EmulatedSwitch::new(settings), effects: Effects::new(), now: Duration::ZERO }
    }

    /// A switch with a controller of this version.
    fn with(version: Version) -> (Self, Peer) {
        let mut lab = Lab::new();
        let peer = lab.join(version);
        (lab, peer)
    }

    /// Connects a controller, and discards all messages up to the agreed version.
    fn join(&mut self, version: Version) -> Peer {
        let id = self.switch.connect().unwrap();
        let peer = Peer { id, version };
        self.give(peer, &hello(version)).unwrap();
        self.take(peer);
        assert!(self.switch.is_ready(id));
        peer
    }

    fn give(&mut self, peer: Peer, bytes: &[u8]) -> Result<(), ChannelClose> {
        self.switch.control(peer.id, bytes, self.now, &mut self.effects)
    }

    /// Reads everything that waits for a controller.
    fn take(&mut self, peer: Peer) -> Said {
        let mut said = Vec::new();
        loop {
            let mut waiting = self.switch.output(peer.id).to_vec();
            if waiting.is_empty() {
                break;
            }
            let len = waiting.len();
            while let Some(message) = frame(&waiting).unwrap() {
                said.push(message.bytes.to_vec());
                waiting.drain(..message.bytes.len());
            }
            assert!(waiting.is_empty(), "whole messages");
            self.switch.sent(peer.id, len, self.now, &mut self.effects).unwrap();
        }
        Said(said)
    }

    /// Sends a request with xid 7, and reads everything that waits then.
    fn ask(&mut self, peer: Peer, message: &ToSwitch<'_>) -> Said {
        self.give(peer, &bytes(peer.version, 7, message)).unwrap();
        self.take(peer)
    }

    /// Sends a request that has no answer if it succeeds.
    fn tell(&mut self, peer: Peer, message: &ToSwitch<'_>) {
        assert_eq!(self.ask(peer, message).kinds(), Vec::<String>::new());
    }

    /// Sends a request, and returns the error that answers it.
    fn refused(&mut self, peer: Peer, message: &ToSwitch<'_>) -> ErrorCode {
        self.ask(peer, message).error()
    }

    fn flow(&mut self, peer: Peer, flow: FlowMod<'_>) {
        self.tell(peer, &ToSwitch::FlowMod(flow));
    }

    /// Receives a packet. Returns its output ports.
    fn packet(&mut self, port: u32, frame: &[u8]) -> Vec<u32> {
        self.switch.frame(port, EthernetFrame::from(frame), self.now, &mut self.effects);
        self.sent()
    }

    fn sent(&mut self) -> Vec<u32> {
        self.effects.frames.drain(..).map(|(port, _)| port).collect()
    }
}

fn hello(version: Version) -> Vec<u8> {
    let mut out = Out::with_capacity(64);
    Hello::write(version, 1, &mut out).unwrap();
    out.as_slice().to_vec()
}

/// A frame of this length, from 02:…:01 to 02:…:02.
fn packet(len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    frame.resize(len, 0x5a);
    frame
}

/// A flow for all packets with priority 0: in 1.3, the table-miss entry.
fn miss_to_controller<'a>(any: &'a Match, actions: &'a [Action<'a>]) -> FlowMod<'a> {
    FlowMod::add(any).priority(0).actions(actions)
}

#[test]
fn the_switch_describes_itself_in_the_version_that_is_agreed_on() {
    for version in BOTH {
        let (mut lab, peer) = Lab::with(version);
        let said = lab.ask(peer, &ToSwitch::FeaturesRequest);
        let FromSwitch::FeaturesReply(features) = said.only() else { panic!() };
        assert_eq!((features.datapath_id, features.n_tables, features.n_buffers), (1, 3, 256));
        let groups = features.capabilities.contains(Capabilities::GROUP_STATS);
        assert_eq!(
            (features.ports.len(), groups),
            if version == V1_0 { (4, false) } else { (0, true) }
        );
        let desc = lab.ask(peer, &ToSwitch::MultipartRequest(multipart(RequestBody::Desc)));
        assert!(desc.only().to_string().contains("s1"));
        let said = lab.ask(peer, &ToSwitch::MultipartRequest(multipart(RequestBody::PortDesc)));
        let FromSwitch::MultipartReply(reply) = said.only() else { panic!() };
        let ReplyBody::PortDesc(ports) = reply.body else { panic!() };
        let live = ports.iter().filter(|port| port.state.contains(PortState::LIVE)).count();
        assert_eq!((ports.len(), live), (4, if version == V1_0 { 0 } else { 4 }));
    }
}

fn multipart(body: RequestBody<'_>) -> MultipartRequest<'_> {
    MultipartRequest::of(body)
}
