"""Ryu's applications with a REST interface, unchanged, used as the chapters of the Ryu book use them."""

import json

from harness.network import Line
from harness.openvswitch import command
from harness.osken import HOST, LIMIT_S, OWN, REST_PORT, V10, V13, OsKenTest, app_file, runs
from harness.waiting import until
from harness.websocket import WebSocket

S1, S2, S3 = (f"{number:016x}" for number in (1, 2, 3))
OVSDB_PORT = 6632
# Requests of ofctl_rest that ask, and a part of the answer.
DESCRIBED = {"switches": "1", "desc/1": "Open vSwitch", "flow/1": "match", "aggregateflow/1": "flow_count", "table/1": "table_id",
             "port/1": "rx_packets", "port/1/1": "rx_packets", "queue/1": "[", "portdesc/1": "s1-eth1"}
DESCRIBED_10 = DESCRIBED
DESCRIBED_13 = DESCRIBED | {
    "tablefeatures/1": "max_entries", "queueconfig/1/1": "[", "group/1": "[", "groupdesc/1": "[", "groupfeatures/1": "max_groups",
    "meter/1": "[", "meterconfig/1": "[", "meterfeatures/1": "max_meter", "role/1": "role"}


def details(answer):
    """What rest_router and its like report about each order."""
    return [order for switch in answer for order in switch["command_result"]]


class Rest(OsKenTest):
    """One process of osken-manager each."""

    def ordered(self, path, body, method="POST"):
        """Gives an order, which must succeed. Returns what the application says about it."""
        answer = self.rest(path, body, method)
        results = details(answer) if isinstance(answer[0]["command_result"], list) else [answer[0]["command_result"]]
        self.assertTrue(all(result["result"] == "success" for result in results), answer)
        return [result["details"] for result in results]

    def reaches(self, network, *pairs):
        """Waits until these pairs of hosts reach each other: the first packet may wait for ARP."""
        until(lambda: not network.unreachable(pairs), LIMIT_S, f"pings of {pairs}")

    def blocked(self, network, *pairs):
        """Waits until these pairs do not: the answer to an order comes before the switch has carried it out."""
        until(lambda: network.unreachable(pairs) == list(pairs), LIMIT_S, f"no pings of {pairs}")

    @runs("wsgi", what="Serves the REST interfaces of all others. It is Bellrock's own")
    @runs("rest_firewall", what="Blocks all, then allows and denies by rules that are added, listed and deleted; logs what it blocks")
    def test_rest_firewall(self):
        """A switch with three hosts."""
        program = self.run_programs("eventlet", "ryu.app.rest_firewall")
        network = self.network(Line(hosts=(1, 1, 1)), V13)
        self.assertEqual(self.rest("/firewall/module/status"), [{"switch_id": S1, "status": "disable"}])
        self.ordered(f"/firewall/module/enable/{S1}", None, "PUT")
        self.assertEqual(self.rest("/firewall/module/status"), [{"switch_id": S1, "status": "enable"}])
        self.blocked(network, ("h1", "h2"), ("h2", "h1"))
        self.logged(program, f"[FW][INFO] dpid={S1}: Blocked packet")
        for source, target in (("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1")):
            self.ordered(f"/firewall/rules/{S1}", {"nw_src": source, "nw_dst": target, "nw_proto": "ICMP"})
        self.reaches(network, ("h1", "h2"), ("h2", "h1"))
        self.blocked(network, ("h1", "h3"))
        self.ordered(f"/firewall/rules/{S1}", {"nw_src": "10.0.0.1/32", "nw_proto": "ICMP", "actions": "DENY", "priority": "10"})
        self.blocked(network, ("h1", "h2"))
        rules = self.rules()
        self.assertEqual([rule["actions"] for rule in rules], ["DENY", "ALLOW", "ALLOW"], rules)
        self.ordered(f"/firewall/rules/{S1}", {"rule_id": str(rules[0]["rule_id"])}, "DELETE")
        self.reaches(network, ("h1", "h2"))
        self.ordered(f"/firewall/log/disable/{S1}", None, "PUT")
        self.assertEqual(self.rest("/firewall/log/status"), [{"switch_id": S1, "log_status": "disable"}])
        self.ordered(f"/firewall/rules/{S1}", {"rule_id": "all"}, "DELETE")
        self.assertEqual(self.rules(), [])
        self.ordered(f"/firewall/module/disable/{S1}", None, "PUT")
        self.assertEqual(self.rest_answer("/firewall/rules/nowhere")[0], 404)

    def rules(self):
        [switch] = self.rest(f"/firewall/rules/{S1}")
        groups = switch["access_control_list"]
        return sorted((rule for group in groups for rule in group["rules"]), key=lambda rule: -rule["priority"])

    @runs("rest_router", what="Three routers in a row: addresses, default and static routes. Hosts of three networks ping each other and "
          "the routers, and no longer after a route is deleted")
    def test_rest_router(self):
        """The networks of the Ryu book."""
        program = self.run_programs("eventlet", "ryu.app.rest_router")
        network = self.network(Line(switches=3, hosts=(1, 2, 3)), V13)
        self.logged(program, f"[RT][INFO] switch_id={S3}: Join as router.")
        for name, address, gateway in (("h1", "172.16.20.10", "172.16.20.1"), ("h2", "172.16.10.10", "172.16.10.1"),
                                       ("h3", "192.168.30.10", "192.168.30.1")):
            network[name].setIP(address, 24)
            network[name].cmd("ip route add default via", gateway)
        for switch, addresses in ((S1, ("172.16.20.1", "172.16.30.30")), (S2, ("172.16.10.1", "172.16.30.1", "192.168.10.1")),
                                  (S3, ("192.168.30.1", "192.168.10.20"))):
            for address in addresses:
                self.ordered(f"/router/{switch}", {"address": f"{address}/24"})
        for switch, gateway in ((S1, "172.16.30.1"), (S2, "172.16.30.30"), (S3, "192.168.10.1")):
            self.ordered(f"/router/{switch}", {"gateway": gateway})
        self.reaches(network, ("h1", "h2"), ("h2", "h1"))
        # s2 sends what is for h3 to s1, its default, until it has a route.
        self.blocked(network, ("h2", "h3"))
        [route] = self.ordered(f"/router/{S2}", {"destination": "192.168.30.0/24", "gateway": "192.168.10.20"})
        self.reaches(network, ("h2", "h3"), ("h3", "h2"), ("h1", "h3"), ("h3", "h1"))
        self.assertIn(" 0% packet loss", network["h1"].cmd("ping -c 1 -W 5 192.168.30.1"), "a router answers")
        [router] = self.rest(f"/router/{S2}")
        [networks] = router["internal_network"]
        self.assertEqual(len(networks["address"]), 3)
        [route] = [route for route in networks["route"] if route["destination"] == "192.168.30.0/24"]
        self.ordered(f"/router/{S2}", {"route_id": str(route["route_id"])}, "DELETE")
        self.blocked(network, ("h1", "h3"))
        self.assertEqual(len(self.rest("/router/all")), 3)

    @runs("rest_qos", "rest_conf_switch", "conf_switch_key", what="Queues in the database of Open vSwitch, whose address comes by "
          "rest_conf_switch; rules with a queue, a mark and a meter, beside a simple_switch_13 that leaves table 0 to them")
    def test_rest_qos(self):
        """The changed simple_switch_13 is made as the Ryu book makes it."""
        text = app_file("simple_switch_13").read_text()
        begin = text.index("OFPFlowMod(", text.index("def add_flow"))
        end = text.index("datapath.send_msg", begin)
        changed = self.run_dir / "qos_simple_switch_13.py"
        changed.write_text(text[:begin] + text[begin:end].replace(")\n", ", table_id=1)\n") + text[end:])
        program = self.run_programs("eventlet", "ryu.app.rest_qos", changed, "ryu.app.rest_conf_switch")
        network = self.network(Line(), V13)
        self.logged(program, f"[QoS][INFO] dpid={S1}: Join qos switch.")
        command("ovs-appctl", "-t", "ovsdb-server", "ovsdb-server/add-remote", f"ptcp:{OVSDB_PORT}:{HOST}")
        self.assertEqual(self.rest_answer(f"/v1.0/conf/switches/{S1}/ovsdb_addr", f"tcp:{HOST}:{OVSDB_PORT}", "PUT")[0], 201)
        self.assertEqual(self.rest(f"/v1.0/conf/switches/{S1}/ovsdb_addr"), f"tcp:{HOST}:{OVSDB_PORT}")
        queues = {"port_name": "s1-eth1", "type": "linux-htb", "max_rate": "1000000",
                  "queues": [{"max_rate": "500000"}, {"min_rate": "800000"}]}
        # The application that has the address is not the one that uses it.
        until(lambda: "success" in str(self.rest(f"/qos/queue/{S1}", queues)), LIMIT_S, "queues in the database")
        self.assertIn("800000", command("ovs-vsctl", "list", "queue"))
        [queues] = self.ordered(f"/qos/queue/{S1}", None, "GET")
        self.assertEqual(queues["s1-eth1"]["1"]["config"], {"min-rate": "800000"})
        self.ordered(f"/qos/meter/{S1}", {"meter_id": "1", "flags": "KBPS", "bands": [{"type": "DROP", "rate": "1000"}]})
        for match, action in (({"nw_dst": "10.0.0.1", "nw_proto": "UDP", "tp_dst": "5002"}, {"queue": "1"}),
                              ({"ip_dscp": "26"}, {"meter": "1"}), ({"nw_proto": "ICMP"}, {"mark": "26"})):
            self.ordered(f"/qos/rules/{S1}", {"match": match, "actions": action})
        [switch] = self.rest(f"/qos/rules/{S1}")
        rules = [str(rule["actions"]) for group in switch["command_result"] for rule in group["qos"]]
        self.assertEqual(sorted(rules), ["[{'mark': '26'}]", "[{'meter': '1'}]", "[{'queue': '1'}]"])
        self.assertEqual(network.ping_all(), 0)
        flows = network.flows("s1")
        for part in ("set_queue:1", "meter:1", "set_field:26->ip_dscp", "table=1"):
            self.assertTrue(any(part in flow for flow in flows), (part, flows))
        self.assertIn("byte_in_count", str(self.rest(f"/qos/meter/{S1}")))
        self.ordered(f"/qos/rules/{S1}", {"qos_id": "all"}, "DELETE")
        self.ordered(f"/qos/meter/{S1}", {"meter_id": "1"}, "DELETE")
        self.assertIn("success", str(self.rest(f"/qos/queue/{S1}", method="DELETE")))

    @runs("rest_topology", "gui_topology.gui_topology", "ws_topology",
          what="With `--observe-links`: switches, links and hosts by REST, by WebSocket, and as a page")
    @runs("simple_switch_rest_13", what="Its table of addresses by REST: lists it, and an entry that is put there becomes flows")
    @runs("ofctl.service", "ofctl.api", "ofctl.event", "ofctl.exception", what="An app asks a switch and waits for the answer")
    def test_topologies(self):
        """Three switches in a row, and many applications in one process, named as `ryu`, as `os_ken` and by a file."""
        program = self.run_programs(
            "eventlet", "ryu.app.gui_topology.gui_topology", app_file("simple_switch_rest_13"), OWN / "topology.py",
            options=["--observe-links", "--app-lists", "os_ken.app.ofctl.service"])
        network = self.network(Line(switches=3, hosts=(1, 2, 3)), V13)
        links = [(1, 2), (2, 1), (2, 3), (3, 2)]
        self.logged(program, f"event topology [1, 2, 3] {links} []")
        with WebSocket(HOST, REST_PORT, "/v1.0/topology/ws") as socket:
            self.assertEqual(network.ping_all(), 0)
            found = []
            while len(found) < 3:
                call = socket.receive_json()
                self.assertEqual(call["method"], "event_host_add")
                found.append(call["params"][0]["mac"])
                socket.send(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": ""}))
            network.net.configLinkStatus("s2", "s3", "down")
            self.assertEqual(socket.receive_json()["method"], "event_link_delete")
        macs = [f"00:00:00:00:00:0{number}" for number in (1, 2, 3)]
        self.assertEqual(sorted(found), macs)
        self.logged(program, f"event topology [1, 2, 3] {links[:2]} {macs}", "event link_delete 2 3")
        self.assertEqual([switch["dpid"] for switch in self.rest("/v1.0/topology/switches")], [S1, S2, S3])
        found = [(link["src"]["dpid"], link["dst"]["dpid"]) for link in self.rest("/v1.0/topology/links")]
        self.assertEqual(sorted(found), [(S1, S2), (S2, S1)])
        self.assertEqual([host["mac"] for host in self.rest(f"/v1.0/topology/hosts/{S1}")], macs[:1])
        self.assertIn("osken.topology.js", self.rest("/"))
        self.assertIn("d3", self.rest("/osken.topology.js"))
        self.assertEqual(sorted(self.rest("/stats/switches")), [1, 2, 3])
        self.assertEqual(self.rest(f"/simpleswitch/mactable/{S1}")[macs[0]], 2)
        self.rest(f"/simpleswitch/mactable/{S1}", {"mac": "00:00:00:00:00:99", "port": 77}, "PUT")
        until(lambda: any("dl_dst=00:00:00:00:00:99" in flow for flow in network.flows("s1")), LIMIT_S, "a flow for the new host")
        self.logged(program, "event description Open vSwitch", "event no datapath 99")

    @runs("ofctl_rest", what="With OpenFlow 1.0 and 1.3: statistics and descriptions of all kinds; "
          "flows, groups, meters, ports and roles that are added, modified and deleted")
    def test_ofctl_rest(self):
        """With OpenFlow 1.3."""
        self.run_programs("eventlet", "ryu.app.ofctl_rest", "ryu.app.simple_switch_13")
        network = self.network(Line(), V13)
        self.assertEqual(network.ping_all(), 0)
        self.statistics(DESCRIBED_13)
        flow = {"dpid": 1, "priority": 55, "cookie": 7, "match": {"in_port": 1, "eth_type": 2048, "ipv4_dst": "10.0.0.7"},
                "actions": [{"type": "OUTPUT", "port": 2}]}
        group = {"dpid": 1, "group_id": 4, "type": "ALL", "buckets": [{"actions": [{"type": "OUTPUT", "port": 2}]}]}
        meter = {"dpid": 1, "meter_id": 5, "flags": "KBPS", "bands": [{"type": "DROP", "rate": 1000}]}
        self.modified("group", group, {"type": "SELECT"}, lambda: self.rest("/stats/groupdesc/1")["1"], "SELECT")
        self.modified("meter", meter, {"bands": [{"type": "DROP", "rate": 7}]}, lambda: self.rest("/stats/meterconfig/1")["1"], "7")
        self.flows(network, flow, {"type": "OUTPUT", "port": 1}, "OUTPUT:1")
        self.rest("/stats/role", {"dpid": 1, "role": "EQUAL"})
        self.assertEqual(self.rest("/stats/role/1")["1"][0]["role"], "EQUAL")
        self.others(network)

    def test_ofctl_rest_of_1_0(self):
        """With OpenFlow 1.0."""
        self.run_programs("eventlet", "ryu.app.ofctl_rest", "ryu.app.simple_switch")
        network = self.network(Line(), V10)
        self.assertEqual(network.ping_all(), 0)
        self.statistics(DESCRIBED_10)
        flow = {"dpid": 1, "priority": 55, "cookie": 7, "match": {"in_port": 1, "dl_type": 2048, "nw_dst": "10.0.0.7"},
                "actions": [{"type": "OUTPUT", "port": 2}]}
        self.flows(network, flow, {"type": "OUTPUT", "port": 1}, "OUTPUT:1")
        self.others(network)

    def statistics(self, kinds):
        """Asks for each kind. The answer has the switch, and something about it."""
        for kind, expected in kinds.items():
            answer = self.rest(f"/stats/{kind}")
            self.assertIn(expected, str(answer["1"] if isinstance(answer, dict) else answer), kind)

    def modified(self, kind, entry, change, described, expected):
        """Adds, modifies and deletes a group or a meter."""
        self.rest(f"/stats/{kind}entry/add", entry)
        self.assertEqual(len(described()), 1)
        self.rest(f"/stats/{kind}entry/modify", entry | change)
        self.assertIn(expected, str(described()))
        self.assertEqual(len(self.rest(f"/stats/{kind}/1/{entry[kind + '_id']}")["1"]), 1)
        self.rest(f"/stats/{kind}entry/delete", {"dpid": 1, f"{kind}_id": entry[f"{kind}_id"]})
        self.assertEqual(described(), [])

    def flows(self, network, flow, action, expected):
        def found():
            answer = self.rest("/stats/flow/1", {"cookie": 7, "cookie_mask": 7})["1"]
            return [(row["priority"], row["actions"]) for row in answer if row["cookie"] == 7]

        strictly = flow | {"actions": [action]}
        self.rest("/stats/flowentry/add", flow)
        self.assertEqual(found(), [(55, ["OUTPUT:2"])])
        self.rest("/stats/flowentry/modify", strictly | {"priority": 1})
        self.assertEqual(found(), [(55, [expected])])
        self.rest("/stats/flowentry/modify_strict", flow)
        self.assertEqual(found(), [(55, ["OUTPUT:2"])])
        self.rest("/stats/flowentry/delete_strict", flow | {"priority": 1})
        self.assertEqual(len(found()), 1, "of another priority")
        self.rest("/stats/flowentry/delete_strict", flow)
        self.assertEqual(found(), [])
        self.rest("/stats/flowentry/add", flow)
        self.rest("/stats/flowentry/delete", {"dpid": 1, "match": flow["match"]})
        self.assertEqual(found(), [])
        self.rest("/stats/flowentry/clear/1", method="DELETE")
        until(lambda: not network.flows("s1"), LIMIT_S, "no flow")

    def others(self, network):
        """Ports, and requests that are refused."""
        self.rest("/stats/portdesc/modify", {"dpid": 1, "port_no": 2, "config": 1, "mask": 1})
        until(lambda: "PORT_DOWN" in command("ovs-ofctl", "-O", network.version, "show", "s1"), LIMIT_S, "a port that is down")
        for path, body, status in (("/stats/flow/99", None, 404), ("/stats/flow/nothing", None, 400), ("/stats/nothing/1", None, 404),
                                   ("/stats/flowentry/add", {"dpid": 99}, 404), ("/stats/flowentry/mend", {"dpid": 1}, 404)):
            self.assertEqual(self.rest_answer(path, body)[0], status, path)

    @runs("simple_switch_websocket_13", what="Prints its packets to WebSockets, and answers calls by JSON-RPC")
    def test_simple_switch_websocket_13(self):
        """Two WebSockets."""
        self.run_programs("eventlet", "ryu.app.simple_switch_websocket_13")
        network = self.network(Line(), V13)
        with WebSocket(HOST, REST_PORT, "/simpleswitch/ws") as first, WebSocket(HOST, REST_PORT, "/simpleswitch/ws") as second:
            for socket in (first, second):
                # The answer to a call proves that the application knows the WebSocket.
                socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "get_arp_table", "params": {}}))
                self.assertEqual(socket.receive_json()["id"], 1)
            self.assertEqual(network.ping_all(), 0)
            for socket in (first, second):
                self.assertIn("ethernet(", socket.receive())
            first.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "get_arp_table", "params": {}}))
            answer = first.receive()
            while not answer.startswith("{"):
                answer = first.receive()
            self.assertEqual(json.loads(answer)["result"], {"1": {"00:00:00:00:00:01": 1, "00:00:00:00:00:02": 2}})
