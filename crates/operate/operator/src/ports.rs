//! The ports of switches. Each answer asks the switches for their counters (`OFPMP_PORT_STATS`,
//! 1.3.5 §7.3.5.6; `OFPST_PORT`, 1.0 §5.3.5).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellrock_api::openflow::{PortConfig, PortState as Flags, PortStats, RequestBody};
use bellrock_api::{
    Dpid, Names, Network, Port, PortDesc, ReplyBody, RequestFuture, SwitchInfo, Version,
};
use bellrock_engine::PortPacketIns;
use bellrock_query::{Page, PortCounters, PortState, PortStatsRow, Rows};

use super::ask::{ask_each, kept};
use super::name_of;

/// The ports of these switches, which are sorted by datapath id. Only the switches of the page are
/// asked, some at a time. `packet_ins_of` returns the packet-ins of a switch.
pub(super) fn list(
    network: &Network,
    names: &Names,
    switches: &[Arc<SwitchInfo>],
    page: Page,
    packet_ins_of: impl Fn(Dpid) -> BTreeMap<Port, PortPacketIns>,
) -> Rows<PortStatsRow> {
    let ports = switches.iter().flat_map(|info| {
        let mut ports: Vec<&PortDesc> = info.ports.iter().collect();
        ports.sort_by_key(|port| port.port);
        ports.into_iter().map(move |port| (&**info, port))
    });
    let ports = Rows::of(ports.collect::<Vec<_>>(), page);
    let by_switch: Vec<_> =
        ports.rows.chunk_by(|(one, _), (other, _)| one.dpid == other.dpid).collect();
    let asked = ask_each(
        &by_switch,
        "counters",
        |ports| ask(network, ports),
        |_, reply| match reply {
            ReplyBody::PortStats(stats) => {
                Some(stats.into_iter().map(|stats| (stats.port, stats)).collect())
            }
            _ => None,
        },
    );
    let of_ports = |(ports, asked): (&&[(&SwitchInfo, &PortDesc)], _)| {
        let counters: Result<HashMap<_, _>, _> = asked;
        let counters = counters.map_err(|(_, why)| why);
        let packet_ins = ports.first().map(|(info, _)| packet_ins_of(info.dpid));
        let packet_ins = packet_ins.unwrap_or_default();
        let row = |(info, port): &(&SwitchInfo, &PortDesc)| {
            let packet_ins = packet_ins.get(&port.port).copied().unwrap_or_default();
            row(names, info, port, counters.as_ref(), packet_ins)
        };
        ports.iter().map(row).collect::<Vec<_>>()
    };
    let rows = by_switch.iter().zip(asked).flat_map(of_ports).collect();
    Rows { total: ports.total, skipped: ports.skipped, rows, incomplete: None }
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
    packet_ins: PortPacketIns,
) -> PortStatsRow {
    let missing = || "the switch did not report this port".to_owned();
    let stats = counters.map_err(Clone::clone);
    let stats = stats.and_then(|counters| counters.get(&port.port).ok_or_else(missing));
    PortStatsRow {
        dpid: info.dpid,
        switch_name: name_of(names, info.dpid),
        port: port.port,
        name: port.name.to_string(),
        mac: port.address,
        state: state(port),
        rate_kbps: port.rate_kbps(),
        packet_ins: packet_ins.passed,
        packet_ins_dropped: packet_ins.dropped,
        counters: stats.as_ref().ok().map(|stats| counters_row(stats, info.version)),
        problem: stats.err(),
    }
}

/// The state of a port.
pub(super) fn state(port: &PortDesc) -> PortState {
    // The states of spanning tree are one field of two bits: blocking has both of them.
    match () {
        () if port.config.contains(PortConfig::PORT_DOWN) => PortState::AdminDown,
        () if port.state.contains(Flags::LINK_DOWN) => PortState::LinkDown,
        () if port.state.contains(Flags::BLOCKED) => PortState::Blocked,
        () if port.state.contains(Flags::STP_BLOCK) => PortState::Blocked,
        () if port.state.contains(Flags::STP_LEARN) => PortState::Learning,
        () => PortState::Up,
    }
}

fn counters_row(stats: &PortStats, version: Version) -> PortCounters {
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
        age_seconds: version.reports_ages().then_some(stats.duration_sec.into()),
    }
}
