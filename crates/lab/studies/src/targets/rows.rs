//! The table of targets, as data: what to measure, under which load, and the target.

use bellrock_openflow::Version;

use bellrock_bench::{Destinations, Load, LoadMode, ResponderIdle};

use super::program::{MeasuredProgram, NumberCondition, OperatorsPart, PythonPart};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct TargetRow {
    /// Name, to select the row.
    pub name: &'static str,
    /// What it measures.
    pub what: &'static str,
    /// Its target, in words.
    pub target: &'static str,
    pub(super) measure: Measure,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    /// The controller and the canned responder under the same load.
    Responder { load: LoadShape, idle: ResponderIdle, checks: &'static [RatioCondition] },
    /// The controller under two loads.
    Itself { load: LoadShape, than: LoadShape, checks: &'static [RatioCondition] },
    /// The controller with the file of a variant, and with its own file; each after `settle_s` more
    /// seconds of load.
    Variant {
        name: &'static str,
        load: LoadShape,
        settle_s: f64,
        checks: &'static [RatioCondition],
    },
    /// The controller with `workers` workers and with one.
    Workers { workers: usize, checks: &'static [RatioCondition] },
    /// User instructions per packet_in of the worker with the learning switch, in memory.
    Instructions { version: Version, most: f64 },
    /// Fairness between switches.
    Fairness { load: LoadShape, jain: f64, slowest: f64 },
    /// Idle switches, which send only echo requests.
    Idle { switches: u32, connect_s: f64, memory_mib: f64, cpu: f64 },
    /// Another controller. Ours has to be `least` times as fast.
    Peer { name: &'static str, version: Version, least: f64 },
    /// The controller with TLS and without, under the same load.
    TlsCost { load: LoadShape, checks: &'static [RatioCondition] },
    /// Memory of idle switches with TLS.
    TlsIdle { switches: u32, kib: f64 },
    /// Many switches connect by TLS at once, beside a loaded plain one.
    TlsStorm { switches: u32, connect_s: f64, p99_ms: f64 },
    /// A program that measures by itself.
    Program { program: MeasuredProgram, asked: NumberCondition },
}

/// Condition on the ratio of ours to the other, which take turns.
#[derive(Clone, Copy, Debug)]
pub(super) enum RatioCondition {
    AtMost(MeasuredFigure, f64),
    AtLeast(MeasuredFigure, f64),
    /// No condition: only reported.
    Reported(MeasuredFigure),
    /// Resident memory of ours, only reported.
    Memory,
    /// Minimum rate of ours, in flow set-ups per second.
    PerSecondAtLeast(f64),
    /// The 99th percentile of our latency, in milliseconds.
    P99Under(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MeasuredFigure {
    Cpu,
    Rate,
    P50,
    P99,
}

/// The parameters that differ between the loads of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadShape {
    pub(super) version: Version,
    pub(super) switches: u32,
    pub(super) macs: u32,
    pub(super) mode: LoadMode,
    pub(super) buffered: bool,
    pub(super) destinations: Destinations,
}

impl LoadShape {
    /// Makes a load with these parameters; the rest comes from `load`.
    pub(super) fn on(self, load: Load) -> Load {
        let LoadShape { version, switches, macs, mode, buffered, destinations } = self;
        Load { version, switches, macs, mode, buffered, destinations, ..load }
    }
}

/// The base load for comparisons: cbench's.
pub(super) const BASE: LoadShape = LoadShape {
    version: Version::V1_0,
    switches: 16,
    macs: 1000,
    mode: LoadMode::Throughput,
    buffered: true,
    destinations: Destinations::One,
};
const BASE_13: LoadShape = LoadShape { version: Version::V1_3, ..BASE };
const LATENCY: LoadShape = LoadShape { mode: LoadMode::Latency, ..BASE };

/// `each` hosts on each of 16 switches, all of which are destinations.
const fn macs(each: u32) -> LoadShape {
    LoadShape { macs: each, destinations: Destinations::Uniform, ..BASE }
}

const fn switches(switches: u32) -> LoadShape {
    LoadShape { switches, ..BASE }
}

use MeasuredFigure::{Cpu, P50, P99, Rate};
use RatioCondition::{AtLeast, AtMost, Memory, P99Under, PerSecondAtLeast, Reported};

/// Seconds until host tracking learns the hosts. A new port may lead to a switch; it counts as an
/// edge port only after an announcement would have arrived there.
const TRACKED_S: f64 = 4.0;

const AS_CHEAP: &[RatioCondition] = &[AtMost(Cpu, 1.15)];
const AS_QUICK: &[RatioCondition] = &[AtMost(P50, 1.15), AtMost(P99, 1.15)];
const ONLY_REPORTED: &[RatioCondition] = &[Reported(Cpu), Reported(Rate)];

/// Variant with one lock-free table of hosts for all switches.
pub const LOCK_FREE: &str = "lock-free";
/// Variant with that table behind a mutex.
pub const MUTEX: &str = "mutex";
/// Variant with that table in transactions.
pub const STM: &str = "stm";
/// Variant with discovery and host tracking before its app.
pub const SERVICES: &str = "services";

/// All rows, in the order of measurement.
pub const ROWS: &[TargetRow] = &[
    TargetRow {
        name: "learning-1.0",
        what: "learning, exact, buffered, 1.0, 16 switches, 1,000 MACs each",
        target: "CPU at most 1.33 of the responder's",
        measure: Measure::Responder {
            load: BASE,
            idle: ResponderIdle::Sleep,
            checks: &[AtMost(Cpu, 1.33), Reported(Rate)],
        },
    },
    TargetRow {
        name: "instructions-1.0",
        what: "user instructions for each packet_in, 1.0",
        target: "at most 200",
        measure: Measure::Instructions { version: Version::V1_0, most: 200.0 },
    },
    TargetRow {
        name: "learning-1.3",
        what: "the same on 1.3",
        target: "CPU at most 1.5 of the responder's",
        measure: Measure::Responder {
            load: BASE_13,
            idle: ResponderIdle::Sleep,
            checks: &[AtMost(Cpu, 1.5), Reported(Rate)],
        },
    },
    TargetRow {
        name: "instructions-1.3",
        what: "user instructions for each packet_in, 1.3",
        target: "at most 300",
        measure: Measure::Instructions { version: Version::V1_3, most: 300.0 },
    },
    TargetRow {
        name: "unbuffered-1.0",
        what: "unbuffered packets, 1.0",
        target: "reported",
        measure: Measure::Responder {
            load: LoadShape { buffered: false, ..BASE },
            idle: ResponderIdle::Sleep,
            checks: ONLY_REPORTED,
        },
    },
    TargetRow {
        name: "unbuffered-1.3",
        what: "unbuffered packets, 1.3",
        target: "reported",
        measure: Measure::Responder {
            load: LoadShape { buffered: false, ..BASE_13 },
            idle: ResponderIdle::Sleep,
            checks: ONLY_REPORTED,
        },
    },
    TargetRow {
        name: "switches-64",
        what: "64 switches",
        target: "CPU within 1.15 of that at 16",
        measure: Measure::Itself { load: switches(64), than: BASE, checks: AS_CHEAP },
    },
    TargetRow {
        name: "switches-1000",
        what: "1,000 switches",
        target: "CPU within 1.15 of that at 16",
        measure: Measure::Itself { load: switches(1000), than: BASE, checks: AS_CHEAP },
    },
    TargetRow {
        name: "switches-5000",
        what: "5,000 switches",
        target: "CPU within 1.15 of that at 16",
        measure: Measure::Itself { load: switches(5000), than: BASE, checks: AS_CHEAP },
    },
    TargetRow {
        name: "macs-1e6",
        what: "10^6 MACs in all, uniform destinations",
        target: "rate at least 0.6 of that at 10^3",
        measure: Measure::Itself {
            load: macs(62_500),
            than: macs(64),
            checks: &[AtLeast(Rate, 0.6), Reported(Cpu), Memory],
        },
    },
    TargetRow {
        name: "macs-1e7",
        what: "10^7 MACs in all, uniform destinations",
        target: "rate at least 0.5 of that at 10^3",
        measure: Measure::Itself {
            load: macs(625_000),
            than: macs(64),
            checks: &[AtLeast(Rate, 0.5), Reported(Cpu), Memory],
        },
    },
    TargetRow {
        name: "bytes-per-entry",
        what: "memory of each stored host, in full tables",
        target: "at most 24 bytes",
        measure: Measure::Program {
            program: MeasuredProgram::Capacity,
            asked: NumberCondition::AtMost(24.0),
        },
    },
    TargetRow {
        name: "workers-instructions",
        what: "user instructions for each packet_in with 1, 2, 4 and 16 workers",
        target: "equal within 1%, none of them with a `lock` prefix",
        measure: Measure::Program {
            program: MeasuredProgram::Workers,
            asked: NumberCondition::AtMost(1.0),
        },
    },
    TargetRow {
        name: "workers-2",
        what: "2 workers instead of 1, on the same cores",
        target: "reported",
        measure: Measure::Workers { workers: 2, checks: ONLY_REPORTED },
    },
    TargetRow {
        name: "latency-1-sleep",
        what: "latency, 1 switch, against a sleeping responder",
        target: "p50 and p99 within 1.15",
        measure: Measure::Responder {
            load: LoadShape { switches: 1, ..LATENCY },
            idle: ResponderIdle::Sleep,
            checks: AS_QUICK,
        },
    },
    TargetRow {
        name: "latency-1-spin",
        what: "latency, 1 switch, against a spinning responder",
        target: "p50 and p99 within 1.15",
        measure: Measure::Responder {
            load: LoadShape { switches: 1, ..LATENCY },
            idle: ResponderIdle::Spin,
            checks: AS_QUICK,
        },
    },
    TargetRow {
        name: "latency-64-sleep",
        what: "latency, 64 switches, against a sleeping responder",
        target: "p50 and p99 within 1.15",
        measure: Measure::Responder {
            load: LoadShape { switches: 64, ..LATENCY },
            idle: ResponderIdle::Sleep,
            checks: AS_QUICK,
        },
    },
    TargetRow {
        name: "latency-64-spin",
        what: "latency, 64 switches, against a spinning responder",
        target: "p50 and p99 within 1.15",
        measure: Measure::Responder {
            load: LoadShape { switches: 64, ..LATENCY },
            idle: ResponderIdle::Spin,
            checks: AS_QUICK,
        },
    },
    TargetRow {
        name: "ping-pong-1500",
        what: "ping-pong, 1,500 switches, 100 MACs each",
        target: "p99 under 10 ms and within 1.25 of the responder's",
        measure: Measure::Responder {
            load: LoadShape { switches: 1500, macs: 100, ..LATENCY },
            idle: ResponderIdle::Sleep,
            checks: &[P99Under(10.0), AtMost(P99, 1.25)],
        },
    },
    TargetRow {
        name: "fairness-64",
        what: "fairness, 64 switches",
        target: "Jain at least 0.99, slowest at least 0.8 of the median",
        measure: Measure::Fairness { load: switches(64), jain: 0.99, slowest: 0.8 },
    },
    TargetRow {
        name: "fairness-256",
        what: "fairness, 256 switches",
        target: "Jain at least 0.99, slowest at least 0.8 of the median",
        measure: Measure::Fairness { load: switches(256), jain: 0.99, slowest: 0.8 },
    },
    TargetRow {
        name: "fairness-1000",
        what: "fairness, 1,000 switches",
        target: "Jain at least 0.99, slowest at least 0.8 of the median",
        measure: Measure::Fairness { load: switches(1000), jain: 0.99, slowest: 0.8 },
    },
    TargetRow {
        name: "uneven",
        what: "uneven load: 2 workers, all busy switches on one of them",
        target: "after hand-over at least 1.6 times the rate before; order kept, nothing lost",
        measure: Measure::Program {
            program: MeasuredProgram::Uneven,
            asked: NumberCondition::AtLeast(1.6),
        },
    },
    TargetRow {
        name: "idle-10000",
        what: "10,000 idle switches, an echo request every 5 s from each",
        target: "connected in 10 s, memory under 100 MiB, CPU at most 1.3 of that of a bare epoll loop \
                 that echoes",
        measure: Measure::Idle { switches: 10_000, connect_s: 10.0, memory_mib: 100.0, cpu: 1.3 },
    },
    TargetRow {
        name: "global-lock-free",
        what: "global learning, one table for all switches without locks, 1 worker",
        target: "CPU at most 1.15 of that of local learning",
        measure: Measure::Variant {
            name: LOCK_FREE,
            load: BASE,
            settle_s: 0.0,
            checks: &[AtMost(Cpu, 1.15), Reported(Rate)],
        },
    },
    TargetRow {
        name: "global-mutex",
        what: "the same behind a mutex",
        target: "reported",
        measure: Measure::Variant { name: MUTEX, load: BASE, settle_s: 0.0, checks: ONLY_REPORTED },
    },
    TargetRow {
        name: "global-stm",
        what: "the same in transactions",
        target: "reported",
        measure: Measure::Variant { name: STM, load: BASE, settle_s: 0.0, checks: ONLY_REPORTED },
    },
    TargetRow {
        name: "services-1.0",
        what: "learning with discovery and host tracking, 1.0",
        target: "CPU at most 1.25 of that of learning alone",
        measure: Measure::Variant {
            name: SERVICES,
            load: BASE,
            settle_s: TRACKED_S,
            checks: &[AtMost(Cpu, 1.25), Reported(Rate)],
        },
    },
    TargetRow {
        name: "services-1.3",
        what: "learning with discovery and host tracking, 1.3",
        target: "CPU at most 1.25 of that of learning alone",
        measure: Measure::Variant {
            name: SERVICES,
            load: BASE_13,
            settle_s: TRACKED_S,
            checks: &[AtMost(Cpu, 1.25), Reported(Rate)],
        },
    },
    TargetRow {
        name: "tls-1.0",
        what: "TLS 1.3 with AES-128-GCM, learning, 1.0, 16 switches",
        target: "CPU at most 2.5 of that of plain TCP, at least 8 million set-ups/s on one core",
        measure: Measure::TlsCost {
            load: BASE,
            checks: &[AtMost(Cpu, 2.5), PerSecondAtLeast(8e6), Reported(Rate)],
        },
    },
    TargetRow {
        name: "tls-idle",
        what: "memory of each idle switch with TLS",
        target: "at most 16 KiB",
        measure: Measure::TlsIdle { switches: 2000, kib: 16.0 },
    },
    TargetRow {
        name: "tls-storm",
        what: "1,000 switches connect by TLS at once, beside a loaded plain switch, on two cores with \
               the generator",
        target: "connected in 3 s, p99 of the plain switch under 10 ms",
        measure: Measure::TlsStorm { switches: 1000, connect_s: 3.0, p99_ms: 10.0 },
    },
    TargetRow {
        name: "static-flows",
        what: "REST: 1,000 static flows in one request over 32 switches, until they are confirmed",
        target: "at least 50,000 flows/s",
        measure: operators(OperatorsPart::StaticFlows, NumberCondition::AtLeast(50_000.0)),
    },
    TargetRow {
        name: "single-flows",
        what: "REST: static flows, one in a request, until they are confirmed",
        target: "at least 5,000 flows/s",
        measure: operators(OperatorsPart::SingleFlows, NumberCondition::AtLeast(5_000.0)),
    },
    TargetRow {
        name: "requests",
        what: "REST: requests for the status",
        target: "at least 5,000 requests/s",
        measure: operators(OperatorsPart::Requests, NumberCondition::AtLeast(5_000.0)),
    },
    TargetRow {
        name: "status",
        what: "REST: a request for the status beside a full load of packet_ins",
        target: "99% within 10 ms",
        measure: operators(OperatorsPart::Status, NumberCondition::AtMost(10.0)),
    },
    TargetRow {
        name: "watched",
        what: "a scrape each second and the web page open, beside a full load of packet_ins",
        target: "rate at least 0.98 of that without",
        measure: operators(OperatorsPart::Watched, NumberCondition::AtLeast(0.98)),
    },
    TargetRow {
        name: "reload",
        what: "a reload of as many circuits as there can be, of which one changed",
        target: "under 100 ms",
        measure: operators(OperatorsPart::Reload, NumberCondition::AtMost(100.0)),
    },
    TargetRow {
        name: "python-learning",
        what: "a learning switch in Python, its thread on one core, workers and load on the other",
        target: "at least 500,000 set-ups/s",
        measure: python(PythonPart::Learning, NumberCondition::AtLeast(500_000.0)),
    },
    TargetRow {
        name: "python-unplaced",
        what: "the same, with threads where the controller and the system put them",
        target: "at least 400,000 set-ups/s",
        measure: python(PythonPart::Unplaced, NumberCondition::AtLeast(400_000.0)),
    },
    TargetRow {
        name: "python-headers",
        what: "the first, with headers of IPv4 and TCP looked at and a match of five fields built",
        target: "at least 200,000 set-ups/s",
        measure: python(PythonPart::Headers, NumberCondition::AtLeast(200_000.0)),
    },
    TargetRow {
        name: "python-batches",
        what: "a learning switch in Python that gets its packets in batches",
        target: "at least 2 million set-ups/s",
        measure: python(PythonPart::Batches, NumberCondition::AtLeast(2e6)),
    },
    TargetRow {
        name: "python-os-ken",
        what: "the learning switch in Python against the same on os-ken, 1.0",
        target: "at least 20 times its rate",
        measure: python(PythonPart::OsKen, NumberCondition::AtLeast(20.0)),
    },
    TargetRow {
        name: "python-latency",
        what: "one packet_in at a time through Python",
        target: "half of them within 60 µs",
        measure: python(PythonPart::Latency, NumberCondition::AtMost(60.0)),
    },
    TargetRow {
        name: "python-import",
        what: "`import bellrock`",
        target: "at most 100 ms",
        measure: python(PythonPart::Import, NumberCondition::AtMost(100.0)),
    },
    TargetRow {
        name: "python-wheel",
        what: "the wheel of the Python package",
        target: "at most 15 MB",
        measure: python(PythonPart::Wheel, NumberCondition::AtMost(15.0)),
    },
    TargetRow {
        name: "ovs-testcontroller",
        what: "against ovs-testcontroller, 1.0",
        target: "at least 100 times its rate",
        measure: Measure::Peer { name: "ovs-testcontroller", version: Version::V1_0, least: 100.0 },
    },
    TargetRow {
        name: "os-ken",
        what: "against os-ken, 1.0",
        target: "at least 500 times its rate",
        measure: Measure::Peer { name: "os-ken", version: Version::V1_0, least: 500.0 },
    },
];

const fn operators(part: OperatorsPart, asked: NumberCondition) -> Measure {
    Measure::Program { program: MeasuredProgram::Operators(part), asked }
}

const fn python(part: PythonPart, asked: NumberCondition) -> Measure {
    Measure::Program { program: MeasuredProgram::Python(part), asked }
}

/// The load for another controller: few enough packets in flight that its queue is short when the
/// run ends, and enough to keep it busy.
pub(super) fn peer_load(version: Version) -> LoadShape {
    LoadShape { version, mode: LoadMode::Window(64), ..BASE }
}

/// The load for ours in that comparison.
pub(super) fn base(version: Version) -> LoadShape {
    LoadShape { version, ..BASE }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_loads_that_can_be() {
        let names: BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        for row in ROWS {
            let loads = match row.measure {
                Measure::Responder { load, .. }
                | Measure::Variant { load, .. }
                | Measure::TlsCost { load, .. }
                | Measure::Fairness { load, .. } => vec![load],
                Measure::Itself { load, than, .. } => vec![load, than],
                Measure::Peer { version, .. } => vec![peer_load(version), base(version)],
                _ => vec![],
            };
            assert!(loads.iter().all(|load| load.on(Load::default()).check().is_ok()), "{row:?}");
        }
    }
}
