//! Rows measured by a separate program: a benchmark or a script. Its last line contains the result,
//! a number before a certain word. An exit status other than 0 reports a loss or an error.

use std::process::{Command, Stdio};

use super::Targets;
use super::judge::TargetVerdict;
use super::measure::{Measurement, NotMeasured};

#[derive(Clone, Copy, Debug)]
pub(super) enum MeasuredProgram {
    /// Uneven load, before and after switches are handed over.
    Uneven,
    /// Memory of a full table, per entry.
    Capacity,
    /// Instructions of several workers per packet_in.
    Workers,
    /// What operators get beside the switches, and what it costs.
    Operators(OperatorsPart),
    /// Apps in Python.
    Python(PythonPart),
}

/// A part of the program that measures apps in Python.
#[derive(Clone, Copy, Debug)]
pub(super) enum PythonPart {
    /// Flow set-ups of a learning switch.
    Learning,
    Unplaced,
    /// The same, with headers of IPv4 and TCP looked at and a match of five fields built.
    Headers,
    /// A learning switch that gets its packets in batches.
    Batches,
    /// The learning switch beside the same on os-ken.
    OsKen,
    /// The time of a packet_in and its answer.
    Latency,
    /// The time of `import bellrock`.
    Import,
    /// The size of the wheel.
    Wheel,
}

impl PythonPart {
    /// Name of the part for the program, and the word behind its number.
    const fn name_and_word(self) -> (&'static str, &'static str) {
        match self {
            PythonPart::Learning => ("learning", "set-ups/s"),
            PythonPart::Unplaced => ("unplaced", "set-ups/s"),
            PythonPart::Headers => ("headers", "set-ups/s"),
            PythonPart::Batches => ("batches", "set-ups/s"),
            PythonPart::OsKen => ("os-ken", "times"),
            PythonPart::Latency => ("latency", "µs"),
            PythonPart::Import => ("import", "ms"),
            PythonPart::Wheel => ("wheel", "MB"),
        }
    }
}

/// A part of the program that measures what operators get.
#[derive(Clone, Copy, Debug)]
pub(super) enum OperatorsPart {
    /// Static flows, many in a request.
    StaticFlows,
    /// Static flows, one in a request.
    SingleFlows,
    /// Requests for the status.
    Requests,
    /// Requests for the status beside a full load.
    Status,
    /// A full load with scrapes and the web page.
    Watched,
    /// A reload with one changed circuit.
    Reload,
}

impl OperatorsPart {
    /// Name of the part for the program, and the word behind its number.
    const fn name_and_word(self) -> (&'static str, &'static str) {
        match self {
            OperatorsPart::StaticFlows => ("static-flows", "flows/s"),
            OperatorsPart::SingleFlows => ("single-flows", "flows/s"),
            OperatorsPart::Requests => ("requests", "requests/s"),
            OperatorsPart::Status => ("status", "ms"),
            OperatorsPart::Watched => ("watched", "times"),
            OperatorsPart::Reload => ("reload", "ms"),
        }
    }
}

/// Condition on the printed number.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberCondition {
    AtLeast(f64),
    AtMost(f64),
}

impl MeasuredProgram {
    /// The word after the number.
    const fn word(self) -> &'static str {
        match self {
            MeasuredProgram::Uneven => "times",
            MeasuredProgram::Capacity => "bytes",
            MeasuredProgram::Workers => "percent",
            MeasuredProgram::Operators(part) => part.name_and_word().1,
            MeasuredProgram::Python(part) => part.name_and_word().1,
        }
    }

    /// The flag for its command.
    const fn flag(self) -> &'static str {
        match self {
            MeasuredProgram::Uneven => "--uneven-bench",
            MeasuredProgram::Capacity => "--capacity-bench",
            MeasuredProgram::Workers => "--workers-bench",
            MeasuredProgram::Operators(_) => "--operators-bench",
            MeasuredProgram::Python(_) => "--python-bench",
        }
    }
}

/// Runs the program. `{pairs}` in its command is the number of pairs of runs, and `{part}` the part
/// to measure.
pub(super) fn measure(
    targets: &Targets,
    program: MeasuredProgram,
    asked: NumberCondition,
) -> Result<Measurement, NotMeasured> {
    let command = match program {
        MeasuredProgram::Uneven => &targets.uneven,
        MeasuredProgram::Capacity => &targets.capacity,
        MeasuredProgram::Workers => &targets.workers,
        MeasuredProgram::Operators(_) => &targets.operators,
        MeasuredProgram::Python(_) => &targets.python,
    };
    let Some(command) = command else {
        let flag = program.flag();
        return Err(format!("give the command that measures it with {flag}, as `make bench` does"));
    };
    let part = match program {
        MeasuredProgram::Operators(part) => part.name_and_word().0,
        MeasuredProgram::Python(part) => part.name_and_word().0,
        _ => "",
    };
    let pairs = targets.effort.pairs().to_string();
    let command = command.replace("{pairs}", &pairs).replace("{part}", part);
    let output = Command::new("sh")
        .args(["-c", &command])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{command}`: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let number = number_before(program.word(), last).ok_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        let error = error.lines().last().unwrap_or_default();
        let (status, word) = (output.status, program.word());
        format!(
            "`{command}` ended ({status}) without a line such as \"1.7 {word}\": {last} {error}"
        )
    })?;
    let met = match asked {
        NumberCondition::AtLeast(least) => number >= least,
        NumberCondition::AtMost(most) => number <= most,
    };
    let verdict = TargetVerdict::of(&[Some(met), Some(output.status.success())]);
    Ok(Measurement { measured: last.to_owned(), verdict, reports: Vec::new() })
}

/// Finds the number before a word. Punctuation may follow the word.
fn number_before(word: &str, line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let bare = |text: &str| text.trim_end_matches(|c: char| c.is_ascii_punctuation()) == word;
    words.windows(2).find(|pair| bare(pair[1])).and_then(|pair| pair[0].parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_stands_before_its_word() {
        let line = "after the hand-over 1.87 times the rate before (median; 1.8 to 2)";
        assert_eq!(number_before("times", line), Some(1.87));
        assert_eq!(number_before("bytes", "21.8 bytes for each entry"), Some(21.8));
        assert_eq!(number_before("times", "many times"), None);
        assert_eq!(number_before("times", "times"), None);
        assert_eq!(number_before("percent", "1.7 times"), None);
        assert_eq!(number_before("percent", "0.02 percent, 0 locked"), Some(0.02));
    }
}
