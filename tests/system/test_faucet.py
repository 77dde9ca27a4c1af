"""Faucet on Bellrock: its tutorials, word for word, and some of its own integration tests. tests/faucet runs all of them.

The environment comes from the step `python` of the tests.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from harness.case import SystemTest
from harness.controller import listening_ports
from harness.network import Line
from harness.waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faucet"))
import hostile  # noqa: E402
import integration  # noqa: E402
import walkthrough  # noqa: E402
from environment import BELLROCK, BIN  # noqa: E402

POLL_S = 0.2
PORT = 6653
NEEDS_FAUCET = f"{BIN} is missing; scripts/python test makes it"


class Faucet(SystemTest):
    """Each test makes namespaces of its own, with an Open vSwitch."""

    time_limit_s = 600

    def setUp(self):
        self.logs = Path(os.environ["BELLROCK_TEST_LOGS"])
        self.assertTrue((BIN / "faucet").exists(), NEEDS_FAUCET)

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


class FaucetByTls(SystemTest):
    """Faucet on Bellrock, with switches by TLS."""

    secure = True

    def test_hosts_of_two_switches_by_tls(self):
        """Open vSwitch by ssl, with certificates of ovs-pki, and os-ken's options as Faucet names them."""
        self.assertTrue((BIN / "faucet").exists(), NEEDS_FAUCET)
        certificate, key, authority = self.pki.controller_certificate, self.pki.controller_key, self.pki.switch_authority
        options = [f"--ryu-ofp-ssl-listen-port={PORT}", f"--ryu-ctl-cert={certificate}", f"--ryu-ctl-privkey={key}", f"--ryu-ca-certs={authority}"]
        faucet = hostile.Faucet(BELLROCK, self.run_dir, self.logs, hostile.CONFIG, options)
        self.addCleanup(faucet.process.kill)
        until(lambda: PORT in listening_ports() or faucet.died(), hostile.READY_LIMIT_S, "Faucet listens")
        network = self.network(Line(switches=2, hosts=(1, 2)), "OpenFlow13")
        self.assertLess(network.seconds_until_reachable(hostile.READY_LIMIT_S), hostile.READY_LIMIT_S)
        self.assertFalse(faucet.died(), faucet.log.read_text())


def add(name):
    def run(self):
        self.passes(name)
    run.__doc__ = f"Faucet's {name}."
    setattr(Faucet, f"test_{name}", run)


for short in integration.SHORT:
    add(short)
