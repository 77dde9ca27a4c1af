"""Raw connections: this program reads and writes the messages of switches itself."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from switch import BARRIER_REQUEST, ECHO_REPLY, ECHO_REQUEST, FEATURES_REPLY, FEATURES_REQUEST, HELLO, PACKET_OUT, SwitchEnd

from bellrock import Error
from bellrock._native import RawClosed, RawController, RawEvent, RawFull

FRAME = bytes.fromhex("ffffffffffff 020000000001 0800") + bytes(46)
SETTINGS = [("listen", ["127.0.0.1:0"]), ("workers", ["1"]), ("control", ["none"])]
LIMIT_S = 20
# What is not to come would have come by then.
QUIET_S = 0.2
BARRIER = struct.pack("!BBHI", 1, BARRIER_REQUEST, 8, 0x7777)
MAX_UNSENT_BYTES = 4 << 20
LARGEST = struct.pack("!BBHI", 1, PACKET_OUT, 65_535, 1) + bytes(65_527)


@pytest.fixture
def controller() -> Iterator[RawController]:
    started = RawController(SETTINGS)
    yield started
    started.stop()


def _next(controller: RawController, kind: str) -> RawEvent:
    """Waits as a loop of its own does, by the file descriptor, for an event of this kind."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        # A test that would wait for ever fails instead.
        if select.select([controller.fileno()], [], [], LIMIT_S)[0]:
            for event in controller.take(1):
                if event.kind == kind:
                    return event
    raise AssertionError(f"no event {kind!r}")


def test_messages_pass_both_ways(controller: RawController) -> None:
    with SwitchEnd(controller.addresses[0], dpid=0xA1) as switch:
        up = _next(controller, "up")
        connection = up.connection
        assert (connection.dpid, connection.version, up.peer and up.peer[0]) == (0xA1, 1, "127.0.0.1")
        assert (up.hello[1], up.features[1]) == (HELLO, FEATURES_REPLY)
        assert not up.messages and not connection.is_closed
        switch.packet_in(FRAME)
        switch.packet_in(FRAME, in_port=2)
        messages: list[bytes] = []
        while len(messages) < 2:
            messages += _next(controller, "messages").messages
        assert all(message.endswith(FRAME) for message in messages)
        connection.send(BARRIER + BARRIER)
        assert _next(controller, "messages").messages[0][4:] == BARRIER[4:], "with the xid of the program"
        # Echoes are the controller's.
        switch.send(ECHO_REQUEST, b"alive?")
        assert switch.receive(ECHO_REPLY) == b"alive?"
    down = _next(controller, "down")
    assert down.connection.id == connection.id and down.reason and connection.is_closed
    with pytest.raises(RawClosed):
        connection.send(BARRIER)


def test_a_close_comes_after_what_was_sent(controller: RawController) -> None:
    with SwitchEnd(controller.addresses[0]) as switch:
        connection = _next(controller, "up").connection
        connection.send(struct.pack("!BBHIIHH", 1, PACKET_OUT, 16, 1, 0xFFFF_FFFF, 1, 0))
        connection.close("it is enough")
        assert switch.receive(PACKET_OUT)[:4] == b"\xff" * 4
        assert "it is enough" in _next(controller, "down").reason


def test_a_malformed_message_is_an_error(controller: RawController) -> None:
    with SwitchEnd(controller.addresses[0]):
        connection = _next(controller, "up").connection
        with pytest.raises(Error, match="not whole"):
            connection.send(BARRIER[:5])
        with pytest.raises(Error, match="version byte 4"):
            connection.send(b"\x04" + BARRIER[1:])


def test_a_switch_that_takes_nothing_is_full_and_later_writable(controller: RawController) -> None:
    host, port = controller.addresses[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=LIMIT_S) as switch:
        switch.sendall(struct.pack("!BBHI", 1, HELLO, 8, 0))
        with switch.makefile("rb") as stream:
            kind, xid = HELLO, 0
            while kind != FEATURES_REQUEST:
                _, kind, length, xid = struct.unpack("!BBHI", stream.read(8))
                stream.read(length - 8)
        switch.sendall(struct.pack("!BBHIQIB3xII", 1, FEATURES_REPLY, 32, xid, 1, 0, 1, 0, 0))
        connection = _next(controller, "up").connection
        with pytest.raises(RawFull):
            while True:
                connection.send(LARGEST)
        assert connection.unsent > MAX_UNSENT_BYTES / 2
        with pytest.raises(Error, match="too many"):
            connection.send(LARGEST * (MAX_UNSENT_BYTES // len(LARGEST) + 1))
        assert controller.take(9) == []
        while not select.select([controller.fileno()], [], [], 0)[0]:
            assert switch.recv(1 << 20)
        assert _next(controller, "writable").connection.id == connection.id
        connection.send(LARGEST)


def test_a_paused_switch_is_not_read(controller: RawController) -> None:
    with SwitchEnd(controller.addresses[0]) as switch:
        connection = _next(controller, "up").connection
        connection.pause()
        assert controller.take(9) == []
        switch.packet_in(FRAME)
        assert not select.select([controller.fileno()], [], [], QUIET_S)[0]
        connection.resume()
        assert len(_next(controller, "messages").messages) == 1


def test_events_are_taken_in_batches_and_the_rest_rings_again(controller: RawController) -> None:
    ends = [SwitchEnd(controller.addresses[0], dpid=number) for number in range(1, 6)]
    seen = {_next(controller, "up").connection.dpid for _ in ends}
    assert seen == {1, 2, 3, 4, 5}
    for end in ends:
        end.__exit__(None, None, None)
    assert {_next(controller, "down").connection.dpid for _ in ends} == seen
    assert controller.take(9) == [] and not controller.wait(0)


def test_the_stop_is_seen(controller: RawController) -> None:
    with SwitchEnd(controller.addresses[0]):
        _next(controller, "up")
        assert not controller.is_over and not controller.has_failed
        controller.stop()
        while not controller.is_over:
            assert controller.wait(LIMIT_S * 1000)
            controller.take(9)
        assert controller.wait(0), "it stays readable"


def test_settings_are_those_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='no setting "lissen"'):
        RawController([("lissen", ["127.0.0.1:0"])])
    with pytest.raises(ValueError, match="workers"):
        RawController([*SETTINGS, ("workers", ["many"])])
    file = tmp_path / "bellrock.yaml"
    with pytest.raises(ValueError, match="bellrock.yaml"):
        RawController(SETTINGS, file=file)
    file.write_text("max_connections: 1\nlisten: 127.0.0.1:6653\n")
    controller = RawController(SETTINGS, file=file)
    try:
        assert not controller.addresses[0].endswith(":6653"), "the argument overrides the file"
        with SwitchEnd(controller.addresses[0]):
            _next(controller, "up")
            with SwitchEnd(controller.addresses[0], dpid=2) as second, pytest.raises(ConnectionError):
                second.receive(PACKET_OUT)
        with pytest.raises(Error, match="choose another port"):
            RawController([("listen", controller.addresses), *SETTINGS[1:]])
    finally:
        controller.stop()
