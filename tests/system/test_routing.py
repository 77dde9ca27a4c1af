"""Routing in networks with cycles: nothing is lost, nothing storms, and a link that fails is gone around."""

import time
from pathlib import Path

from mininet.topo import Topo

from harness.case import SystemTest, on_both_versions
from harness.network import Pings
from harness.waiting import until

PING_INTERVAL_S = 0.02
# What a link that is cut may cost.
MAX_GAP_S = 1.0
FOUND_S = 20
# How long pings go on before a cut, and after it.
STEADY_S = 1.5
# Frames that a network without a storm carries over a link while nobody says anything: announcements, and some questions.
QUIET_FRAMES_PER_S = 20


class Ring(Topo):
    """Four switches in a circle, with a host each."""

    def build(self, switches=4):
        names = [self.addSwitch(f"s{number}") for number in range(1, switches + 1)]
        for index, name in enumerate(names):
            self.addLink(self.addHost(f"h{index + 1}"), name)
            self.addLink(name, names[(index + 1) % switches])


class Mesh(Topo):
    """Five switches, each linked with each other one, with a host each."""

    def build(self, switches=5):
        names = [self.addSwitch(f"s{number}") for number in range(1, switches + 1)]
        for index, name in enumerate(names):
            self.addLink(self.addHost(f"h{index + 1}"), name)
            for other in names[index + 1:]:
                self.addLink(name, other)


class FatTree(Topo):
    """The fat-tree of four-port switches: 20 switches, 16 hosts."""

    def build(self, k=4):
        half = k // 2
        number = iter(range(1, 1000))
        cores = [self.addSwitch(f"s{next(number)}") for _ in range(half * half)]
        hosts = iter(range(1, 1000))
        for _ in range(k):
            upper = [self.addSwitch(f"s{next(number)}") for _ in range(half)]
            lower = [self.addSwitch(f"s{next(number)}") for _ in range(half)]
            for index, switch in enumerate(upper):
                for core in cores[index * half:(index + 1) * half]:
                    self.addLink(switch, core)
                for edge in lower:
                    self.addLink(switch, edge)
            for edge in lower:
                for _ in range(half):
                    self.addLink(edge, self.addHost(f"h{next(hosts)}"))


class Routing(SystemTest):
    """The app `routing`, in both modes."""

    time_limit_s = 150

    def prepare(self, version, topology, mode):
        config = {"discovery_interval": "1 s", "apps": [{"routing": {"mode": mode}}]}
        self.bellrock = self.controller(config=config)
        self.net = self.network(topology, version, connect=False)
        until(lambda: self.net.connected(), FOUND_S, "every switch connected")
        self.ways = 2 * len([link for link in topology.links() if all(end.startswith("s") for end in link)])
        hosts = len(topology.hosts())
        until(lambda: len(self.links()) == self.ways, FOUND_S, f"{self.ways} links")
        until(lambda: self.bellrock.ask("topology")["settled"] and self.edge_ports() == hosts, FOUND_S, "a settled topology")

    def links(self):
        return self.bellrock.ask("topology")["links"]

    def edge_ports(self):
        return sum(len(switch["edge_ports"]) for switch in self.bellrock.ask("topology")["switches"])

    def frames_of_links(self):
        """Frames that ports between switches have sent."""
        between = set()
        for link in self.net.net.links:
            if link.intf1.node in self.net.switches and link.intf2.node in self.net.switches:
                between |= {link.intf1.name, link.intf2.name}
        self.assertEqual(len(between), self.ways, "ports between switches")
        sent = 0
        for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
            name, _, numbers = line.partition(":")
            if name.strip() in between:
                sent += int(numbers.split()[9])
        return sent

    def assert_no_storm(self):
        before, began = self.frames_of_links(), time.monotonic()
        time.sleep(1)
        rate = (self.frames_of_links() - before) / (time.monotonic() - began) / self.ways
        self.assertLess(rate, QUIET_FRAMES_PER_S, "frames a second on each link, though nobody says anything")

    def pingall(self, version, topology, mode):
        self.prepare(version, topology, mode)
        self.assertEqual(self.net.ping_all(), 0.0)
        self.assert_no_storm()
        self.assertEqual(self.net.ping_all(), 0.0)

    @on_both_versions
    def pingall_loses_nothing_in_a_ring_reactive(self, version):
        """Four switches in a circle."""
        self.pingall(version, Ring(), "reactive")

    @on_both_versions
    def pingall_loses_nothing_in_a_ring_proactive(self, version):
        """The same, with flows to all hosts."""
        self.pingall(version, Ring(), "proactive")

    @on_both_versions
    def pingall_loses_nothing_in_a_mesh_reactive(self, version):
        """Each switch linked with each other one."""
        self.pingall(version, Mesh(), "reactive")

    @on_both_versions
    def pingall_loses_nothing_in_a_mesh_proactive(self, version):
        """The same, with flows to all hosts."""
        self.pingall(version, Mesh(), "proactive")

    @on_both_versions
    def pingall_loses_nothing_in_a_fat_tree_reactive(self, version):
        """The fat-tree of four-port switches with all its cycles."""
        self.pingall(version, FatTree(), "reactive")

    @on_both_versions
    def pingall_loses_nothing_in_a_fat_tree_proactive(self, version):
        """The same, with flows to all hosts."""
        self.pingall(version, FatTree(), "proactive")

    def cut_each_link(self, version, mode):
        self.prepare(version, Ring(), mode)
        self.assertEqual(self.net.ping_all(), 0.0)
        names = [switch.name for switch in self.net.switches]
        for index, name in enumerate(names):
            other = names[(index + 1) % len(names)]
            pings = [Pings(self.net[a], self.net[b], PING_INTERVAL_S) for a, b in (("h1", "h3"), ("h2", "h4"), ("h1", "h2"))]
            time.sleep(STEADY_S)
            self.net.net.configLinkStatus(name, other, "down")
            time.sleep(STEADY_S)
            for ping in pings:
                sequences = [sequence for _, sequence, _ in ping.finish()]
                self.assertGreater(len(sequences), STEADY_S / PING_INTERVAL_S, f"{ping.name} with {name}-{other} cut")
                gap = max(b - a for a, b in zip(sequences, sequences[1:])) * PING_INTERVAL_S
                self.assertLess(gap, MAX_GAP_S, f"seconds without an answer, {ping.name}, when {name}-{other} was cut")
                self.assertGreater(sequences[-1] * PING_INTERVAL_S, STEADY_S, f"{ping.name} goes on")
            self.net.net.configLinkStatus(name, other, "up")
            until(lambda: len(self.links()) == self.ways, FOUND_S, f"{name}-{other} is back")
        self.assertEqual(self.net.ping_all(), 0.0)

    @on_both_versions
    def any_link_of_a_ring_is_cut_under_running_pings_reactive(self, version):
        """Flows of pairs of hosts are led the other way round."""
        self.cut_each_link(version, "reactive")

    @on_both_versions
    def any_link_of_a_ring_is_cut_under_running_pings_proactive(self, version):
        """Flows to hosts are."""
        self.cut_each_link(version, "proactive")
