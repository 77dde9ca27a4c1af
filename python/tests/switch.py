"""A switch of OpenFlow 1.0 with a socket: as little as a controller needs."""

from __future__ import annotations

import socket
import struct
from queue import Queue
from threading import Thread
from types import TracebackType

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY = 0, 1, 2, 3
FEATURES_REQUEST, FEATURES_REPLY = 5, 6
PACKET_IN, PACKET_OUT, FLOW_MOD = 10, 13, 14
STATS_REQUEST, STATS_REPLY, BARRIER_REQUEST, BARRIER_REPLY = 16, 17, 18, 19
DESC, FLOW = 0, 1

_DESC_BYTES = 256 * 3 + 32 + 256
_TIMEOUT = 20.0


class SwitchEnd:
    """One connection. A thread answers what a switch answers by itself, and keeps the rest."""

    def __init__(self, address: str, dpid: int = 1) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT)
        self._dpid = dpid
        self._messages: Queue[tuple[int, bytes] | None] = Queue()
        self.send(HELLO, b"")
        Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> SwitchEnd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, kind: int, body: bytes, xid: int = 0) -> None:
        self._socket.sendall(struct.pack("!BBHI", 1, kind, 8 + len(body), xid) + body)

    def packet_in(self, data: bytes, in_port: int = 1) -> None:
        self.send(PACKET_IN, struct.pack("!IHHBx", 0xFFFF_FFFF, len(data), in_port, 0) + data)

    def receive(self, wanted: int) -> bytes:
        """Returns the body of the next message of this type."""
        while True:
            message = self._messages.get(timeout=_TIMEOUT)
            if message is None:
                raise ConnectionError("the controller closed the connection")
            if message[0] == wanted:
                return message[1]

    def _read(self) -> None:
        buffer = b""
        try:
            while more := self._socket.recv(65536):
                buffer += more
                while len(buffer) >= 8 and len(buffer) >= (length := _length(buffer)):
                    message, buffer = buffer[:length], buffer[length:]
                    _, kind, _, xid = struct.unpack("!BBHI", message[:8])
                    self._messages.put((kind, message[8:]))
                    self._answer(kind, xid, message[8:])
        except OSError:
            pass
        self._messages.put(None)

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        if kind == FEATURES_REQUEST:
            self.send(FEATURES_REPLY, struct.pack("!QIB3xII", self._dpid, 0, 1, 0, 0), xid)
        elif kind == ECHO_REQUEST:
            self.send(ECHO_REPLY, body, xid)
        elif kind == BARRIER_REQUEST:
            self.send(BARRIER_REPLY, b"", xid)
        elif kind == STATS_REQUEST:
            (stats,) = struct.unpack("!H", body[:2])
            answer = bytes(_DESC_BYTES) if stats == DESC else b""
            self.send(STATS_REPLY, struct.pack("!HH", stats, 0) + answer, xid)


class LateSwitch(SwitchEnd):
    """Does not report its flows until `report`, and sends a packet meanwhile."""

    def __init__(self, address: str, frame: bytes, in_port: int) -> None:
        self._packet = (frame, in_port)
        self._held: list[tuple[int, int]] = []
        super().__init__(address)

    def __enter__(self) -> LateSwitch:
        return self

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        is_flows = kind == STATS_REQUEST and struct.unpack("!H", body[:2])[0] == FLOW
        if not is_flows and not (self._held and kind == BARRIER_REQUEST):
            return super()._answer(kind, xid, body)
        self._held.append((kind, xid))
        if is_flows:
            self.packet_in(*self._packet)

    def report(self, flow_mods: list[bytes], seconds: int) -> None:
        """Reports the flows of these flow_mods, which are so old, and all else that was asked for."""
        held, self._held = self._held, []
        for kind, xid in held:
            if kind == BARRIER_REQUEST:
                self.send(BARRIER_REPLY, b"", xid)
            else:
                flows = b"".join(_flow_stats(flow_mod, seconds) for flow_mod in flow_mods)
                self.send(STATS_REPLY, struct.pack("!HH", FLOW, 0) + flows, xid)


def _flow_stats(flow_mod: bytes, seconds: int) -> bytes:
    """The flow of the body of a flow_mod, as a switch reports it (1.0 §5.3.5)."""
    matching, cookie, actions = flow_mod[:40], flow_mod[40:48], flow_mod[64:]
    _, idle, hard, priority = struct.unpack("!HHHH", flow_mod[48:56])
    head = struct.pack("!HBx", 88 + len(actions), 0) + matching
    times = struct.pack("!IIHHH6x", seconds, 0, priority, idle, hard)
    return head + times + cookie + struct.pack("!QQ", 0, 0) + actions


def _length(buffer: bytes) -> int:
    return int.from_bytes(buffer[2:4], "big")
