//! Connections between the nodes.
//!
//! Each node connects to each other one, and sends its heartbeats and requests there; it reads
//! those of the others on the connections that they have made. A connection begins with a greeting,
//! in which the receiver refuses nodes that do not belong to it: another cluster, an unknown node,
//! another version, other apps, a second process of the same name.
//!
//! With TLS both ends show a certificate, which must have the node's name. Without it, only
//! loopback addresses are possible.

mod frame;
mod greetings;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::heartbeat::Heartbeat;
use crate::mastership::SILENCE;
use crate::network::NetworkFrame;
use crate::node::NodeId;
use crate::remote::RemoteFrame;
#[cfg(test)]
pub(crate) use frame::MAX_FRAME_BYTES;
use frame::{Hello, VERSION, Welcome, WireMessage};
use greetings::{Greeting, Greetings};
use tls::ShownCertificate;
pub use tls::{LinkTls, TlsError, TlsFiles};

/// Time limit for a connection with its handshakes.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of requests and answers that wait to be sent to a node, [`FRAME_BYTES`]
/// for each included.
const MAX_QUEUED_BYTES: usize = 128 * 1024 * 1024;
/// Time limit for sending one message.
const SEND_LIMIT: Duration = Duration::from_secs(2);
/// A connection on which nothing comes for so long is closed.
const READ_LIMIT: Duration = Duration::from_secs(10);
/// Pauses between two attempts to connect: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Number of bytes that a frame counts for besides what it carries: what it takes while it waits.
const FRAME_BYTES: usize = 256;

/// What a node's links are.
#[derive(Clone, Debug)]
pub struct LinkSettings {
    /// Name of the cluster.
    pub cluster: String,
    /// Names and addresses of all nodes, sorted by name.
    pub nodes: Vec<(String, SocketAddr)>,
    /// The apps of its chain, in order: the same at all nodes.
    pub apps: Vec<String>,
    /// This node.
    pub me: NodeId,
    /// Where the others connect.
    pub listen: SocketAddr,
    /// TLS of this node. `None`: only loopback addresses.
    pub tls: Option<LinkTls>,
    /// A random number of this process.
    pub incarnation: u64,
}

/// What happens on the links.
#[derive(Debug)]
pub enum LinkEvent {
    /// A heartbeat of a node.
    Heard(NodeId, Heartbeat),
    /// A node's connection has ended.
    Lost(NodeId),
    /// A node has connected again, in place of a connection whose end was not seen.
    Replaced(NodeId),
    /// A request of a node for a switch of this one, or an answer.
    Remote(NodeId, RemoteFrame),
    /// Something that a node knows of links and hosts.
    Network(NodeId, NetworkFrame),
    /// This node cannot connect to another one, or refuses one. Reported when the reason changes.
    Trouble(String),
    /// This node has connected to another one.
    Connected(NodeId),
    /// That connection has ended.
    Disconnected(NodeId),
}

/// Why the links cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The address cannot be used.
    #[error("the other nodes cannot connect to {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Another machine, without TLS.
    #[error(
        "{0} is not this machine: nodes on several machines need TLS (certificate, key and ca of the \
         section cluster.tls)"
    )]
    Plain(SocketAddr),
}

/// The links of this node. They end when this is dropped.
#[derive(Debug)]
pub struct Links {
    /// What is to be sent, by node.
    outgoing: Vec<Option<Outgoing>>,
    tasks: Tasks,
}

/// What is to be sent to a node.
#[derive(Debug)]
struct Outgoing {
    /// The next heartbeat.
    heartbeat: watch::Sender<Option<Heartbeat>>,
    frames: mpsc::UnboundedSender<QueuedFrame>,
    /// Number of bytes of `frames`.
    queued: Arc<AtomicUsize>,
}

/// The other end of [`Outgoing`].
struct Queue {
    heartbeats: watch::Receiver<Option<Heartbeat>>,
    frames: mpsc::UnboundedReceiver<QueuedFrame>,
    queued: Arc<AtomicUsize>,
}

/// A frame that waits, besides heartbeats.
#[derive(Debug)]
enum QueuedFrame {
    Remote(RemoteFrame),
    /// Its receiver takes a few at a time only.
    Network(NetworkFrame),
}

impl QueuedFrame {
    /// Number of bytes that count against [`MAX_QUEUED_BYTES`].
    fn bytes(&self) -> usize {
        match self {
            QueuedFrame::Remote(frame) => frame.bytes().saturating_add(FRAME_BYTES),
            QueuedFrame::Network(_) => 0,
        }
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.tasks.lock().abort_all();
    }
}

/// All tasks of the links.
#[derive(Clone, Debug, Default)]
struct Tasks(Arc<std::sync::Mutex<JoinSet<()>>>);

impl Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.lock();
        // Those that have ended are forgotten.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        // A panic under this lock leaves the set whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all connections share.
struct Shared {
    settings: LinkSettings,
    events: mpsc::Sender<LinkEvent>,
    /// The connection that each node is heard on.
    heard: Mutex<Vec<Option<Incoming>>>,
    serials: AtomicU64,
    tasks: Tasks,
}

#[derive(Debug)]
struct Incoming {
    serial: u64,
    incarnation: u64,
    from: SocketAddr,
    last: Instant,
    task: AbortHandle,
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection with a node.
struct Connection {
    stream: Box<dyn Stream>,
    /// What the node has shown. `None`: there is no TLS.
    shown: Option<ShownCertificate>,
}

impl Connection {
    fn plain(stream: TcpStream) -> Self {
        Connection { stream: Box::new(stream), shown: None }
    }

    /// Whether the node may still speak here.
    fn check(&mut self) -> io::Result<()> {
        match self.shown.as_mut().is_some_and(ShownCertificate::is_revoked) {
            true => Err(io::Error::other("its certificate is revoked")),
            false => Ok(()),
        }
    }
}

impl Links {
    /// Listens, and connects to the other nodes.
    ///
    /// # Errors
    /// [`LinkError`].
    pub async fn start(
        settings: LinkSettings,
        events: mpsc::Sender<LinkEvent>,
    ) -> Result<Self, LinkError> {
        if settings.tls.is_none() {
            let all = settings.nodes.iter().map(|&(_, address)| address);
            let other = all.chain([settings.listen]).find(|it| !it.ip().is_loopback());
            if let Some(other) = other {
                return Err(LinkError::Plain(other));
            }
        }
        let address = settings.listen;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| LinkError::Listen { address, error })?;
        let nodes = settings.nodes.len();
        let shared = Arc::new(Shared {
            events,
            heard: Mutex::new((0..nodes).map(|_| None).collect()),
            serials: AtomicU64::new(0),
            tasks: Tasks::default(),
            settings,
        });
        let tasks = shared.tasks.clone();
        tasks.spawn(accept(Arc::clone(&shared), listener));
        let outgoing = NodeId::all(nodes).map(|node| {
            if node == shared.settings.me {
                return None;
            }
            let (heartbeat, heartbeats) = watch::channel(None);
            let (sender, frames) = mpsc::unbounded_channel();
            let queued = Arc::new(AtomicUsize::new(0));
            let queue = Queue { heartbeats, frames, queued: Arc::clone(&queued) };
            tasks.spawn(send_all(Arc::clone(&shared), node, queue));
            Some(Outgoing { heartbeat, frames: sender, queued })
        });
        let outgoing = outgoing.collect();
        Ok(Links { outgoing, tasks })
    }

    /// Sends a heartbeat. One that was not sent yet is replaced.
    pub fn send(&self, node: NodeId, heartbeat: Heartbeat) {
        if let Some(Some(outgoing)) = self.outgoing.get(node.index()) {
            outgoing.heartbeat.send_replace(Some(heartbeat));
        }
    }

    /// Sends a request or an answer, behind all others to that node. `false`: too much waits, and
    /// it is dropped. Those that wait when the connection ends are dropped too.
    pub fn send_remote(&self, node: NodeId, frame: RemoteFrame) -> bool {
        let Some(Some(outgoing)) = self.outgoing.get(node.index()) else { return false };
        let frame = QueuedFrame::Remote(frame);
        let bytes = frame.bytes();
        // Answers too: they may be many while this node cannot connect, and the other one can.
        if outgoing.queued.load(Ordering::Relaxed).saturating_add(bytes) > MAX_QUEUED_BYTES {
            return false;
        }
        outgoing.queued.fetch_add(bytes, Ordering::Relaxed);
        outgoing.frames.send(frame).is_ok()
    }

    /// Sends something that this node knows of links and hosts, behind all others to that node.
    /// `false`: there is no such node.
    pub fn send_network(&self, node: NodeId, frame: NetworkFrame) -> bool {
        let outgoing = self.outgoing.get(node.index()).and_then(Option::as_ref);
        outgoing.is_some_and(|it| it.frames.send(QueuedFrame::Network(frame)).is_ok())
    }
}

/// Connects to a node again and again, and sends it what there is to say.
async fn send_all(shared: Arc<Shared>, node: NodeId, mut queue: Queue) {
    let mut pause = FIRST_PAUSE;
    let mut last_trouble = String::new();
    loop {
        let trouble = match timeout(CONNECT_LIMIT, connect(&shared, node)).await {
            Ok(Ok(mut connection)) => {
                last_trouble.clear();
                pause = FIRST_PAUSE;
                queue.clear();
                if shared.events.send(LinkEvent::Connected(node)).await.is_err() {
                    return;
                }
                let Err(error) = send_to(&mut connection, &mut queue).await else { return };
                if shared.events.send(LinkEvent::Disconnected(node)).await.is_err() {
                    return;
                }
                error.to_string()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not answer within {} s", CONNECT_LIMIT.as_secs()),
        };
        if trouble != last_trouble {
            let name = shared.name(node);
            let address = shared.settings.nodes.get(node.index()).map(|&(_, address)| address);
            let address = address.map_or(String::new(), |address| format!(" ({address})"));
            let text = format!("node {name}{address}: {trouble}");
            if shared.events.send(LinkEvent::Trouble(text)).await.is_err() {
                return;
            }
            last_trouble = trouble;
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Connects to a node, and greets it.
async fn connect(shared: &Shared, node: NodeId) -> io::Result<Connection> {
    let Some((name, address)) = shared.settings.nodes.get(node.index()) else {
        return Err(io::Error::other("there is no such node"));
    };
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut connection = match &shared.settings.tls {
        Some(ends) => {
            let name =
                tls::server_name(name).ok_or_else(|| io::Error::other("it has no name of DNS"))?;
            let epoch = ends.epoch();
            let stream = ends.connector().connect(name, stream).await?;
            let chain = stream.get_ref().1.peer_certificates();
            let shown = Some(ShownCertificate::new(ends, epoch, chain));
            Connection { stream: Box::new(stream), shown }
        }
        None => Connection::plain(stream),
    };
    let hello = Hello {
        version: VERSION,
        cluster: shared.settings.cluster.clone(),
        node: shared.name(shared.settings.me).into(),
        to: name.clone(),
        nodes: shared.names(),
        apps: shared.settings.apps.clone(),
        incarnation: shared.settings.incarnation,
    };
    frame::write(&mut connection.stream, &hello).await?;
    match frame::read::<Welcome>(&mut connection.stream).await? {
        Some(Welcome { refused: None }) => Ok(connection),
        Some(Welcome { refused: Some(why) }) => {
            Err(io::Error::other(format!("it refuses this node: {why}")))
        }
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Sends what there is until the connection fails. Ends without an error when there will be no
/// more.
async fn send_to(connection: &mut Connection, queue: &mut Queue) -> io::Result<()> {
    loop {
        // A heartbeat waits for one frame at most.
        let message = tokio::select! {
            biased;
            changed = queue.heartbeats.changed() => {
                if changed.is_err() {
                    break;
                }
                let heartbeat = queue.heartbeats.borrow_and_update();
                let Some(heartbeat) = heartbeat.as_ref() else { continue };
                WireMessage::Heartbeat(heartbeat.clone())
            }
            Some(frame) = queue.frames.recv() => {
                queue.queued.fetch_sub(frame.bytes(), Ordering::Relaxed);
                match frame {
                    QueuedFrame::Remote(frame) => WireMessage::Remote(frame),
                    QueuedFrame::Network(frame) => WireMessage::Network(frame.into()),
                }
            }
        };
        connection.check()?;
        let sent = timeout(SEND_LIMIT, frame::write(&mut connection.stream, &message)).await;
        sent.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    }
    let _ = connection.stream.shutdown().await;
    Ok(())
}

impl Queue {
    /// Drops what was to be sent on an earlier connection: it is old.
    fn clear(&mut self) {
        self.heartbeats.mark_unchanged();
        while let Ok(frame) = self.frames.try_recv() {
            self.queued.fetch_sub(frame.bytes(), Ordering::Relaxed);
        }
    }
}

async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let me = shared.settings.me.index();
    let nodes = shared.settings.nodes.iter().enumerate();
    let others = nodes.filter(|&(place, _)| place != me).map(|(_, &(_, address))| address);
    let greetings = Greetings::new(others);
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, mostly: connections that end make space.
                let _ = shared.events.send(LinkEvent::Trouble(format!("accept: {error}"))).await;
                sleep(LONGEST_PAUSE).await;
                continue;
            }
        };
        // Without a place it is closed: a node tries again soon.
        let Some(greeting) = Greetings::begin(&greetings, from.ip()) else { continue };
        let number = greeting.number();
        let tasks = shared.tasks.clone();
        let shared = Arc::clone(&shared);
        let task = tasks.spawn(async move {
            // Until its refusal is reported a stranger counts: they cannot pile up.
            let greeting = greeting;
            match timeout(CONNECT_LIMIT, greet(&shared, stream, from, &greeting)).await {
                Ok(Ok((node, incarnation, connection))) => {
                    // It is known, and cannot be displaced any more.
                    drop(greeting);
                    begin(&shared, node, incarnation, from, connection).await;
                }
                Ok(Err(error)) => {
                    let text = format!("a connection from {from}: {error}");
                    let _ = shared.events.send(LinkEvent::Trouble(text)).await;
                }
                Err(_) => {}
            }
        });
        greetings.keep(number, task);
    }
}

/// Finds out which node connects.
async fn greet(
    shared: &Shared,
    stream: TcpStream,
    from: SocketAddr,
    greeting: &Greeting,
) -> io::Result<(NodeId, u64, Connection)> {
    stream.set_nodelay(true)?;
    stream.readable().await?;
    greeting.progress();
    let mut connection = match &shared.settings.tls {
        Some(ends) => {
            let epoch = ends.epoch();
            let stream = ends.acceptor().accept(stream).await?;
            let chain = stream.get_ref().1.peer_certificates();
            let shown = Some(ShownCertificate::new(ends, epoch, chain));
            greeting.progress();
            Connection { stream: Box::new(stream), shown }
        }
        None => Connection::plain(stream),
    };
    let Some(hello) = frame::read_hello(&mut connection.stream).await? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let has_name = connection.shown.as_ref().is_none_or(|shown| shown.has_name(&hello.node));
    let admitted = match shared.admit(&hello, has_name) {
        Ok(node) => shared.is_alone(node, &hello, from).await.map(|()| node),
        Err(why) => Err(why),
    };
    let welcome = Welcome { refused: admitted.as_ref().err().cloned() };
    frame::write(&mut connection.stream, &welcome).await?;
    admitted.map(|node| (node, hello.incarnation, connection)).map_err(io::Error::other)
}

/// Reads the heartbeats of a connection from now on, in place of an earlier one.
async fn begin(
    shared: &Arc<Shared>,
    node: NodeId,
    incarnation: u64,
    from: SocketAddr,
    connection: Connection,
) {
    let serial = shared.serials.fetch_add(1, Ordering::Relaxed);
    let mut heard = shared.heard.lock().await;
    let Some(place) = heard.get_mut(node.index()) else { return };
    if let Some(before) = place.take() {
        before.task.abort();
        // Before anything that the new connection brings.
        if shared.events.send(LinkEvent::Replaced(node)).await.is_err() {
            return;
        }
    }
    let task = shared.tasks.spawn(hear(Arc::clone(shared), node, serial, connection));
    *place = Some(Incoming { serial, incarnation, from, last: Instant::now(), task });
}

async fn hear(shared: Arc<Shared>, node: NodeId, serial: u64, mut connection: Connection) {
    while let Ok(Ok(Some(message))) =
        timeout(READ_LIMIT, frame::read::<WireMessage>(&mut connection.stream)).await
    {
        if let Err(error) = connection.check() {
            let text = format!("node {} is not heard any more: {error}", shared.name(node));
            let _ = shared.events.send(LinkEvent::Trouble(text)).await;
            break;
        }
        if let Some(Some(incoming)) = shared.heard.lock().await.get_mut(node.index()) {
            incoming.last = Instant::now();
        }
        let event = match message {
            WireMessage::Heartbeat(heartbeat) => LinkEvent::Heard(node, heartbeat),
            WireMessage::Remote(frame) => LinkEvent::Remote(node, frame),
            WireMessage::Network(frame) => LinkEvent::Network(node, frame.into()),
        };
        if shared.events.send(event).await.is_err() {
            return;
        }
    }
    let mut heard = shared.heard.lock().await;
    if let Some(place) = heard.get_mut(node.index())
        && place.as_ref().is_some_and(|incoming| incoming.serial == serial)
    {
        *place = None;
        drop(heard);
        let _ = shared.events.send(LinkEvent::Lost(node)).await;
    }
}

impl Shared {
    fn name(&self, node: NodeId) -> &str {
        self.settings.nodes.get(node.index()).map_or("", |(name, _)| name)
    }

    fn names(&self) -> Vec<String> {
        self.settings.nodes.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The node that greets, or why it is refused.
    fn admit(&self, hello: &Hello, has_name: bool) -> Result<NodeId, String> {
        let Hello { version, cluster, node, to, nodes, apps, .. } = hello;
        let me = self.name(self.settings.me);
        if *version != VERSION {
            return Err(format!(
                "node {node} speaks version {version} of the messages between nodes, and {me} version \
                 {VERSION}: upgrade the older one"
            ));
        }
        if *cluster != self.settings.cluster {
            let ours = &self.settings.cluster;
            return Err(format!("node {node} is of the cluster {cluster:?}, and {me} of {ours:?}"));
        }
        if to != me {
            return Err(format!(
                "node {node} looks for {to}, and this is {me}: compare cluster.peers"
            ));
        }
        if *nodes != self.names() {
            return Err(format!(
                "node {node} has the nodes {}, and {me} has {}: cluster.peers must name the same ones",
                nodes.join(" "),
                self.names().join(" ")
            ));
        }
        // Names of apps decide about cookies, and their places about priorities: with another chain
        // a master would not take over what this node has installed.
        if *apps != self.settings.apps {
            return Err(format!(
                "node {node} has the apps [{}], and {me} has [{}]: `apps` must name the same ones, in the same \
                 order, at all nodes",
                apps.join(", "),
                self.settings.apps.join(", ")
            ));
        }
        if !has_name {
            return Err(format!(
                "the certificate of node {node} does not have the DNS name {node}"
            ));
        }
        let place = self.settings.nodes.iter().position(|(name, _)| name == node);
        let node = place.and_then(NodeId::new).filter(|&node| node != self.settings.me);
        node.ok_or_else(|| {
            format!("{me} connects to itself: compare cluster.node and cluster.peers")
        })
    }

    /// Refuses a second process with the name of one that is heard.
    async fn is_alone(&self, node: NodeId, hello: &Hello, from: SocketAddr) -> Result<(), String> {
        let heard = self.heard.lock().await;
        let Some(Some(other)) = heard.get(node.index()) else { return Ok(()) };
        if other.incarnation == hello.incarnation || other.last.elapsed() > SILENCE {
            return Ok(());
        }
        Err(format!(
            "node {} is connected already, from {}, and again from {from}: two controllers have the same \
             cluster.node",
            hello.node, other.from
        ))
    }
}
