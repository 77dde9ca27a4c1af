"""The manual's apps in Python on Open vSwitch, from the wheel that the step `python` of the tests has installed."""

import os
from pathlib import Path

from harness.case import SystemTest, on_both_versions
from harness.controller import Controller
from harness.network import Line
from harness.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
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


def python():
    """The interpreter that has the wheel."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    interpreter = target / "python" / "tests" / "bin" / "python"
    if not interpreter.exists():
        raise AssertionError(f"{interpreter} is missing; scripts/python test makes it")
    return str(interpreter)


class Program(Controller):
    """A program in Python: statements after imports, which end with the arguments of `bellrock.run`."""

    def __init__(self, logs, run_dir, statements, apps):
        super().__init__(logs, run_dir)
        text = f"import bellrock\n{statements}\nbellrock.run({apps}, control={str(self.control)!r})\n"
        self.command = [python(), "-c", text]

    def launch(self, log):
        os.environ["PYTHONPATH"] = str(ROOT / "python" / "examples")
        return super().launch(log)


class AppsInPython(SystemTest):
    """Three hosts at a switch."""

    def run_apps(self, statements, apps):
        controller = Program(self.logs, self.run_dir, statements, apps)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end_controller, controller)
        return controller

    def serve(self, network, name, port=PORT):
        server = network[name].popen(["/usr/bin/python3", "-c", SERVER.format(port=port, name=name)], text=True)
        self.addCleanup(server.kill)
        server.stdout.readline()

    def ask(self, network, client, ip, port=PORT):
        """What a server sends over a TCP connection, or the name of the error."""
        asking = network[client].popen(["/usr/bin/python3", "-c", CLIENT.format(ip=ip, port=port)], text=True)
        return asking.communicate(timeout=20)[0]

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
