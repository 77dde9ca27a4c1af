"""Starts the tutorials in namespaces of their own."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import ENGINES, FOLDER, HERE
from namespaces import start

LIMIT_S = 400


def follow(engine, run_dir, logs):
    """Follows the tutorials on this engine. Returns the exit status, and prints what was done."""
    file = logs / "tutorial.log"
    with open(file, "wb") as output:
        process = start(run_dir, logs, ["/usr/bin/python3", HERE / "tutorial.py", engine, run_dir], dict(os.environ), output)
    try:
        status = process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    print(file.read_text(errors="replace"))
    return status


def run(options):
    if os.geteuid() != 0:
        sys.exit("the tutorials need root, for network namespaces")
    failed = []
    for engine in [options.engine] if options.engine else ENGINES:
        logs = FOLDER / "logs" / "tutorial" / engine
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        with tempfile.TemporaryDirectory(prefix="bellrock-") as run_dir:
            if follow(engine, Path(run_dir), logs) != 0:
                failed.append(engine)
    print(f"failed: {', '.join(failed)}" if failed else "followed to the end")
    return 1 if failed else 0
