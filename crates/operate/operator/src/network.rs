//! Answers about the network: topology and links.

use std::time::Duration;

use bellrock_api::{Dpid, Link, Names, Network, Topology};
use bellrock_query::{LinkRow, Page, Rows, TopologyAnswer, TopologySwitch};

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
