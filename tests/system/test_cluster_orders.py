"""What operators order from apps of a cluster: reservations and blocked hosts, at any node, whichever node ends."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from harness.cluster import LIMIT_S, ClusterTest
from harness.controller import without_own_variables
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

ORDER_S = 30
ROUNDS = 20


class Orders(ClusterTest):
    """A line of three switches with a host each."""

    apps = ("quarantine", "bandwidth", "learning")
    time_limit_s = 300

    def setUp(self):
        super().setUp()
        self.attach(Line(switches=3, hosts=(1, 2, 3)))
        self.reach()

    def order(self, name, *words):
        """An order that need not succeed: its exit status, and what it says."""
        node = self.nodes[name]
        words = [node.binary, *words, "--json", "--control", str(node.control)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=ORDER_S, check=False, env=without_own_variables())
        return done.returncode, done.stdout + done.stderr

    def metered(self, switch):
        """Match, actions and cookie of each flow with a meter, and the ages of these flows."""
        flows = [line for line in command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch).splitlines() if "meter:" in line]
        ages = [float(re.search(r"duration=([\d.]+)s", line)[1]) for line in flows]
        return sorted(re.sub(r"(duration|n_packets|n_bytes|idle_age)=[^,]*, ", "", line).strip() for line in flows), ages

    def test_a_blocked_host_is_blocked_at_the_switches_of_all_nodes(self):
        first, last = self.net["h1"], self.net["h3"]
        self.assertEqual(self.net.unreachable([("h1", "h3")]), [])
        asked = next(name for name in self.nodes if name != self.masters()["s1"])
        code, said = self.order(asked, "quarantine", "add", first.MAC())
        self.assertEqual(code, 0, said)
        for switch in self.net.switches:
            until(lambda switch=switch: any("actions=drop" in line for line in self.net.flows(switch.name)), LIMIT_S,
                  f"{switch.name} drops")
        self.assertEqual(self.net.unreachable([("h1", "h3"), ("h2", "h3")]), [("h1", "h3")])
        for node in self.nodes.values():
            until(lambda node=node: [row["host"] for row in node.ask("quarantine", "list")["rows"]] == [first.MAC()], LIMIT_S,
                  "each node lists it")
        # At two nodes at once: one is the first.
        others = [name for name in self.nodes if name != asked]
        with ThreadPoolExecutor() as pool:
            outcomes = list(pool.map(lambda name: self.order(name, "quarantine", "add", last.MAC()), others))
        self.assertEqual(sorted(code for code, _ in outcomes), [0, 1], outcomes)
        self.assertTrue(any("is blocked already" in said for _, said in outcomes), outcomes)
        for address in (first.MAC(), last.MAC()):
            self.nodes[others[1]].ask("quarantine", "remove", address)
        until(lambda: self.net.unreachable([("h1", "h3"), ("h3", "h1")]) == [], LIMIT_S, "both are back")

    def know(self, links):
        """Waits until each node knows the whole network."""
        for node in self.nodes.values():
            until(lambda node=node: len(node.ask("links")) == links, LIMIT_S, f"{node.name} knows all links")
        macs = {host.MAC() for host in self.net.hosts}
        for node in self.nodes.values():
            until(lambda node=node: macs <= self.tracked(node), LIMIT_S, f"{node.name} knows all hosts")

    def tracked(self, node):
        """Hosts that host tracking knows, after packets of which no flow takes care. A new port is not one of hosts at once."""
        for host in self.net.hosts:
            host.cmd("ip neigh flush all")
        self.net.unreachable()
        return {row["mac"] for row in node.ask("hosts") if "hosts" in row["apps"]}

    def listed(self, name):
        return [(row["id"], row["state"], row["path"]) for row in self.nodes[name].ask("reservations")]

    def test_a_reservation_outlives_the_node_that_took_it_openflow13(self):
        self.know(links=4)
        first, last = self.net["h1"], self.net["h3"]
        taker = self.masters()["s1"]
        reserved = self.nodes[taker].ask("reserve", first.MAC(), last.MAC(), "20M")
        self.assertEqual(reserved["state"], "installed")
        for name in self.nodes:
            until(lambda name=name: self.listed(name) == [(1, "installed", reserved["path"])], LIMIT_S, f"{name} lists it")
        flows, ages = self.metered("s1")
        self.assertEqual(len(flows), 1)
        self.nodes[taker].kill()
        others = self.others(taker)
        self.await_masters(others)
        self.settle(others)
        self.reach()
        self.assertEqual([self.listed(name) for name in others], [[(1, "installed", reserved["path"])]] * 2)
        again, later = self.metered("s1")
        self.assertEqual(again, flows, "the same flow, with the same cookie")
        self.assertGreater(later[0], ages[0], "it was not laid anew")
        code, said = self.order(others[1], "release", "1")
        self.assertEqual(code, 0, said)
        until(lambda: self.metered("s1")[0] == [], LIMIT_S, "the master of the switch removes it")
        self.nodes[taker].start()
        until(lambda: self.nodes[taker].status() and self.listed(taker) == [], LIMIT_S, "it hears of the release")

    def test_of_two_orders_for_the_last_capacity_one_is_carried_out_openflow13(self):
        """At two nodes at once, many times. Each of the reservations takes more than half of the line between switches."""
        self.know(links=4)
        hosts = [self.net["h1"].MAC(), self.net["h2"].MAC()]
        asked = [name for name in self.nodes if name != self.masters()["s1"]]
        winners = set()
        for _ in range(ROUNDS):
            with ThreadPoolExecutor() as pool:
                outcomes = list(pool.map(lambda pair: self.order(pair[0], "reserve", pair[1], self.net["h3"].MAC(), "6G"),
                                         zip(asked, hosts)))
            self.assertEqual(sorted(code for code, _ in outcomes), [0, 1], outcomes)
            won = next(index for index, (code, _) in enumerate(outcomes) if code == 0)
            self.assertRegex(outcomes[1 - won][1], "left of .*, less than 6G")
            winners.add(won)
            id_ = json.loads(outcomes[won][1])["id"]
            for name in self.nodes:
                until(lambda name=name, id_=id_: [row[0] for row in self.listed(name)] == [id_], LIMIT_S, f"{name} has one")
            code, said = self.order(asked[won], "release", str(id_))
            self.assertEqual(code, 0, said)
            for name in self.nodes:
                until(lambda name=name: self.listed(name) == [], LIMIT_S, f"{name} has none")
