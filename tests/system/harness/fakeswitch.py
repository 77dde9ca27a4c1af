"""A switch without a datapath. It can flood the controller with packet-ins and read slowly, as no real switch does.

It speaks as much OpenFlow 1.0 and 1.3 as a controller requires. Every packet-in carries a whole frame to the broadcast
address with a number in it, since the switch buffers nothing. A learning switch answers each with a packet_out of the
same frame, so the returned numbers show which were lost or reordered.
"""

import select
import socket
import ssl
import struct
import time

WIRE_VERSION = {"OpenFlow10": 1, "OpenFlow13": 4}
HEADER = struct.Struct("!BBHI")
NO_BUFFER = 0xFFFFFFFF
PORTS = 4
# IEEE's first EtherType for local experiments. Nothing on the path parses it.
ETHERTYPE = 0x88B5
HELLO, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, GET_CONFIG_REQUEST, PACKET_IN, PACKET_OUT = 0, 2, 3, 5, 7, 10, 13
# Requests whose numbers differ between versions: (request of 1.0, request of 1.3). The reply's number is one more.
STATS_REQUEST = {1: 16, 4: 18}
BARRIER_REQUEST = {1: 18, 4: 20}
ROLE_REQUEST_13 = 24
STATS_DESC, STATS_PORT_DESC = 0, 13
# Numbers of packet-ins that only test whether the controller is ready.
PROBE = 1 << 63
PROBE_INTERVAL_S = 0.1
READY_LIMIT_S = 30
# Number of packet-ins prepared for one write.
BATCH = 64
READ_BYTES = 1 << 16
# The same for a blast, in which the sender must never be the bottleneck.
BLAST_BATCH = 4096
BLAST_READ_BYTES = 1 << 20
WAIT_S = 0.01
# Maximum number of bytes of a record of TLS.
RECORD_BYTES = 1 << 14
# Time that a sender waits if its link is full.
LINK_WAIT_S = 0.001


class FakeSwitch:
    """One connection to a controller. Not thread-safe. With `tls` (certificate, key, authority of controllers) it is
    encrypted."""

    def __init__(self, version, dpid, port, frame_bytes=64, receive_buffer_bytes=None, tls=None):
        self.wire = WIRE_VERSION[version]
        self.dpid = dpid
        self.frame_bytes = frame_bytes
        self.sent = 0
        self.answers = []
        self.stalls = 0
        self._ready = False
        # Position of the next byte in the prepared packet-ins of a blast.
        self._blasted = 0
        self._unsent = b""
        # Number of unsent bytes that are encrypted already. They must be sent.
        self._sealed = 0
        self._replies = b""
        self._received = bytearray()
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.connect(("127.0.0.1", port))
        if tls:
            self.socket = self._wrapped(*tls)
        self.socket.setblocking(False)

    def _wrapped(self, certificate, key, authority):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(authority)
        context.load_cert_chain(certificate, key)
        return context.wrap_socket(self.socket)

    def connect(self):
        """Completes the handshake and waits until the controller answers packet-ins."""
        bitmap = struct.pack("!HHI", 1, 8, 1 << 4) if self.wire == 4 else b""
        self._replies += self._message(HELLO, 1, bitmap)
        deadline = time.monotonic() + READY_LIMIT_S
        next_probe = time.monotonic()
        while not self._ready:
            now = time.monotonic()
            if now >= deadline:
                raise AssertionError(f"no packet-in was answered within {READY_LIMIT_S} s")
            if now >= next_probe:
                next_probe = now + PROBE_INTERVAL_S
                self._replies += self._packet_in(PROBE)
            self.turn(READ_BYTES)

    def flood(self, seconds, read_bytes_per_s=None):
        """Sends packet-ins without pause for `seconds`, and reads at most `read_bytes_per_s` (None: everything)."""
        began = last = time.monotonic()
        allowance = 0.0
        while last - began < seconds:
            now = time.monotonic()
            if read_bytes_per_s is None:
                allowance = READ_BYTES
            else:
                allowance = min(allowance + (now - last) * read_bytes_per_s, READ_BYTES)
            last = now
            if not self._unsent and not self._replies:
                self._unsent = b"".join(self._packet_in(self.sent + index) for index in range(BATCH))
                self.sent += BATCH
            allowance -= self.turn(int(allowance))
        # Whole unsent packet-ins do not count as sent. drain() sends the rest of one that was sent in part.
        size = len(self._packet_in(0))
        whole, partly = divmod(len(self._unsent), size)
        encrypted = -(-max(0, self._sealed - partly) // size)
        self.sent -= whole - encrypted
        self._unsent = self._unsent[:partly + encrypted * size]

    def blast(self, seconds, bytes_per_s):
        """Sends packet-ins for `seconds`, as fast as the controller reads them, but at most `bytes_per_s`. Discards all
        answers unread.

        Returns (packet-ins sent, bytes discarded). Afterwards the connection can only be used for another blast.
        """
        packets = b"".join(self._packet_in(number) for number in range(BLAST_BATCH))
        size = len(packets) // BLAST_BATCH
        sent = thrown = 0
        began = time.monotonic()
        while (now := time.monotonic() - began) < seconds:
            may_send = sent <= now * bytes_per_s
            wait = WAIT_S if may_send else LINK_WAIT_S
            readable, writable = self._select(True, may_send, wait)
            if writable:
                taken = self._send(memoryview(packets)[self._blasted:])
                sent += taken
                self._blasted = (self._blasted + taken) % len(packets)
            if readable:
                thrown += len(self._receive(BLAST_READ_BYTES))
        return sent // size, thrown

    def drain(self, patience_s):
        """Reads until every packet-in is answered, or until nothing has come for `patience_s`."""
        last = time.monotonic()
        while len(self.answers) < self.sent and time.monotonic() - last < patience_s:
            if self.turn(READ_BYTES):
                last = time.monotonic()

    def turn(self, read_bytes):
        """Writes what the socket takes, and reads at most `read_bytes`. Returns the number of bytes read."""
        if not self._unsent:
            self._unsent, self._replies = self._replies, b""
        readable, writable = self._select(read_bytes > 0, bool(self._unsent), WAIT_S)
        if writable:
            self._unsent = self._unsent[self._send(self._unsent):]
        elif self._unsent:
            self.stalls += 1
        if not readable:
            return 0
        got = self._receive(read_bytes)
        self._received += got
        self._take_messages()
        return len(got)

    def _select(self, may_read, may_write, wait):
        """Whether there may be bytes to read, and whether some can be written, after at most `wait`."""
        # Decrypted bytes that are not read yet are none of the kernel's.
        if may_read and isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            wait = 0
        readable, writable, _ = select.select([self.socket] if may_read else [], [self.socket] if may_write else [], [], wait)
        return bool(readable) or (may_read and wait == 0), bool(writable)

    def _send(self, unsent):
        """Sends what the socket takes: a record at most by TLS. What it has encrypted and not sent must be the beginning of
        the next call."""
        if not isinstance(self.socket, ssl.SSLSocket):
            return self.socket.send(unsent)
        record = unsent[:RECORD_BYTES]
        try:
            sent, self._sealed = self.socket.send(record), 0
            return sent
        except ssl.SSLWantWriteError:
            self._sealed = len(record)
            return 0

    def _receive(self, read_bytes):
        """At least a byte, or none if only a part of a record of TLS has come."""
        try:
            got = self.socket.recv(read_bytes)
        except ssl.SSLWantReadError:
            return b""
        if not got:
            raise AssertionError("the controller closed the connection")
        return got

    def _take_messages(self):
        at = 0
        while len(self._received) - at >= HEADER.size:
            _, kind, length, xid = HEADER.unpack_from(self._received, at)
            if length < HEADER.size:
                raise AssertionError(f"the controller sent a message of {length} bytes")
            if len(self._received) - at < length:
                break
            self._take(kind, xid, bytes(self._received[at + HEADER.size:at + length]))
            at += length
        del self._received[:at]

    def _take(self, kind, xid, body):
        if kind == PACKET_OUT:
            number = self._number_of(body)
            if number == PROBE:
                self._ready = True
            else:
                self.answers.append(number)
        elif kind == ECHO_REQUEST:
            self._replies += self._message(ECHO_REPLY, xid, body)
        elif kind == FEATURES_REQUEST:
            self._replies += self._message(FEATURES_REQUEST + 1, xid, self._features())
        elif kind == GET_CONFIG_REQUEST:
            self._replies += self._message(GET_CONFIG_REQUEST + 1, xid, struct.pack("!HH", 0, 0xFFFF))
        elif kind == BARRIER_REQUEST[self.wire]:
            self._replies += self._message(kind + 1, xid, b"")
        elif kind == STATS_REQUEST[self.wire]:
            self._replies += self._message(kind + 1, xid, self._stats(body))
        elif kind == ROLE_REQUEST_13 and self.wire == 4:
            self._replies += self._message(kind + 1, xid, body)

    def _message(self, kind, xid, body):
        return HEADER.pack(self.wire, kind, HEADER.size + len(body), xid) + body

    def _features(self):
        if self.wire == 4:
            # n_buffers, n_tables, auxiliary_id, capabilities (OpenFlow 1.3.5, section A.3.1)
            return struct.pack("!QIBB2xII", self.dpid, 0, 1, 0, 0, 0)
        # n_buffers, n_tables, capabilities, actions (OpenFlow 1.0, section 5.3.1): OUTPUT only
        return struct.pack("!QIB3xII", self.dpid, 0, 1, 0, 1) + self._ports()

    def _ports(self):
        ports = b""
        for number in range(1, PORTS + 1):
            mac, name = bytes([2, 0, 0, 0, 1, number]), f"port{number}".encode()
            if self.wire == 4:
                ports += struct.pack("!I4x6s2x16s8I", number, mac, name, *[0] * 8)
            else:
                ports += struct.pack("!H6s16s6I", number, mac, name, *[0] * 6)
        return ports

    def _stats(self, body):
        kind = struct.unpack_from("!H", body)[0]
        head = struct.pack("!HH", kind, 0) + (bytes(4) if self.wire == 4 else b"")
        if kind == STATS_DESC:
            return head + struct.pack("256s256s256s32s256s", b"Bellrock", b"none", b"fake switch", b"0", b"a test's")
        if kind == STATS_PORT_DESC and self.wire == 4:
            return head + self._ports()
        return head

    def _packet_in(self, number):
        """A packet-in of a broadcast frame from one of 256 hosts, unbuffered, in_port 1."""
        source = bytes([2, 0, 0, 0, 2, number & 0xFF])
        frame = b"\xff" * 6 + source + struct.pack("!HQ", ETHERTYPE, number)
        frame = frame.ljust(self.frame_bytes, b"\0")
        if self.wire == 4:
            # buffer_id, total_len, reason, table_id, cookie; a match of in_port, padded to 16 bytes; 2 bytes of padding
            body = struct.pack("!IHBBQHHIIxxxxxx", NO_BUFFER, len(frame), 0, 0, 0, 1, 12, 0x80000004, 1)
        else:
            body = struct.pack("!IHHBx", NO_BUFFER, len(frame), 1, 0)
        return self._message(PACKET_IN, 0, body + frame)

    def _number_of(self, body):
        """The number in the frame of a packet_out."""
        if self.wire == 4:
            actions_length, data = struct.unpack_from("!H", body, 8)[0], 16
        else:
            actions_length, data = struct.unpack_from("!H", body, 6)[0], 8
        return struct.unpack_from("!Q", body, data + actions_length + 14)[0]
