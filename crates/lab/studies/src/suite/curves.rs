//! Turns measured and published figures into the curves of a plot.

use bellrock_bench::Spread;
use bellrock_bench::peer::ContestantRole;

use crate::plot::{Axis, CurveOwner, CurveShape, Plot, Point, Scale, Series, Unit};
use crate::published::{FigureForm, PublishedFigure};

use super::record::{ExperimentRecord, Figures, PointResult};

/// Reads a number from the figures of an outcome.
pub(super) type FigureReader = fn(&Figures) -> Option<Spread>;

/// Position of an outcome on the x axis.
pub(super) type XPosition = fn(&PointResult, &Figures) -> Option<f64>;

/// The x of the experiment.
pub(super) const AS_ASKED: XPosition = |outcome, _| Some(outcome.x);

pub(super) const RATE: FigureReader = |figures| Some(figures.rate());

/// CPU nanoseconds per flow set-up.
pub(super) const CPU: FigureReader = |figures| figures.cpu();

/// Description of a plot of curves.
pub(super) struct Curves<'r> {
    pub(super) record: &'r ExperimentRecord,
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Lines of outcomes, each with a suffix for the contestant's name.
    pub(super) lines: &'static [(&'static str, &'static str)],
    pub(super) place: XPosition,
    pub(super) number: FigureReader,
    pub(super) published: &'static [PublishedFigure],
}

impl Curves<'_> {
    /// Makes the plot; `None` if nothing of it was measured.
    pub(super) fn plot(self) -> Option<Plot> {
        let mut series = Vec::new();
        let mut marks: Vec<f64> = Vec::new();
        for (nth, (line, suffix)) in self.lines.iter().enumerate() {
            for contestant in 0..self.record.contestants.len() {
                let points = self.points(line, contestant);
                if points.is_empty() {
                    continue;
                }
                marks.extend(points.iter().map(|point| point.x));
                let shape = CurveShape::Curve(points);
                series.push(measured(self.record, contestant, suffix, nth > 0, shape));
            }
        }
        if series.is_empty() {
            return None;
        }
        series.sort_by_key(|one| order(one.whose));
        series.extend(published(self.published));
        marks.sort_by(f64::total_cmp);
        // Marks of measured points come first, in case there is not enough space.
        for figure in self.published {
            if let FigureForm::Points(points) = figure.reading {
                marks.extend(points.iter().map(|(x, _)| *x));
            }
        }
        let x = Axis { marks, ..self.x };
        Some(Plot {
            name: self.name.into(),
            title: self.title.into(),
            caveats: self.record.caveats(),
            x,
            y: self.y,
            series,
        })
    }

    fn points(&self, line: &str, contestant: usize) -> Vec<Point> {
        let mut points: Vec<Point> = outcomes(self.record, line, contestant)
            .filter_map(|(outcome, figures)| {
                let Spread { median, least, most } = (self.number)(figures)?;
                Some(Point {
                    x: (self.place)(outcome, figures)?,
                    y: median,
                    spread: (most > least).then_some((least, most)),
                    hollow: figures.generator_bound,
                })
            })
            .collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    }
}

/// Plots the latency distributions of all contestants at one point.
pub(super) fn distribution(
    record: &ExperimentRecord,
    name: &'static str,
    title: &'static str,
    line: &str,
    references: &[PublishedFigure],
) -> Option<Plot> {
    let mut series = Vec::new();
    for contestant in 0..record.contestants.len() {
        let found = outcomes(record, line, contestant)
            .find_map(|(_, figures)| Some((figures, figures.latency.as_ref()?)));
        if let Some((figures, latency)) = found {
            let hollow = figures.generator_bound;
            let at = |(share, ns): &(f64, u64)| Point { hollow, ..Point::at(*ns as f64, *share) };
            let shape = CurveShape::Line(latency.cdf.iter().map(at).collect());
            // A line has no marks that could be hollow.
            let suffix = if hollow { ", generator-bound: no result" } else { "" };
            series.push(measured(record, contestant, suffix, false, shape));
        }
    }
    if series.is_empty() {
        return None;
    }
    series.sort_by_key(|one| order(one.whose));
    series.extend(published(references));
    Some(Plot {
        name: name.into(),
        title: title.into(),
        caveats: record.caveats(),
        x: Axis::new("latency of a flow set-up, at most", Scale::Log, Unit::Time),
        y: Axis::new("share of the flow set-ups", Scale::Linear, Unit::Percent),
        series,
    })
}

/// Returns the complete outcomes of a contestant in a line.
fn outcomes<'r>(
    record: &'r ExperimentRecord,
    line: &'r str,
    contestant: usize,
) -> impl Iterator<Item = (&'r PointResult, &'r Figures)> {
    let of = move |one: &&PointResult| one.contestant == contestant && one.line == line;
    let found = record.outcomes.iter().filter(of);
    found.filter_map(|one| one.figures.as_ref().map(|figures| (one, figures)))
}

fn measured(
    record: &ExperimentRecord,
    contestant: usize,
    suffix: &str,
    second: bool,
    shape: CurveShape,
) -> Series {
    let entrant = &record.contestants[contestant];
    let earlier = &record.contestants[..contestant];
    let peers = earlier.iter().filter(|other| other.role == ContestantRole::Peer).count();
    let (whose, name) = match entrant.role {
        ContestantRole::Ours => (CurveOwner::Ours, format!("{} {}", entrant.name, record.bellrock)),
        ContestantRole::Responder => {
            let text = "canned responder: 1 thread, learns nothing; what TCP allows here";
            (CurveOwner::Responder, text.to_owned())
        }
        ContestantRole::Peer => (CurveOwner::Peer(peers), entrant.name.clone()),
    };
    let matched = match (entrant.role, record.matched(contestant).as_slice()) {
        (ContestantRole::Responder, _) | (_, []) => String::new(),
        (_, fields) => format!(", flows match {} fields", fields.len()),
    };
    Series {
        name: format!("{name}{suffix}{matched}"),
        group: heading(record),
        whose,
        second,
        shape,
    }
}

/// Heading over the measured curves. A reader may have only the picture.
fn heading(record: &ExperimentRecord) -> String {
    let ExperimentRecord { machine, settings, .. } = record;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    let mut text = format!("Measured here, every answer verified: {} {cores}", machine.cores);
    for part in [&machine.processor, &settings.openflow].into_iter().filter(|one| !one.is_empty()) {
        text.push_str(", ");
        if part == &settings.openflow {
            text.push_str("OpenFlow ");
        }
        text.push_str(part);
    }
    text
}

/// Order in the legend.
fn order(whose: CurveOwner) -> usize {
    match whose {
        CurveOwner::Ours => 0,
        CurveOwner::Responder => 1,
        CurveOwner::Peer(n) | CurveOwner::Published(n) => 2 + n,
    }
}

fn published(figures: &[PublishedFigure]) -> Vec<Series> {
    let series = figures.iter().enumerate().map(|(nth, figure)| Series {
        name: figure.what.into(),
        group: figure.study.heading(),
        whose: CurveOwner::Published(nth),
        second: false,
        shape: match figure.reading {
            FigureForm::Points(points) => {
                CurveShape::Curve(points.iter().map(|(x, y)| Point::at(*x, *y)).collect())
            }
            FigureForm::Level(y) => CurveShape::Level(y),
            FigureForm::Upright(x) => CurveShape::Upright(x),
        },
    });
    series.collect()
}
