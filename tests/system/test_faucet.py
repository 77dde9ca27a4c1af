"""Faucet on Bellrock: its tutorials, word for word, and some of its own integration tests. tests/faucet runs all of them.

The environment comes from the step `python` of the tests.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from harness.case import SystemTest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faucet"))
import integration  # noqa: E402
import walkthrough  # noqa: E402
from environment import BELLROCK, BIN  # noqa: E402

POLL_S = 0.2


class Faucet(SystemTest):
    """Each test makes namespaces of its own, with an Open vSwitch."""

    time_limit_s = 600

    def setUp(self):
        self.logs = Path(os.environ["BELLROCK_TEST_LOGS"])
        self.assertTrue((BIN / "faucet").exists(), f"{BIN} is missing; scripts/python test makes it")

    def passes(self, name):
        """A class of Faucet's."""
        result = None
        for attempt in range(1, integration.ATTEMPTS + 1):
            running = integration.Running(name, BELLROCK, attempt)
            self.addCleanup(running.process.kill)
            while not running.is_over():
                time.sleep(POLL_S)
            result = running.end()
            if result["status"] == integration.PASSED:
                return
        self.fail(f"{result}; logs: {running.logs}")

    def test_the_tutorials(self):
        """Installation, ACLs and routing, by Faucet's units and documentation; with Gauge and both exporters."""
        with tempfile.TemporaryDirectory(prefix="bellrock-") as run_dir:
            self.assertEqual(walkthrough.follow(BELLROCK, Path(run_dir), self.logs), 0)


def add(name):
    def run(self):
        self.passes(name)
    run.__doc__ = f"Faucet's {name}."
    setattr(Faucet, f"test_{name}", run)


for short in integration.SHORT:
    add(short)
