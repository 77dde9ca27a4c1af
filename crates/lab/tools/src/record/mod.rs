//! `bellrock record`: passes the bytes between switches and a controller on, and writes them to a
//! pcapng file.
//!
//! Each connection has two threads, one for each direction, that only read, pass a copy to the
//! writer, and write. The writer is the main thread. Its queue is bounded: a slow disk slows the
//! connections down, and nothing is missing in the file. A message is recorded before it is passed
//! on, so a reply stands behind its request.
//!
//! Nothing is changed on the way: versions, xids and echoes are between the switch and its
//! controller.

mod args;
mod file;
pub(super) mod pcapng;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use bellrock_openflow::frame;
use indicatif::{ProgressBar, ProgressStyle};

use super::decode::HIGHEST_VERSION;
use super::decode::peers::Sender;
use crate::terminal::Ending;
use crate::terminal::Failure;
use crate::terminal::amounts::ByteCount;
pub use args::RecordArgs;
use file::{Recording, Target, Written};
use pcapng::Flow;

/// Maximum number of connections. Further ones are closed at once.
const MAX_CONNECTIONS: usize = 512;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// Reads that wait for the writer. With their bytes, they take at most 32 MiB.
const QUEUE: usize = 512;

/// Maximum time to connect to the controller.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Time between two looks for a signal; the file is written at least so often.
const LOOK: Duration = Duration::from_millis(200);

/// Time after which accepting is tried again, if the process has too many files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What a connection reports to the writer.
enum Heard {
    Opened {
        id: u64,
        switch: SocketAddr,
        at: SocketAddr,
    },
    Bytes {
        id: u64,
        from: Sender,
        time: Duration,
        bytes: Vec<u8>,
    },
    /// This end sends nothing more.
    Ended {
        id: u64,
        from: Sender,
    },
    /// A problem of a connection, for the operator.
    Problem(String),
}

/// A connection in the eyes of the writer.
struct Recorded {
    flow: Flow,
    directions: [Direction; 2],
}

/// The unfinished message of a direction.
#[derive(Default)]
struct Direction {
    carry: Vec<u8>,
    /// Not OpenFlow: bytes are recorded as they come.
    is_foreign: bool,
    has_ended: bool,
}

/// Records until a signal comes.
pub fn run(args: &RecordArgs) -> Result<(), Failure> {
    let controller = resolve(&args.controller)?;
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| Failure::Failed(format!("cannot listen on {}: {error}", args.listen)))?;
    let address = listener.local_addr()?;
    let target = Target {
        path: args.path(),
        force: args.force,
        max_bytes: if args.path().is_some() { args.max_size } else { u64::MAX },
        keep: args.keep,
        comment: format!(
            "Switches at {address}, controller at {controller}. The controller's port is written as 6653."
        ),
    };
    let file = args.file.display();
    let recording = Recording::create(target).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => "; --force replaces it",
            _ => "",
        };
        Failure::Failed(format!("cannot record to {file}: {error}{hint}"))
    })?;
    let ending = Ending::watch(|| {}, || {})?;
    eprintln!("bellrock: switches at {address}, controller at {controller}, recording to {file}");
    let (sender, heard) = sync_channel(QUEUE);
    let accept = move || accept(&listener, controller, &sender);
    thread::Builder::new().name("acceptor".to_owned()).spawn(accept)?;
    let mut writer = Writer {
        recording,
        connections: BTreeMap::new(),
        messages: 0,
        flushed_messages: 0,
        bar: bar(),
        last_flush: Instant::now(),
    };
    writer.write(&heard, &ending);
    writer.bar.finish_and_clear();
    let files = match writer.recording.files() {
        1 => String::new(),
        n => format!(" in {n} files"),
    };
    eprintln!("bellrock: {} messages recorded{files}", writer.messages);
    match writer.recording.failure() {
        // As in `| head`.
        Some(_) if writer.nobody_reads() => Ok(()),
        Some(error) => Err(Failure::Failed(format!(
            "cannot write to {file}: {error}; the recording is incomplete"
        ))),
        None => Ok(()),
    }
}

/// The address of the controller.
fn resolve(controller: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: String| Failure::Wrong(format!("--controller {controller}: {why}"));
    let mut found = controller
        .to_socket_addrs()
        .map_err(|error| wrong(format!("{error}; give ADDRESS:PORT, such as 192.0.2.1:6653")))?;
    found.next().ok_or_else(|| wrong("it has no address".to_owned()))
}

fn bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Accepts switches. Ends with the process.
fn accept(listener: &TcpListener, controller: SocketAddr, heard: &SyncSender<Heard>) {
    let connections = Arc::new(AtomicUsize::new(0));
    for id in 0.. {
        let (switch, peer) = loop {
            match listener.accept() {
                Ok(accepted) => break accepted,
                Err(_) => thread::sleep(ACCEPT_AGAIN),
            }
        };
        if connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            connections.fetch_sub(1, Ordering::Relaxed);
            let text = format!("{peer} is refused: {MAX_CONNECTIONS} connections are open");
            if heard.send(Heard::Problem(text)).is_err() {
                return;
            }
            continue;
        }
        let (sender, count) = (heard.clone(), Arc::clone(&connections));
        let connect = move || {
            if let Err(error) = pass(id, switch, peer, controller, &sender) {
                // Nobody listens any more if the process ends.
                let _ = sender.send(Heard::Problem(format!("{peer}: {error}")));
            }
            count.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name(format!("switch-{id}")).spawn(connect).is_err() {
            connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Passes bytes of a connection both ways until both ends are closed.
fn pass(
    id: u64,
    switch: TcpStream,
    peer: SocketAddr,
    address: SocketAddr,
    heard: &SyncSender<Heard>,
) -> io::Result<()> {
    let at = switch.local_addr()?;
    let controller = TcpStream::connect_timeout(&address, CONNECT_WAIT).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot connect to the controller {address}: {error}"))
    })?;
    switch.set_nodelay(true)?;
    controller.set_nodelay(true)?;
    if heard.send(Heard::Opened { id, switch: peer, at }).is_err() {
        return Ok(());
    }
    let (from_switch, to_controller) = (switch.try_clone()?, controller.try_clone()?);
    let sender = heard.clone();
    let up = thread::Builder::new().name(format!("switch-{id}-up"));
    let up = up.spawn(move || copy(id, Sender::Switch, from_switch, to_controller, &sender))?;
    copy(id, Sender::Controller, controller, switch, heard);
    let _ = up.join();
    Ok(())
}

/// Copies one direction until its sender closes it, or its receiver takes no more.
fn copy(
    id: u64,
    from: Sender,
    mut source: TcpStream,
    mut to: TcpStream,
    heard: &SyncSender<Heard>,
) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let n = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let bytes = buffer.get(..n).unwrap_or_default();
        let heard_bytes = Heard::Bytes { id, from, time: now(), bytes: bytes.to_vec() };
        if heard.send(heard_bytes).is_err() || to.write_all(bytes).is_err() {
            // The other direction ends too: its sender gets no answers any more.
            let _ = source.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = heard.send(Heard::Ended { id, from });
}

/// Whether bytes can be the start of a message: they begin with a version.
fn is_openflow(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|version| (1..=HIGHEST_VERSION).contains(version))
}

/// Time since the Unix epoch.
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

struct Writer {
    recording: Recording,
    connections: BTreeMap<u64, Recorded>,
    messages: u64,
    /// Number of them when the file was written last.
    flushed_messages: u64,
    bar: ProgressBar,
    last_flush: Instant,
}

impl Writer {
    /// Records until a signal comes, or nobody reads standard output any more. A file that cannot
    /// be written ends the recording only: the switches need their controller.
    fn write(&mut self, heard: &Receiver<Heard>, ending: &Ending) {
        while !ending.is_asked_for() && !self.nobody_reads() {
            match heard.recv_timeout(LOOK) {
                Ok(heard) => self.handle(heard),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.last_flush.elapsed() >= LOOK {
                self.last_flush = Instant::now();
                self.flush();
                self.bar.set_message(format!(
                    "{} switches, {} messages, {}",
                    self.connections.len(),
                    self.messages,
                    ByteCount(self.recording.bytes())
                ));
                self.bar.tick();
            }
        }
        // What was read before the signal.
        heard.try_iter().take(QUEUE).for_each(|heard| self.handle(heard));
        self.flush();
    }

    fn flush(&mut self) {
        match self.recording.flush() {
            Written::Yes => self.flushed_messages = self.messages,
            written => self.note(written),
        }
    }

    /// Whether the reader of standard output has ended.
    fn nobody_reads(&self) -> bool {
        let failure = self.recording.failure();
        failure.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }

    fn report(&self, text: &str) {
        self.bar.suspend(|| eprintln!("bellrock: {text}"));
    }

    fn note(&mut self, written: Written) {
        match written {
            Written::Yes => {}
            Written::Full => self.report(
                "the file is full (--max-size): no more is recorded, and connections go on",
            ),
            Written::Failed => {
                self.messages = self.flushed_messages;
                if let Some(error) = self.recording.failure().filter(|_| !self.nobody_reads()) {
                    self.report(&format!(
                        "the file cannot be written ({error}): no more is recorded, and connections go on"
                    ));
                }
            }
            Written::No => {}
        }
    }

    fn handle(&mut self, heard: Heard) {
        let written = match heard {
            Heard::Problem(text) => {
                self.report(&text);
                return;
            }
            Heard::Opened { id, switch, at } => {
                let mut flow = Flow::new(switch, at);
                let written = self.recording.open(&mut flow, now());
                self.connections.insert(id, Recorded { flow, directions: Default::default() });
                written
            }
            Heard::Bytes { id, from, time, bytes } => return self.bytes(id, from, time, &bytes),
            Heard::Ended { id, from } => {
                let Some(Recorded { flow, directions }) = self.connections.get_mut(&id) else {
                    return;
                };
                let direction = &mut directions[from as usize];
                direction.has_ended = true;
                let rest = std::mem::take(&mut direction.carry);
                let of_rest = match rest.is_empty() {
                    true => Written::Yes,
                    false => self.recording.message(flow, now(), from, &rest),
                };
                let written = match of_rest {
                    Written::Yes => self.recording.close(flow, now(), from),
                    other => other,
                };
                if directions.iter().all(|direction| direction.has_ended) {
                    self.connections.remove(&id);
                }
                written
            }
        };
        self.note(written);
    }

    /// Records the whole messages, and keeps the rest.
    fn bytes(&mut self, id: u64, from: Sender, time: Duration, bytes: &[u8]) {
        let Some(Recorded { flow, directions }) = self.connections.get_mut(&id) else { return };
        let direction = &mut directions[from as usize];
        let mut carry = std::mem::take(&mut direction.carry);
        carry.extend_from_slice(bytes);
        let (mut used, mut became_foreign, mut worst) = (0, false, Written::Yes);
        while let Some(rest) = carry.get(used..).filter(|rest| !rest.is_empty()) {
            let length = match frame(rest) {
                _ if direction.is_foreign => rest.len(),
                Ok(Some(message)) if is_openflow(rest) => {
                    self.messages += 1;
                    message.bytes.len()
                }
                Ok(None) if is_openflow(rest) => break,
                _ => {
                    (direction.is_foreign, became_foreign) = (true, true);
                    rest.len()
                }
            };
            let message = rest.get(..length).unwrap_or(rest);
            match self.recording.message(flow, time, from, message) {
                Written::Yes => {}
                written => {
                    self.messages = self.messages.saturating_sub(1);
                    if worst == Written::Yes {
                        worst = written;
                    }
                }
            }
            used += length;
        }
        carry.drain(..used);
        direction.carry = carry;
        if became_foreign {
            let text = match bytes.first() {
                Some(22) => "this is TLS: it is passed on, and recorded as it is",
                _ => "this is no OpenFlow: it is passed on, and recorded as it is",
            };
            let text = format!("connection {id}: {text}");
            self.report(&text);
        }
        self.note(worst);
    }
}

#[cfg(test)]
mod tests;
