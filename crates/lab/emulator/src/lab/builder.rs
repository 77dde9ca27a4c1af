//! Settings of a lab, before it runs.

use std::time::Duration;

use bellrock_api::runtime::DynApp;
use bellrock_api::{App, Version};
use bellrock_book::leadership::Leadership;
use bellrock_services::chain::{self, AppRole, ServiceSettings};
use bellrock_session::Versions;
use bellrock_worker::WorkerSettings;

use super::agenda::Agenda;
use super::control::{CONTROL_DELAY, ControlPlane};
use super::controls::Controls;
use super::{Lab, LabError, REMEMBERED_HOPS, REMEMBERED_MESSAGES, fail};
use crate::backoff::ReconnectBackoff;
use crate::network::{EmulatedNetwork, NetworkSettings};
use crate::topology::{SwitchIndex, TopologySpec};

/// Settings of a lab. [`Lab::seeded`] makes one, [`LabBuilder::run`] starts the lab.
///
/// All errors are reported at the end, so that a test reads as one sentence.
#[must_use = "nothing happens before run()"]
pub struct LabBuilder {
    seed: u64,
    topology: Result<TopologySpec, LabError>,
    loop_free: bool,
    version: Option<Version>,
    versions: Vec<(String, Version)>,
    workers: usize,
    settings: WorkerSettings,
    services: ServiceSettings,
    control_delay: Duration,
    backoff: ReconnectBackoff,
    network: NetworkSettings,
    apps: Vec<Box<dyn DynApp>>,
    checks_chain: bool,
    leadership: Option<Leadership>,
}

impl LabBuilder {
    pub(super) fn new(seed: u64) -> Self {
        LabBuilder {
            seed,
            topology: Ok(TopologySpec::new()),
            loop_free: false,
            version: None,
            versions: Vec::new(),
            workers: 1,
            settings: WorkerSettings::default(),
            services: ServiceSettings::default(),
            control_delay: CONTROL_DELAY,
            backoff: ReconnectBackoff::default(),
            network: NetworkSettings {
                hops: REMEMBERED_HOPS,
                messages: REMEMBERED_MESSAGES,
                ..NetworkSettings::default()
            },
            apps: Vec::new(),
            checks_chain: true,
            leadership: None,
        }
    }

    /// Sets the network: a named topology such as [`tree(2, 3)`](crate::topology::tree), or any
    /// [`TopologySpec`].
    pub fn topology<T>(self, topology: T) -> Self
    where
        T: TryInto<TopologySpec>,
        T::Error: Into<LabError>,
    {
        LabBuilder { topology: topology.try_into().map_err(Into::into), ..self }
    }

    /// Refuses a topology with a cycle, for apps that cannot handle cycles.
    pub fn loop_free(self) -> Self {
        LabBuilder { loop_free: true, ..self }
    }

    /// Sets the only version of all switches. By default switches and controllers support both
    /// versions, and agree on 1.3.
    pub fn version(self, version: Version) -> Self {
        LabBuilder { version: Some(version), ..self }
    }

    /// Sets the only version of one switch; the other switches keep theirs.
    pub fn switch_version(mut self, switch: &str, version: Version) -> Self {
        self.versions.push((switch.to_owned(), version));
        self
    }

    /// Sets the number of workers that share the switches: at least one, by default one.
    pub fn workers(self, workers: usize) -> Self {
        LabBuilder { workers: workers.max(1), ..self }
    }

    /// Sets the workers' limits, and the versions and times of their sessions.
    pub fn worker_settings(self, settings: WorkerSettings) -> Self {
        LabBuilder { settings, ..self }
    }

    /// Sets the network services: their settings, and which ones run even if no app needs them.
    /// They stand in the chain before the apps.
    pub fn services(self, services: ServiceSettings) -> Self {
        LabBuilder { services, ..self }
    }

    /// Sets the time of bytes between a switch and its controller, instead of [`CONTROL_DELAY`].
    pub fn control_delay(self, delay: Duration) -> Self {
        LabBuilder { control_delay: delay, ..self }
    }

    /// Sets how long switches wait before they connect again.
    pub fn backoff(self, backoff: ReconnectBackoff) -> Self {
        LabBuilder { backoff, ..self }
    }

    /// Sets how the network runs: tables, buffers and spare ports of switches, and what is kept.
    /// Its seed is ignored: the lab's seed is used.
    pub fn network(self, network: NetworkSettings) -> Self {
        LabBuilder { network, ..self }
    }

    /// Makes the first controller a node of a cluster, as to its apps of
    /// [`Scope::Once`](bellrock_api::Scope::Once): they start when it leads. Several labs whose
    /// leaderships share a store are such a cluster.
    pub fn leadership(self, leadership: Leadership) -> Self {
        LabBuilder { leadership: Some(leadership), ..self }
    }

    /// Runs the apps also in an order that a controller refuses, for tests of parts. By default,
    /// the lab refuses what the controller refuses ([`bellrock_services::chain::check`]), and keeps
    /// its warnings ([`Lab::warnings`]).
    pub fn unchecked(self) -> Self {
        LabBuilder { checks_chain: false, ..self }
    }

    /// Adds an app before the one of [`run`](Self::run) in the chain.
    pub fn app(mut self, app: impl App) -> Self {
        self.apps.push(Box::new(app));
        self
    }

    /// Starts everything, and runs until the apps have all switches.
    ///
    /// # Panics
    /// The settings are wrong; the message is the [`LabError`].
    #[track_caller]
    pub fn run(self, app: impl App) -> Lab {
        match self.try_run(app) {
            Ok(lab) => {
                // A test shows it when it fails.
                lab.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
                lab
            }
            Err(error) => fail(&error),
        }
    }

    /// Starts the lab without a controller: the switches try to connect until
    /// [`Lab::start_controller`].
    ///
    /// # Panics
    /// The settings are wrong; the message is the [`LabError`].
    #[track_caller]
    pub fn without_controller(self) -> Lab {
        match self.build() {
            Ok((mut lab, _)) => {
                lab.connect_all();
                lab
            }
            Err(error) => fail(&error),
        }
    }

    /// [`run`](Self::run) for programs, which handle errors instead of panicking.
    ///
    /// # Errors
    /// [`LabError`].
    pub fn try_run(mut self, app: impl App) -> Result<Lab, LabError> {
        self.apps.push(Box::new(app));
        let warnings = self.check_chain()?;
        let (mut lab, apps) = self.build()?;
        lab.warnings = warnings;
        lab.start(apps)?;
        lab.connect_all();
        lab.wait_until_up()?;
        Ok(lab)
    }

    /// Checks the order of the apps as a controller does. Returns the warnings.
    fn check_chain(&self) -> Result<Vec<String>, LabError> {
        if !self.checks_chain {
            return Ok(Vec::new());
        }
        let roles: Vec<_> = self.apps.iter().map(|app| AppRole::of(app.as_ref())).collect();
        let (errors, warnings): (Vec<_>, Vec<_>) =
            chain::check(&roles).into_iter().partition(|problem| problem.is_error);
        if let Some(problem) = errors.first() {
            return Err(LabError::Chain(problem.to_string()));
        }
        Ok(warnings.iter().map(ToString::to_string).collect())
    }

    fn build(self) -> Result<(Lab, Vec<Box<dyn DynApp>>), LabError> {
        let topology = self.topology?;
        if self.loop_free {
            topology.check_loop_free()?;
        }
        let mut versions = Vec::new();
        if let Some(version) = self.version {
            let all = (0..topology.switches().len()).map(SwitchIndex::of);
            versions.extend(all.map(|switch| (switch, Versions::only(version))));
        }
        for (name, version) in self.versions {
            let switch = topology.switch(&name);
            let switch = switch.ok_or_else(|| LabError::unknown_switch(&topology, &name))?;
            versions.push((switch, Versions::only(version)));
        }
        let mut network =
            EmulatedNetwork::new(&topology, NetworkSettings { seed: self.seed, ..self.network });
        for (switch, versions) in versions {
            network.set_versions(switch, versions);
        }
        let switches = topology.switches().len();
        let lab = Lab {
            seed: self.seed,
            settings: self.settings,
            services: self.services,
            workers: self.workers,
            controls: Controls::new(ControlPlane::new(
                self.seed,
                switches,
                self.control_delay,
                self.backoff,
            )),
            control_delay: self.control_delay,
            backoff: self.backoff,
            agenda: Agenda::new(),
            topology,
            network,
            warnings: Vec::new(),
        };
        let apps = match &self.leadership {
            Some(leadership) => self.apps.into_iter().map(|app| leadership.keep(app)).collect(),
            None => self.apps,
        };
        Ok((lab, apps))
    }
}
