"""The controller under test, as a process.

`BELLROCK_BIN` names the binary. The tests use only its command line, so any program that understands
`run --listen ADDR:PORT` can replace it.
"""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

from .waiting import until

PORT = 6653
LOOPBACK = f"127.0.0.1:{PORT}"
START_LIMIT_S = 30
# A watchdog. A graceful stop takes two seconds.
STOP_LIMIT_S = 30
COMMAND_LIMIT_S = 30
# A panic that the controller caught is still a fault of the controller.
FAULT = re.compile(r"panicked at|\bERROR\b")


def listening_ports(pid="self"):
    """TCP ports with a listener in the network namespace of a process. From the kernel: a connection would be an
    event."""
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":  # LISTEN
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def without_own_variables():
    """The environment without the variables of the tests. The controller would warn of them as misspelled settings."""
    return {name: value for name, value in os.environ.items() if name not in ("BELLROCK_BIN", "BELLROCK_RESTARTS")}


class Controller:
    """`bellrock run`, with its log in `logs` and its control socket in `run_dir`.

    `command`: the words of another command that takes the same flags."""

    start_limit_s = START_LIMIT_S

    def __init__(self, logs, run_dir, app="learning", config=None, listen=LOOPBACK, workers=None,
                 flags=(), command=("run",)):
        self.log = logs / "controller.log"
        self.control = run_dir / "control.sock"
        self.binary = os.environ["BELLROCK_BIN"]
        self.port = int(listen.rpartition(":")[2])
        self.process = None
        self.command = [self.binary, *command, "--listen", listen, "--control", str(self.control),
                        "--log-format", "human"]
        if config is None:
            self.command += ["--app", app]
        else:
            self.config_file = run_dir / "bellrock.yaml"
            self.write_config(config)
            self.command += ["--config", str(self.config_file)]
        if workers:
            self.command += ["--workers", str(workers)]
        self.command += flags

    def write_config(self, config):
        """Replaces its configuration file. JSON is also YAML, and Python can write it."""
        self.config_file.write_text(json.dumps(config))

    def start(self):
        with open(self.log, "ab") as log:
            self.process = self.launch(log)
        until(lambda: self.died() or self.is_listening(), self.start_limit_s, f"listening on port {self.port}")
        if self.died():
            raise AssertionError(f"the controller ended at once with status {self.process.returncode}:\n{self.text()}")

    def is_listening(self):
        return self.port in listening_ports()

    def launch(self, log):
        """Starts the process. What it prints goes to the log."""
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env=without_own_variables())

    def died(self):
        return self.process.poll() is not None

    def stop(self, how=signal.SIGTERM):
        """Ends it and returns its exit status."""
        self.process.send_signal(how)
        try:
            return self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the controller did not end within {STOP_LIMIT_S} s of {how.name}") from None

    def text(self):
        return self.log.read_text(errors="replace")

    def faults(self):
        """Lines of its log that report a fault of the controller."""
        return [line for line in self.text().splitlines() if FAULT.search(line)]

    def resident_bytes(self):
        """Its resident memory, from the kernel."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def ask(self, *words):
        """`bellrock WORDS --json` over the control socket, decoded."""
        answer = self._run(words)
        if answer.returncode != 0:
            raise AssertionError(f"`{' '.join(answer.args)}` failed with {answer.returncode}: {answer.stderr}")
        return json.loads(answer.stdout)

    def not_done(self, *words):
        """The answer, decoded, and what is on standard error, of an order that a switch has not carried out."""
        answer = self._run(words)
        if answer.returncode != 1:
            raise AssertionError(f"`{' '.join(answer.args)}` exited with {answer.returncode}: {answer.stderr}")
        return json.loads(answer.stdout), answer.stderr

    def ordered(self, *words):
        """The answer, decoded, of an order that a switch has carried out or not yet."""
        answer = self._run(words)
        if answer.returncode not in (0, 1):
            raise AssertionError(f"`{' '.join(answer.args)}` exited with {answer.returncode}: {answer.stderr}")
        return json.loads(answer.stdout)

    def refused(self, *words):
        """What the same command says when it fails, as it must."""
        answer = self._run(words)
        if answer.returncode == 0:
            raise AssertionError(f"`{' '.join(answer.args)}` did not fail: {answer.stdout}")
        return answer.stderr

    def _run(self, words):
        command = [self.binary, *words, "--json", "--control", str(self.control)]
        return subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
