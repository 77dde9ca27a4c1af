"""Machines on a network of their own: network namespaces on a bridge, in the namespace of a test. Links between them can
be cut, in both directions or in one.

The test's own namespace is a machine too, on which Open vSwitch runs. Each machine has 16 addresses of 192.0.2.0/24.
"""

import subprocess
from pathlib import Path

LIMIT_S = 30
BRIDGE = "control"
BLOCK_BITS = 4
NAMESPACES = Path("/run/netns")


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"`{' '.join(words)}` failed with {done.returncode}: {done.stderr}")
    return done.stdout


class Machine:
    """A machine. Its first address is `address`, and `addresses(n)` the n-th one after it."""

    def __init__(self, name, place, prefix=()):
        self.name = name
        self.first = (place << BLOCK_BITS) + 1
        self.block = f"192.0.2.{place << BLOCK_BITS}/{32 - BLOCK_BITS}"
        self.address = f"192.0.2.{self.first}"
        # Words in front of a command that runs on the machine.
        self.prefix = list(prefix)

    def alias(self, number):
        """Another address of the machine, from 1."""
        return f"192.0.2.{self.first + number}"

    def run(self, *words):
        return run(*self.prefix, *words)


class Machines:
    """All machines of a test. The kernel ends them with its namespaces."""

    def __init__(self):
        # The names of namespaces are files, which must not be seen outside.
        NAMESPACES.mkdir(exist_ok=True)
        run("mount", "-t", "tmpfs", "none", str(NAMESPACES))
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        self.switches = Machine("switches", 0)
        self.machines = [self.switches]
        self._address(self.switches, BRIDGE)

    def add(self, name):
        """One more machine."""
        machine = Machine(name, len(self.machines), ["ip", "netns", "exec", name])
        self.machines.append(machine)
        run("ip", "netns", "add", name)
        run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"to-{name}", "master", BRIDGE, "up")
        machine.run("ip", "link", "set", "lo", "up")
        self._address(machine, "eth0")
        return machine

    @staticmethod
    def _address(machine, interface):
        machine.run("ip", "link", "set", interface, "up")
        for number in range((1 << BLOCK_BITS) - 2):
            machine.run("ip", "address", "add", f"{machine.alias(number)}/24", "dev", interface)

    @staticmethod
    def unplug(machine):
        """Takes its cable out."""
        run("ip", "link", "set", f"to-{machine.name}", "down")

    @staticmethod
    def plug(machine):
        run("ip", "link", "set", f"to-{machine.name}", "up")

    @staticmethod
    def drop(source, target):
        """Drops all packets from one machine to another, without a sign to either. The other direction works."""
        target.run("iptables", "-A", "INPUT", "-s", source.block, "-j", "DROP")

    def cut(self, one, other):
        """Drops all packets between two machines."""
        self.drop(one, other)
        self.drop(other, one)

    def heal(self):
        """Ends all cuts by `drop` and `cut`."""
        for machine in self.machines:
            machine.run("iptables", "-F", "INPUT")
