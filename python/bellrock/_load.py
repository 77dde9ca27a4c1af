"""Finds the apps of a file, for `bellrock run --app FILE`."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from . import _run
from ._app import EVENTS, OWN_APPS, AnyApp, App


class LoadError(Exception):
    """A file has no apps, or they cannot be made. The text says what would be right."""


_of_file: dict[str, set[str]] = {}
"""The modules that each file has brought, itself among them."""


class _FromSource(SourceFileLoader):
    """Never takes compiled code: Python would take that of a file which was changed within the same second."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load(path: str) -> list[AnyApp]:
    """Imports a file under its own name, and returns its apps.

    Loaded again, it is a new module, and so are those of its folder that it has imported. If it cannot be loaded,
    the last ones stay. Raises `LoadError`, or what the file raises.
    """
    before = dict(sys.modules)
    for name in _of_file.get(path, ()):
        sys.modules.pop(name, None)
    try:
        apps = apps_of(_imported(path), path)
    except BaseException:
        for name in set(sys.modules) - set(before):
            if _is_beside(sys.modules[name], path):
                del sys.modules[name]
        sys.modules.update(before)
        raise
    _of_file[path] = {name for name, module in list(sys.modules.items())
                      if before.get(name) is not module and _is_beside(module, path)}
    return apps


def files_of(path: str) -> list[str]:
    """A file that was loaded, and the files of its folder that it has imported."""
    modules = [sys.modules.get(name) for name in _of_file.get(path, ())]
    found = {getattr(module, "__file__", None) or path for module in modules if module is not None}
    return sorted(found | {path})


def _is_beside(module: ModuleType, path: str) -> bool:
    """Whether a module is one of the folder of a file, and not of an environment in it."""
    file = getattr(module, "__file__", None)
    if not file or "site-packages" in file:
        return False
    return Path(os.path.realpath(path)).parent in Path(os.path.realpath(file)).parents


def _imported(path: str) -> ModuleType:
    name = Path(path).stem
    if name in sys.modules:
        raise LoadError(f"{path}: there is a module {name!r} already; give the file another name")
    # As for a script that is started: what lies beside it can be imported.
    folder = os.path.dirname(os.path.realpath(path))
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, path))
    assert spec is not None and spec.loader is not None, "its name ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _run.loading = path
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        _run.loading = None
    return module


def apps_of(module: ModuleType, path: str) -> list[AnyApp]:
    """The apps of a module: those that it names, else its classes that extend `App`, else its only
    class or function that looks like an app."""
    named = _named(module, path)
    if named is not None:
        return named
    own = [
        value
        for name, value in vars(module).items()
        # An alias is no second app.
        if getattr(value, "__module__", None) == module.__name__
        and getattr(value, "__name__", None) == name
        and not name.startswith("_")
    ]
    classes = [value for value in own if isinstance(value, type)]
    extending = [each for each in classes if issubclass(each, App) and not inspect.isabstract(each)]
    if extending:
        return [_made(each, path) for each in extending]
    handlers = [each for each in classes if any(hasattr(each, event) for event in EVENTS)]
    found: list[Any] = handlers or [each for each in own if _takes_packets(each)]
    if len(found) == 1:
        app: Any = found[0]
        if isinstance(app, type):
            _check_arguments(app, path)
        return [app]
    if found:
        names = ", ".join(each.__name__ for each in found)
        first = found[0].__name__
        raise LoadError(f"{path}: any of {names} could be its app; add a line such as `app = {first}`")
    raise LoadError(
        f"{path}: it has no app; write a class with `def packet_in(self, switch, packet)`, or a line `app = …`"
    )


def _named(module: ModuleType, path: str) -> list[AnyApp] | None:
    """What the module calls `app` or `apps`. `None`: it has neither."""
    names = [name for name in ("app", "apps") if name in vars(module)]
    if not names:
        return None
    if len(names) > 1:
        raise LoadError(f"{path}: it has both `app` and `apps`; leave one out")
    name = names[0]
    value = getattr(module, name)
    apps: list[Any] = [value]
    if name == "apps":
        if not isinstance(value, (list, tuple)):
            raise LoadError(f"{path}: `apps` is a list of apps, such as [First(), Second()]")
        apps = list(value)
    if not apps:
        raise LoadError(f"{path}: `apps` is empty; name an app")
    for app in apps:
        if isinstance(app, str):
            if app not in OWN_APPS:
                near = difflib.get_close_matches(app, OWN_APPS, n=1)
                hint = f" (did you mean {near[0]}?)" if near else f"; there are {', '.join(OWN_APPS)}"
                raise LoadError(f"{path}: `{name}`: there is no app {app!r}{hint}")
            continue
        if isinstance(app, type):
            _check_arguments(app, path)
            continue
        try:
            _run.app_of(app)
        except TypeError as error:
            raise LoadError(f"{path}: `{name}`: {error}") from None
    return [app() if isinstance(app, type) and issubclass(app, App) else app for app in apps]


def _made(app: type[App], path: str) -> App:
    _check_arguments(app, path)
    return app()


def _check_arguments(app: type[Any], path: str) -> None:
    try:
        signature = inspect.signature(app)
    except ValueError:
        # Of a class that is written in C.
        return
    try:
        signature.bind()
    except TypeError as error:
        name = app.__name__
        raise LoadError(
            f"{path}: {name} cannot be made without arguments ({error}); make it at the end of the file, such as "
            f"`app = {name}(…)`"
        ) from None


def _takes_packets(value: object) -> bool:
    """Whether it is a function of a switch and a packet."""
    if not inspect.isfunction(value) or inspect.iscoroutinefunction(value):
        return False
    try:
        inspect.signature(value).bind(None, None)
    except TypeError:
        return False
    return True
