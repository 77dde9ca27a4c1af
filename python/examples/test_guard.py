from guard import NO_SUCH_NAME, Guard

from bellrock import Ethernet, MacAddr
from bellrock.lab import Lab, single
from bellrock.protocols import Dhcp, DhcpKind, Dns

EVERYBODY = MacAddr.BROADCAST


def guarded() -> tuple[Lab, Guard]:
    """A server h1, and hosts h2 and h3, of which h2 has a lease."""
    guard = Guard(server=(1, 1), blocked=["ads.example"])
    lab = Lab(single(3), guard, "learning")
    give(lab, "h1", "h2")
    return lab, guard


def give(lab: Lab, server: str, client: str) -> None:
    """A server gives a host its address."""
    request = Dhcp.request(lab.mac(client), lab.ip(client), lab.ip(server))
    ask = Ethernet(lab.mac(client), EVERYBODY).ipv4("0.0.0.0", "255.255.255.255")
    lab.send(client, ask.udp(68, 67, request.to_bytes()))
    ack = request.reply(DhcpKind.ACK, lab.ip(server), lab.ip(client), 3600)
    answer = Ethernet(lab.mac(server), EVERYBODY).ipv4(lab.ip(server), "255.255.255.255")
    lab.send(server, answer.udp(67, 68, ack.to_bytes()))
    lab.run_for(0.1)


def test_a_host_has_the_address_that_it_was_given_and_no_other() -> None:
    lab, guard = guarded()
    assert guard.leases == {lab.mac("h2"): lab.ip("h2")}
    assert lab.ping("h2", "h1") and lab.ping("h1", "h2")
    assert not lab.ping("h3", "h1"), "h3 has no lease"
    assert lab.app_counter("Guard", "addresses_refused")
    give(lab, "h1", "h3")
    assert lab.ping("h3", "h1")
    assert not lab.exceptions


def test_a_server_at_another_port_gives_nothing() -> None:
    lab, guard = guarded()
    lab.capture("h2")
    give(lab, "h3", "h2")
    assert not [packet for packet in lab.capture("h2") if Dhcp.of(packet)]
    assert lab.app_counter("Guard", "offers_refused") == 1
    give(lab, "h3", "h3")
    assert lab.mac("h3") not in guard.leases


def test_a_blocked_name_does_not_exist_and_others_are_asked_for() -> None:
    lab, _ = guarded()
    assert lab.ping("h2", "h1"), "the learning switch has flows between them"
    lab.capture("h1"), lab.capture("h2")
    ask = Ethernet(lab.mac("h2"), lab.mac("h1")).ipv4(lab.ip("h2"), lab.ip("h1"))
    for number, name in enumerate(["www.Ads.example", "ads.example", "bads.example"]):
        lab.send("h2", ask.udp(5000, 53, Dns.query(name, id=number).to_bytes()))
    lab.run_for(0.1)
    answers = [message for packet in lab.capture("h2") if (message := Dns.of(packet))]
    assert [(message.id, message.code) for message in answers] == [(0, NO_SUCH_NAME), (1, NO_SUCH_NAME)]
    asked = [message for packet in lab.capture("h1") if (message := Dns.of(packet))]
    assert [message.questions[0].name for message in asked] == ["bads.example"]
