"""Hosts of a tree reach each other by flows, not by the controller."""

import time

from harness.case import SystemTest, on_both_versions, under_all_tcp_buffers
from harness.controller import START_LIMIT_S, listening_ports
from harness.network import tree
from harness.waiting import until

IPERF_PORT = 5001
IPERF_S = 4
SETTLE_S = 0.5
# ARP and a ping over three switches need 10 to 16. A stream over the controller has more in its first millisecond.
MAX_PACKET_INS = 20
# With less the stream did not run. The datapath in user space carries a hundred times more.
MIN_STREAM_BYTES = 10_000_000


class Reach(SystemTest):
    """Mininet's tree of depth 2 and fanout 3 with the learning app and its default settings."""

    @on_both_versions
    @under_all_tcp_buffers
    def pingall(self, version):
        """No ping is lost, and tshark understands every message."""
        capture = self.capture()
        controller = self.controller()
        network = self.network(tree(), version)
        self.assertEqual(network.ping_all(), 0, "percent lost")
        self.assertEqual(len(controller.ask("switches")), 4, "`bellrock switches` on a tree of four")
        self.assert_well_formed(capture)
        self.assertGreater(capture.packet_ins(), 0, "nothing was asked: the switches forward by themselves")

    @on_both_versions
    def iperf(self, version):
        """A TCP stream over three switches uses installed flows."""
        # From the start: tshark decrypts a session of TLS only with its handshake. Silent hosts add no packet-in.
        capture = self.capture()
        self.controller()
        network = self.network(tree(), version)
        first, last = network["h1"], network["h9"]
        # Open vSwitch's datapath needs some milliseconds to use a new flow. Packets of a burst before that go to any
        # controller. So the pair's flows are installed before the stream begins. They are counted too.
        self.assertEqual(network.unreachable([("h1", "h9")]), [])
        time.sleep(SETTLE_S)
        server = last.popen(["iperf", "-s"])
        self.addCleanup(server.kill)
        until(lambda: IPERF_PORT in listening_ports(last.pid), START_LIMIT_S, "iperf's server")
        printed = first.cmd(f"iperf -c {last.IP()} -t {IPERF_S} -y C")
        self.assertRegex(printed.strip(), r"^\d+(,[^,]*){8}$", "what iperf prints")
        self.assertGreater(int(printed.split(",")[7]), MIN_STREAM_BYTES, "bytes that iperf carried")
        self.assert_well_formed(capture)
        self.assertLessEqual(capture.packet_ins(), MAX_PACKET_INS, "packet-ins for one TCP stream")
