//! The report: one HTML file that contains everything and loads nothing.

use std::fmt::Write as _;

use bellrock_bench::ENOUGH_PAIRS;
use bellrock_bench::peer::ContestantRole;

use crate::plot::{self, PlotError, Unit};
use crate::published::{Fact, STUDIES};

use super::experiments::experiment;
use super::files::plots;
use super::machine::date;
use super::record::ExperimentRecord;
use super::rows::{COLUMNS, rows};

const STYLE: &str = include_str!("report.css");

/// What every reader needs to know.
const HOW_TO_READ: &[&str] = &[
    "Blue is the controller that this report is about. Black is the canned responder: one thread that \
     learns nothing and sends prepared answers, so it shows the limit of the kernel's TCP on this machine. \
     Other strong colours are other controllers, which took turns with these two.",
    "Dotted and pale curves are published by studies. They measured years ago, on the hardware named \
     beside the curve, mostly over real networks and with a generator that checked no answer. Compare \
     only the shape of a curve and its order of magnitude.",
    "A flow set-up counts only if its answer is complete and right. Bars show the minimum and the maximum \
     of the runs. A hollow mark, or generator-bound in the table, means that the generator was busier \
     than the controller. Such a rate is only a minimum, and not a result.",
    "A share above 100% is possible: a controller with several threads, or with larger reads, can pass \
     the one thread of the responder. If the responder was generator-bound, it could do more, so the \
     share is an upper bound (\u{2264}).",
    "Rates depend on the machine and on other programs that run there. If the runs of a row differ a lot, \
     the machine was busy. Compare the shares of the responder, which are taken run by run, and the CPU \
     time instead.",
];

pub(super) fn report(records: &[ExperimentRecord]) -> Result<String, PlotError> {
    let mut page = String::new();
    let title = match records {
        [one] => format!("Bellrock bench: {}", one.experiment),
        _ => "Bellrock bench: experiments of the studies".to_owned(),
    };
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    add(&mut page, format_args!("<title>{}</title>\n<style>\n{STYLE}</style>\n", escape(&title)));
    add(&mut page, format_args!("</head><body>\n<h1>{}</h1>\n", escape(&title)));
    if let Some(first) = records.first() {
        facts_of_machine(&mut page, first);
    }
    if records.len() > 1 {
        page.push_str("<nav>");
        for record in records {
            let name = escape(&record.experiment);
            add(&mut page, format_args!("<a href=\"#{name}\">{name}</a> "));
        }
        page.push_str("</nav>\n");
    }
    page.push_str("<details open><summary>How to read it</summary>\n");
    for text in HOW_TO_READ {
        add(&mut page, format_args!("<p>{text}</p>\n"));
    }
    page.push_str("</details>\n");
    for record in records {
        section(&mut page, record)?;
    }
    sources(&mut page);
    page.push_str("</body></html>\n");
    Ok(page)
}

fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

fn facts_of_machine(page: &mut String, record: &ExperimentRecord) {
    let (machine, settings) = (&record.machine, &record.settings);
    let memory = Unit::Bytes.write(machine.memory_bytes as f64);
    page.push_str("<table class=\"facts\">\n");
    let mut row = |name: &str, value: String| {
        add(page, format_args!("<tr><th>{name}</th><td>{}</td></tr>\n", escape(&value)));
    };
    row("machine", format!("{}, {} usable core(s), {memory}", machine.processor, machine.cores));
    row("kernel", machine.kernel.clone());
    row("load before", format!("{:.2} processes, on average", machine.load_average));
    row("began", date(record.began));
    row(
        "measured",
        format!(
            "OpenFlow {}, {} run(s) of {} s after {} s of load, in turn{}",
            settings.openflow,
            settings.runs,
            settings.duration_s,
            settings.warm_up_s,
            match (settings.quick, settings.runs < ENOUGH_PAIRS) {
                (true, _) => "; the short form (--quick): an impression, not a result",
                (false, true) => "; fewer than 9 runs: an impression, not a result",
                (false, false) => "",
            }
        ),
    );
    for (nth, entrant) in record.contestants.iter().enumerate() {
        let of = if entrant.role == ContestantRole::Peer { " (peer)" } else { "" };
        let matches = match record.matched(nth).as_slice() {
            [] => String::new(),
            fields => format!("; flows match {}", fields.join(", ")),
        };
        row(&escape(&entrant.name), format!("{}{of}{matches}", entrant.command));
    }
    row("measured by", format!("bellrock {}", record.bellrock));
    page.push_str("</table>\n");
}

fn section(page: &mut String, record: &ExperimentRecord) -> Result<(), PlotError> {
    let Some(experiment) = experiment(&record.experiment) else { return Ok(()) };
    let name = experiment.name;
    add(page, format_args!("<section id=\"{name}\"><h2>{name}: {}</h2>\n", experiment.title));
    add(page, format_args!("<p>{}</p>\n", escape(experiment.about)));
    add(page, format_args!("<p class=\"after\">After {}</p>\n", escape(experiment.after)));
    for note in &record.notes {
        add(page, format_args!("<p class=\"note\">{}</p>\n", escape(note)));
    }
    for plot in plots(record) {
        add(page, format_args!("<figure>{}</figure>\n", plot::svg(&plot)?));
    }
    table(page, record);
    facts(page, experiment.facts);
    page.push_str("</section>\n");
    Ok(())
}

fn table(page: &mut String, record: &ExperimentRecord) {
    page.push_str("<details open><summary>Numbers</summary><div class=\"wide\"><table>\n<tr>");
    for (name, meaning) in COLUMNS {
        add(page, format_args!("<th title=\"{}\">{name}</th>", escape(meaning)));
    }
    page.push_str("</tr>\n");
    for row in rows(record) {
        let role = match row.role {
            ContestantRole::Ours => "ours",
            ContestantRole::Responder => "responder",
            ContestantRole::Peer => "peer",
        };
        let first = if row.first { " first" } else { "" };
        add(page, format_args!("<tr class=\"{role}{first}\">"));
        for cell in &row.cells {
            add(page, format_args!("<td>{}</td>", escape(cell)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div></details>\n");
}

fn facts(page: &mut String, facts: &[Fact]) {
    page.push_str("<details open><summary>What the studies say</summary><ul>\n");
    for fact in facts {
        let (heading, text) = (escape(&fact.study.heading()), escape(fact.text));
        add(page, format_args!("<li><b>{heading}</b>. {text}</li>\n"));
    }
    page.push_str("</ul></details>\n");
}

fn sources(page: &mut String) {
    page.push_str("<h2>The studies</h2>\n<ul>\n");
    for study in STUDIES {
        let source = escape(study.source);
        add(page, format_args!("<li><b>{} {}</b>: {source}.</li>\n", study.name, study.year));
    }
    page.push_str("</ul>\n");
}

fn escape(text: &str) -> String {
    let replaced = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    replaced.replace('"', "&quot;")
}
