"""A controller restarts repeatedly while packets flow, and no packet is lost. Correct flows in the switches are not
touched, and wrong or missing ones are corrected."""

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness.capture import FLOW_MOD
from harness.case import SystemTest, on_both_versions
from harness.controller import Controller
from harness.discovered import Discovered
from harness.drops import kernel_drops
from harness.network import Line, command
from harness.topologies import Ring
from harness.waiting import until

# Default number of restarts, without BELLROCK_RESTARTS. Each takes 1.5 seconds, or 4 if links must be found again.
RESTARTS = 3
ROUTED_RESTARTS = 2
MAX_RESTARTS = 1000
RESTART_LIMIT_S = 16
CONNECTED_LIMIT_S = 30
INTERVAL_S = 0.001
# Time until the last datagram has arrived.
LAST_S = 0.5
PORT = 7000
DATAGRAMS = Path(__file__).parent / "harness" / "datagrams.py"
# Number of flows of two cables.
FLOWS = 4
# Routing changes nothing until its network has not changed for ten seconds.
PUT_RIGHT_S = 20
# Four streams at once, each over two or three switches.
ROUTED_INTERVAL_S = 0.004
ROUTED = (("h1", "h3"), ("h3", "h1"), ("h2", "h1"), ("h4", "h2"))
# Unused flows stay for longer than the test takes.
IDLE_TIMEOUT_S = 3600
# Flow_mods sent to a switch at each connect, whatever flows it has: the flow for announcements and the two for the
# address of host tracking, which replace those of before; in 1.3 also the table-miss entry.
OWN_FLOW_MODS = {"OpenFlow10": 3, "OpenFlow13": 4}
# The differences between two listings of the same flow.
STATISTICS = re.compile(r" (duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*,")


def restarts(unless_told=RESTARTS):
    return min(int(os.environ.get("BELLROCK_RESTARTS", unless_told)), MAX_RESTARTS)


def example(name):
    """Path of an example program, built beside the command."""
    return str(Path(os.environ["BELLROCK_BIN"]).parent / "examples" / name)


class Cables(Controller):
    """The example `cables`: a controller without a control socket."""

    def __init__(self, logs, run_dir):
        super().__init__(logs, run_dir)
        self.command = [example("cables")]


class Stream:
    """Numbered datagrams from one host to another."""

    def __init__(self, source, target, interval_s=INTERVAL_S, port=PORT):
        self.name = f"{source.name} -> {target.name}"
        self.interval_s = interval_s
        self.drops_before = kernel_drops()
        self.receiver = self._run(target, "receive", port)
        # Datagrams sent before it listens would be missing.
        self.receiver.stdout.readline()
        self.sender = self._run(source, "send", target.IP(), port, interval_s)

    @staticmethod
    def _run(host, *words):
        return host.popen([sys.executable, str(DATAGRAMS), *map(str, words)], stdout=subprocess.PIPE, text=True)

    def finish(self):
        """Ends it. Returns the numbers of datagrams sent and received, and the missing ones."""
        sent, = self._end(self.sender)
        time.sleep(LAST_S)
        received, *missing = self._end(self.receiver)
        return sent, received, missing

    @staticmethod
    def _end(process):
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=5)
        return [int(word) for word in printed.split()]


def assert_nothing_lost(test, streams):
    """Ends the streams and asserts that every datagram has arrived that the kernel gave to the switches.

    On a machine whose cores are busy for some 0.2 s, the kernel drops packets before the switch reads them. It counts
    them; elsewhere the number is 0."""
    missing = {}
    for stream in streams:
        sent, received, gaps = stream.finish()
        test.assertGreater(sent, 1 / stream.interval_s, f"{stream.name}: too few datagrams would prove nothing")
        if received < sent:
            missing[stream.name] = (sent - received, gaps)
    dropped = kernel_drops() - streams[0].drops_before
    lost = sum(count for count, _ in missing.values())
    test.assertLessEqual(lost, dropped, f"datagrams that did not arrive; the kernel dropped {dropped}: {missing}")


class Hitless(SystemTest):
    """Restarts without any lost packet."""

    time_limit_s = 120 + RESTART_LIMIT_S * restarts()

    def cables(self):
        controller = Cables(self.logs, self.run_dir)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end_controller, controller)
        return controller

    def flow_mods(self, capture, version, connects):
        """Ends a capture. Returns the number of flow_mods for the app's flows."""
        self.assert_well_formed(capture)
        # In 1.3 there is one more at each connect: it removes a table-miss entry that an earlier run may have left,
        # because no app wants packets that match no flow.
        own = connects if version == "OpenFlow13" else 0
        return capture.message_types().count(FLOW_MOD) - own

    @on_both_versions
    def restarts_lose_nothing(self, version):
        """No datagram of two running streams is lost, and no correct flow is changed."""
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

        # Only missing flows are put back. Flows of others stay.
        command("ovs-ofctl", "-O", version, "del-flows", switch, "in_port=3")
        command("ovs-ofctl", "-O", version, "add-flow", switch, "cookie=0x77,priority=9,in_port=7,actions=drop")
        capture = self.capture()
        self.assertEqual(controller.stop(), 0)
        until(lambda: not network.connected(), CONNECTED_LIMIT_S, "the switch has lost its controller")
        self.cables()
        network.await_connected(CONNECTED_LIMIT_S)
        until(lambda: len(network.flows(switch)) == FLOWS + 1, CONNECTED_LIMIT_S, "the flow that was missing")
        self.assertEqual(self.flow_mods(capture, version, connects=1), 1, "flow_mods: the difference")

        assert_nothing_lost(self, streams)


class RoutedHitless(Discovered):
    """The app `routing` in a ring, ended by SIGTERM and by SIGKILL."""

    time_limit_s = 240 + RESTART_LIMIT_S * restarts(ROUTED_RESTARTS)

    def flows_of_routing(self):
        """The app's flows in each switch, without their statistics."""
        mark = f"cookie=0x{self.cookie}"
        return {switch.name: sorted(STATISTICS.sub("", flow) for flow in self.net.flows(switch.name) if flow.startswith(mark))
                for switch in self.net.switches}

    def flow_mods(self, capture, version, restarts):
        """Ends a capture. Returns the number of flow_mods beyond those that are sent at each connect."""
        self.assert_well_formed(capture)
        own = OWN_FLOW_MODS[version] * len(self.net.switches) * restarts
        return capture.message_types().count(FLOW_MOD) - own

    def restart(self, how, while_away=lambda: None):
        self.assertEqual(self.bellrock.stop(how), 0 if how == signal.SIGTERM else -how, "exit status")
        until(lambda: not any(self.ovs.connected(switch.name) for switch in self.net.switches), CONNECTED_LIMIT_S,
              "no switch has a controller")
        while_away()
        self.bellrock = self.controller(config=self.config)
        self.await_discovered()

    def flow_in(self, version, settings):
        """Starts everything. Afterwards the streams run, and all their flows are installed."""
        self.discover(version, Ring(), {"apps": [{"routing": settings}]})
        self.cookie, = (app["cookie"].lstrip("0") for app in self.bellrock.ask("apps") if app["name"] == "routing")
        self.assertEqual(self.net.ping_all(), 0.0)
        self.announce_hosts()
        # In reactive mode each switch has flows for six or more pairs, in proactive mode for four hosts.
        until(lambda: self.flows_to_hosts() >= len(self.net.hosts), PUT_RIGHT_S, "flows everywhere")
        self.net.net.staticArp()
        pairs = [(self.net[a], self.net[b]) for a, b in ROUTED]
        streams = [Stream(a, b, ROUTED_INTERVAL_S, PORT + index) for index, (a, b) in enumerate(pairs)]
        time.sleep(1)
        return streams

    def restarts_change_nothing(self, version, times):
        """Each run finds all links again, and changes no flow."""
        flows = self.flows_of_routing()
        capture = self.capture()
        for how, _ in zip(itertools.cycle((signal.SIGTERM, signal.SIGKILL)), range(times)):
            self.restart(how)
        self.assertEqual(self.flow_mods(capture, version, times), 0, "flow_mods of so many restarts")
        self.assertEqual(self.flows_of_routing(), flows)

    @on_both_versions
    def restarts_of_reactive_routing_lose_nothing(self, version):
        """No datagram of four streams is lost, and no flow between two hosts is changed."""
        streams = self.flow_in(version, {"mode": "reactive", "idle_timeout": IDLE_TIMEOUT_S})
        self.restarts_change_nothing(version, restarts(ROUTED_RESTARTS))
        assert_nothing_lost(self, streams)

    @on_both_versions
    def restarts_of_proactive_routing_lose_nothing(self, version):
        """The same with flows to hosts. A missing one is put back, and nothing else is sent."""
        streams = self.flow_in(version, {"mode": "proactive"})
        # One restart follows below.
        self.restarts_change_nothing(version, max(1, restarts(ROUTED_RESTARTS) - 1))
        flows = self.flows_of_routing()

        def remove_one():
            command("ovs-ofctl", "-O", version, "del-flows", "s1", "dl_dst=00:00:00:00:00:04")
            self.assertEqual(len(flows["s1"]) - len(self.flows_of_routing()["s1"]), 1, f"flows that are missing of {flows}")

        capture = self.capture()
        self.restart(signal.SIGTERM, remove_one)
        until(lambda: self.flows_of_routing() == flows, PUT_RIGHT_S, "the flow that was missing")
        self.assertEqual(self.flow_mods(capture, version, 1), 1, "flow_mods: the difference")
        assert_nothing_lost(self, streams)
