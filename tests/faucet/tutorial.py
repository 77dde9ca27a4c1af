"""Follows Faucet's tutorials word for word: their commands and configurations come from the documentation in its source archive.

    python3 tutorial.py ENGINE RUN_DIR     inside of the namespaces that `namespaces.py` makes

What a machine has and these namespaces have not is replaced: `sudo` runs its command, `systemctl` signals or restarts what was
started by the command line of Faucet's own units, and bridges forward in user space. /etc and /var/log are empty or copies.
"""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path

import environment
import tagging
from environment import SOURCE

DOCS = SOURCE / "docs" / "tutorials"
CONFIG = Path("/etc/faucet/faucet.yaml")
LOG = Path("/var/log/faucet/faucet.log")
GAUGE_METRICS = "http://127.0.0.1:9303"
FAUCET_METRICS = "http://127.0.0.1:9302"
PINGS = 20
LIMIT_S = 60
POLL_S = 0.5

STUBS = {
    "sudo": 'exec "$@"\n',
    # reload faucet, restart gauge: the only two that the tutorials use of it here.
    "systemctl": 'kill -HUP "$(cat "$RUN/$2.pid")"\n',
    "ovs-vsctl": """\
bridge=
for word in "$@"; do [ "$last" = add-br ] && bridge=$word; last=$word; done
[ -n "$bridge" ] || exec /usr/bin/ovs-vsctl "$@"
exec /usr/bin/ovs-vsctl "$@" -- set bridge "$bridge" datapath_type=netdev
""",
}


def blocks(tutorial, kind):
    """Code blocks of a tutorial, of this language, in their order."""
    found, lines = [], (DOCS / tutorial).read_text().splitlines()
    for number, line in enumerate(lines):
        start = re.match(rf"(\s*)\.\. code(?:-block)?:: {kind}$", line)
        if not start:
            continue
        block = []
        for following in lines[number + 1:]:
            if following.strip() and len(following) - len(following.lstrip()) <= len(start[1]):
                break
            if not re.match(r"\s*:(caption|name):", following):
                block.append(following)
        found.append(textwrap.dedent("\n".join(block)).strip("\n") + "\n")
    return found


def block(tutorial, kind, text):
    """The first block that has this text."""
    for found in blocks(tutorial, kind):
        if text in found:
            return found
    raise AssertionError(f"{tutorial} has no {kind} with {text!r}")


class Tutorial:
    def __init__(self, engine, run_dir):
        self.run_dir = run_dir
        self.stubs = run_dir / "stubs"
        self.stubs.mkdir()
        for name, text in STUBS.items():
            (self.stubs / name).write_text(f"#!/bin/sh\n{text}")
            (self.stubs / name).chmod(0o755)
        self.environment = environment.variables(engine)
        self.environment |= {"PATH": f"{self.stubs}:{tagging.path(self.environment['PATH'])}", "RUN": str(run_dir)}
        self.processes = {}

    def run(self, text):
        """Runs commands of a tutorial, with its helper functions."""
        script = f". {SOURCE}/helper-funcs\n{text}"
        done = subprocess.run(["bash", "-c", script], env=self.environment, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode != 0:
            raise AssertionError(f"{text}\nfailed: {done.stdout}{done.stderr}")
        self.check(text)
        return done.stdout

    def check(self, text):
        """Faucet runs. Gauge ends itself when the tables of a switch change (its own fault, on any engine), so it is started
        again, as its unit has it (`Restart=always`)."""
        for name, process in self.processes.copy().items():
            if process.poll() is not None:
                assert name == "gauge", f"{name} has ended with {process.returncode}, after: {text}"
                self.start(name)

    def folders(self):
        """Private copies of /etc and /var/log, with Faucet's files where its packages put them."""
        for folder in ("/etc", "/var/log"):
            private = self.run_dir / folder.replace("/", "_")
            private.mkdir()
            if folder == "/etc":
                subprocess.run(["cp", "-a", "/etc/.", private], check=True)
            subprocess.run(["mount", "-n", "--bind", private, folder], check=True)
        Path("/var/log/faucet").mkdir()
        subprocess.run(["cp", "-r", SOURCE / "etc" / "faucet", "/etc/"], check=True)

    def start(self, name):
        """Starts Faucet or Gauge by the command line of its unit, with the variables of its file in /etc/default."""
        unit = (SOURCE / "etc" / "systemd" / "system" / f"{name}.service").read_text()
        words = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)[1]
        lines = (SOURCE / "etc" / "default" / name).read_text().split()
        settings = dict(line.split("=", 1) for line in lines)
        words = re.sub(r"\$\{(\w+)\}", lambda found: settings[found[1]], words).split()
        words[0] = str(environment.BIN / Path(words[0]).name)
        with open(self.run_dir / f"{name}.out", "ab") as output:
            process = subprocess.Popen(words, env=self.environment | settings, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self.processes[name] = process
        (self.run_dir / f"{name}.pid").write_text(str(process.pid))

    def restart(self, name):
        self.processes[name].terminate()
        status = self.processes[name].wait(LIMIT_S)
        assert status in (0, -signal.SIGTERM), f"{name} ended with {status}"
        self.start(name)

    def configure(self, text, reload=True):
        """Writes Faucet's configuration, checks it as the tutorial does, and reloads it."""
        CONFIG.write_text(text)
        self.run("check_faucet_config /etc/faucet/faucet.yaml")
        if not reload:
            return
        seen = LOG.read_text().count("Reloading configuration")
        self.run("sudo systemctl reload faucet")
        until(lambda: LOG.read_text().count("Reloading configuration") > seen, "the configuration is read again")

    def pings(self, words):
        """A ping of the tutorial is answered."""
        assert words.strip().count("\n") == 0, words
        for _ in range(PINGS):
            if self.answered(words):
                print(f"ok: {words.strip()}", flush=True)
                return
        raise AssertionError(f"no answer: {words}\n{LOG.read_text()[-3000:]}")

    def does_not_ping(self, words, tries=3):
        for _ in range(tries):
            assert not self.answered(words), f"answered: {words}"
        print(f"ok, no answer: {words.strip()}", flush=True)

    def stops_pinging(self, words):
        """The same, from some time after a change of the configuration on."""
        until(lambda: not self.answered(words), f"no answer: {words}")
        self.does_not_ping(words)

    def answered(self, words):
        words = words.strip().replace(" ping ", " ping -n -c 1 -W 1 ")
        script = f". {SOURCE}/helper-funcs\n{words}"
        return subprocess.run(["bash", "-c", script], env=self.environment, capture_output=True, check=False).returncode == 0

    def logged(self, text):
        until(lambda: LOG.exists() and text in LOG.read_text(), f"{text!r} in {LOG}")
        print(f"ok: {text}", flush=True)

    def metric(self, address, start):
        """Waits until an exporter of Prometheus has a line that begins with this."""
        def found():
            try:
                lines = urllib.request.urlopen(address, timeout=5).read().decode().splitlines()
            except OSError:
                return None
            return [line for line in lines if line.startswith(start) and not line.endswith(" 0.0")]
        print(f"ok: {until(found, f'{start} at {address}')[0]}", flush=True)

    def captured(self, host, words, text):
        """What a host receives while another one pings."""
        watch = f". {SOURCE}/helper-funcs\nas_ns {host} tcpdump -l -e -n -i veth0"
        with subprocess.Popen(["bash", "-c", watch], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              start_new_session=True) as capture:
            deadline = time.monotonic() + LIMIT_S
            os.set_blocking(capture.stdout.fileno(), False)
            seen = ""
            while text not in seen and time.monotonic() < deadline and capture.poll() is None:
                self.answered(words)
                seen += (capture.stdout.read() or b"").decode(errors="replace")
            os.killpg(capture.pid, signal.SIGTERM)
        assert text in seen, f"{host} has not received {text!r}: {seen}"
        print(f"ok: {host} receives {text}", flush=True)


def until(condition, what):
    deadline = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        time.sleep(POLL_S)
    return value


def first_time(tutorial):
    """Installing Faucet for the first time."""
    name = "first_time.rst"
    CONFIG.write_text((SOURCE / "etc/faucet/faucet.yaml").read_text())
    tutorial.start("faucet")
    tutorial.start("gauge")
    tutorial.logged("Add new datapath DPID 2 (0x2)")
    tutorial.configure(block(name, "yaml", "dp_id: 0x1"))
    tutorial.restart("gauge")
    tutorial.run(block(name, "bash", "create_ns host1"))
    tutorial.run(block(name, "console", "ovs-vsctl add-br br0"))
    tutorial.pings(block(name, "console", "as_ns host1 ping 192.168.0.2"))
    # This version words the line otherwise than its tutorial does.
    tutorial.logged("L2 learned on Port 1")
    tutorial.logged("VLAN 100 (2 hosts total)")
    tutorial.metric(FAUCET_METRICS, 'dp_status{dp_id="0x1",dp_name="sw1"} 1.0')
    tutorial.metric(GAUGE_METRICS, 'of_port_rx_packets{dp_id="0x1",dp_name="sw1"')


def acls(tutorial):
    """The tutorial of ACLs, which goes on from the first one."""
    name = "acls.rst"
    for line in block(name, "console", "create_ns host3").splitlines():
        tutorial.run(line)
    tutorial.run(block(name, "console", "add-port br0 veth-host3"))
    text = block("first_time.rst", "yaml", "dp_id: 0x1").rstrip("\n") + "\n" + block(name, "yaml", "acls_in: [block-ping, allow-all]")
    tutorial.configure(text)
    for line in block(name, "console", "as_ns host1 ping 192.168.0.4").splitlines():
        tutorial.pings(line)
    tutorial.does_not_ping(block(name, "console", "as_ns host1 ping 192.168.0.3"))
    tutorial.configure(text.replace("allow: False", "allow: False\n                mirror: 4"))
    tutorial.captured("host4", "as_ns host1 ping 192.168.0.3", "192.168.0.3 > 192.168.0.1: ICMP echo reply")
    output = "allow: False\n                output:\n                    - port: 4"
    tutorial.configure(text.replace("allow: False", output))
    tutorial.captured("host4", "as_ns host1 ping 192.168.0.3", "192.168.0.3 > 192.168.0.1: ICMP echo reply")
    tagged = output.replace("- port", "- vlan_vid: 3\n                    - port")
    tutorial.configure(text.replace("allow: False", tagged))
    tutorial.captured("host4", "as_ns host1 ping 192.168.0.3", "vlan 3, p 0, ethertype IPv4")
    rewrite = block(name, "yaml", "rewrite-mac:").split("acls:\n")[1].rstrip(". \n")
    host2 = 'description: "host2 network namespace"\n'
    text = text.replace(host2, host2 + "                acls_in: [rewrite-mac, allow-all]\n") + rewrite + "\n"
    tutorial.configure(text)
    tutorial.captured("host1", "as_ns host2 ping 192.168.0.1", "00:00:00:00:00:02 > ")
    tutorial.run("cleanup")


def routing(tutorial):
    """The tutorial of routing, without BIRD."""
    name = "routing.rst"
    tutorial.run(block(name, "console", "create_ns host2 10.0.1.2/24"))
    text = block(name, "yaml", 'faucet_vips: ["10.0.1.254/24"]')
    tutorial.configure(text)
    tutorial.run(block(name, "console", "ip route add default via 10.0.0.254 dev veth0"))
    ping = block(name, "console", "as_ns host1 ping 10.0.1.2")
    tutorial.does_not_ping(ping)
    tutorial.configure(text + block(name, "yaml", "router-1:"))
    tutorial.pings(ping)
    tutorial.run("cleanup")
    for line in block(name, "console", "create_ns server").splitlines():
        tutorial.run(line)
    tutorial.run(block(name, "console", "as_ns server ip route add default"))
    tutorial.run(block(name, "console", "add-port br0 veth-server"))
    text = block(name, "yaml", "router-hosts-servers:")
    tutorial.configure(text)
    tutorial.pings(block(name, "console", "as_ns host1 ping 10.0.1.1"))
    tutorial.run(block(name, "console", "as_ns server ip address add 192.0.2.1/24"))
    tutorial.pings(block(name, "console", "as_ns host1 ping 192.0.2.1"))
    tutorial.run("cleanup")


def vlans(tutorial):
    """The tutorial of VLANs."""
    name = "vlans.rst"
    for text in ("create_ns host1", "create_ns host3", "create_ns host5", "create_ns host7", "create_ns host9", "add-port br0 veth-host3"):
        tutorial.run(block(name, "console", text))
    text = block(name, "yaml", "dp_id: 0x1")
    tutorial.configure(text)
    for ping in ("as_ns host3 ping 192.168.0.4", "as_ns host1 ping 192.168.0.3", "as_ns host3 ping 192.168.0.9"):
        for line in block(name, "console", ping).splitlines():
            tutorial.pings(line)
    address, ping = block(name, "console", "as_ns host1 ping 192.168.0.5").splitlines()
    tutorial.run(address)
    tutorial.does_not_ping(ping)
    tutorial.configure(block(name, "yaml", "block-ping:") + block(name, "yaml", "acls_in: [block-ping]") + text[text.index("dps:"):])
    tutorial.stops_pinging("as_ns host7 ping 192.168.3.8")
    tutorial.pings("as_ns host1 ping 192.168.0.2")
    tutorial.run("cleanup")


def main(engine, run_dir):
    tutorial = Tutorial(engine, Path(run_dir))
    tutorial.folders()
    try:
        for part in (first_time, acls, routing, vlans):
            print(f"== {part.__doc__}", flush=True)
            part(tutorial)
        tutorial.check("the end")
        exceptions = Path("/var/log/faucet/faucet_exception.log")
        assert not exceptions.exists() or not exceptions.read_text(), exceptions.read_text()
    finally:
        for process in tutorial.processes.values():
            process.terminate()
        for output in Path(run_dir).glob("*.out"):
            print(f"---- {output.name}\n{output.read_text(errors='replace')[-4000:]}")
        for log in sorted(Path("/var/log/faucet").glob("*.log")):
            print(f"---- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
