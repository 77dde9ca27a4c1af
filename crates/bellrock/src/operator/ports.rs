//! The ports of switches. Each answer asks the switches for their counters (`OFPMP_PORT_STATS`,
//! 1.3.5 §7.3.5.6; `OFPST_PORT`, 1.0 §5.3.5).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bellrock_api::openflow::{PortConfig, PortState, PortStats, RequestBody};
use bellrock_api::{Names, Network, Port, PortDesc, ReplyBody, RequestFuture, SwitchInfo, Version};
use bellrock_query::{LinkState, Page, PortCounters, PortStatsRow, Rows};

use super::ask::{AT_A_TIME, TIMEOUT, read};
use super::name_of;

/// The ports of these switches, which are sorted by datapath id. Only the switches of the page are
/// asked, some at a time.
pub(super) fn list(
    network: &Network,
    names: &Names,
    switches: &[Arc<SwitchInfo>],
    page: Page,
) -> Rows<PortStatsRow> {
    let until = Instant::now() + TIMEOUT;
    let ports = switches.iter().flat_map(|info| info.ports.iter().map(move |port| (&**info, port)));
    let Rows { total, skipped, rows: ports } = Rows::of(ports.collect::<Vec<_>>(), page);
    let by_switch: Vec<_> = ports.chunk_by(|(one, _), (other, _)| one.dpid == other.dpid).collect();
    let mut rows = Vec::with_capacity(ports.len());
    for some in by_switch.chunks(AT_A_TIME) {
        let asked: Vec<_> = some.iter().map(|ports| ask(network, ports)).collect();
        for (ports, asked) in some.iter().zip(asked) {
            let counters = read(asked, until, "ports' counters", |reply| match reply {
                ReplyBody::PortStats(stats) => {
                    Some(stats.into_iter().map(|stats| (stats.port, stats)).collect())
                }
                _ => None,
            });
            let counters: Result<HashMap<_, _>, _> = counters.map_err(|(_, why)| why);
            rows.extend(ports.iter().map(|(info, port)| row(names, info, port, counters.as_ref())));
        }
    }
    Rows { total, skipped, rows }
}

/// Asks the switch of these ports: for one, or for all of the switch.
fn ask(network: &Network, ports: &[(&SwitchInfo, &PortDesc)]) -> RequestFuture {
    let (info, first) = ports[0];
    let which = if ports.len() == 1 { first.port } else { Port::ANY };
    network.request(info.dpid, RequestBody::PortStats(which))
}

fn row(
    names: &Names,
    info: &SwitchInfo,
    port: &PortDesc,
    counters: Result<&HashMap<Port, PortStats>, &String>,
) -> PortStatsRow {
    let missing = || "the switch did not report this port".to_owned();
    let stats = counters.map_err(Clone::clone);
    let stats = stats.and_then(|counters| counters.get(&port.port).ok_or_else(missing));
    PortStatsRow {
        dpid: info.dpid,
        name: name_of(names, info.dpid),
        port: port.port,
        port_name: port.name.to_string(),
        mac: port.address,
        state: state(port),
        rate_kbps: port.rate_kbps(),
        counters: stats.as_ref().ok().map(|stats| counters_row(stats, info.version)),
        problem: stats.err(),
    }
}

fn state(port: &PortDesc) -> LinkState {
    // The states of spanning tree are one field of two bits, and both are set in one state only.
    match () {
        () if port.config.contains(PortConfig::PORT_DOWN) => LinkState::AdminDown,
        () if port.state.contains(PortState::LINK_DOWN) => LinkState::LinkDown,
        () if port.state.contains(PortState::BLOCKED) => LinkState::Blocked,
        () if port.state.contains(PortState::STP_BLOCK) => LinkState::Blocked,
        () => LinkState::Up,
    }
}

fn counters_row(stats: &PortStats, version: Version) -> PortCounters {
    // All ones: the switch does not keep it (1.3.5 §7.3.5.6).
    let kept = |value: u64| (value != u64::MAX).then_some(value);
    let counters = &stats.counters;
    PortCounters {
        rx_packets: kept(counters.rx_packets),
        tx_packets: kept(counters.tx_packets),
        rx_bytes: kept(counters.rx_bytes),
        tx_bytes: kept(counters.tx_bytes),
        rx_dropped: kept(counters.rx_dropped),
        tx_dropped: kept(counters.tx_dropped),
        rx_errors: kept(counters.rx_errors),
        tx_errors: kept(counters.tx_errors),
        seconds: (version != Version::V1_0).then_some(stats.duration_sec.into()),
    }
}
