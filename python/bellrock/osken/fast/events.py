"""Events of packet_ins, and the queue of an app.

A queue and a semaphore of eventlet do much for the case that somebody waits. Here nobody does in most cases: then they only count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import time
from typing import Any

from os_ken.base.app_manager import OSKenApp
from os_ken.controller.ofp_event import EventOFPPacketIn
from os_ken.lib import hub

_new = object.__new__

if hub.HUB_TYPE == "eventlet":
    from eventlet import hubs

    hub_of_green_threads: Callable[[], Any] = hubs.get_hub
else:

    def hub_of_green_threads() -> Any:
        """`None`: there are threads instead."""
        return None


def install() -> None:
    """Gives apps that are made from now on these queues."""
    if hub.HUB_TYPE != "eventlet":
        return
    queue_class, semaphore_class = _queue(hub.Queue), _semaphore(hub.BoundedSemaphore)
    init = OSKenApp.__init__

    @wraps(init)
    def __init__(self: OSKenApp, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if type(self.events) is hub.Queue and type(self._events_sem) is hub.BoundedSemaphore:
            self.events = queue_class(self.events.maxsize)
            self._events_sem = semaphore_class(self.events.maxsize)

    OSKenApp.__init__ = __init__


def packet_in(message: Any) -> Any:
    """The event of a packet_in."""
    event = _new(EventOFPPacketIn)
    event.timestamp = time()
    event.msg = message
    return event


def _queue(base: Any) -> Any:
    class AppQueue(base):
        """A queue of events."""

        def put(self, item: Any, block: bool = True, timeout: Any = None) -> Any:
            if not self.getters and len(self.queue) < self.maxsize:
                self.queue.append(item)
                return None
            return super().put(item, block, timeout)

        def get(self, block: bool = True, timeout: Any = None) -> Any:
            if self.queue and not self.putters:
                return self.queue.popleft()
            return super().get(block, timeout)

    return AppQueue


def _semaphore(base: Any) -> Any:
    class AppSemaphore(base):
        """The bound of a queue. Those that wait for room have it in their order, each as much as it needs while there is some: to
        let them run for one event at a time would take as long as the event."""

        _is_scheduled = False
        _is_waking = False

        def acquire(self, blocking: bool = True, timeout: Any = None) -> Any:
            if timeout is None and self.counter > 0 and (not self._waiters or self._is_waking):
                self.counter -= 1
                return True
            return super().acquire(blocking, timeout)

        def release(self, blocking: bool = True) -> Any:
            if self.counter >= self.original_counter:
                return super().release(blocking)
            self.counter += 1
            if self._waiters and not self._is_scheduled:
                self._is_scheduled = True
                hubs.get_hub().schedule_call_global(0, self._wake)
            return True

        def _wake(self) -> None:
            self._is_scheduled = False
            while self._waiters and self.counter > 0:
                waiter = self._waiters.popleft()
                self._is_waking = True
                try:
                    waiter.switch()
                finally:
                    self._is_waking = False

    return AppSemaphore
