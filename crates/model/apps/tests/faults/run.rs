//! Runs one seed, from its network to its verdict.

use std::fmt;
use std::time::Duration;

use bellrock_api::{App, Version};
use bellrock_apps::{LearningSettings, MatchKind};
use bellrock_emulator::lab::{FaultPlan, Faults, Lab};
use bellrock_emulator::topology::{NamedTopology, leaf_spine, linear, ring, single, tree, waxman};
use fastrand::Rng;

/// Interval between datagrams of hosts during the faults.
const TALK_EVERY: Duration = Duration::from_millis(150);

/// Maximum time without a controller. Until then switches retry at growing intervals.
const MAX_AWAY: Duration = Duration::from_secs(10);

/// Settings that a seed selects, beside its faults.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    topology: NamedTopology,
    /// `None`: each switch has its own.
    version: Option<Version>,
    workers: usize,
    pub(crate) learning: LearningSettings,
}

impl Settings {
    fn draw(rng: &mut Rng) -> Self {
        // Networks without cycles: the learning switch is no spanning tree.
        let topologies = [
            single(4),
            linear(3, 1),
            linear(2, 3),
            tree(2, 2),
            tree(2, 3),
            tree(3, 2),
            ring(4, 1).loop_free(),
            leaf_spine(3, 2, 1).loop_free(),
            waxman(5, rng.u64(..)).loop_free(),
        ];
        Settings {
            topology: topologies[rng.usize(..topologies.len())],
            version: [Some(Version::V1_0), Some(Version::V1_3), None][rng.usize(..3)],
            workers: rng.usize(1..=2),
            learning: LearningSettings {
                matching: [MatchKind::L2, MatchKind::Exact][rng.usize(..2)],
                hard_timeout_s: [0, 2, 10][rng.usize(..3)],
                ..LearningSettings::default()
            },
        }
    }
}

/// Result of a passing seed.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) plan: FaultPlan,
    pub(crate) digest: u64,
    settings: Settings,
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "passed: {:?}\n{}digest {:016x}", self.settings, self.plan, self.digest)
    }
}

/// A property that does not hold.
#[derive(Debug)]
#[expect(dead_code, reason = "its fields are only printed")]
pub(crate) enum Broken {
    /// Some hosts do not reach other hosts after the faults.
    Unreachable { within: Duration, pairs: Vec<(String, String)> },
    /// Hosts received unicast frames a second time.
    Duplicates { hosts: Vec<(String, u64)> },
}

/// A failing seed.
#[derive(Debug)]
pub(crate) struct Failure {
    seed: u64,
    settings: Settings,
    plan: FaultPlan,
    pub(crate) broken: Broken,
}

impl Failure {
    /// A description of the failure, and the command that repeats it.
    pub(crate) fn told(&self, test: &str) -> String {
        let Failure { seed, settings, plan, broken } = self;
        format!(
            "seed {seed}: {broken:?}\n{settings:?}\n{plan}repeat it with\n  LAB_SEED={seed} cargo test --locked \
             -p bellrock-apps --test faults {test} -- --nocapture"
        )
    }
}

/// Runs a seed with the app that `app` creates for its settings.
pub(crate) fn play<A: App>(
    seed: u64,
    app: impl Fn(&Settings) -> A,
) -> Result<Passed, Box<Failure>> {
    play_with(seed, app, Trial::Faults)
}

/// The kind of trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Faults, and the recovery time that the constants promise.
    Faults,
    /// The same, with a restart of the controller among the faults.
    Restart,
    /// Faults, and no time to recover.
    NoRecovery,
    /// Traffic for the same time, without faults.
    NoFaults,
}

/// Runs a seed in another kind of trial.
pub(crate) fn play_with<A: App>(
    seed: u64,
    app: impl Fn(&Settings) -> A,
    trial: Trial,
) -> Result<Passed, Box<Failure>> {
    let mut rng = Rng::with_seed(seed);
    let settings = Settings::draw(&mut rng);
    let mut lab = Lab::seeded(seed).topology(settings.topology).workers(settings.workers);
    match settings.version {
        Some(version) => lab = lab.version(version),
        None => {
            let switches = settings.topology.build().unwrap().switches().to_vec();
            for switch in switches {
                let version = Version::ALL[rng.usize(..2)];
                lab = lab.switch_version(&switch.name, version);
            }
        }
    }
    let mut lab = lab.run(app(&settings));
    let faults = match trial {
        Trial::NoFaults => Faults::of(seed, &[]),
        Trial::Faults | Trial::Restart | Trial::NoRecovery => Faults::random(seed),
    };
    let plan = lab.inject(&faults);
    let hard_timeout = Duration::from_secs(settings.learning.hard_timeout_s.into());
    let within = match trial {
        Trial::NoRecovery => Duration::ZERO,
        Trial::Faults | Trial::Restart | Trial::NoFaults => lab.recovery_time(hard_timeout),
    };
    if trial == Trial::Restart {
        talk(&mut lab, plan.lasts().mul_f64(rng.f64()), &mut rng);
        lab.stop_controller();
        talk(&mut lab, MAX_AWAY.mul_f64(rng.f64()), &mut rng);
        lab.start_controller(app(&settings));
    }
    talk(&mut lab, plan.lasts() + within, &mut rng);
    let pairs = lab.ping_all().lost().to_vec();
    let hosts = lab.duplicates();
    let broken = match (pairs.is_empty(), hosts.is_empty()) {
        (false, _) => Broken::Unreachable { within, pairs },
        (_, false) => Broken::Duplicates { hosts },
        (true, true) => return Ok(Passed { plan, digest: lab.digest(), settings }),
    };
    Err(Box::new(Failure { seed, settings, plan, broken }))
}

/// Lets hosts talk for this time: some send datagrams, which no host answers, and some ping.
fn talk(lab: &mut Lab, time: Duration, rng: &mut Rng) {
    let hosts: Vec<String> = lab.topology().hosts().iter().map(|host| host.name.clone()).collect();
    let end = lab.now() + time;
    while lab.now() < end {
        let (from, to) = (rng.usize(..hosts.len()), rng.usize(..hosts.len()));
        if from != to && rng.bool() {
            lab.send_datagram(&hosts[from], &hosts[to]);
        } else if from != to {
            lab.start_pings(&hosts[from], &hosts[to], 1, Duration::ZERO);
        }
        lab.run_for(TALK_EVERY.min(end - lab.now()));
    }
}
