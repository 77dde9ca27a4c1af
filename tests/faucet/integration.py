"""Classes of Faucet's integration tests, each in namespaces of its own, on one engine or on both."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environment import BELLROCK, ENGINES, FOLDER, HERE, OSKEN, PYTHON, SOURCE, variables
from namespaces import start

RESULTS = FOLDER / "results"
LOGS = FOLDER / "logs"
# The longest class that passes takes some 400 s on two busy cores.
LIMIT_S = 900
POLL_S = 0.2
TAIL_LINES = 30
MAX_REASON = 300
# Faucet's own runner tries a class three times too: many of its tests wait for a fixed time, which a busy machine exceeds.
ATTEMPTS = 3

# What `make test` runs: learning, forwarding by ACLs, and meters with Gauge.
SHORT = ("FaucetUntaggedTest", "FaucetNailedForwardingTest", "FaucetUntaggedApplyMeterTest")

PASSED, FAILED, SKIPPED, TIMED_OUT = "passed", "failed", "skipped", "timed out"


def arguments(parser):
    parser.add_argument("names", nargs="*", help="classes: a whole name, or what is between Faucet and Test, such as UntaggedACL")
    parser.add_argument("--all", action="store_true", help="all classes")
    parser.add_argument("--short", action="store_true", help="the classes that make test runs")
    parser.add_argument("--both", action="store_true", help="on os-ken as it is, and then on Bellrock")
    parser.add_argument("--os-ken", action="store_true", help="on os-ken as it is")
    parser.add_argument("--again", action="store_true", help="also those that have run")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="classes at a time (default: one a core)")
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="S", help="starts no class after this time")
    parser.add_argument("--list", action="store_true", help="only prints the names")


def listing():
    """All classes, as harness.py describes them."""
    file = FOLDER / "classes.json"
    if not file.exists():
        done = subprocess.run([PYTHON, HERE / "harness.py", SOURCE, "--list"], env=variables(OSKEN), check=True, capture_output=True, text=True)
        file.write_text(done.stdout)
    return json.loads(file.read_text())


def chosen(options):
    known = listing()
    if options.all:
        return list(known)
    if options.short:
        return list(SHORT)
    names = [name if name in known else f"Faucet{name}Test" for name in options.names]
    for name in names:
        if name not in known:
            sys.exit(f"there is no class {name}; --list prints all")
    return names


class Running:
    """A class in its namespaces, on an engine."""

    def __init__(self, name, engine, attempt):
        self.name, self.engine, self.attempt = name, engine, attempt
        self.logs = LOGS / engine / name
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)
        self.report = self.logs / "report.json"
        # For sockets: their paths must be short.
        self.run_dir = tempfile.TemporaryDirectory(prefix="bellrock-")
        self.began = time.monotonic()
        words = [PYTHON, HERE / "harness.py", SOURCE, self.report, name]
        with open(self.logs / "harness.log", "wb") as output:
            self.process = start(self.run_dir.name, self.logs, words, variables(engine), output)

    def seconds(self):
        return time.monotonic() - self.began

    def is_over(self):
        return self.process.poll() is not None or self.seconds() > LIMIT_S

    def end(self):
        """Ends everything in the namespaces, and returns the result."""
        late = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        self.run_dir.cleanup()
        tests = json.loads(self.report.read_text())["tests"] if self.report.exists() else {}
        methods = {name.rsplit(".", 1)[-1]: {"status": test["status"], "why": reason(test["output"])} for name, test in tests.items()}
        states = {test["status"] for test in methods.values()}
        if late:
            status = TIMED_OUT
        elif not states or states & {"ERROR", "FAIL"}:
            status = FAILED
        elif states == {"SKIPPED"}:
            status = SKIPPED
        else:
            status = PASSED
        result = {"class": self.name, "engine": self.engine, "status": status, "seconds": round(self.seconds()), "attempt": self.attempt,
                  "methods": methods}
        if not methods:
            result["why"] = reason((self.logs / "harness.log").read_text(errors="replace"))
        return result


# Reasons that this machine has, and not a controller: a link type that its kernel lacks, a program that is not installed.
LACKS = {
    "Unknown device type": "no 8021q or bonding in the kernel",
    "docker": "no Docker",
    "wpa_supplicant": "no wpa_supplicant",
}


def lacks(result):
    """What this machine lacks for a class, if that is why it has failed."""
    texts = [test["why"] for test in result["methods"].values() if test["status"] not in ("OK", "SKIPPED")]
    found = {what for text in texts for sign, what in LACKS.items() if sign in text}
    return ", ".join(sorted(found)) if texts and all(any(sign in text for sign in LACKS) for text in texts) else ""


def reason(output):
    """The last line of a traceback."""
    lines = [line.strip() for line in re.split(r"[\n\t]", output) if re.search(r"\w", line)]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Expired|Failure)\b", line)]
    return (errors or lines or [""])[-1][:MAX_REASON]


def file_of(name, engine):
    return RESULTS / engine / f"{name}.json"


def run(options):
    names = chosen(options)
    if options.list or not names:
        print("\n".join(listing()))
        return 0
    if os.geteuid() != 0:
        sys.exit("the integration tests need root, for network namespaces")
    engines = ENGINES if options.both else (OSKEN if options.os_ken else BELLROCK,)
    waiting = [(name, engine, 1) for name in names for engine in engines if options.again or not file_of(name, engine).exists()]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    results = run_all(waiting, options.jobs, options.limit)
    bad = [f"{result['class']} on {result['engine']}" for result in results if result["status"] not in (PASSED, SKIPPED)]
    print(f"{len(results) - len(bad)} of {len(results)} passed or were skipped by Faucet")
    for line in bad:
        print(f"failed: {line}")
    return 1 if bad else 0


def run_all(waiting, jobs, limit_s):
    """Runs at most `jobs` at a time, and starts none after `limit_s`. Writes and returns the results."""
    began, running, results = time.monotonic(), [], []
    try:
        while waiting or running:
            while waiting and len(running) < jobs and time.monotonic() - began < limit_s:
                running.append(Running(*waiting.pop(0)))
            if not running:
                break
            for one in [one for one in running if one.is_over()]:
                running.remove(one)
                result = one.end()
                report(one, result)
                if result["status"] in (FAILED, TIMED_OUT) and one.attempt < ATTEMPTS and not lacks(result):
                    waiting.append((one.name, one.engine, one.attempt + 1))
                else:
                    results.append(result)
            time.sleep(POLL_S)
    finally:
        for one in running:
            one.end()
    return results


def report(one, result):
    file = file_of(one.name, one.engine)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=1))
    print(f"{result['status']:9} {result['seconds']:4} s  {one.engine:8}  {one.name}", flush=True)
    for method, test in result["methods"].items():
        if test["status"] not in ("OK", "SKIPPED"):
            print(f"      {method}: {test['why']}", flush=True)
    if result["status"] in (FAILED, TIMED_OUT) and not result["methods"]:
        lines = (one.logs / "harness.log").read_text(errors="replace").splitlines()
        print("\n".join(lines[-TAIL_LINES:]), flush=True)
    print(end="" if result["status"] in (PASSED, SKIPPED) else f"      logs: {one.logs}\n", flush=True)
