//! Matches.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use bellrock::openflow::{EncodeError, ParseMatchError};
use bellrock::{Field, MacAddr, Match};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern};

use crate::address::PyMacAddr;
use crate::argument::{hash_of, wrong_type, wrong_value};
use crate::from_packet::{all_fields, some_fields};
use crate::packet::PyPacketIn;

/// The packets that a flow applies to: `Match(in_port=1, eth_type=0x0800, ipv4_dst="10.0.0.0/8")`.
/// Compares and hashes by value.
///
/// Fields have the names of OpenFlow 1.3. A value is a number, an address (text, `MacAddr`, or one
/// of `ipaddress`), a network, or a tuple `(value, mask)`. `vlan_id=7` matches packets of VLAN 7,
/// and `vlan_id=None` packets without a tag. `Match()` matches every packet.
#[pyclass(name = "Match", module = "bellrock", frozen, eq)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyMatch(pub(crate) Match);

/// Name of the field that has a VLAN id without the bit that stands for the tag.
const VLAN_ID: &str = "vlan_id";

/// Fields by name.
static FIELDS: LazyLock<HashMap<&'static str, Field>> =
    LazyLock::new(|| Field::ALL.iter().map(|field| (field.name(), *field)).collect());

#[pymethods]
impl PyMatch {
    #[new]
    #[pyo3(signature = (**fields))]
    fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut matching = Match::any();
        for (name, value) in fields.into_iter().flatten() {
            add(&mut matching, name.cast::<PyString>()?, &value)?;
        }
        match matching.check() {
            Ok(()) => Ok(PyMatch(matching)),
            Err(EncodeError::Prerequisite(missing)) => {
                Err(wrong_value(format_args!("{missing:#}")))
            }
            Err(error) => Err(wrong_value(error)),
        }
    }

    /// Reads a match in the form in which it prints: `in_port=1,eth_type=0x0800`.
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Self> {
        text.parse().map(PyMatch).map_err(wrong_value)
    }

    /// Matches the packet's own values of these fields, and of those that they depend on. Without
    /// names: its ingress port and all usual fields.
    ///
    /// Raises `ValueError` if the packet does not have a field.
    #[staticmethod]
    #[pyo3(signature = (packet, /, *fields))]
    fn from_packet(packet: &Bound<'_, PyPacketIn>, fields: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let (frame, in_port) = (packet.as_super().get().view(), packet.get().in_port());
        if fields.is_empty() {
            return Ok(PyMatch(all_fields(frame, in_port)));
        }
        some_fields(frame, in_port, &named_fields(fields)?).map(PyMatch)
    }

    /// Returns the names of the matched fields.
    fn fields(&self) -> Vec<&'static str> {
        self.0.fields().map(Field::name).collect()
    }

    /// Returns the value of a field, or `default` if it is not matched.
    #[pyo3(signature = (field, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let field = named(field)?;
        match self.0.value(field) {
            Some(value) => to_python(py, field, value).map(Some),
            None => Ok(default),
        }
    }

    /// Returns the mask of a field. All bits are set if it is matched without a mask.
    fn mask<'py>(&self, py: Python<'py>, field: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let field = named(field)?;
        self.0.mask(field).map(|mask| to_python(py, field, mask)).transpose()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, field: &str) -> PyResult<Bound<'py, PyAny>> {
        match named(field).ok().and_then(|field| Some((field, self.0.value(field)?))) {
            Some((field, value)) => to_python(py, field, value),
            None => Err(PyKeyError::new_err(field.to_owned())),
        }
    }

    fn __contains__(&self, field: &str) -> bool {
        FIELDS.get(field).is_some_and(|field| self.0.has(*field))
    }

    fn __len__(&self) -> usize {
        self.0.fields().count()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Match.parse('{}')", self.0)
    }
}

/// The fields of these names.
///
/// # Errors
/// `TypeError`: there is no such field.
pub(crate) fn named_fields(names: &Bound<'_, PyTuple>) -> PyResult<Vec<Field>> {
    names.iter_borrowed().map(|name| named(name.cast::<PyString>()?.to_str()?)).collect()
}

/// The field whose name is this object: the interpreter keeps one string for each name in a
/// program.
fn interned(name: &Bound<'_, PyString>) -> Option<Field> {
    static NAMES: PyOnceLock<Vec<(Py<PyString>, Field)>> = PyOnceLock::new();
    let py = name.py();
    let intern = |field: &Field| (PyString::intern(py, field.name()).unbind(), *field);
    let names = NAMES.get_or_init(py, || Field::ALL.iter().map(intern).collect());
    names.iter().find(|(own, _)| own.is(name)).map(|(_, field)| *field)
}

/// The field of this name.
///
/// # Errors
/// `TypeError`: there is no such field.
pub(crate) fn named(name: &str) -> PyResult<Field> {
    match FIELDS.get(name) {
        Some(field) => Ok(*field),
        // Its error has the right name for `nw_dst` and the like.
        None => {
            name.parse().map_err(|error: ParseMatchError| PyTypeError::new_err(error.to_string()))
        }
    }
}

fn add(matching: &mut Match, name: &Bound<'_, PyString>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let field = match interned(name) {
        Some(field) => field,
        None if name.to_str()? == VLAN_ID => return add_vlan(matching, value),
        None => named(name.to_str()?)?,
    };
    let (value, mask) = read(field, value)?;
    check_value(field, value, mask)?;
    match mask {
        None => matching.set(field, value),
        Some(mask) => matching.set_masked(field, value, mask),
    }
    Ok(())
}

fn add_vlan(matching: &mut Match, value: &Bound<'_, PyAny>) -> PyResult<()> {
    const MAX_ID: u16 = 0x0fff;
    let vid = match value.is_none() {
        true => 0,
        false => match value.extract::<u16>() {
            Ok(id @ 0..=MAX_ID) => Match::VLAN_PRESENT | id,
            _ => {
                let text =
                    format_args!("vlan_id is a number from 0 to {MAX_ID}, or None, not {value}");
                return Err(wrong_value(text));
            }
        },
    };
    matching.set(Field::VlanVid, vid.into());
    Ok(())
}

/// Reads the value of a field, and its mask if there is one.
fn read(field: Field, value: &Bound<'_, PyAny>) -> PyResult<(u128, Option<u128>)> {
    // The most frequent types first.
    if value.cast_exact::<PyInt>().is_ok() {
        // Wider numbers are read in pieces.
        if let Ok(number) = value.extract::<u64>() {
            return Ok((number.into(), None));
        }
        return match value.extract::<u128>() {
            Ok(number) => Ok((number, None)),
            Err(_) => Err(wrong_value(format_args!(
                "{field} is a number from 0 to {:#x}, not {value}",
                field.max()
            ))),
        };
    }
    if let Ok(address) = value.cast_exact::<PyMacAddr>() {
        return match kind(field) {
            Kind::Mac => Ok((address.get().0.to_u64().into(), None)),
            _ => Err(wrong_type(value, format_args!("a value of {field}"))),
        };
    }
    if let Ok(text) = value.cast::<PyString>() {
        return read_text(field, text.to_str()?);
    }
    if let Ok(pair) = value.cast::<PyTuple>() {
        let (Ok(value), Ok(mask)) = (pair.get_item(0), pair.get_item(1)) else {
            return Err(wrong_value(format_args!("{field}: a tuple is (value, mask)")));
        };
        if pair.len() != 2 {
            return Err(wrong_value(format_args!("{field}: a tuple is (value, mask)")));
        }
        return Ok((read(field, &value)?.0, Some(read(field, &mask)?.0)));
    }
    if let Kind::Ipv4 | Kind::Ipv6 = kind(field) {
        return read_ip(field, value);
    }
    // Numbers of other types: members of IntEnum, booleans.
    match value.extract() {
        Ok(number) => Ok((number, None)),
        Err(_) => Err(wrong_type(value, format_args!("a value of {field}"))),
    }
}

fn read_text(field: Field, text: &str) -> PyResult<(u128, Option<u128>)> {
    match text.split_once('/') {
        None => Ok((field.value_of(text).map_err(wrong_value)?, None)),
        Some((value, mask)) => Ok((
            field.value_of(value).map_err(wrong_value)?,
            Some(field.mask_of(mask).map_err(wrong_value)?),
        )),
    }
}

/// Reads an address or a network of `ipaddress`.
fn read_ip(field: Field, value: &Bound<'_, PyAny>) -> PyResult<(u128, Option<u128>)> {
    let py = value.py();
    let wrong = || wrong_type(value, format_args!("a value of {field}"));
    let number = |value: &Bound<'_, PyAny>| {
        let bits = match (kind(field), value.extract::<IpAddr>()) {
            (Kind::Ipv4, Ok(IpAddr::V4(address))) => address.to_bits().into(),
            (Kind::Ipv6, Ok(IpAddr::V6(address))) => address.to_bits(),
            _ => return Err(wrong()),
        };
        Ok(bits)
    };
    match value.getattr(intern!(py, "network_address")) {
        Ok(address) => {
            let mask = value.getattr(intern!(py, "netmask"))?;
            Ok((number(&address)?, Some(number(&mask)?)))
        }
        Err(_) if value.hasattr(intern!(py, "packed"))? => Ok((number(value)?, None)),
        Err(_) => Err(wrong()),
    }
}

fn check_value(field: Field, value: u128, mask: Option<u128>) -> PyResult<()> {
    let max = field.max();
    if value > max || mask.is_some_and(|mask| mask > max) {
        return Err(wrong_value(format_args!("{field} is at most {max:#x}")));
    }
    if let Some(mask) = mask {
        if !field.maskable() {
            return Err(wrong_value(format_args!("{field} cannot have a mask; give one value")));
        }
        if value & !mask != 0 {
            let text =
                format_args!("{field} has bits of its value outside its mask; set them to 0");
            return Err(wrong_value(text));
        }
    } else if field == Field::VlanVid && value != 0 && value < Match::VLAN_PRESENT.into() {
        let text = format_args!("vlan_vid={value:#x} lacks the bit 0x1000; write vlan_id={value}");
        return Err(wrong_value(text));
    }
    Ok(())
}

/// The Python type of a field's values.
#[derive(Clone, Copy)]
enum Kind {
    Mac,
    Ipv4,
    Ipv6,
    Number,
}

fn kind(field: Field) -> Kind {
    use Field::{
        ArpSha, ArpSpa, ArpTha, ArpTpa, EthDst, EthSrc, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6NdSll,
        Ipv6NdTarget, Ipv6NdTll, Ipv6Src,
    };
    match field {
        EthDst | EthSrc | ArpSha | ArpTha | Ipv6NdSll | Ipv6NdTll => Kind::Mac,
        Ipv4Src | Ipv4Dst | ArpSpa | ArpTpa => Kind::Ipv4,
        Ipv6Src | Ipv6Dst | Ipv6NdTarget => Kind::Ipv6,
        _ => Kind::Number,
    }
}

fn to_python(py: Python<'_>, field: Field, value: u128) -> PyResult<Bound<'_, PyAny>> {
    match kind(field) {
        Kind::Mac => PyMacAddr(MacAddr::from_u64(value as u64)).into_bound_py_any(py),
        Kind::Ipv4 => Ipv4Addr::from_bits(value as u32).into_bound_py_any(py),
        Kind::Ipv6 => Ipv6Addr::from_bits(value).into_bound_py_any(py),
        Kind::Number => value.into_bound_py_any(py),
    }
}
