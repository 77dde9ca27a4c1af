"""What os-ken does for each packet, done by the native half where the result is the same.

`install` replaces functions of os-ken's own classes, so its objects stay what they are: classes, attributes, text, JSON. A
function that is replaced asks the native half first. That answers for what is usual: fields of the specification with values
in their range, the actions and instructions of the specification, frames of ARP, TCP and UDP. For everything else the
function of os-ken runs, which also raises its own exceptions.

- `addresses`: Ethernet and IPv4 addresses, and numbers, from text or int to bytes and back.
- `matches`: `OFPMatch`.
- `messages`: packet_in, flow_mod, packet_out.
- `packets`: `packet.Packet`, which reads headers when they are asked for.
- `events`: queues and handlers of apps.
- `log`: lines of apps.
"""

from __future__ import annotations

from os_ken.ofproto import ofproto_v1_0, ofproto_v1_0_parser, ofproto_v1_3, ofproto_v1_3_parser

from ..._native import OsKenCodec

__all__ = ["CODEC", "install"]

CODEC = OsKenCodec(ofproto_v1_0, ofproto_v1_0_parser, ofproto_v1_3, ofproto_v1_3_parser)
"""The native half. Its `counts` say how many values were usual."""

_installed = False


def install() -> None:
    """Replaces the functions. A second call changes nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    from . import addresses, events, log, matches, messages, packets

    for module in (addresses, matches, messages, packets, events, log):
        module.install()
