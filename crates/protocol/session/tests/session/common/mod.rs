//! A connection between both ends, without a socket, that tests drive step by step.
#![allow(unreachable_pub, reason = "a test program has no interface")]

use std::time::Duration;

use bellrock_openflow::{
    Bytes, Capabilities, ErrorCode, ErrorMessage, FixedStr, FromSwitch, MacAddr, Out, Port,
    PortDesc, PortFeatures, ToSwitch, Version,
};
use bellrock_session::{
    CloseReason, ControllerSession, SessionEvent, SessionSettings, SwitchDescription,
    SwitchSession, Versions, switch,
};

pub const VERSIONS: [Version; Version::ALL.len()] = Version::ALL;
pub const OUT_BYTES: usize = 1 << 17;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn port(number: u32) -> PortDesc {
    PortDesc {
        current: PortFeatures::RATE_1GB_FD | PortFeatures::COPPER,
        ..PortDesc::new(
            Port(number),
            MacAddr([2, 0, 0, 0, (number >> 8) as u8, number as u8]),
            FixedStr::new(&format!("s1-eth{number}")),
        )
    }
}

pub fn description(version: Version, ports: u32) -> SwitchDescription {
    SwitchDescription {
        version,
        n_buffers: 256,
        n_tables: 3,
        capabilities: Capabilities::FLOW_STATS | Capabilities::PORT_STATS,
        actions: if version == Version::V1_0 { 0xfff } else { 0 },
        manufacturer: "Bellrock".into(),
        hardware: "none".into(),
        software: "0.1".into(),
        serial_number: "7".into(),
        datapath: "s1".into(),
        ports: (1..=ports).map(port).collect(),
        ..SwitchDescription::new(0x1_0000_0000_0001)
    }
}

/// A controller's end. The test writes the bytes of its peer.
pub struct Alone {
    pub controller: ControllerSession,
    pub out: Out,
    pub now: Duration,
}

impl Alone {
    /// Before the peer's hello; the own hello is discarded.
    pub fn new(settings: &SessionSettings) -> Self {
        let mut out = Out::with_capacity(OUT_BYTES);
        let controller = ControllerSession::new(settings, Duration::ZERO, &mut out).unwrap();
        out.clear();
        Alone { controller, out, now: Duration::ZERO }
    }

    /// After a handshake in `version`, with the switch taken and all output discarded.
    pub fn ready(version: Version, settings: &SessionSettings) -> Self {
        let mut pair = Pair::new(settings, description(version, 2), Versions::only(version));
        pair.run().unwrap();
        pair.controller.take_switch().unwrap();
        pair.controller.take_counters();
        let out = Out::with_capacity(OUT_BYTES);
        Alone { controller: pair.controller, out, now: pair.now }
    }

    /// Passes one whole message to the session.
    pub fn give<'b>(&mut self, message: &'b [u8]) -> Result<SessionEvent<'b>, CloseReason> {
        self.controller.received(self.now);
        let (used, event) = self.controller.next(message, self.now, &mut self.out)?.unwrap();
        assert_eq!(used, message.len());
        Ok(event)
    }

    pub fn version(&self) -> Version {
        self.controller.version()
    }

    /// Takes the messages that the session wrote, as text.
    pub fn sent(&mut self) -> Vec<String> {
        let sent = to_switch(self.out.as_slice(), |_, _, body| format!("{body:?}"));
        self.out.clear();
        sent
    }
}

/// Both ends, and the bytes between them.
pub struct Pair {
    pub controller: ControllerSession,
    pub switch: SwitchSession,
    /// To the switch.
    pub down: Out,
    /// To the controller.
    pub up: Out,
    pub now: Duration,
}

impl Pair {
    pub fn new(
        settings: &SessionSettings,
        description: SwitchDescription,
        versions: Versions,
    ) -> Self {
        let (mut down, mut up) = (Out::with_capacity(1 << 20), Out::with_capacity(1 << 20));
        let switch = SwitchSession::new(description, versions, &mut up).unwrap();
        let controller = ControllerSession::new(settings, Duration::ZERO, &mut down).unwrap();
        Pair { controller, switch, down, up, now: Duration::ZERO }
    }

    /// Carries bytes both ways until no end sends more. Returns the events of the controller's end
    /// as text, without `Nothing`.
    pub fn run(&mut self) -> Result<Vec<String>, CloseReason> {
        let mut events = Vec::new();
        while !self.down.is_empty() || !self.up.is_empty() {
            let sent = std::mem::replace(&mut self.down, Out::with_capacity(1 << 20));
            let mut bytes = sent.as_slice();
            while let Some((used, event)) = self.switch.next(bytes, &mut self.up)? {
                bytes = &bytes[used..];
                if let switch::SwitchSessionEvent::Message { .. }
                | switch::SwitchSessionEvent::Malformed { .. } = event
                {
                    events.push(format!("switch: {event:?}"));
                }
            }
            assert!(bytes.is_empty());
            let sent = std::mem::replace(&mut self.up, Out::with_capacity(1 << 20));
            let mut bytes = sent.as_slice();
            self.controller.received(self.now);
            while let Some((used, event)) = self.controller.next(bytes, self.now, &mut self.down)? {
                bytes = &bytes[used..];
                if !matches!(event, SessionEvent::Nothing) {
                    events.push(format!("{event:?}"));
                }
            }
            assert!(bytes.is_empty());
        }
        Ok(events)
    }
}

/// The bytes of a switch's message.
pub fn bytes(version: Version, xid: u32, message: &FromSwitch<'_>) -> Vec<u8> {
    let mut out = Out::with_capacity(OUT_BYTES);
    message.encode(version, xid, &mut out).unwrap();
    out.as_slice().to_vec()
}

/// Header and body, with the length set.
pub fn raw(version: u8, kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + body.len()).unwrap().to_be_bytes();
    [&[version, kind][..], &length, &xid.to_be_bytes(), body].concat()
}

/// Decodes all messages to a switch.
pub fn to_switch<T>(
    mut stream: &[u8],
    mut each: impl FnMut(Version, u32, ToSwitch<'_>) -> T,
) -> Vec<T> {
    let mut messages = Vec::new();
    while let Some(message) = bellrock_openflow::frame(stream).unwrap() {
        let read = ToSwitch::decode(message.bytes).unwrap();
        messages.push(each(read.version, read.xid, read.body));
        stream = &stream[message.bytes.len()..];
    }
    assert!(stream.is_empty());
    messages
}

/// The xid of the last message that was written.
pub fn last_xid(out: &Out) -> u32 {
    *to_switch(out.as_slice(), |_, xid, _| xid).last().unwrap()
}

/// A handshake before its last stage: SET_CONFIG, DESC, (1.3) PORT_DESC and a barrier were sent,
/// with these xids.
pub struct Half {
    pub end: Alone,
    pub xids: Vec<u32>,
}

/// A controller that has requested description and ports.
pub fn asked(version: Version) -> Half {
    let mut end = Alone::new(&SessionSettings::default());
    end.give(&raw(version.wire(), 0, 1, &[])).unwrap();
    let xid = last_xid(&end.out);
    end.out.clear();
    let mut wire =
        Pair::new(&SessionSettings::default(), description(version, 2), Versions::only(version));
    wire.up.clear();
    wire.switch.next(&raw(version.wire(), 0, 1, &[]), &mut wire.up).unwrap();
    let mut request = Out::with_capacity(64);
    ToSwitch::FeaturesRequest.encode(version, xid, &mut request).unwrap();
    wire.switch.next(request.as_slice(), &mut wire.up).unwrap();
    end.give(wire.up.as_slice()).unwrap();
    let xids = to_switch(end.out.as_slice(), |_, xid, _| xid);
    end.out.clear();
    Half { end, xids }
}

pub fn refuse(version: Version, xid: u32) -> Vec<u8> {
    let (code, data) = (ErrorCode::RequestBadMultipart, Bytes(&[]));
    bytes(version, xid, &FromSwitch::Error(ErrorMessage::Standard { code, data }))
}
