"""The base of tests in which the controller discovers links."""

import sys

from . import announce
from .case import SystemTest
from .topologies import switch_links
from .waiting import until

# Interval of announcements. Links are found within it. Ports without links count as ports for hosts after two seconds.
INTERVAL_S = 1
FOUND_S = 60


class Discovered(SystemTest):
    """A controller, `bellrock`, that knows all links and all ports for hosts of a network, `net`."""

    def discover(self, version, topology, config):
        """Starts both and waits until everything is discovered."""
        self.config = config | {"discovery_interval": f"{INTERVAL_S} s"}
        self.ways = 2 * len(switch_links(topology))
        # A host can have several ports.
        self.host_ports = len(topology.links()) - len(switch_links(topology))
        self.bellrock = self.controller(config=self.config)
        self.net = self.network(topology, version, connect=False)
        self.await_discovered()

    def await_discovered(self):
        until(self.net.connected, FOUND_S, "every switch connected")
        until(lambda: len(self.links()) == self.ways, FOUND_S, f"{self.ways} ways of links")
        until(lambda: self.topology()["settled"], FOUND_S, "a settled topology")
        until(lambda: self.edge_ports() == self.host_ports, FOUND_S, f"{self.host_ports} ports of hosts")

    def announce_hosts(self):
        """Lets each host announce itself. The controller may not see a host that only answers: flows carry its
        answers."""
        for host in self.net.hosts:
            printed = host.cmd(f"{sys.executable} {announce.__file__} {host.defaultIntf().name} {host.MAC()} {host.IP()}")
            self.assertEqual(printed, "", f"{host.name} sends a gratuitous ARP")
        until(lambda: len(self.told("host_seen")) == len(self.net.hosts), FOUND_S, "every host is known")

    def flows_to_hosts(self):
        """Number of flows to hosts in the switch with the fewest of them."""
        hosts = [f"dl_dst={host.MAC()}" for host in self.net.hosts]
        return min(len([flow for flow in self.net.flows(switch.name) if any(host in flow for host in hosts)])
                   for switch in self.net.switches)

    def topology(self):
        return self.bellrock.ask("topology")

    def links(self):
        return self.topology()["links"]

    def edge_ports(self):
        return sum(len(switch["edge_ports"]) for switch in self.topology()["switches"])

    def told(self, event):
        """The events with this name, as rows."""
        return [row for row in self.bellrock.ask("events") if row["event"] == event]

    def app_counter(self, app, name):
        """A counter of an app."""
        return self.bellrock.ask("counters")["apps"][app][name]
