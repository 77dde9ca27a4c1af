"""The network as apps see it: events, changes, paths and graphs; hosts in subnets and VLANs."""

from __future__ import annotations

from typing import Any, Literal, get_args

import networkx  # type: ignore[import-untyped, unused-ignore]
import pytest

import bellrock
from bellrock import (
    Action,
    App,
    Event,
    Flow,
    Link,
    Match,
    Network,
    PacketIn,
    Plan,
    Switch,
    SwitchInfo,
)
from bellrock.lab import Lab, Topology, linear, ring, single

Version = Literal["1.0", "1.3"]


class Knows(App):
    """It reads all services, and floods as a tree."""

    needs = ("topology", "hosts", "paths")

    def start(self, network: Network) -> None:
        self.network = network

    def packet_in(self, switch: Switch, packet: PacketIn) -> None:
        ports = self.network.flood_ports(switch.dpid)
        if packet.in_port in ports:
            for port in ports:
                if port != packet.in_port:
                    switch.packet_out(packet, port)


def test_events_name_their_switch_port_host_and_link() -> None:
    events: list[Event] = []

    class Watches(Knows):
        def start(self, network: Network) -> None:
            super().start(network)
            self.spawn(self.run(network))

        async def run(self, network: Network) -> None:
            async for event in network.events("link_up", "link_down", "host_seen", "host_moved"):
                assert isinstance(event, Event)
                events.append(event)

    lab = Lab(linear(2), Watches())
    lab.run_for(10)
    assert lab.ping("h1", "h2")
    lab.link_down("s1", "s2")
    lab.run_for(2)
    assert {event.name for event in events} == {"link_up", "link_down", "host_seen"}
    up = next(event for event in events if event.name == "link_up" and event.dpid == 1)
    assert isinstance(up.link, Link) and (up.link.from_dpid, up.link.to_dpid) == (1, 2)
    assert (up.port, up.other_port) == (up.link.from_port, (2, up.link.to_port))
    assert up.host is None and up.app is None and up.published is None
    seen = next(event for event in events if event.host and event.host.mac == lab.mac("h1"))
    assert (seen.dpid, seen.port, seen.link) == (1, 1, None)
    assert seen.host is not None and seen.host.vlan_id is None
    assert any(event.name == "link_down" and event.link is not None for event in events)


def test_a_name_that_no_event_has_is_an_error_with_those_that_are_near() -> None:
    lab = Lab(single(1), Knows())
    with pytest.raises(ValueError, match="no event is called \"host_joined\"; there are host_seen, "):
        lab.network.events("host_joined")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Event.NAMES"):
        lab.network.events("nonsense")  # type: ignore[arg-type]
    assert "app_event" in Event.NAMES and "link_up" in Event.NAMES


def test_an_event_of_an_app_has_the_name_that_it_gave() -> None:
    published: list[tuple[str, str] | None] = []

    class Publishes(App):
        def start(self, network: Network) -> None:
            self.spawn(self.run(network))

        async def run(self, network: Network) -> None:
            events = network.events("app_event")
            network.publish("full", "the table is full")
            async for event in events:
                assert isinstance(event, Event)
                published.append(event.published)

    lab = Lab(single(1), Publishes())
    lab.run_for(1)
    assert published == [("full", "the table is full")], lab.exceptions


def test_an_alarm_of_an_app_lasts_until_the_app_ends_it() -> None:
    events: list[tuple[str, bool]] = []

    class Publishes(App):
        def start(self, network: Network) -> None:
            self.network = network
            self.spawn(self.run(network))

        async def run(self, network: Network) -> None:
            seen = network.events("app_event")
            network.publish("full", "s1:3 is full", alarming=True, about="s1:3")
            network.publish("free", "s1:3 has space", ends="full", about="s1:3")
            async for event in seen:
                assert isinstance(event, Event) and event.published
                events.append((event.published[0], event.is_alarming))

    app = Publishes()
    lab = Lab(single(1), app)
    lab.run_for(1)
    assert events == [("full", True), ("free", False)], lab.exceptions
    wrong: list[dict[str, Any]] = [{"about": "s1:3"}, {"ends": "full"}, {"ends": "full", "about": "s1:3", "alarming": True}]
    for arguments in wrong:
        with pytest.raises(ValueError, match="`about` needs alarming=True, or `ends`"):
            app.network.publish("full", "s1:3 is full", **arguments)


def test_changes_are_waited_for() -> None:
    seen: list[set[str]] = []
    first: list[list[str]] = []

    class Waits(Knows):
        def start(self, network: Network) -> None:
            super().start(network)
            self.spawn(self.once(network))
            self.spawn(self.each(network))

        async def once(self, network: Network) -> None:
            first.append(list(await network.changed()))

        async def each(self, network: Network) -> None:
            async for parts in network.changed():
                seen.append(set(parts))

    lab = Lab(linear(2), Waits())
    lab.run_for(10)
    assert lab.ping("h1", "h2")
    assert len(first) == 1 and first[0], lab.exceptions
    assert set().union(*seen) == {"topology", "hosts", "paths"}
    quiet = len(seen)
    lab.run_for(5)
    assert len(seen) == quiet, "nothing changed"
    lab.link_down("s1", "s2")
    lab.run_for(5)
    assert {"topology", "paths"} <= set().union(*seen[quiet:])
    plain = Lab(single(1), lambda switch, packet: None)
    with pytest.raises(bellrock.Error, match="changed needs \"topology\""):
        plain.network.changed()


def test_paths_of_several_kinds() -> None:
    lab = Lab(ring(4), Knows())
    lab.run_for(10)
    network = lab.network
    assert network.distance(1, 3) == 2 and network.distance(1, 99) is None
    hops = network.next_hops(1, 3)
    assert len(hops) == 2 and all(dpid == 1 for dpid, _ in hops), "both ways are equally long"
    assert network.next_hops(1, 1) == []
    around = network.k_shortest(1, 2, 5)
    assert [len(path) for path in around] == [1, 3]
    assert network.k_shortest(1, 2, 5, avoid=[around[0][0]]) == [around[1]]
    assert network.edge_ports(1) == [1] and network.edge_ports(99) == []
    with pytest.raises(ValueError, match="k is 1 to 64, not 0"):
        network.k_shortest(1, 2, 0)


def test_the_network_is_a_graph_of_networkx() -> None:
    lab = Lab(ring(4), Knows())
    lab.run_for(10)
    assert lab.ping("h1", "h2")
    graph = lab.network.to_networkx()
    path: Any = networkx.shortest_path(graph, lab.mac("h1"), lab.mac("h2"))
    assert path == [lab.mac("h1"), 1, 2, lab.mac("h2")]
    link = next(link for link in lab.network.links if (link.from_dpid, link.to_dpid) == (1, 2))
    assert graph[1][2]["port"] == link.from_port and graph[1][2]["to_port"] == link.to_port
    assert graph.nodes[1]["kind"] == "switch" and graph.nodes[lab.mac("h1")]["kind"] == "host"
    assert graph[1][lab.mac("h1")]["port"] == 1
    parallel = Topology.parse("switch s1\nswitch s2\nlink s1:2 s2:2\nlink s1:1 s2:1\n")
    lab = Lab(parallel, Knows())
    lab.run_for(10)
    assert lab.network.to_networkx()[1][2]["port"] == 1
    assert lab.network.to_networkx(multi=True).number_of_edges(1, 2) == 2


def test_networkx_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(single(1), Knows())
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    with pytest.raises(ImportError, match="pip install networkx"):
        lab.network.to_networkx()


def test_a_switch_says_what_it_can_do() -> None:
    infos: dict[str, SwitchInfo] = {}
    versions: tuple[Version, Version] = ("1.0", "1.3")
    for version in versions:
        lab = Lab(single(1), Knows(), version=version)
        infos[version] = lab.network.switches[0]
    old, new = infos["1.0"], infos["1.3"]
    assert (old.family, new.family) == ("fixed", "oxm")
    assert not old.has_groups and new.has_groups and not old.has_meters and new.has_meters
    assert not old.has_tables and new.has_tables
    for info in (old, new):
        assert "flow_stats" in info.capabilities
        assert info.supports(Action.tag(7)) and info.supports(Action.untag())
        assert info.supports(Match(vlan_id=7))
    assert not old.supports(Action.dec_ttl()) and new.supports(Action.dec_ttl())
    assert not old.supports(Match(metadata=1)) and new.supports(Match(metadata=1))
    assert not old.supports(bellrock.Meter(1, kbps=1)) and new.supports(bellrock.Group(1, "all"))
    with pytest.raises(TypeError, match="an Action, a Match, a Group or a Meter, not str"):
        new.supports("groups")  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_an_action_of_an_experimenter_is_kept_and_shown(version: Version) -> None:
    """The emulated switch refuses it, as one does that does not know it: the error names it."""
    errors: list[str] = []
    action = Action.experimenter(0x2320, b"\0\1\2\3")

    class Uses(App):
        def switch_up(self, network: Network, switch: Switch) -> None:
            self.spawn(self.run(network))

        async def run(self, network: Network) -> None:
            plan = Plan()
            plan.add(1, Flow(Match(in_port=1), action, Action.output(2)))
            try:
                await network.commit(plan)
            except bellrock.Error as error:
                errors.append(str(error))

    lab = Lab(single(2), Uses(), version=version)
    lab.run_for(5)
    sent = [message for message in lab.messages("s1") if "flow_mod" in message.lower()]
    assert any(str(action) in message for message in sent), (sent, lab.exceptions)
    assert len(errors) == 1 and not lab.exceptions


ROUTED = """
switch s1
host a ip=10.0.1.1/24 gateway=10.0.1.254
host b ip=10.0.2.1/24 gateway=10.0.2.254
host c ip=10.0.2.2/24
link s1:1 a
link s1:2 b
link s1:3 c
"""


class Router(App):
    """It answers for both gateways, and routes by its hosts, which it knows."""

    forwards = "all"
    mac = bellrock.MacAddr("02:00:00:00:00:fe")

    def __init__(self) -> None:
        self.hosts: dict[Any, tuple[bellrock.MacAddr, int]] = {}

    def packet_in(self, switch: Switch, packet: PacketIn) -> None:
        arp, ip = packet.arp, packet.ipv4
        if arp is not None:
            self.hosts[arp.sender_ip] = (arp.sender_mac, packet.in_port)
            switch.answer_arp(packet, arp.target_ip, self.mac)
        elif ip is not None and ip.dst in self.hosts:
            mac, port = self.hosts[ip.dst]
            switch.packet_out(packet, [Action.set_eth_dst(mac), Action.output(port)])


def test_hosts_in_subnets_reach_each_other_by_their_gateway() -> None:
    lab = Lab(Topology.parse(ROUTED), Router())
    assert not lab.ping("c", "b"), "the router knows no host yet, and answers for all"
    assert not lab.ping("b", "a")
    assert lab.ping("a", "b") and lab.ping("b", "a")
    assert not lab.ping("c", "a"), "c has no gateway"
    assert not lab.exceptions


VLANS = """
switch s1
host a vlan=7
host b vlan=7
host c vlan=8
host d
link s1:1 a
link s1:2 b
link s1:3 c
link s1:4 d
"""


@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_hosts_in_vlans_have_tags_and_reach_only_those_of_their_own(version: Version) -> None:
    seen: set[int | None] = set()

    def hub(switch: Switch, packet: PacketIn) -> None:
        seen.add(packet.vlan_id)
        switch.packet_out(packet, bellrock.Port.FLOOD)

    lab = Lab(Topology.parse(VLANS), hub, version=version)
    lab.capture("b")
    assert lab.ping("a", "b") and not lab.ping("a", "c") and not lab.ping("a", "d")
    assert seen == {7}
    assert all(packet.vlan_id == 7 for packet in lab.capture("b"))
    with pytest.raises(bellrock.Error, match="vlan=4095 is wrong"):
        Lab(Topology.parse("switch s1\nhost a vlan=4095\nlink s1 a\n"), hub)


def test_the_names_of_events_are_those_of_the_stub() -> None:
    import ast
    from pathlib import Path

    stub = Path(__file__).parent.parent / "bellrock" / "_native.pyi"
    assigned = next(
        node.value
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_EventName"
    )
    assert list(get_args(eval(ast.unparse(assigned)))) == Event.NAMES  # noqa: S307
