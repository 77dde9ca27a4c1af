"""Hosts on the block list are blocked at every switch, and can come back. (The app's test in the lab measures the
time.)"""

from harness.case import SystemTest, on_both_versions
from harness.network import tree
from harness.waiting import until

# The app follows a file or a command within milliseconds. The pings take the time here.
SOON_S = 30


class Quarantine(SystemTest):
    """Mininet's tree of depth 2 and fanout 3, with a block list before the learning app."""

    def start(self, version):
        self.file = self.run_dir / "blocked"
        self.file.write_text("# nobody yet\n")
        controller = self.controller(config={"apps": [{"quarantine": {"file": str(self.file)}}, "learning"]})
        network = self.network(tree(), version)
        self.assertEqual(network.ping_all(), 0, "percent lost before anybody is listed")
        return controller, network

    @on_both_versions
    def by_file(self, version):
        """Blocked by its Ethernet address in the file. A file with a bad line changes nothing."""
        controller, network = self.start(version)
        cut_off = [(a, b) for a, b in (("h1", "h9"), ("h9", "h1"), ("h1", "h2"))]
        self.file.write_text(f"{network['h1'].MAC()}  # the one\n")
        until(lambda: network.unreachable(cut_off) == cut_off, SOON_S, "h1 is cut off")
        self.assertEqual(network.unreachable([("h2", "h9")]), [], "others notice nothing")
        self.file.write_text("h1 and friends\n")
        until(lambda: f"{self.file}:1: " in controller.text(), SOON_S, "the log tells of the bad line")
        self.assertEqual(network.unreachable(cut_off), cut_off, "the previous list stays in force")
        told = controller.ask("quarantine", "list")
        self.assertEqual([entry["host"] for entry in told["rows"]], [network["h1"].MAC()])
        self.assertIn("h1 and friends", told["file_problem"])
        self.file.write_text("")
        until(lambda: network.unreachable(cut_off) == [], SOON_S, "h1 is back")

    @on_both_versions
    def by_command(self, version):
        """Blocked by its IPv4 address on the command line, also at a switch that reconnects."""
        controller, network = self.start(version)
        pairs = [("h1", "h9"), ("h5", "h1")]
        controller.ask("quarantine", "add", network["h1"].IP())
        until(lambda: network.unreachable(pairs) == pairs, SOON_S, "h1 is cut off")
        self.assertEqual(network.unreachable([("h2", "h9")]), [], "others notice nothing")
        drops = [flow for flow in network.flows("s1") if flow.endswith("actions=drop")]
        self.assertEqual(len(drops), 4, f"IPv4 and ARP, from it and to it: {drops}")
        controller.ask("quarantine", "remove", network["h1"].IP())
        until(lambda: network.unreachable(pairs) == [], SOON_S, "h1 is back")
