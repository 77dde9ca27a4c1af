"""Static flows, groups and meters on Open vSwitch: by command, file and REST, over restarts and changes of others."""

import json
import os
import signal
import threading
import time

from harness.case import SystemTest, on_both_versions
from harness.messages import DELETE_ALL
from harness.network import Line
from harness.openvswitch import command
from harness.rest import RestClient
from harness.waiting import until

HTTP = "127.0.0.1:8080"
SOON_S = 30
# Tables are read again every 60 s.
AUDIT_S = 90
NAMES = {"left": "0000000000000001", "right": "0000000000000002"}
# An order is followed by a read at once, or a second after the read before.
READ_PAUSE_S = 1.5
# Far less than an audit's turn takes.
SOON_AFTER_ORDER_S = 10
DROP = "eth_type=0x0800,ipv4_dst=10.0.0.2"


class Static(SystemTest):
    """Two switches with a host each, and static entries before the learning switch."""

    time_limit_s = 180

    def start(self, version):
        self.store = self.run_dir / "static.json"
        tokens = self.run_dir / "tokens"
        self.token = command(os.environ["BELLROCK_BIN"], "token", "script", "--scope", "write", "--file", str(tokens)).strip()
        config = {"apps": [{"static": {"store": str(self.store)}}, "learning"], "switches": NAMES,
                  "http": {"listen": HTTP, "tokens": str(tokens)}}
        controller = self.controller(config=config)
        network = self.network(Line(switches=2, hosts=(1, 2)), version)
        until(lambda: network.ping_all() == 0, SOON_S, "the hosts reach each other")
        return controller, network

    def rest(self, path, method="GET", body=None):
        """The status and the answer, which fits the document."""
        return RestClient(f"http://{HTTP}", self.token).ask(path, method, body)

    def drops(self, network, switch="s1"):
        return [flow for flow in network.flows(switch) if flow.endswith("actions=drop")]

    @on_both_versions
    def a_flow_is_set_replaced_and_removed(self, version):
        """By the command, and by REST. The answer comes when the switch has it."""
        controller, network = self.start(version)
        done = controller.ask("static", "add", "wall", "left", "--match", DROP, "--actions", "drop")
        self.assertEqual((done["set"], done["unconfirmed"], done["saved"]), (1, 0, True))
        self.assertEqual(len(self.drops(network)), 1, "the switch has it when the command ends")
        self.assertIn("nw_dst=10.0.0.2", self.drops(network)[0])
        self.assertEqual(network.ping_all(), 100)
        row = controller.ask("static", "list")[0]
        self.assertEqual((row["name"], row["owner"], row["switch_name"], row["state"]), ("wall", "operator", "left", "installed"))
        # What is shown can be given again, and changes nothing.
        done = controller.ask("static", "add", "wall", "left", "--match", row["flow"]["match"], "--actions", row["flow"]["actions"])
        self.assertEqual((done["set"], done["unchanged"]), (0, 1))

        body = {"switch": "left", "flow": {"match": DROP, "actions": "drop"}}
        self.assertEqual(self.rest("/v1/static/other", "PUT", body)[0], 409, "the same flow under another name")
        self.assertEqual(self.rest("/v1/static/wall", "DELETE")[0], 409, "it belongs to the operator")
        status, done = self.rest("/v1/static/wall?owner=operator", "DELETE")
        self.assertEqual((status, done["removed"], done["unconfirmed"]), (200, 1, 0))
        self.assertEqual(self.drops(network), [])
        until(lambda: network.ping_all() == 0, SOON_S, "nothing drops any more")
        status, done = self.rest("/v1/static/other", "PUT", body)
        self.assertEqual((status, done["set"]), (200, 1))
        self.assertEqual(self.rest("/v1/static/other")[1]["owner"], "script")
        self.assertEqual(network.ping_all(), 100)

    def test_an_exact_flow_of_1_0_stays(self):
        """All twelve fields of a tagged packet: Open vSwitch reports it with a priority of its own, and it is still the
        wanted flow when the tables are read again."""
        controller, network = self.start("OpenFlow10")
        exact = ("in_port=1,eth_src=00:00:00:00:00:01,eth_dst=00:00:00:00:00:02,vlan_vid=0x1064,vlan_pcp=3,eth_type=0x0800,"
                 "ip_dscp=0,ip_proto=6,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2,tcp_src=1,tcp_dst=2")
        untagged = exact.replace("vlan_vid=0x1064,vlan_pcp=3", "vlan_vid=0")
        for name, match in (("tagged", exact), ("untagged", untagged)):
            controller.ask("static", "add", name, "left", "--match", match, "--actions", "drop")
        flows = self.drops(network)
        self.assertEqual((len(flows), all("priority=65535" in flow for flow in flows)), (2, True), flows)
        end = time.monotonic() + AUDIT_S
        while time.monotonic() < end:
            self.assertEqual(len(self.drops(network)), 2, "they stay when the tables are read again")
            time.sleep(1)
        self.assertEqual({row["state"] for row in controller.ask("static", "list")}, {"installed"})
        self.assertEqual(controller.ask("events", "--kind", "wanted_altered"), [])
        controller.ask("static", "remove", "tagged", "untagged")
        self.assertEqual(self.drops(network), [])

    @on_both_versions
    def another_program_that_changes_a_flow_each_time_is_named(self, version):
        """Another program writes its own actions over a static flow again and again: the entry is not called installed
        once the controller has read that it is not there, and there is one alarm instead of a fight without end."""
        controller, network = self.start(version)
        controller.ask("static", "add", "wall", "left", "--match", DROP, "--actions", "drop")
        ends = threading.Event()

        def overwrite():
            while not ends.wait(0.1):
                command("ovs-ofctl", "-O", version, "mod-flows", "s1", "ip,nw_dst=10.0.0.2,actions=output:7")
        other = threading.Thread(target=overwrite)
        other.start()
        try:
            def events(kind):
                return controller.ask("events", "--kind", kind)
            until(lambda: events("wanted_altered"), SOON_S, "it is found when the flow is read back")
            states = []

            def is_named():
                states.append(controller.ask("static", "list")[0]["state"])
                return events("wanted_not_kept")
            # Each correction is read back after 10 s.
            until(is_named, SOON_S, "after two corrections it is named")
            self.assertEqual(set(states) - {"pending", "not_kept"}, set(), states)
            row = controller.ask("static", "list")[0]
            self.assertEqual(row["state"], "not_kept", row)
            self.assertIn("wall", json.dumps(row))
            self.assertEqual(len(events("wanted_not_kept")), 1)
            missing = {row["name"]: row["missing_entries"] for row in controller.ask("switches")}
            self.assertEqual([problem["app"] for problem in missing["left"]], ["static"])
            self.assertIn("does not keep it", missing["left"][0]["reason"])
            self.assertEqual(missing["right"], [])
        finally:
            ends.set()
            other.join()
        # When the other program is gone, an order sends it at once. The next report may have to show that it stays.
        controller.ordered("static", "remove", "wall")
        self.assertEqual(controller.ordered("static", "add", "wall", "left", "--match", DROP, "--actions", "drop")["set"], 1)
        until(lambda: len(self.drops(network)) == 1, SOON_S, "the switch has it")
        until(lambda: controller.ask("static", "list")[0]["state"] == "installed", AUDIT_S, "a report has it")

    @on_both_versions
    def a_wrong_entry_changes_nothing_and_names_the_field(self, version):
        """Unknown fields, actions of another version, a list with one wrong entry."""
        controller, network = self.start(version)
        before = len(network.flows("s1"))
        good = {"name": "good", "switch": "left", "flow": {"match": DROP, "actions": "drop"}}
        other_version = "set_vlan_vid:7,output:1" if version == "OpenFlow13" else "push_vlan:0x8100,output:1"
        for flow, field in (({"match": "nonsense=1"}, "match"), ({"match": "ipv4_dst=10.0.0.2"}, "match"),
                            ({"actions": "output:1,fly"}, "actions[1]"), ({"priority": 4096}, "priority"), ({"nonsense": 1}, "nonsense"),
                            ({"actions": other_version}, "actions[0]"), ({"actions": "output:1,push_vlan:5"}, "actions[1]"),
                            ({"table": 3, "actions": "goto_table:3"}, "actions[0]"), ({}, "actions"), ({"match": DROP}, "actions")):
            entries = [good, {"name": "wrong", "switch": "left", "flow": flow}]
            status, problem = self.rest("/v1/static", "POST", {"entries": entries})
            self.assertEqual((status, problem.get("field")), (400, f"entries[1].flow.{field}"), problem)
        for words in (["add", "x", "middle", "--actions", "drop"], ["add", "x", "left", "--match", "nw_dst=10.0.0.2", "--actions", "drop"], ["add", "x", "left"], ["remove", "nobody"]):
            with self.assertRaises(AssertionError):
                controller.ask("static", *words)
        self.assertEqual(controller.ask("static", "list"), [])
        self.assertEqual((len(network.flows("s1")), self.drops(network)), (before, []))

    @on_both_versions
    def entries_survive_switches_controllers_and_others(self, version):
        """The same flow, not a new one, if the switch has kept it."""
        controller, network = self.start(version)
        for switch in ("left", "right"):
            controller.ask("static", "add", f"wall-{switch}", switch, "--match", DROP, "--actions", "drop")
        # Somebody empties a table.
        command("ovs-ofctl", "-O", version, "del-flows", "s2", "ip,nw_dst=10.0.0.2")
        self.assertEqual(self.drops(network, "s2"), [])
        until(lambda: self.drops(network, "s2"), AUDIT_S, "the flow is put back")
        # A switch that has lost all comes back.
        command("ovs-vsctl", "del-controller", "s2")
        command("ovs-ofctl", "-O", version, "del-flows", "s2")
        command("ovs-vsctl", "set-controller", "s2", "tcp:127.0.0.1:6653")
        until(lambda: self.drops(network, "s2"), SOON_S, "the switch has it again")
        # The controller is killed, and started again.
        network["h1"].cmd("ping -c 3 -i 0.2 -W 1 10.0.0.2")
        controller.process.send_signal(signal.SIGKILL)
        controller.process.wait()
        self.assertEqual(len(self.drops(network)), 1)
        controller.start()
        until(network.connected, SOON_S, "the switches are back")
        until(lambda: [row["state"] for row in controller.ask("static", "list")] == ["installed"] * 2, SOON_S, "both are confirmed")
        self.assertNotIn("n_packets=0,", self.drops(network)[0], "it is the flow of before, with its counters")
        self.assertEqual(network.ping_all(), 100)

    @on_both_versions
    def flows_deleted_by_an_operator_are_put_back_at_once(self, version):
        """By an order to the controller: nobody waits for the next audit, and the list does not say "installed" meanwhile."""
        controller, network = self.start(version)
        controller.ask("static", "add", "wall", "left", "--match", DROP, "--actions", "drop")
        time.sleep(READ_PAUSE_S)
        controller.ask("send", "left", DELETE_ALL[version])
        # The command ends when the switch has confirmed it: from then on the list is right.
        [row] = controller.ask("static", "list")
        self.assertIn((row["state"], len(self.drops(network))), [("pending", 0), ("pending", 1), ("installed", 1)])
        until(lambda: len(self.drops(network)) == 1, SOON_AFTER_ORDER_S, "the flow is put back at once")
        until(lambda: controller.ask("static", "list")[0]["state"] == "installed", SOON_AFTER_ORDER_S, "the list says so")
        time.sleep(READ_PAUSE_S)
        status, done = self.rest("/v1/switches/left/messages", "POST", {"messages": [DELETE_ALL[version]]})
        self.assertEqual((status, done["outcomes"][0]["state"]), (200, "confirmed"))
        until(lambda: len(self.drops(network)) == 1, SOON_AFTER_ORDER_S, "the flow is put back at once")
        until(lambda: network.ping_all() == 100, SOON_S, "it drops again")

    def test_an_entry_used_by_another_stays(self):
        """A group or meter cannot be removed, changed into another, or left out of a file, while a flow uses it."""
        controller, network = self.start("OpenFlow13")
        servers = {"name": "servers", "switch": "left", "group": {"id": 7, "type": "indirect", "buckets": [{"actions": "output:1"}]}}
        limit = {"name": "limit", "switch": "left", "meter": {"id": 5, "bands": [{"rate": 1000}]}}
        web = {"name": "web", "switch": "left", "flow": {"match": "in_port=9", "actions": "meter:5,group:7"}}
        status, problem = self.rest("/v1/static", "POST", {"entries": [web, limit]})
        self.assertEqual((status, problem["field"]), (409, "entries[0].flow.actions[1]"), problem)
        status, done = self.rest("/v1/static", "POST", {"entries": [web, limit, servers]})
        self.assertEqual((status, done["set"], done["unconfirmed"]), (200, 3, 0), done)
        for name, what in (("servers", "group 7"), ("limit", "meter 5")):
            status, problem = self.rest(f"/v1/static/{name}", "DELETE")
            self.assertEqual((status, problem["field"]), (409, "name"), problem)
            self.assertIn(f"{what} is used by the entry web", problem["detail"])
        status, problem = self.rest("/v1/static", "POST", {"entries": [limit, web], "replace": True})
        self.assertEqual((status, problem["field"]), (409, "replace"), problem)
        moved = {"switch": "right", **{"group": servers["group"]}}
        status, problem = self.rest("/v1/static/servers", "PUT", moved)
        self.assertEqual((status, problem["field"]), (409, "group"), problem)
        file = self.run_dir / "web.json"
        file.write_text(json.dumps([limit, web]))
        self.assertIn("web of script", controller.refused("static", "apply", str(file), "--owner", "script", "--replace"))
        self.assertIn("actions=meter:5,group:7", "".join(network.flows("s1")), "nothing has changed")
        # A group that somebody else has made can be used.
        command("ovs-ofctl", "-O", "OpenFlow13", "add-group", "s1", "group_id=20,type=indirect,bucket=output:1")
        status, done = self.rest("/v1/static/other", "PUT", {"switch": "left", "flow": {"match": "in_port=8", "actions": "group:20"}})
        self.assertEqual((status, done["unconfirmed"]), (200, 0), done)
        status, done = self.rest("/v1/static", "POST", {"remove": ["web", "servers", "limit"]})
        self.assertEqual((status, done["removed"], done["unconfirmed"]), (200, 3, 0), done)
        status, problem = self.rest("/v1/static", "POST", {"entries": [web]})
        self.assertEqual(status, 409, "what is removed is not used again")

    def test_an_impossible_entry_is_an_error_that_names_the_part(self):
        """Open vSwitch takes what is not refused here."""
        controller, network = self.start("OpenFlow13")
        for body, field in (
                ({"flow": {"actions": "output:1,set_field:ipv4_dst=10.0.0.7"}}, "flow.actions[1]"),
                ({"flow": {"actions": "set_field:10.0.0.7->ipv4_dst,output:1"}}, "flow.actions[0]"),
                ({"flow": {"actions": "output:1,dec_nw_ttl"}}, "flow.actions[1]"),
                ({"flow": {"match": "vlan_vid=0x1005", "actions": "set_field:7->vlan_vid"}}, "flow.actions[0]"),
                ({"group": {"id": 7, "type": "indirect"}}, "group.buckets"),
                ({"group": {"id": 7, "type": "fast_failover", "buckets": [{"actions": "output:1"}]}}, "group.buckets[0].watch_port"),
                ({"group": {"id": 7, "type": "all", "buckets": [{"actions": "output:1,group:7"}]}}, "group.buckets[0].actions[1]")):
            status, problem = self.rest("/v1/static/wrong", "PUT", {"switch": "left", **body})
            self.assertEqual((status, problem.get("field")), (400, field), problem)
        self.assertEqual(controller.ask("static", "list"), [])
        for index, flow in enumerate((
                {"match": "in_port=9", "actions": "push_vlan:0x8100,set_field:0x1007->vlan_vid,output:1"},
                {"match": "in_port=9,vlan_vid=0x1005", "actions": "pop_vlan,output:1"},
                {"match": "in_port=9,eth_type=0x0800", "actions": "set_field:10.0.0.7->ipv4_dst,dec_nw_ttl,output:1"},
                {"match": "in_port=9,eth_type=0x86dd,ip_proto=6", "actions": "set_field:80->tcp_dst,output:1,goto_table:1"},
                {"match": "in_port=9,eth_type=0x0806", "actions": "write_actions(output:1),goto_table:3"},
                {"match": "in_port=9,eth_type=0x8847", "actions": "dec_mpls_ttl,pop_mpls:0x0800,dec_nw_ttl,output:1"})):
            done = controller.ask("static", "add", f"right-{index}", "left", "--match", flow["match"], "--actions", flow["actions"])
            self.assertEqual((done["set"], done["unconfirmed"]), (1, 0), (flow, done))

    @on_both_versions
    def an_entry_with_an_end_goes_by_itself(self, version):
        """By the command and by REST: the flow leaves the switch, and the entry the list."""
        controller, network = self.start(version)
        controller.ask("static", "add", "short", "left", "--match", DROP, "--actions", "drop", "--ttl", "5s")
        body = {"switch": "right", "flow": {"match": DROP, "actions": "drop"}, "ttl_seconds": 5}
        self.assertEqual(self.rest("/v1/static/brief", "PUT", body)[0], 200)
        controller.ask("static", "add", "stays", "left", "--match", "eth_type=0x0800,ipv4_dst=10.0.0.9", "--actions", "drop")
        until(lambda: [row["name"] for row in controller.ask("static", "list")] == ["stays"], SOON_S, "both have ended")
        until(lambda: len(self.drops(network)) == 1 and not self.drops(network, "s2"), SOON_S, "their flows are gone")
        self.assertIn("nw_dst=10.0.0.9", self.drops(network)[0])
        until(lambda: network.ping_all() == 0, SOON_S, "nothing drops any more")

    def test_groups_and_meters_from_a_file(self):
        """Before the flows that use them; and gone with `--replace`."""
        controller, network = self.start("OpenFlow13")
        entries = [
            {"name": "web", "switch": "left", "flow": {"match": "in_port=9", "actions": "meter:5,group:7"}},
            {"name": "servers", "switch": "left", "group": {"id": 7, "type": "select", "buckets": [
                {"weight": 1, "actions": "output:1"}, {"weight": 2, "actions": "set_field:02:00:00:00:00:01->eth_dst,output:2"}]}},
            {"name": "limit", "switch": "left", "meter": {"id": 5, "bands": [{"rate": 1000, "burst": 100}]}},
        ]
        file = self.run_dir / "web.json"
        file.write_text(json.dumps(entries))
        done = controller.ask("static", "apply", str(file), "--owner", "web")
        self.assertEqual((done["set"], done["unconfirmed"]), (3, 0), done)
        groups = command("ovs-ofctl", "-O", "OpenFlow13", "dump-groups", "s1")
        self.assertIn("group_id=7,type=select,bucket=actions=output:1,bucket=weight:2", groups.replace(" ", ""))
        self.assertIn("meter=5 kbps burst", command("ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1"))
        self.assertIn("actions=meter:5,group:7", "".join(network.flows("s1")))
        [group] = controller.ask("groups", "left")
        buckets = ["weight:1,actions=output:1", "weight:2,actions=set_field:02:00:00:00:00:01->eth_dst,output:2"]
        self.assertEqual((group["group"], group["type"], group["buckets"], group["used_by"]), (7, "select", buckets, 1), group)
        [meter] = controller.ask("meters", "left")
        self.assertEqual((meter["meter"], meter["bands"], meter["used_by"]), (5, ["drop, rate=1000, burst_size=100"], 1), meter)
        self.assertEqual((group["packets"], meter["packets"]), (0, 0))
        file.write_text("[]")
        done = controller.ask("static", "apply", str(file), "--owner", "web", "--replace")
        self.assertEqual((done["removed"], done["unconfirmed"]), (3, 0), done)

        def is_gone():
            groups = command("ovs-ofctl", "-O", "OpenFlow13", "dump-groups", "s1")
            return "group_id" not in groups and "meter=" not in command("ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1")
        until(is_gone, SOON_S, "the group and the meter are removed after the flow")
        # YAML is read too, and a mistake in it is named.
        file.write_text("- {name: a, switch: left, flow: {mach: any}}\n")
        self.assertIn("mach", controller.refused("static", "apply", str(file)))
