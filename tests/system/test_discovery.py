"""The controller finds links and hosts. Hosts that claim to be switches or other hosts gain nothing."""

import sys
import time

from mininet.topo import Topo

from harness import intruder
from harness.case import on_both_versions
from harness.discovered import INTERVAL_S, Discovered
from harness.waiting import until

# After this time an announcement is too old, and an event has been reported.
LATER_S = 2.5


class Triangle(Topo):
    """Three switches, all linked with each other, with a host each and another at s1."""

    def build(self):
        names = [self.addSwitch(f"s{number}") for number in (1, 2, 3)]
        for one, other in ((0, 1), (1, 2), (2, 0)):
            self.addLink(names[one], names[other])
        for host, switch in (("h1", "s1"), ("h2", "s2"), ("h3", "s3"), ("h4", "s1")):
            self.addLink(self.addHost(host), switch)


class Tree(Topo):
    """Two switches, two hosts at the first and one at the other: no cycle, so that the learning switch works."""

    def build(self):
        one, other = (self.addSwitch(f"s{number}") for number in (1, 2))
        self.addLink(one, other)
        for host, switch in (("h1", one), ("h2", one), ("h3", other)):
            self.addLink(self.addHost(host), switch)


class Discovery(Discovered):
    """Discovery and host tracking, asked over the control socket."""

    def prepare(self, version, topology, apps):
        self.discover(version, topology, {"services": "hosts", "apps": apps})

    def intrude(self, host, *words):
        """Runs `harness/intruder.py` on `host` and returns the words of its output."""
        command = [sys.executable, intruder.__file__, words[0], host.defaultIntf().name, *map(str, words[1:])]
        text, error, status = host.pexec(command)
        self.assertEqual(status, 0, error)
        return text.split()

    def places(self, mac):
        """Places of a host: by the learning app at each switch, and by host tracking, with its IP addresses."""
        rows = [row for row in self.bellrock.ask("hosts") if row["mac"] == mac]
        return sorted((row["dpid"], row["port"], tuple(row["addresses"])) for row in rows)

    @on_both_versions
    def links_of_a_ring_come_and_go(self, version):
        """All links of a ring are found. A link that is cut goes away at once, and comes back when it is mended."""
        self.prepare(version, Triangle(), ["hub"])
        self.assertTrue(all(link["both_ways"] for link in self.links()))
        self.net.net.configLinkStatus("s1", "s2", "down")
        until(lambda: len(self.links()) == self.ways - 2, 2, "the link is down")
        self.net.net.configLinkStatus("s1", "s2", "up")
        until(lambda: len(self.links()) == self.ways, 2, "the link is up")
        self.assertEqual(self.told("relay_suspected"), [])

    @on_both_versions
    def forged_and_replayed_lldp_makes_no_link(self, version):
        """A host that changes or repeats an announcement makes no link. Both are reported."""
        self.prepare(version, Tree(), ["learning"])
        h1, h3 = self.net["h1"], self.net["h3"]
        frames = self.intrude(h1, "record", 3 * INTERVAL_S)
        self.assertGreater(len(frames), 0, "the host has seen no announcement, so it proves nothing")
        frame = frames[-1]
        time.sleep(LATER_S)
        self.intrude(h3, "send", frame, 5)
        forged = frame[:-6] + format(int(frame[-6:-4], 16) ^ 1, "02x") + frame[-4:]
        self.intrude(h3, "send", forged, 5)
        self.intrude(h1, "send", frame, 5)
        until(lambda: self.told("replayed_announcement"), 2, "the replay is told")
        until(lambda: self.told("forged_announcement"), 2, "the forgery is told")
        until(lambda: self.told("reflected_announcement"), 2, "the reflection is told")
        self.assertEqual(len(self.links()), self.ways)
        self.assertEqual(self.edge_ports(), 3)
        self.assertEqual(len(self.told("link_up")), self.ways, "no link ever was up but those that are")

    @on_both_versions
    def nobody_takes_the_address_of_a_host_that_is_alive(self, version):
        """A host that sends from the address of another host gets none of its packets, and is reported."""
        self.prepare(version, Tree(), ["routing"])
        h1, h3 = self.net["h1"], self.net["h3"]
        until(lambda: self.net.ping_all() == 0, 10, "all hosts reach each other")
        self.assertTrue(any(h1.IP() in row[2] for row in self.places(h1.MAC())), "its Internet address is known")
        before = self.places(h1.MAC())
        self.intrude(h3, "claim", h1.MAC(), 30)
        until(lambda: self.told("host_move_refused"), 3, "the claim is told")
        self.assertEqual(self.places(h1.MAC()), before, "no switch has learnt it elsewhere")
        self.assertEqual(self.net.unreachable([("h2", "h1"), ("h3", "h1")]), [], "packets go where the host is")
        self.assertEqual(self.told("host_moved"), [])
