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
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from types import TracebackType

from ._app import AnyApp
from ._load import LoadError, load
from ._native import CommandRun, Error, NativeController, log, log_level
from ._run import Controller, Ended, NotRunning, app_of, report

_log = logging.getLogger("bellrock")

FAILED, WRONG = 1, 2
"""Exit statuses of the command."""

INTERRUPTED = 128 + signal.SIGINT
"""A shell reports this for a program that Ctrl-C ended."""


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
        await controller.wait()


def _load_all(files: Sequence[str]) -> dict[str, list[AnyApp]] | None:
    """Loads all files, in order. `None`: one is wrong, and the log says why."""
    apps: dict[str, list[AnyApp]] = {}
    for path in files:
        try:
            apps[path] = load(path)
        except LoadError as error:
            _log.error("%s", error)
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            kind, why = type(error).__name__, str(error)
            _log.error(
                "%s cannot be loaded: %s",
                path,
                f"{kind}: {why}" if why else kind,
                exc_info=(type(error), error, _from_file(error.__traceback__)),
            )
            return None
    names = Counter(_name(app) for of_file in apps.values() for app in of_file)
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        _log.error("two apps are called %r; give one of them another `name`", twice[0])
        return None
    for path, of_file in apps.items():
        listed = ", ".join(map(_name, of_file))
        _log.info("%s: apps: %s", path, listed)
    return apps


def _name(app: AnyApp) -> str:
    return app if isinstance(app, str) else app_of(app).name


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
