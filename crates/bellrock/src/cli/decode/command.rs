//! The command: its arguments, and what it prints.
//!
//! A line for each message, or with `--json` an object; for what could not be read a line with the error in its place,
//! and the next message all the same.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;

use bellrock_openflow::{
    DecodeError, FromSwitch, Header, Hello, Message as Decoded, MessageKind, ToSwitch, Version,
};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::capture::CaptureError;
use super::hex::{self, HexError};
use super::{Message, Problem, Sink, StreamId, read_capture};

/// The ports that controllers listen on: the one that IANA gave, and the one before that.
const PORTS: [u16; 2] = [6653, 6633];

/// Print the OpenFlow messages of a capture, or of lines of hex
///
/// Reads a pcap or pcapng file (TCP streams are put together again) or, when there is no FILE,
/// standard input; instead of a capture either can hold messages in hexadecimal, one a line. Prints
/// a line for each message. Bytes that are no message are told with what is wrong and where, and
/// the rest is read all the same.
///
/// Exit status: 0 when all could be read, 1 when something could not.
#[derive(Debug, Args)]
pub struct Decode {
    /// A pcap or pcapng file, or lines of hex; `-` is standard input
    file: Option<PathBuf>,

    /// A TCP port of the controller; several times for several
    #[arg(long = "port", value_name = "PORT", default_values_t = PORTS)]
    ports: Vec<u16>,

    /// Print an object a line
    #[arg(long)]
    json: bool,

    /// Print packets and payloads too, in hexadecimal (the objects of --json hold them anyway)
    #[arg(long)]
    data: bool,

    /// Who sent the messages; `auto` goes by the port, and for lines of hex by the message's type
    #[arg(long, value_name = "DIRECTION", default_value = "auto")]
    direction: Direction,
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// Whoever can.
    Auto,
    /// A switch.
    FromSwitch,
    /// A controller.
    ToSwitch,
}

/// Why the command could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there, or cannot be read.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Standard input or the file fails.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The capture is none, or is broken.
    #[error("{0}")]
    Capture(CaptureError),
    /// What was decoded cannot be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Messages that were printed.
    pub messages: u64,
    /// What could not be read.
    pub faults: u64,
}

/// Reads what the arguments name, and prints to standard output.
///
/// # Errors
/// [`Failure`]. What was read up to there has been printed. That the reader of the output has gone
/// (`| head`) is none.
pub fn run(arguments: &Decode) -> Result<Outcome, Failure> {
    let out = io::stdout().lock();
    let result = match &arguments.file {
        Some(path) if path.as_os_str() != "-" => {
            let open = |source| Failure::Open { path: path.clone(), source };
            decode(arguments, File::open(path).map_err(open)?, out)
        }
        _ => decode(arguments, io::stdin(), out),
    };
    match result {
        Err(Failure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(Outcome::default())
        }
        other => other,
    }
}

/// The first bytes of capture files: pcap with microseconds and with nanoseconds in both byte orders, and pcapng.
const MAGIC: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// Reads `input`, whatever it is, and prints to `out`.
pub(super) fn decode(
    arguments: &Decode,
    mut input: impl Read + Send,
    out: impl Write,
) -> Result<Outcome, Failure> {
    let mut first = Vec::with_capacity(MAGIC[0].len());
    input.by_ref().take(MAGIC[0].len() as u64).read_to_end(&mut first).map_err(Failure::Read)?;
    let is_capture = MAGIC.iter().any(|magic| first == magic);
    let input = io::Cursor::new(first).chain(input);
    let out = io::BufWriter::new(out);
    let mut printer = Printer { arguments, out, outcome: Outcome::default(), failed: None };
    let result = if is_capture {
        read_capture(input, &arguments.ports, &mut printer).map(drop).map_err(Failure::Capture)
    } else {
        printer.lines(BufReader::new(input))
    };
    let flushed = printer.out.flush();
    match printer.failed.map_or(flushed, Err) {
        Err(error) => Err(Failure::Write(error)),
        Ok(()) => result.map(|()| printer.outcome),
    }
}

/// Prints what comes. After a failed write nothing more is printed.
struct Printer<'a, W> {
    arguments: &'a Decode,
    out: W,
    outcome: Outcome,
    failed: Option<io::Error>,
}

/// Where a message was: what stands in front of its line, or in its object.
enum Place {
    Line(u64),
    Stream { stream: StreamId, seconds: u64, micros: u32, offset: u64 },
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Line(_) => Ok(()),
            Place::Stream { stream, seconds, micros, .. } => {
                write!(f, "{seconds}.{micros:06} {stream}: ")
            }
        }
    }
}

impl Place {
    /// The same, for an error: there it has to be found again.
    fn of_error(&self) -> String {
        match self {
            Place::Line(line) => format!("line {line}: "),
            Place::Stream { offset, .. } => format!("{self}message at offset {offset}: "),
        }
    }

    fn json(&self) -> Map<String, Value> {
        let object = match self {
            Place::Line(line) => json!({ "line": line }),
            Place::Stream { stream, seconds, micros, offset } => json!({
                "time": format!("{seconds}.{micros:06}"),
                "src": stream.src,
                "dst": stream.dst,
                "offset": offset,
            }),
        };
        match object {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

impl<W: Write> Printer<'_, W> {
    /// Reads messages in hexadecimal, one a line.
    fn lines(&mut self, input: impl io::BufRead) -> Result<(), Failure> {
        for line in hex::messages(input) {
            match line {
                Ok(line) => self.bytes(&Place::Line(line.number), None, &line.bytes),
                Err(HexError::Io { source, .. }) => return Err(Failure::Read(source)),
                Err(error) => self.fault(Map::new(), "", &error.to_string()),
            }
            if self.failed.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Decodes and prints one message.
    fn bytes(&mut self, place: &Place, sender: Option<Direction>, bytes: &[u8]) {
        let direction = match self.arguments.direction {
            Direction::Auto => sender.unwrap_or_else(|| direction_by_type(bytes)),
            given => given,
        };
        match (self.foreign_hello(place, bytes), direction) {
            (Some(done), _) => done,
            (None, Direction::FromSwitch) => self.result(place, FromSwitch::decode(bytes), bytes),
            (None, _) => self.result(place, ToSwitch::decode(bytes), bytes),
        }
    }

    /// A hello may be of any version; of those that are not spoken here, nothing else is read.
    fn foreign_hello(&mut self, place: &Place, bytes: &[u8]) -> Option<()> {
        let header = Header::read(bytes)?;
        let is_hello = header.kind == 0 && header.version != 0;
        if !is_hello || Version::from_wire(header.version).is_some() {
            return None;
        }
        match Hello::decode_any(bytes) {
            Ok((header, hello)) if self.arguments.json => {
                let version = header.version_name().to_string();
                let message =
                    json!({"version": version, "xid": header.xid, "type": "hello", "body": hello});
                self.object(place.json(), message);
            }
            Ok((header, hello)) => self.line(format_args!("{place}{}", hello.display(header))),
            Err(error) => {
                self.error(place, error, bytes);
                return Some(());
            }
        }
        self.outcome.messages += 1;
        Some(())
    }

    fn result<T>(&mut self, place: &Place, result: Result<Decoded<T>, DecodeError>, bytes: &[u8])
    where
        Decoded<T>: std::fmt::Display + serde::Serialize,
    {
        match result {
            Ok(message) if self.arguments.json => match serde_json::to_value(&message) {
                Ok(value) => self.object(place.json(), value),
                Err(error) => {
                    return self.fault(place.json(), &place.of_error(), &error.to_string());
                }
            },
            Ok(message) if self.arguments.data => self.line(format_args!("{place}{message:#}")),
            Ok(message) => self.line(format_args!("{place}{message}")),
            Err(error) => return self.error(place, error, bytes),
        }
        self.outcome.messages += 1;
    }

    /// What is wrong with a message, and the start of its bytes.
    fn error(&mut self, place: &Place, error: DecodeError, bytes: &[u8]) {
        /// Bytes of the message that are shown with the error: its header and a little more.
        const SHOWN: usize = 16;
        let mut object = place.json();
        object.insert("at".into(), error.offset.into());
        object.insert("answer".into(), error.answer.to_string().into());
        let mut text = format!("{error} ({}):", error.answer);
        for byte in bytes.iter().take(SHOWN) {
            text.push_str(&format!(" {byte:02x}"));
        }
        if bytes.len() > SHOWN {
            text.push_str(&format!(" ... ({} bytes)", bytes.len()));
        }
        self.fault(object, &place.of_error(), &text);
    }

    fn fault(&mut self, mut object: Map<String, Value>, place: &str, what: &str) {
        self.outcome.faults += 1;
        if self.arguments.json {
            object.insert("error".into(), what.into());
            self.line(format_args!("{}", Value::Object(object)));
        } else {
            self.line(format_args!("error: {place}{what}"));
        }
    }

    /// The message's own fields behind those of its place.
    fn object(&mut self, mut object: Map<String, Value>, message: Value) {
        if let Value::Object(fields) = message {
            object.extend(fields);
        }
        self.line(format_args!("{}", Value::Object(object)));
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{text}").err();
        }
    }
}

impl<W: Write> Sink for Printer<'_, W> {
    fn message(&mut self, message: Message<'_>) {
        let ports = &self.arguments.ports;
        let Message { stream, time, offset, bytes } = message;
        let sender = match (ports.contains(&stream.src.port()), ports.contains(&stream.dst.port()))
        {
            (true, false) => Some(Direction::ToSwitch),
            (false, true) => Some(Direction::FromSwitch),
            _ => None,
        };
        let (seconds, micros) = (time.as_secs(), time.subsec_micros());
        self.bytes(&Place::Stream { stream, seconds, micros, offset }, sender, bytes);
    }

    fn problem(&mut self, problem: Problem) {
        self.fault(Map::new(), "", &problem.to_string());
    }
}

/// Who sends messages of this type. Those that both send read the same both ways.
fn direction_by_type(bytes: &[u8]) -> Direction {
    let kind = Header::read(bytes).and_then(|header| {
        MessageKind::from_wire(Version::from_wire(header.version)?, header.kind)
    });
    match kind {
        Some(
            MessageKind::FeaturesReply
            | MessageKind::GetConfigReply
            | MessageKind::PacketIn
            | MessageKind::FlowRemoved
            | MessageKind::PortStatus
            | MessageKind::MultipartReply
            | MessageKind::BarrierReply
            | MessageKind::QueueGetConfigReply
            | MessageKind::RoleReply
            | MessageKind::GetAsyncReply,
        ) => Direction::FromSwitch,
        _ => Direction::ToSwitch,
    }
}
