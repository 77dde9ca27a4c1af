//! The learning switches under faults: after a period of faults, everything works again.
//!
//! Each seed selects a network, a version of OpenFlow, settings, traffic and faults. After the last
//! fault the hosts get the recovery time that the constants promise ([`Lab::recovery_time`]). Then
//! - every host reaches every other host,
//! - no host has received a unicast frame twice, at any time.
//!
//! A failing seed prints what happened, and the command that repeats it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

mod broken;
mod run;
#[path = "../seeds/mod.rs"]
mod seeds;

use bellrock_api::App;
use bellrock_apps::{GlobalLearning, Learning};
use bellrock_emulator::lab::FaultKind;
use bellrock_tables::{Budget, SharedTable};
use broken::{Mistake, Mistaken};
use run::{Broken, Failure, Passed, Settings, Trial, play, play_with};
use seeds::{ONE_SEED, number, play_all};

/// Number of seeds.
const SEEDS: u64 = 1000;

/// Number of seeds of the other trials. (With one table for all switches, not all of 4,000
/// controller starts are safe: the page about the app explains why.)
const MORE_TRIALS: u64 = 250;

/// Minimum number of [`SEEDS`] that contain each kind of fault.
const SEEDS_PER_KIND: u64 = 100;

/// Number of seeds within which a broken app must be found.
const SEEDS_TO_FIND: u64 = 50;

/// Variable with another number of seeds, for longer runs.
const MORE_SEEDS: &str = "LAB_SEEDS";

fn learning(settings: &Settings) -> Learning {
    Learning::new(settings.learning, &Budget::unlimited())
}

fn global_learning(settings: &Settings) -> GlobalLearning<SharedTable> {
    GlobalLearning::new(settings.learning, &Budget::unlimited())
}

/// Runs the seeds of a test, or the requested seed; none may fail.
fn pass<A: App>(
    test: &str,
    seeds: u64,
    app: impl Fn(&Settings) -> A + Sync,
    trial: Trial,
) -> Vec<Passed> {
    if let Some(seed) = number(ONE_SEED) {
        let passed =
            play_with(seed, app, trial).unwrap_or_else(|failure| panic!("{}", failure.told(test)));
        println!("{passed}");
        return Vec::new();
    }
    let all = number(MORE_SEEDS).unwrap_or(seeds).max(seeds);
    let results: Vec<Result<Passed, Box<Failure>>> =
        play_all(all, |seed| play_with(seed, &app, trial));
    let failures: Vec<String> =
        results.iter().filter_map(|r| r.as_ref().err()).map(|failure| failure.told(test)).collect();
    assert!(failures.is_empty(), "{} seeds fail; the first: {}", failures.len(), failures[0]);
    results.into_iter().flatten().collect()
}

#[test]
fn after_any_faults_hosts_reach_each_other_and_nothing_came_twice() {
    const NAME: &str = "after_any_faults_hosts_reach_each_other_and_nothing_came_twice";
    let passed = pass(NAME, SEEDS, learning, Trial::Faults);
    if passed.is_empty() {
        return;
    }
    for kind in FaultKind::ALL {
        let seeds = passed.iter().filter(|passed| passed.plan.has(kind)).count() as u64;
        println!("{kind:?} in {seeds} of {} seeds", passed.len());
        assert!(seeds >= SEEDS_PER_KIND, "{kind:?} in {seeds} seeds only");
    }
}

#[test]
fn so_they_do_when_the_controller_starts_anew_among_the_faults() {
    const NAME: &str = "so_they_do_when_the_controller_starts_anew_among_the_faults";
    pass(NAME, MORE_TRIALS, learning, Trial::Restart);
}

#[test]
fn so_they_do_with_one_table_for_all_switches() {
    const NAME: &str = "so_they_do_with_one_table_for_all_switches";
    pass(NAME, MORE_TRIALS, global_learning, Trial::Faults);
}

#[test]
fn so_they_do_with_one_table_when_the_controller_starts_anew() {
    const NAME: &str = "so_they_do_with_one_table_when_the_controller_starts_anew";
    pass(NAME, MORE_TRIALS, global_learning, Trial::Restart);
}

/// The first failure of an app.
fn find<A: App>(app: impl Fn(&Settings) -> A) -> Box<Failure> {
    let found = (0..SEEDS_TO_FIND).find_map(|seed| play(seed, &app).err());
    found.unwrap_or_else(|| panic!("{SEEDS_TO_FIND} seeds have not found what is wrong"))
}

#[test]
fn an_app_that_takes_a_switch_for_set_up_when_it_comes_back_is_found() {
    let failure = find(|settings| Mistaken::new(learning(settings), Mistake::TakenForSetUp));
    assert!(matches!(failure.broken, Broken::Unreachable { .. }), "{failure:?}");
}

#[test]
fn an_app_that_floods_as_well_when_a_switch_comes_back_is_found() {
    let failure = find(|settings| Mistaken::new(learning(settings), Mistake::FloodedToo));
    assert!(matches!(failure.broken, Broken::Duplicates { .. }), "{failure:?}");
}

#[test]
fn these_apps_show_nothing_as_long_as_nothing_goes_wrong() {
    for mistake in [Mistake::TakenForSetUp, Mistake::FloodedToo] {
        let app = |settings: &Settings| Mistaken::new(learning(settings), mistake);
        for seed in 0..SEEDS_TO_FIND {
            let played = play_with(seed, app, Trial::NoFaults);
            assert!(played.is_ok(), "{mistake:?}: {:?}", played.err());
        }
    }
}

#[test]
fn the_time_to_recover_is_needed() {
    let at_once = |seed| play_with(seed, learning, Trial::NoRecovery);
    let failing = (0..SEEDS_TO_FIND).filter(|seed| at_once(*seed).is_err()).count();
    assert!(failing > 0, "faults do no harm");
}

#[test]
fn a_seed_repeats_to_the_last_byte() {
    let digest = |seed| play(seed, learning).unwrap().digest;
    for seed in 0..10 {
        assert_eq!(digest(seed), digest(seed), "seed {seed}");
    }
    assert_ne!(digest(0), digest(1));
}
