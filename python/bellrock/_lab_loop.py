"""An event loop on the virtual clock of a lab: `asyncio.sleep(3600)` takes no time."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
import logging
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_log = logging.getLogger("bellrock")

_T = TypeVar("_T")

_MAX_ROUNDS = 100_000
"""How often coroutines may go on at one moment. In a lab, a loop without a pause would never end."""

_RESOLUTION = 1e-9
"""The lab counts in nanoseconds: two times that are nearer are the same, in seconds."""


class LabLoop(asyncio.AbstractEventLoop):
    """The parts of an event loop that coroutines of an app need: tasks, futures and time.

    The lab calls `run_ready` whenever something may have happened. Sockets, threads and processes
    are not there: they would not follow the clock of the lab.
    """

    def __init__(self, exceptions: list[BaseException]) -> None:
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = itertools.count()
        self._outer: asyncio.AbstractEventLoop | None = None
        self._exceptions = exceptions

    def enter(self, now: float) -> None:
        """Begins to run, at this time of the lab: coroutines and handlers find this loop."""
        self._now = now
        self._outer = events._get_running_loop()
        events._set_running_loop(self)

    def leave(self) -> None:
        """Ends the run."""
        events._set_running_loop(self._outer)

    def run_ready(self) -> float | None:
        """Calls everything that is due. Returns the time of the next timer."""
        for _ in range(_MAX_ROUNDS):
            while self._timers and self._timers[0][0] <= self._now + _RESOLUTION:
                self._ready.append(heapq.heappop(self._timers)[2])
            if not self._ready:
                break
            for _ in range(len(self._ready)):
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        else:
            raise RuntimeError(
                f"a coroutine lets no time pass: it has gone on {_MAX_ROUNDS} times at {self._now} s;"
                " write `await asyncio.sleep(0.1)` in its loop"
            )
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def time(self) -> float:
        return self._now

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._number), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is skipped when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, _T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
        **kwargs: Any,
    ) -> asyncio.Task[_T]:
        task = asyncio.Task(coro, loop=self, name=name)
        # A lab ends in the midst of its coroutines: that is no mistake of theirs.
        setattr(task, "_log_destroy_pending", False)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self._exceptions.append(error)
        _log.error(context["message"], exc_info=error)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return False
