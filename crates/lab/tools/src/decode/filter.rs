//! Selects messages by switch, connection and type.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bellrock_config::values::one_of;
use bellrock_openflow::{MessageKind, Version};
use clap::Args;

use super::StreamId;
use super::peers::{Peer, kind};

/// Messages held for a connection with an unknown datapath id, and their bytes; others are dropped.
pub(super) const MAX_HELD_MESSAGES: usize = 256;
pub(super) const MAX_HELD_BYTES: usize = 64 * 1024;

/// Connections with held messages. The first messages of further connections are left out.
pub(super) const MAX_HELD_CONNECTIONS: usize = 1024;

/// Filters of the command line. One value of each given flag must fit.
#[derive(Debug, Default, Args)]
pub(super) struct MessageFilter {
    /// Only messages of this switch: its datapath id in hexadecimal, or its address
    #[arg(long = "switch", value_name = "DPID|ADDRESS[:PORT]", value_parser = switch)]
    switches: Vec<SwitchName>,

    /// Only messages of connections with this address at one end
    #[arg(long = "connection", value_name = "ADDRESS[:PORT]", value_parser = end)]
    connections: Vec<EndFilter>,

    /// Only messages of this type; several with commas: packet_in,flow_mod,multipart_reply
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',', value_parser = message_type)]
    types: Vec<MessageKind>,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndFilter {
    address: IpAddr,
    port: Option<u16>,
}

impl EndFilter {
    fn is(self, end: SocketAddr) -> bool {
        self.address == end.ip() && self.port.is_none_or(|port| port == end.port())
    }
}

/// Name of a switch on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SwitchName {
    Dpid(u64),
    At(EndFilter),
}

/// Whether a message is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    No,
    /// Unknown until the switch of the connection is known.
    Later,
}

impl MessageFilter {
    /// Whether the filter needs connections, which lines of hex do not have.
    pub(super) fn needs_connections(&self) -> bool {
        !self.switches.is_empty() || !self.connections.is_empty()
    }

    pub(super) fn fits_type(&self, bytes: &[u8]) -> bool {
        self.types.is_empty() || kind(bytes).is_some_and(|kind| self.types.contains(&kind))
    }

    /// Whether messages of this stream are wanted, from what is known of its connection.
    pub(super) fn fits_stream(&self, stream: StreamId, peer: Option<&Peer>) -> Fit {
        let at_an_end = |end: &EndFilter| end.is(stream.src) || end.is(stream.dst);
        if !self.connections.is_empty() && !self.connections.iter().any(at_an_end) {
            return Fit::No;
        }
        if self.switches.is_empty() {
            return Fit::Yes;
        }
        let (switch, dpid) = (peer.and_then(|peer| peer.switch(stream)), peer.and_then(|p| p.dpid));
        let fits = self.switches.iter().map(|name| match (name, switch, dpid) {
            (SwitchName::Dpid(wanted), _, Some(dpid)) if *wanted == dpid => Fit::Yes,
            (SwitchName::Dpid(_), _, None) => Fit::Later,
            (SwitchName::At(end), Some(switch), _) if end.is(switch) => Fit::Yes,
            (SwitchName::At(end), None, _) if at_an_end(end) => Fit::Later,
            _ => Fit::No,
        });
        let fits: Vec<Fit> = fits.collect();
        [Fit::Yes, Fit::Later].into_iter().find(|fit| fits.contains(fit)).unwrap_or(Fit::No)
    }
}

/// A message held until its switch is known.
#[derive(Debug)]
pub(super) struct HeldMessage {
    pub(super) stream: StreamId,
    pub(super) time: Duration,
    pub(super) start: Duration,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// All held messages.
#[derive(Debug, Default)]
pub(super) struct HeldMessages {
    connections: HashMap<(SocketAddr, SocketAddr), Vec<HeldMessage>>,
    /// Messages left out because of a limit.
    left_out: u64,
}

impl HeldMessages {
    pub(super) fn hold(&mut self, message: HeldMessage) {
        let name = name(message.stream);
        let is_full = self.connections.len() >= MAX_HELD_CONNECTIONS;
        if is_full && !self.connections.contains_key(&name) {
            self.left_out += 1;
            return;
        }
        let held = self.connections.entry(name).or_default();
        let bytes: usize = held.iter().map(|message| message.bytes.len()).sum();
        if held.len() >= MAX_HELD_MESSAGES || bytes + message.bytes.len() > MAX_HELD_BYTES {
            self.left_out += 1;
        } else {
            held.push(message);
        }
    }

    /// Takes the messages of a connection whose switch is known now.
    pub(super) fn take(&mut self, stream: StreamId) -> Vec<HeldMessage> {
        self.connections.remove(&name(stream)).unwrap_or_default()
    }

    /// Number of messages whose switch stayed unknown.
    pub(super) fn unknown(&self) -> u64 {
        let held: usize = self.connections.values().map(Vec::len).sum();
        held as u64 + self.left_out
    }
}

fn name(stream: StreamId) -> (SocketAddr, SocketAddr) {
    (stream.src.min(stream.dst), stream.src.max(stream.dst))
}

fn end(text: &str) -> Result<EndFilter, String> {
    let whole =
        text.parse().map(|at: SocketAddr| EndFilter { address: at.ip(), port: Some(at.port()) });
    let bare =
        || text.trim_matches(['[', ']']).parse().map(|address| EndFilter { address, port: None });
    whole
        .or_else(|_| bare())
        .map_err(|_| "give an address: 10.0.0.1, 10.0.0.1:40000, [::1]:40000".into())
}

fn switch(text: &str) -> Result<SwitchName, String> {
    if let Ok(end) = end(text) {
        return Ok(SwitchName::At(end));
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    match u64::from_str_radix(digits, 16) {
        Ok(dpid) if !digits.starts_with('+') => Ok(SwitchName::Dpid(dpid)),
        _ => Err("give a datapath id or an address: a1, 10.0.0.1, [::1]:40000".into()),
    }
}

/// Reads the name of a message type in any version, with or without `OFPT_`.
fn message_type(text: &str) -> Result<MessageKind, String> {
    let wanted = text.to_ascii_uppercase().replace('-', "_");
    let wanted = wanted.strip_prefix("OFPT_").unwrap_or(&wanted).to_owned();
    let names = |kind: MessageKind| {
        Version::ALL.map(|version| kind.name(version).trim_start_matches("OFPT_"))
    };
    let found = MessageKind::ALL.iter().find(|kind| names(**kind).contains(&wanted.as_str()));
    found.copied().ok_or_else(|| {
        let mut all: Vec<String> = MessageKind::ALL
            .iter()
            .flat_map(|kind| names(*kind).last().map(|name| name.to_ascii_lowercase()))
            .collect();
        all.sort_unstable();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        format!("give {}", one_of(&wanted.to_ascii_lowercase(), &all))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_named_by_datapath_id_or_address() {
        assert_eq!(switch("a1"), Ok(SwitchName::Dpid(0xa1)));
        assert_eq!(switch("0x00000000000000a1"), Ok(SwitchName::Dpid(0xa1)));
        let at = |address: &str, port| {
            Ok(SwitchName::At(EndFilter { address: address.parse().unwrap(), port }))
        };
        assert_eq!(switch("10.0.0.1"), at("10.0.0.1", None));
        assert_eq!(switch("10.0.0.1:7"), at("10.0.0.1", Some(7)));
        assert_eq!(switch("::1"), at("::1", None));
        assert_eq!(switch("[::1]:7"), at("::1", Some(7)));
        assert!(switch("s1").is_err() && switch("").is_err() && switch("10.0.0.300").is_err());
    }

    #[test]
    fn types_are_named_as_in_either_version() {
        for name in ["packet_in", "PACKET_IN", "OFPT_PACKET_IN", "packet-in"] {
            assert_eq!(message_type(name), Ok(MessageKind::PacketIn), "{name}");
        }
        assert_eq!(message_type("stats_reply"), Ok(MessageKind::MultipartReply));
        assert_eq!(message_type("multipart_reply"), Ok(MessageKind::MultipartReply));
        let error = message_type("packetin").unwrap_err();
        assert!(error.contains("packet_in, packet_out"), "{error}");
        assert!(error.ends_with("(did you mean packet_in?)"), "{error}");
    }

    #[test]
    fn held_messages_are_bounded_and_counted() {
        let at = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let message = |port, bytes| HeldMessage {
            stream: StreamId { src: at(port), dst: at(6653) },
            time: Duration::ZERO,
            start: Duration::ZERO,
            offset: 0,
            bytes: vec![0; bytes],
        };
        let mut held = HeldMessages::default();
        (0..MAX_HELD_MESSAGES + 3).for_each(|_| held.hold(message(1, 8)));
        assert_eq!(held.left_out, 3);
        held.hold(message(2, MAX_HELD_BYTES + 1));
        assert_eq!(held.left_out, 4);
        (0..MAX_HELD_CONNECTIONS as u16).for_each(|port| held.hold(message(port + 3, 8)));
        assert_eq!(held.left_out, 6);
        assert_eq!(held.take(message(1, 8).stream).len(), MAX_HELD_MESSAGES);
        assert!(held.take(message(1, 8).stream).is_empty());
    }
}
