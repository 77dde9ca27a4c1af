"""Reads bytes from front to back."""

from __future__ import annotations

from ipaddress import IPv4Address


class Reader:
    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.what = what
        self.at = 0

    def take(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self.data):
            raise ValueError(f"{self.what} ends after {len(self.data)} bytes, within {end}")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, length: int) -> int:
        return int.from_bytes(self.take(length), "big")

    def ip(self) -> IPv4Address:
        return IPv4Address(self.take(4))

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    @property
    def is_over(self) -> bool:
        return self.at == len(self.data)


def number(value: int, length: int, what: str) -> bytes:
    """Writes a number. What does not fit is a `ValueError` that names it."""
    if not 0 <= value < 1 << 8 * length:
        raise ValueError(f"{what} is a number from 0 to {(1 << 8 * length) - 1}, not {value}")
    return value.to_bytes(length, "big")


def checksum(data: bytes) -> int:
    """The checksum of the Internet (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
