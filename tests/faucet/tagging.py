"""Tagged interfaces of hosts, for a kernel without 8021q. `without-8021q/ip` calls it, in the namespace of a host.

    python3 tagging.py link add link eth0 name eth0.100 type vlan id 100
    python3 tagging.py link set eth0.100 type vlan egress 0:1
    python3 tagging.py --batch FILE

The interface is one end of a pair. A program of eBPF takes the tag from frames of its VLAN that come to the parent, and passes
them to the pair. Another one gives the tag to frames that come from the pair, and passes them to the parent.
"""

import ctypes
import json
import os
import platform
import shlex
import struct
import subprocess
import sys
from pathlib import Path

WITHOUT_8021Q = Path(__file__).resolve().parent / "without-8021q"
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_LOAD, PROG_ATTACH = 5, 8
SCHED_CLS = 3
TCX_INGRESS = 46
# Behind no other program means: in front of all. So an older program that is in the way has no effect any more.
FIRST = 1 << 3
LOG_BYTES = 1 << 16

# Registers, and what a frame (`__sk_buff`) has at which byte.
R0, R1, R2, R3, R6 = 0, 1, 2, 3, 6
HAS_TAG, TAG = 20, 24
VLAN_PUSH, VLAN_POP, REDIRECT = 18, 19, 23
NEXT_PROGRAM = -1
VID_MASK = 0xFFF
PRIORITY_SHIFT = 13
# 0x8100 in the order of the network, as a number of this machine.
ETHERTYPE = int.from_bytes(b"\x81\x00", sys.byteorder)


def path(before):
    """A PATH with this `ip` in front, if the kernel makes no tagged interfaces. (None is made here: those of the loopback are refused
    for another reason.)"""
    words = ["ip", "link", "add", "link", "lo", "name", "lo.1", "type", "vlan", "id", "1"]
    is_missing = "Unknown device type" in subprocess.run(words, check=False, capture_output=True, text=True).stderr
    return os.pathsep.join([str(WITHOUT_8021Q), before]) if is_missing else before


def step(code, to=0, source=0, jump=0, value=0):
    return struct.pack("=BBhi", code, source << 4 | to, jump, value)


def move(to, value):
    return step(0xB7, to, value=value)


def copy(to, source):
    return step(0xBF, to, source)


def load(to, source, at):
    return step(0x61, to, source, at)


def call(helper):
    return step(0x85, value=helper)


END = step(0x95)


def pass_to(interface):
    return move(R1, interface) + move(R2, 0) + call(REDIRECT) + END


def untagging(vid, interface):
    """Passes frames of this VLAN to an interface, without their tag."""
    take = copy(R1, R6) + call(VLAN_POP) + pass_to(interface)
    steps = len(take) // 8
    return b"".join((
        copy(R6, R1),
        load(R2, R6, HAS_TAG), step(0x15, R2, jump=steps + 3, value=0),
        load(R2, R6, TAG), step(0x57, R2, value=VID_MASK), step(0x55, R2, jump=steps, value=vid),
        take, move(R0, NEXT_PROGRAM), END))


def tagging(tag, interface):
    """Passes all frames to an interface, with this tag."""
    return move(R2, ETHERTYPE) + move(R3, tag) + call(VLAN_PUSH) + pass_to(interface)


def bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(BPF_SYSCALL, command, attributes, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command}): {os.strerror(ctypes.get_errno())}")
    return result


def attach(interface, program):
    """Lets a program have all frames that come to an interface, before those that it has."""
    steps, licence, log = (ctypes.create_string_buffer(data, size) for data, size in ((program, len(program)), (b"GPL", 4), (b"", LOG_BYTES)))
    try:
        number = bpf(PROG_LOAD, struct.pack("=IIQQIIQ", SCHED_CLS, len(program) // 8, ctypes.addressof(steps), ctypes.addressof(licence), 1,
                                            LOG_BYTES, ctypes.addressof(log)))
    except OSError:
        print(log.value.decode(), file=sys.stderr)
        raise
    bpf(PROG_ATTACH, struct.pack("=IIIIIIQ", interface, number, TCX_INGRESS, FIRST, 0, 0, 0))
    os.close(number)


def ip(*words):
    return subprocess.run(["ip", *words], check=True, stdout=subprocess.PIPE).stdout


def described(name):
    return json.loads(ip("-j", "link", "show", "dev", name))[0]


def add(parent, name, vid):
    parent = described(parent)
    ip("link", "add", name, "address", parent["address"], "mtu", str(parent["mtu"]), "type", "veth")
    other = described(name)["link"]
    # The host does not see this end.
    ip("link", "set", other, "addrgenmode", "none", "arp", "off", "alias", f"{parent['ifname']} {vid}", "up")
    # As on all interfaces of hosts: the switch takes frames as they are.
    subprocess.run(["ethtool", "-K", name, "tx", "off"], check=True, stdout=subprocess.DEVNULL)
    index = described(other)["ifindex"]
    attach(parent["ifindex"], untagging(vid, index))
    attach(index, tagging(vid, parent["ifindex"]))


def set_priority(name, priority):
    other = described(described(name)["link"])
    parent, vid = other["ifalias"].split()
    attach(other["ifindex"], tagging(int(vid) | priority << PRIORITY_SHIFT, described(parent)["ifindex"]))


def perform(words):
    """Performs one command of `ip`."""
    command = [word for word in words if not word.startswith("-")]
    if command[:3] == ["link", "add", "link"] and command[6:9] == ["type", "vlan", "id"]:
        add(command[3], command[5], int(command[9]))
    elif command[:2] == ["link", "set"] and command[3:6] == ["type", "vlan", "egress"]:
        # The same priority for all frames is what Faucet's tests ask for.
        set_priority(command[2], int(command[6].split(":")[1]))
    else:
        ip(*words)


def main(*words):
    if words[0] == "--batch":
        with open(words[1]) as lines:
            for line in lines:
                if line.strip():
                    perform(shlex.split(line))
    else:
        perform(list(words))


if __name__ == "__main__":
    main(*sys.argv[1:])
