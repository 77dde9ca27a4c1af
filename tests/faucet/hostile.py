"""Hostile peers against Faucet, on os-ken as it is and on Bellrock: does it go on to serve its real switch, and new ones?

A host pings Faucet's own address, which Faucet itself answers, before and while the attack goes on. Then a further real switch
connects. Each attack has namespaces, an Open vSwitch and a Faucet of its own.

    python3 hostile.py ENGINE RUN_DIR LOGS ATTACK RESULT.json      inside of the namespaces that `namespaces.py` makes
"""

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attacks
import environment
import results
from environment import ENGINES, FOLDER

VIP = "10.0.0.254"
PING_S = 0.25
QUIET_S = 5
ATTACK_S = 20
NEW_SWITCH_LIMIT_S = 20
READY_LIMIT_S = 60
LIMIT_S = 180
# What systemd gives a service: it may raise its own limit.
FILES = 1024
# With fewer answers, or a longer time without one, Faucet does not serve.
MIN_ANSWERED = 0.5
MAX_GAP_S = 10
# A shorter one is not mentioned.
NOTABLE_GAP_S = 1

PORTS = {f"port{port}": {"number": port, "native_vlan": "office"} for port in (1, 2, 3, 4)}
CONFIG = {
    "vlans": {"office": {"vid": 100, "faucet_vips": [f"{VIP}/24"]}},
    "dps": {f"sw{number}": {"dp_id": number, "hardware": "Open vSwitch", "interfaces": PORTS} for number in (1, 2, 3)},
}


def run(options):
    """Runs attacks on both engines, one after the other, and writes what was found."""
    bad = 0
    for name in options.attacks or attacks.ATTACKS:
        for engine in [options.engine] if options.engine else ENGINES:
            result = one(engine, name)
            results.put(results.HOSTILE, name, **{engine: result})
            sentence, serves = verdict(result)
            print(f"{engine:8}  {name:11} {sentence}", flush=True)
            bad += engine == environment.BELLROCK and not serves
    return 1 if bad else 0


def one(engine, name):
    return apart(__file__, engine, FOLDER / "logs" / "hostile" / f"{name} {engine}", name)


def apart(script, engine, logs, name):
    """Runs a script of this folder for an engine, in namespaces of its own, and returns its result."""
    from namespaces import start

    subprocess.run(["rm", "-rf", logs], check=True)
    logs.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="bellrock-") as run_dir, open(logs / "test.log", "wb") as output:
        words = ["/usr/bin/python3", script, engine, run_dir, logs, name, logs / "result.json"]
        process = start(run_dir, logs, words, dict(os.environ), output)
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        process.wait()
    result = logs / "result.json"
    if not result.exists():
        print(f"no result: {logs / 'test.log'}", flush=True)
        return {}
    return json.loads(result.read_text())


class Faucet:
    """A running Faucet, with os-ken's options as Faucet names them."""

    def __init__(self, engine, run_dir, logs, config, options=("--ryu-ofp-tcp-listen-port=6653",)):
        self.log = logs / "faucet.out"
        (run_dir / "faucet.yaml").write_text(json.dumps(config))
        # Faucet takes no options of Bellrock, but its file may have them.
        lines = ["[DEFAULT]", "echo_request_interval=3", "maximum_unreplied_echo_requests=5"]
        (run_dir / "ryu.conf").write_text("\n".join(lines) + "\n")
        variables = environment.variables(engine) | {
            "FAUCET_CONFIG": str(run_dir / "faucet.yaml"), "FAUCET_LOG": str(logs / "faucet.log"),
            "FAUCET_EXCEPTION_LOG": str(logs / "faucet_exception.log"), "FAUCET_PROMETHEUS_PORT": "9302"}
        words = [environment.BIN / "faucet", "--use-stderr", f"--ryu-config-file={run_dir}/ryu.conf", "--ryu-ofp-listen-host=127.0.0.1",
                 *options]
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen([str(word) for word in words], env=variables, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, preexec_fn=self.limit)

    @staticmethod
    def limit():
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))

    def died(self):
        return self.process.poll() is not None


def main(engine, run_dir, logs, name, file):
    run_dir, logs = Path(run_dir), Path(logs)
    from harness.controller import listening_ports
    from harness.network import Line, Network, Pings
    from harness.openvswitch import OpenVSwitch, command
    from harness.waiting import until

    faucet = Faucet(engine, run_dir, logs, CONFIG)
    until(lambda: 6653 in listening_ports() or faucet.died(), READY_LIMIT_S, "Faucet listens")
    ovs = OpenVSwitch(logs, run_dir)
    network = Network(ovs, Line(), "OpenFlow13")
    network.start(connect=False)
    host = network["h1"]
    answered = lambda: host.cmd(f"ping -n -c 1 -W 1 {VIP} >/dev/null && echo yes").strip() == "yes"  # noqa: E731
    until(answered, READY_LIMIT_S, "Faucet answers pings")

    class Target:
        name = "faucet"

        @staticmethod
        def IP():
            return VIP

    pings = Pings(host, Target, PING_S)
    time.sleep(QUIET_S)
    began = time.time()
    attack = multiprocessing.Process(target=attacks.start, args=(name,), daemon=True)
    attack.start()
    time.sleep(ATTACK_S)
    command("ovs-vsctl", "add-br", "s3", "--", "set", "bridge", "s3", "datapath_type=netdev", "protocols=OpenFlow13", "fail_mode=secure",
            "other-config:datapath-id=0000000000000003", "--", "set-controller", "s3", "tcp:127.0.0.1:6653")
    deadline = time.monotonic() + NEW_SWITCH_LIMIT_S
    joined = False
    while not joined and time.monotonic() < deadline:
        joined = bool(network.flows("s3"))
        time.sleep(PING_S)
    ended = time.time()
    assert attack.is_alive(), "the attack has ended by itself"
    arrived = [at for at, _, _ in pings.finish()]
    before = sum(at < began for at in arrived)
    during = [at for at in arrived if began <= at <= ended]
    times = [began, *during, ended]
    result = {
        "before": round(before / (QUIET_S / PING_S), 3), "answered": round(len(during) / ((ended - began) / PING_S), 3),
        "gap_s": round(max(after - at for at, after in zip(times, times[1:])), 1), "joined": joined, "connected": ovs.connected("s1"),
        "answering": bool(during) and during[-1] > ended - MAX_GAP_S, "died": faucet.died()}
    Path(file).write_text(json.dumps(result))
    attack.kill()
    if not faucet.died():
        faucet.process.kill()
    network.stop()
    return 0


def verdict(found):
    """A sentence, and whether Faucet went on to serve. All of it was measured."""
    if not found:
        return "no result", False
    if found["died"]:
        return "the process ends", False
    if not found["answering"]:
        return "stops: nothing is answered any more", False
    answered = f"{min(found['answered'], 1):.0%} of pings are answered" + (f", none for {found['gap_s']:.0f} s" if found["gap_s"] > NOTABLE_GAP_S else "")
    if not found["joined"]:
        return f"{answered}; no further switch is served", False
    if found["answered"] < MIN_ANSWERED or found["gap_s"] > MAX_GAP_S:
        return answered, False
    return f"serves; {answered}", True


if __name__ == "__main__":
    sys.path.insert(0, str(environment.ROOT / "tests" / "system"))
    sys.exit(main(*sys.argv[1:]))
