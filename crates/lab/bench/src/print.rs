//! Reports as text: a table for people, and the result line of cbench for scripts.

use std::fmt::{self, Write as _};

use crate::report::{LatencyReport, LittlesLaw, RateBound, Report, RunReport};
use crate::verify::AnswerTally;

impl Report {
    /// Returns one line in the form of cbench's result, for scripts that parse it: responses per
    /// second of all complete runs as minimum, maximum, mean and standard deviation.
    #[must_use]
    pub fn cbench(&self) -> String {
        let rates: Vec<f64> =
            self.runs.iter().filter(|run| run.complete).map(|run| run.rate).collect();
        let n = rates.len().max(1) as f64;
        let mean = rates.iter().sum::<f64>() / n;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / n;
        let least = rates.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let most = rates.iter().copied().reduce(f64::max).unwrap_or(0.0);
        format!(
            "RESULT: {} switches {} tests min/max/avg/stdev = {least:.2}/{most:.2}/{mean:.2}/{:.2} \
             responses/s",
            self.load.switches,
            rates.len(),
            variance.sqrt()
        )
    }

    /// Returns whether the test counts connections instead of flow set-ups.
    fn is_connecting(&self) -> bool {
        matches!(self.load.mode, "connect" | "storm")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        heading(self, f)?;
        writeln!(
            f,
            "\n {:>3}  {:>13}  {:>11}  {:>6}  {:>7}  {:>9}  {:>9}  {:>4}  {:>4}  {:>9}",
            "run", "rate/s", "per switch", "Jain", "slowest", "p50", "p99", "gen", "ctl", "ctl ns"
        )?;
        for (index, run) in self.runs.iter().enumerate() {
            row(index + 1, run, f)?;
        }
        summary(self, f)?;
        if let Some(latency) = &self.summary.latency {
            writeln!(f, "latency   {}", LatencyLine(latency))?;
        }
        let lateness = self.runs.iter().filter_map(|run| run.lateness.as_ref());
        if let Some(worst) = lateness.max_by_key(|lateness| lateness.p99) {
            writeln!(f, "late      {} (from due to sent, in latency too)", LatencyLine(worst))?;
        }
        if !self.is_connecting() {
            answers(&self.summary.tally, f)?;
        }
        for (index, little) in self.runs.iter().map(|run| run.little).enumerate() {
            if let Some(little) = little {
                law(index + 1, little, f)?;
            }
        }
        costs(self, f)?;
        match &self.failure {
            Some(failure) => writeln!(f, "ended     early: {failure}"),
            None => Ok(()),
        }
    }
}

fn heading(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let load = &report.load;
    write!(
        f,
        "{}: {} switches, OpenFlow {}{}, {} thread(s), {}",
        load.target,
        load.switches,
        load.version,
        if load.tls { " by TLS" } else { "" },
        load.threads,
        load.mode
    )?;
    if let Some(rate) = load.rate_per_switch {
        write!(f, " of {rate} packet_ins per second each")?;
    }
    if report.is_connecting() {
        return writeln!(f);
    }
    writeln!(
        f,
        ", at most {} in flight each\n{} MACs each, {}, to {}, {}",
        load.in_flight,
        GroupedNumber(f64::from(load.macs)),
        load.order,
        load.destinations,
        match load.buffered {
            _ if load.echoes => "echo requests in place of packets",
            true => "buffered",
            false => "unbuffered",
        }
    )
}

fn row(index: usize, run: &RunReport, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let per_switch = run.rate / run.per_switch.len().max(1) as f64;
    let quantile = |at: fn(&LatencyReport) -> u64| match &run.latency {
        Some(latency) => Nanoseconds(at(latency) as f64).to_string(),
        None => "-".to_owned(),
    };
    let busiest = run.generator_threads.iter().copied().fold(0.0, f64::max);
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    let controller = run.controller.as_ref();
    let controller = controller.map_or("?".to_owned(), |used| percent(used.busiest_thread));
    let nanoseconds = run.controller_cpu_ns.map_or("?".to_owned(), |ns| format!("{ns:.1}"));
    writeln!(
        f,
        " {index:>3}  {:>13}  {:>11}  {:>6.4}  {:>7.2}  {:>9}  {:>9}  {:>4}  {controller:>4}  \
         {nanoseconds:>9}{}{}",
        GroupedNumber(run.rate).to_string(),
        GroupedNumber(per_switch).to_string(),
        run.fairness.jain,
        run.fairness.slowest,
        quantile(|latency| latency.p50),
        quantile(|latency| latency.p99),
        percent(busiest),
        if run.bound == RateBound::Generator { "  generator-bound" } else { "" },
        if run.complete { "" } else { "  not complete" },
    )
}

fn summary(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let summary = &report.summary;
    let rate = summary.rate;
    let what = match report.load.echoes {
        _ if report.is_connecting() => "switches known",
        true => "echoes",
        false => "flow set-ups",
    };
    let (least, most) = (GroupedNumber(rate.least), GroupedNumber(rate.most));
    let median = GroupedNumber(rate.median);
    match summary.bound {
        RateBound::Generator => writeln!(
            f,
            "\nno result generator-bound: the generator was busier, so the controller can do at least \
             {median} {what}/s"
        )?,
        RateBound::Controller => {
            writeln!(f, "\nresult    {median} {what}/s (median; {least} to {most})")?;
        }
        RateBound::Unknown => writeln!(
            f,
            "\nresult    {median} {what}/s (median; {least} to {most}); give --pid to check that the \
             controller was busier"
        )?,
    }
    let failed: u64 = report.runs.iter().map(|run| run.failed_connections).sum();
    if failed > 0 {
        writeln!(f, "failed    {} connections", GroupedNumber(failed as f64))?;
    }
    Ok(())
}

fn answers(tally: &AnswerTally, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let AnswerTally { wrong_buffer, wrong_match, wrong_output, wrong_frame, unreadable, .. } =
        tally;
    let AnswerTally { sent, verified, extra, errors, other, spoilt, unfinished, .. } = tally;
    let AnswerTally { missing, without_flow, without_packet, .. } = tally;
    writeln!(
        f,
        "packets   {sent} sent: {verified} verified, {spoilt} answered wrongly, {missing} not \
         answered, {without_flow} without a flow, {without_packet} with a flow but not forwarded, \
         {unfinished} still queued"
    )?;
    writeln!(
        f,
        "answers   {} wrong ({wrong_output} output, {wrong_match} match, {wrong_buffer} buffer_id, \
         {wrong_frame} frame, {unreadable} unreadable), {extra} extra, {errors} errors, {other} \
         other messages",
        tally.wrong()
    )?;
    let names: Vec<&str> = tally.matched.names().collect();
    match names.as_slice() {
        [] => Ok(()),
        names => writeln!(f, "matches   flows match {}", names.join(", ")),
    }
}

fn law(run: usize, little: LittlesLaw, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(
        f,
        "Little    run {run}: rate x mean latency = {:.1} of {} in flight ({:.0}%): {}",
        little.measured,
        little.asked,
        little.ratio() * 100.0,
        if little.holds() { "holds" } else { "does NOT hold; do not trust this run" }
    )
}

fn costs(report: &Report, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(ns) = report.summary.controller_cpu_ns {
        writeln!(
            f,
            "CPU       {:.1} ns of the controller for each ({:.1} to {:.1})",
            ns.median, ns.least, ns.most
        )?;
    }
    let (user, system) = (report.summary.controller_user_ns, report.summary.controller_system_ns);
    if let Some((user, system)) = user.zip(system) {
        writeln!(
            f,
            "          of these {:.1} ns in user mode and {:.1} ns in the kernel (sampled)",
            user.median, system.median
        )?;
    }
    if !report.is_connecting() {
        let by_generator = GroupedNumber(report.summary.generator_bytes_per_read.median);
        match report.summary.controller_bytes_per_read {
            Some(bytes) => writeln!(
                f,
                "reads     {} bytes each by the controller, {by_generator} by the generator",
                GroupedNumber(bytes.median)
            )?,
            None => writeln!(f, "reads     {by_generator} bytes each by the generator")?,
        }
    }
    if let Some(used) = report.runs.last().and_then(|run| run.controller.as_ref()) {
        const MIB: f64 = 1024.0 * 1024.0;
        writeln!(
            f,
            "memory    {:.1} MiB of the controller, {:.1} MiB at most",
            used.resident_bytes as f64 / MIB,
            used.peak_resident_bytes as f64 / MIB
        )?;
    }
    let estimated = |run: &RunReport| run.energy.is_some_and(|energy| energy.estimated);
    if let Some(joule) = report.summary.done_per_joule {
        let how = if report.runs.iter().any(estimated) {
            "ESTIMATED from the thermal design power"
        } else {
            "measured (RAPL), the generator's part included"
        };
        writeln!(f, "energy    {} for each joule, {how}", GroupedNumber(joule.median))?;
    }
    Ok(())
}

/// Writes a latency as one line.
struct LatencyLine<'l>(&'l LatencyReport);

impl fmt::Display for LatencyLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LatencyReport { p50, p90, p99, p999, max, .. } = *self.0;
        let mut gap = "";
        for (name, ns) in [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)]
        {
            write!(f, "{gap}{name} {}", Nanoseconds(ns as f64))?;
            gap = "  ";
        }
        Ok(())
    }
}

/// Writes nanoseconds in a readable unit.
pub struct Nanoseconds(pub f64);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 1e3 => write!(f, "{ns:.0} ns"),
            ns if ns < 1e6 => write!(f, "{:.1} µs", ns / 1e3),
            ns if ns < 1e9 => write!(f, "{:.2} ms", ns / 1e6),
            ns => write!(f, "{:.2} s", ns / 1e9),
        }
    }
}

/// Writes a number with commas between thousands, and one decimal below 100.
struct GroupedNumber(f64);

impl fmt::Display for GroupedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 100.0 && self.0.fract() != 0.0 {
            return write!(f, "{:.1}", self.0);
        }
        let digits = format!("{:.0}", self.0);
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.write_char(digit)?;
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::load::Load;
    use crate::report::{EnergyReport, Fairness};

    fn run(rate: f64, bound: RateBound) -> RunReport {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        histogram.record_n(1500, 10).unwrap();
        RunReport {
            complete: true,
            seconds: 1.0,
            done: rate as u64,
            rate,
            per_switch: vec![rate / 16.0; 16],
            fairness: Fairness::of(&[1.0; 16]),
            latency: LatencyReport::of(&histogram),
            lateness: None,
            tally: AnswerTally { sent: 5, verified: 4, wrong_output: 1, ..AnswerTally::default() },
            failed_connections: 0,
            generator_threads: vec![0.5],
            generator_cpu_s: 0.5,
            generator_bytes_per_read: 6000.0,
            controller: None,
            controller_cpu_ns: Some(42.0),
            controller_user_ns: Some(30.0),
            controller_system_ns: Some(12.0),
            controller_bytes_per_read: Some(50_000.0),
            bound,
            little: Some(LittlesLaw { asked: 16.0, measured: 8.0 }),
            energy: EnergyReport::of(None, Some(50.0), 1.0, rate as u64),
        }
    }

    fn report(runs: Vec<RunReport>) -> Report {
        Report::new(&Load::default(), runs, Histogram::new(3).unwrap(), None)
    }

    #[test]
    fn the_line_of_cbench_is_as_its_scripts_expect() {
        let report =
            report(vec![run(1000.0, RateBound::Controller), run(3000.0, RateBound::Controller)]);
        assert_eq!(
            report.cbench(),
            "RESULT: 16 switches 2 tests min/max/avg/stdev = 1000.00/3000.00/2000.00/1000.00 \
             responses/s"
        );
    }

    #[test]
    fn the_table_has_what_matters() {
        let text = report(vec![run(1_234_567.0, RateBound::Controller)]).to_string();
        for part in [
            "16 switches, OpenFlow 1.0",
            "1,000 MACs each, in-order, to one, buffered",
            "  1,234,567  ",
            "1.5 µs",
            "result    1,234,567 flow set-ups/s",
            "5 sent: 4 verified",
            "1 wrong (1 output",
            "8.0 of 16 in flight (50%): does NOT hold",
            "42.0 ns of the controller",
            "30.0 ns in user mode and 12.0 ns in the kernel",
            "50,000 bytes each by the controller, 6,000 by the generator",
            "ESTIMATED",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(!text.contains("generator-bound"), "{text}");
    }

    #[test]
    fn a_rate_that_the_generator_set_is_not_called_a_result() {
        let text = report(vec![run(1000.0, RateBound::Generator)]).to_string();
        assert!(text.contains("no result generator-bound"), "{text}");
        assert!(text.contains("%     ?       42.0  generator-bound"), "{text}");
        assert!(!text.contains("\nresult"), "{text}");
    }

    #[test]
    fn numbers_read_well() {
        let text = |number: f64| GroupedNumber(number).to_string();
        assert_eq!([text(0.0), text(12.34), text(999.0)], ["0", "12.3", "999"]);
        assert_eq!([text(1000.4), text(12_345_678.0)], ["1,000", "12,345,678"]);
        let time = |ns: f64| Nanoseconds(ns).to_string();
        assert_eq!([time(12.0), time(2_500_000.0), time(3e9)], ["12 ns", "2.50 ms", "3.00 s"]);
    }
}
