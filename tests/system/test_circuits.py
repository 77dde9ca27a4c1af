"""Circuits of the configuration when a link is lost; bandwidth on request, limited to its rate."""

import re
import time

from harness.case import SystemTest, on_both_versions
from harness.controller import START_LIMIT_S, listening_ports
from harness.network import command
from harness.topologies import Ring
from harness.waiting import until
from test_hitless import Stream, assert_nothing_lost

FOUND_S = 30
# Time limit for a new circuit after a link is lost. In OpenFlow 1.3 its frames took the detour long before.
SOON_S = 30
IPERF_PORT = 5001
IPERF_S = 4
# Open vSwitch's meters let bursts through. Unmetered traffic is hundreds of times faster.
RATE_BITS_PER_S = 2_000_000
TOLERANCE = 3
QUEUE = 1
METER_MOD = 29
# A port without a listener.
DEAF_PORT = 6699


class Circuits(SystemTest):
    """Four switches in a ring. A circuit connects h1 with h3, and nothing else is forwarded."""

    @on_both_versions
    def through_a_lost_link(self, version):
        controller = self.controller(config={"apps": [{"provisioning": {"circuits": {"blue": ["1:1", "3:2"]}}}]})
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
            until(lambda: len(controller.ask("links")) == 8, FOUND_S, "the link is found again")
        self.assertEqual(network.unreachable(pairs), [])


class Bandwidth(SystemTest):
    """The same four switches with routing, and bandwidth on demand before it."""

    def start(self, version, app="bandwidth"):
        controller = self.controller(config={"apps": [app, "routing"]})
        network = self.network(Ring(), version)
        until(lambda: len(controller.ask("links")) == 8, FOUND_S, "all links are found")
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
        self.assertEqual(reserved["state"], "installed")
        self.assertEqual(network.unreachable(), [])
        self.assertLess(self.bits_per_s(first, last), RATE_BITS_PER_S * TOLERANCE, "bit/s of the reservation")
        with self.assertRaisesRegex(AssertionError, "reservation 1 from .* exists already"):
            controller.ask("reserve", first.IP(), last.IP(), "1M")
        self.assertEqual(controller.ask("release", "1")["id"], 1)
        self.assertEqual(controller.ask("reservations"), [])
        time.sleep(1)
        self.assertGreater(self.bits_per_s(first, last), RATE_BITS_PER_S * TOLERANCE, "bit/s after the release")

    def test_a_meter_that_means_the_same_is_left_alone_openflow13(self):
        """Open vSwitch may report a burst that was not requested. Reading its tables again after a lost connection
        changes nothing."""
        controller, network = self.start("OpenFlow13")
        capture = self.capture()
        reserved = controller.ask("reserve", network["h1"].IP(), network["h3"].IP(), "2M")
        self.assertEqual(reserved["state"], "installed")
        self.assertRegex(command("ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1"), r"rate=2000")

        def state():
            return [entry["state"] for entry in controller.ask("reservations")]

        command("ovs-vsctl", "set-controller", "s1", f"tcp:127.0.0.1:{DEAF_PORT}")
        until(lambda: state() == ["unknown"], FOUND_S, "the switch is missed")
        command("ovs-vsctl", "set-controller", "s1", "tcp:127.0.0.1:6653")
        network.await_connected()
        until(lambda: state() == ["installed"], FOUND_S, "it is back")
        time.sleep(1)
        capture.stop()
        self.assertEqual(capture.message_types().count(METER_MOD), 1, "meter_mods: the one that added it")

    def test_a_lost_connection_and_a_restart_cost_no_packet_openflow13(self):
        """The switch at the start of the path loses its controller for a while. Then the controller restarts."""
        controller, network = self.start("OpenFlow13")
        first, last = network["h1"], network["h2"]
        controller.ask("reserve", first.IP(), last.IP(), "20M")

        def flow():
            """Packet count and age in seconds of the reservation's flow in the first switch."""
            told = [line for line in network.flows("s1") if "meter:1" in line]
            self.assertEqual(len(told), 1, told)
            return [float(re.search(rf"{what}=([0-9.]+)", told[0])[1]) for what in ("n_packets", "duration")]

        def state():
            return [entry["state"] for entry in controller.ask("reservations")]

        stream = Stream(first, last)
        time.sleep(1)
        before = flow()
        # Without a configured controller Open vSwitch would remove its flows.
        command("ovs-vsctl", "set-controller", "s1", f"tcp:127.0.0.1:{DEAF_PORT}")
        until(lambda: state() == ["unknown"], FOUND_S, "the switch is missed")
        command("ovs-vsctl", "set-controller", "s1", "tcp:127.0.0.1:6653")
        network.await_connected()
        until(lambda: state() == ["installed"], FOUND_S, "it is back")
        between = flow()
        self.assertEqual(controller.stop(), 0, "exit status after SIGTERM")
        controller = self.controller(config={"apps": ["bandwidth", "routing"]})
        network.await_connected()
        until(lambda: len(controller.ask("links")) == 8, FOUND_S, "all links are found again")
        after = flow()
        self.assertTrue(all(old < new for old, new in zip(before + between, between + after)), (before, between, after))
        assert_nothing_lost(self, [stream])

    def test_a_reservation_survives_a_restart_openflow13(self):
        """It comes back with its number and path, from the file. Its flows are left as they are, and lose no packet."""
        app = {"bandwidth": {"store": str(self.run_dir / "reservations.json")}}
        controller, network = self.start("OpenFlow13", app)
        first, last = network["h1"], network["h3"]
        reserved = controller.ask("reserve", first.IP(), last.IP(), "20M")

        def metered():
            """The flow with the meter, without its counters, and its age in seconds."""
            flows = [line for line in network.flows("s1") if "meter:" in line]
            self.assertEqual(len(flows), 1, flows)
            return re.sub(r"(duration|n_packets|n_bytes)=[^,]*, ", "", flows[0]), float(re.search(r"duration=([0-9.]+)", flows[0])[1])

        def path():
            return [(row["id"], row["state"], row["path"]) for row in controller.ask("reservations")]

        stream = Stream(first, last)
        time.sleep(1)
        flow, age = metered()
        self.assertEqual(controller.stop(), 0, "exit status after SIGTERM")
        capture = self.capture()
        controller = self.controller(config={"apps": [app, "routing"]})
        self.assertEqual([row["id"] for row in controller.ask("reservations")], [1], "it is known before the switches are")
        network.await_connected()
        until(lambda: path() == [(1, "installed", reserved["path"])], FOUND_S, "it is checked")
        until(lambda: network.unreachable() == [], FOUND_S, "everybody is found")
        again, later = metered()
        self.assertEqual(again, flow)
        self.assertGreater(later, age, "it was not laid anew")
        capture.stop()
        self.assertEqual(capture.message_types().count(METER_MOD), 0, "meter_mods")
        assert_nothing_lost(self, [stream])
        with self.assertRaisesRegex(AssertionError, "reservation 1 from .* exists already"):
            controller.ask("reserve", first.MAC(), last.MAC(), "1M")
        self.assertEqual(controller.ask("reserve", last.MAC(), first.MAC(), "1M")["id"], 2)
        self.assertEqual(controller.ask("release", "1")["id"], 1)
        until(lambda: not any("meter:1" in line for line in network.flows("s1")), FOUND_S, "its flow is removed")

    def test_an_impossible_reservation_is_refused_openflow10(self):
        controller, network = self.start("OpenFlow10")
        before = {switch.name: len(network.flows(switch.name)) for switch in network.switches}
        with self.assertRaisesRegex(AssertionError, "unsupported: switch 0000000000000001 speaks OpenFlow 1.0"):
            controller.ask("reserve", network["h1"].IP(), network["h3"].IP(), "2M")
        with self.assertRaisesRegex(AssertionError, "no host 10.0.0.99 has been seen"):
            controller.ask("reserve", "10.0.0.99", network["h3"].IP(), "2M")
        self.assertEqual(controller.ask("reservations"), [])
        after = {switch.name: len(network.flows(switch.name)) for switch in network.switches}
        self.assertLessEqual(sum(after.values()), sum(before.values()), "flows are left behind")

    @on_both_versions
    def a_queue_that_is_set_up_is_used(self, version):
        """Each switch of the path puts the reservation's packets into the queue with that name, until it is released.
        (The rate of the queue is not tested: the datapath in user space has no queues.)"""
        controller, network = self.start(version, {"bandwidth": {"queues": {"gold": QUEUE}}})
        for switch in network.switches:
            for port in switch.intfNames():
                if port != "lo":
                    command("ovs-vsctl", "set", "port", port, "qos=@qos", "--", "--id=@qos", "create", "qos", "type=linux-htb",
                            f"queues:{QUEUE}=@queue", "--", "--id=@queue", "create", "queue", f"other-config:max-rate={RATE_BITS_PER_S}")
        first, last = network["h1"], network["h3"]
        reserved = controller.ask("reserve", first.IP(), last.IP(), "2M", "--queue", "gold")
        self.assertEqual((reserved["state"], reserved["queue"]), ("installed", "gold"))

        def queued():
            """Flows into the queue. The actions of 1.0 and 1.3 differ."""
            flows = [flow for switch in network.switches for flow in network.flows(switch.name)]
            return [flow for flow in flows if re.search(rf"enqueue:\S+:{QUEUE}\b|set_queue:{QUEUE}\b", flow)]

        self.assertEqual(len(queued()), 3, "the switches of the path")
        self.assertTrue(all(first.MAC() in flow and last.MAC() in flow for flow in queued()))
        self.assertEqual(network.unreachable(), [])
        self.assertTrue(all("n_packets=0," not in flow for flow in queued()), f"its packets go there: {queued()}")
        controller.ask("release", str(reserved["id"]))
        self.assertEqual(queued(), [])
