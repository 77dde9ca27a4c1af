"""Loads files with apps again when they change, for `bellrock run --reload`."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._app import AnyApp
from ._load import files_of
from ._run import chain, name_of

if TYPE_CHECKING:
    from ._command import CommandController

_log = logging.getLogger("bellrock")

EVERY_S = 0.5
"""Time between two looks at the files."""

OLD_ONE = "; the last version goes on"

Stamp = dict[str, bytes]
"""What files contain, by their paths."""


async def follow(controller: CommandController, load: Callable[[str, str], list[AnyApp] | None]) -> None:
    """Loads each file again that has changed, as long as the controller runs."""
    stamps = {path: _stamp(path) for path in controller.files}
    _log.info("files with apps are loaded again when they change: %s", ", ".join(stamps))
    while True:
        await asyncio.sleep(EVERY_S)
        for path, before in stamps.items():
            now = _stamp(path)
            if now == before:
                continue
            try:
                _again(controller, path, load)
            except Exception as error:
                # Also what an app does while its class is looked at.
                _log.error("%s is not loaded again", path, exc_info=error)
            # It may have changed again meanwhile, and may import other files now.
            stamps[path] = {file: now[file] if file in now else _digest(file) for file in files_of(path)}


def _stamp(path: str) -> Stamp:
    return {file: _digest(file) for file in files_of(path)}


def _digest(file: str) -> bytes:
    try:
        return hashlib.sha256(Path(file).read_bytes()).digest()
    except OSError:
        # An editor is replacing it.
        return b""


def _again(controller: CommandController, path: str, load: Callable[[str, str], list[AnyApp] | None]) -> None:
    apps = load(path, OLD_ONE)
    if apps is None:
        return
    try:
        entries = chain(apps)
    except (TypeError, ValueError) as error:
        _log.error("%s: %s%s", path, error, OLD_ONE)
        return
    why = _refusal(controller.apps_of(path), entries)
    if why is not None:
        _log.error("%s: %s: that needs a restart%s", path, why, OLD_ONE)
        return
    names = [name_of(app) for app, _ in entries]
    for name, entry in zip(names, entries, strict=True):
        controller.replace(name, entry)
    _log.info("%s is loaded again: apps: %s", path, ", ".join(names))


def _refusal(old: list[tuple[Any, Any]], new: list[tuple[Any, Any]]) -> str | None:
    """Why apps cannot take the places of others in the chain. `None`: they can."""
    old_names, new_names = ([name_of(app) for app, _ in entries] for entries in (old, new))
    if old_names != new_names:
        return f"its apps were {', '.join(old_names)}, and are {', '.join(new_names)}"
    for name, (_, before), (_, after) in zip(old_names, old, new, strict=True):
        if before is None or after is None:
            continue
        for option, value in vars(before).items():
            if repr(getattr(after, option)) != repr(value):
                return f"`{option}` of the app {name} has changed"
    return None
