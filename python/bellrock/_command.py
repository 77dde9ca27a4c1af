"""What `bellrock run` starts for a chain with apps in Python.

The command hands over where its settings come from. This reads them with the same code, so files, flags,
reloads, signals, the log and reports to systemd are those of the command.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from types import TracebackType
from typing import Any

from ._app import AnyApp
from ._load import LoadError, load
from ._native import CommandRun, Error, NativeController, log, log_level
from ._reload import follow
from ._run import Controller, Ended, NotRunning, name_of, report

_log = logging.getLogger("bellrock")

FAILED, WRONG = 1, 2
"""Exit statuses of the command."""

INTERRUPTED = 128 + signal.SIGINT
"""A shell reports this for a program that Ctrl-C ended."""


_tasks: set[asyncio.Task[None]] = set()
"""Tasks that last as long as the program."""


class _Handler(logging.Handler):
    """Sends log lines to the log of the controller, which has a level and a format."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log(record.levelno, record.name, self.format(record))
        except Exception:
            self.handleError(record)


class CommandController(Controller):
    """A controller of a configuration."""

    def __init__(self, run: CommandRun, apps: dict[str, list[AnyApp]]) -> None:
        # The configuration has everything else.
        super().__init__(*[app for of_file in apps.values() for app in of_file])
        self._run = run
        self._apps = apps

    @property
    def reloads_apps(self) -> bool:
        """Whether files are loaded again when they change."""
        return self._run.reloads_apps

    def apps_of(self, path: str) -> list[tuple[Any, Any]]:
        """The apps of a file, with their options, as they run."""
        names = [name_of(app) for app in self._apps[path]]
        return [entry for entry in self._chain if name_of(entry[0]) in names]

    @property
    def files(self) -> list[str]:
        """The files with apps."""
        return list(self._apps)

    def _make(self) -> NativeController:
        entries = iter(self._chain)
        chains = {path: list(islice(entries, len(apps))) for path, apps in self._apps.items()}
        try:
            return NativeController.of_command(self._run, chains, report)
        except Error as error:
            raise NotRunning(str(error)) from None

    def _look(self) -> None:
        super()._look()
        # A reload may have changed it.
        follow_level()
        assert self._native is not None and self._failure is not None
        if self._native.is_stopping and not self._failure.done():
            self._failure.set_result(None)


def follow_level() -> None:
    """Lets loggers make only the lines that the log wants."""
    level = log_level()
    if logging.root.level != level:
        logging.root.setLevel(level)


def main(text: str) -> int:
    """Runs a controller until a signal ends it. Returns the exit status."""
    # Under systemd, what an app prints would wait in a buffer.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        run = CommandRun(text)
    except ValueError as error:
        return _failed(error, WRONG)
    except Error as error:
        return _failed(error, FAILED)
    run.start_log()
    logging.root.handlers[:] = [_Handler()]
    logging.captureWarnings(True)
    threading.excepthook = _thread_failed
    follow_level()
    try:
        if run.reloads_apps:
            # Python takes compiled code for that of a file that was changed within a second.
            sys.dont_write_bytecode = True
        apps = _load_all(run.files)
        if apps is None:
            return FAILED
        # From here on the native half handles them: a second signal ends the program whatever Python does.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        run.watch_signals()
        asyncio.run(_run(CommandController(run, apps)))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Ended as ended:
        if isinstance(ended.error, SystemExit):
            raise ended.error from None
        _log.error("the controller has stopped", exc_info=ended.error)
        return FAILED
    except NotRunning as error:
        return _failed(error, FAILED)
    except Exception as error:
        _log.error("an app cannot start", exc_info=error)
        return FAILED
    return 0


async def _run(controller: CommandController) -> None:
    async with controller:
        if controller.reloads_apps:
            _tasks.add(asyncio.get_running_loop().create_task(follow(controller, _load)))
        await controller.wait()


def _load_all(files: Sequence[str]) -> dict[str, list[AnyApp]] | None:
    """Loads all files, in order. `None`: one is wrong, and the log says why."""
    apps: dict[str, list[AnyApp]] = {}
    for path in files:
        loaded = _load(path)
        if loaded is None:
            return None
        apps[path] = loaded
    names = Counter(name_of(app) for of_file in apps.values() for app in of_file)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        _log.error("two apps are called %r; give one of them another `name`", twice[0])
        return None
    for path, of_file in apps.items():
        listed = ", ".join(map(name_of, of_file))
        _log.info("%s: apps: %s", path, listed)
    return apps


def _load(path: str, then: str = "") -> list[AnyApp] | None:
    """Loads a file. `None`: it is wrong, and the log says why, and what happens then."""
    try:
        return load(path)
    except LoadError as error:
        _log.error("%s%s", error, then)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        kind, why = type(error).__name__, str(error)
        _log.error(
            "%s cannot be loaded: %s%s",
            _place(path, error),
            f"{kind}: {why}" if why else kind,
            then,
            exc_info=(type(error), error, _from_file(error.__traceback__)),
        )
    return None


def _place(path: str, error: BaseException) -> str:
    """The file, with the line where the error is, if it is in this file."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{path}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == path), None)
    return path if line is None else f"{path}:{line}"


def _from_file(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of the import."""
    inner = traceback
    while inner is not None:
        name = inner.tb_frame.f_code.co_filename
        if name != __file__ and "importlib" not in name and not name.endswith("_load.py"):
            return inner
        inner = inner.tb_next
    # A syntax error has no frame of its own.
    return None


def _thread_failed(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is None or isinstance(args.exc_value, SystemExit):
        return
    name = args.thread.name if args.thread is not None else "a thread"
    _log.error("%s raised an exception", name, exc_info=args.exc_value)


def _failed(error: BaseException, status: int) -> int:
    for line in str(error).splitlines():
        print(f"bellrock: {line}", file=sys.stderr)
    return status
