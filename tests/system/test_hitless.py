"""A controller restarts again and again while packets flow, and they do not notice: what is in the switches as it should
be is not touched, and what is not is put right."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness.capture import FLOW_MOD
from harness.case import SystemTest, on_both_versions
from harness.controller import Controller
from harness.network import Line, command
from harness.waiting import until

# Restarts, unless BELLROCK_RESTARTS says how many. Each takes a second and a half.
RESTARTS = 5
MAX_RESTARTS = 1000
RESTART_LIMIT_S = 4
CONNECTED_LIMIT_S = 10
INTERVAL_S = 0.001
# From the last datagram that is sent until it has arrived.
LAST_S = 0.5
PORT = 7000
DATAGRAMS = Path(__file__).parent / "harness" / "datagrams.py"
# Of two cables, and none other.
FLOWS = 4


def restarts():
    return min(int(os.environ.get("BELLROCK_RESTARTS", RESTARTS)), MAX_RESTARTS)


def example(name):
    """An example program, built beside the command."""
    return str(Path(os.environ["BELLROCK_BIN"]).parent / "examples" / name)


class Cables(Controller):
    """The example `cables`: a program that is a controller and nothing else, and has no control socket."""

    def __init__(self, logs, run_dir):
        super().__init__(logs, run_dir)
        self.command = [example("cables")]


class Stream:
    """Numbered datagrams from one host to another."""

    def __init__(self, source, target):
        self.receiver = self._run(target, "receive", PORT)
        # What is sent before it listens would be missing.
        self.receiver.stdout.readline()
        self.sender = self._run(source, "send", target.IP(), PORT, INTERVAL_S)

    @staticmethod
    def _run(host, *words):
        return host.popen([sys.executable, str(DATAGRAMS), *map(str, words)], stdout=subprocess.PIPE, text=True)

    def finish(self):
        """Ends it; returns how many datagrams were sent and received, and which are missing."""
        sent, = self._end(self.sender)
        time.sleep(LAST_S)
        received, *missing = self._end(self.receiver)
        return sent, received, missing

    @staticmethod
    def _end(process):
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=5)
        return [int(word) for word in printed.split()]


class Hitless(SystemTest):
    """Restarts that no packet notices."""

    time_limit_s = 60 + RESTART_LIMIT_S * restarts()

    def cables(self):
        controller = Cables(self.logs, self.run_dir)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end_controller, controller)
        return controller

    def flow_mods(self, capture, version, connects):
        """Ends a capture; how many flow_mods were sent for the app's flows."""
        self.assert_well_formed(capture)
        # In 1.3 there is one more at each connect: it removes a table-miss entry that an earlier run may have left,
        # because no app wants packets that match no flow.
        own = connects if version == "OpenFlow13" else 0
        return capture.message_types().count(FLOW_MOD) - own

    @on_both_versions
    def restarts_lose_nothing(self, version):
        """No datagram of two running streams is lost, and no flow is changed that is as it should be."""
        controller = self.cables()
        network = self.network(Line(), version)
        switch = network.switches[0].name
        until(lambda: len(network.flows(switch)) == FLOWS, CONNECTED_LIMIT_S, "flows of the cables")
        one, two = network.hosts
        for host, other in ((one, two), (two, one)):
            host.setARP(other.IP(), other.MAC())
        streams = [Stream(one, two), Stream(two, one)]
        time.sleep(1)
        capture = self.capture()
        for _ in range(restarts()):
            self.assertEqual(controller.stop(), 0, "exit status after SIGTERM")
            until(lambda: not network.connected(), CONNECTED_LIMIT_S, "the switch has lost its controller")
            controller = self.cables()
            network.await_connected(CONNECTED_LIMIT_S)
            time.sleep(0.3)
        self.assertEqual(self.flow_mods(capture, version, connects=restarts()), 0, "flow_mods of so many restarts")

        # What is missing is put back, and nothing else; what somebody else has put there stays.
        command("ovs-ofctl", "-O", version, "del-flows", switch, "in_port=3")
        command("ovs-ofctl", "-O", version, "add-flow", switch, "cookie=0x77,priority=9,in_port=7,actions=drop")
        capture = self.capture()
        self.assertEqual(controller.stop(), 0)
        until(lambda: not network.connected(), CONNECTED_LIMIT_S, "the switch has lost its controller")
        self.cables()
        network.await_connected(CONNECTED_LIMIT_S)
        until(lambda: len(network.flows(switch)) == FLOWS + 1, CONNECTED_LIMIT_S, "the flow that was missing")
        self.assertEqual(self.flow_mods(capture, version, connects=1), 1, "flow_mods: the difference")

        for stream in streams:
            sent, received, missing = stream.finish()
            self.assertGreater(sent, 1 / INTERVAL_S, "datagrams: too few would prove nothing")
            self.assertEqual((received, missing), (sent, []), "datagrams that did not arrive")
