"""Addresses and numbers as os-ken's parsers and packet library convert them, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from os_ken.lib import addrconv, type_desc

from . import CODEC


def install() -> None:
    """Replaces the conversions of `addrconv` and `type_desc`."""
    for converter, user_type, to_text, from_text in (
        (addrconv.mac, type_desc.MacAddr, CODEC.mac_to_text, CODEC.mac_from_text),
        (addrconv.ipv4, type_desc.IPv4Addr, CODEC.ipv4_to_text, CODEC.ipv4_from_text),
    ):
        converter.bin_to_text = _first(to_text, bytes, converter.bin_to_text)
        converter.text_to_bin = _first(from_text, str, converter.text_to_bin)
        user_type.to_user = staticmethod(converter.bin_to_text)
        user_type.from_user = staticmethod(converter.text_to_bin)
    number = type_desc.IntDescr
    number.to_user, number.from_user = _to_user(number.to_user), _from_user(number.from_user)


def _first(native: Callable[[Any], Any], usual: type, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Makes a function that asks `native` for a value of this class, and `original` if it has no answer."""

    def convert(value: Any) -> Any:
        if type(value) is usual and (result := native(value)) is not None:
            return result
        return original(value)

    return convert


def _to_user(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def to_user(self: Any, binary: Any) -> Any:
        if type(binary) is bytes and len(binary) == self.size:
            return int.from_bytes(binary, "big")
        return original(self, binary)

    return to_user


def _from_user(original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def from_user(self: Any, i: Any) -> Any:
        if type(i) is int:
            # Modulo its length, as os-ken does.
            return (i & ((1 << 8 * self.size) - 1)).to_bytes(self.size, "big")
        return original(self, i)

    return from_user
