//! The topology: `/v1.0/topology/...`.

use std::collections::HashMap;
use std::net::IpAddr;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bellrock_api::{Dpid, Port};
use bellrock_northbound::guest::{GuestState, all_pages};
use bellrock_query::{
    HostRow, LinkRow, ListHosts, ListLinks, ListSwitches, Operator, PortRow, QueryError, SwitchRow,
};
use serde_json::{Value, json};

use super::Failure;
use super::stats::respond;

/// Number of hexadecimal digits of a datapath id in a path.
const DPID_DIGITS: usize = 16;

pub(super) fn router() -> Router<GuestState> {
    Router::new()
        .route("/v1.0/topology/switches", get(async |state| answer(state, None, switches).await))
        .route(
            "/v1.0/topology/switches/{dpid}",
            get(async |state, Path(dpid)| answer(state, Some(dpid), switches).await),
        )
        .route("/v1.0/topology/links", get(async |state| answer(state, None, links).await))
        .route(
            "/v1.0/topology/links/{dpid}",
            get(async |state, Path(dpid)| answer(state, Some(dpid), links).await),
        )
        .route("/v1.0/topology/hosts", get(async |state| answer(state, None, hosts).await))
        .route(
            "/v1.0/topology/hosts/{dpid}",
            get(async |state, Path(dpid)| answer(state, Some(dpid), hosts).await),
        )
}

/// Makes the answer of a path from what is known of the network, for all switches or one.
type Show = fn(&dyn Operator, &Ports, Option<Dpid>) -> Result<Vec<Value>, QueryError>;

async fn answer(State(state): State<GuestState>, dpid: Option<String>, show: Show) -> Response {
    let dpid = match dpid.map(|text| read(&text)).transpose() {
        Ok(dpid) => dpid,
        Err(failure) => return failure.into_response(),
    };
    let shown = state.ask(move |operator| {
        let ports = Ports::ask(operator)?;
        Ok(Ok(Value::Array(show(operator, &ports, dpid)?)))
    });
    respond(shown.await)
}

fn read(text: &str) -> Result<Dpid, Failure> {
    let number = u64::from_str_radix(text, 16).ok();
    let is_whole = text.len() == DPID_DIGITS && text.bytes().all(|it| it.is_ascii_hexdigit());
    let wrong = || {
        let text = format!("{text:?} is no datapath id; give {DPID_DIGITS} hexadecimal digits");
        Failure::new(StatusCode::NOT_FOUND, text)
    };
    number.filter(|_| is_whole).map(Dpid).ok_or_else(wrong)
}

/// The switches that answer requests, with their ports.
struct Ports {
    switches: Vec<SwitchRow>,
    places: HashMap<Dpid, usize>,
}

impl Ports {
    fn ask(operator: &dyn Operator) -> Result<Self, QueryError> {
        let rows = all_pages(|page| operator.ask(ListSwitches { switch: None, page }))?;
        let switches: Vec<_> = rows.into_iter().filter(SwitchRow::is_reachable).collect();
        let places = switches.iter().enumerate().map(|(place, row)| (row.dpid, place));
        Ok(Ports { places: places.collect(), switches })
    }

    /// A port in Ryu's form. One that the switch has removed meanwhile has no name.
    fn show(&self, dpid: Dpid, port: Port) -> Value {
        let switch = self.places.get(&dpid).and_then(|place| self.switches.get(*place));
        let row = switch.and_then(|switch| switch.ports.iter().find(|row| row.port == port));
        let number = format!("{:08x}", port.0);
        match row {
            Some(PortRow { name, mac, .. }) => {
                json!({"dpid": show_dpid(dpid), "port_no": number, "hw_addr": mac.to_string(), "name": name})
            }
            None => json!({"dpid": show_dpid(dpid), "port_no": number, "hw_addr": "", "name": ""}),
        }
    }
}

fn show_dpid(dpid: Dpid) -> String {
    format!("{:016x}", dpid.0)
}

fn switches(_: &dyn Operator, ports: &Ports, of: Option<Dpid>) -> Result<Vec<Value>, QueryError> {
    let wanted = ports.switches.iter().filter(|row| of.is_none_or(|dpid| dpid == row.dpid));
    let show = |row: &SwitchRow| {
        let real = row.ports.iter().filter(|port| port.port < Port::MAX);
        let shown: Vec<Value> = real.map(|port| ports.show(row.dpid, port.port)).collect();
        json!({"dpid": show_dpid(row.dpid), "ports": shown})
    };
    Ok(wanted.map(show).collect())
}

fn links(
    operator: &dyn Operator,
    ports: &Ports,
    of: Option<Dpid>,
) -> Result<Vec<Value>, QueryError> {
    let rows = all_pages(|page| operator.ask(ListLinks { page }))?;
    let wanted = rows.iter().filter(|row| of.is_none_or(|dpid| dpid == row.from_dpid));
    let show = |row: &LinkRow| {
        json!({
            "src": ports.show(row.from_dpid, row.from_port),
            "dst": ports.show(row.to_dpid, row.to_port),
        })
    };
    Ok(wanted.map(show).collect())
}

fn hosts(
    operator: &dyn Operator,
    ports: &Ports,
    of: Option<Dpid>,
) -> Result<Vec<Value>, QueryError> {
    let switch = of.map(Into::into);
    let rows = all_pages(|page| operator.ask(ListHosts { switch: switch.clone(), page }))?;
    let show = |row: &HostRow| {
        let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) =
            row.addresses.iter().partition(|ip| ip.is_ipv4());
        json!({"mac": row.mac.to_string(), "ipv4": v4, "ipv6": v6, "port": ports.show(row.dpid, row.port)})
    };
    Ok(rows.iter().map(show).collect())
}
