"""`import ryu...` finds the modules of os-ken, which is what Ryu became.

Applications of Ryu (`ryu.app...`) are not in os-ken any more. They come from Ryu's own files, if Python finds some: a source tree in
`PYTHONPATH`, or an installed Ryu. Nothing else does: two copies of a class would not know each other. Without them, this package has
those that most programs extend.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from os_ken.base import app_manager

from . import manager

RYU, OSKEN = "ryu", "os_ken"
APPLICATIONS = "os_ken.app."

RENAMED = {
    "os_ken.exception": {"RyuException": "OSKenException"},
    "os_ken.base.app_manager": {"RyuApp": "OSKenApp"},
}
"""Names of Ryu that os-ken has changed, by the module."""

OWN = {"os_ken.app.wsgi": "bellrock.osken.wsgi"}
"""Modules of this package that take the place of one that os-ken has no more. A copy of the old one does not start with its manager."""

APPS = ("gui_topology", "rest_topology", "simple_monitor_13", "simple_switch", "simple_switch_13", "ws_topology")
"""Applications that this package has."""

MANAGER = "os_ken.cmd.manager"


class _Loader(Loader):
    """Gives out a module of os-ken under a second name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It has run already, under its first name; the import has replaced its specification.
        module.__spec__ = self._spec


class _ManagerLoader(Loader):
    """Loads os-ken's manager, and wraps its `main`."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        manager.wrap(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        first, dot, rest = fullname.partition(".")
        name = OSKEN + dot + rest if first == RYU else fullname
        if name in OWN:
            return _under(fullname, OWN[name])
        if fullname == MANAGER:
            return _manager(fullname, path)
        if first != RYU:
            return _application(fullname, path)
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            why = f"{fullname} has become {name}, which os-ken does not have"
            if name.startswith(APPLICATIONS):
                why += "; if Ryu has it, put Ryu's sources in PYTHONPATH, such as PYTHONPATH=~/ryu"
            raise ModuleNotFoundError(why, name=fullname)
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, _Loader(name), is_package=is_package)


def _manager(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(fullname, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _ManagerLoader(spec.loader)
    return spec


def _application(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Finds a module of `os_ken.app` that os-ken does not have: among Ryu's own files, or here."""
    if not fullname.startswith(APPLICATIONS) or PathFinder.find_spec(fullname, path) is not None:
        return None
    package = PathFinder.find_spec(RYU)
    places = (package.submodule_search_locations if package else None) or []
    _, *folders, app = fullname.split(".")
    found = PathFinder.find_spec(fullname, [os.path.join(place, *folders) for place in places])
    if found is None and folders == ["app"] and app in APPS:
        found = _under(fullname, f"bellrock.osken.apps.{app}")
    return found


def _under(fullname: str, name: str) -> ModuleSpec:
    """Gives a module of this package another name. Modules of a package are found in its folder."""
    own = importlib.util.find_spec(name)
    is_package = own is not None and own.submodule_search_locations is not None
    return ModuleSpec(fullname, _Loader(name), is_package=is_package)


def _renamed(app: str) -> str:
    """The name of an app under which others require it: that of os-ken. With two names it would run twice."""
    first, dot, rest = app.partition(".")
    if first != RYU or not dot:
        return app
    try:
        found = importlib.util.find_spec(f"{OSKEN}.{rest}")
    except ModuleNotFoundError:
        found = None
    return app if found is None else f"{OSKEN}.{rest}"


def _rename_apps() -> None:
    """Lets the manager load apps by their new names: those that it is given, and those that apps require."""
    load, required = app_manager.AppManager.load_apps, app_manager.get_dependent_services

    @functools.wraps(load)
    def load_apps(self: app_manager.AppManager, app_lists: list[str]) -> None:
        load(self, [_renamed(app) for apps in app_lists for app in apps.split(",")])

    @functools.wraps(required)
    def get_dependent_services(cls: type) -> list[str]:
        return [_renamed(app) for app in required(cls)]

    app_manager.AppManager.load_apps = load_apps
    app_manager.get_dependent_services = get_dependent_services


def install() -> None:
    """Lets `ryu...` be imported. A second call changes nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    _rename_apps()
    if MANAGER in sys.modules:
        manager.wrap(sys.modules[MANAGER])
    for name, renamed in RENAMED.items():
        module = importlib.import_module(name)
        for old, new in renamed.items():
            setattr(module, old, getattr(module, new))
