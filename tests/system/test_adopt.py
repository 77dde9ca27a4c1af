"""Learning switches keep their flows when the controller restarts or connections are lost."""

import itertools
import re
import signal
import time

import test_hitless
import test_moves
from harness import announce
from harness.capture import FLOW_MOD, PACKET_IN
from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

CONNECTED_LIMIT_S = 30
# The differences between two listings of the same flow. Both values only grow.
AGE = re.compile(r" duration=([\d.]+)s,.* n_packets=(\d+),")
# An address without a listener. A switch without any configured controller would remove its flows.
NOWHERE = "tcp:127.0.0.1:6699"
CONTROLLER = "tcp:127.0.0.1:6653"


class Adopted(SystemTest):
    """Two switches in a row. h1 at the first, and h2 and h3 at the second, send to each other all the time."""

    time_limit_s = 180 + test_hitless.RESTART_LIMIT_S * test_hitless.restarts()

    def talk(self, version):
        self.bellrock = self.controller(app=self.app)
        self.net = self.network(Line(switches=2, hosts=(1, 2, 2)), version)
        self.assertEqual(self.net.ping_all(), 0.0)
        # Prevents ARP packets while datagrams are counted.
        self.net.net.staticArp()
        pairs = [(self.net[a], self.net[b]) for a, b in (("h1", "h2"), ("h2", "h1"), ("h3", "h1"), ("h1", "h3"))]
        streams = [test_hitless.Stream(a, b, port=test_hitless.PORT + index) for index, (a, b) in enumerate(pairs)]
        time.sleep(1)
        return streams

    def learnt(self):
        """Age and packet count of each flow that carries the streams. (Other flows end by idle timeout while the
        controller restarts a hundred times.)"""
        flows = {}
        for switch in self.net.switches:
            for line in self.net.flows(switch.name):
                if "dl_src=" in line and self.net["h1"].MAC() in line:
                    duration, packets = AGE.search(line).groups()
                    flows[switch.name, test_hitless.STATISTICS.sub("", line)] = (float(duration), int(packets))
        self.assertGreaterEqual(len(flows), 2 * 2 * 2, "two directions of two pairs at two switches")
        return flows

    def goes_on(self, version, streams, breaks):
        """Breaks the control channels repeatedly. No datagram is lost, and no flow is replaced."""
        before = self.learnt()
        capture = self.capture()
        connects = sum(breaks)
        self.assert_well_formed(capture)
        # In 1.3 each connect sends the table-miss entry, which replaces the existing one.
        own = connects if version == "OpenFlow13" else 0
        types = capture.message_types()
        self.assertEqual(types.count(FLOW_MOD) - own, 0, f"flow_mods of {connects} connects")
        self.assertEqual(types.count(PACKET_IN), 0, "packets that no flow took")
        after = self.learnt()
        self.assertEqual(after.keys(), before.keys())
        for flow, (duration, packets) in before.items():
            self.assertGreater(after[flow][0], duration, f"{flow} was installed anew")
            self.assertGreaterEqual(after[flow][1], packets, f"{flow} was installed anew")
        test_hitless.assert_nothing_lost(self, streams)

    def restarts(self):
        """Restarts the controller. Each time both switches connect again."""
        for how, _ in zip(itertools.cycle((signal.SIGTERM, signal.SIGKILL)), range(test_hitless.restarts())):
            self.assertEqual(self.bellrock.stop(how), 0 if how == signal.SIGTERM else -how, "exit status")
            until(lambda: not any(self.net.ovs.connected(switch.name) for switch in self.net.switches), CONNECTED_LIMIT_S,
                  "no switch has a controller")
            self.bellrock = self.controller(app=self.app)
            self.net.await_connected(CONNECTED_LIMIT_S)
            yield len(self.net.switches)

    def reconnects(self):
        """Interrupts the connection of the first switch. Each time it connects again."""
        for _ in range(test_hitless.restarts()):
            command("ovs-vsctl", "set-controller", "s1", NOWHERE)
            until(lambda: not self.net.ovs.connected("s1"), CONNECTED_LIMIT_S, "the first switch has lost its controller")
            time.sleep(1)
            command("ovs-vsctl", "set-controller", "s1", CONTROLLER)
            self.net.await_connected(CONNECTED_LIMIT_S)
            yield 1


class AdoptedByLearning(Adopted):
    """The app `learning`."""

    app = "learning"

    @on_both_versions
    def restarts_lose_nothing(self, version):
        """The controller ends by SIGTERM and by SIGKILL, and the next one adopts the flows."""
        self.goes_on(version, self.talk(version), self.restarts())

    @on_both_versions
    def reconnects_lose_nothing(self, version):
        """The first switch loses its controller for a second."""
        self.goes_on(version, self.talk(version), self.reconnects())


class AdoptedByGlobalLearning(Adopted):
    """The app `global_learning`. It remembers what the flows show until hosts send packets, or knows it already."""

    app = "global_learning"

    @on_both_versions
    def restarts_lose_nothing(self, version):
        """The same. Then each host's first broadcast shows its switch, and all flows stay."""
        streams = self.talk(version)
        before = self.learnt()
        self.goes_on(version, streams[:1], self.restarts())
        self.assertEqual(self.bellrock.ask("hosts"), [], "flows do not tell where hosts are attached")
        for host in self.net.hosts:
            printed = host.cmd(f"/usr/bin/python3 {announce.__file__} {host.defaultIntf()} {host.MAC()} {host.IP()}")
            self.assertEqual(printed, "", "sending a gratuitous ARP")
        expected = sorted((host.MAC(), number) for host, number in zip(self.net.hosts, (1, 2, 2)))
        until(lambda: sorted((host["mac"], int(host["dpid"], 16)) for host in self.bellrock.ask("hosts")) == expected,
              CONNECTED_LIMIT_S, "all hosts known, each at its switch")
        # The apps read such messages within a second.
        time.sleep(2)
        self.assertEqual(self.learnt().keys(), before.keys())
        test_hitless.assert_nothing_lost(self, streams[1:])

    @on_both_versions
    def reconnects_lose_nothing(self, version):
        """The first switch loses its controller for a second."""
        self.goes_on(version, self.talk(version), self.reconnects())


class MovedMeanwhile(test_moves.MovingHost, SystemTest):
    """A host moves while no controller runs, and its old port stays up."""

    def is_back(self, version, app, switches, broadcast, limit_s):
        bellrock = self.controller(app=app)
        self.net = self.network(test_moves.Branches(switches=switches), version)
        self.prepare_hosts()
        self.assertEqual(bellrock.stop(), 0)
        until(lambda: not self.net.connected(), CONNECTED_LIMIT_S, "the switch has lost its controller")
        moved_at = self.move(old_port_stays_up=True)
        bellrock = self.controller(app=app)
        self.net.await_connected(CONNECTED_LIMIT_S)
        self.assertGreater(sum(worker["flows_adopted"] for worker in bellrock.ask("counters")["workers"]), 0)
        spoke_at = self.speak(broadcast)
        self.assert_back(spoke_at, limit_s)
        self.assert_silent(moved_at, spoke_at)

    @on_both_versions
    def to_another_port(self, version):
        """Reachable within a second of its first packet, a unicast one: the adopted flows do not hide it."""
        self.is_back(version, "learning", 1, broadcast=False, limit_s=test_moves.PROMPT_S)

    @on_both_versions
    def to_another_switch_under_global_learning(self, version):
        """Reachable within a second of its first broadcast."""
        self.is_back(version, "global_learning", 2, broadcast=True, limit_s=test_moves.PROMPT_S)
