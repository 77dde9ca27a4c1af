"""What takes the place of os-ken's `OpenFlowController`: it starts Bellrock, and gives out what comes from switches."""

from __future__ import annotations

import logging
import weakref
from typing import Any

from os_ken.cfg import CONF
from os_ken.lib import hub

from .._cores import Placement
from .._native import Error, RawController, RawEvent
from .datapath import RETRY_S, BellrockDatapath, UnknownVersion
from .engine_log import ENGINE_LOG
from .settings import OptionError, settings

LOG = logging.getLogger("bellrock.osken")

MAX_EVENTS = 64
"""Events that are taken at once, after which others have a turn."""

MAX_WAITING_BYTES_OF_ALL = 256 << 20
"""Bytes of all switches that wait for handlers, above which no more events are taken."""

WATCH_EVERY_MS = 1000
"""Time between two looks whether the engine still runs."""

class NotStarted(Exception):
    """Why Bellrock does not start."""


_running: weakref.WeakSet[BellrockController] = weakref.WeakSet()


class BellrockController:
    """os-ken makes one of them, and calls it in a green thread, or in a thread, of its own."""

    def __init__(self) -> None:
        try:
            self._native = RawController(settings(), file=CONF.bellrock_config, log=ENGINE_LOG.lines)
        except (Error, ValueError) as error:
            ENGINE_LOG.write()
            # It ends the start, with its reason: a port that is taken, a file that is missing.
            raise NotStarted(str(error)) from error
        self._datapaths: dict[int, BellrockDatapath] = {}
        # Threads that are started from here on have its cores too. The program ends with it.
        Placement(self._native.worker_cores)
        _running.add(self)
        ENGINE_LOG.start()
        for address in self._native.addresses:
            LOG.info("switches connect to %s", address)

    def __call__(self) -> None:
        try:
            while not self._native.is_over:
                self._wait()
                for event in self._native.take(MAX_EVENTS):
                    self._handle(event)
                self._await_space()
                hub.sleep(0)
                if self._native.has_failed:
                    LOG.error("a thread of the engine has failed; its log says why")
                    break
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends all connections, and the loop."""
        self._native.stop()
        for datapath in list(self._datapaths.values()):
            datapath.end("the program ends")

    def spawn_client_loop(self, addr: Any, interval: Any = None) -> None:
        raise OptionError(f"{addr}: Bellrock does not connect to switches; let them connect to it")

    def stop_client_loop(self, addr: Any) -> None:
        """Does nothing: there are no such loops."""

    def _wait(self) -> None:
        if hub.HUB_TYPE == "eventlet":
            from eventlet.hubs import trampoline

            trampoline(self._native.fileno(), read=True)
        else:
            self._native.wait(WATCH_EVERY_MS)

    def _handle(self, event: RawEvent) -> None:
        connection = event.connection
        if event.kind == "up":
            try:
                datapath = BellrockDatapath(connection, event.peer or ("", 0), event.hello)
            except UnknownVersion as error:
                LOG.error("switch at %s: the connection ends: %s", event.peer, error)
                connection.close(str(error))
                return
            self._datapaths[connection.id] = datapath
            # It may wait for the queue of an app, so it has a thread of its own, as with os-ken.
            hub.spawn(datapath.serve, lambda: self._datapaths.pop(connection.id, None))
            return
        known = self._datapaths.get(connection.id)
        if known is None:
            return
        if event.kind == "messages":
            known.deliver(event.messages)
        elif event.kind == "down":
            known.end(event.reason)

    def _await_space(self) -> None:
        while sum(datapath.waiting_bytes for datapath in list(self._datapaths.values())) > MAX_WAITING_BYTES_OF_ALL:
            hub.sleep(RETRY_S)


def stop_all() -> None:
    """Stops the controllers of this process."""
    for controller in list(_running):
        controller.stop()
    ENGINE_LOG.write()
