"""Messages as bytes: requests of any kind with their replies, and messages that no switch answers."""

import asyncio
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest
from switch import SwitchEnd

import bellrock
from bellrock import App, Controller, Network, Reply, Switch
from bellrock.lab import Lab, single

Version = Literal["1.0", "1.3"]

HELLO, EXPERIMENTER, GET_CONFIG_REQUEST, GET_CONFIG_REPLY = 0, 4, 7, 8
PACKET_OUT, FLOW_MOD = 13, 14
NO_BUFFER = 0xFFFF_FFFF
OF_NOBODY = 0x1234
"""Number of an experimenter that no switch knows."""


@pytest.fixture(params=("1.0", "1.3"))
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


def message(version: Version, kind: int, body: bytes = b"") -> bytes:
    return struct.pack("!BBHI", 1 if version == "1.0" else 4, kind, 8 + len(body), 7) + body


def done_in_lab(version: Version, job: Callable[[Network, int], Awaitable[None]]) -> None:
    """Runs a coroutine with the switch of a lab. What it raises fails the test."""
    ended: list[bool] = []

    class Does(App):
        wants_packet_ins = False

        def switch_up(self, network: Network, switch: Switch) -> None:
            self.spawn(self.run(network, switch.dpid))

        async def run(self, network: Network, dpid: int) -> None:
            await job(network, dpid)
            ended.append(True)

    lab = Lab(single(2), Does(), version=version)
    assert lab.run_until(lambda: bool(ended or lab.exceptions), 60) and lab.exceptions == []


def test_a_request_of_any_kind_has_its_reply(version: Version) -> None:
    async def job(network: Network, dpid: int) -> None:
        reply = await network.request(dpid, message(version, GET_CONFIG_REQUEST))
        assert reply.version == version and bytes(reply) == reply.data
        assert (reply.data[0], reply.data[1], len(reply.data)) == (message(version, 0)[0], GET_CONFIG_REPLY, 12)
        assert reply.text and reply.text in repr(reply)
        # Of a multipart reply: what follows its head. 1.3 has four bytes more there.
        kind, body = (16, bytes(4)) if version == "1.0" else (18, bytes(8))
        reply = await network.request(dpid, message(version, kind, body))
        assert len(reply.data) == 256 * 3 + 32 + 256

    done_in_lab(version, job)


def test_a_message_without_a_reply_is_sent_and_confirmed(version: Version) -> None:
    frame = bytes(60)
    if version == "1.0":
        head = struct.pack("!IHHHHHH", NO_BUFFER, 0xFFFF, 8, 0, 8, 2, 0)
    else:
        head = struct.pack("!IIH6xHHIH6x", NO_BUFFER, 0xFFFF_FFFD, 16, 0, 16, 2, 0)

    async def job(network: Network, dpid: int) -> None:
        await network.send(dpid, message(version, PACKET_OUT, head + frame))
        (port,) = await network.port_stats(dpid, 2)
        assert port.tx_packets == 1

    done_in_lab(version, job)


def test_a_message_refused_by_the_switch_is_an_error(version: Version) -> None:
    unknown = message(version, EXPERIMENTER, struct.pack("!II", OF_NOBODY, 1))

    async def job(network: Network, dpid: int) -> None:
        with pytest.raises(bellrock.Error, match="the switch refused the request: "):
            await network.request(dpid, unknown)
        with pytest.raises(bellrock.Error, match="the switch refused the message: "):
            await network.send(dpid, unknown)
        with pytest.raises(bellrock.Error):
            await network.request(99, unknown)

    done_in_lab(version, job)


def test_a_message_that_nobody_may_send_is_an_error_with_what_is_wrong(version: Version) -> None:
    other: Version = "1.3" if version == "1.0" else "1.0"

    async def job(network: Network, dpid: int) -> None:
        wrongs: list[tuple[Callable[[int, bytes], Awaitable[object]], bytes, str]] = [
            (network.request, b"", "no message to a switch"),
            (network.request, message(version, GET_CONFIG_REQUEST) + b"x", "it has 9"),
            (network.request, message(other, GET_CONFIG_REQUEST), f"the switch speaks {version}"),
            (network.request, message(version, HELLO), "does not answer OFPT_HELLO"),
            (network.send, message(version, HELLO), "sends such messages itself"),
            (network.send, message(version, GET_CONFIG_REQUEST), "send it with `request`"),
        ]
        for ask, wrong, why in wrongs:
            with pytest.raises(ValueError, match=why):
                await ask(dpid, wrong)

    done_in_lab(version, job)


class KnowsExperimenter(SwitchEnd):
    """Answers messages of an experimenter."""

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        if kind == EXPERIMENTER:
            self.send(EXPERIMENTER, body[:4] + b"told", xid)
        else:
            super()._answer(kind, xid, body)


def test_a_message_of_an_experimenter_has_the_reply_of_the_switch() -> None:
    replies: list[Reply] = []
    ended = threading.Event()

    class Asks(App):
        def switch_up(self, network: Network, switch: Switch) -> None:
            self.spawn(self.run(network, switch.dpid))

        async def run(self, network: Network, dpid: int) -> None:
            try:
                body = struct.pack("!I", OF_NOBODY) + b"ask!"
                replies.append(await network.request(dpid, message("1.0", EXPERIMENTER, body)))
            finally:
                ended.set()

    async def run() -> None:
        async with Controller(Asks(), listen="127.0.0.1:0", workers=1) as controller:

            def switch() -> None:
                with KnowsExperimenter(controller.addresses[0]):
                    assert ended.wait(20)

            await asyncio.to_thread(switch)

    asyncio.run(run())
    assert len(replies) == 1 and replies[0].data[8:] == struct.pack("!I", OF_NOBODY) + b"told"
