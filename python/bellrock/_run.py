"""Runs apps for real switches."""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import threading
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from ._app import AnyApp, App, FunctionApp, PerSwitchApp, end
from ._check import check_app, check_class
from ._cores import Placement
from ._native import Match, NativeController, log_to_stderr

_log = logging.getLogger("bellrock")

loading: str | None = None
"""The file whose apps are being loaded. It must not run them itself."""

_WATCH_EVERY = 1.0
"""How often it is looked whether the controller still runs, in seconds."""


class _Options:
    """What the native half reads of an app."""

    def __init__(self, app: App) -> None:
        self.name = app.name
        self.forwards = app.forwards
        self.scope = app.scope
        self.needs = _needs_of(app)
        self.sees = _sees_of(app)
        self.keeps_flows = app.keeps_flows
        self.adopts_flows = app.adopts_flows or hasattr(app, "adopt")
        self.wants_packet_ins = app.wants_packet_ins
        self.counters = list(app.counters.items())


def _needs_of(app: App) -> list[str]:
    if isinstance(app.needs, str):
        raise TypeError(f"app {app.name}: needs is a tuple; write `needs = ({app.needs!r},)`, with the comma")
    return list(app.needs)


def _sees_of(app: App) -> list[Match] | None:
    """What the app must see. `None`: it has not said, and may get packets."""
    sees = app.sees
    if isinstance(sees, Match):
        return [sees]
    if sees is None:
        gets_packets = any(hasattr(app, event) for event in ("packet_in", "packet_ins"))
        makes_handlers = not isinstance(app, PerSwitchApp) and type(app).switch_up is not App.switch_up
        return None if gets_packets or makes_handlers else []
    found = list(sees)
    for each in found:
        if not isinstance(each, Match):
            raise TypeError(f"app {app.name}: sees has {each!r}; give matches, such as Match(eth_type=0x0800)")
    return found


def chain(apps: Sequence[AnyApp]) -> list[tuple[Any, _Options | None]]:
    """The apps with their options, as the native half takes them."""
    if not apps:
        raise TypeError("there is no app to run")
    entries: list[tuple[Any, _Options | None]] = []
    for app in apps:
        if isinstance(app, str):
            entries.append((app, None))
            continue
        made = app_of(app)
        if isinstance(made, PerSwitchApp):
            check_class(made.name, made.made)
        elif not isinstance(made, FunctionApp):
            check_app(made)
        entries.append((made, _Options(made)))
    return entries


def app_of(app: App | Callable[..., Any]) -> App:
    if isinstance(app, App):
        return app
    if isinstance(app, type):
        if issubclass(app, App):
            try:
                inspect.signature(app).bind()
            except TypeError:
                raise TypeError(f"{app.__name__} is a class; give an instance: {app.__name__}(…)") from None
            return app()
        return PerSwitchApp(app)
    if inspect.isroutine(app):
        return FunctionApp(app)
    raise TypeError(f"{app!r} is no app; give an instance of bellrock.App, a class or a function")


def name_of(app: AnyApp) -> str:
    """The name of an app in the chain."""
    return app if isinstance(app, str) else app_of(app).name


def report(name: str, error: BaseException) -> None:
    """Logs an exception of a handler, with its traceback."""
    _log.error("app %s raised an exception", name, exc_info=error)


class Controller:
    """A controller with apps, for programs that have an event loop already.

    >>> async def main():
    ...     async with Controller("hub", listen="127.0.0.1:0") as controller:
    ...         return len(controller.addresses)
    >>> asyncio.run(main())
    1
    """

    def __init__(
        self,
        *apps: AnyApp,
        listen: str | Sequence[str] = "127.0.0.1:6653",
        workers: int = 0,
        control: bool | str | PathLike[str] = False,
        http: str | None = None,
    ) -> None:
        self._chain = chain(apps)
        self._listen = [listen] if isinstance(listen, str) else list(listen)
        self._workers = workers
        self._control = control
        self._http = http
        self._native: NativeController | None = None
        self._placement: Placement | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Controller:
        self._loop = asyncio.get_running_loop()
        self._failure = self._loop.create_future()
        self._native = native = self._make()
        for warning in native.warnings:
            _log.warning("%s", warning)
        self._placement = Placement(native.worker_cores)
        try:
            native.start_apps()
        except BaseException:
            self._placement.undo()
            native.stop()
            raise
        self._loop.add_reader(native.fileno(), self._turn)
        self._loop.call_soon(self._turn)
        return self

    def replace(self, name: str, entry: tuple[Any, _Options | None]) -> None:
        """Lets another object be the app of this name. The tasks of the old one end."""
        place = next(place for place, (app, _) in enumerate(self._chain) if name_of(app) == name)
        old, _ = self._chain[place]
        self._chain[place] = entry
        if isinstance(old, str):
            return
        end(old)
        assert self._native is not None, "it runs"
        self._native.replace(name, entry[0])

    def _make(self) -> NativeController:
        return NativeController(
            self._chain,
            report,
            listen=self._listen,
            workers=self._workers,
            control=self._control,
            http=self._http,
        )

    async def __aexit__(self, *_: object) -> None:
        native, self._native = self._native, None
        if native is not None:
            assert self._loop is not None
            self._loop.remove_reader(native.fileno())
            native.stop()
            if self._placement is not None:
                self._placement.undo()

    @property
    def addresses(self) -> list[str]:
        """Addresses on which it listens, each with its port."""
        return [] if self._native is None else self._native.addresses

    async def wait(self) -> None:
        """Waits until the controller fails. Its log says why."""
        assert self._failure is not None, "the controller runs inside `async with`"
        while self._native is not None:
            if self._native.has_failed:
                raise NotRunning("the controller has failed; its log says why")
            await asyncio.wait([self._failure], timeout=_WATCH_EVERY)
            self._look()
            if self._failure.done():
                return self._failure.result()

    def _look(self) -> None:
        """Is called in each turn of the apps, and once a second."""

    def _turn(self) -> None:
        if self._native is None:
            return
        assert self._loop is not None and self._failure is not None
        try:
            if self._native.turn():
                self._loop.call_soon(self._turn)
            self._look()
        except BaseException as error:
            # What a handler raises to end the program: `SystemExit`, `KeyboardInterrupt`.
            if not self._failure.done():
                self._failure.set_exception(Ended(error))


class NotRunning(RuntimeError):
    """The controller does not run. The text is all that there is to say."""


class Ended(Exception):
    """Carries an exception through a future that would not take it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def run(
    *apps: AnyApp,
    listen: str | Sequence[str] = "127.0.0.1:6653",
    workers: int = 0,
    control: bool | str | PathLike[str] = True,
    http: str | None = None,
) -> None:
    """Runs a controller with these apps until Ctrl-C or SIGTERM.

    The apps form a chain: each gets the packets that those before it pass on. An app is an instance of
    `App`; a function, which gets the packets of all switches; a class, of which each switch gets an
    instance; or the name of an app of Bellrock's own: "hub", "learning" or "routing".

    `listen` is an address or several; 127.0.0.1:6653 by default. Anyone who reaches an address can
    claim to be a switch. `workers` is the number of threads that speak to switches; 0 for one on
    each core but one, which is left for the thread of the apps. With `control`, `bellrock status` and the other commands answer, by a socket at this path
    or where they look by default. `http` is the address
    of REST, the metrics and the web page.
    """
    if loading is not None:
        raise RuntimeError(
            f"{loading} calls bellrock.run while its apps are loaded; put the call below "
            '`if __name__ == "__main__":`'
        )
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError(
            "an event loop runs here already, as in a notebook; use "
            "`async with bellrock.Controller(...)` in place of bellrock.run"
        )
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(levelname)5s %(message)s")
    log_to_stderr()
    controller = Controller(*apps, listen=listen, workers=workers, control=control, http=http)
    try:
        asyncio.run(_run(controller))
    except KeyboardInterrupt:
        pass
    except Ended as ended:
        raise ended.error from None


async def _run(controller: Controller) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    # Elsewhere, whoever started the thread ends it.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
    try:
        async with controller:
            await controller.wait()
    except asyncio.CancelledError:
        pass
