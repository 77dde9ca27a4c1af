"""The interpreter of apps in Python."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def python(environment="tests"):
    """The interpreter that has the wheel; that of the environment "tests-osken" has os-ken too."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    interpreter = target / "python" / environment / "bin" / "python"
    if not interpreter.exists():
        raise AssertionError(f"{interpreter} is missing; scripts/python test makes it")
    return str(interpreter)
