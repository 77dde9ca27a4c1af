"""Controllers as one, each on a machine of its own, and so the members of etcd; Open vSwitch is on another one."""

import re
import signal
import subprocess
import time

from test_hitless import Stream

from .case import SystemTest
from .controller import Controller, listening_ports, without_own_variables
from .elections import Elections, trace
from .etcd import Etcd
from .localcluster import EXPECTED, FENCED
from .machines import Machines
from .network import Line
from .openvswitch import command
from .pki import run
from .waiting import until

LIMIT_S = 60
PORT, LINK_PORT = 6653, 6640
NAMES = ("a", "b", "c")
# The first switch of a network.
SWITCH = "0000000000000001"
# A switch that is cut off silently is noticed after both together.
ECHO_AFTER, DEAD_AFTER = "1 s", "1 s"
# Pause of a switch between two attempts to connect, in milliseconds.
RETRY_MS = 500
PROBE_MS = 3000
# Time between two datagrams of established flows.
INTERVAL_S = 0.005
# Time between two looks at all nodes, each of which takes several commands.
ASK_EVERY_S = 0.3
FIRST_UDP_PORT = 7000


class Certificates:
    """An authority, and certificates with the names of nodes."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        self.authority = directory / "ca.pem"
        self._openssl("ca", "/CN=nodes of a test")

    def _openssl(self, name, subject, *options):
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
            "-subj", subject, "-keyout", f"{name}-key.pem", "-out", f"{name}.pem", *options, cwd=self.directory)

    def settings(self, name):
        """The section `cluster.tls` of a node."""
        if not (self.directory / f"{name}.pem").exists():
            self._openssl(name, f"/CN={name}", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-addext", f"subjectAltName=DNS:{name}",
                          "-addext", "basicConstraints=critical,CA:FALSE")
        return {"certificate": str(self.directory / f"{name}.pem"), "key": str(self.directory / f"{name}-key.pem"),
                "ca": str(self.authority)}


class Node(Controller):
    """A controller of a cluster, on its machine."""

    def __init__(self, logs, run_dir, machine, config, environment=None):
        folder = run_dir / machine.name
        folder.mkdir()
        super().__init__(logs, folder, config=config, listen=f"0.0.0.0:{PORT}")
        self.command = machine.prefix + self.command
        self.machine = machine
        self.name = machine.name
        self.log = logs / f"controller-{machine.name}.log"
        self.environment = environment or {}

    def launch(self, log):
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env=without_own_variables() | self.environment)

    def is_listening(self):
        try:
            return self.port in listening_ports(self.process.pid)
        except OSError:
            return False  # It has ended.

    def faults(self):
        return [line for line in super().faults() if not EXPECTED.search(line)]

    def is_serving(self):
        status = self.status()
        return bool(status) and status["serving"]

    def status(self):
        """What `bellrock cluster` reports. None: it does not answer yet."""
        try:
            return self.ask("cluster")
        except AssertionError as error:
            if "no controller answers" in str(error):
                return None
            raise

    def states(self):
        """What each node is, as this one sees it."""
        return {node["name"]: node["state"] for node in self.ask("cluster")["nodes"]}

    def kill(self):
        process, self.process = self.process, None
        process.kill()
        process.wait(LIMIT_S)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)


class ClusterTest(SystemTest):
    """Three nodes, three members of etcd, and switches that connect to all nodes."""

    apps = ("learning",)
    # More settings of each node.
    settings = {}
    etcd_options = ()

    def setUp(self):
        super().setUp()
        trace()
        self.machines = Machines()
        self.members = [self.machines.add(f"etcd{number}") for number in range(3)]
        self.certificates = Certificates(self.run_dir / "nodes")
        self.etcd = Etcd(self.run_dir, self.logs, machines=self.members, options=self.etcd_options)
        self.addCleanup(self.etcd.stop)
        self.etcd.start()
        self.nodes = self.cluster("test", NAMES)

    def cluster(self, name, nodes, start=True):
        """The nodes of a cluster, which serve."""
        machines = {node: self.machines.add(node) for node in nodes}
        nodes = {node: self.node(name, machines[node], machines) for node in nodes}
        if start:
            for node in nodes.values():
                node.start()
            until(lambda: all(node.is_serving() for node in nodes.values()), LIMIT_S, f"all nodes of {name} serve")
        return nodes

    def node(self, cluster, machine, machines):
        peers = {name: f"{other.address}:{LINK_PORT}" for name, other in machines.items() if name != machine.name}
        config = self.settings | {"apps": list(self.apps), "echo_after": ECHO_AFTER, "dead_after": DEAD_AFTER,
                  "cluster": {"name": cluster, "node": machine.name, "listen": f"{machine.address}:{LINK_PORT}",
                              "peers": peers, "tls": self.certificates.settings(machine.name),
                              "etcd": {"endpoints": self.endpoints(machine), "allow_plain": True}}}
        node = Node(self.logs, self.run_dir, machine, config, self.environment(machine))
        self.controllers.append(node)
        self.addCleanup(self._end_node, node)
        return node

    def endpoints(self, _machine):
        """Addresses of etcd for the node on this machine."""
        return self.etcd.urls

    def environment(self, _machine):
        """More variables for the node on this machine."""
        return {}

    def _end_node(self, node):
        if node.process is not None:
            node.go_on()
            self._end_controller(node)

    def judge(self):
        for controller in self.controllers:
            self.assertEqual(controller.faults(), [], f"the log of {controller.name} has a fault of its own")
        refused = [line for line in self.ovs.error_replies() if not FENCED.search(line)]
        self.assertEqual(refused, [], "Open vSwitch refused messages")
        if hasattr(self, "elections"):
            self.assertEqual(self.elections.faults(), [], "elections in the switches")
            self.assertTrue(self.elections.history, "no election was seen: this would prove nothing")

    def attach(self, topology=None, nodes=None):
        """Switches with hosts. The switches connect to all nodes."""
        self.net = self.network(topology or Line(switches=3, hosts=(1, 2, 3)), "OpenFlow13", connect=False)
        owners = {}
        for number, switch in enumerate(self.net.switches, start=1):
            owners |= self.connect(switch.name, number, nodes or self.nodes)
        self.elections = Elections(self.ovs.log, owners)
        self.settle()
        # A master's first message, without which a switch drops what it has no flow for.
        until(lambda: all(self.net.flows(switch.name) for switch in self.net.switches), LIMIT_S, "a table-miss entry everywhere")

    @staticmethod
    def connect(switch, number, nodes):
        """Gives a switch all nodes. Each switch has its own address of each node."""
        targets = {f"tcp:{node.machine.alias(number)}:{PORT}": (switch, name) for name, node in nodes.items()}
        command("ovs-vsctl", "set", "Bridge", switch, "other-config:disable-in-band=true",
                "--", "set-controller", switch, *targets)
        for uuid in re.findall(r"[0-9a-f-]{36}", command("ovs-vsctl", "get", "Bridge", switch, "controller")):
            command("ovs-vsctl", "set", "Controller", uuid, f"max_backoff={RETRY_MS * 2}", f"inactivity_probe={PROBE_MS}")
        return targets

    def masters(self):
        return self.elections.masters()

    def await_masters(self, of, what=""):
        """Waits until each switch obeys one of these nodes."""
        def done():
            masters = self.masters()
            return all(masters.get(switch.name) in of for switch in self.net.switches)
        until(done, LIMIT_S, f"each switch obeys one of {', '.join(of)} {what}")
        return self.masters()

    def settle(self, of=NAMES):
        """Waits until all is well: these nodes serve and see each other, etcd answers, and what the nodes report of the
        masters is what the switches obey."""
        names = {switch.name for switch in self.net.switches}

        def well():
            masters = {switch: node for switch, node in self.masters().items() if switch in names}
            for node in (self.nodes[name] for name in of):
                status = node.status()
                if not status:
                    return False
                states = {row["name"]: row["state"] for row in status["nodes"]}
                if not status["serving"] or not status["store"]["reachable"]:
                    return False
                if any(states[name] != "serving" for name in of):
                    return False
                rows = node.ask("cluster", "--switches")
                if {f"s{int(row['dpid'], 16)}": row["obeys"] for row in rows} != masters:
                    return False
                # A switch that has just lost a node may not be connected to it again.
                if any(row["role"] == "away" for row in rows):
                    return False
            return len(masters) == len(self.net.switches) and set(masters.values()) <= set(of)
        until(well, LIMIT_S, f"{', '.join(of)} serve, and agree about masters", ASK_EVERY_S)

    def others(self, *names):
        return [name for name in self.nodes if name not in names]

    def flow(self, pairs=(("h1", "h3"), ("h3", "h1"))):
        """Learns all hosts, and begins streams over flows that are in the switches."""
        self.reach()
        # Prevents ARP packets while datagrams are counted.
        self.net.net.staticArp()
        pairs = [(self.net[source], self.net[target]) for source, target in pairs]
        return [Stream(source, target, INTERVAL_S, FIRST_UDP_PORT + index) for index, (source, target) in enumerate(pairs)]

    def order_move(self, master, to):
        """Moves the first switch. It may not have connected to the other node yet, and etcd may have no leader."""
        def ordered():
            try:
                return self.nodes[master].ask("cluster", "move", SWITCH, to)
            except AssertionError as error:
                if f"its master is {to}" in str(error):
                    # The order before, which etcd had not confirmed in time.
                    return True
                if "cannot take" in str(error) or "etcd" in str(error):
                    return None
                raise
        until(ordered, LIMIT_S, f"{master} may move the switch to {to}")

    def reach(self):
        """Pings all pairs of hosts. A packet that the old master had not answered may be lost, so there are several rounds."""
        self.net.seconds_until_reachable(LIMIT_S)

    def keeps_its_masters(self, masters, seconds):
        """Asserts that nothing changes for some time."""
        time.sleep(seconds)
        self.assertEqual(self.masters(), masters)
