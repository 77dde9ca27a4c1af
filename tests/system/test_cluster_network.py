"""Three controllers know one network: the links and hosts of all of them, and apps that use them."""

import subprocess
import sys
import time

from harness import intruder
from harness.cluster import LIMIT_S, NAMES, ClusterTest
from harness.network import Line, Pings
from harness.waiting import until

# Time between two announcements of a port. A link without them is down after three and a half.
INTERVAL_S = 1
SILENT_AFTER_S = 3.5 * INTERVAL_S
# An announcement is old after so long.
LATER_S = 2 * INTERVAL_S
# Long enough for three links to be found silent, if they were.
WATCHED_S = 3 * SILENT_AFTER_S
PING_INTERVAL_S = 0.02
ASK_EVERY_S = 0.3


class WholeNetwork(ClusterTest):
    """A line of three switches, each of which obeys another node."""

    time_limit_s = 240
    apps = ("routing",)
    settings = {"discovery_interval": f"{INTERVAL_S} s"}
    hosts = (1, 2, 3)

    def spread(self):
        """A line of switches: s1 obeys a, s2 obeys b, and s3 obeys c. Every node knows all of it."""
        self.attach(Line(switches=3, hosts=self.hosts))
        for dpid, name in enumerate(NAMES, start=1):
            self.give(dpid, name)
        self.settle()
        self.await_known()

    def give(self, dpid, to):
        def given():
            master = self.masters().get(f"s{dpid}")
            if master == to:
                return True
            try:
                self.nodes[master].ask("cluster", "move", format(dpid, "016x"), to)
            except (AssertionError, KeyError):
                # It has moved meanwhile, or the other node is not connected to it yet.
                return False
            return False
        until(given, LIMIT_S, f"s{dpid} obeys {to}", ASK_EVERY_S)

    def await_known(self, of=NAMES):
        until(lambda: all(self.knows_all(self.nodes[name]) for name in of), LIMIT_S, f"{', '.join(of)} know the network",
              ASK_EVERY_S)

    def knows_all(self, node):
        topology = node.ask("topology")
        edge = sum(len(switch["edge_ports"]) for switch in topology["switches"])
        return len(topology["switches"]) == 3 and len(topology["links"]) == 4 and edge == len(self.hosts)

    @staticmethod
    def links(node):
        return {tuple(link[key] for key in ("from_dpid", "from_port", "to_dpid", "to_port"))
                for link in node.ask("topology")["links"]}

    @staticmethod
    def places(node):
        return {row["mac"]: (row["dpid"], row["port"], tuple(row["addresses"])) for row in node.ask("hosts")
                if "hosts" in row["apps"]}

    @staticmethod
    def events(node, name):
        return [row for row in node.ask("events") if row["event"] == name]

    def await_hosts(self, of=NAMES):
        """Waits until these nodes report all hosts, at the same ports, with their addresses."""
        def known():
            places = [self.places(self.nodes[name]) for name in of]
            hosts = self.net.hosts
            return (all(it == places[0] for it in places) and len(places[0]) == len(hosts)
                    and all(host.IP() in places[0].get(host.MAC(), ((), (), ()))[2] for host in hosts) and places[0])
        return until(known, LIMIT_S, f"{', '.join(of)} know all hosts", ASK_EVERY_S)

    def flows_of_hosts(self, number):
        """The flows of a switch between hosts: their matches."""
        macs = {host.MAC() for host in self.net.hosts}
        return {(source, target) for flow in self.net.flows(f"s{number}") for source in macs for target in macs
                if f"dl_src={source}" in flow and f"dl_dst={target}" in flow}

    def intrude(self, host, *words):
        """A hostile host. Returns its process."""
        words = [sys.executable, intruder.__file__, words[0], f"{host.name}-eth0", *map(str, words[1:])]
        process = host.popen(words, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def announcements(self, host):
        """What a host receives of the announcements of its switch."""
        recorded = self.intrude(host, "record", 3 * INTERVAL_S).communicate(timeout=LIMIT_S)[0].split()
        self.assertTrue(recorded, f"{host.name} received no announcement")
        return recorded


class OneNetwork(WholeNetwork):
    """What every node shows, and what stays when one is lost."""

    def test_every_node_shows_all_links_and_hosts_and_hosts_reach_each_other(self):
        self.spread()
        self.assertEqual(self.net.ping_all(), 0.0)
        self.await_hosts()
        links = [self.links(node) for node in self.nodes.values()]
        self.assertEqual(links[0], links[1])
        self.assertEqual(links[0], links[2])
        for node in self.nodes.values():
            self.assertEqual(self.events(node, "forged_announcement") + self.events(node, "relay_suspected"), [])
        # Flows lie in all three switches, though three nodes are their masters.
        for number in (1, 2, 3):
            self.assertTrue(any(self.net["h1"].MAC() in flow for flow in self.net.flows(f"s{number}")), f"s{number}")
        # A link that fails is gone at each node, and back.
        self.net.net.configLinkStatus("s1", "s2", "down")
        until(lambda: all(len(self.links(node)) == 2 for node in self.nodes.values()), LIMIT_S, "each node has lost the link")
        self.assertEqual(sorted(self.net.unreachable()), sorted([("h1", "h2"), ("h1", "h3"), ("h2", "h1"), ("h3", "h1")]))
        self.net.net.configLinkStatus("s1", "s2", "up")
        self.await_known()
        self.reach()

    def test_links_and_hosts_of_a_killed_node_stay(self):
        """No link is down, no host is gone, no flow is laid anew, and pings go on."""
        self.spread()
        self.reach()
        places = self.await_hosts()
        self.net.net.staticArp()
        pings = Pings(self.net["h1"], self.net["h3"], PING_INTERVAL_S)
        time.sleep(INTERVAL_S)
        flows = {number: self.flows_of_hosts(number) for number in (1, 2, 3)}
        self.nodes["b"].kill()
        others = self.others("b")
        self.await_masters(others)
        end = time.monotonic() + WATCHED_S
        while time.monotonic() < end:
            for name in others:
                self.assertTrue(self.knows_all(self.nodes[name]), f"{name} has lost a part of the network")
                self.assertEqual(self.places(self.nodes[name]), places)
        for name in others:
            self.assertEqual(self.events(self.nodes[name], "link_down"), [], name)
            self.assertEqual(self.events(self.nodes[name], "host_gone"), [], name)
        for number, before in flows.items():
            self.assertEqual(before - self.flows_of_hosts(number), set(), f"flows of s{number} are gone")
        pings.finish()
        self.assertEqual(pings.lost(), [], "pings over flows that are in the switches")
        # New flows go on too, over switches of both.
        self.assertEqual(self.net.unreachable(), [])
        self.nodes["b"].start()
        self.settle()
        self.await_known()
        self.assertEqual(self.await_hosts(), places)


class Restarts(WholeNetwork):
    """Nodes that end and start again, or stand still for a while."""

    # Flows are laid anew after so long without a packet.
    IDLE_S = 4
    # Longer than the others wait for it, and than a link may be silent.
    STILL_S = 4 * INTERVAL_S

    apps = ({"routing": {"idle_timeout": f"{IDLE_S} s"}},)

    def assert_new_flows_pass(self):
        until(lambda: not any(self.flows_of_hosts(number) for number in (1, 2, 3)), LIMIT_S, "the flows are idle", ASK_EVERY_S)
        self.assertEqual(self.net.unreachable(), [])

    def test_no_node_loses_a_link_when_nodes_restart(self):
        """Each node is killed in turn, starts again, and gets its switch back."""
        self.spread()
        self.reach()
        links = self.links(self.nodes["a"])
        for dpid, name in enumerate(NAMES, start=1):
            self.nodes[name].kill()
            self.await_masters(self.others(name))
            self.nodes[name].start()
            self.settle()
            self.give(dpid, name)
            self.await_known()
            # The master of the switch must confirm its links.
            time.sleep(SILENT_AFTER_S)
            until(lambda: all(self.links(node) == links for node in self.nodes.values()), LIMIT_S,
                  f"all nodes know all links after the restart of {name}", ASK_EVERY_S)
        self.assert_new_flows_pass()

    def test_no_node_loses_a_link_when_a_node_stands_still(self):
        self.spread()
        self.reach()
        links = self.links(self.nodes["a"])
        self.nodes["b"].pause()
        self.await_masters(self.others("b"))
        time.sleep(self.STILL_S)
        self.nodes["b"].go_on()
        time.sleep(WATCHED_S)
        until(lambda: all(self.links(node) == links for node in self.nodes.values()), LIMIT_S, "all nodes know all links",
              ASK_EVERY_S)
        self.settle()
        self.assert_new_flows_pass()


class Hostile(WholeNetwork):
    """Hosts that repeat or forge announcements, or claim the address of another host, at another node than the one whose
    announcement or host it is."""

    hosts = (1, 1, 2, 3)

    def setUp(self):
        super().setUp()
        self.spread()

    def reported(self, event, of=NAMES):
        return [row for name in of for row in self.events(self.nodes[name], event)]

    def test_announcements_of_a_node_are_good_for_one_link_once(self):
        """Frames of nodes a and b are repeated at a switch of node c, as they were and with a bit changed."""
        self.reach()
        self.await_hosts()
        frames = [self.announcements(self.net[host])[-1] for host in ("h1", "h3")]
        links = self.links(self.nodes["a"])
        h4 = self.net["h4"]
        time.sleep(LATER_S)
        for frame, node in zip(frames, ("a", "b")):
            self.intrude(h4, "send", frame, 5).wait(LIMIT_S)
            until(lambda node=node: self.reported("replayed_announcement", node), LIMIT_S, f"node {node} reports the replay")
        for frame in frames:
            forged = frame[:-6] + format(int(frame[-6:-4], 16) ^ 1, "02x") + frame[-4:]
            self.intrude(h4, "send", forged, 5).wait(LIMIT_S)
        until(lambda: self.reported("forged_announcement", "c"), LIMIT_S, "the forgery is reported where it came in")
        for node in self.nodes.values():
            self.assertEqual(self.links(node), links)
            self.assertTrue(self.knows_all(node), "all ports of hosts are still those of hosts")
            self.assertEqual(self.events(node, "link_down"), [])

    def test_a_relay_between_hosts_of_two_nodes_makes_no_link(self):
        """A host at a switch of node a, and one at a switch of node c, pass each other's announcements on."""
        self.reach()
        self.await_hosts()
        links = self.links(self.nodes["a"])
        h1, h4 = self.net["h1"], self.net["h4"]
        until(lambda: self.relay_once(h1, h4), LIMIT_S, "the relay is reported", INTERVAL_S)
        for node in self.nodes.values():
            self.assertEqual(self.links(node), links)
            self.assertTrue(self.knows_all(node))

    def relay_once(self, source, target):
        """Passes the newest announcement that a host receives on to the port of another one."""
        recorded = self.intrude(source, "record", 2 * INTERVAL_S)
        frame = recorded.stdout.readline().strip()
        self.intrude(target, "send", frame, 1).wait(LIMIT_S)
        return self.reported("relay_suspected")

    def test_nobody_takes_the_address_of_a_host_of_another_node(self):
        """The node that has the host asks it, and refuses the claim."""
        self.reach()
        places = self.await_hosts()
        h1, h4 = self.net["h1"], self.net["h4"]
        self.intrude(h4, "claim", h1.MAC(), 30).wait(LIMIT_S)
        until(lambda: self.reported("host_move_refused"), LIMIT_S, "the claim is reported")
        for node in self.nodes.values():
            self.assertEqual(self.places(node), places)
        self.assertEqual(self.reported("host_moved"), [])
        self.assertEqual(self.net.unreachable([("h3", "h1"), ("h4", "h1")]), [])


class Proactive(WholeNetwork):
    """Flows to each host at every switch, installed by the master of each."""

    apps = ({"routing": {"mode": "proactive"}},)

    def test_hosts_reach_each_other_over_switches_of_three_nodes(self):
        self.spread()
        self.reach()
        self.await_hosts()
        self.assertEqual(self.net.ping_all(), 0.0)
        self.nodes["b"].kill()
        self.await_masters(self.others("b"))
        self.reach()


class GlobalLearning(WholeNetwork):
    """One table for all switches of a node. The switches of other nodes are like those of other networks."""

    apps = ("global_learning",)
    settings = WholeNetwork.settings | {"services": "hosts"}

    def test_hosts_reach_each_other_over_switches_of_three_nodes(self):
        self.spread()
        self.reach()
        self.assertEqual(self.net.ping_all(), 0.0)
        self.nodes["b"].kill()
        self.await_masters(self.others("b"))
        self.reach()
