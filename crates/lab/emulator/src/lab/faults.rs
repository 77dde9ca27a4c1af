//! Faults: the kinds, and a plan drawn from a seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use super::SeedStream;
use crate::topology::{LinkIndex, Node, SwitchIndex, TopologySpec};

/// Default time in which faults begin.
const SPAN: Duration = Duration::from_secs(20);

/// Default number of faults of each kind.
const FAULTS_PER_KIND: std::ops::RangeInclusive<u32> = 1..=3;

/// Maximum delay of a late message.
const MAX_MESSAGE_DELAY: Duration = Duration::from_millis(800);

/// Maximum time that the messages of one control connection are late.
const MAX_DELAY_LASTS: Duration = Duration::from_secs(5);

/// Maximum delay when messages of different switches are shuffled. It is longer than the delay of a
/// message, so that later messages of another switch may arrive earlier.
const ORDER_SPREAD: Duration = Duration::from_millis(20);

/// Maximum time that the messages of all switches are shuffled.
const MAX_ORDER_LASTS: Duration = Duration::from_secs(5);

/// Maximum time that a link is down, or up between two failures of one flap.
const MAX_FLAP_HALF: Duration = Duration::from_millis(1500);

/// Maximum number of failures of a link in one flap.
const MAX_FLAP_TIMES: u32 = 4;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The messages between one switch and its controller are late, each by another time, and cut
    /// into pieces. Their order stays, as in TCP.
    MessageDelay,
    /// Messages of different switches arrive in another order than they were sent.
    SwitchOrder,
    /// A control connection is reset. Both ends notice.
    ConnectionReset,
    /// A control connection carries no more bytes, and no end is informed.
    ConnectionSilence,
    /// A switch restarts, and keeps its flows, groups and meters.
    RestartWithTables,
    /// A switch restarts with empty tables.
    RestartWithoutTables,
    /// A link goes down and comes up again, once or several times.
    LinkFlap,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 7] = [
        FaultKind::MessageDelay,
        FaultKind::SwitchOrder,
        FaultKind::ConnectionReset,
        FaultKind::ConnectionSilence,
        FaultKind::RestartWithTables,
        FaultKind::RestartWithoutTables,
        FaultKind::LinkFlap,
    ];
}

/// Faults to inject. [`Lab::inject`](super::Lab::inject) makes a plan of them.
///
/// The same faults on the same topology give the same plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    seed: u64,
    /// Sorted.
    kinds: Vec<FaultKind>,
    per_kind: Option<u32>,
    span: Duration,
}

impl Faults {
    /// Faults of random kinds from the seed: each kind with an even chance, and at least one.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        let mut rng = SeedStream::Kinds.rng(seed);
        let mut kinds: Vec<FaultKind> = FaultKind::ALL.into_iter().filter(|_| rng.bool()).collect();
        if kinds.is_empty() {
            kinds.extend(rng.choice(FaultKind::ALL));
        }
        Faults { seed, kinds, per_kind: None, span: SPAN }
    }

    /// Faults of these kinds; the seed decides their places and times.
    #[must_use]
    pub fn of(seed: u64, kinds: &[FaultKind]) -> Self {
        let mut kinds = kinds.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        Faults { seed, kinds, per_kind: None, span: SPAN }
    }

    /// Sets the number of faults of each kind, instead of one to three.
    #[must_use]
    pub fn each(self, times: u32) -> Self {
        Faults { per_kind: Some(times), ..self }
    }

    /// Sets the time within which all faults begin, instead of 20 s.
    #[must_use]
    pub fn within(self, span: Duration) -> Self {
        Faults { span, ..self }
    }

    /// The kinds.
    #[must_use]
    pub fn kinds(&self) -> &[FaultKind] {
        &self.kinds
    }

    /// Draws the place and time of each fault. Kinds that the topology has no place for, such as
    /// flaps without a link, are omitted.
    #[must_use]
    pub fn plan(&self, topology: &TopologySpec) -> FaultPlan {
        let mut rng = SeedStream::Plan.rng(self.seed);
        let mut faults = Vec::new();
        for kind in &self.kinds {
            for _ in 0..self.per_kind.unwrap_or_else(|| rng.u32(FAULTS_PER_KIND)) {
                let at = up_to(&mut rng, self.span);
                faults.extend(draw(*kind, &mut rng, topology).map(|what| {
                    let text = what.describe(topology);
                    PlannedFault { at, action: what, text }
                }));
            }
        }
        faults.sort_by_key(|fault| fault.at);
        FaultPlan { seed: self.seed, faults }
    }
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// See [`FaultKind::MessageDelay`].
    MessageDelay {
        /// The switch of the control connection.
        switch: SwitchIndex,
        /// Maximum delay of each message.
        at_most: Duration,
        /// How long messages are late.
        lasting: Duration,
    },
    /// See [`FaultKind::SwitchOrder`].
    SwitchOrder {
        /// Maximum delay of each message of each switch.
        spread: Duration,
        /// How long messages are shuffled.
        lasting: Duration,
    },
    /// See [`FaultKind::ConnectionReset`].
    ConnectionReset {
        /// The switch of the control connection.
        switch: SwitchIndex,
    },
    /// See [`FaultKind::ConnectionSilence`].
    ConnectionSilence {
        /// The switch of the control connection.
        switch: SwitchIndex,
    },
    /// See [`FaultKind::RestartWithTables`] and [`FaultKind::RestartWithoutTables`].
    Restart {
        /// The switch.
        switch: SwitchIndex,
        /// Whether it keeps its tables.
        keep_tables: bool,
    },
    /// See [`FaultKind::LinkFlap`].
    LinkFlap {
        /// The link.
        link: LinkIndex,
        /// How often it goes down.
        times: u32,
        /// How long it is down each time, and up in between.
        half: Duration,
    },
}

impl FaultAction {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            FaultAction::MessageDelay { .. } => FaultKind::MessageDelay,
            FaultAction::SwitchOrder { .. } => FaultKind::SwitchOrder,
            FaultAction::ConnectionReset { .. } => FaultKind::ConnectionReset,
            FaultAction::ConnectionSilence { .. } => FaultKind::ConnectionSilence,
            FaultAction::Restart { keep_tables: true, .. } => FaultKind::RestartWithTables,
            FaultAction::Restart { keep_tables: false, .. } => FaultKind::RestartWithoutTables,
            FaultAction::LinkFlap { .. } => FaultKind::LinkFlap,
        }
    }

    /// How long it lasts. Its consequences, such as a lost connection, belong to the time of
    /// recovery.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        match *self {
            FaultAction::MessageDelay { lasting, .. }
            | FaultAction::SwitchOrder { lasting, .. } => lasting,
            FaultAction::LinkFlap { times, half, .. } => half * (2 * times - 1),
            FaultAction::ConnectionReset { .. }
            | FaultAction::ConnectionSilence { .. }
            | FaultAction::Restart { .. } => Duration::ZERO,
        }
    }

    fn describe(&self, topology: &TopologySpec) -> String {
        let name = |switch: &SwitchIndex| topology.name(Node::Switch(*switch));
        match self {
            FaultAction::MessageDelay { switch, at_most, lasting } => {
                let name = name(switch);
                format!("messages of {name} are late by up to {at_most:?}, for {lasting:?}")
            }
            FaultAction::SwitchOrder { spread, lasting } => {
                format!(
                    "messages of all switches are shuffled by up to {spread:?}, for {lasting:?}"
                )
            }
            FaultAction::ConnectionReset { switch } => {
                format!("the control connection of {} is reset", name(switch))
            }
            FaultAction::ConnectionSilence { switch } => {
                format!("the control connection of {} falls silent", name(switch))
            }
            FaultAction::Restart { switch, keep_tables } => {
                let state = if *keep_tables { "with its tables" } else { "empty" };
                format!("{} starts again, {state}", name(switch))
            }
            FaultAction::LinkFlap { link, times, half } => {
                let ends = topology.links().get(link.index()).map(|link| link.ends);
                let ends: Vec<String> = ends
                    .into_iter()
                    .flatten()
                    .map(|end| topology.end_name(end).to_string())
                    .collect();
                let ends = ends.join(" - ");
                match times {
                    1 => format!("link {ends} goes down for {half:?}"),
                    _ => format!("link {ends} goes down {times} times, for {half:?} each"),
                }
            }
        }
    }
}

/// A fault of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// Time after the start of the plan.
    pub at: Duration,
    /// What the fault does.
    pub action: FaultAction,
    text: String,
}

/// Faults with their places and times. It prints as the seed, then one line for each fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    seed: u64,
    faults: Vec<PlannedFault>,
}

impl FaultPlan {
    /// The faults, in order of their times.
    #[must_use]
    pub fn faults(&self) -> &[PlannedFault] {
        &self.faults
    }

    /// End of the last fault, after the start of the plan.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        self.faults.iter().map(|fault| fault.at + fault.action.lasts()).max().unwrap_or_default()
    }

    /// Whether there is a fault of this kind.
    #[must_use]
    pub fn has(&self, kind: FaultKind) -> bool {
        self.faults.iter().any(|fault| fault.action.kind() == kind)
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "faults of seed {}:", self.seed)?;
        for PlannedFault { at, text, .. } in &self.faults {
            writeln!(f, "  {:>9.3} s  {text}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

/// Draws a fault of this kind.
fn draw(kind: FaultKind, rng: &mut Rng, topology: &TopologySpec) -> Option<FaultAction> {
    let switch = |rng: &mut Rng| {
        let n = u32::try_from(topology.switches().len()).unwrap_or(u32::MAX);
        (n > 0).then(|| SwitchIndex(rng.u32(0..n)))
    };
    Some(match kind {
        FaultKind::MessageDelay => FaultAction::MessageDelay {
            switch: switch(rng)?,
            at_most: up_to(rng, MAX_MESSAGE_DELAY),
            lasting: up_to(rng, MAX_DELAY_LASTS),
        },
        FaultKind::SwitchOrder => {
            FaultAction::SwitchOrder { spread: ORDER_SPREAD, lasting: up_to(rng, MAX_ORDER_LASTS) }
        }
        FaultKind::ConnectionReset => FaultAction::ConnectionReset { switch: switch(rng)? },
        FaultKind::ConnectionSilence => FaultAction::ConnectionSilence { switch: switch(rng)? },
        FaultKind::RestartWithTables => {
            FaultAction::Restart { switch: switch(rng)?, keep_tables: true }
        }
        FaultKind::RestartWithoutTables => {
            FaultAction::Restart { switch: switch(rng)?, keep_tables: false }
        }
        FaultKind::LinkFlap => {
            let n = u32::try_from(topology.links().len()).unwrap_or(u32::MAX);
            FaultAction::LinkFlap {
                link: (n > 0).then(|| LinkIndex(rng.u32(0..n)))?,
                times: rng.u32(1..=MAX_FLAP_TIMES),
                half: up_to(rng, MAX_FLAP_HALF),
            }
        }
    })
}

/// Draws a time of at least one millisecond, in whole milliseconds for readability.
fn up_to(rng: &mut Rng, maximum: Duration) -> Duration {
    let maximum = u64::try_from(maximum.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(rng.u64(1..=maximum.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tree;

    fn topology() -> TopologySpec {
        tree(2, 2).build().unwrap()
    }

    #[test]
    fn the_same_seed_is_the_same_plan_and_another_seed_another() {
        let plan = |seed| Faults::random(seed).plan(&topology());
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }

    #[test]
    fn every_kind_comes_in_about_half_of_the_seeds() {
        for kind in FaultKind::ALL {
            let seeds = (0..1000).filter(|seed| Faults::random(*seed).plan(&topology()).has(kind));
            let seeds = seeds.count();
            assert!((400..600).contains(&seeds), "{kind:?} in {seeds} of 1,000 seeds");
        }
        assert!((0..1000).all(|seed| !Faults::random(seed).kinds().is_empty()));
    }

    #[test]
    fn a_plan_has_the_kinds_that_are_asked_for_in_order_and_within_its_span() {
        let span = Duration::from_secs(3);
        let faults = Faults::of(1, &FaultKind::ALL).each(5).within(span);
        let plan = faults.plan(&topology());
        assert_eq!(plan.faults().len(), 5 * FaultKind::ALL.len());
        assert!(plan.faults().is_sorted_by_key(|fault| fault.at));
        assert!(plan.faults().iter().all(|fault| fault.at <= span));
        assert!(plan.faults().iter().all(|fault| fault.at + fault.action.lasts() <= plan.lasts()));
    }

    #[test]
    fn a_plan_is_printed_with_its_seed_and_names() {
        let plan = Faults::of(3, &[FaultKind::LinkFlap]).each(1).plan(&topology()).to_string();
        let [first, second] = plan.lines().collect::<Vec<_>>()[..] else { panic!("{plan}") };
        assert_eq!(first, "faults of seed 3:");
        assert!(second.contains(" s  link s1:"), "{second}");
    }

    #[test]
    fn without_a_place_there_is_no_fault() {
        let plan = Faults::of(1, &FaultKind::ALL).plan(&TopologySpec::new());
        assert!(plan.faults().iter().all(|fault| fault.action.kind() == FaultKind::SwitchOrder));
    }
}
