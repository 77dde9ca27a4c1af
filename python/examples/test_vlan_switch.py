from typing import Literal

import pytest
from vlan_switch import VlanSwitch

from bellrock.lab import Lab, linear

ACCESS = {(1, 1): 10, (1, 2): 20, (2, 1): 10, (2, 2): 20}


@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_hosts_reach_those_of_their_vlan_over_a_trunk(version: Literal["1.0", "1.3"]) -> None:
    lab = Lab(linear(2, 2), VlanSwitch(ACCESS), version=version)
    for _ in range(2):
        assert lab.ping("h1s1", "h1s2") and lab.ping("h2s1", "h2s2")
        assert not lab.ping("h1s1", "h2s1") and not lab.ping("h1s1", "h2s2")
    assert not lab.exceptions
    tags = "set_vlan_vid:10" if version == "1.0" else "push_vlan:0x8100,set_field:0x100a->vlan_vid"
    assert any(f"{tags},output:3" in flow for flow in lab.flows("s1")), lab.flows("s1")
    assert any("pop_vlan,output:1" in flow for flow in lab.flows("s1")), lab.flows("s1")
