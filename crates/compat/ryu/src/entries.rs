//! What changes switches: flows, groups, meters, ports, and messages of experimenters.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use bellrock_api::MacAddr;
use bellrock_api::openflow::{
    Band, BandType, Bucket, Bytes, Experimenter, FlowCommand, FlowMod, Group, GroupCommand,
    GroupMod, GroupType, List, Match, MeterCommand, MeterFlags, MeterMod, Port, PortConfig,
    PortFeatures, PortMod, ToSwitch, Version,
};
use bellrock_northbound::guest::GuestState;
use bellrock_query::{MessageBytes, MessageOutcome, MessageState, SendMessages, SwitchRef};
use data_encoding::BASE64;
use serde_json::{Map, Value};

use super::Failure;
use super::actions::{self, FlowActions};
use super::body::{Body, Ignored, Object};
use super::groups::{GROUP_TYPES, METER_FLAGS};
use super::numbers::{GROUPS, METERS, TABLES, port_number};
use super::stats::{flow_flags, read_match};
use super::switch::Switch;

/// Packets that the switch does not buffer (`OFP_NO_BUFFER`).
const NO_BUFFER: u32 = 0xffff_ffff;

pub(super) fn router() -> Router<GuestState> {
    Router::new()
        .route("/stats/flowentry/{command}", post(flow_entry))
        .route("/stats/flowentry/clear/{dpid}", delete(clear))
        .route("/stats/groupentry/{command}", post(group_entry))
        .route("/stats/meterentry/{command}", post(meter_entry))
        // The name of the part is that of the path with GET; here it is a command.
        .route("/stats/portdesc/{dpid}", post(port_entry))
        .route("/stats/experimenter/{dpid}", post(experimenter))
        .route("/stats/role", post(role))
}

/// The fields of a body, the command in its path, and the switch.
struct Order<'a> {
    switch: Switch<'a>,
    object: Object<'a>,
    command: &'a str,
}

/// Makes the message of an order.
type Make = fn(&Order<'_>) -> Result<MessageBytes, Failure>;

async fn flow_entry(state: State<GuestState>, Path(command): Path<String>, body: Body) -> Response {
    order(state, body, command, None, flow_mod).await
}

async fn group_entry(
    state: State<GuestState>,
    Path(command): Path<String>,
    body: Body,
) -> Response {
    order(state, body, command, None, group_mod).await
}

async fn meter_entry(
    state: State<GuestState>,
    Path(command): Path<String>,
    body: Body,
) -> Response {
    order(state, body, command, None, meter_mod).await
}

async fn port_entry(state: State<GuestState>, Path(command): Path<String>, body: Body) -> Response {
    order(state, body, command, None, port_mod).await
}

async fn clear(state: State<GuestState>, Path(dpid): Path<String>, body: Body) -> Response {
    order(state, body, String::new(), Some(dpid), delete_all).await
}

async fn experimenter(state: State<GuestState>, Path(dpid): Path<String>, body: Body) -> Response {
    order(state, body, String::new(), Some(dpid), experimenter_message).await
}

async fn role(_: Body) -> Response {
    let text = "the controller decides its role itself; see `bellrock switches`";
    Failure::new(StatusCode::FORBIDDEN, text).into_response()
}

/// Makes a message, sends it, and waits until the switch has carried it out.
async fn order(
    State(state): State<GuestState>,
    Body(body): Body,
    command: String,
    dpid: Option<String>,
    make: Make,
) -> Response {
    let made = state.ask_for_order(move |operator| {
        let made = named_switch(&body, dpid).and_then(|dpid| {
            let switch = Switch::find(operator, &dpid)?;
            let ignored = Ignored::default();
            let object = Object::new(&body, switch.version, &ignored);
            let order = Order { switch, object, command: &command };
            let message = make(&order)?;
            ignored.log();
            Ok((switch.dpid, message))
        });
        Ok(made)
    });
    let (dpid, message) = match made.await {
        Ok(Ok(made)) => made,
        Ok(Err(failure)) => return failure.into_response(),
        Err(problem) => return problem.into_response(),
    };
    let order = SendMessages { switch: SwitchRef::Dpid(dpid), messages: vec![message] };
    match state.order(order).await {
        Ok(sent) => match sent.outcomes.iter().find_map(failure_of) {
            None => StatusCode::OK.into_response(),
            Some(failure) => failure.into_response(),
        },
        Err(problem) => problem.into_response(),
    }
}

/// The datapath id of an order: in its body, or else in its path.
fn named_switch(body: &Map<String, Value>, in_path: Option<String>) -> Result<String, Failure> {
    let in_body = body.get("dpid").map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let missing = || Failure::wrong("dpid", "it is missing; give the number of a switch");
    in_body.or(in_path).ok_or_else(missing)
}

/// Why a message is not carried out.
fn failure_of(outcome: &MessageOutcome) -> Option<Failure> {
    let why = outcome.why.clone().unwrap_or_default();
    match outcome.state {
        MessageState::Confirmed => None,
        MessageState::Refused => {
            Some(Failure::new(StatusCode::BAD_REQUEST, format!("the switch refuses it: {why}")))
        }
        MessageState::NotSent => Some(Failure::new(StatusCode::SERVICE_UNAVAILABLE, why)),
        _ => Some(Failure::new(StatusCode::GATEWAY_TIMEOUT, why)),
    }
}

fn unknown_command(command: &str, known: &str) -> Failure {
    let text = format!("there is no command {command:?}; the commands are {known}");
    Failure::new(StatusCode::NOT_FOUND, text)
}

fn flow_mod(order: &Order<'_>) -> Result<MessageBytes, Failure> {
    let command = match order.command {
        "add" => FlowCommand::Add,
        "modify" => FlowCommand::Modify,
        "modify_strict" => FlowCommand::ModifyStrict,
        "delete" => FlowCommand::Delete,
        "delete_strict" => FlowCommand::DeleteStrict,
        other => {
            return Err(unknown_command(
                other,
                "add, modify, modify_strict, delete and delete_strict",
            ));
        }
    };
    let (object, version) = (order.object, order.switch.version);
    let fields = [
        "dpid",
        "cookie",
        "idle_timeout",
        "hard_timeout",
        "priority",
        "buffer_id",
        "out_port",
        "flags",
        "match",
        "actions",
    ];
    // 1.0 has one table, which scripts name all the same.
    let later: &[&str] = match version.names_tables() {
        true => &["table_id", "cookie_mask", "out_group"],
        false if object.value("table_id").is_none_or(|table| *table == 0) => &["table_id"],
        false => &[],
    };
    object.only(&[&fields[..], later].concat())?;
    let matching = read_match(object)?;
    let actions = FlowActions::read(object)?;
    let priority = if version.has_oxm() { 0 } else { FlowMod::DEFAULT_PRIORITY };
    let buffer: u32 = object.number_or("buffer_id", NO_BUFFER)?;
    let flow = FlowMod {
        command,
        table: object.named_or("table_id", &TABLES, 0)?,
        cookie: object.number_or("cookie", 0)?,
        cookie_mask: object.number_or("cookie_mask", 0)?,
        idle_timeout: object.number_or("idle_timeout", 0)?,
        hard_timeout: object.number_or("hard_timeout", 0)?,
        priority: object.number_or("priority", priority)?,
        buffer_id: Some(buffer).filter(|buffer| *buffer != NO_BUFFER),
        out_port: object.port_or("out_port", Port::ANY)?,
        out_group: object.named_or("out_group", &GROUPS, Group::ANY)?,
        flags: flow_flags(version, object.number_or("flags", 0)?),
        ..FlowMod::add(&matching)
    };
    actions.with(|instructions| {
        order.switch.encode(&ToSwitch::FlowMod(FlowMod { instructions, ..flow }))
    })
}

fn delete_all(order: &Order<'_>) -> Result<MessageBytes, Failure> {
    let all = Match::any();
    let table = if order.switch.version.names_tables() { FlowMod::ALL_TABLES } else { 0 };
    order.switch.encode(&ToSwitch::FlowMod(FlowMod { table, ..FlowMod::delete(&all) }))
}

fn group_mod(order: &Order<'_>) -> Result<MessageBytes, Failure> {
    let command = match order.command {
        "add" => GroupCommand::Add,
        "modify" => GroupCommand::Modify,
        "delete" => GroupCommand::Delete,
        other => return Err(unknown_command(other, "add, modify and delete")),
    };
    let (object, version) = (order.object, order.switch.version);
    if !version.has_groups() {
        return Err(Failure::unsupported("groups"));
    }
    object.only(&["dpid", "type", "group_id", "buckets"])?;
    let kind = if object.has("type") { group_type(object)? } else { GroupType::All };
    let mut buckets = Vec::new();
    for (index, item) in object.list("buckets")?.iter().enumerate() {
        let path = format!("buckets[{index}].");
        let bucket = object.inside(item, &path)?;
        bucket.only(&["weight", "watch_port", "watch_group", "actions"])?;
        let actions = actions::read_all(bucket)?;
        let weight = bucket.number_or("weight", 0)?;
        let watch_port = bucket.port_or("watch_port", Port::ANY)?;
        let watch_group = bucket.named_or("watch_group", &GROUPS, Group::ANY)?;
        buckets.push((weight, watch_port, watch_group, actions));
    }
    let buckets: Vec<Bucket<'_>> = buckets
        .iter()
        .map(|(weight, watch_port, watch_group, actions)| Bucket {
            weight: *weight,
            watch_port: *watch_port,
            watch_group: *watch_group,
            actions: List::of(actions),
        })
        .collect();
    let group = object.named_or("group_id", &GROUPS, 0)?;
    let message = GroupMod { command, kind, group, buckets: List::of(&buckets) };
    order.switch.encode(&ToSwitch::GroupMod(message))
}

fn group_type(object: Object<'_>) -> Result<GroupType, Failure> {
    let name = object.text("type")?;
    let known = GROUP_TYPES.iter().find(|(known, _)| *known == name);
    let wrong = || {
        Failure::wrong(
            "type",
            format!("there is no group type {name:?}; give ALL, SELECT, INDIRECT or FF"),
        )
    };
    known.map(|(_, kind)| *kind).ok_or_else(wrong)
}

fn meter_mod(order: &Order<'_>) -> Result<MessageBytes, Failure> {
    let command = match order.command {
        "add" => MeterCommand::Add,
        "modify" => MeterCommand::Modify,
        "delete" => MeterCommand::Delete,
        other => return Err(unknown_command(other, "add, modify and delete")),
    };
    let (object, version) = (order.object, order.switch.version);
    if !version.has_meters() {
        return Err(Failure::unsupported("meters"));
    }
    object.only(&["dpid", "flags", "meter_id", "bands"])?;
    let bands = object.list("bands")?.iter().enumerate();
    let bands = bands.map(|(index, item)| {
        let path = format!("bands[{index}].");
        band(object.inside(item, &path)?)
    });
    let bands = bands.collect::<Result<Vec<_>, _>>()?;
    let meter = object.named_or("meter_id", &METERS, 0)?;
    let message = MeterMod { command, flags: meter_flags(object)?, meter, bands: List::of(&bands) };
    order.switch.encode(&ToSwitch::MeterMod(message))
}

/// The flags of a meter: one name, or a list of them.
fn meter_flags(object: Object<'_>) -> Result<MeterFlags, Failure> {
    let one = object.value("flags").filter(|value| !value.is_array());
    let names = match one {
        Some(name) => std::slice::from_ref(name),
        None => object.list("flags")?,
    };
    names.iter().try_fold(MeterFlags::empty(), |flags, name| {
        let known = METER_FLAGS.iter().find(|(known, _)| name.as_str() == Some(known));
        let wrong = || {
            Failure::wrong(
                "flags",
                format!("there is no flag {name}; give KBPS, PKTPS, BURST or STATS"),
            )
        };
        let (_, bit) = known.ok_or_else(wrong)?;
        Ok(flags | MeterFlags::from_bits_retain(*bit as u16))
    })
}

fn band(object: Object<'_>) -> Result<Band<'static>, Failure> {
    let name = object.text("type")?;
    let (kind, more) = match name {
        "DROP" => (BandType::Drop, None),
        "DSCP_REMARK" => {
            (BandType::DscpRemark(object.number_or("prec_level", 0)?), Some("prec_level"))
        }
        "EXPERIMENTER" => {
            let experimenter = object.number_or("experimenter", 0)?;
            (BandType::Experimenter { experimenter, data: Bytes(&[]) }, Some("experimenter"))
        }
        _ => {
            let why =
                format!("there is no band type {name:?}; give DROP, DSCP_REMARK or EXPERIMENTER");
            return Err(Failure::wrong(&object.place("type"), why));
        }
    };
    let fields: Vec<&str> = ["type", "rate", "burst_size"].into_iter().chain(more).collect();
    object.only(&fields)?;
    Ok(Band {
        rate: object.number_or("rate", 0)?,
        burst_size: object.number_or("burst_size", 0)?,
        kind,
    })
}

fn port_mod(order: &Order<'_>) -> Result<MessageBytes, Failure> {
    let (object, version) = (order.object, order.switch.version);
    let port = object.port("port_no")?;
    let known = order.switch.ports(|ports| ports.iter().find(|known| known.port == port))?;
    let known = known.ok_or_else(|| {
        let text = format!("the switch has no port {}", port_number(version, port));
        Failure::new(StatusCode::NOT_FOUND, text)
    })?;
    if order.command != "modify" {
        return Err(unknown_command(order.command, "modify"));
    }
    object.only(&["dpid", "port_no", "hw_addr", "config", "mask", "advertise"])?;
    let address = match object.has("hw_addr") {
        false => known.address,
        true => {
            let text = object.text("hw_addr")?;
            let parsed: Result<MacAddr, _> = text.parse();
            parsed.map_err(|_| {
                Failure::wrong("hw_addr", format!("{text:?} is no Ethernet address"))
            })?
        }
    };
    let advertise = match object.has("advertise") {
        false => known.advertised,
        true => advertised(version, object.number("advertise")?),
    };
    let (config, mask) = (object.number_or("config", 0)?, object.number_or("mask", 0)?);
    let message = PortMod {
        port,
        address,
        config: PortConfig::from_bits_retain(config),
        mask: PortConfig::from_bits_retain(mask),
        advertise,
    };
    order.switch.encode(&ToSwitch::PortMod(message))
}

/// Features of a port from the bits of a version: in 1.0, those of the medium are four places
/// lower.
fn advertised(version: Version, bits: u32) -> PortFeatures {
    const RATES: u32 = 0x7f;
    let bits = if version.has_oxm() { bits } else { bits & RATES | (bits & !RATES) << 4 };
    PortFeatures::from_bits_retain(bits)
}

fn experimenter_message(order: &Order<'_>) -> Result<MessageBytes, Failure> {
    let object = order.object;
    if !order.switch.version.has_oxm() {
        return Err(Failure::unsupported("messages of experimenters in this interface"));
    }
    object.only(&["dpid", "experimenter", "exp_type", "data_type", "data"])?;
    let text = if object.has("data") { object.text("data")? } else { "" };
    let form = if object.has("data_type") { object.text("data_type")? } else { "ascii" };
    let data = match form {
        "ascii" if text.is_ascii() => text.as_bytes().to_vec(),
        "ascii" => return Err(Failure::wrong("data", "it is not all ASCII; give base64")),
        "base64" => {
            let decoded = BASE64.decode(text.as_bytes());
            decoded.map_err(|error| Failure::wrong("data", format!("it is no base64: {error}")))?
        }
        _ => return Err(Failure::wrong("data_type", "give ascii or base64")),
    };
    let kind: u32 = object.number_or("exp_type", 0)?;
    let message = Experimenter {
        experimenter: object.number_or("experimenter", 0)?,
        kind: Some(kind),
        data: Bytes(&data),
    };
    order.switch.encode(&ToSwitch::Experimenter(message))
}
