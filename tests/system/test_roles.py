"""Two controllers of one switch: one is master, the other one stands by."""

import re
import subprocess
import threading

from harness.capture import FLOW_MOD
from harness.case import SystemTest, on_both_versions
from harness.controller import Controller
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until
from test_hitless import example

PORTS = (6653, 6654)
LIMIT_S = 30
DPID = "0000000000000001"
# The differences between two listings of the same flow. Both values only grow.
STATISTICS = re.compile(r" duration=([\d.]+)s,| n_packets=(\d+),| n_bytes=\d+,| idle_age=\d+,")
AGE = re.compile(r" duration=([\d.]+)s,")
# How Open vSwitch's log names the refusal of a slave's message (in two ages of it), and of a stale generation id.
REFUSALS = {"OpenFlow10": ["OFPBRC_IS_SECONDARY", "OFPBRC_IS_SLAVE"], "OpenFlow13": ["OFPRRFC_STALE"]}


class Candidate(Controller):
    """The example `standby`: a controller without a control socket. Lines order its role."""

    def __init__(self, logs, run_dir, port):
        super().__init__(logs, run_dir, listen=f"127.0.0.1:{port}")
        self.log = logs / f"controller-{port}.log"
        self.command = [example("standby"), f"127.0.0.1:{port}"]
        self.said = []

    def launch(self, log):
        process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()
        return process

    def _read(self, lines):
        for line in lines:
            self.said.append(line.strip())

    def tell(self, line, answers=1):
        """Gives it a line, and returns its answers: this many, or for `show` all up to the end."""
        before = len(self.said)
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        def complete():
            said = self.said[before:]
            return "end" in said if line == "show" else len(said) >= answers
        until(complete, LIMIT_S, f"an answer to {line!r}")
        return [said for said in self.said[before:] if said != "end"]

    def stop(self, how=None):
        """Ends it by the end of its input."""
        self.process.stdin.close()
        return self.process.wait(LIMIT_S)


class Roles(SystemTest):
    """A switch with three hosts and two controllers."""

    def setUp(self):
        super().setUp()
        self.refusals = []

    def judge(self):
        """As after each test, but for the refusals that this test provokes."""
        found = [line for line in self.ovs.error_replies() if not any(code in line for code in self.refusals)]
        self.assertEqual(found, [], "Open vSwitch refused messages")
        for controller in self.controllers:
            self.assertEqual(controller.faults(), [], "the controller's log tells of a fault of its own")

    def candidate(self, port):
        controller = Candidate(self.logs, self.run_dir, port)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end_controller, controller)
        return controller

    def flows(self):
        """The ages of the flows. A takeover replaces the table-miss entry by the same one."""
        flows = {}
        for line in self.net.flows("s1"):
            if "priority=0 " not in line and "priority=0," not in line:
                flows[STATISTICS.sub("", line)] = float(AGE.search(line)[1])
        return flows

    def assert_untouched(self, before, what):
        after = self.flows()
        self.assertGreaterEqual(after.keys(), before.keys(), what)
        for flow, age in before.items():
            self.assertGreaterEqual(after[flow], age, f"{what}: {flow} was installed anew")

    def roles_in_switch(self):
        """The roles of the controllers, as Open vSwitch has them, by their ports."""
        printed = command("ovs-vsctl", "--format=csv", "--no-headings", "--columns=target,role", "list", "Controller")
        return dict(re.findall(r'tcp:127\.0\.0\.1:(\d+)"*,"*(\w+)', printed))

    def await_roles(self, *roles):
        wanted = {str(port): role for port, role in zip(PORTS, roles)}
        until(lambda: self.roles_in_switch() == wanted, LIMIT_S, f"{wanted} in the switch, not {self.roles_in_switch()}")

    @on_both_versions
    def a_standby_touches_nothing_of_the_masters(self, version):
        """The second controller connects, is promoted and demoted: the flows stay, and packets are always handled."""
        first, second = (self.candidate(port) for port in PORTS)
        self.net = self.network(Line(hosts=(1, 1, 1)), version, connect=False)
        until(lambda: first.tell("show") == [f"{DPID} stands by as slave"], LIMIT_S, "the switch stands by")
        self.assertEqual(first.tell("master 1"), [f"{DPID} master"])
        self.assertEqual(self.net.ping_all(), 0.0)
        self.net.net.staticArp()
        before = self.flows()
        self.assertGreater(len(before), 0)

        # It connects.
        capture = self.capture()
        command("ovs-vsctl", "set-controller", "s1", *(f"tcp:127.0.0.1:{port}" for port in PORTS))
        until(lambda: second.tell("show") == [f"{DPID} stands by as slave"], LIMIT_S, "the second one stands by")
        self.await_roles("master", "slave")
        self.assertEqual(first.tell("show"), [f"{DPID} up as master"])
        self.assertEqual(self.net.unreachable(), [])
        self.assert_untouched(before, "a standby connects")
        capture.stop()
        self.assertEqual(capture.message_types().count(FLOW_MOD), 0)

        # It takes over.
        before = self.flows()
        self.assertEqual(second.tell("master 2"), [f"{DPID} master"])
        until(lambda: second.tell("show") == [f"{DPID} up as master"], LIMIT_S, "the second one is up")
        self.assert_untouched(before, "a standby takes over")
        self.await_roles("slave", "master")
        if version == "OpenFlow13":
            # The switch tells the old master.
            until(lambda: first.tell("show") == [f"{DPID} stands by as slave"], LIMIT_S, "the first one stands by")
            answer = first.tell("master 1")
            self.assertEqual(answer, [f"{DPID} failed: the generation id is stale: the switch has seen 2"])
            self.refusals = REFUSALS[version]
        self.assertEqual(self.net.unreachable(), [])

        # And gives back.
        before = self.flows()
        self.assertEqual(second.tell("slave"), [f"{DPID} slave"])
        self.assertEqual(first.tell("master 3"), [f"{DPID} master"])
        until(lambda: first.tell("show") == [f"{DPID} up as master"], LIMIT_S, "the first one is up")
        self.assertEqual(second.tell("show"), [f"{DPID} stands by as slave"])
        self.assert_untouched(before, "the first one is back")
        self.await_roles("master", "slave")
        self.assertEqual(self.net.unreachable(), [])

        # In 1.0 a master that was replaced learns of it from its next write, which is refused: here when a host goes.
        if version == "OpenFlow10":
            # Flows of the second one may still carry the packets of that host, and the first one would have none to remove.
            for field in ("dl_src", "dl_dst"):
                command("ovs-ofctl", "-O", version, "del-flows", "s1", f"{field}={self.net['h3'].MAC()}")
            self.assertEqual(self.net.unreachable(), [])
            self.refusals = REFUSALS[version]
            self.assertEqual(second.tell("master 4"), [f"{DPID} master"])
            self.assertEqual(first.tell("show"), [f"{DPID} up as master"])
            self.net.net.configLinkStatus("s1", "h3", "down")
            until(lambda: first.tell("show") == [f"{DPID} stands by as slave"], LIMIT_S, "the first one stands by")
            until(self.ovs.error_replies, LIMIT_S, "the switch has refused its write")
            pairs = [("h1", "h2"), ("h2", "h1")]
            self.assertEqual(self.net.unreachable(pairs), [])
