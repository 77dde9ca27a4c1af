//! flow_mod and packet_out of OpenFlow 1.0 and 1.3, from os-ken's objects to bytes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyType};

use super::action::{ActionCodec, NewLen};
use super::match_10;
use super::oxm::Names;
use super::value::{Put, attribute, int, list, number};

/// Bytes of the header of a message.
const HEADER_LEN: usize = 8;
/// Bytes that a message of an ordinary size has at most.
const USUAL_LEN: usize = 256;
/// Type of a packet_out, in both versions.
const PACKET_OUT: u8 = 13;
/// Type of a flow_mod, in both versions.
const FLOW_MOD: u8 = 14;
/// A packet that the switch does not have: its bytes are in the message.
const NO_BUFFER: u64 = 0xffff_ffff;

/// A version of OpenFlow, in os-ken.
pub(super) struct Version {
    wire: u8,
    /// Module with its constants: a message is usual if its datapath has it.
    constants: Py<PyAny>,
    match_class: Py<PyType>,
    flow_mod: Py<PyType>,
    packet_out: Py<PyType>,
    actions: ActionCodec,
}

/// What serialising changes besides the message.
struct Written<'py> {
    bytes: Vec<u8>,
    lens: Vec<NewLen<'py>>,
}

impl Version {
    pub(super) fn new(
        wire: u8,
        constants: Bound<'_, PyAny>,
        parser: &Bound<'_, PyAny>,
        actions: ActionCodec,
    ) -> PyResult<Self> {
        let class = |name: &str| Ok::<_, PyErr>(parser.getattr(name)?.cast_into()?.unbind());
        Ok(Version {
            wire,
            constants: constants.unbind(),
            match_class: class("OFPMatch")?,
            flow_mod: class("OFPFlowMod")?,
            packet_out: class("OFPPacketOut")?,
            actions,
        })
    }

    /// Serialises a flow_mod. `None`: it is not usual, and nothing has changed.
    pub(super) fn flow_mod(&self, message: &Bound<'_, PyAny>, names: &Names) -> Option<()> {
        let mut written = self.begin(message, &self.flow_mod, FLOW_MOD)?;
        let py = message.py();
        let rule = attribute(message, intern!(py, "match"))?;
        if !rule.get_type().is(&self.match_class) {
            return None;
        }
        if self.wire == 1 {
            self.flow_mod_10(message, &rule, names, &mut written)?;
            return self.finish(message, FLOW_MOD, written);
        }
        let len = self.flow_mod_13(message, &rule, names, &mut written)?;
        self.finish(message, FLOW_MOD, written)?;
        rule.setattr(intern!(py, "length"), len).ok()
    }

    fn flow_mod_10<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        rule: &Bound<'py, PyAny>,
        names: &Names,
        Written { bytes, lens }: &mut Written<'py>,
    ) -> Option<()> {
        let py = message.py();
        match_10::put_match(rule, bytes)?;
        bytes.put64(number(message, intern!(py, "cookie"), 64)?);
        bytes.put16(number(message, intern!(py, "command"), 16)?);
        bytes.put16(number(message, intern!(py, "idle_timeout"), 16)?);
        bytes.put16(number(message, intern!(py, "hard_timeout"), 16)?);
        bytes.put16(number(message, intern!(py, "priority"), 16)?);
        bytes.put32(number(message, intern!(py, "buffer_id"), 32)?);
        bytes.put16(number(message, intern!(py, "out_port"), 16)?);
        bytes.put16(number(message, intern!(py, "flags"), 16)?);
        self.actions.put_actions(&list(message, intern!(py, "actions"))?, names, bytes, lens)
    }

    /// Returns the length of the match.
    fn flow_mod_13<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        rule: &Bound<'py, PyAny>,
        names: &Names,
        Written { bytes, lens }: &mut Written<'py>,
    ) -> Option<usize> {
        let py = message.py();
        bytes.put64(number(message, intern!(py, "cookie"), 64)?);
        bytes.put64(number(message, intern!(py, "cookie_mask"), 64)?);
        bytes.put8(number(message, intern!(py, "table_id"), 8)?);
        bytes.put8(number(message, intern!(py, "command"), 8)?);
        bytes.put16(number(message, intern!(py, "idle_timeout"), 16)?);
        bytes.put16(number(message, intern!(py, "hard_timeout"), 16)?);
        bytes.put16(number(message, intern!(py, "priority"), 16)?);
        bytes.put32(number(message, intern!(py, "buffer_id"), 32)?);
        bytes.put32(number(message, intern!(py, "out_port"), 32)?);
        bytes.put32(number(message, intern!(py, "out_group"), 32)?);
        bytes.put16(number(message, intern!(py, "flags"), 16)?);
        bytes.zeros(2);
        let len = names.put_match(rule, bytes)?;
        let instructions = list(message, intern!(py, "instructions"))?;
        self.actions.put_instructions(&instructions, names, bytes, lens)?;
        Some(len)
    }

    /// Serialises a packet_out. `None`: it is not usual, and nothing has changed.
    pub(super) fn packet_out(&self, message: &Bound<'_, PyAny>, names: &Names) -> Option<()> {
        let py = message.py();
        let mut written = self.begin(message, &self.packet_out, PACKET_OUT)?;
        let actions = list(message, intern!(py, "actions"))?;
        // Without actions os-ken writes the packet where the head is.
        if actions.is_empty() {
            return None;
        }
        let bytes = &mut written.bytes;
        let buffer_id = number(message, intern!(py, "buffer_id"), 32)?;
        bytes.put32(buffer_id);
        let in_port =
            number(message, intern!(py, "in_port"), if self.wire == 1 { 16 } else { 32 })?;
        if self.wire == 1 {
            bytes.put16(in_port);
        } else {
            bytes.put32(in_port);
        }
        let len_at = bytes.len();
        bytes.zeros(if self.wire == 1 { 2 } else { 8 });
        let start = bytes.len();
        self.actions.put_actions(&actions, names, bytes, &mut written.lens)?;
        let actions_len = u16::try_from(bytes.len() - start).ok()?;
        bytes[len_at..len_at + 2].copy_from_slice(&actions_len.to_be_bytes());
        let data = attribute(message, intern!(py, "data"))?;
        if !data.is_none() {
            if buffer_id != NO_BUFFER {
                return None;
            }
            if let Ok(data) = data.cast_exact::<PyBytes>() {
                bytes.extend_from_slice(data.as_bytes());
            } else {
                bytes.extend_from_slice(&data.cast_exact::<PyByteArray>().ok()?.to_vec());
            }
        }
        self.finish(message, PACKET_OUT, written)?;
        let name =
            if self.wire == 1 { intern!(py, "_actions_len") } else { intern!(py, "actions_len") };
        message.setattr(name, actions_len).ok()
    }

    /// Begins a message, with a header of zeros.
    fn begin<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        class: &Py<PyType>,
        kind: u8,
    ) -> Option<Written<'py>> {
        let py = message.py();
        let datapath = attribute(message, intern!(py, "datapath"))?;
        let is_usual = class.is(message.get_type())
            && attribute(&datapath, intern!(py, "ofproto"))?.is(&self.constants)
            && number(message, intern!(py, "cls_msg_type"), 8)? == u64::from(kind);
        if !is_usual {
            return None;
        }
        let mut bytes = Vec::with_capacity(USUAL_LEN);
        bytes.zeros(HEADER_LEN);
        Some(Written { bytes, lens: Vec::new() })
    }

    /// Writes the header, and sets what os-ken's function sets.
    fn finish(&self, message: &Bound<'_, PyAny>, kind: u8, written: Written<'_>) -> Option<()> {
        let py = message.py();
        let Written { mut bytes, lens } = written;
        let len = u16::try_from(bytes.len()).ok()?;
        let given = attribute(message, intern!(py, "xid"))?;
        let xid = if given.is_none() { 0 } else { int(&given, 32)? };
        bytes[0] = self.wire;
        bytes[1] = kind;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[4..8].copy_from_slice(&(xid as u32).to_be_bytes());
        let set = || {
            for (object, len) in lens {
                object.setattr(intern!(py, "len"), len)?;
            }
            message.setattr(intern!(py, "version"), self.wire)?;
            message.setattr(intern!(py, "msg_type"), kind)?;
            message.setattr(intern!(py, "buf"), PyByteArray::new(py, &bytes))?;
            message.setattr(intern!(py, "msg_len"), len)?;
            if given.is_none() {
                message.setattr(intern!(py, "xid"), 0)?;
            }
            PyResult::Ok(())
        };
        set().ok()
    }
}
