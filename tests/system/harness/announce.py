"""Sends gratuitous ARPs, as hosts broadcast when they come up. Runs inside a host:

        announce.py INTERFACE MAC IP                    one
        announce.py INTERFACE MAC IP COUNT PER_SECOND   of so many hosts, with this address and IP address and those after it
"""

import socket
import struct
import sys
import time

ETH_P_ARP = 0x0806
BROADCAST = b"\xff" * 6


def gratuitous_arp(mac, ip):
    """An ARP request of `ip` for itself, as a whole frame (RFC 5227, section 3)."""
    arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, ip, bytes(6), ip)
    return BROADCAST + mac + struct.pack("!H", ETH_P_ARP) + arp


def main():
    interface, mac, ip, *many = sys.argv[1:]
    count, per_second = map(int, many or (1, 1))
    mac, ip = int(mac.replace(":", ""), 16), int.from_bytes(socket.inet_aton(ip))
    began = time.monotonic()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((interface, 0))
        for number in range(count):
            time.sleep(max(0.0, began + number / per_second - time.monotonic()))
            raw.send(gratuitous_arp((mac + number).to_bytes(6), (ip + number).to_bytes(4)))


if __name__ == "__main__":
    main()
