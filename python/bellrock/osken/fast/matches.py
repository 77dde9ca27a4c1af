"""`OFPMatch` of OpenFlow 1.0 and 1.3.

os-ken's match of 1.3 has two interfaces, and makes the values of both. Those of the old one are made here when they are asked for.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from os_ken.ofproto import ofproto_v1_0_parser, ofproto_v1_3, ofproto_v1_3_parser
from os_ken.ofproto.ofproto_v1_3_parser import Flow, FlowWildcards, OFPMatch

from . import CODEC
from .lazy import Lazy, missing

_new = object.__new__


def install() -> None:
    """Replaces the constructors."""
    _install_13()
    _install_10()


def parsed(type_: int, length: int, fields: list[tuple[str, Any]], body: bytes) -> OFPMatch:
    """A match that was read from a message: its type and length, its fields as values, and as bytes."""
    match = _new(OFPMatch)
    match.type = type_
    match.length = length
    match._fields2 = fields
    match._bellrock_body = body
    return match


def _install_13() -> None:
    init, composed, fields_of = OFPMatch.__init__, OFPMatch._composed_with_old_api, CODEC.match_fields
    oxm = ofproto_v1_3.OFPMT_OXM

    @wraps(init)
    def __init__(self: OFPMatch, type_: Any = None, length: Any = None, _ordered_fields: Any = None, **kwargs: Any) -> None:
        if _ordered_fields is None and type(self) is OFPMatch and (fields := fields_of(kwargs)) is not None:
            self.fields = []
            self.type = oxm
            self.length = length
            self._fields2 = fields
        else:
            self._bellrock_old = True
            init(self, type_, length, _ordered_fields, **kwargs)

    @wraps(composed)
    def _composed_with_old_api(self: OFPMatch) -> Any:
        return composed(self) if self._bellrock_old or not self._fields2 else False

    OFPMatch.__init__ = __init__
    OFPMatch._composed_with_old_api = _composed_with_old_api
    # Whether the values of the old interface exist, and may have been set.
    OFPMatch._bellrock_old = False
    OFPMatch._wc = Lazy("_wc", _old_wildcards)
    OFPMatch._flow = Lazy("_flow", _old_flow)
    OFPMatch.fields = Lazy("fields", _old_fields)


def _old_wildcards(match: OFPMatch) -> FlowWildcards:
    match._bellrock_old = True
    return FlowWildcards()


def _old_flow(match: OFPMatch) -> Flow:
    return Flow()


def _old_fields(match: OFPMatch) -> list[Any]:
    """Reads the fields of a parsed match for the old interface."""
    if "_bellrock_body" not in match.__dict__:
        raise missing(match, "fields")
    body = match._bellrock_body
    fields: list[Any] = []
    match.fields = fields
    OFPMatch.parser_old(match, body, 0, len(body))
    return fields


def _install_10() -> None:
    cls = ofproto_v1_0_parser.OFPMatch
    init, to_bytes = cls.__init__, CODEC.mac_from_text

    @wraps(init)
    def __init__(self: Any, wildcards: Any = None, in_port: Any = None, dl_src: Any = None, dl_dst: Any = None,
                 *args: Any, **kwargs: Any) -> None:
        # os-ken takes bytes too.
        if type(dl_src) is str and (binary := to_bytes(dl_src)) is not None:
            dl_src = binary
        if type(dl_dst) is str and (binary := to_bytes(dl_dst)) is not None:
            dl_dst = binary
        init(self, wildcards, in_port, dl_src, dl_dst, *args, **kwargs)

    cls.__init__ = __init__
