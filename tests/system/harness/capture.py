"""A capture of the OpenFlow channel, judged by tshark: a decoder that is not ours."""

import re
import subprocess

from .waiting import until

START_LIMIT_S = 10
STOP_LIMIT_S = 10
READ_LIMIT_S = 60
KERNEL_BUFFER_MIB = 64


class Capture:
    """dumpcap on the loopback interface, for one TCP port."""

    def __init__(self, logs, port=6653):
        self.file = logs / "openflow.pcapng"
        self.log = logs / "dumpcap.log"
        self.port = port
        self.process = None

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["dumpcap", "-i", "lo", "-f", f"tcp port {self.port}", "-B", str(KERNEL_BUFFER_MIB), "-w", str(self.file)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: "File:" in self.log.read_text(), START_LIMIT_S, "dumpcap capturing")

    def stop(self):
        """Ends it and checks that the kernel has dropped nothing: a capture with holes proves nothing."""
        if self.process is None:
            return
        self.process.terminate()
        self.process.wait(STOP_LIMIT_S)
        self.process = None
        dropped = re.search(r"received/dropped on interface '[^']*': \d+/(\d+)", self.log.read_text())
        if dropped is None or dropped[1] != "0":
            raise AssertionError(f"the capture has holes: {self.log.read_text()}")

    def _lines(self, display_filter, field):
        read = subprocess.run(
            ["tshark", "-n", "-r", str(self.file), "-d", f"tcp.port=={self.port},openflow", "-Y", display_filter,
             "-T", "fields", "-e", field],
            capture_output=True, text=True, timeout=READ_LIMIT_S, check=False)
        if read.returncode != 0:
            raise AssertionError(f"tshark failed with {read.returncode}: {read.stderr}")
        return read.stdout.splitlines()

    def message_types(self):
        """The type of every OpenFlow message captured; a segment can carry many."""
        types = []
        for field in ("openflow_1_0.type", "openflow_v4.type"):
            for line in self._lines(field, field):
                types += [int(word) for word in line.split(",")]
        return types

    def packet_ins(self):
        # Type 10 in both versions.
        return self.message_types().count(10)

    def malformed(self):
        """Numbers of the frames in which tshark found a malformed OpenFlow message."""
        return self._lines("openflow && _ws.malformed", "frame.number")
