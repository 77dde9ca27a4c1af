"""Numbered datagrams, counted where they arrive. Runs inside hosts: datagrams.py send ADDRESS PORT INTERVAL_S, and
datagrams.py receive PORT, which says when it is ready. Both end at SIGTERM; the sender prints how many it has sent, the receiver how many it has
received and the numbers of those that are missing below the highest."""

import signal
import socket
import struct
import sys
import time

NUMBER = struct.Struct("!Q")
# Of Linux, for root; Python does not name it.
SO_RCVBUFFORCE = 33

# How often the receiver looks whether it is to end.
LOOK_S = 0.1
# What arrives while the receiver waits for a processor is kept, so that what is missing was lost on the way.
RECEIVE_BUFFER_BYTES = 16 << 20

ended = False


def end(*_):
    """Between two datagrams, never within one: the counts are to be right."""
    global ended
    ended = True


def send(address, port, interval_s):
    number = 0
    began = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while not ended:
            sender.sendto(NUMBER.pack(number), (address, int(port)))
            number += 1
            time.sleep(max(0.0, began + number * float(interval_s) - time.monotonic()))
    print(number)


def receive(port):
    seen = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
        receiver.bind(("", int(port)))
        receiver.settimeout(LOOK_S)
        print("ready", flush=True)
        while not ended:
            try:
                seen.add(NUMBER.unpack(receiver.recv(NUMBER.size))[0])
            except TimeoutError:
                pass
    missing = sorted(set(range(max(seen, default=-1) + 1)) - seen)
    print(len(seen), *missing)


def main():
    signal.signal(signal.SIGTERM, end)
    what, *arguments = sys.argv[1:]
    {"send": send, "receive": receive}[what](*arguments)


if __name__ == "__main__":
    main()
