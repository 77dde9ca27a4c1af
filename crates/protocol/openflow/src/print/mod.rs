//! Prints messages: one line, and an indented line for each item of a list. The format is similar
//! to that of `ovs-ofctl ofp-print`.
//!
//! ```text
//! OFPT_PACKET_IN (OF1.3) (xid=0x0): table_id=0 cookie=0x0 total_len=42 in_port=1 (via no_match) data_len=42 (unbuffered)
//! ```
//!
//! This layer uses only the public interface of messages. The length of its output is limited by
//! the length of the message. Texts from the network are escaped. Bytes without a meaning here are
//! cut to [`INLINE_BYTES`]. With `{:#}`, packets, payloads and data follow in full, as hexadecimal
//! lines.

mod action;
mod control;
mod multipart;
mod ovs_match;
mod packet;
mod table;

use std::fmt::{self, Display, Formatter, Write as _};

pub(crate) use self::ovs_match::OvsMatch;
use crate::{FromSwitch, Message, MessageKind, ToSwitch, Version};

/// Maximum bytes of data in a line; `{:#}` shows all.
const INLINE_BYTES: usize = 64;
const DUMP_LINE: usize = 16;
/// Start of the line of an item, and of an item within an item.
const ITEM: &str = "\n  ";
const SUBITEM: &str = "\n    ";

impl Display for Message<FromSwitch<'_>> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.body {
            FromSwitch::Hello(hello) => {
                head(self, MessageKind::Hello, f)?;
                control::hello(hello, self.version, f)
            }
            FromSwitch::Error(error) => {
                head(self, MessageKind::Error, f)?;
                control::error(error, Some(self.version), f)
            }
            FromSwitch::MultipartReply(reply) => {
                let name = reply.body.kind().name(self.version);
                write!(f, "{name} reply (OF{}) (xid={:#x}): ", self.version, self.xid)?;
                reply.fmt(f)
            }
            FromSwitch::BarrierReply => bare_head(self, MessageKind::BarrierReply, f),
            body => {
                head(self, body.kind(), f)?;
                body.fmt(f)
            }
        }
    }
}

impl Display for Message<ToSwitch<'_>> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.body {
            ToSwitch::Hello(hello) => {
                head(self, MessageKind::Hello, f)?;
                control::hello(hello, self.version, f)
            }
            ToSwitch::Error(error) => {
                head(self, MessageKind::Error, f)?;
                control::error(error, Some(self.version), f)
            }
            ToSwitch::Experimenter(message) => {
                head(self, MessageKind::Experimenter, f)?;
                control::experimenter(message, self.version, self.xid, f)
            }
            ToSwitch::MultipartRequest(request) => {
                let name = request.body.kind().name(self.version);
                write!(f, "{name} request (OF{}) (xid={:#x})", self.version, self.xid)?;
                if multipart::is_bare(request) {
                    return Ok(());
                }
                f.write_str(": ")?;
                request.fmt(f)
            }
            ToSwitch::FeaturesRequest
            | ToSwitch::GetConfigRequest
            | ToSwitch::BarrierRequest
            | ToSwitch::GetAsyncRequest => bare_head(self, self.body.kind(), f),
            body => {
                head(self, body.kind(), f)?;
                body.fmt(f)
            }
        }
    }
}

/// Prints the content of the message, without its header; nothing for messages without content.
impl Display for FromSwitch<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FromSwitch::Hello(hello) => hello.fmt(f),
            FromSwitch::Error(error) => error.fmt(f),
            FromSwitch::EchoRequest(payload) | FromSwitch::EchoReply(payload) => {
                control::echo(payload, f)
            }
            FromSwitch::Experimenter(message) => message.fmt(f),
            FromSwitch::FeaturesReply(features) => features.fmt(f),
            FromSwitch::GetConfigReply(config) => config.fmt(f),
            FromSwitch::PacketIn(packet) => packet.fmt(f),
            FromSwitch::FlowRemoved(flow) => flow.fmt(f),
            FromSwitch::PortStatus(status) => status.fmt(f),
            FromSwitch::MultipartReply(reply) => reply.fmt(f),
            FromSwitch::BarrierReply => Ok(()),
            FromSwitch::QueueGetConfigReply(config) => config.fmt(f),
            FromSwitch::RoleReply(role) => role.fmt(f),
            FromSwitch::GetAsyncReply(config) => config.fmt(f),
        }
    }
}

/// Prints the content of the message, without its header; nothing for messages without content.
impl Display for ToSwitch<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ToSwitch::Hello(hello) => hello.fmt(f),
            ToSwitch::Error(error) => error.fmt(f),
            ToSwitch::EchoRequest(payload) | ToSwitch::EchoReply(payload) => {
                control::echo(payload, f)
            }
            ToSwitch::Experimenter(message) => message.fmt(f),
            ToSwitch::FeaturesRequest
            | ToSwitch::GetConfigRequest
            | ToSwitch::BarrierRequest
            | ToSwitch::GetAsyncRequest => Ok(()),
            ToSwitch::SetConfig(config) => config.fmt(f),
            ToSwitch::PacketOut(packet) => packet.fmt(f),
            ToSwitch::FlowMod(flow) => flow.fmt(f),
            ToSwitch::GroupMod(group) => group.fmt(f),
            ToSwitch::PortMod(port) => port.fmt(f),
            ToSwitch::TableMod(table) => table.fmt(f),
            ToSwitch::MeterMod(meter) => meter.fmt(f),
            ToSwitch::MultipartRequest(request) => request.fmt(f),
            ToSwitch::QueueGetConfigRequest(port) => write!(f, "port={port}"),
            ToSwitch::RoleRequest(role) => role.fmt(f),
            ToSwitch::SetAsync(config) => config.fmt(f),
        }
    }
}

fn bare_head<T>(message: &Message<T>, kind: MessageKind, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{} (OF{}) (xid={:#x})", kind.name(message.version), message.version, message.xid)
}

fn head<T>(message: &Message<T>, kind: MessageKind, f: &mut Formatter<'_>) -> fmt::Result {
    bare_head(message, kind, f)?;
    f.write_str(": ")
}

/// Prints names separated by `|`, then the unnamed bits; `0` for none.
pub(crate) fn names<'n>(
    f: &mut Formatter<'_>,
    names: impl Iterator<Item = &'n str>,
    rest: u64,
) -> fmt::Result {
    let mut bar = "";
    for name in names {
        write!(f, "{bar}{name}")?;
        bar = "|";
    }
    match (bar, rest) {
        ("", 0) => f.write_str("0"),
        (_, 0) => Ok(()),
        (bar, rest) => write!(f, "{bar}{rest:#x}"),
    }
}

/// A set of bits with a list of names, the lowest bit first; `""` for an unnamed bit.
struct Bits(u32, &'static [&'static str]);

impl Display for Bits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let named = |(i, name): (usize, &&'static str)| {
            let bit = 1_u32.checked_shl(i as u32).unwrap_or(0);
            (self.0 & bit != 0 && !name.is_empty()).then_some((bit, *name))
        };
        let rest =
            self.1.iter().enumerate().filter_map(named).fold(self.0, |left, (bit, _)| left & !bit);
        let set = self.1.iter().enumerate().filter_map(named).map(|(_, name)| name);
        names(f, set, rest.into())
    }
}

/// Prints bytes in a line, in hexadecimal, cut if there are many.
struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let shown = self.0.get(..INLINE_BYTES).unwrap_or(self.0);
        shown.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if shown.len() < self.0.len() {
            write!(f, "...({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

/// With `{:#}`, prints bytes in separate lines, each with the offset of its first byte.
fn dump(bytes: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    if !f.alternate() {
        return Ok(());
    }
    for (i, line) in bytes.chunks(DUMP_LINE).enumerate() {
        write!(f, "{ITEM}{:04x} ", i * DUMP_LINE)?;
        line.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
    }
    Ok(())
}

fn commas<T: Display>(items: impl Iterator<Item = T>, f: &mut Formatter<'_>) -> fmt::Result {
    for (i, item) in items.enumerate() {
        if i > 0 {
            f.write_char(',')?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// Prints items in separate lines, each after `start`.
fn lines<T: Display>(
    start: &str,
    items: impl Iterator<Item = T>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    for item in items {
        write!(f, "{start}{item}")?;
    }
    Ok(())
}

/// Prints a number with its noun: `1 flow`, `3 flows`.
fn count(n: usize, what: &str, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Prints seconds with nanoseconds; `?` if the switch does not know.
struct Duration(u32, u32);

impl Display for Duration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (u32::MAX, u32::MAX) => f.write_str("?"),
            (seconds, nanoseconds) => write!(f, "{seconds}.{nanoseconds:09}s"),
        }
    }
}

/// Prints the name of a version byte, also for unsupported versions.
pub(crate) struct VersionName(pub(crate) u8);

impl Display for VersionName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (Version::from_wire(self.0), self.0) {
            (Some(version), _) => write!(f, "{version}"),
            (None, 2) => f.write_str("1.1"),
            (None, 3) => f.write_str("1.2"),
            (None, 5) => f.write_str("1.4"),
            (None, 6) => f.write_str("1.5"),
            (None, other) => write!(f, "{other:#04x}"),
        }
    }
}
