"""The manual's apps in Python on Open vSwitch, as programs and as files of `bellrock run`, from the wheel that the step `python` of the tests has installed."""

import os
import signal
import subprocess

from harness.case import SystemTest, on_both_versions
from harness.controller import Controller
from harness.network import Line
from harness.python import ROOT, python
from harness.waiting import until

EXAMPLES = ROOT / "python" / "examples"
LEARNING = str(EXAMPLES / "learning.py")
LIMIT_S = 30
# A handler that blocks for so long at each tick is always blocked.
BLOCKS_S = 1.5
VIP, VIRTUAL_MAC = "10.0.0.100", "02:00:00:00:01:00"
PORT, OTHER_PORT = 80, 81
# Each connection has another port, and so another hash: one server gets all of them once in 2^23 runs.
CONNECTIONS = 24
RATES_LIMIT_S = 20
# Accepts connections one after another, and sends its name.
SERVER = ("import socket\n"
          "server = socket.create_server(('', {port}))\n"
          "print('listens', flush=True)\n"
          "while True:\n"
          "    with server.accept()[0] as client: client.sendall(b'{name}')\n")
CLIENT = ("import socket\n"
          "try:\n"
          "    with socket.create_connection(('{ip}', {port}), 5) as server: print(server.recv(99).decode(), end='')\n"
          "except OSError as error: print(type(error).__name__, end='')\n")


class Program(Controller):
    """A program in Python: statements after imports, which end with the arguments of `bellrock.run`."""

    def __init__(self, logs, run_dir, statements, apps):
        super().__init__(logs, run_dir)
        text = f"import bellrock\n{statements}\nbellrock.run({apps}, control={str(self.control)!r})\n"
        self.command = [python(), "-c", text]

    def launch(self, log):
        os.environ["PYTHONPATH"] = str(EXAMPLES)
        return super().launch(log)


class Hosts(SystemTest):
    """Hosts that serve, and ask each other."""

    def serve(self, network, name, port=PORT):
        server = network[name].popen(["/usr/bin/python3", "-c", SERVER.format(port=port, name=name)], text=True)
        self.addCleanup(server.kill)
        server.stdout.readline()

    def ask(self, network, client, ip, port=PORT):
        """What a server sends over a TCP connection, or the name of the error."""
        asking = network[client].popen(["/usr/bin/python3", "-c", CLIENT.format(ip=ip, port=port)], text=True)
        return asking.communicate(timeout=20)[0]


class AppsInPython(Hosts):
    """Programs."""

    def run_apps(self, statements, apps):
        controller = Program(self.logs, self.run_dir, statements, apps)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end_controller, controller)
        return controller

    @on_both_versions
    def a_learning_switch_installs_flows(self, version):
        """All hosts reach each other, and operators see the app."""
        controller = self.run_apps("from learning import Learning", "Learning")
        network = self.network(Line(switches=3, hosts=(1, 2, 3)), version)
        self.assertEqual(network.unreachable(), [])
        self.assertTrue(any("idle_timeout=10" in flow for flow in network.flows("s2")), network.flows("s2"))
        self.assertEqual([row["name"] for row in controller.ask("apps")], ["Learning"])

    @on_both_versions
    def a_firewall_drops_what_a_rule_names(self, version):
        """One port of one host is closed, and the learning switch in Rust forwards the rest."""
        self.run_apps("from firewall import Firewall, Rule; from ipaddress import IPv4Network",
                      f"Firewall(Rule(IPv4Network('10.0.0.2/32'), {PORT})), 'learning'")
        network = self.network(Line(hosts=(1, 1, 1)), version)
        for name, port in (("h2", PORT), ("h2", OTHER_PORT), ("h3", PORT)):
            self.serve(network, name, port)
        self.assertEqual(network.unreachable(), [])
        self.assertEqual(self.ask(network, "h1", "10.0.0.3"), "h3")
        self.assertEqual(self.ask(network, "h1", "10.0.0.2", OTHER_PORT), "h2")
        self.assertIn(self.ask(network, "h1", "10.0.0.2"), ("TimeoutError", "timeout"))

    @on_both_versions
    def a_stateful_firewall_sees_connections_after_the_first_ping(self, version):
        """Flows of the learning switch behind carry no connection past it, and what it allows is forwarded by the switches."""
        self.run_apps("from stateful_firewall import StatefulFirewall; from ipaddress import IPv4Network",
                      "StatefulFirewall(IPv4Network('10.0.0.1/32')), 'learning'")
        network = self.network(Line(switches=2, hosts=(1, 1)), version)
        for name in ("h1", "h2"):
            self.serve(network, name)
        self.assertIn(self.ask(network, "h2", "10.0.0.1"), ("TimeoutError", "timeout"))
        self.assertEqual(self.ask(network, "h1", "10.0.0.2"), "h2")
        self.assertEqual(network.unreachable(), [], "pings are not the firewall's")
        self.assertIn(self.ask(network, "h2", "10.0.0.1"), ("TimeoutError", "timeout"))
        self.assertEqual(self.ask(network, "h1", "10.0.0.2"), "h2")
        allowed = [flow for flow in network.flows("s1") if f"tp_dst={PORT}" in flow and "hard_timeout=" in flow]
        self.assertTrue(allowed, network.flows("s1"))

    @on_both_versions
    def a_load_balancer_spreads_connections(self, version):
        """Clients reach two servers by one address."""
        # The app must know the servers, so the network is there first.
        network = self.network(Line(hosts=(1, 1, 1)), version, connect=False)
        servers = [(network[name].MAC(), network[name].IP(), port) for name, port in (("h1", 1), ("h2", 2))]
        self.run_apps("from load_balancer import LoadBalancer, Server; from ipaddress import IPv4Address as Ip\n"
                      f"servers = [Server(bellrock.MacAddr(mac), Ip(ip), port) for mac, ip, port in {servers}]\n",
                      f"LoadBalancer(Ip('{VIP}'), bellrock.MacAddr('{VIRTUAL_MAC}'), servers), 'learning'")
        network.await_connected()
        for name in ("h1", "h2"):
            self.serve(network, name)
        answers = [self.ask(network, "h3", VIP) for _ in range(CONNECTIONS)]
        self.assertEqual(set(answers), {"h1", "h2"}, answers)
        self.assertEqual(network.unreachable([("h1", "h2")]), [], "other packets are the learning switch's")

    @on_both_versions
    def a_monitor_prints_the_rates_of_ports(self, version):
        """The counters of Open vSwitch, asked by a coroutine."""
        controller = self.run_apps("import monitor; monitor.EVERY = 0.5", "monitor.Monitor(), 'learning'")
        network = self.network(Line(hosts=(1, 1)), version)
        self.assertEqual(network.unreachable(), [])
        until(lambda: "port 1: " in controller.text() and "Mbit/s" in controller.text(), RATES_LIMIT_S, "rates")


class FilesOfTheCommand(Hosts):
    """`bellrock run --app FILE.py`."""

    def run_files(self, config=None, **options):
        os.environ["BELLROCK_PYTHON"] = python()
        return self.controller(config=config, **options)

    def write(self, name, text):
        path = self.run_dir / name
        path.write_text(text)
        return str(path)

    def expect_faults(self, controller):
        """The log has lines at level error that the test wants."""
        self.controllers.remove(controller)

    @on_both_versions
    def a_file_of_the_manual_runs_and_reloads(self, version):
        """With a configuration, whose log level changes by SIGHUP, and whose names by the command."""
        config = {"apps": [LEARNING], "switches": {"left": "1"}, "log_level": "info"}
        controller = self.run_files(config)
        network = self.network(Line(switches=3, hosts=(1, 2, 3)), version)
        self.assertEqual(network.unreachable(), [])
        self.assertTrue(any("idle_timeout=10" in flow for flow in network.flows("s2")), network.flows("s2"))
        self.assertEqual([row["name"] for row in controller.ask("apps")], ["Learning"])
        controller.write_config(config | {"log_level": "debug"})
        controller.process.send_signal(signal.SIGHUP)
        until(lambda: "configuration: log_level: info -> debug (live)" in controller.text(), LIMIT_S, "the reload")
        controller.write_config(config | {"switches": {"left": "1", "right": "3"}})
        answer = controller.ask("reload")
        self.assertTrue(answer["applied"], answer)
        self.assertIn("right", [row["name"] for row in controller.ask("switches")])
        controller.write_config(config | {"apps": ["learning"]})
        self.assertIn("apps: [", controller.refused("reload"))
        self.assertEqual(network.unreachable(), [], "what was refused has changed nothing")

    @on_both_versions
    def a_file_stands_before_an_app_in_rust(self, version):
        """One port of one host is closed, by a file that makes its app."""
        file = self.write("closed.py", f"import sys\nsys.path.append({str(EXAMPLES)!r})\n"
                                       "from ipaddress import IPv4Network\nfrom firewall import Firewall, Rule\n"
                                       f"app = Firewall(Rule(IPv4Network('10.0.0.2/32'), {PORT}))\n")
        controller = self.run_files({"apps": [file, "learning"], "allow": {"Firewall": {"write": "own"}}})
        network = self.network(Line(hosts=(1, 1)), version)
        for port in (PORT, OTHER_PORT):
            self.serve(network, "h2", port)
        self.assertEqual(network.unreachable(), [])
        self.assertEqual(self.ask(network, "h1", "10.0.0.2", OTHER_PORT), "h2")
        self.assertIn(self.ask(network, "h1", "10.0.0.2"), ("TimeoutError", "timeout"))
        self.assertEqual([row["name"] for row in controller.ask("apps")], ["Firewall", "learning"])

    @on_both_versions
    def an_app_that_raises_or_blocks_leaves_the_rest_alone(self, version):
        """The next app gets the packets of the one that raises. Switches stay while one blocks, and it ends in order."""
        raises = self.write("raises.py", "def raises(switch, packet):\n    raise RuntimeError('it fails')\n")
        blocks = self.write("blocks.py", "import time\nimport bellrock\n\nclass Blocks(bellrock.App):\n"
                                         "    wants_packet_ins = False\n    def tick(self, switch):\n"
                                         f"        time.sleep({BLOCKS_S})\n")
        controller = self.run_files({"apps": [raises, blocks, "learning"], "echo_after": "1 s", "dead_after": "3 s"})
        self.expect_faults(controller)
        network = self.network(Line(hosts=(1, 1)), version)
        until(lambda: network.unreachable() == [], LIMIT_S, "the learning switch gets the packets")
        until(lambda: "RuntimeError: it fails" in controller.text(), LIMIT_S, "the traceback")
        # Longer than a switch may be silent.
        self.assertEqual(network.unreachable(), [])
        self.assertEqual(len(controller.ask("switches")), 1)
        row = {row["name"]: row for row in controller.ask("apps")}["raises"]
        self.assertGreater(row["errors"] + row["panics"], 0, row)
        self.assertEqual(controller.stop(), 0)
        self.assertTrue(controller.text().rstrip().endswith("stopped"))

    def test_wrong_files_are_explained(self):
        """Each ends the start with a status and a line of its own."""
        os.environ["BELLROCK_PYTHON"] = python()
        nothing, fails = self.write("nothing.py", "NUMBER = 1\n"), self.write("fails.py", "import missing_module\n")
        for file, status, text in ((nothing, 1, "nothing.py: it has no app"), (str(self.run_dir / "none.py"), 2, "No such file"),
                                   (fails, 1, "fails.py:1 cannot be loaded: ModuleNotFoundError: No module named 'missing_module'")):
            command = [os.environ["BELLROCK_BIN"], "run", "--app", file, "--control", "none"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(text, done.stderr)
