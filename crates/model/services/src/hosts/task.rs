//! The task that owns the hosts, publishes them, and sends the probes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{Action, Error, Hosts, Latencies, Network, Publisher, Switch};
use futures_lite::FutureExt;
use futures_lite::future::yield_now;

use super::asked::Asker;
use super::believed::believed;
use super::counting::FlowCountRequests;
use super::last_seen::LastSeen;
use super::probe::probe;
use super::tracker::{HostTracker, Probe, RefusedSighting, ToShare};
use super::{TrackingMessage, TrackingShared};
use crate::exchange::{Buckets, Exchange, HostFacts, PeerFrame};
use crate::outside_loops::{KeptOutPorts, OutsideLoops};
use crate::wait::wait_until;

/// Maximum number of messages from handlers in one turn.
const MESSAGES_PER_TURN: usize = 1024;

/// Maximum number of frames of other controllers in one turn.
const FRAMES_PER_TURN: usize = 8;

/// Runs as long as the controller.
pub(super) async fn run(
    network: Network,
    shared: Arc<TrackingShared>,
    publisher: Arc<Publisher<Hosts>>,
    mut tracker: HostTracker,
) {
    let mut counting = FlowCountRequests::new();
    let (mut topology_version, mut believed_version) = (0, 0);
    let believed = believed(&network);
    let kept_out = OutsideLoops::of(&network).kept_out();
    let exchange = Exchange::of(&network);
    let (inputs, mut switches_version) = (exchange.host_inputs(), None);
    let (mut first, mut first_count, mut first_input) = (None, None, None);
    let (mut asker, mut first_asked) = (Asker::new(&network), None);
    let (latencies, mut sightings) = (network.extension::<Latencies>(), Vec::new());
    let (last_seen, mut seen) = (network.extension::<LastSeen>(), Vec::new());
    loop {
        let now = network.now();
        tracker.kept_out = KeptOutPorts::clone(&kept_out.load());
        let topology = network.topology().load();
        if topology.version() != topology_version {
            topology_version = topology.version();
            tracker.topology(&topology, now);
        }
        let hosts = believed.load();
        if hosts.version() != believed_version {
            believed_version = hosts.version();
            tracker.believe(&hosts, &topology, now);
        }
        if tracker.is_shared() {
            let switches = network.switches();
            if switches_version.replace(switches.version()) != Some(switches.version()) {
                let own = switches.iter().map(|info| info.dpid).collect();
                tracker.set_own_switches(own, now);
            }
        }
        let mut frames = 0;
        let further = std::iter::from_fn(|| inputs.try_recv().ok());
        // The frames count as applied when the hosts are published.
        let mut applied = Vec::new();
        for input in first_input.take().into_iter().chain(further).take(FRAMES_PER_TURN) {
            let (peer, body, frame) = input.split();
            tracker.handle_input(peer, body, &topology, now);
            applied.push(frame);
            frames += 1;
        }
        let answers = counting.answers.clone();
        let further = std::iter::from_fn(|| answers.try_recv().ok());
        for (host, packets) in first_count.take().into_iter().chain(further) {
            counting.finish(host.at.dpid);
            seen.push(host.host);
            tracker.handle_count(host, packets, &topology, now);
        }
        let mut handled = 0;
        let further = std::iter::from_fn(|| shared.receiver.try_recv().ok());
        for message in first.take().into_iter().chain(further).take(MESSAGES_PER_TURN) {
            match message {
                TrackingMessage::Seen(sighting) => {
                    sightings.push(sighting.time);
                    seen.push(sighting.host);
                    tracker.handle_sighting(sighting, &topology, now);
                }
                TrackingMessage::AtLink(host, at) => {
                    tracker.handle_at_link(host, at, &topology, now);
                }
                TrackingMessage::ProbeAddress(at) => tracker.probe_address_used(at, now),
            }
            handled += 1;
        }
        let addresses = asker.addresses.clone();
        let further = std::iter::from_fn(|| addresses.try_recv().ok());
        for address in first_asked.take().into_iter().chain(further) {
            asker.ask(address, &network, &topology, now);
        }
        tracker.timers(&topology, now);
        publish(&mut tracker, &network, &shared, &publisher);
        if !seen.is_empty() {
            let times = seen.drain(..).filter_map(|host| Some((host, tracker.last_seen(host)?)));
            last_seen.add(times, || tracker.hosts().clone());
        }
        drop(applied);
        share(tracker.take_shared(), &exchange, network.now());
        let published = network.now();
        for seen in sightings.drain(..) {
            latencies.host.record(published.saturating_sub(seen));
        }
        request_counts(&mut tracker, &mut counting, &network, &shared);
        // The future below may be ready every time, so this yields to other tasks.
        yield_now().await;
        if handled == MESSAGES_PER_TURN || frames == FRAMES_PER_TURN {
            continue;
        }
        let next_message = async { first = shared.receiver.recv().await.ok() };
        let next_count = async { first_count = counting.answers.recv().await.ok() };
        let changed =
            network.topology().newer(topology_version).or(believed.newer(believed_version));
        let next_input = async { first_input = inputs.recv().await.ok() };
        let next_asked = async { first_asked = asker.addresses.recv().await.ok() };
        next_message
            .or(next_asked)
            .or(next_count)
            .or(next_input)
            .or(changed)
            .or(wait_until(&network, tracker.due()))
            .await;
    }
}

/// Sends what other controllers of a cluster want to know.
pub(super) fn share(to_share: ToShare, exchange: &Exchange, now: Duration) {
    let ToShare { changed, claims, moved, gone, differing } = to_share;
    exchange.hosts_changed(changed);
    // A claim that is lost is repeated by a later packet.
    for (peer, claim) in claims {
        exchange.post(peer, PeerFrame::Claim(claim));
    }
    for (peer, fact) in moved {
        exchange.post(peer, PeerFrame::Moved(fact));
    }
    for (peer, host) in gone {
        let facts = HostFacts { present: Vec::new(), gone: vec![host] };
        exchange.post(peer, PeerFrame::Hosts { sent_at: now, facts });
    }
    for (peer, hosts) in differing {
        exchange.post(peer, PeerFrame::Differs { switches: Buckets::NONE, hosts });
    }
}

/// Requests the packet counts of hosts from their switches.
fn request_counts(
    tracker: &mut HostTracker,
    counting: &mut FlowCountRequests,
    network: &Network,
    shared: &TrackingShared,
) {
    tracker.counts.drain(..).for_each(|counted| counting.push(counted));
    for dpid in counting.send(network) {
        if let Some(state) = shared.switches.get(dpid) {
            state.counts.packet_counts_asked.add(1);
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
        if let Some(state) = shared.switches.get(at.dpid) {
            state.stale.fetch_add(1, Ordering::Relaxed);
        }
    }
    for probe in std::mem::take(&mut tracker.probes) {
        if !send_probe(network, shared, probe) {
            tracker.not_sent(probe.host, network.now());
        }
    }
    for sighting in tracker.refused.drain(..) {
        let (RefusedSighting::Claim(at)
        | RefusedSighting::PortFull(at)
        | RefusedSighting::Full(at)) = sighting;
        let Some(state) = shared.switches.get(at.dpid) else { continue };
        match sighting {
            RefusedSighting::Claim(_) => state.counts.claims_refused.add(1),
            RefusedSighting::PortFull(_) => state.counts.over_port_limit.add(1),
            RefusedSighting::Full(_) => state.counts.sightings_over_limit.add(1),
        }
    }
    for event in tracker.events.drain(..) {
        network.events().publish(network.now(), event);
    }
}

/// Sends a probe to a host. Returns `false` if too much waits for its switch. A probe to a switch
/// that is gone is dropped, and stays unanswered.
fn send_probe(network: &Network, shared: &TrackingShared, Probe { at, host, ip }: Probe) -> bool {
    let Some(info) = network.switch(at.dpid) else { return true };
    let (frame, actions) = (probe(host, ip), [Action::output(at.port)]);
    let sent = network.send(at.dpid, &Switch::own_packet(info.version, &frame, &actions));
    if sent.is_ok()
        && let Some(own) = shared.switches.get(at.dpid)
    {
        own.counts.probes_sent.add(1);
    }
    !matches!(sent, Err(Error::Full(_)))
}
