"""A separate Open vSwitch: database, daemon, sockets and logs in directories of one test.

The datapath is the one in user space, so no kernel module is needed. An Open vSwitch of the machine is not touched:
everything uses `OVS_RUNDIR`, which Mininet's `ovs-vsctl` calls inherit from this process.
"""

import os
import re
import socket
import subprocess

from .waiting import until

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
# Watchdogs: on an idle machine each step takes far less.
START_LIMIT_S = 30
COMMAND_LIMIT_S = 30
# Open vSwitch logs this when it refuses a message of the controller.
ERROR_REPLY = re.compile(r"sending OFP\w+ error reply")
# Open vSwitch logs this when the connection of a switch to its controller changes.
CONTROL_CHANNEL = re.compile(r"\|rconn\|\w+\|(\S+)<->(?:tcp|ssl):\S+: (.*)$")


def command(*words):
    """Runs a command of Open vSwitch and returns its output."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
    if done.returncode != 0:
        raise AssertionError(f"`{' '.join(map(str, words))}` failed with {done.returncode}: {done.stderr}")
    return done.stdout


def accepts(path):
    """Whether a process listens on a Unix socket. The file of the socket exists a moment earlier."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        return connection.connect_ex(str(path)) == 0


class OpenVSwitch:
    """ovsdb-server and ovs-vswitchd, as children of this process."""

    def __init__(self, logs, run_dir):
        self.run_dir = run_dir
        self.log = logs / "ovs-vswitchd.log"
        self.logs = logs
        self.children = []
        for variable in ("OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"):
            os.environ[variable] = str(run_dir)
        os.environ["OVS_LOGDIR"] = str(logs)
        # Debian installs the daemons in directories that may be missing from PATH.
        os.environ["PATH"] += ":/usr/sbin:/sbin"

    def start(self):
        database, path = self.run_dir / "conf.db", self.run_dir / "db.sock"
        command("ovsdb-tool", "create", str(database), SCHEMA)
        self._spawn("ovsdb-server", str(database), f"--remote=punix:{path}")
        until(lambda: accepts(path), START_LIMIT_S, "ovsdb-server's socket")
        command("ovs-vsctl", "--no-wait", "init")
        # --disable-system: does not look for the kernel's datapath.
        self._spawn("ovs-vswitchd", f"unix:{path}", "--disable-system")
        # Returns when the daemon has read its (empty) configuration.
        command("ovs-vsctl", f"--timeout={COMMAND_LIMIT_S}", "set", "Open_vSwitch", ".", "external_ids:owner=bellrock-system-tests")

    def trust(self, certificate, key, authority, bootstrap=False):
        """Gives it a certificate, for all its bridges, and the authority of controllers. With `bootstrap` it takes that
        authority from the first controller, and keeps it in this file."""
        command("ovs-vsctl", *(["--bootstrap"] if bootstrap else []), "set-ssl", str(key), str(certificate), str(authority))

    def _spawn(self, name, *arguments):
        with open(self.logs / f"{name}.out.log", "wb") as output:
            self.children.append(subprocess.Popen(
                [name, *arguments, "--pidfile", f"--log-file={self.logs / name}.log", "-vconsole:off", "-vfile:info"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output))

    def stop(self):
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(COMMAND_LIMIT_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def log_lines(self):
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else []

    def error_replies(self):
        """Lines of its log about refused messages of the controller."""
        return [line for line in self.log_lines() if ERROR_REPLY.search(line)]

    def connected(self, switch):
        """Whether a switch is connected to its controller. From the log: the database is updated only every five
        seconds."""
        states = [found[2] for line in self.log_lines() if (found := CONTROL_CHANNEL.search(line)) and found[1] == switch]
        return bool(states) and states[-1] == "connected"
