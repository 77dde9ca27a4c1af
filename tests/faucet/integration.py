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

import results
from environment import BELLROCK, ENGINES, FOLDER, HERE, OSKEN, PYTHON, SOURCE, variables
from namespaces import start

LOGS = FOLDER / "logs"
# The longest class that passes takes some 400 s on two busy cores.
LIMIT_S = 900
POLL_S = 0.2
TAIL_LINES = 30
MAX_REASON = 300
# Faucet's own runner tries a class three times too: many of its tests wait for a fixed time, which a busy machine exceeds.
ATTEMPTS = 3

# What `make test` runs: learning, forwarding by ACLs, meters with Gauge, groups, mirrors, and routes between VLANs.
SHORT = ("FaucetUntaggedTest", "FaucetNailedForwardingTest", "FaucetUntaggedApplyMeterTest", "FaucetUntaggedGroupHairpinTest",
         "FaucetUntaggedACLOutputMirrorTest", "FaucetUntaggedIPv6InterVLANRouteTest")

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
        return [name for name, description in known.items() if description["methods"]]
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
        log = (self.logs / "harness.log").read_text(errors="replace")
        states = {test["status"] for test in tests.values()}
        failed = {name.rsplit(".", 1)[-1]: test["output"] for name, test in tests.items() if test["status"] in ("ERROR", "FAIL")}
        if not tests and not late:
            failed = {"": log}
        if late:
            status = TIMED_OUT
        elif failed:
            status = FAILED
        elif states == {"SKIPPED"}:
            status = SKIPPED
        else:
            status = PASSED
        result = {"status": status, "seconds": round(self.seconds()), "attempt": self.attempt}
        what = {lacks(output) or lacks(log, LACKS_IN_LOG) for output in failed.values()}
        if what and "" not in what:
            result["lacks"] = ", ".join(sorted(what))
        elif failed:
            result["failed"] = {name: reason(output) for name, output in failed.items()}
        return result


# What this machine lacks, and not a controller: a link type that its kernel has not, a program that is not installed.
LACKS = {
    r"type bond\b.*Unknown device type": "bonding in the kernel",
    r"type vlan\b.*Unknown device type": "8021q in the kernel",
    r"sh: \d+: (\S+): not found": r"the program \1",
}
# The same, of all tests of a class: it is not in the output of a test.
LACKS_IN_LOG = {r"docker pull failed|No such file or directory: 'docker'": "Docker"}


def lacks(output, signs=LACKS):
    """What this machine lacks for a test, if that is why it has failed."""
    for sign, what in signs.items():
        found = re.search(sign, output, re.DOTALL)
        if found:
            return found.expand(what)
    return ""


def reason(output):
    """The last line of a traceback."""
    lines = [line.strip() for line in re.split(r"[\n\t]", output) if re.search(r"\w", line)]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Expired|Failure)\b", line)]
    return (errors or lines or [""])[-1][:MAX_REASON]


def is_final(result):
    """Whether no further attempt would change the result."""
    return result["status"] in (PASSED, SKIPPED) or "lacks" in result or result["attempt"] >= ATTEMPTS


def waiting_of(names, engines, again):
    """Classes to run, with their engines and the number of the attempt: those first that have not run."""
    known = {} if again else results.read()[results.CLASSES]
    waiting = []
    for name in names:
        for engine in engines:
            before = known.get(name, {}).get(engine)
            if before is None:
                waiting.append((name, engine, 1))
            elif not is_final(before):
                waiting.append((name, engine, before["attempt"] + 1))
    return sorted(waiting, key=lambda entry: entry[2])


def run(options):
    names = chosen(options)
    if options.list or not names:
        print("\n".join(listing()))
        return 0
    if os.geteuid() != 0:
        sys.exit("the integration tests need root, for network namespaces")
    engines = ENGINES if options.both else (OSKEN if options.os_ken else BELLROCK,)
    results.update(count_tests)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    ran = run_all(waiting_of(names, engines, options.again), options.jobs, options.limit)
    bad = [key for key, result in ran.items() if result["status"] not in (PASSED, SKIPPED)]
    print(f"{len(ran) - len(bad)} of {len(ran)} passed or were skipped by Faucet")
    for name, engine in bad:
        print(f"failed: {name} on {engine}")
    return 1 if bad else 0


def count_tests(found):
    """Enters all classes, with the number of their tests, among the results."""
    for name, description in listing().items():
        if description["methods"]:
            found[results.CLASSES].setdefault(name, {})["tests"] = len(description["methods"])


def run_all(waiting, jobs, limit_s):
    """Runs at most `jobs` at a time, and starts none after `limit_s`. Writes the results, and returns the last one of each."""
    began, running, ran = time.monotonic(), [], {}
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
                ran[one.name, one.engine] = result
                if not is_final(result):
                    waiting.append((one.name, one.engine, one.attempt + 1))
            time.sleep(POLL_S)
    finally:
        for one in running:
            one.end()
    return ran


def report(one, result):
    results.put(results.CLASSES, one.name, **{one.engine: result})
    print(f"{result['status']:9} {result['seconds']:4} s  {one.engine:8}  {one.name}", flush=True)
    if result["status"] in (PASSED, SKIPPED):
        return
    for method, why in result.get("failed", {}).items():
        print(f"      {method}: {why}", flush=True)
    if "" in result.get("failed", {}):
        lines = (one.logs / "harness.log").read_text(errors="replace").splitlines()
        print("\n".join(lines[-TAIL_LINES:]), flush=True)
    if "lacks" in result:
        print(f"      this machine lacks {result['lacks']}", flush=True)
    print(f"      logs: {one.logs}", flush=True)
