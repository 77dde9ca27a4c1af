//! The table as a Markdown page: targets, results, machine and commit.

use std::fmt::Write as _;

use bellrock_bench::{RateBound, Report};

use crate::suite::machine::{Machine, date, now};

use super::{Effort, TargetResult, TargetVerdict};

/// Writes the page. `commit` is the commit that was measured.
#[must_use]
pub fn page(outcomes: &[TargetResult], effort: Effort, commit: &str) -> String {
    let machine = Machine::this(bellrock_bench::threads::usable_cores().len());
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", TargetsPage { outcomes, effort, commit, machine, seconds: now() });
    text
}

struct TargetsPage<'a> {
    outcomes: &'a [TargetResult],
    effort: Effort,
    commit: &'a str,
    machine: Machine,
    seconds: u64,
}

impl std::fmt::Display for TargetsPage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
        let Machine { processor, cores, memory_bytes, kernel, load_average } = &self.machine;
        let how = match self.effort {
            Effort::Quick => "the quick form (`make bench`): an impression",
            Effort::Full => "the full form (`bellrock bench targets --full`)",
        };
        writeln!(
            f,
            "# Performance\n\n\
             Targets of the engine, and measurements. `bellrock bench targets` wrote this page; do not \
             edit it.\n\n\
             - Machine: {processor}, {cores} cores, {:.1} GiB, {kernel}\n\
             - Load average at the end: {load_average:.2}\n\
             - Commit: {}\n\
             - Date: {}\n\
             - How: {how}, medians of {} pairs of runs of {:.1} s in turn, with minimum and maximum. Controller on one \
             core, generator on the other, release build, default configuration with `match: exact`.\n\n\
             Ratios are ours divided by the other's. If the generator was busier, a rate is only a minimum of \
             ours, and not a result.\n",
            *memory_bytes as f64 / GIB,
            self.commit,
            date(self.seconds),
            self.effort.pairs(),
            self.effort.duration().as_secs_f64(),
        )?;
        writeln!(f, "| What | Target | Measured | Verdict |\n|---|---|---|---|")?;
        for TargetResult { row, measured, verdict, .. } in self.outcomes {
            let (what, target) = (row.what, row.target);
            let verdict = match verdict {
                TargetVerdict::NotMeasured(why) => format!("not measured: {}", cell(why)),
                other => other.text().to_owned(),
            };
            writeln!(f, "| {what} | {target} | {} | {verdict} |", cell(measured))?;
        }
        writeln!(
            f,
            "\n## Details\n\n\
             CPU is the controller's CPU time per verified flow set-up. The kernel samples its parts in user mode \
             and in the kernel. Bytes is the controller's mean per read(2). Busy is the share of the time that \
             the busiest thread ran.\n\n\
             | Row | Whose | Flow set-ups/s | CPU ns | user ns | kernel ns | Bytes per read | Controller busy | Generator busy |\n\
             |---|---|--:|--:|--:|--:|--:|--:|--:|"
        )?;
        for outcome in self.outcomes {
            for (whose, report) in &outcome.reports {
                beside(f, outcome.row.name, whose, report)?;
            }
        }
        Ok(())
    }
}

fn beside(
    f: &mut std::fmt::Formatter<'_>,
    row: &str,
    whose: &str,
    report: &Report,
) -> std::fmt::Result {
    let summary = &report.summary;
    let known = |spread: Option<bellrock_bench::Spread>, digits: usize| {
        spread.map_or("-".to_owned(), |spread| format!("{:.digits$}", spread.median))
    };
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let bound = if summary.bound == RateBound::Generator { " (generator-bound)" } else { "" };
    writeln!(
        f,
        "| {row} | {whose} | {:.0}{bound} | {} | {} | {} | {} | {} | {} |",
        summary.rate.median,
        known(summary.controller_cpu_ns, 1),
        known(summary.controller_user_ns, 1),
        known(summary.controller_system_ns, 1),
        known(summary.controller_bytes_per_read, 0),
        summary.controller_busy.map_or("-".to_owned(), |busy| percent(busy.median)),
        percent(summary.generator_busy.median),
    )
}

/// Text of a cell: on one line, with `|` escaped.
fn cell(text: &str) -> String {
    text.lines().next().unwrap_or_default().replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::super::ROWS;
    use super::*;
    use bellrock_bench::Load;

    #[test]
    fn the_page_has_a_line_for_each_row_and_for_each_report() {
        let report = Report::new(&Load::default(), vec![], Histogram::new(3).unwrap(), None);
        let outcome = |row, measured: &str, verdict| TargetResult {
            row,
            measured: measured.to_owned(),
            verdict,
            reports: vec![("ours".into(), report.clone())],
        };
        let why = TargetVerdict::NotMeasured("it is\nnot | there".into());
        let outcomes =
            [outcome(ROWS[0], "CPU 1.20", TargetVerdict::Met), outcome(ROWS[1], "-", why)];
        let text = page(&outcomes, Effort::Quick, "abc1234");
        for part in [
            "- Commit: abc1234\n",
            "medians of 3 pairs of runs of 0.7 s",
            "| CPU at most 1.33 of the responder's | CPU 1.20 | met |\n",
            "| at most 200 | - | not measured: it is |\n",
            "| learning-1.0 | ours | 0 | - |",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }
}
