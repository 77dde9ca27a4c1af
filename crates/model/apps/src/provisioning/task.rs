//! The task that decides about all circuits, and lays them.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bellrock_api::{AppEvent, Latencies, MacAddr, Network, SwitchPort};
use bellrock_book::{Draft, NotOrdered};
use bellrock_services::desired::{Desired, DesiredState};
use bellrock_services::paths::{Hop, Paths, paths};
use bellrock_services::reserved::{release, reserve};
use bellrock_services::wait::wait_until;
use futures_lite::FutureExt;

use super::circuit::Circuit;
use super::endpoint_hosts::{EndpointHosts, HostPosition};
use super::plan::CircuitPlan;
use super::progress::CircuitProgress;
use super::route::NetworkView;
use super::stored::{CircuitModel, StoredCircuit, StoredCircuits, name, stored_circuits};
use super::{Circuits, KEEP_EARLIER_FLOWS, numbers_by_name, reserved_by};

/// Time after the start in which no event reports that a circuit is down. Many are, until their
/// hosts are seen.
const FIRST_DOWN_AFTER: Duration = Duration::from_secs(5);

/// Time after the start for discovery to find the links of stored routes: two rounds. Until then a
/// link that was never there does not count as lost, unless its port is down.
pub const LINKS_WITHIN: Duration = Duration::from_secs(10);

/// Time after which a store that cannot be used is tried again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Time for which the settings must differ from those of the leader before it is reported: nodes
/// are reloaded one after the other.
const DIFFERENT_FOR: Duration = Duration::from_secs(5);

/// Name of the alarm that a circuit is configured otherwise here than at the leader.
const DIFFERS: &str = "circuit_differs";

/// What the task remembers from one turn to the next.
#[derive(Default)]
struct TaskMemory {
    plan: CircuitPlan,
    places: EndpointHosts,
    /// Ports that are reserved for circuits.
    ports: BTreeSet<(SwitchPort, Option<u16>)>,
    /// Links of routes that this controller has seen.
    seen: BTreeSet<Hop>,
    /// Time when the network was known for the first time.
    settled_at: Option<Duration>,
    /// Whether flows of earlier runs may be removed.
    is_complete: bool,
    /// Circuits that are configured otherwise here: since when, and whether that was reported.
    differences: BTreeMap<String, (Duration, bool)>,
}

/// The hosts of the stored routes, each with its place.
fn stored_places(stored: &StoredCircuits) -> impl Iterator<Item = (MacAddr, HostPosition)> {
    let routes = stored.values().filter_map(|circuit| circuit.route.as_ref());
    let places = routes.flat_map(|route| &route.places);
    places.filter_map(|place| Some((place.host?, (place.at, place.vlan))))
}

/// A change of the store: the number of a circuit, and what is stored then.
type Decision = (usize, Option<StoredCircuit>);

impl Circuits {
    /// Decides about all circuits, and lays them, whenever the network, the settings or the store
    /// change.
    pub(super) async fn run(self, network: Network, desired: Desired) {
        let (known_paths, known_hosts, desired_state) =
            (paths(&network), network.hosts(), desired.state());
        let (configured, changes) = (self.0.configured.watch(), self.0.book.changes());
        let mut memory = TaskMemory::default();
        let latencies = network.extension::<Latencies>();
        let entrances = Arc::new(std::sync::Mutex::new(EndpointHosts::default()));
        let filter = Arc::clone(&entrances);
        let found_flows = desired.find_flows(move |matching| {
            filter.lock().is_ok_and(|hosts| hosts.is_entrance(matching))
        });
        loop {
            let (paths, hosts, state) =
                (known_paths.load(), known_hosts.load(), desired_state.load());
            let (found, change, circuits) = (found_flows.load(), changes.load(), configured.load());
            let stored = stored_circuits(&self.0.book);
            let all = self.circuits(&circuits, &stored);
            memory.plan = memory.plan.following(&stored, &self.0.vlans);
            memory.plan = memory.plan.changed(&all, &self.0.vlans);
            memory.reserve_ports(&all, &network);
            memory.places.retain(memory.plan.circuits().map(|(_, planned)| &planned.circuit));
            memory.places.update(&hosts);
            memory.places.recall_stored(stored_places(&stored), &network);
            memory.places.recall(&found, &network);
            if let Ok(mut hosts) = entrances.lock() {
                hosts.clone_from(&memory.places);
            }
            let now = network.now();
            self.lay_stored(&stored, &desired, (&state, &latencies), now);
            let mut retry_at = None;
            if paths.is_settled() {
                let since = *memory.settled_at.get_or_insert(now);
                memory.see_links(&stored, &paths);
                if self.0.book.is_leader() && !self.is_held() {
                    let decisions = {
                        let topology = network.topology().load();
                        let is_lost = |hop: Hop| {
                            let is_down = |at: SwitchPort| {
                                network.reachable(at.dpid).is_some() && !topology.is_up(at)
                            };
                            let is_late = now >= since + LINKS_WITHIN;
                            is_late
                                || memory.seen.contains(&hop)
                                || is_down(hop.from)
                                || is_down(hop.to)
                        };
                        let view = NetworkView {
                            network: &network,
                            topology: &topology,
                            hosts: &hosts,
                            places: &memory.places,
                            paths: &paths,
                            is_lost: &is_lost,
                        };
                        self.decide(&memory.plan, &stored, &view, &state, now)
                    };
                    if !decisions.is_empty() {
                        if self.store(decisions, &stored).await {
                            continue;
                        }
                        retry_at = Some(now + ASK_AGAIN);
                    }
                    if now < since + LINKS_WITHIN && !stored.is_empty() {
                        let at = since + LINKS_WITHIN;
                        retry_at = Some(retry_at.map_or(at, |again: Duration| again.min(at)));
                    }
                }
                let waits =
                    self.progress().iter().filter_map(CircuitProgress::next_layout_at).min();
                let reports_at = self.report(&stored, &network, since);
                let differs_at = self.report_differences(&mut memory, &circuits, &stored, &network);
                let keep_until = since + KEEP_EARLIER_FLOWS;
                if !memory.is_complete
                    && self.is_read()
                    && (self.is_all_laid(&all, &stored) || network.now() >= keep_until)
                {
                    desired.complete_except(self.missing_intents(&memory.plan, &stored));
                    memory.is_complete = true;
                }
                let keep_until =
                    (!memory.is_complete && network.now() < keep_until).then_some(keep_until);
                let times = [retry_at, waits, reports_at, differs_at, keep_until];
                retry_at = times.into_iter().flatten().min();
            }
            let time = wait_until(&network, retry_at);
            let network_changes = known_paths
                .newer(paths.version())
                .or(known_hosts.newer(hosts.version()))
                .or(found_flows.newer(found.version()));
            let own_changes = async {
                let store = async { _ = changes.newer(change.version()).await };
                store.or(async { _ = configured.newer(circuits.version()).await }).await;
            };
            // Also while all circuits are up: a switch may not keep the flows of one.
            let flow_changes = async { _ = desired_state.newer(state.version()).await };
            network_changes.or(time).or(own_changes).or(flow_changes).await;
        }
    }

    /// Withdraws the flows of circuits that are not stored any more, and lays those that are.
    fn lay_stored(
        &self,
        stored: &StoredCircuits,
        desired: &Desired,
        (state, latencies): (&DesiredState, &Latencies),
        now: Duration,
    ) {
        let mut all = self.progress();
        let count = stored.last_key_value().map_or(0, |(number, _)| number + 1);
        if all.len() < count {
            all.resize_with(count, CircuitProgress::default);
        }
        for (number, progress) in all.iter_mut().enumerate() {
            let circuit = stored.get(&number);
            let intent = circuit.map(|circuit| circuit.intent);
            if let Some(laid) =
                progress.laid().map(|laid| laid.intent).filter(|it| Some(*it) != intent)
            {
                progress.withdrawn(desired.withdraw(laid), now);
            }
            if let Some(time) = progress.take_time(state, now) {
                latencies.path_change.record(time);
            }
            progress.observe(state, self.0.book.is_shared(), now);
            if let Some(circuit) = circuit {
                progress.lay(number as u32, circuit, desired, now);
            }
        }
    }

    /// What is to be stored.
    fn decide(
        &self,
        plan: &CircuitPlan,
        stored: &StoredCircuits,
        view: &NetworkView<'_>,
        state: &DesiredState,
        now: Duration,
    ) -> Vec<Decision> {
        let mut progress = self.progress();
        if progress.len() < plan.slots().len() {
            progress.resize_with(plan.slots().len(), CircuitProgress::default);
        }
        let mut decisions = Vec::new();
        for (number, planned) in plan.circuits() {
            let (progress, before) = (&mut progress[number], stored.get(&number));
            let next = progress.decide(planned, before.map(|it| &**it), view, state, now);
            if before.is_none_or(|before| **before != next) {
                decisions.push((number, Some(next)));
            } else {
                progress.set_trouble(None);
            }
        }
        let is_planned = |number: &usize| plan.slots().get(*number).is_some_and(Option::is_some);
        decisions.extend(stored.keys().filter(|it| !is_planned(it)).map(|number| (*number, None)));
        decisions
    }

    /// Stores decisions, each if nothing else was stored meanwhile, and this controller still
    /// leads. Returns whether all are stored.
    async fn store(&self, decisions: Vec<Decision>, stored: &StoredCircuits) -> bool {
        let mut orders = Vec::new();
        for (number, next) in decisions {
            let (key, before) = (name(number), stored.get(&number).cloned());
            let order = self.0.book.order(move |draft: &mut Draft<'_, CircuitModel>| {
                if !draft.is_leader() || draft.value(&key) != before.as_deref() {
                    return Err(());
                }
                match &next {
                    Some(next) => draft.put(&key, next.clone()),
                    None => draft.remove(&key),
                }
                Ok(())
            });
            orders.push((number, order));
        }
        let (mut is_all, mut store_trouble) = (true, None);
        let orders = orders.into_iter().map(|(number, order)| (number, Box::pin(order)));
        for (number, outcome) in all_of(orders.collect()).await {
            is_all &= outcome.is_ok();
            let trouble = match outcome {
                // Another controller leads, or has stored something: that is read first.
                Ok(()) | Err(NotOrdered::Refused(())) => None,
                Err(NotOrdered::Unavailable(why) | NotOrdered::Unknown(why)) => Some(why),
                Err(NotOrdered::Partly { stored, of, .. }) => {
                    Some(format!("only {stored} of {of} changes are stored"))
                }
            };
            store_trouble = store_trouble.or_else(|| trouble.clone());
            if let Some(progress) = self.progress().get_mut(number) {
                progress.set_trouble(trouble);
            }
        }
        self.set_trouble(store_trouble);
        is_all
    }

    /// Publishes which circuits are up, down, or on another path. Returns when circuits are next
    /// reported that are down since the start.
    fn report(
        &self,
        stored: &StoredCircuits,
        network: &Network,
        settled_at: Duration,
    ) -> Option<Duration> {
        let mut progress = self.progress();
        let first_down_at = settled_at + FIRST_DOWN_AFTER;
        let is_early = network.now() < first_down_at;
        let mut has_hidden = false;
        for (number, progress) in progress.iter_mut().enumerate() {
            let Some(circuit) = stored.get(&number) else {
                progress.removed().into_iter().for_each(|event| network.publish(event));
                continue;
            };
            if is_early && progress.was_never_up(circuit) {
                has_hidden = true;
                continue;
            }
            while let Some(event) = progress.change(circuit) {
                network.publish(event);
            }
        }
        has_hidden.then_some(first_down_at)
    }

    /// Publishes which circuits the settings of this controller and of the leader have differently,
    /// and which not any more. Returns when to look again.
    fn report_differences(
        &self,
        memory: &mut TaskMemory,
        configured: &[Circuit],
        stored: &StoredCircuits,
        network: &Network,
    ) -> Option<Duration> {
        let now = network.now();
        let mut before = std::mem::take(&mut memory.differences);
        let mut look_at = None;
        for (name, how) in self.differences(configured, stored) {
            let (since, mut is_reported) = before.remove(&name).unwrap_or((now, false));
            if !is_reported && now >= since + DIFFERENT_FOR {
                let text = format!("circuit {name}: {how}");
                network.publish(AppEvent::new(DIFFERS, &text).alarming_until_ended(&name));
                is_reported = true;
            } else if !is_reported {
                let at = since + DIFFERENT_FOR;
                look_at = Some(look_at.map_or(at, |other: Duration| other.min(at)));
            }
            memory.differences.insert(name, (since, is_reported));
        }
        for (name, _) in before.into_iter().filter(|(_, (_, is_reported))| *is_reported) {
            let text = format!("circuit {name}: the settings here agree with those of the leader");
            network.publish(AppEvent::new("circuit_agrees", &text).ending(DIFFERS, &name));
        }
        look_at
    }

    /// The intents of circuits that have not been laid since the controller started.
    fn missing_intents(&self, plan: &CircuitPlan, stored: &StoredCircuits) -> Vec<u32> {
        let (progress, numbers) = (self.progress(), numbers_by_name(stored));
        let is_laid = |number: &usize| progress.get(*number).is_some_and(|it| it.laid().is_some());
        let missing_stored = stored.iter().filter(|(number, _)| !is_laid(number));
        let planned = plan.circuits().map(|(_, planned)| planned);
        let missing = planned.filter(|planned| !numbers.contains_key(&*planned.circuit.name));
        let missing = missing.map(|planned| planned.intent);
        missing_stored.map(|(_, circuit)| circuit.intent).chain(missing).collect()
    }

    fn is_all_laid(&self, circuits: &[Circuit], stored: &StoredCircuits) -> bool {
        let (progress, numbers) = (self.progress(), numbers_by_name(stored));
        circuits.iter().all(|circuit| {
            numbers.get(&*circuit.name).is_some_and(|number| {
                let known = stored.get(number).zip(progress.get(*number));
                known.is_some_and(|(stored, progress)| progress.is_laid(stored))
            })
        })
    }
}

impl TaskMemory {
    /// Reserves the ports of these circuits, and releases those of others.
    fn reserve_ports(&mut self, circuits: &[Circuit], network: &Network) {
        let ports = reserved_by(circuits);
        if ports == self.ports {
            return;
        }
        release(network, self.ports.difference(&ports).copied());
        reserve(network, ports.iter().copied());
        self.ports = ports;
    }

    /// Remembers which links of stored routes were there.
    fn see_links(&mut self, stored: &StoredCircuits, paths: &Paths) {
        let routes = stored.values().filter_map(|circuit| circuit.route.as_ref());
        let wanted: BTreeSet<Hop> = routes.flat_map(|route| route.hops()).collect();
        self.seen.retain(|hop| wanted.contains(hop));
        self.seen.extend(wanted.into_iter().filter(|hop| paths.has_hop(*hop)));
    }
}

/// Runs futures side by side, until all have ended.
async fn all_of<K: Clone, F: Future + Unpin>(mut futures: Vec<(K, F)>) -> Vec<(K, F::Output)> {
    let mut outputs = Vec::with_capacity(futures.len());
    std::future::poll_fn(|context| {
        futures.retain_mut(|(key, future)| match Pin::new(future).poll(context) {
            Poll::Ready(output) => {
                outputs.push((key.clone(), output));
                false
            }
            Poll::Pending => true,
        });
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs
}
