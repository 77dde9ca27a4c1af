"""Runs a process with its own network, mounts, processes and Open vSwitch, and ends all that it has left.

    python3 namespaces.py RUN_DIR LOGS -- COMMAND...      inside of the namespaces that `start` makes
"""

import os
import subprocess
import sys
from pathlib import Path

from environment import ROOT, TARGET

sys.path.insert(0, str(ROOT / "tests" / "system"))
from harness.openvswitch import OpenVSwitch, command  # noqa: E402

# Faucet's harness keeps files in them, under names with a process id, which are the same in each namespace.
# Their modes are the usual ones: ladvd wants a /run that only root writes.
PRIVATE = {"/tmp": 0o1777, "/run": 0o755}
# There it keeps its logs, and below it copies of /etc and /run of each host.
KEPT = "/var/tmp"
COPIES = "mininet"
# For Faucet's tests of flow timeouts and of doubly tagged packets, as its own script for containers has them.
OTHER_CONFIG = ("max-idle=50000", "vlan-limit=2")


def start(run_dir, logs, words, environment, output):
    """Starts a command in new namespaces. When the returned process ends, the kernel ends everything in them."""
    return subprocess.Popen(
        ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/usr/bin/python3", __file__, str(run_dir),
         str(logs), "--", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)


def hide(run_dir, kept):
    """Puts empty folders in the place of `PRIVATE`, except paths that are still needed."""
    for number, (name, mode) in enumerate(PRIVATE.items()):
        folder = Path(name)
        empty = run_dir / f"private{number}"
        empty.mkdir()
        subprocess.run(["mount", "-n", "-t", "tmpfs", "tmpfs", empty], check=True)
        os.chmod(empty, mode)
        for path in kept:
            if path.is_relative_to(folder):
                inner = empty / path.relative_to(folder)
                inner.mkdir(parents=True, exist_ok=True)
                subprocess.run(["mount", "-n", "--rbind", path, inner], check=True)
        subprocess.run(["mount", "-n", "--move", empty, folder], check=True)


def keep(logs):
    """Lets what is written to `KEPT` stay among the logs."""
    (logs / "files" / COPIES).mkdir(parents=True)
    subprocess.run(["mount", "-n", "-t", "tmpfs", "tmpfs", logs / "files" / COPIES], check=True)
    subprocess.run(["mount", "-n", "--rbind", logs / "files", KEPT], check=True)


def main(run_dir, logs, _, *words):
    run_dir, logs = Path(run_dir), Path(logs)
    for name in ("lo",):
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    switch = OpenVSwitch(logs, run_dir)
    switch.start()
    for setting in OTHER_CONFIG:
        command("ovs-vsctl", "set", "Open_vSwitch", ".", f"other_config:{setting}")
    keep(logs)
    hide(run_dir, sorted({ROOT, TARGET, run_dir, logs}))
    try:
        return subprocess.run(words, check=False).returncode
    finally:
        switch.stop()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
