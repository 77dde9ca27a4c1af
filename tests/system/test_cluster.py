"""Three controllers as one, with three members of etcd, and Open vSwitch."""

import re
import signal

from harness.case import SystemTest
from harness.controller import Controller
from harness.etcd import Etcd
from harness.network import Line, Pings
from harness.openvswitch import command
from harness.waiting import until

NODES = {"a": (6653, 6640), "b": (6654, 6641), "c": (6655, 6642)}
# Nodes of another cluster.
STRANGERS = {"d": (6656, 6643), "e": (6657, 6644), "f": (6658, 6645)}
LIMIT_S = 30
# What a node says when others are gone, which the test has done.
EXPECTED = re.compile(r"majority of the cluster")


class Node(Controller):
    """A controller of a cluster."""

    def __init__(self, logs, run_dir, name, etcd, others=NODES):
        places = NODES | STRANGERS
        port, link = places[name]
        folder = run_dir / name
        folder.mkdir()
        peers = {other: f"127.0.0.1:{places[other][1]}" for other in others if other != name}
        cluster = {"name": "test", "node": name, "listen": f"127.0.0.1:{link}", "peers": peers,
                   "etcd": {"endpoints": etcd.urls}}
        super().__init__(logs, folder, config={"apps": ["learning"], "cluster": cluster},
                         listen=f"127.0.0.1:{port}")
        self.name = name
        self.log = logs / f"controller-{name}.log"

    def faults(self):
        return [line for line in super().faults() if not EXPECTED.search(line)]

    def is_serving(self):
        return "this node serves" in self.text()


class Cluster(SystemTest):
    """Switches of Open vSwitch that connect to three controllers."""

    def setUp(self):
        super().setUp()
        self.etcd = Etcd(self.run_dir, self.logs)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()
        self.nodes = {name: self.node(name) for name in NODES}
        until(lambda: all(node.is_serving() for node in self.nodes.values()), LIMIT_S, "all nodes serve")

    def node(self, name):
        node = Node(self.logs, self.run_dir, name, self.etcd)
        node.start()
        self.controllers.append(node)
        self.addCleanup(self._end_node, node)
        return node

    def _end_node(self, node):
        if node.process is not None:
            self._end_controller(node)

    def kill(self, name):
        process, self.nodes[name].process = self.nodes[name].process, None
        process.kill()
        process.wait(LIMIT_S)

    def attach(self, topology):
        self.net = self.network(topology, "OpenFlow13", connect=False)
        targets = [f"tcp:127.0.0.1:{port}" for port, _ in NODES.values()]
        for switch in self.net.switches:
            command("ovs-vsctl", "set-controller", switch.name, *targets)
        self.await_masters(NODES)

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
        self.nodes[before].ask("cluster", "move", switch, after)
        until(lambda: masters()[switch] == after, LIMIT_S, "the switch is moved")
        self.assertEqual(self.net.unreachable(), [])

        self.nodes[after].ask("cluster", "drain")
        until(lambda: after not in masters().values(), LIMIT_S, "the node has no switch any more")
        self.assertEqual(self.net.unreachable(), [])
        states = {node["name"]: node["state"] for node in self.nodes[other].ask("cluster")["nodes"]}
        self.assertEqual(states[after], "draining")
        self.nodes[after].ask("cluster", "drain", "--undo")
        until(lambda: self.nodes[other].ask("cluster")["nodes"] and all(
            node["state"] == "serving" for node in self.nodes[other].ask("cluster")["nodes"]), LIMIT_S, "it serves again")

    def test_a_cluster_of_the_same_name_is_refused(self):
        """A fourth controller, of another cluster by mistake, has the same name and the same etcd."""
        stranger = Node(self.logs, self.run_dir, "d", self.etcd, others=("e", "f"))
        stranger.start()
        self.controllers.append(stranger)
        self.addCleanup(self._end_controller, stranger)
        until(lambda: "another cluster has the same name" in stranger.text(), LIMIT_S, "it says so")
        self.assertFalse(stranger.is_serving())
