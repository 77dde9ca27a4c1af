"""A load balancer: one virtual address for several servers. Each connection goes to one of them, by
flows that rewrite addresses in both directions."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from zlib import crc32

import bellrock
from bellrock import (
    Action,
    App,
    EtherType,
    Flow,
    IpProto,
    MacAddr,
    Match,
    Network,
    PacketIn,
    Switch,
    Verdict,
)


@dataclass(frozen=True)
class Server:
    mac: MacAddr
    ip: IPv4Address
    port: int


@dataclass
class LoadBalancer(App):
    """Answers ARP for `ip`, and spreads TCP connections to it over `servers`, all at one switch."""

    ip: IPv4Address
    mac: MacAddr
    servers: list[Server]
    idle_timeout: int = 30

    forwards = "selected"

    def __post_init__(self) -> None:
        # No flow of an app behind may carry these away.
        self.sees = [
            Match(eth_type=EtherType.IPV4, ipv4_dst=self.ip),
            Match(eth_type=EtherType.ARP, arp_tpa=self.ip),
        ]

    def server_of(self, ip: IPv4Address, port: int) -> Server:
        # Packets that follow the first one may come here too, before the switch uses its new flows.
        # So the choice must be the same each time.
        return self.servers[crc32(ip.packed + port.to_bytes(2, "big")) % len(self.servers)]

    def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict | None:
        if switch.answer_arp(packet, self.ip, self.mac):
            return None
        ip, tcp = packet.ipv4, packet.tcp
        if ip is None or tcp is None or ip.dst != self.ip:
            return Verdict.PASS
        server = self.server_of(ip.src, tcp.src_port)
        back = Match(
            eth_type=EtherType.IPV4,
            ip_proto=IpProto.TCP,
            ipv4_src=server.ip,
            ipv4_dst=ip.src,
            tcp_src=tcp.dst_port,
            tcp_dst=tcp.src_port,
        )
        # The way back first: the answer to this packet may need it.
        switch.install(
            Flow(
                back,
                Action.set_eth_src(self.mac),
                Action.set_ipv4_src(self.ip),
                Action.output(packet.in_port),
                idle_timeout=self.idle_timeout,
            )
        )
        there = Match(
            eth_type=EtherType.IPV4,
            ip_proto=IpProto.TCP,
            ipv4_src=ip.src,
            ipv4_dst=self.ip,
            tcp_src=tcp.src_port,
            tcp_dst=tcp.dst_port,
        )
        switch.install(
            Flow(
                there,
                Action.set_eth_dst(server.mac),
                Action.set_ipv4_dst(server.ip),
                Action.output(server.port),
                idle_timeout=self.idle_timeout,
            ),
            packet,
        )
        return None


if __name__ == "__main__":
    servers = [
        Server(MacAddr(number), IPv4Address(f"10.0.0.{number}"), port=number) for number in (1, 2)
    ]
    virtual = LoadBalancer(IPv4Address("10.0.0.100"), MacAddr("02:00:00:00:01:00"), servers)
    bellrock.run(virtual, "learning")
