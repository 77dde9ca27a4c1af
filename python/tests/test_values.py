"""Values: what they accept, and what they say when they do not."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

import pytest

from bellrock import (
    Action,
    Bucket,
    Ethernet,
    EtherType,
    Flow,
    Group,
    IpProto,
    MacAddr,
    Match,
    Meter,
    Packet,
    Plan,
    Port,
)

A = "02:00:00:00:00:01"

# For calls that types forbid.
ANY_FLOW: Any = Flow
ANY_ACTION: Any = Action


def test_an_address_comes_from_text_bytes_and_numbers() -> None:
    for form in (A, bytes([2, 0, 0, 0, 0, 1]), 0x0200_0000_0001, MacAddr(A)):
        address = MacAddr(form)
        assert str(address) == A and int(address) == 0x0200_0000_0001
        assert {address: 1}[MacAddr(A)] == 1
    assert MacAddr(A) < MacAddr.BROADCAST and MacAddr.BROADCAST.is_group
    assert bytes(MacAddr(A)) == bytes([2, 0, 0, 0, 0, 1])
    assert repr(MacAddr(A)) == f"MacAddr('{A}')"


@pytest.mark.parametrize(
    ("address", "error"),
    [("02:00", ValueError), (b"12345", ValueError), (1 << 48, ValueError), (1.5, TypeError)],
)
def test_a_wrong_address_is_an_error(address: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        MacAddr(address)  # type: ignore[arg-type]


def test_a_match_has_the_fields_of_the_specification() -> None:
    web = Match(eth_type=EtherType.IPV4, ip_proto=IpProto.TCP, ipv4_dst="10.0.0.0/8", tcp_dst=80)
    assert str(web) == "eth_type=0x0800,ip_proto=6,ipv4_dst=10.0.0.0/8,tcp_dst=80"
    assert web.fields() == ["eth_type", "ip_proto", "ipv4_dst", "tcp_dst"]
    assert web["tcp_dst"] == 80 and web["ipv4_dst"] == IPv4Address("10.0.0.0")
    assert web.mask("ipv4_dst") == IPv4Address("255.0.0.0")
    assert "tcp_dst" in web and "tcp_src" not in web and web.get("tcp_src", 7) == 7
    assert Match.parse(str(web)) == web and hash(Match.parse(str(web))) == hash(web)
    with pytest.raises(KeyError):
        web["tcp_src"]


def test_addresses_and_networks_of_the_standard_library_fit() -> None:
    by_object = Match(eth_type=0x0800, ipv4_src=IPv4Address("10.0.0.1"))
    assert by_object == Match(eth_type=0x0800, ipv4_src="10.0.0.1")
    network = Match(eth_type=0x0800, ipv4_src=IPv4Network("10.1.0.0/16"))
    assert network == Match(eth_type=0x0800, ipv4_src=("10.1.0.0", "255.255.0.0"))
    six = Match(eth_type=0x86DD, ipv6_dst=IPv6Network("2001:db8::/32"))
    assert six.mask("ipv6_dst") == IPv6Address("ffff:ffff::")
    assert Match(eth_dst=MacAddr(A)) == Match(eth_dst=A)


def test_a_vlan_id_is_given_without_the_bit_of_the_tag() -> None:
    assert Match(vlan_id=7) == Match(vlan_vid=0x1007)
    assert Match(vlan_id=None) == Match(vlan_vid=0)
    with pytest.raises(ValueError, match="vlan_id=7"):
        Match(vlan_vid=7)
    with pytest.raises(ValueError, match="4095"):
        Match(vlan_id=4096)


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"nw_dst": "10.0.0.1"}, TypeError, "ipv4_dst"),
        ({"nonsense": 1}, TypeError, "nonsense"),
        ({"tcp_dst": 80}, ValueError, "ip_proto"),
        ({"in_port": -1}, ValueError, "in_port is a number from 0 to 0xffffffff, not -1"),
        ({"in_port": 1 << 32}, ValueError, "in_port"),
        ({"in_port": (1, 1)}, ValueError, "mask"),
        ({"eth_dst": 1.5}, TypeError, "eth_dst"),
        ({"eth_dst": "10.0.0.1"}, ValueError, "eth_dst"),
        ({"eth_type": 0x0800, "ipv4_dst": "10.0.0.1/8"}, ValueError, "outside its mask"),
        ({"eth_type": 0x0800, "ipv4_dst": IPv6Address("::1")}, TypeError, "ipv4_dst"),
        ({"eth_dst": (A, A, A)}, ValueError, "value, mask"),
    ],
)
def test_a_wrong_match_names_the_field(
    fields: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Match(**fields)  # type: ignore[arg-type]


def test_an_action_prints_as_the_specification_names_it() -> None:
    assert str(Action.output(3)) == "output:3"
    assert str(Action.set_eth_dst(A)) == f"set_field:{A}->eth_dst"
    assert str(Action.set_ipv4_dst(IPv4Address("10.0.0.7"))) == "set_field:10.0.0.7->ipv4_dst"
    assert Action.parse("output:3") == Action.output(3) != Action.output(Port.FLOOD)
    with pytest.raises(TypeError):
        Action.set_eth_dst(3.0)  # type: ignore[arg-type]


def test_a_flow_is_a_value() -> None:
    flow = Flow(Match(in_port=1), Action.output(2), priority=7, idle_timeout=10)
    assert str(flow) == "in_port=1 priority=7 output:2"
    assert flow == Flow(Match(in_port=1), Action.output(2), priority=7, idle_timeout=10)
    assert flow != Flow(Match(in_port=1), Action.output(3), priority=7, idle_timeout=10)
    assert flow.actions == [Action.output(2)] and flow.matching == Match(in_port=1)
    assert str(Flow(Match())).endswith("drop")
    with pytest.raises(TypeError):
        Flow(Match(), "output:2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Flow(Match(), idle_timeout=1 << 16), ValueError, "0 to 65535, not 65536"),
        (lambda: Flow(Match(), priority=40_000), ValueError, "0 to 4095, not 40000"),
        (lambda: ANY_FLOW(match=Match()), TypeError, r"Flow\(Match\(...\), Action.output"),
        (lambda: ANY_FLOW(Match(), actions=[]), TypeError, "no argument actions"),
        (lambda: ANY_FLOW(), TypeError, "a flow needs a match"),
        (lambda: Action.set_tcp_dst(99_999), ValueError, "set_tcp_dst: port.* 0 to 65535, not 99999"),
        (lambda: ANY_ACTION.set_tcp_dst("www"), TypeError, "set_tcp_dst: port.*not str"),
        (lambda: Action.set_eth_dst("x"), ValueError, "set_eth_dst: address"),
        (lambda: Action.tag(4096), ValueError, "vlan_id is at most 4095"),
        (lambda: Action.output(-1), ValueError, "0 to 4294967295, not -1"),
        (lambda: Meter(1), ValueError, "packets_per_second"),
        (lambda: Meter(1, kbps=1, burst_packets=1), ValueError, "one rate"),
    ],
)
def test_a_wrong_value_names_what_is_right(
    make: Callable[[], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make()


def test_a_tag_is_one_action_in_every_version() -> None:
    assert str(Action.tag(7)) == "push_vlan:0x8100,set_field:0x1007->vlan_vid"
    assert repr(Action.tag(7)) == "Action.tag(7)"
    assert Action.tag(7) == Action.tag(7) != Action.tag(8)
    assert Action.untag() == Action.pop_vlan()
    flow = Flow(Match(vlan_id=None), Action.tag(7), Action.output(2))
    assert flow.actions == [Action.push_vlan(0x8100), Action.set_vlan_vid(7), Action.output(2)]


def test_an_action_of_an_experimenter_is_a_value() -> None:
    action = Action.experimenter(0x2320, b"\x00\x12abc")
    assert action.experimenter_data == (0x2320, b"\x00\x12abc\0\0\0"), "padded"
    assert str(action) == "experimenter(0x00002320,0012616263000000)"
    assert repr(action) == f"<Action {action}>"
    assert action == Action.experimenter(0x2320, b"\x00\x12abc") != Action.experimenter(1, b"")
    assert Action.output(1).experimenter_data is None
    assert Flow(Match(), action).actions == [action]


def test_groups_meters_and_plans_are_readable() -> None:
    bucket = Bucket(Action.set_eth_dst(A), Action.output(3), weight=2, watch_port=3)
    assert (bucket.weight, bucket.watch_port, bucket.actions[1]) == (2, 3, Action.output(3))
    assert repr(bucket) == f"<Bucket weight=2 watch_port=3 set_field:{A}->eth_dst,output:3>"
    group = Group(7, "select", bucket, Bucket())
    assert (group.id, group.kind, group.buckets) == (7, "select", [bucket, Bucket()])
    assert repr(group).startswith("<Group 7 select [weight=2") and repr(group).endswith("[drop]>")
    meter = Meter(1, kbps=10_000, burst_kbits=500)
    assert (meter.kbps, meter.burst_kbits, meter.packets_per_second) == (10_000, 500, None)
    assert repr(meter) == "<Meter 1 kbps=10000 burst_kbits=500>"
    by_packets = Meter(2, packets_per_second=50, burst_packets=5)
    assert (by_packets.packets_per_second, by_packets.burst_packets) == (50, 5)
    assert by_packets.kbps is None and by_packets != Meter(2, kbps=50, burst_kbits=5)
    plan = Plan.tree()
    flow = Flow(Match(in_port=1), Action.output(2))
    plan.group(1, group)
    plan.add(0xA1, flow, distance=1)
    assert plan.changes == [("add", 1, group), ("add", 0xA1, flow)]
    assert repr(plan) == "<Plan (tree), 2 changes>" and not plan.is_carried_out
    assert str(plan).splitlines()[1] == f"switch 00000000000000a1: add flow {flow}"


def test_the_headers_of_a_packet_are_read_from_its_bytes() -> None:
    ethernet = bytes(MacAddr.BROADCAST) + bytes(MacAddr(A))
    ipv4 = bytes.fromhex("450000280001000040060000 0a000001 0a000002")
    tcp = bytes.fromhex("1f90 0050 00000001 00000002 5002 ffff 00000000")
    packet = Packet(ethernet + b"\x08\x00" + ipv4 + tcp)
    assert packet.eth_dst == MacAddr.BROADCAST and packet.eth_type == EtherType.IPV4
    assert packet.ipv4 is not None and packet.ipv4.src == IPv4Address("10.0.0.1")
    assert packet.ipv4.proto == IpProto.TCP and packet.ipv4.ttl == 64
    assert packet.tcp is not None and packet.tcp.dst_port == 80 and packet.tcp.syn
    assert packet.udp is None and packet.arp is None and packet.ipv6 is None
    assert bytes(packet) == packet.data and len(packet) == 54


@pytest.mark.parametrize("length", range(0, 42))
def test_a_packet_that_is_too_short_has_no_headers(length: int) -> None:
    whole = bytes.fromhex(
        "ffffffffffff 020000000001 8100 0007 0806 0001080006040001"
        "020000000001 0a000001 000000000000 0a000002"
    )
    packet = Packet(whole[:length])
    assert packet.arp is None and packet.ipv4 is None and packet.tcp is None
    assert packet.eth_type is None or length >= 18
    assert packet.payload is not None and len(packet) == length


def test_a_plan_is_carried_out_once() -> None:
    plan = Plan()
    assert not plan
    plan.add(1, Flow(Match(in_port=1)))
    assert len(plan) == 1


def test_a_frame_is_built_with_its_lengths_and_checksums() -> None:
    ip = Ethernet(A, MacAddr.BROADCAST, vlan_id=7).ipv4("10.0.0.1", "10.0.0.2", ttl=9)
    datagram = Packet(ip.udp(5000, 53, b"hello"))
    assert datagram.vlan_id == 7 and datagram.ipv4 is not None and datagram.ipv4.ttl == 9
    assert datagram.udp is not None and datagram.udp.dst_port == 53
    assert datagram.payload == b"hello" and len(datagram) == 60
    segment = Packet(ip.tcp(1, 2, syn=True, acknowledgment=5))
    assert segment.tcp is not None and segment.tcp.syn and segment.tcp.ack
    six = Ethernet(A, A).ipv6("::1", "::2", hop_limit=3).echo_request(1, 2)
    assert Packet(six).ipv6 is not None and Packet(six).icmp is not None
    other = Ethernet(A, A).payload(0x88B5, b"x")
    assert Packet(other).eth_type == 0x88B5 and len(other) == 60
    with pytest.raises(ValueError, match="65,535"):
        ip.udp(1, 2, bytes(70_000))


def test_groups_and_meters_are_values() -> None:
    one = Group(7, "select", Bucket(Action.output(1), weight=1), Bucket(Action.output(2), weight=2))
    assert one == Group(7, "select", Bucket(Action.output(1), weight=1), Bucket(Action.output(2), weight=2))
    assert one != Group(7, "all") and one.id == 7
    assert Meter(1, kbps=100) != Meter(1, kbps=100, burst_kbits=10)
    with pytest.raises(ValueError, match="fast_failover"):
        Group(7, "nonsense")  # type: ignore[arg-type]
