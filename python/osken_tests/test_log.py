"""Lines of Bellrock's engine go where the options send those of os-ken."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

from manager import APPS, Manager, wait_until
from switch13 import Switch13

UP, END = "switch up, for its raw owner dpid=0000000000000005", "connection closed dpid=0000000000000005"


def test_a_file_has_the_lines_of_the_engine(hub: str, tmp_path: Path) -> None:
    log_file = tmp_path / "log"
    manager = Manager(hub, ["--log-file", str(log_file), "--nouse-stderr", str(APPS / "order.py")])
    wait_until(lambda: log_file.exists() and "listening on 127.0.0.1:" in log_file.read_text(), "the first line of the engine")
    with Switch13(manager.port, dpid=5):
        manager.until("event dp True 5")
        wait_until(lambda: UP in log_file.read_text(), "a line about the switch")
        assert manager.end(signal.SIGINT) == 0, "".join(manager.lines)
    # Those of the end are not lost.
    assert END in log_file.read_text()
    assert not any("listening on" in line or UP in line for line in manager.lines), "".join(manager.lines)


def test_standard_error_has_them_too(hub: str, tmp_path: Path) -> None:
    manager = Manager(hub, ["--log-file", str(tmp_path / "log"), str(APPS / "order.py")])
    manager.until("listening on 127.0.0.1:")
    manager.process.kill()
    manager.ended()


def test_the_level_is_that_of_os_ken(tmp_path: Path) -> None:
    for option, has_info, has_debug in ((["--verbose"], True, True), ([], True, False), (["--default-log-level", "30"], False, False)):
        log_file = tmp_path / "log"
        log_file.write_text("")
        manager = Manager("eventlet", ["--log-file", str(log_file), "--nouse-stderr", *option, str(APPS / "order.py")])
        with ConnectedSwitch(manager):
            assert manager.end(signal.SIGINT) == 0
        assert (UP in log_file.read_text()) == has_info, option
        assert ("connected peer=" in log_file.read_text()) == has_debug, log_file.read_text()


def test_a_format_of_the_program(tmp_path: Path) -> None:
    config, log_file = tmp_path / "logging.ini", tmp_path / "log"
    config.write_text("[loggers]\nkeys=root\n[handlers]\nkeys=file\n[formatters]\nkeys=own\n"
                      "[logger_root]\nlevel=INFO\nhandlers=file\n"
                      f"[handler_file]\nclass=FileHandler\nformatter=own\nargs=({str(log_file)!r},)\n"
                      "[formatter_own]\nformat=%(levelname)s of %(name)s: %(message)s\n")
    manager = Manager("eventlet", ["--log-config-file", str(config), str(APPS / "order.py")])
    with ConnectedSwitch(manager):
        wait_until(lambda: f"INFO of bellrock.engine: {UP}" in log_file.read_text(), "a line in that format")
    manager.end(signal.SIGINT)


class ConnectedSwitch(Switch13):
    """A switch that the program has seen."""

    def __init__(self, manager: Manager) -> None:
        wait_until(lambda: _connects(manager.port), "a port that listens")
        super().__init__(manager.port, dpid=5)
        manager.until("event dp True 5")


def _connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
