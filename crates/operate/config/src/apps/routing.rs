//! The app `routing`.

use std::ops::RangeInclusive;
use std::time::Duration;

use bellrock_api::{Forwards, Needs};
use bellrock_apps::{RoutingMode, RoutingSettings};

use super::{AppChoice, Known};
use crate::contradictions::{Contradiction, warning};
use crate::form::{Change, Form, Setting};
use crate::values;

pub(super) const ROUTING: Known = Known {
    name: "routing",
    about: "Shortest paths between hosts in any topology, spread over paths of equal length and \
            around failures.",
    choice: || AppChoice::Routing(RoutingSettings::default()),
    settings: SETTINGS,
    forwards: Forwards::All,
    needs: Needs::TOPOLOGY.union(Needs::HOSTS).union(Needs::PATHS),
    contradictions: |choice, _| idle_timeout(choice).into_iter().collect(),
    ..Known::PLAIN
};

impl AppChoice {
    fn routing(&self) -> Option<&RoutingSettings> {
        match self {
            AppChoice::Routing(settings) => Some(settings),
            _ => None,
        }
    }

    fn routing_mut(&mut self) -> Option<&mut RoutingSettings> {
        match self {
            AppChoice::Routing(settings) => Some(settings),
            _ => None,
        }
    }
}

const SETTINGS: &[Setting<AppChoice>] = &[
    setting!(
        routing,
        routing_mut,
        "mode",
        "MODE",
        "When flows are installed. reactive: between two hosts, when they communicate. proactive: \
         to a host at every switch, when it is found.",
        mode,
        |text| values::choice(text, ROUTING_MODES),
        |mode| values::show_choice(mode, ROUTING_MODES)
    ),
    setting!(
        routing,
        routing_mut,
        "idle_timeout",
        "TIME",
        "Whole seconds without a packet after which a switch removes a flow between two hosts; 0 \
         for never. Only in reactive mode.",
        idle_timeout_s,
        |text| values::whole_seconds(text, SECONDS),
        |seconds: &u16| show_seconds((*seconds).into())
    ),
    setting!(
        routing,
        routing_mut,
        "floods_per_s",
        "N",
        "Maximum number of packets of each switch that are flooded per second, each to all ports \
         for hosts in the network. Further ones are dropped (floods_over_limit).",
        floods_per_s,
        |text| values::number(text, FLOODS),
        u32::to_string
    ),
];

fn idle_timeout(choice: &AppChoice) -> Option<Contradiction> {
    let settings = choice.routing()?;
    let is_changed = settings.idle_timeout_s != RoutingSettings::default().idle_timeout_s;
    (settings.mode == RoutingMode::Proactive && is_changed).then(|| {
        let text =
            "`idle_timeout` has no effect in proactive mode, where flows stay; leave the line out";
        warning(&["apps.routing.idle_timeout"], text.to_owned())
    })
}

fn show_seconds(seconds: u64) -> String {
    values::show_time(Duration::from_secs(seconds))
}

const ROUTING_MODES: &[(&str, RoutingMode)] =
    &[("reactive", RoutingMode::Reactive), ("proactive", RoutingMode::Proactive)];
const SECONDS: RangeInclusive<u64> = 0..=65535;
const FLOODS: RangeInclusive<u64> = 1..=1_000_000;
