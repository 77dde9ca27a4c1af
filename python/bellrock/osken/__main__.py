"""`python -m bellrock.osken APP...`: osken-manager on Bellrock. Its options are those of os-ken."""

from __future__ import annotations

import sys

PROGRAM = "osken-manager"
FAILED, WRONG = 1, 2
"""Exit statuses."""


def main(args: list[str] | None = None) -> int:
    """Runs apps until a signal, or until none is left. Returns the exit status."""
    try:
        from os_ken.lib import hub

        if not hasattr(hub, "patch"):
            # The manager calls it with both hubs, and the native one has nothing to patch.
            hub.patch = lambda thread=True: None
        # It patches the standard library first, if the hub is eventlet.
        from os_ken.cmd import manager
    except ModuleNotFoundError as error:
        if error.name == "os_ken":
            return _failed("os-ken is missing; install it: pip install os-ken==3.1.0")
        if error.name is not None and error.name.startswith("os_ken.cmd"):
            return _failed("this os-ken has no manager any more; install the last one that has: pip install os-ken==3.1.0")
        raise
    from . import install, interrupt
    from .controller import NotStarted, stop_all
    from .settings import OptionError

    install()
    if hub.HUB_TYPE == "eventlet":
        interrupt.raise_in_main()
    try:
        manager.main(args=args, prog=PROGRAM)
    except OptionError as error:
        return _failed(str(error), WRONG)
    except NotStarted as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        # It came while apps start; os-ken waits for it only afterwards.
        manager.AppManager.get_instance().close()
    finally:
        stop_all()
    return 0


def _failed(why: str, status: int = FAILED) -> int:
    for line in why.splitlines():
        print(f"{PROGRAM}: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
