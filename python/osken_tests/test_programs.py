"""What programs do with datapaths, with each other, and with a main of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from manager import APPS, ELSEWHERE, Manager
from switch13 import ERROR, PACKET_OUT, Switch13

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
    if (hub, main) == ("native", OLD_MAIN):
        pytest.skip("os-ken's own manager does not start with this hub")
    manager = Manager(hub, [str(APPS / "order.py")], program=["-c", main]).started()
    with Switch13(manager.port, dpid=5) as switch:
        manager.until("event state main")
        switch.packet_in(b"first")
        manager.until("event packet_in first main")
    manager.process.kill()
    manager.ended()


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
