"""Flows that an app leaves on Open vSwitch when it is taken out of the chain: they are listed, and removed by an order."""

from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

SOON_S = 30
DROP = "eth_type=0x0800,ipv4_dst=10.0.0.9"
# Of another controller, of nobody, and with a cookie that no app of Bellrock has.
FOREIGN = ("cookie=0x77,priority=7,dl_type=0x88cc,actions=drop", "priority=8,dl_type=0x88cd,actions=drop",
           "cookie=0x1234567800000001,priority=9,dl_type=0x88ce,actions=drop")


class Orphans(SystemTest):
    """Two switches; `static` has a flow in each, and is taken out."""

    def drops(self, network):
        flows = [flow for switch in ("s1", "s2") for flow in network.flows(switch)]
        return [flow for flow in flows if flow.endswith("actions=drop")]

    @on_both_versions
    def flows_of_an_app_that_was_taken_out_are_removed_by_an_order(self, version):
        """A preview lists them; what others have installed stays."""
        config = {"apps": [{"static": {"store": str(self.run_dir / "static.json")}}, "learning"]}
        controller = self.controller(config=config)
        network = self.network(Line(switches=2, hosts=(1, 2)), version)
        until(lambda: len(controller.ask("switches")) == 2, SOON_S, "both switches are up")
        for switch in ("1", "2"):
            controller.ask("static", "add", f"wall-{switch}", switch, "--match", DROP, "--actions", "drop")
            controller.ask("static", "add", f"port-{switch}", switch, "--match", "in_port=3", "--actions", "drop")
            for flow in FOREIGN:
                command("ovs-ofctl", "-O", version, "add-flow", f"s{switch}", flow)
        self.assertEqual(len(self.drops(network)), 2 * (2 + len(FOREIGN)))
        said = controller.refused("clean", "--app", "static")
        self.assertIn("static runs here", said)

        self.assertEqual(controller.stop(), 0)
        controller.write_config({"apps": ["learning"]})
        controller.start()
        until(lambda: len(controller.ask("switches")) == 2, SOON_S, "both switches are back")
        for words in (("flows", "--orphans"), ("clean",)):
            rows = controller.ask(*words)
            self.assertEqual([(row["apps"], len(row["flows"])) for row in rows], [([{"app": "static", "flows": 2}], 2)] * 2)
        rows = controller.ask("flows", "1", "--orphans")
        self.assertEqual([(row["dpid"], len(row["flows"])) for row in rows], [("0000000000000001", 2)])
        self.assertEqual(len(self.drops(network)), 2 * (2 + len(FOREIGN)), "nothing is removed by looking")

        done = controller.ask("clean", "1", "--yes")
        self.assertEqual((done["removed"], len(done["switches"])), (2, 1))
        done = controller.ask("clean", "--yes")
        self.assertEqual((done["removed"], [row["problem"] for row in done["switches"]]), (2, [None]))
        self.assertEqual(controller.ask("clean", "--yes")["removed"], 0)
        drops = self.drops(network)
        self.assertEqual(len(drops), 2 * len(FOREIGN), drops)
        until(lambda: "clean_flows" in controller.text(), SOON_S, "the order is in the log")
        until(lambda: network.ping_all() == 0, SOON_S, "the hosts reach each other")

        # An app of one's own has no other place where its name is known.
        self.assertEqual(controller.ask("clean", "--app", "mine", "--yes")["removed"], 0)
