"""Routing in networks with cycles: no packet is lost, there is no storm, and traffic avoids a failed link."""

import re
import time
from pathlib import Path

from harness.case import on_both_versions
from harness.discovered import FOUND_S, Discovered
from harness.network import Pings, command
from harness.topologies import FatTree, Grid, Mesh, Ring, switch_links
from harness.waiting import until
from test_moves import MOVING_MAC, PROMPT_S, MovingHost

PING_INTERVAL_S = 0.02
# Maximum time without answers after a link is cut. Without the event, discovery needs 3.5 s to miss the link.
MAX_GAP_S = 2.0
# Time that pings run before and after a cut.
STEADY_S = 1.2
# Frames per second on an idle link without a storm: announcements and some questions.
QUIET_FRAMES_PER_S = 20
# Time until the app has read the tables again, and corrected what other programs changed.
AUDITED_S = 60 + 10
# Time until a host repeats its reports of IPv6 multicast groups (Linux: 1 s), which are flooded.
REPORTED_S = 1.5
# Time that host tracking waits for an answer from a host's old place.
PROBED_S = 1.0


class MovingInRing(Ring):
    """h1 with one interface at s1 and another at s3, on the other side of the ring."""

    def build(self, switches=4):
        super().build(switches)
        self.nodeInfo("h1")["mac"] = MOVING_MAC
        self.addLink("h1", "s3")


class Routing(Discovered):
    """The app `routing`, in both modes."""

    time_limit_s = 300

    def prepare(self, version, topology, mode):
        self.discover(version, topology, {"apps": [{"routing": {"mode": mode}}]})

    def frames_of_links(self):
        """Number of frames sent by ports between switches."""
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
        until(lambda: all(row["age_seconds"] is not None for row in self.bellrock.ask("hosts")), PROMPT_S, "when each host was seen is known")

    @on_both_versions
    def a_bridge_with_an_address_of_its_own_is_a_host(self, version):
        """The machine of a switch has an address at the bridge itself, as with hypervisors and in-band management."""
        self.prepare(version, Ring(), "reactive")
        command("ip", "address", "add", "10.0.0.100/8", "dev", "s1")
        command("ip", "link", "set", "s1", "up")
        edges = lambda: {port for switch in self.topology()["switches"] for port in switch["edge_ports"]}
        until(lambda: "LOCAL" in edges(), FOUND_S, "the bridge's own port is one of hosts")
        far = self.net["h3"]
        self.assertIn(" 0% packet loss", command("ping", "-c", "5", "-W", "2", "-I", "10.0.0.100", far.IP()))
        self.assertIn(" 0% packet loss", far.cmd("ping -c 5 -W 2 10.0.0.100"))
        flows = [flow for switch in self.net.switches for flow in self.net.flows(switch.name)]
        self.assertTrue(any("LOCAL" in flow.split("actions=")[-1] for flow in flows), flows)

    @on_both_versions
    def pingall_loses_nothing_in_a_grid(self, version):
        """Nine switches in rows and columns: cycles of four, and many paths of the same length."""
        self.pingall(version, Grid(), "reactive")

    @on_both_versions
    def pingall_loses_nothing_in_a_mesh_reactive(self, version):
        """All switches are linked with each other."""
        self.pingall(version, Mesh(), "reactive")

    @on_both_versions
    def tables_that_somebody_empties_are_filled_again(self, version):
        """An operator removes all flows of a switch. Its links stay, all hosts are reachable again at once, and all
        flows are back within a minute."""
        self.prepare(version, Ring(), "proactive")
        self.announce_hosts()
        hosts = len(self.net.hosts)
        until(lambda: self.flows_to_hosts() >= hosts, FOUND_S, "flows to all hosts in each switch")
        command("ovs-ofctl", "-O", version, "del-flows", "s1")
        until(lambda: self.net.unreachable() == [], PROMPT_S, "everybody is reached again")
        until(lambda: self.flows_to_hosts() >= hosts, AUDITED_S, "flows to all hosts in each switch, again")
        self.assertEqual((len(self.links()), self.told("link_down")), (self.ways, []))
        self.assertEqual([row["event"] for row in self.told("wanted_altered")], ["wanted_altered"])

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

    def cut_each_link_of_a_ring(self, version, mode):
        """Cuts each link under pings over that link and across the ring."""
        self.pingall(version, Ring(), mode)
        self.announce_hosts()
        # Proactive mode has one flow for each host, reactive mode more.
        until(lambda: self.flows_to_hosts() >= len(self.net.hosts), FOUND_S, "flows everywhere")
        across = [("h1", "h3"), ("h2", "h4")]
        links = switch_links(self.net.topology)
        self.assertEqual(len(links), len(self.net.switches), "links of a ring")
        for one, other in links:
            pairs = [(one.replace("s", "h"), other.replace("s", "h")), *across]
            pings = [Pings(self.net[a], self.net[b], PING_INTERVAL_S) for a, b in pairs]
            time.sleep(STEADY_S)
            self.net.net.configLinkStatus(one, other, "down")
            time.sleep(STEADY_S)
            for ping in pings:
                sequences = [sequence for _, sequence, _ in ping.finish()]
                self.assertGreater(len(sequences), STEADY_S / PING_INTERVAL_S, f"{ping.name} with {one}-{other} cut")
                gap = max(b - a for a, b in zip(sequences, sequences[1:])) * PING_INTERVAL_S
                self.assertLess(gap, MAX_GAP_S, f"seconds without an answer, {ping.name}, when {one}-{other} was cut")
                self.assertGreater(sequences[-1] * PING_INTERVAL_S, STEADY_S, f"{ping.name} goes on")
            self.net.net.configLinkStatus(one, other, "up")
            until(lambda: len(self.links()) == self.ways, FOUND_S, f"{one}-{other} is back")
        self.assertEqual(self.net.ping_all(), 0.0)

    @on_both_versions
    def a_ring_loses_nothing_and_any_link_is_cut_under_running_pings_reactive(self, version):
        """Pingall in a ring of four. Then flows of pairs of hosts move to the other direction of the ring."""
        self.cut_each_link_of_a_ring(version, "reactive")

    @on_both_versions
    def a_ring_loses_nothing_and_any_link_is_cut_under_running_pings_proactive(self, version):
        """The same with flows to hosts."""
        self.cut_each_link_of_a_ring(version, "proactive")

    @on_both_versions
    def questions_for_ipv6_addresses_are_answered_from_the_host_table(self, version):
        """Neighbour discovery: a known host need not answer a question for its address, and no question is flooded."""
        self.prepare(version, Ring(), "reactive")
        for number, host in enumerate(self.net.hosts, start=1):
            interface = host.defaultIntf().name
            host.cmd(f"sysctl -q -w net.ipv6.conf.{interface}.accept_ra=0 net.ipv6.conf.{interface}.disable_ipv6=0")
            host.cmd(f"ip -6 addr add 2001:db8::{number}/64 dev {interface} nodad")
        pairs = [(a, b) for a in range(1, 5) for b in range(1, 5) if a != b]

        def unanswered():
            pings = [(pair, self.net[f"h{pair[0]}"].popen(["ping", "-6", "-n", "-q", "-c", "1", "-W", "1", f"2001:db8::{pair[1]}"]))
                     for pair in pairs]
            return [pair for pair, ping in pings if ping.wait() != 0]

        until(lambda: unanswered() == [], FOUND_S, "all hosts reach each other, and so are known")

        def is_quiet():
            before = self.app_counter("routing", "floods")
            time.sleep(REPORTED_S)
            return self.app_counter("routing", "floods") == before

        until(is_quiet, FOUND_S, "hosts have told which groups they are in")
        for host in self.net.hosts:
            host.cmd("ip -6 neigh flush all")
        answered, floods = (self.app_counter("routing", name) for name in ("answered", "floods"))
        self.assertEqual(unanswered(), [])
        # One host of a pair may learn the other's address from the question that it gets.
        self.assertGreaterEqual(self.app_counter("routing", "answered") - answered, len(pairs) // 2)
        self.assertEqual(self.app_counter("routing", "floods"), floods, "questions that went to everybody")


class RoutedMoves(MovingHost, Discovered):
    """In a ring of four switches, from one side to the other, with the app `routing`."""

    def prepare(self, version, mode):
        self.discover(version, MovingInRing(), {"apps": [{"routing": {"mode": mode}}]})
        self.prepare_hosts()

    def told_of_host(self):
        """The texts of the host's events, without port numbers."""
        texts = [row["text"].replace(MOVING_MAC, "h1") for row in self.bellrock.ask("events")]
        return [re.sub(r"\b0+(\d):\d+", r"s\1", text) for text in texts if "h1" in text]

    @on_both_versions
    def to_another_switch_link_down(self, version):
        """The old link goes down: the host is reachable within a second of its first broadcast."""
        self.prepare(version, "reactive")
        self.move(old_port_stays_up=False)
        spoke_at = self.speak(broadcast=True)
        self.assert_back(spoke_at, PROMPT_S)
        self.assertEqual(self.told_of_host(), ["host h1 is at s1", "host h1 is not at s1 any more: the port is down",
                                               "host h1 moved from s1 to s3"])

    @on_both_versions
    def to_another_switch_port_up(self, version):
        """The old port stays up: reachable when the host was probed there and has not answered for a second."""
        self.prepare(version, "proactive")
        moved_at = self.move(old_port_stays_up=True)
        spoke_at = self.speak(broadcast=True)
        self.assert_back(spoke_at, PROBED_S + PROMPT_S)
        self.assert_silent(moved_at, spoke_at)
        self.assertEqual(self.told_of_host(), ["host h1 is at s1", "host h1 moved from s1 to s3"])
