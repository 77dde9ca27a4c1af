"""Readers and builders of protocols: what is written is read again, and no bytes make a reader fail otherwise
than by a `ValueError`."""

import random
from ipaddress import IPv4Address, IPv6Address

import pytest

from bellrock import Ethernet, EtherType, IpProto, MacAddr, Packet
from bellrock.protocols import (
    LLDP_MULTICAST,
    VXLAN_PORT,
    Dhcp,
    DhcpKind,
    DhcpOption,
    Dns,
    DnsKind,
    DnsRecord,
    Igmp,
    IgmpKind,
    IgmpRecord,
    Lldp,
    LldpCapability,
    LldpChassis,
    LldpKind,
    LldpPart,
    LldpPort,
    Vxlan,
)

A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"
GROUP = IPv4Address("239.1.2.3")


def test_arp_is_built() -> None:
    frame = Ethernet(A, MacAddr.BROADCAST).arp(1, A, "10.0.0.1", "10.0.0.2")
    arp = Packet(frame).arp
    assert arp is not None and arp.operation == 1 and len(frame) == 60
    assert (arp.sender_mac, arp.sender_ip) == (MacAddr(A), IPv4Address("10.0.0.1"))
    assert (arp.target_mac, arp.target_ip) == (MacAddr(0), IPv4Address("10.0.0.2"))
    reply = Packet(Ethernet(B, A).arp(2, B, "10.0.0.2", "10.0.0.1", A)).arp
    assert reply is not None and reply.target_mac == MacAddr(A)


def test_a_payload_of_any_protocol_is_built() -> None:
    frame = Ethernet(A, B).ipv4("10.0.0.1", "10.0.0.2", ttl=1).payload(89, b"hello")
    packet = Packet(frame)
    assert packet.ipv4 is not None and (packet.ipv4.proto, packet.ipv4.ttl) == (89, 1)
    assert packet.payload == b"hello"


def test_errors_of_icmp_return_the_packet_that_they_are_about() -> None:
    original = Packet(Ethernet(A, B).ipv4("10.0.0.1", "10.0.0.2").udp(5000, 53, b"x" * 1000))
    back = Ethernet(B, A).ipv4("10.0.0.2", "10.0.0.1")
    for frame, kind, code in (
        (back.unreachable(original, 3), 3, 3),
        (back.time_exceeded(original), 11, 0),
    ):
        error = Packet(frame)
        assert error.icmp is not None and (error.icmp.kind, error.icmp.code) == (kind, code)
        assert error.payload == original.data[14 : 14 + 548], "as much as an error may return"
    six = Packet(Ethernet(A, B).ipv6("2001:db8::1", "2001:db8::2").udp(5000, 53, b"x"))
    error = Packet(Ethernet(B, A).ipv6("2001:db8::2", "2001:db8::1").unreachable(six, 4))
    assert error.icmp is not None and (error.icmp.kind, error.icmp.code) == (1, 4)
    with pytest.raises(ValueError, match="no IP header"):
        back.unreachable(Packet(Ethernet(A, B).payload(EtherType.LLDP, b"")), 3)


def igmp_packet(message: Igmp) -> Packet:
    ip = Ethernet(A, "01:00:5e:01:02:03").ipv4("10.0.0.1", GROUP, ttl=1)
    return Packet(ip.payload(IpProto.IGMP, message.to_bytes()))


def test_igmp_of_all_versions_is_read_as_it_was_written() -> None:
    record = IgmpRecord(4, GROUP)
    blocked = IgmpRecord(3, IPv4Address("239.9.9.9"))
    some = IgmpRecord(1, IPv4Address("239.7.7.7"), (IPv4Address("10.0.0.9"),))
    for message, joined, left in (
        (Igmp.join(GROUP), (GROUP,), ()),
        (Igmp.leave(GROUP), (), (GROUP,)),
        (Igmp.query(), (), ()),
        (Igmp.query(GROUP, 20), (), ()),
        (Igmp.report([record, blocked, some]), (GROUP, some.group), (blocked.group,)),
    ):
        read = Igmp.of(igmp_packet(message))
        assert read == message
        assert (read.joined, read.left) == (joined, left)
    assert Igmp.join(GROUP).kind == IgmpKind.V2_REPORT
    broken = bytearray(Igmp.join(GROUP).to_bytes())
    broken[-1] ^= 1
    with pytest.raises(ValueError, match="checksum"):
        Igmp.read(bytes(broken))
    assert Igmp.of(Packet(Ethernet(A, B).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2))) is None


def test_a_lease_is_asked_for_and_given() -> None:
    ask = Ethernet(A, MacAddr.BROADCAST).ipv4("0.0.0.0", "255.255.255.255")
    frame = ask.udp(68, 67, Dhcp.discover(A, xid=7, host_name="printer").to_bytes())
    discover = Dhcp.of(Packet(frame))
    assert discover is not None and discover.kind == DhcpKind.DISCOVER
    assert (discover.xid, discover.client_mac, discover.host_name) == (7, MacAddr(A), "printer")
    options = {DhcpOption.ROUTER: IPv4Address("10.0.0.254").packed, 224: b"x" * 300}
    offer = discover.reply(DhcpKind.OFFER, "10.0.0.254", "10.0.0.9", 3600, options)
    data = offer.to_bytes()
    read = Dhcp.read(data)
    assert read == offer and read.is_reply and read.your_ip == IPv4Address("10.0.0.9")
    assert read.lease_seconds == 3600 and read.server_id == IPv4Address("10.0.0.254")
    assert read.ip_option(DhcpOption.ROUTER) == IPv4Address("10.0.0.254")
    assert read.options[224] == b"x" * 300, "an option of two parts"
    request = Dhcp.request(A, "10.0.0.9", "10.0.0.254", xid=7)
    assert Dhcp.read(request.to_bytes()).requested_ip == IPv4Address("10.0.0.9")
    with pytest.raises(ValueError, match="1 to 254, not 255"):
        Dhcp(False, 1, MacAddr(A), options={255: b""}).to_bytes()
    with pytest.raises(ValueError, match="xid is a number"):
        Dhcp(False, 1 << 32, MacAddr(A)).to_bytes()


def test_a_name_is_asked_for_and_answered() -> None:
    query = Dns.query("www.example.org", id=7)
    frame = Ethernet(A, B).ipv4("10.0.0.1", "10.0.0.2").udp(5000, 53, query.to_bytes())
    read = Dns.of(Packet(frame))
    assert read == query and read.questions[0].name == "www.example.org"
    records = [
        DnsRecord.of_name("www.example.org", DnsKind.CNAME, "web.example.org"),
        DnsRecord.of_address("web.example.org", "192.0.2.1", ttl=300),
        DnsRecord.of_address("web.example.org", "2001:db8::1"),
    ]
    answer = Dns.read(query.answer(records).to_bytes())
    assert answer.is_response and answer.questions == query.questions and answer.id == 7
    assert answer.answers[0].other_name == "web.example.org" and answer.answers[0].ip is None
    assert answer.answers[1].ip == IPv4Address("192.0.2.1") and answer.answers[1].ttl == 300
    assert answer.answers[2].ip == IPv6Address("2001:db8::1")
    refused = Dns.read(query.answer(code=5).to_bytes())
    assert (refused.code, refused.answers) == (5, ())


def test_pointers_in_a_message_become_whole_names() -> None:
    head = bytes.fromhex("0007 8180 0001 0001 0000 0000")
    question = b"\x03www\x07example\x03org\0" + bytes.fromhex("0001 0001")
    # The name of the answer is that of the question; its data are "web" and "example.org" from there.
    record = bytes.fromhex("c00c 0005 0001 0000003c 0006") + b"\x03web\xc0\x10"
    answer = Dns.read(head + question + record)
    assert answer.answers[0].name == "www.example.org"
    assert answer.answers[0].other_name == "web.example.org"
    assert Dns.read(answer.to_bytes()) == answer


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (b"\xc0\x0c", "points forwards"),
        (b"\xc0\x40", "points forwards"),
        (b"\x80a", "unknown form"),
        (b"\x3f" + b"a" * 10, "ends after"),
        ((b"\x3f" + b"a" * 63) * 4 + b"\0", "more than 255"),
    ],
)
def test_a_name_that_is_none_is_an_error(name: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Dns.read(bytes.fromhex("0007 0100 0001 0000 0000 0000") + name)


def test_labels_with_dots_are_not_taken_for_other_names() -> None:
    query = bytes.fromhex("0007 0100 0001 0000 0000 0000") + b"\x04a.b\\\x03org\0\0\1\0\1"
    read = Dns.read(query)
    assert read.questions[0].name == r"a\046b\092.org" and read.to_bytes() == query
    for wrong in ("a..b", "a" * 64, "bücher.example"):
        with pytest.raises(ValueError, match="name|label|xn--"):
            Dns.query(wrong).to_bytes()


def test_an_announcement_names_a_system_and_a_port() -> None:
    parts = [
        LldpPart(LldpKind.SYSTEM_DESCRIPTION, b"Linux"),
        # Can bridge and route, routes.
        LldpPart(LldpKind.CAPABILITIES, bytes.fromhex("0014 0010")),
        # An address of a family that is none of IP, and then one of IPv4.
        LldpPart(LldpKind.MANAGEMENT_ADDRESS, bytes.fromhex("07 06 020000000001 02 00000001 00")),
        LldpPart(LldpKind.MANAGEMENT_ADDRESS, bytes.fromhex("05 01 0a000009 02 00000001 00")),
        LldpPart.of_organization(b"\x00\x80\xc2", 1, b"\x00\x07"),
    ]
    sent = Lldp.announce(A, "eth1", ttl=60, system_name="core-1", parts=parts)
    frame = Ethernet(A, LLDP_MULTICAST).payload(EtherType.LLDP, sent.to_bytes())
    read = Lldp.of(Packet(frame + bytes(20)))
    assert read == sent, "what stands behind the end does not count"
    assert (read.chassis_mac, read.port_name, read.ttl) == (MacAddr(A), "eth1", 60)
    assert (read.system_name, read.system_description) == ("core-1", "Linux")
    assert (read.port_mac, read.port_description) == (None, None)
    assert read.capabilities == LldpCapability.ROUTER
    assert read.management_ip == IPv4Address("10.0.0.9")
    assert read.parts[-1].organization == (b"\x00\x80\xc2", 1, b"\x00\x07")
    other = Lldp(LldpChassis.LOCAL, b"x", LldpPort.MAC, bytes(MacAddr(B)))
    assert Lldp.read(other.to_bytes()) == other
    assert (other.chassis_mac, other.port_mac, other.port_name) == (None, MacAddr(B), None)
    assert Lldp.of(Packet(Ethernet(A, B).payload(EtherType.ARP, sent.to_bytes()))) is None


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("", "no chassis"),
        ("0000", "no chassis"),
        ("0402 0561", "no chassis"),
        ("0202 0761 0202 0761", "no port"),
        ("0202 0761 0402 0561 0000", "third part"),
        ("0202 0761 0402 0561 0601 78", "third part"),
        ("0202 0761 0402 0561 0602 0078 0202 0761", "two parts of type 1"),
        ("0202 0761 0402 0561 0602 0078 0a05 61", "ends after"),
    ],
)
def test_an_announcement_that_is_none_is_an_error(data: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Lldp.read(bytes.fromhex(data))


def test_an_announcement_that_cannot_be_written_is_an_error() -> None:
    for wrong, what in (
        (Lldp.announce(A, ""), "port has 1 to 255 bytes, not 0"),
        (Lldp.announce(A, "p" * 256), "port has 1 to 255 bytes, not 256"),
        (Lldp.announce(A, "p", ttl=1 << 16), "ttl is a number"),
        (Lldp.announce(A, "p", system_name="x" * 512), "at most 511 bytes, not 512"),
        (Lldp.announce(A, "p", parts=[LldpPart(LldpKind.TTL, b"xx")]), "4 to 127, not 3"),
    ):
        with pytest.raises(ValueError, match=what):
            wrong.to_bytes()
    with pytest.raises(ValueError, match="OUI has 3 bytes"):
        LldpPart.of_organization(b"", 1, b"")


def test_a_frame_in_a_tunnel_is_read_as_it_was_written() -> None:
    inner = Ethernet(A, B).ipv4("10.0.0.1", "10.0.0.2").udp(5000, 53, b"hello")
    tunnel = Ethernet(B, A).ipv4("192.0.2.1", "192.0.2.2")
    packet = Packet(tunnel.udp(50000, VXLAN_PORT, Vxlan(0xABCDEF, inner).to_bytes()))
    read = Vxlan.of(packet)
    assert read == Vxlan(0xABCDEF, inner)
    assert read.packet.udp is not None and read.packet.payload == b"hello"
    assert Vxlan.of(Packet(tunnel.udp(VXLAN_PORT, 53, Vxlan(1, inner).to_bytes()))) is None
    # What is reserved does not count (§5).
    assert Vxlan.read(bytes.fromhex("ffffffff 00000107") + inner) == Vxlan(1, inner)
    for data, what in (
        ("08000000 000001", "ends after 7 bytes"),
        ("00000000 00000100" + "00" * 14, "flag I is not set"),
        ("08000000 00000100" + "00" * 13, "13 bytes are no Ethernet header"),
    ):
        with pytest.raises(ValueError, match=what):
            Vxlan.read(bytes.fromhex(data))
    with pytest.raises(ValueError, match="vni is a number from 0 to 16777215"):
        Vxlan(1 << 24, inner).to_bytes()


def test_no_bytes_make_a_reader_fail_otherwise_than_by_a_value_error() -> None:
    dice = random.Random(1)
    whole = [
        (Lldp, Lldp.announce(A, "eth1", system_name="core-1").to_bytes()),
        (Vxlan, Vxlan(1, bytes(20)).to_bytes()),
        (Igmp, Igmp.report([IgmpRecord(4, GROUP, (GROUP,))]).to_bytes()),
        (Dhcp, Dhcp.discover(A).to_bytes()),
        (Dns, Dns.query("a.example").answer([DnsRecord.of_address("a.example", "10.0.0.1")]).to_bytes()),
    ]
    for reader, data in whole:
        for _ in range(3000):
            changed = bytearray(data[: dice.randrange(len(data) + 1)])
            for _ in range(dice.randrange(4)):
                if changed:
                    changed[dice.randrange(len(changed))] = dice.choice([0, 1, 0x0C, 0xC0, 0xFF])
            try:
                reader.read(bytes(changed))  # type: ignore[attr-defined]
            except ValueError:
                pass
