"""DNS (RFC 1035)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address

from .._native import Packet
from ._reader import Reader, number

PORT = 53
MULTICAST_PORT = 5353

INTERNET = 1
MAX_NAME_BYTES = 255
MAX_LABEL_BYTES = 63
MAX_POINTERS = 32
"""Maximum number of pointers that a name is read through."""
POINTER = 0xC0

RESPONSE = 0x8000
AUTHORITATIVE = 0x0400
TRUNCATED = 0x0200
RECURSION_DESIRED = 0x0100
RECURSION_AVAILABLE = 0x0080


class DnsKind(IntEnum):
    """Types of records."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    PTR = 12
    MX = 15
    TXT = 16
    AAAA = 28
    SRV = 33
    ANY = 255


# Bytes before the names in the data of a record, and the number of names.
NAMES = {
    DnsKind.NS: (0, 1),
    DnsKind.CNAME: (0, 1),
    DnsKind.PTR: (0, 1),
    DnsKind.MX: (2, 1),
    DnsKind.SRV: (6, 1),
    DnsKind.SOA: (0, 2),
}


@dataclass(frozen=True)
class DnsQuestion:
    """A question: the records of this type that a name has."""

    name: str
    """The name, without a dot at its end."""
    kind: int = DnsKind.A
    """Type of the records: one of `DnsKind`, or another number."""
    family: int = INTERNET
    """Class, 1 for the Internet."""


@dataclass(frozen=True)
class DnsRecord:
    """A record: what a name has."""

    name: str
    """The name, without a dot at its end."""
    kind: int
    """Its type: one of `DnsKind`, or another number."""
    data: bytes
    """Its data. Names in them are whole, even where the message had pointers."""
    ttl: int = 60
    """Seconds for which it may be kept."""
    family: int = INTERNET
    """Class, 1 for the Internet."""

    @classmethod
    def of_address(cls, name: str, ip: IPv4Address | IPv6Address | str, ttl: int = 60) -> DnsRecord:
        """The record that a name has an address: type A or AAAA."""
        try:
            return cls(name, DnsKind.A, IPv4Address(ip).packed, ttl)
        except ValueError:
            return cls(name, DnsKind.AAAA, IPv6Address(ip).packed, ttl)

    @classmethod
    def of_name(cls, name: str, kind: int, other: str, ttl: int = 60) -> DnsRecord:
        """The record that a name stands for another one: type CNAME, NS or PTR."""
        return cls(name, kind, _name_to_bytes(other), ttl)

    @property
    def ip(self) -> IPv4Address | IPv6Address | None:
        """The address of a record of type A or AAAA."""
        if self.kind == DnsKind.A and len(self.data) == 4:
            return IPv4Address(self.data)
        if self.kind == DnsKind.AAAA and len(self.data) == 16:
            return IPv6Address(self.data)
        return None

    @property
    def other_name(self) -> str | None:
        """The name in the data of a record of type CNAME, NS, PTR, MX or SRV."""
        before, _ = NAMES.get(self.kind, (0, 0))  # type: ignore[call-overload]
        if self.kind not in NAMES or self.kind == DnsKind.SOA:
            return None
        try:
            return _read_name(Reader(self.data[before:], "the data"))
        except ValueError:
            return None


@dataclass(frozen=True)
class Dns:
    """A DNS message."""

    id: int
    """Number that the asker gave it."""
    is_response: bool = False
    """Whether it is an answer."""
    questions: tuple[DnsQuestion, ...] = ()
    """Its questions, usually one. Answers repeat them."""
    answers: tuple[DnsRecord, ...] = ()
    """Records that answer."""
    authorities: tuple[DnsRecord, ...] = ()
    """Records of the servers that know more."""
    additional: tuple[DnsRecord, ...] = ()
    """Further records, such as addresses of those servers."""
    opcode: int = 0
    """What is asked: 0 for a usual question."""
    code: int = 0
    """Outcome of an answer: 0 for none, 3 for no such name, 5 for refused."""
    is_authoritative: bool = False
    """Whether the server answers for the name itself."""
    is_truncated: bool = False
    """Whether the answer did not fit: the asker repeats the question by TCP."""
    wants_recursion: bool = True
    """Whether the server is to ask others."""
    has_recursion: bool = False
    """Whether the server asks others."""

    @classmethod
    def of(cls, packet: Packet) -> Dns | None:
        """Reads the DNS message of a UDP packet, of mDNS too. `None`: it has none, or a broken one."""
        udp = packet.udp
        if udp is None or not {udp.src_port, udp.dst_port} & {PORT, MULTICAST_PORT}:
            return None
        try:
            return cls.read(packet.payload)
        except ValueError:
            return None

    @classmethod
    def read(cls, data: bytes) -> Dns:
        """Reads a message. Raises `ValueError` if it is cut off, or has a name that is none."""
        reader = Reader(data, "the DNS message")
        id, flags = reader.number(2), reader.number(2)
        counts = [reader.number(2) for _ in range(4)]
        questions = tuple(
            DnsQuestion(_read_name(reader), reader.number(2), reader.number(2))
            for _ in range(counts[0])
        )
        # The count may be a lie, but each record takes bytes, which end.
        sections = [tuple(_read_record(reader) for _ in range(count)) for count in counts[1:]]
        return cls(
            id=id,
            is_response=bool(flags & RESPONSE),
            questions=questions,
            answers=sections[0],
            authorities=sections[1],
            additional=sections[2],
            opcode=flags >> 11 & 0xF,
            code=flags & 0xF,
            is_authoritative=bool(flags & AUTHORITATIVE),
            is_truncated=bool(flags & TRUNCATED),
            wants_recursion=bool(flags & RECURSION_DESIRED),
            has_recursion=bool(flags & RECURSION_AVAILABLE),
        )

    @classmethod
    def query(cls, name: str, kind: int = DnsKind.A, id: int = 1) -> Dns:
        """A question for the records of a name."""
        return cls(id, questions=(DnsQuestion(name, kind),))

    def answer(self, records: Sequence[DnsRecord] = (), code: int = 0) -> Dns:
        """The answer to this question: records, or the code that says why there are none."""
        return replace(
            self,
            is_response=True,
            answers=tuple(records),
            authorities=(),
            additional=(),
            code=code,
            is_truncated=False,
            has_recursion=True,
        )

    def to_bytes(self) -> bytes:
        """The message: the payload of a UDP datagram from or to port 53. Names are written whole."""
        flags = number(self.opcode, 1, "opcode")[0] << 11 | number(self.code, 1, "code")[0]
        if self.opcode > 0xF or self.code > 0xF:
            raise ValueError("opcode and code are numbers from 0 to 15")
        for is_set, flag in (
            (self.is_response, RESPONSE),
            (self.is_authoritative, AUTHORITATIVE),
            (self.is_truncated, TRUNCATED),
            (self.wants_recursion, RECURSION_DESIRED),
            (self.has_recursion, RECURSION_AVAILABLE),
        ):
            flags |= flag if is_set else 0
        data = number(self.id, 2, "id") + flags.to_bytes(2, "big")
        sections = (self.answers, self.authorities, self.additional)
        data += number(len(self.questions), 2, "the number of questions")
        data += b"".join(number(len(each), 2, "the number of records") for each in sections)
        for question in self.questions:
            data += _name_to_bytes(question.name) + number(question.kind, 2, "kind")
            data += number(question.family, 2, "family")
        for record in (record for section in sections for record in section):
            data += _name_to_bytes(record.name) + number(record.kind, 2, "kind")
            data += number(record.family, 2, "family") + number(record.ttl, 4, "ttl")
            data += number(len(record.data), 2, "the length of the data") + record.data
        return data


def _read_record(reader: Reader) -> DnsRecord:
    name = _read_name(reader)
    kind, family, ttl = reader.number(2), reader.number(2), reader.number(4)
    length = reader.number(2)
    start = reader.at
    data = reader.take(length)
    if kind in NAMES:
        before, names = NAMES[kind]  # type: ignore[index]
        inside = Reader(reader.data[: start + length], "the data of a DNS record")
        inside.at = start
        data = inside.take(before)
        for _ in range(names):
            data += _name_to_bytes(_read_name(inside))
        data += inside.rest()
    return DnsRecord(name, kind, data, ttl, family)


def _read_name(reader: Reader) -> str:
    """Reads a name. Pointers lead backwards only, so it ends."""
    labels: list[str] = []
    length, end, lowest, pointers = 0, None, reader.at, 0
    while True:
        size = reader.number(1)
        if size & POINTER == POINTER:
            target = (size & ~POINTER) << 8 | reader.number(1)
            end = reader.at if end is None else end
            if target >= lowest:
                raise ValueError("a name of the DNS message points forwards")
            pointers += 1
            if pointers > MAX_POINTERS:
                raise ValueError(f"a name of the DNS message has more than {MAX_POINTERS} pointers")
            reader.at = lowest = target
            continue
        if size > MAX_LABEL_BYTES:
            raise ValueError("a label of the DNS message has an unknown form")
        if size == 0:
            break
        length += size + 1
        if length >= MAX_NAME_BYTES:
            raise ValueError(f"a name of the DNS message has more than {MAX_NAME_BYTES} bytes")
        labels.append(_label_to_text(reader.take(size)))
    if end is not None:
        reader.at = end
    return ".".join(labels)


def _label_to_text(label: bytes) -> str:
    """A label as text. Bytes that would not be read again are escaped, as in zone files: no two names have
    one text."""
    usual = range(0x21, 0x7F)
    return "".join(
        chr(byte) if byte in usual and byte not in b".\\" else f"\\{byte:03}" for byte in label
    )


def _label_to_bytes(label: str) -> bytes:
    """A label without its escapes. A name beyond ASCII is written by its punycode: `xn--...`."""
    return re.sub(
        rb"\\([0-9]{3})",
        lambda escape: bytes([min(int(escape[1]), 0xFF)]),
        label.encode("ascii"),
    )


def _name_to_bytes(name: str) -> bytes:
    data = b""
    for label in name.removesuffix(".").split(".") if name not in ("", ".") else []:
        try:
            encoded = _label_to_bytes(label)
        except UnicodeEncodeError:
            raise ValueError(f"{name!r} has letters beyond ASCII; give its form xn--...") from None
        if not 1 <= len(encoded) <= MAX_LABEL_BYTES:
            raise ValueError(f"{name!r}: a label of a name has 1 to {MAX_LABEL_BYTES} bytes")
        data += bytes([len(encoded)]) + encoded
    if len(data) >= MAX_NAME_BYTES:
        raise ValueError(f"{name!r}: a name has at most {MAX_NAME_BYTES} bytes")
    return data + b"\0"
