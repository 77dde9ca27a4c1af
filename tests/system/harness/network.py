"""Mininet networks on the test's own Open vSwitch.

Uses Mininet's Python API, never its `mn` command: `mn`, and above all `mn -c`, ends processes that are not its own.
"""

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import Host, OVSSwitch, RemoteController
from mininet.topo import Topo
from mininet.topolib import TreeTopo

from .openvswitch import command
from .waiting import until

CONNECT_LIMIT_S = 30
# Time from the connection until the controller knows the switch. No message to the switch shows it.
HANDSHAKE_S = 0.3
# Time limit of a lost ping. On these networks an answer takes milliseconds.
PING_WAIT_S = 1


class Attachment(RemoteController):
    """The address of the controller for the switches. Mininet's own class would first send a greeting of telnet
    there."""

    def __init__(self, name, ip, **params):
        # Mininet treats any address with a colon as one with a port.
        super().__init__(name, ip="127.0.0.1", **params)
        self.ip = ip

    def checkListening(self):
        pass


class QuietHost(Host):
    """A host that sends nothing on its own and computes its TCP checksums.

    Without IPv6 it does not solicit routers, so the controller sees only packets of the test. The datapath in user
    space takes frames unchanged: if checksums are left to a network card that does not exist, TCP does not work.
    """

    def config(self, **params):
        result = super().config(**params)
        self.cmd("sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        for interface in self.intfNames():
            self.cmd(f"ethtool -K {interface} tx off")
        return result


class Line(Topo):
    """Switches s1, s2, ... in a row. Each entry of `hosts` is the number of the switch of h1, h2, ..."""

    def build(self, switches=1, hosts=(1, 1)):
        for number in range(1, switches + 1):
            self.addSwitch(f"s{number}")
            if number > 1:
                self.addLink(f"s{number - 1}", f"s{number}")
        for index, number in enumerate(hosts, start=1):
            self.addLink(self.addHost(f"h{index}"), f"s{number}")


def tree():
    """Depth 2, fanout 3: four switches, nine hosts."""
    return TreeTopo(depth=2, fanout=3)


class Network:
    """A running Mininet whose switches speak one version, "OpenFlow10" or "OpenFlow13"."""

    def __init__(self, ovs, topology, version, controller_ip="127.0.0.1", port=6653, protocol="tcp"):
        setLogLevel("warning")
        # Mininet would raise limits of the whole machine, which the tests do not need.
        Mininet.inited = True
        # The interfaces of the switches must send nothing on their own either.
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
        self.ovs = ovs
        self.topology = topology
        self.version = version
        self.net = Mininet(topo=topology, host=QuietHost, controller=None, autoSetMacs=True, waitConnected=False,
                           switch=lambda name, **params: OVSSwitch(name, datapath="user", protocols=version, **params))
        self.net.addController("c0", controller=Attachment, ip=controller_ip, port=port, protocol=protocol)

    def start(self, connect=True):
        """Starts it. With `connect`, waits until the controller knows every switch."""
        self.net.start()
        if connect:
            self.await_connected()

    def stop(self):
        self.net.stop()

    def __getitem__(self, name):
        return self.net[name]

    @property
    def switches(self):
        return self.net.switches

    @property
    def hosts(self):
        return self.net.hosts

    def connected(self):
        """Whether every switch is connected to its controller."""
        return all(self.ovs.connected(switch.name) for switch in self.switches)

    def await_connected(self, limit_s=CONNECT_LIMIT_S):
        until(self.connected, limit_s, "every switch connected")
        if self.version == "OpenFlow13":
            # In 1.3 a switch sends packet-ins only after the controller has installed a table-miss entry.
            until(lambda: all(self.flows(switch.name) for switch in self.switches), limit_s, "a table-miss entry everywhere")
        time.sleep(HANDSHAKE_S)

    def flows(self, switch):
        """The flow entries of a switch, a line each, as ovs-ofctl prints them."""
        printed = command("ovs-ofctl", "-O", self.version, "dump-flows", switch)
        return [line.strip() for line in printed.splitlines() if "actions=" in line]

    def ping_all(self):
        """Mininet's pingall: every ordered pair, one after the other. Returns the loss in percent."""
        return self.net.pingAll(timeout=str(PING_WAIT_S))

    def unreachable(self, pairs=None):
        """Pings all ordered pairs of host names (or `pairs`) at once. Returns those without an answer."""
        if pairs is None:
            pairs = [(a.name, b.name) for a in self.hosts for b in self.hosts if a is not b]
        pings = [(pair, self[pair[0]].popen(["ping", "-n", "-q", "-c", "1", "-W", str(PING_WAIT_S), self[pair[1]].IP()],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                 for pair in pairs]
        return [pair for pair, ping in pings if ping.wait() != 0]

    def seconds_until_reachable(self, limit_s):
        """Pings all pairs until a round loses nothing. Returns the time that took, at most `limit_s`."""
        began = time.monotonic()
        missing = None
        while time.monotonic() - began < limit_s:
            missing = self.unreachable()
            if not missing:
                return time.monotonic() - began
        raise AssertionError(f"after {limit_s} s without an answer: {missing}")


class Pings:
    """A running `ping` of one host to another. It prints to a file: a pipe that nobody reads would stop it when it is full."""

    ANSWER = re.compile(r"^\[(\d+\.\d+)\] .*icmp_seq=(\d+).* time=([\d.]+) ms", re.MULTILINE)

    def __init__(self, source, target, interval_s, count=None):
        self.interval_s = interval_s
        words = ["ping", "-n", "-D", "-i", str(interval_s), "-W", str(PING_WAIT_S), target.IP()]
        self.name = f"{source.name} -> {target.name}"
        self.printed = tempfile.TemporaryFile("w+")
        self.process = source.popen(words[:1] + (["-c", str(count)] if count else []) + words[1:],
                                    stdout=self.printed, stderr=subprocess.STDOUT)
        self.answers = None

    def wait(self, limit_s):
        """For pings with a count: waits until all were sent, and returns their answers."""
        self.process.wait(limit_s)
        return self._read()

    def go_on(self, limit_s):
        """Waits for an answer that arrives after this call."""
        now = time.time()
        until(lambda: self._read()[-1:] and self.answers[-1][0] > now, limit_s, f"{self.name} goes on")

    def finish(self):
        """Ends it. Returns [(time of arrival, s since the epoch; sequence number from 1; round trip, ms)]."""
        self.process.send_signal(signal.SIGINT)
        return self.wait(5)

    def lost(self):
        """Numbers of the pings before the last answer that had none. Later ones may be under way."""
        answered = {sequence for _, sequence, _ in self.answers}
        return [sequence for sequence in range(1, max(answered)) if sequence not in answered]

    def _read(self):
        # Reading must not move the position, which is ping's too.
        printed = os.pread(self.printed.fileno(), os.fstat(self.printed.fileno()).st_size, 0).decode()
        self.answers = [(float(at), int(sequence), float(ms)) for at, sequence, ms in self.ANSWER.findall(printed)]
        return self.answers
