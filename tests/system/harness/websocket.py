"""A client of a WebSocket (RFC 6455): text messages of at most 64 KiB, in one frame each."""

import base64
import json
import os
import socket
import struct

LIMIT_S = 60
TEXT, CLOSE = 1, 8


class WebSocket:
    """An open one."""

    def __init__(self, host, port, path):
        self.socket = socket.create_connection((host, port), LIMIT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        status = self.file.readline().decode()
        if " 101 " not in status:
            raise AssertionError(f"{path} is no WebSocket: {status}")
        while self.file.readline().strip():
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack("!H", len(data))
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.socket.sendall(bytes([0x80 | TEXT]) + length + mask + masked)

    def receive(self):
        """The next text message."""
        while True:
            head, length = self.file.read(2)
            if length == 126:
                [length] = struct.unpack("!H", self.file.read(2))
            data = self.file.read(length)
            if head & 15 == CLOSE:
                raise AssertionError(f"the WebSocket is closed: {data}")
            if head & 15 == TEXT:
                return data.decode()

    def receive_json(self):
        return json.loads(self.receive())
