//! The command `bellrock decode`: its arguments and its output.
//!
//! Prints a line for each message, or an object with `--json`. If a message cannot be read, a line
//! with the error takes its place, and reading goes on.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use bellrock_openflow::{
    DecodeError, FromSwitch, Header, Hello, Message as Decoded, Strictness, ToSwitch, Version,
};
use clap::{Args, ValueEnum};
use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value, json};

use super::capture::CaptureError;
use super::clock::{PrintedTime, TimeFormat};
use super::filter::{Fit, HeldMessage, HeldMessages, MessageFilter};
use super::find::USUAL_PORTS;
use super::headers::Headers;
use super::hex::{self, HexError};
use super::peers::{Peers, Sender, only_sender};
use super::{CaptureProblem, CaptureSummary, Sink, StreamId, StreamMessage, read_capture};

/// Print the OpenFlow messages of a capture, or of lines of hex
///
/// Finds the connections that carry OpenFlow on any port. Prints a line for each message, and for
/// its packet. What cannot be read is reported with its place, and the rest is still read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DecodeArgs {
    /// A pcap or pcapng file, also .gz, or lines of hex; `-` is standard input
    file: Option<PathBuf>,

    #[command(flatten)]
    filter: MessageFilter,

    /// Only connections with this TCP port; several times for several
    ///
    /// Default: connections with a hello from both ends, and those on ports 6653 and 6633.
    #[arg(long = "port", value_name = "PORT")]
    ports: Vec<u16>,

    /// Origin of times
    #[arg(long, value_name = "FROM", default_value = "relative")]
    time: TimeFormat,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    /// Print packets and payloads too, in hexadecimal (--json always has them)
    #[arg(long)]
    data: bool,

    /// Sender of the messages; `auto` decides by their types
    #[arg(long, value_name = "DIRECTION", default_value = "auto")]
    direction: HexDirection,
}

const EXAMPLES: &str = "\
Examples:
  tcpdump -i any -w channel.pcap port 6653        a capture of the switches' connections
  bellrock decode channel.pcap                    all messages in it
  bellrock decode channel.pcap.gz --type packet_in,packet_out --time absolute
  bellrock decode channel.pcap --switch a1        messages of one switch, by its datapath id
  tcpdump -i any -U -w - tcp | bellrock decode -  messages as they arrive
  echo 0100000800000001 | bellrock decode         lines of hex

Exit status: 0 if everything was read, 1 if something was not, or if no message was printed.";

/// Sender of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HexDirection {
    /// Decided by the type of each message.
    Auto,
    /// A switch.
    FromSwitch,
    /// A controller.
    ToSwitch,
}

/// Why the command could not go on.
#[derive(Debug, thiserror::Error)]
pub enum DecodeFailure {
    /// The file does not exist, or cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why it cannot be opened.
        source: io::Error,
    },
    /// Reading standard input or the file failed.
    #[error("cannot read: {0}")]
    Read(io::Error),
    /// The capture is broken, or is none.
    #[error("{0}")]
    Capture(CaptureError),
    /// Writing the output failed.
    #[error("cannot write: {0}")]
    Write(io::Error),
    /// The input is neither a capture nor text.
    #[error("this is neither a capture (pcap, pcapng, also .gz) nor lines of hex")]
    NeitherNor,
    /// Lines of hex have no connections to filter by.
    #[error("lines of hex have no addresses: --switch and --connection need a capture")]
    NoConnections,
    /// There was nothing to print.
    #[error("{0}")]
    Nothing(String),
}

/// Result of the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeOutcome {
    /// Messages printed.
    pub messages: u64,
    /// Messages or bytes that could not be read.
    pub faults: u64,
}

/// Reads the input that the arguments name, and prints to standard output.
///
/// # Errors
/// [`DecodeFailure`], after printing what could be read. A closed output (`| head`) is no error.
pub fn run(arguments: &DecodeArgs) -> Result<DecodeOutcome, DecodeFailure> {
    let out = io::stdout().lock();
    let is_watched = out.is_terminal();
    let out = io::BufWriter::new(out);
    let result = match &arguments.file {
        Some(path) if path.as_os_str() != "-" => {
            let open = |source| DecodeFailure::Open { path: path.clone(), source };
            let file = File::open(path).map_err(open)?;
            if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
                return Err(open(io::ErrorKind::IsADirectory.into()));
            }
            decode(arguments, BufReader::new(file), out, is_watched)
        }
        _ => decode(arguments, io::stdin(), out, is_watched),
    };
    match result {
        Err(DecodeFailure::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(DecodeOutcome::default())
        }
        other => other,
    }
}

/// The first bytes of capture files: pcap with microseconds and with nanoseconds in both byte
/// orders, and pcapng.
const MAGIC: [[u8; MAGIC_BYTES]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x0a, 0x0d, 0x0d, 0x0a],
];
const MAGIC_BYTES: usize = 4;

/// Number of lines at the beginning with characters that do not belong to hexadecimal, after which
/// a text is taken for something else, such as a log.
const FOREIGN_LINES: usize = 3;

/// The first bytes of gzip files (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Returns the first bytes of an input, and the whole input.
fn peek<'i>(
    mut input: impl Read + Send + 'i,
) -> Result<(Vec<u8>, Box<dyn Read + Send + 'i>), DecodeFailure> {
    let mut first = Vec::with_capacity(MAGIC_BYTES);
    input.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut first).map_err(DecodeFailure::Read)?;
    Ok((first.clone(), Box::new(io::Cursor::new(first).chain(input))))
}

/// Detects the format of `input` and prints it to `out`. If `is_watched`, flushes each line.
pub(super) fn decode(
    arguments: &DecodeArgs,
    input: impl Read + Send,
    out: impl Write,
    is_watched: bool,
) -> Result<DecodeOutcome, DecodeFailure> {
    let (mut first, mut input) = peek(input)?;
    if first.starts_with(&GZIP) {
        (first, input) = peek(MultiGzDecoder::new(input))?;
    }
    let mut printer = Printer {
        arguments,
        out,
        is_watched,
        outcome: DecodeOutcome::default(),
        failed: None,
        peers: Peers::default(),
        held: HeldMessages::default(),
    };
    let result = if MAGIC.iter().any(|magic| first == magic) {
        printer.capture(input)
    } else if first.iter().any(|byte| !byte.is_ascii_graphic() && !byte.is_ascii_whitespace()) {
        Err(DecodeFailure::NeitherNor)
    } else if arguments.filter.needs_connections() {
        Err(DecodeFailure::NoConnections)
    } else {
        printer.lines(BufReader::new(input))
    };
    let flushed = printer.out.flush();
    match printer.failed.map_or(flushed, Err) {
        Err(error) => Err(DecodeFailure::Write(error)),
        Ok(()) => result.map(|()| printer.outcome),
    }
}

/// Prints messages and problems. After a failed write it prints nothing more.
struct Printer<'a, W> {
    arguments: &'a DecodeArgs,
    out: W,
    is_watched: bool,
    outcome: DecodeOutcome,
    failed: Option<io::Error>,
    peers: Peers,
    held: HeldMessages,
}

/// Position of a message: the start of its line, or fields of its object.
enum MessagePosition {
    Line(u64),
    Stream {
        stream: StreamId,
        format: TimeFormat,
        time: Duration,
        start: Duration,
        offset: u64,
        dpid: Option<u64>,
    },
}

impl std::fmt::Display for MessagePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MessagePosition::Line(_) => Ok(()),
            &MessagePosition::Stream { stream, format, time, start, .. } => {
                write!(f, "{} {stream}: ", PrintedTime { format, time, start })
            }
        }
    }
}

impl MessagePosition {
    /// The position in an error. It must be enough to find the message again.
    fn of_error(&self) -> String {
        match self {
            MessagePosition::Line(line) => format!("line {line}: "),
            MessagePosition::Stream { offset, .. } => format!("{self}message at offset {offset}: "),
        }
    }

    fn json(&self) -> Map<String, Value> {
        let object = match self {
            MessagePosition::Line(line) => json!({ "line": line }),
            &MessagePosition::Stream { stream, format, time, start, offset, dpid } => json!({
                "time": PrintedTime { format, time, start }.to_string(),
                "src": stream.src,
                "dst": stream.dst,
                "switch": dpid.map(|dpid| format!("{dpid:016x}")),
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
    /// Reads a capture.
    fn capture(&mut self, input: impl Read + Send) -> Result<(), DecodeFailure> {
        let summary =
            read_capture(input, &self.arguments.ports, self).map_err(DecodeFailure::Capture)?;
        let unknown = self.held.unknown();
        if unknown > 0 {
            let note =
                format_args!("{unknown} messages left out: the capture does not show their switch");
            self.note(note);
        }
        match self.outcome {
            DecodeOutcome { messages: 0, faults: 0 } if self.failed.is_none() => {
                Err(DecodeFailure::Nothing(self.why_nothing(&summary)))
            }
            _ => Ok(()),
        }
    }

    /// Explains why no message of a capture was printed.
    fn why_nothing(&self, summary: &CaptureSummary) -> String {
        let &CaptureSummary { packets, messages, ref ports, .. } = summary;
        if packets == 0 {
            return "the capture has no packets".to_owned();
        }
        if messages > 0 {
            return format!(
                "none of the {messages} messages matches --switch, --connection and --type"
            );
        }
        let seen: Vec<String> =
            ports.iter().map(|(port, segments)| format!("{port} ({segments})")).collect();
        let seen = match seen.as_slice() {
            [] => "no TCP at all".to_owned(),
            seen => format!("TCP ports and their packets: {}", seen.join(", ")),
        };
        match self.arguments.ports.as_slice() {
            [] => format!(
                "no OpenFlow in {packets} packets; {seen}\n--port PORT reads one of them anyway"
            ),
            _ => format!(
                "no OpenFlow on this port in {packets} packets; {seen}\nwithout --port, all are looked at"
            ),
        }
    }

    /// Reads messages in hexadecimal, one a line. If the first lines are none, the input is some
    /// other text.
    fn lines(&mut self, input: impl io::BufRead) -> Result<(), DecodeFailure> {
        let (mut read, mut foreign) = (0_u64, Vec::new());
        for line in hex::messages(input) {
            read += 1;
            match line {
                Err(error @ HexError::Character { .. }) if read == foreign.len() as u64 + 1 => {
                    foreign.push(error.to_string());
                    if foreign.len() == FOREIGN_LINES {
                        return Err(DecodeFailure::NeitherNor);
                    }
                    continue;
                }
                _ => foreign.drain(..).for_each(|error| self.fault(Map::new(), "", &error)),
            }
            match line {
                Ok(line) if self.arguments.filter.fits_type(&line.bytes) => {
                    self.bytes(&MessagePosition::Line(line.number), None, &line.bytes);
                }
                Ok(_) => {}
                Err(HexError::Io { source, .. }) => return Err(DecodeFailure::Read(source)),
                Err(error) => self.fault(Map::new(), "", &error.to_string()),
            }
            if self.failed.is_some() {
                break;
            }
        }
        foreign.iter().for_each(|error| self.fault(Map::new(), "", error));
        match self.outcome {
            DecodeOutcome { messages: 0, faults: 0 } => Err(DecodeFailure::Nothing(match read {
                0 => "no message: neither a capture nor a line of hex".to_owned(),
                read => format!("none of the {read} messages matches --type"),
            })),
            _ => Ok(()),
        }
    }

    /// Decodes and prints one message.
    fn bytes(&mut self, place: &MessagePosition, sender: Option<Sender>, bytes: &[u8]) {
        let is_from_switch = match self.arguments.direction {
            HexDirection::Auto => sender.or_else(|| only_sender(bytes)) == Some(Sender::Switch),
            HexDirection::FromSwitch => true,
            HexDirection::ToSwitch => false,
        };
        match self.foreign_hello(place, bytes) {
            Some(done) => done,
            None if is_from_switch => self.result(place, read(bytes, FromSwitch::decode_as), bytes),
            None => self.result(place, read(bytes, ToSwitch::decode_as), bytes),
        }
    }

    /// Prints a message of a capture. By now its switch is known, or will stay unknown.
    fn print(&mut self, message: StreamMessage<'_>, sender: Option<Sender>) {
        if !self.arguments.filter.fits_type(message.bytes) {
            return;
        }
        let StreamMessage { stream, time, start, offset, bytes } = message;
        let (format, dpid) = (self.arguments.time, self.peers.get(stream).and_then(|p| p.dpid));
        self.bytes(
            &MessagePosition::Stream { stream, format, time, start, offset, dpid },
            sender,
            bytes,
        );
    }

    /// Prints a hello of an unsupported version. Its other messages are not read.
    fn foreign_hello(&mut self, place: &MessagePosition, bytes: &[u8]) -> Option<()> {
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

    fn result<T: Carries>(
        &mut self,
        place: &MessagePosition,
        result: Result<Remarked<T>, DecodeError>,
        bytes: &[u8],
    ) where
        Decoded<T>: std::fmt::Display + serde::Serialize,
    {
        let (message, remark) = match result {
            Ok(read) => read,
            Err(error) => return self.error(place, error, bytes),
        };
        let remark = remark.map(|fault| format!("{fault} ({})", fault.answer));
        let packet = message.body.packet().filter(|packet| !packet.is_empty()).map(Headers);
        if self.arguments.json {
            match serde_json::to_value(&message) {
                Ok(value) => {
                    let mut object = place.json();
                    if let Some(packet) = packet {
                        object.insert("packet".into(), packet.to_string().into());
                    }
                    if let Some(remark) = remark {
                        object.insert("remark".into(), remark.into());
                    }
                    self.object(object, value);
                }
                Err(error) => {
                    return self.fault(place.json(), &place.of_error(), &error.to_string());
                }
            }
        } else {
            let (head, data) = match self.arguments.data {
                true => {
                    let text = format!("{message:#}");
                    let (head, data) = text.split_once('\n').unwrap_or((&text, ""));
                    (head.to_owned(), data.to_owned())
                }
                false => (message.to_string(), String::new()),
            };
            self.line(format_args!("{place}{head}"));
            if let Some(packet) = packet {
                self.line(format_args!("  {packet}"));
            }
            if !data.is_empty() {
                self.line(format_args!("{data}"));
            }
            if let Some(remark) = remark {
                self.line(format_args!("  remark: {remark}"));
            }
        }
        self.outcome.messages += 1;
    }

    /// Prints a note that is no fault.
    fn note(&mut self, what: std::fmt::Arguments<'_>) {
        match self.arguments.json {
            true => self.line(format_args!("{}", json!({ "note": what.to_string() }))),
            false => self.line(format_args!("note: {what}")),
        }
    }

    /// Prints the error of a message, and the first bytes of the message.
    fn error(&mut self, place: &MessagePosition, error: DecodeError, bytes: &[u8]) {
        /// Number of bytes shown with the error: the header and a little more.
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

    /// Prints an object: the fields of the position, then those of the message.
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
        if self.is_watched && self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }
}

impl<W: Write> Sink for Printer<'_, W> {
    fn message(&mut self, message: StreamMessage<'_>) {
        let StreamMessage { stream, time, start, offset, bytes } = message;
        let ports = match self.arguments.ports.as_slice() {
            [] => &USUAL_PORTS[..],
            ports => ports,
        };
        let by_port = match (ports.contains(&stream.src.port()), ports.contains(&stream.dst.port()))
        {
            (true, false) => Some(Sender::Controller),
            (false, true) => Some(Sender::Switch),
            _ => None,
        };
        let sender = self.peers.hear(stream, by_port, bytes);
        let fit = self.arguments.filter.fits_stream(stream, self.peers.get(stream));
        if fit == Fit::No {
            return drop(self.held.take(stream));
        }
        if fit == Fit::Later {
            let bytes = bytes.to_vec();
            return self.held.hold(HeldMessage { stream, time, start, offset, bytes });
        }
        for HeldMessage { stream, time, start, offset, bytes } in self.held.take(stream) {
            let message = StreamMessage { stream, time, start, offset, bytes: &bytes };
            let sender = self.peers.get(stream).and_then(|peer| peer.sender(stream));
            self.print(message, sender);
        }
        self.print(message, sender);
    }

    fn problem(&mut self, problem: CaptureProblem) {
        let is_wanted = problem.stream().is_none_or(|stream| {
            self.arguments.filter.fits_stream(stream, self.peers.get(stream)) != Fit::No
        });
        if is_wanted {
            self.fault(Map::new(), "", &problem.to_string());
        }
    }

    fn joined(&mut self, stream: StreamId) {
        if self.arguments.filter.fits_stream(stream, self.peers.get(stream)) != Fit::No {
            self.note(format_args!("{stream}: began before the capture"));
        }
    }

    fn wants_more(&self) -> bool {
        self.failed.is_none()
    }
}

/// Messages that may contain a packet.
trait Carries {
    /// The packet in the message.
    fn packet(&self) -> Option<&[u8]>;
}

impl Carries for FromSwitch<'_> {
    fn packet(&self) -> Option<&[u8]> {
        match self {
            FromSwitch::PacketIn(packet) => Some(&packet.data),
            _ => None,
        }
    }
}

impl Carries for ToSwitch<'_> {
    fn packet(&self) -> Option<&[u8]> {
        match self {
            ToSwitch::PacketOut(packet) => Some(&packet.data),
            _ => None,
        }
    }
}

/// A message, and an error in it that does not prevent reading.
type Remarked<T> = (Decoded<T>, Option<DecodeError>);

/// Reads a message strictly, or liberally if the strict reading fails.
fn read<'b, T>(
    bytes: &'b [u8],
    decode: impl Fn(&'b [u8], Strictness) -> Result<Decoded<T>, DecodeError>,
) -> Result<Remarked<T>, DecodeError> {
    match decode(bytes, Strictness::Strict) {
        Ok(message) => Ok((message, None)),
        Err(fault) => decode(bytes, Strictness::Liberal).map(|message| (message, Some(fault))),
    }
}
