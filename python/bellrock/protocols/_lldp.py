"""LLDP (IEEE 802.1AB)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from ipaddress import IPv4Address, IPv6Address, ip_address

from .._app import EtherType
from .._native import MacAddr, Packet
from ._reader import Reader, number

LLDP_MULTICAST = MacAddr("01:80:c2:00:00:0e")
"""Destination of announcements for the neighbour only: no bridge forwards it (§7.1)."""

MAX_VALUE_BYTES = 511
MAX_ID_BYTES = 255
"""Maximum length of the identifier of a system or a port, beside its kind (§8.5.2.3)."""
OUI_BYTES = 3

# Families of addresses (IANA).
IPV4 = 1
IPV6 = 2


class LldpKind(IntEnum):
    """Types of the parts of an announcement (§8.4.1)."""

    END = 0
    CHASSIS = 1
    PORT = 2
    TTL = 3
    PORT_DESCRIPTION = 4
    SYSTEM_NAME = 5
    SYSTEM_DESCRIPTION = 6
    CAPABILITIES = 7
    MANAGEMENT_ADDRESS = 8
    ORGANIZATION = 127


class LldpChassis(IntEnum):
    """What identifies a system (§8.5.2.2)."""

    COMPONENT = 1
    INTERFACE_ALIAS = 2
    PORT_COMPONENT = 3
    MAC = 4
    NETWORK_ADDRESS = 5
    INTERFACE_NAME = 6
    LOCAL = 7


class LldpPort(IntEnum):
    """What identifies a port (§8.5.3.2)."""

    INTERFACE_ALIAS = 1
    PORT_COMPONENT = 2
    MAC = 3
    NETWORK_ADDRESS = 4
    INTERFACE_NAME = 5
    AGENT_CIRCUIT_ID = 6
    LOCAL = 7


class LldpCapability(IntFlag):
    """What a system can be (§8.5.8.1)."""

    OTHER = 1
    REPEATER = 2
    BRIDGE = 4
    ACCESS_POINT = 8
    ROUTER = 16
    TELEPHONE = 32
    CABLE_MODEM = 64
    STATION = 128


@dataclass(frozen=True)
class LldpPart:
    """A part of an announcement that is not needed, such as a name (a TLV)."""

    kind: int
    """Its type: one of `LldpKind`, or another number."""
    value: bytes
    """Its bytes, at most 511."""

    @classmethod
    def of_organization(cls, oui: bytes, kind: int, value: bytes) -> LldpPart:
        """The part of an organization: its OUI of three bytes, and its own type (§8.6)."""
        if len(oui) != OUI_BYTES:
            raise ValueError(f"an OUI has {OUI_BYTES} bytes, not {len(oui)}")
        return cls(LldpKind.ORGANIZATION, oui + number(kind, 1, "kind") + value)

    @property
    def organization(self) -> tuple[bytes, int, bytes] | None:
        """OUI, type and value of the part of an organization."""
        if self.kind != LldpKind.ORGANIZATION or len(self.value) <= OUI_BYTES:
            return None
        return self.value[:OUI_BYTES], self.value[OUI_BYTES], self.value[OUI_BYTES + 1 :]


@dataclass(frozen=True)
class Lldp:
    """An announcement of a system: it says which of its ports the link leads to."""

    chassis_kind: int
    """What `chassis` is: one of `LldpChassis`, or another number."""
    chassis: bytes
    """Identifier of the system."""
    port_kind: int
    """What `port` is: one of `LldpPort`, or another number."""
    port: bytes
    """Identifier of the port."""
    ttl: int = 120
    """Seconds for which it is valid. 0: the port goes down."""
    parts: tuple[LldpPart, ...] = ()
    """The other parts, in order."""

    @classmethod
    def of(cls, packet: Packet) -> Lldp | None:
        """Reads the announcement of a packet. `None`: it has none, or a broken one."""
        if packet.eth_type != EtherType.LLDP:
            return None
        try:
            return cls.read(packet.payload)
        except ValueError:
            return None

    @classmethod
    def read(cls, data: bytes) -> Lldp:
        """Reads an announcement. Raises `ValueError` if it is cut off, or does not begin with a system, a port
        and a time. What stands behind its end, such as padding, does not count."""
        reader = Reader(data, "the LLDP announcement")
        (chassis_kind, chassis), (port_kind, port) = (
            _read_id(reader, kind) for kind in (LldpKind.CHASSIS, LldpKind.PORT)
        )
        time = _read_part(reader)
        if time is None or time.kind != LldpKind.TTL or len(time.value) < 2:
            raise ValueError("the third part of the LLDP announcement is no time to live")
        parts = []
        while (part := _read_part(reader)) is not None:
            if part.kind in (LldpKind.CHASSIS, LldpKind.PORT, LldpKind.TTL):
                raise ValueError(f"the LLDP announcement has two parts of type {part.kind}")
            parts.append(part)
        ttl = int.from_bytes(time.value[:2], "big")
        return cls(chassis_kind, chassis, port_kind, port, ttl, tuple(parts))

    @classmethod
    def announce(
        cls,
        mac: MacAddr | str,
        port: str,
        ttl: int = 120,
        system_name: str = "",
        parts: Sequence[LldpPart] = (),
    ) -> Lldp:
        """The announcement of a system with an Ethernet address, at the port with this name."""
        name = [LldpPart(LldpKind.SYSTEM_NAME, system_name.encode())] if system_name else []
        chassis, own = bytes(MacAddr(mac)), port.encode()
        return cls(
            LldpChassis.MAC, chassis, LldpPort.INTERFACE_NAME, own, ttl, (*name, *parts)
        )

    def part(self, kind: int) -> bytes | None:
        """The value of the first part of this type."""
        return next((part.value for part in self.parts if part.kind == kind), None)

    def _text(self, kind: int) -> str | None:
        value = self.part(kind)
        return None if value is None else _to_text(value)

    @property
    def chassis_mac(self) -> MacAddr | None:
        """The Ethernet address that identifies the system, if one does."""
        is_mac = self.chassis_kind == LldpChassis.MAC and len(self.chassis) == 6
        return MacAddr(self.chassis) if is_mac else None

    @property
    def port_mac(self) -> MacAddr | None:
        """The Ethernet address that identifies the port, if one does."""
        is_mac = self.port_kind == LldpPort.MAC and len(self.port) == 6
        return MacAddr(self.port) if is_mac else None

    @property
    def port_name(self) -> str | None:
        """The name of the port, if text identifies it."""
        texts = (LldpPort.INTERFACE_ALIAS, LldpPort.INTERFACE_NAME, LldpPort.LOCAL)
        return _to_text(self.port) if self.port_kind in texts else None

    @property
    def system_name(self) -> str | None:
        """Name of the system."""
        return self._text(LldpKind.SYSTEM_NAME)

    @property
    def system_description(self) -> str | None:
        """Description of the system, such as its make and version."""
        return self._text(LldpKind.SYSTEM_DESCRIPTION)

    @property
    def port_description(self) -> str | None:
        """Description of the port."""
        return self._text(LldpKind.PORT_DESCRIPTION)

    @property
    def capabilities(self) -> LldpCapability | None:
        """What the system does, of all that it could do."""
        value = self.part(LldpKind.CAPABILITIES)
        if value is None or len(value) < 4:
            return None
        return LldpCapability(int.from_bytes(value[2:4], "big") & 0xFF)

    @property
    def management_ip(self) -> IPv4Address | IPv6Address | None:
        """The first IP address by which the system is managed."""
        for part in self.parts:
            if part.kind != LldpKind.MANAGEMENT_ADDRESS or len(part.value) < 2:
                continue
            # The length counts the family too.
            address = part.value[2 : 1 + part.value[0]]
            if (part.value[1], len(address)) in ((IPV4, 4), (IPV6, 16)):
                return ip_address(address)
        return None

    def to_bytes(self) -> bytes:
        """The announcement: the payload for `Ethernet(mac, LLDP_MULTICAST).payload(EtherType.LLDP, …)`."""
        data = b""
        for kind, of, id, what in (
            (LldpKind.CHASSIS, self.chassis_kind, self.chassis, "chassis"),
            (LldpKind.PORT, self.port_kind, self.port, "port"),
        ):
            if not 1 <= len(id) <= MAX_ID_BYTES:
                raise ValueError(f"{what} has 1 to {MAX_ID_BYTES} bytes, not {len(id)}")
            data += _to_bytes(LldpPart(kind, number(of, 1, f"{what}_kind") + id))
        data += _to_bytes(LldpPart(LldpKind.TTL, number(self.ttl, 2, "ttl")))
        for part in self.parts:
            if not LldpKind.TTL < part.kind <= LldpKind.ORGANIZATION:
                raise ValueError(f"the type of a further part is 4 to 127, not {part.kind}")
            data += _to_bytes(part)
        return data + bytes(2)


def _read_part(reader: Reader) -> LldpPart | None:
    """Reads the next part. `None`: the announcement ends, with the part that says so or without."""
    if reader.is_over:
        return None
    head = reader.number(2)
    kind, length = head >> 9, head & MAX_VALUE_BYTES
    return None if kind == LldpKind.END else LldpPart(kind, reader.take(length))


def _read_id(reader: Reader, kind: LldpKind) -> tuple[int, bytes]:
    part = _read_part(reader)
    if part is None or part.kind != kind or len(part.value) < 2:
        raise ValueError(f"the LLDP announcement has no {kind.name.lower()} where it must be")
    return part.value[0], part.value[1:]


def _to_bytes(part: LldpPart) -> bytes:
    if len(part.value) > MAX_VALUE_BYTES:
        size = len(part.value)
        raise ValueError(f"a part of an LLDP announcement has at most {MAX_VALUE_BYTES} bytes, not {size}")
    return (part.kind << 9 | len(part.value)).to_bytes(2, "big") + part.value


def _to_text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
