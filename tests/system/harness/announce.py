"""Sends one gratuitous ARP, as a host broadcasts when it comes up. Runs inside a host: announce.py INTERFACE MAC IP."""

import socket
import struct
import sys

ETH_P_ARP = 0x0806
BROADCAST = b"\xff" * 6


def gratuitous_arp(mac, ip):
    """An ARP request of `ip` for itself, as a whole frame (RFC 5227, section 3)."""
    arp = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, ip, bytes(6), ip)
    return BROADCAST + mac + struct.pack("!H", ETH_P_ARP) + arp


def main():
    interface, mac, ip = sys.argv[1:]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((interface, 0))
        raw.send(gratuitous_arp(bytes.fromhex(mac.replace(":", "")), socket.inet_aton(ip)))


if __name__ == "__main__":
    main()
