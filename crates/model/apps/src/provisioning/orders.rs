//! The list of circuits, for operators.

use bellrock_api::{HostId, Names};
use bellrock_query::{Answer, CircuitRow, CircuitState, QueryError, Request, Rows};

use super::{CircuitState as State, CircuitStatus, Circuits, Endpoint};
use crate::orders::{AppOrders, Asked, host_text};

impl AppOrders for Circuits {
    fn answer(&self, request: &Request, asked: &dyn Asked) -> Option<Result<Answer, QueryError>> {
        let Request::ListCircuits(query) = request else { return None };
        let page = Rows::of(self.list(), query.page);
        Some(Ok(Answer::ListCircuits(page.map(|status| row(asked.names(), status)))))
    }
}

fn row(names: &Names, status: CircuitStatus) -> CircuitRow {
    let (state, why, bare_links) = match status.state {
        State::Up { bare_links } => (CircuitState::Up, None, Some(bare_links)),
        State::Installing => (CircuitState::Installing, None, None),
        State::Down(why) => (CircuitState::Down, Some(why), None),
    };
    let why = match (why, status.difference) {
        (Some(why), Some(difference)) => Some(format!("{why}; {difference}")),
        (why, difference) => why.or(difference),
    };
    let endpoints = status.circuit.endpoints.into_iter();
    CircuitRow {
        name: status.circuit.name,
        endpoints: endpoints.map(|endpoint| endpoint_text(names, endpoint)).collect(),
        state,
        why,
        bare_links,
        path: status.path.into_iter().map(|port| names.port_text(port)).collect(),
    }
}

/// The text of an endpoint, with its name or that of its switch.
fn endpoint_text(names: &Names, endpoint: Endpoint) -> String {
    match endpoint {
        Endpoint::Port(at, None) => names.port_text(at),
        Endpoint::Port(at, Some(vlan)) => format!("{}:{vlan}", names.port_text(at)),
        Endpoint::Host(mac) => host_text(names, HostId::new(mac, None)),
    }
}
