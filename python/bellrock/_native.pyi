"""The native half of the package. Its classes are exported by `bellrock`."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from os import PathLike
from typing import Any, ClassVar, Literal, TypeVar, final, overload

from typing_extensions import disjoint_base

__all__ = [
    "Action",
    "AggregateStats",
    "Arp",
    "Bucket",
    "BucketDesc",
    "Changes",
    "CommandRun",
    "Description",
    "Desired",
    "Error",
    "ErrorMessage",
    "Ethernet",
    "Event",
    "EventStream",
    "Flow",
    "FlowRemoved",
    "FlowStats",
    "Group",
    "GroupDesc",
    "GroupStats",
    "Host",
    "HostId",
    "Icmp",
    "Ip",
    "Ipv4",
    "Ipv6",
    "Link",
    "LogLines",
    "MacAddr",
    "Match",
    "Meter",
    "MeterBand",
    "MeterConfig",
    "MeterStats",
    "MissedEvents",
    "NativeController",
    "NativeLab",
    "Network",
    "OsKenCodec",
    "Packet",
    "PacketIn",
    "PacketIns",
    "Plan",
    "PortInfo",
    "PortStats",
    "PortStatus",
    "QueueStats",
    "RawClosed",
    "RawConnection",
    "RawController",
    "RawEvent",
    "RawFull",
    "Reply",
    "Switch",
    "SwitchInfo",
    "TableStats",
    "Tcp",
    "Udp",
    "Verdict",
    "__version__",
    "log",
    "log_level",
    "log_to_stderr",
]

_T = TypeVar("_T")

__version__: str

class Error(Exception):
    """A message that cannot be sent to a switch, a controller that cannot start, or a network that refuses a change."""
class RawFull(Error):
    """Too many bytes wait for the switch. Nothing was sent; an event "writable" follows."""
class RawClosed(Error):
    """The connection has ended. Nothing was sent."""

def log(level: int, logger: str, text: str) -> None: ...
def log_level() -> int: ...
def log_to_stderr() -> None: ...

@final
class MacAddr:
    """An Ethernet address. Compares, sorts and hashes by value."""
    BROADCAST: ClassVar[MacAddr]
    def __new__(cls, address: MacAddr | str | bytes | int) -> MacAddr: ...
    @property
    def is_group(self) -> bool:
        """Whether it is a multicast or the broadcast address."""
    @property
    def is_station(self) -> bool:
        """Whether a station can own it: it is neither a group address nor zero."""
    @property
    def is_link_local(self) -> bool:
        """Whether bridges do not forward it: 01:80:c2:00:00:00 to :0f, such as LLDP and spanning tree."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: MacAddr, /) -> bool: ...
    def __le__(self, other: MacAddr, /) -> bool: ...
    def __gt__(self, other: MacAddr, /) -> bool: ...
    def __ge__(self, other: MacAddr, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...
    def __bytes__(self) -> bytes: ...

_GroupKind = Literal["all", "select", "indirect", "fast_failover"]

_Number = int | tuple[int, int]
_Mac = MacAddr | str | int | tuple[MacAddr | str | int, MacAddr | str | int]
_Ipv4 = IPv4Address | IPv4Network | str | int | tuple[IPv4Address | str | int, IPv4Address | str | int]
_Ipv6 = IPv6Address | IPv6Network | str | int | tuple[IPv6Address | str | int, IPv6Address | str | int]

@final
class Match:
    """The packets that a flow applies to: `Match(in_port=1, eth_type=0x0800, ipv4_dst="10.0.0.0/8")`.
    Compares and hashes by value.

    Fields have the names of OpenFlow 1.3. A value is a number, an address (text, `MacAddr`, or one
    of `ipaddress`), a network, or a tuple `(value, mask)`. `vlan_id=7` matches packets of VLAN 7,
    and `vlan_id=None` packets without a tag. `Match()` matches every packet.
    """
    def __new__(
        cls,
        *,
        in_port: int = ...,
        in_phy_port: int = ...,
        metadata: _Number = ...,
        eth_dst: _Mac = ...,
        eth_src: _Mac = ...,
        eth_type: int = ...,
        vlan_id: int | None = ...,
        vlan_vid: _Number = ...,
        vlan_pcp: int = ...,
        ip_dscp: int = ...,
        ip_ecn: int = ...,
        ip_proto: int = ...,
        ipv4_src: _Ipv4 = ...,
        ipv4_dst: _Ipv4 = ...,
        tcp_src: int = ...,
        tcp_dst: int = ...,
        udp_src: int = ...,
        udp_dst: int = ...,
        sctp_src: int = ...,
        sctp_dst: int = ...,
        icmpv4_type: int = ...,
        icmpv4_code: int = ...,
        arp_op: int = ...,
        arp_spa: _Ipv4 = ...,
        arp_tpa: _Ipv4 = ...,
        arp_sha: _Mac = ...,
        arp_tha: _Mac = ...,
        ipv6_src: _Ipv6 = ...,
        ipv6_dst: _Ipv6 = ...,
        ipv6_flabel: _Number = ...,
        icmpv6_type: int = ...,
        icmpv6_code: int = ...,
        ipv6_nd_target: IPv6Address | str | int = ...,
        ipv6_nd_sll: MacAddr | str | int = ...,
        ipv6_nd_tll: MacAddr | str | int = ...,
        mpls_label: int = ...,
        mpls_tc: int = ...,
        mpls_bos: int = ...,
        pbb_isid: _Number = ...,
        tunnel_id: _Number = ...,
        ipv6_exthdr: _Number = ...,
        tcp_flags: _Number = ...,
        reg0: _Number = ...,
    ) -> Match: ...
    @staticmethod
    def parse(text: str) -> Match:
        """Reads a match in the form in which it prints: `in_port=1,eth_type=0x0800`."""
    @staticmethod
    def from_packet(packet: PacketIn, /, *fields: str) -> Match:
        """Matches the packet's own values of these fields, and of those that they depend on. Without
        names: its ingress port and all usual fields.

        Raises `ValueError` if the packet does not have a field.
        """
    def fields(self) -> list[str]:
        """Returns the names of the matched fields."""
    @overload
    def get(self, field: str) -> Any:
        """Returns the value of a field, or `default` if it is not matched."""
    @overload
    def get(self, field: str, default: _T) -> Any | _T:
        """Returns the value of a field, or `default` if it is not matched."""
    def mask(self, field: str) -> Any:
        """Returns the mask of a field. All bits are set if it is matched without a mask."""
    def __getitem__(self, field: str, /) -> Any: ...
    def __contains__(self, field: str, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Action:
    """What is done to a packet: `Action.output(3)`, `Action.set_eth_dst("02:00:00:00:00:07")`.
    Compares by value.

    A value that does not fit its field, and an action that the version of the switch does not have,
    are errors when they are written to a switch.
    """
    @staticmethod
    def output(port: int) -> Action:
        """Sends the packet out of a port, with all changes made so far. To the controller, the
        whole packet is sent.
        """
    @staticmethod
    def group(group: int) -> Action:
        """Sends the packet to a group, with all changes made so far (1.3)."""
    @staticmethod
    def tag(vlan_id: int) -> Action:
        """Adds a VLAN tag with this id, 12 bits, to a packet without one: the same in every
        version.

        A packet that has a tag gets a second one in 1.3, and another id in 1.0: where it
        may have one, match `vlan_id`, and use `set_vlan_vid`.
        """
    @staticmethod
    def untag() -> Action:
        """Removes the VLAN tag of a packet that has one: the same in every version. In 1.3,
        the match of the flow names the tag: `Match(vlan_id=7)`.
        """
    @staticmethod
    def experimenter(id: int, data: bytes) -> Action:
        """An action of an experimenter (1.0: of a vendor): its id, such as 0x2320 for
        Nicira's, and the bytes behind the id. Zeros are added up to a multiple of 8 bytes.
        """
    @property
    def experimenter_data(self) -> tuple[int, bytes] | None:
        """Id and bytes of an action of an experimenter. `None` for other actions."""
    @staticmethod
    def parse(text: str) -> Action:
        """Reads an action in the form in which it prints, such as `output:3`."""
    @staticmethod
    def set_eth_dst(address: MacAddr | str) -> Action:
        """Sets the Ethernet destination (1.0 `SET_DL_DST`; 1.3 `SET_FIELD`)."""
    @staticmethod
    def set_eth_src(address: MacAddr | str) -> Action:
        """Sets the Ethernet source (1.0 `SET_DL_SRC`; 1.3 `SET_FIELD`)."""
    @staticmethod
    def set_vlan_vid(id: int) -> Action:
        """Sets the VLAN id of a packet that has a tag, 12 bits. Without one, 1.0
        (`SET_VLAN_VID`) adds it, and 1.3 refuses the flow: `tag` adds one in both.
        """
    @staticmethod
    def set_vlan_pcp(priority: int) -> Action:
        """Sets the VLAN priority, 3 bits. 1.0 (`SET_VLAN_PCP`) adds a tag if there is none. In
        1.3 the packet needs a tag.
        """
    @staticmethod
    def push_vlan(eth_type: int) -> Action:
        """Adds an outermost VLAN tag; 0x8100 is a customer's, 0x88a8 a provider's (1.3). `tag`
        adds a customer's in both versions.
        """
    @staticmethod
    def pop_vlan() -> Action:
        """Removes the outermost VLAN tag (1.0 `STRIP_VLAN`)."""
    @staticmethod
    def set_ipv4_src(address: IPv4Address | str) -> Action:
        """Sets the IPv4 source (1.0 `SET_NW_SRC`; 1.3 `SET_FIELD`). The switch updates the
        checksums.
        """
    @staticmethod
    def set_ipv4_dst(address: IPv4Address | str) -> Action:
        """Sets the IPv4 destination (1.0 `SET_NW_DST`; 1.3 `SET_FIELD`). The switch updates
        the checksums.
        """
    @staticmethod
    def set_ipv6_src(address: IPv6Address | str) -> Action:
        """Sets the IPv6 source (1.3). The switch updates the checksums."""
    @staticmethod
    def set_ipv6_dst(address: IPv6Address | str) -> Action:
        """Sets the IPv6 destination (1.3). The switch updates the checksums."""
    @staticmethod
    def set_ipv6_flabel(label: int) -> Action:
        """Sets the IPv6 flow label, 20 bits (1.3)."""
    @staticmethod
    def set_ip_dscp(dscp: int) -> Action:
        """Sets the DSCP of an IP packet, 6 bits (1.0 `SET_NW_TOS`; 1.3 `SET_FIELD`)."""
    @staticmethod
    def set_ip_ecn(ecn: int) -> Action:
        """Sets the ECN bits of an IP packet, 2 bits (1.3)."""
    @staticmethod
    def set_ip_ttl(ttl: int) -> Action:
        """Sets the TTL or hop limit of an IP packet (1.3)."""
    @staticmethod
    def dec_ttl() -> Action:
        """Decrements the TTL or hop limit of an IP packet. At 0 the switch does not forward it
        (1.3).
        """
    @staticmethod
    def set_tcp_src(port: int) -> Action:
        """Sets the source port of a TCP packet (1.0 `SET_TP_SRC`; 1.3 `SET_FIELD`)."""
    @staticmethod
    def set_tcp_dst(port: int) -> Action:
        """Sets the destination port of a TCP packet (1.0 `SET_TP_DST`; 1.3 `SET_FIELD`)."""
    @staticmethod
    def set_udp_src(port: int) -> Action:
        """Sets the source port of a UDP packet (1.0 `SET_TP_SRC`; 1.3 `SET_FIELD`)."""
    @staticmethod
    def set_udp_dst(port: int) -> Action:
        """Sets the destination port of a UDP packet (1.0 `SET_TP_DST`; 1.3 `SET_FIELD`)."""
    @staticmethod
    def set_sctp_src(port: int) -> Action:
        """Sets the source port of an SCTP packet (1.3)."""
    @staticmethod
    def set_sctp_dst(port: int) -> Action:
        """Sets the destination port of an SCTP packet (1.3)."""
    @staticmethod
    def set_arp_op(operation: int) -> Action:
        """Sets the operation of an ARP packet (1.3)."""
    @staticmethod
    def set_arp_spa(address: IPv4Address | str) -> Action:
        """Sets the sender's IPv4 address of an ARP packet (1.3)."""
    @staticmethod
    def set_arp_tpa(address: IPv4Address | str) -> Action:
        """Sets the target's IPv4 address of an ARP packet (1.3)."""
    @staticmethod
    def set_arp_sha(address: MacAddr | str) -> Action:
        """Sets the sender's Ethernet address of an ARP packet (1.3)."""
    @staticmethod
    def set_arp_tha(address: MacAddr | str) -> Action:
        """Sets the target's Ethernet address of an ARP packet (1.3)."""
    @staticmethod
    def push_mpls(eth_type: int) -> Action:
        """Adds an outermost MPLS label; 0x8847 is the Ethernet type of unicast (1.3)."""
    @staticmethod
    def pop_mpls(eth_type: int) -> Action:
        """Removes the outermost MPLS label. The remaining packet has this Ethernet type (1.3)."""
    @staticmethod
    def set_mpls_label(label: int) -> Action:
        """Sets the outermost MPLS label, 20 bits (1.3)."""
    @staticmethod
    def set_tunnel_id(id: int) -> Action:
        """Sets the tunnel id of a logical port (1.3)."""
    @staticmethod
    def set_queue(queue: int) -> Action:
        """Sends later outputs through this queue of their port (1.3; in 1.0 `enqueue`)."""
    @staticmethod
    def enqueue(port: int, queue: int) -> Action:
        """Sends the packet through a queue of a port (1.0; in 1.3 `set_queue`, then `output`)."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Flow:
    """A flow of an app: `Flow(Match(eth_dst=mac), Action.output(3), idle_timeout=10)`. Without actions
    it drops its packets. Compares by value. The switch and the OpenFlow version are not part of it.

    `priority` is among the app's own flows, 0 to 4095. `number` is the app's own: the lower half of
    the cookie. Timeouts are in seconds; 0 is none.
    """
    def __new__(
        cls,
        matching: Match,
        /,
        *actions: Action,
        table: int = 0,
        priority: int = 2048,
        number: int = 0,
        idle_timeout: int = 0,
        hard_timeout: int = 0,
        meter: int | None = None,
        write_actions: Sequence[Action] | None = None,
        write_metadata: tuple[int, int] | None = None,
        goto_table: int | None = None,
        send_flow_removed: bool = False,
        check_overlap: bool = False,
    ) -> Flow: ...
    @property
    def matching(self) -> Match:
        """The packets that it matches."""
    @property
    def actions(self) -> list[Action]:
        """Actions that are applied at once, in order."""
    @property
    def table(self) -> int:
        """Number of its table."""
    @property
    def priority(self) -> int:
        """Its priority among the app's flows."""
    @property
    def number(self) -> int:
        """The app's own number."""
    @property
    def idle_timeout(self) -> int:
        """Seconds without a packet until it expires; 0 for never."""
    @property
    def hard_timeout(self) -> int:
        """Seconds until it expires; 0 for never."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Bucket:
    """A bucket of a group: `Bucket(Action.output(3), weight=1)`.

    `weight` is for select groups. With `watch_port`, the bucket is live only while this port is up,
    for fast-failover groups.
    """
    def __new__(cls, *actions: Action, weight: int = 0, watch_port: int | None = None) -> Bucket: ...
    @property
    def actions(self) -> list[Action]:
        """Its actions, in order."""
    @property
    def weight(self) -> int:
        """Its weight, for select groups."""
    @property
    def watch_port(self) -> int | None:
        """The port that must be up for it to be live. `None`: it watches no port."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Group:
    """A group (1.3): `Group(7, "select", Bucket(…), Bucket(…))`. Its type is "all", "select",
    "indirect" or "fast_failover".
    """
    def __new__(cls, id: int, kind: _GroupKind, /, *buckets: Bucket) -> Group: ...
    @property
    def id(self) -> int:
        """Its number."""
    @property
    def kind(self) -> _GroupKind:
        """Its type: "all", "select", "indirect" or "fast_failover"."""
    @property
    def buckets(self) -> list[Bucket]:
        """Its buckets, in order."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Meter:
    """A meter (1.3) that drops packets above a rate: `Meter(1, kbps=10_000)`, or `Meter(1,
    packets_per_second=500)`. `burst_kbits` or `burst_packets` is the size of a burst that may
    exceed it.
    """
    def __new__(
        cls,
        id: int,
        /,
        *,
        kbps: int | None = None,
        burst_kbits: int | None = None,
        packets_per_second: int | None = None,
        burst_packets: int | None = None,
    ) -> Meter: ...
    @property
    def id(self) -> int:
        """Its number."""
    @property
    def kbps(self) -> int | None:
        """Its rate in kbit/s. `None`: its rate is in packets."""
    @property
    def packets_per_second(self) -> int | None:
        """Its rate in packets per second. `None`: its rate is in kbit/s."""
    @property
    def burst_kbits(self) -> int | None:
        """Size of a burst that may exceed the rate, in kbit. `None`: the switch chooses it, or the
        rate is in packets.
        """
    @property
    def burst_packets(self) -> int | None:
        """Size of a burst that may exceed the rate, in packets. `None`: the switch chooses it, or the
        rate is in kbit/s.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Ethernet:
    """The Ethernet header of a new frame: `Ethernet(src, dst).ipv4(src, dst).udp(5000, 53, b"hello")`.
    Lengths, checksums and padding are computed.
    """
    def __new__(
        cls,
        src: MacAddr | str,
        dst: MacAddr | str,
        *,
        vlan_id: int | None = None,
        vlan_pcp: int = 0,
    ) -> Ethernet: ...
    def payload(self, eth_type: int, data: bytes) -> bytes:
        """Returns the frame with a payload of this Ethernet type."""
    def arp(
        self,
        operation: int,
        sender_mac: MacAddr | str,
        sender_ip: IPv4Address | str,
        target_ip: IPv4Address | str,
        target_mac: MacAddr | str = ...,
    ) -> bytes:
        """Returns the frame with an ARP packet (RFC 826): `operation` 1 asks, 2 answers. A request
        that leaves out `target_mac` asks for it.
        """
    def ipv4(
        self,
        src: IPv4Address | str,
        dst: IPv4Address | str,
        *,
        ttl: int | None = None,
        dscp: int = 0,
    ) -> Ip:
        """Adds an IPv4 header."""
    def ipv6(
        self,
        src: IPv6Address | str,
        dst: IPv6Address | str,
        *,
        hop_limit: int | None = None,
        dscp: int = 0,
    ) -> Ip:
        """Adds an IPv6 header."""

@final
class Ip:
    """The Ethernet and IP headers of a new frame. Its methods return the frame, and raise `ValueError`
    if the data do not fit.
    """
    def payload(self, proto: int, data: bytes) -> bytes:
        """Returns the frame with a payload of any protocol, such as `IpProto.IGMP`."""
    def unreachable(self, packet: Packet, code: int) -> bytes:
        """Returns the frame with an ICMP or ICMPv6 error about a packet: "destination unreachable". In
        ICMP, `code` 0 is for the network, 1 for the host, 3 for the port, 13 for what is forbidden;
        in ICMPv6, 0 is for no route, 1 for what is forbidden, 3 for the address, 4 for the port.
        """
    def time_exceeded(self, packet: Packet) -> bytes:
        """Returns the frame with an ICMP or ICMPv6 error about a packet: "time exceeded", since its
        TTL or hop limit was used up.
        """
    def udp(self, src_port: int, dst_port: int, data: bytes = ...) -> bytes:
        """Returns the frame with a UDP datagram."""
    def tcp(
        self,
        src_port: int,
        dst_port: int,
        data: bytes = ...,
        *,
        sequence: int = 0,
        acknowledgment: int | None = None,
        syn: bool = False,
        fin: bool = False,
        rst: bool = False,
        psh: bool = False,
        window: int = ...,
    ) -> bytes:
        """Returns the frame with a TCP segment."""
    def echo_request(self, id: int, sequence: int, data: bytes = ...) -> bytes:
        """Returns the frame with an ICMP or ICMPv6 echo request."""
    def echo_reply(self, id: int, sequence: int, data: bytes = ...) -> bytes:
        """Returns the frame with an ICMP or ICMPv6 echo reply."""

@disjoint_base
class Packet:
    """A packet: its bytes from the Ethernet header on, and its headers. A header that is not there, or
    too short, is `None`.
    """
    def __new__(cls, data: bytes) -> Packet: ...
    @property
    def data(self) -> bytes:
        """Its bytes, from the Ethernet header on. Each call makes a new object."""
    @property
    def eth_dst(self) -> MacAddr:
        """Ethernet destination. Zero if the packet is shorter than that."""
    @property
    def eth_src(self) -> MacAddr:
        """Ethernet source. Zero if the packet is shorter than that."""
    @property
    def eth_type(self) -> int | None:
        """Ethernet type behind VLAN tags, such as 0x0800. `None` if the packet is too short."""
    @property
    def vlan_id(self) -> int | None:
        """VLAN id of the outermost tag. `None` for a packet without one."""
    @property
    def vlan_pcp(self) -> int | None:
        """Priority of the outermost tag. `None` for a packet without one."""
    @property
    def arp(self) -> Arp | None:
        """The ARP packet, if it is ARP for IPv4."""
    @property
    def ipv4(self) -> Ipv4 | None:
        """The IPv4 header."""
    @property
    def ipv6(self) -> Ipv6 | None:
        """The IPv6 header. `proto` is the protocol behind extension headers."""
    @property
    def tcp(self) -> Tcp | None:
        """The TCP header."""
    @property
    def udp(self) -> Udp | None:
        """The UDP header."""
    @property
    def icmp(self) -> Icmp | None:
        """The ICMP or ICMPv6 header."""
    @property
    def payload(self) -> bytes:
        """What is behind the innermost header that was read."""
    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...

@final
class PacketIn(Packet):
    """A packet that a switch sent to the controller."""
    @property
    def in_port(self) -> int:
        """The port by which it came in."""
    @property
    def buffer_id(self) -> int | None:
        """The switch's buffer that has the packet."""
    @property
    def total_len(self) -> int:
        """Length of the whole packet, in bytes."""
    @property
    def is_whole(self) -> bool:
        """Whether `data` is the whole packet. The switch may have sent only its beginning."""
    @property
    def reason(self) -> str:
        """Why the switch sent it: "no_match", "action", "invalid_ttl", or a number."""
    @property
    def table(self) -> int:
        """Number of the table of the flow that sent it."""
    @property
    def cookie(self) -> int:
        """Cookie of the flow that sent it (1.3)."""

@final
class PacketIns(Sequence[PacketIn]):
    """Packets that a switch sent together: a sequence of `PacketIn`, which are made when they are
    asked for. `values` reads a field of all of them at once.
    """
    @overload
    def __getitem__(self, index: int, /) -> PacketIn: ...
    @overload
    def __getitem__(self, index: slice, /) -> PacketIns: ...
    def __iter__(self) -> Iterator[PacketIn]: ...
    def __len__(self) -> int: ...
    @overload
    def values(self, field: Literal["in_port", "eth_src", "eth_dst"]) -> list[int]:
        """Returns the values of a field, one for each packet: numbers, and `None` for a packet that
        does not have the field. The fields are those of `Match`. `MacAddr(number)` makes an address
        of a number. Ethernet addresses are zero if the packet is shorter than that.
        """
    @overload
    def values(self, field: str) -> list[int | None]:
        """Returns the values of a field, one for each packet: numbers, and `None` for a packet that
        does not have the field. The fields are those of `Match`. `MacAddr(number)` makes an address
        of a number. Ethernet addresses are zero if the packet is shorter than that.
        """

@final
class Arp:
    """An ARP packet (RFC 826). `operation` is 1 for a request, 2 for a reply."""
    @property
    def operation(self) -> int:
        """1 for a request, 2 for a reply."""
    @property
    def sender_mac(self) -> MacAddr:
        """The sender's Ethernet address."""
    @property
    def sender_ip(self) -> IPv4Address:
        """The sender's IPv4 address."""
    @property
    def target_mac(self) -> MacAddr:
        """The target's Ethernet address: zero in a request."""
    @property
    def target_ip(self) -> IPv4Address:
        """The target's IPv4 address."""

@final
class Ipv4:
    """An IPv4 header (RFC 791)."""
    @property
    def src(self) -> IPv4Address:
        """Source."""
    @property
    def dst(self) -> IPv4Address:
        """Destination."""
    @property
    def proto(self) -> int:
        """Protocol behind it, such as `IpProto.TCP`."""
    @property
    def ttl(self) -> int:
        """Number of routers that it may still pass."""
    @property
    def dscp(self) -> int:
        """Class of service, 6 bits."""
    @property
    def ecn(self) -> int:
        """Congestion, 2 bits."""
    @property
    def total_length(self) -> int:
        """Length with this header, in bytes."""
    @property
    def identification(self) -> int:
        """Number that its fragments share."""
    @property
    def is_fragment(self) -> bool:
        """Whether it is a part of a packet."""

@final
class Ipv6:
    """An IPv6 header (RFC 8200)."""
    @property
    def src(self) -> IPv6Address:
        """Source."""
    @property
    def dst(self) -> IPv6Address:
        """Destination."""
    @property
    def proto(self) -> int:
        """Protocol behind extension headers, such as `IpProto.TCP`."""
    @property
    def hop_limit(self) -> int:
        """Number of routers that it may still pass."""
    @property
    def dscp(self) -> int:
        """Class of service, 6 bits."""
    @property
    def ecn(self) -> int:
        """Congestion, 2 bits."""
    @property
    def flow_label(self) -> int:
        """Flow that it belongs to, 20 bits."""

@final
class Tcp:
    """A TCP header (RFC 9293)."""
    @property
    def src_port(self) -> int:
        """Source port."""
    @property
    def dst_port(self) -> int:
        """Destination port."""
    @property
    def sequence(self) -> int:
        """Number of the first byte."""
    @property
    def acknowledgment(self) -> int:
        """Number of the next byte that is expected, if `ack` is set."""
    @property
    def syn(self) -> bool:
        """Whether it opens a connection."""
    @property
    def ack(self) -> bool:
        """Whether it acknowledges."""
    @property
    def fin(self) -> bool:
        """Whether it is the last of its direction."""
    @property
    def rst(self) -> bool:
        """Whether it ends the connection at once."""
    @property
    def psh(self) -> bool:
        """Whether the receiver gets the data at once."""
    @property
    def window(self) -> int:
        """Number of bytes that the sender takes, unscaled."""

@final
class Udp:
    """A UDP header (RFC 768)."""
    @property
    def src_port(self) -> int:
        """Source port."""
    @property
    def dst_port(self) -> int:
        """Destination port."""
    @property
    def length(self) -> int:
        """Length with this header, in bytes."""

@final
class Icmp:
    """The type and code of an ICMP (RFC 792) or ICMPv6 (RFC 4443) message."""
    @property
    def kind(self) -> int:
        """Its type, such as 8 for an echo request of ICMP."""
    @property
    def code(self) -> int:
        """What its type has several of, such as reasons of an error."""

@final
class Verdict:
    """Whether the next app of the chain sees a packet. A handler that returns nothing has handled it."""
    CONSUME: ClassVar[Verdict]
    PASS: ClassVar[Verdict]
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __int__(self) -> int: ...

@final
class SwitchInfo:
    """A switch that is up, as it was at one moment."""
    @property
    def dpid(self) -> int:
        """Its datapath id."""
    @property
    def version(self) -> str:
        """OpenFlow version of the connection: "1.0" or "1.3"."""
    @property
    def address(self) -> str:
        """Remote address of the connection, with its port."""
    @property
    def n_tables(self) -> int:
        """Number of flow tables."""
    @property
    def n_buffers(self) -> int:
        """Maximum number of packets that it can buffer."""
    @property
    def has_groups(self) -> bool:
        """Whether flows can send packets to groups: its version has them. A switch may still refuse
        some.
        """
    @property
    def has_meters(self) -> bool:
        """Whether flows can send packets through meters: its version has them. A switch may still have
        room for none.
        """
    @property
    def has_tables(self) -> bool:
        """Whether flows can name a table, and send packets to a later one: its version lets them."""
    @property
    def family(self) -> Literal["fixed", "oxm"]:
        """The family of its version: "fixed" (1.0), whose matches have twelve fields, or "oxm" (1.2
        and later), whose matches are lists of fields.
        """
    @property
    def capabilities(self) -> list[str]:
        """Capabilities that it reports, with the specification's names in lower case, such as
        "flow_stats".
        """
    def supports(self, what: Action | Match | Group | Meter, /) -> bool:
        """Returns whether its flows can have this action, match, group or meter: its version expresses
        it, and, with 1.0, it reports the action. A switch of 1.3 may still refuse one.
        """
    @property
    def manufacturer(self) -> str:
        """Its maker, in its own words."""
    @property
    def hardware(self) -> str:
        """Its hardware, in its own words."""
    @property
    def software(self) -> str:
        """Its software, in its own words."""
    @property
    def ports(self) -> list[PortInfo]:
        """Its ports."""

@final
class PortInfo:
    """A port of a switch."""
    @property
    def number(self) -> int:
        """Its number."""
    @property
    def name(self) -> str:
        """Its name."""
    @property
    def address(self) -> MacAddr:
        """Its Ethernet address."""
    @property
    def is_up(self) -> bool:
        """Whether it is neither taken down nor without a link."""
    @property
    def rate_kbps(self) -> int | None:
        """Its rate in kbit/s. `None` if it reports none."""

@final
class Link:
    """One direction of a link between two switches."""
    @property
    def from_dpid(self) -> int:
        """Datapath id of the switch that sends."""
    @property
    def from_port(self) -> int:
        """Its port."""
    @property
    def to_dpid(self) -> int:
        """Datapath id of the switch that receives."""
    @property
    def to_port(self) -> int:
        """Its port."""
    @property
    def rate_kbps(self) -> int | None:
        """Its rate in kbit/s. `None` if the sending port reports none."""

@final
class Host:
    """A host."""
    @property
    def mac(self) -> MacAddr:
        """Its Ethernet address."""
    @property
    def vlan_id(self) -> int | None:
        """VLAN of its packets, if they have a tag with one."""
    @property
    def dpid(self) -> int:
        """Datapath id of its switch."""
    @property
    def port(self) -> int:
        """Its port there."""
    @property
    def addresses(self) -> list[IPv4Address | IPv6Address]:
        """Its IP addresses, in the order in which they were learnt."""

@final
class PortStatus:
    """A port was added, removed or changed."""
    @property
    def reason(self) -> str:
        """"add", "delete" or "modify"."""
    @property
    def port(self) -> PortInfo:
        """The port, as it is now."""

@final
class FlowRemoved:
    """A flow was removed."""
    @property
    def matching(self) -> Match:
        """The packets that it matched."""
    @property
    def priority(self) -> int:
        """Its priority: among the app's flows if it is one of them, else as in the switch."""
    @property
    def table(self) -> int:
        """Number of its table."""
    @property
    def is_own(self) -> bool:
        """Whether it was a flow of this app."""
    @property
    def number(self) -> int:
        """The lower half of its cookie."""
    @property
    def reason(self) -> str:
        """"idle_timeout", "hard_timeout", "delete", "group_delete", or a number."""
    @property
    def duration(self) -> float:
        """How long it was there, in seconds."""
    @property
    def packets(self) -> int:
        """Number of packets that matched it."""
    @property
    def bytes(self) -> int:
        """Number of bytes of those packets."""

@final
class ErrorMessage:
    """A switch refused a message of the app."""
    @property
    def text(self) -> str:
        """What is wrong, in the words of the specification."""
    @property
    def experimenter(self) -> int | None:
        """The experimenter that defines the error. `None`: the specification does."""
    @property
    def data(self) -> bytes:
        """The beginning of the refused message, or the experimenter's data."""

@final
class FlowStats:
    """A flow in a switch, with its counters."""
    @property
    def app(self) -> str | None:
        """The app that installed it. `None` for flows of others."""
    @property
    def is_own(self) -> bool:
        """Whether it is a flow of the app that asked."""
    @property
    def matching(self) -> Match:
        """The packets that it matches."""
    @property
    def table(self) -> int:
        """Number of its table."""
    @property
    def priority(self) -> int:
        """Its priority: among the app's flows if it is one of them, else as in the switch."""
    @property
    def number(self) -> int:
        """The lower half of its cookie."""
    @property
    def idle_timeout(self) -> int:
        """Seconds without a packet until it expires; 0 for never."""
    @property
    def hard_timeout(self) -> int:
        """Seconds until it expires; 0 for never."""
    @property
    def duration(self) -> float:
        """How long it has existed, in seconds."""
    @property
    def packets(self) -> int:
        """Number of packets that matched it."""
    @property
    def bytes(self) -> int:
        """Number of bytes of those packets."""
    @property
    def actions(self) -> list[Action]:
        """Actions that are applied at once, in order. Those without a meaning here, of an experimenter
        for example, are kept as they are.
        """
    @property
    def goto_table(self) -> int | None:
        """Number of the table that follows (1.3)."""
    @property
    def meter(self) -> int | None:
        """Number of the meter that packets go through first (1.3)."""
    @property
    def instructions(self) -> str:
        """What it does with packets, as it prints."""

@final
class AggregateStats:
    """Sums over the flows of a switch."""
    @property
    def flows(self) -> int:
        """Number of flows."""
    @property
    def packets(self) -> int:
        """Number of packets that matched them."""
    @property
    def bytes(self) -> int:
        """Number of bytes of those packets."""

@final
class TableStats:
    """The counters of a table."""
    @property
    def table(self) -> int:
        """Its number."""
    @property
    def flows(self) -> int:
        """Number of its flows."""
    @property
    def lookups(self) -> int:
        """Number of packets looked up in it."""
    @property
    def matched(self) -> int:
        """Number of packets that matched a flow."""
    @property
    def name(self) -> str | None:
        """Its name, which only 1.0 reports here."""
    @property
    def max_flows(self) -> int | None:
        """Maximum number of its flows, which only 1.0 reports here."""

@final
class PortStats:
    """The counters of a port. Those that the switch does not have are `None`."""
    @property
    def port(self) -> int:
        """Number of the port."""
    @property
    def duration(self) -> float:
        """How long it has existed, in seconds; 0 in OpenFlow 1.0."""
    @property
    def rx_packets(self) -> int | None:
        """Packets received."""
    @property
    def tx_packets(self) -> int | None:
        """Packets sent."""
    @property
    def rx_bytes(self) -> int | None:
        """Bytes received."""
    @property
    def tx_bytes(self) -> int | None:
        """Bytes sent."""
    @property
    def rx_dropped(self) -> int | None:
        """Packets dropped on receipt."""
    @property
    def tx_dropped(self) -> int | None:
        """Packets dropped on sending."""
    @property
    def rx_errors(self) -> int | None:
        """Errors on receipt."""
    @property
    def tx_errors(self) -> int | None:
        """Errors on sending."""
    @property
    def rx_frame_errors(self) -> int | None:
        """Frames received that were not aligned."""
    @property
    def rx_overruns(self) -> int | None:
        """Packets received that found no space."""
    @property
    def rx_crc_errors(self) -> int | None:
        """Packets received with a wrong checksum."""
    @property
    def collisions(self) -> int | None:
        """Collisions."""

@final
class QueueStats:
    """The counters of a queue of a port. Those that the switch does not have are `None`."""
    @property
    def port(self) -> int:
        """Number of the port."""
    @property
    def queue(self) -> int:
        """Number of the queue at the port."""
    @property
    def duration(self) -> float:
        """How long it has existed, in seconds; 0 in OpenFlow 1.0."""
    @property
    def tx_packets(self) -> int | None:
        """Packets sent."""
    @property
    def tx_bytes(self) -> int | None:
        """Bytes sent."""
    @property
    def tx_errors(self) -> int | None:
        """Packets dropped because the queue was full."""

@final
class Reply:
    """The reply of a switch to a request that was given as bytes."""
    @property
    def version(self) -> str:
        """OpenFlow version of the switch: "1.0" or "1.3"."""
    @property
    def data(self) -> bytes:
        """The message, from its header on. Of a multipart reply: the bodies of all its parts, joined."""
    @property
    def text(self) -> str:
        """What it says, as it prints."""
    def __bytes__(self) -> bytes: ...

@final
class Description:
    """What a switch says of itself."""
    @property
    def manufacturer(self) -> str:
        """Its manufacturer."""
    @property
    def hardware(self) -> str:
        """Its hardware."""
    @property
    def software(self) -> str:
        """Its software."""
    @property
    def serial_number(self) -> str:
        """Its serial number."""
    @property
    def datapath(self) -> str:
        """The name that its operator has given it."""

_Counted = tuple[int | None, int | None]

@final
class GroupStats:
    """The counters of a group. Those that the switch does not have are `None`."""
    @property
    def group(self) -> int:
        """Number of the group."""
    @property
    def references(self) -> int:
        """Number of flows and groups that use it."""
    @property
    def packets(self) -> int | None:
        """Number of packets."""
    @property
    def bytes(self) -> int | None:
        """Number of bytes of those packets."""
    @property
    def duration(self) -> float:
        """How long it has existed, in seconds."""
    @property
    def buckets(self) -> list[_Counted]:
        """Packets and bytes of each of its buckets, in order."""

@final
class GroupDesc:
    """A group as it is in a switch."""
    @property
    def group(self) -> int:
        """Number of the group."""
    @property
    def kind(self) -> str:
        """Its type: "all", "select", "indirect", "fast_failover", or the number of another type."""
    @property
    def buckets(self) -> list[BucketDesc]:
        """Its buckets, in order."""

@final
class BucketDesc:
    """A bucket of a group as it is in a switch."""
    @property
    def actions(self) -> list[Action]:
        """Its actions, in order. Those without a meaning here are kept as they are."""
    @property
    def weight(self) -> int:
        """Its weight, for select groups."""
    @property
    def watch_port(self) -> int | None:
        """The port that must be up for it to be live. `None`: it watches no port."""
    @property
    def watch_group(self) -> int | None:
        """The group that must be live for it to be live. `None`: it watches no group."""

@final
class MeterStats:
    """The counters of a meter. Those that the switch does not have are `None`."""
    @property
    def meter(self) -> int:
        """Number of the meter."""
    @property
    def flows(self) -> int:
        """Number of flows that use it."""
    @property
    def packets(self) -> int | None:
        """Number of packets that entered it."""
    @property
    def bytes(self) -> int | None:
        """Number of bytes of those packets."""
    @property
    def duration(self) -> float:
        """How long it has existed, in seconds."""
    @property
    def bands(self) -> list[_Counted]:
        """Packets and bytes above the rate of each of its bands, in order."""

@final
class MeterConfig:
    """A meter as it is in a switch."""
    @property
    def meter(self) -> int:
        """Number of the meter."""
    @property
    def unit(self) -> Literal["kbps", "packets"]:
        """The unit of its rates: "kbps" or "packets"."""
    @property
    def bands(self) -> list[MeterBand]:
        """Its bands, in order."""

@final
class MeterBand:
    """A band of a meter."""
    @property
    def kind(self) -> str:
        """What it does with packets above its rate: "drop", "dscp_remark", "experimenter", or the
        number of another type.
        """
    @property
    def rate(self) -> int:
        """Its rate, in the unit of the meter."""
    @property
    def burst(self) -> int | None:
        """Size of a burst that may exceed the rate, in kbit or packets. `None`: the switch chooses it."""

@final
class Switch:
    """A switch that is up. Its methods write messages, which are sent after the event, in order.

    It may be kept, and written to at any time and from coroutines: then messages are sent at once.
    After `switch_down`, writing is an `Error`; if the switch comes up again, there is a new object.
    """
    @property
    def dpid(self) -> int:
        """Its datapath id."""
    @property
    def version(self) -> str:
        """OpenFlow version of the connection: "1.0" or "1.3"."""
    @property
    def is_up(self) -> bool:
        """Whether it is up: whether messages can be sent."""
    @property
    def info(self) -> SwitchInfo:
        """Its data, as they are now."""
    @property
    def ports(self) -> list[PortInfo]:
        """Its ports, as they are now."""
    def port(self, number: int) -> PortInfo | None:
        """Finds a port by its number."""
    def packet_out(self, packet: PacketIn, to: int | Action | Sequence[Action]) -> None:
        """Sends a packet out of a port, or applies actions to it. An empty list drops it, which frees
        the switch's buffer.

        Raises `Error` if neither the switch nor the message has the whole packet.
        """
    def send_packet(self, data: bytes, to: int | Action | Sequence[Action]) -> None:
        """Sends a new packet, which begins with its Ethernet header, out of a port or with actions."""
    def install(self, flow: Flow, packet: PacketIn | None = None) -> int:
        """Installs a flow. With a packet, the packet takes the flow's actions too, as far as they are
        applied at once.

        It is not confirmed: if the switch refuses, the handler's `error` gets the returned id.
        Raises `Error` if the version of the switch cannot express the flow.
        """
    def allow(self, matching: Match, seconds: float = 30.0) -> None:
        """Allows the switch to forward the packets of `matching` for so many seconds, of those that
        the app sees (`App.sees`): allow, then return `Verdict.PASS`.

        The next flow that an app behind installs for such packets then carries them past this app,
        until the time is over. A flow of this app with the default priority or a higher one, such
        as one that drops, has priority over it.
        """
    def install_each(
        self,
        packets: PacketIns,
        ports: Iterable[int | None],
        /,
        *fields: str,
        table: int = 0,
        priority: int = ...,
        number: int = 0,
        idle_timeout: int = 0,
        hard_timeout: int = 0,
        send_flow_removed: bool = False,
    ) -> PacketIns:
        """Installs a flow for each packet, and sends the packet with it: to the port at its place in
        `ports`, a sequence of port numbers. A packet whose port is `None` stays as it is; these are
        returned. The flows match the packets' own values of the named fields, and of those that
        they depend on.

        Raises `ValueError` if a packet lacks a field, or the ports are more or fewer than the
        packets.
        """
    def packet_out_each(self, packets: PacketIns, to: int | Action | Sequence[Action]) -> None:
        """Sends packets out of a port, or applies actions to each, as `packet_out` does."""
    def remove(self, matching: Match | None = None, out_port: int | None = None) -> int:
        """Removes this app's flows that `matching` covers, of those that send to `out_port`. Flows of
        other apps stay.
        """
    def count(self, name: str, n: int = 1) -> None:
        """Adds to a counter of the app, one of `App.counters`. Operators see it in `bellrock counters`
        and in the metrics.
        """
    def barrier(self) -> int:
        """Requests that the switch finish all earlier messages; the handler's `barrier` gets the
        returned id then.
        """
    def answer_arp(self, packet: PacketIn, ip: IPv4Address | str, mac: MacAddr | str) -> bool:
        """Answers an ARP request for the address `ip`: it is at `mac`. Returns whether the packet
        requested that address.
        """
    def answer_solicitation(
        self, packet: PacketIn, ip: IPv6Address | str, mac: MacAddr | str
    ) -> bool:
        """Answers a neighbour solicitation for the IPv6 address `ip`: it is at `mac`. Returns whether
        the packet requested that address.
        """

_Change = Literal["add", "replace", "modify", "remove", "ingress", "transit", "egress"]

@final
class Plan:
    """Changes of flows that are carried out together, in an order in which no packet loops or is lost.

    `Plan()` is for one switch, `Plan.independent()` for changes of which no packet meets two,
    `Plan.tree()` for flows that lead to a destination, and `Plan.two_phase(tag)` for any others. A
    plan is carried out once.
    """
    def __new__(cls) -> Plan: ...
    @staticmethod
    def independent() -> Plan:
        """Changes of any switches of which no packet meets two."""
    @staticmethod
    def tree() -> Plan:
        """Flows that lead to destinations, each with its distance."""
    @staticmethod
    def two_phase(tag: int) -> Plan:
        """Flows of which each packet meets all or none. Within the network they match the VLAN id
        `tag`, which no packet carries yet.
        """
    def add(self, dpid: int, flow: Flow, distance: int = 0) -> None:
        """Adds a flow, `distance` hops from the destination."""
    def replace(self, dpid: int, old: Flow, new: Flow, distance: int = 0) -> None:
        """Adds a flow in place of another with the same match and priority, `distance` hops from the
        destination. The old flow comes back if the plan fails.
        """
    def remove(self, dpid: int, flow: Flow) -> None:
        """Removes a flow, after all added flows are confirmed."""
    def group(self, dpid: int, group: Group) -> None:
        """Adds a group, before all flows (1.3)."""
    def modify_group(self, dpid: int, old: Group, new: Group) -> None:
        """Changes a group, before all flows (1.3)."""
    def remove_group(self, dpid: int, group: Group) -> None:
        """Removes a group, after all flows (1.3)."""
    def meter(self, dpid: int, meter: Meter) -> None:
        """Adds a meter, before all flows (1.3)."""
    def modify_meter(self, dpid: int, old: Meter, new: Meter) -> None:
        """Changes a meter, before all flows (1.3)."""
    def remove_meter(self, dpid: int, meter: Meter) -> None:
        """Removes a meter, after all flows (1.3)."""
    def ingress(self, dpid: int, new: Flow, old: Flow | None = None) -> None:
        """Adds a flow of a two-phase plan where packets come in, in place of `old` if there is one."""
    def transit(self, dpid: int, flow: Flow) -> None:
        """Adds a flow of a two-phase plan that forwards packets with the tag."""
    def egress(self, dpid: int, flow: Flow) -> None:
        """Adds a flow of a two-phase plan where packets leave."""
    @property
    def changes(self) -> list[tuple[_Change, int, Flow | Group | Meter]]:
        """Its changes, in the order in which they were given: what is done ("add", "replace",
        "modify", "remove", "ingress", "transit" or "egress"), the datapath id, and the flow, group
        or meter.
        """
    @property
    def is_carried_out(self) -> bool:
        """Whether it was carried out, or is being carried out."""
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

_Entries = Sequence[tuple[int, Flow | Group | Meter]]

@final
class Desired:
    """The entries that an app wants in the switches. They are confirmed, and put back after a restart
    of a switch, a refusal, or a change by others.

    Each intent has a number, which the app chooses. Its entries are tuples of a datapath id and a
    flow, group or meter.
    """
    def set(self, intent: int, entries: _Entries) -> None:
        """Replaces an intent with these entries, ordered from the destination: those nearer to it are
        changed and confirmed first.
        """
    def set_independent(self, intent: int, entries: _Entries) -> None:
        """Replaces an intent with these entries, none of which waits for another."""
    async def commit(self, intent: int, entries: _Entries, within: float = ...) -> None:
        """Like `set`, and waits until all switches have the entries. Raises `Error` if one refuses, or
        if it takes longer than `within` seconds.
        """
    def withdraw(self, intent: int) -> None:
        """Removes all entries of an intent."""
    def complete(self) -> None:
        """Declares that all intents have been set: unwanted flows of an earlier run are removed."""
    async def settled(self) -> None:
        """Waits until all switches that are up have their wanted entries."""

_EventName = Literal[
    "app_event",
    "switch_up",
    "switch_down",
    "connection_ended",
    "connections_refused",
    "removal_unanswered",
    "certificate_expires",
    "switch_stands_by",
    "port_down",
    "port_up",
    "link_up",
    "link_down",
    "one_way",
    "miswired",
    "segment",
    "segment_over",
    "forged_announcement",
    "replayed_announcement",
    "reflected_announcement",
    "relay_suspected",
    "host_seen",
    "host_moved",
    "host_move_refused",
    "address_claim_refused",
    "host_gone",
    "too_many_hosts",
    "probe_address_used",
    "foreign_flows",
    "reconciled",
    "wanted_altered",
    "wanted_not_kept",
    "wanted_kept",
    "tables_untold",
    "storm",
    "storm_over",
    "outside_loop",
    "outside_loop_over",
    "host_at_link",
    "wanted_refused",
    "own_flow_refused",
    "own_flow_installed",
    "announcements_refused",
    "announcements_taken",
    "majority_lost",
    "majority_found",
    "node_lost",
    "node_found",
    "switch_taken",
    "switch_unclaimed",
    "switch_claimed",
    "election_ahead",
    "store_lost",
    "store_found",
]

_Place = tuple[int, int]

@final
class HostId:
    """A host, as events name it."""
    @property
    def mac(self) -> MacAddr:
        """Its Ethernet address."""
    @property
    def vlan_id(self) -> int | None:
        """VLAN of its packets, if they have a tag with one."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Event:
    """An event of the network. What it is about is in its attributes; those that do not fit it are
    `None`.
    """
    NAMES: ClassVar[list[str]]
    @property
    def name(self) -> _EventName:
        """Its name, such as "switch_up"."""
    @property
    def number(self) -> int:
        """Number of events published before it."""
    @property
    def time(self) -> float:
        """Its time, in seconds since the controller started."""
    @property
    def is_alarming(self) -> bool:
        """Whether an operator should see it."""
    @property
    def dpid(self) -> int | None:
        """Datapath id of the switch."""
    @property
    def port(self) -> int | None:
        """Number of the port at that switch: where it happened; for a link, the sending port."""
    @property
    def other_port(self) -> _Place | None:
        """A second port, as datapath id and number: where a host was before it moved, or where its
        address was claimed; the sender of an announcement; the receiving port of a link.
        """
    @property
    def host(self) -> HostId | None:
        """The host."""
    @property
    def ip(self) -> IPv4Address | IPv6Address | None:
        """The IP address: of a host, or of a peer that could not connect."""
    @property
    def link(self) -> Link | None:
        """The link, in one direction."""
    @property
    def app(self) -> str | None:
        """Name of the app."""
    @property
    def node(self) -> str | None:
        """Name of the node of the cluster."""
    @property
    def published(self) -> tuple[str, str] | None:
        """For an event of an app's own, "app_event": the name and the text that the app gave."""

@final
class MissedEvents:
    """Stands in a stream of events for those that it missed, because its reader was too slow."""
    @property
    def count(self) -> int:
        """Number of events missed."""

@final
class EventStream:
    """The events of the network, for `async for`."""
    def __aiter__(self) -> EventStream: ...
    async def __anext__(self) -> Event | MissedEvents: ...

_Part = Literal["topology", "hosts", "paths"]

@final
class Changes:
    """Changes of the switches, links, hosts and paths since `Network.changed` was called."""
    def __aiter__(self) -> Changes: ...
    async def __anext__(self) -> list[_Part]: ...
    def __await__(self) -> Generator[Any, Any, list[_Part]]: ...

@final
class Network:
    """The network: what is known of it, and changes to it that are confirmed.

    Methods that return an awaitable are for coroutines: `await network.commit(plan)`.
    """
    def now(self) -> float:
        """Returns the time since the controller started, in seconds."""
    @property
    def term(self) -> int | None:
        """The number of the term in which this node leads, for an app of scope "once" in a cluster:
        larger than those before. `None`: the controller is alone, or the app is of another scope.
        """
    @property
    def is_term_over(self) -> bool:
        """Whether another node may lead now."""
    @property
    def switches(self) -> list[SwitchInfo]:
        """The switches that are up."""
    def switch(self, dpid: int) -> SwitchInfo | None:
        """Finds a switch that is up by its datapath id."""
    @property
    def links(self) -> list[Link]:
        """The links between switches, one for each direction, for apps that need "topology"."""
    @property
    def hosts(self) -> list[Host]:
        """The known hosts, sorted by their ports, for apps that need "hosts"."""
    def host(self, mac: MacAddr | str, vlan_id: int | None = None) -> Host | None:
        """Finds a host by its Ethernet address, in its VLAN."""
    def host_by_ip(
        self, ip: IPv4Address | IPv6Address | str, vlan_id: int | None = None
    ) -> Host | None:
        """Finds a host by its IP address, in its VLAN."""
    def path(
        self, from_dpid: int, to_dpid: int, key: int = 0
    ) -> list[tuple[int, int]] | None:
        """Returns the hops of a shortest path between two switches, each as the datapath id and the
        port that packets leave by; `None` if there is no path. For apps that need "paths". Equal
        paths are chosen by `key`, such as a hash of addresses.
        """
    def distance(self, from_dpid: int, to_dpid: int) -> int | None:
        """Returns the number of hops between two switches; `None` if there is no path. For apps that
        need "paths".
        """
    def next_hops(self, from_dpid: int, to_dpid: int) -> list[_Place]:
        """Returns the ports that shortest paths between two switches begin with, each as the datapath
        id and the port: several where paths are equally long, none if there is no path. For apps
        that need "paths".
        """
    def k_shortest(
        self, from_dpid: int, to_dpid: int, k: int, avoid: Sequence[_Place] = ...
    ) -> list[list[_Place]]:
        """Returns the `k` shortest paths between two switches that pass no switch twice, the shortest
        first, each as `path` returns it. Links whose sending port is in `avoid`, as a datapath id
        and a port, are left out. For apps that need "paths".
        """
    def edge_ports(self, dpid: int) -> list[int]:
        """Returns the ports of a switch that hosts can be at: up, and no end of a link. Empty while
        the network is not known yet. For apps that need "topology".
        """
    def flood_ports(self, dpid: int) -> list[int]:
        """Returns the ports of a switch that a flooded packet goes out of, except its `in_port`, so
        that it reaches each host once. For apps that need "paths".
        """
    async def commit(self, plan: Plan) -> None:
        """Carries out a plan, and waits until the switches have confirmed it. Raises `Error` if it
        cannot be carried out; then what was changed is rolled back where that is safe.
        """
    @property
    def desired(self) -> Desired:
        """The entries that this app wants in the switches. The class of the app must have
        `keeps_flows = True`.
        """
    async def flow_stats(self, dpid: int, matching: Match | None = None) -> list[FlowStats]:
        """Requests the flows of a switch that `matching` covers, of all apps, with their counters."""
    async def aggregate_stats(
        self, dpid: int, matching: Match | None = None
    ) -> AggregateStats:
        """Requests the sums over the flows of a switch that `matching` covers, of all apps."""
    async def table_stats(self, dpid: int) -> list[TableStats]:
        """Requests the counters of a switch's tables."""
    async def port_stats(self, dpid: int, port: int | None = None) -> list[PortStats]:
        """Requests the counters of a switch's ports, or of one."""
    async def queue_stats(
        self, dpid: int, port: int | None = None, queue: int | None = None
    ) -> list[QueueStats]:
        """Requests the counters of queues: of all ports or one, all queues or one."""
    async def group_stats(self, dpid: int, group: int | None = None) -> list[GroupStats]:
        """Requests the counters of a switch's groups, or of one (1.3)."""
    async def group_descs(self, dpid: int) -> list[GroupDesc]:
        """Requests the groups of a switch as they are there, of all apps (1.3)."""
    async def meter_stats(self, dpid: int, meter: int | None = None) -> list[MeterStats]:
        """Requests the counters of a switch's meters, or of one (1.3)."""
    async def meter_configs(self, dpid: int, meter: int | None = None) -> list[MeterConfig]:
        """Requests the meters of a switch as they are there, or one of them, of all apps (1.3)."""
    async def description(self, dpid: int) -> Description:
        """Requests what a switch says of itself."""
    async def request(self, dpid: int, message: bytes) -> Reply:
        """Sends a request of any kind as bytes, and waits for the reply: a whole message of the
        switch's OpenFlow version, such as that of an experimenter. Its transaction id is replaced.
        Raises `Error` if the switch refuses or does not answer it, and `ValueError` for a message
        that is no request.
        """
    async def send(self, dpid: int, message: bytes) -> None:
        """Sends a message as bytes that no switch answers, and waits until the switch has processed
        it: a whole message of the switch's OpenFlow version. Its transaction id is replaced. Raises
        `Error` if the switch refuses it, and `ValueError` for a message that the controller sends
        itself, or that installs flows.
        """
    def publish(self, name: str, text: str, *, alarming: bool = False, about: str | None = None, ends: str | None = None) -> None:
        """Publishes an event of the app's own. Operators see it in the log and by `bellrock events`.
        With `alarming=True` it is an alarm. With `about`, such as a port, the alarm lasts: it is
        open until the app publishes an event with `ends`, the name of the alarm, and the same
        `about`.
        """
    def events(self, *names: _EventName) -> EventStream:
        """Subscribes to later events of the network, to all or to those with these names: `async for
        event in network.events("link_up", "link_down")`. `Event.NAMES` has all names.
        """
    def changed(self) -> Changes:
        """Waits for changes of the switches, links, hosts and paths, as far as the app needs them:
        `await network.changed()` for the next one, `async for parts in network.changed()` for each.
        The result has what changed, of "topology", "hosts" and "paths". Changes in quick succession
        come as one.
        """
    def to_networkx(self, *, multi: bool = False) -> Any:
        """Makes a graph of `networkx`, which must be installed: switches by their datapath ids, hosts
        by their addresses if the app needs "hosts", and an edge for each direction of a link, with
        `port`, `to_port` and `rate_kbps`. Of parallel links, a `DiGraph` has the one with the
        lowest port; with `multi=True`, a `MultiDiGraph` has all.
        """

@final
class CommandRun:
    def __new__(cls, json: str) -> CommandRun: ...
    @property
    def files(self) -> list[str]: ...
    @property
    def reloads_apps(self) -> bool: ...
    def start_log(self) -> None: ...
    def watch_signals(self) -> None: ...

@final
class NativeController:
    def __new__(
        cls,
        apps: Sequence[tuple[Any, Any]],
        report: Callable[[str, BaseException], object],
        *,
        listen: Sequence[str],
        workers: int,
        control: bool | str | PathLike[str],
        http: str | None,
    ) -> NativeController: ...
    @staticmethod
    def of_command(
        run: CommandRun,
        apps: Mapping[str, Sequence[tuple[Any, Any]]],
        report: Callable[[str, BaseException], object],
    ) -> NativeController: ...
    @property
    def is_stopping(self) -> bool: ...
    @property
    def addresses(self) -> list[str]: ...
    @property
    def worker_cores(self) -> list[int]: ...
    @property
    def has_failed(self) -> bool: ...
    @property
    def warnings(self) -> list[str]: ...
    def fileno(self) -> int: ...
    def start_apps(self) -> None: ...
    def replace(self, name: str, app: object) -> bool: ...
    def turn(self) -> bool: ...
    def stop(self) -> None: ...

@final
class LogLines:
    def __new__(cls) -> LogLines: ...
    def fileno(self) -> int: ...
    def take(self, max_lines: int) -> list[tuple[int, str]]: ...
    def take_left_out(self) -> int: ...
    def wait(self, milliseconds: int) -> bool: ...

@final
class RawController:
    """A running controller without apps: this program gets all messages of all switches."""
    def __new__(
        cls,
        settings: Sequence[tuple[str, Sequence[str]]],
        *,
        file: str | PathLike[str] | None = None,
        log: LogLines | None = None,
    ) -> RawController: ...
    @property
    def addresses(self) -> list[str]:
        """Addresses on which it listens: those without TLS, then those with it."""
    @property
    def worker_cores(self) -> list[int]:
        """Numbers of the cores to which workers are pinned."""
    @property
    def is_over(self) -> bool:
        """Whether the controller has stopped, and no event is left."""
    @property
    def has_failed(self) -> bool:
        """Whether a thread of the engine has failed."""
    def fileno(self) -> int:
        """The file descriptor that is readable while events wait, and at the end."""
    def take(self, max_events: int) -> list[RawEvent]:
        """Takes the events that wait, at most so many, without waiting."""
    def wait(self, milliseconds: int) -> bool:
        """Waits for an event, at most so long. Other threads of the program have the interpreter
        meanwhile. Returns whether there may be one.
        """
    def stop(self) -> None:
        """Sends what is written, closes all connections, and ends all threads."""

@final
class OsKenCodec:
    header_bits: ClassVar[list[tuple[str, int]]]
    def __new__(cls, constants_10: Any, parser_10: Any, constants_13: Any, parser_13: Any) -> OsKenCodec: ...
    @property
    def counts(self) -> list[tuple[str, tuple[int, int]]]: ...
    def packet_in_10(self, message: bytes) -> tuple[int, int, int, int, int, bytes] | None: ...
    def packet_in_13(
        self, message: bytes
    ) -> tuple[int, int, int, int, int, int, tuple[int, int, list[tuple[str, Any]], bytes], bytes] | None: ...
    def flow_mod_10(self, message: Any) -> bool: ...
    def flow_mod_13(self, message: Any) -> bool: ...
    def packet_out_10(self, message: Any) -> bool: ...
    def packet_out_13(self, message: Any) -> bool: ...
    def match_fields(self, given: dict[str, Any]) -> list[tuple[str, Any]] | None: ...
    def headers(self, frame: bytes) -> int | None: ...
    @staticmethod
    def ethernet(frame: bytes) -> tuple[str, str, int] | None: ...
    @staticmethod
    def mac_to_text(bytes: bytes) -> str | None: ...
    @staticmethod
    def mac_from_text(text: str) -> bytes | None: ...
    @staticmethod
    def ipv4_to_text(bytes: bytes) -> str | None: ...
    @staticmethod
    def ipv4_from_text(text: str) -> bytes | None: ...

@final
class RawEvent:
    """An event of a raw connection."""
    @property
    def kind(self) -> Literal["up", "messages", "writable", "down"]:
        """"up", "messages", "writable" or "down"."""
    @property
    def connection(self) -> RawConnection:
        """The connection."""
    @property
    def peer(self) -> tuple[str, int] | None:
        """Of "up": the switch's address and port."""
    @property
    def hello(self) -> bytes:
        """Of "up": the switch's hello, as it came. Empty otherwise."""
    @property
    def features(self) -> bytes:
        """Of "up": the switch's reply to the controller's features request. Empty otherwise."""
    @property
    def messages(self) -> list[bytes]:
        """Of "messages": the messages, in order, each as its bytes. Empty otherwise."""
    @property
    def reason(self) -> str:
        """Of "down": why the connection has ended. Empty otherwise."""

@final
class RawConnection:
    """A raw connection."""
    @property
    def id(self) -> int:
        """Number of the connection, unique in a controller."""
    @property
    def dpid(self) -> int:
        """The switch's datapath id."""
    @property
    def version(self) -> int:
        """The version byte of the connection: 1 for OpenFlow 1.0, 4 for 1.3."""
    @property
    def unsent(self) -> int:
        """Number of this program's bytes that wait for the switch."""
    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended."""
    def send(self, messages: bytes) -> None:
        """Sends whole messages, as they are. Never waits.

        # Errors
        `RawFull`, `RawClosed`, or `Error` for bytes that are no messages of a controller.
        """
    def close(self, why: str) -> None:
        """Closes the connection, behind all that was sent. An event "down" follows.

        # Errors
        `RawFull`: its worker has too much mail; try again.
        """
    def pause(self) -> None:
        """Leaves the switch unread until `resume`, after at most one more read."""
    def resume(self) -> None:
        """Reads the switch again."""

@final
class NativeLab:
    def __new__(
        cls,
        topology: str,
        is_file: bool,
        apps: Sequence[tuple[Any, Any]],
        *,
        report: Callable[[str, BaseException], object],
        report_disabled: Callable[[str], object],
        event_loop: Any,
        seed: int,
        version: str | None,
        loop_free: bool,
        checked: bool,
    ) -> NativeLab: ...
    def warnings(self) -> list[str]: ...
    @property
    def now(self) -> float: ...
    def network(self) -> Network: ...
    def hosts(self) -> list[str]: ...
    def switches(self) -> list[tuple[str, int]]: ...
    def addresses(self, host: str) -> tuple[MacAddr, IPv4Address]: ...
    def ping(self, source: str, destination: str) -> bool: ...
    def ping_address(self, source: str, ip: IPv4Address | str) -> bool: ...
    def ping_all(self) -> tuple[list[tuple[str, str]], str]: ...
    def udp(self, source: str, destination: str, count: int, interval: float) -> int: ...
    def tcp(self, source: str, destination: str, bytes: int) -> tuple[int, bool]: ...
    def tcp_to_address(
        self, source: str, ip: IPv4Address | str, bytes: int
    ) -> tuple[int, bool]: ...
    def send_frame(self, source: str, frame: bytes) -> None: ...
    def capture(self, host: str) -> list[Packet]: ...
    def run_for(self, seconds: float) -> None: ...
    def link_down(self, a: str, b: str) -> None: ...
    def link_up(self, a: str, b: str) -> None: ...
    def move_host(self, host: str, switch: str) -> None: ...
    def restart(self, switch: str, keep_tables: bool) -> None: ...
    def disconnect(self, switch: str) -> None: ...
    def reconnect(self, switch: str) -> None: ...
    def silence(self, switch: str) -> None: ...
    def is_up(self, switch: str) -> bool: ...
    def inject(self, seed: int, kinds: Sequence[str], seconds: float) -> tuple[str, float]: ...
    def flows(self, switch: str) -> list[str]: ...
    def messages(self, switch: str) -> list[str]: ...
    def paths(self, source: str, destination: str) -> list[list[str]]: ...
    def findings(self) -> list[str]: ...
    def duplicates(self) -> list[tuple[str, int]]: ...
    def app_counter(self, app: str, name: str) -> int | None: ...
    def counter(self, name: str) -> int: ...
    def digest(self) -> int: ...
