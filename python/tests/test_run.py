"""Apps with real sockets: workers go on whatever Python does, and a program ends as it should."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from switch import ECHO_REPLY, ECHO_REQUEST, FLOW_MOD, PACKET_OUT, LateSwitch, SwitchEnd

import bellrock
from bellrock import (
    Action,
    AnyApp,
    App,
    Controller,
    Flow,
    FlowStats,
    Match,
    PacketIn,
    Port,
    Switch,
)

FRAME = bytes.fromhex("ffffffffffff 020000000001 0800") + bytes(46)

_T = TypeVar("_T")


async def _with(app: AnyApp, body: Callable[[str], _T]) -> _T:
    """Runs `body` in a thread, with the address of a controller with this app."""
    async with Controller(app, listen="127.0.0.1:0", workers=1) as controller:
        return await asyncio.to_thread(body, controller.addresses[0])


def test_a_switch_is_served() -> None:
    def hub(switch: Switch, packet: PacketIn) -> None:
        assert switch.version == "1.0" and packet.in_port == 1
        switch.packet_out(packet, Port.FLOOD)

    def body(address: str) -> bytes:
        with SwitchEnd(address) as switch:
            switch.packet_in(FRAME)
            return switch.receive(PACKET_OUT)

    assert asyncio.run(_with(hub, body)).endswith(FRAME)


def test_workers_go_on_while_a_handler_blocks() -> None:
    begun, end = threading.Event(), threading.Event()

    def blocks(switch: Switch, packet: PacketIn) -> None:
        begun.set()
        assert end.wait(20)
        switch.packet_out(packet, Port.FLOOD)

    def body(address: str) -> None:
        with SwitchEnd(address) as one:
            one.packet_in(FRAME)
            assert begun.wait(20)
            with SwitchEnd(address, dpid=2) as two:
                for switch in (one, two):
                    switch.send(ECHO_REQUEST, b"still there?")
                    assert switch.receive(ECHO_REPLY) == b"still there?"
                end.set()
                assert one.receive(PACKET_OUT).endswith(FRAME)

    asyncio.run(_with(blocks, body))


def test_a_message_written_outside_of_an_event_is_sent_at_once() -> None:
    class Later(App):
        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            self.spawn(self.run(switch, packet))

        async def run(self, switch: Switch, packet: PacketIn) -> None:
            await asyncio.sleep(0.01)
            switch.packet_out(packet, Port.FLOOD)

    def body(address: str) -> bytes:
        with SwitchEnd(address) as switch:
            switch.packet_in(FRAME)
            return switch.receive(PACKET_OUT)

    assert asyncio.run(_with(Later(), body)).endswith(FRAME)


def test_flows_that_a_switch_reports_late_are_asked_about_too() -> None:
    delete_strict = 4

    class Adopts(App):
        asked: list[int] = []

        def adopt(self, switch: Switch, flow: FlowStats) -> bool:
            self.asked.append(flow.matching["in_port"])
            return bool(flow.matching["in_port"] == 1)

        def packet_in(self, switch: Switch, packet: PacketIn) -> None:
            switch.install(Flow(Match(in_port=packet.in_port), Action.output(Port.FLOOD)), packet)

    def command(flow_mod: bytes) -> int:
        return int.from_bytes(flow_mod[48:50], "big")

    def body(address: str) -> None:
        flow_mods = []
        with SwitchEnd(address) as switch:
            for in_port in (1, 2):
                switch.packet_in(FRAME, in_port)
                flow_mods.append(switch.receive(FLOW_MOD))
        with LateSwitch(address, FRAME, in_port=3) as late:
            # The switch is up: its packet is answered before it has reported its flows.
            assert command(late.receive(FLOW_MOD)) == 0 and Adopts.asked == []
            late.report(flow_mods, seconds=1000)
            removal = late.receive(FLOW_MOD)
            assert command(removal) == delete_strict and removal[:40] == flow_mods[1][:40]
            assert Adopts.asked == [1, 2]

    asyncio.run(_with(Adopts(), body))


def _program(text: str) -> subprocess.Popen[str]:
    code = textwrap.dedent(text)
    environment = dict(os.environ, PYTHONUNBUFFERED="1")
    return subprocess.Popen(
        [sys.executable, "-I", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _address_of(program: subprocess.Popen[str]) -> str:
    assert program.stderr is not None
    for line in program.stderr:
        if "listening on " in line:
            return line.split("listening on ")[1].split()[0]
    raise AssertionError("it does not listen")


HUB = """
    import bellrock
    def hub(switch, packet):
        {body}
    bellrock.run(hub, listen="127.0.0.1:0", workers=1, control=False)
    print("ended")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_program_in_order(number: signal.Signals) -> None:
    with _program(HUB.format(body="pass")) as program:
        _address_of(program)
        program.send_signal(number)
        output, _ = program.communicate(timeout=20)
        assert program.returncode == 0 and output == "ended\n"


def test_a_handler_may_end_the_program() -> None:
    with _program(HUB.format(body="raise SystemExit(7)")) as program:
        with SwitchEnd(_address_of(program)) as switch:
            switch.packet_in(FRAME)
            program.communicate(timeout=20)
        assert program.returncode == 7


def test_an_exception_is_logged_with_its_traceback() -> None:
    with _program(HUB.format(body="raise RuntimeError('it fails')")) as program:
        with SwitchEnd(_address_of(program)) as switch:
            switch.packet_in(FRAME)
            assert program.stderr is not None
            lines: list[str] = []
            while "RuntimeError: it fails\n" not in lines:
                lines.append(program.stderr.readline())
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=20)
    assert "Traceback (most recent call last):\n" in lines


def test_a_program_that_is_killed_leaves_no_port(tmp_path: Path) -> None:
    with _program(HUB.format(body="pass")) as program:
        address = _address_of(program)
        program.kill()
        program.communicate(timeout=20)
    with pytest.raises(OSError):
        SwitchEnd(address)


def test_an_address_that_is_taken_is_an_error() -> None:
    async def twice() -> None:
        def idle(switch: Switch, packet: PacketIn) -> None: ...

        async with Controller(idle, listen="127.0.0.1:0", workers=1) as controller:
            with pytest.raises(bellrock.Error, match="in use"):
                async with Controller(idle, listen=controller.addresses, workers=1):
                    pass

    asyncio.run(twice())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"listen": "somewhere"}, ValueError, "127.0.0.1:6653"),
        ({"workers": -1}, OverflowError, "negative"),
        ({"http": "x"}, ValueError, "127.0.0.1:6653"),
    ],
)
def test_a_wrong_option_is_an_error(
    options: dict[str, object], error: type[Exception], text: str
) -> None:
    async def start() -> None:
        def idle(switch: Switch, packet: PacketIn) -> None: ...

        async with Controller(idle, **options):  # type: ignore[arg-type]
            pass

    with pytest.raises(error, match=text):
        asyncio.run(start())


def test_beside_a_running_event_loop_the_error_says_what_to_use() -> None:
    async def main() -> None:
        bellrock.run("hub", listen="127.0.0.1:0")

    with pytest.raises(RuntimeError, match="async with bellrock.Controller"):
        asyncio.run(main())


def test_an_app_of_bellrock_is_given_by_its_name() -> None:
    async def start() -> None:
        with pytest.raises(ValueError, match="there are hub, learning, routing"):
            async with Controller("nonsense"):
                pass
        with pytest.raises(bellrock.Error, match="learning"):
            async with Controller("hub", "learning", listen="127.0.0.1:0"):
                pass

    asyncio.run(start())


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)
def test_the_thread_of_the_apps_has_cores_without_a_worker(tmp_path: Path) -> None:
    program = """
        import asyncio, os
        from bellrock import Controller

        before = os.sched_getaffinity(0)

        async def main():
            async with Controller("hub", listen="127.0.0.1:0") as controller:
                workers = set(controller._native.worker_cores)
                assert len(workers) == len(before) - 1, workers
                assert os.sched_getaffinity(0) == before - workers
                child = os.fork()
                if child == 0:
                    os._exit(0 if os.sched_getaffinity(0) == before else 1)
                assert os.waitpid(child, 0)[1] == 0, "a forked process has fewer cores"

        asyncio.run(main())
        assert os.sched_getaffinity(0) == before
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    # Elsewhere than beside the sources, which Python would import.
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
