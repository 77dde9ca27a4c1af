"""The interpreter of apps in Python."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def python():
    """The interpreter that has the wheel."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    interpreter = target / "python" / "tests" / "bin" / "python"
    if not interpreter.exists():
        raise AssertionError(f"{interpreter} is missing; scripts/python test makes it")
    return str(interpreter)
