//! Messages as text, for conversations. A line is the message's name and its values, in the
//! notation that the crate `openflow` prints; omitted values have their default.

use bellrock_openflow::{
    AsyncConfig, AsyncMasks, Band, BandType, Bucket, Bytes, ConfigFlags, Experimenter, FlowCommand,
    FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason, FlowStatsRequest, FromSwitch, Group,
    GroupCommand, GroupMod, GroupType, List, MacAddr, MatchView, Meter, MeterCommand, MeterFlags,
    MeterMod, MultipartRequest, NICIRA, Out, PacketOut, Port, PortConfig, PortFeatures, PortMod,
    QueueStatsRequest, RequestBody, RoleKind, RoleMessage, SwitchConfig, TableMod, ToSwitch,
    Version,
};

use super::actions::{actions, instructions, matching};
use super::frame::{self, Result, bytes_of_hex, mac, number};
use super::words::{Context, Words, flags, group, keep, port};

/// Builds the bytes of a message from its line.
pub(crate) fn build(line: &str, xid: u32, context: Context<'_>) -> Result<Vec<u8>> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    if name == "raw" {
        return raw(rest, xid, context.version);
    }
    let message = message(name, rest, context)?;
    let mut out = Out::with_capacity(1 << 16);
    message.encode(context.version, xid, &mut out).map_err(|error| error.to_string())?;
    Ok(out.as_slice().to_vec())
}

/// `raw type=14 [version=1] [length=8]: BYTES`: a body in hexadecimal after a header that is right
/// except for the given values.
fn raw(text: &str, xid: u32, version: Version) -> Result<Vec<u8>> {
    let (head, body) = text.split_once(':').unwrap_or((text, ""));
    let body = bytes_of_hex(body)?;
    let mut head = Words::of(head);
    let mut bytes =
        vec![head.number("version", version.wire().into())? as u8, head.number("type", 0)? as u8];
    bytes.extend((head.number("length", 8 + body.len() as u64)? as u16).to_be_bytes());
    bytes.extend(xid.to_be_bytes());
    bytes.extend(body);
    head.finish()?;
    Ok(bytes)
}

fn message(name: &str, rest: &str, context: Context<'_>) -> Result<ToSwitch<'static>> {
    Ok(match name {
        "flow_mod" => ToSwitch::FlowMod(flow_mod(rest)?),
        "packet_out" => ToSwitch::PacketOut(packet_out(rest, context.version)?),
        "group_mod" => ToSwitch::GroupMod(group_mod(rest)?),
        "meter_mod" => ToSwitch::MeterMod(meter_mod(rest)?),
        "port_mod" => ToSwitch::PortMod(port_mod(rest, context)?),
        "echo" => ToSwitch::EchoRequest(Bytes(keep(rest.as_bytes().to_vec()))),
        "echo_reply" => ToSwitch::EchoReply(Bytes(keep(rest.as_bytes().to_vec()))),
        "barrier" => ToSwitch::BarrierRequest,
        "features" => ToSwitch::FeaturesRequest,
        "get_config" => ToSwitch::GetConfigRequest,
        "get_async" => ToSwitch::GetAsyncRequest,
        "set_async" => ToSwitch::SetAsync(async_config(rest)?),
        "set_config" => {
            let mut words = Words::of(rest);
            let named = [("FRAG_DROP", 1), ("FRAG_REASM", 2), ("INVALID_TTL_TO_CONTROLLER", 4)];
            let bits = words.take("flags").map_or(Ok(0), |text| flags(text, &named))?;
            let miss_send_len = words.number("miss_send_len", 128)? as u16;
            words.finish()?;
            ToSwitch::SetConfig(SwitchConfig {
                flags: ConfigFlags::from_bits_retain(bits as u16),
                miss_send_len,
            })
        }
        "table_mod" => {
            let mut words = Words::of(rest);
            let (table, config) = (words.table(0)?, words.number("config", 0)? as u32);
            words.finish()?;
            ToSwitch::TableMod(TableMod { table, config })
        }
        "queue_get_config" => {
            ToSwitch::QueueGetConfigRequest(Words::of(rest).port("port", Port::ANY)?)
        }
        "role_request" => ToSwitch::RoleRequest(role(rest)?),
        // Open vSwitch's roles for 1.0.
        "nicira_role" => {
            let data: &[u8; 8] = match rest {
                "role=equal" => &[0, 0, 0, 10, 0, 0, 0, 0],
                "role=master" => &[0, 0, 0, 10, 0, 0, 0, 1],
                "role=slave" => &[0, 0, 0, 10, 0, 0, 0, 2],
                _ => return Err("a nicira_role needs role=equal, role=master or role=slave".into()),
            };
            let (experimenter, kind) = (NICIRA, None);
            ToSwitch::Experimenter(Experimenter { experimenter, kind, data: Bytes(data) })
        }
        "experimenter" => {
            let mut words = Words::of(rest);
            let kind = (context.version == Version::V1_3).then_some(0);
            let experimenter = words.number("experimenter", 0)? as u32;
            words.finish()?;
            ToSwitch::Experimenter(Experimenter { experimenter, kind, data: Bytes(&[]) })
        }
        _ => {
            let (more, name) = name.strip_suffix('+').map_or((false, name), |name| (true, name));
            ToSwitch::MultipartRequest(MultipartRequest { more, body: request(name, rest)? })
        }
    })
}

/// A multipart request; a `+` after its name means that more parts follow.
fn request(name: &str, rest: &str) -> Result<RequestBody<'static>> {
    let mut words = Words::of(rest);
    let body = match name {
        "desc" => RequestBody::Desc,
        "flow_stats" => RequestBody::Flow(flow_stats(&mut words)?),
        "aggregate" => RequestBody::Aggregate(flow_stats(&mut words)?),
        "table_stats" => RequestBody::Table,
        "port_stats" => RequestBody::PortStats(words.port("port", Port::ANY)?),
        "queue_stats" => RequestBody::Queue(QueueStatsRequest {
            port: words.port("port", Port::ANY)?,
            queue: match words.take("queue") {
                None | Some("ALL") => QueueStatsRequest::ALL_QUEUES,
                Some(text) => number(text)? as u32,
            },
        }),
        "group_stats" => RequestBody::Group(words.group("group_id", Group::ALL)?),
        "group_desc" => RequestBody::GroupDesc,
        "group_features" => RequestBody::GroupFeatures,
        "meter_stats" => RequestBody::Meter(words.meter("meter", Meter::ALL)?),
        "meter_config" => RequestBody::MeterConfig(words.meter("meter", Meter::ALL)?),
        "meter_features" => RequestBody::MeterFeatures,
        "table_features" => RequestBody::TableFeatures(List::empty()),
        "port_desc" => RequestBody::PortDesc,
        "multipart_experimenter" => RequestBody::Experimenter {
            experimenter: words.number("experimenter", 0)? as u32,
            data: Bytes(&[0; 4]),
        },
        other => return Err(format!("no message is called `{other}`")),
    };
    words.finish()?;
    Ok(body)
}

fn flow_stats(words: &mut Words<'_>) -> Result<FlowStatsRequest<'static>> {
    let (cookie, cookie_mask) = words.masked("cookie", u64::MAX)?;
    Ok(FlowStatsRequest {
        table: words.table(u8::MAX)?,
        out_port: words.port("out_port", Port::ANY)?,
        out_group: words.group("out_group", Group::ANY)?,
        cookie,
        cookie_mask,
        // All words that are left.
        matching: view(matching(words.rest())?),
    })
}

fn view(matching: bellrock_openflow::Match) -> MatchView<'static> {
    if matching.check().is_ok() {
        return MatchView::from(&*Box::leak(Box::new(matching)));
    }
    // A match that a controller may not send: written as a switch may report it, and read back.
    let removed = FlowRemoved {
        cookie: 0,
        priority: 0,
        reason: FlowRemovedReason::Delete,
        table: 0,
        duration_sec: 0,
        duration_nsec: 0,
        idle_timeout: 0,
        hard_timeout: 0,
        packet_count: 0,
        byte_count: 0,
        matching: MatchView::from(&matching),
    };
    let mut out = Out::with_capacity(1 << 12);
    let written = FromSwitch::FlowRemoved(removed).encode(Version::V1_3, 0, &mut out);
    assert_eq!(written, Ok(()), "{matching:?}");
    let bytes = keep(out.as_slice().to_vec());
    match FromSwitch::decode(bytes).map(|message| message.body) {
        Ok(FromSwitch::FlowRemoved(read)) => read.matching,
        other => panic!("{matching:?} is read as {other:?}"),
    }
}

/// The text before and after `mark`, which may be missing.
fn cut<'t>(text: &'t str, mark: &str) -> (&'t str, &'t str) {
    match text.find(mark) {
        Some(at) => (&text[..at], &text[at + mark.len()..]),
        None => (text, ""),
    }
}

fn flow_mod(text: &str) -> Result<FlowMod<'static>> {
    let (head, behind) = cut(text, "actions=");
    let mut words = Words::of(head);
    let command = match words.bare() {
        Some("ADD") => FlowCommand::Add,
        Some("MODIFY") => FlowCommand::Modify,
        Some("MODIFY_STRICT") => FlowCommand::ModifyStrict,
        Some("DELETE") => FlowCommand::Delete,
        Some("DELETE_STRICT") => FlowCommand::DeleteStrict,
        other => return Err(format!("{other:?} is no command of a flow_mod")),
    };
    let named = [
        ("SEND_FLOW_REM", 1),
        ("CHECK_OVERLAP", 2),
        ("RESET_COUNTS", 4),
        ("NO_PKT_COUNTS", 8),
        ("NO_BYT_COUNTS", 16),
        ("EMERG", 1 << 16),
    ];
    let usual_table = if command.is_delete() { FlowMod::ALL_TABLES } else { 0 };
    let (cookie, cookie_mask) = words.masked("cookie", 0)?;
    let bits = words.take("flags").map_or(Ok(0), |text| flags(text, &named))?;
    let buffer_id = words.take("buffer").map(number).transpose()?.map(|id| id as u32);
    Ok(FlowMod {
        command,
        table: words.table(usual_table)?,
        cookie,
        cookie_mask,
        idle_timeout: words.number("idle_timeout", 0)? as u16,
        hard_timeout: words.number("hard_timeout", 0)? as u16,
        priority: words.number("priority", FlowMod::DEFAULT_PRIORITY.into())? as u16,
        buffer_id,
        out_port: words.port("out_port", Port::ANY)?,
        out_group: words.group("out_group", FlowMod::ANY_GROUP)?,
        flags: FlowFlags::from_bits_retain(bits as u32),
        instructions: instructions(behind)?,
        // All words that are left.
        matching: view(matching(words.rest())?),
    })
}

/// `packet_out in_port=1 actions=output:2 frame=eth ...`, or `buffer=` instead of the frame.
fn packet_out(text: &str, version: Version) -> Result<PacketOut<'static>> {
    let (said, frame) = cut(text, "frame=");
    let (head, list) = cut(said, "actions=");
    let own = if version == Version::V1_0 { Port::ANY } else { Port::CONTROLLER };
    let mut words = Words::of(head);
    let packet = PacketOut {
        buffer_id: words.take("buffer").map(number).transpose()?.map(|id| id as u32),
        in_port: words.port("in_port", own)?,
        actions: actions(list)?,
        data: Bytes(if frame.is_empty() { &[] } else { keep(frame::build(frame)?) }),
    };
    words.finish()?;
    Ok(packet)
}

fn group_mod(text: &str) -> Result<GroupMod<'static>> {
    let mut parts = text.split("bucket=");
    let mut words = Words::of(parts.next().unwrap_or_default());
    let command = match words.bare() {
        Some("ADD") => GroupCommand::Add,
        Some("MODIFY") => GroupCommand::Modify,
        Some("DELETE") => GroupCommand::Delete,
        other => return Err(format!("{other:?} is no command of a group_mod")),
    };
    let kind = match words.take("type") {
        None | Some("all") => GroupType::All,
        Some("select") => GroupType::Select,
        Some("indirect") => GroupType::Indirect,
        Some("ff") => GroupType::FastFailover,
        Some(other) => GroupType::Unknown(number(other)? as u8),
    };
    let number = words.group("group_id", 0)?;
    words.finish()?;
    let buckets: Result<Vec<_>> = parts.map(bucket).collect();
    Ok(GroupMod { command, kind, group: number, buckets: List::of(keep(buckets?)) })
}

/// `weight:1,watch_port:2,watch_group:3,actions=output:2`.
fn bucket(text: &str) -> Result<Bucket<'static>> {
    let (head, behind) = cut(text, "actions=");
    let mut bucket = Bucket { actions: actions(behind)?, ..Bucket::of(&[]) };
    for word in head.split([',', ' ']).filter(|word| !word.is_empty()) {
        match word.split_once(':') {
            Some(("weight", text)) => bucket.weight = number(text)? as u16,
            Some(("watch_port", text)) => bucket.watch_port = port(text)?,
            Some(("watch_group", text)) => bucket.watch_group = group(text)?,
            _ => return Err(format!("`{word}` has no meaning in a bucket")),
        }
    }
    Ok(bucket)
}

fn meter_mod(text: &str) -> Result<MeterMod<'static>> {
    let mut parts = text.split("band=");
    let mut words = Words::of(parts.next().unwrap_or_default());
    let command = match words.bare() {
        Some("ADD") => MeterCommand::Add,
        Some("MODIFY") => MeterCommand::Modify,
        Some("DELETE") => MeterCommand::Delete,
        other => return Err(format!("{other:?} is no command of a meter_mod")),
    };
    let named = [("KBPS", 1), ("PKTPS", 2), ("BURST", 4), ("STATS", 8)];
    let bits = words.take("flags").map_or(Ok(0), |text| flags(text, &named))?;
    let meter = words.meter("meter", 0)?;
    words.finish()?;
    let bands: Result<Vec<_>> = parts.map(band).collect();
    let flags = MeterFlags::from_bits_retain(bits as u16);
    Ok(MeterMod { command, flags, meter, bands: List::of(keep(bands?)) })
}

/// `drop, rate=100, burst_size=10`, `dscp_remark:1, rate=100` or `band(7), rate=1`.
fn band(text: &str) -> Result<Band<'static>> {
    let mut words = Words::of(text);
    let name = words.bare().unwrap_or_default();
    let unknown = name.strip_prefix("band(").and_then(|rest| rest.strip_suffix(')'));
    let kind = match (name.split_once(':'), unknown) {
        (_, Some(kind)) => {
            BandType::Unknown { kind: number(kind)? as u16, argument: [0; 4], data: Bytes(&[]) }
        }
        (Some(("dscp_remark", level)), _) => BandType::DscpRemark(number(level)? as u8),
        (Some(("experimenter", id)), _) => {
            BandType::Experimenter { experimenter: number(id)? as u32, data: Bytes(&[]) }
        }
        (None, _) if name == "drop" => BandType::Drop,
        _ => return Err(format!("`{name}` is no band")),
    };
    let band = Band {
        rate: words.number("rate", 0)? as u32,
        burst_size: words.number("burst_size", 0)? as u32,
        kind,
    };
    words.finish()?;
    Ok(band)
}

/// The address is the port's own, unless one is given.
fn port_mod(text: &str, context: Context<'_>) -> Result<PortMod> {
    let named = [
        ("PORT_DOWN", 1),
        ("NO_STP", 2),
        ("NO_RECV", 4),
        ("NO_RECV_STP", 8),
        ("NO_FLOOD", 16),
        ("NO_FWD", 32),
        ("NO_PACKET_IN", 64),
    ];
    let mut words = Words::of(text);
    let port = words.port("port", Port::ANY)?;
    let address = match words.take("addr") {
        Some(text) => MacAddr(mac(text)?),
        None => context.addresses.get(&port.0).copied().unwrap_or_default(),
    };
    let mut bits = |key| words.take(key).map_or(Ok(0), |text| flags(text, &named));
    let (config, mask) = (bits("config")?, bits("mask")?);
    let advertise = words.number("advertise", 0)? as u32;
    words.finish()?;
    Ok(PortMod {
        port,
        address,
        config: PortConfig::from_bits_retain(config as u32),
        mask: PortConfig::from_bits_retain(mask as u32),
        advertise: PortFeatures::from_bits_retain(advertise),
    })
}

fn role(text: &str) -> Result<RoleMessage> {
    let mut words = Words::of(text);
    let role = match words.take("role") {
        Some("nochange") => RoleKind::NoChange,
        Some("equal") => RoleKind::Equal,
        Some("master") => RoleKind::Master,
        Some("slave") => RoleKind::Slave,
        Some(other) => RoleKind::Unknown(number(other)? as u32),
        None => return Err("a role_request needs `role=`".into()),
    };
    let generation_id = words.number("generation_id", 0)?;
    words.finish()?;
    Ok(RoleMessage { role, generation_id })
}

/// `packet_in=0x7/0x1`: the mask for master and equal, then the mask for slaves.
fn async_config(text: &str) -> Result<AsyncConfig> {
    let mut words = Words::of(text);
    let mut both = |key| words.masked(key, 0);
    let (packet_in, port_status, flow_removed) =
        (both("packet_in")?, both("port_status")?, both("flow_removed")?);
    words.finish()?;
    let masks = |side: fn((u64, u64)) -> u64| AsyncMasks {
        packet_in: side(packet_in) as u32,
        port_status: side(port_status) as u32,
        flow_removed: side(flow_removed) as u32,
    };
    Ok(AsyncConfig { master: masks(|both| both.0), slave: masks(|both| both.1) })
}
