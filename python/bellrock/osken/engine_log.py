"""The log of Bellrock's engine: its lines go where the options send those of os-ken, through Python's `logging`."""

from __future__ import annotations

import logging
import threading

from os_ken.lib import hub

from .._native import LogLines

LOG = logging.getLogger("bellrock.engine")

MAX_LINES = 64
"""Lines that are written at once, after which others have a turn."""

WAIT_MS = 1000
"""Time between two looks of a thread, under the native hub."""

TRACE = 5
"""A level for which Python has no name."""


class EngineLog:
    """Writes the lines of this process, whatever the number of controllers."""

    def __init__(self) -> None:
        self.lines = LogLines()
        self._is_started = False

    @staticmethod
    def level() -> str:
        """The level from which on lines are written, as a setting of Bellrock."""
        level = LOG.getEffectiveLevel()
        for limit, name in ((TRACE, "trace"), (logging.DEBUG, "debug"), (logging.INFO, "info"), (logging.WARNING, "warn")):
            if level <= limit:
                return name
        return "error"

    def start(self) -> None:
        """Writes lines as they come. A second call changes nothing."""
        if self._is_started:
            return
        self._is_started = True
        if hub.HUB_TYPE == "eventlet":
            hub.spawn(self._follow)
        else:
            # One of the hub would keep the process from ending.
            threading.Thread(target=self._follow, name="log", daemon=True).start()

    def write(self) -> None:
        """Writes the lines that wait."""
        while self._write_some():
            pass

    def _follow(self) -> None:
        while True:
            if hub.HUB_TYPE == "eventlet":
                from eventlet.hubs import trampoline

                trampoline(self.lines.fileno(), read=True)
            else:
                self.lines.wait(WAIT_MS)
            self._write_some()
            hub.sleep(0)

    def _write_some(self) -> bool:
        lines = self.lines.take(MAX_LINES)
        for level, text in lines:
            # os-ken's own format has no level.
            LOG.log(level, "%s", f"{logging.getLevelName(level)}: {text}" if level >= logging.WARNING else text)
        left_out = self.lines.take_left_out()
        if left_out:
            LOG.warning("WARNING: %d lines of the log are left out: they came faster than they could be written", left_out)
        return bool(lines)


ENGINE_LOG = EngineLog()
