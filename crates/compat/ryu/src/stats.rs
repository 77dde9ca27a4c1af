//! What switches report: `/stats/...` with GET, and with POST for a part of the flows.

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bellrock_api::openflow::{
    Element, FlowFlags, FlowMod, FlowStats, FlowStatsRequest, FromSwitch, Group, Match, Out, Port,
    PortDesc, PortStats, QueueProperty, QueueStats, QueueStatsRequest, ReplyBody, RequestBody,
    RoleKind, RoleMessage, ToSwitch, Version,
};
use bellrock_northbound::guest::{GuestState, Problem, all_pages};
use bellrock_query::{ListSwitches, SwitchRow};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{Body, Ignored, Object};
use super::groups::{
    group, group_description, group_features, meter, meter_config, meter_features,
};
use super::numbers::{
    ALL_QUEUES, GROUPS, PORTS, QUEUES, TABLES, integer_of, port_number, port_of, ports,
};
use super::switch::Switch;
use super::tables::{table, table_features};
use super::{Failure, actions, matching};

/// Maximum length of a flow in a reply, in bytes: that of a message.
const MAX_FLOW_BYTES: usize = bellrock_api::openflow::MAX_MESSAGE_LEN;

pub(super) fn router() -> Router<GuestState> {
    Router::new()
        .route("/stats/switches", get(switches))
        .route("/stats/desc/{dpid}", reading(description))
        .route("/stats/flow/{dpid}", filtered(flows))
        .route("/stats/flowdesc/{dpid}", filtered(flows))
        .route("/stats/aggregateflow/{dpid}", filtered(flow_sum))
        .route("/stats/table/{dpid}", reading(table))
        .route("/stats/tablefeatures/{dpid}", reading(table_features))
        .route("/stats/port/{dpid}", reading(port))
        .route("/stats/port/{dpid}/{number}", reading(port))
        .route("/stats/queue/{dpid}", reading(queue))
        .route("/stats/queue/{dpid}/{number}", reading(queue))
        .route("/stats/queue/{dpid}/{number}/{queue}", reading(queue))
        .route("/stats/queueconfig/{dpid}", reading(queue_config))
        .route("/stats/queueconfig/{dpid}/{number}", reading(queue_config))
        .route("/stats/queuedesc/{dpid}", reading(later_version))
        .route("/stats/queuedesc/{dpid}/{number}", reading(later_version))
        .route("/stats/queuedesc/{dpid}/{number}/{queue}", reading(later_version))
        .route("/stats/meterfeatures/{dpid}", reading(meter_features))
        .route("/stats/meterconfig/{dpid}", reading(meter_config))
        .route("/stats/meterconfig/{dpid}/{number}", reading(meter_config))
        .route("/stats/meterdesc/{dpid}", reading(later_version))
        .route("/stats/meterdesc/{dpid}/{number}", reading(later_version))
        .route("/stats/meter/{dpid}", reading(meter))
        .route("/stats/meter/{dpid}/{number}", reading(meter))
        .route("/stats/groupfeatures/{dpid}", reading(group_features))
        .route("/stats/groupdesc/{dpid}", reading(group_description))
        .route("/stats/groupdesc/{dpid}/{number}", reading(group_description))
        .route("/stats/group/{dpid}", reading(group))
        .route("/stats/group/{dpid}/{number}", reading(group))
        .route("/stats/portdesc/{dpid}", reading(port_description))
        .route("/stats/portdesc/{dpid}/{number}", reading(port_description))
        .route("/stats/role/{dpid}", reading(role))
}

/// What a request asks for.
pub(super) struct Asked {
    parts: Parts,
    /// The body: which flows.
    filter: Map<String, Value>,
}

/// The parts of a path.
#[derive(Deserialize)]
struct Parts {
    dpid: String,
    /// A port, a group or a meter.
    #[serde(default)]
    number: Option<String>,
    #[serde(default)]
    queue: Option<String>,
}

impl Asked {
    /// The number in the path; `None` for all.
    pub(super) fn number(&self, what: &str) -> Result<Option<u32>, Failure> {
        number_of(self.parts.number.as_deref(), what)
    }

    /// The port in the path; `None` for all.
    fn port(&self, version: Version) -> Result<Option<Port>, Failure> {
        let Some(number) = self.number("port")? else { return Ok(None) };
        let missing = || Failure::wrong("port", format!("there is no port {number}"));
        port_of(version, number.into()).map(Some).ok_or_else(missing)
    }
}

fn number_of(text: Option<&str>, what: &str) -> Result<Option<u32>, Failure> {
    let Some(text) = text.filter(|text| *text != "ALL") else { return Ok(None) };
    let number = integer_of(text).and_then(|number| u32::try_from(number).ok());
    let wrong = || Failure::wrong(what, format!("{text:?} is no number here; give one, or ALL"));
    number.map(Some).ok_or_else(wrong)
}

/// Makes the answer of a path.
type Show = fn(&Switch<'_>, &Asked) -> Result<Value, Failure>;

fn reading(show: Show) -> MethodRouter<GuestState> {
    get(async move |State(state): State<GuestState>, Path(parts): Path<Parts>| {
        answer(&state, Asked { parts, filter: Map::new() }, show).await
    })
}

fn filtered(show: Show) -> MethodRouter<GuestState> {
    let ask = async move |State(state): State<GuestState>,
                          Path(parts): Path<Parts>,
                          Body(filter): Body| {
        answer(&state, Asked { parts, filter }, show).await
    };
    get(ask).post(ask)
}

/// Asks the switch, and answers with an object that has its number as the only key.
async fn answer(state: &GuestState, asked: Asked, show: Show) -> Response {
    let shown = state.ask_switch(move |operator| {
        let shown = Switch::find(operator, &asked.parts.dpid)
            .and_then(|switch| Ok((switch.dpid, or_nothing(show(&switch, &asked))?)));
        Ok(shown.map(|(dpid, value)| json!({dpid.0.to_string(): value})))
    });
    respond(shown.await)
}

/// What a switch does not have is nothing.
fn or_nothing(shown: Result<Value, Failure>) -> Result<Value, Failure> {
    match shown {
        Err(failure) if failure.is_refusal => Ok(json!([])),
        shown => shown,
    }
}

/// A response in Ryu's form.
pub(super) fn respond(shown: Result<Result<Value, Failure>, Problem>) -> Response {
    match shown {
        Ok(Ok(value)) => Json(value).into_response(),
        Ok(Err(failure)) => failure.into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn switches(State(state): State<GuestState>) -> Response {
    let shown = state.ask(|operator| {
        let rows = all_pages(|page| operator.ask(ListSwitches { switch: None, page }))?;
        let up = rows.into_iter().filter(SwitchRow::is_reachable).map(|row| row.dpid.0);
        Ok(Ok(up.collect()))
    });
    respond(shown.await)
}

fn description(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    switch.multipart(RequestBody::Desc, |reply| match reply {
        ReplyBody::Desc(desc) => Some(json!({
            "mfr_desc": desc.manufacturer().to_string(),
            "hw_desc": desc.hardware().to_string(),
            "sw_desc": desc.software().to_string(),
            "serial_num": desc.serial_number().to_string(),
            "dp_desc": desc.datapath().to_string(),
        })),
        _ => None,
    })
}

fn later_version(_: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    Err(Failure::unsupported("such descriptions"))
}

/// Reads which flows are wanted, and passes the request to `then`, with the priority.
fn with_filter<T>(
    switch: &Switch<'_>,
    asked: &Asked,
    then: impl FnOnce(FlowStatsRequest<'_>, Option<u16>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let ignored = Ignored::default();
    let object = Object::new(&asked.filter, switch.version, &ignored);
    let fields = ["dpid", "table_id", "out_port", "match", "priority"];
    let later = ["out_group", "cookie", "cookie_mask", "flags"];
    match switch.version.selects_by_cookie() {
        true => object.only(&[&fields[..], &later[..]].concat())?,
        false => object.only(&fields)?,
    }
    ignored.log();
    let matching = read_match(object)?;
    let request = FlowStatsRequest {
        table: object.named_or("table_id", &TABLES, FlowMod::ALL_TABLES)?,
        out_port: object.port_or("out_port", Port::ANY)?,
        out_group: object.named_or("out_group", &GROUPS, Group::ANY)?,
        cookie: object.number_or("cookie", 0)?,
        cookie_mask: object.number_or("cookie_mask", 0)?,
        matching: (&matching).into(),
    };
    let priority = object.has("priority").then(|| object.number("priority")).transpose()?;
    then(request, priority)
}

/// The match of a body; without one, it covers all packets.
pub(super) fn read_match(object: Object<'_>) -> Result<Match, Failure> {
    match object.value("match") {
        Some(value) => matching::read(object.inside(value, "match.")?),
        None => Ok(Match::any()),
    }
}

fn flows(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    let version = switch.version;
    with_filter(switch, asked, |request, priority| {
        switch.multipart(RequestBody::Flow(request), |reply| match reply {
            ReplyBody::Flow(flows) => {
                let flows = flows.iter();
                let wanted =
                    flows.filter(|flow| priority.is_none_or(|wanted| wanted == flow.priority));
                Some(wanted.map(|flow| show_flow(version, &flow)).collect())
            }
            _ => None,
        })
    })
}

fn show_flow(version: Version, flow: &FlowStats<'_>) -> Value {
    let mut shown = json!({
        "table_id": TABLES.show(flow.table),
        "priority": flow.priority,
        "cookie": flow.cookie,
        "idle_timeout": flow.idle_timeout,
        "hard_timeout": flow.hard_timeout,
        "packet_count": flow.packet_count,
        "byte_count": flow.byte_count,
        "duration_sec": flow.duration_sec,
        "duration_nsec": flow.duration_nsec,
        "match": matching::show(version, &flow.matching.to_match()),
        "actions": actions::show_all(version, &flow.instructions),
    });
    if version.has_oxm()
        && let Some(shown) = shown.as_object_mut()
    {
        let mut out = Out::with_capacity(MAX_FLOW_BYTES);
        let length = flow.encode(version, &mut out).map_or(0, |()| out.len());
        shown.insert("length".to_owned(), length.into());
        shown.insert("flags".to_owned(), flow.flags.bits().into());
    }
    shown
}

fn flow_sum(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    with_filter(switch, asked, |request, _| {
        switch.multipart(RequestBody::Aggregate(request), |reply| match reply {
            ReplyBody::Aggregate(sum) => Some(json!([{
                "packet_count": sum.packet_count,
                "byte_count": sum.byte_count,
                "flow_count": sum.flow_count,
            }])),
            _ => None,
        })
    })
}

fn port(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    let port = asked.port(switch.version)?.unwrap_or(Port::ANY);
    let request = RequestBody::PortStats(port);
    switch.multipart(request, |reply| match reply {
        ReplyBody::PortStats(ports) => {
            Some(ports.iter().map(|port| show_port(switch.version, &port)).collect())
        }
        _ => None,
    })
}

fn show_port(version: Version, port: &PortStats) -> Value {
    let counters = &port.counters;
    let mut shown = json!({
        "port_no": ports(version).show(port_number(version, port.port)),
        "rx_packets": counters.rx_packets,
        "tx_packets": counters.tx_packets,
        "rx_bytes": counters.rx_bytes,
        "tx_bytes": counters.tx_bytes,
        "rx_dropped": counters.rx_dropped,
        "tx_dropped": counters.tx_dropped,
        "rx_errors": counters.rx_errors,
        "tx_errors": counters.tx_errors,
        "rx_frame_err": counters.rx_frame_err,
        "rx_over_err": counters.rx_over_err,
        "rx_crc_err": counters.rx_crc_err,
        "collisions": counters.collisions,
    });
    if version.has_oxm()
        && let Some(shown) = shown.as_object_mut()
    {
        shown.insert("duration_sec".to_owned(), port.duration_sec.into());
        shown.insert("duration_nsec".to_owned(), port.duration_nsec.into());
    }
    shown
}

fn port_description(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    let version = switch.version;
    switch.ports(|ports| ports.iter().map(|port| show_description(version, &port)).collect())
}

fn show_description(version: Version, port: &PortDesc) -> Value {
    let features = |bits: u32| if version.has_oxm() { bits } else { features_v10(bits) };
    let mut shown = json!({
        "port_no": ports(version).show(port_number(version, port.port)),
        "hw_addr": port.address.to_string(),
        "name": port.name.to_string(),
        "config": port.config.bits(),
        "state": port.state.bits(),
        "curr": features(port.current.bits()),
        "advertised": features(port.advertised.bits()),
        "supported": features(port.supported.bits()),
        "peer": features(port.peer.bits()),
    });
    if version.has_oxm()
        && let Some(shown) = shown.as_object_mut()
    {
        shown.insert("curr_speed".to_owned(), port.current_speed.into());
        shown.insert("max_speed".to_owned(), port.max_speed.into());
    }
    shown
}

/// Features of a port in the bits of 1.0: those of the medium are four places lower (1.0 §5.2.1).
fn features_v10(bits: u32) -> u32 {
    const RATES: u32 = 0x7f;
    bits & RATES | (bits >> 4) & !RATES
}

fn queue(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    let version = switch.version;
    let port = asked.port(version)?;
    // 1.0 asks for all ports by another number.
    let all = if version.has_oxm() { Port::ANY } else { Port::ALL };
    let queue = number_of(asked.parts.queue.as_deref(), "queue")?.unwrap_or(ALL_QUEUES);
    let request = RequestBody::Queue(QueueStatsRequest { port: port.unwrap_or(all), queue });
    switch.multipart(request, |reply| match reply {
        ReplyBody::Queue(queues) => {
            Some(queues.iter().map(|queue| show_queue(version, &queue)).collect())
        }
        _ => None,
    })
}

fn show_queue(version: Version, queue: &QueueStats) -> Value {
    let mut shown = json!({
        "port_no": port_number(version, queue.port),
        "queue_id": queue.queue,
        "tx_bytes": queue.tx_bytes,
        "tx_errors": queue.tx_errors,
        "tx_packets": queue.tx_packets,
    });
    if version.has_oxm()
        && let Some(shown) = shown.as_object_mut()
    {
        shown.insert("duration_sec".to_owned(), queue.duration_sec.into());
        shown.insert("duration_nsec".to_owned(), queue.duration_nsec.into());
    }
    shown
}

fn queue_config(switch: &Switch<'_>, asked: &Asked) -> Result<Value, Failure> {
    if !switch.version.has_oxm() {
        return Err(Failure::unsupported("queue configuration in this interface"));
    }
    let port = asked.port(switch.version)?.unwrap_or(Port::ANY);
    let request = ToSwitch::QueueGetConfigRequest(port);
    switch.message(&request, |reply| {
        let FromSwitch::QueueGetConfigReply(config) = reply else { return None };
        let queues: Vec<Value> = config
            .queues
            .iter()
            .map(|queue| {
                let properties: Vec<Value> =
                    queue.properties.iter().map(|it| show_property(&it)).collect();
                json!({
                    "properties": properties,
                    "port": PORTS.show(queue.port.0),
                    "queue_id": QUEUES.show(queue.queue),
                })
            })
            .collect();
        Some(json!([{"queues": queues, "port": PORTS.show(config.port.0)}]))
    })
}

fn show_property(property: &QueueProperty<'_>) -> Value {
    match property {
        QueueProperty::MinRate(rate) => json!({"property": "MIN_RATE", "rate": rate}),
        QueueProperty::MaxRate(rate) => json!({"property": "MAX_RATE", "rate": rate}),
        QueueProperty::Experimenter { experimenter, data } => {
            json!({"property": "EXPERIMENTER", "experimenter": experimenter, "data": data.0})
        }
        QueueProperty::Unknown { .. } => json!({"property": "UNKNOWN"}),
    }
}

fn role(switch: &Switch<'_>, _: &Asked) -> Result<Value, Failure> {
    let asked = RoleMessage { role: RoleKind::NoChange, generation_id: 0 };
    switch.message(&ToSwitch::RoleRequest(asked), |reply| {
        let FromSwitch::RoleReply(reply) = reply else { return None };
        let name = match reply.role {
            RoleKind::NoChange => "NOCHANGE".into(),
            RoleKind::Equal => "EQUAL".into(),
            RoleKind::Master => "MASTER".into(),
            RoleKind::Slave => "SLAVE".into(),
            RoleKind::Unknown(number) => Value::from(number),
        };
        Some(json!([{"generation_id": reply.generation_id, "role": name}]))
    })
}

/// The flags of a flow in the bits of its version. 1.0 has `OFPFF_EMERG` where 1.3 has another
/// flag.
pub(super) fn flow_flags(version: Version, bits: u16) -> FlowFlags {
    const EMERG_V10: u32 = 1 << 2;
    let bits = u32::from(bits);
    FlowFlags::from_bits_retain(match version.has_oxm() {
        true => bits,
        false if bits & EMERG_V10 != 0 => bits & !EMERG_V10 | FlowFlags::EMERG.bits(),
        false => bits,
    })
}
