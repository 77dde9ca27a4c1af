"""Attributes that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Lazy:
    """An attribute of instances that is made at its first use, and is an ordinary one from then on.

    The class itself does not have it: os-ken's text and JSON of an object leave out what its class has.
    """

    def __init__(self, name: str, make: Callable[[Any], Any]) -> None:
        self.name = name
        self.make = make

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self.name!r}")
        made = self.make(instance)
        instance.__dict__[self.name] = made
        return made


def missing(instance: Any, name: str) -> AttributeError:
    """The exception for an attribute that an instance does not have."""
    return AttributeError(f"{type(instance).__name__!r} object has no attribute {name!r}", name=name, obj=instance)
