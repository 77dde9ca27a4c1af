from ipaddress import IPv4Network

from firewall import Firewall, Rule
from learning import Learning

from bellrock.lab import Lab, single

# The lab's flows go to this port.
PORT = 5001


def test_only_what_a_rule_names_is_dropped() -> None:
    lab = Lab(single(3), Firewall(Rule(IPv4Network("10.0.0.2/32"), PORT)), Learning)
    assert lab.ip("h2") == IPv4Network("10.0.0.2/32").network_address
    assert lab.ping_all()
    assert lab.tcp("h1", "h3")
    assert not lab.tcp("h1", "h2", 100)
    assert lab.exceptions == []
