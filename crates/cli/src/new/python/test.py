"""NAME in the lab: an emulated network on a virtual clock."""

from NAME import Learning

from bellrock.lab import Lab, linear


def test_hosts_reach_each_other_and_packets_take_flows() -> None:
    lab = Lab(linear(3), Learning)
    assert lab.ping_all()
    assert lab.ping("h1", "h3"), "the second ping finds flows"
    assert any("output:" in flow and "idle" in flow for flow in lab.flows("s2")), lab.flows("s2")
    assert lab.findings() == []
    assert lab.exceptions == []
