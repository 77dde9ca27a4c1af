"""Tests of apps: networks of emulated switches and hosts on a virtual clock.

>>> import bellrock
>>> def hub(switch, packet):
...     switch.packet_out(packet, bellrock.Port.FLOOD)
>>> lab = Lab(tree(2, 3), hub, seed=42)
>>> lab.ping("h1", "h9")
True

Nothing needs root, and nothing takes time: an hour in the lab is over in milliseconds. All randomness
comes from the seed, so a test that fails once fails again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from ipaddress import IPv4Address
from typing import Literal

from ._app import AnyApp
from ._lab_loop import LabLoop
from ._native import MacAddr, NativeLab, Network, Packet
from ._run import chain, report

_log = logging.getLogger("bellrock")

__all__ = [
    "Fault",
    "Lab",
    "Pings",
    "TcpReport",
    "Topology",
    "fat_tree",
    "leaf_spine",
    "linear",
    "ring",
    "single",
    "tree",
]

Fault = Literal[
    "message_delay",
    "switch_order",
    "connection_reset",
    "connection_silence",
    "restart_with_tables",
    "restart_without_tables",
    "link_flap",
]
"""A kind of fault: see `Lab.inject`."""


class Topology:
    """A network of switches s1, s2, … and hosts h1, h2, …"""

    def __init__(self, text: str, *, is_file: bool = False) -> None:
        self._text = text
        self._is_file = is_file

    @classmethod
    def parse(cls, text: str) -> Topology:
        """Reads the lines of a topology file: `switch s1`, `host h1`, `link h1 s1`."""
        return cls(text, is_file=True)

    def __repr__(self) -> str:
        return f"Topology({self._text!r})"


def single(hosts: int) -> Topology:
    """One switch with hosts."""
    return Topology(f"single:{hosts}")


def linear(switches: int, hosts: int = 1) -> Topology:
    """Switches in a row, each with hosts."""
    return Topology(f"linear:{switches},{hosts}")


def ring(switches: int, hosts: int = 1) -> Topology:
    """Switches in a ring, each with hosts."""
    return Topology(f"ring:{switches},{hosts}")


def tree(depth: int, fanout: int) -> Topology:
    """A tree of switches, with hosts at the leaves."""
    return Topology(f"tree:{depth},{fanout}")


def fat_tree(k: int) -> Topology:
    """The fat-tree of switches with `k` ports."""
    return Topology(f"fat-tree:{k}")


def leaf_spine(leaves: int, spines: int, hosts: int) -> Topology:
    """Leaf switches with hosts each, all linked to all spines."""
    return Topology(f"leaf-spine:{leaves},{spines},{hosts}")


class Pings:
    """The result of pings between all hosts. It prints like Mininet's `pingall`, and is true if every
    ping was answered."""

    def __init__(self, lost: list[tuple[str, str]], text: str) -> None:
        self.is_complete = not lost
        self.lost = lost
        self._text = text

    def __bool__(self) -> bool:
        return self.is_complete

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Pings, {len(self.lost)} lost>"


class TcpReport:
    """What became of a flow like TCP's. It is true if all bytes were acknowledged."""

    def __init__(self, bytes: int, is_done: bool) -> None:
        self.bytes = bytes
        self.is_done = is_done

    def __bool__(self) -> bool:
        return self.is_done

    def __repr__(self) -> str:
        return f"<TcpReport, {self.bytes} bytes{'' if self.is_done else ', not done'}>"


def _report_disabled(exceptions: list[BaseException], name: str) -> None:
    text = (
        f"APP DISABLED: {name} raised too many exceptions within a minute. It gets no more events; its flows stay; "
        "the other apps go on"
    )
    exceptions.append(RuntimeError(text))
    _log.error("%s", text)


def _report(exceptions: list[BaseException], name: str, error: BaseException) -> None:
    exceptions.append(error)
    report(name, error)


class Lab:
    """An emulated network, and a controller with these apps. It starts at once, and the apps have all
    switches.

    Apps that a controller would not start are an `Error` here too: two of one name, or an order in which
    one can do nothing. `checked=False` runs them, for tests of parts.

    Names of switches are s1, s2, …, of hosts h1, h2, … With several hosts to a switch, `linear` and `ring`
    call them h1s1, h2s1, …, and the lines of `Topology.parse` name them as they like: `lab.hosts` has the
    names. One that does not exist is a `ValueError`.
    """

    def __init__(
        self,
        topology: Topology,
        *apps: AnyApp,
        seed: int = 1,
        version: Literal["1.0", "1.3"] | None = None,
        loop_free: bool = False,
        checked: bool = True,
    ) -> None:
        if not isinstance(topology, Topology):
            raise TypeError(f"{topology!r} is no topology; write Lab(single(2), app)")
        self.exceptions: list[BaseException] = []
        """Exceptions of handlers and tasks, in the order in which they were raised."""
        self._native = NativeLab(
            topology._text,
            topology._is_file,
            chain(apps),
            # Not a method: the native half would keep this lab alive.
            report=partial(_report, self.exceptions),
            report_disabled=partial(_report_disabled, self.exceptions),
            # It has what coroutines of apps need, and nothing else.
            event_loop=LabLoop(self.exceptions),  # type: ignore[abstract]
            seed=seed,
            version=version,
            loop_free=loop_free,
            checked=checked,
        )
        self.warnings: list[str] = self._native.warnings()
        """What a controller warns about when it starts these apps. The log has it too."""
        for warning in self.warnings:
            _log.warning("%s", warning)

    @property
    def now(self) -> float:
        """Time since the start of the lab, in seconds."""
        return self._native.now

    @property
    def network(self) -> Network:
        """The network, as the controller sees it."""
        return self._native.network()

    @property
    def hosts(self) -> list[str]:
        """Names of the hosts."""
        return self._native.hosts()

    @property
    def switches(self) -> dict[str, int]:
        """Datapath ids of the switches, by name."""
        return dict(self._native.switches())

    def mac(self, host: str) -> MacAddr:
        """Returns the Ethernet address of a host."""
        return self._native.addresses(host)[0]

    def ip(self, host: str) -> IPv4Address:
        """Returns the IPv4 address of a host."""
        return self._native.addresses(host)[1]

    def ping(self, source: str, destination: str) -> bool:
        """Pings once, with ARP if necessary. Returns whether it was answered."""
        return self._native.ping(source, destination)

    def ping_address(self, source: str, ip: IPv4Address | str) -> bool:
        """Pings an address, such as a virtual one. Returns whether it was answered."""
        return self._native.ping_address(source, ip)

    def ping_all(self) -> Pings:
        """Pings between all hosts, all at the same time."""
        return Pings(*self._native.ping_all())

    def udp(self, source: str, destination: str, count: int = 10, interval: float = 0.01) -> int:
        """Sends datagrams, one each `interval` seconds. Returns how many arrived."""
        return self._native.udp(source, destination, count, interval)

    def tcp(self, source: str, destination: str, bytes: int = 10_000) -> TcpReport:
        """Sends bytes over a flow like TCP's, to port 5001."""
        return TcpReport(*self._native.tcp(source, destination, bytes))

    def tcp_to_address(self, source: str, ip: IPv4Address | str, bytes: int = 10_000) -> TcpReport:
        """Sends bytes over a flow like TCP's to an address, such as a virtual one."""
        return TcpReport(*self._native.tcp_to_address(source, ip, bytes))

    def send(self, source: str, frame: bytes) -> None:
        """Sends a frame, from its Ethernet header on."""
        self._native.send_frame(source, frame)

    def capture(self, host: str) -> list[Packet]:
        """Captures the frames that a host receives from now on. Returns those captured so far."""
        return self._native.capture(host)

    def run_for(self, seconds: float) -> None:
        """Lets time pass."""
        self._native.run_for(seconds)

    def run_until(
        self, condition: Callable[[], bool], maximum: float = 60.0, step: float = 0.01
    ) -> bool:
        """Lets time pass until the condition holds, at most this many seconds. Returns whether it
        holds."""
        end = self.now + maximum
        while not condition():
            if self.now >= end:
                return False
            self.run_for(step)
        return True

    def link_down(self, a: str, b: str) -> None:
        """Takes the link between two nodes down. Both ends notice."""
        self._native.link_down(a, b)

    def link_up(self, a: str, b: str) -> None:
        """Takes the link between two nodes up again."""
        self._native.link_up(a, b)

    def move_host(self, host: str, switch: str) -> None:
        """Moves a host to a free port of another switch."""
        self._native.move_host(host, switch)

    def restart(self, switch: str, *, keep_tables: bool = False) -> None:
        """Restarts a switch."""
        self._native.restart(switch, keep_tables)

    def disconnect(self, switch: str) -> None:
        """Keeps a switch from its controller, until `reconnect`."""
        self._native.disconnect(switch)

    def reconnect(self, switch: str) -> None:
        """Lets a switch connect again."""
        self._native.reconnect(switch)

    def silence(self, switch: str) -> None:
        """Lets the connection of a switch carry no more bytes, without telling either end."""
        self._native.silence(switch)

    def is_up(self, switch: str) -> bool:
        """Returns whether the apps have this switch."""
        return self._native.is_up(switch)

    def inject(self, seed: int, *kinds: Fault, seconds: float = 30.0) -> str:
        """Draws faults of these kinds, or of all, and lets them happen within some seconds. Returns
        the plan, and lets time pass until it is over."""
        plan, lasts = self._native.inject(seed, list(kinds), seconds)
        self.run_for(lasts)
        return plan

    def flows(self, switch: str) -> list[str]:
        """Returns the flows of a switch, as `ovs-ofctl dump-flows` shows them."""
        return self._native.flows(switch)

    def messages(self, switch: str) -> list[str]:
        """Returns the last messages between a switch and the controller, the oldest first."""
        return self._native.messages(switch)

    def paths(self, source: str, destination: str) -> list[list[str]]:
        """Returns the paths that packets took, each once, as names of nodes."""
        return self._native.paths(source, destination)

    def findings(self) -> list[str]:
        """Returns loops and black holes that packets between hosts would meet now."""
        return self._native.findings()

    def duplicates(self) -> list[tuple[str, int]]:
        """Returns the hosts that received a frame more than once, with the number of duplicates."""
        return self._native.duplicates()

    def app_counter(self, app: str, counter: str) -> int | None:
        """Returns the sum of a counter of the app with this name over all switches."""
        return self._native.app_counter(app, counter)

    def counter(self, name: str) -> int:
        """Returns a counter of the controller, such as "packet_ins"."""
        return self._native.counter(name)

    @property
    def digest(self) -> int:
        """A digest of every frame and message, with their times: equal runs have the same."""
        return self._native.digest()
