"""Finds the messages that os-ken's parsers read for ever.

They take the length of each entry of a list as it comes. An entry that says it has no bytes is read again and again, which
stops all of the process: its other switches, its timers, and its memory grows. The walk here goes the way of those parsers, and only
over what can stop them; it is no check of a message. Lists of fixed entries, and matches, always end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

HEADER_BYTES = 8
MIN_ENTRY_BYTES = 4
"""An entry has at least its type and its length."""

V10, V13 = 1, 4
HELLO, ECHO_REPLY, FLOW_MOD = 0, 3, 14
STATS_REPLY = {V10: 17, V13: 19}
QUEUE_CONFIG_REPLY = {V10: 21, V13: 23}
QUEUE_CONFIG_BYTES = 16

EXPERIMENTER = 0xFFFF
NICIRA = 0x00002320
NICIRA_CONNTRACK, NICIRA_CONNTRACK_BYTES = 35, 24

FLOW, GROUP, GROUP_DESC, METER, METER_CONFIG, TABLE_FEATURES = 1, 6, 7, 9, 10, 12
ACTION_INSTRUCTIONS = (3, 4, 5)
TABLE_INSTRUCTIONS, TABLE_ACTIONS = (0, 1), (4, 5, 6, 7)
QUEUE_PROPERTIES = (1, 2, EXPERIMENTER)
NICIRA_FLOW_BYTES = 48


class Endless(ValueError):
    """A list with an entry that has no bytes, or a message that no switch of the version sends."""


def check(message: bytes) -> None:
    """Raises `Endless` for a message of a switch that os-ken would never finish to parse."""
    version, kind = message[0], message[1]
    if kind == HELLO:
        _walk(message, HEADER_BYTES, len(message), 2)
    elif kind > ECHO_REPLY and version not in (V10, V13):
        # os-ken's parsers of other versions would read it, and read lists as those here do.
        raise Endless(f"a message of version {version} and type {kind}; messages of versions {V10} and {V13} are read")
    elif kind == FLOW_MOD:
        # The only message of controllers that os-ken parses, with lists of the same kind.
        raise Endless("a flow_mod, which only controllers send")
    elif kind == STATS_REPLY.get(version):
        _stats(version, message)
    elif kind == QUEUE_CONFIG_REPLY.get(version):
        _walk(message, QUEUE_CONFIG_BYTES, len(message), 8 if version == V13 else 4, _queue_13 if version == V13 else _queue_10)


def _entries(data: bytes, start: int, end: int, length_at: int, pad: int = 1) -> Iterator[tuple[int, int]]:
    """Yields where each entry of a list begins and ends."""
    while start < end and start + length_at + 2 <= len(data):
        length = _u16(data, start + length_at)
        if length < MIN_ENTRY_BYTES:
            raise Endless(f"an entry of {length} bytes at byte {start} of a message of type {data[1]}")
        yield start, min(start + length, len(data))
        start += -(-length // pad) * pad


def _walk(data: bytes, start: int, end: int, length_at: int, inner: Callable[[bytes, int, int], None] | None = None, pad: int = 1) -> None:
    for first, last in _entries(data, start, end, length_at, pad):
        if inner:
            inner(data, first, last)


def _u16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at:at + 2], "big")


def _stats(version: int, data: bytes) -> None:
    kind = _u16(data, HEADER_BYTES)
    if version == V10:
        if kind == FLOW:
            _walk(data, 12, len(data), 0, lambda data, start, end: _actions(data, start + 88, end))
        elif kind == EXPERIMENTER and int.from_bytes(data[12:16], "big") == NICIRA and _u16(data, 18) == 0:
            # Its flows are the first of Nicira's two kinds of statistics.
            _walk(data, 24, len(data), 0, _nicira_flow)
    elif kind in STATS_13:
        length_at, inner = STATS_13[kind]
        _walk(data, 16, len(data), length_at, inner)


def _flow(data: bytes, start: int, end: int) -> None:
    match = _u16(data, start + 50)
    first = start + 48 + -(-match // 8) * 8
    for instruction, last in _entries(data, first, end, 2):
        if _u16(data, instruction) in ACTION_INSTRUCTIONS:
            _actions(data, instruction + 8, last)


def _nicira_flow(data: bytes, start: int, end: int) -> None:
    match = _u16(data, start + 18)
    _actions(data, start + NICIRA_FLOW_BYTES + -(-match // 8) * 8, end)


def _actions(data: bytes, start: int, end: int) -> None:
    for action, last in _entries(data, start, end, 2):
        if (_u16(data, action) == EXPERIMENTER and int.from_bytes(data[action + 4:action + 8], "big") == NICIRA
                and _u16(data, action + 8) == NICIRA_CONNTRACK):
            _actions(data, action + NICIRA_CONNTRACK_BYTES, last)


def _group(data: bytes, start: int, end: int) -> None:
    _walk(data, start + 8, end, 0, lambda data, start, end: _actions(data, start + 16, end))


def _meter(data: bytes, start: int, end: int) -> None:
    _walk(data, start + 8, end, 2)


def _table(data: bytes, start: int, end: int) -> None:
    for one, last in _entries(data, start + 64, end, 2, pad=8):
        kind = _u16(data, one)
        if kind in TABLE_INSTRUCTIONS or kind in TABLE_ACTIONS:
            _walk(data, one + 4, last, 2)


def _queue_13(data: bytes, start: int, end: int) -> None:
    for one, _ in _entries(data, start + 16, end, 2):
        if _u16(data, one) not in QUEUE_PROPERTIES:
            raise Endless(f"a property of a queue of unknown type {_u16(data, one)} at byte {one}")


def _queue_10(data: bytes, start: int, end: int) -> None:
    _walk(data, start + 8, end, 2)


STATS_13 = {
    FLOW: (0, _flow), GROUP: (0, None), GROUP_DESC: (0, _group), METER: (4, None), METER_CONFIG: (0, _meter), TABLE_FEATURES: (0, _table),
}
"""Statistics of OpenFlow 1.3 with entries that have a length: where it is, and what has lists in an entry."""
