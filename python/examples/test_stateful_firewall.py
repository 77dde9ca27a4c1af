from ipaddress import IPv4Network
from typing import Literal

import pytest
from stateful_firewall import StatefulFirewall

from bellrock.lab import Lab, linear

Version = Literal["1.0", "1.3"]
VERSIONS: tuple[Version, ...] = ("1.0", "1.3")


def firewalled(version: Version) -> Lab:
    inside = IPv4Network("10.0.0.1/32")
    lab = Lab(linear(2), StatefulFirewall(inside), "learning", version=version)
    assert lab.ip("h1") in inside and lab.warnings == []
    return lab


@pytest.mark.parametrize("version", VERSIONS)
def test_flows_of_the_app_behind_carry_no_connection_past_the_firewall(version: Version) -> None:
    lab = firewalled(version)
    assert not lab.tcp("h2", "h1")
    assert lab.tcp("h1", "h2")
    # Now "learning" has flows between the two hosts, for all packets.
    assert lab.ping("h2", "h1")
    assert not lab.tcp("h2", "h1")
    assert lab.tcp("h1", "h2")
    assert lab.exceptions == []


@pytest.mark.parametrize("version", VERSIONS)
def test_switches_forward_what_is_allowed_until_its_time_is_over(version: Version) -> None:
    lab = firewalled(version)
    assert lab.ping("h1", "h2")
    before = lab.counter("packet_ins")
    assert lab.tcp("h1", "h2", 1_000_000)
    # A million bytes are some 700 packets, and as many answers.
    assert lab.counter("packet_ins") - before < 200
    assert any("tp_dst=5001" in flow for flow in lab.flows("s1"))
    lab.run_for(2 * StatefulFirewall.allowed_seconds)
    assert not any("tp_dst=5001" in flow for flow in lab.flows("s1"))
    assert lab.exceptions == []
