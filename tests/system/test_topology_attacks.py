"""Attacks on the topology from the literature, on Open vSwitch: hosts that relay announcements, that take their ports
down to be forgotten, or that take the place or the address of another host."""

import subprocess
import sys

from mininet.topo import Topo

from harness import announce, intruder
from harness.case import on_both_versions
from harness.discovered import FOUND_S, INTERVAL_S, Discovered
from harness.waiting import until

SOON_S = 20
# Long enough for several rounds of announcements.
ROUNDS_S = 5 * INTERVAL_S


class Accomplices(Topo):
    """Two switches with a link, and two hosts at each. h1 and h3 have a line of their own besides, on which nobody looks."""

    def build(self):
        one, other = (self.addSwitch(f"s{number}") for number in (1, 2))
        self.addLink(one, other)
        for host, switch in (("h1", one), ("h2", one), ("h3", other), ("h4", other)):
            self.addLink(self.addHost(host), switch)
        self.addLink("h1", "h3")


class Attacks(Discovered):
    """Hosts that attack, on a network with host tracking and the learning switch."""

    time_limit_s = 180

    def start(self, version):
        self.config = {"services": "hosts", "apps": ["learning"], "discovery_interval": f"{INTERVAL_S} s",
                       "switches": {"left": "0000000000000001", "right": "0000000000000002"}}
        self.ways, self.host_ports = 2, 4
        self.bellrock = self.controller(config=self.config)
        self.net = self.network(Accomplices(), version, connect=False)
        self.await_discovered()
        for host in self.net.hosts:
            self.announce(host)
        until(lambda: len(self.told("host_seen")) >= 4, FOUND_S, "every host is known")

    def announce(self, host, mac=None, ip=None):
        """A gratuitous ARP, of its own addresses or of those of others."""
        words = [sys.executable, announce.__file__, f"{host.name}-eth0", mac or host.MAC(), ip or host.IP()]
        _, error, status = host.pexec(words)
        self.assertEqual(status, 0, error)

    def relay(self):
        """h1 and h3 pass announcements on over their own line."""
        for name in ("h1", "h3"):
            host = self.net[name]
            host.cmd(f"ip link set {name}-eth1 up")
            words = [sys.executable, intruder.__file__, "relay", f"{name}-eth0", f"{name}-eth1", str(FOUND_S * 2)]
            process = host.popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def port_of(self, name):
        """SWITCH:PORT of a host."""
        row, = [row for row in self.bellrock.ask("hosts") if row["mac"] == self.net[name].MAC() and "hosts" in row["apps"]]
        return f"{row['switch_name']}:{row['port']}"

    def place(self, name):
        rows = [row for row in self.bellrock.ask("hosts") if row["mac"] == self.net[name].MAC() and "hosts" in row["apps"]]
        return [row["dpid"][-1] for row in rows]

    @on_both_versions
    def relay_between_hosts(self, version):
        """TopoGuard, link fabrication by relay: no link. An operator can say that it is one, and that it is none."""
        self.start(version)
        ends = [self.port_of("h1"), self.port_of("h3")]
        self.relay()
        until(lambda: self.told("relay_suspected"), SOON_S, "the relay is reported")
        self.assertEqual(len(self.links()), self.ways)
        row, = self.bellrock.ask("relays", "list")
        self.assertEqual((row["verdict"], row["up"]), ("none", False), row)
        self.assertIn("a host was seen at", row["evidence"])

        row = self.bellrock.ask("relays", "trust", *ends)
        self.assertEqual(row["verdict"], "link")
        until(lambda: len(self.links()) == self.ways + 2, SOON_S, "the link is up, as the operator says")
        self.assertIn("is not a port of a switch", self.bellrock.refused("relays", "trust", "left", "right:1"))
        row = self.bellrock.ask("relays", "refuse", *reversed(ends))
        self.assertEqual((row["verdict"], row["up"]), ("relay", False))
        self.assertEqual(len(self.links()), self.ways)
        self.assertTrue(any("an operator says that it is a relay" in event["text"] for event in self.told("link_down")))

    @on_both_versions
    def port_amnesia(self, version):
        """TopoGuard+, port amnesia: a host that takes its port down and up is still no switch."""
        self.start(version)
        for name in ("h1", "h3"):
            self.net[name].cmd(f"ip link set {name}-eth0 down; sleep 0.3; ip link set {name}-eth0 up")
        until(lambda: len(self.told("host_gone")) >= 2, SOON_S, "their ports were down")
        self.relay()
        until(lambda: self.told("relay_suspected"), SOON_S, "the relay is reported")
        until(lambda: self.edge_ports() == self.host_ports, SOON_S, "both ports are for hosts again")
        self.assertEqual(len(self.links()), self.ways)
        self.assertTrue(any("until the port went down" in event["text"] for event in self.told("relay_suspected")),
                        self.told("relay_suspected"))

    @on_both_versions
    def port_probing(self, version):
        """TopoGuard+, port probing: who takes the address of a host that is away loses it when the host is back."""
        self.start(version)
        victim, attacker = self.net["h2"], self.net["h4"]
        victim.cmd("ip link set h2-eth0 down")
        until(lambda: self.place("h2") == [], SOON_S, "the victim is away")
        self.announce(attacker, victim.MAC(), "10.0.0.99")
        until(lambda: self.place("h2") == ["2"], SOON_S, "it looks like a move")
        self.assertTrue(self.told("host_moved"), "and is reported as a move")
        victim.cmd("ip link set h2-eth0 up")

        def is_back():
            self.announce(victim)
            return self.place("h2") == ["1"]
        until(is_back, SOON_S, "the victim has its place back")
        self.assertEqual(self.net.unreachable([("h1", "h2"), ("h2", "h1")]), [])

    @on_both_versions
    def identifier_binding(self, version):
        """SPHINX and SecureBinder, a false binding of addresses: the owner keeps it while it answers."""
        self.start(version)
        victim, attacker = self.net["h2"], self.net["h4"]

        def is_reported():
            self.announce(attacker, ip=victim.IP())
            return self.told("address_claim_refused")
        until(is_reported, SOON_S, "the claim is reported")
        owners = {row["mac"] for row in self.bellrock.ask("hosts") if victim.IP() in row["addresses"]}
        self.assertEqual(owners, {victim.MAC()})
