"""Readers and builders for protocols: IGMP, DHCP, DNS and VXLAN above IP, and LLDP.

>>> from bellrock.protocols import Dns
>>> Dns.query("www.example.org", id=7).questions[0].name
'www.example.org'

`Dns.of(packet)` reads a packet, and is `None` for one of another protocol or a broken one. `Dns.read(data)` reads
bytes, and raises `ValueError` with what is wrong. `to_bytes()` is the payload for `Ethernet(…).ipv4(…).udp(…)`, that of
`Lldp` the one for `Ethernet(…, LLDP_MULTICAST).payload(EtherType.LLDP, …)`.

What hosts send is read within bounds: no message makes a reader work longer than its length.
"""

from ._dhcp import Dhcp, DhcpKind, DhcpOption
from ._dns import Dns, DnsKind, DnsQuestion, DnsRecord
from ._igmp import Igmp, IgmpKind, IgmpRecord
from ._lldp import (
    LLDP_MULTICAST,
    Lldp,
    LldpCapability,
    LldpChassis,
    LldpKind,
    LldpPart,
    LldpPort,
)
from ._vxlan import VXLAN_PORT, Vxlan

__all__ = [
    "LLDP_MULTICAST",
    "VXLAN_PORT",
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
    "Lldp",
    "LldpCapability",
    "LldpChassis",
    "LldpKind",
    "LldpPart",
    "LldpPort",
    "Vxlan",
]
