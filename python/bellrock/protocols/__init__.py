"""Readers and builders for protocols above IP: IGMP, DHCP and DNS.

>>> from bellrock.protocols import Dns
>>> Dns.query("www.example.org", id=7).questions[0].name
'www.example.org'

`Dns.of(packet)` reads a packet, and is `None` for one of another protocol or a broken one. `Dns.read(data)` reads
bytes, and raises `ValueError` with what is wrong. `to_bytes()` is the payload for `Ethernet(…).ipv4(…).udp(…)`.

What hosts send is read within bounds: no message makes a reader work longer than its length.
"""

from ._dhcp import Dhcp, DhcpKind, DhcpOption
from ._dns import Dns, DnsKind, DnsQuestion, DnsRecord
from ._igmp import Igmp, IgmpKind, IgmpRecord

__all__ = [
    "Dhcp",
    "DhcpKind",
    "DhcpOption",
    "Dns",
    "DnsKind",
    "DnsQuestion",
    "DnsRecord",
    "Igmp",
    "IgmpKind",
    "IgmpRecord",
]
