"""Circuits from the configuration, through the loss of a link; bandwidth that is asked for, and kept to its rate."""

import time

from harness.case import SystemTest, on_both_versions
from harness.controller import START_LIMIT_S, listening_ports
from harness.waiting import until
from test_routing import Ring

FOUND_S = 30
# A circuit is laid anew within this after a link is lost; on OpenFlow 1.3 its frames went around long before.
SOON_S = 10
IPERF_PORT = 5001
IPERF_S = 4
# Open vSwitch's meters let bursts through; what is unmetered here is hundreds of times faster.
RATE_BITS_PER_S = 2_000_000
TOLERANCE = 3


class Circuits(SystemTest):
    """Four switches in a circle; a circuit joins h1 with h3, and nothing else forwards anything."""

    @on_both_versions
    def through_a_lost_link(self, version):
        controller = self.controller(config={"apps": [{"provisioning": {"circuits": ["blue 1:1 3:2"]}}]})
        network = self.network(Ring(), version)

        def state():
            return [circuit["state"] for circuit in controller.ask("circuits")]

        until(lambda: state() == ["up"], FOUND_S, "the circuit is up")
        pairs, others = [("h1", "h3"), ("h3", "h1")], [("h1", "h2"), ("h2", "h4")]
        until(lambda: network.unreachable(pairs) == [], SOON_S, "the ends reach each other")
        self.assertEqual(network.unreachable(others), others, "who is no end of it")
        for one, other in (("s1", "s2"), ("s4", "s1")):
            network.net.configLinkStatus(one, other, "down")
            until(lambda: network.unreachable(pairs) == [], SOON_S, f"around {one}-{other}")
            until(lambda: state() == ["up"], SOON_S, "it is laid anew")
            network.net.configLinkStatus(one, other, "up")
            until(lambda: len(controller.ask("links")["links"]) == 8, FOUND_S, "the link is found again")
        self.assertEqual(network.unreachable(pairs), [])


class Bandwidth(SystemTest):
    """The same four switches under routing, with bandwidth on demand before it."""

    def start(self, version):
        controller = self.controller(config={"apps": ["bandwidth", "routing"]})
        network = self.network(Ring(), version)
        until(lambda: len(controller.ask("links")["links"]) == 8, FOUND_S, "all links are found")
        until(lambda: network.unreachable() == [], FOUND_S, "everybody is found")
        return controller, network

    def bits_per_s(self, source, target):
        server = target.popen(["iperf", "-s"])
        self.addCleanup(server.kill)
        until(lambda: IPERF_PORT in listening_ports(target.pid), START_LIMIT_S, "iperf's server")
        printed = source.cmd(f"iperf -c {target.IP()} -t {IPERF_S} -y C")
        self.assertRegex(printed.strip(), r"^\d+(,[^,]*){8}$", "what iperf prints")
        server.kill()
        server.wait()
        return int(printed.split(",")[8])

    def test_a_reservation_is_kept_to_its_rate_openflow13(self):
        controller, network = self.start("OpenFlow13")
        first, last = network["h1"], network["h3"]
        reserved = controller.ask("reserve", first.IP(), last.IP(), "2M")
        self.assertEqual([entry["state"] for entry in reserved], ["installed"])
        self.assertEqual(network.unreachable(), [])
        self.assertLess(self.bits_per_s(first, last), RATE_BITS_PER_S * TOLERANCE, "bit/s of the reservation")
        with self.assertRaisesRegex(AssertionError, "there is reservation 1 already"):
            controller.ask("reserve", first.IP(), last.IP(), "1M")
        self.assertEqual(controller.ask("release", "1"), [])
        time.sleep(1)
        self.assertGreater(self.bits_per_s(first, last), RATE_BITS_PER_S * TOLERANCE, "bit/s after the release")

    def test_what_cannot_be_kept_is_refused_openflow10(self):
        controller, network = self.start("OpenFlow10")
        before = {switch.name: len(network.flows(switch.name)) for switch in network.switches}
        with self.assertRaisesRegex(AssertionError, "unsupported: switch 0000000000000001 speaks OpenFlow 1.0"):
            controller.ask("reserve", network["h1"].IP(), network["h3"].IP(), "2M")
        with self.assertRaisesRegex(AssertionError, "no host 10.0.0.99 has been seen"):
            controller.ask("reserve", "10.0.0.99", network["h3"].IP(), "2M")
        self.assertEqual(controller.ask("reservations"), [])
        after = {switch.name: len(network.flows(switch.name)) for switch in network.switches}
        self.assertLessEqual(sum(after.values()), sum(before.values()), "flows are left behind")
