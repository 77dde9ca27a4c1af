"""A switch of OpenFlow 1.3 with a socket: as little as os-ken's handshake needs."""

from __future__ import annotations

import socket
import struct
from queue import Queue
from threading import Condition, Event, Thread

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY = 0, 1, 2, 3
FEATURES_REQUEST, FEATURES_REPLY = 5, 6
PACKET_IN, PACKET_OUT, FLOW_MOD = 10, 13, 14
PORT_STATUS = 12
MULTIPART_REQUEST, MULTIPART_REPLY = 18, 19
BARRIER_REQUEST, BARRIER_REPLY = 20, 21
PORT_DESC, PORT_STATS = 13, 4
TIMEOUT_S = 30.0
# ofp_match with in_port = 1, padded (1.3.5 §7.2.3).
IN_PORT_1 = bytes.fromhex("0001000c 80000004 00000001 00000000")


class Turns:
    """A lock that is taken in the order of asking. A usual one may go to a thread that sends without end again and again,
    and the other thread never gets to answer."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._asked = self._served = 0

    def __enter__(self) -> None:
        with self._changed:
            mine, self._asked = self._asked, self._asked + 1
            self._changed.wait_for(lambda: self._served == mine)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._served += 1
            self._changed.notify_all()


class Switch13:
    """One connection. A thread answers what a switch answers by itself, and keeps the rest."""

    def __init__(self, port: int, dpid: int = 1) -> None:
        self.dpid = dpid
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._messages: Queue[tuple[int, bytes] | None] = Queue()
        # The thread answers while a test sends. With a full socket, `sendall` writes in parts.
        self._sending = Turns()
        self._described = Event()
        self._end = "in order"
        self.send(HELLO, b"", 0)
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def __enter__(self) -> Switch13:
        return self

    def __exit__(self, *_: object) -> None:
        # The thread waits for bytes, and without this the system ends the connection only when some come.
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The other end was faster.
        self.socket.close()

    def send(self, kind: int, body: bytes, xid: int = 0) -> None:
        message = struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body
        with self._sending:
            self.socket.sendall(message)

    def packet_in(self, data: bytes) -> None:
        head = struct.pack("!IHBBQ", 0xFFFF_FFFF, len(data), 0, 0, 0)
        self.send(PACKET_IN, head + IN_PORT_1 + bytes(2) + data)

    def port_status(self, reason: int, port: int) -> None:
        self.send(PORT_STATUS, struct.pack("!B7xI60x", reason, port))

    def receive(self, wanted: int) -> bytes:
        """Returns the body of the next message of this type."""
        while True:
            message = self._messages.get(timeout=TIMEOUT_S)
            if message is None:
                raise ConnectionError(f"the controller closed the connection: {self._end}")
            if message[0] == wanted:
                return message[1]

    def described(self) -> None:
        """Waits until the switch has described its ports: what it sends before, the manager reads before that."""
        assert self._described.wait(TIMEOUT_S), "nobody has asked for the ports"

    def closed(self) -> None:
        """Waits until the controller has closed the connection."""
        while self._messages.get(timeout=TIMEOUT_S) is not None:
            pass

    def _read(self) -> None:
        buffer = b""
        try:
            while more := self.socket.recv(65536):
                buffer += more
                while len(buffer) >= 8 and len(buffer) >= (length := int.from_bytes(buffer[2:4], "big")):
                    message, buffer = buffer[:length], buffer[length:]
                    _, kind, _, xid = struct.unpack("!BBHI", message[:8])
                    self._messages.put((kind, message[8:]))
                    self._answer(kind, xid, message[8:])
        except OSError as error:
            self._end = str(error)
        self._messages.put(None)

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        if kind == FEATURES_REQUEST:
            self.send(FEATURES_REPLY, struct.pack("!QIBB2xII", self.dpid, 0, 1, 0, 0, 0), xid)
        elif kind == ECHO_REQUEST:
            self.send(ECHO_REPLY, body, xid)
        elif kind == BARRIER_REQUEST:
            self.send(BARRIER_REPLY, b"", xid)
        elif kind == MULTIPART_REQUEST and body[:2] == struct.pack("!H", PORT_DESC):
            # Two parts.
            for more, numbers in ((1, (1,)), (0, (2, 3))):
                ports = b"".join(struct.pack("!I60x", number) for number in numbers)
                self.send(MULTIPART_REPLY, struct.pack("!HH4x", PORT_DESC, more) + ports, xid)
            self._described.set()
