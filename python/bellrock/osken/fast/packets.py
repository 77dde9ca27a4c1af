"""`packet.Packet`: headers are read when they are asked for.

os-ken reads all headers of a frame in the constructor. An exception there is the program's to handle, so it must come there: a
frame is left unread only if all its headers are of a kind whose reading raises none. The others are read at once.

What is left unread is the bytes of the frame, which cannot change. A `bytearray` can, so it is read at once too.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any

from os_ken.lib.packet import ethernet as ethernet_module
from os_ken.lib.packet import arp, ipv4, ipv6, packet_base, tcp, udp, vlan
from os_ken.lib.packet.packet import Packet

from . import CODEC
from .lazy import Lazy, missing

_new = object.__new__
_ethernet = ethernet_module.ethernet
USUAL_TYPES = (
    *((frame, type_, cls) for frame in (_ethernet, vlan.vlan) for type_, cls in (
        (0x0800, ipv4.ipv4), (0x0806, arp.arp), (0x8100, vlan.vlan), (0x86DD, ipv6.ipv6))),
    *((packet, protocol, cls) for packet in (ipv4.ipv4, ipv6.ipv6) for protocol, cls in ((6, tcp.tcp), (17, udp.udp))),
)
"""Which header the library reads behind which, for frames that are left unread: outer class, type or protocol, inner class."""


def install() -> None:
    """Replaces constructor and look-ups."""
    init, get_protocols, get_protocol = Packet.__init__, Packet.get_protocols, Packet.get_protocol
    headers, bits = CODEC.headers, _bits()
    known = _Types()

    @wraps(init)
    def __init__(self: Packet, data: Any = None, protocols: Any = None, parse_cls: Any = _ethernet) -> None:
        if (type(data) is bytes and protocols is None and parse_cls is _ethernet and type(self) is Packet
                and known.are_usual and (found := headers(data)) is not None):
            self.data = data
            self._bellrock_frame = data
            self._bellrock_headers = found
        else:
            init(self, data, protocols, parse_cls)

    @wraps(get_protocols)
    def get_protocols_(self: Packet, protocol: Any) -> list[Any]:
        # None as soon as the headers have been read.
        frame = self._bellrock_frame
        if frame is not None:
            if protocol is _ethernet:
                return [_header(self, frame)]
            bit = bits.get(protocol) if inspect.isclass(protocol) else None
            if bit is not None and not bit & self._bellrock_headers:
                return []
        found: list[Any] = get_protocols(self, protocol)
        return found

    @wraps(get_protocol)
    def get_protocol_(self: Packet, protocol: Any) -> Any:
        if protocol is _ethernet and (frame := self._bellrock_frame) is not None:
            return _header(self, frame)
        return get_protocol(self, protocol)

    Packet._bellrock_frame = None
    Packet._bellrock_ethernet = None
    Packet.protocols = Lazy("protocols", _read)
    Packet.__init__ = __init__
    Packet.get_protocols = get_protocols_
    Packet.get_protocol = get_protocol_


def _bits() -> dict[type, int]:
    """Bits of the headers that frames may have, by the classes for which they are looked up."""
    import importlib

    modules = ((name, importlib.import_module(f"os_ken.lib.packet.{name}"), bit) for name, bit in CODEC.header_bits)
    return {getattr(module, name): bit for name, module, bit in modules}


class _Types:
    """Whether the library reads its own headers in the frames that are left unread. A program can register other classes."""

    def __init__(self) -> None:
        original = packet_base.PacketBase.register_packet_type.__func__

        def register(cls: Any, cls_: Any, type_: Any) -> None:
            original(cls, cls_, type_)
            self.are_usual = _are_usual()

        packet_base.PacketBase.register_packet_type = classmethod(wraps(original)(register))
        self.are_usual = _are_usual()


def _are_usual() -> bool:
    return all(inner.get_packet_type(type_) is cls for inner, type_, cls in USUAL_TYPES)


def _header(packet: Packet, frame: bytes) -> Any:
    """The Ethernet header, the same object each time."""
    header = packet._bellrock_ethernet
    if header is None:
        header = _new(_ethernet)
        # A frame whose headers are left unread has one.
        header.dst, header.src, header.ethertype = CODEC.ethernet(frame) or (None, None, None)
        packet._bellrock_ethernet = header
    return header


def _read(packet: Packet) -> list[Any]:
    """Reads all headers, as the constructor of os-ken does."""
    frame = packet._bellrock_frame
    if frame is None:
        raise missing(packet, "protocols")
    packet._bellrock_frame = None
    whole = _new(Packet)
    whole.data = frame
    whole.protocols = []
    whole._parser(_ethernet)
    header = packet._bellrock_ethernet
    if header is not None:
        whole.protocols[0] = header
        packet._bellrock_ethernet = None
    protocols: list[Any] = whole.protocols
    return protocols
