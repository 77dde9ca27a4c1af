//! A learning switch on raw connections: it gets and sends messages as bytes, with xids, priorities
//! and a table-miss entry of its own.
//!
//! It uses the codec of `bellrock::openflow`. A program may as well have another one.
//!
//! `cargo run -p bellrock --example raw_learning` listens on 127.0.0.1:6653, or on the address that
//! is its argument.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use bellrock::openflow::{
    Bytes, ConfigFlags, EncodeError, FromSwitch, List, Out, PacketInMessage, PacketOut,
    SwitchConfig, frame,
};
use bellrock::raw::{RawConnection, RawEvent, RawOwner};
use bellrock::{Action, Controller, FlowMod, MacAddr, Match, Port, ToSwitch, Version};

/// Space for the answers to one event. What does not fit is lost, like a packet.
const ANSWER_BYTES: usize = 1 << 20;

/// Seconds after which a flow without packets ends.
const IDLE_TIMEOUT_S: u16 = 10;

/// The xid of all messages: this program does not ask for replies.
const XID: u32 = 0x7777;

/// The ports of the hosts of a switch.
type Hosts = HashMap<MacAddr, Port>;

fn main() -> bellrock::Result {
    let mut builder = Controller::builder();
    for argument in std::env::args().skip(1) {
        match argument.parse::<SocketAddr>() {
            Ok(address) => builder = builder.listen(address),
            Err(error) => eprintln!("{argument}: {error}; give an address such as 127.0.0.1:6653"),
        }
    }
    let (builder, owner) = builder.raw_owner();
    let thread = std::thread::spawn(move || serve(&owner));
    let result = builder.run();
    let _ = thread.join();
    result
}

/// Handles events until the controller stops.
pub(crate) fn serve(owner: &RawOwner) {
    let mut switches: BTreeMap<u64, Hosts> = BTreeMap::new();
    let mut out = Out::with_capacity(ANSWER_BYTES);
    while let Some(event) = owner.next() {
        match event {
            RawEvent::Up(up) => {
                switches.insert(up.connection.id(), Hosts::new());
                let _ = configure(up.connection.version(), &mut out);
                send(&up.connection, &mut out);
            }
            RawEvent::Messages { connection, bytes } => {
                let Some(hosts) = switches.get_mut(&connection.id()) else { continue };
                let mut rest = &bytes[..];
                while let Ok(Some(message)) = frame(rest) {
                    rest = &rest[message.bytes.len()..];
                    let body = FromSwitch::decode(message.bytes).map(|decoded| decoded.body);
                    if let Ok(FromSwitch::PacketIn(packet)) = body {
                        let mark = out.len();
                        let done = handle(connection.version(), &packet, hosts, &mut out);
                        if let Err(error) = done {
                            eprintln!("switch {}: {error}", connection.dpid());
                            out.truncate(mark);
                        }
                    }
                }
                send(&connection, &mut out);
            }
            RawEvent::Down { connection, .. } => _ = switches.remove(&connection.id()),
            _ => {}
        }
    }
}

/// Asks for whole packets that match no flow.
fn configure(version: Version, out: &mut Out) -> Result<(), EncodeError> {
    let config = SwitchConfig { flags: ConfigFlags::empty(), miss_send_len: 0xffff };
    ToSwitch::SetConfig(config).encode(version, XID, out)?;
    if version.has_table_miss_entries() {
        let (any, actions) = (Match::any(), [Action::output(Port::CONTROLLER)]);
        let table_miss = FlowMod::add(&any).priority(0).actions(&actions);
        ToSwitch::FlowMod(table_miss).encode(version, XID, out)?;
    }
    Ok(())
}

/// Learns the sender's port, and sends the packet on: with a flow if the receiver's port is known.
fn handle(
    version: Version,
    packet: &PacketInMessage<'_>,
    hosts: &mut Hosts,
    out: &mut Out,
) -> Result<(), EncodeError> {
    let &[a, b, c, d, e, f, g, h, i, j, k, l, ..] = &packet.data[..] else { return Ok(()) };
    let (to, from) = (MacAddr([a, b, c, d, e, f]), MacAddr([g, h, i, j, k, l]));
    let in_port = packet.in_port();
    hosts.insert(from, in_port);
    let port = hosts.get(&to).copied();
    if let Some(port) = port {
        let pair = Match::any().in_port(in_port).eth_src(from).eth_dst(to);
        let actions = [Action::output(port)];
        let flow = FlowMod::add(&pair).priority(100).idle_timeout(IDLE_TIMEOUT_S);
        ToSwitch::FlowMod(flow.actions(&actions)).encode(version, XID, out)?;
    }
    let actions = [Action::output(port.unwrap_or(Port::FLOOD))];
    // A buffered packet is at the switch.
    let data = if packet.buffer_id.is_some() { Bytes(&[]) } else { packet.data };
    let (buffer_id, actions) = (packet.buffer_id, List::of(&actions));
    let sent_on = PacketOut { buffer_id, in_port, actions, data };
    ToSwitch::PacketOut(sent_on).encode(version, XID, out)
}

fn send(connection: &RawConnection, out: &mut Out) {
    if let Err(error) = connection.send(out.as_slice()) {
        eprintln!("switch {}: {error}", connection.dpid());
    }
    out.clear();
}
