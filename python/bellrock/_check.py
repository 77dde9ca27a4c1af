"""Finds what an author likely did not mean: misspelt events, and methods with the wrong arguments."""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Mapping
from typing import Any, Final

from ._app import EVENTS, App
from ._native import Match

_log = logging.getLogger("bellrock")

_ARGUMENTS: Final = {
    "start": ("network",),
    "switch_up": ("network", "switch"),
    "adopt": ("switch", "flow"),
    "packet_in": ("switch", "packet"),
    "packet_ins": ("switch", "packets"),
    "port_status": ("switch", "status"),
    "flow_removed": ("switch", "flow"),
    "error": ("switch", "xid", "error"),
    "unanswered": ("switch", "xid"),
    "barrier": ("switch", "xid"),
    "tick": ("switch",),
    "switch_down": ("switch",),
}
"""The arguments of each event. The first two are those of an app, not of a handler."""

_SETTINGS: Final[dict[str, Any]] = {
    "name": str,
    "scope": str,
    "needs": (str, tuple, list),
    "sees": (Match, tuple, list),
    "forwards": str,
    "keeps_flows": bool,
    "adopts_flows": bool,
    "wants_packet_ins": bool,
    "counters": Mapping,
}
"""What the class of an app may set, and of which type."""

_NEAR: Final = 0.88
"""How similar a name must be to be taken for another one, from 0 to 1."""

_checked: set[type[Any]] = set()
"""Classes of handlers that were checked: each is checked once."""


def check_app(app: App) -> None:
    """Warns about an app that does nothing, and about its near misses.

    Raises `TypeError` for a method that cannot take the arguments of its event.
    """
    check_settings(app)
    check_events(app.name, app)
    _warn_of_methods(app.name, app, tuple(_ARGUMENTS))
    for name, value in _class_values(type(app)).items():
        near = _near(name, tuple(_SETTINGS))
        if near is not None and isinstance(value, _SETTINGS[near]):
            _log.warning("app %s: %s is not used; did you mean %s?", app.name, name, near)
    kind = type(app)
    does_more = kind.switch_up is not App.switch_up or kind.start is not App.start
    if not does_more and not _has_event(app):
        _log.warning(
            "app %s has no event, so it does nothing; write a method such as packet_in(self, switch, packet)",
            app.name,
        )


def check_settings(app: App) -> None:
    """Checks the types of what an app says of itself. Raises `TypeError` or `ValueError`."""
    kind = type(app).__name__
    if not isinstance(app.name, str):
        raise TypeError(f"{kind}.name is text, not {app.name!r}")
    if not app.name:
        raise ValueError(f"{kind}.name is empty; give the app a name, or leave `name` out")
    if isinstance(app.needs, str):
        raise TypeError(
            f"{kind}.needs is a tuple; with a comma: needs = ({str(app.needs)!r},)"
        )
    for setting in ("keeps_flows", "adopts_flows", "wants_packet_ins"):
        value = getattr(app, setting)
        if not isinstance(value, bool):
            raise TypeError(f"{kind}.{setting} is True or False, not {value!r}")


def check_handler(name: str, handler: object) -> None:
    """Checks a handler that `switch_up` has returned, once for each class."""
    if type(handler) not in _checked:
        check_class(name, type(handler), handler)


def check_class(name: str, kind: type[Any], handler: object | None = None) -> None:
    """Checks a class of handlers, and one of them if there is one.

    Raises `TypeError` for a method that cannot take the arguments of its event.
    """
    _checked.add(kind)
    made: Any = kind if handler is None else handler
    check_events(name, made)
    _warn_of_methods(name, made, EVENTS)
    if not _has_event(made):
        _log.warning(
            "app %s: the handler %s has no event, so it does nothing; write a method such as "
            "packet_in(self, switch, packet)",
            name,
            kind.__name__,
        )


def _warn_of_methods(name: str, handler: object, events: tuple[str, ...]) -> None:
    """Warns about methods whose names are nearly those of events, and which could be those."""
    kind = handler if isinstance(handler, type) else type(handler)
    for method, value in _class_values(kind).items():
        near = _near(method, events)
        if near is None or not inspect.isfunction(value):
            continue
        try:
            inspect.signature(value).bind(None, *_ARGUMENTS[near])
        except TypeError:
            continue
        _log.warning("app %s: %s.%s is not used; did you mean %s?", name, kind.__name__, method, near)


def _has_event(handler: object) -> bool:
    return any(callable(getattr(handler, event, None)) for event in EVENTS)


def check_events(name: str, handler: object) -> None:
    """Checks the arguments of the events of a handler, an object or a class of them.

    Raises `TypeError` for a method that cannot take them.
    """
    for event, arguments in _ARGUMENTS.items():
        if event not in EVENTS and not isinstance(handler, App):
            continue
        method = getattr(handler, event, None)
        if not callable(method):
            continue
        right = ", ".join(arguments)
        given = (None, *arguments) if inspect.isclass(handler) and _needs_self(handler, event) else arguments
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):
            # Of something that is written in C.
            continue
        try:
            signature.bind(*given)
        except TypeError as error:
            raise TypeError(f"app {name}: {event} is called with ({right}): {error}") from None
        if inspect.iscoroutinefunction(method):
            raise TypeError(
                f"app {name}: {event} cannot be a coroutine; start one in it with self.spawn(…)"
            )
        positional = [
            each.name
            for each in signature.parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        own = positional[len(given) - len(arguments) :]
        first = arguments[0]
        if own[0:1] != [first] and first in own[1:]:
            _log.warning(
                "app %s: %s is called with (%s), in this order; it takes (%s)",
                name,
                event,
                right,
                ", ".join(own),
            )


def _needs_self(handler: type[Any], event: str) -> bool:
    return not isinstance(inspect.getattr_static(handler, event), (staticmethod, classmethod))


def _class_values(kind: type[Any]) -> dict[str, Any]:
    """What the classes of a program set, by public names."""
    values: dict[str, Any] = {}
    for each in kind.__mro__:
        if each is not App and not each.__module__.startswith(("bellrock.", "builtins", "typing")):
            values = {**vars(each), **values}
    return {name: value for name, value in values.items() if not name.startswith("_")}


def _near(name: str, known: tuple[str, ...]) -> str | None:
    """The name that was likely meant. `None`: the name is one of an app, or like no other."""
    if name in _ARGUMENTS or name in _SETTINGS:
        return None
    plain = {each.replace("_", ""): each for each in known}
    bare = name.replace("_", "").lower()
    if bare in plain:
        return plain[bare]
    # Short words are similar by chance.
    near = difflib.get_close_matches(bare, plain, n=1, cutoff=_NEAR) if len(bare) > 3 else []
    return plain[near[0]] if near else None
