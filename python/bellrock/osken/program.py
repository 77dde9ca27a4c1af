"""`python -m bellrock.osken.program FILE [ARGUMENT...]`: a program for Ryu or os-ken that has a main of its own.

Such a program imports `ryu.cmd.manager` and calls its `main`, for a debugger or an editor. Here `import ryu` finds os-ken's modules from
its first line on.
"""

from __future__ import annotations

import os
import runpy
import sys

from .manager import WRONG, Missing, failed, prepare_hub


def main(args: list[str] | None = None) -> int:
    """Runs the file as `python FILE` does. Returns the exit status of what does not start."""
    given = sys.argv[1:] if args is None else args
    if not given:
        print("usage: python -m bellrock.osken.program FILE [ARGUMENT...]", file=sys.stderr)
        return WRONG
    try:
        prepare_hub()
    except Missing as error:
        return failed(str(error))
    from . import install

    install()
    sys.argv[:] = given
    sys.path.insert(0, os.path.dirname(os.path.abspath(given[0])))
    runpy.run_path(given[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
