"""Which version Open vSwitch and the controller agree on, whatever set of versions Open vSwitch has."""

from harness.case import SystemTest
from harness.network import Line
from harness.waiting import until

SOON_S = 30

# With a gap below 1.3, Open vSwitch announces 1.2 in the header of its hello, and a bitmap. Without a gap it sends none.
AGREED = {
    "OpenFlow10": "1.0",
    "OpenFlow13": "1.3",
    "OpenFlow10,OpenFlow11": "1.0",
    "OpenFlow10,OpenFlow12": "1.0",
    "OpenFlow10,OpenFlow11,OpenFlow12": "1.0",
    "OpenFlow10,OpenFlow14": "1.0",
    "OpenFlow10,OpenFlow13": "1.3",
    "OpenFlow12,OpenFlow13": "1.3",
    "OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14": "1.3",
}
REFUSED = ("OpenFlow12", "OpenFlow14")


class Versions(SystemTest):
    """One switch, which changes its set of versions."""

    def test_the_highest_common_version_is_agreed_on(self):
        controller = self.controller()
        network = self.network(Line(switches=1), "OpenFlow13")
        bridge = next(iter(network.net.switches))

        def versions():
            return [switch["version"] for switch in controller.ask("switches")]

        for protocols, version in AGREED.items():
            bridge.vsctl("set", "bridge", bridge.name, "protocols=[]")
            bridge.vsctl("set", "bridge", bridge.name, f"protocols={protocols}")
            until(lambda: versions() == [version], SOON_S, f"{protocols} agrees on {version}")
        for protocols in REFUSED:
            bridge.vsctl("set", "bridge", bridge.name, f"protocols={protocols}")
            until(lambda: versions() == [], SOON_S, f"{protocols} has no version in common")

    def test_an_address_can_have_versions_of_its_own(self):
        """At the second address only 1.0 is spoken: there the switch does not see a newer version."""
        controller = self.controller(flags=["--listen", "127.0.0.1:6654@1.0"])
        network = self.network(Line(switches=1), "OpenFlow10,OpenFlow13", connect=False)
        bridge = next(iter(network.net.switches))

        def versions():
            return [switch["version"] for switch in controller.ask("switches")]

        for port, version in ((6653, "1.3"), (6654, "1.0"), (6653, "1.3")):
            bridge.vsctl("set-controller", bridge.name, f"tcp:127.0.0.1:{port}")
            until(lambda: versions() == [version], SOON_S, f"port {port} speaks {version}")
