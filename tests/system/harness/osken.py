"""osken-manager on Bellrock with programs, and the REST interfaces of these. Its environment is that of `scripts/python test`."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

from .case import SystemTest
from .controller import LOOPBACK, Controller
from .python import ROOT, python
from .waiting import until

OWN = ROOT / "python" / "osken_tests" / "apps"
V10, V13 = "OpenFlow10", "OpenFlow13"
HOST, PORT = LOOPBACK.split(":")
# Ryu's own port for REST.
REST_PORT = 8080
LIMIT_S = 60


def runs(*applications, what):
    """Marks a test that runs these of Ryu's applications, unchanged. The manual's table has what it does with them."""
    def mark(method):
        method.applications = [*getattr(method, "applications", []), *((name, what) for name in applications)]
        return method
    return mark


def app_file(name):
    """The file of one of Ryu's applications, in the environment."""
    environment = Path(python("tests-osken")).parent.parent
    [folder] = environment.glob("lib/python3*/site-packages/os_ken/app")
    return folder / f"{name}.py"


class Program(Controller):
    """osken-manager with programs."""

    # Python imports os-ken and the applications first.
    start_limit_s = LIMIT_S

    def __init__(self, logs, run_dir, hub, apps, options=(), port=None):
        super().__init__(logs, run_dir)
        # What it listens on when it has started.
        self.port = port or self.port
        os.environ["OSKEN_HUB_TYPE"] = hub
        settings = run_dir / "bellrock.yaml"
        settings.write_text(f"control: {self.control}\n")
        self.command = [python("tests-osken"), "-W", "ignore", "-u", "-m", "bellrock.osken", "--ofp-listen-host", HOST,
                        "--ofp-tcp-listen-port", PORT, "--bellrock-config", str(settings), "--wsapi-host", HOST,
                        *options, *map(str, apps)]


class OsKenTest(SystemTest):
    """Programs on Bellrock, with switches of Open vSwitch."""

    def run_programs(self, hub, *apps, **options):
        controller = Program(self.logs, self.run_dir, hub, apps, **options)
        controller.start()
        self.controllers.append(controller)
        self.addCleanup(self._end, controller)
        return controller

    def _end(self, controller):
        if not controller.died():
            controller.process.kill()
            controller.process.wait()

    def logged(self, controller, *texts):
        """Waits until the log has all of these texts."""
        until(lambda: all(text in controller.text() for text in texts), LIMIT_S, f"in the log: {texts}")

    def rest(self, path, body=None, method=None):
        """Sends a request, which must succeed. Returns the answer, as JSON if it is some."""
        status, text = self.rest_answer(path, body, method)
        self.assertEqual(status, 200, f"{path}: {text}")
        try:
            return json.loads(text)
        except ValueError:
            return text

    def rest_answer(self, path, body=None, method=None):
        """The status and the text of the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{HOST}:{REST_PORT}{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT_S) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
