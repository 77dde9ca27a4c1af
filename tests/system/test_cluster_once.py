"""An app that runs once in a cluster, the example `patrol`: at one node at any time, whatever ends or stops."""

import os
import re
import signal
import time
from pathlib import Path

from harness.localcluster import LIMIT_S, LocalCluster, Node
from harness.waiting import until

ROUND = re.compile(r"^round (\w) (\d+) (\d+)$", re.M)
# A leader without etcd ends its rounds before its lease, in milliseconds.
LEASE_MS = 3000
# Longer than the lease.
STOPPED_S = 8
# Some rounds: the pause between two is 0.2 s.
SOME_ROUNDS = 5


class PatrolNode(Node):
    """The example, which has no configuration file."""

    def __init__(self, logs, run_dir, name, etcd):
        super().__init__(logs, run_dir, name, etcd)
        example = Path(os.environ["BELLROCK_BIN"]).parent / "examples" / "patrol"
        self.command = [str(example), name, str(self.control), *etcd.urls]

    def is_serving(self):
        return self.is_listening()

    def rounds(self):
        """Term and time of each round, in milliseconds."""
        return [(int(term), int(at)) for _, term, at in ROUND.findall(self.text())]


class Once(LocalCluster):
    """Three nodes, of which one goes its rounds."""

    time_limit_s = 240

    def make(self, name):
        return PatrolNode(self.logs, self.run_dir, name, self.etcd)

    def rounds(self):
        """Time, term and node of each round, in the order of time."""
        return sorted((at, term, name) for name, node in self.nodes.items() for term, at in node.rounds())

    def leader(self, since_ms, other_than=None):
        """The node that goes its rounds after this time. It is not that one."""
        def found():
            new = [name for at, _, name in self.rounds() if at > since_ms and name != other_than]
            return new[-1] if len(new) >= SOME_ROUNDS else None
        return until(found, LIMIT_S, f"a node goes its rounds, and not {other_than}")

    def assert_one_after_the_other(self):
        rounds = self.rounds()
        terms = [term for _, term, _ in rounds]
        self.assertEqual(terms, sorted(terms), f"rounds of a term after those of a later one: {rounds}")
        nodes = {}
        for _, term, name in rounds:
            self.assertEqual(nodes.setdefault(term, name), name, f"two nodes in term {term}")

    @staticmethod
    def now_ms():
        return int(time.time() * 1000)

    def shown(self, name):
        """Scope and leader of the app, as a node reports them."""
        row = next(row for row in self.nodes[name].ask("apps") if row["name"] == "patrol")
        return row["scope"], row["leader"]

    def test_the_next_node_goes_on_when_the_leader_is_killed(self):
        first = self.leader(0)
        for name in self.nodes:
            until(lambda name=name: self.shown(name) == ("once", first), LIMIT_S, f"{name} shows the leader")
        killed = self.now_ms()
        self.kill(first)
        second = self.leader(killed, other_than=first)
        print(f"the first round of {second} came {self.first_of(second, killed) - killed} ms after the end of {first}")
        self.nodes[first].start()
        started = self.now_ms()
        self.assertEqual(self.leader(started), second, "one that comes back does not take over")
        until(lambda: self.shown(first) == ("once", second), LIMIT_S, "it shows the other one")
        self.assert_one_after_the_other()

    def first_of(self, name, since_ms):
        return next(at for at, _, node in self.rounds() if node == name and at > since_ms)

    def test_a_leader_that_is_stopped_and_goes_on_goes_no_further_round(self):
        first = self.leader(0)
        self.nodes[first].process.send_signal(signal.SIGSTOP)
        stopped = self.now_ms()
        try:
            second = self.leader(stopped, other_than=first)
            time.sleep(STOPPED_S)
        finally:
            self.nodes[first].process.send_signal(signal.SIGCONT)
        going_on = self.now_ms()
        self.assertEqual(self.leader(going_on), second)
        self.assert_one_after_the_other()

    def test_without_etcd_nobody_goes_rounds(self):
        self.leader(0)
        self.etcd.stop()
        stopped = self.now_ms()
        time.sleep(STOPPED_S)
        self.assertLess(self.rounds()[-1][0], stopped + LEASE_MS, "rounds after the lease")
        self.etcd.start()
        again = self.leader(self.now_ms())
        until(lambda: self.shown(again) == ("once", again), LIMIT_S, "it leads")
        self.assert_one_after_the_other()
