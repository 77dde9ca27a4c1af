"""Random messages, matches and frames through os-ken, a line for what comes out of each: `exact.py SEED COUNT [fast] [FOLDER]`.

With `fast`, functions of os-ken are replaced by those of `bellrock.osken.fast`. Two runs with one seed must print the same. With a
folder of packets (`os_ken/tests/packet_data`), these are parsed and serialised too.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import copy
import hashlib
import logging
import pickle
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from os_ken.lib import addrconv
from os_ken.lib.packet import arp, ethernet, icmp, icmpv6, ipv4, ipv6, lldp, packet, tcp, udp, vlan
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_3, ofproto_v1_3_parser
from os_ken.ofproto.ofproto_parser import StringifyMixin

V10, V13 = ofproto_protocol.ProtocolDesc(1), ofproto_protocol.ProtocolDesc(4)
CLASSES = (ethernet.ethernet, vlan.vlan, arp.arp, ipv4.ipv4, ipv6.ipv6, udp.udp, tcp.tcp, icmp.icmp, lldp.lldp, vlan.svlan)
FIELDS = [field for field in ofproto_v1_3.oxm_types if not field.name.startswith(("tun_metadata", "xxreg"))]
MAX_LINE = 4000
"""Characters of a line, behind which there is a hash of it."""
BAD_VALUES: list[Any] = [None, True, -1, 1.5, "x", b"\1\2", "", 1 << 70, [1, 2], (1, 2, 3), (), {}]


def main() -> None:
    seed, count, options = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    logging.disable(logging.CRITICAL)
    counts: Callable[[], Any] = dict
    if "fast" in options:
        from bellrock.osken import fast

        fast.install()
        counts = lambda: fast.CODEC.counts  # noqa: E731
    choose = random.Random(seed)
    for number in range(count):
        case = CASES[number % len(CASES)]
        show(number, case.__name__, attempt(lambda: case(choose)))
    for folder in options:
        if folder != "fast":
            data(Path(folder))
    print(counts(), file=sys.stderr)


def show(*parts: Any) -> None:
    text = " ".join(map(str, parts))
    print(text if len(text) < MAX_LINE else f"{text[:MAX_LINE]} {hashlib.sha256(text.encode()).hexdigest()}")


def attempt(what: Callable[[], Any]) -> Any:
    """The result, or the exception: class and text."""
    try:
        return what()
    except Exception as error:
        return type(error).__name__, str(error)


def of_object(thing: Any) -> tuple[Any, ...]:
    """What can be seen of an object of os-ken."""
    return str(thing), repr(thing), attempt(thing.to_jsondict), type(thing).__name__


def value(choose: random.Random, field: Any) -> Any:
    """A value of a field, mostly a usual one."""
    kind = choose.random()
    if kind < 0.04:
        return choose.choice(BAD_VALUES)
    if kind < 0.3:
        return value(choose, field), value(choose, field)
    size = getattr(field.type, "size", 4)
    number = choose.getrandbits(8 * size) if choose.random() < 0.9 else choose.choice([0, 1, (1 << 8 * size) - 1])
    if field.type.__class__.__name__ == "IntDescr":
        return number if choose.random() < 0.95 else choose.choice([number << 9, -number, str(number), bool(number & 1)])
    binary = number.to_bytes(size, "big")
    for name, converter in (("MacAddr", addrconv.mac), ("IPv4Addr", addrconv.ipv4), ("IPv6Addr", addrconv.ipv6)):
        if getattr(field.type, "__name__", "") == name:
            if choose.random() < 0.2:
                # More zeros: they are left out in texts of IPv6.
                binary = bytes(byte if choose.random() < 0.3 else 0 for byte in binary)
            text = converter.bin_to_text(binary)
            changes: list[Callable[[str], Any]] = [
                str.upper, lambda it: it.replace(":", "-"), lambda it: it[:-1], lambda it: it + "/24", lambda it: it + "/7",
                lambda it: it.replace("0", ""), lambda it: it.replace(".", ".0"), lambda it: it.encode(), lambda it: binary]
            return text if choose.random() < 0.9 else choose.choice(changes)(text)
    return number


def keywords(choose: random.Random) -> dict[str, Any]:
    usual = FIELDS[:40] if choose.random() < 0.85 else FIELDS
    fields = choose.sample(usual, choose.choice([0, 1, 2, 3, 3, 5]))
    return {field.name: value(choose, field) for field in fields}


def match(choose: random.Random) -> Any:
    made = V13.ofproto_parser.OFPMatch(**keywords(choose))
    results: list[Any] = [of_object(made), made.items(), list(made.iteritems()), made.type, made.length, made.fields]
    results += [(name in made, made.get(name), attempt(lambda: made["eth_type"])) for name, _ in list(made.items())]
    results += [made == made, made == copy.copy(made), hash(made) == object.__hash__(made)]
    results += [str(pickle.loads(pickle.dumps(made))), str(copy.deepcopy(made))]
    if choose.random() < 0.3:
        made.set_in_port(7)
        made.set_dl_src(b"\2\0\0\0\0\1")
        results += [attempt(lambda: of_object(made)), made._flow.in_port, made._wc.wildcards]
    elif choose.random() < 0.2:
        made.append_field(ofproto_v1_3.OXM_OF_IN_PORT, 3)
        results += [attempt(lambda: of_object(made)), made.fields]
    elif choose.random() < 0.2:
        made._fields2.append(("in_port", 3))
    for offset in (0, 5):
        buf = bytearray(offset)
        results += [attempt(lambda: made.serialize(buf, offset)), bytes(buf), made.length]
    results.append(attempt(lambda: of_object(V13.ofproto_parser.OFPMatch.parser(bytes(buf), 5))))
    return results


def action_13(choose: random.Random) -> Any:
    p, big = V13.ofproto_parser, choose.random() < 0.03
    number = lambda bits: choose.getrandbits(bits) << (9 if big else 0)  # noqa: E731
    return choose.choice([
        lambda: p.OFPActionOutput(number(32)), lambda: p.OFPActionOutput(number(32), number(16)),
        lambda: p.OFPActionOutput(port=number(32), max_len=1), lambda: p.OFPActionGroup(number(32)),
        lambda: p.OFPActionSetQueue(number(32)), lambda: p.OFPActionPushVlan(number(16)), lambda: p.OFPActionPushVlan(),
        p.OFPActionPopVlan, lambda: p.OFPActionPushMpls(number(16)), lambda: p.OFPActionPopMpls(number(16)),
        lambda: p.OFPActionSetNwTtl(number(8)), p.OFPActionDecNwTtl, lambda: p.OFPActionSetMplsTtl(number(8)),
        p.OFPActionDecMplsTtl, p.OFPActionCopyTtlOut, p.OFPActionCopyTtlIn, lambda: p.OFPActionPushPbb(number(16)),
        p.OFPActionPopPbb, lambda: p.OFPActionExperimenterUnknown(7, b"1234"), lambda: set_field(choose),
        lambda: set_field(choose), lambda: p.OFPActionOutput(True), lambda: p.NXActionPopQueue(),
    ])()


def set_field(choose: random.Random) -> Any:
    field = choose.choice(FIELDS[:40])
    made = value(choose, field)
    if choose.random() < 0.1:
        return V13.ofproto_parser.OFPActionSetField(ofproto_v1_3_parser.OFPMatchField.make(ofproto_v1_3.OXM_OF_VLAN_VID, 5))
    return V13.ofproto_parser.OFPActionSetField(**{field.name: made[0] if isinstance(made, tuple) and made else made})


def actions(choose: random.Random, action: Callable[[random.Random], Any]) -> Any:
    made = [action(choose) for _ in range(choose.choice([0, 1, 1, 1, 1, 1, 2, 4]))]
    for each in made:
        if choose.random() < 0.02:
            each.len = choose.choice([0, 8, 24])
    return tuple(made) if choose.random() < 0.03 else made


def instruction(choose: random.Random) -> Any:
    p, n = V13.ofproto_parser, choose.getrandbits
    return choose.choice([
        lambda: p.OFPInstructionActions(choose.choice([3, 4, 4, 4, 5]), actions(choose, action_13)),
        lambda: p.OFPInstructionActions(ofproto_v1_3.OFPIT_APPLY_ACTIONS, actions(choose, action_13)),
        lambda: p.OFPInstructionGotoTable(n(8)), lambda: p.OFPInstructionWriteMetadata(n(64), n(64)),
        lambda: p.OFPInstructionMeter(n(32)), lambda: p.OFPInstructionActions(4, choose.choice([None, [3], (), [p]])),
    ])()


def numbers(choose: random.Random, **bits: int) -> dict[str, Any]:
    """Some of these arguments."""
    chosen: dict[str, Any] = {name: choose.getrandbits(size) for name, size in bits.items() if choose.random() < 0.5}
    if chosen and choose.random() < 0.05:
        chosen[choose.choice(list(chosen))] = choose.choice(BAD_VALUES)
    return chosen


def written(choose: random.Random, message: Any) -> Any:
    """What serialising changes."""
    results: list[Any] = [of_object(message)]
    if choose.random() < 0.5:
        message.set_xid(choose.getrandbits(32) if choose.random() < 0.95 else 1 << 32)
    for _ in range(2):
        results += [attempt(message.serialize), type(message.buf).__name__, bytes(message.buf or b""), of_object(message)]
    results += [sorted(name for name in vars(message) if not name.startswith("_")), sorted(message._base_attributes)]
    results += [message.version, message.msg_type, message.msg_len, message.xid]
    for part in getattr(message, "instructions", []):
        results += [of_object(part), getattr(part, "len", None)]
    return results


class Subclass(ofproto_v1_3_parser.OFPFlowMod):  # type: ignore[misc]
    """Its body is its own."""

    def _serialize_body(self) -> None:
        self.buf += b"own"


def flow_mod_13(choose: random.Random) -> Any:
    p = V13.ofproto_parser
    given = numbers(choose, cookie=64, cookie_mask=64, table_id=8, command=3, idle_timeout=16, hard_timeout=16, priority=16,
                    buffer_id=32, out_port=32, out_group=32, flags=5)
    if choose.random() < 0.9:
        given["match"] = p.OFPMatch(**keywords(choose)) if choose.random() < 0.97 else choose.choice([1, Ellipsis])
    if choose.random() < 0.9:
        given["instructions"] = [instruction(choose) for _ in range(choose.choice([0, 1, 1, 2]))]
    message = (p.OFPFlowMod if choose.random() < 0.95 else Subclass)(V13 if choose.random() < 0.95 else V10, **given)
    if choose.random() < 0.05:
        message.match.set_in_port(4)
    return written(choose, message)


def packet_out_13(choose: random.Random) -> Any:
    given = numbers(choose, buffer_id=32, in_port=32)
    given.setdefault("in_port", 1)
    return packet_out(choose, V13, action_13, given)


def packet_out(choose: random.Random, datapath: Any, action: Callable[[random.Random], Any], given: dict[str, Any]) -> Any:
    if choose.random() < 0.9:
        given["buffer_id"] = 0xFFFF_FFFF
    made = packet.Packet()
    made.add_protocol(ethernet.ethernet())
    usual = [None, b"frame" * 20, b"frame" * 21, bytearray(b"frame" * 3)]
    data = choose.choice(usual if choose.random() < 0.8 else ["text", made, bytes(70_000), 3])
    if data is not None or choose.random() < 0.5:
        given["data"] = data
    if choose.random() < 0.97:
        given["actions"] = actions(choose, action)
    return written(choose, datapath.ofproto_parser.OFPPacketOut(datapath, **given))


def action_10(choose: random.Random) -> Any:
    p, n = V10.ofproto_parser, choose.getrandbits
    mac = addrconv.mac.bin_to_text(n(48).to_bytes(6, "big"))
    return choose.choice([
        lambda: p.OFPActionOutput(n(16)), lambda: p.OFPActionOutput(n(17), n(16)), lambda: p.OFPActionVlanVid(n(16)),
        lambda: p.OFPActionVlanPcp(n(8)), p.OFPActionStripVlan, lambda: p.OFPActionSetDlSrc(mac),
        lambda: p.OFPActionSetDlDst(mac.upper()), lambda: p.OFPActionSetDlDst(b"\1"), lambda: p.OFPActionSetNwSrc(n(32)),
        lambda: p.OFPActionSetNwDst("10.0.0.1"), lambda: p.OFPActionSetNwTos(n(8)), lambda: p.OFPActionSetTpSrc(n(16)),
        lambda: p.OFPActionSetTpDst(n(16)), lambda: p.OFPActionEnqueue(n(16), n(32)), lambda: p.NXActionPopQueue(),
    ])()


def match_10(choose: random.Random) -> Any:
    given = numbers(choose, in_port=16, dl_vlan=16, dl_vlan_pcp=8, dl_type=16, nw_tos=8, nw_proto=8, nw_src=32, nw_dst=32,
                    tp_src=16, tp_dst=16)
    for name in ("dl_src", "dl_dst"):
        if choose.random() < 0.5:
            binary = choose.getrandbits(48).to_bytes(6, "big")
            text = addrconv.mac.bin_to_text(binary)
            given[name] = choose.choice([text, text, text.upper(), text.replace(":", "-"), binary, 0, "bad", text[:-3]])
    return V10.ofproto_parser.OFPMatch(**given)


def flow_mod_10(choose: random.Random) -> Any:
    given = numbers(choose, cookie=64, command=3, idle_timeout=16, hard_timeout=16, priority=16, buffer_id=32, out_port=16,
                    flags=3)
    made = match_10(choose)
    message = V10.ofproto_parser.OFPFlowMod(V10, match=made, actions=actions(choose, action_10), **given)
    looked_up = [attempt(lambda: made[name]) for name in ("in_port", "dl_src", "dl_dst", "nw_src", "tp_dst", "wildcards", 3)]
    return [vars(made), of_object(made), looked_up, *written(choose, message)]


def packet_out_10(choose: random.Random) -> Any:
    return packet_out(choose, V10, action_10, numbers(choose, buffer_id=32, in_port=16))


def damaged(choose: random.Random, message: bytes) -> bytes:
    kind = choose.random()
    if kind < 0.15:
        return message[:choose.randrange(len(message) + 1)]
    if kind < 0.4:
        changed = bytearray(message)
        changed[choose.randrange(len(changed))] = choose.choice([0, 1, 255, choose.getrandbits(8)])
        return bytes(changed)
    return message


def header(version: int, body: bytes) -> bytes:
    return bytes((version, 10)) + (8 + len(body)).to_bytes(2, "big") + b"\0\0\0\7" + body


def packet_in_13(choose: random.Random) -> Any:
    fields = b""
    for field in choose.sample(FIELDS[:40] if choose.random() < 0.9 else FIELDS, choose.choice([0, 1, 1, 2, 4])):
        size, has_mask = field.type.size, choose.random() < 0.1
        if not isinstance(field.num, tuple):
            fields += (field.num << 9 | has_mask << 8 | size << has_mask).to_bytes(4, "big") + choose.randbytes(size << has_mask)
    data = frame(choose)
    length = 4 + len(fields)
    body = (choose.randbytes(4) + (len(data) + choose.choice([0, 0, 0, 9, -3]) & 0xFFFF).to_bytes(2, "big") + choose.randbytes(10)
            + b"\0\1" + length.to_bytes(2, "big") + fields + bytes(-length % 8) + bytes(2) + data)
    return packet_in(choose, V13, header(4, body))


def packet_in_10(choose: random.Random) -> Any:
    data = frame(choose)
    body = choose.randbytes(4) + (len(data) + choose.choice([0, 0, 9, -3]) & 0xFFFF).to_bytes(2, "big") + choose.randbytes(4) + data
    return packet_in(choose, V10, header(1, body))


def packet_in(choose: random.Random, datapath: Any, message: bytes) -> Any:
    message = damaged(choose, message)
    version, kind, length, xid = ofproto_parser.header(message)
    if choose.random() < 0.05:
        xid += 1
    buf = choose.choice([bytes, bytearray])(message)
    made = ofproto_parser.msg(datapath, version, kind, length, xid, buf)
    cls = datapath.ofproto_parser.OFPPacketIn
    results: list[Any] = [attempt(lambda: str(cls.parser(datapath, version, kind, length, xid, buf)))]
    if not isinstance(made, StringifyMixin):
        return made
    results += [of_object(made), type(made.buf).__name__, made.buf]
    if isinstance(made, cls):
        results += [type(made.data).__name__, made.data, sorted(vars(made)), sorted(made._base_attributes)]
        results += [made.version, made.msg_type, made.msg_len, made.xid, made.datapath is datapath]
    if isinstance(made, ofproto_v1_3_parser.OFPPacketIn):
        found = made.match
        results += [found.fields, [str(field) for field in found.fields], found.items(), found.length, found.type]
        results += [attempt(lambda: found["in_port"]), "in_port" in found, found.get("eth_type", 5), found._wc.wildcards]
        results += [str(pickle.loads(pickle.dumps(found))), of_object(copy.copy(found))]
        buf = bytearray()
        results += [attempt(lambda: found.serialize(buf, 0)), bytes(buf)]
    return results


def frame(choose: random.Random) -> bytes:
    """A frame, mostly of whole headers."""
    made = packet.Packet()
    n = choose.getrandbits
    mac = lambda: addrconv.mac.bin_to_text(n(48).to_bytes(6, "big"))  # noqa: E731
    ip4 = lambda: addrconv.ipv4.bin_to_text(n(32).to_bytes(4, "big"))  # noqa: E731
    kind = choose.choice(["arp", "ipv4", "ipv4", "ipv6", "junk", "other", "llc"])
    types = {"arp": 0x0806, "ipv4": 0x0800, "ipv6": 0x86DD}
    ethertype = types.get(kind, n(16) if kind == "other" else 1000)
    tags = choose.choice([0, 0, 0, 1, 2])
    made.add_protocol(ethernet.ethernet(mac(), mac(), 0x8100 if tags else ethertype))
    for tag in range(tags):
        made.add_protocol(vlan.vlan(n(3), n(1), n(12), 0x8100 if tag + 1 < tags else ethertype))
    protocol = choose.choice([6, 6, 17, 17, 1, 58, 47, 99])
    if kind == "arp":
        made.add_protocol(arp.arp(opcode=n(4), src_mac=mac(), src_ip=ip4(), dst_mac=mac(), dst_ip=ip4()))
    elif kind == "ipv4":
        made.add_protocol(ipv4.ipv4(src=ip4(), dst=ip4(), proto=protocol, option=choose.choice([None, None, None, bytes(4)])))
    elif kind == "ipv6":
        made.add_protocol(ipv6.ipv6(src="fe80::1", dst="2001:db8::1:0:5", nxt=protocol))
    if kind in ("ipv4", "ipv6"):
        port = lambda: choose.choice([n(16), n(16), n(16), 67, 179, 4789, 6653])  # noqa: E731
        if protocol == 17:
            made.add_protocol(udp.udp(port(), port()))
        elif protocol == 6:
            option = choose.choice([None, None, [tcp.TCPOptionMaximumSegmentSize(max_seg_size=1460)]])
            made.add_protocol(tcp.tcp(port(), port(), option=option))
        elif protocol == 1:
            made.add_protocol(icmp.icmp(8, 0, 0, icmp.echo(1, 2, b"ping")))
        elif protocol == 58 and kind == "ipv6":
            made.add_protocol(icmpv6.icmpv6(128, 0, 0, icmpv6.echo(1, 2, b"ping")))
    made.add_protocol(choose.choice([b"", bytes(20), choose.randbytes(30)]))
    made.serialize()
    return damaged(choose, bytes(made.data))


def frames(choose: random.Random) -> Any:
    data = frame(choose)
    cls = packet.Packet if choose.random() < 0.95 else type("Packet", (packet.Packet,), {})
    make = lambda: cls(choose.choice([bytes, bytes, bytes, bytearray])(data))  # noqa: E731
    first, second, third = make(), make(), make()
    wanted = choose.sample(CLASSES, 4)
    results: list[Any] = [(attempt(lambda: first.get_protocols(one)), attempt(lambda: first.get_protocol(one)), one in first)
                          for one in wanted]
    results += [of_object(second), len(second), list(second), attempt(lambda: second[0]), second.data, type(second.data).__name__]
    results += [attempt(lambda: second.get_protocols(3)), attempt(lambda: second.get_protocols(int))]
    if len(second):
        results += [second.get_protocols(second[0]), second.get_protocol(ethernet.ethernet) is second[0]]
    header_ = attempt(lambda: third.get_protocol(ethernet.ethernet))
    if isinstance(header_, ethernet.ethernet):
        header_.src = "02:00:00:00:00:09"
        header_.ethertype = 0x1234
        results += [of_object(header_), third[0] is header_, third.get_protocols(ethernet.ethernet)[0] is header_, str(third)]
    results += [attempt(third.serialize), bytes(third.data or b""), str(pickle.loads(pickle.dumps(make())))]
    results += [attempt(lambda: packet.Packet.from_jsondict(make().to_jsondict()["Packet"]))]
    return results


CASES = (match, flow_mod_13, packet_in_13, frames, packet_out_13, flow_mod_10, packet_in_10, packet_out_10)


def data(folder: Path) -> None:
    """Parses and serialises os-ken's own messages."""
    for name, datapath in (("of10", V10), ("of13", V13)):
        for path in sorted((folder / name).glob("*.packet")):
            message = path.read_bytes()
            show(path.name, attempt(lambda: parsed(datapath, message)))


def parsed(datapath: Any, message: bytes) -> Any:
    version, kind, length, xid = ofproto_parser.header(message)
    made = ofproto_parser.msg(datapath, version, kind, length, xid, message)
    results: list[Any] = [of_object(made), attempt(made.serialize), bytes(made.buf)]
    again = ofproto_parser.ofp_msg_from_jsondict(datapath, made.to_jsondict())
    again.set_xid(xid)
    return [*results, attempt(again.serialize), bytes(again.buf or b""), of_object(again)]


if __name__ == "__main__":
    main()
