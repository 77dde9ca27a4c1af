"""NAT: hosts of an inner network speak TCP and UDP with outer hosts under one address. A switch rewrites the packets;
the app sees only the first one of each connection.

    python nat.py
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

import bellrock
from bellrock import Action, App, EtherType, Flow, FlowRemoved, IpProto, MacAddr, Match, PacketIn, Switch

Inside = tuple[int, IPv4Address, int]
"""Protocol, address and port of a host inside."""


@dataclass(frozen=True)
class Host:
    mac: MacAddr
    port: int


class Nat(App):
    forwards = "selected"

    first_port, last_port = 20_000, 29_999
    idle_timeout = 60

    def __init__(
        self, inner: IPv4Network, gateway: IPv4Address, outer: IPv4Address, mac: MacAddr
    ) -> None:
        self.inner = inner
        self.gateway = gateway
        """Its address for the hosts inside."""
        self.outer = outer
        """Its address for the hosts outside."""
        self.mac = mac
        self.hosts: dict[IPv4Address, Host] = {}
        self.ports: dict[Inside, int] = {}
        self.waiting: dict[IPv4Address, list[PacketIn]] = {}
        """The first packets to hosts outside that do not have an answer to ARP yet."""

    def packet_in(self, switch: Switch, packet: PacketIn) -> None:
        arp = packet.arp
        if arp is not None:
            self.hosts[arp.sender_ip] = Host(arp.sender_mac, packet.in_port)
            own = self.gateway if arp.sender_ip in self.inner else self.outer
            switch.answer_arp(packet, own, self.mac)
            for first in self.waiting.pop(arp.sender_ip, []):
                self.open(switch, first)
        elif packet.ipv4 is not None and packet.ipv4.src in self.inner:
            self.open(switch, packet)
        # All else comes from outside, and belongs to no connection.

    def open(self, switch: Switch, packet: PacketIn) -> None:
        """Installs the flows of a connection, and sends its first packet on."""
        ip, transport = packet.ipv4, packet.tcp or packet.udp
        if ip is None or transport is None or ip.dst in self.inner:
            return
        inside, outside = self.hosts.get(ip.src), self.hosts.get(ip.dst)
        if inside is None or inside.mac != packet.eth_src:
            return
        if outside is None:
            self.ask(switch, packet, ip.dst)
            return
        port = self.port_of((ip.proto, ip.src, transport.src_port))
        if port is None:
            return
        source, target = ("tcp_src", "tcp_dst") if packet.tcp else ("udp_src", "udp_dst")
        set_source = Action.set_tcp_src if packet.tcp else Action.set_udp_src
        set_target = Action.set_tcp_dst if packet.tcp else Action.set_udp_dst
        back = {source: transport.dst_port, target: port}
        # The way back first: the answer to this packet needs it.
        switch.install(
            Flow(
                Match(
                    eth_type=EtherType.IPV4,
                    ip_proto=ip.proto,
                    ipv4_src=ip.dst,
                    ipv4_dst=self.outer,
                    **back,
                ),
                Action.set_eth_src(self.mac),
                Action.set_eth_dst(inside.mac),
                Action.set_ipv4_dst(ip.src),
                set_target(transport.src_port),
                Action.output(inside.port),
                idle_timeout=self.idle_timeout,
            )
        )
        there = Flow(
            Match.from_packet(packet, "ipv4_src", "ipv4_dst", source, target),
            Action.set_eth_src(self.mac),
            Action.set_eth_dst(outside.mac),
            Action.set_ipv4_src(self.outer),
            set_source(port),
            Action.output(outside.port),
            idle_timeout=self.idle_timeout,
            # The port is free again when this flow is gone.
            send_flow_removed=True,
            number=port,
        )
        switch.install(there, packet)

    def port_of(self, inside: Inside) -> int | None:
        """The outer port of a port inside. `None`: all are taken."""
        if inside not in self.ports:
            taken = {port for (proto, _, _), port in self.ports.items() if proto == inside[0]}
            free = (n for n in range(self.first_port, self.last_port + 1) if n not in taken)
            port = next(free, None)
            if port is None:
                return None
            self.ports[inside] = port
        return self.ports[inside]

    def ask(self, switch: Switch, packet: PacketIn, ip: IPv4Address) -> None:
        """Asks all hosts outside for an address. The packet waits."""
        packets = self.waiting.setdefault(ip, [])
        if len(packets) < 16 and len(self.waiting) < 256:
            packets.append(packet)
        frame = bellrock.Ethernet(self.mac, MacAddr.BROADCAST).arp(1, self.mac, self.outer, ip)
        switch.send_packet(frame, bellrock.Port.FLOOD)

    def flow_removed(self, switch: Switch, flow: FlowRemoved) -> None:
        if flow.is_own:
            self.ports = {
                inside: port for inside, port in self.ports.items() if port != flow.number
            }


if __name__ == "__main__":
    bellrock.run(
        Nat(
            IPv4Network("10.0.1.0/24"),
            IPv4Address("10.0.1.254"),
            IPv4Address("192.0.2.1"),
            MacAddr("02:00:00:00:00:fe"),
        )
    )
