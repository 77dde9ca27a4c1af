"""Cases of DELTA about flows: wrong ones, foreign ones, far too many, on Open vSwitch."""

import os
import re
import time

from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.openvswitch import command
from harness.rest import RestClient
from harness.waiting import until

HTTP = "127.0.0.1:8080"
SOON_S = 30
# Tables are read again every 60 s.
AUDIT_S = 90
DROP = "eth_type=0x0800,ipv4_dst=10.0.0.2"
NAMES = {"left": "0000000000000001", "right": "0000000000000002"}
# 1.3 has ports of such numbers. Open vSwitch has none between 0xff00 and 0xffffff00, and refuses them.
NO_PORT = 70000
WATCH_S = 15
# Sent at once, and after 1, 2, 4 and 8 s.
MOST_ATTEMPTS = 5
TABLE_FLOWS = 10
HOSTS = 6


class Flows(SystemTest):
    """Static flows and learnt flows on real switches."""

    time_limit_s = 180
    refusals_expected = False

    def start(self, version, topology=None, apps=("static", "learning")):
        tokens = self.run_dir / "tokens"
        token = command(os.environ["BELLROCK_BIN"], "token", "script", "--scope", "write", "--file", str(tokens)).strip()
        http = {"listen": HTTP, "tokens": str(tokens)}
        self.run = self.controller(config={"apps": list(apps), "switches": NAMES, "http": http})
        self.rest = RestClient(f"http://{HTTP}", token)
        self.version = version
        return self.network(topology or Line(switches=2, hosts=(1, 2)), version)

    def judge(self):
        if not self.refusals_expected:
            return super().judge()
        for controller in self.controllers:
            self.assertEqual(controller.faults(), [])

    def drops(self, network, switch="s1"):
        return [flow for flow in network.flows(switch) if "nw_dst=10.0.0.2" in flow]

    @on_both_versions
    def flows_of_others(self, version):
        """3.1.001, 3.1.070, 3.1.080: a flow under another cookie, a changed one, a removed one: each is put right."""
        network = self.start(version)
        attacks = {7: ("add-flow", "cookie=0xde17a,", ",actions=drop"), 8: ("mod-flows", "", ",actions=normal"),
                   9: ("del-flows", "", "")}
        for number in attacks:
            self.run.ask("static", "add", f"wall-{number}", "left", "--match", f"eth_type=0x0800,ipv4_dst=10.0.0.{number}", "--actions", "drop")

        def walls():
            """Cookie, number and actions of each."""
            flows = [re.match(r"(cookie=\w+),.*nw_dst=10.0.0.([789]) actions=(.*)", flow) for flow in network.flows("s1")]
            return sorted(found.groups() for found in flows if found)

        wanted = walls()
        self.assertEqual(len(wanted), len(attacks))
        for number, (what, before, after) in attacks.items():
            flow = next(flow for flow in network.flows("s1") if f"nw_dst=10.0.0.{number} " in flow)
            priority = f"priority={flow.split('priority=')[1].split(',')[0]}," if what == "add-flow" else ""
            command("ovs-ofctl", "-O", version, what, "s1", f"{before}{priority}ip,nw_dst=10.0.0.{number}{after}")
        self.assertEqual(len([wall for wall in walls() if wall in wanted]), 0, f"the attacks were none: {walls()}")
        # What is shown is what the switch has.
        shown = [row for row in self.run.ask("flows", "left") if "10.0.0.8" in str(row)]
        self.assertNotIn("drop", [row.get("actions") for row in shown], shown)
        until(lambda: walls() == wanted, AUDIT_S, "exactly the wanted flows are there")
        # The next report of the switch shows it.
        until(lambda: [row["state"] for row in self.run.ask("static", "list")] == ["installed"] * len(attacks), AUDIT_S,
              "the entries are shown as installed again")

    def test_output_port_that_is_none(self):
        """3.1.002, 3.1.240: a flow that the switch refuses is never shown as installed, and not sent without end."""
        self.refusals_expected = True
        network = self.start("OpenFlow13")
        done, error = self.run.not_done("static", "add", "nowhere", "left", "--match", DROP, "--actions", f"output:{NO_PORT}")
        self.assertEqual((done["unconfirmed"], done["problems"][0]["state"]), (1, "refused"), done)
        self.assertIn("bellrock: nowhere: refused: the switch refuses it: OFPBAC_BAD_OUT_PORT", error)
        # Open vSwitch writes its log a moment later.
        until(self.ovs.error_replies, SOON_S, "the switch has refused it")
        began = len(self.ovs.error_replies())
        time.sleep(WATCH_S)
        self.assertLessEqual(len(self.ovs.error_replies()) - began, MOST_ATTEMPTS)
        row, = self.run.ask("static", "list")
        self.assertEqual(row["state"], "refused")
        self.assertIn("port", row["why"].lower(), row)
        self.assertEqual(self.drops(network), [])
        # A correct one takes its place.
        done = self.run.ask("static", "add", "nowhere", "left", "--match", DROP, "--actions", "drop")
        self.assertEqual(done["unconfirmed"], 0)
        self.assertEqual(len(self.drops(network)), 1)
        self.assertEqual(network.unreachable([("h2", "h1"), ("h1", "h2")]), [("h2", "h1"), ("h1", "h2")])

    @on_both_versions
    def flow_rule_flooding(self, version):
        """3.1.190: a switch whose table is full forwards by the controller, and what is refused is named."""
        self.refusals_expected = True
        network = self.start(version, Line(hosts=(1,) * HOSTS), apps=["learning"])
        command("ovs-vsctl", "--", "--id=@t", "create", "Flow_Table", f"flow_limit={TABLE_FLOWS}", "overflow_policy=refuse",
                "--", "set", "bridge", "s1", "flow_tables:0=@t")
        self.assertEqual(network.ping_all(), 0, "percent lost with a full table")
        self.assertLessEqual(len(network.flows("s1")), TABLE_FLOWS)
        until(self.ovs.error_replies, SOON_S, "the table was full")
        until(lambda: "table full" in self.run.text().replace("_", " ").lower(), SOON_S, "the log names it")

    @on_both_versions
    def malformed_flow_rule(self, version):
        """3.1.200, 3.1.220: what a switch cannot have is refused with the field, is not kept, and survives no reconnection."""
        network = self.start(version)
        other_version = "set_vlan_vid:7,output:1" if version == "OpenFlow13" else "push_vlan:0x8100,output:1"
        for flow in ({"match": "ipv4_dst=10.0.0.2"}, {"match": "eth_type=0x0800,ipv4_dst=10.0.0.999"}, {"actions": "output:-1"},
                     {"actions": other_version}, {"priority": 70000}, {"table": 300}, {"idle_timeout": "x"}):
            body = {"switch": "left", "flow": {"actions": "drop", **flow}}
            status, problem = self.rest.ask("/v1/static/bad", "PUT", body)
            self.assertEqual(status, 400, (flow, problem))
        self.assertEqual(self.run.ask("static", "list"), [])
        command("ovs-vsctl", "del-controller", "s1")
        until(lambda: len(self.run.ask("switches")) == 1, SOON_S, "the switch is away")
        command("ovs-vsctl", "set-controller", "s1", "tcp:127.0.0.1:6653")
        until(lambda: len(self.run.ask("switches")) == 2, SOON_S, "it is back")
        until(lambda: network.unreachable() == [], SOON_S, "the hosts reach each other")
        self.assertEqual(self.drops(network), [])

    @on_both_versions
    def flow_rule_id_spoofing(self, version):
        """3.1.230: an entry with a name that exists moves as a whole: no switch keeps a flow that the list does not show."""
        network = self.start(version)
        self.run.ask("static", "add", "wall", "left", "--match", DROP, "--actions", "drop")
        places = lambda: (len(self.drops(network)), len(self.drops(network, "s2")))
        # Another owner may not have the name.
        status, _ = self.rest.ask("/v1/static/wall", "PUT", {"switch": "right", "flow": {"match": DROP, "actions": "drop"}})
        self.assertEqual((status, places()), (409, (1, 0)))
        done = self.run.ask("static", "add", "wall", "right", "--match", DROP, "--actions", "drop")
        self.assertEqual((done["unconfirmed"], places()), (0, (0, 1)))
        row, = self.run.ask("static", "list")
        self.assertEqual((row["switch_name"], row["state"]), ("right", "installed"))
