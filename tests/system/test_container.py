"""The container image: built and run without a daemon, as nobody, with switches that connect to it."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

from harness.case import SystemTest
from harness.controller import PORT, listening_ports
from harness.network import Line
from harness.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT_S = 60
OTHER_PORT = 6633
NOBODY = "65534"


class Container(SystemTest):
    """An image of the binary under test."""

    def buildah(self, *words):
        # Nothing of it stays on the machine.
        storage = ("--root", str(self.run_dir / "root"), "--runroot", str(self.run_dir / "run"), "--storage-driver", "vfs")
        return ["buildah", *storage, *words]

    def run_command(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def image(self):
        """A container of the image, made from the archive that operators get."""
        built = self.run_command(str(ROOT / "scripts" / "container"), os.environ["BELLROCK_BIN"], str(self.run_dir))
        return self.run_command(*self.buildah("from", f"oci-archive:{built.splitlines()[-1]}")).splitlines()[-1]

    def start(self, container, port, *options):
        """Runs its command until it listens there."""
        with open(self.logs / "controller.log", "ab") as log:
            running = subprocess.Popen(self.buildah("run", "--isolation", "chroot", *options, container, "--", "/bellrock", "run"),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        until(lambda: running.poll() is not None or port in listening_ports(), LIMIT_S, "the controller listens")
        self.assertIsNone(running.poll(), (self.logs / "controller.log").read_text())
        return running

    def stop(self, running):
        """Ends it as podman does, and returns the user that it ran as."""
        # The kernel ends what is left with the test's namespaces.
        inside = [pid for pid in Path("/proc").iterdir() if pid.name.isdigit() and (pid / "comm").read_text().strip() == "bellrock"]
        self.assertEqual(len(inside), 1, inside)
        user = re.search(r"Uid:\s+(\d+)", (inside[0] / "status").read_text())[1]
        os.kill(int(inside[0].name), signal.SIGTERM)
        self.assertEqual(running.wait(LIMIT_S), 0, "exit status after SIGTERM")
        return user

    def ask(self, container, *words):
        """A command in the container, as by `podman exec`."""
        return json.loads(self.run_command(*self.buildah("run", "--isolation", "chroot", container, "--", "/bellrock", *words, "--json")))

    def test_an_image_runs_as_nobody_and_carries_packets_openflow13(self):
        """As it is, it is the learning switch."""
        container = self.image()
        running = self.start(container, PORT)
        network = self.network(Line(switches=2, hosts=(1, 2)), "OpenFlow13")
        self.assertEqual(network.ping_all(), 0)
        self.assertEqual(len(self.ask(container, "switches")), 2)
        self.assertEqual(self.stop(running), NOBODY, "it runs as nobody")

    def test_the_bill_of_materials_names_the_crates_of_the_binary(self):
        """It is in the image, and lists every crate that the binary says it was made of."""
        root = Path(self.run_command(*self.buildah("mount", self.image())))
        bill = json.loads((root / "bellrock.cdx.json").read_text())
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        command = bill["metadata"]["component"]
        version = self.run_command(os.environ["BELLROCK_BIN"], "--version").removeprefix("bellrock ")
        self.assertEqual((command["name"], command["version"]), ("bellrock", version))
        listed = {f"{part['name']}-{part['version']}" for part in bill["components"]}
        # Panics name the place in the source of their crate, below a directory of the registry.
        places = re.findall(rb"/registry/src/[^/]+/([a-z0-9_-]+-\d+\.\d+\.\d+[a-z0-9.+-]*)/", (root / "bellrock").read_bytes())
        compiled = {place.decode() for place in places}
        self.assertGreater(len(compiled), 20, "the binary names its crates")
        self.assertLessEqual({"rustls", "mio"}, {name.rsplit("-", 1)[0] for name in compiled})
        self.assertEqual(compiled - listed, set(), "crates of the binary that are not in the bill")
        self.assertIn(f"bellrock-engine-{version}", listed)
        others = [part for part in bill["components"] if not part["name"].startswith("bellrock")]
        self.assertEqual([part["name"] for part in others if "licenses" not in part or "hashes" not in part], [])

    def test_a_mounted_file_decides_and_static_entries_stay_openflow13(self):
        """Its `listen` is in force. Entries of `static` are there after a restart of the container."""
        container = self.image()
        file = self.run_dir / "bellrock.yaml"
        file.write_text(json.dumps({"listen": f"0.0.0.0:{OTHER_PORT}", "apps": ["static", "learning"]}))
        mounted = ("--volume", f"{file}:/etc/bellrock/bellrock.yaml:ro")
        running = self.start(container, OTHER_PORT, *mounted)
        self.assertNotIn(PORT, listening_ports())
        network = self.network(Line(switches=1, hosts=(1, 1)), "OpenFlow13", port=OTHER_PORT)
        wall = ("static", "add", "wall", "0000000000000001", "--match", "in_port=9", "--actions", "drop")
        self.assertTrue(self.ask(container, *wall)["saved"])
        self.stop(running)
        running = self.start(container, OTHER_PORT, *mounted)
        network.await_connected()
        until(lambda: [row["state"] for row in self.ask(container, "static", "list")] == ["installed"], LIMIT_S, "the entry is in the switch")
        self.stop(running)
