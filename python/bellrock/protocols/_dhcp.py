"""DHCP for IPv4 (RFC 2131, 2132)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from ipaddress import IPv4Address

from .._native import MacAddr, Packet
from ._reader import Reader, number

CLIENT_PORT = 68
SERVER_PORT = 67

COOKIE = b"\x63\x82\x53\x63"
NOWHERE = IPv4Address(0)

# Lengths in bytes (RFC 2131 §2).
SERVER_NAME_BYTES = 64
FILE_BYTES = 128
CLIENT_ADDRESS_BYTES = 16
MAX_OPTION_BYTES = 255
MIN_MESSAGE_BYTES = 300
"""Shorter messages are padded: some clients drop them (RFC 1542 §2.1)."""

ETHERNET = 1
PAD = 0
END = 255
BROADCAST_BIT = 0x8000


class DhcpKind(IntEnum):
    """Types of DHCP messages (RFC 2132 §9.6)."""

    DISCOVER = 1
    OFFER = 2
    REQUEST = 3
    DECLINE = 4
    ACK = 5
    NAK = 6
    RELEASE = 7
    INFORM = 8


class DhcpOption(IntEnum):
    """Numbers of options (RFC 2132)."""

    SUBNET_MASK = 1
    ROUTER = 3
    DNS_SERVERS = 6
    HOST_NAME = 12
    DOMAIN_NAME = 15
    REQUESTED_IP = 50
    LEASE_SECONDS = 51
    KIND = 53
    SERVER_ID = 54
    PARAMETERS = 55
    MESSAGE = 56
    CLIENT_ID = 61


@dataclass(frozen=True)
class Dhcp:
    """A DHCP message."""

    is_reply: bool
    """Whether it is from a server."""
    xid: int
    """Number that a client gave its request."""
    client_mac: MacAddr
    """Ethernet address of the client, as the message has it. The frame may have another source."""
    kind: int | None = None
    """Its type: one of `DhcpKind`, or another number. `None` for BOOTP, which has none."""
    client_ip: IPv4Address = NOWHERE
    """Address that the client has already."""
    your_ip: IPv4Address = NOWHERE
    """Address that the server gives."""
    server_ip: IPv4Address = NOWHERE
    """Server of the next step, such as for files."""
    relay_ip: IPv4Address = NOWHERE
    """Relay that passed it on."""
    seconds: int = 0
    """Seconds since the client began."""
    wants_broadcast: bool = False
    """Whether the client can receive only broadcasts."""
    hops: int = 0
    """Number of relays."""
    options: Mapping[int, bytes] = field(default_factory=dict)
    """Other options by number, as bytes, in order. Parts of one number are joined (RFC 3396)."""

    @classmethod
    def of(cls, packet: Packet) -> Dhcp | None:
        """Reads the DHCP message of a packet. `None`: it has none, or a broken one."""
        udp = packet.udp
        ports = (SERVER_PORT, CLIENT_PORT)
        if udp is None or packet.ipv4 is None or udp.dst_port not in ports:
            return None
        try:
            return cls.read(packet.payload)
        except ValueError:
            return None

    @classmethod
    def read(cls, data: bytes) -> Dhcp:
        """Reads a message. Raises `ValueError` if it is cut off, or of other addresses than Ethernet's."""
        reader = Reader(data, "the DHCP message")
        operation, hardware, length, hops = (reader.number(1) for _ in range(4))
        if operation not in (1, 2) or (hardware, length) != (ETHERNET, 6):
            raise ValueError("it is no DHCP message of a host on Ethernet")
        xid, seconds, flags = reader.number(4), reader.number(2), reader.number(2)
        client, your, server, relay = (reader.ip() for _ in range(4))
        mac = MacAddr(reader.take(CLIENT_ADDRESS_BYTES)[:6])
        reader.take(SERVER_NAME_BYTES + FILE_BYTES)
        options: dict[int, bytes] = {}
        if reader.take(4) != COOKIE:
            raise ValueError("the DHCP message has other options than those of RFC 2132")
        while not reader.is_over:
            option = reader.number(1)
            if option == END:
                break
            if option != PAD:
                value = reader.take(reader.number(1))
                options[option] = options.get(option, b"") + value
        kind = options.pop(DhcpOption.KIND, None)
        if kind is not None and len(kind) != 1:
            raise ValueError("the type of the DHCP message has no length of 1")
        return cls(
            is_reply=operation == 2,
            xid=xid,
            client_mac=mac,
            kind=kind[0] if kind else None,
            client_ip=client,
            your_ip=your,
            server_ip=server,
            relay_ip=relay,
            seconds=seconds,
            wants_broadcast=bool(flags & BROADCAST_BIT),
            hops=hops,
            options=options,
        )

    def ip_option(self, option: int) -> IPv4Address | None:
        """The first address of an option. `None`: it is not there, or too short."""
        value = self.options.get(option, b"")
        return IPv4Address(value[:4]) if len(value) >= 4 else None

    @property
    def requested_ip(self) -> IPv4Address | None:
        """Address that the client asks for."""
        return self.ip_option(DhcpOption.REQUESTED_IP)

    @property
    def server_id(self) -> IPv4Address | None:
        """Address of the server that it is from, or that the client has chosen."""
        return self.ip_option(DhcpOption.SERVER_ID)

    @property
    def host_name(self) -> str | None:
        """Name that the client gives itself."""
        name = self.options.get(DhcpOption.HOST_NAME)
        return None if name is None else name.decode("ascii", "backslashreplace")

    @property
    def lease_seconds(self) -> int | None:
        """How long the address is given for."""
        value = self.options.get(DhcpOption.LEASE_SECONDS, b"")
        return int.from_bytes(value, "big") if len(value) == 4 else None

    @classmethod
    def discover(cls, client_mac: MacAddr | str, xid: int = 1, host_name: str = "") -> Dhcp:
        """A client looks for servers."""
        options: dict[int, bytes] = {}
        if host_name:
            options[DhcpOption.HOST_NAME] = host_name.encode()
        return cls(False, xid, MacAddr(client_mac), DhcpKind.DISCOVER, options=options)

    @classmethod
    def request(
        cls,
        client_mac: MacAddr | str,
        ip: IPv4Address | str,
        server: IPv4Address | str,
        xid: int = 1,
    ) -> Dhcp:
        """A client takes the address that a server has offered."""
        options: dict[int, bytes] = {
            DhcpOption.REQUESTED_IP: IPv4Address(ip).packed,
            DhcpOption.SERVER_ID: IPv4Address(server).packed,
        }
        return cls(False, xid, MacAddr(client_mac), DhcpKind.REQUEST, options=options)

    def reply(
        self,
        kind: DhcpKind,
        server: IPv4Address | str,
        your_ip: IPv4Address | str = NOWHERE,
        lease_seconds: int | None = None,
        options: Mapping[int, bytes] | None = None,
    ) -> Dhcp:
        """The answer of a server to this message: `OFFER`, `ACK` or `NAK`."""
        all_options = {int(DhcpOption.SERVER_ID): IPv4Address(server).packed}
        if lease_seconds is not None:
            all_options[DhcpOption.LEASE_SECONDS] = number(lease_seconds, 4, "lease_seconds")
        return Dhcp(
            is_reply=True,
            xid=self.xid,
            client_mac=self.client_mac,
            kind=kind,
            client_ip=self.client_ip if kind == DhcpKind.ACK else NOWHERE,
            your_ip=IPv4Address(your_ip),
            relay_ip=self.relay_ip,
            wants_broadcast=self.wants_broadcast,
            options={**all_options, **(options or {})},
        )

    def to_bytes(self) -> bytes:
        """The message: the payload of a UDP datagram between ports 68 (clients) and 67 (servers)."""
        data = bytes([2 if self.is_reply else 1, ETHERNET, 6]) + number(self.hops, 1, "hops")
        data += number(self.xid, 4, "xid") + number(self.seconds, 2, "seconds")
        data += (BROADCAST_BIT if self.wants_broadcast else 0).to_bytes(2, "big")
        for address in (self.client_ip, self.your_ip, self.server_ip, self.relay_ip):
            data += address.packed
        data += bytes(self.client_mac).ljust(CLIENT_ADDRESS_BYTES, b"\0")
        data += bytes(SERVER_NAME_BYTES + FILE_BYTES) + COOKIE
        options = dict(self.options)
        if self.kind is not None:
            options = {DhcpOption.KIND: number(self.kind, 1, "kind"), **options}
        for option, value in options.items():
            if not PAD < option < END:
                raise ValueError(f"the number of an option is 1 to 254, not {option}")
            for at in range(0, max(len(value), 1), MAX_OPTION_BYTES):
                part = value[at : at + MAX_OPTION_BYTES]
                data += bytes([option, len(part)]) + part
        return (data + bytes([END])).ljust(MIN_MESSAGE_BYTES, b"\0")
