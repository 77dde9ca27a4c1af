"""What the nodes of a cluster share, with three members of etcd and Open vSwitch."""

import json
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

from harness.controller import without_own_variables
from harness.localcluster import LIMIT_S, NODES, LocalCluster, Node
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

# etcd's client gives up after 5 s, and looks for a lost write for 1 s.
ORDER_S = 20
ROUNDS = 10
DROP = ("--match", "eth_type=0x0800,ipv4_dst=10.0.0.9", "--actions", "drop")
SWITCH = "0000000000000001"


class StaticNode(Node):
    """A controller of a cluster, with static entries."""

    def is_serving(self):
        return super().is_serving() and "static entries" in self.text()

    def entries(self):
        """The static entries by name."""
        return {row["name"]: row for row in self.ask("static", "list")}

    def order(self, *words):
        """An order that need not succeed: its exit status, and what it says."""
        words = [self.binary, "static", *words, "--json", "--control", str(self.control)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=ORDER_S, check=False,
                              env=without_own_variables())
        return done.returncode, done.stdout + done.stderr


class Shared(LocalCluster):
    """Switches of Open vSwitch that connect to three controllers with static entries."""

    time_limit_s = 180

    def setUp(self):
        super().setUp()
        self.connect(Line(switches=2, hosts=(1, 2)))
        self.await_master()

    def make(self, name):
        return StaticNode(self.logs, self.run_dir, name, self.etcd, settings={"apps": ["static", "learning"]})

    def alive(self):
        return [node for node in self.nodes.values() if node.process is not None]

    def master(self):
        """The node that the first switch obeys, as all nodes see it."""
        seen = set()
        for node in self.alive():
            rows = {row["dpid"]: row for row in node.ask("cluster", "--switches")}
            seen.add(rows[SWITCH]["obeys"] if SWITCH in rows and rows[SWITCH]["role"] in ("standby", "master") else None)
        return seen.pop() if len(seen) == 1 else None

    def await_master(self, other_than=None):
        until(lambda: self.master() not in (None, other_than), LIMIT_S, "all nodes agree on the master of the first switch")
        return self.master()

    def drops(self):
        """The flows of the first switch that drop, with their cookies and ages."""
        lines = command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1").splitlines()
        return [line for line in lines if line.strip().endswith("actions=drop") and "nw_dst=10.0.0.9" in line]

    def age_and_cookie(self):
        drops = self.drops()
        self.assertEqual(len(drops), 1, drops)
        return float(re.search(r"duration=([\d.]+)s", drops[0])[1]), re.search(r"cookie=(0x[0-9a-f]+)", drops[0])[1]

    def test_a_flow_set_at_one_node_outlives_its_master(self):
        """Any node takes the order, the master installs it, and the next master finds it as it is."""
        master = self.master()
        others = [name for name in NODES if name != master]
        done = self.nodes[others[0]].ask("static", "add", "wall", SWITCH, *DROP)
        self.assertEqual((done["set"], done["saved"], done["waiting"]), (1, True, 1))
        self.assertEqual(done["problems"][0]["state"], "standby")
        self.assertIn(f"obeys node {master}", done["problems"][0]["why"])
        until(lambda: len(self.drops()) == 1, LIMIT_S, "the master installs it")
        until(lambda: self.nodes[master].entries()["wall"]["state"] == "installed", LIMIT_S, "the master shows it")
        for name in others:
            self.assertEqual(self.nodes[name].entries()["wall"]["state"], "standby")

        before, cookie = self.age_and_cookie()
        self.kill(master)
        new = self.await_master(other_than=master)
        until(lambda: self.nodes[new].entries()["wall"]["state"] == "installed", LIMIT_S, "the new master has compared it")
        # A flow that is laid anew begins at 0.
        after, again = self.age_and_cookie()
        self.assertEqual(again, cookie)
        self.assertGreaterEqual(after, before)
        # It is changed and removed at a node that did not set it.
        last = next(name for name in others if name != new)
        self.nodes[last].ask("static", "remove", "wall")
        until(lambda: not self.drops(), LIMIT_S, "the master removes it")
        for node in self.alive():
            until(lambda node=node: not node.entries(), LIMIT_S, "all nodes forget it")

    def test_of_two_orders_of_one_name_one_wins(self):
        """Orders at all nodes at once: all nodes and the switch agree afterwards, and every refusal says why."""
        ports = {name: number + 1 for number, name in enumerate(NODES)}

        def order(name, round_):
            match = f"in_port={ports[name]},eth_type=0x0800,ipv4_dst=10.0.{round_}.9"
            return self.nodes[name].order("add", f"f{round_}", SWITCH, "--match", match, "--actions", "drop")

        with ThreadPoolExecutor(len(NODES)) as pool:
            for round_ in range(ROUNDS):
                results = list(pool.map(lambda name, round_=round_: order(name, round_), NODES))
                self.assertIn(0, [status for status, _ in results], results)
                for status, text in results:
                    if status != 0:
                        self.assertIn(f"the entry f{round_} was changed at another node", text)

        def agree():
            all_entries = [{name: row["flow"] for name, row in node.entries().items()} for node in self.alive()]
            return len(all_entries[0]) == ROUNDS and all(entries == all_entries[0] for entries in all_entries)
        until(agree, LIMIT_S, "all nodes have the same entries")
        until(lambda: len([line for line in self.net.flows("s1") if line.endswith("actions=drop")]) == ROUNDS, LIMIT_S,
              "the switch has the winners' flows, and no other")
        cookies = re.findall(r"cookie=(0x[0-9a-f]+)[^\n]*actions=drop",
                             command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1"))
        self.assertEqual(len(set(cookies)), ROUNDS, "each entry has a number of its own")

    def test_without_etcd_orders_are_refused_and_flows_stay(self):
        """Nothing is half done; and when etcd is back, the same order is carried out."""
        master = self.nodes[self.master()]
        master.ask("static", "add", "wall", SWITCH, *DROP)
        for process in self.etcd.processes:
            process.send_signal(signal.SIGSTOP)
        try:
            status, text = master.order("add", "more", SWITCH, "--match", "in_port=7", "--actions", "drop")
            self.assertNotEqual(status, 0)
            self.assertRegex(text, "nothing has changed|is not known")
            self.assertEqual(len(self.drops()), 1)
        finally:
            for process in self.etcd.processes:
                process.send_signal(signal.SIGCONT)
        until(lambda: master.order("add", "more", SWITCH, "--match", "in_port=7", "--actions", "drop")[0] == 0, LIMIT_S,
              "orders are taken again")
        for node in self.alive():
            until(lambda node=node: set(node.entries()) == {"wall", "more"}, LIMIT_S, "all nodes have both")

    def test_a_node_without_a_majority_says_so(self):
        """What is in etcd it stores, and says that others carry it out; what a switch has to be asked it refuses."""
        last = self.nodes[self.master()]
        for name in [name for name in NODES if name != last.name]:
            self.kill(name)
        until(lambda: not last.ask("cluster")["serving"], LIMIT_S, "the last node stands by")
        done = last.ask("static", "add", "wall", SWITCH, *DROP)
        self.assertEqual((done["set"], done["problems"][0]["state"]), (1, "standby"))
        self.assertRegex(done["problems"][0]["why"], "^this node does not serve.* installs it")
        self.assertRegex(done["notice"], "^this node does not serve.* the order is stored")
        refused = last.refused("flows", SWITCH)
        self.assertIn("no node that this one reaches is master", refused)

    def test_a_node_whose_peers_hang_says_so(self):
        """Their connections stand, and nobody asks them: they would not answer."""
        last = self.nodes[self.master()]
        hanging = [node.process for node in self.nodes.values() if node is not last]
        for process in hanging:
            process.send_signal(signal.SIGSTOP)
        try:
            until(lambda: not last.ask("cluster")["serving"], LIMIT_S, "the last node stands by")
            self.assertIn("no node that this one reaches is master", last.refused("flows", SWITCH))
        finally:
            for process in hanging:
                process.send_signal(signal.SIGCONT)

    def test_all_nodes_restart_and_nothing_is_wiped(self):
        """The flow stays in the switch, with its age, and the entries come back from etcd."""
        self.nodes["a"].ask("static", "add", "wall", SWITCH, *DROP)
        until(lambda: len(self.drops()) == 1, LIMIT_S, "the master installs it")
        _, cookie = self.age_and_cookie()
        for name in NODES:
            self.kill(name)
        age, _ = self.age_and_cookie()
        for name in NODES:
            self.nodes[name].start()
        master = self.nodes[self.await_master()]
        until(lambda: master.entries()["wall"]["state"] == "installed", LIMIT_S, "the master has compared it")
        after, again = self.age_and_cookie()
        self.assertEqual(again, cookie)
        self.assertGreaterEqual(after, age, "it is the same flow")
        stored = json.loads(command("etcdctl", f"--endpoints={self.etcd.urls[0]}", "get", "--print-value-only",
                                    "/bellrock/test/static/entry/wall"))
        self.assertEqual(stored["version"], 1)
        self.assertRegex(stored["value"], r"match=\S*10\.0\.0\.9 actions=drop")
