"""`python -m bellrock.osken APP...`: osken-manager on Bellrock. Its options are those of os-ken."""

from __future__ import annotations

import sys

from .manager import PROGRAM, Missing, failed, load


def main(args: list[str] | None = None) -> int:
    """Runs apps until a signal, or until none is left. Returns the exit status."""
    try:
        # It patches the standard library, so it is first.
        manager = load()
    except Missing as error:
        return failed(str(error))
    from . import install

    install()
    status: int = manager.main(args=args, prog=PROGRAM)
    return status


if __name__ == "__main__":
    sys.exit(main())
