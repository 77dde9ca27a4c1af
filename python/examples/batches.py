"""A learning switch that handles all packets that came together at once, for large networks."""

import bellrock
from bellrock import PacketIns, Port, Switch


class Learning:
    def __init__(self) -> None:
        self.ports: dict[int, int] = {}

    def packet_ins(self, switch: Switch, packets: PacketIns) -> None:
        self.ports.update(zip(packets.values("eth_src"), packets.values("in_port")))
        ports = map(self.ports.get, packets.values("eth_dst"))
        unknown = switch.install_each(packets, ports, "in_port", "eth_dst", idle_timeout=10)
        switch.packet_out_each(unknown, Port.FLOOD)


if __name__ == "__main__":
    bellrock.run(Learning)
