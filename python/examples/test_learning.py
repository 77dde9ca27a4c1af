import batches
import learning
import pytest

from bellrock.lab import Lab, linear


@pytest.mark.parametrize("app", [learning.Learning, batches.Learning])
def test_hosts_reach_each_other_and_packets_take_flows(app: type) -> None:
    lab = Lab(linear(3), app)
    assert lab.ping_all()
    assert lab.ping("h1", "h3"), "the second ping finds flows"
    assert any("output:" in flow and "idle" in flow for flow in lab.flows("s2")), lab.flows("s2")
    assert lab.findings() == []
    assert lab.exceptions == []
