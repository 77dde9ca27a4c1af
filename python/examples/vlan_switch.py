"""A switch with VLANs. Hosts at access ports know nothing of them; the other ports are trunks, which carry
packets of all VLANs, each with its tag. The same for OpenFlow 1.0 and 1.3.

    python vlan_switch.py
"""

from __future__ import annotations

import bellrock
from bellrock import Action, App, Flow, MacAddr, Match, PacketIn, Port, Switch


class VlanSwitch(App):
    forwards = "all"

    def __init__(self, access: dict[tuple[int, int], int]) -> None:
        self.access = access
        """VLAN of each access port, by datapath id and port."""
        self.places: dict[tuple[int, int, MacAddr], int] = {}
        """Port of each host, by datapath id, VLAN and address."""

    def packet_in(self, switch: Switch, packet: PacketIn) -> None:
        own = self.access.get((switch.dpid, packet.in_port))
        vlan = packet.vlan_id if own is None else own
        if vlan is None or (own is not None and packet.vlan_id is not None):
            # Without a tag on a trunk, or with one from a host: it belongs to no VLAN.
            return
        self.places[switch.dpid, vlan, packet.eth_src] = packet.in_port
        port = self.places.get((switch.dpid, vlan, packet.eth_dst))
        if port is None:
            ports = [port.number for port in switch.ports if port.is_up]
            switch.packet_out(packet, self.to(switch, packet, vlan, ports))
            return
        # The match names the tag, or that there is none: an action that removes one needs that.
        matching = Match(in_port=packet.in_port, eth_dst=packet.eth_dst, vlan_id=packet.vlan_id)
        actions = self.to(switch, packet, vlan, [port])
        switch.install(Flow(matching, *actions, idle_timeout=60), packet)

    def to(self, switch: Switch, packet: PacketIn, vlan: int, ports: list[int]) -> list[Action]:
        """The actions that send a packet of a VLAN to those of these ports that carry it."""
        as_it_is: list[Action] = []
        changed: list[Action] = []
        is_tagged = packet.vlan_id is not None
        for port in ports:
            own = self.access.get((switch.dpid, port))
            if port in (packet.in_port, Port.LOCAL) or own not in (None, vlan):
                continue
            (as_it_is if is_tagged == (own is None) else changed).append(Action.output(port))
        if changed:
            # Each output sends the packet as it is at that moment.
            changed.insert(0, Action.untag() if is_tagged else Action.tag(vlan))
        return as_it_is + changed


if __name__ == "__main__":
    bellrock.run(VlanSwitch({(1, 1): 10, (1, 2): 20}))
