//! What a test found: plain data, for tables, JSON and plots.
//!
//! Rates are per second, latencies in nanoseconds, shares from 0 to 1. "Done" is what is counted:
//! verified flow set-ups, or switches that became known where connections are tested.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::load::{Destinations, Load, Mode, Order};
use crate::usage::ProcessUse;
use crate::verify::Tally;

/// A whole test.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was asked for.
    pub load: LoadSummary,
    /// Each run.
    pub runs: Vec<Run>,
    /// All runs together.
    pub summary: Summary,
    /// Why it ended before its time. The last run is not complete then.
    pub failure: Option<String>,
    /// Latencies of all runs, from which more reports can be put together.
    #[serde(skip)]
    pub(crate) histogram: Histogram<u64>,
}

impl Report {
    pub(crate) fn new(
        load: &Load,
        runs: Vec<Run>,
        histogram: Histogram<u64>,
        failure: Option<String>,
    ) -> Self {
        let summary = Summary::of(&runs, &histogram);
        Report { load: LoadSummary::of(load), runs, summary, failure, histogram }
    }

    /// Takes in the runs of another report on the same load.
    pub(crate) fn absorb(&mut self, other: Report) {
        self.runs.extend(other.runs);
        self.failure = self.failure.take().or(other.failure);
        // Both have the same bounds, so nothing can be out of them.
        let _ = self.histogram.add(&other.histogram);
        self.summary = Summary::of(&self.runs, &self.histogram);
    }
}

/// What was asked for, by its names on the command line.
#[derive(Clone, Debug, Serialize)]
pub struct LoadSummary {
    /// The controller.
    pub target: String,
    /// `1.0` or `1.3`.
    pub version: String,
    /// The mode.
    pub mode: &'static str,
    /// Packet_ins in flight per switch, at most.
    pub in_flight: u32,
    /// Packet_ins per second and switch, if they come at a rate.
    pub rate_per_switch: Option<f64>,
    /// Switches.
    pub switches: u32,
    /// Hosts of each.
    pub macs: u32,
    /// The order in which they send.
    pub order: &'static str,
    /// Where to.
    pub destinations: &'static str,
    /// Whether packets are buffered.
    pub buffered: bool,
    /// Whether echo requests are sent in place of packet_ins.
    pub echoes: bool,
    /// Threads of the generator.
    pub threads: usize,
    /// Seconds that each run measures.
    pub duration_s: f64,
    /// Where random choices started.
    pub seed: u64,
}

impl LoadSummary {
    pub(crate) fn of(load: &Load) -> Self {
        LoadSummary {
            target: load.target.to_string(),
            version: load.version.to_string(),
            mode: load.mode.name(),
            in_flight: load.in_flight(),
            rate_per_switch: match load.mode {
                Mode::Rate(rate) => Some(rate),
                _ => None,
            },
            switches: load.switches,
            macs: load.macs,
            order: match load.order {
                Order::InOrder => "in-order",
                Order::Random => "random",
                Order::Zipf => "zipf",
            },
            destinations: match load.destinations {
                Destinations::One => "one",
                Destinations::Uniform => "uniform",
                Destinations::Zipf => "zipf",
            },
            buffered: load.buffered,
            echoes: load.echoes,
            threads: load.threads.min(load.switches as usize),
            duration_s: load.duration.as_secs_f64(),
            seed: load.seed,
        }
    }
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Whether it was measured to its end.
    pub complete: bool,
    /// Seconds that were measured.
    pub seconds: f64,
    /// Done in that time.
    pub done: u64,
    /// Done per second.
    pub rate: f64,
    /// Done per second by each switch, in the order of the datapath ids.
    pub per_switch: Vec<f64>,
    /// How fairly the switches were served.
    pub fairness: Fairness,
    /// From sent (at a rate: from due) to answered.
    pub latency: Option<Latency>,
    /// From due to sent, where packets come at a rate: how late the generator was.
    pub lateness: Option<Latency>,
    /// What all messages were, with those of the warm-up and those after the measurement.
    pub tally: Tally,
    /// Connections that failed, where connections are tested.
    pub failed_connections: u64,
    /// The share of the time that each thread of the generator was running.
    pub generator_threads: Vec<f64>,
    /// CPU seconds of the generator's threads.
    pub generator_cpu_s: f64,
    /// Bytes that the generator got with each read, in the mean.
    pub generator_bytes_per_read: f64,
    /// What the controller used, if its process is known.
    pub controller: Option<ProcessUse>,
    /// CPU nanoseconds of the controller for each done.
    pub controller_cpu_ns: Option<f64>,
    /// Those of them in user mode.
    pub controller_user_ns: Option<f64>,
    /// Those of them in the kernel.
    pub controller_system_ns: Option<f64>,
    /// Bytes that the controller got with each read, in the mean, if it reads by read(2).
    pub controller_bytes_per_read: Option<f64>,
    /// Who set the pace.
    pub bound: Bound,
    /// Little's law, in the window modes.
    pub little: Option<Little>,
    /// Energy that was used, if it is known.
    pub energy: Option<Energy>,
}

/// How evenly the switches were served (McNettle Fig. 16).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index: 1 if all had the same, 1/n if one had all.
    pub jain: f64,
    /// The slowest switch's share of the median.
    pub slowest: f64,
    /// The fastest switch's share of the median.
    pub fastest: f64,
}

impl Fairness {
    /// That of so much for each switch. Nothing for any is fair.
    #[must_use]
    pub fn of(each: &[f64]) -> Self {
        let sum: f64 = each.iter().sum();
        let squares: f64 = each.iter().map(|x| x * x).sum();
        let spread = Spread::of(each);
        if squares == 0.0 {
            return Fairness { jain: 1.0, slowest: 1.0, fastest: 1.0 };
        }
        let share = |x: f64| if spread.median > 0.0 { x / spread.median } else { 0.0 };
        Fairness {
            jain: sum * sum / (each.len() as f64 * squares),
            slowest: share(spread.least),
            fastest: share(spread.most),
        }
    }
}

/// Median, minimum and maximum of some numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one; the mean of both where there are two.
    pub median: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
    pub most: f64,
}

impl Spread {
    /// That of these; zeros if there are none.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Self {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
            return Spread::default();
        };
        let middle = sorted.len() / 2;
        let low = if sorted.len().is_multiple_of(2) { middle - 1 } else { middle };
        Spread { median: f64::midpoint(sorted[low], sorted[middle]), least: *least, most: *most }
    }
}

/// Latencies in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many there were.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half were at most this.
    pub p50: u64,
    /// 90% were at most this.
    pub p90: u64,
    /// 99% were at most this.
    pub p99: u64,
    /// 99.9% were at most this.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// Shares, and the latency that such a share was at most: a point for each latency that was
    /// measured, at the histogram's resolution of three digits, after the shortest with the share 0.
    pub cdf: Vec<(f64, u64)>,
}

impl Latency {
    /// That of a histogram; `None` if it is empty.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let at = |share: f64| histogram.value_at_quantile(share);
        let mut cdf = vec![(0.0, at(0.0))];
        cdf.extend(
            histogram.iter_recorded().map(|step| {
                (step.quantile(), histogram.highest_equivalent(step.value_iterated_to()))
            }),
        );
        Some(Latency {
            count: histogram.len(),
            mean: histogram.mean(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max(),
            cdf,
        })
    }
}

/// Who set the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The controller's busiest thread was busier than the generator's, or the load was not meant to
    /// keep anybody busy: the rate is a result.
    Controller,
    /// A thread of the generator was busier than any of the controller's, or about as busy as can
    /// be: the rate is not a result.
    Generator,
    /// The controller's process is not known, and the generator had time left.
    Unknown,
}

impl Bound {
    /// By the shares of time that their busiest threads were running. `kept` is what came of a rate
    /// that was asked for, as a share of it: while it is kept, nobody else sets the pace, however busy
    /// the generator is.
    #[must_use]
    pub fn of(mode: Mode, generator: f64, controller: Option<f64>, kept: f64) -> Self {
        /// A thread that runs more than this has no time left.
        const BUSY: f64 = 0.95;
        /// A rate is kept if so much of it comes; the beginning and the end of a run are not exact.
        const KEPT: f64 = 0.98;
        let open_loop = matches!(mode, Mode::Rate(_));
        match controller {
            _ if open_loop && (kept >= KEPT || generator < BUSY) => Bound::Controller,
            Some(controller) if generator > controller => Bound::Generator,
            Some(_) => Bound::Controller,
            None if generator >= BUSY => Bound::Generator,
            None => Bound::Unknown,
        }
    }
}

/// Little's law: what is in flight is the rate times the mean latency (Hot-ICE §4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Little {
    /// Packet_ins in flight that were asked for, of all switches.
    pub asked: f64,
    /// Rate times mean latency.
    pub measured: f64,
}

impl Little {
    /// How far both may be apart: an answer that has come stays a while in the generator before the
    /// next packet_in is sent, and the other way round.
    pub const TOLERANCE: f64 = 0.1;

    /// What was measured as a share of what was asked for.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.measured / self.asked
    }

    /// Whether rate and latency belong together.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.ratio() - 1.0).abs() <= Little::TOLERANCE
    }
}

/// Energy of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Energy {
    /// Joules of the whole machine's processors, with the generator's part if it runs there too.
    pub joules: f64,
    /// Done per joule.
    pub done_per_joule: f64,
    /// They were not measured: it is the thermal design power times the time, as in the TILE-Gx
    /// poster.
    pub estimated: bool,
}

impl Energy {
    /// Measured joules, or an estimate by thermal design power; `None` without either.
    pub(crate) fn of(
        joules: Option<f64>,
        tdp_watts: Option<f64>,
        seconds: f64,
        done: u64,
    ) -> Option<Self> {
        let estimated = joules.is_none();
        let joules = joules.or_else(|| tdp_watts.map(|watts| watts * seconds))?;
        Some(Energy { joules, done_per_joule: done as f64 / joules, estimated })
    }
}

/// All complete runs together.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Done per second.
    pub rate: Spread,
    /// Jain's index.
    pub jain: Spread,
    /// Latencies of all runs.
    pub latency: Option<Latency>,
    /// CPU nanoseconds of the controller for each done.
    pub controller_cpu_ns: Option<Spread>,
    /// Those of them in user mode.
    pub controller_user_ns: Option<Spread>,
    /// Those of them in the kernel.
    pub controller_system_ns: Option<Spread>,
    /// Bytes that the controller got with each read, if it reads by read(2).
    pub controller_bytes_per_read: Option<Spread>,
    /// Bytes that the generator got with each read.
    pub generator_bytes_per_read: Spread,
    /// The share of the time that the controller's busiest thread was running.
    pub controller_busy: Option<Spread>,
    /// The same of the generator's.
    pub generator_busy: Spread,
    /// Done per joule.
    pub done_per_joule: Option<Spread>,
    /// What all messages were.
    pub tally: Tally,
    /// Who set the pace: the generator, if it did in any run.
    pub bound: Bound,
}

impl Summary {
    pub(crate) fn of(runs: &[Run], latency: &Histogram<u64>) -> Self {
        let complete = || runs.iter().filter(|run| run.complete);
        let spread = |number: &dyn Fn(&Run) -> Option<f64>| {
            let numbers: Vec<f64> = complete().filter_map(number).collect();
            (!numbers.is_empty()).then(|| Spread::of(&numbers))
        };
        let mut tally = Tally::default();
        runs.iter().for_each(|run| tally.add(&run.tally));
        let has = |bound| complete().any(|run| run.bound == bound);
        Summary {
            rate: spread(&|run| Some(run.rate)).unwrap_or_default(),
            jain: spread(&|run| Some(run.fairness.jain)).unwrap_or_default(),
            latency: Latency::of(latency),
            controller_cpu_ns: spread(&|run| run.controller_cpu_ns),
            controller_user_ns: spread(&|run| run.controller_user_ns),
            controller_system_ns: spread(&|run| run.controller_system_ns),
            controller_bytes_per_read: spread(&|run| run.controller_bytes_per_read),
            generator_bytes_per_read: spread(&|run| Some(run.generator_bytes_per_read))
                .unwrap_or_default(),
            controller_busy: spread(&|run| Some(run.controller.as_ref()?.busiest_thread)),
            generator_busy: spread(&|run| run.generator_threads.iter().copied().reduce(f64::max))
                .unwrap_or_default(),
            done_per_joule: spread(&|run| run.energy.map(|energy| energy.done_per_joule)),
            tally,
            bound: match () {
                () if has(Bound::Generator) => Bound::Generator,
                () if has(Bound::Unknown) => Bound::Unknown,
                () => Bound::Controller,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_jains() {
        let even = Fairness::of(&[5.0, 5.0, 5.0, 5.0]);
        assert_eq!(even, Fairness { jain: 1.0, slowest: 1.0, fastest: 1.0 });
        let one = Fairness::of(&[8.0, 0.0, 0.0, 0.0]);
        assert_eq!(one.jain, 0.25);
        let some = Fairness::of(&[2.0, 4.0, 6.0]);
        assert_eq!((some.slowest, some.fastest), (0.5, 1.5));
        assert_eq!(Fairness::of(&[0.0, 0.0]).jain, 1.0);
    }

    #[test]
    fn a_spread_has_its_median_in_the_middle() {
        assert_eq!(Spread::of(&[3.0, 1.0, 8.0]), Spread { median: 3.0, least: 1.0, most: 8.0 });
        assert_eq!(Spread::of(&[3.0, 1.0]).median, 2.0);
        assert_eq!(Spread::of(&[]), Spread::default());
    }

    #[test]
    fn the_generator_has_to_be_the_less_busy_one() {
        let of = |generator, controller| Bound::of(Mode::Throughput, generator, controller, 1.0);
        assert_eq!(of(0.9, Some(0.99)), Bound::Controller);
        assert_eq!(of(0.9, Some(0.8)), Bound::Generator);
        assert_eq!(of(0.99, None), Bound::Generator);
        assert_eq!(of(0.5, None), Bound::Unknown);
        let at_a_rate = |generator, kept| Bound::of(Mode::Rate(1.0), generator, Some(0.1), kept);
        assert_eq!(at_a_rate(0.2, 0.5), Bound::Controller);
        assert_eq!(at_a_rate(0.99, 0.999), Bound::Controller, "what was asked for is what came");
        assert_eq!(at_a_rate(0.99, 0.5), Bound::Generator);
    }

    #[test]
    fn energy_says_whether_it_was_measured() {
        let measured = Energy::of(Some(10.0), Some(100.0), 1.0, 50).unwrap();
        assert_eq!((measured.done_per_joule, measured.estimated), (5.0, false));
        let estimate = Energy::of(None, Some(100.0), 2.0, 50).unwrap();
        assert_eq!((estimate.joules, estimate.estimated), (200.0, true));
        assert_eq!(Energy::of(None, None, 1.0, 1), None);
    }

    #[test]
    fn a_curve_of_latencies_rises() {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=1000).for_each(|ns| histogram.record(ns).unwrap());
        let latency = Latency::of(&histogram).unwrap();
        assert_eq!((latency.p50, latency.p99, latency.max), (500, 990, 1000));
        assert!(latency.cdf.is_sorted());
        assert_eq!(latency.cdf.first(), Some(&(0.0, 1)));
        assert_eq!(latency.cdf.get(123), Some(&(0.123, 123)), "a point for each latency");
        assert_eq!(latency.cdf.last(), Some(&(1.0, 1000)));
        assert_eq!(Latency::of(&Histogram::new(3).unwrap()), None);
    }
}
