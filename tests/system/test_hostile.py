"""Peers that flood, dawdle, say nothing or talk nonsense."""

import statistics
import subprocess
import sys
import threading
from pathlib import Path

from harness import fakeswitch
from harness.case import SystemTest, on_both_versions
from harness.network import Line, Pings
from harness.waiting import until

FLOOD_S = 6
# A fraction of what the controller could send, so that every buffer between the two is full soon.
SLOW_BYTES_PER_S = 256 * 1024
SMALL_RECEIVE_BUFFER_BYTES = 64 * 1024
FULL_FRAME_BYTES = 1400
# Nothing at all for so long, with answers still missing: they do not come any more.
PATIENCE_S = 10
# A bounded queue per switch fits many times; a controller that reads on regardless takes hundreds of MiB in FLOOD_S.
MAX_GROWTH_BYTES = 32 * 1024 * 1024
RSS_INTERVAL_S = 0.1

SILENT = 1000
GARBAGE = 200
READY_LIMIT_S = 15
PINGS = 300
PING_INTERVAL_S = 0.01
# Twice the time is what is asked for. On this network a ping over the controller takes some hundred microseconds, and on a
# machine with two shared cores one wake-up that comes late costs more than that; a millisecond is allowed for it. A
# controller that is held up by hostile peers is so for far longer.
FACTOR = 2
FLOOR_MS = 1.0


class Memory(threading.Thread):
    """Watches the resident memory of a controller until told to stop; `peak` is in bytes."""

    def __init__(self, controller):
        super().__init__(daemon=True)
        self.controller = controller
        self.first = self.peak = controller.resident_bytes()
        self.done = threading.Event()
        self.start()

    def run(self):
        while not self.done.wait(RSS_INTERVAL_S) and not self.controller.died():
            self.peak = max(self.peak, self.controller.resident_bytes())

    def growth(self):
        self.done.set()
        self.join()
        return self.peak - self.first


class Hostile(SystemTest):
    """What one peer does must not hurt another, nor the controller."""

    time_limit_s = 90

    @on_both_versions
    def both_ends_flooded(self, version):
        """A switch sends without pause and reads slowly: no dead-lock, every packet-in answered in order, memory bounded."""
        controller = self.controller()
        switch = fakeswitch.FakeSwitch(version, 1, controller.port, FULL_FRAME_BYTES, SMALL_RECEIVE_BUFFER_BYTES)
        switch.connect()
        memory = Memory(controller)
        switch.flood(FLOOD_S, SLOW_BYTES_PER_S)
        switch.drain(PATIENCE_S)
        growth = memory.growth()
        self.assertLess(growth, MAX_GROWTH_BYTES, f"bytes that the controller grew by, for {switch.sent} packet-ins")
        self.assertGreater(switch.stalls, 0, "the switch was never held up: the flood was none")
        self.assertEqual(len(switch.answers), switch.sent, "answers to packet-ins that were taken")
        self.assertEqual(switch.answers, list(range(switch.sent)), "the order of the answers")

    def attack(self, *words):
        """Starts attackers and waits until they say that they are at it."""
        log = self.logs / f"attack-{words[0]}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen([sys.executable, "-m", "harness.attackers", *words], stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, cwd=Path(__file__).parent)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: log.read_text() or process.poll() is not None, READY_LIMIT_S, f"attack {words}")
        self.assertIsNone(process.poll(), log.read_text())
        return process

    def median_ms(self, network):
        """The median round trip of many pings, all of which must be answered."""
        answers = Pings(network["h1"], network["h2"], PING_INTERVAL_S, PINGS).wait(PINGS * PING_INTERVAL_S + 10)
        self.assertEqual(len(answers), PINGS, "answers")
        return statistics.median(ms for _, _, ms in answers)

    @on_both_versions
    def hostile_peers(self, version):
        """A thousand silent connections, two hundred of nonsense and a flooding switch: a real pair hardly notices."""
        # Under the hub every ping goes over the controller, twice; over installed flows it would prove nothing.
        controller = self.controller(app="hub")
        network = self.network(Line(), version)
        self.assertEqual(network.unreachable(), [])
        before = self.median_ms(network)
        processes = [self.attack("crowd", str(SILENT), str(GARBAGE)), self.attack("flood", version)]
        during = self.median_ms(network)
        for process in processes:
            self.assertIsNone(process.poll(), "an attacker gave up")
        Path(self.logs / "medians.log").write_text(f"before {before} ms, during {during} ms\n")
        self.assertLess(during, max(FACTOR * before, before + FLOOR_MS), f"median ping in ms; before it was {before}")
        self.assertFalse(controller.died())
        self.assertTrue(network.connected(), "the real switch is still connected")
