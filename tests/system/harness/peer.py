"""A switch without a datapath that says what a test wants it to say, and keeps what it hears."""

import struct
import time

from .fakeswitch import HEADER, NO_BUFFER, PACKET_OUT, READ_BYTES, STATS_REQUEST, FakeSwitch

LIMIT_S = 30
ERROR, FLOW_REMOVED, FLOW_MOD = 1, 11, 14
STATS_FLOW = 1
ADD = 0
BAD_REQUEST, BAD_VERSION, BAD_TYPE = 1, 0, 1
HARD_TIMEOUT = 1
MORE = 1


class Peer(FakeSwitch):
    """Such a switch. It reports flows that were added to it. `heard`: each message, as (kind, xid, body)."""

    def __init__(self, version, dpid, port, auxiliary_id=0):
        super().__init__(version, dpid, port)
        self.auxiliary_id = auxiliary_id
        self.heard = []
        # Whether its reports of flows go on without end.
        self.never_ends = False
        self.flows = []

    def say(self, kind, body=b"", xid=0, wire=None):
        """Sends a message, if asked in another version than its own."""
        self._replies += HEADER.pack(wire or self.wire, kind, HEADER.size + len(body), xid) + body

    def say_packet(self, number, **header):
        """Sends a packet-in with this number, of which parts of the header may be wrong."""
        packet = self._packet_in(number)
        self.say(header.pop("kind", packet[1]), packet[HEADER.size:], **header)

    def listen(self, done, what):
        """Reads until `done()` is true. Returns its value."""
        deadline = time.monotonic() + LIMIT_S
        while not (value := done()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {LIMIT_S} s: {what}; heard {self.heard[-5:]}")
            self.turn(READ_BYTES)
        return value

    def of_kind(self, kind):
        return [message for message in self.heard if message[0] == kind]

    def error(self, xid):
        """Waits for the error that answers a message. Returns (type, code)."""
        found = lambda: [body for kind, its, body in self.heard if (kind, its) == (ERROR, xid)]
        return struct.unpack_from("!HH", self.listen(found, f"an error with xid {xid:#x}")[0])

    def serve(self, what):
        """Sends a packet, and waits until it is answered."""
        number = self.sent
        self.sent += 1
        self.say_packet(number)
        self.listen(lambda: number in self.answers, what)

    def until_closed(self, what):
        """Reads until the controller closes the connection."""
        try:
            self.listen(lambda: False, what)
        except ConnectionError:
            pass
        except AssertionError as error:
            if "closed the connection" not in str(error):
                raise

    def remove_first_flow(self, keep=True):
        """Reports that its first flow is removed. With `keep` that is a lie."""
        flow = self.flows[0]
        if not keep:
            self.flows.remove(flow)
        cookie, priority, match, _ = flow
        if self.wire == 4:
            # cookie, priority, reason, table, duration, timeouts, counters, match
            body = struct.pack("!QHBBIIHHQQ", cookie, priority, HARD_TIMEOUT, 0, 1, 0, 0, 1, 0, 0) + match
        else:
            body = match + struct.pack("!QHBxIIHxxQQ", cookie, priority, HARD_TIMEOUT, 1, 0, 0, 0, 0)
        self.say(FLOW_REMOVED, body)

    def _take(self, kind, xid, body):
        self.heard.append((kind, xid, body))
        # A barrier is answered after the reports before it.
        if self.never_ends and kind == STATS_REQUEST[self.wire] + 2:
            return
        if kind == PACKET_OUT and not self._is_numbered(body):
            return
        if kind == FLOW_MOD:
            self._change_flows(body)
        super()._take(kind, xid, body)

    def _is_numbered(self, body):
        """Whether a packet_out has a whole frame of this switch: announcements have none."""
        return struct.unpack_from("!I", body)[0] == NO_BUFFER and b"\x88\xb5" in body

    def _features(self):
        features = bytearray(super()._features())
        if self.wire == 4:
            features[13] = self.auxiliary_id
        return bytes(features)

    def _change_flows(self, body):
        """Keeps a flow that is added: (cookie, priority, match, instructions or actions)."""
        if self.wire == 4:
            cookie, command, priority = struct.unpack_from("!Q8xxB4xH", body)
            length = (struct.unpack_from("!H", body, 42)[0] + 7) // 8 * 8
            match, rest = body[40:40 + length], body[40 + length:]
        else:
            match, (cookie, command, priority) = body[:40], struct.unpack_from("!QH4xH", body, 40)
            rest = body[64:]
        if command == ADD:
            self.flows = [flow for flow in self.flows if flow[1:3] != (priority, match)]
            self.flows.append((cookie, priority, match, rest))

    def _stats(self, body):
        kind = struct.unpack_from("!H", body)[0]
        if kind == STATS_FLOW and self.never_ends:
            return self._flows_head(MORE)
        if kind == STATS_FLOW:
            return self._flows_head(0) + b"".join(self._row(*flow) for flow in self.flows)
        return super()._stats(body)

    def _row(self, cookie, priority, match, rest):
        if self.wire == 4:
            length = 48 + len(match) + len(rest)
            return struct.pack("!HBxIIHHHHxxxxQQQ", length, 0, 1, 0, priority, 0, 0, 0, cookie, 0, 0) + match + rest
        length = 88 + len(rest)
        return struct.pack("!HBx", length, 0) + match + struct.pack("!IIHHH6xQQQ", 1, 0, priority, 0, 0, cookie, 0, 0) + rest

    def say_parts(self, xid, parts, part_bytes=60_000):
        """Sends parts of a report of flows that never ends."""
        # A flow that matches everything, and does nothing.
        row = self._row(0, 1, struct.pack("!HHI", 1, 4, 0) if self.wire == 4 else struct.pack("!I", 0x3fffff) + bytes(36), b"")
        part = self._flows_head(MORE) + row * (part_bytes // len(row))
        for _ in range(parts):
            self.say(STATS_REQUEST[self.wire] + 1, part, xid)

    def _flows_head(self, flags):
        return struct.pack("!HH", STATS_FLOW, flags) + (bytes(4) if self.wire == 4 else b"")
