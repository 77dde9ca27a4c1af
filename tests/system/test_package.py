"""The Debian package: it installs into a directory of its own, runs as its unit says, and leaves nothing behind."""

import gzip
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from harness.case import SystemTest
from harness.controller import listening_ports, without_own_variables
from harness.openvswitch import command
from harness.waiting import until

ROOT_OF_PROJECT = Path(__file__).resolve().parents[2]
LIMIT_S = 60
PORT = 6653
# nobody and nogroup.
NOBODY = "65534"
WATCHDOG_S = 3


class Package(SystemTest):
    """Built from the binary under test, by the script that builds the real one."""

    time_limit_s = 240

    def dpkg(self, *words):
        # Maintainer scripts see DPKG_ROOT, and change nothing outside of it.
        options = [f"--root={self.root}", "--force-script-chrootless", "--force-depends", "--log=/dev/null"]
        return command("dpkg", *options, *words)

    def install(self):
        environment = {**without_own_variables(), "DPKG_DEB_COMPRESSOR_TYPE": "none"}
        built = subprocess.run([ROOT_OF_PROJECT / "scripts/deb", os.environ["BELLROCK_BIN"], self.run_dir], env=environment,
                               capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(built.returncode, 0, built.stderr)
        [package] = self.run_dir.glob("bellrock_*.deb")
        self.root = self.run_dir / "root"
        for name in ("info", "updates", "triggers"):
            (self.root / "var/lib/dpkg" / name).mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").touch()
        for directory in (self.run_dir, self.root):
            directory.chmod(0o755)
        self.dpkg("--install", str(package))

    def files(self):
        """What is in the root, without dpkg's own files."""
        found = (path.relative_to(self.root) for path in self.root.rglob("*") if not path.is_dir())
        return [path for path in found if not str(path).startswith("var/lib/dpkg")]

    def unit(self, key):
        """A setting of the unit."""
        text = (self.root / "usr/lib/systemd/system/bellrock.service").read_text()
        return re.search(rf"^{key}=(.*)$", text, re.M)[1]

    def inside(self, line):
        """A command of the unit, with its absolute paths in the root."""
        return [str(self.root) + word if word.startswith("/") else word for word in line.split()]

    def test_install_run_as_the_unit_says_and_remove(self):
        self.install()
        subprocess.run(self.inside(self.unit("ExecStartPre")), env=without_own_variables(), check=True, timeout=LIMIT_S,
                       capture_output=True)
        self.assertEqual((self.unit("Type"), self.unit("ExecReload")), ("notify", "/bin/kill -HUP $MAINPID"))
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notices.close)
        notices.bind(str(self.run_dir / "notify"))
        notices.settimeout(LIMIT_S)
        os.chmod(self.run_dir / "notify", 0o777)
        control = self.run_dir / "control"
        control.mkdir()
        os.chown(control, int(NOBODY), int(NOBODY))
        environment = {**without_own_variables(), "NOTIFY_SOCKET": str(self.run_dir / "notify"),
                       "WATCHDOG_USEC": str(WATCHDOG_S * 1_000_000), "BELLROCK_CONTROL": str(control / "bellrock.sock")}
        as_nobody = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs"]
        with open(self.logs / "service.log", "wb") as log:
            service = subprocess.Popen(as_nobody + self.inside(self.unit("ExecStart")), env=environment,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(service.kill)
        self.assertRegex(notices.recv(4096).decode(), r"READY=1\nSTATUS=listening on 127.0.0.1:6653")
        self.assertIn(PORT, listening_ports(service.pid))
        # Two signs of life, which no reload disturbs.
        self.assertEqual(notices.recv(4096), b"WATCHDOG=1\n")
        service.send_signal(signal.SIGHUP)
        self.assertEqual(notices.recv(4096), b"WATCHDOG=1\n")
        until(lambda: "the configuration is read again" in (self.logs / "service.log").read_text(), LIMIT_S, "a reload")
        service.terminate()
        notice = notices.recv(4096)
        while notice == b"WATCHDOG=1\n":
            notice = notices.recv(4096)
        self.assertEqual(notice, b"STOPPING=1\n")
        self.assertEqual(service.wait(LIMIT_S), 0)
        self.dpkg("--purge", "bellrock")
        self.assertEqual(self.files(), [])

    def test_what_users_look_for_is_there(self):
        """Manual pages, completions, and a configuration that an upgrade keeps."""
        self.install()
        share = self.root / "usr/share"
        page = gzip.decompress((share / "man/man1/bellrock-run.1.gz").read_bytes()).decode()
        self.assertIn(".TH", page)
        self.assertIn("\\-\\-listen", page)
        completions = share / "bash-completion/completions/bellrock"
        words = command("bash", "-c", f"source {completions}; COMP_WORDS=(bellrock rel); COMP_CWORD=1; "
                                      "_bellrock bellrock rel bellrock; echo ${COMPREPLY[@]}")
        self.assertEqual(sorted(words.split()), ["release", "reload"])
        configuration = self.root / "etc/bellrock/bellrock.yaml"
        configuration.write_text("apps: [hub]\n")
        [package] = self.run_dir.glob("bellrock_*.deb")
        self.dpkg("--install", str(package))
        self.assertEqual(configuration.read_text(), "apps: [hub]\n")
        self.dpkg("--remove", "bellrock")
        self.assertEqual(self.files(), [Path("etc/bellrock/bellrock.yaml")])
