//! The task that owns the hosts, publishes them, and sends the probes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{Action, Error, Hosts, Network, Publisher, Switch};
use futures_lite::FutureExt;
use futures_lite::future::yield_now;

use super::believed::believed;
use super::counting::FlowCountRequests;
use super::probe::probe;
use super::tracker::{HostTracker, Probe, RefusedSighting};
use super::{TrackingMessage, TrackingShared};
use crate::wait::until;

/// Maximum number of messages from handlers in one turn.
const NEWS_PER_TURN: usize = 1024;

/// Runs as long as the controller.
pub(super) async fn run(
    network: Network,
    shared: Arc<TrackingShared>,
    publisher: Arc<Publisher<Hosts>>,
    mut tracker: HostTracker,
) {
    let mut counting = FlowCountRequests::new();
    let (mut seen, mut heard) = (0, 0);
    let believed = believed(&network);
    let (mut woken_by, mut counted) = (None, None);
    loop {
        let now = network.now();
        let topology = network.topology().load();
        if topology.version() != seen {
            seen = topology.version();
            tracker.topology(&topology, now);
        }
        let hosts = believed.load();
        if hosts.version() != heard {
            heard = hosts.version();
            tracker.believe(&hosts, &topology, now);
        }
        let answers = counting.answers.clone();
        let more = std::iter::from_fn(|| answers.try_recv().ok());
        for (question, packets) in counted.take().into_iter().chain(more) {
            counting.answered(question.at.dpid);
            tracker.counted(question, packets, &topology, now);
        }
        let mut dealt_with = 0;
        let more = std::iter::from_fn(|| shared.told.try_recv().ok());
        for news in woken_by.take().into_iter().chain(more).take(NEWS_PER_TURN) {
            match news {
                TrackingMessage::Seen(sighting) => tracker.seen(sighting, &topology, now),
                TrackingMessage::ProbeAddress(at) => tracker.probe_address_used(at, now),
            }
            dealt_with += 1;
        }
        tracker.timers(&topology, now);
        publish(&mut tracker, &network, &shared, &publisher);
        ask_switches(&mut tracker, &mut counting, &network, &shared);
        // The future below may be ready every time, so this yields to other tasks.
        yield_now().await;
        if dealt_with == NEWS_PER_TURN {
            continue;
        }
        let news = async { woken_by = shared.told.recv().await.ok() };
        let answer = async { counted = counting.answers.recv().await.ok() };
        let changed = network.topology().newer(seen).or(believed.newer(heard));
        news.or(answer).or(changed).or(until(&network, tracker.due())).await;
    }
}

/// Requests the packet counts of hosts from their switches.
fn ask_switches(
    tracker: &mut HostTracker,
    counting: &mut FlowCountRequests,
    network: &Network,
    shared: &TrackingShared,
) {
    tracker.counts.drain(..).for_each(|counted| counting.ask(counted));
    for dpid in counting.send(network) {
        if let Some(own) = shared.switches.of(dpid) {
            own.counts.packet_counts_asked.add(1);
        }
    }
}

fn publish(
    tracker: &mut HostTracker,
    network: &Network,
    shared: &TrackingShared,
    publisher: &Publisher<Hosts>,
) {
    // Publishes the hosts before it marks caches stale: a handler that looks again finds new hosts.
    if let Some(hosts) = tracker.take_hosts() {
        publisher.publish(hosts);
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
        let (RefusedSighting::Claim(at)
        | RefusedSighting::PortFull(at)
        | RefusedSighting::Full(at)) = refused;
        let Some(own) = shared.switches.of(at.dpid) else { continue };
        match refused {
            RefusedSighting::Claim(_) => own.counts.claims_refused.add(1),
            RefusedSighting::PortFull(_) => own.counts.over_port_limit.add(1),
            RefusedSighting::Full(_) => own.counts.sightings_over_limit.add(1),
        }
    }
    for event in tracker.events.drain(..) {
        network.events().publish(network.now(), event);
    }
}

/// Sends a probe to a host. Returns `false` if too much waits for its switch. A probe to a switch
/// that is gone is dropped, and stays unanswered.
fn ask(network: &Network, shared: &TrackingShared, Probe { at, host, ip }: Probe) -> bool {
    let Some(info) = network.switch(at.dpid) else { return true };
    let (frame, actions) = (probe(host, ip), [Action::output(at.port)]);
    let sent = network.send(at.dpid, &Switch::own_packet(info.version, &frame, &actions));
    if sent.is_ok()
        && let Some(own) = shared.switches.of(at.dpid)
    {
        own.counts.probes_sent.add(1);
    }
    !matches!(sent, Err(Error::Full(_)))
}
