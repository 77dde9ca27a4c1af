//! Fields of a match of OpenFlow 1.3 (1.3.5 §7.2.3.7), from os-ken's user values to bytes and back.
//!
//! A user value is a number or the text of an address, or a tuple of it and a mask.

use std::net::{Ipv4Addr, Ipv6Addr};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple};

use super::text::{mac_from_text, mac_to_text};
use super::value::{Put, attribute, is_false, list};

/// Class of the fields of the specification, in the header of a field.
const OPENFLOW_BASIC: u16 = 0x8000;
/// Bytes of the longest value.
const MAX_VALUE_LEN: usize = 16;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Number,
    Mac,
    Ipv4,
    Ipv6,
}

use Kind::{Ipv4, Ipv6, Mac, Number};

/// Name, form and length of each field, in the order of their numbers.
const FIELDS: [(&str, Kind, u8); 40] = [
    ("in_port", Number, 4),
    ("in_phy_port", Number, 4),
    ("metadata", Number, 8),
    ("eth_dst", Mac, 6),
    ("eth_src", Mac, 6),
    ("eth_type", Number, 2),
    ("vlan_vid", Number, 2),
    ("vlan_pcp", Number, 1),
    ("ip_dscp", Number, 1),
    ("ip_ecn", Number, 1),
    ("ip_proto", Number, 1),
    ("ipv4_src", Ipv4, 4),
    ("ipv4_dst", Ipv4, 4),
    ("tcp_src", Number, 2),
    ("tcp_dst", Number, 2),
    ("udp_src", Number, 2),
    ("udp_dst", Number, 2),
    ("sctp_src", Number, 2),
    ("sctp_dst", Number, 2),
    ("icmpv4_type", Number, 1),
    ("icmpv4_code", Number, 1),
    ("arp_op", Number, 2),
    ("arp_spa", Ipv4, 4),
    ("arp_tpa", Ipv4, 4),
    ("arp_sha", Mac, 6),
    ("arp_tha", Mac, 6),
    ("ipv6_src", Ipv6, 16),
    ("ipv6_dst", Ipv6, 16),
    ("ipv6_flabel", Number, 4),
    ("icmpv6_type", Number, 1),
    ("icmpv6_code", Number, 1),
    ("ipv6_nd_target", Ipv6, 16),
    ("ipv6_nd_sll", Mac, 6),
    ("ipv6_nd_tll", Mac, 6),
    ("mpls_label", Number, 4),
    ("mpls_tc", Number, 1),
    ("mpls_bos", Number, 1),
    ("pbb_isid", Number, 3),
    ("tunnel_id", Number, 8),
    ("ipv6_exthdr", Number, 2),
];

/// Value of a field: its bytes are the last ones.
type Value = [u8; MAX_VALUE_LEN];

/// A field as it is on the wire.
struct Field {
    number: u8,
    value: Value,
    mask: Option<Value>,
}

impl Field {
    fn form(&self) -> (Kind, usize) {
        let (_, kind, len) = FIELDS[usize::from(self.number)];
        (kind, usize::from(len))
    }

    fn put(&self, out: &mut Vec<u8>) {
        let (_, len) = self.form();
        let (has_mask, total) = if self.mask.is_some() { (1, 2 * len) } else { (0, len) };
        out.extend_from_slice(&OPENFLOW_BASIC.to_be_bytes());
        out.push(self.number << 1 | has_mask);
        out.push(total as u8);
        out.extend_from_slice(&self.value[MAX_VALUE_LEN - len..]);
        if let Some(mask) = &self.mask {
            out.extend_from_slice(&mask[MAX_VALUE_LEN - len..]);
        }
    }
}

/// Names of the fields as Python's strings, in the order of their numbers.
pub(super) struct Names {
    by_number: Vec<Py<PyString>>,
    by_name: Py<PyDict>,
}

impl Names {
    pub(super) fn new(py: Python<'_>) -> PyResult<Self> {
        let by_name = PyDict::new(py);
        let mut by_number = Vec::with_capacity(FIELDS.len());
        for (number, (name, ..)) in FIELDS.iter().enumerate() {
            let name = PyString::intern(py, name);
            by_name.set_item(&name, number)?;
            by_number.push(name.unbind());
        }
        Ok(Names { by_number, by_name: by_name.unbind() })
    }

    fn number(&self, name: &Bound<'_, PyAny>) -> Option<u8> {
        self.by_name
            .bind(name.py())
            .get_item(name.cast_exact::<PyString>().ok()?)
            .ok()??
            .extract()
            .ok()
    }

    /// Reads the bytes of an entry of a match, of a name and a user value.
    fn field(&self, name: &Bound<'_, PyAny>, user: &Bound<'_, PyAny>) -> Option<Field> {
        let number = self.number(name)?;
        let (_, kind, len) = FIELDS[usize::from(number)];
        let Ok(pair) = user.cast_exact::<PyTuple>() else {
            return Some(Field { number, value: from_user(user, kind, len)?, mask: None });
        };
        if pair.len() != 2 {
            return None;
        }
        let value = from_user(&pair.get_item(0).ok()?, kind, len)?;
        let mask = from_user(&pair.get_item(1).ok()?, kind, len)?;
        Some(Field { number, value, mask: Some(mask) })
    }

    /// Writes the fields of `OFPMatch._fields2`, in their order.
    fn put(&self, fields: &Bound<'_, PyList>, out: &mut Vec<u8>) -> Option<()> {
        for entry in fields.iter() {
            let entry = entry.cast_into_exact::<PyTuple>().ok()?;
            if entry.len() != 2 {
                return None;
            }
            self.field(&entry.get_item(0).ok()?, &entry.get_item(1).ok()?)?.put(out);
        }
        Some(())
    }

    /// Writes a match with its header and padding. Returns its length without padding.
    pub(super) fn put_match(&self, entry: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<usize> {
        const OXM: u64 = 1;
        let py = entry.py();
        // Whether something has used the old interface of os-ken, which has values of its own.
        if !is_false(&attribute(entry, intern!(py, "_bellrock_old"))?) {
            return None;
        }
        let fields = list(entry, intern!(py, "_fields2"))?;
        if fields.is_empty() && !list(entry, intern!(py, "fields"))?.is_empty() {
            return None;
        }
        let start = out.len();
        out.put16(OXM);
        out.put16(0);
        self.put(&fields, out)?;
        let len = out.len() - start;
        out[start + 2..start + 4].copy_from_slice(&u16::try_from(len).ok()?.to_be_bytes());
        out.zeros(len.next_multiple_of(8) - len);
        Some(len)
    }

    /// Writes the field of a set-field action, which has no mask.
    pub(super) fn put_field(
        &self,
        name: &Bound<'_, PyAny>,
        user: &Bound<'_, PyAny>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let field = self.field(name, user)?;
        field.mask.is_none().then(|| field.put(out))
    }

    /// Orders and normalises fields, as the constructor of `OFPMatch` does.
    pub(super) fn normal<'py>(&self, given: &Bound<'py, PyDict>) -> Option<Bound<'py, PyList>> {
        let py = given.py();
        let mut fields = Vec::with_capacity(given.len());
        for (name, user) in given.iter() {
            let mut field = self.field(&name, &user)?;
            if let Some(mask) = &field.mask {
                field.value.iter_mut().zip(mask).for_each(|(byte, mask)| *byte &= mask);
                fields.push((field, None));
            } else {
                // The text of an address is in the one form that is read.
                fields.push((field, Some(user)));
            }
        }
        fields.sort_unstable_by_key(|(field, _)| field.number);
        let entries = PyList::empty(py);
        for (field, user) in fields {
            let name = self.by_number[usize::from(field.number)].bind(py);
            let user = match user {
                Some(user) => user,
                None => to_user(py, &field)?,
            };
            entries.append((name, user)).ok()?;
        }
        Some(entries)
    }

    /// Reads the fields of a match to the entries of `_fields2`.
    pub(super) fn read<'py>(&self, py: Python<'py>, mut rest: &[u8]) -> Option<Bound<'py, PyList>> {
        let entries = PyList::empty(py);
        while !rest.is_empty() {
            let (&[high, low, number, len], after) = rest.split_first_chunk()?;
            let (body, after) = after.split_at_checked(usize::from(len))?;
            let has_mask = number & 1 == 1;
            let number = number >> 1;
            let (_, _, expected) = *FIELDS.get(usize::from(number))?;
            let expected = usize::from(expected);
            let total = if has_mask { 2 * expected } else { expected };
            if u16::from_be_bytes([high, low]) != OPENFLOW_BASIC || body.len() != total {
                return None;
            }
            let (value, mask) = body.split_at(expected);
            let mask = has_mask.then(|| padded(mask));
            let field = Field { number, value: padded(value), mask };
            entries
                .append((self.by_number[usize::from(number)].bind(py), to_user(py, &field)?))
                .ok()?;
            rest = after;
        }
        Some(entries)
    }
}

fn padded(bytes: &[u8]) -> Value {
    let mut value = [0; MAX_VALUE_LEN];
    value[MAX_VALUE_LEN - bytes.len()..].copy_from_slice(bytes);
    value
}

fn from_user(user: &Bound<'_, PyAny>, kind: Kind, len: u8) -> Option<Value> {
    if kind == Number {
        let number: u64 = user.cast_exact::<PyInt>().ok()?.extract().ok()?;
        // os-ken takes larger ones too, modulo their length.
        let bits = u32::from(len) * 8;
        return (bits == u64::BITS || number >> bits == 0).then(|| padded(&number.to_be_bytes()));
    }
    let text = user.cast_exact::<PyString>().ok()?.to_str().ok()?;
    match kind {
        Number => None,
        Mac => mac_from_text(text).map(|address| padded(&address)),
        // Rust's parser takes no other form than that which it writes.
        Ipv4 => text.parse::<Ipv4Addr>().ok().map(|address| padded(&address.octets())),
        Ipv6 => {
            let address: Ipv6Addr = text.parse().ok()?;
            // Others have several texts: capitals, zeros, or an embedded address of version 4.
            (is_plain(address) && address.to_string() == text).then(|| padded(&address.octets()))
        }
    }
}

/// Returns whether os-ken writes this address as Rust does.
fn is_plain(address: Ipv6Addr) -> bool {
    address.segments()[..5].iter().any(|segment| *segment != 0)
}

fn to_user<'py>(py: Python<'py>, field: &Field) -> Option<Bound<'py, PyAny>> {
    let value = part_to_user(py, field, &field.value)?;
    match &field.mask {
        None => Some(value),
        Some(mask) => {
            Some((value, part_to_user(py, field, mask)?).into_pyobject(py).ok()?.into_any())
        }
    }
}

fn part_to_user<'py>(py: Python<'py>, field: &Field, value: &Value) -> Option<Bound<'py, PyAny>> {
    let (kind, _) = field.form();
    let text = match kind {
        Number => {
            let number = u64::from_be_bytes(*value.last_chunk()?);
            return Some(number.into_pyobject(py).ok()?.into_any());
        }
        Mac => mac_to_text(value.last_chunk()?),
        Ipv4 => Ipv4Addr::from_octets(*value.last_chunk()?).to_string(),
        Ipv6 => {
            let address = Ipv6Addr::from_octets(*value);
            if !is_plain(address) {
                return None;
            }
            address.to_string()
        }
    };
    Some(PyString::new(py, &text).into_any())
}
