"""Counts the packets that the kernel drops because a program that is to read them does not get a core in time. A test of
lost packets subtracts them: they say nothing about the controller."""

import re
from pathlib import Path

from .openvswitch import command

# The packets that a socket has dropped, in the memory information of `ss`.
SOCKET_DROPS = re.compile(r"skmem:\([^)]*,d(\d+)\)")
# The socket of a switch for a port: protocol, state, two queues, and its interface.
SWITCH_PORT = re.compile(r":s\d+-eth\d+\b")


def kernel_drops():
    """Packets dropped up to now: by the sockets through which the switches read from their ports, and by the queues
    of all cores."""
    return _by_switch_ports() + _by_queues()


def _by_switch_ports():
    lines = command("ss", "--packet", "--memory", "--numeric", "--no-header", "--oneline").splitlines()
    return sum(int(count) for line in lines if SWITCH_PORT.search(line) for count in SOCKET_DROPS.findall(line))


def _by_queues():
    # Second column in hexadecimal: packets for which the queue of a core had no place.
    return sum(int(line.split()[1], 16) for line in Path("/proc/net/softnet_stat").read_text().splitlines())
