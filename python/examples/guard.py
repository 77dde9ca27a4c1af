"""A guard for DHCP and DNS: only one port may give addresses, hosts have only those that they were given, and
names that are blocked do not exist. All else goes to the next app.

    python guard.py
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address

import bellrock
from bellrock import (
    App,
    EtherType,
    Ethernet,
    IpProto,
    MacAddr,
    Match,
    PacketIn,
    Switch,
    Verdict,
)
from bellrock.protocols import Dhcp, DhcpKind, Dns

NO_SUCH_NAME = 3


class Guard(App):
    counters = {
        "offers_refused": "Messages of DHCP servers at ports that may not give addresses.",
        "addresses_refused": "Packets of hosts with addresses that they were not given.",
        "names_refused": "Questions for names that are blocked.",
    }
    max_leases = 4096

    def __init__(self, server: tuple[int, int], blocked: Collection[str] = ()) -> None:
        self.server = server
        """The port of the DHCP server: datapath id and number."""
        self.blocked = {name.lower() for name in blocked}
        self.leases: dict[MacAddr, IPv4Address] = {}
        udp: dict[str, int] = {"eth_type": EtherType.IPV4, "ip_proto": IpProto.UDP}
        # No flow of an app behind may carry these past the guard.
        self.sees = [
            Match(**udp, udp_dst=67),
            Match(**udp, udp_dst=68),
            Match(**udp, udp_dst=53),
            Match(eth_type=EtherType.ARP),
        ]

    def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict | None:
        is_server = (switch.dpid, packet.in_port) == self.server
        udp, arp = packet.udp, packet.arp
        if udp is not None and udp.dst_port in (67, 68):
            return self.lease(switch, packet, is_server)
        if arp is not None and not is_server and arp.sender_ip != IPv4Address(0):
            if self.leases.get(arp.sender_mac) != arp.sender_ip:
                switch.count("addresses_refused")
                return None
        query = Dns.of(packet)
        if query is not None and not query.is_response and self.is_blocked(query):
            switch.count("names_refused")
            self.refuse(switch, packet, query)
            return None
        return Verdict.PASS

    def lease(self, switch: Switch, packet: PacketIn, is_server: bool) -> Verdict | None:
        message = Dhcp.of(packet)
        if message is None or (message.is_reply and not is_server):
            switch.count("offers_refused")
            return None
        if message.kind == DhcpKind.ACK and len(self.leases) < self.max_leases:
            self.leases[message.client_mac] = message.your_ip
        elif message.kind == DhcpKind.RELEASE and message.client_mac == packet.eth_src:
            self.leases.pop(message.client_mac, None)
        return Verdict.PASS

    def is_blocked(self, query: Dns) -> bool:
        """Whether a name is blocked, or within one that is."""
        for question in query.questions:
            labels = question.name.lower().split(".")
            if any(".".join(labels[n:]) in self.blocked for n in range(len(labels))):
                return True
        return False

    def refuse(self, switch: Switch, packet: PacketIn, query: Dns) -> None:
        ip, udp = packet.ipv4, packet.udp
        if ip is None or udp is None:
            return
        back = Ethernet(packet.eth_dst, packet.eth_src, vlan_id=packet.vlan_id)
        answer = query.answer(code=NO_SUCH_NAME).to_bytes()
        switch.send_packet(back.ipv4(ip.dst, ip.src).udp(53, udp.src_port, answer), packet.in_port)


apps: list[bellrock.AnyApp] = [Guard(server=(1, 1), blocked=["ads.example"]), "learning"]

if __name__ == "__main__":
    bellrock.run(*apps)
