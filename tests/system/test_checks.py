"""Tests of the checks that every test relies on: a check that cannot fail proves nothing."""

import socket
import struct
import threading

from harness.case import SystemTest, on_both_versions
from harness.elections import Elections
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


class WrongElections(SystemTest):
    """The replay of elections finds what must never be."""

    OWNERS = {"tcp:192.0.2.2:6653": ("s1", "a"), "tcp:192.0.2.3:6653": ("s1", "b")}
    CLAIM = "received: OFPT_ROLE_REQUEST (OF1.3) (xid=0x{0}): role=primary generation_id={0}"
    ELECTED = "sent (Success): OFPT_ROLE_REPLY (OF1.3) (xid=0x{0}): role=primary generation_id={0}"
    FLOW = "received: OFPT_FLOW_MOD (OF1.3) (xid=0x99): ADD actions=drop"
    REFUSED = "sent (Success): OFPT_ERROR (OF1.3) (xid=0x99): OFPBRC_IS_SECONDARY"

    def faults(self, *messages):
        """What is found in these messages, each with its node."""
        log = self.logs / "elections.log"
        targets = {node: target for target, (_, node) in self.OWNERS.items()}
        log.write_text("".join(f"2026-01-31T00:00:00.000Z|1|vconn|DBG|{targets[node]}: {text}\n" for node, text in messages))
        return Elections(log, self.OWNERS).faults()

    def elected(self, node, generation):
        return [(node, self.CLAIM.format(generation)), (node, self.ELECTED.format(generation))]

    def test_each_fault_of_an_election_is_found(self):
        """And a takeover by a greater number is none."""
        takeover = [*self.elected("a", 1), ("a", self.FLOW), *self.elected("b", 2)]
        self.assertEqual(self.faults(*takeover, ("b", self.FLOW)), [])
        self.assertEqual(self.faults(*takeover, ("a", self.FLOW), ("a", self.REFUSED)), [])
        for wrong, found in (([*takeover, ("a", self.FLOW)], "does not refuse a"),
                             ([*self.elected("a", 2), *self.elected("b", 2)], "b is master by 2, after a by 2"),
                             ([*self.elected("a", 2), *self.elected("b", 1)], "b is master by 1, after a by 2"),
                             ([("a", self.FLOW)], "no election has made its master")):
            self.assertRegex(" ".join(self.faults(*wrong)), found)
