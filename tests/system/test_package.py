"""The Debian package: it installs into a directory of its own, runs as its unit says, and leaves nothing behind."""

import gzip
import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from harness.case import SystemTest
from harness.controller import listening_ports, without_own_variables
from harness.network import Line
from harness.openvswitch import command
from harness.waiting import until

ROOT_OF_PROJECT = Path(__file__).resolve().parents[2]
LIMIT_S = 60
PORT = 6653
# nobody and nogroup.
NOBODY = "65534"
WATCHDOG_S = 3
MAX_EXPOSURE = 20


class Package(SystemTest):
    """Built from the binary under test, by the script that builds the real one."""

    time_limit_s = 240

    def dpkg(self, *words):
        # Maintainer scripts see DPKG_ROOT, and change nothing outside of it.
        options = [f"--root={self.root}", "--force-script-chrootless", "--force-depends", "--log=/dev/null"]
        return command("dpkg", *options, *words)

    def install(self, *wheel):
        environment = {**without_own_variables(), "DPKG_DEB_COMPRESSOR_TYPE": "none"}
        words = [ROOT_OF_PROJECT / "scripts/deb", os.environ["BELLROCK_BIN"], self.run_dir, *wheel]
        built = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(built.returncode, 0, built.stderr)
        [package] = self.run_dir.glob("bellrock_*.deb")
        self.root = self.run_dir / "root"
        for name in ("info", "updates", "triggers"):
            (self.root / "var/lib/dpkg" / name).mkdir(parents=True)
        (self.root / "var/lib/dpkg/status").touch()
        for directory in (self.run_dir, self.root):
            directory.chmod(0o755)
        self.dpkg("--install", str(package), *map(str, self.run_dir.glob("python3-bellrock_*.deb")))

    def files(self):
        """What is in the root, without dpkg's own files."""
        found = (path.relative_to(self.root) for path in self.root.rglob("*") if not path.is_dir())
        return [path for path in found if not str(path).startswith("var/lib/dpkg")]

    def check_bill_of_materials(self):
        """It fits CycloneDX's own schema, and has what is compiled in, and nothing else."""
        path = self.root / "usr/share/doc/bellrock/bellrock.cdx.json"
        python = command(str(ROOT_OF_PROJECT / "scripts/tools"), "python").strip()
        check = ("import sys; from cyclonedx.schema import SchemaVersion; from cyclonedx.validation.json import JsonStrictValidator; "
                 "wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read()); sys.exit(str(wrong) if wrong else 0)")
        command(python, "-c", check, str(path))
        bill = json.loads(path.read_text())
        crates = {component["name"] for component in bill["components"]}
        self.assertTrue({"bellrock", "bellrock-engine", "rustls", "tokio"} <= crates, crates)
        self.assertFalse({"proptest", "allocation-counter", "tempfile"} & crates, "crates of tests only")
        foreign = [component for component in bill["components"] if not component["name"].startswith("bellrock")]
        self.assertTrue(all(component["licenses"] and component["hashes"] for component in foreign))
        version = command(os.environ["BELLROCK_BIN"], "--version").split()[1]
        self.assertEqual(bill["metadata"]["component"]["version"], version)
        ends = {edge["ref"] for edge in bill["dependencies"]}
        self.assertTrue(all(end in ends for edge in bill["dependencies"] for end in edge["dependsOn"]))

    def unit_text(self):
        return (self.root / "usr/lib/systemd/system/bellrock.service").read_text()

    def unit(self, key):
        """A setting of the unit."""
        return re.search(rf"^{key}=(.*)$", self.unit_text(), re.M)[1]

    def inside(self, line):
        """A command of the unit, with its absolute paths in the root."""
        return [str(self.root) + word if word.startswith("/") else word for word in line.split()]

    def own_directory(self, path):
        """A directory of the unit's user, as systemd makes it."""
        path.mkdir(parents=True)
        os.chown(path, int(NOBODY), int(NOBODY))
        path.chmod(0o700)
        return path

    def service(self):
        """Runs the unit's command as systemd does: its user, its rights and its directories. Returns it when it is
        ready, and the socket with its notices."""
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(notices.close)
        address = self.run_dir / "notify"
        address.unlink(missing_ok=True)
        notices.bind(str(address))
        notices.settimeout(LIMIT_S)
        address.chmod(0o777)
        variable, value = self.unit("Environment").split("=")
        environment = {**without_own_variables(), "NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": str(WATCHDOG_S * 1_000_000),
                       variable: str(self.root) + value, "STATE_DIRECTORY": str(self.state)}
        self.assertEqual((self.unit("CapabilityBoundingSet"), self.unit("NoNewPrivileges")), ("", "yes"))
        as_its_user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                       "--inh-caps=-all"]
        with open(self.logs / "service.log", "ab") as log:
            service = subprocess.Popen(as_its_user + self.inside(self.unit("ExecStart")), env=environment,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log, umask=int(self.unit("UMask"), 8))
        self.addCleanup(service.kill)
        self.assertRegex(notices.recv(4096).decode(), r"READY=1\nSTATUS=listening on 127.0.0.1:6653")
        return service, notices

    def prepare(self):
        """The directories that systemd makes for the unit."""
        for key, value in (("RuntimeDirectory", "bellrock"), ("StateDirectory", "bellrock"), ("DynamicUser", "yes")):
            self.assertEqual(self.unit(key), value, key)
        self.own_directory(self.root / "run/bellrock")
        self.state = self.own_directory(self.root / "var/lib/private/bellrock")
        (self.root / "var/lib/bellrock").symlink_to("private/bellrock")

    def test_install_run_as_the_unit_says_and_remove(self):
        self.install()
        self.prepare()
        subprocess.run(self.inside(self.unit("ExecStartPre")), env=without_own_variables(), check=True, timeout=LIMIT_S,
                       capture_output=True)
        self.assertEqual((self.unit("Type"), self.unit("ExecReload")), ("notify", "/bin/kill -HUP $MAINPID"))
        service, notices = self.service()
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
        (self.root / "run/bellrock").rmdir()
        self.dpkg("--purge", "bellrock")
        self.assertEqual(self.files(), [])

    def test_a_static_entry_stays_over_a_restart_of_the_service_openflow13(self):
        """On Open vSwitch, by the unit's command, user and state directory. Only a purge removes the state."""
        self.install()
        self.prepare()
        (self.root / "etc/bellrock/bellrock.yaml").write_text("apps: [static, learning]\n")
        control = self.root / "run/bellrock/bellrock.sock"

        def ask(*words):
            return json.loads(command(str(self.root / "usr/bin/bellrock"), *words, "--json", "--control", str(control)))

        service, _ = self.service()
        network = self.network(Line(switches=1, hosts=(1, 1)), "OpenFlow13")
        self.assertEqual(network.ping_all(), 0)
        wall = ("static", "add", "wall", "0000000000000001", "--match", "eth_type=0x0800,ipv4_dst=10.0.0.2", "--actions", "drop")
        self.assertTrue(ask(*wall)["saved"])
        self.assertEqual(network.ping_all(), 100)
        service.terminate()
        self.assertEqual(service.wait(LIMIT_S), 0)
        service, _ = self.service()
        network.await_connected()
        until(lambda: [row["state"] for row in ask("static", "list")] == ["installed"], LIMIT_S, "the entry is in the switch")
        self.assertEqual(network.ping_all(), 100)
        service.terminate()
        self.assertEqual(service.wait(LIMIT_S), 0)
        file = self.state / "static.json"
        self.assertEqual((file.stat().st_uid, file.stat().st_mode & 0o777), (int(NOBODY), 0o600))
        self.dpkg("--remove", "bellrock")
        self.assertTrue(file.exists())
        self.dpkg("--purge", "bellrock")
        self.assertEqual(list((self.root / "var/lib/private").iterdir()), [])
        self.assertEqual(self.files(), [])

    def test_systemd_understands_the_unit(self):
        """Without a warning, and with the isolation that it promises."""
        self.install()
        unit = self.run_dir / "bellrock.service"
        unit.write_text(self.unit_text().replace("=/usr/bin/", f"={self.root}/usr/bin/"))
        verified = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
        # Units of the machine, which the unit needs, may have faults of their own.
        own = [line for line in verified.stderr.splitlines() if "bellrock" in line]
        self.assertEqual((own, verified.returncode), ([], 0), verified.stderr)
        # Tenths of the points of `systemd-analyze security`: 0 is fully isolated, 100 is not at all.
        command("systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", str(unit))

    def test_make_install_puts_all_in_its_place(self):
        """Below DESTDIR, with the unit where administrators have theirs. An existing configuration stays."""
        tools = self.run_dir / "tools"
        tools.mkdir()
        # The binary under test stands for the one that cargo would build.
        (tools / "cargo").write_text("#!/bin/sh\n")
        (tools / "cargo").chmod(0o755)
        release = self.run_dir / "target/release"
        release.mkdir(parents=True)
        (release / "bellrock").symlink_to(os.environ["BELLROCK_BIN"])
        place = self.run_dir / "place"
        environment = {**without_own_variables(), "PATH": f"{tools}:{os.environ['PATH']}"}
        install = ["make", "--directory", str(ROOT_OF_PROJECT), "install", f"TARGET={self.run_dir / 'target'}", f"DESTDIR={place}"]
        subprocess.run(install, env=environment, check=True, timeout=LIMIT_S, capture_output=True)
        configuration = place / "etc/bellrock/bellrock.yaml"
        self.assertEqual(configuration.read_text(), command(os.environ["BELLROCK_BIN"], "config"))
        configuration.write_text("apps: [hub]\n")
        subprocess.run(install, env=environment, check=True, timeout=LIMIT_S, capture_output=True)
        self.assertEqual(configuration.read_text(), "apps: [hub]\n")
        program = place / "usr/local/bin/bellrock"
        self.assertRegex(command(str(program), "--version"), r"^bellrock \d")
        unit = (place / "etc/systemd/system/bellrock.service").read_text()
        self.assertIn("ExecStart=/usr/local/bin/bellrock run", unit)
        for file in ("man/man1/bellrock-run.1.gz", "bash-completion/completions/bellrock", "zsh/site-functions/_bellrock",
                     "fish/vendor_completions.d/bellrock.fish", "bellrock/grafana/overview.json", "bellrock/prometheus/bellrock.rules.yml"):
            self.assertTrue((place / "usr/local/share" / file).exists(), file)

    def test_the_python_half_is_a_package_of_its_own(self):
        """Debian's Python has it without pip, and the command names the wheel to an interpreter that lacks it."""
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT_OF_PROJECT / "target"))
        [wheel] = (target / "wheels/dev").glob("bellrock-*.whl")
        self.install(wheel)
        program = str(self.root / "usr/bin/bellrock")
        version = command(program, "--version").split()[1]
        packages = self.root / "usr/lib/python3/dist-packages"
        told = command("env", f"PYTHONPATH={packages}", "/usr/bin/python3", "-c",
                       "import bellrock, bellrock.osken.__main__; print(bellrock.__file__, bellrock.__version__)")
        self.assertEqual(told.split(), [f"{packages}/bellrock/__init__.py", version])
        [packaged] = (self.root / "usr/share/bellrock").glob("*.whl")
        self.assertEqual(packaged.read_bytes(), wheel.read_bytes())
        app = self.run_dir / "hub.py"
        app.write_text("")
        config = self.run_dir / "python.yaml"
        config.write_text(f"apps: [{app}]\n")
        doctor = subprocess.run([program, "doctor", "--config", str(config)], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                                env={**without_own_variables(), "BELLROCK_PYTHON": "/usr/bin/python3"})
        self.assertIn(f"-m pip install {packaged.resolve()}", doctor.stdout)
        self.dpkg("--purge", "python3-bellrock")
        self.dpkg("--purge", "bellrock")
        self.assertEqual(self.files(), [])

    def check_documents(self):
        """The manual is there, and each link of it leads somewhere."""
        documents = self.root / "usr/share/doc/bellrock"
        pages = sorted(documents.rglob("*.md"))
        self.assertIn(documents / "book/guide/operate.md", pages)
        for page in pages:
            text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
            for link in re.findall(r"\]\(([^)\s]+)\)", text):
                place = link.partition("#")[0]
                if place and "://" not in link and not link.startswith("mailto:"):
                    self.assertTrue((page.parent / place).exists(), f"{page}: {link}")

    def check_fields(self):
        [package] = self.run_dir.glob("bellrock_*.deb")
        maintainer = command("dpkg-deb", "--field", str(package), "Maintainer").strip()
        self.assertRegex(maintainer, r"^\S.* <\S+@\S+>$")
        self.assertNotIn(".invalid", maintainer)
        sections = command("readelf", "--sections", "--wide", str(self.root / "usr/bin/bellrock"))
        self.assertNotRegex(sections, r"\.symtab|\.debug_info")

    def test_manual_pages_completions_and_configuration_are_installed(self):
        """Manual pages, completions, a bill of materials, and a configuration that an upgrade keeps."""
        self.install()
        self.check_bill_of_materials()
        self.check_documents()
        self.check_fields()
        share = self.root / "usr/share"
        page = gzip.decompress((share / "man/man1/bellrock-run.1.gz").read_bytes()).decode()
        self.assertIn(".TH", page)
        self.assertIn("\\-\\-listen", page)
        completions = share / "bash-completion/completions/bellrock"
        words = command("bash", "-c", f"source {completions}; COMP_WORDS=(bellrock rel); COMP_CWORD=1; "
                                      "_bellrock bellrock rel bellrock; echo ${COMPREPLY[@]}")
        self.assertEqual(sorted(words.split()), ["relays", "release", "reload"])
        configuration = self.root / "etc/bellrock/bellrock.yaml"
        configuration.write_text("apps: [hub]\n")
        [package] = self.run_dir.glob("bellrock_*.deb")
        self.dpkg("--install", str(package))
        self.assertEqual(configuration.read_text(), "apps: [hub]\n")
        self.dpkg("--remove", "bellrock")
        self.assertEqual(self.files(), [Path("etc/bellrock/bellrock.yaml")])
