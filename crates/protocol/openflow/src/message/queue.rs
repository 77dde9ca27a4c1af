//! Queues of ports and their configuration (1.0 §5.2.2, §5.3.4; 1.3.5 §7.2.2, §7.3.6).

use super::Body;
use crate::list::{Element, List};
use crate::reader::Reader;
use crate::wire::{self, U16, U32, v10, v13};
use crate::{Bytes, DecodeError, EncodeError, Family, Out, Port, Version, property};

/// A property of a queue (`ofp_queue_properties`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum QueueProperty<'a> {
    /// Guaranteed rate, in tenths of a percent of the port's rate; disabled above 1,000.
    MinRate(u16),
    /// Maximum rate, in the same unit (1.3).
    MaxRate(u16),
    /// An experimenter's property (1.3).
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The experimenter's data.
        data: Bytes<'a>,
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        kind: u16,
        /// The bytes after the head.
        body: Bytes<'a>,
    },
}

const MIN_RATE: u16 = 1;
const MAX_RATE: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

/// Padding before the content of a property (`ofp_queue_prop_header`).
const PAD: [u8; 4] = [0; 4];

impl<'a> Element<'a> for QueueProperty<'a> {
    fn decode(_: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (kind, mut body) = property::read(reader, "queue property")?;
        body.take(PAD.len(), "queue property padding")?;
        let rate = |body: &mut Reader<'_>| {
            body.fixed::<wire::QueueRate>("queue rate").map(|wire| wire.rate.get())
        };
        let property = match kind {
            MIN_RATE => QueueProperty::MinRate(rate(&mut body)?),
            MAX_RATE => QueueProperty::MaxRate(rate(&mut body)?),
            EXPERIMENTER => {
                let wire: &wire::QueueExperimenter = body.fixed("queue experimenter")?;
                let experimenter = wire.experimenter.get();
                QueueProperty::Experimenter { experimenter, data: Bytes(body.take_rest()) }
            }
            kind => QueueProperty::Unknown { kind, body: Bytes(body.take_rest()) },
        };
        body.finish("queue property")?;
        Ok(property)
    }

    fn encode(&self, _: Version, out: &mut Out) -> Result<(), EncodeError> {
        let kind = match *self {
            QueueProperty::MinRate(_) => MIN_RATE,
            QueueProperty::MaxRate(_) => MAX_RATE,
            QueueProperty::Experimenter { .. } => EXPERIMENTER,
            QueueProperty::Unknown { kind, .. } => kind,
        };
        property::write(kind, "queue property", out, |out| {
            out.append(&PAD)?;
            match *self {
                QueueProperty::MinRate(rate) | QueueProperty::MaxRate(rate) => {
                    out.put(&wire::QueueRate { rate: U16::new(rate), pad: [0; 6] })
                }
                QueueProperty::Experimenter { experimenter, data } => {
                    let experimenter = U32::new(experimenter);
                    out.put(&wire::QueueExperimenter { experimenter, pad: [0; 4] })?;
                    out.append(&data)
                }
                QueueProperty::Unknown { body, .. } => out.append(&body),
            }
        })
    }
}

/// A queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Queue<'a> {
    /// Its number at the port.
    pub queue: u32,
    /// The port (1.3; [`Port::ANY`] in 1.0, which does not report it).
    pub port: Port,
    /// Its properties.
    pub properties: List<'a, QueueProperty<'a>>,
}

impl<'a> Element<'a> for Queue<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = *reader;
        let (queue, port, length, head_len) = match version.family() {
            Family::Fixed => {
                let wire: &wire::Queue10 = reader.fixed("queue")?;
                (wire.queue_id.get(), Port::ANY, wire.length.get(), size_of::<wire::Queue10>())
            }
            Family::Oxm => {
                let wire: &wire::Queue13 = reader.fixed("queue")?;
                let port = Port(wire.port.get());
                (wire.queue_id.get(), port, wire.length.get(), size_of::<wire::Queue13>())
            }
        };
        let length = usize::from(length);
        let body_len =
            length.checked_sub(head_len).ok_or_else(|| start.bad_length("queue length", length))?;
        let properties = List::decode_within(version, reader.sub(body_len, "queue properties")?)?;
        Ok(Queue { queue, port, properties })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        let start = out.len();
        let queue_id = U32::new(self.queue);
        let length_at = match version.family() {
            Family::Fixed => {
                out.put(&wire::Queue10 { queue_id, length: U16::ZERO, pad: [0; 2] })?;
                4
            }
            Family::Oxm => {
                let port = U32::new(self.port.0);
                out.put(&wire::Queue13 { queue_id, port, length: U16::ZERO, pad: [0; 6] })?;
                8
            }
        };
        self.properties.encode(version, out)?;
        out.patch_length(start, length_at, "queue")
    }
}

/// The queues of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QueueConfig<'a> {
    /// The port; [`Port::ANY`] for all ports (1.3).
    pub port: Port,
    /// Its queues.
    pub queues: List<'a, Queue<'a>>,
}

impl<'a> Body<'a> for QueueConfig<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let port = match version.family() {
            Family::Fixed => {
                let wire: &v10::QueueGetConfigReply = reader.fixed("queue config")?;
                Port::from_v10(wire.port.get())
            }
            Family::Oxm => Port(reader.fixed::<v13::QueueGetConfig>("queue config")?.port.get()),
        };
        let queues = List::decode(version, *reader)?;
        reader.take_rest();
        Ok(QueueConfig { port, queues })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match version.family() {
            Family::Fixed => {
                let port = U16::new(self.port.to_v10()?);
                out.put(&v10::QueueGetConfigReply { port, pad: [0; 6] })?;
            }
            Family::Oxm => {
                out.put(&v13::QueueGetConfig { port: U32::new(self.port.0), pad: [0; 4] })?;
            }
        }
        self.queues.encode(version, out)
    }
}

/// The content of a request for the queues of a port.
impl<'a> Body<'a> for Port {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let what = "queue config request";
        Ok(match version.family() {
            Family::Fixed => {
                Port::from_v10(reader.fixed::<v10::QueueGetConfigRequest>(what)?.port.get())
            }
            Family::Oxm => Port(reader.fixed::<v13::QueueGetConfig>(what)?.port.get()),
        })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        match version.family() {
            Family::Fixed => {
                let port = U16::new(self.to_v10()?);
                out.put(&v10::QueueGetConfigRequest { port, pad: [0; 2] })
            }
            Family::Oxm => out.put(&v13::QueueGetConfig { port: U32::new(self.0), pad: [0; 4] }),
        }
    }
}
