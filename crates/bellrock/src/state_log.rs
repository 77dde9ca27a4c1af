//! Logs when circuits and reservations go down and come up again.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::Network;
use bellrock_apps::bandwidth::{Reservation, ReservationState, Reservations};
use bellrock_apps::provisioning::{CircuitState, CircuitStatus, Circuits};
use tracing::{info, warn};

use crate::operator::Handles;

/// Time between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// Time of the first check. Before links are found everything is down, which is not worth a line.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// State of a circuit or of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Up,
    /// Neither up nor down yet.
    UnderWay,
    /// Down, with the reason.
    Down(String),
}

/// Logs changes between up and down from now on.
pub(crate) fn log_states(network: &Network, handles: &Handles) {
    if handles.circuits.is_some() || handles.reservations.is_some() {
        let log = log(network.clone(), handles.clone());
        network.spawn("log of circuits and reservations", log);
    }
}

async fn log(network: Network, handles: Handles) {
    let mut before = BTreeMap::new();
    network.sleep(FIRST_LOOK).await;
    loop {
        let circuits = handles.circuits.iter().flat_map(circuits);
        let now = circuits.chain(handles.reservations.iter().flat_map(reservations)).collect();
        for (name, state) in changes(&mut before, now) {
            match state {
                State::Up => info!("{name} is up"),
                State::Down(why) => warn!("{name} is down: {why}"),
                State::UnderWay => {}
            }
        }
        network.sleep(LOOK).await;
    }
}

fn circuits(circuits: &Circuits) -> Vec<(String, State)> {
    let state = |status: CircuitStatus| {
        let state = match status.state {
            CircuitState::Up { .. } => State::Up,
            CircuitState::Installing => State::UnderWay,
            CircuitState::Down(why) => State::Down(why),
        };
        (format!("circuit {}", status.circuit.name), state)
    };
    circuits.list().into_iter().map(state).collect()
}

fn reservations(reservations: &Reservations) -> Vec<(String, State)> {
    let state = |reservation: Reservation| {
        let Reservation { id, from, to, rate, .. } = &reservation;
        let name = format!("reservation {id}, {rate} from {from} to {to},");
        let state = match reservation.state {
            ReservationState::Pending | ReservationState::Unknown(_) => State::UnderWay,
            ReservationState::Installed(_) => State::Up,
            ReservationState::Lost(why) => State::Down(why),
        };
        (name, state)
    };
    reservations.list().into_iter().map(state).collect()
}

/// Returns the states that went up or down since `before`, which becomes `now`. `UnderWay` counts
/// as no change.
fn changes(
    before: &mut BTreeMap<String, State>,
    now: Vec<(String, State)>,
) -> Vec<(String, State)> {
    let mut known = BTreeMap::new();
    let mut changes = Vec::new();
    for (name, state) in now {
        let was = before.remove(&name);
        let state = match state {
            State::UnderWay => was.clone().unwrap_or(State::UnderWay),
            state => state,
        };
        if was.as_ref() != Some(&state) && state != State::UnderWay {
            changes.push((name.clone(), state.clone()));
        }
        known.insert(name, state);
    }
    *before = known;
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_logged_once() {
        let mut before = BTreeMap::new();
        let mut change = |state: Option<State>| {
            let now = state.map(|state| ("blue".to_owned(), state));
            changes(&mut before, now.into_iter().collect()).pop().map(|(_, state)| state)
        };
        let down = || State::Down("no path".to_owned());
        assert_eq!(change(Some(State::UnderWay)), None);
        assert_eq!(change(Some(State::Up)), Some(State::Up));
        assert_eq!(change(Some(State::UnderWay)), None);
        assert_eq!(change(Some(State::Up)), None, "it was up before");
        assert_eq!(change(Some(down())), Some(down()));
        assert_eq!(change(Some(down())), None);
        assert_eq!(change(None), None);
        assert_eq!(change(Some(State::Up)), Some(State::Up), "another of the same name");
    }
}
