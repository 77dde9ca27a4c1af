"""The interpreter of apps in Python."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent


# Modules of the harness whose tests need an environment.
NEED_PYTHON = re.compile(r"^from harness\.(python|osken|osken_page) import", re.M)


def _interpreter(environment):
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "python" / environment / "bin" / "python"


def python(environment="tests"):
    """The interpreter that has the wheel; that of the environment "tests-osken" has os-ken too."""
    interpreter = _interpreter(environment)
    if not interpreter.exists():
        raise AssertionError(f"{interpreter} is missing; scripts/python environments makes it")
    return str(interpreter)


def missing(tests):
    """Says what is missing for these tests, and what makes it. `None`: nothing."""
    needing = [test for test in tests if NEED_PYTHON.search(Path(sys.modules[type(test).__module__].__file__).read_text())]
    absent = [str(path) for path in map(_interpreter, ("tests", "tests-osken")) if not path.exists()]
    if not needing or not absent:
        return None
    return (f"{len(needing)} of these {len(tests)} tests run apps in Python, and {' and '.join(absent)} are missing: run "
            "`scripts/python environments` first (`make test STEPS=system` does)")
