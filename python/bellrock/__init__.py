"""Apps for the Bellrock OpenFlow controller.

An app is a function that gets packets, or a class with a method for each event::

    import bellrock

    def hub(switch, packet):
        switch.packet_out(packet, bellrock.Port.FLOOD)

    bellrock.run(hub)

`bellrock.lab` tests apps on an emulated network. Everything runs in one thread, so apps need no
locks; workers, which speak to the switches, have threads of their own and never wait for Python.
"""

from ._app import AnyApp, App, EtherType, Handler, IpProto, Port
from ._native import (
    Action,
    Arp,
    Bucket,
    Desired,
    Error,
    ErrorMessage,
    Ethernet,
    Event,
    EventStream,
    Flow,
    FlowRemoved,
    FlowStats,
    Group,
    Host,
    Icmp,
    Ip,
    Ipv4,
    Ipv6,
    Link,
    MacAddr,
    Match,
    Meter,
    MissedEvents,
    Network,
    Packet,
    PacketIn,
    PacketIns,
    Plan,
    PortInfo,
    PortStats,
    PortStatus,
    Switch,
    SwitchInfo,
    Tcp,
    Udp,
    Verdict,
)
from ._run import Controller, run

__all__ = [
    "Action",
    "AnyApp",
    "App",
    "Arp",
    "Bucket",
    "Controller",
    "Desired",
    "Error",
    "ErrorMessage",
    "EtherType",
    "Ethernet",
    "Event",
    "EventStream",
    "Flow",
    "FlowRemoved",
    "FlowStats",
    "Group",
    "Handler",
    "Host",
    "Icmp",
    "Ip",
    "IpProto",
    "Ipv4",
    "Ipv6",
    "Link",
    "MacAddr",
    "Match",
    "Meter",
    "MissedEvents",
    "Network",
    "Packet",
    "PacketIn",
    "PacketIns",
    "Plan",
    "Port",
    "PortInfo",
    "PortStats",
    "PortStatus",
    "Switch",
    "SwitchInfo",
    "Tcp",
    "Udp",
    "Verdict",
    "run",
]
