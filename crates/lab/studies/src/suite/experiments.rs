//! The experiments of the studies, one row each: measurements, plots, and statements of the
//! studies. A new experiment is a new row in [`EXPERIMENTS`].

use std::time::Duration;

use bellrock_bench::packet::packet_in_len;
use bellrock_bench::{
    Destinations, HostOrder, Load, LoadMode, MAX_IN_FLIGHT, MAX_IN_FLIGHT_TOTAL, Spread,
};
use bellrock_openflow::Version;

use crate::attack::Attack;
use crate::plot::{Axis, Plot, Scale, Unit};
use crate::published::{self, Fact, PublishedFigure};

use super::curves::{AS_ASKED, CPU, Curves, FigureReader, RATE, XPosition, distribution};
use super::hostile;
use super::record::ExperimentRecord;

/// Maximum bytes per read where an experiment does not vary them: Bellrock's default.
pub(crate) const READ_BYTES: u32 = 64 << 10;

/// Maximum time until the controller knows a switch: slow ones have thousands to greet.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time after which an answer counts as missing: slow controllers have long queues.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of switches where an experiment does not vary it: cbench's default.
const SWITCHES: u32 = 16;

/// Number of switches where workers share a table (McNettle).
const SHARED_STATE_SWITCHES: u32 = 1000;

/// Variants of a controller with one table for all switches, by synchronization.
pub const SHARED_TABLES: [&str; 3] = ["lock-free", "mutex", "stm"];

/// Packet_ins per second of each switch, at a fixed rate (McNettle).
const FIXED_RATE: f64 = 1000.0;

/// An experiment.
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// Its question.
    pub title: &'static str,
    /// What varies, and what stays the same.
    pub about: &'static str,
    /// Figures of the studies that it repeats.
    pub after: &'static str,
    /// Statements of the studies beside their figures.
    pub facts: &'static [Fact],
    pub(super) cases: fn(&Scope) -> Vec<ExperimentCase>,
    pub(super) plots: fn(&ExperimentRecord) -> Vec<Option<Plot>>,
}

/// Parameters of the points of an experiment.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// Whether to measure fewer points.
    pub(super) quick: bool,
    pub(super) cores: usize,
    /// Threads of controllers where an experiment does not vary them.
    pub(super) workers: usize,
    pub(super) version: Version,
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
    pub(super) learn_timeout: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct ExperimentCase {
    /// Its curve.
    pub(super) line: &'static str,
    /// Its position on the x axis.
    pub(super) x: f64,
    /// The position in words.
    pub(super) label: String,
    /// The load of one run. Target, threads and cores are filled in later.
    pub(super) load: Load,
    /// Threads, for controllers with such a setting.
    pub(super) workers: usize,
    /// Maximum bytes per read. Set, it excludes controllers without such a setting.
    pub(super) read_bytes: Option<u32>,
    /// Name of a variant. Set, it excludes controllers without this variant.
    pub(super) variant: Option<&'static str>,
    /// What hostile switches do beside the load.
    pub(super) attack: Attack,
}

/// All experiments, in the order in which they run.
pub const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "threads",
        title: "Does the rate scale with threads?",
        about: "Threads of the controller, from one to the number of cores; 16 switches, as many \
                packet_ins as the sockets take. Each controller runs on as many cores as it has \
                threads.",
        after: "NUST Table I; Primetime Fig. 2a and 2d",
        facts: published::ON_THREADS,
        cases: threads,
        plots: |record| {
            let x = Axis::new("threads of the controller", Scale::Log, Unit::Count);
            rate_and_cpu(record, x, "threads", published::BY_THREADS)
        },
    },
    Experiment {
        name: "switches",
        title: "Does the rate hold with more switches?",
        about: "Switches, from 16 to 5,000; 1,000 MACs each, as many packet_ins as the sockets take.",
        after: "NUST Table II; Primetime Fig. 2c and 2f; McNettle Fig. 13",
        facts: published::ON_SWITCHES,
        cases: switches,
        plots: |record| {
            let x = Axis::new("switches", Scale::Log, Unit::Count);
            rate_and_cpu(record, x, "switches", published::BY_SWITCHES)
        },
    },
    Experiment {
        name: "macs",
        title: "Does the rate hold when tables exceed the cache?",
        about: "MACs of all switches together, from 10^3 to 10^7, in random order to uniform \
                destinations; 16 switches, as many packet_ins as the sockets take.",
        after: "Primetime Fig. 2b and 2e",
        facts: published::ON_MACS,
        cases: macs,
        plots: |record| {
            let x = Axis::new("MACs of all switches", Scale::Log, Unit::Count);
            rate_and_cpu(record, x, "MACs", published::BY_MACS)
        },
    },
    Experiment {
        name: "latency",
        title: "How long does a flow set-up take?",
        about: "One packet_in in flight for each switch (ping-pong): distributions with 1 and 64 \
                switches, and latency and rate from 1 to 2,000; then 1,000 packet_ins per second \
                from each switch, with latency counted from when they were due.",
        after: "Primetime Fig. 3; McNettle Fig. 14 and its fixed rate; NUST's latency mode",
        facts: published::ON_LATENCY,
        cases: latency,
        plots: latency_plots,
    },
    Experiment {
        name: "window",
        title: "How do rate and latency depend on packets in flight?",
        about: "Packet_ins in flight of each switch, from 1 to 4,096; 16 switches. Checked against \
                Little's law.",
        after: "Hot-ICE",
        facts: published::ON_WINDOWS,
        cases: window,
        plots: window_plots,
    },
    Experiment {
        name: "fairness",
        title: "Are all switches served equally?",
        about: "Jain's index of the switches' rates, 1 if all are equal; with as many packet_ins as \
                the sockets take, and in ping-pong.",
        after: "McNettle Fig. 16",
        facts: published::ON_FAIRNESS,
        cases: fairness,
        plots: fairness_plots,
    },
    Experiment {
        name: "batch",
        title: "How much do larger reads help?",
        about: "Bytes available to a read, by packet_ins in flight of one switch; for controllers \
                with such a setting also the maximum bytes of a read, with as many packet_ins as the \
                sockets take.",
        after: "McNettle Fig. 9; Hot-ICE on batching",
        facts: published::ON_BATCHES,
        cases: batch,
        plots: batch_plots,
    },
    Experiment {
        name: "energy",
        title: "How many flow set-ups per joule?",
        about: "Packet_ins per second of all 16 switches together, at fixed rates. Joules are those \
                of the processors (RAPL), including the generator's part. If they cannot be read, \
                --tdp-watts gives an estimate: power times time.",
        after: "Primetime Fig. 4; the TILE-Gx poster",
        facts: published::ON_ENERGY,
        cases: energy,
        plots: energy_plots,
    },
    Experiment {
        name: "shared-state",
        title: "What does a table shared by all workers cost?",
        about: "Threads of the controller, from one to the number of cores; 1,000 switches, as many \
                packet_ins as the sockets take. Local learning has a table for each switch; \
                global learning has one for all, without locks, behind a mutex, or in transactions.",
        after: "McNettle Fig. 20",
        facts: published::ON_SHARED_STATE,
        cases: shared_state,
        plots: shared_state_plots,
    },
    Experiment {
        name: "hostile",
        title: "Do honest switches feel hostile ones?",
        about: "16 honest switches with 100 packet_ins per second each, beside none, and beside \
                switches that send as much as the controller takes: a broadcast storm, frames of new \
                hosts, LLDP, ports that flap; and beside thousands that get announcements of \
                discovery. The controller runs discovery and host tracking.",
        after: "the attacks of DELTA; targets of this project",
        facts: &[],
        cases: hostile::cases,
        plots: hostile::plots,
    },
];

/// Finds an experiment by name.
#[must_use]
pub fn experiment(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|one| one.name == name)
}

impl Scope {
    /// One run of cbench's load.
    pub(super) fn load(&self) -> Load {
        Load {
            version: self.version,
            switches: SWITCHES,
            warm_up: self.warm_up,
            duration: self.duration,
            runs: 1,
            answer_timeout: ANSWER_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            learn_timeout: self.learn_timeout,
            ..Load::default()
        }
    }

    pub(super) fn case(
        &self,
        line: &'static str,
        x: f64,
        label: String,
        load: Load,
    ) -> ExperimentCase {
        ExperimentCase {
            line,
            x,
            label,
            load,
            workers: self.workers,
            read_bytes: None,
            variant: None,
            attack: Attack::None,
        }
    }

    /// Picks the points of the quick or of the full form.
    fn pick<'a, T>(&self, quick: &'a [T], all: &'a [T]) -> &'a [T] {
        if self.quick { quick } else { all }
    }
}

/// Thread counts: powers of two below the number of cores, then the number of cores.
fn thread_counts(scope: &Scope) -> Vec<usize> {
    let most = scope.cores;
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < most).collect();
    counts.push(most);
    counts
}

fn threads(scope: &Scope) -> Vec<ExperimentCase> {
    let case = |workers| {
        let label = format!("{workers} thread(s)");
        ExperimentCase { workers, ..scope.case("rate", workers as f64, label, scope.load()) }
    };
    thread_counts(scope).into_iter().map(case).collect()
}

fn shared_state(scope: &Scope) -> Vec<ExperimentCase> {
    let load = || Load { switches: SHARED_STATE_SWITCHES, ..scope.load() };
    let variants = std::iter::once(None).chain(SHARED_TABLES.map(Some));
    let of_variant = |variant: Option<&'static str>| {
        thread_counts(scope).into_iter().map(move |workers| {
            let line = variant.unwrap_or("local");
            let label = format!("{line}, {workers} thread(s)");
            ExperimentCase { workers, variant, ..scope.case(line, workers as f64, label, load()) }
        })
    };
    variants.flat_map(of_variant).collect()
}

fn switches(scope: &Scope) -> Vec<ExperimentCase> {
    let all = [16, 32, 64, 128, 256, 512, 1000, 2000, 5000];
    let counts = scope.pick(&[16, 64, 256, 1000], &all);
    let case = |switches: &u32| {
        let load = Load { switches: *switches, ..scope.load() };
        scope.case("rate", f64::from(*switches), format!("{switches} switches"), load)
    };
    counts.iter().map(case).collect()
}

fn macs(scope: &Scope) -> Vec<ExperimentCase> {
    let decades = scope.pick(&[3, 4, 5], &[3, 4, 5, 6, 7]);
    let case = |decade: &u32| {
        let all = 10u32.pow(*decade);
        let load = Load {
            macs: all / SWITCHES,
            order: HostOrder::Random,
            destinations: Destinations::Uniform,
            ..scope.load()
        };
        scope.case("rate", f64::from(all), format!("10^{decade} MACs"), load)
    };
    decades.iter().map(case).collect()
}

fn latency(scope: &Scope) -> Vec<ExperimentCase> {
    let all = [1, 16, 32, 64, 100, 500, 1000, 1500, 2000];
    let counts = scope.pick(&[1, 16, 64, 500], &all);
    let ping_pong = |switches: &u32| {
        let load = Load { switches: *switches, mode: LoadMode::Latency, ..scope.load() };
        let label = format!("{switches} switch(es), ping-pong");
        scope.case("ping-pong", f64::from(*switches), label, load)
    };
    let fixed = |switches: &u32| {
        let load = Load { switches: *switches, mode: LoadMode::Rate(FIXED_RATE), ..scope.load() };
        let label = format!("{switches} switches, 1,000/s each");
        scope.case("fixed", f64::from(*switches), label, load)
    };
    let rated = scope.pick(&[100], &[100, 500]);
    counts.iter().map(ping_pong).chain(rated.iter().map(fixed)).collect()
}

fn window(scope: &Scope) -> Vec<ExperimentCase> {
    let quick = [1, 4, 16, 64, 256, 1024];
    let all = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
    let case = |in_flight: &u32| {
        let load = Load { mode: LoadMode::Window(*in_flight), ..scope.load() };
        let label = format!("{in_flight} in flight");
        scope.case("window", f64::from(*in_flight), label, load)
    };
    scope.pick(&quick, &all).iter().map(case).collect()
}

fn fairness(scope: &Scope) -> Vec<ExperimentCase> {
    let counts = scope.pick(&[16, 64, 256], &[16, 64, 128, 256, 500, 1000]);
    let of = |line, mode: LoadMode| {
        let case = move |switches: &u32| {
            let load = Load { switches: *switches, mode, ..scope.load() };
            let label = format!("{switches} switches, {}", mode.name());
            scope.case(line, f64::from(*switches), label, load)
        };
        counts.iter().map(case)
    };
    of("most", LoadMode::Throughput).chain(of("ping-pong", LoadMode::Latency)).collect()
}

fn batch(scope: &Scope) -> Vec<ExperimentCase> {
    let quick = [1, 8, 64, 512, 4096];
    let all = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, MAX_IN_FLIGHT];
    let bytes = packet_in_len(scope.version) as f64;
    let in_flight = |packets: &u32| {
        let load = Load { switches: 1, mode: LoadMode::Window(*packets), ..scope.load() };
        let label = format!("{packets} in flight, 1 switch");
        scope.case("in flight", f64::from(*packets) * bytes, label, load)
    };
    // Bellrock reads at least 4 KiB at a time.
    let sizes = scope.pick(&[4, 16, 64], &[4, 8, 16, 32, 64, 128, 256]);
    let sized = |kibibytes: &u32| {
        let read_bytes = kibibytes << 10;
        let label = format!("reads of at most {kibibytes} KiB");
        let case = scope.case("read size", f64::from(read_bytes), label, scope.load());
        ExperimentCase { read_bytes: Some(read_bytes), ..case }
    };
    scope.pick(&quick, &all).iter().map(in_flight).chain(sizes.iter().map(sized)).collect()
}

fn energy(scope: &Scope) -> Vec<ExperimentCase> {
    let all = [1e3, 1e4, 3e4, 1e5, 3e5, 1e6, 2e6, 4e6];
    let rates = scope.pick(&[1e3, 1e4, 1e5], &all);
    let case = |rate: &f64| {
        let load = Load { mode: LoadMode::Rate(rate / f64::from(SWITCHES)), ..scope.load() };
        scope.case("load", *rate, format!("{} packet_ins/s", Unit::Count.write(*rate)), load)
    };
    rates.iter().map(case).collect()
}

/// Checks that the maximum number of packet_ins in flight fits.
const _: () = assert!(MAX_IN_FLIGHT * 16 <= MAX_IN_FLIGHT_TOTAL);

const ONE_LINE: &[(&str, &str)] = &[("rate", "")];

fn rate_axis() -> Axis {
    Axis::new("flow set-ups per second", Scale::Auto, Unit::Count)
}

fn cpu_axis() -> Axis {
    Axis::new("CPU time per flow set-up", Scale::Auto, Unit::Time)
}

fn rate_and_cpu(
    record: &ExperimentRecord,
    x: Axis,
    what: &str,
    figures: &'static [PublishedFigure],
) -> Vec<Option<Plot>> {
    let titles = match what {
        "threads" => ("Flow set-ups by threads", "CPU time per flow set-up, by threads"),
        "switches" => ("Flow set-ups by switches", "CPU time per flow set-up, by switches"),
        _ => ("Flow set-ups by MACs", "CPU time per flow set-up, by MACs"),
    };
    let curves = Curves {
        record,
        name: "rate",
        title: titles.0,
        x: x.clone(),
        y: rate_axis(),
        lines: ONE_LINE,
        place: AS_ASKED,
        number: RATE,
        published: figures,
    };
    vec![curves.plot(), cpu_plot(record, titles.1, x, ONE_LINE)]
}

fn cpu_plot(
    record: &ExperimentRecord,
    title: &'static str,
    x: Axis,
    lines: &'static [(&'static str, &'static str)],
) -> Option<Plot> {
    let (place, number, y) = (AS_ASKED, CPU, cpu_axis());
    Curves { record, name: "cpu", title, x, y, lines, place, number, published: &[] }.plot()
}

/// Reads one number of the latency.
macro_rules! of_latency {
    ($field:ident) => {{
        let number: FigureReader = |figures| {
            let number = figures.latency.as_ref()?.$field as f64;
            Some(Spread { median: number, least: number, most: number })
        };
        number
    }};
}

fn latency_plots(record: &ExperimentRecord) -> Vec<Option<Plot>> {
    let x = || Axis::new("switches", Scale::Log, Unit::Count);
    let y = |label| Axis::new(label, Scale::Log, Unit::Time);
    let curves = |name, title, y, line, number, published| {
        let (place, x) = (AS_ASKED, x());
        Curves { record, name, title, x, y, lines: line, place, number, published }.plot()
    };
    let of = |line: &str, x: f64, name, title, references| {
        let outcomes = record.outcomes.iter().filter(|one| one.line == line && one.x == x);
        let part = ExperimentRecord { outcomes: outcomes.cloned().collect(), ..record.clone() };
        distribution(&part, name, title, line, references)
    };
    let ping_pong: &[(&str, &str)] = &[("ping-pong", "")];
    vec![
        of("ping-pong", 1.0, "cdf-1", "Latency with 1 switch", published::LATENCY_OF_ONE),
        of("ping-pong", 64.0, "cdf-64", "Latency with 64 switches", published::LATENCY_OF_64),
        curves(
            "p50",
            "Latency in ping-pong, median",
            y("latency, median"),
            ping_pong,
            of_latency!(p50),
            published::PING_PONG,
        ),
        curves(
            "p99",
            "Latency in ping-pong, 99th percentile",
            y("latency, 99th percentile"),
            ping_pong,
            of_latency!(p99),
            published::PING_PONG,
        ),
        curves(
            "rate",
            "Flow set-ups in ping-pong",
            rate_axis(),
            ping_pong,
            RATE,
            published::PING_PONG_RATE,
        ),
        curves(
            "fixed-rate",
            "Latency at 1,000 packet_ins per second from each switch",
            y("latency, mean"),
            &[("fixed", "")],
            of_latency!(mean),
            published::FIXED_RATE,
        ),
    ]
}

fn window_plots(record: &ExperimentRecord) -> Vec<Option<Plot>> {
    let x = || Axis::new("packet_ins in flight of each switch", Scale::Log, Unit::Count);
    let curves = |name, title, y, number, published| {
        let (lines, place): (&[(&str, &str)], _) = (&[("window", "")], AS_ASKED);
        Curves { record, name, title, x: x(), y, lines, place, number, published }.plot()
    };
    let latency = Axis::new("latency, mean", Scale::Log, Unit::Time);
    vec![
        curves("rate", "Flow set-ups by packet_ins in flight", rate_axis(), RATE, &[]),
        curves(
            "latency",
            "Latency by packet_ins in flight",
            latency,
            of_latency!(mean),
            published::WINDOW_LATENCY,
        ),
    ]
}

fn fairness_plots(record: &ExperimentRecord) -> Vec<Option<Plot>> {
    let curves = |name, title, label: &str, number, published| {
        let lines: &[(&str, &str)] = &[("most", ", maximum rate"), ("ping-pong", ", ping-pong")];
        let x = Axis::new("switches", Scale::Log, Unit::Count);
        let y = Axis::new(label, Scale::Linear, Unit::Share);
        Curves { record, name, title, x, y, lines, place: AS_ASKED, number, published }.plot()
    };
    vec![
        curves(
            "jain",
            "Jain's index of fairness between switches",
            "Jain's index",
            |figures| Some(figures.jain),
            published::FAIRNESS,
        ),
        curves(
            "slowest",
            "The slowest switch",
            "rate of the slowest, divided by the median",
            |figures| Some(figures.slowest),
            &[],
        ),
    ]
}

fn batch_plots(record: &ExperimentRecord) -> Vec<Option<Plot>> {
    let placed = |name, title, label: &str, y, lines, number, place| {
        let x = Axis::new(label, Scale::Log, Unit::Bytes);
        Curves { record, name, title, x, y, lines, place, number, published: &[] }.plot()
    };
    let curves = |name, title, label, y, lines, number| {
        placed(name, title, label, y, lines, number, AS_ASKED)
    };
    let in_flight: &[(&str, &str)] = &[("in flight", "")];
    let sized: &[(&str, &str)] = &[("read size", "")];
    let found: XPosition = |_, figures| Some(figures.bytes_per_read?.median);
    let got = "mean bytes per read of the controller, 1 switch";
    let waiting = "bytes of packet_ins in flight, 1 switch";
    let taken = "maximum bytes of a read, 16 switches";
    let y = rate_axis;
    vec![
        curves("rate", "Flow set-ups by bytes available to a read", waiting, y(), in_flight, RATE),
        placed("rate-by-read", "Flow set-ups by bytes per read", got, y(), in_flight, RATE, found),
        curves(
            "cpu",
            "CPU time per flow set-up, by bytes available to a read",
            waiting,
            cpu_axis(),
            in_flight,
            CPU,
        ),
        curves("read-size", "Flow set-ups by maximum bytes of a read", taken, y(), sized, RATE),
        curves(
            "read-size-cpu",
            "CPU time per flow set-up, by maximum bytes of a read",
            taken,
            cpu_axis(),
            sized,
            CPU,
        ),
    ]
}

const SHARED_STATE_LINES: &[(&str, &str)] = &[
    ("local", ", local learning"),
    ("lock-free", ", global, lock-free"),
    ("mutex", ", global, mutex"),
    ("stm", ", global, transactions"),
];

fn shared_state_plots(record: &ExperimentRecord) -> Vec<Option<Plot>> {
    let x = || Axis::new("threads of the controller", Scale::Log, Unit::Count);
    let rate = Curves {
        record,
        name: "rate",
        title: "Flow set-ups with 1,000 switches, by threads",
        x: x(),
        y: rate_axis(),
        lines: SHARED_STATE_LINES,
        place: AS_ASKED,
        number: RATE,
        published: &[],
    };
    let title = "CPU time per flow set-up, by threads";
    vec![rate.plot(), cpu_plot(record, title, x(), SHARED_STATE_LINES)]
}

fn energy_plots(record: &ExperimentRecord) -> Vec<Option<Plot>> {
    let estimated =
        record.outcomes.iter().filter_map(|one| one.figures.as_ref()).any(|f| f.joules_estimated);
    let curves = |name, title, label: &str, number, published| {
        let lines: &[(&str, &str)] = &[("load", "")];
        let x = Axis::new("packet_ins per second, all switches", Scale::Log, Unit::Count);
        let y = Axis::new(label, Scale::Log, Unit::Count);
        Curves { record, name, title, x, y, lines, place: AS_ASKED, number, published }.plot()
    };
    let title = match estimated {
        true => "Flow set-ups per joule: an estimate from thermal design power",
        false => "Flow set-ups per joule (RAPL)",
    };
    let per_second: FigureReader = |figures| {
        let Spread { median, least, most } = figures.cpu()?;
        let inverse = |ns: f64| 1e9 / ns;
        let some = least > 0.0;
        some.then(|| Spread { median: inverse(median), least: inverse(most), most: inverse(least) })
    };
    vec![
        curves(
            "per-joule",
            title,
            "flow set-ups per joule",
            |figures| figures.per_joule,
            published::PER_JOULE,
        ),
        curves(
            "per-cpu-second",
            "Flow set-ups per second of the controller's CPU time",
            "flow set-ups per CPU second",
            per_second,
            &[],
        ),
    ]
}
