"""Three controllers as one, with three members of etcd, and Open vSwitch."""

import re
import signal
import time

from harness.localcluster import LIMIT_S, NODES, STRANGERS, LocalCluster, Node
from harness.network import Line, Pings
from harness.openvswitch import command
from harness.waiting import until

# Balancing begins five seconds after the last node came or went.
BALANCED_AFTER_S = 7


class Cluster(LocalCluster):
    """Switches of Open vSwitch that connect to three controllers."""

    def attach(self, topology):
        self.connect(topology)
        self.await_masters(NODES)

    def move(self, master, dpid, to):
        """Moves a switch. It may not have connected to the other node yet, and etcd may have no leader."""
        rows, switch = [], f"{dpid:016x}"

        def ordered():
            try:
                rows.append(self.nodes[master].ask("cluster", "move", switch, to))
            except AssertionError as error:
                if f"its master is {to}" in str(error):
                    # The order before, which etcd had not confirmed in time. The same order at the new master changes nothing.
                    rows.append(self.nodes[to].ask("cluster", "move", switch, to))
                elif "cannot take" not in str(error) and "etcd" not in str(error):
                    raise
            return rows
        until(ordered, LIMIT_S, f"{master} may move the switch to {to}")
        self.assertEqual((rows[-1]["obeys"], rows[-1]["placed"]), (to, True), "it is moved when the order is answered")
        # The log of Open vSwitch may come later than the answer.
        until(lambda: self.masters()[f"s{dpid}"] == to, LIMIT_S, f"the switch obeys {to}")

    def await_masters(self, of):
        """Waits until each switch obeys one of these nodes."""
        def done():
            masters = self.masters()
            return len(masters) == len(self.net.switches) and set(masters.values()) <= set(of)
        until(done, LIMIT_S, f"each switch obeys one of {', '.join(of)}")
        return self.masters()

    def masters(self):
        """The node that each switch obeys, by its bridge."""
        printed = command("ovs-vsctl", "--format=csv", "--no-headings", "--columns=_uuid,target,role", "list",
                          "Controller")
        roles = {row[0]: row for row in (line.replace('"', "").split(",") for line in printed.splitlines())}
        masters = {}
        for switch in (switch.name for switch in self.net.switches):
            for uuid in re.findall(r"[0-9a-f-]{36}", command("ovs-vsctl", "get", "Bridge", switch, "controller")):
                _, target, role = roles[uuid]
                if role == "master":
                    masters[switch] = next(name for name, (port, _) in NODES.items() if target.endswith(f":{port}"))
        return masters

    def test_a_killed_master_is_replaced(self):
        """Established flows lose nothing, and new ones go on."""
        self.attach(Line(switches=3, hosts=(1, 2, 3)))
        self.assertEqual(self.net.ping_all(), 0.0)
        lost = self.masters()["s1"]
        self.kill(lost)
        self.await_masters([name for name in NODES if name != lost])
        self.assertEqual(self.net.unreachable(), [])

    def test_a_stopped_master_that_goes_on_is_fenced(self):
        """The switches obey the others meanwhile, and none of them obeys the old master again with its old claim."""
        self.attach(Line(hosts=(1, 1, 1)))
        self.assertEqual(self.net.ping_all(), 0.0)
        lost = self.masters()["s1"]
        others = [name for name in NODES if name != lost]
        process = self.nodes[lost].process
        process.send_signal(signal.SIGSTOP)
        try:
            self.await_masters(others)
            self.assertEqual(self.net.unreachable(), [])
        finally:
            process.send_signal(signal.SIGCONT)
        until(lambda: "stands by at all switches" in self.nodes[lost].text(), LIMIT_S, "it notices that it was away")
        self.assertEqual(set(self.masters().values()) - set(others), set())
        self.assertEqual(self.net.unreachable(), [])

    def test_established_flows_lose_nothing_when_a_node_is_killed(self):
        """Datagrams of flows that are in the switches do not notice that their master is replaced."""
        self.attach(Line(hosts=(1, 1)))
        self.assertEqual(self.net.ping_all(), 0.0)
        self.net.net.staticArp()
        source, target = self.net["h1"], self.net["h2"]
        self.assertEqual(self.net.unreachable(), [])
        pings = Pings(source, target, 0.01, count=500)
        self.kill(self.masters()["s1"])
        self.assertEqual(len(pings.wait(LIMIT_S)), 500)

    def test_a_takeover_needs_no_etcd(self):
        """With all of etcd stopped, a killed master is replaced."""
        self.attach(Line(hosts=(1, 1, 1)))
        self.assertEqual(self.net.ping_all(), 0.0)
        lost = self.masters()["s1"]
        for process in self.etcd.processes:
            process.send_signal(signal.SIGSTOP)
        self.kill(lost)
        others = [name for name in NODES if name != lost]
        self.await_masters(others)
        self.assertEqual(self.net.unreachable(), [])
        for process in self.etcd.processes:
            process.send_signal(signal.SIGCONT)
        self.await_masters(others)

    def test_a_node_without_the_others_stands_by(self):
        """Two of three nodes are killed: the last one has no majority, and changes nothing more."""
        self.attach(Line(hosts=(1, 1)))
        self.assertEqual(self.net.ping_all(), 0.0)
        last = self.masters()["s1"]
        for name in NODES:
            if name != last:
                self.kill(name)
        until(lambda: not self.masters(), LIMIT_S, "no switch has a master")
        # What is in the switches still works.
        self.assertEqual(self.net.unreachable(), [])
        # A second node makes a majority.
        again = next(name for name in NODES if name != last)
        self.nodes[again].start()
        self.await_masters([last, again])
        self.assertEqual(self.net.unreachable(), [])

    def test_an_operator_sees_moves_and_drains(self):
        """`bellrock cluster` lists nodes and masters, moves a switch, and empties a node."""
        self.attach(Line(switches=3, hosts=(1, 3)))
        status = self.nodes["a"].ask("cluster")
        self.assertEqual([(node["name"], node["state"]) for node in status["nodes"]],
                         [("a", "serving"), ("b", "serving"), ("c", "serving")])
        self.assertTrue(status["store"]["reachable"])

        def masters():
            return {row["dpid"]: row["obeys"] for row in self.nodes["a"].ask("cluster", "--switches")}
        self.assertEqual(len(masters()), 3)
        switch = "0000000000000001"
        before = masters()[switch]
        after, other = (name for name in NODES if name != before)
        self.assertIn("its master is", self.nodes[after].refused("cluster", "move", switch, other))
        self.assertIn("there is no node", self.nodes[before].refused("cluster", "move", switch, "nobody"))
        self.move(before, 1, after)
        self.assertEqual(self.net.unreachable(), [])

        self.nodes[after].ask("cluster", "drain")
        until(lambda: after not in masters().values(), LIMIT_S, "the node has no switch any more")
        self.assertEqual(self.net.unreachable(), [])
        states = {node["name"]: node["state"] for node in self.nodes[other].ask("cluster")["nodes"]}
        self.assertEqual(states[after], "draining")
        self.nodes[after].ask("cluster", "drain", "--undo")
        until(lambda: self.nodes[other].ask("cluster")["nodes"] and all(
            node["state"] == "serving" for node in self.nodes[other].ask("cluster")["nodes"]), LIMIT_S, "it serves again")

    def test_moved_switches_stay_until_an_operator_balances(self):
        """All switches are moved to one node, which keeps them; `bellrock cluster balance` spreads them again."""
        self.attach(Line(switches=3, hosts=(1, 3)))
        until(lambda: len(set(self.masters().values())) == 3, LIMIT_S, "each node has a switch")
        for dpid in range(1, 4):
            # The same order keeps the switch that the node has already.
            self.move(self.masters()[f"s{dpid}"], dpid, "b")
        time.sleep(BALANCED_AFTER_S)
        self.assertEqual(set(self.masters().values()), {"b"})
        rows = {row["name"]: row for row in self.nodes["c"].ask("cluster")["nodes"]}
        self.assertEqual((rows["b"]["switches"], rows["b"]["placed"]), (3, 3))
        status = self.nodes["c"].ask("cluster", "balance")
        self.assertEqual([row["placed"] for row in status["nodes"]], [0, 0, 0])
        until(lambda: len(set(self.masters().values())) == 3, LIMIT_S, "each node has a switch again")
        self.assertEqual(self.net.unreachable(), [])

    def test_orders_without_etcd_say_so(self):
        """With all of etcd killed, a move and a balance fail with that reason, and nothing moves."""
        self.attach(Line(hosts=(1, 1)))
        before = self.masters()
        node = self.nodes[before["s1"]]
        for member in range(3):
            self.etcd.kill(member)
        until(lambda: not node.ask("cluster")["store"]["reachable"], LIMIT_S, "etcd is away")
        other = next(name for name in NODES if name != node.name)
        for words in (("move", "0000000000000001", other), ("balance",)):
            self.assertIn("nothing is moved without etcd", node.refused("cluster", *words))
        self.assertEqual(self.masters(), before)
        for member in range(3):
            self.etcd.start_member(member)
        until(lambda: node.ask("cluster")["store"]["reachable"], LIMIT_S, "etcd is back")
        self.move(node.name, 1, other)

    def test_a_cluster_of_the_same_name_is_refused(self):
        """A fourth controller, of another cluster by mistake, has the same name and the same etcd."""
        stranger = Node(self.logs, self.run_dir, "d", self.etcd, others=("e", "f"))
        stranger.start()
        self.controllers.append(stranger)
        self.addCleanup(self._end_controller, stranger)
        until(lambda: "another cluster has the same name" in stranger.text(), LIMIT_S, "it says so")
        self.assertFalse(stranger.is_serving())
