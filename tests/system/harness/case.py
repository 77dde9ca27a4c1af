"""The base of every system test: builds what the test requests, takes it down, and checks what must hold after all
tests."""

import os
import unittest
from pathlib import Path

from .capture import Capture
from .controller import LOOPBACK, Controller
from .network import Network
from .openvswitch import OpenVSwitch
from .pki import Pki

VERSIONS = ("OpenFlow10", "OpenFlow13")

# Kernel buffers of a TCP connection for reading and for writing: minimum, initial size and maximum in bytes. The
# settings belong to the network namespace, so each test has its own.
TCP_BUFFERS = {
    "default_buffers": {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304"},
    "small_buffers": {"tcp_rmem": "4096 16384 65536", "tcp_wmem": "4096 16384 65536"},
    "large_buffers": {"tcp_rmem": "10240 87380 16777216", "tcp_wmem": "10240 87380 16777216"},
}


def on_both_versions(method):
    """Marks a test that runs once per OpenFlow version. The version is its argument."""
    method.on_both_versions = True
    return method


def under_all_tcp_buffers(method):
    """Marks a test that runs once per entry of `TCP_BUFFERS`. Put it below `on_both_versions`."""
    method.tcp_buffers = tuple(TCP_BUFFERS)
    return method


class SystemTest(unittest.TestCase):
    """A test with its own Open vSwitch. The runner ends a test after `time_limit_s`. A test that compares times is
    `alone`: no other system test runs at the same time."""

    time_limit_s = 120
    alone = False
    # Whether controllers and switches of the test speak TLS.
    secure = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name, method in list(vars(cls).items()):
            if getattr(method, "on_both_versions", False):
                delattr(cls, name)
                for version in VERSIONS:
                    for buffers in getattr(method, "tcp_buffers", ("default_buffers",)):
                        def run(self, method=method, version=version):
                            method(self, version)
                        run.__doc__ = method.__doc__
                        run.buffers = buffers
                        suffix = "" if buffers == "default_buffers" else f"_{buffers}"
                        setattr(cls, f"test_{name}_{version.lower()}{suffix}", run)

    def setUp(self):
        buffers = getattr(getattr(self, self._testMethodName), "buffers", "default_buffers")
        for setting, value in TCP_BUFFERS[buffers].items():
            Path("/proc/sys/net/ipv4", setting).write_text(value)
        self.logs = Path(os.environ["BELLROCK_TEST_LOGS"])
        self.run_dir = Path(os.environ["BELLROCK_TEST_RUN_DIR"])
        self.ovs = OpenVSwitch(self.logs, self.run_dir)
        self.addCleanup(self.ovs.stop)
        self.ovs.start()
        self.addCleanup(self.judge)
        self.controllers = []
        if self.secure:
            self.pki = Pki(self.logs)
            # The controller writes the keys of its sessions there, for tshark.
            self.key_log = self.logs / "keys.log"
            os.environ["SSLKEYLOGFILE"] = str(self.key_log)
            self.ovs.trust(*self.pki.make("switch"), self.pki.controller_authority)

    def judge(self):
        """Checks what must hold after every test. Runs after the network is down."""
        for controller in self.controllers:
            self.assertEqual(controller.faults(), [], "the controller's log tells of a fault of its own")
        self.assertEqual(self.ovs.error_replies(), [], "Open vSwitch refused messages")

    def controller(self, **options):
        """Starts a controller. The test fails if the controller does not run until the end, or does not stop with
        status 0."""
        if self.secure:
            options["listen"] = f"tls:{options.get('listen', LOOPBACK)}"
            if "tls" not in (options.get("config") or {}):
                options["flags"] = [*options.get("flags", ()), *self.pki.flags()]
        controller = Controller(self.logs, self.run_dir, **options)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end_controller, controller)
        return controller

    def certificate(self):
        """Files for one more switch: its certificate, its key, and the authority of controllers."""
        return (*self.pki.make("fake"), self.pki.controller_authority)

    def _end_controller(self, controller):
        if controller.process.returncode is None:
            self.assertFalse(controller.died(), f"the controller ended by itself with {controller.process.returncode}")
            self.assertEqual(controller.stop(), 0, "exit status after SIGTERM")

    def network(self, topology, version, connect=True, **options):
        if self.secure:
            options.setdefault("protocol", "ssl")
        network = Network(self.ovs, topology, version, **options)
        self.addCleanup(network.stop)
        network.start(connect)
        return network

    def capture(self):
        capture = Capture(self.logs, tls=(self.key_log, self.pki.controller_key) if self.secure else None)
        self.addCleanup(capture.stop)
        capture.start()
        return capture

    def assert_well_formed(self, capture):
        """Ends a capture. tshark must have found OpenFlow in it, and nothing malformed."""
        capture.stop()
        self.assertGreater(len(capture.message_types()), 0, "nothing was captured: this would prove nothing")
        self.assertEqual(capture.malformed(), [], f"frames of {capture.file} with malformed messages")
