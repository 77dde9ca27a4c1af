"""Hostile peers, in separate processes.

        python3 -m harness.attackers crowd SILENT GARBAGE     SILENT connections without data, and GARBAGE with random
    bytes
        python3 -m harness.attackers flood VERSION [CERTIFICATE KEY AUTHORITY]      one switch that fills its link with
    packet-ins, by TLS if it gets files for that

Each prints a line when it has started, and continues until it is ended. They run at the lowest priority: real attackers
use their own machines, and the tests measure the controller, not how this machine shares its cores.
"""

import os
import random
import resource
import selectors
import socket
import struct
import sys
import time

from .fakeswitch import FakeSwitch

PORT = 6653
TICK_S = 0.05
# Time until a closed connection is opened again.
RETURN_S = 1.0
MAX_NONSENSE_BYTES = 1500
SEED = 20100
FLOOD_DPID = 0xF100D
REPORT_S = 1
# A full control link of 1 Gb/s: some 1.4 million packet-ins a second. Over loopback there would be many times more,
# which would test how this machine shares its memory and cores.
LINK_BYTES_PER_S = 125_000_000


class Crowd:
    """Connections that are opened again when the controller closes them."""

    def __init__(self, silent, garbage):
        self.selector = selectors.DefaultSelector()
        self.random = random.Random(SEED)
        self.returning = []
        self.talkers = set()
        for index in range(silent + garbage):
            self.join(talks=index >= silent)

    def join(self, talks):
        peer = socket.socket()
        peer.setblocking(False)
        peer.connect_ex(("127.0.0.1", PORT))
        self.selector.register(peer, selectors.EVENT_READ, talks)
        if talks:
            self.talkers.add(peer)

    def leave(self, peer, talks):
        self.selector.unregister(peer)
        self.talkers.discard(peer)
        peer.close()
        self.returning.append((time.monotonic() + RETURN_S, talks))

    def nonsense(self):
        """Random bytes; half of them follow something like a header, so that they get further."""
        noise = self.random.randbytes(self.random.randint(1, MAX_NONSENSE_BYTES))
        if self.random.random() < 0.5:
            return noise
        return struct.pack("!BBHI", self.random.choice((1, 4)), self.random.randint(0, 30),
                           self.random.randint(0, 2000), 1) + noise

    def tick(self):
        for key, _ in self.selector.select(TICK_S):
            try:
                open_still = bool(key.fileobj.recv(4096))
            except OSError:
                open_still = False
            if not open_still:
                self.leave(key.fileobj, key.data)
        for peer in list(self.talkers):
            try:
                peer.send(self.nonsense())
            except BlockingIOError:
                pass
            except OSError:
                self.leave(peer, True)
        now = time.monotonic()
        due = [talks for at, talks in self.returning if at <= now]
        self.returning = [(at, talks) for at, talks in self.returning if at > now]
        for talks in due:
            self.join(talks)


def crowd(silent, garbage):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    peers = Crowd(silent, garbage)
    peers.tick()
    print(f"{silent} silent, {garbage} talking nonsense (seed {SEED})", flush=True)
    while True:
        began = time.monotonic()
        peers.tick()
        time.sleep(max(0, began + TICK_S - time.monotonic()))


def flood(version, *tls):
    switch = FakeSwitch(version, FLOOD_DPID, PORT, tls=tls)
    switch.connect()
    print("flooding", flush=True)
    while True:
        sent, answered = switch.blast(REPORT_S, LINK_BYTES_PER_S)
        print(f"{sent} packet-ins sent, {answered} bytes of answers, in {REPORT_S} s", flush=True)


def main():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if sys.argv[1] == "crowd":
        crowd(int(sys.argv[2]), int(sys.argv[3]))
    else:
        flood(*sys.argv[2:])


if __name__ == "__main__":
    main()
