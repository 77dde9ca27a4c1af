"""VXLAN (RFC 7348)."""

from __future__ import annotations

from dataclasses import dataclass

from .._native import Packet
from ._reader import Reader, number

VXLAN_PORT = 4789
"""UDP port of the receiver."""

HAS_VNI = 0x08
"""The flag I: the header has a network."""

ETHERNET_BYTES = 14


@dataclass(frozen=True)
class Vxlan:
    """A frame in a tunnel."""

    vni: int
    """Number of the network that the frame is in, 0 to 16777215."""
    frame: bytes
    """The frame, from its Ethernet header on."""

    @classmethod
    def of(cls, packet: Packet) -> Vxlan | None:
        """Reads what a UDP packet to port 4789 carries. `None`: it carries nothing, or a broken one."""
        udp = packet.udp
        if udp is None or udp.dst_port != VXLAN_PORT:
            return None
        try:
            return cls.read(packet.payload)
        except ValueError:
            return None

    @classmethod
    def read(cls, data: bytes) -> Vxlan:
        """Reads the payload of a UDP datagram. Raises `ValueError` if it is cut off, or has no network. What is
        reserved does not count."""
        reader = Reader(data, "the VXLAN packet")
        flags, _ = reader.number(1), reader.take(3)
        vni, _ = reader.number(3), reader.take(1)
        if not flags & HAS_VNI:
            raise ValueError("the VXLAN packet has no network: its flag I is not set")
        frame = reader.rest()
        if len(frame) < ETHERNET_BYTES:
            raise ValueError(f"the VXLAN packet has no frame: {len(frame)} bytes are no Ethernet header")
        return cls(vni, frame)

    @property
    def packet(self) -> Packet:
        """The frame, with its headers."""
        return Packet(self.frame)

    def to_bytes(self) -> bytes:
        """The payload for `Ethernet(…).ipv4(…).udp(src_port, VXLAN_PORT, …)`."""
        return bytes([HAS_VNI, 0, 0, 0]) + number(self.vni, 3, "vni") + bytes(1) + self.frame
