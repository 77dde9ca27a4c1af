"""Cases of DELTA in which a switch attacks the controller (docs/book/src/reference/attacks.md has all of them).

Beside each attack an honest switch goes on working.
"""

import socket
import struct
import subprocess

from harness.case import SystemTest, on_both_versions
from harness.fakeswitch import READ_BYTES, STATS_REQUEST
from harness.network import Line
from harness.openvswitch import command
from harness.peer import BAD_REQUEST, BAD_TYPE, BAD_VERSION, FLOW_MOD, LIMIT_S, STATS_FLOW, Peer
from harness.waiting import until

PORT = 6653
HONEST, ATTACKER = 0xBEEF, 0xA77AC
XID = 0xEEEEEEEE
# No type of OpenFlow 1.0 or 1.3.
UNKNOWN_TYPE = 0xCC
HELLO = {"OpenFlow10": bytes([1, 0, 0, 8, 0, 0, 0, 1]), "OpenFlow13": bytes([4, 0, 0, 8, 0, 0, 0, 1])}
HANDSHAKE_TIMEOUT_S = 2
# Number of a packet that must not be answered.
PROHIBITED = 0xDEAD
MAX_CONNECTIONS = 64
CLAIMS = 300
MAX_GROWTH_BYTES = 64 << 20
LIES = 1000
PARTS = 1000


class Beside(SystemTest):
    """An attacker beside an honest switch."""

    def start(self, version, config=None):
        self.run = self.controller(config={"apps": ["learning"], "handshake_timeout": f"{HANDSHAKE_TIMEOUT_S} s"} | (config or {}))
        self.version = version
        self.honest = self.peer(HONEST)
        self.honest.connect()

    def peer(self, dpid, **options):
        peer = Peer(self.version, dpid, PORT, **options)
        self.addCleanup(peer.socket.close)
        return peer

    def attacker(self):
        attacker = self.peer(ATTACKER)
        attacker.connect()
        return attacker

    def start_command(self, *words):
        """A command of an operator that goes on beside the test."""
        command = [self.run.binary, *words, "--control", str(self.run.control)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def worker_counter(self, name):
        return sum(worker[name] for worker in self.run.ask("counters")["workers"])

    def switches(self):
        return sorted(int(row["dpid"], 16) for row in self.run.ask("switches"))

    def assert_honest_is_served(self):
        self.honest.serve("the honest switch is served")
        self.assertIn(HONEST, self.switches())


class Messages(Beside):
    """Messages that are wrong, or come at the wrong time."""

    @on_both_versions
    def malformed_version_number(self, version):
        """2.1.010: a packet-in in a version that was not agreed on is refused with an error, and not processed."""
        self.start(version)
        attacker = self.attacker()
        attacker.say_packet(PROHIBITED, xid=XID, wire={1: 4, 4: 1}[attacker.wire])
        self.assertEqual(attacker.error(XID), (BAD_REQUEST, BAD_VERSION))
        attacker.serve("the connection goes on")
        self.assertNotIn(PROHIBITED, attacker.answers)
        self.assert_honest_is_served()

    @on_both_versions
    def corrupted_control_message_type(self, version):
        """2.1.020: a message of an unknown type is refused with an error, and the next one is processed."""
        self.start(version)
        attacker = self.attacker()
        attacker.say_packet(PROHIBITED, xid=XID, kind=UNKNOWN_TYPE)
        self.assertEqual(attacker.error(XID), (BAD_REQUEST, BAD_TYPE))
        attacker.serve("the connection goes on")
        self.assertNotIn(PROHIBITED, attacker.answers)
        self.assert_honest_is_served()

    @on_both_versions
    def handshake_without_hello(self, version):
        """2.1.030: who sends no hello is closed after `handshake_timeout`, and is never a switch."""
        self.start(version)
        silent = self.peer(ATTACKER)
        silent.until_closed("a silent connection is closed")
        self.assertEqual(self.worker_counter("handshake_timeouts"), 1)
        # The rest of the handshake, without its first message.
        hasty = self.peer(ATTACKER)
        hasty.say(6, hasty._features(), xid=1)
        hasty.until_closed("a connection without a hello is closed")
        self.assertEqual(self.switches(), [HONEST])
        self.assert_honest_is_served()

    @on_both_versions
    def control_message_before_hello(self, version):
        """2.1.040: a packet-in before the hello closes the connection; one before the features is not answered."""
        self.start(version)
        early = self.peer(ATTACKER)
        early.say_packet(PROHIBITED)
        early.until_closed("a packet-in before the hello")
        with socket.create_connection(("127.0.0.1", PORT), LIMIT_S) as half:
            body = early._packet_in(PROHIBITED)
            half.sendall(HELLO[version] + body)
            heard = b""
            while got := half.recv(READ_BYTES):
                heard += got
        self.assertNotIn(struct.pack("!Q", PROHIBITED), heard, "nothing is sent back before it is a switch")
        self.assertEqual(early.answers, [])
        self.assertEqual(self.switches(), [HONEST])
        self.assert_honest_is_served()

    @on_both_versions
    def multiple_main_connections(self, version):
        """2.1.050: a second main connection with the datapath id of a live switch is refused; the first goes on."""
        self.start(version)
        second = self.peer(HONEST)
        second.say(0, b"", xid=1)
        # The first one is asked meanwhile whether it is alive.
        until(lambda: self.honest.turn(READ_BYTES) + second_turn(second) >= 0 and self.worker_counter("duplicates_refused") > 0,
              LIMIT_S, "the second connection is refused")
        self.assertEqual(self.worker_counter("duplicates_replaced"), 0)
        self.assertEqual(self.switches(), [HONEST])
        self.assert_honest_is_served()

    @on_both_versions
    def unflagged_flow_removed(self, version):
        """2.1.060: reports of removed flows that nobody asked for change nothing that the controller knows."""
        self.start(version, {"apps": ["static", "learning"]})
        attacker = self.attacker()
        words = ("static", "add", "wall", format(ATTACKER, "x"), "--match", "in_port=2", "--actions", "drop", "--priority", "4095")
        order = self.start_command(*words)
        attacker.listen(lambda: order.poll() is not None, "the order is carried out")
        self.assertEqual(self.state(attacker), "installed")
        wall = next(flow for flow in attacker.flows if flow[1] == max(flow[1] for flow in attacker.flows))
        attacker.flows = [wall] + [flow for flow in attacker.flows if flow is not wall]
        added = len(attacker.of_kind(FLOW_MOD))
        for _ in range(LIES):
            attacker.remove_first_flow()
        attacker.serve("the connection goes on")
        self.assertEqual(self.state(attacker), "installed")
        self.assertEqual(len(attacker.of_kind(FLOW_MOD)), added, "flow_mods in answer to lies")
        self.assert_honest_is_served()

    def state(self, peer):
        row, = self.run.ask("static", "list")
        peer.turn(READ_BYTES)
        return row["state"]

    def test_auxiliary_connection(self):
        """2.1.080: an auxiliary connection, over whatever transport, is refused and reported; the main one goes on."""
        self.start("OpenFlow13")
        auxiliary = self.peer(HONEST, auxiliary_id=1)
        auxiliary.say(0, b"", xid=1)
        auxiliary.until_closed("the auxiliary connection is closed")
        ended = lambda: [row.get("reason") for row in self.run.ask("events") if row["event"] == "connection_ended"]
        until(ended, LIMIT_S, "the end of the connection is an event")
        self.assertEqual(ended(), ["auxiliary"])
        self.assert_honest_is_served()


def second_turn(peer):
    """A turn of a peer that may be closed meanwhile."""
    try:
        return peer.turn(READ_BYTES)
    except (AssertionError, ConnectionError):
        return 0


class Switches(Beside):
    """Switches that are not those that they claim to be, or far too many."""

    @on_both_versions
    def switch_table_flooding(self, version):
        """3.1.050: hundreds of switches that nobody knows fill only `max_connections`; a real network goes on."""
        self.start(version, {"max_connections": MAX_CONNECTIONS})
        network = self.network(Line(), version)
        self.assertEqual(network.unreachable(), [])
        before = self.run.resident_bytes()
        crowd = []
        for number in range(CLAIMS):
            try:
                peer = self.peer(0x1000 + number)
            except ConnectionError:
                continue
            peer.say(0, b"", xid=1)
            crowd.append(peer)
            second_turn(peer)
        until(lambda: [second_turn(peer) for peer in crowd] and len(self.switches()) == MAX_CONNECTIONS, LIMIT_S,
              "the table of switches is full")
        until(lambda: self.run.ask("status")["refused"] > 0, LIMIT_S, "connections that are refused are counted")
        self.assertLess(self.run.resident_bytes() - before, MAX_GROWTH_BYTES)
        self.assertTrue(network.connected(), "the real switch stays")
        self.assertEqual(network.unreachable(), [])
        self.assert_honest_is_served()

    @on_both_versions
    def switch_identification_spoofing(self, version):
        """3.1.060, without TLS: nobody takes the datapath id of a live switch; one that is away is anybody's."""
        self.start(version)
        network = self.network(Line(), version)
        for _ in range(20):
            spoofer = self.peer(1)
            spoofer.say(0, b"", xid=1)
            spoofer.until_closed("who claims the datapath id of a live switch is closed")
        self.assertEqual(network.unreachable(), [])
        self.assertEqual((self.worker_counter("duplicates_refused"), self.worker_counter("duplicates_replaced")), (20, 0))
        command("ovs-vsctl", "del-controller", "s1")
        until(lambda: 1 not in self.switches(), LIMIT_S, "the real switch is away")
        self.peer(1).connect()
        self.assertIn(1, self.switches(), "without TLS nothing tells it from the real one")

    @on_both_versions
    def multipart_amplification(self, version):
        """3.1.250: a switch that answers with parts without end fills only `max_multipart_bytes`."""
        self.start(version, {"max_multipart_bytes": "1 MiB"})
        attacker = self.attacker()
        # From now on its reports of flows have no last part.
        attacker.never_ends, attacker.heard = True, []
        before = self.run.resident_bytes()
        asked = self.start_command("flows", format(ATTACKER, "x"))
        request = attacker.listen(lambda: [xid for kind, xid, body in attacker.heard if kind == STATS_REQUEST[attacker.wire]
                                           and struct.unpack_from("!H", body)[0] == STATS_FLOW], "a request for flows")[-1]
        for _ in range(PARTS // 10):
            attacker.say_parts(request, 10)
            second_turn(attacker)
        attacker.serve("the connection goes on")
        asked.wait()
        # Workers add these counters once a second.
        until(lambda: self.worker_counter("multipart_overflows") > 0, LIMIT_S, "the overflow is counted")
        self.assertLess(self.run.resident_bytes() - before, MAX_GROWTH_BYTES)
        self.assert_honest_is_served()
