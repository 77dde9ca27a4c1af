//! The table of an experiment: one row per contestant and point.

use bellrock_bench::Spread;
use bellrock_bench::peer::ContestantRole;

use crate::plot::Unit;

use super::record::{ExperimentRecord, Figures, PointResult, shares};

/// Headings of the columns, with their meaning.
pub(super) const COLUMNS: [(&str, &str); 11] = [
    ("at", "the point of the experiment"),
    ("controller", "the controller"),
    ("set-ups/s", "verified flow set-ups per second: median of the runs, minimum to maximum"),
    (
        "of responder's",
        "rate divided by the responder's, run by run: median, minimum to maximum; \
         \u{2264}: at most, since the responder could do more; \u{2265}: at least, since the controller \
         could do more",
    ),
    ("CPU each", "CPU time of the controller's process per flow set-up, median"),
    (
        "of responder's",
        "CPU time divided by the responder's, run by run: median, minimum to maximum",
    ),
    ("p50", "median latency"),
    ("p99", "99th percentile of latency"),
    ("Jain", "Jain's index of fairness between switches"),
    ("bytes per read", "mean bytes per read of the controller, if known"),
    ("remarks", "notes on this row"),
];

pub(super) struct TableRow {
    pub(super) role: ContestantRole,
    /// Whether it is the first row of its point.
    pub(super) first: bool,
    pub(super) cells: [String; COLUMNS.len()],
}

pub(super) fn rows(record: &ExperimentRecord) -> Vec<TableRow> {
    let mut last = None;
    let mut rows = Vec::new();
    for outcome in &record.outcomes {
        let Some(entrant) = record.entrant(outcome) else { continue };
        let point = (outcome.line.as_str(), outcome.x);
        let first = last.replace(point) != Some(point);
        let cells = cells(record, outcome, entrant.role);
        let label = if first { outcome.label.clone() } else { String::new() };
        let [rate, share, cpu, cpu_share, p50, p99, jain, read, remarks] = cells;
        let name = entrant.name.clone();
        let cells = [label, name, rate, share, cpu, cpu_share, p50, p99, jain, read, remarks];
        rows.push(TableRow { role: entrant.role, first, cells });
    }
    rows
}

fn cells(record: &ExperimentRecord, outcome: &PointResult, role: ContestantRole) -> [String; 9] {
    let mut remarks = remarks(outcome);
    let Some(figures) = &outcome.figures else {
        let [a, b, c, d, e, f, g, h] = Default::default();
        return [a, b, c, d, e, f, g, h, remarks.join("; ")];
    };
    let responder = record.responder_at(outcome).filter(|_| role != ContestantRole::Responder);
    let share = responder.and_then(|other| shares(&figures.rates, &other.rates));
    let cpu_share = responder.and_then(|other| shares(&figures.cpu_ns, &other.cpu_ns));
    remarks.extend(on_spread(figures));
    if let (Some(share), Some(responder)) = (share, responder) {
        remarks.extend(on_share(share, figures, responder, outcome));
    }
    let bound = responder.map_or("", |responder| bound(figures, responder));
    let latency = |of: fn(&bellrock_bench::LatencyReport) -> u64| {
        figures.latency.as_ref().map_or(String::new(), |one| Unit::Time.write(of(one) as f64))
    };
    let text = |spread: Option<Spread>, write: fn(f64) -> String| {
        spread.map_or(String::new(), |spread| with_spread(spread, write))
    };
    [
        with_spread(figures.rate(), |number| Unit::Count.write(number)),
        format!("{bound}{}", text(share, share_text)),
        figures.cpu().map_or(String::new(), |cpu| Unit::Time.write(cpu.median)),
        text(cpu_share, |number| format!("{number:.2}")),
        latency(|one| one.p50),
        latency(|one| one.p99),
        format!("{:.4}", figures.jain.median),
        figures.bytes_per_read.map_or(String::new(), |read| Unit::Bytes.write(read.median)),
        remarks.join("; "),
    ]
}

/// Sign before a ratio of which one rate is only a minimum.
fn bound(figures: &Figures, responder: &Figures) -> &'static str {
    match (figures.generator_bound, responder.generator_bound) {
        (false, true) => "\u{2264} ",
        (true, false) => "\u{2265} ",
        _ => "",
    }
}

/// Ratio between rates of runs above which a remark is needed.
const WIDE_SPREAD: f64 = 1.25;

/// Remark on runs whose rates differ a lot.
fn on_spread(figures: &Figures) -> Option<String> {
    let Spread { least, most, .. } = figures.rate();
    let ratio = most / least;
    (least > 0.0 && ratio > WIDE_SPREAD).then(|| {
        format!("runs differ by a factor of {ratio:.1}: busy machine, compare the CPU time instead")
    })
}

/// Remark on a ratio that can be misread.
fn on_share(
    share: Spread,
    figures: &Figures,
    responder: &Figures,
    outcome: &PointResult,
) -> Option<String> {
    match (figures.generator_bound, responder.generator_bound) {
        (true, true) => {
            return Some("the generator limited both rates: the share means nothing".to_owned());
        }
        (false, true) => {
            return Some(
                "the responder was generator-bound and could do more: the share is an upper bound"
                    .to_owned(),
            );
        }
        _ => {}
    }
    let threads = outcome.controller_cores.len();
    (share.median > 1.0).then(|| match threads {
        0 | 1 => "more than the responder: larger reads and writes save it system calls".to_owned(),
        _ => format!("more than the responder: {threads} threads against one"),
    })
}

/// Writes a ratio. Small ones get more digits.
fn share_text(share: f64) -> String {
    match share {
        small if small < 0.0995 => format!("{:.2}%", small * 100.0),
        _ => Unit::Percent.write(share),
    }
}

fn with_spread(spread: Spread, write: impl Fn(f64) -> String) -> String {
    let Spread { median, least, most } = spread;
    let (low, high) = (write(least), write(most));
    match low == high {
        true => write(median),
        false => format!("{} ({low}\u{2013}{high})", write(median)),
    }
}

fn remarks(outcome: &PointResult) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(figures) = &outcome.figures {
        let Figures { generator_bound, not_right, unfinished, verified, little, .. } = figures;
        if *generator_bound {
            remarks.push("generator-bound: not a result".to_owned());
        }
        if *not_right > 0 {
            remarks.push(format!("{verified} right answers, {not_right} wrong, extra or missing"));
        }
        if *unfinished > 0 {
            remarks.push(format!("{unfinished} still queued 10 s later"));
        }
        if let Some(little) = little {
            remarks.push(format!("Little {:.0}%", little.median * 100.0));
        }
    }
    if outcome.shares_cores() {
        remarks.push("shares a core with the generator".to_owned());
    }
    remarks.extend(outcome.failure.clone());
    remarks
}
