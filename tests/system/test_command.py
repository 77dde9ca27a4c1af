"""The commands beside `run`: questions to a controller, decoding of a capture, and errors at the start."""

import json
import os
import subprocess

from harness.case import SystemTest, on_both_versions
from harness.controller import COMMAND_LIMIT_S, LOOPBACK
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

NOTICE_LIMIT_S = 30
DECODE_LIMIT_S = 60
# Minimum number of refusals of the second switch with the same datapath id. It connects again, and must be refused
# again.
REFUSALS = 2
WIRE_VERSION = {"OpenFlow10": "1.0", "OpenFlow13": "1.3"}
# Message types that have the same number in both versions (OpenFlow 1.3.5, section A.1).
TYPES = {"hello": 0, "features_reply": 6, "packet_in": 10, "packet_out": 13, "flow_mod": 14}
# A queue of a port.
QUEUE = 7
# Two switches; one host at the first, two at the second.
PLACES = (1, 2, 2)


def bellrock(*words, limit_s=COMMAND_LIMIT_S):
    """Runs the command and returns its exit status and output."""
    return subprocess.run([os.environ["BELLROCK_BIN"], *words], capture_output=True, text=True, timeout=limit_s, check=False)


class Ask(SystemTest):
    """`bellrock status | switches | hosts | flows | counters`, compared with Mininet and Open vSwitch."""

    def ask(self, *words):
        """The answer as JSON, and as lines of text."""
        told = bellrock(*words, "--control", str(self.controllers[0].control))
        self.assertEqual((told.returncode, told.stderr), (0, ""), f"bellrock {' '.join(words)}")
        return self.controllers[0].ask(*words), told.stdout.splitlines()

    def start(self, version):
        controller = self.controller()
        network = self.network(Line(switches=2, hosts=PLACES), version)
        self.assertEqual(network.ping_all(), 0, "percent lost")
        return controller, network

    @on_both_versions
    def status(self, version):
        """Process, address, app and number of switches."""
        controller, _ = self.start(version)
        answer, lines = self.ask("status")
        expected = {"pid": controller.process.pid, "listen": [LOOPBACK], "apps": ["learning"], "switches": 2, "connections": 2}
        self.assertEqual({key: answer[key] for key in expected}, expected)
        shown = dict(line.split(None, 1) for line in lines)
        self.assertEqual((shown["process"], shown["switches"]), (str(controller.process.pid), "2"))
        self.assertIn(f"listening on  {LOOPBACK}", lines)

    @on_both_versions
    def switches(self, version):
        """Datapath ids, version, and every port with its number, name, address and state."""
        controller, network = self.start(version)
        (down, far_end), = network["s1"].connectionsTo(network["h1"])
        network["h1"].cmd(f"ip link set {far_end.name} down")
        until(lambda: any(port["state"] != "up" and port["name"] == down.name for switch in controller.ask("switches")
                          for port in switch["ports"]), NOTICE_LIMIT_S, f"{down.name} told as down")
        answer, lines = self.ask("switches")
        self.assertEqual({row["dpid"]: row["version"] for row in answer},
                         {switch.dpid: WIRE_VERSION[version] for switch in network.switches})
        for switch in network.switches:
            row, = (row for row in answer if row["dpid"] == switch.dpid)
            told = {(port["port"], port["name"], port["mac"], port["state"] == "up") for port in row["ports"] if port["port"].isdigit()}
            self.assertEqual(told, {(str(number), interface.name, interface.MAC(), interface is not down)
                                    for interface, number in switch.ports.items() if number > 0})
            line, = (line for line in lines if line.startswith(switch.dpid))
            up = sum(port["state"] == "up" for port in row["ports"])
            self.assertEqual(line.split()[1], WIRE_VERSION[version])
            self.assertIn(f" {up}/{len(row['ports'])} ", line)
            self.assertIn(row["software"], line)
            self.assertEqual(row["serial_number"], "", "Open vSwitch writes None")

    @on_both_versions
    def hosts(self, version):
        """Each host once, at its own port. A learning app sees it at both switches; the hosts behind ports show which
        ports lead to switches."""
        _, network = self.start(version)
        expected = set()
        for host, place in zip(network.hosts, PLACES):
            switch = network[f"s{place}"]
            (interface, _), = switch.connectionsTo(host)
            expected.add((switch.dpid, str(switch.ports[interface]), host.MAC()))
        answer, lines = self.ask("hosts")
        self.assertEqual({(row["dpid"], row["port"], row["mac"]) for row in answer}, expected)
        self.assertEqual(len(answer), len(expected))
        self.assertEqual({(row["vlan"], row["flapping"], row["guessed"], *row["apps"]) for row in answer}, {(None, False, False, "learning")})
        shown = {(words[2], words[3], words[0]) for words in (line.split() for line in lines[1:])}
        self.assertEqual(shown, expected)

    @on_both_versions
    def flows(self, version):
        """The flows that Open vSwitch reports, with the name of the app. A flow installed by ovs-ofctl is foreign."""
        _, network = self.start(version)
        switch = network.switches[0]
        command("ovs-ofctl", "-O", version, "add-flow", switch.name, "cookie=0x77,priority=9,tcp,tp_dst=23,actions=drop")
        page, lines = self.ask("flows", switch.dpid)
        flows = [dict(word.rstrip(",").split("=", 1) for word in line.split() if "=" in word) for line in network.flows(switch.name)]
        self.assertEqual(page["total"], len(flows))
        self.assertEqual(sorted((int(flow["cookie"], 16), flow["table"]) for flow in flows),
                         sorted((int(row["cookie"], 16), str(row["table"])) for row in page["rows"]))
        foreign, = (row for row in page["rows"] if row["app"] is None)
        self.assertEqual((foreign["cookie"], foreign["priority"], foreign["actions"]), ("0000000000000077", 9, "drop"))
        self.assertIn("tcp,tp_dst=23", foreign["match"])
        apps = {row["app"] for row in page["rows"]} - {None}
        self.assertEqual(apps, {"learning"} | ({"controller"} if version == "OpenFlow13" else set()))
        self.assertTrue(any(row["packets"] > 0 for row in page["rows"] if row["app"] == "learning"))
        shown, = (line for line in lines if "foreign" in line)
        self.assertIn("foreign 0x0000000000000077", shown)
        self.assertEqual(len(lines), 1 + len(flows))
        sums, _ = self.ask("flows")
        of = {row["dpid"]: {app["app"]: app["flows"] for app in row["apps"]} for row in sums}
        self.assertEqual(set(of), {switch.dpid for switch in network.switches})
        self.assertEqual((of[switch.dpid][None], sum(of[switch.dpid].values())), (1, len(flows)))
        page, _ = self.ask("flows", switch.dpid, "--app", "foreign")
        self.assertEqual([row["cookie"] for row in page["rows"]], [foreign["cookie"]])

    @on_both_versions
    def queues(self, version):
        """A queue that is set up is listed with what it has sent, as JSON, table and CSV; a port without one has none."""
        _, network = self.start(version)
        switch = network.switches[0]
        port = network["h1"].connectionsTo(switch)[0][1]
        command("ovs-vsctl", "set", "port", port.name, "qos=@qos", "--", "--id=@qos", "create", "qos", "type=linux-htb",
                f"queues:{QUEUE}=@queue", "--", "--id=@queue", "create", "queue", "other-config:max-rate=1000000")
        number = str(switch.ports[port])
        until(lambda: self.ask("queues")[0], NOTICE_LIMIT_S, "the queue is set up")
        rows, lines = self.ask("queues", "--switch", switch.dpid, "--port", number)
        row, = (row for row in rows if row["queue"] == QUEUE)
        self.assertEqual((row["dpid"], row["port"], row["tx_errors"]), (switch.dpid, number, 0))
        self.assertEqual(row["age_seconds"] is None, version == "OpenFlow10")
        self.assertEqual(lines[0].split()[:3], ["SWITCH", "PORT", "QUEUE"])
        self.assertEqual(len(lines), 1 + len(rows))
        told = bellrock("queues", "--csv", "--control", str(self.controllers[0].control))
        head, *others = told.stdout.splitlines()
        self.assertEqual(head, "dpid,port,queue,rate_kbps,tx_packets,tx_bytes,tx_errors,age_seconds")
        self.assertTrue(any(line.startswith(f"{switch.dpid},{number},{QUEUE},") for line in others), others)
        self.assertEqual(self.ask("queues", "--port", "LOCAL"), ([], ["no port has a queue"]))

    @on_both_versions
    def counters(self, version):
        """Packets are counted in the worker and in the app. JSON and text agree."""
        _, network = self.start(version)
        before, _ = self.ask("counters")
        total = lambda counters, name: sum(worker[name] for worker in counters["workers"])
        self.assertEqual(total(before, "switches_up"), 2)
        self.assertGreater(before["apps"]["learning"]["flow_mods"], 0)
        for switch in network.switches:
            for host in network.hosts:
                command("ovs-ofctl", "-O", version, "del-flows", switch.name, f"dl_src={host.MAC()}")
        self.assertEqual(network.ping_all(), 0, "percent lost")
        after, lines = self.ask("counters")
        for name in ("packet_ins", "bytes_in", "bytes_out", "reads", "writes"):
            self.assertGreater(total(after, name), total(before, name), name)
        self.assertGreater(after["apps"]["learning"]["flow_mods"], before["apps"]["learning"]["flow_mods"])
        shown = dict(line.split() for line in lines if len(line.split()) == 2)
        self.assertEqual(int(shown["switches_up"]), 2)
        # Echoes may come between the two questions, but no packet-ins.
        self.assertEqual(int(shown["packet_ins"]), total(after, "packet_ins"))
        self.assertEqual(int(shown["flow_mods"]), after["apps"]["learning"]["flow_mods"])


class Decode(SystemTest):
    """`bellrock decode` of real traffic."""

    @on_both_versions
    def capture_of_a_network(self, version):
        """It reads as many messages as tshark, with the same types, and finds no errors."""
        capture = self.capture()
        self.controller()
        network = self.network(Line(switches=2, hosts=PLACES), version)
        self.assertEqual(network.ping_all(), 0, "percent lost")
        self.assert_well_formed(capture)
        types = capture.message_types()
        done = bellrock("decode", str(capture.file), limit_s=DECODE_LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # Each message is a line. Its lists, such as ports, are indented below it.
        self.assertEqual(len([line for line in done.stdout.splitlines() if not line.startswith(" ")]), len(types), "lines")
        done = bellrock("decode", "--json", str(capture.file), limit_s=DECODE_LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(messages), len(types), "objects")
        for name, number in TYPES.items():
            count = len([message for message in messages if message["type"] == name])
            self.assertEqual(count, types.count(number), name)
        self.assertIn("flow_mod", [message["type"] for message in messages])
        # Only one switch, by its datapath id. Nothing is an error.
        done = bellrock("decode", "--json", "--switch", "1", "--type", "features_reply", str(capture.file))
        self.assertEqual([json.loads(line)["body"]["datapath_id"] for line in done.stdout.splitlines()], [1])
        done = bellrock("decode", "--switch", "77", str(capture.file), limit_s=DECODE_LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("none of the", done.stderr)


class Start(SystemTest):
    """Errors are reported, and nothing is started."""

    def test_wrong_configuration(self):
        """The error names file, line and the right setting. `check` reports the same."""
        path = self.run_dir / "wrong.yaml"
        path.write_text(f"listen: {LOOPBACK}\n\nmax_conections: 7\n")
        for words in (("run", "--config"), ("check",)):
            done = bellrock(*words, str(path))
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertRegex(done.stderr, rf"{path}:3:1: .*max_conections.*max_connections")
        path.write_text(f"listen: {LOOPBACK}\nhandshake_timeout: soon\n")
        done = bellrock("run", "--config", str(path))
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, rf"{path}:2:\d+: .*soon")

    def test_address_in_use(self):
        """A second controller on the same address reports that and ends. The first one is not affected."""
        first = self.controller()
        for control in (first.control, self.run_dir / "second.sock"):
            second = bellrock("run", "--listen", LOOPBACK, "--control", str(control))
            self.assertEqual(second.returncode, 1, second.stderr)
            self.assertRegex(second.stderr, rf"{LOOPBACK}.*(in use|already)")
        self.assertEqual(first.ask("status")["pid"], first.process.pid)
        self.assertEqual(bellrock("run", "--listen", "127.0.0.1:0", "--control", str(first.control)).returncode, 1,
                         "a second controller on the control socket of the first")
        self.assertEqual(first.ask("status")["pid"], first.process.pid)


class Twice(SystemTest):
    """Two switches with one datapath id."""

    @on_both_versions
    def same_datapath_id(self, version):
        """The first stays connected and works. The second is refused each time. Log and counter report it."""
        controller = self.controller()
        network = self.network(Line(), version)
        before, = controller.ask("switches")
        command("ovs-vsctl", "add-br", "twin", "--", "set", "bridge", "twin", "datapath_type=netdev", "fail_mode=secure",
                f"protocols={version}", f"other-config:datapath-id={before['dpid']}",
                "--", "set-controller", "twin", f"tcp:{LOOPBACK}")
        self.addCleanup(command, "ovs-vsctl", "del-br", "twin")

        def refusals():
            return sum(worker["duplicates_refused"] for worker in controller.ask("counters")["workers"])

        until(lambda: refusals() >= REFUSALS, NOTICE_LIMIT_S, "refusals")
        self.assertRegex(controller.text(), rf"WARN.*{before['dpid']}.*connected already.*alive")
        after, = controller.ask("switches")
        self.assertEqual((after["peer"], after["dpid"]), (before["peer"], before["dpid"]))
        self.assertEqual(network.unreachable(), [])
        self.assertEqual(sum(worker["duplicates_replaced"] for worker in controller.ask("counters")["workers"]), 0)
