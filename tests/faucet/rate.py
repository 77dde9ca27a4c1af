"""How fast Faucet learns hosts, and how long that takes beside idle switches, on both engines in turn.

    python3 rate.py ENGINE RUN_DIR LOGS NUMBER RESULT.json      inside of the namespaces that `namespaces.py` makes
"""

import json
import selectors
import statistics
import sys
import threading
import time
from pathlib import Path

import attacks
import environment
import results
from attacks import CONFIGURED, FLOW_MOD, SOURCE, Peer, packet_in
from environment import BELLROCK, ENGINES, FOLDER, OSKEN
from hostile import READY_LIMIT_S, Faucet, apart

ROUNDS = 3
# Faucet's cost of a host grows with the hosts of a port, so the number is the same on both.
HOSTS = 1000
WARM_UP_HOSTS = 100
# Packet-ins that wait for Faucet's answer at a time: it never waits for the switch.
OUTSTANDING = 64
LATENCIES = 200
IDLE = 100
FIRST_IDLE = 1000
SETTLE_S = 5
MAX_HOSTS = 10_000

MEASURED = {
    "rate": "newly learnt hosts per second",
    "alone": "ms until a new host's flows come, median",
    "beside": f"the same beside {IDLE} idle switches",
    "beside_p95": "95th percentile of that",
}
DIGITS = {"rate": 0, "alone": 2, "beside": 2, "beside_p95": 2}


def datapath(number):
    return {"dp_id": number, "hardware": "Open vSwitch", "ignore_learn_ins": 0, "timeout": 3600,
            "interfaces": {"port1": {"number": 1, "native_vlan": "office", "max_hosts": MAX_HOSTS}}}


CONFIG = {
    "vlans": {"office": {"vid": attacks.VLAN, "max_hosts": MAX_HOSTS}},
    "dps": {f"sw{number}": datapath(number) for number in (CONFIGURED, *range(FIRST_IDLE, FIRST_IDLE + IDLE))},
}


def run():
    """Runs all rounds, the engines in turn, and writes the medians."""
    rounds = {engine: [] for engine in ENGINES}
    for number in range(ROUNDS):
        for engine in ENGINES:
            result = apart(__file__, engine, FOLDER / "logs" / "rate" / f"{number} {engine}", str(number))
            print(f"{engine:8}  {result}", flush=True)
            if result:
                rounds[engine].append(result)
    for what, unit in MEASURED.items():
        medians = {engine: round(statistics.median(result[what] for result in rounds[engine]), 2) for engine in ENGINES}
        results.put(results.RATE, what, **medians)
        print(f"{unit}: {medians[OSKEN]} on {OSKEN}, {medians[BELLROCK]} on {BELLROCK}")
    return 0


class Learner:
    """The switch whose hosts Faucet learns."""

    def __init__(self):
        self.peer = Peer(CONFIGURED).until(attacks.MULTIPART_REQUEST)
        self.peer.socket.settimeout(READY_LIMIT_S)
        self.sent = 0
        self.learnt = 0

    def send(self, hosts):
        self.peer.socket.sendall(b"".join(packet_in(number) for number in range(self.sent, self.sent + hosts)))
        self.sent += hosts

    def read(self):
        """Reads once. Faucet answers in order: the last host of a flow_mod is the last one that it has learnt."""
        for kind, body in self.peer.receive():
            at = body.find(SOURCE) if kind == FLOW_MOD else -1
            if at >= 0:
                self.learnt = max(self.learnt, int.from_bytes(body[at + 2:at + 6], "big") + 1)

    def learn(self, hosts):
        """Learns so many hosts, with some on their way all the time."""
        wanted = self.sent + hosts
        while self.learnt < wanted:
            more = min(wanted - self.sent, OUTSTANDING - (self.sent - self.learnt))
            if more > OUTSTANDING // 2 or (more and self.sent == self.learnt):
                self.send(more)
            self.read()

    def rate(self):
        began = time.monotonic()
        self.learn(HOSTS)
        return HOSTS / (time.monotonic() - began)

    def latencies(self):
        """How long each of some hosts takes, one after the other, in ms."""
        found = []
        for _ in range(LATENCIES):
            began = time.monotonic()
            self.learn(1)
            found.append((time.monotonic() - began) * 1000)
            time.sleep(0.005)
        return found


class Idle(threading.Thread):
    """Switches that answer what they are asked, and do nothing else."""

    def __init__(self):
        super().__init__(daemon=True)
        self.selector = selectors.DefaultSelector()
        for number in range(FIRST_IDLE, FIRST_IDLE + IDLE):
            peer = Peer(number).until(attacks.MULTIPART_REQUEST)
            self.selector.register(peer.socket, selectors.EVENT_READ, peer)
        self.start()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                key.data.receive()


def main(engine, run_dir, logs, _, file):
    from harness.controller import listening_ports
    from harness.waiting import until

    faucet = Faucet(engine, Path(run_dir), Path(logs), CONFIG)
    until(lambda: 6653 in listening_ports() or faucet.died(), READY_LIMIT_S, "Faucet listens")
    time.sleep(SETTLE_S)
    learner = Learner()
    time.sleep(SETTLE_S)
    learner.learn(WARM_UP_HOSTS)
    result = {"rate": learner.rate(), "alone": statistics.median(learner.latencies())}
    idle = Idle()
    time.sleep(SETTLE_S)
    beside = learner.latencies()
    result |= {"beside": statistics.median(beside), "beside_p95": statistics.quantiles(beside, n=20)[-1]}
    assert idle.is_alive(), "an idle switch was disconnected"
    Path(file).write_text(json.dumps(result))
    faucet.process.kill()
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(environment.ROOT / "tests" / "system"))
    sys.exit(main(*sys.argv[1:]))
