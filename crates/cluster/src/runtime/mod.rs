//! A node at work: a thread that feeds [`Mastership`](crate::mastership) and does what it says.
//!
//! ```text
//! switches (roles, by the network) ---+                 +--> role requests
//! other nodes (heartbeats) -----------+--> Mastership --+--> heartbeats
//! etcd (records) ---------------------+                 +--> records
//! ```
//!
//! The same thread carries what apps send to switches of other nodes ([`RemoteRequests`]), and
//! links and hosts between all nodes ([`network`](crate::network)).
//!
//! The thread has an async runtime of its own. Workers never wait for it: orders of roles go
//! through their mailboxes, and what has happened to switches is read from watches.

mod member;
mod network;
mod orders;
mod remote;
mod store;
mod switches;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, mpsc as blocking};
use std::thread::JoinHandle;
use std::time::Duration;

use bellrock_api::runtime::RemoteControl;
use bellrock_api::{Dpid, Network};
use tokio::sync::mpsc;

use crate::etcd;
use crate::link::{LinkError, LinkSettings, LinkTls, Links};
use crate::mastership::{KEEP_RECORDS, MemberSettings, NodeState, ORDER_LIMIT, SwitchRole};
use crate::node::{MAX_NODES, NodeId};
use crate::remote::{BeginOrder, RemoteRequests, RequestCounters};
use member::{Event, Member};
use network::MemberNetwork;
pub use orders::OrderError;
use orders::OrderResult;
use remote::MemberRemote;
pub(crate) use store::{NODES, Store, Trouble};

/// Maximum number of events that wait for the thread.
const MAX_EVENTS: usize = 4096;
/// The thread answers a question within this time, or something is very wrong.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Name of the cluster. Its keys in etcd begin with `/bellrock/NAME/`.
    pub name: String,
    /// Name of this node.
    pub node: String,
    /// Where the other nodes connect.
    pub listen: SocketAddr,
    /// Names and addresses of the other nodes: 2, 4, 6 or 8 of them, so that there is a majority.
    pub peers: Vec<(String, SocketAddr)>,
    /// The apps of the controller's chain, in order. A node with others is refused. The builder of
    /// a controller sets them.
    pub apps: Vec<String>,
    /// TLS between the nodes, with the certificate of this one. `None`: only for loopback
    /// addresses.
    pub tls: Option<LinkTls>,
    /// How etcd is reached. Its prefix is replaced by that of the cluster.
    pub etcd: etcd::Settings,
}

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Two nodes have one name.
    #[error("the cluster has two nodes named {0:?}: give each one a name of its own")]
    SameName(String),
    /// There would be no majority.
    #[error(
        "a cluster has 3, 5, 7 or 9 nodes, so that a majority survives the loss of one; this one has {0}"
    )]
    Size(usize),
    /// The settings of etcd.
    #[error(transparent)]
    Etcd(#[from] etcd::SettingsError),
    /// The links to the other nodes.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The controller is a node already.
    #[error("this controller is a node of a cluster already")]
    Twice,
    /// The thread, or its runtime.
    #[error("the thread of the cluster cannot start: {0}")]
    System(#[from] std::io::Error),
}

/// What an operator sees of a cluster, at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Name of the cluster.
    pub cluster: String,
    /// This node.
    pub node: String,
    /// Whether this node may be master: it has a majority, and has read etcd.
    pub is_serving: bool,
    /// Whether this node gives its switches to others.
    pub is_draining: bool,
    /// End of this node's certificate, in seconds since 1970. `None`: it has none.
    pub not_after: Option<i64>,
    /// End of its list of revoked certificates (`nextUpdate`), in seconds since 1970. `None`: it
    /// has none.
    pub revocations_end: Option<i64>,
    /// All nodes, sorted by name.
    pub nodes: Vec<NodeStatus>,
    /// The newest epoch of an order of masters; 0: there is none.
    pub epoch: u64,
    /// Requests between nodes.
    pub requests: RequestCounters,
    /// Revision of etcd up to which this node knows all changes. `None`: it has read nothing yet.
    pub revision: Option<i64>,
    /// How long ago etcd was heard. `None`: never.
    pub store_heard_ago: Option<Duration>,
    /// Whether etcd answers.
    pub has_store: bool,
    /// What was last wrong with etcd; empty: nothing.
    pub store_trouble: String,
    /// Number of switches that are connected to this node.
    pub connected: usize,
    /// Number of switches that this node is master of.
    pub mastered: usize,
}

/// A node, as this one sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it is.
    pub state: NodeState,
    /// How long ago it was heard. `None`: it is this one, or was never heard.
    pub heard_ago: Option<Duration>,
    /// Number of switches whose record has it in front.
    pub switches: usize,
    /// Number of these that an operator has given to it.
    pub placed: usize,
}

/// A switch, as this node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchStatus {
    /// The switch.
    pub dpid: Dpid,
    /// The order of its masters.
    pub masters: Vec<String>,
    /// The epoch of that order. `None`: there is none yet.
    pub epoch: Option<u64>,
    /// The node that it obeys, as far as this one knows: it may have taken over while etcd is away.
    /// `None`: there is no record, or no node that has the switch.
    pub master: Option<String>,
    /// Whether an operator has given it to the first of these, so that balancing leaves it there.
    pub placed: bool,
    /// What this node is there.
    pub role: SwitchRole,
}

/// What is asked of the thread.
pub(crate) enum Command {
    Status(blocking::Sender<Status>),
    Switches(blocking::Sender<Vec<SwitchStatus>>),
    Drain(bool),
    Move { dpid: Dpid, to: String, answer: blocking::Sender<OrderResult> },
    Balance(blocking::Sender<OrderResult>),
    Stop,
}

/// A node of a cluster at work. Dropping it stops the thread; the roles stay as they are, and the
/// other nodes take over when the switches' connections end.
#[derive(Debug)]
pub struct Cluster {
    events: mpsc::Sender<Event>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Cluster {
    /// Starts the thread of a node. The controller must begin at its switches as a standby.
    /// `begin_order` is called for each order of an operator of another node.
    ///
    /// # Errors
    /// [`StartError`]. That etcd or other nodes cannot be reached is none: this node stands by.
    pub fn start(
        settings: ClusterSettings,
        network: Network,
        begin_order: BeginOrder,
    ) -> Result<Self, StartError> {
        let nodes = all_nodes(&settings)?;
        let place = nodes.iter().position(|(name, _)| *name == settings.node);
        let me = place.and_then(NodeId::new).ok_or(StartError::Size(nodes.len()))?;
        let prefix = format!("/bellrock/{}/", settings.name);
        let client = etcd::Client::new(&etcd::Settings { prefix, ..settings.etcd })?;
        let client = client.beginning_at(me.index());
        let incarnation = getrandom::u64().map_err(std::io::Error::other)?;
        let links = LinkSettings {
            cluster: settings.name.clone(),
            nodes: nodes.clone(),
            apps: settings.apps,
            me,
            listen: settings.listen,
            tls: settings.tls.clone(),
            incarnation,
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (events, receiver) = mpsc::channel(MAX_EVENTS);
        let links = runtime.block_on(start_links(links, events.clone()))?;
        let keep_records = KEEP_RECORDS;
        let member = MemberSettings { me, nodes: nodes.len(), incarnation, keep_records };
        let (answered, answers) = mpsc::channel(MAX_EVENTS);
        let (remote, handle, posted) =
            RemoteRequests::new(network.clone(), nodes.len(), answered, begin_order);
        // A second node of one controller would carry nothing.
        if !network.set_remote(Arc::new(handle)) {
            return Err(StartError::Twice);
        }
        let shared = MemberNetwork::new(network.clone(), me, nodes.len(), incarnation);
        let own = events.clone();
        let thread = std::thread::Builder::new().name("cluster".into()).spawn(move || {
            let local = tokio::task::LocalSet::new();
            let names = (settings.name, settings.tls);
            let member = Member::new(names, nodes, member, links, client, network, own);
            let remote = MemberRemote::new(remote, posted, answers);
            local.block_on(&runtime, member.run(receiver, remote, shared));
        })?;
        Ok(Cluster { events, thread: Mutex::new(Some(thread)) })
    }

    /// What this node sees of the cluster.
    ///
    /// # Errors
    /// [`OrderError::Gone`].
    pub fn status(&self) -> Result<Status, OrderError> {
        self.ask(ANSWER_LIMIT, Command::Status)
    }

    /// All switches that the cluster knows.
    ///
    /// # Errors
    /// [`OrderError::Gone`].
    pub fn switches(&self) -> Result<Vec<SwitchStatus>, OrderError> {
        self.ask(ANSWER_LIMIT, Command::Switches)
    }

    /// Gives all switches of this node to others, or stops that.
    ///
    /// # Errors
    /// [`OrderError::Gone`].
    pub fn drain(&self, draining: bool) -> Result<(), OrderError> {
        self.send(Command::Drain(draining))
    }

    /// Gives a switch of this node to another one, and returns when that is its master. The switch
    /// stays there until the node is lost or drains, or until the next order to move or to balance.
    /// With the name of this node the switch stays here.
    ///
    /// # Errors
    /// [`OrderError`], at the latest after [`ORDER_LIMIT`].
    pub fn move_switch(&self, dpid: Dpid, to: &str) -> Result<(), OrderError> {
        let order = |answer| Command::Move { dpid, to: to.into(), answer };
        self.ask(ORDER_LIMIT + ANSWER_LIMIT, order)?
    }

    /// Ends what moves have ordered, at all nodes: the switches are spread evenly again. Returns
    /// when etcd has confirmed that; the switches follow one at a time.
    ///
    /// # Errors
    /// [`OrderError`], at the latest after [`ORDER_LIMIT`].
    pub fn balance(&self) -> Result<(), OrderError> {
        self.ask(ORDER_LIMIT + ANSWER_LIMIT, Command::Balance)?
    }

    /// Ends the thread, and with it the connections to the other nodes. The roles stay as they are.
    pub fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A full queue means that the thread is stuck: it is not waited for then.
        if let Some(thread) = thread
            && self.send(Command::Stop).is_ok()
        {
            let _ = thread.join();
        }
    }

    fn ask<T>(
        &self,
        limit: Duration,
        command: impl FnOnce(blocking::Sender<T>) -> Command,
    ) -> Result<T, OrderError> {
        let (answer, answered) = blocking::channel();
        self.send(command(answer))?;
        answered.recv_timeout(limit).map_err(|_| OrderError::Gone)
    }

    fn send(&self, command: Command) -> Result<(), OrderError> {
        self.events.try_send(Event::Command(command)).map_err(|_| OrderError::Gone)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Names and addresses of all nodes, sorted by name.
pub(crate) fn all_nodes(
    settings: &ClusterSettings,
) -> Result<Vec<(String, SocketAddr)>, StartError> {
    let mut nodes = settings.peers.clone();
    nodes.push((settings.node.clone(), settings.listen));
    nodes.sort();
    if let Some(pair) = nodes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(StartError::SameName(pair[0].0.clone()));
    }
    if nodes.len().is_multiple_of(2) || nodes.len() < 3 || nodes.len() > MAX_NODES {
        return Err(StartError::Size(nodes.len()));
    }
    Ok(nodes)
}

/// Starts the links, whose events become those of the thread.
async fn start_links(
    settings: LinkSettings,
    events: mpsc::Sender<Event>,
) -> Result<Links, LinkError> {
    let (sender, mut receiver) = mpsc::channel(MAX_EVENTS);
    let links = Links::start(settings, sender).await?;
    tokio::spawn(async move {
        while let Some(event) = receiver.recv().await {
            if events.send(Event::Link(event)).await.is_err() {
                return;
            }
        }
    });
    Ok(links)
}
