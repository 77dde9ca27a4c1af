//! A match of OpenFlow 1.0 (1.0.1 §5.2.3).

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::value::{Put, attribute, number};

/// Writes a match, with the class checked by the caller.
pub(super) fn put_match(object: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    let py = object.py();
    out.put32(number(object, intern!(py, "wildcards"), 32)?);
    out.put16(number(object, intern!(py, "in_port"), 16)?);
    for name in [intern!(py, "dl_src"), intern!(py, "dl_dst")] {
        let address = attribute(object, name)?.cast_into_exact::<PyBytes>().ok()?;
        out.extend_from_slice(<&[u8; 6]>::try_from(address.as_bytes()).ok()?);
    }
    out.put16(number(object, intern!(py, "dl_vlan"), 16)?);
    out.put8(number(object, intern!(py, "dl_vlan_pcp"), 8)?);
    out.zeros(1);
    out.put16(number(object, intern!(py, "dl_type"), 16)?);
    out.put8(number(object, intern!(py, "nw_tos"), 8)?);
    out.put8(number(object, intern!(py, "nw_proto"), 8)?);
    out.zeros(2);
    out.put32(number(object, intern!(py, "nw_src"), 32)?);
    out.put32(number(object, intern!(py, "nw_dst"), 32)?);
    out.put16(number(object, intern!(py, "tp_src"), 16)?);
    out.put16(number(object, intern!(py, "tp_dst"), 16)?);
    Some(())
}
