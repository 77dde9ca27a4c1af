//! Reads and writes topology files.
//!
//! One line declares one thing. For users: `docs/book/src/reference/topology-file.md`.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::units::{Delay, parse_delay};
use super::{
    HostNetwork, HostSpec, LinkShape, MAX_FILE_BYTES, Node, SwitchSpec, TopologyError,
    TopologyProblem, TopologySpec,
};

const SWITCH_KEYS: &str = "dpid, tables and capacity";
const HOST_KEYS: &str = "ip, mac, gateway and vlan";
const LINK_KEYS: &str = "delay, loss, bandwidth and queue";

impl TopologySpec {
    /// Reads a topology file. Lines may come in any order.
    ///
    /// # Errors
    /// The first wrong line and its problem. Links are read after switches and hosts.
    pub fn parse(text: &str) -> Result<TopologySpec, TopologyError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(TopologyProblem::TooLong.into());
        }
        let mut topology = TopologySpec::new();
        for (number, words) in lines(text) {
            topology.read_node(words, number).map_err(|error| error.or_at(number))?;
        }
        for (number, words) in lines(text) {
            topology.read_link(words, number).map_err(|error| error.or_at(number))?;
        }
        Ok(topology)
    }

    /// Reads a line that declares a switch or a host; ignores the line of a link.
    fn read_node<'t>(
        &mut self,
        mut words: impl Iterator<Item = &'t str>,
        line: usize,
    ) -> Result<(), TopologyError> {
        match words.next() {
            Some("switch") => {
                let name = words.next().ok_or(TopologyProblem::MissingName("switch"))?;
                let switch = read_switch(name, words)?;
                self.put_switch(switch, Some(line)).map(|_| ())
            }
            Some("host") => {
                let name = words.next().ok_or(TopologyProblem::MissingName("host"))?;
                let number = u32::try_from(self.hosts().len() + 1).unwrap_or(u32::MAX);
                let host = read_host(HostSpec::numbered(name, number), words)?;
                self.put_host(host, Some(line)).map(|_| ())
            }
            Some("link") | None => Ok(()),
            Some(other) => Err(TopologyProblem::UnknownStatement(other.to_owned()).into()),
        }
    }

    /// Reads a line that declares a link; ignores other lines.
    fn read_link<'t>(
        &mut self,
        mut words: impl Iterator<Item = &'t str>,
        line: usize,
    ) -> Result<(), TopologyError> {
        if words.next() != Some("link") {
            return Ok(());
        }
        let mut end = || {
            let word = words.next().filter(|word| !word.contains('='));
            self.read_end(word.ok_or(TopologyProblem::MissingEnd)?)
        };
        let (a, b) = (end()?, end()?);
        let shape = read_shape(words)?;
        self.put_link(a, b, shape, Some(line)).map(|_| ())
    }

    /// Reads an end: `s1:3`, or a name alone.
    fn read_end(&self, word: &str) -> Result<(Node, Option<u32>), TopologyProblem> {
        let (name, port) = match word.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (word, None),
        };
        let unknown = || TopologyProblem::UnknownNode { name: name.to_owned() };
        let node = self.node(name).ok_or_else(unknown)?;
        let Some(text) = port else { return Ok((node, None)) };
        let want = match node {
            Node::Switch(_) => "ports are numbered from 1 to 65279",
            Node::Host(_) => "a host has one port, which is not written",
        };
        match (node, number(text)) {
            (Node::Switch(_), Some(port)) => Ok((node, Some(port))),
            _ => Err(TopologyProblem::BadValue { key: "port", value: word.to_owned(), want }),
        }
    }
}

/// The lines with words, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, impl Iterator<Item = &str>)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace().peekable();
        words.peek().is_some().then_some((index + 1, words))
    })
}

fn read_switch<'t>(
    name: &str,
    words: impl Iterator<Item = &'t str>,
) -> Result<SwitchSpec, TopologyProblem> {
    let (mut dpid, mut tables, mut capacity) = (None, None, None);
    settings("switch", SWITCH_KEYS, words, |key, value| match key {
        "dpid" => {
            Some(set(&mut dpid, "dpid", value, "1 to 16 hexadecimal digits, like 0x1a", read_dpid))
        }
        "tables" => {
            let read = |text: &str| text.parse().ok().filter(|n| *n > 0);
            Some(set(&mut tables, "tables", value, "a switch has 1 to 255 tables", read))
        }
        "capacity" => {
            Some(set(&mut capacity, "capacity", value, "a number of flows in each table", number))
        }
        _ => None,
    })?;
    // As in Mininet, s7 has the datapath id 7.
    let numbered = || {
        let from = name.find(|c: char| c.is_ascii_digit())?;
        let digits = name[from..].split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let dpid = dpid.or_else(numbered).ok_or_else(|| TopologyProblem::NoDpid(name.to_owned()))?;
    Ok(SwitchSpec { name: name.to_owned(), dpid, tables, capacity })
}

fn read_host<'t>(
    host: HostSpec,
    words: impl Iterator<Item = &'t str>,
) -> Result<HostSpec, TopologyProblem> {
    let (mut ip, mut mac, mut gateway, mut vlan) = (None, None, None, None);
    settings("host", HOST_KEYS, words, |key, value| match key {
        "ip" => {
            let want = "an address of IPv4, like 10.0.0.1, or with its subnet, like 10.0.0.1/24";
            Some(set(&mut ip, "ip", value, want, read_ip))
        }
        "mac" => {
            let want = "an Ethernet address, like 00:1b:21:3c:9d:f8";
            Some(set(&mut mac, "mac", value, want, |text| text.parse().ok()))
        }
        "gateway" => {
            let want = "the address of the router, like 10.0.0.254";
            Some(set(&mut gateway, "gateway", value, want, |text| text.parse().ok()))
        }
        "vlan" => {
            let read = |text: &str| text.parse().ok().filter(|id| VLAN_IDS.contains(id));
            Some(set(&mut vlan, "vlan", value, "the id of a VLAN, 1 to 4094", read))
        }
        _ => None,
    })?;
    let (ip, prefix) = ip.unwrap_or((host.ip, None));
    let network = HostNetwork { prefix, gateway, vlan };
    if let Some(gateway) = gateway
        && (prefix.is_none() || gateway == ip || !network.are_together(ip, gateway))
    {
        return Err(TopologyProblem::BadValue {
            key: "gateway",
            value: gateway.to_string(),
            want: "another address of the host's subnet, which stands behind its address: ip=10.0.0.1/24",
        });
    }
    Ok(HostSpec { ip, mac: mac.unwrap_or(host.mac), network, ..host })
}

/// The ids that VLANs can have (IEEE 802.1Q, table 9-2).
const VLAN_IDS: RangeInclusive<u16> = 1..=4094;

/// Reads an address, and the length of its prefix if it has one.
fn read_ip(text: &str) -> Option<(Ipv4Addr, Option<u8>)> {
    let Some((ip, prefix)) = text.split_once('/') else { return Some((text.parse().ok()?, None)) };
    let prefix = prefix.parse().ok().filter(|bits| *bits <= HostNetwork::MAX_PREFIX)?;
    Some((ip.parse().ok()?, Some(prefix)))
}

fn read_shape<'t>(words: impl Iterator<Item = &'t str>) -> Result<LinkShape, TopologyProblem> {
    let (mut delay, mut loss, mut bandwidth, mut queue) = (None, None, None, None);
    settings("link", LINK_KEYS, words, |key, value| match key {
        "delay" => Some(set_said(&mut delay, "delay", value, parse_delay)),
        "loss" => Some(set_said(&mut loss, "loss", value, str::parse)),
        "bandwidth" => Some(set_said(&mut bandwidth, "bandwidth", value, str::parse)),
        "queue" => {
            let read = |text: &str| number(text).filter(|n| *n > 0);
            Some(set(&mut queue, "queue", value, "1 frame or more", read))
        }
        _ => None,
    })?;
    let other = LinkShape::default();
    Ok(LinkShape {
        delay: delay.unwrap_or(other.delay),
        loss: loss.unwrap_or(other.loss),
        bandwidth,
        queue: queue.unwrap_or(other.queue),
    })
}

/// Reads `key=value` words. `put` returns `None` for an unknown key.
fn settings<'t>(
    statement: &'static str,
    known: &'static str,
    words: impl Iterator<Item = &'t str>,
    mut put: impl FnMut(&str, &str) -> Option<Result<(), TopologyProblem>>,
) -> Result<(), TopologyProblem> {
    for word in words {
        let (key, value) =
            word.split_once('=').ok_or_else(|| TopologyProblem::NoSetting(word.to_owned()))?;
        match put(key, value) {
            Some(result) => result?,
            None => {
                return Err(TopologyProblem::UnknownKey { statement, key: key.to_owned(), known });
            }
        }
    }
    Ok(())
}

fn set<T>(
    slot: &mut Option<T>,
    key: &'static str,
    value: &str,
    want: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<(), TopologyProblem> {
    set_said(slot, key, value, |text| read(text).ok_or(want))
}

fn set_said<T>(
    slot: &mut Option<T>,
    key: &'static str,
    value: &str,
    read: impl Fn(&str) -> Result<T, &'static str>,
) -> Result<(), TopologyProblem> {
    let bad = |want| TopologyProblem::BadValue { key, value: value.to_owned(), want };
    match slot.replace(read(value).map_err(bad)?) {
        Some(_) => Err(TopologyProblem::KeyTwice(key.to_owned())),
        None => Ok(()),
    }
}

/// Reads a number of digits only: `parse` would accept a sign.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn read_dpid(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit()) && digits.len() <= 16;
    if hex { u64::from_str_radix(digits, 16).ok() } else { None }
}

impl TopologyError {
    /// Sets the line of the error, unless it has one.
    fn or_at(self, line: usize) -> TopologyError {
        TopologyError { line: self.line.or(Some(line)), ..self }
    }
}

/// The topology file that [`TopologySpec::parse`] reads as the same topology.
impl fmt::Display for TopologySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for switch in self.switches() {
            write!(f, "switch {} dpid={:#x}", switch.name, switch.dpid)?;
            if let Some(tables) = switch.tables {
                write!(f, " tables={tables}")?;
            }
            if let Some(capacity) = switch.capacity {
                write!(f, " capacity={capacity}")?;
            }
            writeln!(f)?;
        }
        for host in self.hosts() {
            write!(f, "host {} ip={}", host.name, host.ip)?;
            let HostNetwork { prefix, gateway, vlan } = host.network;
            if let Some(prefix) = prefix {
                write!(f, "/{prefix}")?;
            }
            write!(f, " mac={}", host.mac)?;
            if let Some(gateway) = gateway {
                write!(f, " gateway={gateway}")?;
            }
            if let Some(vlan) = vlan {
                write!(f, " vlan={vlan}")?;
            }
            writeln!(f)?;
        }
        let usual = LinkShape::default();
        for link in self.links() {
            let [a, b] = link.ends;
            write!(f, "link {} {}", self.end_name(a), self.end_name(b))?;
            let LinkShape { delay, loss, bandwidth, queue } = link.shape;
            if delay != usual.delay {
                write!(f, " delay={}", Delay(delay))?;
            }
            if loss != usual.loss {
                write!(f, " loss={loss}")?;
            }
            if let Some(bandwidth) = bandwidth {
                write!(f, " bandwidth={bandwidth}")?;
            }
            if queue != usual.queue {
                write!(f, " queue={queue}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::topology::{LinkRate, LossRate, waxman};

    const FILE: &str = "\
# Two switches.
switch s1 dpid=0x1 tables=4
switch edge dpid=a1 capacity=1000   # hexadecimal, with 0x or without

host h1
host printer ip=10.0.1.7 mac=00:1b:21:3c:9d:f8
link s1:1 h1 delay=1ms loss=0.1% bandwidth=10M queue=20
link edge printer
link s1 edge:9
";

    #[test]
    fn a_file_is_read() {
        let topology = TopologySpec::parse(FILE).unwrap();
        assert_eq!(topology.switches()[0].tables, Some(4));
        assert_eq!(topology.switches()[1].dpid, 0xa1);
        assert_eq!(topology.hosts()[0], HostSpec::numbered("h1", 1));
        assert_eq!(topology.hosts()[1].ip.to_string(), "10.0.1.7");
        let shape = topology.links()[0].shape;
        assert_eq!(shape.delay, Duration::from_millis(1));
        assert_eq!(shape.loss, LossRate::per_million(1000));
        assert_eq!(shape.bandwidth, Some(LinkRate::bits_per_second(10_000_000)));
        assert_eq!(shape.queue, 20);
        let ends = topology.links()[2].ends.map(|end| topology.end_name(end).to_string());
        assert_eq!(ends, ["s1:2", "edge:9"]);
    }

    #[test]
    fn a_file_is_refused_with_line_and_reason() {
        for (text, error) in [
            ("switch s1\nrouter r1", "line 2: unknown word \"router\""),
            ("switch", "line 1: a name is missing after \"switch\""),
            ("switch 1s", "line 1: \"1s\" is not a name"),
            ("switch s1 color=red", "line 1: a switch has no setting \"color\"; it has dpid"),
            ("switch s1 tables", "line 1: \"tables\" is not a setting"),
            ("switch s1 tables=0", "line 1: tables=0 is wrong: a switch has 1 to 255 tables"),
            ("switch s1 tables=256", "line 1: tables=256 is wrong"),
            ("switch s1 dpid=+1", "line 1: dpid=+1 is wrong: 1 to 16 hex"),
            ("switch s1 dpid=1 dpid=2", "line 1: dpid is set twice"),
            ("switch core", "line 1: core has no number in its name"),
            ("switch s1\nswitch s1", "line 2: the name s1 is taken (line 1)"),
            ("switch s1\nhost s1", "line 2: the name s1 is taken (line 1)"),
            ("switch s1\nswitch t1", "line 2: the datapath id 0x1 is taken by s1"),
            (
                "host a\nhost b mac=00:00:00:00:00:01",
                "line 2: the address 00:00:00:00:00:01 is taken by a",
            ),
            ("host a\nhost b ip=10.0.0.1", "line 2: the address 10.0.0.1 is taken by a"),
            ("host a ip=10.0.0", "line 1: ip=10.0.0 is wrong: an address of IPv4"),
            ("host a ip=224.0.0.1", "line 1: ip=224.0.0.1 is wrong"),
            ("host a ip=10.0.0.1/33", "line 1: ip=10.0.0.1/33 is wrong: an address of IPv4"),
            ("host a ip=10.0.0.1 gateway=10.0.0.2", "line 1: gateway=10.0.0.2 is wrong: another"),
            ("host a ip=10.0.0.1/24 gateway=10.0.1.2", "line 1: gateway=10.0.1.2 is wrong"),
            ("host a vlan=4095", "line 1: vlan=4095 is wrong: the id of a VLAN, 1 to 4094"),
            ("host a mac=01:00:00:00:00:01", "line 1: mac=01:00:00:00:00:01 is wrong"),
            ("switch s1\nlink s1", "line 2: a link has two ends"),
            ("switch s1\nlink s1 delay=1ms", "line 2: a link has two ends"),
            ("switch s1\nlink s1 s2", "line 2: unknown switch or host \"s2\""),
            ("switch s1\nlink s1 s1:2", "line 2: a link of s1 to itself"),
            ("switch s1\nhost h1\nlink s1:0 h1", "line 3: port=s1:0 is wrong: ports are numbered"),
            ("switch s1\nhost h1\nlink s1:x h1", "line 3: port=s1:x is wrong: ports are numbered"),
            ("switch s1\nhost h1\nlink s1 h1:1", "line 3: port=h1:1 is wrong: a host has one port"),
            ("host h1\nhost h2\nlink h1 h2", "line 3: a link between the hosts h1 and h2"),
            (
                "switch s1\nhost h1\nhost h2\nlink s1:1 h1\nlink s1:1 h2",
                "line 5: port 1 of s1 has a link already (line 4)",
            ),
            (
                "switch s1\nhost h1\nlink s1 h1\nlink s1 h1",
                "line 4: h1 has a link already (line 3)",
            ),
            ("switch s1\nhost h1\nlink s1 h1 delay=1", "line 3: delay=1 is wrong: a delay is"),
            ("switch s1\nhost h1\nlink s1 h1 loss=2", "line 3: loss=2 is wrong: a loss is"),
            ("switch s1\nhost h1\nlink s1 h1 queue=0", "line 3: queue=0 is wrong: 1 frame"),
            ("switch s1\nhost h1\nlink s1 h1 mtu=9000", "line 3: a link has no setting \"mtu\""),
        ] {
            let said = TopologySpec::parse(text).unwrap_err().to_string();
            assert!(said.starts_with(error), "{text:?}: {said}");
        }
    }

    #[test]
    fn the_example_of_the_manual_is_read() {
        let page = include_str!("../../../../../docs/book/src/reference/topology-file.md");
        let example = page.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
        let topology = TopologySpec::parse(example.unwrap()).unwrap();
        assert_eq!((topology.switches().len(), topology.links().len()), (2, 3));
    }

    #[test]
    fn a_written_topology_is_read_again() {
        for topology in [TopologySpec::parse(FILE).unwrap(), waxman(12, 3).build().unwrap()] {
            assert_eq!(TopologySpec::parse(&topology.to_string()).unwrap(), topology);
        }
    }

    /// Any topology that calls can make; refused calls are skipped.
    fn any_topology() -> impl Strategy<Value = TopologySpec> {
        let switch = (any::<u64>(), prop::option::of(1..=u8::MAX), any::<Option<u32>>());
        let host = (1..200_u32, 1..200_u32);
        let shape = (0..4_000_000_u64, 0..=1_000_000_u32, any::<Option<u64>>(), 1..=u32::MAX);
        let link = (0..12_usize, 0..12_usize, any::<Option<u8>>(), any::<Option<u8>>(), shape);
        let parts = (
            prop::collection::vec(switch, 0..8),
            prop::collection::vec(host, 0..8),
            prop::collection::vec(link, 0..20),
        );
        parts.prop_map(|(switches, hosts, links)| {
            let mut topology = TopologySpec::new();
            let mut nodes = Vec::new();
            for (i, (dpid, tables, capacity)) in switches.into_iter().enumerate() {
                let spec = SwitchSpec { name: format!("sw-{i}"), dpid, tables, capacity };
                nodes.extend(topology.add_switch(spec).map(Node::Switch));
            }
            for (i, (mac, ip)) in hosts.into_iter().enumerate() {
                let ip = HostSpec::numbered("", ip).ip;
                let spec = HostSpec { ip, ..HostSpec::numbered(format!("host_{i}.x"), mac) };
                nodes.extend(topology.add_host(spec).map(Node::Host));
            }
            for (a, b, at_a, at_b, (micros, loss, bandwidth, queue)) in links {
                let (Some(a), Some(b)) = (nodes.get(a), nodes.get(b)) else { continue };
                let shape = LinkShape {
                    delay: Duration::from_micros(micros),
                    loss: LossRate::per_million(loss),
                    bandwidth: bandwidth.map(LinkRate::bits_per_second),
                    queue,
                };
                let _refused =
                    topology.add_link((*a, at_a.map(u32::from)), (*b, at_b.map(u32::from)), shape);
            }
            topology
        })
    }

    proptest! {
        #[test]
        fn any_topology_is_read_as_it_was_written(topology in any_topology()) {
            let text = topology.to_string();
            prop_assert_eq!(TopologySpec::parse(&text), Ok(topology), "{}", text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "((switch|host|link|#|s1|h1|:|=|dpid=|ip=|delay=|loss=|1|0|%|ms| |\n|é){0,30})") {
            let _refused = TopologySpec::parse(&text);
        }
    }
}
