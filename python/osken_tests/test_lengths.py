"""Messages that os-ken's parsers would read for ever are found, and all others are left alone."""

from __future__ import annotations

import struct

import pytest
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_0, ofproto_v1_3

from bellrock.osken import lengths

PARSED = {4: ofproto_protocol.ProtocolDesc(ofproto_v1_3.OFP_VERSION), 1: ofproto_protocol.ProtocolDesc(ofproto_v1_0.OFP_VERSION)}


def message(version: int, kind: int, body: bytes) -> bytes:
    return struct.pack("!BBHI", version, kind, 8 + len(body), 1) + body


def stats(kind: int, body: bytes) -> bytes:
    return message(4, 19, struct.pack("!HH4x", kind, 0) + body)


def action(length: int) -> bytes:
    return struct.pack("!HHIH6x", 0, length, 1, 0)


def conntrack(inner: int) -> bytes:
    """Nicira's ct(), with an action in it."""
    return struct.pack("!HHIHHIHB3xH", 0xFFFF, 40, 0x2320, 35, 0, 0, 0, 0, 0) + action(inner)


def flow(length: int, actions: bytes, instruction: int | None = None) -> bytes:
    """An entry of flow statistics, with a match of all and one instruction. The lengths are what they say."""
    size = 8 + len(actions) if instruction is None else instruction
    inner = struct.pack("!HHHH", 1, 4, 0, 0)[:4] + bytes(4) + struct.pack("!HH4x", 4, size) + actions
    return struct.pack("!HBxIIHHHH4xQQQ", length, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) + inner


def bucket(length: int, actions: bytes) -> bytes:
    return struct.pack("!HHII4x", length, 0, 0, 0) + actions


def table(length: int, prop: bytes) -> bytes:
    return struct.pack("!HB5x32sQQII", length, 0, b"", 0, 0, 0, 0) + prop


def flow_10(length: int, inner: int) -> bytes:
    body = struct.pack("!HBx", length, 0) + bytes(40) + bytes(44) + struct.pack("!HHHH", 0, inner, 1, 0)
    return message(1, 17, struct.pack("!HH", 1, 0) + body)


GOOD = {
    "hello": message(4, 0, struct.pack("!HHI", 1, 8, 0x12)),
    "flow": stats(1, flow(80, action(16)) * 2),
    "conntrack": stats(1, flow(104, conntrack(16))),
    "group": stats(6, struct.pack("!H6xIIQQII", 40, 1, 0, 0, 0, 0, 0)),
    "group_desc": stats(7, struct.pack("!HBxI", 40, 0, 1) + bucket(32, action(16))),
    "meter": stats(9, struct.pack("!IH6xIQQII", 1, 40, 0, 0, 0, 0, 0)),
    "meter_config": stats(10, struct.pack("!HHI", 24, 0, 1) + struct.pack("!HHII4x", 1, 16, 0, 0)),
    "table": stats(12, table(72, struct.pack("!HHHH", 0, 8, 1, 4))),
    "queue": message(4, 23, struct.pack("!I4x", 1) + struct.pack("!IIH6x", 1, 1, 32) + struct.pack("!HH4xH6x", 1, 16, 5)),
    "flow_10": flow_10(96, 8),
    "queue_10": message(1, 21, struct.pack("!H6x", 1) + struct.pack("!IH2x", 1, 24) + struct.pack("!HH4xH6x", 1, 16, 5)),
}

BAD = {
    "hello": message(4, 0, struct.pack("!HHI", 1, 0, 0x12)),
    "hello whose padding is read": message(4, 0, struct.pack("!HHB3x", 9, 5, 0) + bytes(8)),
    "flow": stats(1, flow(0, action(16))),
    "a second flow": stats(1, flow(80, action(16)) + flow(0, action(16))),
    "instruction": stats(1, flow(80, action(16), 0)),
    "action": stats(1, flow(80, action(0))),
    "an action in conntrack": stats(1, flow(104, conntrack(0))),
    "group": stats(6, struct.pack("!H6xIIQQII", 0, 1, 0, 0, 0, 0, 0)),
    "group_desc": stats(7, struct.pack("!HBxI", 0, 0, 1) + bucket(32, action(16))),
    "bucket": stats(7, struct.pack("!HBxI", 40, 0, 1) + bucket(0, action(16))),
    "an action in a bucket": stats(7, struct.pack("!HBxI", 40, 0, 1) + bucket(32, action(0))),
    "meter": stats(9, struct.pack("!IH6xIQQII", 1, 0, 0, 0, 0, 0, 0)),
    "meter_config": stats(10, struct.pack("!HHI", 0, 0, 1) + struct.pack("!HHII4x", 1, 16, 0, 0)),
    "band": stats(10, struct.pack("!HHI", 24, 0, 1) + struct.pack("!HHII4x", 1, 0, 0, 0)),
    "table": stats(12, table(0, b"")),
    "property": stats(12, table(72, struct.pack("!HHHH", 0, 0, 1, 4))),
    "an instruction of a table": stats(12, table(72, struct.pack("!HHHH", 0, 8, 1, 0))),
    "queue": message(4, 23, struct.pack("!I4x", 1) + struct.pack("!IIH6x", 1, 1, 0)),
    "a queue's property": message(4, 23, struct.pack("!I4x", 1) + struct.pack("!IIH6x", 1, 1, 32) + struct.pack("!HH4xH6x", 1, 0, 5)),
    "an unknown property": message(4, 23, struct.pack("!I4x", 1) + struct.pack("!IIH6x", 1, 1, 32) + struct.pack("!HH4xH6x", 7, 16, 5)),
    "flow_10": flow_10(0, 8),
    "action_10": flow_10(96, 0),
    "queue_10": message(1, 21, struct.pack("!H6x", 1) + struct.pack("!IH2x", 1, 0)),
    "a flow_mod": message(4, 14, bytes(40) + struct.pack("!HH4x", 1, 4) + struct.pack("!HH4x", 9, 8)),
    "a flow_mod of 1.0": message(1, 14, bytes(64) + bytes(8)),
    "flow statistics of 1.4": message(5, 19, struct.pack("!HH4x", 1, 0) + flow(0, action(16))),
    "a queue's property of 1.0": message(1, 21, struct.pack("!H6x", 1) + struct.pack("!IH2x", 1, 24) + struct.pack("!HH4xH6x", 1, 0, 5)),
}


@pytest.mark.parametrize("name", GOOD)
def test_messages_that_end_are_left_to_os_ken(name: str) -> None:
    text = GOOD[name]
    lengths.check(text)
    assert ofproto_parser.msg(PARSED[text[0]], *ofproto_parser.header(text), bytearray(text)) is not None


@pytest.mark.parametrize("name", BAD)
def test_messages_without_end_are_found(name: str) -> None:
    with pytest.raises(lengths.Endless):
        lengths.check(BAD[name])


@pytest.mark.parametrize("name", GOOD)
def test_every_part_of_a_message_ends(name: str) -> None:
    """A walk over what was cut off ends, whatever it finds."""
    text = GOOD[name]
    for size in range(8, len(text)):
        try:
            lengths.check(text[:size])
        except lengths.Endless:
            pass
