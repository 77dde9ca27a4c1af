"""packet_in, flow_mod and packet_out of OpenFlow 1.0 and 1.3, with the actions and instructions that nearly all of them have.

The constructors are those of os-ken without the calls from class to class. They are for the classes themselves: a subclass has
the original ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from os_ken.ofproto import ofproto_v1_0, ofproto_v1_0_parser, ofproto_v1_3, ofproto_v1_3_parser
from os_ken.ofproto.ofproto_parser import MsgBase

from . import CODEC
from .matches import parsed

PACKET_IN = 10
"""Type of a packet_in, in both versions."""

_new = object.__new__


def install() -> None:
    """Replaces constructors, parsers and methods `serialize`."""
    for parser, packet_in in ((ofproto_v1_0_parser, packet_in_10), (ofproto_v1_3_parser, packet_in_13)):
        for cls in (parser.OFPPacketIn, parser.OFPFlowMod, parser.OFPPacketOut):
            # The first instance gives its class a set of attributes that all messages have.
            MsgBase.__init__(_new(cls), None)
        _parse(parser, packet_in)
    _output(ofproto_v1_0_parser.OFPActionOutput)
    _output(ofproto_v1_3_parser.OFPActionOutput)
    _instruction_actions(ofproto_v1_3_parser)
    _flow_mod_13(ofproto_v1_3_parser)
    _packet_out_13(ofproto_v1_3_parser)
    _serialize(ofproto_v1_0_parser.OFPFlowMod, CODEC.flow_mod_10)
    _serialize(ofproto_v1_3_parser.OFPFlowMod, CODEC.flow_mod_13)
    _serialize(ofproto_v1_0_parser.OFPPacketOut, CODEC.packet_out_10)
    _serialize(ofproto_v1_3_parser.OFPPacketOut, CODEC.packet_out_13)


def packet_in_13(datapath: Any, message: bytes, _read: Any = CODEC.packet_in_13,
                 _cls: Any = ofproto_v1_3_parser.OFPPacketIn) -> Any:
    """Parses a packet_in of 1.3. `None`: it is unusual, and for os-ken to parse."""
    values = _read(message)
    if values is None:
        return None
    msg = _new(_cls)
    msg.datapath = datapath
    msg.version = 4
    msg.msg_type = PACKET_IN
    msg.msg_len = len(message)
    msg.xid, msg.buffer_id, msg.total_len, msg.reason, msg.table_id, msg.cookie, match, msg.data = values
    msg.buf = message
    msg.match = parsed(*match)
    return msg


def packet_in_10(datapath: Any, message: bytes, _read: Any = CODEC.packet_in_10,
                 _cls: Any = ofproto_v1_0_parser.OFPPacketIn) -> Any:
    """Parses a packet_in of 1.0. `None`: it is unusual, and for os-ken to parse."""
    values = _read(message)
    if values is None:
        return None
    msg = _new(_cls)
    msg.datapath = datapath
    msg.version = 1
    msg.msg_type = PACKET_IN
    msg.msg_len = len(message)
    msg.xid, msg.buffer_id, msg.total_len, msg.in_port, msg.reason, msg.data = values
    msg.buf = message
    return msg


def _parse(parser: Any, packet_in: Callable[[Any, bytes], Any]) -> None:
    cls = parser.OFPPacketIn
    original = cls.parser.__func__

    @wraps(original)
    def parse(cls_: Any, datapath: Any, version: Any, msg_type: Any, msg_len: Any, xid: Any, buf: Any) -> Any:
        if cls_ is cls:
            message = bytes(buf)
            # The caller has read the header.
            if message[:8] == _header(version, msg_type, msg_len, xid):
                msg = packet_in(datapath, message)
                if msg is not None:
                    return msg
        return original(cls_, datapath, version, msg_type, msg_len, xid, buf)

    cls.parser = classmethod(parse)
    parser._MSG_PARSERS[PACKET_IN] = cls.parser


def _header(version: Any, msg_type: Any, msg_len: Any, xid: Any) -> bytes:
    try:
        return b"".join((bytes((version, msg_type)), msg_len.to_bytes(2, "big"), xid.to_bytes(4, "big")))
    except (AttributeError, OverflowError, TypeError, ValueError):
        return b""


def _serialize(cls: Any, native: Callable[[Any], bool]) -> None:
    original = cls.serialize

    @wraps(original)
    def serialize(self: Any) -> None:
        if not native(self):
            original(self)

    cls.serialize = serialize


def _output(cls: Any) -> None:
    init, type_of, len_of = cls.__init__, cls.cls_action_type, cls.cls_action_len

    if cls is ofproto_v1_0_parser.OFPActionOutput:

        @wraps(init)
        def __init__(self: Any, port: Any, max_len: Any = 0xFFE5) -> None:
            if type(self) is cls:
                self.type = type_of
                self.len = len_of
                self.port = port
                self.max_len = max_len
            else:
                init(self, port, max_len)

        cls.__init__ = __init__
        return
    most = ofproto_v1_3.OFPCML_MAX

    @wraps(init)
    def init_13(self: Any, port: Any, max_len: Any = most, type_: Any = None, len_: Any = None) -> None:
        if type(self) is cls:
            self.type = type_of
            self.len = len_of
            self.port = port
            self.max_len = max_len
        else:
            init(self, port, max_len, type_, len_)

    cls.__init__ = init_13


def _instruction_actions(parser: Any) -> None:
    cls, action, output = parser.OFPInstructionActions, parser.OFPAction, parser.OFPActionOutput
    init = cls.__init__

    @wraps(init)
    def __init__(self: Any, type_: Any, actions: Any = None, len_: Any = None) -> None:
        if type(self) is cls and type(actions) is list:
            self.type = type_
            for each in actions:
                assert type(each) is output or isinstance(each, action)
            self.actions = actions
        else:
            init(self, type_, actions, len_)

    cls.__init__ = __init__


def _flow_mod_13(parser: Any) -> None:
    cls, match_cls, instruction = parser.OFPFlowMod, parser.OFPMatch, parser.OFPInstruction
    init = cls.__init__

    @wraps(init)
    def __init__(self: Any, datapath: Any, cookie: Any = 0, cookie_mask: Any = 0, table_id: Any = 0,
                 command: Any = ofproto_v1_3.OFPFC_ADD, idle_timeout: Any = 0, hard_timeout: Any = 0,
                 priority: Any = ofproto_v1_3.OFP_DEFAULT_PRIORITY, buffer_id: Any = ofproto_v1_3.OFP_NO_BUFFER,
                 out_port: Any = 0, out_group: Any = 0, flags: Any = 0, match: Any = None, instructions: Any = None) -> None:
        if type(self) is cls and type(match) is match_cls and type(instructions) is list and instructions:
            self.datapath = datapath
            self.version = self.msg_type = self.msg_len = self.xid = self.buf = None
            self.cookie = cookie
            self.cookie_mask = cookie_mask
            self.table_id = table_id
            self.command = command
            self.idle_timeout = idle_timeout
            self.hard_timeout = hard_timeout
            self.priority = priority
            self.buffer_id = buffer_id
            self.out_port = out_port
            self.out_group = out_group
            self.flags = flags
            self.match = match
            for each in instructions:
                assert isinstance(each, instruction)
            self.instructions = instructions
        else:
            init(self, datapath, cookie, cookie_mask, table_id, command, idle_timeout, hard_timeout, priority, buffer_id,
                 out_port, out_group, flags, match, instructions)

    cls.__init__ = __init__


def _packet_out_13(parser: Any) -> None:
    cls = parser.OFPPacketOut
    init = cls.__init__

    @wraps(init)
    def __init__(self: Any, datapath: Any, buffer_id: Any = None, in_port: Any = None, actions: Any = None, data: Any = None,
                 actions_len: Any = None) -> None:
        if type(self) is cls and in_port is not None:
            self.datapath = datapath
            self.version = self.msg_type = self.msg_len = self.xid = self.buf = None
            self.buffer_id = buffer_id
            self.in_port = in_port
            self.actions_len = 0
            self.actions = actions
            self.data = data
        else:
            init(self, datapath, buffer_id, in_port, actions, data, actions_len)

    cls.__init__ = __init__
