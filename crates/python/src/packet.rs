//! Packets, with headers that are read when a program asks for them.

use std::net::{Ipv4Addr, Ipv6Addr};

use bellrock::PacketIn;
use bellrock::etherparse::{LaxNetSlice, TransportSlice};
use bellrock::openflow::PacketInView;
use bellrock::packet::PacketInReason;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::address::PyMacAddr;
use crate::argument::wrong_value;
use crate::frame_view::FrameView;

/// A packet: its bytes from the Ethernet header on, and its headers. A header that is not there, or
/// too short, is `None`.
#[pyclass(name = "Packet", module = "bellrock", frozen, subclass)]
pub(crate) struct PyPacket {
    /// For a packet_in: the whole message.
    bytes: Box<[u8]>,
    /// Where the packet begins.
    start: usize,
}

impl PyPacket {
    pub(crate) fn of(frame: &[u8]) -> Self {
        PyPacket { bytes: frame.into(), start: 0 }
    }

    pub(crate) fn frame(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    pub(crate) fn view(&self) -> FrameView<'_> {
        FrameView(self.frame())
    }

    fn transport(&self) -> Option<TransportSlice<'_>> {
        self.view().headers().ok()?.transport
    }
}

#[pymethods]
impl PyPacket {
    /// Makes a packet from its bytes.
    #[new]
    fn new(data: &[u8]) -> Self {
        PyPacket::of(data)
    }

    /// Its bytes, from the Ethernet header on. Each call makes a new object.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.frame())
    }

    /// Ethernet destination. Zero if the packet is shorter than that.
    #[getter]
    fn eth_dst(&self) -> PyMacAddr {
        PyMacAddr(bellrock::MacAddr(self.view().chunk(0).unwrap_or_default()))
    }

    /// Ethernet source. Zero if the packet is shorter than that.
    #[getter]
    fn eth_src(&self) -> PyMacAddr {
        PyMacAddr(bellrock::MacAddr(self.view().chunk(6).unwrap_or_default()))
    }

    /// Ethernet type behind VLAN tags, such as 0x0800. `None` if the packet is too short.
    #[getter]
    fn eth_type(&self) -> Option<u16> {
        self.view().ether_type()
    }

    /// VLAN id of the outermost tag. `None` for a packet without one.
    #[getter]
    fn vlan_id(&self) -> Option<u16> {
        self.view().tag().map(|tag| tag.id)
    }

    /// Priority of the outermost tag. `None` for a packet without one.
    #[getter]
    fn vlan_pcp(&self) -> Option<u8> {
        self.view().tag().map(|tag| tag.pcp)
    }

    /// The ARP packet, if it is ARP for IPv4.
    #[getter]
    fn arp(&self) -> Option<Arp> {
        let arp = bellrock::packet::Arp::read(self.frame())?;
        Some(Arp {
            operation: arp.operation,
            sender_mac: PyMacAddr(arp.sender_mac),
            sender_ip: arp.sender_ip,
            target_mac: PyMacAddr(arp.target_mac),
            target_ip: arp.target_ip,
        })
    }

    /// The IPv4 header.
    #[getter]
    fn ipv4(&self) -> Option<Ipv4> {
        let Some(LaxNetSlice::Ipv4(ip)) = self.view().headers().ok()?.net else { return None };
        let header = ip.header();
        Some(Ipv4 {
            src: header.source_addr(),
            dst: header.destination_addr(),
            proto: header.protocol().0,
            ttl: header.ttl(),
            dscp: header.dcp().value(),
            ecn: header.ecn().value(),
            total_length: header.total_len(),
            identification: header.identification(),
            is_fragment: header.is_fragmenting_payload(),
        })
    }

    /// The IPv6 header. `proto` is the protocol behind extension headers.
    #[getter]
    fn ipv6(&self) -> Option<Ipv6> {
        let Some(LaxNetSlice::Ipv6(ip)) = self.view().headers().ok()?.net else { return None };
        let header = ip.header();
        Some(Ipv6 {
            src: header.source_addr(),
            dst: header.destination_addr(),
            proto: ip.payload().ip_number.0,
            hop_limit: header.hop_limit(),
            dscp: header.traffic_class() >> 2,
            ecn: header.traffic_class() & 3,
            flow_label: header.flow_label().value(),
        })
    }

    /// The TCP header.
    #[getter]
    fn tcp(&self) -> Option<Tcp> {
        let TransportSlice::Tcp(tcp) = self.transport()? else { return None };
        Some(Tcp {
            src_port: tcp.source_port(),
            dst_port: tcp.destination_port(),
            sequence: tcp.sequence_number(),
            acknowledgment: tcp.acknowledgment_number(),
            syn: tcp.syn(),
            ack: tcp.ack(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            psh: tcp.psh(),
            window: tcp.window_size(),
        })
    }

    /// The UDP header.
    #[getter]
    fn udp(&self) -> Option<Udp> {
        let TransportSlice::Udp(udp) = self.transport()? else { return None };
        Some(Udp {
            src_port: udp.source_port(),
            dst_port: udp.destination_port(),
            length: udp.length(),
        })
    }

    /// The ICMP or ICMPv6 header.
    #[getter]
    fn icmp(&self) -> Option<Icmp> {
        match self.transport()? {
            TransportSlice::Icmpv4(icmp) => {
                Some(Icmp { kind: icmp.type_u8(), code: icmp.code_u8() })
            }
            TransportSlice::Icmpv6(icmp) => {
                Some(Icmp { kind: icmp.type_u8(), code: icmp.code_u8() })
            }
            _ => None,
        }
    }

    /// What is behind the innermost header that was read.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let headers = self.view().headers().ok();
        let payload = headers.as_ref().map(|headers| match &headers.transport {
            Some(TransportSlice::Tcp(tcp)) => tcp.payload(),
            Some(TransportSlice::Udp(udp)) => udp.payload(),
            Some(TransportSlice::Icmpv4(icmp)) => icmp.payload(),
            Some(TransportSlice::Icmpv6(icmp)) => icmp.payload(),
            _ => match &headers.net {
                Some(LaxNetSlice::Ipv4(ip)) => ip.payload().payload,
                Some(LaxNetSlice::Ipv6(ip)) => ip.payload().payload,
                _ => headers.ether_payload().map_or(&[][..], |payload| payload.payload),
            },
        });
        PyBytes::new(py, payload.unwrap_or_default())
    }

    fn __len__(&self) -> usize {
        self.frame().len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.data(py)
    }

    fn __repr__(&self) -> String {
        let eth_type = self.eth_type().unwrap_or_default();
        let (source, destination) = (self.eth_src().0, self.eth_dst().0);
        format!("<Packet {source} -> {destination}, {eth_type:#06x}, {} bytes>", self.__len__())
    }
}

impl std::fmt::Debug for PyPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.__repr__())
    }
}

/// A packet that a switch sent to the controller.
#[pyclass(name = "PacketIn", module = "bellrock", frozen, extends = PyPacket)]
pub(crate) struct PyPacketIn {
    /// The port by which it came in.
    #[pyo3(get)]
    in_port: u32,
    /// The switch's buffer that has the packet.
    #[pyo3(get)]
    buffer_id: Option<u32>,
    /// Length of the whole packet, in bytes.
    #[pyo3(get)]
    total_len: u16,
    is_whole: bool,
}

impl PyPacketIn {
    /// Makes the object for a whole packet_in message.
    ///
    /// # Errors
    /// `ValueError`: it is none. Workers check messages, so this does not happen.
    pub(crate) fn make<'py>(py: Python<'py>, message: &[u8]) -> PyResult<Bound<'py, Self>> {
        let view = view(message)?;
        let packet = PyPacketIn {
            in_port: view.in_port().0,
            buffer_id: view.buffer_id(),
            total_len: view.total_len(),
            is_whole: view.is_whole(),
        };
        let start = message.len() - view.data().len();
        let base = PyPacket { bytes: message.into(), start };
        Bound::new(py, PyClassInitializer::from(base).add_subclass(packet))
    }

    /// The port by which it came in.
    pub(crate) fn in_port(&self) -> u32 {
        self.in_port
    }

    /// The whole message.
    pub(crate) fn message<'a>(this: &'a Bound<'_, Self>) -> &'a [u8] {
        &this.as_super().get().bytes
    }

    /// The message as apps in Rust get it.
    pub(crate) fn view<'a>(this: &'a Bound<'_, Self>) -> PyResult<PacketIn<'a>> {
        view(Self::message(this)).map(PacketIn::new)
    }
}

#[pymethods]
impl PyPacketIn {
    /// Whether `data` is the whole packet. The switch may have sent only its beginning.
    #[getter]
    fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Why the switch sent it: "no_match", "action", "invalid_ttl", or a number.
    #[getter]
    fn reason(this: &Bound<'_, Self>) -> PyResult<String> {
        Ok(match Self::view(this)?.reason() {
            PacketInReason::NoMatch => "no_match".to_owned(),
            PacketInReason::Action => "action".to_owned(),
            PacketInReason::InvalidTtl => "invalid_ttl".to_owned(),
            PacketInReason::Unknown(number) => number.to_string(),
        })
    }

    /// Number of the table of the flow that sent it.
    #[getter]
    fn table(this: &Bound<'_, Self>) -> PyResult<u8> {
        Ok(Self::view(this)?.table())
    }

    /// Cookie of the flow that sent it (1.3).
    #[getter]
    fn cookie(this: &Bound<'_, Self>) -> PyResult<u64> {
        Ok(Self::view(this)?.cookie())
    }
}

fn view(message: &[u8]) -> PyResult<PacketInView<'_>> {
    PacketInView::of_any_form(message).ok_or_else(|| wrong_value("it is no packet_in"))
}

/// An ARP packet (RFC 826). `operation` is 1 for a request, 2 for a reply.
#[pyclass(module = "bellrock", frozen, get_all)]
pub(crate) struct Arp {
    /// 1 for a request, 2 for a reply.
    operation: u16,
    /// The sender's Ethernet address.
    sender_mac: PyMacAddr,
    /// The sender's IPv4 address.
    sender_ip: Ipv4Addr,
    /// The target's Ethernet address: zero in a request.
    target_mac: PyMacAddr,
    /// The target's IPv4 address.
    target_ip: Ipv4Addr,
}

/// An IPv4 header (RFC 791).
#[pyclass(module = "bellrock", frozen, get_all)]
pub(crate) struct Ipv4 {
    /// Source.
    src: Ipv4Addr,
    /// Destination.
    dst: Ipv4Addr,
    /// Protocol behind it, such as `IpProto.TCP`.
    proto: u8,
    /// Number of routers that it may still pass.
    ttl: u8,
    /// Class of service, 6 bits.
    dscp: u8,
    /// Congestion, 2 bits.
    ecn: u8,
    /// Length with this header, in bytes.
    total_length: u16,
    /// Number that its fragments share.
    identification: u16,
    /// Whether it is a part of a packet.
    is_fragment: bool,
}

/// An IPv6 header (RFC 8200).
#[pyclass(module = "bellrock", frozen, get_all)]
pub(crate) struct Ipv6 {
    /// Source.
    src: Ipv6Addr,
    /// Destination.
    dst: Ipv6Addr,
    /// Protocol behind extension headers, such as `IpProto.TCP`.
    proto: u8,
    /// Number of routers that it may still pass.
    hop_limit: u8,
    /// Class of service, 6 bits.
    dscp: u8,
    /// Congestion, 2 bits.
    ecn: u8,
    /// Flow that it belongs to, 20 bits.
    flow_label: u32,
}

/// A TCP header (RFC 9293).
#[pyclass(module = "bellrock", frozen, get_all)]
pub(crate) struct Tcp {
    /// Source port.
    src_port: u16,
    /// Destination port.
    dst_port: u16,
    /// Number of the first byte.
    sequence: u32,
    /// Number of the next byte that is expected, if `ack` is set.
    acknowledgment: u32,
    /// Whether it opens a connection.
    syn: bool,
    /// Whether it acknowledges.
    ack: bool,
    /// Whether it is the last of its direction.
    fin: bool,
    /// Whether it ends the connection at once.
    rst: bool,
    /// Whether the receiver gets the data at once.
    psh: bool,
    /// Number of bytes that the sender takes, unscaled.
    window: u16,
}

/// A UDP header (RFC 768).
#[pyclass(module = "bellrock", frozen, get_all)]
pub(crate) struct Udp {
    /// Source port.
    src_port: u16,
    /// Destination port.
    dst_port: u16,
    /// Length with this header, in bytes.
    length: u16,
}

/// The type and code of an ICMP (RFC 792) or ICMPv6 (RFC 4443) message.
#[pyclass(module = "bellrock", frozen, get_all)]
pub(crate) struct Icmp {
    /// Its type, such as 8 for an echo request of ICMP.
    kind: u8,
    /// What its type has several of, such as reasons of an error.
    code: u8,
}
