"""A process with osken-manager, and how tests wait for its lines."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

APPS = Path(__file__).resolve().parent / "apps"
# Where no folder `bellrock` takes the place of the package that is installed.
ELSEWHERE = APPS
LIMIT_S = 60
POLL_S = 0.05


class Manager:
    """A process with osken-manager. Its lines are read until one has what is waited for."""

    def __init__(
        self, hub: str, arguments: Sequence[str], port: int | None = None, program: Sequence[str] = ("-m", "bellrock.osken")
    ) -> None:
        self.port = port or free_port()
        command = [sys.executable, *program, "--ofp-listen-host", "127.0.0.1",
                   "--ofp-tcp-listen-port", str(self.port), *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=ELSEWHERE, env={**os.environ, "OSKEN_HUB_TYPE": hub, "PYTHONWARNINGS": "ignore"})
        self.lines: list[str] = []
        # A test that would wait for ever fails instead.
        self.watchdog = threading.Timer(LIMIT_S, self.process.kill)
        self.watchdog.start()

    def until(self, pattern: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if re.search(pattern, line):
                return line
        raise AssertionError(f"no line has {pattern!r}:\n{''.join(self.lines)}")

    def started(self) -> Manager:
        self.until("switches connect to ")
        return self

    def events(self) -> list[str]:
        """What the program `order` has printed so far."""
        return [line.removeprefix("event ").strip() for line in self.lines if line.startswith("event ")]

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.ended()

    def ended(self) -> int:
        assert self.process.stdout is not None
        self.lines += self.process.stdout.readlines()
        status = self.process.wait(LIMIT_S)
        self.watchdog.cancel()
        return status


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Waits until a condition is true, which no line reports."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        time.sleep(POLL_S)
