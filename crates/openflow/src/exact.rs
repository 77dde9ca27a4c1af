//! Matches without wildcards, whose flows 1.0 ranks above all others.

use crate::Field::{
    ArpOp, ArpSpa, ArpTpa, EthDst, EthSrc, EthType, Icmpv4Code, Icmpv4Type, InPort, IpDscp,
    IpProto, Ipv4Dst, Ipv4Src, TcpDst, TcpSrc, UdpDst, UdpSrc, VlanPcp, VlanVid,
};
use crate::{Field, Match};

impl Match {
    /// Returns whether a match of 1.0 has no wildcards (1.0 §3.4).
    ///
    /// A field that has no meaning for the packets (a port, for a protocol without ports) is no
    /// wildcard, whatever its bit says.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let exact = |fields: &[Field]| {
            fields.iter().all(|field| self.has(*field) && !self.is_masked(*field))
        };
        let tagged = self.value(VlanVid).is_some_and(|vid| vid != 0);
        if !exact(&[InPort, EthSrc, EthDst, EthType, VlanVid]) || (tagged && !exact(&[VlanPcp])) {
            return false;
        }
        match (self.value(EthType), self.value(IpProto)) {
            (Some(0x0800), protocol) => {
                let transport: &[_] = match protocol {
                    Some(1) => &[Icmpv4Type, Icmpv4Code],
                    Some(6) => &[TcpSrc, TcpDst],
                    Some(17) => &[UdpSrc, UdpDst],
                    _ => &[],
                };
                exact(&[Ipv4Src, Ipv4Dst, IpDscp, IpProto]) && exact(transport)
            }
            (Some(0x0806), _) => exact(&[ArpOp, ArpSpa, ArpTpa]),
            _ => true,
        }
    }
}
