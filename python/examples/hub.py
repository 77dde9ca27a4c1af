"""A hub: every packet goes out of all other ports."""

import bellrock
from bellrock import PacketIn, Port, Switch


def hub(switch: Switch, packet: PacketIn) -> None:
    switch.packet_out(packet, Port.FLOOD)


if __name__ == "__main__":
    bellrock.run(hub)
