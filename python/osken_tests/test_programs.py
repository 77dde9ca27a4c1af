"""What programs do with datapaths, with each other, and with a main of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from manager import APPS, ELSEWHERE, LIMIT_S, Manager, wait_until
from switch13 import ERROR, FLOW_MOD, PACKET_OUT, Switch13

A, B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
ADD, DELETE, MODIFY = 0, 1, 2
# ofp_error_msg: OFPET_BAD_REQUEST, OFPBRC_BAD_TYPE, and the refused message.
BAD_TYPE = bytes.fromhex("0001 0001 0463000800000001")
OWN_MAIN = """
import sys
from os_ken.lib import hub
if hasattr(hub, "patch"):
    hub.patch()
import bellrock.osken
bellrock.osken.install()
import logging
logging.basicConfig(level=logging.INFO)
from ryu import cfg
from ryu.base.app_manager import AppManager
import ryu.controller.controller
cfg.CONF(sys.argv[1:-1])
AppManager.run_apps([sys.argv[-1]])
"""
WITH_OWN_APPS = f"""
import runpy, sys
sys.argv[0] = "osken-manager"
import bellrock.osken.manager as manager
manager.load()
runpy.run_path({str(APPS / "own_apps.py")!r})
runpy.run_module("bellrock.osken", run_name="__main__", alter_sys=False)
"""
OLD_MAIN = """
import sys
import bellrock.osken
bellrock.osken.install()
from ryu.cmd import manager
manager.main(sys.argv[1:])
"""


@pytest.fixture
def details(hub: str) -> Iterator[Manager]:
    manager = Manager(hub, ["--app-lists", f"{APPS}/details.py,{APPS}/answers.py"]).started()
    yield manager
    manager.process.kill()
    manager.ended()


def test_switches_and_their_ports_come_and_go(details: Manager) -> None:
    with Switch13(details.port, dpid=5) as switch:
        details.until(r"event dp True 5 \[1, 2, 3\]")
        for reason, port, name, ports in ((ADD, 9, "EventPortAdd", [1, 2, 3, 9]), (MODIFY, 2, "EventPortModify", [1, 2, 3, 9]),
                                          (DELETE, 9, "EventPortDelete", [1, 2, 3])):
            switch.port_status(reason, port)
            # The two come from different apps, in either order.
            lines = [details.until("event (port_state|EventPort)") for _ in range(2)]
            assert sorted(lines) == sorted([f"event {name} {port} {ports}\n", f"event port_state {reason} {port} {ports}\n"])
    lines = [details.until("event (left|dp False)") for _ in range(2)]
    assert sorted(lines) == ["event dp False 5 [1, 2, 3]\n", "event left 5 False []\n"]


def test_barriers_and_xids(details: Manager) -> None:
    with Switch13(details.port) as switch:
        details.until("event dp True 1")
        switch.packet_in(b"barrier")
        details.until("event sent True True")
        details.until("event barrier True")
        details.until("event barrier False")


def test_apps_find_each_other_and_switches(details: Manager) -> None:
    with Switch13(details.port) as switch:
        details.until("event dp True 1")
        switch.packet_in(b"bricks")
        details.until("event bricks OFPHandler DPSet Details")
        details.until(r"event dps \[1\] True")
        switch.packet_in(b"ask")
        details.until("event answer of an app, for details")


def test_an_app_has_threads_of_its_own(details: Manager) -> None:
    with Switch13(details.port) as switch:
        details.until("event dp True 1")
        switch.packet_in(b"spawn")
        details.until("event spawned True")
        details.until("event joined")


def test_more_is_sent_than_waits_for_a_switch(details: Manager) -> None:
    with Switch13(details.port) as switch:
        details.until("event dp True 1")
        switch.packet_in(b"large")
        for _ in range(200):
            assert len(switch.receive(PACKET_OUT)) > 60000
        details.until("event sent 12 MB")


def test_a_closed_datapath_takes_nothing(details: Manager) -> None:
    with Switch13(details.port) as switch, Switch13(details.port, dpid=2) as other:
        details.until("event dp True 2")
        switch.packet_in(b"close")
        details.until("event closed True False")
        switch.closed()
        details.until(r"event left 1 \w+ \[2\]")
        other.packet_in(b"bricks")
        details.until(r"event dps \[2\] True")


def test_an_error_that_handlers_of_os_ken_do_not_expect_leaves_the_connection(details: Manager) -> None:
    with Switch13(details.port) as switch:
        details.until("event dp True 1")
        # OFPET_HELLO_FAILED with text that is no ASCII: os-ken's handler raises.
        switch.send(ERROR, bytes.fromhex("0000 0000 ff"))
        details.until("event error 0 0")
        switch.send(ERROR, BAD_TYPE)
        details.until("event error 1 1")
        switch.packet_in(b"bricks")
        details.until("event bricks")


@pytest.mark.parametrize("main", [OWN_MAIN, OLD_MAIN])
def test_a_program_with_a_main_of_its_own(hub: str, main: str) -> None:
    manager = Manager(hub, [str(APPS / "order.py")], program=["-c", main]).started()
    with Switch13(manager.port, dpid=5) as switch:
        manager.until("event state main")
        switch.packet_in(b"first")
        manager.until("event packet_in first main")
    manager.process.kill()
    manager.ended()


def test_a_program_for_a_debugger_imports_ryu_in_its_first_line(hub: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("from ryu.cmd import manager\nimport sys\nsys.exit(manager.main())\n")
    manager = Manager(hub, [str(APPS / "order.py")], program=["-m", "bellrock.osken.program", str(file)]).started()
    with Switch13(manager.port, dpid=5):
        manager.until("event state main")
        assert manager.end(signal.SIGINT) == 0, "".join(manager.lines)


@pytest.mark.parametrize("own", ["", "1"])
def test_a_program_extends_an_application_of_ryu(hub: str, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_APPS", own)
    manager = Manager(hub, [str(APPS / "extends.py")]).started()
    with Switch13(manager.port) as switch:
        assert switch.receive(FLOW_MOD)[22:24] == b"\0\0", "the table-miss entry"
        manager.until("event monitored 1")
        switch.packet_in(B + A + b"\x08\x00" + bytes(46))
        assert b"\xff\xff\xff\xfb" in switch.receive(PACKET_OUT), "flooded"
        manager.until(r"event learned 1 \['02:00:00:00:00:01'\]")
        switch.packet_in(A + B + b"\x08\x00" + bytes(46))
        assert switch.receive(FLOW_MOD)[22:24] == b"\0\x01", "a flow of the priority of Ryu's application"
        switch.receive(PACKET_OUT)
    # `ryu.app...`, which it requires, and `os_ken.app...` are one module, so the app runs once.
    assert sum("of SimpleSwitch13" in line for line in manager.lines) == 0, manager.lines
    manager.process.kill()
    manager.ended()


def test_the_topology_by_rest_is_there_without_the_sources_of_ryu() -> None:
    apps = [str(APPS / "order.py"), "ryu.app.gui_topology.gui_topology", "ryu.app.ws_topology"]
    manager = Manager("eventlet", ["--wsapi-host", "127.0.0.1", "--wsapi-port", "0", "--observe-links", ",".join(apps)],
                      program=["-c", WITH_OWN_APPS])
    port = int(manager.until("REST interfaces of apps: ").strip().rpartition(":")[2])
    with Switch13(manager.started().port, dpid=5):
        manager.until("event state main")

        def switches() -> list[str]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1.0/topology/switches", timeout=LIMIT_S) as reply:
                return [switch["dpid"] for switch in json.load(reply)]

        wait_until(lambda: switches() == ["0000000000000005"], "the switch is listed")
        for path in ("links", "hosts/0000000000000005"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1.0/topology/{path}", timeout=LIMIT_S) as reply:
                assert json.load(reply) == []
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=LIMIT_S) as reply:
            assert reply.headers["Content-Type"].startswith("text/html")
            assert "/v1.0/topology/" in reply.read().decode()
    manager.process.kill()
    manager.ended()


@pytest.mark.parametrize(("text", "why"), [
    ("import sys\nprint 'hello'\n", ":2: this program is written for Python 2: it has `print` or `exec` without parentheses"),
    ("try:\n    pass\nexcept OSError, error:\n    pass\n", ":3: this program is written for Python 2: it has `except ..., error`"),
    ("if 1 <> 2:\n    pass\n", ":1: this program is written for Python 2: it has `<>`"),
    ("x = 10L\n", ":1: this program is written for Python 2: it has numbers such as 10L"),
    ("\nimport Queue\n", ":2: this program is written for Python 2: it imports Queue"),
    ("x = xrange(3)\n", ":1: this program is written for Python 2: it uses xrange"),
])
def test_a_program_of_python_2_is_named_as_such(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "old.py"
    file.write_text(text)
    manager = Manager("eventlet", [str(file)])
    assert manager.ended() == 1
    assert manager.lines[-2:] == [f"osken-manager: {file}{why}\n",
                                  "osken-manager: convert it: 2to3 -w old.py (2to3 is in Python up to 3.12)\n"], manager.lines


def test_a_file_that_does_not_parse_is_named_last(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("import sys\ndef f(:\n")
    manager = Manager("eventlet", [str(file)])
    assert manager.ended() == 1
    assert manager.lines[-1] == f"osken-manager: {file}:2: invalid syntax\n", manager.lines
    assert not any("ModuleNotFoundError" in line for line in manager.lines), manager.lines


def test_an_app_with_two_names_runs_once(hub: str) -> None:
    # `ofp_handler` is required by the other one, under the name of os-ken.
    manager = Manager(hub, ["ryu.controller.ofp_handler", str(APPS / "details.py")])
    lines = manager.started().lines
    assert sum("of OFPHandler" in line for line in lines) == 1, lines
    manager.process.kill()
    manager.ended()


def test_apps_of_ryu_come_from_its_own_files(tmp_path: Path) -> None:
    folder = tmp_path / "ryu" / "app"
    folder.mkdir(parents=True)
    (tmp_path / "ryu" / "__init__.py").write_text("raise ImportError('the old package')")
    (folder / "__init__.py").touch()
    (folder / "found.py").write_text("from ryu.app import beside\nfrom ryu.lib import dpid\nprint(beside.__name__, dpid.__name__)")
    (folder / "beside.py").touch()
    text = (f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
            "import bellrock.osken; bellrock.osken.install()\nimport ryu.app.found\n"
            "try: import ryu.lib.no_lib\nexcept ModuleNotFoundError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, check=False, cwd=ELSEWHERE)
    assert done.stdout.splitlines() == ["os_ken.app.beside os_ken.lib.dpid",
                                        "ryu.lib.no_lib has become os_ken.lib.no_lib, which os-ken does not have"], done


def test_an_app_that_is_given_and_required_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ryu" / "app"
    folder.mkdir(parents=True)
    (tmp_path / "ryu" / "__init__.py").touch()
    app = "from ryu.base import app_manager\nclass App{0}(app_manager.RyuApp):\n    pass\n"
    (folder / "first.py").write_text(app.format(1) + "app_manager.require_app('ryu.app.second')\n")
    (folder / "second.py").write_text(app.format(2))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    manager = Manager("eventlet", ["ryu.app.first", "ryu.app.second", str(APPS / "order.py")]).started()
    assert [sum(f"of {name}" in line for line in manager.lines) for name in ("App1", "App2")] == [1, 1], manager.lines
    manager.process.kill()
    manager.ended()


def test_ctrl_c_ends_a_program_with_a_rest_interface_in_order(hub: str) -> None:
    manager = Manager(hub, ["--wsapi-host", "127.0.0.1", "--wsapi-port", "0", str(APPS / "rest.py"), str(APPS / "order.py")])
    manager.until("REST interfaces of apps: ")
    assert manager.end(signal.SIGINT) == 0, "".join(manager.lines)
