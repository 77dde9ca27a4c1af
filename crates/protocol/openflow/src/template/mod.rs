//! Similar flow_mods: encoded once, then sent repeatedly with other values.
//!
//! The flows that a learning switch or a router installs by the million differ in a dozen values:
//! addresses, ports, the buffer of the packet. A [`FlowModTemplate`] is such a flow_mod with the
//! offset of each value, similar to a prepared statement with parameters. Writing one is a copy and
//! a few stores. [`FlowMod::add`], with an encoder that handles every field, costs about ten times
//! as much.

#[cfg(test)]
mod tests;

use std::fmt;
use std::hint::cold_path;
use std::mem::offset_of;

use crate::field::BASICS;
use crate::wire::{self, v10, v13};
use crate::{
    Action, EncodeError, Family, Field, FlowMod, HEADER_LEN, Instruction, Match, Out, PacketInView,
    Port, ToSwitch, Version, xid,
};

/// Maximum length of a template in bytes, and of the data copied at a time.
pub const MAX_TEMPLATE_LEN: usize = 256;

/// Length of a flow of 1.0 with one output, in bytes. This length is copied at once. It is known at
/// compile time, so the copy is by moves and not by a call.
const V10_LEN: usize =
    HEADER_LEN + size_of::<v10::Match>() + size_of::<v10::FlowMod>() + size_of::<v10::Output>();

/// The same in 1.3: for a flow that matches link-layer fields, and for one that matches all fields
/// of TCP over IPv4.
const V13_LINK_LEN: usize = 112;
const V13_LEN: usize = 160;

/// Length of an untagged Ethernet header, and of an address in it, in bytes.
const ETH_HEADER_LEN: usize = 14;
const ETH_ADDRESS_LEN: usize = 6;

/// Length of the longest value, an IPv6 address, in bytes.
const MAX_VALUE_LEN: usize = 16;

/// Every value starts below [`MAX_TEMPLATE_LEN`]. With this many bytes in total, no store needs a
/// check.
const WINDOW_LEN: usize = MAX_TEMPLATE_LEN + MAX_VALUE_LEN;

/// A flow_mod whose values can be replaced: the fields in its match, its buffer, and the port of
/// the output action at its end.
///
/// ```
/// use bellrock_openflow::{Action, Field, FlowMod, FlowModTemplate, MacAddr, Match, Out, Port, Version};
///
/// let any = Match::any().in_port(Port(1)).eth_dst(MacAddr([0; 6]));
/// let flow = FlowMod::add(&any).idle_timeout(60).actions(const { &[Action::output(Port(1))] });
/// let template = FlowModTemplate::new(Version::V1_3, 1, &flow)?;
///
/// let mut out = Out::with_capacity(4096);
/// let mut flow = template.fill(7, &mut out)?;
/// flow.in_port(Port(3))?;
/// flow.set(Field::EthDst, &[2, 0, 0, 0, 0, 9]);
/// flow.output(Port(4))?;
/// flow.finish()?;
/// # Ok::<(), bellrock_openflow::EncodeError>(())
/// ```
#[derive(Clone)]
pub struct FlowModTemplate {
    /// The message, with its original values.
    message: [u8; MAX_TEMPLATE_LEN],
    len: usize,
    version: Version,
    /// Things without a place in the message: a [`bit`] per field, [`OUTPUT`], [`PORTS`], other
    /// versions, and [`OTHER_LEN`].
    missing: u64,
    /// Offset of each field's value; 0 for fields without a place.
    places: [u8; BASICS],
    /// Offsets of the ports of the transport protocol that it matches.
    ports_at: [u8; 2],
    /// Offset of the port in the output action at the end of the message, if any.
    output_at: u8,
}

impl FlowModTemplate {
    /// Encodes `flow`, for this owner of transaction ids ([`xid`]). Its match has the fields that
    /// will get other values; their current values do not matter. Fields with masks keep their
    /// values. In 1.0, so do fields without their own bytes in its match: ARP operation, ICMP type
    /// and code.
    ///
    /// # Errors
    /// Anything that the version cannot express; a flow_mod above [`MAX_TEMPLATE_LEN`] bytes.
    pub fn new(version: Version, owner: u8, flow: &FlowMod<'_>) -> Result<Self, EncodeError> {
        let matching = flow.matching.to_match();
        let mut out = Out::with_capacity(MAX_TEMPLATE_LEN);
        ToSwitch::FlowMod(FlowMod { matching: (&matching).into(), ..*flow })
            .encode(version, xid::xid(owner, 0), &mut out)
            .map_err(|error| match error {
                EncodeError::Full => EncodeError::TooLong { what: "flow template" },
                other => other,
            })?;
        let len = out.len();
        let mut message = [0; MAX_TEMPLATE_LEN];
        message[..len].copy_from_slice(out.as_slice());
        let (mut fields, places) = places(version, &matching);
        let mut ports_at = [0; 2];
        for [src, dst] in TRANSPORTS {
            if fields & bit(src) != 0 && fields & bit(dst) != 0 {
                fields |= PORTS;
                ports_at = [places[src as usize], places[dst as usize]];
            }
        }
        let mut output_at = 0;
        if ends_with_output(flow) {
            fields |= OUTPUT;
            output_at = len
                - match version.family() {
                    Family::Fixed => size_of::<v10::Output>() - offset_of!(v10::Output, port),
                    Family::Oxm => size_of::<v13::Output>() - offset_of!(v13::Output, port),
                };
        }
        if version.family() == Family::Oxm || len == V10_LEN {
            fields |= OTHER_LEN;
        }
        Ok(FlowModTemplate {
            message,
            len,
            version,
            missing: !(fields | version_bit(version)),
            places,
            ports_at,
            output_at: output_at as u8,
        })
    }

    /// Returns its version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Starts to write the flow_mod, with the transaction id of its owner and this count. The
    /// caller then sets the values, and [finishes](Filling::finish) it. Values that are not set
    /// stay those of the template. Without a call to set one, it has no buffered packet.
    ///
    /// # Errors
    /// [`EncodeError::Full`] if less than [`MAX_TEMPLATE_LEN`] bytes (and a few) are left.
    #[inline(always)]
    pub fn fill<'f>(&'f self, count: u32, out: &'f mut Out) -> Result<Filling<'f>, EncodeError> {
        self.fill_as(self.version, count, out)
    }

    /// As [`FlowModTemplate::fill`], for the flow of a packet. Sets its ingress port and, if it is
    /// buffered, its buffer.
    ///
    /// # Errors
    /// [`EncodeError::Full`] as above. For a packet of another version [`Filling::finish`] fails.
    #[inline(always)]
    pub fn fill_for<'f>(
        &'f self,
        packet: &PacketInView<'_>,
        count: u32,
        out: &'f mut Out,
    ) -> Result<Filling<'f>, EncodeError> {
        // For a packet in a batch, the version is a constant, and so are all offsets of 1.0.
        let version = packet.version();
        let mut filling = self.fill_as(version, count, out)?;
        let at = filling.place(Field::InPort);
        match packet.wire_in_port() {
            InPort::V10(number) => filling.put(at, &number),
            InPort::V13(number) => filling.put(at, &number),
        }
        filling.filled |= bit(Field::InPort);
        filling.put(buffer_at(version), &packet.wire_buffer_id());
        Ok(filling)
    }

    #[inline(always)]
    fn fill_as<'f>(
        &'f self,
        version: Version,
        count: u32,
        out: &'f mut Out,
    ) -> Result<Filling<'f>, EncodeError> {
        let (message, out_len) = out.window::<WINDOW_LEN>()?;
        let mut copy = |from: usize, to: usize| {
            message[from..to].copy_from_slice(&self.message[from..to]);
        };
        match version.family() {
            // Flows with other actions get the bytes after that when they are finished.
            Family::Fixed => copy(0, V10_LEN),
            Family::Oxm => {
                copy(0, V13_LINK_LEN);
                if self.len > V13_LINK_LEN {
                    copy(V13_LINK_LEN, V13_LEN);
                }
                if self.len > V13_LEN {
                    cold_path();
                    copy(V13_LEN, MAX_TEMPLATE_LEN);
                }
            }
        }
        let filled = version_bit(version) | OTHER_LEN;
        let mut filling = Filling { template: self, version, message, out_len, filled };
        let owned = u32::from_be_bytes(self.xid_bytes()) | count & xid::MAX_COUNT;
        filling.put(XID_AT, &owned.to_be_bytes());
        Ok(filling)
    }

    /// Returns the transaction id of its owner, with a count of zero.
    #[inline(always)]
    fn xid_bytes(&self) -> [u8; 4] {
        std::array::from_fn(|nth| self.message[usize::from(XID_AT) + nth])
    }

    /// Finishes a flow_mod of unusual length, or returns the error.
    #[cold]
    fn finish_other(
        &self,
        filled: u64,
        message: &mut [u8; WINDOW_LEN],
        out_len: &mut usize,
    ) -> Result<(), EncodeError> {
        let unfit = filled & self.missing;
        if unfit != OTHER_LEN {
            return Err(self.explain(unfit & !OTHER_LEN));
        }
        if let Some(end) = message.get_mut(V10_LEN..self.len) {
            // Of all values, only the port of an output can be here.
            let output_at = usize::from(self.output_at);
            let port_at = output_at..output_at + V10_PORT_LEN;
            let is_set = |at: &usize| filled & OUTPUT != 0 && port_at.contains(at);
            for (byte, at) in end.iter_mut().zip(V10_LEN..).filter(|(_, at)| !is_set(at)) {
                *byte = self.message[at];
            }
        }
        *out_len += self.len;
        Ok(())
    }

    #[cold]
    fn explain(&self, unfit: u64) -> EncodeError {
        let what = match unfit {
            other if other & VERSIONS != 0 => "a flow template of another version",
            OUTPUT => "an output port in a flow template that does not end with an output",
            _ => "a field that its flow template has no place for",
        };
        EncodeError::Unsupported { what, version: self.version }
    }
}

/// A flow_mod from a template that gets its values. If dropped before it is finished, it is not
/// written.
#[must_use = "it is written when it is finished"]
pub struct Filling<'f> {
    template: &'f FlowModTemplate,
    /// Version of the template. If possible, a constant in the caller.
    version: Version,
    message: &'f mut [u8; WINDOW_LEN],
    out_len: &'f mut usize,
    /// Values that were set, in the bits of [`FlowModTemplate::missing`]. The bits are constants in
    /// the caller, so their union is one too.
    filled: u64,
}

/// Bit of the output port.
const OUTPUT: u64 = 1 << 0;
/// Bit of both transport ports.
const PORTS: u64 = 1 << 1;
/// Bit of the length. It is missing in a template of 1.0 whose length is not [`V10_LEN`]. It is
/// always set in `filled`.
const OTHER_LEN: u64 = 1 << 2;
/// Bits of the versions.
const VERSIONS: u64 = ((1 << Version::ALL.len()) - 1) << 3;
const OTHER_BITS: u32 = 3 + Version::ALL.len() as u32;
/// Bit of the fields that are not basic: no template has a place for them.
const NOT_BASIC: u64 = 1 << 63;
const _: () = assert!(BASICS + OTHER_BITS as usize <= 63);

/// Bit of a version. Values written as one version are not a message of another.
const fn version_bit(version: Version) -> u64 {
    1 << (3 + version as u32)
}

const fn bit(field: Field) -> u64 {
    if field.is_basic() { field.bit() << OTHER_BITS } else { NOT_BASIC }
}

impl Filling<'_> {
    /// OpenFlow version of the flow_mod.
    #[inline(always)]
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Sets a field of the match. The value is as in a packet: big-endian, with the length of the
    /// field ([`Field::bytes`]). For the ingress port there is [`Filling::in_port`].
    ///
    /// # Panics
    /// In debug builds, if the value and the field differ in length.
    #[inline(always)]
    pub fn set<const N: usize>(&mut self, field: Field, value: &[u8; N]) {
        const { assert!(N <= MAX_VALUE_LEN) }
        debug_assert_eq!(field.bytes(), N, "{field}");
        self.filled |= bit(field);
        let at = self.place(field);
        // 1.0 has two fields in another form (§5.2.3): the DSCP in the upper bits of its byte, and
        // the VLAN id without the "tagged" bit. For all other fields the compiler removes this.
        if matches!(field, Field::IpDscp | Field::VlanVid) && self.version.family() == Family::Fixed
        {
            return self.put(at, &v10_value(field, *value));
        }
        self.put(at, value);
    }

    /// Sets the Ethernet addresses from a header: destination, source, type.
    #[inline(always)]
    pub fn set_eth(&mut self, header: &[u8; ETH_HEADER_LEN]) {
        self.filled |= bit(Field::EthSrc) | bit(Field::EthDst);
        let (src_at, dst_at) = (self.place(Field::EthSrc), self.place(Field::EthDst));
        let (dst, src_and_type) = header.split_at(ETH_ADDRESS_LEN);
        match self.version.family() {
            // Eight bytes are one move, six are two. The two extra bytes belong to the destination,
            // which follows the source in 1.0 and is written next.
            Family::Fixed => self.put_slice(src_at, src_and_type),
            Family::Oxm => self.put_slice(src_at, &src_and_type[..ETH_ADDRESS_LEN]),
        }
        self.put_slice(dst_at, dst);
    }

    /// Sets the IPv4 addresses as in a packet: source and destination.
    #[inline(always)]
    pub fn set_ipv4(&mut self, addresses: &[u8; 8]) {
        self.filled |= bit(Field::Ipv4Src) | bit(Field::Ipv4Dst);
        let at = [self.place(Field::Ipv4Src), self.place(Field::Ipv4Dst)];
        self.pair(at, addresses);
    }

    /// Sets the ports as in a packet, source and destination, of the transport protocol that the
    /// flow matches: TCP, UDP or SCTP.
    #[inline(always)]
    pub fn set_ports(&mut self, ports: &[u8; 4]) {
        self.filled |= PORTS;
        let at = match self.version.family() {
            Family::Fixed => [self.place(Field::TcpSrc), self.place(Field::TcpDst)],
            Family::Oxm => self.template.ports_at,
        };
        self.pair(at, ports);
    }

    /// Writes two values that are adjacent in a packet and in a match of 1.0.
    #[inline(always)]
    fn pair<const N: usize>(&mut self, [first_at, second_at]: [u8; 2], values: &[u8; N]) {
        if self.version.family() == Family::Fixed
            && usize::from(first_at) + N / 2 == usize::from(second_at)
        {
            return self.put(first_at, values);
        }
        let (first, second) = values.split_at(N / 2);
        self.put_slice(first_at, first);
        self.put_slice(second_at, second);
    }

    #[inline(always)]
    fn put_slice(&mut self, at: u8, value: &[u8]) {
        let at = usize::from(at);
        if let Some(place) = self.message.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
    }

    /// Sets the ingress port of the match.
    ///
    /// # Errors
    /// A port that the version cannot express.
    #[inline(always)]
    pub fn in_port(&mut self, port: Port) -> Result<(), EncodeError> {
        self.filled |= bit(Field::InPort);
        self.port(self.place(Field::InPort), port)
    }

    /// Sets the buffered packet to process with the new flow.
    #[inline(always)]
    pub fn buffer_id(&mut self, buffer_id: u32) {
        self.put(buffer_at(self.version), &buffer_id.to_be_bytes());
    }

    /// Sets the output port of the flow.
    ///
    /// # Errors
    /// A port that the version cannot express; the controller, since an output to it also needs a
    /// length.
    #[inline(always)]
    pub fn output(&mut self, port: Port) -> Result<(), EncodeError> {
        self.filled |= OUTPUT;
        let at = self.template.output_at;
        match self.version.family() {
            // The controller is a reserved port.
            Family::Fixed if port.is_physical_v10() => self.put(at, &(port.0 as u16).to_be_bytes()),
            Family::Oxm if port != Port::CONTROLLER => self.put(at, &port.0.to_be_bytes()),
            _ => self.put(at, &reserved_v10(self.version, port)?),
        }
        Ok(())
    }

    /// Finishes the flow_mod.
    ///
    /// # Errors
    /// A value without a place in the template. Then nothing is written.
    #[inline(always)]
    pub fn finish(self) -> Result<(), EncodeError> {
        if self.filled & self.template.missing != 0 {
            let Filling { template, message, out_len, filled, .. } = self;
            return template.finish_other(filled, message, out_len);
        }
        // In 1.0 the length is constant, see `OTHER_LEN`.
        *self.out_len +=
            if self.version.family() == Family::Fixed { V10_LEN } else { self.template.len };
        Ok(())
    }

    #[inline(always)]
    fn port(&mut self, at: u8, port: Port) -> Result<(), EncodeError> {
        match self.version.family() {
            Family::Oxm => self.put(at, &port.0.to_be_bytes()),
            Family::Fixed => self.put(at, &port.to_v10()?.to_be_bytes()),
        }
        Ok(())
    }

    /// Offset of a field's value. Without a place it is arbitrary, and [`Filling::finish`] fails.
    #[inline(always)]
    fn place(&self, field: Field) -> u8 {
        match self.version.family() {
            Family::Fixed => v10_place(field).unwrap_or(0) as u8,
            Family::Oxm => self.template.places.get(field as usize).copied().unwrap_or(0),
        }
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, at: u8, value: &[u8; N]) {
        const { assert!(N <= MAX_VALUE_LEN) }
        let at = usize::from(at);
        self.message[at..at + N].copy_from_slice(value);
    }
}

/// An ingress port in the form of a packet_in.
pub(crate) enum InPort {
    V10([u8; 2]),
    V13([u8; 4]),
}

const TRANSPORTS: [[Field; 2]; 3] = [
    [Field::TcpSrc, Field::TcpDst],
    [Field::UdpSrc, Field::UdpDst],
    [Field::SctpSrc, Field::SctpDst],
];
const V10_PORT_LEN: usize = 2;
const XID_AT: u8 = offset_of!(wire::Header, xid) as u8;
const OXM_HEADER_LEN: usize = 4;
const V10_FLOW_AT: usize = HEADER_LEN + size_of::<v10::Match>();

const fn buffer_at(version: Version) -> u8 {
    match version.family() {
        Family::Fixed => (V10_FLOW_AT + offset_of!(v10::FlowMod, buffer_id)) as u8,
        Family::Oxm => (HEADER_LEN + offset_of!(v13::FlowMod, buffer_id)) as u8,
    }
}

/// Converts the value of a field to 1.0, for the two fields in another form.
#[inline(always)]
fn v10_value<const N: usize>(field: Field, mut value: [u8; N]) -> [u8; N] {
    match (field, value.as_mut_slice()) {
        (Field::IpDscp, [dscp]) => *dscp <<= 2,
        (Field::VlanVid, [0, 0]) => value = [0xff; N],
        (Field::VlanVid, [high, _]) => *high &= 0x0f,
        _ => {}
    }
    value
}

/// Returns the 1.0 number of a reserved port that an output can have.
#[cold]
#[inline(never)]
fn reserved_v10(version: Version, port: Port) -> Result<[u8; V10_PORT_LEN], EncodeError> {
    if port == Port::CONTROLLER {
        let what = "an output to the controller by a flow template";
        return Err(EncodeError::Unsupported { what, version });
    }
    Ok(port.to_v10()?.to_be_bytes())
}

/// Returns the fields whose values can be replaced, one bit each, and the offset of each value.
fn places(version: Version, matching: &Match) -> (u64, [u8; BASICS]) {
    let (mut fields, mut places) = (0, [0; BASICS]);
    let mut oxm_at = HEADER_LEN + size_of::<v13::FlowMod>() + size_of::<v13::Match>();
    // Other fields are behind them.
    for field in matching.basic_fields() {
        let masked = matching.is_masked(field);
        let place = match version.family() {
            Family::Fixed => v10_place(field),
            Family::Oxm => Some(oxm_at + OXM_HEADER_LEN),
        };
        oxm_at += OXM_HEADER_LEN + field.bytes() * if masked { 2 } else { 1 };
        if let Some(place) = place.filter(|_| !masked) {
            places[field as usize] = place as u8;
            fields |= bit(field);
        }
    }
    (fields, places)
}

/// Offset of a field's value in a flow_mod of 1.0, if it has its own bytes.
#[inline(always)]
fn v10_place(field: Field) -> Option<usize> {
    let at = match field {
        Field::InPort => offset_of!(v10::Match, in_port),
        Field::EthSrc => offset_of!(v10::Match, dl_src),
        Field::EthDst => offset_of!(v10::Match, dl_dst),
        Field::VlanVid => offset_of!(v10::Match, dl_vlan),
        Field::VlanPcp => offset_of!(v10::Match, dl_vlan_pcp),
        Field::EthType => offset_of!(v10::Match, dl_type),
        Field::IpDscp => offset_of!(v10::Match, nw_tos),
        Field::IpProto => offset_of!(v10::Match, nw_proto),
        Field::Ipv4Src | Field::ArpSpa => offset_of!(v10::Match, nw_src),
        Field::Ipv4Dst | Field::ArpTpa => offset_of!(v10::Match, nw_dst),
        Field::TcpSrc | Field::UdpSrc => offset_of!(v10::Match, tp_src),
        Field::TcpDst | Field::UdpDst => offset_of!(v10::Match, tp_dst),
        _ => return None,
    };
    Some(HEADER_LEN + at)
}

/// Returns whether the flow_mod ends with an output action.
fn ends_with_output(flow: &FlowMod<'_>) -> bool {
    match flow.instructions.iter().last() {
        Some(Instruction::ApplyActions(actions) | Instruction::WriteActions(actions)) => {
            matches!(actions.iter().last(), Some(Action::Output { .. }))
        }
        _ => false,
    }
}

impl fmt::Debug for FlowModTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowTemplate({} bytes of {})", self.len, self.version)
    }
}

impl fmt::Debug for Filling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filling({:?})", self.template)
    }
}
