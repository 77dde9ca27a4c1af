"""A cluster of etcd, in the namespaces of a test."""

import json
import os
import signal
import subprocess
import urllib.request

from .waiting import until

START_LIMIT_S = 30
STOP_LIMIT_S = 10
COMMAND_LIMIT_S = 30


class Etcd:
    """Members of etcd, each with a folder of its own below `folder`. They share the namespace of the test, or each has its
    machine. `options` are further arguments of each."""

    def __init__(self, folder, logs, members=3, first_port=2379, machines=None, options=()):
        self.names = [f"etcd{number}" for number in range(members)]
        self.prefixes = [machine.prefix for machine in machines] if machines else [[]] * members
        hosts = [machine.address for machine in machines] if machines else ["127.0.0.1"] * members
        ports = [first_port if machines else first_port + 2 * number for number in range(members)]
        self.urls = [f"http://{host}:{port}" for host, port in zip(hosts, ports)]
        self.peers = [f"http://{host}:{port + 1}" for host, port in zip(hosts, ports)]
        self.initial = ",".join(f"{name}={peer}" for name, peer in zip(self.names, self.peers))
        self.token = "test"
        self.logs = logs
        self.options = list(options)
        self.folders = [folder / name for name in self.names]
        self.processes = [None] * members

    def command(self, member):
        """The command that starts a member."""
        url, peer = self.urls[member], self.peers[member]
        return [*self.prefixes[member], "etcd", "--name", self.names[member], "--data-dir", str(self.folders[member]),
                "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", self.initial,
                "--initial-cluster-token", self.token, "--logger", "zap", *self.options]

    def ask(self, *words, member=0, text=None):
        """What `etcdctl` prints, asked of a member. It reads `text`."""
        done = self._run(words, member, text)
        if done.returncode != 0:
            raise AssertionError(f"`{' '.join(done.args)}` failed with {done.returncode}: {done.stderr}")
        return done.stdout

    def put(self, key, text, member=0):
        """Writes a key, and again if etcd has had no leader meanwhile."""
        until(lambda: self._run(("put", key), member, text).returncode == 0, COMMAND_LIMIT_S, f"etcd has written {key}")

    def _run(self, words, member, text):
        return subprocess.run(["etcdctl", f"--endpoints={self.urls[member]}", *words], capture_output=True, text=True,
                              input=text, env=os.environ | {"ETCDCTL_API": "3"}, timeout=COMMAND_LIMIT_S, check=False)

    def leader(self):
        """The member that leads. All members must run."""
        status = json.loads(self.ask(f"--endpoints={','.join(self.urls)}", "endpoint", "status", "--write-out=json"))
        leader = status[0]["Status"]["leader"]
        url = next(row["Endpoint"] for row in status if row["Status"]["header"]["member_id"] == leader)
        return self.urls.index(url)

    def start(self):
        for member in range(len(self.processes)):
            self.start_member(member)
        until(self.is_healthy, START_LIMIT_S, "etcd has a leader")

    def start_member(self, member):
        with open(self.logs / f"etcd-{member}.log", "ab") as log:
            self.processes[member] = subprocess.Popen(self.command(member), stdin=subprocess.DEVNULL, stdout=log,
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

    def save(self, snapshot):
        """Saves a snapshot of its data."""
        self.ask("snapshot", "save", str(snapshot))

    def restore(self, snapshot, token):
        """Stops all members, and starts them with the data of a snapshot. `token`: of the new cluster of etcd."""
        self.stop()
        self.token = token
        for member, name in enumerate(self.names):
            folder = snapshot.with_name(f"{snapshot.name}-{token}-{name}")
            self.folders[member] = folder
            self.ask("snapshot", "restore", str(snapshot), "--name", name, "--data-dir", str(folder), "--initial-cluster", self.initial,
                     "--initial-cluster-token", token, "--initial-advertise-peer-urls", self.peers[member], member=member)
        self.start()
