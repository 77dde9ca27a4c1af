"""Ryu's applications without a REST interface, unchanged: spanning tree, link aggregation, multicast, and those on emulated switches.
Then those that do not run, each with its reason."""

import os
import re
import signal
import socket
import struct
import subprocess
import sys

from harness.controller import LOOPBACK
from harness.network import Line
from harness.openvswitch import command
from harness.osken import LIMIT_S, OWN, V10, V13, OsKenTest, Program, runs
from harness.osken_page import REFUSED
from harness.topologies import Ring
from harness.waiting import until

NOBODY = "tcp:127.0.0.1:1"
GROUP, GROUP_MAC, PORT = "225.0.0.1", "dl_dst=01:00:5e", 5000
# Joins the group until it is ended, and prints what arrives.
MEMBER = f"""
import socket
member = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
member.bind(("", {PORT}))
member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("{GROUP}") + socket.inet_aton("10.0.0.2"))
print(member.recv(100).decode(), flush=True)
member.recv(100)
"""
SENDER = f"""
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.0.0.1"))
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
sender.sendto(b"to the group", ("{GROUP}", {PORT}))
"""
PORT_STATE = re.compile(r"dpid=(\w+): \[port=(\d+)\] (\w+) +/ (\w+)")
BMP_PORT, BMP_VERSION, BMP_INITIATION, BMP_NAME = 11019, 3, 4, 2
EMULATE_LIMIT_S = 60


class Apps(OsKenTest):
    """One process of osken-manager each, or a few."""

    time_limit_s = 240

    @runs("simple_switch_stp_13",
          what="A ring of three switches: one port blocks, all hosts ping each other, and again after a port of the tree is gone")
    def test_simple_switch_stp_13(self):
        """As it is, with shorter timers of the library."""
        program = self.run_programs("eventlet", OWN / "fast_stp.py", "ryu.app.simple_switch_stp_13")
        network = self.network(Ring(switches=3), V13, connect=False)

        def states():
            found = PORT_STATE.findall(program.text())
            return {(int(dpid, 16), int(port)): (role, state) for dpid, port, role, state in found}

        def settled(forwarding):
            return sorted(state for _, state in states().values()) == ["BLOCK"] * (9 - forwarding) + ["FORWARD"] * forwarding

        # Each switch has a port to its host and two to the others.
        until(lambda: settled(8), LIMIT_S, "one port that blocks, and eight that forward")
        [(blocked, role)] = [(port, role) for port, (role, state) in states().items() if state == "BLOCK"]
        self.assertEqual(role, "NON_DESIGNATED_PORT")
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts reach each other")
        [root] = [port for port, (role, _) in states().items() if role == "ROOT_PORT" and port[0] == blocked[0]]
        # The interface stays up: the application sets ports up again.
        command("ovs-vsctl", "del-port", f"s{root[0]}", f"s{root[0]}-eth{root[1]}")
        until(lambda: states()[blocked] == ("ROOT_PORT", "FORWARD"), LIMIT_S, "the blocked port is the way to the root")
        until(lambda: not network.unreachable(), LIMIT_S, "all hosts reach each other again")
        # It would answer ports that the end of the network takes away.
        self._end(program)

    @runs("simple_switch_lacp_13", what="Two links to an Open vSwitch with LACP: both are used, and one when the other is down")
    def test_simple_switch_lacp_13(self):
        """The other end is a bond of a second bridge."""
        program = self.run_programs("eventlet", "ryu.app.simple_switch_lacp_13")
        network = self.network(Line(hosts=()), V13, connect=False)
        for number in (1, 2):
            command("ip", "link", "add", f"near{number}", "type", "veth", "peer", "name", f"far{number}")
            for end in ("near", "far"):
                command("ip", "link", "set", f"{end}{number}", "up")
            command("ovs-vsctl", "add-port", "s1", f"near{number}", "--", "set", "interface", f"near{number}", f"ofport_request={number}")
        network.await_connected()
        command("ovs-vsctl", "add-br", "lag", "--", "set", "bridge", "lag", "datapath_type=netdev", "--",
                "add-bond", "lag", "bond", "far1", "far2", "lacp=active", "other_config:lacp-time=fast")
        self.logged(program, "slave state changed port: 1 enabled: True", "slave state changed port: 2 enabled: True")
        until(lambda: "negotiated" in command("ovs-appctl", "lacp/show", "bond"), LIMIT_S, "the partner has negotiated")
        command("ip", "link", "set", "far2", "down")
        self.logged(program, "slave state changed port: 2 enabled: False")

    @runs("simple_switch_igmp_13",
          what="One switch asks for members of groups, the next listens; a host that joins gets what is sent to the group, until it leaves")
    def test_simple_switch_igmp_13(self):
        """A member and a sender."""
        program = self.run_programs("eventlet", "ryu.app.simple_switch_igmp_13")
        network = self.network(Line(switches=2, hosts=(1, 2)), V13)
        self.logged(program, "started a querier.")
        # The querier asks when its switch comes, and then once a minute. The other switch must be there to see it.
        command("ovs-vsctl", "set-controller", "s1", NOBODY)
        self.logged(program, "stopped a querier.")
        command("ovs-vsctl", "set-controller", "s1", f"tcp:{LOOPBACK}")
        self.logged(program, "SW=0000000000000002 PORT=1 IGMP received. [QUERY]")
        sender, member = network["h1"], network["h2"]
        # The library knows version 2.
        member.cmd("sysctl -w net.ipv4.conf.all.force_igmp_version=2")
        joined = member.popen([sys.executable, "-c", MEMBER], stdout=subprocess.PIPE, text=True)
        self.addCleanup(joined.kill)
        self.logged(program, f"Multicast Group Added: [{GROUP}] querier:[1] hosts:[]",
                    f"Multicast Group Member Changed: [{GROUP}] querier:[1] hosts:[2]")
        until(lambda: all(any(f"nw_dst={GROUP}" in flow or GROUP_MAC in flow for flow in network.flows(name)) for name in ("s1", "s2")),
              LIMIT_S, "flows of the group")
        sender.cmd(sys.executable, "-c", f"'{SENDER}'")
        self.assertEqual(joined.stdout.readline(), "to the group\n")
        joined.kill()
        joined.wait()
        self.logged(program, f"Multicast Group Removed: [{GROUP}]")

    @runs("cbench", what="A flow for each packet-in")
    def test_cbench(self):
        """One ping."""
        self.run_programs("eventlet", "ryu.app.cbench")
        network = self.network(Line(), V10)
        self.assertNotEqual(network.unreachable([("h1", "h2")]), [])
        until(lambda: network.flows("s1"), LIMIT_S, "its flow")

    @runs("bmpstation", what="Writes what a BGP router reports; it must be the only app, since it takes no contexts")
    def test_bmpstation(self):
        """A report of a router that starts."""
        output = self.run_dir / "bmp.log"
        os.environ |= {"OSKEN_BMP_OUTPUT_FILE": str(output), "OSKEN_BMP_FAILED_DUMP": str(self.run_dir / "bmp.dump")}
        program = self.run_programs("eventlet", "ryu.app.bmpstation", port=BMP_PORT)
        name = struct.pack("!HH", BMP_NAME, 6) + b"router"
        with socket.create_connection(("127.0.0.1", BMP_PORT), LIMIT_S) as station:
            station.sendall(struct.pack("!BIB", BMP_VERSION, 6 + len(name), BMP_INITIATION) + name)
            until(lambda: "router" in output.read_text(), LIMIT_S, "the report in its file")
        self.assertFalse(program.died())

    @runs("example_switch_13", what="Learns addresses on four switches")
    @runs("simple_switch", "example_switch_13", "ofctl_rest", what="On emulated switches (`bellrock emulate`)")
    def test_on_emulated_switches(self):
        """Four switches and nine hosts."""
        for version, app in (("1.0", "simple_switch"), ("1.3", "example_switch_13")):
            program = self.run_programs("eventlet", f"ryu.app.{app}", "ryu.app.ofctl_rest")
            words = [program.binary, "emulate", "--controller", LOOPBACK, "--version", version, "--topology", "tree:2,3"]
            emulated = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.addCleanup(emulated.kill)
            until(lambda: len(self.rest("/stats/switches")) == 4, LIMIT_S, "four switches")
            for dpid in self.rest("/stats/switches"):
                for kind in ("desc", "table", "port", "portdesc"):
                    self.assertTrue(self.rest(f"/stats/{kind}/{dpid}")[str(dpid)], (kind, dpid))
            emulated.stdin.write("pingall\n")
            emulated.stdin.flush()
            until(lambda: all(self.rest(f"/stats/flow/{dpid}")[str(dpid)] for dpid in range(1, 5)), LIMIT_S, "flows of the application")
            output, _ = emulated.communicate(timeout=EMULATE_LIMIT_S)
            self.assertEqual(emulated.returncode, 0, output)
            self.assertEqual(program.stop(signal.SIGINT), 0)

    def test_those_of_other_versions_do_not_start(self):
        """With the reason."""
        for app in REFUSED:
            program = Program(self.logs, self.run_dir, "eventlet", [f"ryu.app.{app}"])
            done = subprocess.run(program.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("the apps want other versions than OpenFlow 1.0 and 1.3", done.stdout)
