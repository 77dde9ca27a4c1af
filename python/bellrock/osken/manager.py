"""What is around os-ken's manager: hubs that lack a function, Ctrl-C, and errors of programs whose cause comes last."""

from __future__ import annotations

import functools
import importlib
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from . import old_python

PROGRAM = "osken-manager"
FAILED, WRONG = 1, 2
"""Exit statuses."""

WRAPPED = "bellrock_wraps"
"""Attribute of a manager's `main` that is wrapped."""

WANTED = "os-ken>=3.1,<4"
"""What pip installs."""


class Missing(Exception):
    """os-ken is not there, or has no manager."""


def prepare_hub() -> None:
    """Makes os-ken's hub ready. The manager calls its `patch` with both hubs, and the native one has nothing to patch."""
    try:
        from os_ken.lib import hub
    except ModuleNotFoundError as error:
        if error.name == "os_ken":
            raise Missing(f"os-ken is missing; install it: pip install '{WANTED}'") from None
        raise
    if not hasattr(hub, "patch"):
        hub.patch = lambda thread=True: None


def load() -> ModuleType:
    """Imports os-ken's manager, which patches the standard library first if the hub is eventlet."""
    prepare_hub()
    try:
        manager = importlib.import_module("os_ken.cmd.manager")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("os_ken.cmd"):
            why = f"this os-ken has no manager any more; install the last one that has: pip install '{WANTED}'"
            raise Missing(why) from None
        raise
    return manager


def wrap(manager: ModuleType) -> None:
    """Lets `main` of os-ken's manager end as the program's does. A second call changes nothing."""
    main: Callable[..., Any] = manager.main
    if hasattr(main, WRAPPED):
        return

    @functools.wraps(main)
    def wrapped(args: list[str] | None = None, prog: str | None = None) -> int:
        return _run(manager, main, args, prog or PROGRAM)

    setattr(wrapped, WRAPPED, main)
    manager.main = wrapped  # type: ignore[attr-defined]


def _run(manager: ModuleType, main: Callable[..., Any], args: list[str] | None, prog: str) -> int:
    from os_ken.lib import hub

    from . import interrupt
    from .controller import NotStarted, stop_all
    from .settings import OptionError

    if hub.HUB_TYPE == "eventlet":
        interrupt.raise_in_main()
    try:
        main(args=args, prog=prog)
    except OptionError as error:
        return failed(str(error), WRONG)
    except NotStarted as error:
        return failed(str(error))
    except SyntaxError as error:
        # Only its place: the frames of the import say nothing.
        print(*traceback.format_exception_only(type(error), error), sep="", end="", file=sys.stderr)
        why = old_python.explanation(error)
        return failed(why or f"{error.filename}:{error.lineno}: {error.msg}")
    except (ImportError, NameError) as error:
        why = old_python.explanation(error)
        if why is None:
            raise
        traceback.print_exception(error)
        return failed(why)
    except KeyboardInterrupt:
        # It came while apps start; os-ken waits for it only afterwards.
        manager.AppManager.get_instance().close()
    finally:
        stop_all()
    return 0


def failed(why: str, status: int = FAILED) -> int:
    """Says why the program ends, and returns its exit status."""
    for line in why.splitlines():
        print(f"{PROGRAM}: {line}", file=sys.stderr)
    return status
