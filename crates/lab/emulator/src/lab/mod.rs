//! A lab: workers with their apps and a network, together on a virtual clock.
//!
//! # What it is
//! A [`Lab`] is for testing apps. It has no sockets and no threads. Time passes only in calls that
//! take time: a second of a quiet network takes microseconds. Sessions and dispatch are those of a
//! [worker](bellrock_worker), as in the engine; switches and hosts are those of [`crate::network`].
//! All randomness comes from the seed, so every run repeats, to the last byte ([`Lab::digest`]).
//!
//! ```
//! use bellrock_apps::Learning;
//! use bellrock_emulator::lab::Lab;
//! use bellrock_emulator::topology::tree;
//!
//! let mut lab = Lab::seeded(42).topology(tree(2, 3)).run(Learning::default());
//! assert!(lab.ping("h1", "h9"));
//! ```
//!
//! [Faults] can be injected: [`Lab::inject`].
//!
//! # What it is not
//! It does not measure speed: computing takes no time here. The crate `bench` measures speed.
//!
//! # Errors
//! Misused calls panic at the line of the test, with the mistake and the remedy (`no host h99;
//! there are h1 to h9`). A test cannot handle such an error, and a `?` or `unwrap` in each line
//! would make it hard to read. Programs build a lab by [`LabBuilder::try_run`], and look names up
//! in [`Lab::topology`] first.

mod agenda;
mod builder;
mod control;
mod controller;
mod controls;
mod error;
mod faults;
mod inject;
mod look;
mod ordinary_switch;
mod traffic;
mod versions;
mod wires;

use std::time::Duration;

use bellrock_api::App;
pub use bellrock_api::Version;
use bellrock_api::runtime::DynApp;
use bellrock_services::chain::{ServiceSettings, chain};
use bellrock_worker::WorkerSettings;
use fastrand::Rng;

use agenda::Agenda;
pub use builder::LabBuilder;
use control::ControlPlane;
pub use control::{CONTROL_DELAY, PROBE_AFTER, PROBE_WAIT};
use controller::LabController;
use controls::Controls;
pub use error::{KnownNames, LabError};
pub use faults::{FaultAction, FaultKind, FaultPlan, Faults, PlannedFault};
use inject::DueEvent;
pub use look::PingResults;
pub use ordinary_switch::{LldpHandling, OrdinarySwitch};
pub use traffic::Pings;

pub use crate::backoff::ReconnectBackoff;
use crate::network::EmulatedNetwork;
#[doc(inline)]
pub use crate::on_both_versions;
use crate::switch::MAX_CHANNELS;
pub use crate::switch::{Misreport, Unanswered};
use crate::topology::{HostIndex, LinkIndex, Node, SwitchIndex, TopologySpec};

/// Maximum time for the switches to come up.
pub const UP_WITHIN: Duration = Duration::from_secs(30);

/// Number of hops that a lab keeps for [`Lab::paths`].
pub const REMEMBERED_HOPS: usize = 4096;

/// Number of messages of each switch that a lab keeps for [`Lab::messages`].
pub const REMEMBERED_MESSAGES: usize = 1024;

/// Minimum time between two checks of a condition.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Uses of the seed. Each has its own random numbers, so that none depends on another.
#[derive(Clone, Copy)]
enum SeedStream {
    /// The kinds of faults.
    Kinds,
    /// The times and places of faults.
    Plan,
    /// The delays of messages.
    Messages,
}

impl SeedStream {
    fn rng(self, seed: u64) -> Rng {
        Rng::with_seed(seed.rotate_left(u64::BITS / 2) ^ self as u64)
    }
}

/// A lab. See the [module](self).
pub struct Lab {
    seed: u64,
    settings: WorkerSettings,
    services: ServiceSettings,
    workers: usize,
    topology: TopologySpec,
    network: EmulatedNetwork,
    controls: Controls,
    control_delay: Duration,
    backoff: ReconnectBackoff,
    /// Faults that have not begun.
    agenda: Agenda<DueEvent>,
    /// What a controller warns about.
    warnings: Vec<String>,
}

impl Lab {
    /// Makes a builder of a lab. All randomness in the lab comes from the seed.
    pub fn seeded(seed: u64) -> LabBuilder {
        LabBuilder::new(seed)
    }

    /// What a controller warns about when it starts these apps, such as an order in which an app
    /// gets no packets.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The time since the start of the lab.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.network.now()
    }

    /// Runs the lab for this time.
    pub fn run_for(&mut self, time: Duration) {
        self.advance(self.now() + time);
    }

    /// Runs until `is_done` returns true, but at most for `maximum`. Returns whether it did. Calls
    /// `is_done` after each millisecond with an event.
    pub fn run_until(&mut self, maximum: Duration, mut is_done: impl FnMut(&Lab) -> bool) -> bool {
        let until = self.now() + maximum;
        loop {
            if is_done(self) {
                return true;
            }
            if self.now() >= until {
                return false;
            }
            let next = [self.network.next_event(), self.next_of_others()];
            let next = next.into_iter().flatten().min().unwrap_or(until);
            self.advance(next.max(self.now() + LOOK_EVERY).min(until));
        }
    }

    /// Stops the controller: its switches lose their connections, and try to connect again.
    ///
    /// # Panics
    /// No controller runs.
    #[track_caller]
    pub fn stop_controller(&mut self) {
        if self.controls.first().is_none() {
            fail(&LabError::Controller("no controller runs; start_controller() starts one"));
        }
        let now = self.now();
        self.controls.plane(0).stop(now);
    }

    /// Starts a controller with only this app and the services that it needs. It knows nothing from
    /// an earlier controller. Switches find it at their next attempt to connect.
    ///
    /// # Panics
    /// A controller runs already, or the machine has no random numbers.
    #[track_caller]
    pub fn start_controller(&mut self, app: impl App) {
        self.start_chain(vec![Box::new(app)]);
    }

    /// Starts a controller with these apps, like [`start_controller`](Self::start_controller).
    ///
    /// # Panics
    /// A controller runs already, the machine has no random numbers, or the apps do not fit
    /// together.
    #[track_caller]
    pub fn start_chain(&mut self, apps: Vec<Box<dyn DynApp>>) {
        if self.controls.first().is_some() {
            fail(&LabError::Controller("a controller runs already; stop_controller() stops it"));
        }
        if let Err(error) = self.start(apps) {
            fail(&error);
        }
    }

    /// Whether the apps have this switch.
    ///
    /// # Panics
    /// There is no such switch.
    #[track_caller]
    #[must_use]
    pub fn is_up(&self, switch: &str) -> bool {
        let id = self.switch_id(switch);
        self.is_switch_up(id)
    }

    /// Whether the apps have all switches.
    #[must_use]
    pub fn is_all_up(&self) -> bool {
        self.first_down().is_none()
    }

    fn start(&mut self, apps: Vec<Box<dyn DynApp>>) -> Result<(), LabError> {
        let chain = chain(apps, &self.services)?;
        let (workers, now) = (self.workers, self.now());
        self.controls.plane(0).controller =
            Some(LabController::new(self.seed, workers, self.settings, chain, now));
        Ok(())
    }

    /// Starts a further controller of all switches, with one worker, and returns its number, for
    /// [`controller_of`](Self::controller_of). Its switches connect to it at once. The other
    /// methods are about the first controller.
    ///
    /// # Panics
    /// The lab has as many controllers as a switch takes, or the machine has no random numbers.
    #[track_caller]
    pub fn add_controller(&mut self, settings: WorkerSettings, app: impl App) -> usize {
        let chain = match chain(vec![Box::new(app) as Box<dyn DynApp>], &self.services) {
            Ok(chain) => chain,
            Err(error) => fail(&error.into()),
        };
        let (switches, now) = (self.topology.switches().len(), self.now());
        // Controllers are strangers to each other: they draw other random numbers.
        let seed = self.seed.wrapping_add(self.controls.count() as u64);
        let mut plane = ControlPlane::new(seed, switches, self.control_delay, self.backoff);
        plane.controller = Some(LabController::new(seed, 1, settings, chain, now));
        let number = self.controls.add(plane);
        if number >= MAX_CHANNELS {
            fail(&LabError::Controller("a switch takes 16 controllers, and not one more"));
        }
        for index in 0..switches {
            self.controls.plane(number).connect(SwitchIndex::of(index), Duration::ZERO, now);
        }
        number
    }

    fn connect_all(&mut self) {
        let now = self.now();
        for index in 0..self.topology.switches().len() {
            self.controls.plane(0).connect(SwitchIndex::of(index), Duration::ZERO, now);
        }
    }

    fn wait_until_up(&mut self) -> Result<(), LabError> {
        self.run_until(UP_WITHIN, Lab::is_all_up);
        match self.first_down() {
            None => Ok(()),
            Some(switch) => {
                let switch = self.topology.name(Node::Switch(switch)).to_owned();
                Err(LabError::NotUp { switch, after: UP_WITHIN })
            }
        }
    }

    fn first_down(&self) -> Option<SwitchIndex> {
        let mut all = (0..self.topology.switches().len()).map(SwitchIndex::of);
        all.find(|switch| !self.is_switch_up(*switch))
    }

    fn is_switch_up(&self, switch: SwitchIndex) -> bool {
        let dpid = self.topology.switches()[switch.index()].dpid;
        let controller = self.controls.first();
        controller.is_some_and(|controller| controller.is_up(dpid))
    }

    /// Runs all events until a time, in order.
    fn advance(&mut self, until: Duration) {
        loop {
            // The network runs alone up to the next other event.
            let next = self.next_of_others().filter(|next| *next <= until);
            if self.network.advance_to_control(next.unwrap_or(until)) {
                self.controls.collect(&mut self.network);
            } else if next.is_some() {
                self.moment();
            } else {
                return;
            }
        }
    }

    /// Time of the next event outside the network.
    fn next_of_others(&self) -> Option<Duration> {
        [self.controls.next(), self.agenda.next()].into_iter().flatten().min()
    }

    /// Runs everything that is due now: arriving messages, the workers' timers, and faults.
    fn moment(&mut self) {
        while self.controls.step(&mut self.network) {
            self.controls.collect(&mut self.network);
        }
        while let Some(due) = self.agenda.due(self.now()) {
            self.happen(due);
            self.controls.collect(&mut self.network);
        }
    }

    #[track_caller]
    fn host_id(&self, name: &str) -> HostIndex {
        match self.topology.host(name) {
            Some(host) => host,
            None => fail(&LabError::unknown_host(&self.topology, name)),
        }
    }

    #[track_caller]
    fn switch_id(&self, name: &str) -> SwitchIndex {
        match self.topology.switch(name) {
            Some(switch) => switch,
            None => fail(&LabError::unknown_switch(&self.topology, name)),
        }
    }

    #[track_caller]
    fn node(&self, name: &str) -> Node {
        match self.topology.node(name) {
            Some(node) => node,
            // Most names are those of switches, so the error lists switches.
            None => fail(&LabError::unknown_switch(&self.topology, name)),
        }
    }

    #[track_caller]
    fn link_id(&self, a: &str, b: &str) -> LinkIndex {
        let (a, b) = (self.node(a), self.node(b));
        match self.topology.links_between(a, b).next() {
            Some(link) => link,
            None => fail(&LabError::unknown_link(&self.topology, a, b)),
        }
    }
}

/// Fails a test that misuses its lab.
#[track_caller]
#[expect(clippy::panic, reason = "what a lab cannot do is an error of the test; see the module")]
fn fail(error: &LabError) -> ! {
    panic!("{error}")
}
