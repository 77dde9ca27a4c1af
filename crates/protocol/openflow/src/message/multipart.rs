//! Multipart requests and replies (1.0: statistics; 1.0 §5.3.5, 1.3.5 §7.3.5).

use super::Body;
use super::stats::{
    Aggregate, Desc, FlowStats, FlowStatsRequest, GroupDesc, GroupFeatures, GroupStats,
    MeterConfig, MeterFeatures, MeterStats, PortStats, QueueStats, QueueStatsRequest,
    TableFeatures, TableStats,
};
use crate::list::{Element, List};
use crate::reader::{Reader, Strictness};
use crate::wire::{self, U16, U32, v10, v13};
use crate::{
    Bytes, DecodeError, EncodeError, ErrorCode, Family, MultipartKind, Out, Port, PortDesc, Reason,
    Version,
};

/// `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
const MORE: u16 = 1;

/// Requests statistics or descriptions from a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MultipartRequest<'a> {
    /// More of the same request follows, with the same xid (1.3).
    pub more: bool,
    /// The subject of the request.
    pub body: RequestBody<'a>,
}

/// Subject of a multipart request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum RequestBody<'a> {
    /// Description of the switch.
    Desc,
    /// Individual flows.
    Flow(FlowStatsRequest<'a>),
    /// Sums over flows.
    Aggregate(FlowStatsRequest<'a>),
    /// Counters of tables.
    Table,
    /// Counters of a port; [`Port::ANY`] for all.
    PortStats(Port),
    /// Counters of queues.
    Queue(QueueStatsRequest),
    /// Counters of a group; [`super::Group::ALL`] for all.
    Group(u32),
    /// Configuration of groups.
    GroupDesc,
    /// Features of groups.
    GroupFeatures,
    /// Counters of a meter; [`super::Meter::ALL`] for all.
    Meter(u32),
    /// Configuration of a meter; [`super::Meter::ALL`] for all.
    MeterConfig(u32),
    /// Features of meters.
    MeterFeatures,
    /// Features of tables. A list with tables sets their features.
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// Descriptions of ports.
    PortDesc,
    /// A request of an experimenter.
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The experimenter's data (in 1.3 it starts with the type).
        data: Bytes<'a>,
    },
}

/// A reply to a multipart request, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MultipartReply<'a> {
    /// More of the same reply follows, with the same xid.
    pub more: bool,
    /// The answer.
    pub body: ReplyBody<'a>,
}

/// Content of a multipart reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ReplyBody<'a> {
    /// Description of the switch.
    Desc(Desc<'a>),
    /// Individual flows.
    Flow(List<'a, FlowStats<'a>>),
    /// Sums over flows.
    Aggregate(Aggregate),
    /// Counters of tables.
    Table(List<'a, TableStats>),
    /// Counters of ports.
    PortStats(List<'a, PortStats>),
    /// Counters of queues.
    Queue(List<'a, QueueStats>),
    /// Counters of groups.
    Group(List<'a, GroupStats<'a>>),
    /// Configuration of groups.
    GroupDesc(List<'a, GroupDesc<'a>>),
    /// Features of groups.
    GroupFeatures(GroupFeatures),
    /// Counters of meters.
    Meter(List<'a, MeterStats<'a>>),
    /// Configuration of meters.
    MeterConfig(List<'a, MeterConfig<'a>>),
    /// Features of meters.
    MeterFeatures(MeterFeatures),
    /// Features of tables.
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// Descriptions of ports.
    PortDesc(List<'a, PortDesc>),
    /// A reply of an experimenter.
    Experimenter {
        /// The experimenter's id.
        experimenter: u32,
        /// The experimenter's data (in 1.3 it starts with the type).
        data: Bytes<'a>,
    },
}

impl RequestBody<'_> {
    /// Returns the type of the request.
    #[must_use]
    pub const fn kind(&self) -> MultipartKind {
        match self {
            RequestBody::Desc => MultipartKind::Desc,
            RequestBody::Flow(_) => MultipartKind::Flow,
            RequestBody::Aggregate(_) => MultipartKind::Aggregate,
            RequestBody::Table => MultipartKind::Table,
            RequestBody::PortStats(_) => MultipartKind::PortStats,
            RequestBody::Queue(_) => MultipartKind::Queue,
            RequestBody::Group(_) => MultipartKind::Group,
            RequestBody::GroupDesc => MultipartKind::GroupDesc,
            RequestBody::GroupFeatures => MultipartKind::GroupFeatures,
            RequestBody::Meter(_) => MultipartKind::Meter,
            RequestBody::MeterConfig(_) => MultipartKind::MeterConfig,
            RequestBody::MeterFeatures => MultipartKind::MeterFeatures,
            RequestBody::TableFeatures(_) => MultipartKind::TableFeatures,
            RequestBody::PortDesc => MultipartKind::PortDesc,
            RequestBody::Experimenter { .. } => MultipartKind::Experimenter,
        }
    }
}

impl<'a> MultipartRequest<'a> {
    /// Makes a request in one part.
    #[must_use]
    pub const fn of(body: RequestBody<'a>) -> Self {
        MultipartRequest { more: false, body }
    }
}

impl<'a> Body<'a> for MultipartRequest<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (kind, more) = open(version, reader)?;
        let number = |reader: &mut Reader<'a>, what| {
            reader.fixed::<v13::NumberRequest>(what).map(|wire| wire.number.get())
        };
        let body = match kind {
            MultipartKind::Desc => RequestBody::Desc,
            MultipartKind::Flow => RequestBody::Flow(FlowStatsRequest::decode(version, reader)?),
            MultipartKind::Aggregate => {
                RequestBody::Aggregate(FlowStatsRequest::decode(version, reader)?)
            }
            MultipartKind::Table => RequestBody::Table,
            MultipartKind::PortStats => RequestBody::PortStats(match version.family() {
                Family::Fixed => {
                    let wire: &v10::PortStatsRequest = reader.fixed("port stats request")?;
                    Port::from_v10(wire.port_no.get())
                }
                Family::Oxm => Port(number(reader, "port stats request")?),
            }),
            MultipartKind::Queue => RequestBody::Queue(QueueStatsRequest::decode(version, reader)?),
            MultipartKind::Group => RequestBody::Group(number(reader, "group stats request")?),
            MultipartKind::GroupDesc => RequestBody::GroupDesc,
            MultipartKind::GroupFeatures => RequestBody::GroupFeatures,
            MultipartKind::Meter => RequestBody::Meter(number(reader, "meter stats request")?),
            MultipartKind::MeterConfig => {
                RequestBody::MeterConfig(number(reader, "meter config request")?)
            }
            MultipartKind::MeterFeatures => RequestBody::MeterFeatures,
            MultipartKind::TableFeatures => RequestBody::TableFeatures(list(version, reader)?),
            MultipartKind::PortDesc => RequestBody::PortDesc,
            MultipartKind::Experimenter => {
                let (experimenter, data) = experimenter(version, reader)?;
                RequestBody::Experimenter { experimenter, data }
            }
        };
        Ok(MultipartRequest { more, body })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        put_head(self.body.kind(), self.more, version, out)?;
        let number = |number: u32, out: &mut Out| {
            out.put(&v13::NumberRequest { number: U32::new(number), pad: [0; 4] })
        };
        match &self.body {
            RequestBody::Desc
            | RequestBody::Table
            | RequestBody::GroupDesc
            | RequestBody::GroupFeatures
            | RequestBody::MeterFeatures
            | RequestBody::PortDesc => Ok(()),
            RequestBody::Flow(request) | RequestBody::Aggregate(request) => {
                request.encode(version, out)
            }
            RequestBody::PortStats(port) => match version.family() {
                Family::Fixed => {
                    let port_no = U16::new(port.to_v10()?);
                    out.put(&v10::PortStatsRequest { port_no, pad: [0; 6] })
                }
                Family::Oxm => number(port.0, out),
            },
            RequestBody::Queue(request) => request.encode(version, out),
            RequestBody::Group(group) => number(*group, out),
            RequestBody::Meter(meter) | RequestBody::MeterConfig(meter) => number(*meter, out),
            RequestBody::TableFeatures(tables) => tables.encode(version, out),
            RequestBody::Experimenter { experimenter, data } => {
                out.put(&U32::new(*experimenter))?;
                out.append(data)
            }
        }
    }
}

impl<'a> ReplyBody<'a> {
    /// Returns the type of the reply.
    #[must_use]
    pub const fn kind(&self) -> MultipartKind {
        match self {
            ReplyBody::Desc(_) => MultipartKind::Desc,
            ReplyBody::Flow(_) => MultipartKind::Flow,
            ReplyBody::Aggregate(_) => MultipartKind::Aggregate,
            ReplyBody::Table(_) => MultipartKind::Table,
            ReplyBody::PortStats(_) => MultipartKind::PortStats,
            ReplyBody::Queue(_) => MultipartKind::Queue,
            ReplyBody::Group(_) => MultipartKind::Group,
            ReplyBody::GroupDesc(_) => MultipartKind::GroupDesc,
            ReplyBody::GroupFeatures(_) => MultipartKind::GroupFeatures,
            ReplyBody::Meter(_) => MultipartKind::Meter,
            ReplyBody::MeterConfig(_) => MultipartKind::MeterConfig,
            ReplyBody::MeterFeatures(_) => MultipartKind::MeterFeatures,
            ReplyBody::TableFeatures(_) => MultipartKind::TableFeatures,
            ReplyBody::PortDesc(_) => MultipartKind::PortDesc,
            ReplyBody::Experimenter { .. } => MultipartKind::Experimenter,
        }
    }

    /// Reads the concatenated bodies of all parts of a reply as one body, liberally. Offsets in
    /// errors count from the start of `bytes`.
    ///
    /// # Errors
    /// As for a message.
    pub fn decode_parts(
        version: Version,
        kind: MultipartKind,
        bytes: &'a [u8],
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes).reading(Strictness::Liberal);
        let body = ReplyBody::decode(version, kind, &mut reader)?;
        reader.finish("multipart reply")?;
        Ok(body)
    }

    fn decode(
        version: Version,
        kind: MultipartKind,
        reader: &mut Reader<'a>,
    ) -> Result<Self, DecodeError> {
        Ok(match kind {
            MultipartKind::Desc => ReplyBody::Desc(Desc::decode(reader)?),
            MultipartKind::Flow => ReplyBody::Flow(list(version, reader)?),
            MultipartKind::Aggregate => ReplyBody::Aggregate(Aggregate::decode(reader)?),
            MultipartKind::Table => ReplyBody::Table(list(version, reader)?),
            MultipartKind::PortStats => ReplyBody::PortStats(list(version, reader)?),
            MultipartKind::Queue => ReplyBody::Queue(list(version, reader)?),
            MultipartKind::Group => ReplyBody::Group(list(version, reader)?),
            MultipartKind::GroupDesc => ReplyBody::GroupDesc(list(version, reader)?),
            MultipartKind::GroupFeatures => {
                ReplyBody::GroupFeatures(GroupFeatures::decode(reader)?)
            }
            MultipartKind::Meter => ReplyBody::Meter(list(version, reader)?),
            MultipartKind::MeterConfig => ReplyBody::MeterConfig(list(version, reader)?),
            MultipartKind::MeterFeatures => {
                ReplyBody::MeterFeatures(MeterFeatures::decode(reader)?)
            }
            MultipartKind::TableFeatures => ReplyBody::TableFeatures(list(version, reader)?),
            MultipartKind::PortDesc => ReplyBody::PortDesc(list(version, reader)?),
            MultipartKind::Experimenter => {
                let (experimenter, data) = experimenter(version, reader)?;
                ReplyBody::Experimenter { experimenter, data }
            }
        })
    }
}

impl<'a> MultipartReply<'a> {
    /// Makes a reply in one part.
    #[must_use]
    pub const fn of(body: ReplyBody<'a>) -> Self {
        MultipartReply { more: false, body }
    }

    /// Returns the type of a reply, whether more follows, and its body as bytes. The body is not
    /// read. For joining parts ([`ReplyBody::decode_parts`]).
    ///
    /// # Errors
    /// The message is not a multipart reply, or its type does not exist in this version.
    pub fn split(
        version: Version,
        message: &'a [u8],
    ) -> Result<(MultipartKind, bool, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(message);
        reader.take(crate::HEADER_LEN, "header")?;
        let (kind, more) = open(version, &mut reader)?;
        Ok((kind, more, reader.take_rest()))
    }
}

impl<'a> Body<'a> for MultipartReply<'a> {
    fn decode(version: Version, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (kind, more) = open(version, reader)?;
        Ok(MultipartReply { more, body: ReplyBody::decode(version, kind, reader)? })
    }

    fn encode(&self, version: Version, out: &mut Out) -> Result<(), EncodeError> {
        put_head(self.body.kind(), self.more, version, out)?;
        match &self.body {
            ReplyBody::Desc(desc) => desc.encode(out),
            ReplyBody::Flow(flows) => flows.encode(version, out),
            ReplyBody::Aggregate(aggregate) => aggregate.encode(out),
            ReplyBody::Table(tables) => tables.encode(version, out),
            ReplyBody::PortStats(ports) => ports.encode(version, out),
            ReplyBody::Queue(queues) => queues.encode(version, out),
            ReplyBody::Group(groups) => groups.encode(version, out),
            ReplyBody::GroupDesc(groups) => groups.encode(version, out),
            ReplyBody::GroupFeatures(features) => features.encode(out),
            ReplyBody::Meter(meters) => meters.encode(version, out),
            ReplyBody::MeterConfig(meters) => meters.encode(version, out),
            ReplyBody::MeterFeatures(features) => features.encode(out),
            ReplyBody::TableFeatures(tables) => tables.encode(version, out),
            ReplyBody::PortDesc(ports) => ports.encode(version, out),
            ReplyBody::Experimenter { experimenter, data } => {
                out.put(&U32::new(*experimenter))?;
                out.append(data)
            }
        }
    }
}

/// Reads type and flags, and the padding after them in 1.3.
fn open(version: Version, reader: &mut Reader<'_>) -> Result<(MultipartKind, bool), DecodeError> {
    let start = *reader;
    let wire: &wire::Multipart = reader.fixed("multipart")?;
    let kind = MultipartKind::from_wire(version, wire.kind.get()).ok_or_else(|| {
        let reason = Reason::Value(wire.kind.get().into());
        start.error("multipart.type", reason, ErrorCode::RequestBadMultipart)
    })?;
    if version.family() == Family::Oxm {
        reader.take(4, "multipart padding")?;
    }
    Ok((kind, wire.flags.get() & MORE != 0))
}

fn put_head(
    kind: MultipartKind,
    more: bool,
    version: Version,
    out: &mut Out,
) -> Result<(), EncodeError> {
    let unsupported = EncodeError::Unsupported { what: kind.name(version), version };
    let number = kind.wire(version).ok_or(unsupported)?;
    let flags = U16::new(if more { MORE } else { 0 });
    out.put(&wire::Multipart { kind: U16::new(number), flags })?;
    if version.family() == Family::Oxm { out.zeros(4) } else { Ok(()) }
}

/// Reads an experimenter's id and data. In 1.3 the data begins with its type, 4 bytes.
fn experimenter<'a>(
    version: Version,
    reader: &mut Reader<'a>,
) -> Result<(u32, Bytes<'a>), DecodeError> {
    let experimenter = reader.fixed::<U32>("experimenter")?.get();
    if version.family() == Family::Oxm {
        let mut behind = *reader;
        behind.take(4, "experimenter type")?;
    }
    Ok((experimenter, Bytes(reader.take_rest())))
}

/// Reads the rest as a list.
fn list<'a, T: Element<'a> + Clone>(
    version: Version,
    reader: &mut Reader<'a>,
) -> Result<List<'a, T>, DecodeError> {
    let items = List::decode(version, *reader)?;
    reader.take_rest();
    Ok(items)
}
