"""Programs for Ryu and os-ken, unchanged, on Open vSwitch, from the environment that the step `python` of the tests has made."""

import os
import signal

from harness.case import SystemTest
from harness.controller import LOOPBACK, Controller
from harness.network import Line, command
from harness.python import ROOT, python
from harness.waiting import until

OWN = ROOT / "python" / "osken_tests" / "apps"
HUBS = ("eventlet", "native")
V10, V13 = "OpenFlow10", "OpenFlow13"
LIMIT_S = 60
NOBODY = "tcp:127.0.0.1:1"
HOST, PORT = LOOPBACK.split(":")


class Program(Controller):
    """osken-manager with programs, on Bellrock."""

    def __init__(self, logs, run_dir, hub, apps):
        super().__init__(logs, run_dir)
        os.environ["OSKEN_HUB_TYPE"] = hub
        settings = run_dir / "bellrock.yaml"
        settings.write_text(f"control: {self.control}\n")
        self.command = [python("tests-osken"), "-W", "ignore", "-u", "-m", "bellrock.osken", "--ofp-listen-host", HOST,
                        "--ofp-tcp-listen-port", PORT, "--bellrock-config", str(settings), *apps]


class OsKen(SystemTest):
    """Each hub of os-ken."""

    def run_programs(self, hub, *apps):
        controller = Program(self.logs, self.run_dir, hub, apps)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end, controller)
        return controller

    def _end(self, controller):
        if not controller.died():
            controller.process.kill()
            controller.process.wait()

    def learns(self, hub, version, app, flow):
        controller = self.run_programs(hub, app)
        network = self.network(Line(switches=3, hosts=(1, 2, 3)), version)
        self.assertEqual(network.ping_all(), 0)
        flows = network.flows("s2")
        self.assertTrue(any(flow in line for line in flows), flows)
        self.assertEqual(len(controller.ask("switches")), 3, "operators see its switches")
        return controller, network

    def test_a_learning_switch_of_1_0(self):
        """In the style of Ryu, with the hub of eventlet."""
        self.learns("eventlet", V10, str(OWN / "switch_10.py"), "priority=100,")

    def test_a_learning_switch_of_1_0_in_threads(self):
        """The same with the native hub."""
        self.learns("native", V10, str(OWN / "switch_10.py"), "priority=100,")

    def test_a_learning_switch_of_1_3(self):
        """With priorities above those of Bellrock's own apps, and a restart."""
        controller, network = self.learns("eventlet", V13, str(OWN / "switch_13.py"), "priority=60000,")
        self.assertEqual(controller.stop(signal.SIGINT), 0)
        controller.start()
        network.await_connected()
        self.assertEqual(network.ping_all(), 0)

    def test_a_learning_switch_of_1_3_in_threads(self):
        """The same with the native hub."""
        self.learns("native", V13, str(OWN / "switch_13.py"), "priority=60000,")

    def test_ryu_s_simple_switch(self):
        """As it is."""
        self.learns("eventlet", V10, "os_ken.app.simple_switch", "dl_dst=")

    def test_ryu_s_simple_switch_13(self):
        """As it is, by the name that Ryu gives it."""
        self.learns("eventlet", V13, "ryu.app.simple_switch_13", "priority=1,")

    def test_ryu_s_simple_switch_13_in_threads(self):
        """The same with the native hub."""
        self.learns("native", V13, "os_ken.app.simple_switch_13", "priority=1,")

    def test_ryu_s_simple_monitor_13(self):
        """As it is: it asks for flows and ports every 10 s."""
        controller, _ = self.learns("eventlet", V13, "os_ken.app.simple_monitor_13", "priority=1,")
        until(lambda: "rx-pkts" in controller.text() and "0000000000000003" in controller.text(), LIMIT_S, "counters of ports")

    def test_events_and_a_switch_that_reconnects(self):
        """In the order of os-ken, and again after the switch has lost its connection."""
        controller = self.run_programs("eventlet", str(OWN / "order.py"), str(OWN / "switch_13.py"))
        network = self.network(Line(), V13)
        events = ["state handshake", "hello", "state config", "features", "port_desc", "state main"]
        self.assertEqual(self.events(controller, events), events)
        command("ovs-vsctl", "set-controller", "s1", NOBODY)
        until(lambda: "event state dead 1" in controller.text(), LIMIT_S, "the end of the connection")
        command("ovs-vsctl", "set-controller", "s1", f"tcp:{LOOPBACK}")
        until(lambda: self.events(controller, events) == 2 * events, LIMIT_S, "the same events again")
        self.assertEqual(network.ping_all(), 0)

    def events(self, controller, wanted):
        lines = [line.removeprefix("event ") for line in controller.text().splitlines() if line.startswith("event ")]
        return [event for line in lines for event in wanted if line.startswith(event)]
