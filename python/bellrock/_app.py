"""What apps are written against: `App`, `Handler`, and names for numbers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, Final, Literal, TypeAlias

from ._native import (
    ErrorMessage,
    FlowRemoved,
    FlowStats,
    Match,
    Network,
    PacketIn,
    PacketIns,
    PortStatus,
    Switch,
    Verdict,
)

_log = logging.getLogger("bellrock")


class Handler:
    """What an app does at one switch. Each method is an event.

    It is optional: any object with some of these methods is a handler. A method that raises takes
    back what it wrote for that event. The exception is logged with its traceback, and counted. Ten in
    a minute disable the app.
    """

    # Methods are looked up once for each switch, and events without one cost nothing. So this class
    # must not have them: here they are only described.
    adopt: Callable[[Switch, FlowStats], bool]
    """A flow that an earlier run of this app left in the switch. Returns whether it may stay; it is
    removed otherwise. All are asked about right after `App.switch_up`, before all other events."""

    packet_in: Callable[[Switch, PacketIn], Verdict | None]
    """A packet for the controller. Returning `Verdict.PASS` gives it to the next app."""

    packet_ins: Callable[[Switch, PacketIns], Sequence[PacketIn] | None]
    """Packets that came together, instead of `packet_in`. Returns those for the next app."""

    port_status: Callable[[Switch, PortStatus], object]
    """A port was added, removed or changed. The switch already shows the change."""

    flow_removed: Callable[[Switch, FlowRemoved], object]
    """A flow was removed: of any app, if it was installed with `send_flow_removed`."""

    error: Callable[[Switch, int, ErrorMessage], object]
    """The switch refused the message of this app with this id."""

    unanswered: Callable[[Switch, int], object]
    """A request of this app with this id got no answer."""

    barrier: Callable[[Switch, int], object]
    """Everything before the barrier with this id is processed."""

    tick: Callable[[Switch], object]
    """A second has passed."""

    switch_down: Callable[[Switch], object]
    """The switch is gone. Nothing can be sent any more."""


EVENTS: Final = (
    "adopt",
    "packet_in",
    "packet_ins",
    "port_status",
    "flow_removed",
    "error",
    "unanswered",
    "barrier",
    "tick",
    "switch_down",
)
"""The names of the methods of a handler."""


class App(Handler):
    """An app: it makes a handler for each switch that comes up.

    >>> class Hub(App):
    ...     def packet_in(self, switch, packet):
    ...         switch.packet_out(packet, Port.FLOOD)

    An app whose `switch_up` returns nothing handles the events of all switches itself.
    """

    name: str
    """Its name, in logs and as the origin of its flows. By default the name of the class."""

    needs: ClassVar[Sequence[Literal["topology", "hosts", "paths"]]] = ()
    """Services that it reads: links, hosts, shortest paths."""

    sees: Match | Sequence[Match] | None = None
    """Packets that it must see, whatever the apps behind it install: one match or several. Flows of the
    apps behind never carry these packets past it, unless it allows them with `Switch.allow`. An empty list
    says that it needs none; without a word, the controller warns if an app behind could take its packets
    away."""

    forwards: ClassVar[Literal["unknown", "all", "selected", "nothing"]] = "unknown"
    """Which packets it forwards, to check the order of the apps."""

    keeps_flows: ClassVar[bool] = False
    """Whether flows of an earlier run stay in the switches, for desired state."""

    adopts_flows: bool = False
    """Whether its handlers decide about each flow of an earlier run, with `adopt`. An app with a method
    `adopt` of its own need not set it."""

    wants_packet_ins: ClassVar[bool] = True
    """Whether packets that match no flow are sent to the controller for it."""

    scope: ClassVar[Literal["per_switch", "once"]] = "per_switch"
    """Where `start` and the tasks of `spawn` run in a cluster: "per_switch" at each node, "once" at the node that
    leads. The events of switches come at the master of each switch in both cases. A controller that is alone
    leads."""

    counters: Mapping[str, str] = {}
    """Names of counters that it counts with `Switch.count`, and what each counts."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def start(self, network: Network) -> None:
        """The controller has started. No switch is up yet.

        With `scope = "once"`, in a cluster: this node leads now, and `network.term` is the number of its
        term. The tasks of `spawn` end with the term; a later term begins with another call."""

    def switch_up(self, network: Network, switch: Switch) -> object:
        """A switch is up. Returns its handler; without one, the app handles its events."""
        return None

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs a coroutine beside the handlers. Its exceptions are logged.

        It is cancelled when the file of the app is loaded again, and with `scope = "once"` when another node
        may lead."""
        network: Network | None = self.__dict__.get("_network_of_term")
        if network is not None:
            coroutine = _InTerm(coroutine, network)
        task = asyncio.get_running_loop().create_task(coroutine)
        tasks: set[asyncio.Task[Any]] = self.__dict__.setdefault("_tasks", set())
        tasks.add(task)

        def done(task: asyncio.Task[Any]) -> None:
            tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("a task of app %s failed", self.name, exc_info=error)

        task.add_done_callback(done)
        return task


class _InTerm(Coroutine[Any, Any, Any]):
    """A coroutine that does not go on after the end of a term."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], network: Network) -> None:
        self._coroutine = coroutine
        self._network = network

    def send(self, value: Any) -> Any:
        if self._network.is_term_over:
            self._coroutine.close()
            raise StopIteration
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise TypeError("asyncio runs it as a task")


def begin(app: App, network: Network) -> None:
    """Starts an app: with the controller, in each term of this node, and again when its file has changed."""
    app.__dict__["_network_of_term"] = None if network.term is None else network
    app.start(network)


def end(app: App) -> None:
    """Ends the tasks of an app."""
    for task in list(app.__dict__.get("_tasks", ())):
        task.cancel()


class FunctionApp(App):
    """The app of a function: it handles the packets of all switches."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.packet_in = function


class PerSwitchApp(App):
    """The app of a class: each switch gets an instance."""

    def __init__(self, make: type[Any]) -> None:
        self.name = make.__name__
        self.counters = getattr(make, "counters", {})
        self.sees = getattr(make, "sees", None)
        self.adopts_flows = hasattr(make, "adopt")
        self.made = make

    def switch_up(self, network: Network, switch: Switch) -> object:
        return self.made()


OWN_APPS: Final = ("hub", "learning", "routing")
"""Names of the apps of Bellrock's own that a program may give."""

AnyApp: TypeAlias = App | Callable[..., Any] | str
"""What is an app: an instance of `App`; a function, which gets the packets of all switches; a class
without arguments, of which each switch gets an instance; or the name of an app of Bellrock's own."""


class Port:
    """Reserved port numbers (OpenFlow 1.3.5 §7.2.1). Ports are plain numbers."""

    IN_PORT: Final = 0xFFFF_FFF8
    """The port that the packet came in by."""
    TABLE: Final = 0xFFFF_FFF9
    """The flow tables; in packet_out only."""
    NORMAL: Final = 0xFFFF_FFFA
    """The switch's own forwarding, without OpenFlow."""
    FLOOD: Final = 0xFFFF_FFFB
    """All ports of the spanning tree but the ingress port."""
    ALL: Final = 0xFFFF_FFFC
    """All ports but the ingress port."""
    CONTROLLER: Final = 0xFFFF_FFFD
    """The controller, as packet_in."""
    LOCAL: Final = 0xFFFF_FFFE
    """The switch's own network stack."""
    ANY: Final = 0xFFFF_FFFF
    """No particular port."""


class EtherType(IntEnum):
    """Ethernet types, for `eth_type`."""

    IPV4 = 0x0800
    ARP = 0x0806
    VLAN = 0x8100
    QINQ = 0x88A8
    IPV6 = 0x86DD
    MPLS = 0x8847
    LLDP = 0x88CC


class IpProto(IntEnum):
    """IP protocols, for `ip_proto`."""

    ICMP = 1
    IGMP = 2
    TCP = 6
    UDP = 17
    ICMPV6 = 58
    SCTP = 132
