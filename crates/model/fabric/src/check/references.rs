//! What a flow refers to: tables, groups, meters.

use bellrock_openflow::Action;

use super::state::{Held, is_known};
use super::{Invariant, State};

/// What of that which a flow refers to does not exist, at a switch with so many tables.
pub(super) fn missing(state: &State<'_>, held: &Held<'_>, tables: u8) -> Vec<(Invariant, String)> {
    let mut missing = Vec::new();
    let flow = held.flow;
    if held.is_unread {
        let why = "the flow has an action that is not known here".to_owned();
        missing.push((Invariant::Known, why));
    }
    if flow.table >= tables {
        let why = format!("the switch has {tables} tables, and no table {}", flow.table);
        missing.push((Invariant::Table, why));
    }
    if let Some(next) = held.goto {
        let name = state.name(next);
        if next <= flow.table {
            missing.push((Invariant::Goto, format!("table {next} ({name}) is not a later one")));
        } else if next >= tables || !state.has_flows(next) {
            missing.push((Invariant::Goto, format!("table {next} ({name}) has no flows")));
        }
    }
    if let Some(meter) = held.meter.filter(|meter| !state.meters.contains(meter)) {
        missing.push((Invariant::Meter, format!("there is no meter {meter}")));
    }
    for action in &*flow.applied() {
        let Action::Group(id) = action else { continue };
        let Some(group) = state.groups.get(id) else {
            missing.push((Invariant::Group, format!("there is no group {id}")));
            continue;
        };
        for action in group.buckets.iter().flat_map(|bucket| &bucket.actions) {
            match action {
                Action::Group(inner) if !state.groups.contains_key(inner) => {
                    missing.push((Invariant::Group, format!("there is no group {inner}")));
                }
                action if !is_known(action) => {
                    let why = format!("group {id} has an action that is not known here");
                    missing.push((Invariant::Known, why));
                }
                _ => {}
            }
        }
    }
    missing
}
