//! Answers about the circuits of the app `provisioning`.

use bellrock_apps::provisioning::{CircuitState as State, CircuitStatus, Circuits};
use bellrock_query::{CircuitRow, CircuitState, Page, Rows};

pub(super) fn list(circuits: &Circuits, page: Page) -> Rows<CircuitRow> {
    Rows::of(circuits.list(), page).map(row)
}

fn row(status: CircuitStatus) -> CircuitRow {
    let (state, why, bare_links) = match status.state {
        State::Up { bare_links } => (CircuitState::Up, None, Some(bare_links)),
        State::Installing => (CircuitState::Installing, None, None),
        State::Down(why) => (CircuitState::Down, Some(why), None),
    };
    CircuitRow {
        name: status.circuit.name,
        endpoints: status.circuit.endpoints.iter().map(ToString::to_string).collect(),
        state,
        why,
        bare_links,
    }
}
