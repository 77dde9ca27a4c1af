"""The network as a graph of networkx, which only programs that use it need."""

from __future__ import annotations

from typing import Any

from ._native import Network


def to_networkx(network: Network, multi: bool, has_hosts: bool) -> Any:
    try:
        import networkx  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError(
            "to_networkx needs networkx, which is not installed: pip install networkx"
        ) from error
    graph = networkx.MultiDiGraph() if multi else networkx.DiGraph()
    for switch in network.switches:
        graph.add_node(switch.dpid, kind="switch", info=switch)
    # Of parallel links, a DiGraph keeps the first.
    for link in sorted(network.links, key=lambda link: (link.from_dpid, link.from_port)):
        if multi or not graph.has_edge(link.from_dpid, link.to_dpid):
            graph.add_edge(
                link.from_dpid,
                link.to_dpid,
                port=link.from_port,
                to_port=link.to_port,
                rate_kbps=link.rate_kbps,
            )
    for host in network.hosts if has_hosts else []:
        graph.add_node(host.mac, kind="host", info=host)
        graph.add_edge(host.mac, host.dpid, port=None, to_port=host.port, rate_kbps=None)
        graph.add_edge(host.dpid, host.mac, port=host.port, to_port=None, rate_kbps=None)
    return graph
