"""A capture of the OpenFlow channel, checked by tshark, an independent decoder."""

import re
import subprocess
import time

from .waiting import until

START_LIMIT_S = 30
STOP_LIMIT_S = 30
READ_LIMIT_S = 60
KERNEL_BUFFER_MIB = 64
# The kernel passes captured packets on in blocks. This is the time for the last block.
SETTLE_S = 1
# Message types, the same in both versions.
PACKET_IN, FLOW_MOD = 10, 14
# A flow_mod of OpenFlow 1.0 without an action.
BARE_FLOW_MOD_BYTES_10 = 72


class Capture:
    """dumpcap on the loopback interface, for one TCP port."""

    def __init__(self, logs, port=6653, tls=None):
        self.file = logs / "openflow.pcapng"
        self.log = logs / "dumpcap.log"
        self.port = port
        # For TLS: the file with the keys of the sessions, and the key of the controller.
        self.tls = tls
        self.process = None

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["dumpcap", "-i", "lo", "-f", f"tcp port {self.port}", "-B", str(KERNEL_BUFFER_MIB), "-w", str(self.file)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: "File:" in self.log.read_text(), START_LIMIT_S, "dumpcap capturing")

    def stop(self):
        """Ends it and checks that the kernel dropped nothing: a capture with gaps proves nothing."""
        if self.process is None:
            return
        time.sleep(SETTLE_S)
        self.process.terminate()
        self.process.wait(STOP_LIMIT_S)
        self.process = None
        dropped = re.search(r"received/dropped on interface '[^']*': \d+/(\d+)", self.log.read_text())
        if dropped is None or dropped[1] != "0":
            raise AssertionError(f"the capture has holes: {self.log.read_text()}")

    def _decoding(self):
        if self.tls is None:
            return ["-d", f"tcp.port=={self.port},openflow"]
        key_log, key = self.tls
        # The table of keys is the only place that says what is inside TLS, for a protocol that tshark does not expect.
        return ["-d", f"tcp.port=={self.port},tls", "-o", f"tls.keylog_file:{key_log}",
                "-o", f'uat:ssl_keys:"127.0.0.1","{self.port}","openflow","{key}",""']

    def _fields(self, display_filter, *fields):
        """For each frame that matches the filter: a list of what tshark prints for each field."""
        read = subprocess.run(
            ["tshark", "-n", "-r", str(self.file), *self._decoding(), "-Y", display_filter,
             "-T", "fields", *(word for field in fields for word in ("-e", field))],
            capture_output=True, text=True, timeout=READ_LIMIT_S, check=False)
        if read.returncode != 0:
            raise AssertionError(f"tshark failed with {read.returncode}: {read.stderr}")
        return [line.split("\t") for line in read.stdout.splitlines()]

    def message_types(self):
        """The types of all captured OpenFlow messages. A segment can carry many."""
        types = []
        for field in ("openflow_1_0.type", "openflow_v4.type"):
            for (occurrences,) in self._fields(field, field):
                types += [int(word) for word in occurrences.split(",")]
        return types

    def packet_ins(self):
        return self.message_types().count(PACKET_IN)

    def malformed(self):
        """Numbers of the frames in which tshark found a malformed message, or a malformed packet inside one.

        tshark 4.0 reads an action after every flow_mod of 1.0, even if there is none, as in most that delete. It then
        reports a correct message as malformed. Only these messages are ignored.
        """
        wrong = []
        found = self._fields("_ws.malformed", "frame.number", "_ws.malformed.expert", "openflow_1_0.type", "openflow.length")
        for frame, complaints, types, lengths in found:
            messages = list(zip(types.split(","), lengths.split(",")))
            if complaints.count("1") > messages.count((str(FLOW_MOD), str(BARE_FLOW_MOD_BYTES_10))):
                wrong.append(frame)
        return wrong
