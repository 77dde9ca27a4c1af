//! Judges a measurement by its target.

use bellrock_bench::{Comparison, Nanoseconds, Spread};

use super::rows::{MeasuredFigure, RatioCondition};

pub(super) const MIB: f64 = 1024.0 * 1024.0;

/// Verdict on a row.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetVerdict {
    /// The target is met.
    Met,
    /// The target is missed.
    Missed,
    /// There is no target.
    Reported,
    /// Not measured, with the reason.
    NotMeasured(String),
}

impl TargetVerdict {
    /// Text in the table.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            TargetVerdict::Met => "met",
            TargetVerdict::Missed => "MISSED",
            TargetVerdict::Reported => "reported",
            TargetVerdict::NotMeasured(_) => "not measured",
        }
    }

    /// Combines the verdicts of several parts: missed if one is missed.
    pub(super) fn of(parts: &[Option<bool>]) -> Self {
        match () {
            () if parts.contains(&Some(false)) => TargetVerdict::Missed,
            () if parts.contains(&Some(true)) => TargetVerdict::Met,
            () => TargetVerdict::Reported,
        }
    }
}

/// Judges a comparison. Returns the text of the measurement and the verdict.
pub(super) fn judge(checks: &[RatioCondition], found: &Comparison) -> (String, TargetVerdict) {
    let parts: Vec<(String, Option<bool>)> =
        checks.iter().map(|check| one(*check, found)).collect();
    let text: Vec<&str> = parts.iter().map(|(text, _)| text.as_str()).collect();
    let mut measured = text.join("; ");
    let verdicts: Vec<Option<bool>> = parts.iter().map(|(_, verdict)| *verdict).collect();
    let mut verdict = TargetVerdict::of(&verdicts);
    if !found.is_clean() {
        measured.push_str("; NOT ALL ANSWERS WERE RIGHT");
        verdict = TargetVerdict::Missed;
    }
    (measured, verdict)
}

fn one(check: RatioCondition, found: &Comparison) -> (String, Option<bool>) {
    let (figure, judged): (_, Box<dyn Fn(f64) -> Option<bool>>) = match check {
        RatioCondition::AtMost(figure, most) => (figure, Box::new(move |x| Some(x <= most))),
        RatioCondition::AtLeast(figure, least) => (figure, Box::new(move |x| Some(x >= least))),
        RatioCondition::Reported(figure) => (figure, Box::new(|_| None)),
        RatioCondition::Memory => {
            let used = found.controller.runs.iter().filter_map(|run| run.controller.as_ref());
            let bytes = used.map(|used| used.resident_bytes).max();
            let text = bytes.map_or("memory unknown".to_owned(), |bytes| {
                format!("{:.1} MiB resident", bytes as f64 / MIB)
            });
            return (text, None);
        }
        RatioCondition::PerSecondAtLeast(least) => {
            let rate = found.controller.summary.rate.median;
            return (format!("{:.2} million/s", rate / 1e6), Some(rate >= least));
        }
        RatioCondition::P99Under(ms) => {
            let p99 = found.controller.summary.latency.as_ref().map(|latency| latency.p99 as f64);
            let text = p99.map_or("no latency".to_owned(), |ns| format!("p99 {}", Nanoseconds(ns)));
            return (text, Some(p99.is_some_and(|ns| ns < ms * 1e6)));
        }
    };
    let (name, spread) = match figure {
        MeasuredFigure::Cpu => ("CPU", found.cpu),
        MeasuredFigure::Rate => ("rate", Some(found.rate)),
        MeasuredFigure::P50 => ("p50", found.p50),
        MeasuredFigure::P99 => ("p99", found.p99),
    };
    match spread {
        Some(spread) => (format!("{name} {}", Ratio(spread)), judged(spread.median)),
        None => (format!("{name} unknown"), judged(f64::NAN)),
    }
}

/// Writes a ratio with its spread.
pub(super) struct Ratio(pub(super) Spread);

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spread { median, least, most } = self.0;
        let digits = if median >= 100.0 { 0 } else { 2 };
        write!(f, "{median:.digits$} ({least:.digits$} to {most:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use bellrock_bench::{Load, Report};

    fn comparison(cpu: f64) -> Comparison {
        let report = || Report::new(&Load::default(), vec![], Histogram::new(3).unwrap(), None);
        let spread = |median| Spread { median, least: median, most: median };
        Comparison {
            name: String::new(),
            pairs: 3,
            controller: report(),
            reference: report(),
            rate: spread(0.9),
            cpu: Some(spread(cpu)),
            p50: None,
            p99: None,
        }
    }

    #[test]
    fn a_row_is_missed_if_a_part_of_it_is() {
        let checks = [
            RatioCondition::AtMost(MeasuredFigure::Cpu, 1.33),
            RatioCondition::Reported(MeasuredFigure::Rate),
        ];
        let (text, verdict) = judge(&checks, &comparison(1.2));
        assert_eq!(text, "CPU 1.20 (1.20 to 1.20); rate 0.90 (0.90 to 0.90)");
        assert_eq!(verdict, TargetVerdict::Met);
        assert_eq!(judge(&checks, &comparison(1.34)).1, TargetVerdict::Missed);
        assert_eq!(judge(&checks[1..], &comparison(9.0)).1, TargetVerdict::Reported);
        let unknown = [RatioCondition::AtMost(MeasuredFigure::P50, 1.15)];
        assert_eq!(
            judge(&unknown, &comparison(1.0)).1,
            TargetVerdict::Missed,
            "unknown is not met"
        );
    }

    #[test]
    fn wrong_answers_meet_no_target() {
        let mut found = comparison(1.0);
        found.controller.summary.tally.wrong_match = 1;
        let (text, verdict) = judge(&[RatioCondition::AtMost(MeasuredFigure::Cpu, 1.33)], &found);
        assert!(text.contains("NOT ALL ANSWERS WERE RIGHT"), "{text}");
        assert_eq!(verdict, TargetVerdict::Missed);
    }
}
