"""`bellrock decode` reads real captures: any port, link type and IP version, whole, from the middle, and compressed."""

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

from harness.case import SystemTest
from harness.openvswitch import command
from harness.waiting import until

# A port that is unusual for OpenFlow.
PORT = 7777
LIMIT_S = 20
VECTORS = Path(__file__).parents[2] / "vectors"
# The kernel limits one argument of a command to 128 KiB.
MAX_ARGUMENT_DIGITS = 100_000
# Minimum number of flow_mods in the vectors whose match both programs can read.
MIN_MATCHES = 100
# An ARP request, who has 10.0.0.2, and its line of output.
ARP = "ffffffffffff02000000000108060001080006040001020000000001" "0a000001" "000000000000" "0a000002"
ARP_LINE = "  02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff, ARP, who has 10.0.0.2, tell 10.0.0.1"
# A flow_mod in the output of `bellrock decode`. The group is its match.
OUR_MATCH = re.compile(r"priority=\d+,?(\S*?)(?: actions=|$)")
# Nicira's fields, which are not decoded.
NICIRA = ("reg", "ct_")


def bellrock(*words, **options):
    """Runs the command and returns its exit status and output."""
    return subprocess.run([os.environ["BELLROCK_BIN"], *words], capture_output=True, timeout=LIMIT_S, check=False, **options)


class Decode(SystemTest):
    """A bridge whose controller listens on an unusual port, and captures of that connection."""

    def child(self, *words):
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.terminate)
        return child

    def dump(self, name, interface, *options):
        """Starts a capture, waits until it runs, and returns its file and process."""
        file, log = self.run_dir / name, self.run_dir / f"{name}.log"
        with open(log, "wb") as output:
            words = ["dumpcap", "-q", "-i", interface, *options, "-w", str(file)]
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.addCleanup(child.wait)
        self.addCleanup(child.terminate)
        until(lambda: "File:" in log.read_text(), LIMIT_S, "dumpcap capturing")
        return file, child

    def listen(self, address):
        control = str(self.run_dir / "decode.sock")
        self.child(os.environ["BELLROCK_BIN"], "run", "--listen", address, "--control", control)
        until(lambda: bellrock("status", "--control", control).returncode == 0, LIMIT_S, "a controller")
        return control

    def test_any_port_and_link_type(self):
        """The same messages are read from Ethernet and both kinds of Linux cooked capture, plain and compressed."""
        control = self.listen(f"127.0.0.1:{PORT}")
        dumps = [
            self.dump("lo.pcapng", "lo"),
            self.dump("any.pcapng", "any", "-y", "LINUX_SLL"),
            self.dump("any2.pcap", "any", "-P", "-y", "LINUX_SLL2"),
        ]
        self.bridge(f"127.0.0.1:{PORT}", control)
        late = self.dump("late.pcapng", "lo")
        self.send_arp()
        packets = lambda file: bellrock("decode", "--type", "packet_in", str(file)).stdout.decode()
        until(lambda: ARP_LINE in packets(late[0]), LIMIT_S, "the packet_in in the last capture")
        until(lambda: all(ARP_LINE in packets(file) for file, _ in dumps), LIMIT_S, "the packet_in in the others")
        for file, child in [*dumps, late]:
            child.terminate()
            child.wait()
            self.assertIn(ARP_LINE, packets(file), file.name)
        for file, _ in dumps:
            done = bellrock("decode", "--json", str(file))
            self.assertEqual((done.returncode, done.stderr), (0, b""), file.name)
            types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
            self.assertEqual(types.count("hello"), 2, file.name)
            self.assertIn("features_reply", types)
        # A capture from the middle of the stream: a note reports it, and it is no error.
        done = bellrock("decode", str(late[0]))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(b"began before the capture", done.stdout)
        plain = dumps[0][0]
        packed = self.run_dir / "lo.pcapng.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        self.assertEqual(bellrock("decode", str(packed)).stdout, bellrock("decode", str(plain)).stdout)
        # No matching connection: no output, and a failure.
        done = bellrock("decode", "--port", "9", str(plain))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(f"{PORT} (".encode(), done.stderr)

    def test_ipv6_and_a_reader_that_leaves(self):
        """A channel over IPv6; `| head` ends quietly."""
        control = self.listen(f"[::1]:{PORT}")
        file, child = self.dump("v6.pcapng", "lo")
        self.bridge(f"[::1]:{PORT}", control)
        self.send_arp()
        until(lambda: ARP_LINE.encode() in bellrock("decode", str(file)).stdout, LIMIT_S, "the packet_in")
        child.terminate()
        child.wait()
        done = bellrock("decode", "--time", "absolute", "--connection", "::1", str(file))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout.decode(), rf"(?m)^20\d\d-\d\d-\d\dT\S+Z \[::1\]:\d+ -> \[::1\]:{PORT}: OFPT_HELLO ")
        pipe = f"{os.environ['BELLROCK_BIN']} decode {file} | head -n 1"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", pipe], capture_output=True, timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stderr, done.stdout.count(b"\n")), (0, b"", 1))

    def bridge(self, controller, control):
        command("ovs-vsctl", "add-br", "br7", "--", "set", "bridge", "br7", "datapath_type=netdev",
                "other-config:datapath-id=00000000000000a1", "--", "set-controller", "br7", f"tcp:{controller}")
        self.addCleanup(command, "ovs-vsctl", "del-br", "br7")
        up = lambda: b"00000000000000a1" in bellrock("switches", "--control", control).stdout
        until(up, LIMIT_S, "the bridge at its controller")

    def send_arp(self):
        command("ovs-ofctl", "packet-out", "br7", f"in_port=LOCAL packet={ARP} actions=CONTROLLER")

    def test_matches_read_as_ovs_ofctl_prints_them(self):
        """The match of each flow_mod among the vectors is that of `ovs-ofctl ofp-print`."""
        same = 0
        for path in sorted(VECTORS.glob("v1*/*.hex")):
            digits = "".join(line.split("#")[0] for line in path.read_text().splitlines()).replace(" ", "")
            if "flow_mod" not in path.name and "match" not in path.name or len(digits) > MAX_ARGUMENT_DIGITS:
                continue
            printed = command("ovs-ofctl", "ofp-print", digits).splitlines()[0]
            theirs = self.their_match(printed)
            if theirs is None or any(field.startswith(NICIRA) for field in theirs):
                continue
            ours = bellrock("decode", "-", input=digits.encode()).stdout.decode().splitlines()[0]
            found = OUR_MATCH.search(ours)
            self.assertEqual([field for field in found[1].split(",") if field], theirs, path.name)
            same += 1
        self.assertGreater(same, MIN_MATCHES)

    @staticmethod
    def their_match(line):
        """The fields between the command and the text after the match. None if the line is no flow_mod."""
        head, _, rest = line.partition(": ")
        if not head.startswith("OFPT_FLOW_MOD") or "decode error" in rest:
            return None
        for word in rest.split(" ")[1:]:
            name = re.match(r"[a-z_]*", word)[0]
            if word.startswith(("table:", "cookie:", "idle:", "hard:", "out_port:", "buf:", "importance:")):
                continue
            if word.startswith("actions=") or name in ("send_flow_rem", "check_overlap", "reset_counts"):
                return []
            return [field for field in word.split(",") if not field.startswith("priority=")]
        return []
