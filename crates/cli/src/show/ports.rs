//! The ports of switches, with their counters.

use std::fmt::Write;

use bellrock_apps::bandwidth::Kbps;
use bellrock_query::{PortCounters, PortState, PortStatsRow};

use super::{named, printable, table};

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
    let mut text = table(&head, ports.iter().map(row));
    for port in ports {
        if let Some(why) = &port.problem {
            let switch = named(port.dpid, port.switch_name.as_deref());
            let _ = writeln!(text, "(no counters of {switch}:{}: {})", port.port, printable(why));
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
