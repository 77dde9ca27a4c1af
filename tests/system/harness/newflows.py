"""Begins new flows all the time. Runs inside hosts: newflows.py answer PORT, and newflows.py begin ADDRESS PORT INTERVAL_S.

Each flow is a datagram from a port of its own, which is answered. One without an answer is sent again. At SIGTERM the
sender waits for what is missing, and prints the number of flows begun, of those answered at once, and of those never
answered."""

import select
import signal
import socket
import sys
import time

# A flow without an answer sends again after this time, so often.
AGAIN_S = 1.0
ATTEMPTS = 10
BYTES = 64

ended = False


def end(*_):
    global ended
    ended = True


def answer(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", int(port)))
        print("ready", flush=True)
        while True:
            data, peer = server.recvfrom(BYTES)
            server.sendto(data, peer)


def begin(address, port, interval_s):
    waiting, begun, first, never = {}, 0, 0, 0
    next_at = time.monotonic()
    while waiting or not ended:
        now = time.monotonic()
        if not ended and now >= next_at:
            next_at += float(interval_s)
            flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            flow.connect((address, int(port)))
            flow.send(b"flow")
            begun += 1
            waiting[flow] = (now, 1)
        for flow in select.select(list(waiting), [], [], 0.001)[0]:
            flow.recv(BYTES)
            first += waiting.pop(flow)[1] == 1
            flow.close()
        for flow, (sent, attempts) in list(waiting.items()):
            if now - sent < AGAIN_S:
                continue
            if attempts == ATTEMPTS:
                never += 1
                del waiting[flow]
                flow.close()
                continue
            flow.send(b"again")
            waiting[flow] = (now, attempts + 1)
    print(begun, first, never)


def main():
    what, *arguments = sys.argv[1:]
    if what == "begin":
        signal.signal(signal.SIGTERM, end)
    {"answer": answer, "begin": begin}[what](*arguments)


if __name__ == "__main__":
    main()
