//! Orders of operators, and the list of reservations.

use std::time::Duration;

use bellrock_api::{Host, Names, Network};
use bellrock_query::{
    Answer, ErrorKind, MAX_RESERVE_WAIT_MS, QueryError, Release, Request, ReservationRow,
    ReservationState, Reserve, Rows, read_named,
};

use super::{
    HostName, Kbps, NotOneHost, NotReleased, NotReserved, Reservation, ReservationRequest,
    Reservations,
};
use crate::orders::{AppOrders, Asked, host_text};

impl AppOrders for Reservations {
    fn answer(&self, request: &Request, asked: &dyn Asked) -> Option<Result<Answer, QueryError>> {
        Some(match request {
            Request::Reserve(order) => reserve(self, order, asked).map(Answer::Reserve),
            Request::Release(order) => release(self, order, asked).map(Answer::Release),
            Request::ListReservations(query) => {
                let page = Rows::of(self.list(), query.page);
                Ok(Answer::ListReservations(page.map(|it| row(asked.names(), &it))))
            }
            _ => return None,
        })
    }
}

/// Reserves bandwidth.
///
/// # Errors
/// A value of the order is not possible, or nothing was reserved.
fn reserve(
    reservations: &Reservations,
    order: &Reserve,
    asked: &dyn Asked,
) -> Result<ReservationRow, QueryError> {
    let host =
        |field: &str, text: &str| read_named(asked.names(), field, text, str::parse::<HostName>);
    if order.wait_ms > MAX_RESERVE_WAIT_MS {
        let why = format!("give a time of at most {MAX_RESERVE_WAIT_MS} ms");
        return Err(QueryError::invalid("wait_ms", why));
    }
    // A meter's rate has 32 bits (1.3.5 §A.3.4.5).
    if order.rate_kbps == 0 || order.rate_kbps > u64::from(u32::MAX) {
        let why = format!("give a rate from 1 to {} kbit/s", u32::MAX);
        return Err(QueryError::invalid("rate_kbps", why));
    }
    let request = ReservationRequest {
        from: host("from", &order.from)?,
        to: host("to", &order.to)?,
        rate: Kbps(order.rate_kbps),
        queue: order.queue.clone(),
        wait: Duration::from_millis(order.wait_ms),
    };
    let reserved = asked
        .carried_out(reservations.reserve(request.clone()))?
        .map_err(|error| not_reserved(asked.network(), &request, &error))?;
    let Reservation { id, from, to, rate, .. } = &reserved;
    asked.log(format_args!("an operator reserved {rate} from {from} to {to}: reservation {id}"));
    Ok(row(asked.names(), &reserved))
}

fn not_reserved(
    network: &Network,
    request: &ReservationRequest,
    error: &NotReserved,
) -> QueryError {
    let text = error.to_string();
    match error {
        NotReserved::Host(host) => {
            let (kind, name, text) = match host {
                NotOneHost::Unknown(name) => {
                    (ErrorKind::NotFound, name, absent(network, *name).unwrap_or(text))
                }
                NotOneHost::Ambiguous { name, .. } => (ErrorKind::Refused, name, text),
            };
            let field = if *name == request.from { "from" } else { "to" };
            QueryError::new(kind, text).at(field)
        }
        NotReserved::UnknownQueue { .. } => QueryError::not_found("queue", text),
        NotReserved::NotRunning => QueryError::new(ErrorKind::AppNotRunning, text),
        NotReserved::NotStored(_) => QueryError::new(ErrorKind::Timeout, text),
        _ => QueryError::new(ErrorKind::Refused, text),
    }
}

/// Explains why this host is not found, if more is known than that it was not seen.
fn absent(network: &Network, name: HostName) -> Option<String> {
    let elsewhere = |is_named: &dyn Fn(&Host) -> bool, vlan: u16| {
        let hosts = network.hosts().load();
        let found: Vec<String> = hosts
            .iter()
            .filter(|host| is_named(host))
            .map(|host| {
                host.id.vlan.map_or_else(|| "no VLAN".to_owned(), |vlan| format!("VLAN {vlan}"))
            })
            .collect();
        let places = found.join(" and ");
        (!found.is_empty())
            .then(|| format!("no host {name} has been seen in VLAN {vlan}, but in {places}"))
    };
    match name {
        HostName::At(at) if network.switch(at.dpid).is_none() => Some(format!(
            "switch {} is not connected; `bellrock switches` lists those that are, with their datapath ids in \
             hexadecimal",
            at.dpid
        )),
        HostName::At(at) => network
            .topology()
            .load()
            .link(at)
            .map(|link| format!("{at} leads to the switch at {}, and not to a host", link.to)),
        HostName::Mac(mac, Some(vlan)) => elsewhere(&|host| host.id.mac == mac, vlan),
        HostName::Ip(ip, Some(vlan)) => elsewhere(&|host| host.addresses.contains(&ip), vlan),
        _ => None,
    }
}

/// Releases a reservation, and returns it as it was.
///
/// # Errors
/// There is no such reservation, or some of its flows may remain.
fn release(
    reservations: &Reservations,
    order: &Release,
    asked: &dyn Asked,
) -> Result<ReservationRow, QueryError> {
    let id = order.id;
    let unknown = || QueryError::not_found("id", NotReleased::Unknown(id).to_string());
    let reservation = reservations.list().into_iter().find(|it| it.id == id).ok_or_else(unknown)?;
    asked.carried_out(reservations.release(id))?.map_err(|error| {
        let kind = match &error {
            NotReleased::Unknown(_) => ErrorKind::NotFound,
            NotReleased::NotStored(_) => ErrorKind::Timeout,
            _ => ErrorKind::Refused,
        };
        QueryError::new(kind, error.to_string()).at("id")
    })?;
    asked.log(format_args!("an operator released reservation {id}"));
    Ok(row(asked.names(), &reservation))
}

fn row(names: &Names, reservation: &Reservation) -> ReservationRow {
    let (state, why, path) = match &reservation.state {
        super::ReservationState::Pending => (ReservationState::Pending, None, Vec::new()),
        super::ReservationState::Installed(ports) => {
            let path = ports.iter().map(|port| names.port_text(*port)).collect();
            (ReservationState::Installed, None, path)
        }
        super::ReservationState::Unknown(why) => {
            (ReservationState::Unknown, Some(why.clone()), Vec::new())
        }
        super::ReservationState::Lost(why) => {
            (ReservationState::Lost, Some(why.clone()), Vec::new())
        }
    };
    ReservationRow {
        id: reservation.id,
        from: host_text(names, reservation.from),
        to: host_text(names, reservation.to),
        rate_kbps: reservation.rate.0,
        queue: reservation.queue.clone(),
        state,
        why,
        path,
    }
}
