"""What `bellrock.osken.fast` does for os-ken is what os-ken does, and is done by the native half where it can be."""

from __future__ import annotations

import ast
import importlib.util
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# Where no folder `bellrock` takes the place of the package that is installed.
ELSEWHERE = HERE / "apps"
SEED, COUNT = 1, 600
LIMIT_S = 300
# Of a hundred. The random ones are unusual on purpose.
USUAL = {"packet_in": 80, "match": 60, "flow_mod": 25, "packet_out": 20, "packet": 15}


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "ignore", *arguments], capture_output=True, text=True, check=True, cwd=ELSEWHERE,
                          timeout=LIMIT_S, env={**os.environ, "PYTHONIOENCODING": "utf-8"})


def _packets() -> str:
    """The packets of os-ken's own tests, which its package has."""
    spec = importlib.util.find_spec("os_ken")
    assert spec is not None and spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "tests" / "packet_data")


def test_random_messages_and_packets_of_os_ken_come_out_as_before() -> None:
    arguments = [str(HERE / "exact.py"), str(SEED), str(COUNT), _packets()]
    with ThreadPoolExecutor() as pool:
        before, after = pool.map(lambda more: _run(*arguments, *more), ((), ("fast",)))
    for one, other in zip(before.stdout.splitlines(), after.stdout.splitlines(), strict=True):
        assert one == other
    lines = len(before.stdout.splitlines())
    assert lines > COUNT + 100, "no packets of os-ken"
    for what, (usual, others) in ast.literal_eval(after.stderr):
        assert usual >= (usual + others) * USUAL[what] // 100 and others > 0, after.stderr


def test_os_ken_s_own_tests_pass() -> None:
    text = ("import sys, unittest\n"
            "from bellrock.osken import fast\n"
            "fast.install()\n"
            "names = ['os_ken.tests.unit.' + name for name in sys.argv[1:]]\n"
            "tests = unittest.defaultTestLoader.loadTestsFromNames(names)\n"
            "result = unittest.TextTestRunner().run(tests)\n"
            "print(result.testsRun, fast.CODEC.counts)\n"
            "sys.exit(not result.wasSuccessful())\n")
    names = ["ofproto.test_parser", "ofproto.test_parser_compat", "ofproto.test_parser_ofpstats", "ofproto.test_parser_v10",
             "ofproto.test_parser_v13", "packet.test_packet", "packet.test_ethernet", "packet.test_arp", "packet.test_ipv4",
             "packet.test_ipv6", "packet.test_tcp", "packet.test_udp", "packet.test_vlan", "packet.test_lldp"]
    done = _run("-c", text, *names)
    # 315 of them are its messages in JSON.
    assert int(done.stdout.split()[0]) > 800, done


SWITCH = """
import logging, sys
from os_ken.lib import hub
from bellrock.osken import fast
fast.install()
from os_ken.app.simple_switch_13 import SimpleSwitch13
from os_ken.ofproto import ofproto_protocol, ofproto_v1_3_parser as parser
from bellrock.osken.fast import events, messages

class Datapath(ofproto_protocol.ProtocolDesc):
    id, xid, sent = 1, 0, []
    def send_msg(self, message):
        message.set_xid(1)
        message.serialize()
        self.sent.append(bytes(message.buf))

datapath, app = Datapath(4), SimpleSwitch13()
A, B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
for destination, source in ((B, A), (A, B)):
    for protocol in (17, 6):
        frame = destination + source + bytes.fromhex("08004500003200000000 40%02x00000a0000010a000002" % protocol) + b"\\1" * 30
        fields = bytes.fromhex("0001000c8000000400000001000000000000")
        body = b"\\xff" * 4 + len(frame).to_bytes(2, "big") + bytes(10) + fields + frame
        message = b"\\4\\x0a" + (8 + len(body)).to_bytes(2, "big") + bytes(4) + body
        app._packet_in_handler(events.packet_in(messages.packet_in_13(datapath, message)))
print(len(datapath.sent), fast.CODEC.counts)
"""


def test_a_learning_switch_needs_nothing_of_os_ken_s_slow_paths() -> None:
    done = _run("-c", SWITCH)
    count, counts = done.stdout.split(" ", 1)
    assert int(count) == 6
    assert dict(ast.literal_eval(counts)) == {
        "packet_in": (4, 0), "match": (2, 0), "flow_mod": (2, 0), "packet_out": (4, 0), "packet": (4, 0)}


REGISTERED = """
import sys
from bellrock.osken import fast
fast.install()
from os_ken.lib.packet import ethernet, ipv4, packet, udp
class Own(udp.udp):
    pass
frame = bytes.fromhex("020000000001020000000002 0800 4500 0020 00000000 4011 0000 0a000001 0a000002 0007 0008 0008 0000") + b"data"
print([type(header).__name__ for header in packet.Packet(frame)], dict(fast.CODEC.counts)["packet"])
ipv4.ipv4.register_packet_type(Own, 17)
print([type(header).__name__ for header in packet.Packet(frame)], dict(fast.CODEC.counts)["packet"])
"""


def test_a_program_registers_a_class_of_its_own() -> None:
    # The length of the header of UDP is that of the header alone.
    assert _run("-c", REGISTERED).stdout.splitlines() == [
        "['ethernet', 'ipv4', 'udp'] (1, 0)", "['ethernet', 'ipv4', 'Own'] (1, 0)"]


GATHERED = """
from os_ken.lib import hub
hub.patch()
from os_ken import cfg
from bellrock._native import RawClosed, RawFull
from bellrock.osken import fast
fast.install()
from bellrock.osken.datapath import BellrockDatapath
from os_ken.ofproto import ofproto_v1_3_parser as parser

class Connection:
    version, is_closed, full, sent = 4, False, 0, []
    def send(self, messages):
        if self.is_closed:
            raise RawClosed("")
        if self.full:
            self.full -= 1
            raise RawFull("")
        while messages:
            length = int.from_bytes(messages[2:4], "big")
            self.sent.append(messages[1])
            messages = messages[length:]
        self.sent.append("-")
    def close(self, why):
        self.is_closed = True

cfg.CONF([], project="os_ken")
connection = Connection()
datapath = BellrockDatapath(connection, ("", 0), b"")
datapath.set_version(4)
datapath.state = "main"

def flow_mod():
    return datapath.send_msg(parser.OFPFlowMod(datapath, match=parser.OFPMatch(), instructions=[parser.OFPInstructionGotoTable(1)]))

def packet_out(size=0):
    return datapath.send_msg(parser.OFPPacketOut(datapath, 0xffffffff, 1, [parser.OFPActionOutput(1)], bytes(size)))

def came():
    sent = connection.sent[:]
    connection.sent.clear()
    return sent

print(flow_mod(), packet_out(), came())
hub.sleep(0)
print(came())
print(flow_mod(), datapath.send_barrier(), packet_out(), came())
connection.full = 3
hub.sleep(0)
print(came(), connection.full)
while connection.full or datapath._unsent:
    hub.sleep(0.01)
print(came())
connection.full = 3
print(packet_out(), packet_out(5000), connection.full, came())
print(packet_out())
datapath.close()
print(came(), connection.is_closed, flow_mod(), datapath.send_barrier())
"""


def test_messages_are_gathered_in_order_and_bounded() -> None:
    assert _run("-c", GATHERED).stdout.splitlines() == [
        # Until the green thread lets others run.
        "True True []",
        "[14, 13, '-']",
        # Others push what is gathered in front of them.
        "True True True [14, '-', 20, '-']",
        # A switch that takes nothing is tried again, from the hub,
        "[] 2",
        "[13, '-']",
        # and by the sender if much waits.
        "True True 0 [13, 13, '-']",
        "True",
        "[13, '-'] True False False",
    ]


UNKNOWN_VERSION = """
from types import SimpleNamespace
from bellrock.osken.controller import BellrockController

class Connection:
    id, version, closed = 1, 5, None
    def close(self, why):
        self.closed = why

controller = BellrockController.__new__(BellrockController)
controller._datapaths = {}
connection = Connection()
controller._handle(SimpleNamespace(kind="up", connection=connection, peer=None, hello=b""))
print(connection.closed, controller._datapaths)
"""


def test_a_connection_of_an_unknown_version_ends() -> None:
    """Its messages are not read as those of 1.3."""
    assert _run("-c", UNKNOWN_VERSION).stdout.splitlines() == [
        "no messages of OpenFlow with the version byte 5 are read here; those of 1, 4 are {}"]


def test_lines_of_apps_are_those_of_logging(tmp_path: Path) -> None:
    text = ("import logging, sys\n"
            "if sys.argv[1:]:\n"
            "    from bellrock.osken.fast import log\n"
            "    log.install()\n"
            "handler = logging.StreamHandler(sys.stdout)\n"
            "logging.getLogger().addHandler(handler)\n"
            "logging.getLogger().setLevel(logging.INFO)\n"
            "log = logging.getLogger('app.part')\n"
            "class Odd:\n"
            "    def __str__(self): raise ValueError('no text')\n"
            "log.debug('not shown')\n"
            "log.info('%s and %d', 'text', 7)\n"
            "log.info('%(a)s', {'a': 3})\n"
            "log.info('100%')\n"
            "log.info(['a', 'list'])\n"
            "log.info('too few %s %s', 1)\n"
            "log.info('%s', Odd())\n"
            "log.warning('\\udc80')\n"
            "try: 1 / 0\n"
            "except ZeroDivisionError: log.exception('why')\n"
            "log.info('extra', extra={'x': 1})\n"
            "handler.setFormatter(logging.Formatter('%(levelname)s %(name)s %(filename)s:%(lineno)d %(funcName)s %(message)s'))\n"
            "def function(): log.info('of a function')\n"
            "function()\n"
            "handler.setFormatter(None)\n"
            "log.addFilter(lambda record: 'secret' not in record.getMessage())\n"
            "log.info('secret'); log.info('open')\n"
            "log.filters.clear()\n"
            "second = logging.StreamHandler(sys.stdout); log.addHandler(second)\n"
            "log.info('twice')\n"
            "log.propagate = False; log.info('once')\n"
            "log.removeHandler(second); log.warning('to nobody')\n")
    program = tmp_path / "program.py"
    program.write_text(text)
    plain, fast = (subprocess.run([sys.executable, "-W", "ignore", str(program), *more], capture_output=True, text=True, check=False,
                                  cwd=ELSEWHERE, timeout=LIMIT_S, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
                   for more in ((), ("fast",)))
    assert plain.stdout == fast.stdout and "of a function" in plain.stdout
    assert plain.returncode == fast.returncode == 0, fast.stderr
    # It has the frames of the logging package, which has one more.
    assert plain.stderr.count("--- Logging error ---") == fast.stderr.count("--- Logging error ---") == 3, fast.stderr
    assert "to nobody" in plain.stderr and "to nobody" in fast.stderr


def test_a_record_s_caller_is_the_program(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("os_ken")
    from bellrock.osken.fast import log

    before = logging.getLoggerClass()
    log.install()
    try:
        with caplog.at_level(logging.INFO):
            logging.getLogger("test of a record").info("line %d", 1)
    finally:
        logging.setLoggerClass(before)
    (record,) = caplog.records
    assert (record.filename, record.funcName, record.getMessage()) == (
        "test_fast.py", "test_a_record_s_caller_is_the_program", "line 1")


def test_the_bound_of_a_queue_holds_and_all_who_wait_for_room_have_their_turns() -> None:
    eventlet = pytest.importorskip("eventlet")
    from bellrock.osken.fast import events
    from os_ken.lib import hub

    bound, number, senders = 4, 50, 5
    queue, room = events._queue(hub.Queue)(bound), events._semaphore(hub.BoundedSemaphore)(bound)
    most = 0

    def send(sender: int) -> None:
        nonlocal most
        for event in range(number):
            room.acquire()
            queue.put((sender, event))
            most = max(most, queue.qsize())

    threads = [eventlet.spawn(send, sender) for sender in range(senders)]
    received = []
    with eventlet.Timeout(LIMIT_S):
        for count in range(senders * number):
            received.append(queue.get())
            room.release()
            if count % 3 == 0:
                # As a handler that waits.
                eventlet.sleep(0)
        for thread in threads:
            thread.wait()
    assert most == bound and queue.empty() and room.counter == bound
    for sender in range(senders):
        assert [event for by, event in received if by == sender] == list(range(number))
    # Nobody is ahead of another one by more than a few queues.
    for end in range(0, len(received), bound):
        counts = [sum(by == sender for by, _ in received[:end]) for sender in range(senders)]
        assert max(counts) - min(counts) <= 3 * bound, counts
    with pytest.raises(ValueError):
        room.release()
