//! From the table of experiments to reports, with made-up data.

use std::collections::BTreeSet;

use bellrock_bench::{LatencyReport, Spread};

use super::*;

fn scope(quick: bool, cores: usize) -> Scope {
    Scope {
        quick,
        cores,
        workers: 1,
        version: Version::V1_3,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        learn_timeout: Duration::from_secs(1),
    }
}

/// Figures that grow with the rate.
fn figures(rate: f64) -> Figures {
    let cdf = (1..=10).map(|n| (f64::from(n) / 10.0, n as u64 * 1000)).collect();
    let even = Spread { median: 1.0, least: 1.0, most: 1.0 };
    Figures {
        rates: vec![rate, rate * 1.2],
        cpu_ns: vec![1e9 / rate, 1e9 / rate],
        jain: even,
        slowest: even,
        latency: Some(LatencyReport {
            count: 10,
            mean: 5000.0,
            p50: 5000,
            p90: 9000,
            p99: 9900,
            p999: 9990,
            max: 10_000,
            cdf,
        }),
        per_joule: Some(Spread::of(&[rate / 100.0])),
        joules_estimated: true,
        bytes_per_read: Some(Spread::of(&[rate / 1000.0])),
        little: Some(even),
        generator_bound: rate > 1e6,
        matched: vec!["in_port".into(), "eth_dst".into()],
        verified: 1000,
        not_right: 0,
        unfinished: 0,
    }
}

/// An experiment in which ours is half as fast as the responder, and a peer a hundredth as fast.
fn record(experiment: &Experiment) -> ExperimentRecord {
    let entrant = |name: &str, role| Entrant { name: name.into(), role, command: "x & <y>".into() };
    let contestants = vec![
        entrant("bellrock", ContestantRole::Ours),
        entrant("responder", ContestantRole::Responder),
        entrant("pox", ContestantRole::Peer),
    ];
    let cases = (experiment.cases)(&scope(false, 4));
    let outcome = |case: &ExperimentCase, contestant: usize| PointResult {
        contestant,
        line: case.line.into(),
        x: case.x,
        label: case.label.clone(),
        controller_cores: vec![0],
        generator_cores: vec![1],
        figures: Some(figures([1e6, 2e6, 2e4][contestant])),
        failure: None,
        report: Value::Null,
    };
    ExperimentRecord {
        format: FORMAT,
        bellrock: "0".into(),
        experiment: experiment.name.into(),
        began: 0,
        machine: Machine { cores: 4, ..Machine::default() },
        settings: SuiteSettings::default(),
        contestants,
        notes: vec!["a <note>".into()],
        outcomes: cases.iter().flat_map(|case| (0..3).map(move |n| outcome(case, n))).collect(),
    }
}

#[test]
fn every_point_of_every_experiment_is_a_load_that_can_be() {
    for experiment in EXPERIMENTS {
        for scope in [scope(true, 1), scope(false, 2), scope(false, 48)] {
            let cases = (experiment.cases)(&scope);
            assert!(!cases.is_empty(), "{}", experiment.name);
            let mut points = BTreeSet::new();
            for case in &cases {
                let checked = case.load.check();
                assert_eq!(checked, Ok(()), "{}, {}", experiment.name, case.label);
                assert!(points.insert((case.line, case.x as u64)), "{} twice", case.label);
            }
        }
    }
    let threads = |cores| -> Vec<f64> {
        let cases = (experiment("threads").unwrap().cases)(&scope(false, cores));
        cases.iter().map(|case| case.x).collect()
    };
    assert_eq!(threads(1), [1.0]);
    assert_eq!(threads(2), [1.0, 2.0]);
    assert_eq!(threads(12), [1.0, 2.0, 4.0, 8.0, 12.0], "never more than there are");
}

#[test]
fn every_experiment_is_drawn_with_everybody_in_it() {
    for experiment in EXPERIMENTS {
        let record = record(experiment);
        let plots = files::plots(&record);
        assert!(plots.len() >= 2, "{}", experiment.name);
        let names: BTreeSet<_> = plots.iter().map(|plot| &plot.name).collect();
        assert_eq!(names.len(), plots.len(), "{}: files of the same name", experiment.name);
        for plot in &plots {
            let text = crate::plot::svg(plot).unwrap();
            for name in ["bellrock", "canned responder", "pox"] {
                assert!(text.contains(name), "no {name} in {} {}", experiment.name, plot.name);
            }
        }
    }
}

#[test]
fn published_results_are_shown_with_study_year_and_hardware() {
    for (name, parts) in [
        ("threads", ["NUST 2013: 4 cores", "Primetime 2016: 16 cores", "McNettle 2012: 48 cores"]),
        ("switches", ["NUST 2013: 4 cores", "Primetime 2016: 16 cores", "McNettle 2012: 48 cores"]),
        ("latency", ["Hot-ICE 2012: 8 cores", "NUST 2013: 4 cores", "McNettle 2012: 48 cores"]),
        ("energy", ["TILE-Gx poster 2013 or later: 36 cores", "16 cores of 2 x Xeon", "320 W"]),
    ] {
        let page = html::report(&[record(experiment(name).unwrap())]).unwrap();
        let figures: String = page.split("<figure>").skip(1).collect();
        for part in parts {
            assert!(figures.contains(part), "no {part} in the plots of {name}");
        }
    }
}

#[test]
fn a_report_has_the_shares_of_the_responder_and_loads_nothing() {
    let records: Vec<ExperimentRecord> = EXPERIMENTS.iter().map(record).collect();
    let page = html::report(&records).unwrap();
    for experiment in EXPERIMENTS {
        assert!(page.contains(&format!("<section id=\"{}\">", experiment.name)));
    }
    for part in [
        "<td>\u{2264} 50%</td>",
        "<td>\u{2264} 1.00%</td>",
        "<td>2.00</td>",
        "a &lt;note&gt;",
        "x &amp; &lt;y&gt;",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    assert!(page.contains("the share is an upper bound"), "the responder was generator-bound");
    assert!(page.contains("flows match in_port, eth_dst"), "which matches a controller uses");
    let rest = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for word in ["http", "src=", "<link", "<script", "url("] {
        assert!(!rest.contains(word), "{word} in the report");
    }
    assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
    assert_eq!(page.matches("<tr").count(), page.matches("</tr>").count());
}

#[test]
fn shares_above_one_and_wide_spreads_are_explained() {
    let mut record = record(experiment("switches").unwrap());
    for outcome in &mut record.outcomes {
        let rate = [9e5, 6e5, 3e4][outcome.contestant];
        outcome.figures = Some(Figures { rates: vec![rate, rate * 1.5], ..figures(rate) });
    }
    let page = html::report(std::slice::from_ref(&record)).unwrap();
    assert!(page.contains("<td>150%</td>"), "no bound where nobody was generator-bound");
    assert!(page.contains("more than the responder: larger reads and writes"));
    assert!(page.contains("runs differ by a factor of 1.5"));
    record.outcomes[0].controller_cores = vec![0, 1];
    let page = html::report(&[record]).unwrap();
    assert!(page.contains("more than the responder: 2 threads against one"));
}

#[test]
fn a_picture_says_what_its_reader_has_to_know() {
    let mut record = record(experiment("switches").unwrap());
    record.settings =
        SuiteSettings { quick: true, runs: 1, duration_s: 1.0, ..SuiteSettings::default() };
    record.machine.load_average = 3.0;
    let plots = files::plots(&record);
    for plot in &plots {
        let text = crate::plot::svg(plot).unwrap();
        for part in ["quick: fewer points, 1 run(s) of 1 s each", "busy machine: 3.00 processes"] {
            assert!(text.contains(part), "no {part:?} in {}", plot.name);
        }
        let hollow = |series: &crate::plot::Series| match &series.shape {
            crate::plot::CurveShape::Curve(points) => points.iter().any(|point| point.hollow),
            _ => false,
        };
        assert!(plot.series.iter().any(hollow), "{}: the responder was generator-bound", plot.name);
    }
    record.settings = SuiteSettings { quick: false, runs: 9, ..record.settings };
    record.machine.load_average = 0.1;
    assert!(files::plots(&record).iter().all(|plot| plot.caveats.is_empty()), "nothing to know");
}

#[test]
fn a_folder_is_taken_back_unless_others_made_it() {
    let base = std::env::temp_dir().join(format!("bellrock-suite-{}", std::process::id()));
    let fresh = base.join("fresh");
    files::prepare(&fresh, &[]).unwrap().take_back();
    assert!(!fresh.exists());
    let empty = base.join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    files::prepare(&empty, &[]).unwrap().take_back();
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "it was there before");
    std::fs::remove_dir_all(&base).unwrap();
}

#[test]
fn raw_data_is_read_as_it_was_written() {
    let record = record(experiment("macs").unwrap());
    let text = serde_json::to_string(&record).unwrap();
    let again: ExperimentRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert_eq!(html::report(&[again]).unwrap(), html::report(&[record]).unwrap());
}

#[test]
fn faults_of_ours_are_told_apart_from_those_of_others() {
    let mut record = record(experiment("macs").unwrap());
    record.outcomes[0].failure = Some("it fell".into());
    if let Some(figures) = &mut record.outcomes[2].figures {
        figures.not_right = 7;
    }
    let finished = finished(PathBuf::new(), &[record]);
    assert_eq!(finished.faults, ["macs, 10^3 MACs, bellrock: it fell"]);
    assert_eq!(finished.others, ["macs, 10^3 MACs, pox: 7 answers wrong, missing or too many"]);
}
