"""The REST interface of Ryu: every request that was recorded from Ryu leaves the same tables and gets the same answer.

`vectors/ryu` has the requests, with the answers of Ryu 4.34 and the tables of Open vSwitch after each.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path

from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.ryu import PORT, ask, tables
from harness.waiting import until

RECORDED = Path(__file__).resolve().parent.parent.parent / "vectors" / "ryu"
LIMIT_S = 30
# Where Ryu guesses, or fails with status 500: our status, and a part of the text. Nothing changes then.
REFUSED = {
    "an unknown field": (400, "match.nonsense: there is no such field"),
    "an unknown action": (400, 'actions[0].type: there is no action "FLY"'),
    "a port that is no number": (400, 'match.in_port: "nowhere" is no number here; give a number, or MAX, IN_PORT'),
    "a body with null, true and false": (400, "match: it is no object"),
    "an address that is none": (400, 'match.nw_src: "10.0.0" is not a value of ipv4_src'),
    "data in a form that Ryu does not know": (400, "data_type: give ascii or base64"),
    "a field without its prerequisite": (400, "match: ipv4_src needs eth_type"),
}
# The recorded message of an experimenter is a flow_mod of Nicira: the controller could not tell whose flow it is.
REFUSED_13 = {"a message of an experimenter": (400, "it is NXT_FLOW_MOD: it carries flow_mods")}
# Values that differ from run to run.
VOLATILE = ("duration_sec", "duration_nsec", "hw_addr", "active_count", "lookup_count", "matched_count", "collisions")
# Apps and the controller have this in the upper half of their cookies.
OWN_COOKIE_BITS = 32
NO_TAG = 0xffff


def settled(value):
    """An answer without what differs from run to run, and without the flows of the controller itself."""
    if isinstance(value, dict):
        if value.get("dl_vlan") == NO_TAG:
            # Open vSwitch reports the priority of a tag that is not there.
            value = {key: item for key, item in value.items() if key != "dl_vlan_pcp"}
        return {key: 0 if key in VOLATILE or key[:3] in ("rx_", "tx_") else settled(item) for key, item in value.items()}
    if isinstance(value, list):
        foreign = [item for item in value if not (isinstance(item, dict) and item.get("cookie", 0) >> OWN_COOKIE_BITS)]
        return sorted((settled(item) for item in foreign), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, str) and value.startswith("field_"):
        return "a field of another class"
    return value


class Ryu(SystemTest):
    """Ryu's scripts on two switches with a host each."""

    maxDiff = None

    def judge(self):
        """As for all tests, but one of the requests is for a queue that does not exist."""
        refused = [line for line in self.ovs.error_replies() if "OFPQOFC_BAD_QUEUE" not in line]
        self.assertEqual(refused, [], "Open vSwitch refused messages")
        for controller in self.controllers:
            self.assertEqual(controller.faults(), [], "the controller's log tells of a fault of its own")

    def start(self, version, apps):
        controller = self.controller(config={"apps": apps, "http": {"ryu": f"127.0.0.1:{PORT}"}})
        return controller, self.network(Line(switches=2, hosts=(1, 2)), version)

    @on_both_versions
    def recorded_requests_leave_the_same_tables(self, version):
        """All but what Ryu guesses, which is refused."""
        # Without a service, so that only the table-miss entry is the controller's own.
        self.start(version, ["hub"])
        own = tables(version)
        refused = REFUSED | (REFUSED_13 if version == "OpenFlow13" else {})
        cases = json.loads((RECORDED / f"{version.lower()}.json").read_text())
        before = own
        for case in cases:
            status, answer = ask(case)
            about = f"{case['name']}: {status} {str(answer)[:500]}"
            if case["name"] in refused:
                expected, text = refused[case["name"]]
                self.assertEqual(status, expected, about)
                self.assertIn(text, str(answer), about)
                self.assertEqual(tables(version), before, about)
                continue
            self.assertEqual(status, case["status"], about)
            if status != 200:
                self.assertNotEqual(answer, "", f"{about}: nobody learns why")
            elif case["answer"]:
                self.compare(case, answer, own)
            else:
                self.assertIn(answer, ("", None), f"{about}: Ryu answers nothing")
            if "after" in case:
                self.same_tables(version, case, own)
            before = tables(version)

    @on_both_versions
    def requests_of_public_scripts_are_taken(self, version):
        """`DROP`, comments beside the fields, a type in buckets. A slip of the pen is refused, with the right name."""
        controller, _ = self.start(version, ["hub"])
        drop = {"dpid": 1, "name": "r1", "comment": "no telnet", "priority": 61, "match": {"in_port": 1}, "actions": [{"type": "DROP"}]}
        self.assertEqual(self.post("flowentry/add", drop), (200, ""))
        self.assertIn("priority=61,in_port=1 actions=drop", tables(version)["flows"])
        if version == "OpenFlow13":
            bucket = {"type": "APPLY_ACTIONS", "actions": [{"type": "OUTPUT", "port": 2, "comment": "to h2"}]}
            self.assertEqual(self.post("groupentry/add", {"dpid": 1, "type": "ALL", "group_id": 9, "buckets": [bucket]}), (200, ""))
            self.assertTrue(any("group_id=9,type=all,bucket=" in line for line in tables(version)["groups"]), tables(version))
        before = tables(version)
        slip = {**drop, "prioriy": 62}
        status, answer = self.post("flowentry/add", slip)
        self.assertEqual((status, answer.strip()), (400, "prioriy: there is no such field; did you mean priority?"))
        status, answer = self.post("flowentry/add", {**drop, "instructions": []})
        self.assertEqual(status, 400, answer)
        self.assertIn("instructions: there is no such field here", answer)
        self.assertEqual(tables(version), before)

    def post(self, path, body):
        return ask({"method": "POST", "path": f"/stats/{path}", "body": body})

    def compare(self, case, answer, own):
        expected = case["answer"]
        if case["path"] == "/stats/aggregateflow/1" and "body" not in case:
            expected["1"][0]["flow_count"] += len(own["flows"])
            for count in ("packet_count", "byte_count"):
                expected["1"][0][count] = answer["1"][0][count]
        if case["name"] == "tables" and "wildcards" in expected["1"][0]:
            # Ryu takes the values of bits for their places.
            for rows in (expected["1"], answer["1"]):
                for row in rows:
                    self.assertIn("DL_TYPE", row.pop("wildcards"))
        if case["name"] == "table features":
            self.compare_fields(expected["1"][0], answer["1"][0])
        self.assertEqual(settled(answer), settled(expected), case["name"])

    def compare_fields(self, expected, answer):
        """Ryu has names for the fields of Nicira, which are numbers here."""
        known = {"in_port", "eth_dst", "ipv6_flabel", "mpls_label", "tunnel_id"}
        for ours, theirs in zip(answer["properties"], expected["properties"], strict=True):
            if "oxm_ids" in ours:
                fields = {field["type"]: field for field in ours.pop("oxm_ids")}
                named = {field["type"]: field for field in theirs.pop("oxm_ids")}
                self.assertEqual(len(fields), len(named))
                for name in named.keys() & fields.keys():
                    self.assertEqual(fields[name], named[name])
                if theirs["type"] == "MATCH":
                    self.assertLessEqual(known, fields.keys())

    def same_tables(self, version, case, own):
        """The tables are those that Ryu has left. The controller's own flows come back after a removal of all."""
        def foreign():
            state = tables(version)
            return {what: [line for line in lines if line not in own[what]] for what, lines in state.items()}
        self.assertEqual(foreign(), case["after"], case["name"])
        if case["method"] == "DELETE" and case["status"] == 200:
            until(lambda: set(own["flows"]) <= set(tables(version)["flows"]), LIMIT_S, f"the controller's own flows after {case['name']}")

    def test_the_topology_has_the_same_form(self):
        """Switches, links and hosts, each as Ryu reports it."""
        controller, network = self.start("OpenFlow13", ["routing"])
        until(lambda: network.ping_all() == 0, LIMIT_S, "the hosts are found")
        until(lambda: len(controller.ask("links")) == 2, LIMIT_S, "the link is found in both directions")
        for case in json.loads((RECORDED / "topology.json").read_text()):
            status, answer = ask(case)
            self.assertEqual(status, case["status"], case["name"])
            if status == 200:
                self.assertEqual(settled(answer), settled(case["answer"]), case["name"])

    def test_pages_of_a_browser_and_other_machines_do_not_reach_it(self):
        """It has no tokens, so it must be the machine's own scripts that ask."""
        self.start("OpenFlow13", ["hub"])
        clear = f"http://127.0.0.1:{PORT}/stats/flowentry/clear/1"
        for headers, status in (({"Origin": "http://evil.example"}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403),
                                ({"Host": "evil.example"}, 421)):
            request = urllib.request.Request(clear, headers=headers, method="DELETE")
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=LIMIT_S)
            self.assertEqual(refused.exception.code, status)

    def test_a_flow_cannot_take_the_cookie_of_an_app(self):
        """Else the app would take it for its own, and change it."""
        controller, _ = self.start("OpenFlow13", ["hub"])
        prefix = next(app["cookie"] for app in controller.ask("apps") if app["name"] == "hub")
        body = {"dpid": 1, "cookie": int(prefix, 16) << OWN_COOKIE_BITS, "match": {}}
        status, answer = ask({"method": "POST", "path": "/stats/flowentry/add", "body": body})
        self.assertEqual(status, 400)
        self.assertIn("belong to the app hub", answer)
        until(lambda: "a client of the interface of Ryu ordered send_messages" in controller.text(), LIMIT_S, "the log has the order")
