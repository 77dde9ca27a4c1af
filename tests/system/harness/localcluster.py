"""Controllers as one, with three members of etcd, all in the namespace of the test."""

import re

from .case import SystemTest
from .controller import Controller
from .etcd import Etcd
from .openvswitch import command
from .waiting import until

# Ports for switches and for other nodes.
NODES = {"a": (6653, 6640), "b": (6654, 6641), "c": (6655, 6642)}
# Nodes of another cluster.
STRANGERS = {"d": (6656, 6643), "e": (6657, 6644), "f": (6658, 6645)}
LIMIT_S = 30
# What a node says when others are gone, or etcd is old, which the test has done.
EXPECTED = re.compile(r"majority of the cluster|an old snapshot")
# What Open vSwitch says to a master that was replaced, or to its old claim.
FENCED = re.compile("OFPBRC_IS_SECONDARY|OFPRRFC_STALE")


class Node(Controller):
    """A controller of a cluster. `settings` are further ones of its configuration."""

    def __init__(self, logs, run_dir, name, etcd, others=NODES, settings=None):
        places = NODES | STRANGERS
        port, link = places[name]
        folder = run_dir / name
        folder.mkdir()
        peers = {other: f"127.0.0.1:{places[other][1]}" for other in others if other != name}
        cluster = {"name": "test", "node": name, "listen": f"127.0.0.1:{link}", "peers": peers,
                   "etcd": {"endpoints": etcd.urls}}
        super().__init__(logs, folder, config={"apps": ["learning"], "cluster": cluster} | (settings or {}),
                         listen=f"127.0.0.1:{port}")
        self.name = name
        self.log = logs / f"controller-{name}.log"

    def faults(self):
        return [line for line in super().faults() if not EXPECTED.search(line)]

    def is_serving(self):
        return "this node serves" in self.text()


class LocalCluster(SystemTest):
    """Three nodes that serve."""

    def setUp(self):
        super().setUp()
        self.etcd = Etcd(self.run_dir, self.logs)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()
        self.nodes = {name: self.node(name) for name in NODES}
        until(lambda: all(node.is_serving() for node in self.nodes.values()), LIMIT_S, "all nodes serve")

    def settings(self, _name):
        """Further settings of the node with this name."""
        return {}

    def make(self, name):
        return Node(self.logs, self.run_dir, name, self.etcd, settings=self.settings(name))

    def node(self, name):
        """Starts a node."""
        node = self.make(name)
        node.start()
        self.controllers.append(node)
        self.addCleanup(self._end_node, node)
        return node

    def _end_node(self, node):
        if node.process is not None:
            self._end_controller(node)

    def judge(self):
        """As for all tests, but a switch may refuse a master that was replaced: on a busy machine nodes are silent."""
        refused = [line for line in self.ovs.error_replies() if not FENCED.search(line)]
        self.assertEqual(refused, [], "Open vSwitch refused messages")
        for node in self.controllers:
            self.assertEqual(node.faults(), [], f"the log of {node.name} has a fault of its own")

    def kill(self, name):
        process, self.nodes[name].process = self.nodes[name].process, None
        process.kill()
        process.wait(LIMIT_S)

    def connect(self, topology):
        """The network, whose switches connect to all nodes."""
        self.net = self.network(topology, "OpenFlow13", connect=False)
        targets = [f"tcp:127.0.0.1:{port}" for port, _ in NODES.values()]
        for switch in self.net.switches:
            command("ovs-vsctl", "set-controller", switch.name, *targets)
