//! The effects of a step as text, for comparing two switches.
//!
//! A message prints as the crate `openflow` prints it, without what may differ: an xid that is its
//! request's, an error's copy of the request if it has the right length, names and addresses of
//! ports, and the time at which a timeout was noticed. Lists without a specified order are sorted.
//! Unused tables are omitted, and so is each switch's own port (`LOCAL`).

use bellrock_openflow::{ErrorMessage, FromSwitch, Message, ReplyBody};

use super::frame;
use super::subject::Heard;
use super::words::{self, Addresses};

/// The step: its xid and the bytes that were sent (none for a frame or time).
pub(crate) struct Asked<'a> {
    pub(crate) xid: u32,
    pub(crate) bytes: &'a [u8],
    pub(crate) controllers: usize,
    pub(crate) addresses: &'a Addresses,
    /// Ports whose link the conversation has taken down.
    pub(crate) links_down: &'a [u32],
}

/// The items of an outcome: messages in order, then frames by port.
pub(crate) fn items(heard: &Heard, asked: &Asked<'_>) -> Vec<String> {
    let to = |controller: usize| match asked.controllers {
        1 => String::new(),
        _ => format!("to {}: ", controller + 1),
    };
    let mut items = Vec::new();
    for controller in 0..asked.controllers {
        let own =
            heard.messages.iter().filter(|(of, bytes)| *of == controller && !is_later_part(bytes));
        let texts: Vec<String> = own.map(|(_, bytes)| message(bytes, asked)).collect();
        let told = texts
            .iter()
            .enumerate()
            .filter(|(i, text)| !is_said_again(text, &texts[i + 1..], asked));
        items.extend(told.map(|(_, text)| format!("{}{text}", to(controller))));
    }
    items.extend(
        heard.closed.iter().map(|controller| format!("{}connection closed", to(*controller))),
    );
    let mut frames = heard.frames.clone();
    frames.sort_by_key(|(port, _)| *port);
    items
        .extend(frames.iter().map(|(port, bytes)| format!("port {port}: {}", frame::print(bytes))));
    items
}

/// Whether it describes tables other than the first: there may be hundreds of equal ones.
fn is_later_part(bytes: &[u8]) -> bool {
    let Ok(Message { body: FromSwitch::MultipartReply(reply), .. }) = FromSwitch::decode(bytes)
    else {
        return false;
    };
    match reply.body {
        ReplyBody::TableFeatures(tables) => {
            tables.iter().next().is_some_and(|table| table.table != 0)
        }
        _ => false,
    }
}

/// Whether it is one of several messages about a changed link, but not the last. Open vSwitch sets
/// a dummy port down first, and then finds that it has no link.
fn is_said_again(text: &str, later: &[String], asked: &Asked<'_>) -> bool {
    let port = |text: &str| {
        text.strip_prefix("OFPT_PORT_STATUS: MODIFY ")?
            .split_once(':')
            .map(|(port, _)| port.to_owned())
    };
    asked.bytes.is_empty()
        && port(text).is_some_and(|own| later.iter().any(|text| port(text).as_ref() == Some(&own)))
}

fn message(bytes: &[u8], asked: &Asked<'_>) -> String {
    let message = match FromSwitch::decode(bytes) {
        Ok(message) => message,
        Err(error) => return format!("unreadable ({error}): {}", frame::hex_of_bytes(bytes)),
    };
    let text = match &message.body {
        FromSwitch::Error(error) => self::error(error, asked),
        FromSwitch::PacketIn(packet) => format!("{message}\n  {}", frame::print(&packet.data)),
        FromSwitch::FeaturesReply(_) => sorted(&message.to_string()),
        FromSwitch::EchoReply(payload) => {
            format!("{message} {:?}", String::from_utf8_lossy(payload))
        }
        FromSwitch::MultipartReply(reply) => match reply.body {
            ReplyBody::Table(_) => tables(&message.to_string()),
            ReplyBody::Flow(_)
            | ReplyBody::PortStats(_)
            | ReplyBody::PortDesc(_)
            | ReplyBody::Group(_)
            | ReplyBody::GroupDesc(_)
            | ReplyBody::Meter(_)
            | ReplyBody::MeterConfig(_)
            | ReplyBody::Queue(_) => sorted(&message.to_string()),
            ReplyBody::TableFeatures(_) => first(&message.to_string()),
            _ => message.to_string(),
        },
        _ => message.to_string(),
    };
    let text = without_head(&text, &message, asked);
    ports(&durations(&text), asked)
}

/// The name of the error, and how its copy of the request is wrong, if it is.
fn error(error: &ErrorMessage<'_>, asked: &Asked<'_>) -> String {
    let ErrorMessage::Standard { code, data } = error else {
        return format!("OFPT_ERROR: {error}");
    };
    let name = match (code.name(), code) {
        (Some(name), _) => name.to_owned(),
        (None, code) => format!("{code:?}"),
    };
    let wanted = asked.bytes.len().min(ErrorMessage::DATA_LEN);
    if data.len() >= wanted && asked.bytes.starts_with(data) {
        return format!("OFPT_ERROR: {name}");
    }
    format!(
        "OFPT_ERROR: {name} with {} bytes that are not the request's first {wanted}",
        data.len()
    )
}

/// Removes the version, and the xid if it is right.
fn without_head(text: &str, message: &Message<FromSwitch<'_>>, asked: &Asked<'_>) -> String {
    let unasked = matches!(
        message.body,
        FromSwitch::PacketIn(_) | FromSwitch::FlowRemoved(_) | FromSwitch::PortStatus(_)
    );
    let text = text.replacen(&format!(" (OF{})", message.version), "", 1);
    let text = text.replacen(&format!(" (xid={:#x})", message.xid), "", 1);
    let answered = !asked.bytes.is_empty() && message.xid == asked.xid;
    match (unasked, answered) {
        (true, _) | (_, true) => text,
        _ => format!("(xid={:#x}, not {:#x}) {text}", message.xid, asked.xid),
    }
}

/// The items of a list, each with its lines.
fn split(text: &str) -> (String, Vec<String>) {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default().to_owned();
    let mut items: Vec<String> = Vec::new();
    for line in lines {
        match items.last_mut() {
            Some(item) if line.starts_with("    ") => {
                item.push('\n');
                item.push_str(line);
            }
            _ => items.push(line.to_owned()),
        }
    }
    (head, items)
}

fn join(head: &str, items: &[String]) -> String {
    items.iter().fold(head.to_owned(), |text, item| text + "\n" + item)
}

fn sorted(text: &str) -> String {
    let (head, mut items) = split(text);
    // The emulated switch does not have Open vSwitch's LOCAL port, so it is ignored.
    let all = items.len();
    items.retain(|item| {
        !["  LOCAL(", "  port LOCAL:", "  port LOCAL queue"].iter().any(|own| item.starts_with(own))
    });
    items.sort();
    let (before, after) = (format!(": {all} "), format!(": {} ", items.len()));
    join(&head.replace(&before, &after), &items)
}

/// Keeps only tables that hold flows or have seen packets.
fn tables(text: &str) -> String {
    let (head, mut items) = split(text);
    items.retain(|item| !item.contains("active=0, lookup=0, matched=0"));
    join(&head, &items)
}

/// The first table of all, without fields that are not OpenFlow's basic ones.
fn first(text: &str) -> String {
    let (head, items) = split(text);
    let first = items.first().map(String::as_str).unwrap_or_default();
    let line = |line: &str| -> String {
        let (name, list) = line.split_once('=').unwrap_or((line, ""));
        let kept: Vec<&str> = words::split(list, |c| c == ',')
            .into_iter()
            .filter(|id| !id.starts_with("oxm("))
            .collect();
        if name.starts_with("    ") {
            format!("{name}={}", kept.join(","))
        } else {
            line.to_owned()
        }
    };
    let lines: Vec<String> = first.lines().map(line).collect();
    join(head.split(": ").next().unwrap_or_default(), &lines)
}

/// Shortens durations in seconds, and removes the duration of a timeout: switches notice it at
/// different times.
fn durations(text: &str) -> String {
    const MARK: &str = "duration=";
    let timeout = text.contains("reason=idle_timeout") || text.contains("reason=hard_timeout");
    let mut parts = text.split(MARK);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A switch that does not know it prints `?`, without a unit.
        match part.split_once('s').filter(|(duration, _)| duration.contains('.')) {
            Some((_, rest)) if timeout => told += &format!("{MARK}~{rest}"),
            Some((duration, rest)) => {
                told += &format!(
                    "{MARK}{}s{rest}",
                    duration.trim_end_matches('0').trim_end_matches('.')
                );
            }
            None => told += &format!("{MARK}{part}"),
        }
    }
    told
}

/// Replaces ports' names and addresses, which differ, by their numbers.
fn ports(text: &str, asked: &Asked<'_>) -> String {
    let mut told = Vec::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for (port, address) in asked.addresses {
            line = line.replace(&format!("addr={address}"), &format!("addr=(port {port})"));
            let start = format!("{port}(");
            let named =
                line.find(&start).filter(|at| !line[..*at].ends_with(|c: char| c.is_ascii_digit()));
            if let Some((at, end)) = named.and_then(|at| Some((at, line[at..].find("): addr=")?))) {
                line.replace_range(at..at + end + 1, &port.to_string());
                // A dummy port of Open vSwitch has no link of its own: the whole port goes down.
                if asked.links_down.contains(port) {
                    line = line.replace("config=PORT_DOWN, ", "config=0, ");
                }
            }
        }
        told.push(line);
    }
    told.join("\n")
}
