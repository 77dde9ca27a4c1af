"""Cases of DELTA that attack the channel between switches and the controller, with and without TLS.

Without TLS they succeed, which the tests show: nothing on plain TCP could answer them.
"""

import os
import socket
import ssl
import struct
import subprocess

from harness.case import SystemTest, on_both_versions
from harness.discovered import Discovered
from harness.middle import TLS_APPLICATION_DATA, Middle
from harness.network import Line
from harness.waiting import until
from test_discovery import Tree
from test_tls import Identities, Switch

LIMIT_S = 30
PORT, MIDDLE_PORT = 6653, 6663
FLOW_MOD, PACKET_IN = 14, 10
LLDP = bytes.fromhex("88cc")
DELETE = 3
# Offset of the command of a flow_mod, from the start of the message.
COMMAND_AT = {1: 56, 4: 25}
# Offset of the priority of a flow_mod of 1.3. The table-miss entry has 0.
PRIORITY_AT = 30
ADDRESS = bytes.fromhex("000000000001")


def learnt(network):
    """Flows of the learning switch."""
    return [flow for flow in network.flows("s1") if "dl_src" in flow]


def additions_to_deletions(message):
    """A flow_mod that adds becomes one that deletes. The table-miss entry of 1.3 is left alone."""
    message = bytearray(message)
    if message[1] == FLOW_MOD:
        if message[0] == 4:
            if message[PRIORITY_AT:PRIORITY_AT + 2] != bytes(2):
                message[COMMAND_AT[4]] = DELETE
        else:
            struct.pack_into("!H", message, COMMAND_AT[1], DELETE)
    return bytes(message)


class Plain(SystemTest):
    """Somebody between a switch and its controller, without TLS."""

    def start(self, version, **changes):
        self.controller()
        self.middle = Middle(MIDDLE_PORT, PORT, **changes)
        self.addCleanup(self.middle.close)
        return self.network(Line(), version, port=MIDDLE_PORT)

    @on_both_versions
    def eavesdrop(self, version):
        """3.1.170 without TLS: hosts and flows can be read on the way."""
        network = self.start(version)
        self.assertEqual(network.unreachable(), [])
        self.assertIn(ADDRESS, self.middle.seen)

    @on_both_versions
    def man_in_the_middle(self, version):
        """3.1.180 without TLS: flows that the controller adds are deleted instead; packets still arrive by it."""
        network = self.start(version, to_switch=additions_to_deletions)
        self.assertEqual(network.unreachable(), [])
        self.assertEqual(learnt(network), [], "the attack works, as no check on plain TCP could help")

    @on_both_versions
    def control_packet_modification(self, version):
        """2.1.073 without TLS: a changed packet-in is taken for what it says."""
        broadcast, stranger = b"\xff" * 6, bytes.fromhex("020000000099")

        def swap(message):
            return message.replace(broadcast + ADDRESS, broadcast + stranger) if message[1] == PACKET_IN else message

        network = self.start(version, to_controller=swap)
        network["h1"].cmd(f"ping -n -c 1 -W 1 {network['h2'].IP()}")
        macs = {row["mac"] for row in self.controllers[0].ask("hosts")}
        self.assertIn("02:00:00:00:00:99", macs)


class Protected(SystemTest):
    """The same, with TLS."""

    secure = True

    def start(self, version, **changes):
        self.run = self.controller()
        self.middle = Middle(MIDDLE_PORT, PORT, records=True, **changes)
        self.addCleanup(self.middle.close)
        return self.network(Line(), version, port=MIDDLE_PORT)

    @on_both_versions
    def eavesdrop(self, version):
        """3.1.170 with TLS: nothing of hosts and flows can be read on the way."""
        network = self.start(version)
        self.assertEqual(network.unreachable(), [])
        self.assertGreater(len(self.middle.seen), 0)
        self.assertNotIn(ADDRESS, self.middle.seen)
        self.assertEqual(self.run.ask("switches")[0]["identity"]["protocol"], "TLS 1.3")

    @on_both_versions
    def control_packet_modification(self, version):
        """2.1.073 with TLS: a changed record ends the session, and nothing of it is processed."""
        self.harm = False

        def change(record):
            if self.harm and record[0] == TLS_APPLICATION_DATA:
                self.harm = False
                return record[:-1] + bytes([record[-1] ^ 1])
            return record

        network = self.start(version, to_controller=change)
        self.assertEqual(network.unreachable(), [])
        self.harm = True
        network["h1"].cmd(f"ovs-ofctl -O {version} del-flows s1; ping -n -c 1 -W 1 {network['h2'].IP()}")
        # Of the controller: Open vSwitch may still report its lost connection.
        ups = lambda: sum(row["event"] == "switch_up" for row in self.run.ask("events"))
        until(lambda: ups() == 2, LIMIT_S, "the switch has connected again")
        # Right after it has connected again, Open vSwitch may drop a packet and send no packet_in for it.
        network.seconds_until_reachable(LIMIT_S)
        down, = [row for row in self.run.ask("events") if row["event"] == "switch_down"]
        self.assertEqual(down["reason"], "malformed", down)
        self.assertIn("something changed it on the way", down["text"])

    @on_both_versions
    def man_in_the_middle(self, version):
        """3.1.180 with TLS: who ends the session himself is refused by the switch and by the controller."""
        self.run = self.controller()
        impostor = self.pki.sign("impostor")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*impostor)
        with socket.create_server(("127.0.0.1", MIDDLE_PORT)) as listener:
            listener.settimeout(LIMIT_S)
            network = self.network(Line(), version, port=MIDDLE_PORT, connect=False)
            raw, _ = listener.accept()
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                session = context.wrap_socket(raw, server_side=True)
                session.recv(1)
        self.assertFalse(network.connected())
        # Towards the controller it is a switch without a certificate of the authority of switches.
        self.assertIsNone(Switch(self.pki, self.pki.make("middle", "controller")).connect())
        until(lambda: "refused" in self.run.text(), LIMIT_S, "the log names the refusal")

    @on_both_versions
    def tls_support(self, version):
        """2.1.070: a switch is served by TLS 1.2 and 1.3."""
        self.run = self.controller()
        network = self.network(Line(), version)
        self.assertEqual(network.unreachable(), [])
        pair = self.pki.make("old")
        session = Switch(self.pki, pair, maximum_version=ssl.TLSVersion.TLSv1_2).connect()
        self.assertEqual(session.version(), "TLSv1.2")
        self.assertEqual(self.run.ask("switches")[0]["identity"]["protocol"], "TLS 1.3")

    @on_both_versions
    def startup_with_failed_tls(self, version):
        """2.1.071: switches whose handshake fails are closed, with the reason; a good one beside them is served."""
        self.run = self.controller()
        failed = [b"\x16\x03\x01\x00\x05hello", bytes([4, 0, 0, 8, 0, 0, 0, 1]), b"\x16\x03\x03\xff\xff" + bytes(600)]
        for greeting in failed:
            with socket.create_connection(("127.0.0.1", PORT), LIMIT_S) as broken:
                broken.sendall(greeting)
                broken.settimeout(LIMIT_S)
                try:
                    while broken.recv(1 << 16):
                        pass
                except ConnectionError:
                    pass
        until(lambda: "refused" in self.run.text(), LIMIT_S, "a line about a refusal")
        network = self.network(Line(), version)
        self.assertEqual(network.unreachable(), [])
        # A controller that cannot speak TLS does not start without it.
        wrong = ["--tls-certificate", str(self.pki.controller_certificate), "--tls-key", str(self.pki.make("other")[1]),
                 "--tls-ca", str(self.pki.switch_authority)]
        done = subprocess.run([os.environ["BELLROCK_BIN"], "run", "--listen", "tls:127.0.0.1:6699", *wrong], capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot be used with its key", done.stderr)

    @on_both_versions
    def invalid_credentials(self, version):
        """2.1.072: no certificate, one of a stranger's authority, one that has expired: each is refused."""
        self.run = self.controller()
        network = self.network(Line(), version)
        expired = self.pki.sign("expired", period=("20200101000000Z", "20210101000000Z"))
        for pair, reason in ((None, "it shows no certificate"), (self.pki.make("stranger", "controller"), "no authority of `tls.ca`"),
                             (expired, "has expired")):
            self.assertIsNone(Switch(self.pki, pair).connect(), reason)
            until(lambda reason=reason: reason in self.run.text(), LIMIT_S, reason)
        self.assertEqual(len(self.run.ask("switches")), 1)
        self.assertEqual(network.unreachable(), [])


class Spoofing(SystemTest):
    """A switch with a good certificate that claims the datapath id of another one."""

    secure = True
    claim = Identities.claim

    @on_both_versions
    def switch_identification_spoofing(self, version):
        """3.1.060 with TLS: refused while the real switch is there, and when it is away."""
        run = self.controller(config={"tls": self.pki.settings(pins=str(self.run_dir / "pins")), "apps": ["learning"]})
        network = self.network(Line(), version)
        pair = self.pki.make("spoofer")
        for away in (False, True):
            if away:
                network["s1"].cmd("ovs-vsctl del-controller s1")
                until(lambda: not run.ask("switches"), LIMIT_S, "the real switch is away")
            before = run.text().count("may not speak for datapath id 0000000000000001")
            session = Switch(self.pki, pair).connect()
            self.claim(session, 1)
            while session.recv(1 << 16):
                pass
            until(lambda before=before: run.text().count("may not speak for datapath id 0000000000000001") > before, LIMIT_S,
                  "the reason")
            if not away:
                self.assertEqual(network.unreachable(), [])
        self.assertEqual(run.ask("switches"), [])
        workers = run.ask("counters")["workers"]
        self.assertEqual(sum(worker["duplicates_refused"] for worker in workers), 0, "the live switch was not even asked")


class Announcements(Discovered):
    """Somebody on the way changes the announcements that switches report."""

    @on_both_versions
    def link_fabrication_on_the_channel(self, version):
        """3.1.160, as DELTA does it, without TLS: changed announcements are forged ones, and make no link."""
        self.harm = False

        def change(message):
            at = message.find(LLDP)
            if not self.harm or message[1] != PACKET_IN or at < 0:
                return message
            # The last byte of the first number in it, which names the switch.
            return message[:at + 10] + bytes([message[at + 10] ^ 2]) + message[at + 11:]

        self.config = {"services": "hosts", "apps": ["learning"], "discovery_interval": "1 s"}
        self.ways, self.host_ports = 2, 3
        self.bellrock = self.controller(config=self.config)
        middle = Middle(MIDDLE_PORT, PORT, to_controller=change)
        self.addCleanup(middle.close)
        self.net = self.network(Tree(), version, connect=False, port=MIDDLE_PORT)
        self.await_discovered()
        self.harm = True
        until(lambda: self.told("forged_announcement"), LIMIT_S, "the forgery is reported")
        self.assertEqual({(link["from_dpid"], link["to_dpid"]) for link in self.links()}
                         - {("0000000000000001", "0000000000000002"), ("0000000000000002", "0000000000000001")}, set())
        until(lambda: not self.links(), LIMIT_S, "the real link is not confirmed any more")
        self.harm = False
        until(lambda: len(self.links()) == 2, LIMIT_S, "and it is back")
