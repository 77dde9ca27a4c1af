"""A slow way to servers: each answer arrives late."""

import socket
import threading
import time

READ_BYTES = 1 << 16


class SlowWay:
    """Passes connections to `port` on to `target`, an (address, port). What the target sends arrives after `delay_s`, which
    may change at any time."""

    def __init__(self, port, target):
        self.target, self.delay_s = target, 0.0
        self.listener = socket.create_server(("", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            for source, sink, is_late in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, sink, is_late), daemon=True).start()

    def _pass(self, source, sink, is_late):
        try:
            while got := source.recv(READ_BYTES):
                if is_late:
                    time.sleep(self.delay_s)
                sink.sendall(got)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
