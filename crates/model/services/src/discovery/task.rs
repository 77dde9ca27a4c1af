//! The task that owns the links and publishes the topology.

use std::sync::Arc;
use std::time::Duration;

use async_channel::Receiver;
use bellrock_api::runtime::EventPublisher as _;
use bellrock_api::{
    Latencies, Network, PortDesc, Publisher, SwitchInfo, SwitchPort, Switches, Topology,
};
use futures_lite::FutureExt;
use futures_lite::future::yield_now;

use super::links::{AnnouncementOutcome, LinkTable, PortUp, ReceivedAnnouncement};
use super::relays::RelayOrder;
use super::switch::is_up;
use super::{DiscoveryMessage, DiscoveryShared};
use crate::exchange::{Buckets, Exchange, LinkInput, PassedAnnouncement, Peer, PeerFrame};
use crate::wait::wait_until;

/// Minimum time between two topologies while links change all the time, as when ports flap.
pub const PUBLISH_EVERY: Duration = Duration::from_millis(20);

/// Number of topologies that are published without a pause after a time without changes, so that a
/// detour around a failure, or a new link, does not wait.
pub const PUBLISH_AT_ONCE: u32 = 16;

/// Maximum number of messages from handlers in one turn.
const MESSAGES_PER_TURN: usize = 1024;

/// Maximum number of frames of other controllers in one turn.
const FRAMES_PER_TURN: usize = 64;

/// Runs as long as the controller.
pub(super) async fn run(
    network: Network,
    shared: Arc<DiscoveryShared>,
    orders: Receiver<RelayOrder>,
    publisher: Arc<Publisher<Topology>>,
    mut links: LinkTable,
) {
    let mut switches = Switches::default();
    let mut seen_version = None;
    let exchange = Exchange::of(&network);
    let inputs = exchange.link_inputs();
    let (mut first, mut first_order, mut first_input) = (None, None, None);
    let mut next_topology = Duration::ZERO;
    loop {
        let now = network.now();
        let published = network.switches();
        if seen_version != Some(published.version()) {
            seen_version = Some(published.version());
            update_links(&mut links, &switches, &published, &network);
            switches = Switches::clone(&published);
        }
        let mut handled = 0;
        let further = std::iter::from_fn(|| shared.receiver.try_recv().ok());
        for message in first.take().into_iter().chain(further).take(MESSAGES_PER_TURN) {
            handle_message(&mut links, &shared, message, &network, &exchange);
            handled += 1;
        }
        let mut frames = 0;
        let further = std::iter::from_fn(|| inputs.try_recv().ok());
        for input in first_input.take().into_iter().chain(further).take(FRAMES_PER_TURN) {
            let (peer, body, applied) = input.split();
            handle_input(&mut links, &shared, &exchange, peer, body, &network);
            drop(applied);
            frames += 1;
        }
        let waiting = std::iter::from_fn(|| orders.try_recv().ok());
        first_order.take().into_iter().chain(waiting).for_each(|order| obey(&mut links, order));
        links.timers(now);
        if now >= next_topology
            && let Some(topology) = links.take_topology()
        {
            publisher.publish(topology);
            if exchange.is_open() {
                exchange.set_switches(links.own_facts(), &network.hosts().load());
            }
            let earliest = now.saturating_sub(PUBLISH_EVERY * PUBLISH_AT_ONCE);
            next_topology = next_topology.max(earliest) + PUBLISH_EVERY;
        }
        for event in links.take_events() {
            network.events().publish(now, event);
        }
        // The future below may be ready every time, so this yields to other tasks.
        yield_now().await;
        if handled == MESSAGES_PER_TURN || frames == FRAMES_PER_TURN {
            continue;
        }
        let changed = network.watch_switches().newer(published.version());
        let unpublished = links.has_changed().then_some(next_topology);
        let due = wait_until(&network, links.due().into_iter().chain(unpublished).min());
        let next_message = async { first = shared.receiver.recv().await.ok() };
        let next_order = async {
            match orders.recv().await {
                Ok(order) => first_order = Some(order),
                // Nobody can give any more.
                Err(_) => std::future::pending().await,
            }
        };
        let next_input = async { first_input = inputs.recv().await.ok() };
        next_message.or(next_order).or(next_input).or(changed).or(due).await;
    }
}

/// Carries out an order of an operator. Who gave it may not wait any more.
fn obey(links: &mut LinkTable, order: RelayOrder) {
    match order {
        RelayOrder::List(answer) => answer.resolve(links.suspected_links()),
        RelayOrder::Judge { from, to, verdict, answer } => {
            answer.resolve(links.judge(from, to, verdict));
        }
    }
}

/// Updates the links after switches have changed.
fn update_links(links: &mut LinkTable, before: &Switches, after: &Switches, network: &Network) {
    let now = network.now();
    for info in before.iter().filter(|info| after.get(info.dpid).is_none()) {
        links.switch_lost(info.dpid, &network.hosts().load(), now);
    }
    for info in after.iter() {
        let known = before.get(info.dpid);
        if !known.is_some_and(|known| Arc::ptr_eq(known, info)) {
            let hosts = network.hosts().load();
            let lost = known.into_iter().flat_map(|known| &known.ports).filter(|desc| is_up(desc));
            for desc in lost.filter(|desc| !info.port(desc.port).is_some_and(is_up)) {
                links.note_hosts(SwitchPort::new(info.dpid, desc.port), &hosts, now);
            }
            links.switch(info.dpid, info.since, ports(info), now);
        }
    }
}

/// Adds a port again after `PortDown` if it is up by now: `update_links` may have seen the port
/// already.
fn port_back(links: &mut LinkTable, at: SwitchPort, network: &Network) {
    let Some(info) = network.switch(at.dpid) else { return };
    if let Some(desc) = info.port(at.port).filter(|desc| is_up(desc)) {
        links.port_up(at.dpid, info.since, port_up(desc), network.now());
    }
}

fn ports(info: &SwitchInfo) -> Vec<PortUp> {
    info.ports.iter().filter(|desc| is_up(desc)).map(port_up).collect()
}

fn port_up(desc: &PortDesc) -> PortUp {
    PortUp { port: desc.port, rate_kbps: desc.rate_kbps() }
}

fn handle_message(
    links: &mut LinkTable,
    shared: &DiscoveryShared,
    message: DiscoveryMessage,
    network: &Network,
    exchange: &Exchange,
) {
    let now = network.now();
    match message {
        DiscoveryMessage::Heard(announcement) => judge(links, shared, announcement, network),
        DiscoveryMessage::OfPeer(peer, passed) => {
            if !exchange.post(peer, PeerFrame::Announcement(passed)) {
                links.hold(passed.to, now);
            }
        }
        DiscoveryMessage::Unknown(at) => links.hold(at, now),
        DiscoveryMessage::Forged(at) => links.report_forged(at, now),
        DiscoveryMessage::PortDown { at, switch_since } => {
            // A message of an earlier connection is dropped: its ports went with the connection.
            if links.is_current(at.dpid, switch_since) {
                links.note_hosts(at, &network.hosts().load(), now);
                links.port_down(at, now);
                port_back(links, at, network);
            }
        }
    }
}

/// Handles what another controller of the cluster reports.
fn handle_input(
    links: &mut LinkTable,
    shared: &DiscoveryShared,
    exchange: &Exchange,
    peer: Peer,
    body: LinkInput,
    network: &Network,
) {
    match body {
        LinkInput::Announcement(passed) => judge_passed(links, shared, peer, passed, network),
        body => {
            let differing = links.handle_input(peer, body, &network.hosts().load(), network.now());
            if !differing.is_empty() {
                let frame = PeerFrame::Differs { switches: differing, hosts: Buckets::NONE };
                // If it does not fit, the next digest differs too.
                exchange.post(peer, frame);
            }
        }
    }
}

/// Decides about an announcement of this controller that came in at a switch of another one.
fn judge_passed(
    links: &mut LinkTable,
    shared: &DiscoveryShared,
    peer: Peer,
    passed: PassedAnnouncement,
    network: &Network,
) {
    let PassedAnnouncement { instance, from, to, nonce, sent } = passed;
    if instance == shared.secrets.instance && links.is_of(to.dpid, peer) {
        let (arrived, latency, noise) = (network.now(), None, Duration::ZERO);
        let received = ReceivedAnnouncement { from, to, nonce, sent, arrived, latency, noise };
        judge(links, shared, received, network);
    }
}

/// Decides about an announcement of this controller, and counts what is wrong with it.
fn judge(
    links: &mut LinkTable,
    shared: &DiscoveryShared,
    announcement: ReceivedAnnouncement,
    network: &Network,
) {
    let now = network.now();
    if let Some(latency) = announcement.latency {
        network.extension::<Latencies>().announcement.record(latency);
    }
    let outcome = links.handle_announcement(announcement, &network.hosts().load(), now);
    if matches!(outcome, AnnouncementOutcome::Accepted | AnnouncementOutcome::Stale) {
        return;
    }
    let Some(counts) = shared.counts.get(announcement.to.dpid) else { return };
    match outcome {
        AnnouncementOutcome::Replayed => counts.announcements_replayed.add(1),
        AnnouncementOutcome::Late => counts.announcements_late.add(1),
        AnnouncementOutcome::Reflected => counts.announcements_reflected.add(1),
        _ => counts.announcements_suspected.add(1),
    }
}
