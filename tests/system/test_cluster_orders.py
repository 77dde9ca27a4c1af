"""What operators order from apps of a cluster, at any node."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

from harness.cluster import LIMIT_S, ClusterTest
from harness.controller import without_own_variables
from harness.network import Line
from harness.waiting import until

ORDER_S = 30


class Orders(ClusterTest):
    """A line of three switches with a host each."""

    apps = ("quarantine", "learning")
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
