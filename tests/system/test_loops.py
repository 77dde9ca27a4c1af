"""Apps that know no links, in a network with a loop: each host gets each broadcast once, and the loop is an alarm."""

from pathlib import Path

from harness import announce
from harness.case import SystemTest, on_both_versions
from harness.topologies import Ring
from harness.waiting import until

# Broadcasts of a host, and how many a second: more than the 16 that show a storm, and far below the rate of a storm.
BROADCASTS = 24
PER_SECOND = 4
# Of hosts behind h1.
FIRST_MAC, FIRST_IP = "02:aa:00:00:00:01", "10.0.9.1"
SOON_S = 10
# Frames that still go around come within this time: the switches of the controller answer in milliseconds.
QUIET_S = 1


class Loops(SystemTest):
    """Four switches in a ring, with a host each."""

    @on_both_versions
    def learning_carries_each_broadcast_once(self, version):
        """And hosts reach each other by the places that the first copies have shown."""
        self.carry(version, "learning")
        until(lambda: self.net.unreachable([("h1", "h3"), ("h3", "h1"), ("h2", "h4")]) == [], SOON_S, "hosts reach each other")

    @on_both_versions
    def global_learning_carries_each_broadcast_once(self, version):
        self.carry(version, "global_learning")

    @on_both_versions
    def hub_carries_each_broadcast_once(self, version):
        self.carry(version, "hub")

    def carry(self, version, app):
        self.bellrock = self.controller(app=app)
        self.net = self.network(Ring(), version)
        before = self.received()
        host = self.net["h1"]
        host.cmd(f"/usr/bin/python3 {Path(announce.__file__)} h1-eth0 {FIRST_MAC} {FIRST_IP} {BROADCASTS} {PER_SECOND}")

        def heard():
            return {name: count - before[name] for name, count in self.received().items()}
        until(lambda: min(heard()[name] for name in ("h2", "h3", "h4")) >= BROADCASTS, SOON_S, "each host hears all of them")
        host.cmd(f"sleep {QUIET_S}")
        self.assertEqual(heard(), {"h1": 0, "h2": BROADCASTS, "h3": BROADCASTS, "h4": BROADCASTS})
        [storm] = until(lambda: self.bellrock.ask("events", "--kind", "storm"), SOON_S, "the loop is reported")
        self.assertTrue(storm["alarming"], storm)
        self.assertRegex(storm["text"], r"by port \d+, then by port \d+")

    def received(self):
        """Number of frames that each host has got."""
        def frames(host):
            return int(host.cmd(f"cat /sys/class/net/{host.name}-eth0/statistics/rx_packets"))
        return {host.name: frames(host) for host in self.net.hosts}
