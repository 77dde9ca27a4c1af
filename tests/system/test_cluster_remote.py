"""What an operator or an app orders at one node of a cluster, for switches of which others are master."""

import json
import re
import struct

from harness.localcluster import LIMIT_S, NODES, LocalCluster
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

FLOOD = 0xfffffffb
ANY = 0xffffffff
# Flows that are sent while their switch moves.
MOVED_FLOWS = 60
MOVE_EVERY = 12


def flow(cookie, ip_dst=None):
    """A flow_mod of OpenFlow 1.3, in hexadecimal: floods all packets, or those to this address."""
    oxm = b"" if ip_dst is None else struct.pack("!IH", 0x80000a02, 0x0800) + struct.pack("!II", 0x80001804, ip_dst)
    match = struct.pack("!HH", 1, 4 + len(oxm)) + oxm
    match += bytes(-len(match) % 8)
    action = struct.pack("!HHIH6x", 0, 16, FLOOD, 0xffff)
    instruction = struct.pack("!HH4x", 4, 8 + len(action)) + action
    body = struct.pack("!QQBBHHHIIIH2x", cookie, 0, 0, 0, 0, 0, 10, ANY, ANY, ANY, 0) + match + instruction
    return (struct.pack("!BBHI", 4, 14, 8 + len(body), 0) + body).hex()


def cookies(switch):
    """The cookies of the flows of a bridge that the test has sent."""
    printed = command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch)
    return {int(cookie, 16) for cookie in re.findall(r"cookie=(0x[0-9a-f]+)", printed)} & set(range(1, 1 << 16))


class RemoteSwitches(LocalCluster):
    """Three nodes, each master of one switch of a line."""

    time_limit_s = 180

    def setUp(self):
        super().setUp()
        self.connect(Line(switches=3, hosts=(1, 2)))
        until(lambda: len(self.masters()) == 3 and None not in self.masters().values(), LIMIT_S, "all switches have masters")
        for dpid, name in enumerate(NODES, 1):
            self.move(dpid, name)

    def settings(self, _name):
        # No app forwards: hosts reach each other only by the flows of the test.
        return {"apps": ["quarantine"]}

    def masters(self, seen_by="c"):
        """The node that each switch obeys, as a node sees it."""
        return {int(row["dpid"], 16): row["obeys"] for row in self.nodes[seen_by].ask("cluster", "--switches")}

    def move(self, dpid, to):
        """Gives a switch to a node, and waits until the node is its master."""
        master = self.masters()[dpid]
        if master != to:
            self.nodes[master].ask("cluster", "move", format(dpid, "x"), to)
        until(lambda: self.masters(seen_by=to)[dpid] == to and self.is_up(dpid, to), LIMIT_S, f"{to} is master of {dpid}")

    def is_up(self, dpid, at):
        rows = {int(row["dpid"], 16): row for row in self.nodes[at].ask("switches")}
        return dpid in rows and not rows[dpid]["standby"]

    def send(self, at, dpid, *messages):
        """Sends messages to a switch at a node, and returns their outcomes. Empty: nothing was sent."""
        answer = self.nodes[at]._run(["send", format(dpid, "x"), *messages])
        return [outcome["state"] for outcome in json.loads(answer.stdout)["outcomes"]] if answer.stdout else []

    def test_a_path_is_ordered_at_a_node_that_is_master_of_neither_switch(self):
        """Flows at two switches, of two other masters; what each switch reports is the same at each node."""
        self.assertEqual(self.masters(), {1: "a", 2: "b", 3: "c"})
        self.assertEqual(len(self.net.unreachable()), 2)
        for dpid in (1, 2):
            self.assertEqual(self.send("c", dpid, flow(7)), ["confirmed"])
        self.assertEqual((cookies("s1"), cookies("s2"), cookies("s3")), ({7}, {7}, set()))
        self.assertEqual(self.net.unreachable(), [])
        # A master that holds the switch itself is asked by the others too.
        self.assertEqual(self.send("a", 3, flow(8)), ["confirmed"])
        for dpid in (1, 2, 3):
            reported = {}
            for name, node in self.nodes.items():
                page = node.ask("flows", format(dpid, "x"))
                reported[name] = sorted((row["cookie"], row["app"]) for row in page["rows"])
            self.assertEqual(reported["a"], reported["b"])
            self.assertEqual(reported["a"], reported["c"])
            sent = {1: 7, 2: 7, 3: 8}[dpid]
            self.assertEqual(reported["c"], [(format(sent, "016x"), None)])

    def test_what_is_confirmed_is_in_the_switch_while_the_switch_moves(self):
        """One flow after the other, sent at a node, while the switch goes from master to master."""
        targets = ["b", "c", "a", "b"]
        confirmed = set()
        for number in range(1, MOVED_FLOWS + 1):
            if number % MOVE_EVERY == 0 and targets:
                to = targets.pop(0)
                self.nodes[self.masters()[1]].ask("cluster", "move", "1", to)
            outcomes = self.send("c", 1, flow(number, ip_dst=0x0a010000 + number))
            if outcomes == ["confirmed"]:
                confirmed.add(number)
        self.assertEqual(targets, [])
        self.assertEqual(confirmed - cookies("s1"), set())
        # A move takes the switch down for its apps, for some milliseconds.
        self.assertGreater(len(confirmed), MOVED_FLOWS // 2)

    def test_a_killed_master_leaves_nothing_confirmed_that_is_not_there(self):
        """The next master takes what is sent after that."""
        confirmed = set()
        for number in range(1, MOVED_FLOWS + 1):
            if number == MOVE_EVERY:
                process, self.nodes["a"].process = self.nodes["a"].process, None
                process.kill()
                process.wait(LIMIT_S)
            outcomes = self.send("c", 1, flow(number, ip_dst=0x0a010000 + number))
            if outcomes == ["confirmed"]:
                confirmed.add(number)
        self.assertEqual(confirmed - cookies("s1"), set())
        self.assertIn(MOVED_FLOWS, confirmed)
