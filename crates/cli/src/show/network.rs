//! Topology, links and events.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use bellrock_apps::bandwidth::Kbps;
use bellrock_query::{AlarmState, EventRow, LinkRow, TopologyAnswer, TopologySwitch};

use super::{duration, named, printable, table, wide_table};

/// Formats the topology as text.
pub(crate) fn topology(topology: &TopologyAnswer) -> String {
    if topology.switches.is_empty() {
        return "no switch is known to discovery; it runs if an app needs it, or with --services \
                topology\n"
            .to_owned();
    }
    let row = |switch: &TopologySwitch| {
        let links = topology.links.iter().filter(|link| link.from_dpid == switch.dpid).count();
        let ports = switch.edge_ports.iter().map(ToString::to_string).collect::<Vec<_>>();
        vec![
            named(switch.dpid, switch.name.as_deref()),
            switch.ports_up.to_string(),
            links.to_string(),
            ports.join(","),
        ]
    };
    let head = ["SWITCH", "PORTS UP", "LINKS", "PORTS FOR HOSTS"];
    let mut text = table(&head, topology.switches.iter().map(row));
    if !topology.settled {
        let _ = writeln!(text, "(discovery has not probed every port yet)");
    }
    text
}

/// Says why there is no link. `switches`: those that are up; `discovered`: those that discovery
/// knows.
pub(crate) fn no_links(switches: usize, discovered: usize) -> &'static str {
    match (switches, discovered) {
        (0, _) => "no link is known: no switch is connected\n",
        (_, 0) => {
            "no link is known: nothing looks for links; `--services topology` does, and apps that need \
             them do, such as routing\n"
        }
        _ => {
            "no link between switches is up; `bellrock events --open` lists links and switches that \
             were lost\n"
        }
    }
}

/// Formats the links as text.
pub(crate) fn links(links: &[LinkRow]) -> String {
    let row = |link: &LinkRow| {
        vec![
            format!("{}:{}", named(link.from_dpid, link.from_name.as_deref()), link.from_port),
            format!("{}:{}", named(link.to_dpid, link.to_name.as_deref()), link.to_port),
            time_of_day(link.up_seconds),
            duration(link.up_seconds),
            link.rate_kbps.map_or_else(|| "-".to_owned(), |rate| Kbps(rate).to_string()),
            if link.both_ways { "" } else { "one way" }.to_owned(),
        ]
    };
    let head = ["FROM", "TO", "SINCE (UTC)", "UP FOR", "BIT/S", ""];
    wide_table(&head, &["SINCE (UTC)", "BIT/S"], links.iter().map(row))
}

/// The time of day, `hh:mm:ss` in the clock of the logs, of a moment this many seconds ago. The
/// column with the seconds shows the day.
fn time_of_day(seconds_ago: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    clock(now.saturating_sub(seconds_ago))
}

/// The time of day of a moment in seconds since 1970.
fn clock(at: u64) -> String {
    format!("{:02}:{:02}:{:02}", at / 3600 % 24, at / 60 % 60, at % 60)
}

/// The sign of an alarm. An alarm that is over has none.
fn sign(event: &EventRow) -> &'static str {
    if event.alarming && event.state != Some(AlarmState::Over) { "!" } else { "" }
}

/// When the alarm ended, if it did.
fn end_of(event: &EventRow) -> String {
    match event.ended_unix_ms {
        Some(at) => {
            let lasted = duration(at.saturating_sub(event.unix_ms) / 1000);
            format!(" (over at {}, after {lasted})", clock(at / 1000))
        }
        None => String::new(),
    }
}

/// Formats one event as a line.
pub(crate) fn event(event: &EventRow) -> String {
    let (sign, name) = (sign(event), printable(&event.event));
    format!("{} {sign:1} {name:20} {}\n", clock(event.unix_ms / 1000), printable(&event.text))
}

/// Formats the events as text. `none`: what to say if there are none.
pub(crate) fn events(events: &[EventRow], none: &str) -> String {
    if events.is_empty() {
        return format!("{none}\n");
    }
    let row = |event: &EventRow| {
        vec![
            clock(event.unix_ms / 1000),
            duration(event.seconds_ago),
            sign(event).to_owned(),
            printable(&event.event),
            format!("{}{}", printable(&event.text), end_of(event)),
        ]
    };
    wide_table(&["AT (UTC)", "AGO", "", "EVENT", ""], &["AGO"], events.iter().map(row))
}
