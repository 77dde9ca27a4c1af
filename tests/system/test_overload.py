"""What keeps one switch or app from the others: meters in switches, and apps that may do less."""

import json
import signal

from harness.case import SystemTest
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

LIMIT_S = 30
RATES = (250, 500)
LEARNING = {"apps": ["learning"]}


class Overload(SystemTest):
    """Open vSwitch with a controller that keeps somebody from something."""

    time_limit_s = 120

    def test_the_switch_itself_limits_packet_ins_by_a_meter(self):
        """The meter is there, also after a restart with another rate, and packets still pass."""
        controller = self.controller(config={**LEARNING, "controller_meter": RATES[0]})
        network = self.network(Line(), "OpenFlow13")
        for rate in RATES:
            meters = ["ovs-ofctl", "-O", "OpenFlow13", "dump-meters", "s1"]
            until(lambda meters=meters, rate=rate: f"rate={rate}" in command(*meters), LIMIT_S, f"a meter of {rate}/s")
            self.assertIn("pktps", command(*meters))
            [switch] = controller.ask("switches")
            self.assertEqual(switch["refused_flows"], [], switch)
            self.assertEqual(network.ping_all(), 0, "percent lost")
            controller.stop(signal.SIGTERM)
            controller.write_config({**LEARNING, "controller_meter": RATES[1]})
            controller.start()
            network.await_connected()

    def test_a_switch_without_meters_is_named(self):
        """OpenFlow 1.0 has none: the log says so, and the switch works."""
        controller = self.controller(config={**LEARNING, "controller_meter": RATES[0]})
        network = self.network(Line(), "OpenFlow10")
        until(lambda: "its version has no meters" in controller.text(), LIMIT_S, "the line about meters")
        self.assertEqual(network.ping_all(), 0, "percent lost")

    def test_an_app_that_may_only_read_installs_nothing(self):
        """`allow` of the configuration: no packet is forwarded, and the refusals are counted and named."""
        controller = self.controller(config={**LEARNING, "allow": {"learning": {"write": "none"}}})
        network = self.network(Line(), "OpenFlow13")
        self.assertEqual(network.ping_all(), 100, "percent lost")
        [app] = controller.ask("apps")
        self.assertGreater(app["refused"], 0, app)
        flows = [line for line in network.flows("s1") if "actions=CONTROLLER" not in line]
        self.assertEqual(flows, [], "flows besides the table-miss entry")
        until(lambda: "the app learning is not allowed to" in json.dumps(controller.ask("events")), LIMIT_S, "an event names the app")
