"""What has run, in `results.json` beside this file: all that `table` writes into the manual.

A class on an engine has one line, and so have an attack on an engine and a measured value. So a change of the file shows which
results are new. Several processes may write it at a time.
"""

import fcntl
import json
import os
from collections.abc import Callable

from environment import FOLDER, HERE

FILE = HERE / "results.json"
LOCK = FOLDER / "results.lock"
CLASSES, HOSTILE, RATE = SECTIONS = ("classes", "hostile", "rate")
# Of the file: sections, then names. What a name has is one line for each engine, if it has engines.
EXPANDED_LEVELS = 3


def read():
    """All results: {section: {name: {engine: result}}}."""
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    return {section: found.get(section, {}) for section in SECTIONS}


def update(change: Callable[[dict], None]):
    """Reads the results, lets `change` modify them, and writes them, while no other process does."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(LOCK, "w") as lock:
        # Closing it releases it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = read()
        change(found)
        new = FILE.with_suffix(".new")
        new.write_text(lines(found) + "\n")
        os.replace(new, FILE)


def put(section, name, **values):
    """Replaces what a name has under these keys."""
    update(lambda found: found[section].setdefault(name, {}).update(values))


def lines(value, level=0):
    """JSON with sorted keys and a line for each entry of the upper levels."""
    if level == EXPANDED_LEVELS or not isinstance(value, dict) or not value:
        return json.dumps(value, sort_keys=True)
    indent = " " * (level + 1)
    entries = [f"{indent}{json.dumps(key)}: {lines(value[key], level + 1)}" for key in sorted(value)]
    return "{\n" + ",\n".join(entries) + "\n" + indent[1:] + "}"
