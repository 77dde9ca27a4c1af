"""Nodes are upgraded one after the other under traffic, and a node has another version."""

import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
from pathlib import Path

from test_hitless import assert_nothing_lost

from harness.cluster import LIMIT_S, LINK_PORT, NAMES, ClusterTest
from harness.machines import BRIDGE, Machines, run
from harness.network import Line
from harness.waiting import until

# Time between two new flows, each a datagram with a port of its own.
NEW_FLOW_S = 0.01
ECHO = Path(__file__).parent / "harness" / "newflows.py"
FIRST_PORT = 20000
# Part of new flows that may need more than their first packet, in a test on a busy machine: far more than it takes.
TOLERATED_PART = 0.2
LENGTH = struct.Struct("!I")
REFUSAL = "version 1 is too old"


class Upgrade(ClusterTest):
    """Each node is drained, ended and started again."""

    time_limit_s = 240
    # A flow for each new port.
    apps = ({"learning": {"match": "exact"}},)

    def test_a_rolling_upgrade_loses_nothing(self):
        """Established flows lose no datagram. New flows begin all the time, and all of them come up."""
        self.attach(Line(switches=3, hosts=(1, 2, 3)))
        streams = self.flow()
        new = self.new_flows("h2", "h3")
        for name in NAMES:
            self.upgrade(name)
        begun, first, never = self.end(new)
        self.assertGreater(begun, 100, "too few new flows would prove nothing")
        self.assertEqual(never, 0, f"new flows that never came up, of {begun}")
        self.assertLess(begun - first, TOLERATED_PART * begun, f"new flows that lost their first packet, of {begun}")
        assert_nothing_lost(self, streams)

    def upgrade(self, name):
        """Empties a node, ends it in peace, and starts it as its next version would be."""
        node = self.nodes[name]
        node.ask("cluster", "drain")
        until(lambda: name not in self.masters().values(), LIMIT_S, f"{name} has no switch")
        self.assertEqual(node.stop(), 0)
        self.await_masters(self.others(name))
        node.start()
        self.settle()

    def new_flows(self, source, target):
        server = self.net[target].popen([sys.executable, str(ECHO), "answer", str(FIRST_PORT)], stdout=subprocess.PIPE,
                                        text=True)
        server.stdout.readline()
        client = self.net[source].popen([sys.executable, str(ECHO), "begin", self.net[target].IP(), str(FIRST_PORT),
                                         str(NEW_FLOW_S)], stdout=subprocess.PIPE, text=True)
        return client, server

    @staticmethod
    def end(new):
        client, server = new
        client.terminate()
        printed, _ = client.communicate(timeout=LIMIT_S)
        server.terminate()
        server.wait(LIMIT_S)
        return map(int, printed.split())


class Version(ClusterTest):
    """A node whose messages to other nodes have another version."""

    OTHER = 1

    def hello(self, version):
        """What a peer of this version says first to node a, in the name of c."""
        return {"version": version, "cluster": "test", "node": "c", "to": "a", "nodes": list(NAMES), "apps": ["learning"],
                "incarnation": 77}

    def context(self, purpose):
        files = self.certificates.settings("c")
        context = ssl.create_default_context(purpose, cafile=files["ca"])
        context.load_cert_chain(files["certificate"], files["key"])
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    @staticmethod
    def send(connection, message):
        body = json.dumps(message).encode()
        connection.sendall(LENGTH.pack(len(body)) + body)

    @staticmethod
    def receive(connection):
        with connection.makefile("rb") as stream:
            length, = LENGTH.unpack(stream.read(LENGTH.size))
            return json.loads(stream.read(length))

    def greet(self, version):
        """What node a answers to such a peer."""
        address = (self.nodes["a"].machine.address, LINK_PORT)
        with socket.create_connection(address, timeout=LIMIT_S) as plain, \
                self.context(ssl.Purpose.SERVER_AUTH).wrap_socket(plain, server_hostname="a") as connection:
            self.send(connection, self.hello(version))
            return self.receive(connection).get("refused")

    def test_a_node_of_another_version_is_refused(self):
        """Both ends say so, and the other nodes go on."""
        self.attach()
        self.nodes["c"].kill()
        self.await_masters(("a", "b"))
        # As a client of an old node.
        refused = self.greet(self.OTHER)
        self.assertIn(f"version {self.OTHER}", refused)
        self.assertIn("upgrade the older one", refused)
        until(lambda: "upgrade the older one" in self.nodes["a"].text(), LIMIT_S, "node a says so")
        self.assertIsNone(self.greet(2), "the version is what was wrong")
        # As a server that old nodes connect to.
        self.refuse_as_c()
        until(lambda: f"it refuses this node: {REFUSAL}" in self.nodes["b"].text(), LIMIT_S, "node b says so")
        self.assertEqual(set(self.masters().values()) - {"a", "b"}, set())
        self.reach()

    def refuse_as_c(self):
        """Takes the place of c, and refuses who connects."""
        machine = self.nodes["c"].machine
        Machines.unplug(machine)
        run("ip", "address", "add", f"{machine.address}/24", "dev", BRIDGE)
        for name in ("a", "b"):
            self.nodes[name].machine.run("ip", "neighbour", "flush", "all")
        listener = socket.create_server((machine.address, LINK_PORT))
        self.addCleanup(listener.close)
        threading.Thread(target=self._refuse, args=(listener, self.context(ssl.Purpose.CLIENT_AUTH)), daemon=True).start()

    def _refuse(self, listener, context):
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return  # The test is over.
            try:
                with context.wrap_socket(plain, server_side=True) as connection:
                    self.receive(connection)
                    self.send(connection, {"refused": REFUSAL})
            except OSError:
                continue  # It has ended meanwhile.
