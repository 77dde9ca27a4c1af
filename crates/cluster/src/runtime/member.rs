//! The loop of the thread: events in, and what [`Mastership`] says out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc as blocking};
use std::time::Duration;

use bellrock_api::runtime::{EventPublisher, RoleControl};
use bellrock_api::{Dpid, Event as NetworkEvent, Network, RoleError, RoleOrder, SwitchInfo};
use bellrock_pace::RateLimit;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tracing::{error, info, warn};

use super::network::MemberNetwork;
use super::orders::{OrderError, OrderResult, Orders};
use super::remote::MemberRemote;
use super::store::{NewRecord, Store, StoreEvent};
use super::switches::{self, SwitchEvent};
use super::{Command, NodeStatus, Status, SwitchStatus};
use crate::etcd::Client;
use crate::link::{LinkEvent, LinkTls, Links};
use crate::mastership::{
    Input, MAX_SWITCHES, Mastership, MemberSettings, NodeState, Notice, Output, SwitchRole,
    WriteResult,
};
use crate::node::NodeId;
use crate::record::{Generation, Record};
use crate::remote::RemoteEvent;

/// Events that are taken before the outputs of all of them are carried out.
const EVENTS_PER_TURN: usize = 256;
/// Roles are compared with the switches so often, in case an event was missed.
const COMPARE: Duration = Duration::from_secs(1);

/// Lines of the log about links and etcd: so many at once, and then one in each period. Whoever
/// reaches the port of the links could write as many lines as connections.
const LINES: u32 = 32;
const LINE_EVERY: Duration = Duration::from_secs(10);

/// What comes to the thread.
#[derive(Debug)]
pub(crate) enum Event {
    Link(LinkEvent),
    Store(StoreEvent),
    Switch(SwitchEvent),
    Written(Dpid, WriteResult),
    Command(Command),
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Command")
    }
}

/// A node.
pub(crate) struct Member {
    cluster: String,
    tls: Option<LinkTls>,
    nodes: Vec<(String, SocketAddr)>,
    me: NodeId,
    machine: Mastership,
    links: Links,
    store: Store,
    network: Network,
    /// Orders of operators that wait for their end.
    orders: Orders,
    /// For what is done beside the loop.
    events: mpsc::Sender<Event>,
    started: Instant,
    /// Switches that are connected.
    connected: BTreeMap<Dpid, Arc<SwitchInfo>>,
    /// Switches that stood by at the last comparison, though this node was their master.
    doubtful: Vec<Dpid>,
    next_comparison: Duration,
    store_trouble: Option<String>,
    /// Whether the last event about etcd was that it does not answer.
    has_lost_store: bool,
    /// Revision of etcd up to which all changes are known.
    revision: Option<i64>,
    /// When etcd was last heard.
    store_heard: Option<Duration>,
    lines: RateLimit,
    /// Lines that were left out since the last one.
    left_out: u64,
}

impl Member {
    pub(crate) fn new(
        (cluster, tls): (String, Option<LinkTls>),
        nodes: Vec<(String, SocketAddr)>,
        settings: MemberSettings,
        links: Links,
        client: Client,
        network: Network,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let names = nodes.iter().map(|(name, _)| name.clone()).collect();
        Member {
            cluster,
            tls,
            nodes,
            me: settings.me,
            machine: Mastership::new(settings, Duration::ZERO),
            links,
            store: Store::new(client, names),
            network,
            orders: Orders::default(),
            events,
            started: Instant::now(),
            connected: BTreeMap::new(),
            doubtful: Vec::new(),
            next_comparison: COMPARE,
            store_trouble: Some("it was not read yet".into()),
            has_lost_store: false,
            revision: None,
            store_heard: None,
            lines: RateLimit::new(LINES, LINE_EVERY),
            left_out: 0,
        }
    }

    /// Works until [`Command::Stop`].
    pub(crate) async fn run(
        mut self,
        mut events: mpsc::Receiver<Event>,
        mut remote: MemberRemote,
        network: MemberNetwork,
    ) {
        info!(cluster = self.cluster, node = self.name(self.me), "a node of a cluster starts");
        tokio::task::spawn_local(switches::follow(self.network.clone(), self.events.clone()));
        tokio::task::spawn_local(self.store.clone().follow(self.events.clone()));
        let mut out = Vec::new();
        loop {
            let wake = self.machine.next_wake(self.now()).min(self.next_comparison);
            let wake = remote.next_wake().map_or(wake, |at| at.min(wake));
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    None | Some(Event::Command(Command::Stop)) => return,
                    Some(event) => self.take(event, &mut remote, &network, &mut out),
                },
                event = remote.next() => remote.handle(self.now(), event, &self.machine),
                () = network.next() => {}
                () = sleep_until(self.started + wake) => {}
            }
            for _ in 0..EVENTS_PER_TURN {
                match events.try_recv() {
                    Ok(Event::Command(Command::Stop)) => return,
                    Ok(event) => self.take(event, &mut remote, &network, &mut out),
                    Err(_) => break,
                }
            }
            remote.take_waiting(self.now(), &self.machine);
            self.compare(&mut out);
            self.machine.advance(self.now(), &mut out);
            self.carry_out(&mut out, &mut remote, &network);
            remote.advance(self.now(), &self.machine, &self.links);
            network.advance(&self.links);
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn name(&self, node: NodeId) -> &str {
        self.nodes.get(node.index()).map_or("", |(name, _)| name)
    }

    fn take(
        &mut self,
        event: Event,
        remote: &mut MemberRemote,
        network: &MemberNetwork,
        out: &mut Vec<Output>,
    ) {
        match event {
            Event::Link(LinkEvent::Connected(node)) => network.connected(node),
            Event::Link(LinkEvent::Disconnected(node)) => network.disconnected(node),
            Event::Link(LinkEvent::Lost(node) | LinkEvent::Replaced(node)) => network.lost(node),
            _ => {}
        }
        let remote_event = match event {
            Event::Link(LinkEvent::Lost(node) | LinkEvent::Replaced(node)) => {
                Some(RemoteEvent::AnswersLost(node))
            }
            Event::Link(LinkEvent::Connected(node)) => Some(RemoteEvent::Connected(node)),
            Event::Link(LinkEvent::Disconnected(node)) => Some(RemoteEvent::Disconnected(node)),
            _ => None,
        };
        if let Some(remote_event) = remote_event {
            remote.handle(self.now(), remote_event, &self.machine);
        }
        let input = match event {
            Event::Link(LinkEvent::Heard(node, heartbeat)) => Input::Heard(node, heartbeat),
            Event::Link(LinkEvent::Lost(node)) => Input::PeerLost(node),
            Event::Link(LinkEvent::Replaced(_) | LinkEvent::Disconnected(_)) => return,
            Event::Link(LinkEvent::Remote(node, frame)) => {
                return remote.handle(self.now(), RemoteEvent::Frame(node, frame), &self.machine);
            }
            Event::Link(LinkEvent::Network(node, frame)) => {
                if let Some(difference) = MemberNetwork::difference(&frame) {
                    let name = self.name(node).to_owned();
                    self.warn(format_args!("node {name} {difference}"));
                }
                if let Some(why) = network.receive(node, frame, &self.links) {
                    let name = self.name(node).to_owned();
                    self.warn(format_args!("node {name} must report its network again: {why}"));
                }
                return;
            }
            Event::Link(LinkEvent::Connected(node)) => {
                return info!(node = self.name(node), "connected to a node of the cluster");
            }
            Event::Link(LinkEvent::Trouble(what)) => {
                return self.warn(format_args!("no link of the cluster: {what}"));
            }
            Event::Store(StoreEvent::Read(records)) => Input::Read(records),
            Event::Store(StoreEvent::Changed(dpid, record)) => Input::Changed(dpid, record),
            Event::Store(StoreEvent::UpTo(revision)) => {
                self.revision = Some(revision);
                self.store_heard = Some(self.now());
                return;
            }
            Event::Store(StoreEvent::Alive) => {
                self.store_heard = Some(self.now());
                return;
            }
            Event::Store(StoreEvent::Reachable(reachable)) => return self.reached(reachable.err()),
            Event::Written(dpid, result) => Input::Written(dpid, result),
            Event::Switch(event) => match self.input_of(event) {
                Some(input) => input,
                None => return,
            },
            Event::Command(command) => match self.command(command, remote) {
                Some(input) => input,
                None => return,
            },
        };
        self.machine.handle(self.now(), input, out);
    }

    fn reached(&mut self, trouble: Option<String>) {
        if trouble == self.store_trouble {
            return;
        }
        match &trouble {
            None => info!("etcd serves this node"),
            Some(trouble) => self.warn(format_args!("etcd does not serve this node: {trouble}")),
        }
        // Another reason is no other event.
        match (&trouble, std::mem::replace(&mut self.has_lost_store, trouble.is_some())) {
            (Some(why), false) => {
                self.publish(NetworkEvent::StoreLost { why: why.as_str().into() });
            }
            (None, true) => self.publish(NetworkEvent::StoreFound),
            _ => {}
        }
        self.store_trouble = trouble;
    }

    /// Publishes an event of the network.
    fn publish(&self, event: NetworkEvent) {
        self.network.events().publish(self.network.now(), event);
    }

    /// Writes a line, unless there were too many.
    fn warn(&mut self, line: std::fmt::Arguments<'_>) {
        if !self.lines.pass(self.now()) {
            self.left_out += 1;
            return;
        }
        match std::mem::take(&mut self.left_out) {
            0 => warn!("{line}"),
            left_out => warn!(left_out, "{line}"),
        }
    }

    fn input_of(&mut self, event: SwitchEvent) -> Option<Input> {
        match event {
            SwitchEvent::Connected(info, newest) => {
                let dpid = info.dpid;
                // It may be gone again.
                let now = self.network.connected().load();
                if !now.get(dpid).is_some_and(|it| Arc::ptr_eq(it, &info)) {
                    return None;
                }
                self.connected.insert(dpid, info);
                Some(Input::Connected(dpid, newest))
            }
            SwitchEvent::Disconnected(dpid) => {
                self.connected.remove(&dpid)?;
                Some(Input::Disconnected(dpid))
            }
            SwitchEvent::StandsBy(dpid) => {
                let is_master = matches!(self.machine.role(dpid), SwitchRole::Master(_));
                is_master.then_some(Input::Demoted(dpid))
            }
            SwitchEvent::Asked(dpid, newest) => Some(Input::Asked(dpid, newest)),
            SwitchEvent::Claimed(dpid, generation, answer) => match answer {
                Ok(()) => Some(Input::Granted(dpid, generation)),
                Err(RoleError::Stale { newest }) => {
                    Some(Input::Stale(dpid, newest.map(Generation)))
                }
                // The end of the connection is reported.
                Err(RoleError::Disconnected) => None,
                Err(error) => {
                    warn!(%dpid, "the switch does not make this node its master: {error}");
                    Some(Input::Refused(dpid))
                }
            },
        }
    }

    /// Finds switches that stand by for some time, though this node takes itself for their master.
    fn compare(&mut self, out: &mut Vec<Output>) {
        let now = self.now();
        if now < self.next_comparison {
            return;
        }
        self.next_comparison = now + COMPARE;
        let standbys = self.network.standbys().load();
        let masters = standbys.iter().map(|info| info.dpid);
        let masters: Vec<Dpid> = masters
            .filter(|&dpid| matches!(self.machine.role(dpid), SwitchRole::Master(_)))
            .collect();
        for &dpid in masters.iter().filter(|dpid| self.doubtful.contains(dpid)) {
            self.machine.handle(now, Input::Demoted(dpid), out);
        }
        self.doubtful = masters;
    }

    fn carry_out(
        &mut self,
        out: &mut Vec<Output>,
        remote: &mut MemberRemote,
        network: &MemberNetwork,
    ) {
        let (mut records, mut unused) = (Vec::new(), Vec::new());
        for output in out.drain(..) {
            match output {
                Output::Send(node, heartbeat) => self.links.send(node, heartbeat),
                Output::Order(dpid, RoleOrder::Master { generation_id }) => {
                    let generation = Generation(generation_id);
                    network.elected(dpid, generation);
                    let network = self.network.clone();
                    let claim = switches::claim(network, dpid, generation, self.events.clone());
                    tokio::task::spawn_local(claim);
                }
                // It takes effect whatever the switch answers.
                Output::Order(dpid, order) => drop(self.network.set_role(dpid, order)),
                Output::Ask(dpid) => {
                    let (network, events) = (self.network.clone(), self.events.clone());
                    tokio::task::spawn_local(switches::ask(network, dpid, events));
                }
                Output::Write { dpid, masters, floor, placed, expected } => {
                    records.push(NewRecord { dpid, masters, floor, placed, expected });
                }
                Output::Remove { dpid, expected } => unused.push((dpid, expected)),
                Output::Moved(dpid, result) => {
                    let names: Vec<&str> = self.nodes.iter().map(|(name, _)| &**name).collect();
                    self.orders.moved(dpid, result, &names);
                }
                Output::Balanced { left } => self.orders.balanced(left),
                Output::Notice(notice) => {
                    if let Notice::Dead(node) = notice {
                        remote.handle(self.now(), RemoteEvent::Dead(node), &self.machine);
                        network.dead(node);
                    }
                    if let Notice::Alive(node) = notice {
                        network.alive(node, &self.links);
                    }
                    self.report(notice);
                }
            }
        }
        if !unused.is_empty() {
            let store = self.store.clone();
            tokio::task::spawn_local(async move { store.remove(&unused).await });
        }
        if records.is_empty() {
            return;
        }
        let (store, events) = (self.store.clone(), self.events.clone());
        tokio::task::spawn_local(async move {
            for (dpid, result) in store.write(&records).await {
                if events.send(Event::Written(dpid, result)).await.is_err() {
                    return;
                }
            }
        });
    }

    fn report(&mut self, notice: Notice) {
        match notice {
            Notice::Serving => {
                info!("this node serves: it hears a majority of the cluster");
                self.publish(NetworkEvent::MajorityFound);
            }
            Notice::LostMajority => {
                self.publish(NetworkEvent::MajorityLost);
                error!(
                    "this node stands by at all switches: it does not hear a majority of the cluster"
                );
            }
            Notice::Dead(node) if node == self.me => {
                error!("a majority of the cluster does not hear this node");
            }
            Notice::Dead(node) => {
                warn!(node = self.name(node), "a majority of the cluster does not hear a node");
                self.publish(NetworkEvent::NodeLost { node: self.name(node).into() });
            }
            Notice::Alive(node) => {
                info!(node = self.name(node), "a node of the cluster is back");
                self.publish(NetworkEvent::NodeFound { node: self.name(node).into() });
            }
            Notice::Master(dpid, before) => {
                let before = before.map_or("none", |node| self.name(node));
                info!(%dpid, before, "master of a switch");
            }
            Notice::Fenced(dpid) => {
                self.publish(NetworkEvent::SwitchTaken { dpid });
                warn!(%dpid, "the switch obeys another node, which has taken it over");
            }
            Notice::Jumped(dpid, Generation(generation_id)) => {
                let event = NetworkEvent::ElectionAhead { dpid, generation_id };
                warn!("{event}");
                self.publish(event);
            }
            Notice::Unclaimed(dpid) => {
                let event = NetworkEvent::SwitchUnclaimed { dpid };
                self.warn(format_args!("{event}"));
                self.publish(event);
            }
            Notice::Claimed(dpid) => {
                let event = NetworkEvent::SwitchClaimed { dpid };
                info!("{event}");
                self.publish(event);
            }
            Notice::TooMany(dpid) => self.warn(format_args!(
                "the switch {dpid} gets no master: the cluster knows {MAX_SWITCHES} switches already"
            )),
            Notice::Unfit(dpid) => {
                warn!(%dpid, "the switch refuses this node as its master: others get it for a while");
            }
        }
    }

    /// Answers a command, or makes an input of it.
    fn command(&mut self, command: Command, remote: &MemberRemote) -> Option<Input> {
        match command {
            Command::Status(answer) => {
                // Nobody may wait for it any more.
                let _ = answer.send(self.status(remote));
                None
            }
            Command::Switches(answer) => {
                let _ = answer.send(self.switches());
                None
            }
            Command::Drain(draining) => {
                info!(draining, "an operator drains this node");
                Some(Input::Drain(draining))
            }
            Command::Move { dpid, to, answer } => self.begin_move(dpid, &to, answer),
            Command::Balance(answer) => self.begin_balance(answer),
            Command::Stop => None,
        }
    }

    /// Begins to move a switch, or says at once why it cannot be moved.
    fn begin_move(
        &mut self,
        dpid: Dpid,
        to: &str,
        answer: blocking::Sender<OrderResult>,
    ) -> Option<Input> {
        let node = self.node_named(to).and_then(|node| {
            self.orders.may_move(dpid)?;
            self.may_order()?;
            Ok(node)
        });
        match node {
            Ok(node) => {
                info!(%dpid, to, "an operator moves a switch");
                self.orders.begin_move(dpid, to, answer);
                Some(Input::Move(dpid, node))
            }
            Err(error) => {
                let _ = answer.send(Err(error));
                None
            }
        }
    }

    fn begin_balance(&mut self, answer: blocking::Sender<OrderResult>) -> Option<Input> {
        if let Err(error) = self.may_order() {
            let _ = answer.send(Err(error));
            return None;
        }
        info!("an operator lets the cluster spread all switches");
        self.orders.begin_balance(answer);
        Some(Input::Balance)
    }

    fn node_named(&self, name: &str) -> Result<NodeId, OrderError> {
        let place = self.nodes.iter().position(|(other, _)| other == name);
        place.and_then(NodeId::new).ok_or_else(|| {
            let known: Vec<&str> = self.nodes.iter().map(|(name, _)| name.as_str()).collect();
            OrderError::UnknownNode { name: name.into(), known: known.join(" ") }
        })
    }

    /// Whether this node can write orders of masters.
    fn may_order(&self) -> Result<(), OrderError> {
        if !self.machine.is_serving() {
            return Err(OrderError::NotServing);
        }
        match &self.store_trouble {
            Some(why) => Err(OrderError::NoStore { why: why.clone() }),
            None => Ok(()),
        }
    }

    fn status(&self, remote: &MemberRemote) -> Status {
        let now = self.now();
        let mut placed = BTreeMap::<NodeId, usize>::new();
        for node in self.machine.switches().filter_map(|(_, record, _)| record?.placed_at()) {
            *placed.entry(node).or_default() += 1;
        }
        let nodes = self.nodes.iter().enumerate().filter_map(|(place, (name, address))| {
            let node = NodeId::new(place)?;
            let state = self.machine.node_state(node);
            let heard_ago = self.machine.heard(node).map(|at| now.saturating_sub(at));
            Some(NodeStatus {
                name: name.clone(),
                address: *address,
                state,
                heard_ago,
                switches: self.machine.load(node),
                placed: placed.get(&node).copied().unwrap_or(0),
            })
        });
        let mastered =
            self.machine.switches().filter(|(.., role)| matches!(role, SwitchRole::Master(_)));
        let epochs = self.machine.switches().filter_map(|(_, record, _)| record.map(Record::epoch));
        Status {
            epoch: epochs.max().unwrap_or(0),
            requests: remote.counters(),
            revision: self.revision,
            store_heard_ago: self.store_heard.map(|at| now.saturating_sub(at)),
            cluster: self.cluster.clone(),
            node: self.name(self.me).into(),
            is_serving: self.machine.is_serving(),
            is_draining: self.machine.node_state(self.me) == NodeState::Draining,
            nodes: nodes.collect(),
            not_after: self.tls.as_ref().and_then(LinkTls::not_after),
            revocations_end: self.tls.as_ref().and_then(LinkTls::revocations_end),
            has_store: self.store_trouble.is_none(),
            store_trouble: self.store_trouble.clone().unwrap_or_default(),
            connected: self.connected.len(),
            mastered: mastered.count(),
        }
    }

    fn switches(&self) -> Vec<SwitchStatus> {
        let all = self.machine.switches().map(|(dpid, record, role)| {
            let masters = record.map_or(&[][..], |record| &record.masters);
            let masters = masters.iter().map(|&node| self.name(node).to_owned()).collect();
            let placed = record.is_some_and(|record| record.placed);
            let master = self.machine.master(dpid).map(|node| self.name(node).to_owned());
            SwitchStatus { dpid, masters, epoch: record.map(Record::epoch), master, placed, role }
        });
        all.collect()
    }
}
