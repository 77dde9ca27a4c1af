//! Actions and instructions of OpenFlow 1.0 and 1.3, from os-ken's objects to bytes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyType};

use super::oxm::Names;
use super::value::{Put, attribute, list, number};

/// A part of an action or instruction behind its type and length.
#[derive(Clone, Copy)]
enum Part {
    /// An attribute, and its number of bits.
    Number(&'static str, u32),
    /// An attribute with an Ethernet address as bytes.
    Mac(&'static str),
    Zeros(usize),
}

use Part::{Mac, Number, Zeros};

/// What a class writes.
#[derive(Clone, Copy)]
enum Form {
    Parts(&'static [Part]),
    /// A field: its name and value are in attributes.
    SetField,
    /// Actions, of an instruction.
    Actions,
}

use Form::{Actions, Parts, SetField};

/// Classes of actions of 1.0 (1.0.1 §5.2.4).
const ACTIONS_10: &[(&str, Form)] = &[
    ("OFPActionOutput", Parts(&[Number("port", 16), Number("max_len", 16)])),
    ("OFPActionVlanVid", Parts(&[Number("vlan_vid", 16), Zeros(2)])),
    ("OFPActionVlanPcp", Parts(&[Number("vlan_pcp", 8), Zeros(3)])),
    ("OFPActionStripVlan", Parts(&[Zeros(4)])),
    ("OFPActionSetDlSrc", Parts(&[Mac("dl_addr"), Zeros(6)])),
    ("OFPActionSetDlDst", Parts(&[Mac("dl_addr"), Zeros(6)])),
    ("OFPActionSetNwSrc", Parts(&[Number("nw_addr", 32)])),
    ("OFPActionSetNwDst", Parts(&[Number("nw_addr", 32)])),
    ("OFPActionSetNwTos", Parts(&[Number("tos", 8), Zeros(3)])),
    ("OFPActionSetTpSrc", Parts(&[Number("tp", 16), Zeros(2)])),
    ("OFPActionSetTpDst", Parts(&[Number("tp", 16), Zeros(2)])),
    ("OFPActionEnqueue", Parts(&[Number("port", 16), Zeros(6), Number("queue_id", 32)])),
];

/// Classes of actions of 1.3 (1.3.5 §7.2.5).
const ACTIONS_13: &[(&str, Form)] = &[
    ("OFPActionOutput", Parts(&[Number("port", 32), Number("max_len", 16), Zeros(6)])),
    ("OFPActionSetField", SetField),
    ("OFPActionPushVlan", Parts(&[Number("ethertype", 16), Zeros(2)])),
    ("OFPActionPopVlan", Parts(&[Zeros(4)])),
    ("OFPActionGroup", Parts(&[Number("group_id", 32)])),
    ("OFPActionSetQueue", Parts(&[Number("queue_id", 32)])),
    ("OFPActionDecNwTtl", Parts(&[Zeros(4)])),
    ("OFPActionSetNwTtl", Parts(&[Number("nw_ttl", 8), Zeros(3)])),
    ("OFPActionPushMpls", Parts(&[Number("ethertype", 16), Zeros(2)])),
    ("OFPActionPopMpls", Parts(&[Number("ethertype", 16), Zeros(2)])),
    ("OFPActionSetMplsTtl", Parts(&[Number("mpls_ttl", 8), Zeros(3)])),
    ("OFPActionDecMplsTtl", Parts(&[Zeros(4)])),
    ("OFPActionCopyTtlOut", Parts(&[Zeros(4)])),
    ("OFPActionCopyTtlIn", Parts(&[Zeros(4)])),
];

/// Classes of instructions of 1.3 (1.3.5 §7.2.4).
const INSTRUCTIONS_13: &[(&str, Form)] = &[
    ("OFPInstructionActions", Actions),
    ("OFPInstructionGotoTable", Parts(&[Number("table_id", 8), Zeros(3)])),
    (
        "OFPInstructionWriteMetadata",
        Parts(&[Zeros(4), Number("metadata", 64), Number("metadata_mask", 64)]),
    ),
    ("OFPInstructionMeter", Parts(&[Number("meter_id", 32)])),
];

/// Bytes of type and length.
const HEAD_LEN: usize = 4;

/// A class of os-ken, and what its objects write.
struct Class {
    class: Py<PyType>,
    form: Compiled,
}

enum Compiled {
    Parts(Vec<(Part, Py<PyString>)>),
    SetField,
    Actions,
}

fn classes(parser: &Bound<'_, PyAny>, known: &[(&str, Form)]) -> PyResult<Vec<Class>> {
    let py = parser.py();
    let compile = |(name, form): &(&str, Form)| {
        let class = parser.getattr(*name)?.cast_into::<PyType>()?.unbind();
        let form = match form {
            Parts(parts) => Compiled::Parts(
                parts
                    .iter()
                    .map(|part| {
                        let name = match part {
                            Number(name, _) | Mac(name) => name,
                            Zeros(_) => "",
                        };
                        (*part, PyString::intern(py, name).unbind())
                    })
                    .collect(),
            ),
            SetField => Compiled::SetField,
            Actions => Compiled::Actions,
        };
        Ok(Class { class, form })
    };
    known.iter().map(compile).collect()
}

/// Actions and instructions of a version.
pub(super) struct ActionCodec {
    actions: Vec<Class>,
    instructions: Vec<Class>,
}

/// A length that the object gets when all is written.
pub(super) type NewLen<'py> = (Bound<'py, PyAny>, usize);

impl ActionCodec {
    pub(super) fn v1_0(parser: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(ActionCodec { actions: classes(parser, ACTIONS_10)?, instructions: Vec::new() })
    }

    pub(super) fn v1_3(parser: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(ActionCodec {
            actions: classes(parser, ACTIONS_13)?,
            instructions: classes(parser, INSTRUCTIONS_13)?,
        })
    }

    /// Writes actions.
    pub(super) fn put_actions<'py>(
        &self,
        objects: &Bound<'py, PyList>,
        names: &Names,
        out: &mut Vec<u8>,
        lens: &mut Vec<NewLen<'py>>,
    ) -> Option<()> {
        objects.iter().try_for_each(|object| self.put(&self.actions, object, names, out, lens))
    }

    /// Writes instructions.
    pub(super) fn put_instructions<'py>(
        &self,
        objects: &Bound<'py, PyList>,
        names: &Names,
        out: &mut Vec<u8>,
        lens: &mut Vec<NewLen<'py>>,
    ) -> Option<()> {
        objects.iter().try_for_each(|object| self.put(&self.instructions, object, names, out, lens))
    }

    fn put<'py>(
        &self,
        classes: &[Class],
        object: Bound<'py, PyAny>,
        names: &Names,
        out: &mut Vec<u8>,
        lens: &mut Vec<NewLen<'py>>,
    ) -> Option<()> {
        let py = object.py();
        let class = object.get_type();
        let Class { form, .. } = classes.iter().find(|known| known.class.is(&class))?;
        let start = out.len();
        out.put16(number(&object, intern!(py, "type"), 16)?);
        out.put16(0);
        match form {
            Compiled::Parts(parts) => {
                for (part, name) in parts {
                    put_part(&object, *part, name.bind(py), out)?;
                }
                // os-ken writes what the attribute says, and the next one behind it.
                let len = number(&object, intern!(py, "len"), 16)?;
                if len != (out.len() - start) as u64 {
                    return None;
                }
            }
            Compiled::SetField => {
                let name = attribute(&object, intern!(py, "key"))?;
                names.put_field(&name, &attribute(&object, intern!(py, "value"))?, out)?;
                pad(start, out);
                lens.push((object, out.len() - start));
            }
            Compiled::Actions => {
                out.zeros(HEAD_LEN);
                self.put_actions(&list(&object, intern!(py, "actions"))?, names, out, lens)?;
                pad(start, out);
                lens.push((object, out.len() - start));
            }
        }
        let len = u16::try_from(out.len() - start).ok()?;
        out[start + 2..start + HEAD_LEN].copy_from_slice(&len.to_be_bytes());
        Some(())
    }
}

/// Pads an action or instruction to a multiple of 8 bytes.
fn pad(start: usize, out: &mut Vec<u8>) {
    let len = out.len() - start;
    out.zeros(len.next_multiple_of(8) - len);
}

fn put_part(
    object: &Bound<'_, PyAny>,
    part: Part,
    name: &Bound<'_, PyString>,
    out: &mut Vec<u8>,
) -> Option<()> {
    match part {
        Number(_, bits) => {
            let value = number(object, name, bits)?;
            match bits {
                8 => out.put8(value),
                16 => out.put16(value),
                32 => out.put32(value),
                _ => out.put64(value),
            }
        }
        Mac(_) => {
            let address = attribute(object, name)?.cast_into_exact::<PyBytes>().ok()?;
            out.extend_from_slice(<&[u8; 6]>::try_from(address.as_bytes()).ok()?);
        }
        Zeros(count) => out.zeros(count),
    }
    Some(())
}
