"""Faults of machines, disks, clocks and etcd, under three nodes. The switches obey one node at any time, established flows
lose nothing, and all is well again when the fault is over."""

import datetime
import re
import shutil
import time
from pathlib import Path

from test_hitless import assert_nothing_lost

from harness.cluster import LIMIT_S, NAMES, ClusterTest
from harness.machines import Machines, run
from harness.openvswitch import command
from harness.slow import SlowWay
from harness.waiting import until

# Time in which a wrong takeover would happen: five times the silence after which a node is suspected.
QUIET_S = 1.5
FLOW_S = 2
# A switch of another cluster: its datapath id, and the number of its address of each node.
OTHER_SWITCH, OTHER_NUMBER = "00000000000003e9", 9


class Faults(ClusterTest):
    """Packets flow between the hosts all the time."""

    time_limit_s = 240

    def begin(self):
        self.attach()
        self.streams = self.flow()
        self.began = time.monotonic()

    def end(self):
        self.settle()
        self.reach()
        # Fewer datagrams would prove nothing.
        until(lambda: time.monotonic() > self.began + FLOW_S, LIMIT_S, "the streams flow for some time")
        assert_nothing_lost(self, self.streams)

    def reachable(self):
        """By node, whether etcd serves it."""
        return {name: node.ask("cluster")["store"]["reachable"] for name, node in self.nodes.items()
                if node.process is not None}

    def move(self, to=None):
        """Moves the first switch, which needs etcd."""
        master = self.masters()["s1"]
        to = to or self.others(master)[0]
        self.order_move(master, to)
        until(lambda: self.masters().get("s1") == to, LIMIT_S, f"the switch is moved to {to}")
        self.settle()

    def replace_master(self):
        """Kills the master of the first switch. The others take over."""
        lost = self.masters()["s1"]
        self.nodes[lost].kill()
        self.await_masters(self.others(lost))
        self.reach()
        return self.nodes[lost]


class Machine(Faults):
    """A machine loses its power, or its clock is wrong."""

    def test_a_master_and_the_leader_of_etcd_lose_power(self):
        """Nothing is closed or reset. The others take over before etcd has a leader again, and write then."""
        self.begin()
        leader, lost = self.etcd.leader(), self.masters()["s1"]
        for machine in (self.members[leader], self.nodes[lost].machine):
            Machines.unplug(machine)
        self.etcd.kill(leader)
        self.nodes[lost].kill()
        self.await_masters(self.others(lost))
        self.reach()
        until(lambda: all(self.reachable().values()), LIMIT_S, "etcd serves the others")

        def written():
            rows = self.nodes[self.others(lost)[0]].ask("cluster", "--switches")
            return all(row["masters"][0] != lost for row in rows)
        until(written, LIMIT_S, "the records follow")
        for machine in (self.members[leader], self.nodes[lost].machine):
            Machines.plug(machine)
        self.etcd.start_member(leader)
        self.nodes[lost].start()
        self.end()


class Clocks(Faults):
    """The clocks of machines are set. Nodes have no time of the day in common."""

    def clock(self, name):
        return self.run_dir / f"clock-{name}"

    def environment(self, machine):
        self.set_clock(machine.name, "+0")
        return {"LD_PRELOAD": str(next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_TIMESTAMP_FILE": str(self.clock(machine.name))}

    def set_clock(self, name, offset):
        self.clock(name).write_text(offset + "\n")

    def logs_at(self, node, offset):
        """Whether a node's log has lines of that day."""
        day = datetime.datetime.now(datetime.timezone.utc) + offset
        return any(line.startswith(day.strftime("%Y-%m-%dT%H")) for line in node.text().splitlines())

    def test_clocks_are_set_while_nodes_run(self):
        """By days, each node's to another side. Nothing happens, and then a takeover goes on as ever."""
        self.begin()
        before = self.masters()
        for name, offset in zip(NAMES, ("+9d", "-400d", "+0")):
            self.set_clock(name, offset)
        self.keeps_its_masters(before, QUIET_S)
        self.assertEqual(set(self.reachable().values()), {True})
        self.nodes["a"].ask("cluster", "drain")
        self.nodes["a"].ask("cluster", "drain", "--undo")
        self.assertTrue(self.logs_at(self.nodes["a"], datetime.timedelta(days=9)), "its clock was set")
        self.replace_master()
        for name in NAMES:
            self.set_clock(name, "+0")
        for node in self.nodes.values():
            if node.process is None:
                node.start()
        self.end()

    def test_a_node_starts_with_a_wrong_clock(self):
        """No certificate is valid then: it says so and stands by, until its clock is right."""
        self.begin()
        node = self.replace_master()
        self.set_clock(node.name, "-400d")
        node.start()
        until(lambda: re.search("certificate.*(valid|expired)", node.text(), re.IGNORECASE), LIMIT_S, "it says why")
        self.keeps_its_masters(self.masters(), QUIET_S)
        self.assertFalse(node.is_serving())
        self.set_clock(node.name, "+0")
        self.end()


class Disks(Faults):
    """Disks are full."""

    etcd_options = ("--quota-backend-bytes", str(16 << 20))

    def disk(self, folder, size):
        """A small disk there."""
        folder.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder))

    @staticmethod
    def fill(folder):
        with open(folder / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(1 << 16)):
                    pass
            except OSError:
                return

    def test_the_database_of_etcd_is_full(self):
        """etcd refuses large values (its alarm NOSPACE). Takeovers and moves go on, and so after what an operator does."""
        self.begin()

        def fill():
            for number in range(1000):
                try:
                    self.etcd.ask("put", f"/others/{number}", text="x" * (200 << 10))
                except AssertionError as error:
                    if "space exceeded" in str(error):
                        return True
                    raise
            return False
        self.assertTrue(fill(), "etcd is full")
        self.assertIn("NOSPACE", self.etcd.ask("alarm", "list"))
        self.replace_master().start()
        self.settle()
        self.move()
        self.etcd.ask("del", "--prefix", "/others/")
        revision = re.search(r'"revision":(\d+)', self.etcd.ask("endpoint", "status", "--write-out=json"))[1]
        self.etcd.ask("compact", revision)
        for member in range(len(self.members)):
            self.etcd.ask("defrag", member=member)
        self.etcd.ask("alarm", "disarm")
        self.settle()
        self.move()
        self.end()

    def test_the_disk_of_a_log_is_full(self):
        """A node cannot write its log, and goes on without."""
        self.begin()
        node = self.nodes[self.masters()["s1"]]
        node.kill()
        folder = self.run_dir / "small"
        self.disk(folder, "256k")
        whole, node.log = node.log, folder / "controller.log"
        node.start()
        self.settle()
        self.fill(folder)
        size = node.log.stat().st_size
        # Each of these writes lines.
        for _ in range(20):
            node.ask("cluster", "drain")
            node.ask("cluster", "drain", "--undo")
        if self.masters()["s1"] != node.name:
            self.move(node.name)
        self.assertFalse(node.died())
        self.assertLess(node.log.stat().st_size - size, 4096, "the disk is full")
        (folder / "filler").unlink()
        self.end()
        node.ask("cluster", "drain", "--undo")
        until(lambda: node.log.stat().st_size > size, LIMIT_S, "it writes its log again")
        whole.write_text(whole.read_text() + node.text())

    def test_the_disk_of_a_member_of_etcd_is_full(self):
        """That member ends. The others go on, and it comes back."""
        self.begin()
        leader = self.etcd.leader()
        folder = self.run_dir / "small"
        # Its log has 64 MB from the beginning.
        self.disk(folder, "140m")
        self.etcd.kill(leader)
        shutil.copytree(self.etcd.folders[leader], folder / "etcd")
        (folder / "etcd").chmod(0o700)
        self.etcd.folders[leader] = folder / "etcd"
        self.etcd.start_member(leader)
        until(self.etcd.is_healthy, LIMIT_S, "etcd has a leader")
        self.settle()
        self.fill(folder)
        for number in range(40):
            self.etcd.put(f"/others/{number}", "x" * (200 << 10), member=(leader + 1) % 3)
        until(lambda: self.etcd.processes[leader].poll() is not None, LIMIT_S, "the member ends: it cannot write")
        self.move()
        self.replace_master().start()
        self.settle()
        (folder / "filler").unlink()
        self.etcd.start_member(leader)
        until(self.etcd.is_healthy, LIMIT_S, "etcd has all its members")
        self.end()


class SlowEtcd(Faults):
    """etcd answers late."""

    FIRST_PORT = 12379

    def setUp(self):
        self.ways = []
        super().setUp()

    def endpoints(self, _machine):
        if not self.ways:
            self.ways = [SlowWay(self.FIRST_PORT + number, (member.address, 2379))
                         for number, member in enumerate(self.members)]
            for way in self.ways:
                self.addCleanup(way.close)
        return [f"http://{self.machines.switches.address}:{self.FIRST_PORT + number}" for number in range(len(self.ways))]

    def late(self, seconds):
        for way in self.ways:
            way.delay_s = seconds

    def test_etcd_answers_late(self):
        """By a tenth of a second: all works. By seconds: it counts as gone, and takeovers go on without it."""
        self.begin()
        self.late(0.1)
        self.move()
        self.late(3.0)
        before = self.masters()
        until(lambda: not any(self.reachable().values()), LIMIT_S, "the nodes do not rely on it")
        self.assertEqual(self.masters(), before)
        lost = self.replace_master()
        self.late(0.0)
        lost.start()
        self.settle()
        self.move()
        self.end()


class Restored(Faults):
    """etcd is restored from an old snapshot while the nodes run."""

    def history_and_restore(self, token):
        """Some elections, and then etcd is as it was before them."""
        self.begin()
        snapshot = self.run_dir / "snapshot"
        self.etcd.save(snapshot)
        for _ in range(3):
            self.move()
        before = self.elections.newest["s1"][0]
        self.etcd.restore(snapshot, token)
        self.settle()
        self.replace_master().start()
        self.settle()
        self.move()
        self.assertGreater(self.elections.newest["s1"][0], before)
        self.end()

    def test_the_same_members_are_restored(self):
        """The nodes notice that revisions went back, and epochs go on above those of before."""
        self.history_and_restore("test")

    def test_new_members_are_restored(self):
        """With a new token, as etcd's manual advises: it is another cluster of etcd."""
        self.history_and_restore("restored")


class Two(Faults):
    """Two clusters of different names share etcd."""

    def test_two_clusters_on_one_etcd(self):
        """They do not notice each other, even when one of them loses a node."""
        second = self.cluster("second", ("d", "e", "f"))
        self.begin()
        # Another switch, of the second cluster.
        command("ovs-vsctl", "add-br", "other", "--", "set", "Bridge", "other", "datapath_type=netdev",
                "protocols=OpenFlow13", f"other-config:datapath-id={OTHER_SWITCH}")
        self.elections.add(self.connect("other", OTHER_NUMBER, second))
        until(lambda: self.masters().get("other") in second, LIMIT_S, "it has a master of its cluster")
        shown = lambda node: [row["dpid"] for row in node.ask("cluster", "--switches")]
        until(lambda: shown(second["d"]) == [OTHER_SWITCH], LIMIT_S, "the other cluster shows its switch, and no other")
        until(lambda: len(shown(self.nodes["a"])) == len(self.net.switches), LIMIT_S, "this cluster shows its own switches")
        lost = self.masters()["other"]
        second[lost].kill()
        until(lambda: self.masters().get("other") in set(second) - {lost}, LIMIT_S, "it has another one")
        self.assertEqual(set(self.nodes["a"].states()), set(NAMES))
        self.replace_master().start()
        self.end()
