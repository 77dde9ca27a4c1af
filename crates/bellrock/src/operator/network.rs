//! Answers about the network: topology, links, and events.

use std::time::Duration;

use bellrock_api::{Dpid, EVENTS_KEPT, Event, Link, Names, Network, Topology};
use bellrock_query::{EventRow, LinkRow, Page, Rows, TopologyAnswer, TopologySwitch};

use super::name_of;

pub(super) fn topology(network: &Network, names: &Names) -> TopologyAnswer {
    let topology = network.topology().load();
    let edge = |dpid: Dpid| topology.edge_of(dpid).collect();
    let switches = topology.switches.iter().map(|(dpid, ports)| TopologySwitch {
        dpid: *dpid,
        name: name_of(names, *dpid),
        ports_up: ports.len(),
        edge_ports: edge(*dpid),
    });
    let (settled, switches) = (topology.settled, switches.collect());
    TopologyAnswer { settled, switches, links: links(&topology, names, network.now()) }
}

pub(super) fn links_page(network: &Network, names: &Names, page: Page) -> Rows<LinkRow> {
    Rows::of(links(&network.topology().load(), names, network.now()), page)
}

fn links(topology: &Topology, names: &Names, now: Duration) -> Vec<LinkRow> {
    let back = |link: &Link| topology.link(link.to).is_some_and(|back| back.to == link.from);
    let row = |link: &Link| LinkRow {
        from_dpid: link.from.dpid,
        from_name: name_of(names, link.from.dpid),
        from_port: link.from.port,
        to_dpid: link.to.dpid,
        to_name: name_of(names, link.to.dpid),
        to_port: link.to.port,
        up_seconds: now.saturating_sub(link.since).as_secs(),
        rate_kbps: link.rate_kbps,
        both_ways: back(link),
    };
    topology.links.values().map(row).collect()
}

/// The page counts from the newest event; its rows are ordered by time.
pub(super) fn events(network: &Network, page: Page) -> Rows<EventRow> {
    let now = network.now();
    let row = |at: Duration, event: &Event| EventRow {
        seconds_ago: now.saturating_sub(at).as_secs(),
        event: event.name().to_owned(),
        text: event.to_string(),
        alarming: event.is_alarming(),
        reason: event.connection_end().map(|why| why.reason.name().to_owned()),
    };
    let mut newest_first = network.events().latest(EVENTS_KEPT);
    newest_first.reverse();
    let mut events = Rows::of(newest_first, page).map(|it| row(it.time, &it.event));
    events.rows.reverse();
    events
}
