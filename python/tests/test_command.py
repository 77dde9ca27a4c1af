"""What `bellrock run` starts for a chain with apps in Python: settings, log, signals, reloads, reports to systemd."""

import importlib.metadata
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from switch import PACKET_OUT, SwitchEnd

BOOTSTRAP = Path(__file__).resolve().parents[2] / "crates/cli/src/python/bootstrap.py"
FRAME = bytes.fromhex("ffffffffffff 020000000001 0800") + bytes(46)
LIMIT_S = 20

HUB = """
    import logging
    import bellrock

    log = logging.getLogger("of.mine")

    class Hub(bellrock.App):
        def packet_in(self, switch, packet):
            log.debug("a packet of %d bytes", len(packet.data))
            switch.packet_out(packet, bellrock.Port.FLOOD)
"""


class Run:
    """The process that takes the place of the command."""

    def __init__(
        self,
        folder: Path,
        app: str,
        config: dict[str, object] | None = None,
        *,
        apps: Sequence[str] = (),
        version: str | None = None,
        interpreter: Sequence[str] = (sys.executable,),
        environment: dict[str, str] | None = None,
        reload: bool = False,
    ) -> None:
        self.app = folder / "my_app.py"
        self.app.write_text(textwrap.dedent(app))
        self.file = folder / "bellrock.yaml"
        self.configure({"listen": "127.0.0.1:0", **(config or {})})
        control = {"key": "control", "origin": "--control", "values": ["none"]}
        workers = {"key": "workers", "origin": "--workers", "values": ["1"]}
        sources = {
            "file": str(self.file),
            "overrides": [control, workers],
            "apps": list(apps) or [str(self.app)],
        }
        run = {
            "version": version or importlib.metadata.version("bellrock"),
            "options": {"sources": sources, "watch_config": False, "reload_apps": reload},
            "warnings": ["a warning of the command"],
        }
        self.process = subprocess.Popen(
            [*interpreter, "-c", BOOTSTRAP.read_text(), json.dumps(run)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, **(environment or {})},
        )
        self.lines: list[str] = []
        # A test that would wait for ever fails instead.
        self.watchdog = threading.Timer(2 * LIMIT_S, self.process.kill)
        self.watchdog.start()

    def configure(self, config: dict[str, object]) -> None:
        # Under another name first: a reload must not find half a file.
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(config))
        new.replace(self.file)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.watchdog.cancel()
        self.process.kill()
        self.process.communicate()

    def until(self, text: str) -> str:
        """Reads lines of the log until one has this text, and returns it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"no line has {text!r}:\n{''.join(self.lines)}")

    def address(self) -> str:
        line = self.until("listening on ")
        found = re.search(r"listening on (\S+)", line)
        assert found is not None
        address = found[1]
        self.until(" runs the apps: ")
        return address

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """The exit status. The rest of the log is in `lines`."""
        assert self.process.stderr is not None
        self.lines += self.process.stderr.readlines()
        return self.process.wait(LIMIT_S)


def _served(address: str) -> None:
    with SwitchEnd(address) as switch:
        switch.packet_in(FRAME)
        assert switch.receive(PACKET_OUT).endswith(FRAME)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_file_runs_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with Run(tmp_path, HUB) as run:
        assert " WARN a warning of the command" in run.until("warning")
        run.until("my_app.py: apps: Hub")
        _served(run.address())
        assert run.end(number) == 0
        assert "stopped\n" in run.lines[-1]
        assert f"{number.name}: writing what waits" in "".join(run.lines)
        assert "a packet of" not in "".join(run.lines), "debug is not logged"
        assert "ovs-vsctl" not in "".join(run.lines), "who writes an app needs no advice at each start"


def test_a_second_signal_ends_it_while_an_app_blocks(tmp_path: Path) -> None:
    app = """
        import time
        def blocks(switch, packet):
            print("it blocks")
            while True:
                time.sleep(60)
    """
    with Run(tmp_path, app) as run, SwitchEnd(run.address()) as switch:
        switch.packet_in(FRAME)
        assert run.process.stdout is not None
        assert run.process.stdout.readline() == "it blocks\n"
        # Reloads do not wait for the app.
        run.process.send_signal(signal.SIGHUP)
        run.until("the configuration is read again; changes: 0")
        run.process.send_signal(signal.SIGTERM)
        run.until("a handler of an app delays the end; a second signal ends at once")
        assert run.end() == 128 + signal.SIGTERM


def test_lines_of_python_have_the_format_of_the_log(tmp_path: Path) -> None:
    app = """
        import logging, warnings
        import bellrock
        def fails(switch, packet):
            warnings.warn("it is odd")
            raise RuntimeError("it fails\\nat two lines")
        logging.getLogger("of.mine").warning("loaded %s", __name__)
    """
    with Run(tmp_path, app, {"log_format": "json"}) as run:
        lines = run.until("loaded my_app")
        assert json.loads(lines)["logger"] == "of.mine" and json.loads(lines)["level"] == "WARN"
        with SwitchEnd(run.address()) as switch:
            switch.packet_in(FRAME)
            odd = json.loads(run.until("it is odd"))
            assert odd["logger"] == "py.warnings"
            failed = json.loads(run.until("app fails raised an exception"))
        assert failed["level"] == "ERROR" and "logger" not in failed
        assert "Traceback (most recent call last):\n" in failed["message"]
        assert failed["message"].endswith("RuntimeError: it fails\nat two lines")
        assert run.end() == 0
        assert all(json.loads(line)["timestamp"] for line in run.lines)


def test_a_reload_changes_the_level_of_python_too(tmp_path: Path) -> None:
    with Run(tmp_path, HUB) as run:
        address = run.address()
        _served(address)
        run.configure({"listen": "127.0.0.1:0", "log_level": "debug"})
        run.process.send_signal(signal.SIGHUP)
        run.until("log_level: info -> debug")
        run.until("the configuration is read again; changes: 1")
        found = threading.Event()

        def send() -> None:
            with SwitchEnd(address) as switch:
                while not found.wait(0.1):
                    switch.packet_in(FRAME)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            run.until("a packet of 60 bytes")
        finally:
            found.set()
            sender.join()
        assert any('DEBUG a packet of 60 bytes logger="of.mine"' in line for line in run.lines)
        run.configure({"listen": "127.0.0.1:0", "log_level": "info"})
        run.app.write_text("changed")
        run.process.send_signal(signal.SIGHUP)
        assert " WARN " in run.until("my_app.py has changed since the start; a restart loads it")
        run.configure({"listen": "127.0.0.1:0", "workers": 7, "write": "immediate"})
        run.process.send_signal(signal.SIGHUP)
        run.until("not reloaded: write: coalesce -> immediate (restart)")
        assert run.end() == 0


def test_an_app_is_allowed_less_by_its_name(tmp_path: Path) -> None:
    app = """
        import bellrock
        class Hub(bellrock.App):
            def packet_in(self, switch, packet):
                switch.packet_out(packet, bellrock.Port.FLOOD)
    """
    with Run(tmp_path, app, {"allow": {"Hub": "none"}}) as run, SwitchEnd(run.address()) as switch:
        switch.packet_in(FRAME)
        run.until("the app Hub is not allowed to send packets")
        assert run.end() == 0
    with Run(tmp_path, app, {"allow": {"Hubb": "none"}}) as run:
        assert run.ended() == 1
        assert run.lines[-1] == (
            'bellrock: the app "Hubb" has an allowance, and is not in the chain\n'
        )


def test_a_chain_has_apps_of_both_kinds(tmp_path: Path) -> None:
    app = """
        import bellrock
        class First(bellrock.App):
            def packet_in(self, switch, packet):
                return bellrock.Verdict.PASS
        class Second(bellrock.App):
            def packet_in(self, switch, packet):
                return bellrock.Verdict.PASS
    """
    with Run(tmp_path, app, apps=["./my_app.py", "hub"]) as run:
        run.until("./my_app.py: apps: First, Second")
        _served(run.address())
        assert run.end() == 0
    with Run(tmp_path, app, apps=["hub", "./my_app.py"]) as run:
        run.until('WARN the app "First" stands behind "hub"')
        run.until('WARN the app "Second" stands behind "hub"')
        run.address()
        assert run.end() == 0


@pytest.mark.parametrize(
    ("app", "last"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def", "SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("raise KeyError", "KeyError"),
    ],
)
def test_a_file_that_raises_is_named_with_its_traceback(tmp_path: Path, app: str, last: str) -> None:
    with Run(tmp_path, app, apps=["./my_app.py"]) as run:
        assert run.ended() == 1
        lines = "".join(run.lines)
        assert re.search(rf"ERROR ./my_app.py:\d cannot be loaded: {re.escape(last)}", lines), lines
        assert re.search(rf"my_app.py\", line \d.*\n{last}", lines, re.DOTALL), lines
        assert "_load.py" not in lines and "importlib" not in lines


@pytest.mark.parametrize(
    ("app", "last"),
    [
        ("", "ERROR ./my_app.py: it has no app; write"),
        (
            "import bellrock\nclass A(bellrock.App): name = 'x'\nclass B(bellrock.App): name = 'x'",
            "ERROR two apps are called 'x'; give one of them another `name`",
        ),
        (
            "import bellrock\nclass A(bellrock.App):\n    forwards = 'some'\n    def tick(self, switch): ...",
            'ValueError: forwards: \'some\' is not "unknown"',
        ),
    ],
)
def test_a_file_without_a_right_app_is_an_error(tmp_path: Path, app: str, last: str) -> None:
    with Run(tmp_path, app, apps=["./my_app.py"]) as run:
        assert run.ended() == 1
        assert last.replace("'some'", '"some"') in run.lines[-1].replace("'some'", '"some"')


def test_an_app_that_cannot_start_ends_it(tmp_path: Path) -> None:
    app = """
        import bellrock
        class A(bellrock.App):
            def start(self, network):
                raise RuntimeError("no database")
    """
    with Run(tmp_path, app) as run:
        assert run.ended() == 1
        lines = "".join(run.lines)
        assert "ERROR an app cannot start" in lines and lines.endswith("RuntimeError: no database\n")


def test_a_handler_may_end_the_program(tmp_path: Path) -> None:
    with Run(tmp_path, "def ends(switch, packet):\n    raise SystemExit(7)") as run:
        with SwitchEnd(run.address()) as switch:
            switch.packet_in(FRAME)
            assert run.ended() == 7


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with Run(tmp_path, HUB, {"listen": f"127.0.0.1:{port}"}) as run:
            assert run.ended() == 1
            assert run.lines[-1].startswith("bellrock: ")
            assert f"choose another port, such as --listen 127.0.0.1:{port + 1}" in run.lines[-1]


def test_a_wrong_setting_is_an_error_with_its_place(tmp_path: Path) -> None:
    with Run(tmp_path, HUB, {"wriite": 1}) as run:
        assert run.ended() == 2
        assert f'bellrock: {run.file}:1:27: "wriite" is no setting' in run.lines[0]


def test_another_version_of_the_command_is_an_error(tmp_path: Path) -> None:
    with Run(tmp_path, HUB, version="0.0.0") as run:
        assert run.ended() == 1
        assert run.lines[-1].startswith("bellrock: the command bellrock has version 0.0.0, and")


def test_an_interpreter_without_the_package_says_how_to_get_it(tmp_path: Path) -> None:
    # The current folder is not searched for it either.
    (tmp_path / "bellrock").mkdir()
    (tmp_path / "bellrock" / "__init__.py").write_text("raise SystemExit('not this one')")
    with Run(tmp_path, HUB, interpreter=(sys.executable, "-E", "-S")) as run:
        assert run.ended() == 1
        # The command puts the advice there.
        assert "has no package bellrock, which apps in Python need. @ADVICE@" in run.lines[-1]


def test_a_service_reports_that_it_is_ready_lives_and_stops(tmp_path: Path) -> None:
    place = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(place))
        systemd.settimeout(LIMIT_S)
        environment = {"NOTIFY_SOCKET": str(place), "WATCHDOG_USEC": "300000"}
        with Run(tmp_path, HUB, environment=environment) as run:
            ready = systemd.recv(4096).decode()
            assert ready.startswith("READY=1\nSTATUS=listening on 127.0.0.1:")
            assert systemd.recv(4096).decode().strip() == "WATCHDOG=1"
            run.process.send_signal(signal.SIGTERM)
            while systemd.recv(4096).decode().strip() == "WATCHDOG=1":
                pass
            assert run.ended() == 0
