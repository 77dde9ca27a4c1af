"""The learning switch with one table for all switches, with each kind of table, and hosts that move between
switches."""

import test_moves
from harness.case import SystemTest, on_both_versions
from harness.network import tree


def apps(**settings):
    return {"apps": [{"global_learning": settings}]}


class GlobalLearning(SystemTest):
    """Mininet's tree of depth 2 and fanout 3."""

    def reach_all(self, version, *command):
        controller = self.controller(app="global_learning", command=command)
        network = self.network(tree(), version)
        self.assertEqual(network.ping_all(), 0, "percent lost")
        hosts = controller.ask("hosts")
        # Each host once, at its own switch.
        expected = sorted(network[f"h{number}"].MAC() for number in range(1, 10))
        self.assertEqual(sorted(host["mac"] for host in hosts), expected)

    @on_both_versions
    def pingall_without_locks(self, version):
        """No ping is lost, and each host is known once."""
        self.reach_all(version, "run")

    @on_both_versions
    def pingall_behind_a_mutex(self, version):
        """The same."""
        self.reach_all(version, "bench", "shared-table", "mutex")

    @on_both_versions
    def pingall_in_transactions(self, version):
        """The same."""
        self.reach_all(version, "bench", "shared-table", "stm")


class GlobalMoves(test_moves.MovingHost, SystemTest):
    """The host h1 moves from the first switch to the last, and its old port stays up."""

    @on_both_versions
    def to_another_switch(self, version):
        """Reachable within a second of its first broadcast: the old switch removes its flows, which have no timeout."""
        self.controller(config=apps(idle_timeout=0))
        self.net = self.network(test_moves.Branches(switches=2), version)
        self.prepare_hosts()
        moved_at = self.move(old_port_stays_up=True)
        spoke_at = self.speak(broadcast=True)
        self.assert_back(spoke_at, test_moves.PROMPT_S)
        self.assert_silent(moved_at, spoke_at)
