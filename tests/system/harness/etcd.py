"""A cluster of etcd on loopback, in the namespace of a test."""

import json
import signal
import subprocess
import urllib.request

from .waiting import until

START_LIMIT_S = 30
STOP_LIMIT_S = 10


class Etcd:
    """Members of etcd, each with a folder of its own below `folder`."""

    def __init__(self, folder, logs, members=3, first_port=2379):
        names = [f"etcd{number}" for number in range(members)]
        ports = {name: first_port + 2 * number for number, name in enumerate(names)}
        initial = ",".join(f"{name}=http://127.0.0.1:{port + 1}" for name, port in ports.items())
        self.urls = [f"http://127.0.0.1:{port}" for port in ports.values()]
        self.logs = logs
        self.commands = [
            ["etcd", "--name", name, "--data-dir", str(folder / name),
             "--listen-client-urls", f"http://127.0.0.1:{port}", "--advertise-client-urls", f"http://127.0.0.1:{port}",
             "--listen-peer-urls", f"http://127.0.0.1:{port + 1}",
             "--initial-advertise-peer-urls", f"http://127.0.0.1:{port + 1}",
             "--initial-cluster", initial, "--initial-cluster-token", "test", "--logger", "zap"]
            for name, port in ports.items()]
        self.processes = [None] * members

    def start(self):
        for member in range(len(self.commands)):
            self.start_member(member)
        until(self.is_healthy, START_LIMIT_S, "etcd has a leader")

    def start_member(self, member):
        with open(self.logs / f"etcd-{member}.log", "ab") as log:
            self.processes[member] = subprocess.Popen(self.commands[member], stdin=subprocess.DEVNULL, stdout=log,
                                                      stderr=log)

    def is_healthy(self):
        """Whether every member that runs has a leader."""
        for url, process in zip(self.urls, self.processes):
            if process is None:
                continue
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
                    if json.load(answer)["health"] != "true":
                        return False
            except OSError:
                return False
        return True

    def kill(self, member):
        process, self.processes[member] = self.processes[member], None
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(STOP_LIMIT_S)

    def stop(self):
        for member, process in enumerate(self.processes):
            if process is not None:
                self.kill(member)
