"""Three nodes, three members of etcd and switches, each on a machine of its own. Links between them are cut: silently, in
both directions or in one. The switches obey one node at any time, established flows lose nothing, and all is well again
after each cut."""

from test_hitless import assert_nothing_lost

from harness.cluster import LIMIT_S, ClusterTest
from harness.machines import Machines
from harness.waiting import until

# Time in which a wrong takeover would happen: five times the silence after which a node is suspected.
QUIET_S = 1.5


class Cut(ClusterTest):
    """Packets flow between the hosts all the time."""

    time_limit_s = 240

    def setUp(self):
        super().setUp()
        self.attach()
        self.streams = self.flow()

    def tearDown(self):
        assert_nothing_lost(self, self.streams)

    def master(self):
        """The master of the first switch, and the other nodes."""
        master = self.masters()["s1"]
        return self.nodes[master], [self.nodes[name] for name in self.others(master)]

    def heal(self):
        self.machines.heal()
        self.settle()


class Cuts(Cut):
    """Links of a master are cut."""

    def test_a_node_is_cut_off_from_the_others(self):
        """It reaches etcd and the switches all the time, and stands by as it has no majority. In one direction, too."""
        def both(node, other):
            self.machines.cut(node.machine, other.machine)

        def outward(node, other):
            self.machines.drop(node.machine, other.machine)

        def inward(node, other):
            self.machines.drop(other.machine, node.machine)

        for cut in (both, outward, inward):
            node, others = self.master()
            for other in others:
                cut(node, other)
            self.await_masters([other.name for other in others], f"({cut.__name__})")
            until(lambda node=node: not node.is_serving(), LIMIT_S, f"the node stands by ({cut.__name__})")
            self.reach()
            self.heal()

    def test_two_nodes_are_cut_off_from_each_other(self):
        """The third one hears both: none is dead, and nothing changes. In one direction, too."""
        node, (other, third) = self.master()
        before = self.masters()
        for cut in (self.machines.cut, self.machines.drop):
            cut(node.machine, other.machine)
            until(lambda: other.states()[node.name] == "unknown", LIMIT_S, "it does not hear the node")
            self.keeps_its_masters(before, QUIET_S)
            self.assertTrue(node.is_serving() and other.is_serving() and third.is_serving())
            self.heal()

    def test_a_node_is_cut_off_from_the_switches(self):
        """The others take its switches, though it lives. In one direction, too."""
        switches = self.machines.switches
        for cut in ("both", "to the switches", "to the node"):
            node, others = self.master()
            if cut != "to the node":
                self.machines.drop(node.machine, switches)
            if cut != "to the switches":
                self.machines.drop(switches, node.machine)
            self.await_masters([other.name for other in others], f"({cut})")
            self.assertTrue(node.is_serving())
            self.reach()
            self.heal()

    def test_a_cable_of_a_node_is_pulled(self):
        """It reaches nobody, and finds out by itself that it is master no more."""
        node, others = self.master()
        Machines.unplug(node.machine)
        self.await_masters([other.name for other in others])
        until(lambda: not node.is_serving(), LIMIT_S, "the node stands by")
        self.reach()
        Machines.plug(node.machine)
        self.settle()


class CutsOfEtcd(Cut):
    """Links to etcd, and between its members, are cut."""

    def test_nodes_are_cut_off_from_etcd(self):
        """One node, and nothing changes; all nodes, and a takeover goes on. In one direction, too."""
        node, others = self.master()
        before = self.masters()
        for member in self.members:
            self.machines.cut(node.machine, member)
        until(lambda: not node.ask("cluster")["store"]["reachable"], LIMIT_S, "etcd is out of its reach")
        self.keeps_its_masters(before, QUIET_S)
        for member in self.members:
            for other in others:
                self.machines.drop(member, other.machine)
        until(lambda: not any(it.ask("cluster")["store"]["reachable"] for it in others), LIMIT_S, "etcd is out of reach")
        node.kill()
        self.await_masters([other.name for other in others])
        self.reach()
        node.start()
        self.heal()

    def test_the_leader_of_etcd_is_cut_off(self):
        """From its members, and not from the nodes, which must not believe it."""
        leader = self.etcd.leader()
        for member, machine in enumerate(self.members):
            if member != leader:
                self.machines.cut(self.members[leader], machine)
        node, (other, _) = self.master()
        # A move needs a record, which only the other members can write.
        self.order_move(node.name, other.name)
        until(lambda: self.masters().get("s1") == other.name, LIMIT_S, "the switch is moved")
        self.reach()
        self.heal()
