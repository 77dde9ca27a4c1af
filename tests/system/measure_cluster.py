"""How fast a cluster is: times from `kill -9` of a node until others have its switches, and packets lost meanwhile.

    sudo tests/system/run --measure cluster

MEASURE_FAILOVERS is the number of nodes that are killed one after the other, MEASURE_SWITCHES that of emulated switches,
and MEASURE_HOSTS that of hosts that a joining node learns.
"""

import datetime
import math
import os
import re
import statistics
import subprocess
import sys
import time

from test_hitless import Stream, assert_nothing_lost

from harness import announce
from harness.cluster import LIMIT_S, NAMES, PORT, ClusterTest
from harness.controller import without_own_variables
from harness.elections import MASTER, Elections
from harness.network import Line
from harness.waiting import until

FAILOVERS = int(os.environ.get("MEASURE_FAILOVERS", "100"))
SWITCHES = int(os.environ.get("MEASURE_SWITCHES", "1000"))
HOSTS = int(os.environ.get("MEASURE_HOSTS", "100000"))
# Ports that the hosts are at, and hosts that each announces in a second: fewer than host tracking looks at.
HOST_PORTS = 12
HOSTS_PER_S = 100
# Part of the hosts that must be known: a packet may be lost.
KNOWN_PART = 0.95
FAILOVER_LIMIT_S = 60
SCALE_LIMIT_S = 300
DATAGRAM_S = 0.001
DATAGRAM_KILLS = 5
# Time over which datagrams are sent before and after a kill.
AROUND_S = 1
MASTERED = re.compile(r"^(\S+Z) +INFO switch up dpid=(\S+)", re.MULTILINE)


def seconds(text):
    """Seconds since the epoch of a time of a log."""
    return datetime.datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=datetime.timezone.utc).timestamp()


class TimedElections(Elections):
    """Remembers when each node's messages were obeyed first since `since`."""

    def __init__(self, log, owners):
        super().__init__(log, owners)
        self.since = 0.0
        self.first = {}

    def _change(self, owner, key, text):
        super()._change(owner, key, text)
        at = seconds(self.time)
        if text.startswith("OFPT_FLOW_MOD") and self.roles[owner] == MASTER and at >= self.since:
            self.first.setdefault(owner, at)


class Measurement(ClusterTest):
    """Writes a result, which the runner prints."""

    def report(self, text):
        with open(self.logs / "result.txt", "a", encoding="utf-8") as result:
            print(text, file=result)


class Failover(Measurement):
    """From `kill -9` of a switch's master to the first flow_mod that the switch accepts of the next one."""

    time_limit_s = 120 + FAILOVERS * FAILOVER_LIMIT_S

    def test_failover(self):
        self.attach(Line(hosts=(1, 1)))
        self.elections = TimedElections(self.ovs.log, self.elections.owners)
        self.reach()
        times = []
        for _ in range(FAILOVERS):
            self.settle()
            lost = self.masters()["s1"]
            self.elections.first.clear()
            # The log has milliseconds, and no more.
            self.elections.since = killed = time.time()
            self.elections.since -= 0.001
            self.nodes[lost].kill()

            def obeyed(lost=lost):
                self.elections.update()
                return [at for (_, node), at in self.elections.first.items() if node != lost]
            times.append(min(until(obeyed, LIMIT_S, "another node's flow_mod is accepted")) - killed)
            self.nodes[lost].start()
        times.sort()
        p99 = times[math.ceil(0.99 * len(times)) - 1]
        self.report(f"failover, {len(times)} times: p50 {statistics.median(times) * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, "
                    f"maximum {times[-1] * 1000:.0f} ms")


class Scale(Measurement):
    """Emulated switches, all of which obey one node. It is killed."""

    time_limit_s = 120 + 2 * SCALE_LIMIT_S

    def test_scale(self):
        nodes = self.nodes
        for name in ("b", "c"):
            nodes[name].ask("cluster", "drain")
        targets = [word for node in nodes.values() for word in ("-c", f"{node.machine.address}:{PORT}")]
        emulator = subprocess.Popen([nodes["a"].binary, "emulate", "-t", f"linear:{SWITCHES}", "--version", "1.3", "--wait",
                                     "120s", *targets], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                    stderr=open(self.logs / "emulator.log", "wb"), env=without_own_variables())
        self.addCleanup(emulator.wait)
        self.addCleanup(emulator.kill)

        def masters(name):
            return [row["obeys"] for row in nodes[name].ask("cluster", "--switches")]
        until(lambda: masters("b") == ["a"] * SWITCHES, SCALE_LIMIT_S, "all switches obey node a", 1.0)
        time.sleep(AROUND_S)
        for name in ("b", "c"):
            nodes[name].ask("cluster", "drain", "--undo")
        killed = time.time()
        nodes["a"].kill()

        def taken():
            found = {}
            for name in ("b", "c"):
                for at, dpid in MASTERED.findall(nodes[name].text()):
                    if seconds(at) >= killed:
                        found.setdefault(dpid, seconds(at) - killed)
            return found if len(found) == SWITCHES else None
        found = sorted(until(taken, SCALE_LIMIT_S, "all switches have another master", 0.5).values())
        self.report(f"takeover of {SWITCHES} switches: the first after {found[0] * 1000:.0f} ms, half after "
                    f"{statistics.median(found) * 1000:.0f} ms, all after {found[-1] * 1000:.0f} ms")


class Datagrams(Measurement):
    """Datagrams over established flows, while masters are killed."""

    time_limit_s = 300

    def test_datagrams(self):
        self.attach(Line(switches=3, hosts=(1, 3)))
        self.reach()
        self.net.net.staticArp()
        stream = Stream(self.net["h1"], self.net["h2"], DATAGRAM_S)
        for _ in range(DATAGRAM_KILLS):
            time.sleep(AROUND_S)
            lost = self.masters()["s1"]
            self.nodes[lost].kill()
            self.await_masters(self.others(lost))
            time.sleep(AROUND_S)
            self.nodes[lost].start()
            self.settle()
        finish, ended = stream.finish, []

        def once():
            ended.append(finish())
            return ended[0]
        stream.finish = once
        assert_nothing_lost(self, [stream])
        sent, received, _ = ended[0]
        rate = 1 / DATAGRAM_S
        self.report(f"{DATAGRAM_KILLS} kills under {rate:.0f} datagrams a second: {sent} sent, {received} received")


class Joining(Measurement):
    """A node that starts while the others know many hosts."""

    time_limit_s = 600
    settings = {"services": "hosts", "max_hosts": 2 * HOSTS, "max_hosts_per_port": HOSTS, "host_max_age": "3600 s"}

    def test_joining(self):
        self.attach(Line(switches=3, hosts=tuple(1 + port % 3 for port in range(HOST_PORTS))))
        each = HOSTS // HOST_PORTS + 1
        announcers = [host.popen([sys.executable, announce.__file__, f"{host.name}-eth0", f"06:00:00:{number:02x}:00:00",
                                  f"100.{number}.0.0", str(each), str(HOSTS_PER_S)])
                      for number, host in enumerate(self.net.hosts)]
        for announcer in announcers:
            self.assertEqual(announcer.wait(), 0)

        def hosts(name):
            try:
                return self.nodes[name].ask("status")["hosts"]
            except AssertionError:
                return 0  # It does not answer yet.
        until(lambda: min(map(hosts, NAMES)) >= KNOWN_PART * HOSTS, LIMIT_S, f"all know {HOSTS} hosts", 0.5)
        self.nodes["c"].kill()
        self.await_masters(("a", "b"))
        began = time.monotonic()
        self.nodes["c"].start()
        started = time.monotonic() - began
        until(lambda: hosts("c") >= min(hosts("a"), hosts("b")), LIMIT_S, "the new node knows them too", 0.05)
        self.report(f"{hosts('c')} hosts are known to a node {time.monotonic() - began:.1f} s after its start, which took "
                    f"{started:.1f} s until it listened")
