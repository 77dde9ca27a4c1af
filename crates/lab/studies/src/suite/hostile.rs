//! The experiment `hostile`: an honest load beside attacks.

use bellrock_bench::{Load, LoadMode, Spread};

use crate::attack::Attack;
use crate::plot::{Axis, Plot, Scale, Unit};

use super::curves::{AS_ASKED, Curves, FigureReader, RATE};
use super::experiments::{ExperimentCase, Scope};
use super::record::ExperimentRecord;

/// Name of the variant of a controller that runs discovery and host tracking too.
pub const WITH_SERVICES: &str = "services";

/// Packet_ins per second of each honest switch: an open loop, so that a stall counts in full.
const HONEST_RATE: f64 = 100.0;

/// Number of honest switches.
const HONEST_SWITCHES: u32 = 16;

/// MACs of each honest switch.
const HONEST_MACS: u32 = 100;

pub(super) fn cases(scope: &Scope) -> Vec<ExperimentCase> {
    let case = |(nth, attack): (usize, Attack)| {
        let load = Load {
            switches: HONEST_SWITCHES,
            macs: HONEST_MACS,
            mode: LoadMode::Rate(HONEST_RATE),
            ..scope.load()
        };
        let label = match attack.switches(scope.quick) {
            0 => attack.name().to_owned(),
            switches => format!("{}, {switches} switches", attack.name()),
        };
        let case = scope.case("hostile", nth as f64, label, load);
        ExperimentCase { attack, variant: Some(WITH_SERVICES), ..case }
    };
    (0..).zip(Attack::ALL).map(case).collect()
}

pub(super) fn plots(record: &ExperimentRecord) -> Vec<Option<Plot>> {
    let latency = || Axis::new("latency of an honest set-up", Scale::Log, Unit::Time);
    let curves = |name, title, y, number| {
        let names: Vec<String> = (0..)
            .zip(Attack::ALL)
            .map(|(nth, attack): (usize, Attack)| format!("{nth} {}", attack.name()))
            .collect();
        let x = Axis::new(names.join(", "), Scale::Linear, Unit::Count);
        let (lines, place): (&[(&str, &str)], _) = (&[("hostile", "")], AS_ASKED);
        Curves { record, name, title, x, y, lines, place, number, published: &[] }.plot()
    };
    let p50: FigureReader = |figures| Some(one(figures.latency.as_ref()?.p50));
    let p99: FigureReader = |figures| Some(one(figures.latency.as_ref()?.p99));
    let rate = Axis::new("honest flow set-ups per second", Scale::Auto, Unit::Count);
    vec![
        curves("p99", "Honest switches beside attacks, 99th percentile", latency(), p99),
        curves("p50", "Honest switches beside attacks, median", latency(), p50),
        curves("rate", "Honest flow set-ups beside attacks", rate, RATE),
    ]
}

fn one(ns: u64) -> Spread {
    let number = ns as f64;
    Spread { median: number, least: number, most: number }
}
