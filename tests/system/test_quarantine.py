"""Hosts on the block list are blocked at every switch, and can come back. (The app's test in the lab measures the
time.)"""

import time

from harness.case import SystemTest, on_both_versions
from harness.messages import DELETE_ALL
from harness.network import tree
from harness.openvswitch import command
from harness.waiting import until

# The app follows a file or a command within milliseconds. The pings take the time here.
SOON_S = 30
# An order is followed by a read at once, or a second after the read before.
READ_PAUSE_S = 1.5
# Far less than an audit's turn takes.
SOON_AFTER_ORDER_S = 10


class Quarantine(SystemTest):
    """Mininet's tree of depth 2 and fanout 3, with a block list before the learning app."""

    refusals_expected = False

    def judge(self):
        if not self.refusals_expected:
            return super().judge()
        for controller in self.controllers:
            self.assertEqual(controller.faults(), [])

    def start(self, version):
        self.file = self.run_dir / "blocked"
        self.file.write_text("# nobody yet\n")
        config = {"apps": [{"quarantine": {"file": str(self.file)}}, "learning"], "switches": {"absent": "ee"}}
        controller = self.controller(config=config)
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
        gaps = lambda answer: [(gap["name"], gap["state"]) for gap in answer["gaps"]]
        done = controller.ask("quarantine", "add", network["h1"].IP())
        self.assertEqual(gaps(done), [("absent", "away")], "all others have confirmed it when the command ends")
        until(lambda: network.unreachable(pairs) == pairs, SOON_S, "h1 is cut off")
        self.assertEqual(network.unreachable([("h2", "h9")]), [], "others notice nothing")
        drops = [flow for flow in network.flows("s1") if flow.endswith("actions=drop")]
        self.assertEqual(len(drops), 4, f"IPv4 and ARP, from it and to it: {drops}")
        listed = lambda: gaps(controller.ask("quarantine", "list")["rows"][0])
        self.assertEqual(listed(), [("absent", "away")])
        # An operator deletes all flows by an order to the controller.
        time.sleep(READ_PAUSE_S)
        controller.ask("send", "1", DELETE_ALL[version])
        is_back = lambda: len([flow for flow in network.flows("s1") if flow.endswith("actions=drop")]) == 4
        until(is_back, SOON_AFTER_ORDER_S, "the drops are back at once")
        until(lambda: listed() == [("absent", "away")], SOON_AFTER_ORDER_S, "they are confirmed")
        controller.ask("quarantine", "remove", network["h1"].IP())
        until(lambda: network.unreachable(pairs) == [], SOON_S, "h1 is back")

    @on_both_versions
    def a_switch_that_refuses_is_named(self, version):
        """A full table: the command fails and names the switch, the list does too, until there is space."""
        self.refusals_expected = True
        controller, network = self.start(version)
        command("ovs-vsctl", "--", "--id=@t", "create", "Flow_Table", "flow_limit=1", "overflow_policy=refuse",
                "--", "set", "bridge", "s1", "flow_tables:0=@t")
        done, error = controller.not_done("quarantine", "add", "10.9.9.9")
        self.assertEqual((done["blocked"], done["gaps"][0]["state"]), ("10.9.9.9", "refused"), done)
        self.assertIn("10.9.9.9 is not blocked at switch 0000000000000001: ", error)
        [row] = controller.ask("quarantine", "list")["rows"]
        self.assertEqual([(gap["dpid"], gap["state"]) for gap in row["gaps"]],
                         [("0000000000000001", "refused"), ("00000000000000ee", "away")], row)
        command("ovs-vsctl", "clear", "bridge", "s1", "flow_tables")
        is_confirmed = lambda: [gap["state"] for gap in controller.ask("quarantine", "list")["rows"][0]["gaps"]] == ["away"]
        until(is_confirmed, SOON_S, "the drops are sent again, and confirmed")
