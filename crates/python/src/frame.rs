//! Building of frames.

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock::MacAddr;
use bellrock::etherparse::{LaxNetSlice, TcpHeader};
use bellrock::packet::{Ethernet, Ip, VlanTag};
use pyo3::prelude::*;

use crate::argument::{Arg, wrong_value};
use crate::packet::PyPacket;

/// The Ethernet header of a new frame: `Ethernet(src, dst).ipv4(src, dst).udp(5000, 53, b"hello")`.
/// Lengths, checksums and padding are computed.
#[pyclass(name = "Ethernet", module = "bellrock", frozen)]
pub(crate) struct PyEthernet(Ethernet);

#[pymethods]
impl PyEthernet {
    #[new]
    #[pyo3(signature = (src, dst, *, vlan_id=None, vlan_pcp=0))]
    fn new(src: Arg<MacAddr>, dst: Arg<MacAddr>, vlan_id: Option<u16>, vlan_pcp: u8) -> Self {
        let ethernet = Ethernet::new(src.0, dst.0);
        PyEthernet(match vlan_id {
            Some(id) => ethernet.vlan(VlanTag { id, pcp: vlan_pcp }),
            None => ethernet,
        })
    }

    /// Returns the frame with a payload of this Ethernet type.
    fn payload(&self, eth_type: u16, data: &[u8]) -> Vec<u8> {
        self.0.payload(eth_type, data)
    }

    /// Returns the frame with an ARP packet (RFC 826): `operation` 1 asks, 2 answers. A request
    /// that leaves out `target_mac` asks for it.
    #[pyo3(signature = (operation, sender_mac, sender_ip, target_ip, target_mac=Arg(MacAddr::ZERO)))]
    fn arp(
        &self,
        operation: Arg<u16>,
        sender_mac: Arg<MacAddr>,
        sender_ip: Arg<Ipv4Addr>,
        target_ip: Arg<Ipv4Addr>,
        target_mac: Arg<MacAddr>,
    ) -> Vec<u8> {
        let sender = (sender_mac.0, sender_ip.0);
        self.0.arp(operation.0, sender, (target_mac.0, target_ip.0))
    }

    /// Adds an IPv4 header.
    #[pyo3(signature = (src, dst, *, ttl=None, dscp=0))]
    fn ipv4(&self, src: Arg<Ipv4Addr>, dst: Arg<Ipv4Addr>, ttl: Option<u8>, dscp: u8) -> PyIp {
        PyIp::with(self.0.ipv4(src.0, dst.0), ttl, dscp)
    }

    /// Adds an IPv6 header.
    #[pyo3(signature = (src, dst, *, hop_limit=None, dscp=0))]
    fn ipv6(
        &self,
        src: Arg<Ipv6Addr>,
        dst: Arg<Ipv6Addr>,
        hop_limit: Option<u8>,
        dscp: u8,
    ) -> PyIp {
        PyIp::with(self.0.ipv6(src.0, dst.0), hop_limit, dscp)
    }
}

/// The Ethernet and IP headers of a new frame. Its methods return the frame, and raise `ValueError`
/// if the data do not fit.
#[pyclass(name = "Ip", module = "bellrock", frozen)]
pub(crate) struct PyIp(Ip);

impl PyIp {
    fn with(ip: Ip, ttl: Option<u8>, dscp: u8) -> Self {
        let ip = ip.dscp(dscp);
        PyIp(ttl.map_or(ip, |ttl| ip.ttl(ttl)))
    }
}

#[pymethods]
impl PyIp {
    /// Returns the frame with a payload of any protocol, such as `IpProto.IGMP`.
    fn payload(&self, proto: Arg<u8>, data: &[u8]) -> PyResult<Vec<u8>> {
        self.0.payload(proto.0, data).map_err(wrong_value)
    }

    /// Returns the frame with an ICMP or ICMPv6 error about a packet: "destination unreachable". In
    /// ICMP, `code` 0 is for the network, 1 for the host, 3 for the port, 13 for what is forbidden;
    /// in ICMPv6, 0 is for no route, 1 for what is forbidden, 3 for the address, 4 for the port.
    #[pyo3(signature = (packet, code))]
    fn unreachable(&self, packet: &Bound<'_, PyPacket>, code: Arg<u8>) -> PyResult<Vec<u8>> {
        let original = from_ip_header(packet)?;
        self.0.unreachable(code.0, original).map_err(wrong_value)
    }

    /// Returns the frame with an ICMP or ICMPv6 error about a packet: "time exceeded", since its
    /// TTL or hop limit was used up.
    fn time_exceeded(&self, packet: &Bound<'_, PyPacket>) -> PyResult<Vec<u8>> {
        let original = from_ip_header(packet)?;
        self.0.time_exceeded(original).map_err(wrong_value)
    }

    /// Returns the frame with a UDP datagram.
    #[pyo3(signature = (src_port, dst_port, data=&[][..]))]
    fn udp(&self, src_port: u16, dst_port: u16, data: &[u8]) -> PyResult<Vec<u8>> {
        self.0.udp(src_port, dst_port, data).map_err(wrong_value)
    }

    /// Returns the frame with a TCP segment.
    #[pyo3(signature = (
        src_port, dst_port, data=&[][..], *, sequence=0, acknowledgment=None, syn=false, fin=false,
        rst=false, psh=false, window=u16::MAX
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn tcp(
        &self,
        src_port: u16,
        dst_port: u16,
        data: &[u8],
        sequence: u32,
        acknowledgment: Option<u32>,
        syn: bool,
        fin: bool,
        rst: bool,
        psh: bool,
        window: u16,
    ) -> PyResult<Vec<u8>> {
        let mut header = TcpHeader::new(src_port, dst_port, sequence, window);
        (header.syn, header.fin, header.rst, header.psh) = (syn, fin, rst, psh);
        if let Some(number) = acknowledgment {
            (header.ack, header.acknowledgment_number) = (true, number);
        }
        self.0.tcp(header, data).map_err(wrong_value)
    }

    /// Returns the frame with an ICMP or ICMPv6 echo request.
    #[pyo3(signature = (id, sequence, data=&[][..]))]
    fn echo_request(&self, id: u16, sequence: u16, data: &[u8]) -> PyResult<Vec<u8>> {
        self.0.echo_request(id, sequence, data).map_err(wrong_value)
    }

    /// Returns the frame with an ICMP or ICMPv6 echo reply.
    #[pyo3(signature = (id, sequence, data=&[][..]))]
    fn echo_reply(&self, id: u16, sequence: u16, data: &[u8]) -> PyResult<Vec<u8>> {
        self.0.echo_reply(id, sequence, data).map_err(wrong_value)
    }
}

/// A packet from its IP header on.
///
/// # Errors
/// `ValueError`: it has none.
fn from_ip_header<'p>(packet: &'p Bound<'_, PyPacket>) -> PyResult<&'p [u8]> {
    let view = packet.get().view();
    let headers = view.headers().ok();
    let is_ip = headers.as_ref().is_some_and(|headers| {
        matches!(headers.net, Some(LaxNetSlice::Ipv4(_) | LaxNetSlice::Ipv6(_)))
    });
    match headers.as_ref().and_then(|headers| headers.ether_payload()) {
        Some(payload) if is_ip => Ok(payload.payload),
        _ => Err(wrong_value("the packet has no IP header, so no error is sent about it")),
    }
}
