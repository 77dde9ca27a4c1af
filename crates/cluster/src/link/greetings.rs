//! Connections that have not shown yet which node they are of.
//!
//! Anybody who can reach the address of the nodes can open one. So each is accepted at once, and
//! who makes no progress gives way to a newcomer. The addresses of the nodes have places that no
//! other address can take.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_pace::{PlaceLimits, Places};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Places of connections in their greetings. A node that connects says something at once, so one
/// that has said nothing for a few milliseconds can go.
const PLACES: PlaceLimits = PlaceLimits {
    total: 128,
    per_network: 32,
    spares_loopback: false,
    quiet: Duration::from_millis(5),
};

/// All greetings of a node.
#[derive(Debug)]
pub(super) struct Greetings {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    places: Places<u64>,
    tasks: HashMap<u64, AbortHandle>,
    last_number: u64,
}

/// The place of a greeting. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Greeting {
    all: Arc<Greetings>,
    number: u64,
}

impl Greetings {
    /// No greeting, with reserved places for these addresses.
    pub(super) fn new(nodes: impl IntoIterator<Item = SocketAddr>) -> Arc<Self> {
        let reserved = nodes.into_iter().map(|address| address.ip());
        let places = Places::new(PLACES, reserved);
        let state = State { places, tasks: HashMap::new(), last_number: 0 };
        Arc::new(Greetings { start: Instant::now(), state: Mutex::new(state) })
    }

    /// Takes a place, perhaps that of another one, which ends. `None`: nobody gives way.
    pub(super) fn begin(all: &Arc<Self>, from: IpAddr) -> Option<Greeting> {
        let mut state = all.state();
        state.last_number += 1;
        let number = state.last_number;
        let displaced = state.places.take(number, from, all.start.elapsed()).ok()?;
        let task = displaced.and_then(|displaced| state.tasks.remove(&displaced));
        drop(state);
        if let Some(task) = task {
            task.abort();
        }
        Some(Greeting { all: Arc::clone(all), number })
    }

    /// Keeps the task of a greeting, unless it has ended meanwhile.
    pub(super) fn keep(&self, number: u64, task: AbortHandle) {
        let mut state = self.state();
        if state.places.has(&number) {
            state.tasks.insert(number, task);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Greeting {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Something has come from there.
    pub(super) fn progress(&self) {
        self.all.state().places.progress(&self.number, self.all.start.elapsed());
    }
}

impl Drop for Greeting {
    fn drop(&mut self) {
        let mut state = self.all.state();
        state.places.free(&self.number);
        state.tasks.remove(&self.number);
    }
}
