"""Sends numbered datagrams, and counts them at their destination. Runs inside hosts: datagrams.py send ADDRESS PORT
INTERVAL_S, and datagrams.py receive PORT, which reports when it is ready. Both end at SIGTERM. The sender prints the
number of datagrams sent. The receiver prints the number received, and the missing numbers below the highest."""

import signal
import socket
import struct
import sys
import time

NUMBER = struct.Struct("!Q")
# A constant of Linux, for root. Python has no name for it.
SO_RCVBUFFORCE = 33

# Time between two checks of the receiver whether to end.
LOOK_S = 0.1
# Keeps datagrams while the receiver waits for a processor, so that missing ones were lost in the network.
RECEIVE_BUFFER_BYTES = 16 << 20

ended = False


def end(*_):
    """Ends between two datagrams, so that the counts are right."""
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
