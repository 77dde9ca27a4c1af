"""IGMP, versions 1 to 3 (RFC 1112, 2236, 3376)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address

from .._app import IpProto
from .._native import Packet
from ._reader import Reader, checksum, number


class IgmpKind(IntEnum):
    """Types of IGMP messages."""

    QUERY = 0x11
    V1_REPORT = 0x12
    V2_REPORT = 0x16
    LEAVE = 0x17
    V3_REPORT = 0x22


NOWHERE = IPv4Address(0)


@dataclass(frozen=True)
class IgmpRecord:
    """A group in a report of version 3 (RFC 3376 §4.2.4)."""

    change: int
    """1 to 6: is include, is exclude, to include, to exclude, allow new sources, block old sources."""
    group: IPv4Address
    """The group."""
    sources: tuple[IPv4Address, ...] = ()
    """Sources that it is about."""

    @property
    def joins(self) -> bool:
        """Whether the host wants packets of the group now, from some source."""
        return self.change in (2, 4) or (self.change in (1, 3, 5) and bool(self.sources))

    @property
    def leaves(self) -> bool:
        """Whether the host wants no packets of the group any more."""
        return self.change in (1, 3) and not self.sources


@dataclass(frozen=True)
class Igmp:
    """An IGMP message. Its checksum is computed when it is written, and verified when it is read."""

    kind: int
    """Its type: one of `IgmpKind`, or another number."""
    group: IPv4Address = NOWHERE
    """The group. 0.0.0.0 in a general query, and in a report of version 3."""
    max_response: int = 0
    """Time for an answer to a query, in tenths of a second, as the message has it."""
    records: tuple[IgmpRecord, ...] = ()
    """The groups of a report of version 3."""
    rest: bytes = b""
    """What stands behind: in a query of version 3, its flags and sources."""

    @classmethod
    def of(cls, packet: Packet) -> Igmp | None:
        """Reads the IGMP message of a packet. `None`: it has none, or a broken one."""
        ip = packet.ipv4
        if ip is None or ip.proto != IpProto.IGMP or ip.is_fragment:
            return None
        try:
            return cls.read(packet.payload)
        except ValueError:
            return None

    @classmethod
    def read(cls, data: bytes) -> Igmp:
        """Reads a message. Raises `ValueError` if it is cut off, or its checksum is wrong."""
        reader = Reader(data, "the IGMP message")
        kind, max_response = reader.number(1), reader.number(1)
        reader.take(2)
        if checksum(data) != 0:
            raise ValueError("the checksum of the IGMP message is wrong")
        if kind != IgmpKind.V3_REPORT:
            return cls(kind, reader.ip(), max_response, rest=reader.rest())
        reader.take(2)
        records = tuple(cls._read_record(reader) for _ in range(reader.number(2)))
        return cls(kind, records=records, rest=reader.rest())

    @staticmethod
    def _read_record(reader: Reader) -> IgmpRecord:
        change, words, count = reader.number(1), reader.number(1), reader.number(2)
        group = reader.ip()
        sources = tuple(reader.ip() for _ in range(count))
        reader.take(4 * words)
        return IgmpRecord(change, group, sources)

    @classmethod
    def join(cls, group: IPv4Address | str) -> Igmp:
        """A report of version 2: the host wants packets of the group."""
        return cls(IgmpKind.V2_REPORT, IPv4Address(group))

    @classmethod
    def leave(cls, group: IPv4Address | str) -> Igmp:
        """The message of version 2 that a host leaves the group. It goes to 224.0.0.2."""
        return cls(IgmpKind.LEAVE, IPv4Address(group))

    @classmethod
    def query(cls, group: IPv4Address | str = NOWHERE, max_response: int = 100) -> Igmp:
        """A query of version 2: for one group, or for all."""
        return cls(IgmpKind.QUERY, IPv4Address(group), max_response)

    @classmethod
    def report(cls, records: Sequence[IgmpRecord]) -> Igmp:
        """A report of version 3. It goes to 224.0.0.22."""
        return cls(IgmpKind.V3_REPORT, records=tuple(records))

    @property
    def joined(self) -> tuple[IPv4Address, ...]:
        """The groups that the host wants packets of, by any version of a report."""
        if self.kind in (IgmpKind.V1_REPORT, IgmpKind.V2_REPORT):
            return (self.group,)
        return tuple(record.group for record in self.records if record.joins)

    @property
    def left(self) -> tuple[IPv4Address, ...]:
        """The groups that the host wants no packets of any more, by any version."""
        if self.kind == IgmpKind.LEAVE:
            return (self.group,)
        return tuple(record.group for record in self.records if record.leaves)

    def to_bytes(self) -> bytes:
        """The message: the payload of an IP packet with `IpProto.IGMP`, whose TTL is 1."""
        head = number(self.kind, 1, "kind") + number(self.max_response, 1, "max_response")
        if self.kind == IgmpKind.V3_REPORT:
            body = b"\0\0" + number(len(self.records), 2, "the number of records")
            for record in self.records:
                body += number(record.change, 1, "change") + b"\0"
                body += number(len(record.sources), 2, "the number of sources") + record.group.packed
                body += b"".join(source.packed for source in record.sources)
        else:
            body = self.group.packed
        body += self.rest
        return head + checksum(head + b"\0\0" + body).to_bytes(2, "big") + body
