"""On which cores the thread of the apps runs: those of no worker, if there are others.

That thread works more than a worker. If both have one core, the workers take turns with it, for milliseconds each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_is_registered = False
_placements: list[tuple[set[int], set[int]]] = []
"""The cores of each placement, and those before."""


class Placement:
    """The cores of the calling thread are those of no worker, until `undo`.

    Threads and programs that it starts have these cores too, but not forked processes, such as those of
    `ProcessPoolExecutor`.
    """

    def __init__(self, worker_cores: Iterable[int]) -> None:
        self._placed: tuple[set[int], set[int]] | None = None
        # Not on macOS.
        if not hasattr(os, "sched_setaffinity"):
            return
        before = os.sched_getaffinity(0)
        others = before.difference(worker_cores)
        if others and others != before and _set(others):
            self._placed = (others, before)
            _placements.append(self._placed)
            _look_at_forks()

    def undo(self) -> None:
        """Lets the calling thread run where it ran before, unless somebody else has placed it since."""
        placed, self._placed = self._placed, None
        if placed is not None:
            _placements.remove(placed)
            _undo(placed)


def _undo(placed: tuple[set[int], set[int]]) -> None:
    others, before = placed
    if os.sched_getaffinity(0) == others:
        _set(before)


def _set(cores: set[int]) -> bool:
    try:
        os.sched_setaffinity(0, cores)
    except OSError:
        # A sandbox forbids it: the thread runs where the system puts it.
        return False
    return True


def _look_at_forks() -> None:
    global _is_registered
    if not _is_registered:
        os.register_at_fork(after_in_child=_after_fork)
        _is_registered = True


def _after_fork() -> None:
    for placed in reversed(_placements):
        _undo(placed)
