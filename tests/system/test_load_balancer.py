"""The manual's example `load_balancer` on Open vSwitch: clients reach two backends by one address."""

import os
from pathlib import Path

from harness.case import SystemTest, on_both_versions
from harness.controller import Controller
from harness.network import Line
from harness.waiting import until

VIP = "10.0.0.100"
PORT = 80
BACKENDS = ("h2", "h3")
CLIENTS = ("h1", "h4", "h5", "h6")
# Each connection has another port, and so another hash: a group uses only one backend once in 2^23 runs.
CONNECTIONS_OF_A_GROUP = 24
FOUND_LIMIT_S = 10
# Accepts connections one after another, and sends its name.
SERVER = ("import socket\n"
          "server = socket.create_server(('', {port}))\n"
          "print('listens', flush=True)\n"
          "while True:\n"
          "    with server.accept()[0] as client: client.sendall(b'{name}')\n")
CLIENT = ("import socket\n"
          "with socket.create_connection(('{vip}', {port}), 5) as server: print(server.recv(99).decode(), end='')\n")


class Balancer(Controller):
    """The example: a controller without a control socket."""

    def __init__(self, logs, run_dir, *arguments):
        super().__init__(logs, run_dir)
        example = Path(os.environ["BELLROCK_BIN"]).parent / "examples" / "load_balancer"
        self.command = [str(example), *arguments]


class LoadBalancer(SystemTest):
    """Six hosts at a switch: two backends and four clients."""

    def balanced(self, version, *arguments):
        controller = Balancer(self.logs, self.run_dir, *arguments)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end_controller, controller)
        network = self.network(Line(hosts=(1,) * 6), version)
        for name in BACKENDS:
            server = network[name].popen(["/usr/bin/python3", "-c", SERVER.format(port=PORT, name=name)], text=True)
            self.addCleanup(server.kill)
            server.stdout.readline()
        until(lambda: self.ask(network, "h1") in BACKENDS, FOUND_LIMIT_S, "the backends are found")
        return network

    def ask(self, network, client):
        """The name of the backend that answers a TCP connection to the virtual address."""
        asking = network[client].popen(["/usr/bin/python3", "-c", CLIENT.format(vip=VIP, port=PORT)], text=True)
        return asking.communicate(timeout=10)[0]

    @on_both_versions
    def clients_are_spread(self, version):
        """Each client keeps its backend, and both backends have clients."""
        network = self.balanced(version)
        first = {client: self.ask(network, client) for client in CLIENTS}
        self.assertEqual(set(first.values()), set(BACKENDS), first)
        again = {client: self.ask(network, client) for client in CLIENTS}
        self.assertEqual(first, again)
        self.assertEqual(network.unreachable([(client, "h2") for client in ("h4", "h5")]), [], "all else goes by the hub")

    def test_groups(self):
        """In 1.3 the switch itself spreads connections over the backends."""
        network = self.balanced("OpenFlow13", "groups")
        until(lambda: any("group:100" in flow for flow in network.flows("s1")), FOUND_LIMIT_S, "the group's flow")
        found = {self.ask(network, CLIENTS[turn % len(CLIENTS)]) for turn in range(CONNECTIONS_OF_A_GROUP)}
        self.assertEqual(found, set(BACKENDS))
