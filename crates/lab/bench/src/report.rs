//! Results of a test: plain data, for tables, JSON and plots.
//!
//! Rates are per second, latencies in nanoseconds, shares from 0 to 1. "Done" counts verified flow
//! set-ups, or switches that came up if the test measures connections.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::load::{Destinations, HostOrder, Load, LoadMode};
use crate::usage::ProcessUse;
use crate::verify::AnswerTally;

/// Result of a test.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The load.
    pub load: LoadSummary,
    /// The runs.
    pub runs: Vec<RunReport>,
    /// Summary of the runs.
    pub summary: RunSummary,
    /// Why the test ended early. The last run is then incomplete.
    pub failure: Option<String>,
    /// Latencies of all runs, so that reports can be merged.
    #[serde(skip)]
    pub(crate) histogram: Histogram<u64>,
}

impl Report {
    /// Puts a report together from runs of a load, and all their latencies.
    #[must_use]
    pub fn new(
        load: &Load,
        runs: Vec<RunReport>,
        histogram: Histogram<u64>,
        failure: Option<String>,
    ) -> Self {
        let summary = RunSummary::of(&runs, &histogram);
        Report { load: LoadSummary::of(load), runs, summary, failure, histogram }
    }

    /// Adds the runs of another report on the same load.
    pub fn absorb(&mut self, other: Report) {
        self.runs.extend(other.runs);
        self.failure = self.failure.take().or(other.failure);
        // Both have the same bounds, so no value is out of range.
        let _ = self.histogram.add(&other.histogram);
        self.summary = RunSummary::of(&self.runs, &self.histogram);
    }
}

/// The load, with the names of the command line.
#[derive(Clone, Debug, Serialize)]
pub struct LoadSummary {
    /// Address of the controller.
    pub target: String,
    /// `1.0` or `1.3`.
    pub version: String,
    /// Whether the switches connect by TLS.
    pub tls: bool,
    /// The mode.
    pub mode: &'static str,
    /// Maximum number of packet_ins in flight per switch.
    pub in_flight: u32,
    /// Packet_ins per second and switch, in rate mode.
    pub rate_per_switch: Option<f64>,
    /// Number of switches.
    pub switches: u32,
    /// Number of hosts per switch.
    pub macs: u32,
    /// The order in which hosts send.
    pub order: &'static str,
    /// The destinations of packets.
    pub destinations: &'static str,
    /// Whether the switches buffer packets.
    pub buffered: bool,
    /// Whether the switches send echo requests in place of packet_ins.
    pub echoes: bool,
    /// Number of threads of the generator.
    pub threads: usize,
    /// Seconds that each run measures.
    pub duration_s: f64,
    /// Seed of the random choices.
    pub seed: u64,
}

impl LoadSummary {
    pub(crate) fn of(load: &Load) -> Self {
        LoadSummary {
            target: load.target.to_string(),
            version: load.version.to_string(),
            tls: load.tls.is_some(),
            mode: load.mode.name(),
            in_flight: load.in_flight(),
            rate_per_switch: match load.mode {
                LoadMode::Rate(rate) => Some(rate),
                _ => None,
            },
            switches: load.switches,
            macs: load.macs,
            order: match load.order {
                HostOrder::InOrder => "in-order",
                HostOrder::Random => "random",
                HostOrder::Zipf => "zipf",
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
pub struct RunReport {
    /// Whether the measurement was completed.
    pub complete: bool,
    /// Seconds measured.
    pub seconds: f64,
    /// Done during the measurement.
    pub done: u64,
    /// Done per second.
    pub rate: f64,
    /// Done per second of each switch, in the order of datapath ids.
    pub per_switch: Vec<f64>,
    /// Fairness between switches.
    pub fairness: Fairness,
    /// Latency from sent (at a rate: from due) to answered.
    pub latency: Option<LatencyReport>,
    /// Delay of the generator from due to sent, in rate mode.
    pub lateness: Option<LatencyReport>,
    /// Counts of all messages, including those of the warm-up and those after the measurement.
    pub tally: AnswerTally,
    /// Number of failed connections, in the modes that measure connections.
    pub failed_connections: u64,
    /// Share of the time that each thread of the generator ran.
    pub generator_threads: Vec<f64>,
    /// CPU seconds of all threads of the generator.
    pub generator_cpu_s: f64,
    /// Mean bytes per read of the generator.
    pub generator_bytes_per_read: f64,
    /// Resources that the controller used, if its process is known.
    pub controller: Option<ProcessUse>,
    /// CPU nanoseconds of the controller per done.
    pub controller_cpu_ns: Option<f64>,
    /// User part of `controller_cpu_ns`.
    pub controller_user_ns: Option<f64>,
    /// Kernel part of `controller_cpu_ns`.
    pub controller_system_ns: Option<f64>,
    /// Mean bytes per read of the controller, if it reads with read(2).
    pub controller_bytes_per_read: Option<f64>,
    /// Whether the controller or the generator limited the rate.
    pub bound: RateBound,
    /// Little's law, in the window and latency modes.
    pub little: Option<LittlesLaw>,
    /// Energy, if known.
    pub energy: Option<EnergyReport>,
}

/// Fairness between switches (McNettle Fig. 16).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index: 1 if all switches get the same, 1/n if one gets everything.
    pub jain: f64,
    /// The slowest switch's rate divided by the median.
    pub slowest: f64,
    /// The fastest switch's rate divided by the median.
    pub fastest: f64,
}

impl Fairness {
    /// Computes the fairness of these values, one per switch. All zeros are fair.
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
    /// The median; the mean of both middle numbers if their count is even.
    pub median: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
    pub most: f64,
}

impl Spread {
    /// Computes the spread; zeros for an empty slice.
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

/// Distribution of latencies in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Number of latencies.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Maximum.
    pub max: u64,
    /// Cumulative distribution: each share with its latency. It starts with the minimum at share 0,
    /// and has a point for each latency measured, at the histogram's resolution of three digits.
    pub cdf: Vec<(f64, u64)>,
}

impl LatencyReport {
    /// Summarizes a histogram; `None` if it is empty.
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
        Some(LatencyReport {
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

/// Which side limited the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateBound {
    /// The controller's busiest thread was busier than the generator's, or the load was not meant
    /// to keep either busy. The rate is a result.
    Controller,
    /// A thread of the generator was busier than any of the controller's, or had almost no time
    /// left. The rate is not a result.
    Generator,
    /// The controller's process is not known, and the generator had time left.
    Unknown,
}

impl RateBound {
    /// Decides by the shares of time that the busiest threads of both ran. `kept` is the ratio of
    /// the actual to the requested rate. While a requested rate is kept, the generator does not
    /// limit it, however busy it is.
    #[must_use]
    pub fn of(mode: LoadMode, generator: f64, controller: Option<f64>, kept: f64) -> Self {
        /// A thread above this share has no time left.
        const BUSY: f64 = 0.95;
        /// A rate above this ratio is kept: start and end of a run are not exact.
        const KEPT: f64 = 0.98;
        let open_loop = matches!(mode, LoadMode::Rate(_));
        match controller {
            _ if open_loop && (kept >= KEPT || generator < BUSY) => RateBound::Controller,
            Some(controller) if generator > controller => RateBound::Generator,
            Some(_) => RateBound::Controller,
            None if generator >= BUSY => RateBound::Generator,
            None => RateBound::Unknown,
        }
    }
}

/// Little's law: the number in flight is the rate times the mean latency (Hot-ICE §4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LittlesLaw {
    /// Requested number of packet_ins in flight, of all switches.
    pub asked: f64,
    /// Rate times mean latency.
    pub measured: f64,
}

impl LittlesLaw {
    /// Maximum relative difference between both. An answer waits in the generator for a while
    /// before the next packet_in is sent, and a packet_in waits before it leaves.
    pub const TOLERANCE: f64 = 0.1;

    /// Returns the measured number divided by the requested one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.measured / self.asked
    }

    /// Returns whether rate and latency agree with Little's law.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.ratio() - 1.0).abs() <= LittlesLaw::TOLERANCE
    }
}

/// Energy of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EnergyReport {
    /// Joules of all processors of the machine, including the generator's part if it runs there.
    pub joules: f64,
    /// Done per joule.
    pub done_per_joule: f64,
    /// Whether the joules are estimated as thermal design power times time, as in the TILE-Gx
    /// poster.
    pub estimated: bool,
}

impl EnergyReport {
    /// Returns measured joules, or an estimate by thermal design power; `None` without either.
    pub(crate) fn of(
        joules: Option<f64>,
        tdp_watts: Option<f64>,
        seconds: f64,
        done: u64,
    ) -> Option<Self> {
        let estimated = joules.is_none();
        let joules = joules.or_else(|| tdp_watts.map(|watts| watts * seconds))?;
        Some(EnergyReport { joules, done_per_joule: done as f64 / joules, estimated })
    }
}

/// Summary of the complete runs. Only `tally` covers all runs.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// Done per second.
    pub rate: Spread,
    /// Jain's index.
    pub jain: Spread,
    /// Latencies of all runs.
    pub latency: Option<LatencyReport>,
    /// CPU nanoseconds of the controller per done.
    pub controller_cpu_ns: Option<Spread>,
    /// User part of `controller_cpu_ns`.
    pub controller_user_ns: Option<Spread>,
    /// Kernel part of `controller_cpu_ns`.
    pub controller_system_ns: Option<Spread>,
    /// Bytes per read of the controller, if it reads with read(2).
    pub controller_bytes_per_read: Option<Spread>,
    /// Bytes per read of the generator.
    pub generator_bytes_per_read: Spread,
    /// Share of the time that the controller's busiest thread ran.
    pub controller_busy: Option<Spread>,
    /// Share of the time that the generator's busiest thread ran.
    pub generator_busy: Spread,
    /// Done per joule.
    pub done_per_joule: Option<Spread>,
    /// Counts of all messages.
    pub tally: AnswerTally,
    /// Which side limited the rate: the generator, if it did in any run.
    pub bound: RateBound,
}

impl RunSummary {
    pub(crate) fn of(runs: &[RunReport], latency: &Histogram<u64>) -> Self {
        let complete = || runs.iter().filter(|run| run.complete);
        let spread = |number: &dyn Fn(&RunReport) -> Option<f64>| {
            let numbers: Vec<f64> = complete().filter_map(number).collect();
            (!numbers.is_empty()).then(|| Spread::of(&numbers))
        };
        let mut tally = AnswerTally::default();
        runs.iter().for_each(|run| tally.add(&run.tally));
        let has = |bound| complete().any(|run| run.bound == bound);
        RunSummary {
            rate: spread(&|run| Some(run.rate)).unwrap_or_default(),
            jain: spread(&|run| Some(run.fairness.jain)).unwrap_or_default(),
            latency: LatencyReport::of(latency),
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
                () if has(RateBound::Generator) => RateBound::Generator,
                () if has(RateBound::Unknown) => RateBound::Unknown,
                () => RateBound::Controller,
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
        let of =
            |generator, controller| RateBound::of(LoadMode::Throughput, generator, controller, 1.0);
        assert_eq!(of(0.9, Some(0.99)), RateBound::Controller);
        assert_eq!(of(0.9, Some(0.8)), RateBound::Generator);
        assert_eq!(of(0.99, None), RateBound::Generator);
        assert_eq!(of(0.5, None), RateBound::Unknown);
        let at_a_rate =
            |generator, kept| RateBound::of(LoadMode::Rate(1.0), generator, Some(0.1), kept);
        assert_eq!(at_a_rate(0.2, 0.5), RateBound::Controller);
        assert_eq!(
            at_a_rate(0.99, 0.999),
            RateBound::Controller,
            "what was asked for is what came"
        );
        assert_eq!(at_a_rate(0.99, 0.5), RateBound::Generator);
    }

    #[test]
    fn energy_says_whether_it_was_measured() {
        let measured = EnergyReport::of(Some(10.0), Some(100.0), 1.0, 50).unwrap();
        assert_eq!((measured.done_per_joule, measured.estimated), (5.0, false));
        let estimate = EnergyReport::of(None, Some(100.0), 2.0, 50).unwrap();
        assert_eq!((estimate.joules, estimate.estimated), (200.0, true));
        assert_eq!(EnergyReport::of(None, None, 1.0, 1), None);
    }

    #[test]
    fn a_curve_of_latencies_rises() {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=1000).for_each(|ns| histogram.record(ns).unwrap());
        let latency = LatencyReport::of(&histogram).unwrap();
        assert_eq!((latency.p50, latency.p99, latency.max), (500, 990, 1000));
        assert!(latency.cdf.is_sorted());
        assert_eq!(latency.cdf.first(), Some(&(0.0, 1)));
        assert_eq!(latency.cdf.get(123), Some(&(0.123, 123)), "a point for each latency");
        assert_eq!(latency.cdf.last(), Some(&(1.0, 1000)));
        assert_eq!(LatencyReport::of(&Histogram::new(3).unwrap()), None);
    }
}
