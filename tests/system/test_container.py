"""The container image: built and run without a daemon, as nobody, with switches that connect to it."""

import os
import re
import subprocess
from pathlib import Path

from harness.case import SystemTest
from harness.controller import PORT, listening_ports
from harness.network import Line
from harness.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT_S = 60


class Container(SystemTest):
    """An image of the binary under test."""

    def buildah(self, *words):
        # Nothing of it stays on the machine.
        storage = ("--root", str(self.run_dir / "root"), "--runroot", str(self.run_dir / "run"), "--storage-driver", "vfs")
        return ["buildah", *storage, *words]

    def run_command(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_an_image_runs_as_nobody_and_carries_packets_openflow13(self):
        """From the archive that operators get."""
        built = self.run_command(str(ROOT / "scripts" / "container"), os.environ["BELLROCK_BIN"], str(self.run_dir))
        container = self.run_command(*self.buildah("from", f"oci-archive:{built.splitlines()[-1]}")).splitlines()[-1]
        with open(self.logs / "controller.log", "wb") as log:
            running = subprocess.Popen(self.buildah("run", "--isolation", "chroot", container, "--", "/bellrock", "run"),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        until(lambda: PORT in listening_ports(), LIMIT_S, "the controller listens")
        network = self.network(Line(switches=2, hosts=(1, 2)), "OpenFlow13")
        self.assertEqual(network.ping_all(), 0)
        inside = [pid for pid in Path("/proc").iterdir() if pid.name.isdigit() and (pid / "comm").read_text().strip() == "bellrock"]
        self.assertEqual(len(inside), 1, inside)
        status = (inside[0] / "status").read_text()
        self.assertEqual(re.search(r"Uid:\s+(\d+)", status)[1], "65534", "it runs as nobody")
        # The kernel ends what is left with the test's namespaces.
        os.kill(int(inside[0].name), 15)
        self.assertEqual(running.wait(LIMIT_S), 0, "exit status after SIGTERM")
