//! `bellrock emulate`: an emulated network with real connections, and commands to test it.
//!
//! `bellrock-emulator` has the network. `prompt` reads, `request` parses and `answer` acts.

mod answer;
mod args;
mod complete;
mod history;
mod prompt;
mod request;

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use bellrock_emulator::live::{
    ConnectionState, LiveError, LiveNetwork, LiveSettings, ReconnectBackoff, SwitchTls,
};
use bellrock_emulator::topology::{NamedTopology, SwitchIndex, TopologySpec};

pub(super) use self::answer::{flow_count, link_ends, place};
use self::args::DEFAULT_PORT;
use self::complete::Names;
use self::prompt::{Input, Prompt, Saved};
use self::request::PromptRequest;
use crate::terminal::Ending;
use crate::terminal::Failure;
use crate::terminal::versions_of;
pub use args::EmulateArgs;

/// Queue length of links without one in the topology, in frames: the usual length of a host's
/// queue, and enough for the window of a stream.
const QUEUE_FRAMES: u32 = 1000;

/// Silence of all controllers after which the switches count as set up.
const QUIET: Duration = Duration::from_millis(100);

/// Maximum time to wait for that silence. Some controllers are never silent.
const QUIET_WAIT: Duration = Duration::from_secs(2);

/// Time to connect after which a message says what is missing.
const SAY_SO: Duration = Duration::from_millis(1500);

/// Time between two checks whether a wait is to end. A signal or a line ends it too.
const LOOK: Duration = Duration::from_millis(200);

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        Failure::Failed(error.to_string())
    }
}

/// Result of the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandsOutcome {
    Good,
    /// A ping was lost, or a command failed. That was printed.
    Bad,
}

/// Does what the command line says. Returns whether all succeeded. Failures have been printed.
pub fn run(args: &EmulateArgs) -> Result<bool, Failure> {
    let mut topology = topology(&args.topology, args.loop_free)?;
    topology.limit_links(args.bandwidth, QUEUE_FRAMES);
    let controllers = controllers(&args.controller)?;
    let command = match args.command.is_empty() {
        true => None,
        false => request(&args.command, &topology)?,
    };
    raise_file_limit();
    let mut settings = LiveSettings { controllers, ..LiveSettings::new(([0; 4], 0).into()) };
    settings.backoff = ReconnectBackoff {
        first: ReconnectBackoff::default().first.min(args.retry),
        maximum: args.retry,
    };
    if let (Some(certificate), Some(key), Some(ca)) =
        (&args.tls_certificate, &args.tls_key, &args.tls_ca)
    {
        let tls = SwitchTls::read(certificate, key, ca);
        settings.tls = Some(tls.map_err(|error| Failure::Wrong(error.to_string()))?);
    }
    settings.network.seed = args.seed;
    settings.network.versions = versions_of(args.version);
    let live = LiveNetwork::new(&topology, settings)?;
    let waker = live.waker();
    let terminal = Saved::now();
    let ending = Ending::watch(move || waker.wake(), move || terminal.give_back())?;
    let chance = fastrand::Rng::with_seed(args.seed);
    let mut emulator = Emulator { live, ending, wait: args.wait, chance, at_terminal: false };
    if !emulator.connect()? {
        return Ok(true);
    }
    let outcome = match command {
        Some(request) => emulator.answer(&request)?,
        None => emulator.prompt()?,
    };
    Ok(outcome == CommandsOutcome::Good)
}

/// Parses these words as a command.
fn request(words: &[String], topology: &TopologySpec) -> Result<Option<PromptRequest>, Failure> {
    PromptRequest::parse(&words.join(" "), topology).map_err(|wrong| {
        let is_flag = |word: &&String| word.starts_with("--") && *word != "--pairs";
        Failure::Wrong(match words.iter().find(is_flag) {
            Some(flag) => format!("{flag} stands behind the command; flags come before it"),
            None => wrong,
        })
    })
}

/// The topology with this name, or in this file.
pub(super) fn topology(text: &str, loop_free: bool) -> Result<TopologySpec, Failure> {
    let file = |error: &dyn std::fmt::Display| Failure::Wrong(format!("{text}: {error}"));
    match fs::read_to_string(text) {
        Ok(lines) => {
            let topology = TopologySpec::parse(&lines).map_err(|error| file(&error))?;
            if loop_free {
                topology.check_loop_free().map_err(|error| file(&error))?;
            }
            Ok(topology)
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !is_path(text) => {
            let built = text.parse().and_then(NamedTopology::build);
            let topology = built.map_err(|error| {
                Failure::Wrong(format!("{error}; there is no file of this name either"))
            })?;
            if loop_free {
                topology.check_loop_free().map_err(|error| {
                    Failure::Wrong(format!(
                        "{text}: {error}; `{text},loop-free` leaves such links out"
                    ))
                })?;
            }
            Ok(topology)
        }
        Err(error) => Err(file(&error)),
    }
}

/// Whether the text can only be the name of a file.
fn is_path(text: &str) -> bool {
    text.contains('/') || Path::new(text).extension().is_some()
}

fn controllers(names: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    names.iter().map(|name| controller(name)).collect()
}

/// The address of a controller: `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`.
fn controller(name: &str) -> Result<SocketAddr, Failure> {
    let has_port =
        name.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let full = if has_port { name.to_owned() } else { format!("{name}:{DEFAULT_PORT}") };
    let wrong = |reason: &dyn std::fmt::Display| {
        Failure::Wrong(format!(
            "{name} is no address of a controller ({reason}); give an address or a name, and a \
             port if it is not {DEFAULT_PORT}: 127.0.0.1:6653"
        ))
    };
    let mut addresses = full.to_socket_addrs().map_err(|error| wrong(&error))?;
    addresses.next().ok_or_else(|| wrong(&"it has no address"))
}

/// Raises the soft limit of file descriptors, often 1,024: a switch needs one per controller.
pub(super) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If that fails, connecting fails with an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// The network, and the state that commands need.
struct Emulator {
    live: LiveNetwork,
    ending: Ending,
    /// Time limit for switches to connect.
    wait: Duration,
    /// Chooses random pairs.
    chance: fastrand::Rng,
    /// Whether a user at a terminal sees the output and can stop a command.
    at_terminal: bool,
}

impl Emulator {
    /// Waits until all switches are connected and set up. Returns false if the command is to end.
    fn connect(&mut self) -> Result<bool, Failure> {
        let topology = self.live.network().topology();
        let (switches, hosts) = (topology.switches().len(), topology.hosts().len());
        let all = |live: &LiveNetwork| live.connected() == switches;
        let first = SAY_SO.min(self.wait);
        if !self.run_until(first, all)? && first < self.wait && !self.ending.is_asked_for() {
            eprintln!("bellrock: waiting for {}: {}", self.controllers(), self.trouble());
            self.run_until(self.wait - first, all)?;
        }
        if self.ending.is_asked_for() {
            return Ok(false);
        }
        if !all(&self.live) {
            return Err(Failure::Failed(self.not_connected()));
        }
        let took = self.live.elapsed().as_secs_f64();
        self.settle()?;
        let mut is_said = false;
        while !all(&self.live) && !self.ending.is_asked_for() {
            let left = self.wait.saturating_sub(self.live.elapsed());
            if left.is_zero() {
                return Err(Failure::Failed(self.refused()));
            }
            if !std::mem::replace(&mut is_said, true) {
                eprintln!("bellrock: {}\nthe switches try again", self.refused());
            }
            self.run_until(left, all)?;
            self.settle()?;
        }
        eprintln!(
            "bellrock: {switches} switches and {hosts} hosts; connected to {} in {took:.2} s",
            self.controllers(),
        );
        Ok(true)
    }

    /// Waits until the controllers have probably set the switches up.
    fn settle(&mut self) -> Result<(), Failure> {
        self.run_until(QUIET_WAIT, |live| live.quiet_for() >= QUIET)?;
        Ok(())
    }

    fn not_connected(&self) -> String {
        format!(
            "{} of {} switches are connected to {} after {} s: {}\n\
             is a controller running there? `bellrock run` starts one; --controller names another, --wait \
             gives it more time",
            self.live.connected(),
            self.live.network().topology().switches().len(),
            self.controllers(),
            self.wait.as_secs_f64(),
            self.trouble(),
        )
    }

    /// Why switches that had connected are not connected any more.
    fn refused(&self) -> String {
        let switches = self.live.network().topology().switches().len();
        format!(
            "{} closed the connections of {} of {switches} switches again: {}\n\
             has it switches with the same datapath ids already, of another network? `bellrock switches` and \
             `bellrock events` of that controller say so",
            self.controllers(),
            switches - self.live.connected(),
            self.trouble(),
        )
    }

    fn controllers(&self) -> String {
        let lines = self.live.lines(SwitchIndex(0));
        lines.map(|(at, _)| at.to_string()).collect::<Vec<_>>().join(" and ")
    }

    /// Why the first unconnected switch is not connected.
    fn trouble(&self) -> String {
        for (index, switch) in self.live.network().topology().switches().iter().enumerate() {
            for (_, state) in self.live.lines(SwitchIndex(index as u32)) {
                match state {
                    ConnectionState::Up(_) => {}
                    ConnectionState::Connecting => {
                        return format!("{} has connected, but got no hello", switch.name);
                    }
                    ConnectionState::Away { reason } => {
                        return format!("{}: {reason}", switch.name);
                    }
                }
            }
        }
        "all are connected".to_owned()
    }

    /// Carries out the lines of standard input until its end.
    fn prompt(&mut self) -> Result<CommandsOutcome, Failure> {
        let names = Names::of(self.live.network().topology());
        let prompt = Prompt::start(self.live.waker(), names)?;
        self.at_terminal = prompt.is_interactive();
        if self.at_terminal {
            self.ending.interrupt_only();
            eprintln!(
                "bellrock: `help` lists the commands, Tab completes; Ctrl-C stops a command, Ctrl-D ends"
            );
        }
        let mut outcome = CommandsOutcome::Good;
        prompt.resume();
        while !self.ending.is_asked_for() {
            let line = match prompt.input() {
                None => {
                    self.live.turn(LOOK)?;
                    // No command runs that a signal could interrupt. Behind a line, it is for the
                    // command that begins now.
                    if prompt.is_editing() {
                        self.ending.begin();
                    }
                    continue;
                }
                Some(Input::Line(line)) => line,
                Some(Input::GivenUp) => {
                    prompt.resume();
                    continue;
                }
                Some(Input::End) => break,
                Some(Input::Failed(error)) => return Err(cannot_read(&error)),
            };
            match PromptRequest::parse(&line, self.live.network().topology()) {
                Ok(None) => {}
                Ok(Some(PromptRequest::Quit)) => break,
                Ok(Some(request)) => {
                    if self.answer(&request)? == CommandsOutcome::Bad {
                        outcome = CommandsOutcome::Bad;
                    }
                    self.ending.begin();
                }
                Err(wrong) => {
                    eprintln!("bellrock: {wrong}");
                    outcome = CommandsOutcome::Bad;
                }
            }
            // A signal during the command ends the prompt.
            if !self.ending.is_asked_for() {
                prompt.resume();
            }
        }
        Ok(outcome)
    }
}

fn cannot_read(error: &io::Error) -> Failure {
    Failure::Failed(format!("commands cannot be read: {error}"))
}
