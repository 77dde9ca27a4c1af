"""What an operator or an app orders at one node of a cluster, for switches of which others are master."""

import json
import re
import struct
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from harness.localcluster import LIMIT_S, NODES, LocalCluster
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

FLOOD = 0xfffffffb
ANY = 0xffffffff
# Flows that are sent while their switch moves.
MOVED_FLOWS = 60
MOVE_EVERY = 12
RYU_PORTS = {"a": 8080, "b": 8081, "c": 8082}
# Asks for the description of a switch (OpenFlow 1.3.5 §7.3.5.1).
REQUEST_DESC = "04120010000000000000000000000000"
# A group that floods, a meter that drops above 1 Mbit/s, and a flow with both, in Ryu's form.
GROUP = {"type": "ALL", "group_id": 5, "buckets": [{"actions": [{"type": "OUTPUT", "port": 2}]}]}
METER = {"flags": ["KBPS"], "meter_id": 6, "bands": [{"type": "DROP", "rate": 1000}]}
FLOW = {"priority": 9, "match": {"in_port": 1}, "actions": [{"type": "METER", "meter_id": 6}, {"type": "GROUP", "group_id": 5}]}


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

    def settings(self, name):
        # No app forwards: hosts reach each other only by the flows of the test.
        return {"apps": ["quarantine"], "http": {"ryu": f"127.0.0.1:{RYU_PORTS[name]}"}}

    def masters(self, seen_by="c"):
        """The node that each switch obeys, as a node sees it."""
        return {int(row["dpid"], 16): row["obeys"] for row in self.nodes[seen_by].ask("cluster", "--switches")}

    def move(self, dpid, to):
        """Gives a switch to a node, and waits until the node is its master."""
        def ordered():
            master = self.masters()[dpid]
            if master in (None, to):
                return master == to
            try:
                self.nodes[master].ask("cluster", "move", format(dpid, "x"), to)
            except AssertionError as error:
                # The nodes have spread the switches meanwhile.
                if "not this node's to move" not in str(error):
                    raise
                return False
            return True
        until(ordered, LIMIT_S, f"{dpid} may move to {to}")
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

    def ryu(self, at, path, body=None):
        """The answer of a node's interface of Ryu."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{RYU_PORTS[at]}{path}", data, timeout=LIMIT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error}: {error.read()}") from None
        return json.loads(text) if text else None

    def test_scripts_of_ryu_work_at_each_node(self):
        """What is set at one node by Ryu's requests is in the switch of another one, and each node reports the same."""
        for kind, entry in (("groupentry", GROUP), ("meterentry", METER), ("flowentry", FLOW)):
            self.ryu("c", f"/stats/{kind}/add", {"dpid": 1, **entry})
        until(lambda: "in_port=1 actions=group:5" in self.dump("dump-flows", "s1").replace("meter:6,", ""), LIMIT_S, "the flow is in the switch")
        self.assertIn("group_id=5,type=all", self.dump("dump-groups", "s1"))
        self.assertIn("meter=6", self.dump("dump-meters", "s1"))
        for part in ("groupdesc", "meterconfig", "port", "portdesc", "desc"):
            answers = [self.ryu(name, f"/stats/{part}/1") for name in NODES]
            self.assertEqual(self.shape(answers[0]), self.shape(answers[1]), part)
            self.assertEqual(self.shape(answers[0]), self.shape(answers[2]), part)
            self.assertTrue(answers[0]["1"], part)
        groups = {name: self.nodes[name].ask("groups", "1") for name in NODES}
        meters = {name: self.nodes[name].ask("meters", "1") for name in NODES}
        for name in NODES:
            self.assertEqual([row["group"] for row in groups[name]], [row["group"] for row in groups["a"]])
            self.assertEqual([row["meter"] for row in meters[name]], [row["meter"] for row in meters["a"]])
            ports = self.nodes[name].ask("ports", "1")
            self.assertTrue(all(row["counters"] for row in ports if row["port"] != "LOCAL"), f"{name}: {ports}")
            description = self.nodes[name].ask("request", "1", REQUEST_DESC)
            self.assertIn("Open vSwitch", json.dumps(description))
        self.ryu("b", "/stats/flowentry/delete_strict", {"dpid": 1, **FLOW})
        until(lambda: "group:5" not in self.dump("dump-flows", "s1"), LIMIT_S, "the flow is removed")

    def dump(self, what, switch):
        return command("ovs-ofctl", "-O", "OpenFlow13", what, switch)

    def shape(self, answer):
        """An answer without counters and times, which differ between two questions."""
        drop = re.compile(r'"(rx|tx|duration|packet|byte|flow|ref)_?[a-z_]*": ?\d+,? ?')
        return drop.sub("", json.dumps(answer, sort_keys=True))

    def test_confirmed_flows_are_in_the_switch_while_it_moves(self):
        """One flow after the other, sent at a node, while the switch goes from master to master."""
        path = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "b")]
        confirmed, moves = set(), []
        # A move is answered when it is done, and the next one is ordered then: at the master that it has made.
        with ThreadPoolExecutor(max_workers=1) as orders:
            for number in range(1, MOVED_FLOWS + 1):
                if number % MOVE_EVERY == 0 and path:
                    master, to = path.pop(0)
                    moves.append(orders.submit(self.nodes[master].ask, "cluster", "move", "1", to))
                outcomes = self.send("c", 1, flow(number, ip_dst=0x0a010000 + number))
                if outcomes == ["confirmed"]:
                    confirmed.add(number)
        self.assertEqual(path, [])
        self.assertEqual([move.result()["obeys"] for move in moves], ["b", "c", "a", "b"])
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
