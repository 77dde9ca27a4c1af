//! The switches that are not connected, and should be.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use bellrock_api::runtime::RoleControl as _;
use bellrock_api::{AlarmState, Dpid, EVENTS_KEPT, Event, Names, OPEN_ALARMS_KEPT};
use bellrock_query::MissingSwitch;

use super::ControllerOperator;

/// The switches with a name that are not connected, by name, and then others that were lost.
pub(super) fn list(operator: &ControllerOperator, names: &Names) -> Vec<MissingSwitch> {
    let Ends { last, open } = ends(operator);
    let now = operator.monitor.now();
    let row = |name: Option<&str>, dpid| MissingSwitch {
        name: name.map(str::to_owned),
        dpid,
        lost_seconds: last.get(&dpid).map(|at| now.saturating_sub(*at).as_secs()),
    };
    let connected = connected(operator);
    let named = names.switches().filter(|(_, dpid)| !connected.contains(dpid));
    let others = open.iter().copied();
    let others = others.filter(|dpid| !connected.contains(dpid) && names.name_of(*dpid).is_none());
    let named = named.map(|(name, dpid)| row(Some(name), dpid));
    named.chain(others.map(|dpid| row(None, dpid))).collect()
}

/// The switches with a name that are not connected.
pub(super) fn named(operator: &ControllerOperator, names: &Names) -> Vec<Dpid> {
    let connected = connected(operator);
    let named = names.switches().map(|(_, dpid)| dpid);
    named.filter(|dpid| !connected.contains(dpid)).collect()
}

fn connected(operator: &ControllerOperator) -> HashSet<Dpid> {
    let (up, standbys) = (operator.monitor.switches(), operator.network.standbys().load());
    up.iter().chain(standbys.iter()).map(|info| info.dpid).collect()
}

/// Ends of connections, as far as events are kept.
struct Ends {
    /// When the last connection of a switch ended.
    last: BTreeMap<Dpid, Duration>,
    /// Switches whose loss is an open alarm, by datapath id.
    open: Vec<Dpid>,
}

fn ends(operator: &ControllerOperator) -> Ends {
    let mut ends = Ends { last: BTreeMap::new(), open: Vec::new() };
    for record in operator.network.events().latest(EVENTS_KEPT + OPEN_ALARMS_KEPT) {
        if let Event::SwitchDown { dpid, .. } = record.event {
            let last = ends.last.entry(dpid).or_default();
            *last = record.time.max(*last);
            if record.state == Some(AlarmState::Open) {
                ends.open.push(dpid);
            }
        }
    }
    ends.open.sort_unstable();
    ends.open.dedup();
    ends
}
