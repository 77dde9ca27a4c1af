"""Somebody between a switch and its controller, who reads or changes what they say to each other."""

import socket
import struct
import threading

HEADER_BYTES = 8
READ_BYTES = 1 << 16
TLS_APPLICATION_DATA = 23
TLS_HEADER_BYTES = 5


class Middle:
    """Passes connections on to `target`. `seen`: all bytes, of both directions.

    `to_switch` and `to_controller` change what passes: functions of whole messages of OpenFlow, or of whole records of
    TLS with `records`. They return the bytes to send.
    """

    def __init__(self, port, target, to_switch=None, to_controller=None, records=False):
        self.target, self.records = target, records
        self.change = {"switch": to_switch, "controller": to_controller}
        self.seen = bytearray()
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                switch, _ = self.listener.accept()
            except OSError:
                return
            try:
                controller = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                switch.close()
                continue
            for source, sink, way in ((switch, controller, "controller"), (controller, switch, "switch")):
                threading.Thread(target=self._pass, args=(source, sink, self.change[way]), daemon=True).start()

    def _pass(self, source, sink, change):
        waiting = b""
        try:
            while got := source.recv(READ_BYTES):
                self.seen += got
                waiting += got
                while length := self._first(waiting):
                    message, waiting = waiting[:length], waiting[length:]
                    sink.sendall(change(message) if change else message)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _first(self, waiting):
        """Length of the first message or record, if it is whole."""
        head = TLS_HEADER_BYTES if self.records else HEADER_BYTES
        if len(waiting) < head:
            return 0
        length = struct.unpack_from("!H", waiting, 3 if self.records else 2)[0] + (head if self.records else 0)
        return length if len(waiting) >= length else 0
