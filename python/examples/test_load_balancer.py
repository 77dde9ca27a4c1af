from ipaddress import IPv4Address

from learning import Learning
from load_balancer import LoadBalancer, Server

from bellrock import MacAddr
from bellrock.lab import Lab, single

IP = IPv4Address("10.0.0.100")


def test_connections_to_the_virtual_address_are_spread_over_the_servers() -> None:
    before = Lab(single(3), Learning)
    servers = [Server(before.mac(name), before.ip(name), port) for name, port in (("h1", 1), ("h2", 2))]
    lab = Lab(single(3), LoadBalancer(IP, MacAddr("02:00:00:00:01:00"), servers), Learning)
    assert lab.ping_all(), "the learning switch has flows between all hosts"
    for host in ("h1", "h2"):
        lab.capture(host)
    for _ in range(16):
        assert lab.tcp_to_address("h3", IP, 1000)
    connections = {
        host: len({p.tcp.src_port for p in lab.capture(host) if p.tcp is not None})
        for host in ("h1", "h2")
    }
    assert sum(connections.values()) == 16 and min(connections.values()) > 0, connections
    assert lab.ping("h1", "h2"), "other packets are the learning switch's"
    assert lab.exceptions == []
