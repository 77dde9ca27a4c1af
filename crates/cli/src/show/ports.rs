//! The ports of switches, with their counters.

use std::fmt::Write;

use bellrock_apps::bandwidth::Kbps;
use bellrock_query::{PortCounters, PortState, PortStatsRow};

use super::{named, printable, wide_table};

/// Formats the ports as a table, and below it why ports have no counters.
pub(crate) fn ports(ports: &[PortStatsRow]) -> String {
    if ports.is_empty() {
        return "no switch with a port is up\n".to_owned();
    }
    let number =
        |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or_default().saturating_add(other.unwrap_or_default())),
    };
    let row = |port: &PortStatsRow| {
        let counters = port.counters.unwrap_or_default();
        let PortCounters { rx_packets, rx_bytes, tx_packets, tx_bytes, .. } = counters;
        let mut cells = vec![
            named(port.dpid, port.switch_name.as_deref()),
            port.port.to_string(),
            printable(&port.name),
            state(port.state).to_owned(),
            port.rate_kbps.map_or_else(|| "-".to_owned(), |rate| Kbps(rate).to_string()),
        ];
        let dropped = sum(counters.rx_dropped, counters.tx_dropped);
        let errors = sum(counters.rx_errors, counters.tx_errors);
        cells.extend([rx_packets, rx_bytes, tx_packets, tx_bytes, dropped, errors].map(number));
        cells.extend([port.packet_ins, port.packet_ins_dropped].map(|n| n.to_string()));
        cells
    };
    let head = [
        "SWITCH",
        "PORT",
        "NAME",
        "STATE",
        "BIT/S",
        "RX PACKETS",
        "RX BYTES",
        "TX PACKETS",
        "TX BYTES",
        "DROPPED",
        "ERRORS",
        "PACKET-INS",
        "PACKET-INS DROPPED",
    ];
    let optional = [
        "PACKET-INS DROPPED",
        "PACKET-INS",
        "RX PACKETS",
        "TX PACKETS",
        "BIT/S",
        "NAME",
        "DROPPED",
    ];
    let mut text = wide_table(&head, &optional, ports.iter().map(row));
    // A switch that does not answer has the same problem at all its ports.
    let problems =
        ports.chunk_by(|one, other| (one.dpid, &one.problem) == (other.dpid, &other.problem));
    for problem in problems {
        if let [port, others @ ..] = problem
            && let Some(why) = &port.problem
        {
            let switch = named(port.dpid, port.switch_name.as_deref());
            let which = match others {
                [] => format!("port {} of {switch}", port.port),
                _ => format!("{} ports of {switch}", problem.len()),
            };
            let _ = writeln!(text, "(no counters of {which}: {})", printable(why));
        }
    }
    text
}

fn state(state: PortState) -> &'static str {
    match state {
        PortState::Up => "up",
        PortState::LinkDown => "link down",
        PortState::AdminDown => "admin down",
        PortState::Blocked => "blocked",
        PortState::Learning => "learning",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use bellrock_api::{Dpid, MacAddr, Port};

    use super::*;

    #[test]
    fn a_switch_without_counters_is_named_once() {
        let row = |dpid, port, problem: Option<&str>| PortStatsRow {
            dpid: Dpid(dpid),
            switch_name: (dpid == 1).then(|| "core-1".to_owned()),
            port: Port(port),
            name: format!("eth{port}"),
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            state: PortState::Up,
            rate_kbps: None,
            packet_ins: 0,
            packet_ins_dropped: 0,
            counters: None,
            problem: problem.map(str::to_owned),
        };
        let silent = Some("no reply within 4 s");
        let rows = [row(1, 1, silent), row(1, 2, silent), row(2, 1, None), row(2, 3, silent)];
        let text = ports(&rows);
        let below: Vec<_> = text.lines().skip(1 + rows.len()).collect();
        let expected = [
            "(no counters of 2 ports of core-1: no reply within 4 s)",
            "(no counters of port 3 of 0000000000000002: no reply within 4 s)",
        ];
        assert_eq!(below, expected);
    }
}
