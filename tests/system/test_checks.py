"""Tests of the checks that every test relies on: a check that cannot fail proves nothing."""

import socket
import struct
import threading

from harness.case import SystemTest, on_both_versions
from harness.fakeswitch import HEADER, HELLO, WIRE_VERSION
from harness.network import Line
from harness.waiting import until

PORT = 6653
NOTICE_LIMIT_S = 30
SET_CONFIG = 9


class BrokenController(threading.Thread):
    """Sends a hello to every switch, and then a set_config that ends after its first field."""

    def __init__(self, version):
        super().__init__(daemon=True)
        wire = WIRE_VERSION[version]
        self.greeting = HEADER.pack(wire, HELLO, HEADER.size, 1)
        self.broken = HEADER.pack(wire, SET_CONFIG, HEADER.size + 2, 2) + struct.pack("!H", 0)
        self.listener = socket.create_server(("127.0.0.1", PORT))
        self.connections = []
        self.start()

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            connection.sendall(self.greeting + self.broken)
            self.connections.append(connection)


class Checks(SystemTest):
    """judge() and assert_well_formed() find a real error."""

    def judge(self):
        """Open vSwitch is meant to refuse messages here, so this checks nothing."""

    @on_both_versions
    def see_a_broken_message(self, version):
        """Both Open vSwitch's log and tshark report it."""
        BrokenController(version)
        capture = self.capture()
        self.network(Line(), version, connect=False)
        until(self.ovs.error_replies, NOTICE_LIMIT_S, "a line about an error reply in Open vSwitch's log")
        capture.stop()
        self.assertNotEqual(capture.malformed(), [], "tshark took a message that ends in the middle for a good one")
