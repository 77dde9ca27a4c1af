"""Raw connections, and recordings: a learning switch that reads and writes bytes, a recorder between Open vSwitch and a
controller, and the recording played at both of them."""

import os
import signal
import stat
import subprocess
import threading
from pathlib import Path

from harness.capture import Capture
from harness.case import SystemTest, on_both_versions
from harness.controller import LOOPBACK, Controller, listening_ports
from harness.network import Line, command
from harness.waiting import until

# Where the recorder listens: no usual port of OpenFlow.
RECORDER = 7788
# Where the replayed controller listens.
REPLAYED = 6633
LIMIT_S = 30
REPLAY_LIMIT_S = 60


def binary():
    return os.environ["BELLROCK_BIN"]


class RawLearning(Controller):
    """The example `raw_learning`: a controller without a control socket."""

    def __init__(self, logs, run_dir):
        super().__init__(logs, run_dir)
        self.command = [str(Path(binary()).parent / "examples" / "raw_learning")]


class Raw(SystemTest):
    """A raw owner."""

    @on_both_versions
    def hosts_reach_each_other(self, version):
        """The learning switch of the example, with its own flows, and a restart that keeps nothing."""
        controller = RawLearning(self.logs, self.run_dir)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(lambda: controller.died() or controller.stop())
        network = self.network(Line(switches=2), version)
        self.assertEqual(network.ping_all(), 0)
        flows = "\n".join(network.flows("s1"))
        self.assertIn("priority=100,", flows)
        self.assertNotIn("cookie=0x", flows.replace("cookie=0x0,", ""), "the owner's cookies are 0")
        self.assertEqual(controller.stop(), 0)
        controller.start()
        network.await_connected()
        self.assertEqual(network.ping_all(), 0)


class Recorder:
    """`bellrock record`."""

    def __init__(self, test, file, *flags):
        self.file, self.log = file, test.logs / "record.log"
        words = [binary(), "record", str(file), "--listen", f"127.0.0.1:{RECORDER}", "--controller", LOOPBACK, *flags]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.terminate)
        until(lambda: RECORDER in listening_ports(), LIMIT_S, "the recorder listening")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(LIMIT_S)


class Recorded(SystemTest):
    """A recording of a learning switch with two switches, which is played again."""

    time_limit_s = 240

    def record(self, version):
        file = self.logs / "channel.pcapng"
        controller = self.controller()
        recorder = Recorder(self, file)
        network = self.network(Line(switches=2), version, port=RECORDER)
        self.assertEqual(network.ping_all(), 0)
        self.assertEqual(recorder.stop(), 0, recorder.log.read_text())
        self.assertEqual(controller.stop(), 0)
        return file

    @on_both_versions
    def the_recording_is_whole_and_plays_at_a_controller_and_at_a_switch(self, version):
        file = self.record(version)
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        # tshark finds OpenFlow without being told, and nothing malformed.
        capture = Capture(self.logs)
        capture.file = file
        types = capture.message_types()
        hello, features_reply, packet_in = 0, 6, 10
        self.assertEqual(types.count(hello), 4)
        self.assertGreaterEqual(types.count(features_reply), 2)
        self.assertGreaterEqual(types.count(packet_in), 3)
        self.assertEqual(capture.malformed(), [])
        decoded = subprocess.run([binary(), "decode", str(file)], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((decoded.returncode, decoded.stderr), (0, ""))
        # At a controller that is new: it installs flows again.
        controller = self.controller()
        played = self.replay(file, "--controller", LOOPBACK)
        self.assertEqual(played.returncode, 0, played.stdout + played.stderr)
        for dpid in (1, 2):
            self.assertIn(f"switch {dpid:016x}: ", played.stdout)
        rows = [line.split() for line in played.stdout.splitlines()]
        flow_mods = [row for row in rows if row[:1] == ["flow_mod"]]
        if flow_mods:
            # Only where the answers differ is there a table: most of them are equal.
            for _, recorded, now, equal in flow_mods:
                self.assertGreater(int(now), 0)
                self.assertGreaterEqual(2 * int(equal), int(recorded), played.stdout)
        self.assertEqual(controller.stop(), 0)
        # At a switch: it has the flows of the recording then.
        self.at_a_switch(file, version)

    def at_a_switch(self, file, version):
        command("ovs-vsctl", "add-br", "br9", "--", "set", "bridge", "br9", "datapath_type=netdev", f"protocols={version}",
                "fail_mode=secure", "other-config:datapath-id=0000000000000001")
        self.addCleanup(command, "ovs-vsctl", "del-br", "br9")
        played = {}
        play = lambda: played.update(done=self.replay(file, "--listen", f"127.0.0.1:{REPLAYED}", "--switch", "1", "--fast"))
        thread = threading.Thread(target=play)
        thread.start()
        until(lambda: REPLAYED in listening_ports(), LIMIT_S, "the replayed controller listening")
        command("ovs-vsctl", "set-controller", "br9", f"tcp:127.0.0.1:{REPLAYED}")
        thread.join(REPLAY_LIMIT_S)
        done = played["done"]
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("switch 0000000000000001: ", done.stdout)
        flows = command("ovs-ofctl", "-O", version, "dump-flows", "br9")
        self.assertIn("actions=", flows)

    @staticmethod
    def replay(file, *flags):
        words = [binary(), "replay", str(file), *flags]
        return subprocess.run(words, capture_output=True, text=True, timeout=REPLAY_LIMIT_S, check=False)

    def test_a_full_file_rotates_and_connections_go_on(self):
        self.controller()
        file = self.run_dir / "small.pcapng"
        recorder = Recorder(self, file, "--max-size", "128K", "--keep", "2")
        network = self.network(Line(switches=2), "OpenFlow13", port=RECORDER)
        flood = network["h1"].popen(["ping", "-n", "-q", "-c", "600", "-i", "0.005", "-s", "1200", "-b", "10.255.255.255"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: Path(f"{file}.2").exists(), LIMIT_S, "two full files")
        flood.kill()
        flood.wait()
        self.assertEqual(network.ping_all(), 0)
        self.assertEqual(recorder.stop(), 0)
        self.assertRegex(recorder.log.read_text(), r"messages recorded in \d+ files")
        self.assertFalse(Path(f"{file}.3").exists())
