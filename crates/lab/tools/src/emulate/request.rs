//! Requests to an emulated network: the commands of the prompt.
//!
//! The table [`COMMANDS`] is the help, and the usage in errors. [`PromptRequest::parse`] reads the
//! words of the prompt, of a pipe and of the command line. It checks all names, so the code that
//! carries out a request need not check them.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_emulator::topology::{HostIndex, MAX_PORT, Node, SwitchIndex, TopologySpec};

use bellrock_config::values;

/// Maximum number of echo requests of one `ping`.
const MAX_PINGS: u64 = 10_000;

/// Default number of echo requests of a `ping`.
pub(super) const DEFAULT_PINGS: u16 = 3;

/// Maximum number of pairs of one `pingall`. A million would take an hour.
const MAX_PAIRS: u64 = 100_000;

/// Minimum and maximum duration of `iperf` and `wait`.
const TIMES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);

/// Default duration of `iperf`.
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
    command("ping", "HOST HOST [COUNT]", "send echo requests, five a second [default: 3]"),
    command(
        "pingall",
        "[--pairs COUNT]",
        "send one echo request for each pair of hosts, or for COUNT random pairs",
    ),
    command(
        "iperf",
        "HOST HOST [TIME]",
        "send a TCP-like stream from the first host to the second [default: 5s]",
    ),
    command(
        "link",
        "down|up NAME NAME",
        "cut or mend the links between two switches, or a switch and a host",
    ),
    command(
        "move",
        "HOST SWITCH[:PORT]",
        "plug a host into another port; it announces itself there",
    ),
    command("restart", "SWITCH [empty]", "restart a switch, with its flows or without"),
    command("dump-flows", "[SWITCH]", "list the flows of a switch, or of all"),
    command(
        "dump-ports",
        "[SWITCH]",
        "list the ports of a switch, or of all: link, packets, bytes, drops",
    ),
    command("switches", "", "list the switches and the state of their connections"),
    command("hosts", "", "list the hosts: addresses, and where they are plugged in"),
    command("links", "", "list the links, and whether they are up"),
    command("wait", "TIME", "let the network run for a while; for scripts"),
    command("help", "", "print this list"),
    command("quit", "", "end the network; so does Ctrl-D"),
];

/// Commands that can follow a host, as in Mininet: `h1 ping h2`.
pub(super) const HOST_COMMANDS: &[&str] = &["ping", "iperf"];

/// The usage of that form.
pub(super) const HOST_PING: &str = "HOST ping [-c COUNT] HOST";

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PromptRequest {
    /// To a host, or to any other address.
    Ping {
        from: HostIndex,
        to: Ipv4Addr,
        count: u16,
    },
    /// As `ping` on a host: a line for each answer; without a count, until it is stopped.
    HostPing {
        from: HostIndex,
        to: Ipv4Addr,
        count: Option<u16>,
    },
    /// All pairs, or this number of random ones.
    PingAll {
        pairs: Option<usize>,
    },
    Iperf {
        from: HostIndex,
        to: HostIndex,
        time: Duration,
    },
    /// All links between these two nodes.
    Link {
        up: bool,
        ends: [Node; 2],
    },
    Move {
        host: HostIndex,
        to: SwitchIndex,
        port: Option<u32>,
    },
    Restart {
        switch: SwitchIndex,
        keep_tables: bool,
    },
    DumpFlows(Option<SwitchIndex>),
    DumpPorts(Option<SwitchIndex>),
    Switches,
    Hosts,
    Links,
    Wait(Duration),
    Help,
    Quit,
}

impl PromptRequest {
    /// Reads one line. Text after `#` is a comment. Returns `None` for an empty line.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub(super) fn parse(
        line: &str,
        topology: &TopologySpec,
    ) -> Result<Option<PromptRequest>, String> {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((name, arguments)) = words.split_first() else { return Ok(None) };
        let name = if *name == "exit" { "quit" } else { name };
        let command = COMMANDS.iter().find(|command| command.name == name);
        if command.is_none() && matches!(topology.node(name), Some(Node::Host(_))) {
            return host_command(name, arguments, topology).map(Some);
        }
        let command = command.ok_or_else(|| {
            let names = COMMANDS.iter().map(|command| command.name);
            format!("no command {name:?}{}; `help` lists all", did_you_mean(name, names))
        })?;
        ArgumentWords { command, topology }.read(arguments).map(Some)
    }
}

/// Reads a command of a host, as in Mininet: `h1 ping h2`, `h1 ping -c 3 10.0.0.2`, `h1 iperf h2`.
fn host_command(
    host: &str,
    words: &[&str],
    topology: &TopologySpec,
) -> Result<PromptRequest, String> {
    let command = |name| {
        // Both names are in the table.
        COMMANDS.iter().find(|command| command.name == name).unwrap_or(&COMMANDS[0])
    };
    let ping = ArgumentWords { command: command("ping"), topology };
    let one = |to: &str, count: Option<&str>| {
        let (from, to) = ping.host_and_address(host, to)?;
        let count = count.map(|count| ping.number(count, MAX_PINGS)).transpose()?;
        Ok(PromptRequest::HostPing { from, to, count })
    };
    match words {
        ["ping", "-c", count, to] | ["ping", to, "-c", count] => one(to, Some(count)),
        ["ping", flag, to] | ["ping", to, flag] if flag.starts_with("-c") => {
            one(to, flag.strip_prefix("-c"))
        }
        ["ping", to] if !to.starts_with('-') => one(to, None),
        ["ping", ..] => Err(format!("usage: {HOST_PING}")),
        ["iperf", arguments @ ..] => {
            let words: Vec<&str> = [host].iter().chain(arguments).copied().collect();
            ArgumentWords { command: command("iperf"), topology }.read(&words)
        }
        _ => Err(format!("hosts have no shell here; {host} can ping and iperf: {HOST_PING}")),
    }
}

/// Reads the arguments of one command.
struct ArgumentWords<'t> {
    command: &'static CommandHelp,
    topology: &'t TopologySpec,
}

impl ArgumentWords<'_> {
    fn read(&self, arguments: &[&str]) -> Result<PromptRequest, String> {
        Ok(match (self.command.name, arguments) {
            ("ping", [from, to]) => self.ping(from, to, DEFAULT_PINGS)?,
            ("ping", [from, to, count]) => self.ping(from, to, self.number(count, MAX_PINGS)?)?,
            ("pingall", []) => self.ping_all()?,
            ("pingall", ["--pairs", pairs]) => {
                PromptRequest::PingAll { pairs: Some(self.number(pairs, MAX_PAIRS)?) }
            }
            ("iperf", [from, to]) => self.iperf(from, to, DEFAULT_IPERF)?,
            ("iperf", [from, to, time]) => self.iperf(from, to, self.time(time)?)?,
            ("link", ["down", a, b]) => self.link(false, a, b)?,
            ("link", ["up", a, b]) => self.link(true, a, b)?,
            ("move", [host, place]) => self.place(host, place)?,
            ("restart", [switch]) => {
                PromptRequest::Restart { switch: self.switch(switch)?, keep_tables: true }
            }
            ("restart", [switch, "empty"]) => {
                PromptRequest::Restart { switch: self.switch(switch)?, keep_tables: false }
            }
            ("dump-flows", []) => PromptRequest::DumpFlows(None),
            ("dump-flows", [switch]) => PromptRequest::DumpFlows(Some(self.switch(switch)?)),
            ("dump-ports", []) => PromptRequest::DumpPorts(None),
            ("dump-ports", [switch]) => PromptRequest::DumpPorts(Some(self.switch(switch)?)),
            ("switches", []) => PromptRequest::Switches,
            ("hosts", []) => PromptRequest::Hosts,
            ("links", []) => PromptRequest::Links,
            ("wait", [time]) => PromptRequest::Wait(self.time(time)?),
            ("help", []) => PromptRequest::Help,
            ("quit", []) => PromptRequest::Quit,
            _ => return Err(self.usage()),
        })
    }

    fn usage(&self) -> String {
        let CommandHelp { name, arguments, .. } = self.command;
        format!("usage: {}", format!("{name} {arguments}").trim_end())
    }

    fn ping(&self, from: &str, to: &str, count: u16) -> Result<PromptRequest, String> {
        let (from, to) = self.host_and_address(from, to)?;
        Ok(PromptRequest::Ping { from, to, count })
    }

    fn ping_all(&self) -> Result<PromptRequest, String> {
        let hosts = self.topology.hosts().len();
        let pairs = (hosts * hosts.saturating_sub(1)) as u64;
        if pairs > MAX_PAIRS {
            return Err(format!(
                "{hosts} hosts have {pairs} pairs, more than {MAX_PAIRS}; choose some at random: \
                 pingall --pairs 200"
            ));
        }
        Ok(PromptRequest::PingAll { pairs: None })
    }

    fn iperf(&self, from: &str, to: &str, time: Duration) -> Result<PromptRequest, String> {
        let (from, to) = self.two_hosts(from, to)?;
        Ok(PromptRequest::Iperf { from, to, time })
    }

    fn link(&self, up: bool, a: &str, b: &str) -> Result<PromptRequest, String> {
        let ends = [self.node(a)?, self.node(b)?];
        Ok(PromptRequest::Link { up, ends })
    }

    fn place(&self, host: &str, place: &str) -> Result<PromptRequest, String> {
        let (switch, port) = match place.split_once(':') {
            None => (place, None),
            Some((switch, port)) => (switch, Some(self.number(port, MAX_PORT.into())?)),
        };
        Ok(PromptRequest::Move { host: self.host(host)?, to: self.switch(switch)?, port })
    }

    fn two_hosts(&self, from: &str, to: &str) -> Result<(HostIndex, HostIndex), String> {
        let (a, b) = (self.host(from)?, self.host(to)?);
        if a == b {
            return Err(format!("{from} and {to} are the same host; name two"));
        }
        Ok((a, b))
    }

    /// Finds a host, and the address of another. An address that no host has is one too: an app may
    /// answer for it.
    fn host_and_address(&self, from: &str, to: &str) -> Result<(HostIndex, Ipv4Addr), String> {
        let address = |host: HostIndex| self.topology.hosts()[host.index()].ip;
        let host = self.host(from)?;
        let target = match to.parse::<Ipv4Addr>() {
            Ok(address) => address,
            Err(_) => address(self.host(to)?),
        };
        if target == address(host) {
            return Err(format!("{from} and {to} are the same host; name two"));
        }
        Ok((host, target))
    }

    /// Finds a host by its name or its address.
    fn host(&self, name: &str) -> Result<HostIndex, String> {
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            let none = || format!("no host has the address {address}; `hosts` lists all");
            return self.topology.host_by_ip(address).ok_or_else(none);
        }
        match self.topology.node(name) {
            Some(Node::Host(id)) => Ok(id),
            Some(Node::Switch(_)) => Err(format!("{name} is a switch; give a host")),
            None => {
                let names = self.topology.hosts().iter().map(|host| &*host.name);
                Err(format!("no host {name:?}{}; `hosts` lists all", did_you_mean(name, names)))
            }
        }
    }

    fn switch(&self, name: &str) -> Result<SwitchIndex, String> {
        match self.topology.node(name) {
            Some(Node::Switch(id)) => Ok(id),
            Some(Node::Host(_)) => Err(format!("{name} is a host; give a switch")),
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

    fn number<T: TryFrom<u64>>(&self, word: &str, maximum: u64) -> Result<T, String> {
        let wrong = |expected| format!("{word:?} is not valid; give {expected} ({})", self.usage());
        values::number(word, 1..=maximum).map_err(wrong)
    }

    fn time(&self, word: &str) -> Result<Duration, String> {
        let wrong = |expected| format!("{word:?} is not valid; give {expected} ({})", self.usage());
        values::time(word, TIMES).map_err(wrong)
    }
}

/// " (did you mean h1?)", if a name is similar to the word.
fn did_you_mean<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    values::nearest(word, &names)
        .map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

#[cfg(test)]
mod tests {
    use bellrock_emulator::topology::{single, tree};

    use super::*;

    fn parse(line: &str) -> Result<Option<PromptRequest>, String> {
        PromptRequest::parse(line, &tree(2, 3).build().unwrap())
    }

    fn address(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    fn host(number: u32) -> HostIndex {
        HostIndex(number - 1)
    }

    #[test]
    fn words_become_requests() {
        let ping = |count| PromptRequest::Ping { from: host(1), to: address(9), count };
        for (line, request) in [
            ("ping h1 h9", ping(3)),
            ("  ping\th1 h9 7  # seven times", ping(7)),
            ("pingall", PromptRequest::PingAll { pairs: None }),
            ("pingall --pairs 200", PromptRequest::PingAll { pairs: Some(200) }),
            (
                "iperf h9 h1 500ms",
                PromptRequest::Iperf {
                    from: host(9),
                    to: host(1),
                    time: Duration::from_millis(500),
                },
            ),
            (
                "move h1 s4:9",
                PromptRequest::Move { host: host(1), to: SwitchIndex(3), port: Some(9) },
            ),
            (
                "restart s2 empty",
                PromptRequest::Restart { switch: SwitchIndex(1), keep_tables: false },
            ),
            ("dump-flows", PromptRequest::DumpFlows(None)),
            ("dump-flows s1", PromptRequest::DumpFlows(Some(SwitchIndex(0)))),
            (
                "link down s1 h2",
                PromptRequest::Link {
                    up: false,
                    ends: [Node::Switch(SwitchIndex(0)), Node::Host(host(2))],
                },
            ),
            ("h1 ping h9", PromptRequest::HostPing { from: host(1), to: address(9), count: None }),
            (
                "h1 ping -c 2 h9",
                PromptRequest::HostPing { from: host(1), to: address(9), count: Some(2) },
            ),
            (
                "h1 ping -c2 h9",
                PromptRequest::HostPing { from: host(1), to: address(9), count: Some(2) },
            ),
            (
                "h1 ping h9 -c 2",
                PromptRequest::HostPing { from: host(1), to: address(9), count: Some(2) },
            ),
            (
                "h1 ping 10.9.9.9",
                PromptRequest::HostPing {
                    from: host(1),
                    to: Ipv4Addr::new(10, 9, 9, 9),
                    count: None,
                },
            ),
            (
                "h1 ping 10.0.0.9",
                PromptRequest::HostPing { from: host(1), to: address(9), count: None },
            ),
            (
                "h9 iperf h1 1s",
                PromptRequest::Iperf { from: host(9), to: host(1), time: Duration::from_secs(1) },
            ),
            ("wait 2", PromptRequest::Wait(Duration::from_secs(2))),
            ("exit", PromptRequest::Quit),
        ] {
            assert_eq!(parse(line), Ok(Some(request)), "{line}");
        }
        assert_eq!(parse(" # nothing"), Ok(None));
    }

    #[test]
    fn a_wrong_command_is_an_error_with_the_right_form() {
        for (line, part) in [
            ("pign h1 h2", "no command \"pign\" (did you mean ping?); `help` lists all"),
            ("ping h1", "usage: ping HOST HOST [COUNT]"),
            ("ping h1 h1", "h1 and h1 are the same host; name two"),
            ("ping h1 s2", "s2 is a switch; give a host"),
            ("ping h1 h99", "no host \"h99\" (did you mean h9?); `hosts` lists all"),
            (
                "ping h1 h2 0",
                "\"0\" is not valid; give a whole number from 1 to 10000 (usage: ping HOST HOST [COUNT])",
            ),
            ("pingall 200", "usage: pingall [--pairs COUNT]"),
            (
                "iperf h1 h2 -1",
                "\"-1\" is not valid; give a time from 1 ms to 3600 s, in ms, s, min or h",
            ),
            ("wait", "usage: wait TIME"),
            ("link down s2 s9", "no switch or host \"s9\""),
            ("link sideways s1 s2", "usage: link down|up NAME NAME"),
            ("move h1 s2:0", "\"0\" is not valid; give a whole number from 1 to"),
            ("dump-flows h1", "h1 is a host; give a switch"),
            ("switches all", "usage: switches"),
            ("h1 ping", "usage: HOST ping [-c COUNT] HOST"),
            ("h1 ping -x h2", "usage: HOST ping [-c COUNT] HOST"),
            ("h1 ping h1", "h1 and h1 are the same host"),
            ("h1 ping -c 0 h2", "\"0\" is not valid"),
            ("10.9.9.9 ping h1", "no command \"10.9.9.9\""),
            ("iperf h1 10.9.9.9", "no host has the address 10.9.9.9"),
            ("ping h1 10.0.0.1", "h1 and 10.0.0.1 are the same host"),
            ("h1 ifconfig", "hosts have no shell here; h1 can ping and iperf"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn a_million_pairs_are_to_be_chosen_from() {
        let topology = single(1024).build().unwrap();
        let error = PromptRequest::parse("pingall", &topology).unwrap_err();
        assert!(error.contains("pingall --pairs 200"), "{error}");
        assert!(PromptRequest::parse("pingall --pairs 200", &topology).is_ok());
    }

    #[test]
    fn the_help_names_what_is_read() {
        for command in COMMANDS {
            let line = format!("{} too many words for any of them", command.name);
            let error = parse(&line).unwrap_err();
            assert!(error.starts_with("usage: "), "{}: {error}", command.name);
        }
    }
}
