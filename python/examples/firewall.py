"""A firewall in front of another app: it drops what a list of rules names, by flows in the switches."""

from dataclasses import dataclass
from ipaddress import IPv4Network

import bellrock
from bellrock import App, EtherType, Flow, IpProto, Match, Network, PacketIn, Switch, Verdict


@dataclass(frozen=True)
class Rule:
    """TCP connections to a port of a network are not allowed."""

    to: IPv4Network
    port: int

    def matching(self) -> Match:
        return Match(
            eth_type=EtherType.IPV4, ip_proto=IpProto.TCP, ipv4_dst=self.to, tcp_dst=self.port
        )


class Firewall(App):
    # It only drops, so it must stand in front.
    forwards = "nothing"
    # Its flows do everything: it need not see a packet.
    sees = ()

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules

    def switch_up(self, network: Network, switch: Switch) -> None:
        for rule in self.rules:
            switch.install(Flow(rule.matching()))

    def packet_in(self, switch: Switch, packet: PacketIn) -> Verdict:
        # What comes here matched no rule in the switch: the next app decides.
        return Verdict.PASS


if __name__ == "__main__":
    bellrock.run(Firewall(Rule(IPv4Network("10.0.0.2/32"), 80)), "learning")
