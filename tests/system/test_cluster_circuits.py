"""Circuits over the switches of several nodes: one route, whichever node ends, and the same at each node."""

import json
import re

from harness.case import SystemTest
from harness.cluster import LIMIT_S, NAMES, ClusterTest
from harness.openvswitch import command
from harness.topologies import Ring
from harness.waiting import until

LINKS = 8
TAG = re.compile(r"dl_vlan=2\d{3}|set_field:\d+->vlan_vid|group:")
CIRCUITS = {"blue": ["1:1", "3:2"]}
PAIRS = [("h1", "h3"), ("h3", "h1")]
RESTART_S = 30
# Flows that have not changed for so long are final: switches confirm the new ones, then the old ones are removed.
FINAL_AFTER_S = 3


def circuit_flows(switches):
    """The flows of circuits at each switch, with their cookies, and the smallest age of them in seconds."""
    flows, ages = {}, []
    for switch in switches:
        lines = [line for line in command("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", switch).splitlines() if TAG.search(line)]
        ages += [float(re.search(r"duration=([\d.]+)s", line)[1]) for line in lines]
        flows[switch] = sorted(re.sub(r"(duration|n_packets|n_bytes|idle_age)=[^,]*, ", "", line).strip() for line in lines)
    return flows, min(ages, default=0)


def final_flows(flows):
    """What `flows` returns when the flows of the path before are gone."""
    last = [None]

    def unchanged():
        before, last[0] = last[0], flows()
        return last[0] if before and last[0][0] == before[0] else None
    return until(unchanged, LIMIT_S, "the flows stay as they are", poll_s=FINAL_AFTER_S)


class Circuits(ClusterTest):
    """Four switches in a ring, with a host each. A circuit joins h1 and h3."""

    apps = ({"provisioning": {"circuits": CIRCUITS}}, "routing")
    time_limit_s = 300

    def setUp(self):
        super().setUp()
        self.attach(Ring())
        for node in self.nodes.values():
            until(lambda node=node: len(node.ask("links")) == LINKS, LIMIT_S, f"{node.name} knows all links")
        self.agree(NAMES)
        until(lambda: self.net.unreachable(PAIRS) == [], LIMIT_S, "the circuit carries frames")

    def flows(self):
        return circuit_flows(switch.name for switch in self.net.switches)

    def shown(self, name):
        return [(row["name"], row["state"], tuple(row["path"])) for row in self.nodes[name].ask("circuits")]

    def agree(self, names):
        """Waits until these nodes show the same path of the circuit. Returns it."""
        def agreed():
            rows = [self.shown(name) for name in names]
            same = all(row == rows[0] for row in rows)
            return rows[0][0] if same and len(rows[0]) == 1 and rows[0][0][1] == "up" else None
        return until(agreed, LIMIT_S, f"{', '.join(names)} show the same path")

    def leader(self):
        stored = self.etcd.ask("get", "--print-value-only", "/bellrock/test/circuits/leader")
        return re.search(r"node=(\w+)", stored)[1]

    def moves(self):
        """How often each node has reported that the circuit moved."""
        running = [name for name in self.nodes if self.nodes[name].process is not None]
        return {name: len(self.reported(name, "circuit_moved")) for name in running}

    def reported(self, name, event):
        """The app's events of this name, at a node."""
        texts = [row["text"] for row in self.nodes[name].ask("events", "--kind", "app_event")]
        return [text for text in texts if f"provisioning reports {event}:" in text]

    def test_the_loss_of_the_leader_changes_no_flow_openflow13(self):
        path, (before, _) = self.agree(NAMES), self.flows()
        self.assertTrue(any(before.values()), before)
        leader = self.leader()
        self.nodes[leader].kill()
        others = self.others(leader)
        self.await_masters(others)
        self.settle(others)
        until(lambda: self.leader() in others, LIMIT_S, "another node leads")
        self.assertEqual(self.agree(others), path)
        self.assertEqual(self.net.unreachable(PAIRS), [])
        after, age = self.flows()
        self.assertEqual(after, before, "the same tags, groups and cookies")
        self.nodes[leader].start()
        self.settle()
        self.assertEqual(self.agree(NAMES), path)
        last, later = self.flows()
        self.assertEqual(last, before)
        self.assertGreater(later, age, "no flow was laid anew")

    def test_a_link_that_fails_with_the_leader_moves_the_circuit_once_openflow13(self):
        path = self.agree(NAMES)
        self.assertEqual(len(path[2]), 2, path)
        used = "s2" if any(port.startswith("0000000000000002:") for port in path[2]) else "s4"
        leader = self.leader()
        others = self.others(leader)
        before = self.moves()
        self.nodes[leader].kill()
        self.net.net.configLinkStatus("s1", used, "down")
        # The detour carries frames meanwhile.
        until(lambda: self.agree(others)[2] != path[2], LIMIT_S, "the circuit has another path")
        self.settle(others)
        until(lambda: self.net.unreachable(PAIRS) == [], LIMIT_S, "it carries frames")
        moved = self.agree(others)
        flows, _ = final_flows(self.flows)
        self.assertEqual({name: self.moves()[name] - before[name] for name in others}, dict.fromkeys(others, 1))
        self.nodes[leader].start()
        self.settle()
        self.assertEqual(self.agree(NAMES), moved)
        self.assertEqual(self.flows()[0], flows, "the node that comes back lays nothing anew")

    def test_a_node_with_other_apps_is_refused(self):
        self.nodes["c"].kill()
        self.await_masters(("a", "b"))
        node = self.nodes["c"]
        config = json.loads(node.config_file.read_text())
        node.write_config(config | {"apps": ["routing"]})
        node.start()
        for name in ("a", "b"):
            until(lambda name=name: "node c has the apps [routing], and" in self.nodes[name].text(), LIMIT_S, f"{name} refuses it")
        until(lambda: "it refuses this node: node c has the apps [routing]" in node.text(), LIMIT_S, "it says so")
        self.settle(("a", "b"))
        self.assertFalse(node.is_serving(), "a node without majority")
        node.kill()
        node.write_config(config)
        node.start()
        until(node.is_serving, LIMIT_S, "with the same apps it is a node again")

    def test_other_circuits_than_those_of_the_leader_are_an_alarm(self):
        name = self.others(self.leader())[0]
        node = self.nodes[name]
        config = json.loads(node.config_file.read_text())
        other = {"provisioning": {"circuits": {"blue": ["1:1", "4:2"]}}}
        before, _ = self.flows()
        node.write_config(config | {"apps": [other, "routing"]})
        node.ask("reload")
        until(lambda: self.reported(name, "circuit_differs"), LIMIT_S, "an alarm")
        row = node.ask("circuits")[0]
        self.assertEqual(row["state"], "up")
        self.assertIn("leads and has other endpoints", row["why"])
        self.assertEqual(self.flows()[0], before, "those of the leader count")
        node.write_config(config)
        node.ask("reload")
        until(lambda: self.reported(name, "circuit_agrees"), LIMIT_S, "the end of it")


class Restart(SystemTest):
    """The same ring, and a controller that is alone."""

    def test_a_circuit_that_has_moved_survives_a_restart_openflow13(self):
        config = {"apps": [{"provisioning": {"circuits": CIRCUITS, "store": str(self.run_dir / "circuits.json")}}]}
        controller = self.controller(config=config)
        network = self.network(Ring(), "OpenFlow13")
        switches = [switch.name for switch in network.switches]

        def rows():
            return [(row["state"], row["path"]) for row in controller.ask("circuits")]

        until(lambda: [state for state, _ in rows()] == ["up"], RESTART_S, "it is up")
        first = rows()[0][1]
        used = "s2" if any(port.startswith("0000000000000002:") for port in first) else "s4"
        network.net.configLinkStatus("s1", used, "down")
        until(lambda: rows()[0][0] == "up" and rows()[0][1] != first, RESTART_S, "it has moved")
        until(lambda: network.unreachable(PAIRS) == [], RESTART_S, "it carries frames")
        path, (flows, age) = rows(), final_flows(lambda: circuit_flows(switches))
        self.assertEqual(controller.stop(), 0, "exit status after SIGTERM")
        controller = self.controller(config=config)
        network.await_connected()
        until(lambda: rows() == path, RESTART_S, "the same path")
        until(lambda: len(controller.ask("links")) == LINKS - 2, RESTART_S, "all links are found again")
        again, later = circuit_flows(switches)
        self.assertEqual(again, flows, "the same tags and cookies")
        self.assertGreater(later, age, "no flow was laid anew")
        self.assertEqual(network.unreachable(PAIRS), [])
