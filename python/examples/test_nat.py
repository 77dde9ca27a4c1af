from ipaddress import IPv4Address, IPv4Network
from typing import Literal

import pytest
from nat import Nat

from bellrock import MacAddr
from bellrock.lab import Lab, Topology

NETWORK = """
switch s1
host a ip=10.0.1.1/24 gateway=10.0.1.254
host b ip=10.0.1.2/24 gateway=10.0.1.254
host web ip=192.0.2.80/24
link s1:1 a
link s1:2 b
link s1:3 web
"""


def nat() -> Nat:
    outer = IPv4Address("192.0.2.1")
    inner, gateway = IPv4Network("10.0.1.0/24"), IPv4Address("10.0.1.254")
    return Nat(inner, gateway, outer, MacAddr("02:00:00:00:00:fe"))


@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_hosts_inside_share_the_outer_address(version: Literal["1.0", "1.3"]) -> None:
    app = nat()
    lab = Lab(Topology.parse(NETWORK), app, version=version)
    lab.capture("web")
    assert lab.tcp("a", "web", 100_000) and lab.tcp("b", "web", 100_000)
    senders = {packet.ipv4.src for packet in lab.capture("web") if packet.ipv4}
    assert senders == {IPv4Address("192.0.2.1")}
    assert sorted(app.ports.values()) == [20_000, 20_001]
    assert not lab.exceptions
    lab.run_for(120)
    assert app.ports == {}, "the flows have expired"


def test_nobody_outside_opens_a_connection_to_a_host_inside() -> None:
    lab = Lab(Topology.parse(NETWORK.replace("80/24", "80")), nat())
    assert lab.tcp("a", "web", 1000)
    assert not lab.tcp("web", "a", 1000) and not lab.tcp("web", "b", 1000)
