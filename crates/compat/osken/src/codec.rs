//! What Python calls.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::action::ActionCodec;
use super::frame::{self, headers};
use super::message::Version;
use super::oxm::Names;
use super::text::{mac_from_text, mac_to_text};

/// Bytes of the header of a message.
const HEADER_LEN: usize = 8;
/// Type of a packet_in, in both versions.
const PACKET_IN: u8 = 10;

/// What a packet_in of 1.3 has: xid, buffer_id, total_len, reason, table_id, cookie, type and
/// length of the match, its fields as values and as bytes, and the frame.
type PacketIn13<'py> = (
    u32,
    u32,
    u16,
    u8,
    u8,
    u64,
    (u16, u16, Bound<'py, PyList>, Bound<'py, PyBytes>),
    Bound<'py, PyBytes>,
);

/// What a packet_in of 1.0 has: xid, buffer_id, total_len, in_port, reason, and the frame.
type PacketIn10<'py> = (u32, u32, u16, u16, u8, Bound<'py, PyBytes>);

/// Parses and serialises what is usual, for os-ken's classes. `None` and `False`: it is not usual.
#[pyclass(module = "bellrock._native", frozen)]
pub struct OsKenCodec {
    v1_0: Version,
    v1_3: Version,
    names: Names,
    counts: Counts,
}

/// Numbers of usual values, and of others, since the start.
#[derive(Default)]
struct Counts {
    packet_in: Count,
    matches: Count,
    flow_mod: Count,
    packet_out: Count,
    packet: Count,
}

#[derive(Default)]
struct Count {
    usual: AtomicU64,
    others: AtomicU64,
}

impl Count {
    fn add<T>(&self, result: Option<T>) -> Option<T> {
        let count = if result.is_some() { &self.usual } else { &self.others };
        count.fetch_add(1, Ordering::Relaxed);
        result
    }

    fn both(&self) -> (u64, u64) {
        (self.usual.load(Ordering::Relaxed), self.others.load(Ordering::Relaxed))
    }
}

#[pymethods]
impl OsKenCodec {
    /// Makes one for os-ken's modules: constants and parser of 1.0, then of 1.3.
    #[new]
    fn new<'py>(
        py: Python<'py>,
        constants_10: Bound<'py, PyAny>,
        parser_10: Bound<'py, PyAny>,
        constants_13: Bound<'py, PyAny>,
        parser_13: Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let actions_10 = ActionCodec::v1_0(&parser_10)?;
        let actions_13 = ActionCodec::v1_3(&parser_13)?;
        Ok(OsKenCodec {
            v1_0: Version::new(1, constants_10, &parser_10, actions_10)?,
            v1_3: Version::new(4, constants_13, &parser_13, actions_13)?,
            names: Names::new(py)?,
            counts: Counts::default(),
        })
    }

    /// Parses a packet_in of 1.3 (1.3.5 §7.4.1).
    fn packet_in_13<'py>(&self, message: &Bound<'py, PyBytes>) -> Option<PacketIn13<'py>> {
        self.counts.packet_in.add(self.read_packet_in_13(message))
    }

    /// Parses a packet_in of 1.0 (1.0.1 §5.4.1).
    fn packet_in_10<'py>(&self, message: &Bound<'py, PyBytes>) -> Option<PacketIn10<'py>> {
        self.counts.packet_in.add(read_packet_in_10(message))
    }

    /// Serialises a flow_mod of 1.3 as its method `serialize` does.
    fn flow_mod_13(&self, message: &Bound<'_, PyAny>) -> bool {
        self.counts.flow_mod.add(self.v1_3.flow_mod(message, &self.names)).is_some()
    }

    /// Serialises a flow_mod of 1.0 as its method `serialize` does.
    fn flow_mod_10(&self, message: &Bound<'_, PyAny>) -> bool {
        self.counts.flow_mod.add(self.v1_0.flow_mod(message, &self.names)).is_some()
    }

    /// Serialises a packet_out of 1.3 as its method `serialize` does.
    fn packet_out_13(&self, message: &Bound<'_, PyAny>) -> bool {
        self.counts.packet_out.add(self.v1_3.packet_out(message, &self.names)).is_some()
    }

    /// Serialises a packet_out of 1.0 as its method `serialize` does.
    fn packet_out_10(&self, message: &Bound<'_, PyAny>) -> bool {
        self.counts.packet_out.add(self.v1_0.packet_out(message, &self.names)).is_some()
    }

    /// Orders and normalises the arguments of `OFPMatch` of 1.3.
    fn match_fields<'py>(&self, given: &Bound<'py, PyDict>) -> Option<Bound<'py, PyList>> {
        self.counts.matches.add(self.names.normal(given))
    }

    /// Returns the headers that the packet library reads of a frame, as bits, if it reads them
    /// without an exception, and no others.
    fn headers(&self, frame: &[u8]) -> Option<u32> {
        self.counts.packet.add(headers(frame))
    }

    /// Reads the Ethernet header of a frame that has one: destination, source and type.
    #[staticmethod]
    fn ethernet<'py>(
        py: Python<'py>,
        frame: &[u8],
    ) -> Option<(Bound<'py, PyString>, Bound<'py, PyString>, u16)> {
        let (destination, rest) = frame.split_first_chunk()?;
        let (source, rest) = rest.split_first_chunk()?;
        let text = |address| PyString::new(py, &mac_to_text(address));
        Some((text(destination), text(source), u16::from_be_bytes(*rest.first_chunk()?)))
    }

    /// Writes an Ethernet address.
    #[staticmethod]
    fn mac_to_text(bytes: &[u8]) -> Option<String> {
        bytes.try_into().ok().map(mac_to_text)
    }

    /// Reads an Ethernet address in the form that `mac_to_text` writes.
    #[staticmethod]
    fn mac_from_text<'py>(py: Python<'py>, text: &str) -> Option<Bound<'py, PyBytes>> {
        mac_from_text(text).map(|address| PyBytes::new(py, &address))
    }

    /// Writes an address of IPv4.
    #[staticmethod]
    fn ipv4_to_text(bytes: &[u8]) -> Option<String> {
        <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).to_string())
    }

    /// Reads an address of IPv4 in the form that `ipv4_to_text` writes.
    #[staticmethod]
    fn ipv4_from_text<'py>(py: Python<'py>, text: &str) -> Option<Bound<'py, PyBytes>> {
        text.parse::<Ipv4Addr>().ok().map(|address| PyBytes::new(py, &address.octets()))
    }

    /// Numbers of usual values and of others since the start, by what they are.
    #[getter]
    fn counts(&self) -> [(&'static str, (u64, u64)); 5] {
        let Counts { packet_in, matches, flow_mod, packet_out, packet } = &self.counts;
        [
            ("packet_in", packet_in.both()),
            ("match", matches.both()),
            ("flow_mod", flow_mod.both()),
            ("packet_out", packet_out.both()),
            ("packet", packet.both()),
        ]
    }

    /// Bits of `headers`, by the names of the classes of the packet library.
    #[classattr]
    fn header_bits() -> [(&'static str, u32); 7] {
        [
            ("ethernet", frame::ETHERNET),
            ("vlan", frame::VLAN),
            ("arp", frame::ARP),
            ("ipv4", frame::IPV4),
            ("ipv6", frame::IPV6),
            ("udp", frame::UDP),
            ("tcp", frame::TCP),
        ]
    }
}

impl OsKenCodec {
    fn read_packet_in_13<'py>(&self, message: &Bound<'py, PyBytes>) -> Option<PacketIn13<'py>> {
        let py = message.py();
        let (xid, rest) = header(message.as_bytes(), 4)?;
        let (buffer_id, rest) = rest.split_first_chunk()?;
        let (total_len, rest) = rest.split_first_chunk()?;
        let (&[reason, table_id], rest) = rest.split_first_chunk()?;
        let (cookie, rest) = rest.split_first_chunk()?;
        let (kind, after) = rest.split_first_chunk()?;
        let len = u16::from_be_bytes(*after.first_chunk()?);
        let fields = rest.get(4..usize::from(len))?;
        let rule = (
            u16::from_be_bytes(*kind),
            len,
            self.names.read(py, fields)?,
            PyBytes::new(py, fields),
        );
        // os-ken takes what there is, if the padding is cut off.
        let frame = rest.get(usize::from(len).next_multiple_of(8) + 2..).unwrap_or_default();
        let total_len = u16::from_be_bytes(*total_len);
        let frame = &frame[..frame.len().min(usize::from(total_len))];
        let numbers = (u32::from_be_bytes(*buffer_id), u64::from_be_bytes(*cookie));
        Some((
            xid,
            numbers.0,
            total_len,
            reason,
            table_id,
            numbers.1,
            rule,
            PyBytes::new(py, frame),
        ))
    }
}

fn read_packet_in_10<'py>(message: &Bound<'py, PyBytes>) -> Option<PacketIn10<'py>> {
    let (xid, rest) = header(message.as_bytes(), 1)?;
    let (buffer_id, rest) = rest.split_first_chunk()?;
    let (total_len, rest) = rest.split_first_chunk()?;
    let (in_port, rest) = rest.split_first_chunk()?;
    let (&[reason, _], frame) = rest.split_first_chunk()?;
    let total_len = u16::from_be_bytes(*total_len);
    let frame = &frame[..frame.len().min(usize::from(total_len))];
    Some((
        xid,
        u32::from_be_bytes(*buffer_id),
        total_len,
        u16::from_be_bytes(*in_port),
        reason,
        PyBytes::new(message.py(), frame),
    ))
}

/// Splits the header off a packet_in of this version. Returns its xid, and the rest.
fn header(message: &[u8], version: u8) -> Option<(u32, &[u8])> {
    let (&[wire, kind, high, low, a, b, c, d], rest) = message.split_first_chunk::<HEADER_LEN>()?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    let is_usual = wire == version && kind == PACKET_IN && len == message.len();
    is_usual.then(|| (u32::from_be_bytes([a, b, c, d]), rest))
}
