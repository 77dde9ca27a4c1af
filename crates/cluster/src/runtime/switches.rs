//! What happens to the switches of this controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellrock_api::runtime::RoleControl;
use bellrock_api::{Dpid, GrantedRole, Network, RoleError, RoleOrder, SwitchInfo};
use futures_lite::FutureExt;
use tokio::sync::mpsc;

use super::member::Event;
use crate::record::Generation;

/// What has happened to a switch.
#[derive(Debug)]
pub(crate) enum SwitchEvent {
    /// It has connected. The newest generation that it has seen, if it has said so.
    Connected(Arc<SwitchInfo>, Option<Generation>),
    /// Its connection has ended.
    Disconnected(Dpid),
    /// It stands by, though it did not before.
    StandsBy(Dpid),
    /// The newest generation that a switch has seen, which this node has asked for.
    Asked(Dpid, Option<Generation>),
    /// The answer to a claim.
    Claimed(Dpid, Generation, Result<(), RoleError>),
}

const STAND_BY: RoleOrder = RoleOrder::Slave { generation_id: None };

/// Reports what happens to all switches, for ever. Must run in a local set.
pub(crate) async fn follow(network: Network, events: mpsc::Sender<Event>) {
    let mut known = BTreeMap::<Dpid, Arc<SwitchInfo>>::new();
    let mut standing_by = Vec::<Dpid>::new();
    loop {
        let connected = network.connected().load();
        let standbys = network.standbys().load();
        let now: BTreeMap<Dpid, Arc<SwitchInfo>> =
            connected.iter().map(|info| (info.dpid, Arc::clone(info))).collect();
        for (&dpid, before) in &known {
            if now.get(&dpid).is_some_and(|info| Arc::ptr_eq(info, before)) {
                continue;
            }
            // The next connection must not begin with the role of this one.
            drop(network.set_role(dpid, STAND_BY));
            if !report(&events, SwitchEvent::Disconnected(dpid)).await {
                return;
            }
        }
        for (&dpid, info) in &now {
            if !known.get(&dpid).is_some_and(|before| Arc::ptr_eq(info, before)) {
                tokio::task::spawn_local(greet(network.clone(), Arc::clone(info), events.clone()));
            }
        }
        let still: Vec<Dpid> = standbys.iter().map(|info| info.dpid).collect();
        for &dpid in &still {
            if standing_by.binary_search(&dpid).is_err()
                && !report(&events, SwitchEvent::StandsBy(dpid)).await
            {
                return;
            }
        }
        (known, standing_by) = (now, still);
        let (one, other) = (connected.version(), standbys.version());
        network.connected().newer(one).or(network.standbys().newer(other)).await;
    }
}

/// Stands by at a switch that has connected, and so finds the newest generation that it has seen.
async fn greet(network: Network, info: Arc<SwitchInfo>, events: mpsc::Sender<Event>) {
    let newest = match network.set_role(info.dpid, STAND_BY).await {
        Err(RoleError::Disconnected | RoleError::NotSent(_)) => return,
        answer => newest_of(answer),
    };
    report(&events, SwitchEvent::Connected(info, newest)).await;
}

/// Stands by at a switch, and reports the newest generation that it has seen.
pub(crate) async fn ask(network: Network, dpid: Dpid, events: mpsc::Sender<Event>) {
    match network.set_role(dpid, STAND_BY).await {
        // The end of the connection is reported, and what was not sent is asked again.
        Err(RoleError::Disconnected | RoleError::NotSent(_) | RoleError::Replaced) => {}
        answer => {
            report(&events, SwitchEvent::Asked(dpid, newest_of(answer))).await;
        }
    }
}

/// The newest generation that a switch has seen, by its answer to an order to stand by.
fn newest_of(answer: Result<GrantedRole, RoleError>) -> Option<Generation> {
    let newest = match answer {
        Ok(granted) => granted.generation_id,
        Err(RoleError::Stale { newest }) => newest,
        // A switch without roles, or one that does not answer.
        Err(_) => None,
    };
    newest.map(Generation)
}

/// Claims a switch, and reports what became of it. A switch without roles is simply used.
pub(crate) async fn claim(
    network: Network,
    dpid: Dpid,
    generation: Generation,
    events: mpsc::Sender<Event>,
) {
    let claim = RoleOrder::Master { generation_id: generation.0 };
    let mut answer = network.set_role(dpid, claim).await;
    if answer == Err(RoleError::Unsupported) {
        answer = network.set_role(dpid, RoleOrder::Equal).await;
    }
    report(&events, SwitchEvent::Claimed(dpid, generation, answer.map(drop))).await;
}

async fn report(events: &mpsc::Sender<Event>, event: SwitchEvent) -> bool {
    events.send(Event::Switch(event)).await.is_ok()
}
