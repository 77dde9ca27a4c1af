//! Multipart requests and replies: statistics and descriptions.

use std::fmt::{self, Display, Formatter};

use super::action::{GroupName, MeterName};
use super::packet::{TableName, ageing, cookie, rule, towards};
use super::{Bits, Duration, Hex, ITEM, SUBITEM, count, dump, lines};
use crate::list::Element;
use crate::{
    Aggregate, Desc, FlowStats, FlowStatsRequest, GroupDesc, GroupFeatures, GroupStats, List,
    MeterConfig, MeterFeatures, MeterFlags, MeterStats, MultipartReply, MultipartRequest,
    PacketByteCount, PortStats, QueueStats, QueueStatsRequest, ReplyBody, RequestBody,
};

/// Returns whether the kind is the whole content.
pub(super) fn is_bare(request: &MultipartRequest<'_>) -> bool {
    let nothing = match request.body {
        RequestBody::Desc
        | RequestBody::Table
        | RequestBody::GroupDesc
        | RequestBody::GroupFeatures
        | RequestBody::MeterFeatures
        | RequestBody::PortDesc => true,
        RequestBody::TableFeatures(tables) => tables.is_empty(),
        _ => false,
    };
    nothing && !request.more
}

const MORE: &str = "(more) ";

impl Display for MultipartRequest<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.more { MORE } else { "" })?;
        self.body.fmt(f)
    }
}

impl Display for RequestBody<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RequestBody::Desc
            | RequestBody::Table
            | RequestBody::GroupDesc
            | RequestBody::GroupFeatures
            | RequestBody::MeterFeatures
            | RequestBody::PortDesc => Ok(()),
            RequestBody::Flow(request) | RequestBody::Aggregate(request) => request.fmt(f),
            RequestBody::PortStats(port) => write!(f, "port={port}"),
            RequestBody::Queue(request) => request.fmt(f),
            RequestBody::Group(group) => write!(f, "group_id={}", GroupName(*group)),
            RequestBody::Meter(meter) | RequestBody::MeterConfig(meter) => {
                write!(f, "meter={}", MeterName(*meter))
            }
            RequestBody::TableFeatures(tables) => listed(tables, "table", f),
            RequestBody::Experimenter { experimenter, data } => {
                write!(f, "experimenter={experimenter:#010x} data={}", Hex(data))?;
                dump(data, f)
            }
        }
    }
}

impl Display for MultipartReply<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.more { MORE } else { "" })?;
        self.body.fmt(f)
    }
}

impl Display for ReplyBody<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ReplyBody::Desc(desc) => desc.fmt(f),
            ReplyBody::Flow(flows) => listed(flows, "flow", f),
            ReplyBody::Aggregate(aggregate) => aggregate.fmt(f),
            ReplyBody::Table(tables) => listed(tables, "table", f),
            ReplyBody::PortStats(ports) => listed(ports, "port", f),
            ReplyBody::Queue(queues) => listed(queues, "queue", f),
            ReplyBody::Group(groups) => listed(groups, "group", f),
            ReplyBody::GroupDesc(groups) => listed(groups, "group", f),
            ReplyBody::GroupFeatures(features) => features.fmt(f),
            ReplyBody::Meter(meters) => listed(meters, "meter", f),
            ReplyBody::MeterConfig(meters) => listed(meters, "meter", f),
            ReplyBody::MeterFeatures(features) => features.fmt(f),
            ReplyBody::TableFeatures(tables) => listed(tables, "table", f),
            ReplyBody::PortDesc(ports) => listed(ports, "port", f),
            ReplyBody::Experimenter { experimenter, data } => {
                write!(f, "experimenter={experimenter:#010x} data={}", Hex(data))?;
                dump(data, f)
            }
        }
    }
}

/// Prints the number of items, then a line for each.
fn listed<'a, T: Element<'a> + Clone + Display>(
    list: &List<'a, T>,
    what: &str,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    count(list.len(), what, f)?;
    lines(ITEM, list.iter(), f)
}

/// Prints the texts in quotes, escaped.
impl Display for Desc<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "manufacturer={:?}, hardware={:?}", self.manufacturer(), self.hardware())?;
        write!(f, ", software={:?}", self.software())?;
        write!(f, ", serial_number={:?}, datapath={:?}", self.serial_number(), self.datapath())
    }
}

impl Display for FlowStatsRequest<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "table={}, ", TableName(self.table))?;
        if (self.cookie, self.cookie_mask) != (0, 0) {
            cookie(self.cookie, self.cookie_mask, f)?;
        }
        towards(self.out_port, self.out_group, f)?;
        write!(f, "match={}", self.matching)
    }
}

impl Display for FlowStats<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        cookie(self.cookie, 0, f)?;
        write!(f, "duration={}, ", Duration(self.duration_sec, self.duration_nsec))?;
        write!(f, "table={}, ", self.table)?;
        write!(f, "n_packets={}, n_bytes={}, ", self.packet_count, self.byte_count)?;
        ageing(self.idle_timeout, self.hard_timeout, self.flags, f)?;
        rule(self.priority, &self.matching, f)?;
        write!(f, " actions={}", self.instructions)
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Aggregate { packet_count, byte_count, flow_count } = self;
        write!(f, "packet_count={packet_count}, byte_count={byte_count}, flow_count={flow_count}")
    }
}

impl Display for PortStats {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let c = &self.counters;
        write!(
            f,
            "port {}: rx pkts={}, bytes={}",
            self.port,
            Count(c.rx_packets),
            Count(c.rx_bytes)
        )?;
        write!(f, ", drop={}, errs={}", Count(c.rx_dropped), Count(c.rx_errors))?;
        write!(f, ", frame={}, over={}", Count(c.rx_frame_err), Count(c.rx_over_err))?;
        write!(f, ", crc={}", Count(c.rx_crc_err))?;
        write!(f, "; tx pkts={}, bytes={}", Count(c.tx_packets), Count(c.tx_bytes))?;
        write!(f, ", drop={}, errs={}", Count(c.tx_dropped), Count(c.tx_errors))?;
        write!(f, ", coll={}", Count(c.collisions))?;
        age(self.duration_sec, self.duration_nsec, f)
    }
}

/// Prints a counter; `?` if the switch does not support it.
struct Count(u64);

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("?"),
            n => write!(f, "{n}"),
        }
    }
}

/// Prints the age, which only 1.3 reports.
fn age(sec: u32, nsec: u32, f: &mut Formatter<'_>) -> fmt::Result {
    if (sec, nsec) == (0, 0) { Ok(()) } else { write!(f, ", duration={}", Duration(sec, nsec)) }
}

/// Prints the number of a queue; `ALL` for all.
struct QueueName(u32);

impl Display for QueueName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            QueueStatsRequest::ALL_QUEUES => f.write_str("ALL"),
            number => write!(f, "{number}"),
        }
    }
}

impl Display for QueueStatsRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "port={}, queue={}", self.port, QueueName(self.queue))
    }
}

impl Display for QueueStats {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "port {} queue {}: ", self.port, QueueName(self.queue))?;
        write!(f, "bytes={}, pkts={}", Count(self.tx_bytes), Count(self.tx_packets))?;
        write!(f, ", errors={}", Count(self.tx_errors))?;
        age(self.duration_sec, self.duration_nsec, f)
    }
}

impl Display for PacketByteCount {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (packets, bytes) = (Count(self.packet_count), Count(self.byte_count));
        write!(f, "packet_count={packets}, byte_count={bytes}")
    }
}

/// Prints the items of an entry, and its unreadable bytes at the end.
fn items<'a, T: Element<'a> + Clone + Display>(
    list: List<'a, T>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    lines(SUBITEM, list.iter(), f)?;
    match list.unread() {
        [] => Ok(()),
        unread => write!(f, "{SUBITEM}unread({})", Hex(unread)),
    }
}

/// Prints counters of buckets or bands, each after its index.
fn counters(name: &str, list: &List<'_, PacketByteCount>, f: &mut Formatter<'_>) -> fmt::Result {
    for (i, counter) in list.iter().enumerate() {
        write!(f, "{SUBITEM}{name} {i}: {counter}")?;
    }
    Ok(())
}

impl Display for GroupStats<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "group_id={}, ref_count={}", GroupName(self.group), self.ref_count)?;
        write!(f, ", packet_count={}", Count(self.packet_count))?;
        write!(f, ", byte_count={}", Count(self.byte_count))?;
        write!(f, ", duration={}", Duration(self.duration_sec, self.duration_nsec))?;
        counters("bucket", &self.buckets, f)
    }
}

impl Display for GroupDesc<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "group_id={}, type={}", GroupName(self.group), self.kind)?;
        items(self.buckets, f)
    }
}

const GROUP_TYPES: [&str; 4] = ["all", "select", "indirect", "ff"];
/// `ofp_group_capabilities`.
const GROUP_CAPABILITIES: &[&str] =
    &["SELECT_WEIGHT", "SELECT_LIVENESS", "CHAINING", "CHAINING_CHECKS"];

impl Display for GroupFeatures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "types={}", Bits(self.types, &GROUP_TYPES))?;
        write!(f, ", capabilities={}", Bits(self.capabilities, GROUP_CAPABILITIES))?;
        for ((name, max), actions) in GROUP_TYPES.iter().zip(self.max_groups).zip(self.actions) {
            let actions = Bits(actions, super::table::ACTIONS);
            write!(f, "{ITEM}{name}: max_groups={max}, actions={actions}")?;
        }
        Ok(())
    }
}

impl Display for MeterStats<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "meter={}, flow_count={}", MeterName(self.meter), self.flow_count)?;
        write!(f, ", packet_in_count={}", Count(self.packet_in_count))?;
        write!(f, ", byte_in_count={}", Count(self.byte_in_count))?;
        write!(f, ", duration={}", Duration(self.duration_sec, self.duration_nsec))?;
        counters("band", &self.bands, f)
    }
}

impl Display for MeterConfig<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "meter={}, flags={}", MeterName(self.meter), self.flags)?;
        items(self.bands, f)
    }
}

impl Display for MeterFeatures {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // The flags have the bits of a meter_mod; band types start at 1.
        let capabilities = MeterFlags::from_bits_retain(self.capabilities as u16);
        write!(f, "max_meter={}", self.max_meter)?;
        write!(f, ", band_types={}", Bits(self.band_types, &["", "drop", "dscp_remark"]))?;
        write!(f, ", capabilities={capabilities}")?;
        if self.capabilities > u32::from(u16::MAX) {
            write!(f, "|{:#x}", self.capabilities & 0xffff_0000)?;
        }
        write!(f, ", max_bands={}, max_color={}", self.max_bands, self.max_color)
    }
}
