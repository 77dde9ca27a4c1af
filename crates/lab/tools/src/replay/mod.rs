//! `bellrock replay`: plays a recording at a controller, or at switches.
//!
//! One thread plays all connections, with sockets that never wait: a step of a connection sends
//! what is due and handles what has come.

mod args;
mod as_controller;
mod as_switch;
mod compare;
mod load;
mod wire;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::Ending;
use crate::terminal::{Failure, print};
pub use args::ReplayArgs;
use as_controller::{ControllerScript, Greeting};
use as_switch::SwitchScript;
use compare::Comparison;
use load::{MAX_CONNECTIONS, RecordedConnection, load};
use wire::Wire;

/// Time to connect to a controller.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Pause if no connection has anything to do: so exact are the times.
const PAUSE: Duration = Duration::from_millis(1);

/// Silence after the last message at which a connection is over.
const QUIET: Duration = Duration::from_secs(1);

/// Time after the last message at which a connection is over in any case.
const MAX_LAST_ANSWERS: Duration = Duration::from_secs(10);

/// Result of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOutcome {
    /// Everything was played.
    is_whole: bool,
    /// Messages differ, and --check was given.
    differs: bool,
}

impl ReplayOutcome {
    /// Returns whether all was played, and nothing differs.
    pub fn is_success(self) -> bool {
        self.is_whole && !self.differs
    }
}

/// Plays a file, and prints what differs.
pub fn run(args: &ReplayArgs) -> Result<ReplayOutcome, Failure> {
    let mut recorded = load(&args.file).map_err(Failure::Failed)?;
    recorded.problems.iter().for_each(|problem| eprintln!("bellrock: {problem}"));
    let is_wanted = |connection: &RecordedConnection| {
        let dpid = connection.dpid.map(bellrock_api::Dpid);
        args.switches.is_empty() || dpid.is_some_and(|dpid| args.switches.contains(&dpid))
    };
    let all: Vec<_> = recorded.connections.iter().map(RecordedConnection::name).collect();
    recorded.connections.retain(is_wanted);
    if recorded.connections.is_empty() {
        let text = format!("no such switch; the recording has {}", all.join(", "));
        return Err(Failure::Wrong(text));
    }
    let ending = Ending::watch(|| {}, || {})?;
    let plays = match (&args.controller, args.listen) {
        (Some(controller), _) => play_switches(args, controller, recorded.connections, &ending)?,
        (None, Some(listen)) => play_controller(args, listen, recorded.connections, &ending)?,
        (None, None) => {
            let text = "give --controller to play switches, or --listen to play a controller";
            return Err(Failure::Wrong(text.to_owned()));
        }
    };
    report(args, &plays)
}

/// What is played on one connection.
enum Part {
    /// A switch, from this time after the start on.
    Waiting(SwitchScript, Duration),
    Switch(SwitchScript, Wire),
    /// A switch that has connected, whose datapath id is unknown.
    Greeting(Greeting, Wire),
    Controller(ControllerScript, Wire),
    /// Nobody has connected.
    Missing,
}

struct Play {
    name: String,
    /// Only one connection of a switch is open at a time.
    dpid: Option<u64>,
    part: Part,
    /// Why it was not played to its end.
    failed: Option<String>,
    is_over: bool,
}

impl Play {
    fn fail(&mut self, why: impl Into<String>) {
        self.failed.get_or_insert(why.into());
        self.is_over = true;
    }

    /// Numbers of messages that were sent, and of all.
    fn progress(&self) -> (u64, u64) {
        let (sent, total) = match &self.part {
            Part::Waiting(script, _) | Part::Switch(script, _) => (script.sent(), script.total()),
            Part::Controller(script, _) => (script.sent(), script.total()),
            Part::Greeting(..) | Part::Missing => (0, 0),
        };
        (sent as u64, total as u64)
    }

    fn comparison(&self) -> Option<&Comparison> {
        match &self.part {
            Part::Switch(script, _) => Some(&script.comparison),
            Part::Controller(script, _) => Some(&script.comparison),
            Part::Waiting(..) | Part::Greeting(..) | Part::Missing => None,
        }
    }

    /// Ends it when the other end is silent after the last message, or gone.
    fn check_end(&mut self) {
        let (finished, wire) = match &self.part {
            Part::Switch(script, wire) => (script.finished(), wire),
            Part::Controller(script, wire) => (script.finished(), wire),
            _ => return,
        };
        if let Some(finished) = finished {
            let is_quiet = finished.elapsed() >= QUIET && wire.heard.elapsed() >= QUIET;
            let is_late = finished.elapsed() >= MAX_LAST_ANSWERS;
            self.is_over = (is_quiet && wire.is_drained()) || is_late || wire.ended.is_some();
        } else if let Some(why) = wire.ended.clone() {
            self.failed = Some(why);
            self.is_over = true;
        }
        if self.is_over
            && let Part::Switch(_, wire) | Part::Controller(_, wire) = &self.part
        {
            wire.close();
        }
    }
}

fn play_switches(
    args: &ReplayArgs,
    controller: &str,
    recorded: Vec<RecordedConnection>,
    ending: &Ending,
) -> Result<Vec<Play>, Failure> {
    let wrong = |why: String| Failure::Wrong(format!("--controller {controller}: {why}"));
    let address = controller.to_socket_addrs().map_err(|error| wrong(error.to_string()))?.next();
    let address = address.ok_or_else(|| wrong("it has no address".to_owned()))?;
    let first = recorded.iter().filter_map(|one| Some(one.messages.first()?.time)).min();
    let first = first.unwrap_or_default();
    let play = |connection: RecordedConnection| {
        let start = connection.messages.first().map_or(first, |message| message.time);
        let script = SwitchScript::new(&connection);
        let part = Part::Waiting(script, start.saturating_sub(first));
        let (name, dpid) = (connection.name(), connection.dpid);
        Play { name, dpid, part, failed: None, is_over: false }
    };
    let mut plays: Vec<Play> = recorded.into_iter().map(play).collect();
    let (bar, began) = (bar(&plays), Instant::now());
    while plays.iter().any(|play| !play.is_over) && !ending.is_asked_for() {
        let mut moved = false;
        let mut open = BTreeSet::new();
        for play in plays.iter_mut().filter(|play| !play.is_over) {
            // Its earlier connection comes first in the list.
            let is_first = play.dpid.is_none_or(|dpid| open.insert(dpid));
            if let Part::Waiting(_, start) = &play.part
                && is_first
                && (args.fast || began.elapsed() >= *start)
            {
                connect(play, address);
                moved = true;
            }
            if let Part::Switch(script, wire) = &mut play.part {
                moved |= script.step(wire, args.fast);
            }
            play.check_end();
        }
        show(&bar, &plays);
        if !moved {
            thread::sleep(PAUSE);
        }
    }
    bar.finish_and_clear();
    interrupted(&mut plays, ending);
    Ok(plays)
}

fn connect(play: &mut Play, address: SocketAddr) {
    let wire = TcpStream::connect_timeout(&address, CONNECT_WAIT).and_then(Wire::new);
    match (wire, std::mem::replace(&mut play.part, Part::Missing)) {
        (Ok(mut wire), Part::Waiting(mut script, _)) => {
            script.greet(&mut wire);
            play.part = Part::Switch(script, wire);
        }
        (Err(error), _) => play.fail(format!("cannot connect to {address}: {error}")),
        (Ok(_), part) => play.part = part,
    }
}

fn play_controller(
    args: &ReplayArgs,
    listen: SocketAddr,
    recorded: Vec<RecordedConnection>,
    ending: &Ending,
) -> Result<Vec<Play>, Failure> {
    let cannot = |error: io::Error| Failure::Failed(format!("cannot listen on {listen}: {error}"));
    let listener = TcpListener::bind(listen).map_err(cannot)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let names: Vec<_> = recorded.iter().map(RecordedConnection::name).collect();
    let missing = |one: &RecordedConnection| {
        let (name, dpid, part) = (one.name(), one.dpid, Part::Missing);
        Play { name, dpid, part, failed: None, is_over: false }
    };
    let mut plays: Vec<Play> = recorded.iter().map(missing).collect();
    eprintln!("bellrock: waiting on {address} for {}", names.join(", "));
    let mut guests: Vec<Play> = Vec::new();
    let bar = bar(&plays);
    while plays.iter().any(|play| !play.is_over) && !ending.is_asked_for() {
        let mut moved = false;
        if guests.len() < MAX_CONNECTIONS
            && let Ok((stream, peer)) = listener.accept()
        {
            // A connection that has ended at once is nobody's.
            if let Ok(mut wire) = Wire::new(stream) {
                let greeting = Greeting::new(&recorded, &mut wire);
                let part = Part::Greeting(greeting, wire);
                let name = peer.to_string();
                guests.push(Play { name, dpid: None, part, failed: None, is_over: false });
            }
            moved = true;
        }
        for guest in &mut guests {
            moved |= greet(guest, &recorded, &mut plays);
        }
        guests.retain(|guest| !guest.is_over);
        for play in plays.iter_mut().filter(|play| !play.is_over) {
            if let Part::Controller(script, wire) = &mut play.part {
                moved |= script.step(wire, args.fast);
            }
            play.check_end();
        }
        show(&bar, &plays);
        if !moved {
            thread::sleep(PAUSE);
        }
    }
    bar.finish_and_clear();
    interrupted(&mut plays, ending);
    Ok(plays)
}

/// Finds out which switch has connected, and gives it the part of the recording.
fn greet(guest: &mut Play, recorded: &[RecordedConnection], plays: &mut [Play]) -> bool {
    let Part::Greeting(greeting, wire) = &mut guest.part else { return false };
    let (moved, found) = greeting.step(wire);
    if let Some(why) = wire.ended.take() {
        eprintln!("bellrock: {}: {why}", guest.name);
        guest.is_over = true;
    }
    let Some((dpid, version)) = found else { return moved };
    guest.is_over = true;
    let is_free =
        |place: &usize| plays.get(*place).is_some_and(|play| matches!(play.part, Part::Missing));
    let same = (0..recorded.len())
        .filter(is_free)
        .find(|place| recorded.get(*place).is_some_and(|one| one.dpid == Some(dpid)));
    let only = (recorded.len() == 1).then_some(0).filter(is_free);
    let Some(place) = same.or(only) else {
        eprintln!("bellrock: {}: switch {dpid:016x} is not in the recording", guest.name);
        return true;
    };
    let (Some(connection), Some(play)) = (recorded.get(place), plays.get_mut(place)) else {
        return true;
    };
    if connection.version != version {
        let recorded = connection.version;
        play.fail(format!("the switch speaks OpenFlow {version}, and the recording {recorded}"));
        return true;
    }
    if let Part::Greeting(_, wire) = std::mem::replace(&mut guest.part, Part::Missing) {
        play.part = Part::Controller(ControllerScript::new(connection), wire);
    }
    true
}

fn interrupted(plays: &mut [Play], ending: &Ending) {
    if ending.is_asked_for() {
        plays.iter_mut().filter(|play| !play.is_over).for_each(|play| play.fail("interrupted"));
    }
}

fn bar(plays: &[Play]) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(plays.iter().map(|play| play.progress().1).sum());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} messages, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, plays: &[Play]) {
    if bar.is_hidden() {
        return;
    }
    let (sent, total) =
        plays.iter().map(Play::progress).fold((0, 0), |(s, t), (a, b)| (s + a, t + b));
    bar.set_length(total);
    bar.set_position(sent);
}

/// Prints how each connection went.
fn report(args: &ReplayArgs, plays: &[Play]) -> Result<ReplayOutcome, Failure> {
    let mut outcome = ReplayOutcome { is_whole: true, differs: false };
    let mut text = String::new();
    for play in plays {
        let (sent, total) = play.progress();
        let differs = play.comparison().is_some_and(|comparison| !comparison.is_equal());
        text.push_str(&format!("{}: {sent} of {total} messages sent", play.name));
        if let Some(why) = &play.failed {
            outcome.is_whole = false;
            text.push_str(&format!("; it ended early: {why}"));
        }
        if let Part::Switch(script, _) = &play.part
            && script.refused > 0
        {
            text.push_str(&format!(
                "; requests that the recording does not answer: {}",
                script.refused
            ));
        }
        match play.comparison() {
            Some(comparison) if differs => {
                outcome.differs |= args.check;
                text.push_str("; the answers differ\n");
                text.push_str(&comparison.report());
            }
            Some(_) => text.push_str("; the answers are equal\n"),
            None => text.push('\n'),
        }
    }
    print(&text)?;
    Ok(outcome)
}

#[cfg(test)]
mod tests;
