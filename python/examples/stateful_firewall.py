"""A firewall that remembers connections: hosts inside open TCP connections, and nobody opens one to them.

    python stateful_firewall.py
    bellrock run --app stateful_firewall.py
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import bellrock
from bellrock import App, EtherType, IpProto, Match, PacketIn, Switch, Verdict

Connection = tuple[IPv4Address, int, IPv4Address, int]


class StatefulFirewall(App):
    # All TCP: no flow of an app behind carries a TCP packet past this app.
    sees = Match(eth_type=EtherType.IPV4, ip_proto=IpProto.TCP)

    allowed_seconds = 30.0
    """How long a switch forwards a connection without the firewall."""

    forgotten_seconds = 120.0
    """How long a connection without packets is remembered."""

    max_connections = 65_536

    def __init__(self, inside: IPv4Network) -> None:
        self.inside = inside
        self.opened: dict[Connection, float] = {}
        """Time of the last packet, by the end inside and the end outside."""

    def start(self, network: bellrock.Network) -> None:
        self.network = network

    def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict:
        ip, tcp = packet.ipv4, packet.tcp
        if ip is None or tcp is None:
            return Verdict.PASS
        is_from_inside = ip.src in self.inside
        connection = (ip.src, tcp.src_port, ip.dst, tcp.dst_port)
        if not is_from_inside:
            connection = (ip.dst, tcp.dst_port, ip.src, tcp.src_port)
        opens = is_from_inside and len(self.opened) < self.max_connections
        if not opens and connection not in self.opened:
            return Verdict.CONSUME
        self.opened[connection] = self.network.now()
        # The apps behind know the way. Their flow for this direction may carry it past the firewall.
        this_way = Match.from_packet(packet, "ipv4_src", "ipv4_dst", "tcp_src", "tcp_dst")
        switch.allow(this_way, self.allowed_seconds)
        return Verdict.PASS

    def tick(self, switch: Switch) -> None:
        old = self.network.now() - self.forgotten_seconds
        self.opened = {each: seen for each, seen in self.opened.items() if seen > old}


apps: list[bellrock.AnyApp] = [StatefulFirewall(IPv4Network("10.0.0.1/32")), "learning"]

if __name__ == "__main__":
    bellrock.run(*apps)
