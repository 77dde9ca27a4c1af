//! The figures that the studies published, as data, to compare our own curves with.
//!
//! They come from other hardware, and from generators that verified nothing. So a plot always names
//! the study, its year and its hardware. Units: responses per second, ratios, nanoseconds,
//! responses per joule.

/// A study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Study {
    /// Short name.
    pub name: &'static str,
    /// Authors, title, and place of publication.
    pub source: &'static str,
    /// Year of publication.
    pub year: &'static str,
    /// Hardware of the measurements.
    pub hardware: &'static str,
}

/// Tootoonchian and others 2012.
pub const HOT_ICE: Study = Study {
    name: "Hot-ICE",
    source: "Tootoonchian and others: On Controller Performance in Software-Defined Networks, \
             Hot-ICE 2012",
    year: "2012",
    hardware: "8 cores of 2 GHz, 2 Gb/s",
};

/// Shah and others 2013.
pub const NUST: Study = Study {
    name: "NUST",
    source: "Shah, Faiz, Farooq, Shafi, Mehdi: An Architectural Evaluation of SDN Controllers, \
             ICC 2013",
    year: "2013",
    hardware: "4 cores, cbench on 16 nodes, 10 Gb/s",
};

/// The poster of the University of Sydney.
pub const POSTER: Study = Study {
    name: "TILE-Gx poster",
    source: "University of Sydney: poster on an SDN controller for the TILE-Gx, without a date",
    // It has no date; the newest work that it cites is from 2013.
    year: "2013 or later",
    hardware: "36 cores of 1.2 GHz, cbench, 2 x 10 Gb/s",
};

/// The poster's figures for x86.
pub const POSTER_X86: Study =
    Study { hardware: "16 cores of 2 x Xeon E5-2670, loopback", ..POSTER };

/// Mallon and others 2016.
pub const PRIMETIME: Study = Study {
    name: "Primetime",
    source: "Mallon, Gramoli, Jourjon: Are Today's SDN Controllers Ready for Primetime?, 2016",
    year: "2016",
    hardware: "16 cores of 2 x Xeon E5-2450, 2 x 10 Gb/s",
};

/// Primetime on its second machine.
pub const PRIMETIME_TILE: Study = Study { hardware: "TILE-Gx, 36 cores", ..PRIMETIME };

/// Voellmy and others 2012.
pub const MCNETTLE: Study = Study {
    name: "McNettle",
    source: "Voellmy, Ford, Hudak, Yang: Scaling Software-Defined Network Controllers on Multicore \
             Servers, YALEU/DCS/TR-1468, 2012",
    year: "2012",
    hardware: "48 cores of 4 x Opteron 6164",
};

impl Study {
    /// Returns study, year and hardware, as a heading.
    #[must_use]
    pub fn heading(&self) -> String {
        format!("{} {}: {}", self.name, self.year, self.hardware)
    }
}

/// How a plot shows a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureForm {
    /// Points (x, y).
    Points(&'static [(f64, f64)]),
    /// A y without an x.
    Level(f64),
    /// A bound at an x.
    Upright(f64),
}

/// A figure that a study published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedFigure {
    /// The study.
    pub study: Study,
    /// Subject and conditions.
    pub what: &'static str,
    /// The numbers.
    pub reading: FigureForm,
}

/// A statement of a study that a plot cannot show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The study.
    pub study: Study,
    /// The statement.
    pub text: &'static str,
}

/// Statements of McNettle about state that cores share. Its curves come without numbers.
pub const ON_SHARED_STATE: &[Fact] = &[
    fact(
        MCNETTLE,
        "With 1,000 switches at maximum rate, a table of all hosts that is changed by \
         compare-and-swap scales as local learning does; behind a mutex and in transactions it falls \
         behind.",
    ),
    fact(
        MCNETTLE,
        "A mutex makes look-ups wait in line. Transactions cost more and may start again, but several \
         million a second were sustained.",
    ),
];

/// All studies, for lists of sources.
pub const STUDIES: &[Study] = &[HOT_ICE, NUST, MCNETTLE, POSTER, PRIMETIME];

const fn points(
    study: Study,
    what: &'static str,
    points: &'static [(f64, f64)],
) -> PublishedFigure {
    PublishedFigure { study, what, reading: FigureForm::Points(points) }
}

const fn level(study: Study, what: &'static str, y: f64) -> PublishedFigure {
    PublishedFigure { study, what, reading: FigureForm::Level(y) }
}

const fn upright(study: Study, what: &'static str, x: f64) -> PublishedFigure {
    PublishedFigure { study, what, reading: FigureForm::Upright(x) }
}

const fn fact(study: Study, text: &'static str) -> Fact {
    Fact { study, text }
}

const M: f64 = 1e6;
const MS: f64 = 1e6;
const US: f64 = 1e3;

/// Responses per second, by threads.
pub const BY_THREADS: &[PublishedFigure] = &[
    points(NUST, "NUST, 32 switches", &[(1.0, 1.36 * M), (2.0, 2.62 * M), (4.0, 4.50 * M)]),
    points(NUST, "Beacon, 32 switches", &[(1.0, 1.35 * M), (2.0, 2.12 * M), (4.0, 4.01 * M)]),
    points(NUST, "NOX-MT, 32 switches", &[(1.0, 0.75 * M), (4.0, 2.5 * M)]),
    points(PRIMETIME, "Beacon, almost 20 M; no growth beyond this point", &[(18.0, 20.0 * M)]),
    points(POSTER, "controller of the TILE-Gx poster", &[(36.0, 14.6 * M)]),
    points(POSTER_X86, "Beacon on x86", &[(16.0, 12.8 * M)]),
    points(MCNETTLE, "McNettle, local learning, nearly 14 M", &[(46.0, 14.0 * M)]),
];

/// Other statements about threads.
pub const ON_THREADS: &[Fact] = &[
    fact(NUST, "Maestro reached at most 1.8 M, Floodlight at most 1.6 M."),
    fact(
        PRIMETIME,
        "The others reached at most 7 M. Beacon answered with packet_outs, which \
                     inflated its figure by 20%.",
    ),
    fact(PRIMETIME_TILE, "Beacon reached 4.8 M; the line rate is 29 M."),
    fact(POSTER, "NOX reached 1.7 M and Beacon 4 M on the TILE-Gx, NOX 5.3 M on x86."),
    fact(
        MCNETTLE,
        "Near-linear to 46 cores, over six times NOX; Beacon was better under 30 cores \
                    and stopped scaling at about 20.",
    ),
    fact(HOT_ICE, "NOX-MT outperformed NOX, 30,000 a second, 33 times on 2 quad-core processors."),
];

/// Responses per second, by switches.
pub const BY_SWITCHES: &[PublishedFigure] = &[
    points(NUST, "NUST, 4 threads", &[(16.0, 4.52 * M), (32.0, 4.50 * M), (64.0, 4.19 * M)]),
    points(NUST, "Beacon, 4 threads", &[(16.0, 4.10 * M), (32.0, 4.01 * M), (64.0, 3.69 * M)]),
    points(PRIMETIME, "Beacon, almost 20 M; no growth beyond this point", &[(17.0, 20.0 * M)]),
    points(PRIMETIME, "need of a data centre with 200 switches", &[(200.0, 20.0 * M)]),
    level(MCNETTLE, "McNettle, 46 cores, nearly 14 M", 14.0 * M),
];

/// Other statements about switches.
pub const ON_SWITCHES: &[Fact] = &[
    fact(
        NUST,
        "From 16 to 64 switches NUST lost 7.3%, Beacon 10%, Maestro 12.9%, NOX-MT 14.9%, \
                Floodlight 23.2%.",
    ),
    fact(MCNETTLE, "500 to 5,000 switches; fewer flows with more switches."),
    fact(PRIMETIME_TILE, "Beacon reached 4.4 M over the switches."),
];

/// Responses per second, by MACs.
pub const BY_MACS: &[PublishedFigure] = &[
    points(PRIMETIME, "Beacon, 64 switches, almost 20 M", &[(1e6, 20.0 * M)]),
    points(PRIMETIME, "the other controllers of the study: at most 7 M", &[(1e6, 7.0 * M)]),
];

/// Other statements about MACs.
pub const ON_MACS: &[Fact] = &[
    fact(PRIMETIME, "At 10^7 unique MACs the Java controllers drop, on both machines."),
    fact(
        PRIMETIME_TILE,
        "Over 20% of the cache misses of NOX, Maestro and Floodlight are in the \
                          hash table.",
    ),
];

/// Latency distribution with one switch.
pub const LATENCY_OF_ONE: &[PublishedFigure] = &[
    upright(HOT_ICE, "NOX-MT, Beacon, Maestro: minimum, 10 µs of 10 to 15", 10.0 * US),
    upright(HOT_ICE, "NOX-MT, Beacon, Maestro: minimum, 15 µs of 10 to 15", 15.0 * US),
    upright(PRIMETIME, "Beacon: under 10 ms", 10.0 * MS),
    upright(PRIMETIME, "all controllers of the study: under 100 ms", 100.0 * MS),
];

/// Latency distribution with 64 switches.
pub const LATENCY_OF_64: &[PublishedFigure] = &[
    upright(PRIMETIME, "no controller of the study: under 10 ms", 10.0 * MS),
    upright(PRIMETIME, "Maestro, Beacon: under 100 ms", 100.0 * MS),
];

/// Latency in ping-pong, by switches.
pub const PING_PONG: &[PublishedFigure] = &[
    points(
        MCNETTLE,
        "McNettle, below this line; 15 cores or more",
        &[(1.0, 0.5 * MS), (100.0, 0.5 * MS), (1500.0, 10.0 * MS), (2000.0, 14.0 * MS)],
    ),
    points(MCNETTLE, "Beacon, minimum and maximum", &[(2000.0, 25.0 * MS), (2000.0, 70.0 * MS)]),
];

/// Responses per second in latency mode, by switches.
pub const PING_PONG_RATE: &[PublishedFigure] = &[
    points(NUST, "NUST, 4 threads", &[(16.0, 173_130.0), (32.0, 197_500.0)]),
    points(NUST, "Beacon, immediate, 4 threads", &[(16.0, 150_670.0), (32.0, 171_450.0)]),
    points(NUST, "Maestro, 4 threads", &[(16.0, 147_350.0), (32.0, 162_430.0)]),
];

/// Mean latency at 1,000 messages per second from each switch, by switches.
pub const FIXED_RATE: &[PublishedFigure] = &[
    points(MCNETTLE, "stock I/O manager", &[(100.0, 10.63 * MS), (500.0, 29.82 * MS)]),
    points(MCNETTLE, "two dedicated I/O cores", &[(100.0, 0.32 * MS), (500.0, 3.29 * MS)]),
];

/// Other statements about latency.
pub const ON_LATENCY: &[Fact] = &[
    fact(
        NUST,
        "In latency mode Beacon's default reached 127,000 responses a second, Floodlight \
                123,000, NOX-MT 119,000 at best. Each outgoing message should be sent by itself \
                for latency.",
    ),
    fact(MCNETTLE, "The fixed rate was measured with 16 cores; a ping took 0.2 ms."),
];

/// Mean latency, by packet_ins in flight.
pub const WINDOW_LATENCY: &[PublishedFigure] =
    &[level(HOT_ICE, "NOX at 30,000 a second", 10.0 * MS)];

/// Other statements about windows.
pub const ON_WINDOWS: &[Fact] = &[
    fact(
        HOT_ICE,
        "Average delay is outstanding requests by throughput (Little's law). Twice the \
                   outstanding requests bring slightly more throughput and twice the delay.",
    ),
    fact(
        HOT_ICE,
        "With one packet in flight the minimum response time was 10 to 15 µs for NOX-MT, \
                   Beacon and Maestro. 32 switches, 4 threads.",
    ),
];

/// Jain's index.
pub const FAIRNESS: &[PublishedFigure] = &[
    level(MCNETTLE, "ping-pong: over 0.996", 0.996),
    level(MCNETTLE, "maximum rate: close to 0.5 at worst", 0.5),
];

/// Other statements about fairness.
pub const ON_FAIRNESS: &[Fact] = &[fact(
    MCNETTLE,
    "Jain's index was over 0.996 in ping-pong, and close to 0.5 at worst at maximum rate.",
)];

/// Statements about batches.
pub const ON_BATCHES: &[Fact] = &[
    fact(HOT_ICE, "The largest gain comes from batching of I/O."),
    fact(
        NUST,
        "Static batching of packets for throughput, batching that adapts to the workload \
                for delay.",
    ),
    fact(
        MCNETTLE,
        "Fig. 9 has read size against throughput as a curve without numbers, so it \
                    is not drawn here.",
    ),
];

/// Responses per joule. Derived: the studies give a rate and a power.
pub const PER_JOULE: &[PublishedFigure] = &[
    level(PRIMETIME, "Beacon: 20 M at 320 W under stress", 20.0 * M / 320.0),
    level(PRIMETIME_TILE, "Beacon: 4.8 M at 150 W under stress", 4.8 * M / 150.0),
    level(POSTER, "its controller: 14.6 M at 28 W TDP", 14.6 * M / 28.0),
    level(POSTER_X86, "Beacon: 12.8 M at 230 W TDP", 12.8 * M / 230.0),
];

/// Other statements about energy.
pub const ON_ENERGY: &[Fact] = &[
    fact(PRIMETIME, "Power under stress: 320 W (Xeons), 150 W (TILE-Gx)."),
    fact(
        POSTER,
        "Energy by thermal design power: TILE-Gx 28 W, 2 x Xeon E5-2670 230 W. The \
                  figures per joule are rate by power, worked out here.",
    ),
];
