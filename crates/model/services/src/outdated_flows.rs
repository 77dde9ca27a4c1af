//! Removes the flows that an earlier version of a service has left in switches.
//!
//! A service keeps its flows over a restart and a takeover ([`bellrock_api::EarlierFlows::Keep`]):
//! it sends them again, and each replaces its equal, so that no packet is missed. A flow that only
//! an earlier version, or an earlier place in the chain, has wanted has no such successor. It would
//! stay for ever.
//!
//! So a service asks each switch once, [`ASKED_AFTER`] it has come up here, for the flows with its
//! cookie. (A switch of 1.0 reports all flows, and those with other cookies are left out.) It
//! removes those that it does not want, each by its cookie, table, match and priority.
//!
//! # What it is not
//! It does not install or correct flows: `own_flows` does. An app with flows of
//! its own has [desired state](crate::desired), which removes what is not wanted by itself.
//!
//! # In a cluster
//! A node asks the switches that it is master of. If it has lost a switch before the answer comes,
//! it removes nothing.
//!
//! # Failure
//! A switch that refuses the request, or does not answer it in time, keeps its flows until it comes
//! up again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{
    AppId, Change, Dpid, Event, Flow, FlowKey, FlowNormalizer, Network, ReportedFlow, Version,
};

use crate::desired::reported_flows;

/// Time after which a switch that has come up is asked. Its first packets and flows go before.
pub const ASKED_AFTER: Duration = Duration::from_secs(1);

/// Time for a switch to report its flows. The other switches wait for it, and nothing else does.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Maximum number of flows that are removed from a switch each time it comes up.
const MAX_REMOVED: usize = 256;

/// A connection of a switch: it, when it came up, and its version.
type Connection = (Dpid, Duration, Version);

/// Removes what the service of this `network` does not want, from each switch that comes up, as
/// long as the controller runs. The service wants these flows in every switch.
pub(crate) async fn run(network: Network, wanted: Vec<Flow>) {
    // The controller itself has no services' flows.
    let Some(app) = network.app_id() else { return };
    // When each switch came up that was asked.
    let mut asked: BTreeMap<Dpid, Duration> = BTreeMap::new();
    loop {
        let switches = network.watch_switches().load();
        asked.retain(|dpid, since| switches.get(*dpid).is_some_and(|info| info.since == *since));
        let new = switches.iter().filter(|info| asked.get(&info.dpid) != Some(&info.since));
        let mut new: Vec<Connection> =
            new.map(|info| (info.dpid, info.since, info.version)).collect();
        new.sort_by_key(|(_, since, _)| *since);
        let Some((_, first, _)) = new.first() else {
            network.watch_switches().newer(switches.version()).await;
            continue;
        };
        network.sleep_until(*first + ASKED_AFTER).await;
        let now = network.now();
        for connection in new.into_iter().filter(|(_, since, _)| *since + ASKED_AFTER <= now) {
            let (dpid, since, _) = connection;
            asked.insert(dpid, since);
            clean(&network, app, connection, &wanted).await;
        }
    }
}

/// Asks a switch for the flows of the service, and removes the outdated ones.
async fn clean(network: &Network, app: AppId, connection: Connection, wanted: &[Flow]) {
    let (dpid, _, version) = connection;
    if !is_up(network, connection) {
        return;
    }
    let reply = reported_flows(network, dpid, version);
    let Some(Ok(reported)) = network.timeout(ANSWERED_WITHIN, reply).await else { return };
    let found = reported.len();
    let outdated = outdated(reported, &wanted_keys(app, version, wanted));
    if outdated.is_empty() || !is_up(network, connection) {
        return;
    }
    let changes: Vec<Change> = outdated.into_iter().map(Change::RemoveReported).collect();
    let event = Event::Reconciled { app: network.app(), dpid, found, changes: changes.len() };
    network.events().publish(network.now(), event);
    // A flow that the switch does not remove stays until it comes up again.
    let _ = network.program(dpid, changes).await;
}

/// Whether this connection is still the one of the switch, and this node its master.
fn is_up(network: &Network, (dpid, since, _): Connection) -> bool {
    network.switch(dpid).is_some_and(|info| info.since == since)
}

/// Returns the keys of the wanted flows in a switch, without those that its version cannot have.
fn wanted_keys(app: AppId, version: Version, wanted: &[Flow]) -> HashSet<FlowKey> {
    let mut normalizer = FlowNormalizer::new(version);
    wanted.iter().filter_map(|flow| Some(normalizer.of_flow(app, flow).ok()?.key)).collect()
}

/// Returns the reported flows that are not wanted, at most [`MAX_REMOVED`].
///
/// A switch may report a match in another form than it was given. So a flow is not outdated if it
/// has the priority of a wanted flow that is not reported: it may be that one.
fn outdated(
    reported: HashMap<FlowKey, ReportedFlow>,
    wanted: &HashSet<FlowKey>,
) -> Vec<ReportedFlow> {
    let missing = wanted.iter().filter(|key| !reported.contains_key(key));
    let missing: HashSet<u16> = missing.map(|key| key.priority).collect();
    let is_outdated = |key: &FlowKey| !wanted.contains(key) && !missing.contains(&key.priority);
    let mut outdated: Vec<ReportedFlow> =
        reported.into_values().filter(|flow| is_outdated(&flow.key)).collect();
    // A seeded run removes them in the same order each time.
    outdated.sort_by_cached_key(|ReportedFlow { key, .. }| {
        (key.table, key.priority, key.matching.to_string())
    });
    outdated.truncate(MAX_REMOVED);
    outdated
}

#[cfg(test)]
mod tests {
    use bellrock_api::{Match, Port};

    use super::*;

    fn flow(eth_type: u16, priority: u16) -> Flow {
        Flow::new(Match::any().eth_type(eth_type)).priority(priority).output(Port::CONTROLLER)
    }

    /// The outdated ones of these flows, by their priorities in the band.
    fn outdated_of(reported: &[Flow], wanted: &[Flow]) -> Vec<u16> {
        let app = AppId::new(0, "service").unwrap();
        let mut normalizer = FlowNormalizer::new(Version::V1_3);
        let reported = reported.iter().map(|flow| normalizer.of_flow(app, flow).unwrap());
        let reported = reported.map(|flow| (flow.key.clone(), flow)).collect();
        let found = outdated(reported, &wanted_keys(app, Version::V1_3, wanted));
        found.iter().map(|flow| app.band().lower(flow.key.priority).unwrap()).collect()
    }

    #[test]
    fn a_flow_is_outdated_if_its_match_or_its_priority_is_not_wanted() {
        let wanted = [flow(0x88cc, 9)];
        assert!(outdated_of(&wanted, &wanted).is_empty());
        assert_eq!(outdated_of(&[flow(0x88cc, 9), flow(0x88cc, 8)], &wanted), [8]);
        assert_eq!(outdated_of(&[flow(0x88cc, 9), flow(0x88b5, 9)], &wanted), [9]);
    }

    #[test]
    fn a_flow_that_may_be_a_wanted_one_in_another_form_is_not_outdated() {
        let wanted = [flow(0x88cc, 9), flow(0x0800, 7)];
        assert_eq!(outdated_of(&[flow(0x88b5, 9), flow(0x0800, 7), flow(0x0806, 7)], &wanted), [7]);
    }

    #[test]
    fn a_switch_loses_a_limited_number_of_flows_at_a_time() {
        let old: Vec<Flow> = (0..MAX_REMOVED as u16 + 7).map(|number| flow(number, 3)).collect();
        assert_eq!(outdated_of(&old, &[]).len(), MAX_REMOVED);
    }
}
