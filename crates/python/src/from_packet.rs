//! Matches for the packets that are like a given one.

use bellrock::etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use bellrock::{Field, Match};
use pyo3::prelude::*;

use crate::argument::wrong_value;
use crate::frame_view::FrameView;
use crate::packet::PyPacket;

/// The fields of a match without names: all that the packet has of these.
const ALL: [Field; 16] = [
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::IpDscp,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::Icmpv4Type,
    Field::Icmpv4Code,
];

/// Matches the ingress port of the packet, and all of its usual fields.
pub(crate) fn all_fields(frame: FrameView<'_>, in_port: u32) -> Match {
    let values = PacketValues::of(frame);
    let mut matching = Match::any().with(Field::InPort, in_port.into());
    for field in ALL {
        if let Some(value) = values.value(field) {
            matching.set(field, value);
        }
    }
    if values.arp.is_some() {
        for field in [Field::ArpOp, Field::ArpSpa, Field::ArpTpa] {
            values.value(field).into_iter().for_each(|value| matching.set(field, value));
        }
    }
    matching
}

/// Matches the packet's own values of these fields, and of those that they depend on.
///
/// # Errors
/// `ValueError`: the packet does not have a field.
pub(crate) fn some_fields(frame: FrameView<'_>, in_port: u32, fields: &[Field]) -> PyResult<Match> {
    let values = PacketValues::of(frame);
    let mut matching = Match::any();
    for field in fields {
        let value = match field {
            Field::InPort => Some(in_port.into()),
            field => values.value(*field),
        };
        let missing = || {
            let packet = PyPacket::of(frame.0);
            wrong_value(format_args!("the packet has no {field}: {packet:?}"))
        };
        let value = value.ok_or_else(missing)?;
        matching.set(*field, value);
        for needed in needs(*field) {
            values.value(*needed).into_iter().for_each(|value| matching.set(*needed, value));
        }
    }
    Ok(matching)
}

/// The fields that a field depends on (1.3.5 §7.2.3.8).
fn needs(field: Field) -> &'static [Field] {
    use Field::{
        ArpOp, ArpSha, ArpSpa, ArpTha, ArpTpa, EthType, Icmpv4Code, Icmpv4Type, Icmpv6Code,
        Icmpv6Type, IpDscp, IpEcn, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6Src, TcpDst, TcpSrc,
        UdpDst, UdpSrc, VlanPcp, VlanVid,
    };
    match field {
        VlanPcp => &[VlanVid],
        IpDscp | IpEcn | IpProto | Ipv4Src | Ipv4Dst | Ipv6Src | Ipv6Dst | ArpOp | ArpSpa
        | ArpTpa | ArpSha | ArpTha => &[EthType],
        TcpSrc | TcpDst | UdpSrc | UdpDst | Icmpv4Type | Icmpv4Code | Icmpv6Type | Icmpv6Code => {
            &[EthType, IpProto]
        }
        _ => &[],
    }
}

/// The headers of a packet, as values of fields.
pub(crate) struct PacketValues<'p> {
    frame: FrameView<'p>,
    headers: Option<LaxSlicedPacket<'p>>,
    arp: Option<bellrock::packet::Arp<'p>>,
}

impl<'p> PacketValues<'p> {
    pub(crate) fn of(frame: FrameView<'p>) -> Self {
        let arp = bellrock::packet::Arp::read(frame.0);
        PacketValues { frame, headers: frame.headers().ok(), arp }
    }

    /// The value of a field. `None`: the packet does not have it.
    pub(crate) fn value(&self, field: Field) -> Option<u128> {
        self.of_ethernet(field)
            .or_else(|| self.of_arp(field))
            .or_else(|| self.of_ip(field))
            .or_else(|| self.of_transport(field))
    }

    fn of_ethernet(&self, field: Field) -> Option<u128> {
        let address = |at| Some(bellrock::MacAddr(self.frame.chunk(at)?).to_u64().into());
        match field {
            Field::EthDst => address(0),
            Field::EthSrc => address(6),
            Field::EthType => Some(self.frame.ether_type()?.into()),
            Field::VlanVid => {
                let tag = self.frame.tag();
                Some(tag.map_or(0, |tag| Match::VLAN_PRESENT | tag.id).into())
            }
            Field::VlanPcp => Some(self.frame.tag()?.pcp.into()),
            _ => None,
        }
    }

    fn of_arp(&self, field: Field) -> Option<u128> {
        let arp = self.arp.as_ref()?;
        Some(match field {
            Field::ArpOp => arp.operation.into(),
            Field::ArpSpa => arp.sender_ip.to_bits().into(),
            Field::ArpTpa => arp.target_ip.to_bits().into(),
            Field::ArpSha => arp.sender_mac.to_u64().into(),
            Field::ArpTha => arp.target_mac.to_u64().into(),
            _ => return None,
        })
    }

    fn of_ip(&self, field: Field) -> Option<u128> {
        match self.headers.as_ref()?.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                Some(match field {
                    Field::IpProto => header.protocol().0.into(),
                    Field::IpDscp => header.dcp().value().into(),
                    Field::IpEcn => header.ecn().value().into(),
                    Field::Ipv4Src => header.source_addr().to_bits().into(),
                    Field::Ipv4Dst => header.destination_addr().to_bits().into(),
                    _ => return None,
                })
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                Some(match field {
                    Field::IpProto => ip.payload().ip_number.0.into(),
                    Field::IpDscp => (header.traffic_class() >> 2).into(),
                    Field::IpEcn => (header.traffic_class() & 3).into(),
                    Field::Ipv6Src => header.source_addr().to_bits(),
                    Field::Ipv6Dst => header.destination_addr().to_bits(),
                    Field::Ipv6Flabel => header.flow_label().value().into(),
                    _ => return None,
                })
            }
            LaxNetSlice::Arp(_) => None,
        }
    }

    fn of_transport(&self, field: Field) -> Option<u128> {
        let value: u16 = match (self.headers.as_ref()?.transport.as_ref()?, field) {
            (TransportSlice::Tcp(tcp), Field::TcpSrc) => tcp.source_port(),
            (TransportSlice::Tcp(tcp), Field::TcpDst) => tcp.destination_port(),
            (TransportSlice::Udp(udp), Field::UdpSrc) => udp.source_port(),
            (TransportSlice::Udp(udp), Field::UdpDst) => udp.destination_port(),
            (TransportSlice::Icmpv4(icmp), Field::Icmpv4Type) => icmp.type_u8().into(),
            (TransportSlice::Icmpv4(icmp), Field::Icmpv4Code) => icmp.code_u8().into(),
            (TransportSlice::Icmpv6(icmp), Field::Icmpv6Type) => icmp.type_u8().into(),
            (TransportSlice::Icmpv6(icmp), Field::Icmpv6Code) => icmp.code_u8().into(),
            _ => return None,
        };
        Some(value.into())
    }
}
