//! What can be asked of an emulated network: the words of the prompt.
//!
//! The table [`COMMANDS`] is the help and the usage that errors tell; [`Request::parse`] is the only
//! reader of words, from the prompt, a pipe and the command line alike. Names are checked here, so
//! that whoever carries a request out has nothing to check.

use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_emulator::topology::{HostId, MAX_PORT, Node, SwitchId, Topology};

use crate::cli::config::values;

/// Most echo requests of one `ping`.
const MAX_PINGS: u64 = 10_000;

/// Echo requests of a `ping` that does not say how many.
const DEFAULT_PINGS: u16 = 3;

/// Most pairs of one `pingall`. All pairs of a thousand hosts are a million, and would take an hour.
const MAX_PAIRS: u64 = 100_000;

/// Shortest and longest `iperf` or `wait`.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

/// How long an `iperf` that does not say sends.
const DEFAULT_IPERF: Duration = Duration::from_secs(5);

/// A command of the prompt, as the help shows it.
pub(super) struct CommandHelp {
    pub(super) name: &'static str,
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
}

const fn command(name: &'static str, arguments: &'static str, about: &'static str) -> CommandHelp {
    CommandHelp { name, arguments, about }
}

/// All commands, in the order in which the help lists them.
pub(super) const COMMANDS: &[CommandHelp] = &[
    command("ping", "HOST HOST [COUNT]", "echo requests, five a second; 3 if not said"),
    command(
        "pingall",
        "[--pairs COUNT]",
        "one echo request for each pair of hosts, or for so many random pairs",
    ),
    command(
        "iperf",
        "HOST HOST [TIME]",
        "a TCP-like stream from the first host to the second; 5 s if not said",
    ),
    command(
        "link",
        "down|up NAME NAME",
        "take the links between two switches, or a switch and a host, down or up",
    ),
    command("move", "HOST SWITCH[:PORT]", "plug a host into another port; it tells everybody"),
    command("restart", "SWITCH [empty]", "let a switch connect anew, with its flows or without"),
    command("dump-flows", "[SWITCH]", "the flows of a switch, or of all"),
    command(
        "dump-ports",
        "[SWITCH]",
        "the ports of a switch, or of all: link, packets, bytes, drops",
    ),
    command("switches", "", "all switches, and how their connections are"),
    command("hosts", "", "all hosts: addresses, and where they are plugged in"),
    command("links", "", "all links, and whether they are up"),
    command("wait", "TIME", "let the network run; for scripts"),
    command("help", "", "this list"),
    command("quit", "", "end; so does Ctrl-D"),
];

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    Ping {
        from: HostId,
        to: HostId,
        count: u16,
    },
    /// All pairs, or so many random ones.
    PingAll {
        pairs: Option<usize>,
    },
    Iperf {
        from: HostId,
        to: HostId,
        time: Duration,
    },
    /// All links between these two.
    Link {
        up: bool,
        ends: [Node; 2],
    },
    Move {
        host: HostId,
        to: SwitchId,
        port: Option<u32>,
    },
    Restart {
        switch: SwitchId,
        keep_tables: bool,
    },
    DumpFlows(Option<SwitchId>),
    DumpPorts(Option<SwitchId>),
    Switches,
    Hosts,
    Links,
    Wait(Duration),
    Help,
    Quit,
}

impl Request {
    /// Reads the words of one line. What follows a `#` is a comment; None is an empty line.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub(super) fn parse(line: &str, topology: &Topology) -> Result<Option<Request>, String> {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((name, arguments)) = words.split_first() else { return Ok(None) };
        let name = if *name == "exit" { "quit" } else { name };
        let command = COMMANDS.iter().find(|command| command.name == name);
        let command = command.ok_or_else(|| {
            let names = COMMANDS.iter().map(|command| command.name);
            format!("no command {name:?}{}; `help` lists all", did_you_mean(name, names))
        })?;
        Words { command, topology }.read(arguments).map(Some)
    }
}

/// The arguments of a command are read with these at hand.
struct Words<'t> {
    command: &'static CommandHelp,
    topology: &'t Topology,
}

impl Words<'_> {
    fn read(&self, arguments: &[&str]) -> Result<Request, String> {
        Ok(match (self.command.name, arguments) {
            ("ping", [from, to]) => self.ping(from, to, DEFAULT_PINGS)?,
            ("ping", [from, to, count]) => self.ping(from, to, self.number(count, MAX_PINGS)?)?,
            ("pingall", []) => self.ping_all()?,
            ("pingall", ["--pairs", pairs]) => {
                Request::PingAll { pairs: Some(self.number(pairs, MAX_PAIRS)?) }
            }
            ("iperf", [from, to]) => self.iperf(from, to, DEFAULT_IPERF)?,
            ("iperf", [from, to, time]) => self.iperf(from, to, self.time(time)?)?,
            ("link", ["down", a, b]) => self.link(false, a, b)?,
            ("link", ["up", a, b]) => self.link(true, a, b)?,
            ("move", [host, place]) => self.place(host, place)?,
            ("restart", [switch]) => {
                Request::Restart { switch: self.switch(switch)?, keep_tables: true }
            }
            ("restart", [switch, "empty"]) => {
                Request::Restart { switch: self.switch(switch)?, keep_tables: false }
            }
            ("dump-flows", []) => Request::DumpFlows(None),
            ("dump-flows", [switch]) => Request::DumpFlows(Some(self.switch(switch)?)),
            ("dump-ports", []) => Request::DumpPorts(None),
            ("dump-ports", [switch]) => Request::DumpPorts(Some(self.switch(switch)?)),
            ("switches", []) => Request::Switches,
            ("hosts", []) => Request::Hosts,
            ("links", []) => Request::Links,
            ("wait", [time]) => Request::Wait(self.time(time)?),
            ("help", []) => Request::Help,
            ("quit", []) => Request::Quit,
            _ => return Err(self.usage()),
        })
    }

    fn usage(&self) -> String {
        let CommandHelp { name, arguments, .. } = self.command;
        format!("it is: {}", format!("{name} {arguments}").trim_end())
    }

    fn ping(&self, from: &str, to: &str, count: u16) -> Result<Request, String> {
        let (from, to) = self.two_hosts(from, to)?;
        Ok(Request::Ping { from, to, count })
    }

    fn ping_all(&self) -> Result<Request, String> {
        let hosts = self.topology.hosts().len();
        let pairs = (hosts * hosts.saturating_sub(1)) as u64;
        if pairs > MAX_PAIRS {
            return Err(format!(
                "{hosts} hosts are {pairs} pairs, and {MAX_PAIRS} are the most at a time; \
                 choose some at random: pingall --pairs 200"
            ));
        }
        Ok(Request::PingAll { pairs: None })
    }

    fn iperf(&self, from: &str, to: &str, time: Duration) -> Result<Request, String> {
        let (from, to) = self.two_hosts(from, to)?;
        Ok(Request::Iperf { from, to, time })
    }

    fn link(&self, up: bool, a: &str, b: &str) -> Result<Request, String> {
        let ends = [self.node(a)?, self.node(b)?];
        Ok(Request::Link { up, ends })
    }

    fn place(&self, host: &str, place: &str) -> Result<Request, String> {
        let (switch, port) = match place.split_once(':') {
            None => (place, None),
            Some((switch, port)) => (switch, Some(self.number(port, MAX_PORT.into())?)),
        };
        Ok(Request::Move { host: self.host(host)?, to: self.switch(switch)?, port })
    }

    fn two_hosts(&self, from: &str, to: &str) -> Result<(HostId, HostId), String> {
        let (a, b) = (self.host(from)?, self.host(to)?);
        if a == b {
            return Err(format!("{from} and {to} are the same host; name two"));
        }
        Ok((a, b))
    }

    fn host(&self, name: &str) -> Result<HostId, String> {
        match self.topology.node(name) {
            Some(Node::Host(id)) => Ok(id),
            Some(Node::Switch(_)) => Err(format!("{name} is a switch, and this wants a host")),
            None => {
                let names = self.topology.hosts().iter().map(|host| &*host.name);
                Err(format!("no host {name:?}{}; `hosts` lists all", did_you_mean(name, names)))
            }
        }
    }

    fn switch(&self, name: &str) -> Result<SwitchId, String> {
        match self.topology.node(name) {
            Some(Node::Switch(id)) => Ok(id),
            Some(Node::Host(_)) => Err(format!("{name} is a host, and this wants a switch")),
            None => {
                let names = self.topology.switches().iter().map(|switch| &*switch.name);
                let hint = did_you_mean(name, names);
                Err(format!("no switch {name:?}{hint}; `switches` lists all"))
            }
        }
    }

    fn node(&self, name: &str) -> Result<Node, String> {
        self.topology.node(name).ok_or_else(|| {
            let switches = self.topology.switches().iter().map(|switch| &*switch.name);
            let hosts = self.topology.hosts().iter().map(|host| &*host.name);
            let hint = did_you_mean(name, switches.chain(hosts));
            format!("no switch or host {name:?}{hint}; `links` lists all links")
        })
    }

    fn number<T: TryFrom<u64>>(&self, word: &str, most: u64) -> Result<T, String> {
        let wrong = |expected| format!("{word:?} cannot be; give {expected} ({})", self.usage());
        values::number(word, 1..=most).map_err(wrong)
    }

    fn time(&self, word: &str) -> Result<Duration, String> {
        let wrong = |expected| format!("{word:?} cannot be; give {expected} ({})", self.usage());
        values::time(word, TIMES).map_err(wrong)
    }
}

/// " (did you mean h1?)", if one of the names is much like the word.
fn did_you_mean<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    values::nearest(word, &names)
        .map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

#[cfg(test)]
mod tests {
    use bellrock_emulator::topology::{single, tree};

    use super::*;

    fn parse(line: &str) -> Result<Option<Request>, String> {
        Request::parse(line, &tree(2, 3).build().unwrap())
    }

    fn host(number: u32) -> HostId {
        HostId(number - 1)
    }

    #[test]
    fn words_become_requests() {
        let ping = |count| Request::Ping { from: host(1), to: host(9), count };
        for (line, request) in [
            ("ping h1 h9", ping(3)),
            ("  ping\th1 h9 7  # seven times", ping(7)),
            ("pingall", Request::PingAll { pairs: None }),
            ("pingall --pairs 200", Request::PingAll { pairs: Some(200) }),
            (
                "iperf h9 h1 500ms",
                Request::Iperf { from: host(9), to: host(1), time: Duration::from_millis(500) },
            ),
            ("move h1 s4:9", Request::Move { host: host(1), to: SwitchId(3), port: Some(9) }),
            ("restart s2 empty", Request::Restart { switch: SwitchId(1), keep_tables: false }),
            ("dump-flows", Request::DumpFlows(None)),
            ("dump-flows s1", Request::DumpFlows(Some(SwitchId(0)))),
            (
                "link down s1 h2",
                Request::Link { up: false, ends: [Node::Switch(SwitchId(0)), Node::Host(host(2))] },
            ),
            ("wait 2", Request::Wait(Duration::from_secs(2))),
            ("exit", Request::Quit),
        ] {
            assert_eq!(parse(line), Ok(Some(request)), "{line}");
        }
        assert_eq!(parse(" # nothing"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (line, part) in [
            ("pign h1 h2", "no command \"pign\" (did you mean ping?); `help` lists all"),
            ("ping h1", "it is: ping HOST HOST [COUNT]"),
            ("ping h1 h1", "h1 and h1 are the same host; name two"),
            ("ping h1 s2", "s2 is a switch, and this wants a host"),
            ("ping h1 h99", "no host \"h99\" (did you mean h9?); `hosts` lists all"),
            (
                "ping h1 h2 0",
                "\"0\" cannot be; give a whole number from 1 to 10000 (it is: ping HOST HOST [COUNT])",
            ),
            ("pingall 200", "it is: pingall [--pairs COUNT]"),
            (
                "iperf h1 h2 -1",
                "\"-1\" cannot be; give a time from 1 ms to 3600 s, in ms, s or min",
            ),
            ("wait", "it is: wait TIME"),
            ("link down s2 s9", "no switch or host \"s9\""),
            ("link sideways s1 s2", "it is: link down|up NAME NAME"),
            ("move h1 s2:0", "\"0\" cannot be; give a whole number from 1 to"),
            ("dump-flows h1", "h1 is a host, and this wants a switch"),
            ("switches all", "it is: switches"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn a_million_pairs_are_to_be_chosen_from() {
        let topology = single(1024).build().unwrap();
        let error = Request::parse("pingall", &topology).unwrap_err();
        assert!(error.contains("pingall --pairs 200"), "{error}");
        assert!(Request::parse("pingall --pairs 200", &topology).is_ok());
    }

    #[test]
    fn the_help_names_what_is_read() {
        for command in COMMANDS {
            let line = format!("{} too many words for any of them", command.name);
            let error = parse(&line).unwrap_err();
            assert!(error.starts_with("it is: "), "{}: {error}", command.name);
        }
    }
}
