//! Answers about the circuits of the app `provisioning`.

use bellrock_api::Names;
use bellrock_apps::provisioning::{CircuitState as State, CircuitStatus, Circuits};
use bellrock_query::{CircuitRow, CircuitState, Page, Rows};

use super::names::endpoint_text;

pub(super) fn list(circuits: &Circuits, names: &Names, page: Page) -> Rows<CircuitRow> {
    Rows::of(circuits.list(), page).map(|status| row(names, status))
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
