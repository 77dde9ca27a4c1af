"""An app in Python that blocks while a host floods: what does not fit its queue is dropped and counted, and nobody else
notices."""

import os
import time

from harness.case import SystemTest, on_both_versions
from harness.network import Line
from harness.python import python
from harness.waiting import until

LIMIT_S = 60
ECHO_AFTER_S, DEAD_AFTER_S = 1, 3
# While the file GATE is there, the app handles no packet.
APP = """import os
import time

import bellrock


class Slow(bellrock.App):
    counters = {{"packets_handled": "Packets that it has flooded."}}

    def packet_in(self, switch, packet):
        while os.path.exists({gate!r}):
            time.sleep(0.02)
        switch.packet_out(packet, bellrock.Port.FLOOD)
        switch.count("packets_handled")
"""
# Broadcasts frames of the local experimental Ethernet type until it is ended.
FLOOD = """import socket
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("{interface}", 0))
frame = bytes.fromhex("ffffffffffff" + "{mac}".replace(":", "") + "88b5") + bytes({data_bytes})
while True:
    try: link.send(frame)
    except OSError: pass
"""
BLOCKED = "10.0.0.9"
FRAME_BYTES = 1414
# What a switch that floods may take of the queue: half of it.
QUEUE_SHARE_BYTES = 8 << 20
# More packets than hosts send while their pings are tried again.
OTHER_PACKETS = 500


class BlockedApp(SystemTest):
    """`bellrock run` with an app in Rust in front of one in Python, on Open vSwitch."""

    def counters(self, controller):
        """The counters of the app in Python, by name."""
        return controller.ask("counters")["apps"]["Slow"]

    def connections(self, controller):
        """How often the switch has connected, and how often it was lost."""
        [row] = controller.ask("counters")["switches"]
        return row["counters"]["dp_connections"], row["counters"]["dp_disconnections"]

    def all_accounted_for(self, controller):
        [switch] = controller.ask("switches")
        counters = self.counters(controller)
        return counters["packets_handled"] + counters["packet_ins_dropped"] == switch["packet_ins"]

    def flood(self, host):
        """A host that sends broadcasts as fast as it can."""
        text = FLOOD.format(interface=host.defaultIntf().name, mac=host.MAC(), data_bytes=FRAME_BYTES - 14)
        flooding = host.popen(["/usr/bin/python3", "-c", text])
        self.addCleanup(flooding.wait)
        self.addCleanup(flooding.kill)
        return flooding

    @on_both_versions
    def a_host_floods_while_the_app_blocks(self, version):
        """Drops are counted. Echoes and the other app go on. When the app returns, new packets are handled."""
        os.environ["BELLROCK_PYTHON"] = python()
        gate, file = self.run_dir / "gate", self.run_dir / "slow.py"
        file.write_text(APP.format(gate=str(gate)))
        controller = self.controller(config={"apps": ["quarantine", str(file)], "echo_after": f"{ECHO_AFTER_S} s",
                                             "dead_after": f"{DEAD_AFTER_S} s"})
        network = self.network(Line(hosts=(1, 1)), version)
        self.assertEqual(network.unreachable(), [])
        self.assertEqual(self.counters(controller)["packet_ins_dropped"], 0)
        connections = self.connections(controller)

        gate.touch()
        flooding = self.flood(network["h1"])
        until(lambda: self.counters(controller)["packet_ins_dropped"] > 0, LIMIT_S, "drops are counted")
        # The app in front works: the switch confirms its flows, in the middle of the flood.
        controller.ask("quarantine", "add", BLOCKED)
        self.assertTrue(any(BLOCKED in flow for flow in network.flows("s1")), network.flows("s1"))
        flooding.kill()
        flooding.wait()
        handled = self.counters(controller)["packets_handled"]
        # Only echoes keep the connection now.
        time.sleep(2 * DEAD_AFTER_S)
        self.assertEqual(self.connections(controller), connections)
        self.assertEqual(self.counters(controller)["packets_handled"], handled, "the app blocks still")

        gate.unlink()
        until(lambda: network.unreachable() == [], LIMIT_S, "new packets are handled")
        counters = self.counters(controller)
        self.assertGreater(counters["packets_handled"], handled)
        self.assertLess(counters["packets_handled"] - handled, QUEUE_SHARE_BYTES // FRAME_BYTES + OTHER_PACKETS)
        self.assertEqual(network.unreachable(), [])
        self.assertEqual(self.counters(controller)["packet_ins_dropped"], counters["packet_ins_dropped"],
                         "none is dropped any more")
        until(lambda: self.all_accounted_for(controller), LIMIT_S, "each packet_in is handled or counted as dropped")
        self.assertEqual(self.connections(controller), connections)
