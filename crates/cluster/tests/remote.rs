//! Three nodes with real links on loopback: what one sends to a switch of another comes there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use bellrock_api::openflow::{
    Bytes, FlowMod, MAX_MESSAGE_LEN, MultipartKind, Out, RequestBody, RequestKind,
};
use bellrock_api::runtime::{
    Changes, NetworkState, NewTask, Program, Promise, RawMessages, RemoteControl, Runtime, TimerId,
    promise,
};
use bellrock_api::{
    AppId, Change, ChangeOutcome, Cookie, Dpid, Error, ErrorCode, Flow, MacAddr, Match, Network,
    NoConfirmation, ProgramFuture, Publisher, Refusal, Reply, RequestError, RequestFuture,
    RoleOrder, RoleOrderFuture, SwitchInfo, Switches, TaskHandle, ToSwitch, Version,
};
use bellrock_cluster::link::{LinkEvent, LinkSettings, Links};
use bellrock_cluster::node::NodeId;
use bellrock_cluster::remote::{BeginOrder, RemoteEvent, RemoteRequests};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep_until, timeout};

/// A test that waits for longer fails.
const LIMIT: Duration = Duration::from_secs(30);
const SWITCH: Dpid = Dpid(0xa1);

fn node(place: usize) -> NodeId {
    NodeId::new(place).unwrap()
}

fn info() -> Arc<SwitchInfo> {
    Arc::new(SwitchInfo::new(SWITCH, Version::V1_3, ([127, 0, 0, 1], 6653).into()))
}

/// What a controller has sent to the switch.
#[derive(Debug, PartialEq, Eq)]
enum Sent {
    Message(Vec<u8>),
    Changes(usize, Vec<u8>),
    Request(RequestKind),
}

/// A controller with one switch, which is up, or at which it stands by.
struct Controller {
    state: NetworkState,
    up: Publisher<Switches>,
    sent: Mutex<Vec<Sent>>,
    /// Answers to programs. `None`: they wait.
    outcome: Mutex<Option<ChangeOutcome>>,
    waiting: Mutex<Vec<Promise<Vec<ChangeOutcome>>>>,
    reply: Mutex<Option<Result<Reply, RequestError>>>,
    /// Each order of an operator of another node that is under way holds it.
    orders: Arc<()>,
}

impl Controller {
    fn new() -> Arc<Self> {
        let up = Publisher::<Switches>::default();
        let standbys = Publisher::new(Switches::default().with(info()));
        let state = NetworkState {
            switches: up.watch().clone(),
            standbys: standbys.watch().clone(),
            ..NetworkState::default()
        };
        Arc::new(Controller {
            state,
            up,
            sent: Mutex::default(),
            outcome: Mutex::new(Some(ChangeOutcome::Installed)),
            waiting: Mutex::default(),
            reply: Mutex::default(),
            orders: Arc::default(),
        })
    }

    fn become_master(&self, is_master: bool) {
        let switches = Switches::default();
        self.up.publish(if is_master { switches.with(info()) } else { switches });
    }

    fn is_up(&self) -> bool {
        self.up.watch().load().get(SWITCH).is_some()
    }

    fn sent(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

impl Runtime for Controller {
    fn state(&self) -> &NetworkState {
        &self.state
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn send(&self, _: Option<AppId>, to: Dpid, message: &ToSwitch<'_>) -> Result<(), Error> {
        if !self.is_up() {
            return Err(Error::UnknownSwitch(to));
        }
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        message.encode(Version::V1_3, 0, &mut out)?;
        self.sent.lock().unwrap().push(Sent::Message(out.as_slice().to_vec()));
        Ok(())
    }

    fn resume(&self, _: AppId, dpid: Dpid) -> Result<(), Error> {
        Err(Error::UnknownSwitch(dpid))
    }

    fn program(&self, program: Program) -> ProgramFuture {
        let changes = program.changes.len();
        let Changes::Messages(messages) = program.changes else { panic!("they are encoded") };
        if !self.is_up() {
            let error = Error::UnknownSwitch(program.dpid);
            return ProgramFuture::ready(vec![ChangeOutcome::NotSent(error); changes]);
        }
        self.sent.lock().unwrap().push(Sent::Changes(changes, messages.concat()));
        match *self.outcome.lock().unwrap() {
            Some(outcome) => ProgramFuture::ready(vec![outcome; changes]),
            None => {
                let (promise, answer) = promise();
                self.waiting.lock().unwrap().push(promise);
                ProgramFuture::in_parts([(changes, answer)])
            }
        }
    }

    fn request(&self, _: Dpid, request: &ToSwitch<'_>) -> RequestFuture {
        self.sent.lock().unwrap().push(Sent::Request(RequestKind::of(request).unwrap()));
        let (promise, answer) = promise();
        promise.resolve(self.reply.lock().unwrap().clone().unwrap());
        RequestFuture::sent(answer)
    }

    fn set_role(&self, to: Dpid, _: RoleOrder) -> RoleOrderFuture {
        RoleOrderFuture::not_sent(Error::UnknownSwitch(to))
    }

    fn spawn(&self, _: NewTask) -> TaskHandle {
        panic!("no tasks here");
    }

    fn set_timer(&self, _: Duration, _: &Waker) -> TimerId {
        panic!("no timers here");
    }

    fn clear_timer(&self, _: TimerId) {}
}

/// The node that each one takes for the master.
type Masters = Rc<Mutex<BTreeMap<NodeId, NodeId>>>;

/// Carries the requests of a node until it is aborted.
async fn run(
    me: NodeId,
    settings: LinkSettings,
    network: Network,
    masters: Masters,
    connected: mpsc::UnboundedSender<()>,
    orders: BeginOrder,
) {
    let (events, mut received) = mpsc::channel(64);
    let links = Links::start(settings, events).await.unwrap();
    let (answered, mut answers) = mpsc::channel(64);
    let (mut remote, handle, mut posted) =
        RemoteRequests::new(network.clone(), 3, answered, orders);
    assert!(network.set_remote(Arc::new(handle)));
    let (started, mut out) = (Instant::now(), Vec::new());
    let master = |_| masters.lock().unwrap().get(&me).copied();
    loop {
        let wake = started + remote.next_wake().unwrap_or(LIMIT);
        let event = tokio::select! {
            Some(posted) = posted.recv() => Some(RemoteEvent::Posted(posted)),
            Some(answered) = answers.recv() => Some(RemoteEvent::Answered(answered)),
            Some(event) = received.recv() => match event {
                LinkEvent::Remote(node, frame) => Some(RemoteEvent::Frame(node, frame)),
                LinkEvent::Connected(node) => {
                    let _ = connected.send(());
                    Some(RemoteEvent::Connected(node))
                }
                LinkEvent::Disconnected(node) => Some(RemoteEvent::Disconnected(node)),
                LinkEvent::Lost(node) | LinkEvent::Replaced(node) => {
                    Some(RemoteEvent::AnswersLost(node))
                }
                LinkEvent::Heard(..) | LinkEvent::Network(..) | LinkEvent::Trouble(_) => None,
            },
            () = sleep_until(wake) => None,
        };
        if let Some(event) = event {
            remote.handle(started.elapsed(), event, &master, &mut out);
        }
        remote.advance(started.elapsed(), &master, &mut out);
        for (node, frame) in out.drain(..) {
            assert!(links.send_remote(node, frame));
        }
    }
}

/// Nodes a, b and c.
struct Three {
    controllers: Vec<Arc<Controller>>,
    tasks: Vec<JoinHandle<()>>,
    masters: Masters,
}

impl Three {
    async fn start() -> Self {
        let mut nodes: Vec<(String, SocketAddr)> = Vec::new();
        let mut held = Vec::new();
        for name in ["a", "b", "c"] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            nodes.push((name.into(), listener.local_addr().unwrap()));
            held.push(listener);
        }
        drop(held);
        let masters = Masters::default();
        let controllers: Vec<_> = (0..3).map(|_| Controller::new()).collect();
        let (connected, mut connections) = mpsc::unbounded_channel();
        let run = |place: usize| {
            let settings = LinkSettings {
                apps: vec!["learning".to_owned()],
                cluster: "lab".into(),
                nodes: nodes.clone(),
                me: node(place),
                listen: nodes[place].1,
                tls: None,
                incarnation: place as u64,
            };
            let network = Network::new(Arc::<Controller>::clone(&controllers[place]));
            let orders = Arc::clone(&controllers[place].orders);
            let begin_order: BeginOrder = Arc::new(move |dpid| {
                assert_eq!(dpid, SWITCH);
                Box::new(Arc::clone(&orders))
            });
            let (masters, connected) = (masters.clone(), connected.clone());
            spawn_local(run(node(place), settings, network, masters, connected, begin_order))
        };
        let tasks = (0..3).map(run).collect();
        for _ in 0..6 {
            connections.recv().await.unwrap();
        }
        Three { controllers, tasks, masters }
    }

    /// Makes a node the master, and all nodes know it.
    fn make_master(&self, place: usize) {
        for (at, controller) in self.controllers.iter().enumerate() {
            controller.become_master(at == place);
            self.masters.lock().unwrap().insert(node(at), node(place));
        }
    }

    /// The network of an app at node a.
    fn network(&self) -> Network {
        let app = AppId::new(0, "routing").unwrap();
        Network::of_app(Arc::<Controller>::clone(&self.controllers[0]), "routing", app)
    }
}

fn in_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        timeout(LIMIT, test).await.unwrap();
    });
}

fn change(mark: u8) -> Change {
    Change::Add(Flow::new(Match::any().eth_dst(MacAddr([2, 0, 0, 0, 0, mark]))))
}

#[test]
fn messages_changes_and_requests_reach_the_master_in_order_and_their_answers_come_back() {
    in_time(async {
        let three = Three::start().await;
        three.make_master(1);
        let (network, master) = (three.network(), &three.controllers[1]);
        assert_eq!(network.reachable(SWITCH), Some(info()));
        let mut programs = Vec::new();
        for mark in 0..100 {
            let bytes = [mark];
            network.send(SWITCH, &ToSwitch::EchoRequest(Bytes(&bytes))).unwrap();
            programs.push(network.program(SWITCH, vec![change(mark), change(mark)]));
        }
        for program in programs {
            assert_eq!(program.await, [ChangeOutcome::Installed; 2]);
        }
        let sent = master.sent();
        assert_eq!(sent.len(), 200);
        for (mark, pair) in (0..100).zip(sent.chunks(2)) {
            let [Sent::Message(message), Sent::Changes(2, changes)] = pair else {
                panic!("{pair:?}")
            };
            assert_eq!(*message.last().unwrap(), mark);
            // They have the cookie of the app, at whatever node.
            let flow = ToSwitch::decode(&changes[..changes.len() / 2]).unwrap().body;
            let ToSwitch::FlowMod(FlowMod { cookie, .. }) = flow else { panic!("{flow:?}") };
            assert!(Cookie::of_app("routing").owns(cookie));
        }
        // A reply that needs many frames.
        let kind = RequestKind::Multipart(MultipartKind::Desc);
        let long = Reply::new(Version::V1_3, kind, vec![7; 1_000_001].into());
        *master.reply.lock().unwrap() = Some(Ok(long.clone()));
        assert_eq!(network.request(SWITCH, RequestBody::Desc).await, Ok(long));
        let refusal = Refusal::Standard(ErrorCode::FlowModTableFull);
        *master.reply.lock().unwrap() = Some(Err(RequestError::Refused(refusal)));
        let refused = network.request(SWITCH, RequestBody::Desc).await;
        assert_eq!(refused, Err(RequestError::Refused(refusal)));
        assert_eq!(master.sent(), [Sent::Request(kind), Sent::Request(kind)]);
        *master.outcome.lock().unwrap() = Some(ChangeOutcome::Refused(refusal));
        let refused = network.program(SWITCH, vec![change(1)]).await;
        assert_eq!(refused, [ChangeOutcome::Refused(refusal)]);
        // Nobody else was asked.
        assert!(three.controllers[0].sent().is_empty() && three.controllers[2].sent().is_empty());
    });
}

#[test]
fn a_switch_that_has_moved_gets_all_in_order_from_its_new_master() {
    in_time(async {
        let three = Three::start().await;
        three.make_master(2);
        // Node a does not know it yet.
        three.masters.lock().unwrap().insert(node(0), node(1));
        let network = three.network();
        let mut programs: Vec<ProgramFuture> =
            (0..10).map(|mark| network.program(SWITCH, vec![change(mark)])).collect();
        // Node b has refused, and node a waits.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(three.controllers[1].sent(), []);
        three.masters.lock().unwrap().insert(node(0), node(2));
        programs.extend((10..20).map(|mark| network.program(SWITCH, vec![change(mark)])));
        for program in programs {
            assert_eq!(program.await, [ChangeOutcome::Installed]);
        }
        let sent = three.controllers[2].sent();
        let marks = sent.iter().map(|sent| {
            let Sent::Changes(1, changes) = sent else { panic!("{sent:?}") };
            let ToSwitch::FlowMod(flow) = ToSwitch::decode(changes).unwrap().body else {
                panic!("{sent:?}")
            };
            flow.matching.to_match().value(bellrock_api::Field::EthDst).unwrap() as u8
        });
        assert_eq!(marks.collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        assert_eq!(three.controllers[1].sent(), []);
    });
}

#[test]
fn a_master_that_is_lost_leaves_the_outcome_unknown() {
    in_time(async {
        let three = Three::start().await;
        three.make_master(1);
        *three.controllers[1].outcome.lock().unwrap() = None;
        let network = three.network();
        let program = network.program(SWITCH, vec![change(1)]);
        while three.controllers[1].sent().is_empty() {
            tokio::task::yield_now().await;
        }
        three.tasks[1].abort();
        let lost = ChangeOutcome::Unknown(NoConfirmation::Disconnected);
        assert_eq!(program.await, [lost]);
        // Another one takes over.
        three.make_master(2);
        assert_eq!(network.program(SWITCH, vec![change(2)]).await, [ChangeOutcome::Installed]);
    });
}

#[test]
fn the_master_knows_while_an_operator_changes_its_switch_at_another_node() {
    in_time(async {
        let three = Three::start().await;
        three.make_master(1);
        let (network, master) = (three.network(), &three.controllers[1]);
        *master.outcome.lock().unwrap() = None;
        let idle = Arc::strong_count(&master.orders);
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        let matching = Match::any();
        let flow = ToSwitch::FlowMod(FlowMod::delete(&matching));
        flow.encode(Version::V1_3, 0, &mut out).unwrap();
        let by_app = network.program(SWITCH, vec![change(1)]);
        let by_operator = network.send_messages(SWITCH, vec![out.as_slice().into()]);
        while master.waiting.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(Arc::strong_count(&master.orders), idle + 1);
        for promise in master.waiting.lock().unwrap().drain(..) {
            promise.resolve(vec![ChangeOutcome::Installed]);
        }
        assert_eq!(by_app.await, [ChangeOutcome::Installed]);
        assert_eq!(by_operator.await, [ChangeOutcome::Installed]);
        assert_eq!(Arc::strong_count(&master.orders), idle);
    });
}

#[test]
fn a_switch_without_a_master_gets_nothing() {
    in_time(async {
        let three = Three::start().await;
        let network = three.network();
        let unknown = Error::NoMaster(SWITCH);
        let outcomes = network.program(SWITCH, vec![change(1)]).await;
        assert_eq!(outcomes, [ChangeOutcome::NotSent(unknown)]);
        let reply = network.request(SWITCH, RequestBody::Desc).await;
        assert_eq!(reply, Err(RequestError::NotSent(unknown)));
        // Node b is asked again and again, and is none.
        three.masters.lock().unwrap().insert(node(0), node(1));
        let outcomes = network.program(SWITCH, vec![change(1)]).await;
        assert_eq!(outcomes, [ChangeOutcome::NotSent(unknown)]);
        // A switch that this node does not have gets nothing either.
        assert_eq!(network.reachable(Dpid(7)), None);
        let other = network.send(Dpid(7), &ToSwitch::BarrierRequest);
        assert_eq!(other, Err(Error::UnknownSwitch(Dpid(7))));
    });
}
