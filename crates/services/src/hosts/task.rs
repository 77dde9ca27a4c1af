//! The task that owns what is known of hosts, publishes them, and asks them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bellrock_api::{Action, Error, Network, Switch};

use super::Shared;
use super::probe::probe;
use super::tracker::{Probe, Refused, Tracker};
use crate::wait::{first, until, yield_now};

/// Sightings that are dealt with before others have their turn.
const SIGHTINGS_PER_TURN: usize = 1024;

/// Runs for as long as the controller.
pub(super) async fn run(network: Network, shared: Arc<Shared>, mut tracker: Tracker) {
    let mut seen = 0;
    let mut woken_by = None;
    loop {
        let now = network.now();
        let topology = network.topology().load();
        if topology.version() != seen {
            seen = topology.version();
            tracker.topology(&topology, now);
        }
        let mut dealt_with = 0;
        let more = std::iter::from_fn(|| shared.told.try_recv().ok());
        for sighting in woken_by.take().into_iter().chain(more).take(SIGHTINGS_PER_TURN) {
            tracker.seen(sighting, &topology, now);
            dealt_with += 1;
        }
        tracker.timers(&topology, now);
        publish(&mut tracker, &network, &shared);
        // What comes all the time leaves nothing to wait for.
        yield_now().await;
        if dealt_with == SIGHTINGS_PER_TURN {
            continue;
        }
        let changed = network.topology().changed(seen);
        let due = until(&network, tracker.due());
        let told = first(shared.told.recv(), first(changed, due)).await.a();
        woken_by = told.and_then(Result::ok);
    }
}

fn publish(tracker: &mut Tracker, network: &Network, shared: &Shared) {
    // First what is so, then that what was believed is not: who looks again finds the new.
    if let Some(hosts) = tracker.take_hosts() {
        network.hosts().publish(hosts);
    }
    for at in tracker.stale.drain(..) {
        if let Some(own) = shared.switches.of(at.dpid) {
            own.stale.fetch_add(1, Ordering::Relaxed);
        }
    }
    for probe in std::mem::take(&mut tracker.probes) {
        if !ask(network, shared, probe) {
            tracker.not_sent(probe.host, network.now());
        }
    }
    for refused in tracker.refused.drain(..) {
        let (Refused::Claim(at) | Refused::PortFull(at) | Refused::Full(at)) = refused;
        let Some(own) = shared.switches.of(at.dpid) else { continue };
        match refused {
            Refused::Claim(_) => own.counts.refused.add(1),
            Refused::PortFull(_) => own.counts.port_full.add(1),
            Refused::Full(_) => own.counts.full.add(1),
        }
    }
    for event in tracker.events.drain(..) {
        network.events().publish(network.now(), event);
    }
}

/// Sends a question to a host. `false`: too much waits for its switch. One to a switch that is gone stays
/// unanswered.
fn ask(network: &Network, shared: &Shared, Probe { at, host, ip }: Probe) -> bool {
    let Some(info) = network.switch(at.dpid) else { return true };
    let (frame, actions) = (probe(host, ip), [Action::output(at.port)]);
    let sent = network.send(at.dpid, &Switch::own_packet(info.version, &frame, &actions));
    if sent.is_ok()
        && let Some(own) = shared.switches.of(at.dpid)
    {
        own.counts.probes.add(1);
    }
    !matches!(sent, Err(Error::Full(_)))
}
