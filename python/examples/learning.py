"""A learning switch: it learns behind which port each host is, and installs flows to hosts it knows."""

import bellrock
from bellrock import Action, Flow, Match, Port


class Learning:
    def __init__(self) -> None:
        self.ports: dict[bellrock.MacAddr, int] = {}

    def packet_in(self, switch: bellrock.Switch, packet: bellrock.PacketIn) -> None:
        self.ports[packet.eth_src] = packet.in_port
        port = self.ports.get(packet.eth_dst)
        if port is None:
            switch.packet_out(packet, Port.FLOOD)
            return
        to_host = Match(in_port=packet.in_port, eth_dst=packet.eth_dst)
        switch.install(Flow(to_host, Action.output(port), idle_timeout=10), packet)


if __name__ == "__main__":
    bellrock.run(Learning)
