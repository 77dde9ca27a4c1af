"""A host moves while other hosts send to it.

The host has two interfaces from the start. It moves when its MAC and IP address move from the first to the second. The
first either goes down, or keeps its port up silently with another MAC address. Its peers ping it all the time. ARP
entries are static, so that the tests time the controller, not ARP.
"""

import re
import time
from pathlib import Path

from mininet.topo import Topo

from harness import announce
from harness.case import SystemTest, on_both_versions
from harness.network import Pings
from harness.waiting import until

PING_INTERVAL_S = 0.05
# Time that the peers ping before the move, and time that the moved host stays silent after it.
SETTLE_S = 1.0
SILENCE_S = 0.4
# Time that the pings continue when the host must be reachable again. None may be lost.
STEADY_S = 1.0
# Time limit after the controller has seen the move. On an idle machine it takes some milliseconds. Without the event the
# flows would stay for their idle timeout, a minute.
PROMPT_S = 4.0
HARD_TIMEOUT_S = 2
MAX_AGE_S = 2
# Open vSwitch looks for expired flows about once a second; so does the controller for aged hosts.
EXPIRY_S = 3.0
# The address of the old interface, when its port must stay up without the host's address.
STRANGER = "02:00:00:00:00:99"
MOVING_MAC = "02:00:00:00:00:01"


class Branches(Topo):
    """h1 with one interface at s1 and another at the last switch; h2 at s1; h3 at the last switch."""

    def build(self, switches=1):
        names = [self.addSwitch(f"s{number}") for number in range(1, switches + 1)]
        for one, next_one in zip(names, names[1:]):
            self.addLink(one, next_one)
        moving = self.addHost("h1", mac=MOVING_MAC)
        for place in (names[0], names[-1]):
            self.addLink(moving, place)
        self.addLink(self.addHost("h2"), names[0])
        self.addLink(self.addHost("h3"), names[-1])


class MovingHost:
    """The host h1 moves from its first interface to its second."""

    def prepare_hosts(self):
        self.host, self.peers = self.net["h1"], [self.net["h2"], self.net["h3"]]
        # An interface answers ARP only for its own address, not for that of the other interface.
        self.host.cmd("sysctl -q -w net.ipv4.conf.all.arp_ignore=1")
        self.assertEqual(self.net.unreachable([("h2", "h1"), ("h3", "h1")]), [])
        self.net.net.staticArp()
        self.pings = [Pings(peer, self.host, PING_INTERVAL_S) for peer in self.peers]
        time.sleep(SETTLE_S)

    def move(self, old_port_stays_up):
        old, new = self.host.intfNames()
        ip = self.host.IP()
        self.host.cmd(f"ip addr flush dev {old}")
        self.host.cmd(f"ip link set {old} " + (f"address {STRANGER}" if old_port_stays_up else "down"))
        self.host.cmd(f"ip link set {new} address {MOVING_MAC} && ip addr add {ip}/8 dev {new}")
        for peer in self.peers:
            self.host.cmd(f"ip neigh replace {peer.IP()} lladdr {peer.MAC()} dev {new}")
        moved_at = time.time()
        time.sleep(SILENCE_S)
        return moved_at

    def speak(self, broadcast):
        """Sends the moved host's first packet. Returns the time."""
        at = time.time()
        if broadcast:
            new = self.host.intfNames()[1]
            printed = self.host.cmd(f"/usr/bin/python3 {Path(announce.__file__)} {new} {MOVING_MAC} {self.host.IP()}")
            self.assertEqual(printed, "", "sending a gratuitous ARP")
        else:
            # Only the packet matters. It need not be answered.
            self.host.cmd(f"ping -n -c 1 -W 0.1 {self.peers[0].IP()}")
        return at

    def assert_back(self, spoke_at, limit_s):
        """All pings are answered again from `limit_s` after `spoke_at` at the latest, without a loss."""
        time.sleep(limit_s + STEADY_S)
        for pings in self.pings:
            answers = pings.finish()
            self.assertGreater(len([at for at, _, _ in answers if at < spoke_at]), 5, f"{pings.name} before the move")
            after = [(at - ms / 1000, sequence) for at, sequence, ms in answers if at - ms / 1000 >= spoke_at]
            self.assertTrue(after, f"{pings.name} got no answer after the move")
            self.assertLessEqual(after[0][0] - spoke_at, limit_s, f"{pings.name}: seconds until it was answered again")
            sequences = [sequence for _, sequence in after]
            self.assertEqual(sequences, list(range(sequences[0], sequences[-1] + 1)), f"{pings.name} lost some again")
            self.assertGreater(after[-1][0] - spoke_at, limit_s + STEADY_S / 2, f"{pings.name} stopped being answered")

    def assert_silent(self, moved_at, until_at):
        """No ping was answered between these times. Otherwise the host was never unreachable."""
        for pings in self.pings:
            sent = [at - ms / 1000 for at, _, ms in pings.answers]
            self.assertEqual([at for at in sent if moved_at <= at < until_at], [], f"{pings.name} while the host was silent")


class Moves(MovingHost, SystemTest):
    """In a row of switches, with the app `learning`."""

    def prepare(self, version, switches, config=None):
        self.controller(config=config)
        self.net = self.network(Branches(switches=switches), version)
        self.prepare_hosts()

    def flows_at_old_port(self):
        """The flows of s1 that match on the host's old port or output to it."""
        link = self.host.intf(self.host.intfNames()[0]).link
        end = link.intf1 if link.intf1.node is not self.host else link.intf2
        port = end.node.ports[end]
        words = re.compile(rf"in_port=\"?({port}|{end.name})\"?\b|output:\"?({port}|{end.name})\"?(,|$)")
        return [flow for flow in self.net.flows("s1") if words.search(flow)]

    def flows_of_pings(self):
        """The flows of s1 to or from the host."""
        return [flow for flow in self.net.flows("s1") if f"dl_src={MOVING_MAC}" in flow or f"dl_dst={MOVING_MAC}" in flow]

    @on_both_versions
    def to_another_port(self, version):
        """Same switch, old port still up: reachable promptly after the host's first packet, a unicast one."""
        self.prepare(version, switches=1)
        moved_at = self.move(old_port_stays_up=True)
        spoke_at = self.speak(broadcast=False)
        self.assert_back(spoke_at, PROMPT_S)
        self.assert_silent(moved_at, spoke_at)

    @on_both_versions
    def to_another_port_link_down(self, version):
        """Same switch, old link down: reachable within a second of that, although the host sends nothing by itself.

        Its peers continue to send to its address, so no flow to the old port ends by idle timeout. Only the event of
        the port removes them. Then the packets are flooded and reach the host.
        """
        self.prepare(version, switches=1)
        self.assertNotEqual(self.flows_at_old_port(), [], "flows to the host")
        self.move(old_port_stays_up=False)
        # The new interface came up within the silence at the end of move().
        self.assert_back(time.time() - SILENCE_S, PROMPT_S)
        self.assertEqual(self.flows_at_old_port(), [])

    @on_both_versions
    def to_another_switch_link_down(self, version):
        """The old link goes down: its flows are removed, and the host is reachable within a second of its first
        broadcast."""
        self.prepare(version, switches=2)
        self.assertNotEqual(self.flows_at_old_port(), [], "flows to the host")
        self.move(old_port_stays_up=False)
        until(lambda: not self.flows_at_old_port(), PROMPT_S - SILENCE_S, "flows of the port that is down removed")
        spoke_at = self.speak(broadcast=True)
        self.assert_back(spoke_at, PROMPT_S)

    @on_both_versions
    def to_another_switch_port_up(self, version):
        """The old port stays up: reachable within the hard timeout of the flows.

        The host's broadcast reaches every switch at once, so it would be reachable without a timeout too. So the test
        asks the switch for the timeout, which matters to switches that miss the broadcast: under steady traffic no flow
        gets older.
        """
        self.prepare(version, switches=2, config={"apps": [{"learning": {"hard_timeout": HARD_TIMEOUT_S}}]})
        self.assertNotEqual(self.flows_of_pings(), [], "flows to the host")
        moved_at = self.move(old_port_stays_up=True)
        spoke_at = self.speak(broadcast=True)
        self.assert_back(spoke_at, HARD_TIMEOUT_S + EXPIRY_S)
        self.assert_silent(moved_at, spoke_at)
        for flow in self.flows_of_pings():
            self.assertIn(f"hard_timeout={HARD_TIMEOUT_S},", flow)
            self.assertLess(float(re.search(r"duration=([\d.]+)s", flow)[1]), HARD_TIMEOUT_S + EXPIRY_S, flow)

    @on_both_versions
    def to_another_switch_unheard(self, version):
        """As before, but the host sends only to h3, so the old switch sees nothing: reachable when its entry is too
        old.

        A hard timeout alone is not enough: a flow that ended would be installed again from the table of hosts.
        """
        settings = {"hard_timeout": HARD_TIMEOUT_S, "max_age": MAX_AGE_S}
        self.prepare(version, switches=2, config={"apps": [{"learning": settings}]})
        moved_at = self.move(old_port_stays_up=True)
        spoke_at = time.time()
        # Until h2's own packets are flooded to the host, and it answers them.
        talk = Pings(self.host, self.peers[1], PING_INTERVAL_S)
        self.assert_back(spoke_at, MAX_AGE_S + EXPIRY_S)
        self.assertGreater(len(talk.finish()), 0, "answers of h3")
        self.assert_silent(moved_at, spoke_at)
