"""Programs in the style of Ryu and os-ken on Bellrock, with both of os-ken's hubs."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from manager import APPS, ELSEWHERE, Manager
from switch13 import FLOW_MOD, PACKET_IN, PACKET_OUT, Switch13

A, B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
# More than the queue of an app and the buffers of the kernel hold.
MANY = 3000


@pytest.fixture
def order(hub: str) -> Iterator[Manager]:
    manager = Manager(hub, [str(APPS / "order.py")]).started()
    yield manager
    manager.process.kill()
    manager.ended()


def test_events_come_in_the_order_of_os_ken(order: Manager) -> None:
    with Switch13(order.port, dpid=5) as switch:
        order.until("event dp True 5")
        switch.packet_in(b"first")
        switch.packet_in(b"second")
        order.until("packet_in second")
    order.until("event dp False 5")
    # Those of DPSet come from another app, with a queue of its own.
    assert [event for event in order.events() if not event.startswith("dp ")] == [
        "state handshake",
        "hello 4",
        "state config",
        "features 5 True",
        "port_desc [1]",
        "port_desc [2, 3]",
        "state main",
        "packet_in first main [1, 2, 3]",
        "packet_in second main [1, 2, 3]",
        "state dead 5 False",
    ]


def test_a_switch_that_reconnects_is_another_datapath(order: Manager) -> None:
    with Switch13(order.port, dpid=5):
        order.until("event dp True 5")
    order.until("event dp False 5")
    with Switch13(order.port, dpid=5) as switch:
        order.until("event dp True 5")
        switch.packet_in(b"again")
        order.until("packet_in again main")


def test_a_program_closes_a_connection(order: Manager) -> None:
    with Switch13(order.port) as switch, Switch13(order.port, dpid=2) as other:
        order.until("event dp True 2")
        switch.packet_in(b"close")
        switch.closed()
        order.until("event dp False 1")
        other.packet_in(b"stays")
        order.until("packet_in stays main")


def test_echo_replies_to_a_program_are_its_own(order: Manager) -> None:
    with Switch13(order.port) as switch:
        order.until("event dp True 1")
        switch.packet_in(b"echo")
        order.until("echo_reply of my own")


def test_a_message_that_cannot_be_parsed_is_logged_and_the_connection_stays(order: Manager) -> None:
    with Switch13(order.port) as switch:
        order.until("event dp True 1")
        switch.send(PACKET_IN, b"\xff" * 17)
        order.until("malformed OpenFlow packet")
        switch.packet_in(b"next")
        order.until("packet_in next main")


def test_a_handler_that_raises_is_logged() -> None:
    # With its native hub os-ken itself ends the thread of an app that raises.
    manager = Manager("eventlet", [str(APPS / "order.py")]).started()
    with Switch13(manager.port) as switch:
        manager.until("event dp True 1")
        switch.packet_in(b"raise")
        manager.until("RuntimeError: it fails")
        # What a controller may not send is an exception too.
        switch.packet_in(b"wrong")
        manager.until("which no controller sends")
        switch.packet_in(b"next")
        manager.until("packet_in next main")
    manager.end()


def test_all_of_many_packets_come_in_order(hub: str) -> None:
    manager = Manager(hub, [str(APPS / "order.py")]).started()
    with Switch13(manager.port) as switch:
        manager.until("event dp True 1")

        def send() -> None:
            for number in range(MANY):
                switch.packet_in(b"%d" % number)

        sender = threading.Thread(target=send)
        sender.start()
        manager.until(f"packet_in {MANY - 1} ")
        sender.join()
    packets = [event.split()[1] for event in manager.events() if event.startswith("packet_in")]
    assert packets == [str(number) for number in range(MANY)]
    manager.process.kill()
    manager.ended()


def test_a_learning_switch_learns(hub: str) -> None:
    manager = Manager(hub, [str(APPS / "switch_13.py")]).started()
    with Switch13(manager.port) as switch:
        assert switch.receive(FLOW_MOD)[22:24] == b"\0\0", "the table-miss entry, with the program's priority 0"
        switch.packet_in(B + A + b"\x08\x00" + bytes(46))
        assert b"\xff\xff\xff\xfb" in switch.receive(PACKET_OUT), "flooded"
        switch.packet_in(A + B + b"\x08\x00" + bytes(46))
        assert switch.receive(FLOW_MOD)[22:24] == (60000).to_bytes(2, "big")
    manager.process.kill()
    manager.ended()


def test_ctrl_c_ends_it_in_order(hub: str) -> None:
    manager = Manager(hub, [str(APPS / "order.py")]).started()
    with Switch13(manager.port) as switch:
        manager.until("event dp True 1")
        assert manager.end(signal.SIGINT) == 0, "".join(manager.lines)
        switch.closed()


def test_ctrl_c_ends_it_while_a_handler_runs(hub: str) -> None:
    manager = Manager(hub, [str(APPS / "switch_13.py")]).started()
    with Switch13(manager.port) as switch:
        # The app may be faster than os-ken's request for the ports, and the answer must not wait behind all packets.
        switch.receive(FLOW_MOD)
        switch.described()

        def send() -> None:
            try:
                while True:
                    switch.packet_in(B + A + b"\x08\x00" + bytes(46))
            except OSError:
                pass  # It has ended.

        sender = threading.Thread(target=send)
        sender.start()
        switch.receive(PACKET_OUT)
        assert manager.end(signal.SIGINT) == 0, "".join(manager.lines)
        switch.closed()
        sender.join()


def test_the_process_owns_its_sockets_and_writes_its_pid(tmp_path: Path) -> None:
    pid_file, log_file = tmp_path / "pid", tmp_path / "log"
    manager = Manager("eventlet", ["--pid-file", str(pid_file), "--log-file", str(log_file), str(APPS / "order.py")])
    manager.started()
    assert int(pid_file.read_text()) == manager.process.pid
    assert "instantiating app" in log_file.read_text()
    inodes = {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
              if int(line.split()[1].split(":")[1], 16) == manager.port}
    files = Path(f"/proc/{manager.process.pid}/fd")
    assert any(os.readlink(file).strip("socket:[]") in inodes for file in files.iterdir())
    manager.end()


def test_a_file_of_options_and_one_of_bellrock(tmp_path: Path) -> None:
    control = tmp_path / "control.sock"
    (tmp_path / "osken.conf").write_text(f"[DEFAULT]\nofp_listen_host = 127.0.0.1\nbellrock_config = {tmp_path}/b.yaml\n")
    (tmp_path / "b.yaml").write_text(f"control: {control}\nmax_connections: 1\n")
    manager = Manager("eventlet", ["--config-file", str(tmp_path / "osken.conf"), str(APPS / "order.py")]).started()
    assert control.is_socket()
    with Switch13(manager.port):
        manager.until("event dp True 1")
        with Switch13(manager.port, dpid=2) as second:
            second.closed()
    manager.end()


@pytest.mark.parametrize(("arguments", "text"), [
    (["--ciphers", "ALL"], "--ciphers"),
    (["--ofp-switch-address-list", "127.0.0.1:6653"], "does not connect to switches"),
    (["--ctl-privkey", "key.pem", "--ctl-cert", "cert.pem", "--ofp-ssl-listen-port", "0"], "--ca-certs is missing"),
    (["--ofp-listen-host", "nowhere"], "is no address"),
    (["--bellrock-config", "missing.yaml"], "missing.yaml"),
])
def test_a_refused_option_ends_the_start_with_the_reason(arguments: list[str], text: str) -> None:
    manager = Manager("eventlet", [*arguments, str(APPS / "order.py")])
    assert manager.ended() in (1, 2)
    assert manager.lines[-1].startswith("osken-manager: ") and text in manager.lines[-1], "".join(manager.lines)


def test_a_taken_port_ends_the_start() -> None:
    manager = Manager("eventlet", [str(APPS / "order.py")]).started()
    second = Manager("eventlet", [str(APPS / "order.py")], port=manager.port)
    assert second.ended() == 1
    assert "choose another port" in second.lines[-1], "".join(second.lines)
    manager.end()


def test_the_version_is_that_of_os_ken() -> None:
    done = subprocess.run([sys.executable, "-m", "bellrock.osken", "--version"], capture_output=True, text=True, check=True,
                          cwd=ELSEWHERE)
    assert done.stdout.strip() == f"osken-manager {importlib.metadata.version('os-ken')}"


def test_modules_of_ryu_are_those_of_os_ken() -> None:
    text = ("from bellrock.osken import ryu_names as names; names.install(); names.install()\n"
            "import sys, ryu.ofproto.ofproto_v1_3 as a, os_ken.ofproto.ofproto_v1_3 as b\n"
            "from ryu.lib.packet import ethernet\n"
            "import os_ken.lib.packet.ethernet as e\n"
            "assert a is b and ethernet is e and b.__spec__.name == b.__name__, b.__spec__\n"
            "from ryu.exception import RyuException\n"
            "import importlib; importlib.reload(b)\n"
            "try: import ryu.app.no_app\n"
            "except ModuleNotFoundError as error: print(error)\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, check=False, cwd=ELSEWHERE)
    assert done.stdout.strip() == ("ryu.app.no_app has become os_ken.app.no_app, which os-ken does not have; if Ryu has it, put Ryu's "
                                   "sources in PYTHONPATH, such as PYTHONPATH=~/ryu"), done
