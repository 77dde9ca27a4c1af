//! Estimates how long rows take, for the progress display.

use std::time::{Duration, Instant};

use super::program::{MeasuredProgram, OperatorsPart, PythonPart};
use super::rows::{self, LoadShape, Measure, TargetRow};
use super::running::first_round;
use super::{Effort, measure};

/// Seconds for processes to start and end.
const START_S: f64 = 0.3;

/// Seconds per run beside warm-up and measurement: for the last answers and for reading the
/// controller's figures.
const RUN_S: f64 = 0.05;

/// Seconds until the switches of a load are up: fixed, and per switch.
const CONNECT_S: f64 = 0.15;
const CONNECT_EACH_S: f64 = 0.000_2;

/// Seconds of a handshake of TLS, and of the row of many at once.
const HANDSHAKE_S: f64 = 0.001;
const TLS_STORM_S: f64 = 6.0;

/// Destinations that are announced per second.
const ARPS_PER_S: f64 = 2e6;

/// Seconds to count with callgrind.
const CALLGRIND_S: f64 = 3.0;

/// Seconds of the programs: per pair, or in total.
const UNEVEN_PAIR_S: f64 = 6.0;
const CAPACITY_S: f64 = 10.0;
const WORKERS_S: f64 = 20.0;

/// Seconds of a part of what operators get, and of a pair of runs with and without watchers.
const OPERATORS_S: f64 = 5.0;
const WATCHED_PAIR_S: f64 = 10.0;

/// Seconds of a run of an app in Python, and of its start.
const PYTHON_RUN_S: f64 = 3.0;
const PYTHON_START_S: f64 = 2.0;

/// Seconds of completed rows, by the estimate, before the actual pace is used.
const FIRST_S: f64 = 15.0;

/// Range of the pace, actual by estimated time. One row that was slow or could not be measured does
/// not predict the others.
const PACES: std::ops::RangeInclusive<f64> = 0.7..=3.0;

/// Estimates the seconds of a row.
fn seconds(row: &TargetRow, effort: Effort) -> f64 {
    let turn = (effort.duration() + effort.warm_up()).as_secs_f64() + RUN_S;
    let turns = f64::from(effort.pairs()) * turn;
    let side = |shape: LoadShape| START_S + before(shape) + turns;
    match row.measure {
        Measure::Responder { load, .. } => 2.0 * side(load),
        Measure::Variant { load, settle_s, .. } => 2.0 * (side(load) + settle_s),
        Measure::Itself { load, than, .. } => side(load) + side(than),
        Measure::Workers { .. } => 2.0 * side(rows::BASE),
        Measure::Instructions { .. } => CALLGRIND_S,
        Measure::Fairness { load, .. } => side(load),
        Measure::Idle { switches, .. } => {
            let shape = LoadShape { switches, ..rows::BASE };
            let longer = measure::IDLE_TIME.saturating_sub(effort.duration()).as_secs_f64();
            let each = turn + longer + before_connected(shape);
            2.0 * f64::from(effort.pairs()) * each + before_connected(shape)
        }
        Measure::TlsCost { load, .. } => 2.0 * side(load),
        Measure::TlsIdle { switches, .. } => {
            turn * 2.0 + f64::from(switches) * HANDSHAKE_S + 2.0 * CONNECT_S
        }
        Measure::TlsStorm { .. } => START_S + TLS_STORM_S,
        Measure::Peer { version, .. } => side(rows::base(version)) + side(rows::peer_load(version)),
        Measure::Program { program: MeasuredProgram::Uneven, .. } => {
            f64::from(effort.pairs()) * UNEVEN_PAIR_S
        }
        Measure::Program { program: MeasuredProgram::Capacity, .. } => CAPACITY_S,
        Measure::Program { program: MeasuredProgram::Workers, .. } => WORKERS_S,
        Measure::Program { program: MeasuredProgram::Operators(part), .. } => match part {
            OperatorsPart::Watched => f64::from(effort.pairs()) * WATCHED_PAIR_S,
            _ => OPERATORS_S,
        },
        Measure::Program { program: MeasuredProgram::Python(part), .. } => match part {
            PythonPart::Import | PythonPart::Wheel => PYTHON_START_S,
            PythonPart::OsKen => 2.0 * f64::from(effort.pairs()) * (PYTHON_RUN_S + PYTHON_START_S),
            _ => PYTHON_START_S + f64::from(effort.pairs()) * PYTHON_RUN_S,
        },
    }
}

/// Estimates the seconds before the first run of a load.
fn before(shape: LoadShape) -> f64 {
    let destinations = match shape.destinations {
        bellrock_bench::Destinations::One => 1.0,
        _ => f64::from(shape.macs),
    };
    let learning = f64::from(shape.switches) * destinations / ARPS_PER_S;
    before_connected(shape) + learning + first_round(shape).as_secs_f64()
}

fn before_connected(shape: LoadShape) -> f64 {
    CONNECT_S + f64::from(shape.switches) * CONNECT_EACH_S
}

/// Estimates the time that is left.
pub(super) struct TimeEstimate {
    began: Instant,
    /// Estimated seconds of each row.
    seconds: Vec<f64>,
    /// Number of completed rows.
    over: usize,
}

impl TimeEstimate {
    pub(super) fn new(rows: &[TargetRow], effort: Effort) -> Self {
        let seconds = rows.iter().map(|row| seconds(row, effort)).collect();
        TimeEstimate { began: Instant::now(), seconds, over: 0 }
    }

    /// Notes that a row is completed.
    pub(super) fn next(&mut self) {
        self.over += 1;
    }

    /// Returns the completed share of all rows, and the estimated time left. `share` is the
    /// completed share of the current row.
    pub(super) fn at(&self, share: f64) -> (f64, Duration) {
        self.after(share, self.began.elapsed().as_secs_f64())
    }

    fn after(&self, share: f64, elapsed: f64) -> (f64, Duration) {
        let (over, rest) = self.seconds.split_at(self.over.min(self.seconds.len()));
        let current = rest.first().copied().unwrap_or(0.0) * share;
        let done = over.iter().sum::<f64>() + current;
        let all: f64 = self.seconds.iter().sum();
        let pace = if done >= FIRST_S { elapsed / done } else { 1.0 };
        let pace = pace.clamp(*PACES.start(), *PACES.end());
        let left = Duration::try_from_secs_f64((all - done) * pace).unwrap_or_default();
        (if all > 0.0 { done / all } else { 1.0 }, left)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROWS;
    use super::*;

    #[test]
    fn the_forms_take_as_long_as_they_say() {
        let minutes = |effort| {
            let all: f64 = ROWS.iter().map(|row| seconds(row, effort)).sum();
            all / 60.0
        };
        assert!((4.0..8.0).contains(&minutes(Effort::Quick)), "{}", minutes(Effort::Quick));
        assert!((10.0..22.0).contains(&minutes(Effort::Full)), "{}", minutes(Effort::Full));
    }

    #[test]
    fn the_remaining_time_follows_from_the_time_taken_so_far() {
        let clock =
            TimeEstimate { began: Instant::now(), seconds: vec![20.0, 60.0, 20.0], over: 1 };
        let (share, left) = clock.after(0.5, 40.0);
        assert_eq!((share, left), (0.5, Duration::from_secs(40)));
        assert_eq!(clock.after(0.5, 1.0).1, Duration::from_secs(35), "others are not so fast");
        let (share, left) = clock.after(0.0, 40.0);
        assert_eq!((share, left), (0.2, Duration::from_secs(160)));
        let first = TimeEstimate { over: 0, ..clock };
        assert_eq!(first.after(0.1, 30.0).1, Duration::from_secs(98), "too early to say");
    }
}
