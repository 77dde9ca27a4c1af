"""Programs for Ryu and os-ken, unchanged, on Open vSwitch, from the environment that the step `python` of the tests has made."""

import signal
import socket

from harness.controller import LOOPBACK, PORT
from harness.network import Line
from harness.openvswitch import command
from harness.osken import LIMIT_S, OWN, V10, V13, OsKenTest, Program, runs
from harness.waiting import until

NOBODY = "tcp:127.0.0.1:1"
LEARNS = "Learns addresses on three switches in a row; all pairs of hosts ping each other"


class OsKen(OsKenTest):
    """Each hub of os-ken."""

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

    @runs("simple_switch", what=f"With OpenFlow 1.0: {LEARNS[0].lower()}{LEARNS[1:]}")
    def test_ryu_s_simple_switch(self):
        """As it is."""
        self.learns("eventlet", V10, "os_ken.app.simple_switch", "dl_dst=")

    @runs("simple_switch_13", what=LEARNS)
    def test_ryu_s_simple_switch_13(self):
        """As it is, by the name that Ryu gives it."""
        self.learns("eventlet", V13, "ryu.app.simple_switch_13", "priority=1,")

    def test_ryu_s_simple_switch_13_in_threads(self):
        """The same with the native hub."""
        self.learns("native", V13, "os_ken.app.simple_switch_13", "priority=1,")

    @runs("simple_monitor_13", what="Learns as `simple_switch_13`, and prints counters of flows and ports")
    def test_ryu_s_simple_monitor_13(self):
        """As it is: it asks for flows and ports every 10 s."""
        controller, _ = self.learns("eventlet", V13, "os_ken.app.simple_monitor_13", "priority=1,")
        self.logged(controller, "rx-pkts", "0000000000000003")

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


# Runs a command where /dev/log is a socket of the test.
WITH_SYSLOG = """
mount --bind "$0" /mnt && mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/random c 1 8 && mknod /dev/urandom c 1 9 &&
    ln -s /mnt/log /dev/log && exec "$@"
"""


class OsKenTls(OsKenTest):
    """Switches by TLS."""

    secure = True

    def test_tls_and_the_places_of_the_log(self):
        """Open vSwitch by ssl. The log goes to a file and to syslog, and not to standard error."""
        log_file, folder = self.logs / "osken.log", self.run_dir / "syslog"
        folder.mkdir()
        syslog = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(syslog.close)
        syslog.bind(str(folder / "log"))
        syslog.settimeout(LIMIT_S)
        certificate, key, authority = self.pki.controller_certificate, self.pki.controller_key, self.pki.switch_authority
        options = ["--ofp-ssl-listen-port", str(PORT), "--ctl-privkey", key, "--ctl-cert", certificate, "--ca-certs", authority,
                   "--log-file", log_file, "--use-syslog", "--nouse-stderr"]
        controller = Program(self.logs, self.run_dir, "eventlet", [str(OWN / "switch_13.py")], map(str, options))
        controller.command = ["unshare", "--mount", "sh", "-c", WITH_SYSLOG, str(folder), *controller.command]
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end, controller)
        network = self.network(Line(switches=2, hosts=(1, 2)), V13)
        self.assertEqual(network.ping_all(), 0)
        up = "switch up, for its raw owner dpid=0000000000000002"
        until(lambda: up in log_file.read_text(), LIMIT_S, "a line of the engine in the file")
        while up not in syslog.recv(1 << 16).decode():
            pass
        self.assertNotIn(up, controller.text())
        self.assertEqual(controller.stop(signal.SIGINT), 0)
        self.assertIn("stopped", log_file.read_text())
