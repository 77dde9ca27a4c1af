"""An app in Python that runs once in a cluster: `start` and its tasks run at the node that leads only."""

import os
import re
import signal
import time

from harness.localcluster import LIMIT_S, LocalCluster
from harness.network import Line
from harness.python import python
from harness.waiting import until

ROUND = re.compile(r"round (\w) (\d+) (\d+)")
# Longer than the lease.
STOPPED_S = 8
SOME_ROUNDS = 5
APP = """
import asyncio
import logging
import time

import bellrock

log = logging.getLogger("patrol")


class Patrol(bellrock.App):
    scope = "once"

    def start(self, network):
        self.spawn(self.rounds(network))

    async def rounds(self, network):
        while True:
            log.info("round NODE %d %d", network.term, int(time.time() * 1000))
            await asyncio.sleep(0.2)

    def switch_up(self, network, switch):
        log.info("switch %d at NODE", switch.dpid)
"""


class OncePython(LocalCluster):
    """Three nodes, of which one goes its rounds."""

    time_limit_s = 240

    def setUp(self):
        os.environ["BELLROCK_PYTHON"] = python()
        super().setUp()

    def settings(self, name):
        file = self.run_dir / f"patrol_{name}.py"
        file.write_text(APP.replace("NODE", name))
        return {"apps": [str(file), "learning"]}

    def rounds(self):
        """Time, term and node of each round, in the order of time."""
        found = (ROUND.findall(node.text()) for node in self.nodes.values())
        return sorted((int(at), int(term), name) for rounds in found for name, term, at in rounds)

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

    def test_one_node_goes_its_rounds_whatever_stops_or_ends(self):
        first = self.leader(0)
        for node in self.nodes.values():
            def shown(node=node):
                row = next(row for row in node.ask("apps") if row["name"] == "Patrol")
                return (row["scope"], row["leader"]) == ("once", first)
            until(shown, LIMIT_S, f"{node.name} shows the leader")
        self.nodes[first].process.send_signal(signal.SIGSTOP)
        stopped = int(time.time() * 1000)
        try:
            second = self.leader(stopped, other_than=first)
            time.sleep(STOPPED_S)
        finally:
            self.nodes[first].process.send_signal(signal.SIGCONT)
        going_on = int(time.time() * 1000)
        self.assertEqual(self.leader(going_on), second, "one that goes on does not take over")
        self.kill(second)
        killed = int(time.time() * 1000)
        third = self.leader(killed, other_than=second)
        self.assertNotEqual(third, second)
        self.assert_one_after_the_other()
        self.nodes[second].start()

    def test_switches_come_to_their_master_also_where_the_app_has_not_started(self):
        leader = self.leader(0)
        self.connect(Line(switches=3, hosts=(1, 1, 1)))
        def served():
            texts = {name: re.findall(r"switch (\d+) at", node.text()) for name, node in self.nodes.items()}
            return sorted(int(dpid) for dpids in texts.values() for dpid in dpids) if sum(map(len, texts.values())) >= 3 else None
        self.assertEqual(until(served, LIMIT_S, "each switch has its handler")[:3], [1, 2, 3])
        self.assertEqual(self.leader(int(time.time() * 1000)), leader)
