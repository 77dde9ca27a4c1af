//! Answers about the network: switches and links, hosts, and events.
//!
//! The types are the JSON that `--json` prints, as in [`super::answers`].

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellrock_api::{Dpid, Event, Link, Network, Topology};
use bellrock_apps::bandwidth::Kbps;
use serde::{Deserialize, Serialize};

use super::show::{duration, printable, table};

/// Maximum number of events in an answer: all that the controller keeps.
const MAX_EVENTS: usize = bellrock_api::EVENTS_KEPT;

/// Switches and links found by discovery.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TopologyAnswer {
    /// Whether discovery has probed every port.
    pub(super) settled: bool,
    pub(super) switches: Vec<TopologySwitch>,
    pub(super) links: Vec<LinkRow>,
}

/// A switch in the topology.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct TopologySwitch {
    pub(super) dpid: String,
    pub(super) ports_up: usize,
    /// Ports where hosts can be.
    pub(super) edge_ports: Vec<String>,
}

/// One direction of a link.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct LinkRow {
    pub(super) from_dpid: String,
    pub(super) from_port: String,
    pub(super) to_dpid: String,
    pub(super) to_port: String,
    pub(super) up_seconds: u64,
    pub(super) rate_kbps: Option<u64>,
    /// Whether the other direction is up too.
    pub(super) both_ways: bool,
}

/// An event.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct EventRow {
    pub(super) seconds_ago: u64,
    pub(super) event: String,
    pub(super) text: String,
    /// Why a connection ended, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Whether the event is an alarm for operators.
    pub(super) alarming: bool,
}

pub(super) fn topology(network: &Network) -> TopologyAnswer {
    let topology = network.topology().load();
    let edge = |dpid: Dpid| topology.edge_of(dpid).map(|port| port.to_string()).collect();
    let switches = topology.switches.iter().map(|(dpid, ports)| TopologySwitch {
        dpid: dpid.to_string(),
        ports_up: ports.len(),
        edge_ports: edge(*dpid),
    });
    let (settled, switches) = (topology.settled, switches.collect());
    TopologyAnswer { settled, switches, links: links(&topology, network.now()) }
}

fn links(topology: &Topology, now: Duration) -> Vec<LinkRow> {
    let back = |link: &Link| topology.link(link.to).is_some_and(|back| back.to == link.from);
    let row = |link: &Link| LinkRow {
        from_dpid: link.from.dpid.to_string(),
        from_port: link.from.port.to_string(),
        to_dpid: link.to.dpid.to_string(),
        to_port: link.to.port.to_string(),
        up_seconds: now.saturating_sub(link.since).as_secs(),
        rate_kbps: link.rate_kbps,
        both_ways: back(link),
    };
    topology.links.values().map(row).collect()
}

pub(super) fn events(network: &Network) -> Vec<EventRow> {
    let now = network.now();
    let row = |at: Duration, event: &Event| EventRow {
        seconds_ago: now.saturating_sub(at).as_secs(),
        event: event.name().to_owned(),
        text: event.to_string(),
        alarming: event.is_alarming(),
        reason: event.ended().map(|why| why.reason.name().to_owned()),
    };
    network.events().latest(MAX_EVENTS).iter().map(|it| row(it.at, &it.event)).collect()
}

/// Formats the topology as text.
pub(super) fn show_topology(topology: &TopologyAnswer) -> String {
    if topology.switches.is_empty() {
        return "no switch is known to discovery; it runs if an app needs it, or with --services \
                topology\n"
            .to_owned();
    }
    let row = |switch: &TopologySwitch| {
        let links = topology.links.iter().filter(|link| link.from_dpid == switch.dpid).count();
        let ports = switch.edge_ports.iter().map(|port| printable(port)).collect::<Vec<_>>();
        vec![
            printable(&switch.dpid),
            switch.ports_up.to_string(),
            links.to_string(),
            ports.join(","),
        ]
    };
    let head = ["DPID", "PORTS UP", "LINKS", "PORTS FOR HOSTS"];
    let mut text = table(&head, topology.switches.iter().map(row));
    if !topology.settled {
        let _ = writeln!(text, "(discovery has not probed every port yet)");
    }
    text
}

/// Formats the links as text.
pub(super) fn show_links(topology: &TopologyAnswer) -> String {
    if topology.links.is_empty() {
        return "no link is known; they are found for apps that need them, such as routing, or with \
                `--services discovery`\n"
            .to_owned();
    }
    let row = |link: &LinkRow| {
        vec![
            format!("{}:{}", printable(&link.from_dpid), printable(&link.from_port)),
            format!("{}:{}", printable(&link.to_dpid), printable(&link.to_port)),
            time_of_day(link.up_seconds),
            duration(link.up_seconds),
            link.rate_kbps.map_or_else(|| "-".to_owned(), |rate| Kbps(rate).to_string()),
            if link.both_ways { "" } else { "one way" }.to_owned(),
        ]
    };
    table(&["FROM", "TO", "SINCE (UTC)", "UP FOR", "BIT/S", ""], topology.links.iter().map(row))
}

/// The time of day, `hh:mm:ss` in the clock of the logs, of a moment this many seconds ago. The
/// column with the seconds shows the day.
fn time_of_day(seconds_ago: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let at = now.saturating_sub(seconds_ago);
    format!("{:02}:{:02}:{:02}", at / 3600 % 24, at / 60 % 60, at % 60)
}

/// Formats the events as text.
pub(super) fn show_events(events: &[EventRow]) -> String {
    if events.is_empty() {
        return "nothing has happened\n".to_owned();
    }
    let row = |event: &EventRow| {
        vec![
            time_of_day(event.seconds_ago),
            duration(event.seconds_ago),
            if event.alarming { "!" } else { "" }.to_owned(),
            printable(&event.event),
            printable(&event.text),
        ]
    };
    table(&["AT (UTC)", "AGO", "", "EVENT", ""], events.iter().map(row))
}
