"""`import ryu...` finds the modules of os-ken, which is what Ryu became."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

RYU, OSKEN = "ryu", "os_ken"

RENAMED = {
    "os_ken.exception": {"RyuException": "OSKenException"},
    "os_ken.base.app_manager": {"RyuApp": "OSKenApp"},
}
"""Names of Ryu that os-ken has changed, by the module."""


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


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        first, dot, rest = fullname.partition(".")
        if first != RYU:
            return None
        name = OSKEN + dot + rest
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            # Without this, a package ryu beside it would give the rest: two copies of every class.
            raise ModuleNotFoundError(f"{fullname} has become {name}, which os-ken does not have", name=fullname)
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, _Loader(name), is_package=is_package)


def install() -> None:
    """Lets `ryu...` be imported. A second call changes nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name, renamed in RENAMED.items():
        module = importlib.import_module(name)
        for old, new in renamed.items():
            setattr(module, old, getattr(module, new))
