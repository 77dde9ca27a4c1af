//! Multipart requests (1.0: statistics; 1.0 §5.3.5, 1.3.5 §7.3.5).

use std::time::Duration;

use bellrock_openflow::{
    Aggregate, ErrorCode, FlowFlags, FlowMod, FlowStats, FlowStatsRequest, Group, GroupDesc,
    GroupFeatures, GroupStats, HEADER_LEN, Instruction, Instructions, List, MatchView, Meter,
    MeterConfig, MeterFeatures, MeterFlags, MeterStats, MultipartRequest, PacketByteCount, Port,
    PortStats, QueueStats, QueueStatsRequest, ReplyBody, RequestBody, TableDetails, TableStats,
    Version,
};

use super::replies::{ENTRIES_PER_PART, ReplyTarget};
use super::{ChannelClose, EmulatedSwitch, REQUEST_PARTS_BYTES, RequestContext, tables};
use crate::datapath::flows::FlowEntry;
use crate::datapath::{Datapath, DatapathMeter, MAX_BANDS, MAX_GROUPS, MAX_METERS};

/// Why a request gets no reply.
enum NoReply {
    /// The answer is an error.
    Error(ErrorCode),
    /// There is no answer: the connection closes.
    Close(ChannelClose),
}

impl From<ErrorCode> for NoReply {
    fn from(code: ErrorCode) -> Self {
        NoReply::Error(code)
    }
}

impl From<ChannelClose> for NoReply {
    fn from(close: ChannelClose) -> Self {
        NoReply::Close(close)
    }
}

impl EmulatedSwitch {
    /// Answers a multipart request.
    pub(super) fn multipart(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        multipart: &MultipartRequest<'_>,
        now: Duration,
    ) -> Result<(), ChannelClose> {
        let kind = multipart.body.kind();
        if let Some(how) = self.unanswered(kind) {
            return self.leave_unanswered(index, request, kind, how);
        }
        match self.gather(index, request, multipart) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(code) => return self.refuse(index, request, code),
        }
        let channel = &mut self.channels[index];
        let mut reply = ReplyTarget {
            version: channel.version(),
            xid: request.xid,
            scratch: &mut self.scratch,
            outbox: &mut channel.outbox,
            additional: &self.reported_beside,
            misreport: self.misreport,
        };
        match answer(&self.datapath, &multipart.body, now, &mut reply) {
            Ok(()) => Ok(()),
            Err(NoReply::Close(close)) => Err(close),
            Err(NoReply::Error(code)) => self.refuse(index, request, code),
        }
    }

    /// Collects the parts of a request. Returns whether all have arrived. Only table features may
    /// have several parts; they are refused after the last one.
    fn gather(
        &mut self,
        index: usize,
        request: RequestContext<'_>,
        multipart: &MultipartRequest<'_>,
    ) -> Result<bool, ErrorCode> {
        let gathering = &mut self.channels[index].gathering;
        let so_far = gathering.take_if(|(xid, _)| *xid == request.xid).map_or(0, |(_, len)| len);
        let len = so_far + request.bytes.len() - HEADER_LEN;
        let is_table_features = matches!(multipart.body, RequestBody::TableFeatures(_));
        if multipart.more && (!is_table_features || len > REQUEST_PARTS_BYTES) {
            return Err(ErrorCode::RequestMultipartOverflow);
        }
        if multipart.more {
            *gathering = Some((request.xid, len));
        } else if is_table_features && so_far > 0 {
            // The last part may be empty, but earlier parts were not.
            return Err(ErrorCode::TableFeaturesPermission);
        }
        Ok(!multipart.more)
    }
}

fn answer(
    datapath: &Datapath,
    requested: &RequestBody<'_>,
    now: Duration,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    match requested {
        RequestBody::Flow(request) => flows(datapath, request, now, reply)?,
        RequestBody::Aggregate(request) => aggregate(datapath, request, reply)?,
        RequestBody::Table => table_stats(datapath, reply)?,
        RequestBody::PortStats(port) => ports(datapath, *port, now, reply)?,
        RequestBody::Queue(request) => queues(datapath, request, now, reply)?,
        RequestBody::Group(group) => groups(datapath, *group, now, reply)?,
        RequestBody::GroupDesc => group_descs(datapath, reply)?,
        RequestBody::GroupFeatures => reply.one(ReplyBody::GroupFeatures(GROUP_FEATURES))?,
        RequestBody::Meter(meter) => meters(datapath, *meter, now, reply)?,
        RequestBody::MeterConfig(meter) => meter_configs(datapath, *meter, reply)?,
        RequestBody::MeterFeatures => reply.one(ReplyBody::MeterFeatures(METER_FEATURES))?,
        RequestBody::TableFeatures(wanted) if wanted.is_empty() => {
            tables::features(datapath, reply)?;
        }
        // The switch decides its tables' features; a controller cannot change them (1.3.5
        // §7.3.5.5.1).
        RequestBody::TableFeatures(_) => return Err(ErrorCode::TableFeaturesPermission.into()),
        RequestBody::Experimenter { .. } => return Err(ErrorCode::RequestBadExperimenter.into()),
        // The session has answered these.
        RequestBody::Desc | RequestBody::PortDesc => {}
    }
    Ok(())
}

/// Whole seconds, and the nanoseconds beyond them.
fn split(duration: Duration) -> (u32, u32) {
    (u32::try_from(duration.as_secs()).unwrap_or(u32::MAX), duration.subsec_nanos())
}

/// The time since an object was added; in 1.0 only flows have it.
fn age(version: Version, created: Duration, now: Duration) -> (u32, u32) {
    match version.reports_ages() {
        true => split(now.saturating_sub(created)),
        false => (0, 0),
    }
}

/// Sends flows in parts, without a list of all flows.
fn flows(
    datapath: &Datapath,
    request: &FlowStatsRequest<'_>,
    now: Duration,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    check_table(datapath, reply.version, request)?;
    let mut found = datapath.tables().select(request).peekable();
    loop {
        let mut part: Vec<_> = found.by_ref().take(ENTRIES_PER_PART).collect();
        part.retain(|(_, flow)| reply.misreport.is_none_or(|how| how.has(flow)));
        let matches: Vec<_> = part.iter().map(|(_, flow)| flow.matching()).collect();
        let own: Vec<Vec<Instruction<'_>>> =
            part.iter().map(|(_, flow)| flow.program.instructions()).collect();
        let lists: Vec<_> = match reply.misreport {
            Some(how) => own.iter().map(|them| how.actions(them)).collect(),
            None => Vec::new(),
        };
        let instructions: Vec<_> = match reply.misreport {
            Some(how) => {
                own.iter().zip(&lists).map(|(them, lists)| how.instructions(them, lists)).collect()
            }
            None => own,
        };
        let mut stats: Vec<_> = part
            .iter()
            .zip(matches.iter().zip(&instructions))
            .map(|((table, flow), (matching, instructions))| {
                let (packet_count, byte_count) = counts(flow);
                let (duration_sec, duration_nsec) = split(now.saturating_sub(flow.created));
                FlowStats {
                    table: *table,
                    duration_sec,
                    duration_nsec,
                    priority: flow.priority,
                    idle_timeout: flow.idle_timeout,
                    hard_timeout: flow.hard_timeout,
                    flags: match reply.version.reports_flow_flags() {
                        true => flow.flags,
                        false => FlowFlags::empty(),
                    },
                    cookie: flow.cookie,
                    packet_count,
                    byte_count,
                    matching: MatchView::from(matching),
                    instructions: Instructions::of(instructions),
                }
            })
            .collect();
        if let Some(how) = reply.misreport {
            stats.iter_mut().for_each(|flow| how.alter(flow));
        }
        let has_more = found.peek().is_some();
        reply.some(&stats, has_more || !reply.additional.is_empty(), &ReplyBody::Flow)?;
        if !has_more {
            return Ok(reply.flows_beside()?);
        }
    }
}

/// A flow's counters; all ones for a counter that is off (1.3.5 §5.8).
fn counts(flow: &FlowEntry) -> (u64, u64) {
    let unless = |flag, count| if flow.flags.contains(flag) { u64::MAX } else { count };
    (
        unless(FlowFlags::NO_PKT_COUNTS, flow.packet_count),
        unless(FlowFlags::NO_BYT_COUNTS, flow.byte_count),
    )
}

fn aggregate(
    datapath: &Datapath,
    request: &FlowStatsRequest<'_>,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    check_table(datapath, reply.version, request)?;
    let mut sum = Aggregate::default();
    for (_, flow) in datapath.tables().select(request) {
        // A flow without counters makes the sum unknown: all ones too.
        let (packet_count, byte_count) = counts(flow);
        sum.packet_count = sum.packet_count.saturating_add(packet_count);
        sum.byte_count = sum.byte_count.saturating_add(byte_count);
        sum.flow_count = sum.flow_count.saturating_add(1);
    }
    Ok(reply.one(ReplyBody::Aggregate(sum))?)
}

/// Checks that the table exists. 1.0 has no error for one that does not.
fn check_table(
    datapath: &Datapath,
    version: Version,
    request: &FlowStatsRequest<'_>,
) -> Result<(), ErrorCode> {
    let known =
        request.table == FlowMod::ALL_TABLES || datapath.tables().table(request.table).is_some();
    let bad_table = ErrorCode::RequestBadTable;
    if known || !bad_table.exists_in(version) { Ok(()) } else { Err(bad_table) }
}

/// `OFPFW_ALL`: every field may be wildcarded.
const WILDCARDS_1_0: u32 = (1 << 22) - 1;

fn table_stats(datapath: &Datapath, reply: &mut ReplyTarget<'_>) -> Result<(), NoReply> {
    let version = reply.version;
    let details = |number, capacity| TableDetails {
        name: tables::name(number),
        wildcards: WILDCARDS_1_0,
        max_entries: capacity,
    };
    let stats = datapath.tables().iter().map(|(number, table)| TableStats {
        table: number,
        v1_0: (!version.has_table_features()).then(|| details(number, table.capacity())),
        active_count: u32::try_from(table.len()).unwrap_or(u32::MAX),
        lookup_count: table.lookup_count,
        matched_count: table.matched_count,
    });
    Ok(reply.all(&stats.collect::<Vec<_>>(), ReplyBody::Table)?)
}

fn ports(
    datapath: &Datapath,
    requested: Port,
    now: Duration,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    let version = reply.version;
    let ports = datapath.ports().iter();
    let stats =
        ports.filter(|port| requested == Port::ANY || port.desc.port == requested).map(|port| {
            let (duration_sec, duration_nsec) = age(version, port.created, now);
            PortStats { port: port.desc.port, counters: port.counters, duration_sec, duration_nsec }
        });
    let stats: Vec<_> = stats.collect();
    // 1.0 has no error for a port that does not exist: the reply is empty.
    let bad_port = ErrorCode::RequestBadPort;
    if stats.is_empty() && requested != Port::ANY && bad_port.exists_in(version) {
        return Err(bad_port.into());
    }
    Ok(reply.all(&stats, ReplyBody::PortStats)?)
}

fn queues(
    datapath: &Datapath,
    selection: &QueueStatsRequest,
    now: Duration,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    let version = reply.version;
    let all_ports =
        selection.port == Port::ANY || (!version.has_any_port() && selection.port == Port::ALL);
    if !all_ports && datapath.ports().get(selection.port.0).is_none() {
        return Err(ErrorCode::QueueBadPort.into());
    }
    let all_queues = selection.queue == QueueStatsRequest::ALL_QUEUES;
    let ports = datapath.ports().iter();
    let ports = ports.filter(|port| all_ports || port.desc.port == selection.port);
    let stats = ports.flat_map(|port| {
        let (duration_sec, duration_nsec) = age(version, port.created, now);
        let queues =
            port.queues.iter().filter(|queue| all_queues || queue.queue == selection.queue);
        queues.map(move |queue| QueueStats {
            port: port.desc.port,
            queue: queue.queue,
            tx_bytes: queue.tx_bytes,
            tx_packets: queue.tx_packets,
            tx_errors: queue.tx_errors,
            duration_sec,
            duration_nsec,
        })
    });
    let stats: Vec<_> = stats.collect();
    if stats.is_empty() && !all_queues {
        return Err(ErrorCode::QueueBadQueue.into());
    }
    Ok(reply.all(&stats, ReplyBody::Queue)?)
}

/// Sends groups' counters. The specification has no error for a group that does not exist: the
/// reply is empty.
fn groups(
    datapath: &Datapath,
    requested: u32,
    now: Duration,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    let groups = datapath.groups().iter();
    let groups: Vec<_> =
        groups.filter(|(group, _)| requested == Group::ALL || *group == requested).collect();
    let buckets: Vec<Vec<PacketByteCount>> = groups
        .iter()
        .map(|(_, entry)| entry.buckets.iter().map(|bucket| bucket.counter).collect())
        .collect();
    let references = datapath.group_references();
    let stats = groups.iter().zip(&buckets).map(|((group, entry), buckets)| {
        let (duration_sec, duration_nsec) = split(now.saturating_sub(entry.created));
        GroupStats {
            group: *group,
            ref_count: references.get(group).copied().unwrap_or(0),
            packet_count: entry.counter.packet_count,
            byte_count: entry.counter.byte_count,
            duration_sec,
            duration_nsec,
            buckets: List::of(buckets),
        }
    });
    Ok(reply.all(&stats.collect::<Vec<_>>(), ReplyBody::Group)?)
}

fn group_descs(datapath: &Datapath, reply: &mut ReplyTarget<'_>) -> Result<(), NoReply> {
    let groups: Vec<_> = datapath.groups().iter().collect();
    let buckets: Vec<Vec<_>> = groups
        .iter()
        .map(|(_, entry)| entry.buckets.iter().map(|bucket| bucket.bucket()).collect())
        .collect();
    let descs = groups.iter().zip(&buckets).map(|((group, entry), buckets)| GroupDesc {
        kind: entry.kind,
        group: *group,
        buckets: List::of(buckets),
    });
    Ok(reply.all(&descs.collect::<Vec<_>>(), ReplyBody::GroupDesc)?)
}

/// All group types, with all actions in buckets; select by weight and by liveness, chains, and a
/// check for loops (1.3.5 §7.3.5.11).
const GROUP_FEATURES: GroupFeatures = GroupFeatures {
    types: 0b1111,
    capabilities: 0b1111,
    max_groups: [MAX_GROUPS as u32; 4],
    actions: [tables::ACTION_BITS; 4],
};

/// A meter, or all meters.
///
/// For a meter that does not exist, the specification names an error only for changes. It is used
/// here too.
fn chosen_meters(
    datapath: &Datapath,
    requested: u32,
) -> Result<Vec<(u32, &DatapathMeter)>, ErrorCode> {
    if requested == Meter::ALL {
        return Ok(datapath.meters().iter().collect());
    }
    let entry = datapath.meters().get(requested).ok_or(ErrorCode::MeterModUnknownMeter)?;
    Ok(vec![(requested, entry)])
}

fn meters(
    datapath: &Datapath,
    requested: u32,
    now: Duration,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    let meters = chosen_meters(datapath, requested)?;
    let bands: Vec<Vec<PacketByteCount>> = meters
        .iter()
        .map(|(_, entry)| entry.bands.iter().map(|band| band.counter).collect())
        .collect();
    let users = datapath.meter_flows();
    let stats = meters.iter().zip(&bands).map(|((meter, entry), bands)| {
        let (duration_sec, duration_nsec) = split(now.saturating_sub(entry.created));
        MeterStats {
            meter: *meter,
            flow_count: users.get(meter).copied().unwrap_or(0),
            packet_in_count: entry.counter.packet_count,
            byte_in_count: entry.counter.byte_count,
            duration_sec,
            duration_nsec,
            bands: List::of(bands),
        }
    });
    Ok(reply.all(&stats.collect::<Vec<_>>(), ReplyBody::Meter)?)
}

fn meter_configs(
    datapath: &Datapath,
    requested: u32,
    reply: &mut ReplyTarget<'_>,
) -> Result<(), NoReply> {
    let meters = chosen_meters(datapath, requested)?;
    let bands: Vec<Vec<_>> = meters
        .iter()
        .map(|(_, entry)| entry.bands.iter().map(|band| band.band()).collect())
        .collect();
    let configs = meters.iter().zip(&bands).map(|((meter, entry), bands)| MeterConfig {
        flags: entry.flags,
        meter: *meter,
        bands: List::of(bands),
    });
    Ok(reply.all(&configs.collect::<Vec<_>>(), ReplyBody::MeterConfig)?)
}

/// `OFPMBT_DROP` and `OFPMBT_DSCP_REMARK`, one bit each.
const BAND_TYPES: u32 = 1 << 1 | 1 << 2;

const METER_FEATURES: MeterFeatures = MeterFeatures {
    max_meter: MAX_METERS as u32,
    band_types: BAND_TYPES,
    capabilities: MeterFlags::KBPS
        .union(MeterFlags::PKTPS)
        .union(MeterFlags::BURST)
        .union(MeterFlags::STATS)
        .bits() as u32,
    max_bands: MAX_BANDS as u8,
    max_color: 0,
};
