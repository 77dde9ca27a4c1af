"""A monitor: it asks each switch for the counters of its ports, and prints the rates."""

import asyncio

import bellrock
from bellrock import App, Network, Switch

EVERY = 5.0
"""Time between two requests, in seconds."""


class Monitor(App):
    wants_packet_ins = False

    def __init__(self) -> None:
        self.rates: dict[tuple[int, int], float] = {}
        """Received bits per second, by datapath id and port."""

    def switch_up(self, network: Network, switch: Switch) -> None:
        self.spawn(self.watch(network, switch))

    async def watch(self, network: Network, switch: Switch) -> None:
        before: dict[int, int] = {}
        while switch.is_up:
            try:
                ports = await network.port_stats(switch.dpid)
            except bellrock.Error as error:
                print(f"switch {switch.dpid:016x}: {error}")
                ports = []
            for port in ports:
                received = port.rx_bytes or 0
                if port.port in before:
                    rate = (received - before[port.port]) * 8 / EVERY
                    self.rates[switch.dpid, port.port] = rate
                    print(f"switch {switch.dpid:016x} port {port.port}: {rate / 1e6:.3f} Mbit/s")
                before[port.port] = received
            await asyncio.sleep(EVERY)


if __name__ == "__main__":
    bellrock.run(Monitor(), "learning")
