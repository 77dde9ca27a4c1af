//! Decides which switches this node is master of.
//!
//! [`Mastership`] has no socket, thread or clock. Events and the time go in; orders for switches,
//! records for etcd and heartbeats for the other nodes come out.
//!
//! # How a switch gets its master
//!
//! etcd keeps a [`Record`] for each switch: the order of its masters. The first node of it that is
//! alive, and that the switch is connected to, claims the switch with the [`Generation`] of its
//! rank. The switch refuses older generations, so it obeys one node even when nodes disagree.
//!
//! ```text
//!                    the first that lives            granted
//!           standby ---------------------> claiming ---------> master
//!              ^                              |                   |
//!              +------------------------------+-------------------+
//!                stale, refused, no answer       the switch obeys another, no majority
//! ```
//!
//! - **Takeover.** A node is dead when a majority of the nodes does not hear it. The next node of
//!   the order claims its switches at once, without etcd. Then it writes a record with itself in
//!   front.
//! - **Majority.** A node that does not hear a majority, or is not heard by one, stands by at all
//!   switches.
//! - **Stale.** A switch that has seen a newer generation has another master, whose record follows.
//!   If no record comes, the node writes one with a higher epoch, and claims again.
//! - **Who is master now.** Nodes tell each other by which generations they are master. A node that
//!   was master, or had no majority, asks the switch what it has seen before it claims it again.
//!   And a node that waits for another one that does not claim asks the switch too: nodes that had
//!   seen different things agree by what the switch says.
//! - **A node dies.** The others claim the switches again that they take for their own. The dead
//!   node may have been master of one, and nobody may have heard of it.
//! - **Moves.** A master that has too many switches, or drains, offers one. The other node accepts
//!   it, the master writes the record, and serves until the other has claimed the switch.
//! - **Orders.** A switch that an operator has moved is marked as placed in its record. Balancing
//!   leaves it there until another node takes it over, its node drains, or an operator ends that.
//!
//! # What it is not
//! It knows no flows. It does not say what an app may do while its switch has no master.

mod balance;
mod doubt;
mod orders;
mod switch;
mod unclaimed;
mod unused;
mod writing;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellrock_api::{Dpid, RoleOrder};

use crate::heartbeat::{Heartbeat, OwnSwitches};
use crate::node::{MAX_NODES, NodeId};
use crate::peers::{Peers, View};
use crate::record::{Generation, Record};
use balance::Moves;
use orders::Release;
pub use orders::{NotMoved, ORDER_LIMIT};
use switch::Entry;
pub use unused::KEEP_RECORDS;

/// Time between two heartbeats to a peer.
pub const HEARTBEAT: Duration = Duration::from_millis(50);
/// A peer that was not heard for so long is suspected to be dead.
pub const SILENCE: Duration = Duration::from_millis(300);
/// A node serves when it has had a majority for so long.
const SETTLE: Duration = Duration::from_millis(300);
/// A switch that is connected to this node, and not to a living node in front of it, is claimed
/// after so long. A switch that starts connects to all nodes within it.
const CONNECT_GRACE: Duration = Duration::from_millis(500);
/// The first node writes the record of a new switch after so long, the others after a multiple, so
/// that one of them does it.
const NEW_SWITCH: Duration = Duration::from_millis(200);
/// After a stale generation, a node waits so long for the record of the newer master.
const RECORD_FOLLOWS: Duration = Duration::from_millis(500);
/// An order or a record without an answer counts as failed after so long.
const UNANSWERED: Duration = Duration::from_secs(2);
/// A claim or record that failed is tried again after so long. A node writes at most one record per
/// switch in this time, whatever the reason.
const RETRY: Duration = Duration::from_millis(500);
/// A master whose record names another one that lives stands by after so long. Open vSwitch reports
/// the new master at once; other switches may not.
const YIELD: Duration = Duration::from_secs(1);
/// Claims that a switch may refuse in a row.
const MAX_REFUSED_CLAIMS: u32 = 3;
/// A node that a switch refuses counts as not connected for so long.
const UNFIT: Duration = Duration::from_secs(10);
/// A node that waits so long for another one to claim a switch asks the switch what it has seen,
/// and again after a pause that doubles up to the second value.
const ASK_AFTER: Duration = Duration::from_secs(1);
const ASK_PAUSE: Duration = Duration::from_secs(32);
/// A node claims a switch that no node says to be master of, whoever is in front of it, after the
/// first time and the second one for each node before it in the list: nodes without etcd may know
/// different records.
const WAIT_IN_VAIN: Duration = Duration::from_secs(3);
const WAIT_FOR_NODE: Duration = Duration::from_secs(1);
/// Time after the death of a node within which its last claims arrive: without a majority it stands
/// by.
const CLAIMS_END: Duration = Duration::from_secs(1);
/// A switch that no node says to be master of for so long is an alarm.
const NO_MASTER: Duration = Duration::from_secs(5);
/// The maximum pause between two records of a switch that does not obey: each one in a row without
/// a grant doubles it.
const MAX_WRITE_PAUSE: Duration = Duration::from_secs(32);

/// Maximum number of switches with a record. More get no master: who invents datapath ids must not
/// fill etcd.
pub const MAX_SWITCHES: usize = 20_000;
/// A switch beyond that is looked at again after so long.
const LOOK_FOR_PLACE: Duration = Duration::from_secs(60);

/// What a node is.
#[derive(Clone, Copy, Debug)]
pub struct MemberSettings {
    /// This node.
    pub me: NodeId,
    /// Number of nodes, of which a majority serves.
    pub nodes: usize,
    /// A random number of this process.
    pub incarnation: u64,
    /// Time without its switch at any node after which a record is removed. Tests choose less than
    /// [`KEEP_RECORDS`].
    pub keep_records: Duration,
}

/// What has happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A heartbeat of a peer came.
    Heard(NodeId, Heartbeat),
    /// The connection to a peer has ended.
    PeerLost(NodeId),
    /// All records were read from etcd: first, and whenever changes may have been missed.
    Read(Vec<(Dpid, Record)>),
    /// A record has changed in etcd. `None`: it was removed.
    Changed(Dpid, Option<Record>),
    /// The result of a [`Output::Write`].
    Written(Dpid, WriteResult),
    /// A switch has connected, and stands by.
    Connected(Dpid, Option<Generation>),
    /// The connection of a switch has ended.
    Disconnected(Dpid),
    /// A switch has made this node its master.
    Granted(Dpid, Generation),
    /// A switch has seen a newer generation than that of the claim.
    Stale(Dpid, Option<Generation>),
    /// A switch refused a claim for another reason, or did not answer.
    Refused(Dpid),
    /// A switch reports that another node is its master.
    Demoted(Dpid),
    /// The answer to [`Output::Ask`]: the newest generation that the switch has seen, if any.
    Asked(Dpid, Option<Generation>),
    /// Give all switches to others, or stop that.
    Drain(bool),
    /// Give this switch to a node by order of an operator, if this node is its master, or hold it
    /// at this one. [`Output::Moved`] follows, unless another order for the same switch comes
    /// before.
    Move(Dpid, NodeId),
    /// End what operators have ordered: balancing may move all switches again. [`Output::Balanced`]
    /// follows.
    Balance,
}

/// What became of a record that was to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// It is in etcd.
    Written(Record),
    /// Etcd has another record: this one, or none.
    Conflict(Option<Record>),
    /// It failed, or nobody knows.
    Failed,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a role request to a switch.
    Order(Dpid, RoleOrder),
    /// Stand by at a switch, and find the newest generation that it has seen.
    Ask(Dpid),
    /// Write the record of a switch, if its revision in etcd is still this one (0: there is none).
    Write {
        /// The switch.
        dpid: Dpid,
        /// The order of masters.
        masters: Vec<NodeId>,
        /// The minimum of the epoch.
        floor: u64,
        /// Whether the first node has the switch by order of an operator.
        placed: bool,
        /// The revision of the record that is replaced.
        expected: u64,
    },
    /// Remove the record of a switch, if its revision in etcd is still this one. The change is
    /// reported as any other, and nothing else of what becomes of it.
    Remove {
        /// The switch.
        dpid: Dpid,
        /// The revision of the record.
        expected: u64,
    },
    /// Send a heartbeat to a peer.
    Send(NodeId, Heartbeat),
    /// What has become of an [`Input::Move`]. Done: the other node is master.
    Moved(Dpid, Result<(), NotMoved>),
    /// What has become of an [`Input::Balance`].
    Balanced {
        /// Number of switches that are placed by order still: etcd has not confirmed the end within
        /// [`ORDER_LIMIT`], or this node does not serve.
        left: usize,
    },
    /// Something that an operator wants to know.
    Notice(Notice),
}

/// What an operator wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// This node serves: it hears a majority, and has read etcd.
    Serving,
    /// This node stands by at all switches, since it does not hear a majority.
    LostMajority,
    /// A majority does not hear this node any more.
    Dead(NodeId),
    /// A node is back.
    Alive(NodeId),
    /// This node is master of a switch, in place of the node before.
    Master(Dpid, Option<NodeId>),
    /// A switch obeys another node, though this one was its master.
    Fenced(Dpid),
    /// A switch had seen a newer generation, and no record of it came. Etcd was restored from an
    /// old snapshot, or something else than this cluster is master of it.
    Jumped(Dpid, Generation),
    /// A switch refuses this node as its master.
    Unfit(Dpid),
    /// No node has said for some seconds that it is master of this switch, which is connected here.
    Unclaimed(Dpid),
    /// A node says so again.
    Claimed(Dpid),
    /// A new switch gets no record, since there are [`MAX_SWITCHES`].
    TooMany(Dpid),
}

/// What a node is, as another one sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It may be master.
    Serving,
    /// It may be master, and gives its switches to others.
    Draining,
    /// It is there, and stands by: it has no majority, or has not read etcd.
    StandingBy,
    /// This node does not hear it. Whether it is dead is not known.
    Silent,
    /// A majority does not hear it.
    Dead,
}

/// What a node is at one switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchRole {
    /// The switch is not connected.
    Away,
    /// This node only reads.
    Standby,
    /// This node has asked to be master.
    Claiming,
    /// This node is master.
    Master(Generation),
}

/// Which switches this node is master of.
#[derive(Debug)]
pub struct Mastership {
    me: NodeId,
    nodes: usize,
    incarnation: u64,
    peers: Peers,
    view: View,
    own: OwnSwitches,
    switches: BTreeMap<Dpid, Entry>,
    /// Number of switches with a record.
    records: usize,
    /// When switches want to be looked at again.
    timers: BTreeSet<(Duration, Dpid)>,
    /// Number of switches whose record has a node in front, by node.
    loads: [usize; MAX_NODES],
    /// The same of the records that this node is writing.
    writing: [usize; MAX_NODES],
    /// Whether the records were read.
    has_records: bool,
    /// Since when there is a majority.
    majority_since: Option<Duration>,
    serving: bool,
    draining: bool,
    moves: Moves,
    /// Marks of moves that an operator wants to end.
    release: Option<Release>,
    next_heartbeat: Duration,
    /// Whether all switches must be looked at: who is alive has changed.
    look_at_all: bool,
    /// When the switches of this node are claimed again.
    doubt_again: Option<Duration>,
    keep_records: Duration,
    /// When records of switches that are gone are looked for.
    next_sweep: Duration,
}

impl Mastership {
    /// A node that has just started, and hears nobody yet.
    #[must_use]
    pub fn new(settings: MemberSettings, now: Duration) -> Self {
        let MemberSettings { me, nodes, incarnation, keep_records } = settings;
        Mastership {
            me,
            nodes,
            incarnation,
            peers: Peers::new(me, nodes, incarnation, now),
            view: View::default(),
            own: OwnSwitches::new(incarnation),
            switches: BTreeMap::new(),
            records: 0,
            timers: BTreeSet::new(),
            loads: [0; MAX_NODES],
            writing: [0; MAX_NODES],
            has_records: false,
            majority_since: None,
            serving: false,
            draining: false,
            moves: Moves::new(now),
            release: None,
            next_heartbeat: now,
            look_at_all: false,
            doubt_again: None,
            keep_records,
            next_sweep: now,
        }
    }

    /// Takes an event.
    pub fn handle(&mut self, now: Duration, input: Input, out: &mut Vec<Output>) {
        // First, what time alone has changed: a process that was stopped must not act on what it
        // knew before.
        self.advance(now, out);
        match input {
            Input::Heard(node, heartbeat) => self.hear(node, &heartbeat, now, out),
            Input::PeerLost(node) => self.peers.lose(node),
            Input::Read(records) => self.read(records, now),
            Input::Changed(dpid, Some(record)) => self.change_record(dpid, record, now),
            Input::Changed(dpid, None) => self.set_record(dpid, None, now),
            Input::Written(dpid, result) => self.written(dpid, result, now),
            Input::Connected(dpid, newest) => self.connected(dpid, newest, now),
            Input::Disconnected(dpid) => self.disconnected(dpid, out),
            Input::Granted(dpid, generation) => self.granted(dpid, generation, now, out),
            Input::Stale(dpid, newest) => self.stale(dpid, newest, now, out),
            Input::Refused(dpid) => self.refused(dpid, now, out),
            Input::Demoted(dpid) => self.demoted(dpid, now, out),
            Input::Asked(dpid, newest) => self.asked(dpid, newest, now),
            Input::Drain(draining) => self.drain(draining, now),
            Input::Move(dpid, to) => self.order_move(dpid, to, now),
            Input::Balance => self.order_balance(now),
        }
        self.advance(now, out);
    }

    /// Does what is due. Call it at [`Mastership::next_wake`].
    pub fn advance(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.look_at_peers(now, out);
        if self.doubt_again.is_some_and(|at| at <= now) {
            self.doubt_all(now);
            self.doubt_again = None;
            self.look_at_all = true;
        }
        if std::mem::take(&mut self.look_at_all) {
            let all: Vec<Dpid> = self.switches.keys().copied().collect();
            for dpid in all {
                self.look_at(dpid, now, out);
            }
        }
        while let Some(&(at, dpid)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            if let Some(entry) = self.switches.get_mut(&dpid) {
                entry.wake = None;
            }
            self.look_at(dpid, now, out);
        }
        self.carry_on_orders(now, out);
        self.balance(now);
        self.remove_unused(now, out);
        if now >= self.next_heartbeat {
            self.next_heartbeat = now + HEARTBEAT;
            for peer in self.peers.nodes() {
                let heartbeat = self.heartbeat(peer);
                out.push(Output::Send(peer, heartbeat));
            }
        }
    }

    /// When [`Mastership::advance`] has something to do, if nothing happens before.
    #[must_use]
    pub fn next_wake(&self, now: Duration) -> Duration {
        let timer = self.timers.first().map(|&(at, _)| at);
        let settled = self.majority_since.filter(|_| !self.serving).map(|since| since + SETTLE);
        let silence = self.peers.next_silence(now);
        let times = [timer, settled.filter(|&at| at > now), silence, self.doubt_again];
        times.into_iter().flatten().fold(self.next_heartbeat, Duration::min)
    }

    /// What this node is at a switch.
    #[must_use]
    pub fn role(&self, dpid: Dpid) -> SwitchRole {
        let here = self.switches.get(&dpid).and_then(|entry| entry.here.as_ref());
        here.map_or(SwitchRole::Away, |here| here.role.public())
    }

    /// The order of masters of a switch, as this node knows it.
    #[must_use]
    pub fn record(&self, dpid: Dpid) -> Option<&Record> {
        self.switches.get(&dpid).and_then(|entry| entry.record.as_ref())
    }

    /// Whether this node may be master of switches: it has a majority, and has read etcd.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.serving
    }

    /// All switches that are known: their order of masters, and what this node is there.
    pub fn switches(&self) -> impl Iterator<Item = (Dpid, Option<&Record>, SwitchRole)> {
        self.switches.iter().map(|(&dpid, entry)| {
            let role = entry.here.as_ref().map_or(SwitchRole::Away, |here| here.role.public());
            (dpid, entry.record.as_ref(), role)
        })
    }

    /// What a node is, as this one sees it.
    #[must_use]
    pub fn node_state(&self, node: NodeId) -> NodeState {
        if self.view.dead.contains(node) {
            NodeState::Dead
        } else if self.view.suspects.contains(node)
            || !self.peers.has_heard(node) && node != self.me
        {
            NodeState::Silent
        } else if !self.may_serve(node) {
            NodeState::StandingBy
        } else if self.is_draining(node) {
            NodeState::Draining
        } else {
            NodeState::Serving
        }
    }

    /// When a node was last heard.
    #[must_use]
    pub fn heard(&self, node: NodeId) -> Option<Duration> {
        self.peers.heard(node)
    }

    /// Number of switches that a node is to be master of, by the records.
    #[must_use]
    pub fn load(&self, node: NodeId) -> usize {
        self.loads.get(node.index()).copied().unwrap_or(0)
    }

    fn hear(&mut self, node: NodeId, heartbeat: &Heartbeat, now: Duration, out: &mut Vec<Output>) {
        let mut changed = Vec::new();
        self.peers.hear(node, heartbeat, now, &mut changed);
        self.look_at_peers(now, out);
        for dpid in changed {
            self.look_at(dpid, now, out);
        }
        self.answer_offer(node, now);
        self.answered(node, now, out);
    }

    /// Finds who lives, and whether this node may serve.
    fn look_at_peers(&mut self, now: Duration, out: &mut Vec<Output>) {
        let view = self.peers.view(now);
        if view != self.view {
            let known_dead = self.view.dead;
            for node in view.dead.iter().filter(|&node| !known_dead.contains(node)) {
                out.push(Output::Notice(Notice::Dead(node)));
                self.doubt_all(now);
            }
            for node in self.view.dead.iter().filter(|&node| !view.dead.contains(node)) {
                out.push(Output::Notice(Notice::Alive(node)));
            }
            // The others need this node's word to agree.
            if view.suspects != self.view.suspects {
                self.next_heartbeat = now;
            }
            self.view = view;
            self.look_at_all = true;
            self.moves.settle(now);
        }
        self.majority_since =
            if view.has_majority { Some(self.majority_since.unwrap_or(now)) } else { None };
        let settled = self.majority_since.is_some_and(|since| now >= since + SETTLE);
        // A node that serves goes on as long as it has the majority.
        let serving = self.has_records && (settled || self.serving && view.has_majority);
        if serving != self.serving {
            self.serving = serving;
            self.look_at_all = true;
            self.next_heartbeat = now;
            let notice = if serving { Notice::Serving } else { Notice::LostMajority };
            out.push(Output::Notice(notice));
        }
    }

    fn heartbeat(&self, peer: NodeId) -> Heartbeat {
        let (known, knows) = self.peers.versions(peer);
        Heartbeat {
            serving: self.serving,
            draining: self.draining,
            suspects: self.view.suspects,
            switches: self.own.report(knows),
            known,
            offer: self.moves.offer_to(peer),
            accept: self.moves.accepted_from(peer),
            incarnation: Some(self.incarnation),
            hears: self.peers.incarnation(peer),
        }
    }

    /// Whether a node may be master, as far as this one knows.
    fn may_serve(&self, node: NodeId) -> bool {
        if node == self.me { self.serving } else { self.view.serving.contains(node) }
    }

    fn is_draining(&self, node: NodeId) -> bool {
        if node == self.me { self.draining } else { self.view.draining.contains(node) }
    }

    fn is_connected(&self, node: NodeId, dpid: Dpid) -> bool {
        if node == self.me {
            return self.own.contains(dpid);
        }
        // Which switches it has is not known yet: perhaps this one.
        self.view.unheard.contains(node) || self.peers.is_connected(node, dpid)
    }
}
