//! Messages to switches of which another node is master.
//!
//! An app sends to any switch of the cluster. If this node stands by there, the message goes to the
//! switch's master, as the OpenFlow bytes that the switch gets, and the answer comes back.
//!
//! ```text
//! app --> Network --> RemoteHandle --> Outgoing --(link)--> Incoming --> Network --> switch
//!  ^                                     |                    |
//!  +----------- promise <----------------+<------(link)-------+
//! ```
//!
//! - **Order.** All messages of this node for one switch go through one lane, in order. A node that
//!   is not the master refuses, and has sent nothing. Everything of the lane that follows is
//!   refused too, until the lane begins its next stream: so what was refused goes to the next
//!   master before what came later.
//! - **Loss.** When a link to the master ends, what was on its way may have happened or not. The
//!   outcome is the same as that of a switch whose connection ends.
//! - **Bounds.** [`MAX_REQUESTS`], [`MAX_REQUESTS_PER_SWITCH`] and [`MAX_BYTES`] are on their way
//!   at a time. What is beyond is not sent ([`Error::Full`]).
//!
//! [`RemoteRequests`] has no socket, thread or clock: events and the time go in, frames come out.

mod frame;
mod incoming;
mod outgoing;
mod wire;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock_api::runtime::{
    EncodedProgram, EncodedRequest, Promise, PromiseFuture, Remote, promise,
};
use bellrock_api::{
    ChangeOutcome, Dpid, Error, Network, ProgramFuture, Reply, RequestError, RequestFuture,
    time_for_changes,
};
use bellrock_api::{Version, openflow::RequestKind};
use tokio::sync::mpsc;

use crate::node::NodeId;
pub use frame::{Answer, AnswerBody, Job, RemoteFrame, Request};
pub use incoming::Answered;
use incoming::Incoming;
use outgoing::Outgoing;
pub(crate) use wire::base64;

/// Maximum number of requests of a node that are on their way to other nodes.
pub const MAX_REQUESTS: usize = 4096;
/// The same for one switch. So a slow switch leaves space for the others.
pub const MAX_REQUESTS_PER_SWITCH: usize = 512;
/// Maximum number of bytes of these requests.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of bytes of a program in one frame. A longer one is sent in parts.
const PART_BYTES: usize = 128 * 1024;
/// Maximum number of changes in one frame.
const PART_CHANGES: usize = 512;
/// Maximum number of bytes of a reply.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
/// A node is given so long for its answer beyond the time that the switch has.
const MARGIN: Duration = Duration::from_secs(5);
/// A switch has so long to answer a request: as long as its session waits, and a second.
const REQUEST_LIMIT: Duration = Duration::from_secs(61);
/// The master takes a single message at once. Without an answer after so long it is lost.
const SEND_LIMIT: Duration = Duration::from_secs(2);
/// Number of attempts to find the master of a switch. What waits then is not sent.
const MAX_ATTEMPTS: u32 = 8;
/// Pauses between two attempts: the first one, which doubles, and the longest. Together they last
/// longer than a takeover after the silence of a node.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// Takes what apps send to switches of other nodes.
pub struct RemoteHandle {
    posts: mpsc::Sender<Posted>,
    counts: Arc<Mutex<Counts>>,
}

/// What is on its way.
#[derive(Debug, Default)]
struct Counts {
    requests: usize,
    bytes: usize,
    by_switch: BTreeMap<Dpid, usize>,
    /// Number of requests that were beyond a bound, since the start.
    full: u64,
}

/// Number of requests since the start. What is sent and not counted otherwise is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounters {
    /// Requests of this node for switches of others.
    pub sent: u64,
    /// Those that a master has answered.
    pub answered: u64,
    /// Those that no switch has got.
    pub not_sent: u64,
    /// Those whose outcome is unknown.
    pub unknown: u64,
    /// Requests of other nodes for switches of this one.
    pub taken: u64,
    /// Those that this node has refused, as it was not the switch's master.
    pub refused: u64,
}

/// A place among the requests on their way.
#[derive(Debug)]
struct Permit {
    counts: Arc<Mutex<Counts>>,
    dpid: Dpid,
    bytes: usize,
}

/// A request on its way to the master of a switch.
#[derive(Debug)]
pub struct Posted {
    dpid: Dpid,
    job: Job,
    promise: Promised,
    /// Time for the answer.
    limit: Duration,
    _permit: Permit,
}

/// Who waits for the answer.
enum Promised {
    /// Nobody.
    Nothing,
    /// The outcomes of so many changes.
    Program(usize, Promise<Vec<ChangeOutcome>>),
    /// A reply, with its parts so far.
    Reply(Version, RequestKind, Promise<Result<Reply, RequestError>>, Vec<u8>),
}

/// What happens to the requests of a node.
#[derive(Debug)]
pub enum RemoteEvent {
    /// An app has sent something.
    Posted(Posted),
    /// A frame of a node came.
    Frame(NodeId, RemoteFrame),
    /// This node is connected to another one.
    Connected(NodeId),
    /// That connection has ended: what was sent there may be lost.
    Disconnected(NodeId),
    /// The connection of another node to this one has ended: answers may be lost.
    AnswersLost(NodeId),
    /// A majority does not hear a node: nobody waits for its answers, though its connections may
    /// still stand.
    Dead(NodeId),
    /// A switch has answered a request of another node.
    Answered(Answered),
}

/// The requests of a node to others, and those of others to it.
pub struct RemoteRequests {
    outgoing: Outgoing,
    incoming: Incoming,
    counts: Arc<Mutex<Counts>>,
}

/// Notes that an order of an operator for a switch begins. It ends when the value is dropped. So
/// what keeps entries in the switch looks at it again.
pub type BeginOrder = Arc<dyn Fn(Dpid) -> Box<dyn Any + Send> + Send + Sync>;

/// Frames that are to be sent.
pub type Frames = Vec<(NodeId, RemoteFrame)>;

/// The master of a switch, as this node sees it.
pub type MasterOf<'a> = &'a dyn Fn(Dpid) -> Option<NodeId>;

impl RemoteRequests {
    /// The requests of a node among so many, its end for apps, and what they post. Answers of
    /// switches come to `answered`, for [`RemoteEvent::Answered`]. `begin_order` is called for each
    /// order of an operator at another node.
    #[must_use]
    pub fn new(
        network: Network,
        nodes: usize,
        answered: mpsc::Sender<Answered>,
        begin_order: BeginOrder,
    ) -> (Self, RemoteHandle, mpsc::Receiver<Posted>) {
        let (posts, posted) = mpsc::channel(MAX_REQUESTS);
        let handle = RemoteHandle { posts, counts: Arc::default() };
        let incoming = Incoming::new(network, nodes, answered, begin_order);
        let counts = Arc::clone(&handle.counts);
        (RemoteRequests { outgoing: Outgoing::default(), incoming, counts }, handle, posted)
    }

    /// Takes an event. Must run in a local set.
    pub fn handle(
        &mut self,
        now: Duration,
        event: RemoteEvent,
        master: MasterOf<'_>,
        out: &mut Frames,
    ) {
        match event {
            RemoteEvent::Posted(posted) => self.outgoing.post(now, posted, master, out),
            RemoteEvent::Frame(node, RemoteFrame::Request(request)) => {
                self.incoming.request(node, request, out);
            }
            RemoteEvent::Frame(node, RemoteFrame::Answer(answer)) => {
                self.outgoing.answer(now, node, answer, master, out);
            }
            RemoteEvent::Connected(node) => self.outgoing.connected(node),
            RemoteEvent::Disconnected(node) => {
                self.outgoing.disconnected(now, node, master, out);
            }
            RemoteEvent::AnswersLost(node) => {
                self.incoming.lost(node);
                self.outgoing.answers_lost(now, node, master, out);
            }
            RemoteEvent::Dead(node) => self.outgoing.answers_lost(now, node, master, out),
            RemoteEvent::Answered(answered) => self.incoming.answered(answered, out),
        }
    }

    /// Carries out what is due.
    pub fn advance(&mut self, now: Duration, master: MasterOf<'_>, out: &mut Frames) {
        self.outgoing.advance(now, master, out);
    }

    /// When something is due.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        self.outgoing.next_wake()
    }

    /// Number of requests since the start. One that [`MAX_REQUESTS`] and the other bounds refuse is
    /// counted as not sent.
    #[must_use]
    pub fn counters(&self) -> RequestCounters {
        let (taken, refused) = self.incoming.counts();
        let full = lock(&self.counts).full;
        let own = self.outgoing.counters();
        RequestCounters {
            sent: own.sent + full,
            not_sent: own.not_sent + full,
            taken,
            refused,
            ..own
        }
    }
}

impl RemoteHandle {
    fn post(&self, dpid: Dpid, job: Job, promise: Promised, limit: Duration) -> Result<(), Error> {
        let permit = match self.permit(dpid, job.bytes()) {
            Some(permit) => permit,
            None => return refuse(promise, Error::Full(dpid)),
        };
        let posted = Posted { dpid, job, promise, limit, _permit: permit };
        self.posts.try_send(posted).map_err(|error| {
            let posted = error.into_inner();
            // There is space for all that have a permit: the thread has ended.
            posted.promise.not_sent(Error::UnknownSwitch(dpid));
            Error::UnknownSwitch(dpid)
        })
    }

    fn permit(&self, dpid: Dpid, bytes: usize) -> Option<Permit> {
        let mut counts = lock(&self.counts);
        let of_switch = counts.by_switch.get(&dpid).copied().unwrap_or(0);
        if counts.requests >= MAX_REQUESTS
            || of_switch >= MAX_REQUESTS_PER_SWITCH
            || counts.bytes + bytes > MAX_BYTES
        {
            counts.full += 1;
            return None;
        }
        counts.requests += 1;
        counts.bytes += bytes;
        counts.by_switch.insert(dpid, of_switch + 1);
        Some(Permit { counts: Arc::clone(&self.counts), dpid, bytes })
    }
}

fn refuse(promise: Promised, error: Error) -> Result<(), Error> {
    promise.not_sent(error);
    Err(error)
}

/// A panic under this lock leaves numbers that are too large at most.
fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        counts.requests -= 1;
        counts.bytes -= self.bytes;
        let of_switch = counts.by_switch.get(&self.dpid).copied().unwrap_or(1);
        match of_switch {
            1 => counts.by_switch.remove(&self.dpid),
            more => counts.by_switch.insert(self.dpid, more - 1),
        };
    }
}

impl Remote for RemoteHandle {
    fn send(&self, to: Dpid, message: &[u8]) -> Result<(), Error> {
        self.post(to, Job::Send { message: message.into() }, Promised::Nothing, SEND_LIMIT)
    }

    fn program(&self, to: Dpid, program: EncodedProgram) -> ProgramFuture {
        let EncodedProgram { messages, within, is_order } = program;
        let mut parts: Vec<(usize, PromiseFuture<Vec<ChangeOutcome>>)> = Vec::new();
        let mut rest = messages.as_slice();
        // All changes that go to the switch before a part delay it.
        let mut changes = 0;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(part_of(rest));
            rest = after;
            changes += part.len();
            let (promise, outcomes) = promise();
            parts.push((part.len(), outcomes));
            let job = Job::Program { messages: part.concat(), within, is_order };
            let limit = within + time_for_changes(changes) + MARGIN;
            // The promise says what has become of it.
            let _ = self.post(to, job, Promised::Program(part.len(), promise), limit);
        }
        ProgramFuture::in_parts(parts)
    }

    fn request(&self, to: Dpid, request: EncodedRequest) -> RequestFuture {
        let EncodedRequest { version, kind, message } = request;
        let (promise, reply) = promise();
        let promised = Promised::Reply(version, kind, promise, Vec::new());
        let job = Job::Ask { message: message.into() };
        match self.post(to, job, promised, REQUEST_LIMIT + MARGIN) {
            Ok(()) => RequestFuture::sent(reply),
            Err(error) => RequestFuture::not_sent(error),
        }
    }
}

/// Number of messages in front that fit into one frame: one at least.
fn part_of(messages: &[Box<[u8]>]) -> usize {
    let mut bytes = 0;
    let fitting = messages.iter().take(PART_CHANGES).take_while(|message| {
        bytes += message.len();
        bytes <= PART_BYTES
    });
    fitting.count().max(1)
}

impl Promised {
    /// Nothing was sent.
    fn not_sent(self, error: Error) {
        match self {
            Promised::Nothing => tracing::debug!("a message for another node is lost: {error}"),
            Promised::Program(changes, promise) => {
                promise.resolve(vec![ChangeOutcome::NotSent(error); changes]);
            }
            Promised::Reply(_, _, promise, _) => promise.resolve(Err(error.into())),
        }
    }
}

impl fmt::Debug for Promised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Promised::Nothing => "Nothing",
            Promised::Program(..) => "Program",
            Promised::Reply(..) => "Reply",
        })
    }
}

impl fmt::Debug for RemoteHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteHandle").field("counts", &*lock(&self.counts)).finish()
    }
}

impl fmt::Debug for RemoteRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteRequests").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn program(messages: Vec<Box<[u8]>>) -> EncodedProgram {
        EncodedProgram { messages, within: SEND_LIMIT, is_order: false }
    }

    fn handle() -> (RemoteHandle, mpsc::Receiver<Posted>) {
        let (posts, posted) = mpsc::channel(MAX_REQUESTS);
        (RemoteHandle { posts, counts: Arc::default() }, posted)
    }

    #[test]
    fn a_slow_switch_leaves_space_for_the_others() {
        let (handle, mut posted) = handle();
        for _ in 0..MAX_REQUESTS_PER_SWITCH {
            assert_eq!(handle.send(Dpid(1), b"x"), Ok(()));
        }
        assert_eq!(handle.send(Dpid(1), b"x"), Err(Error::Full(Dpid(1))));
        let full = poll(handle.program(Dpid(1), program(vec![[0; 8].into()])));
        assert_eq!(full, Poll::Ready(vec![ChangeOutcome::NotSent(Error::Full(Dpid(1)))]));
        assert_eq!(handle.send(Dpid(2), b"x"), Ok(()));
        drop(posted.try_recv().unwrap());
        assert_eq!(handle.send(Dpid(1), b"x"), Ok(()));
    }

    #[test]
    fn requests_are_bounded_in_number_and_in_bytes() {
        let (handle, mut posted) = handle();
        let of_switch = |n: usize| Dpid((n / MAX_REQUESTS_PER_SWITCH) as u64);
        for n in 0..MAX_REQUESTS {
            assert_eq!(handle.send(of_switch(n), b"x"), Ok(()), "{n}");
        }
        assert_eq!(handle.send(Dpid(99), b"x"), Err(Error::Full(Dpid(99))));
        while posted.try_recv().is_ok() {}
        assert!(lock(&handle.counts).by_switch.is_empty());
        let half = vec![0; MAX_BYTES / 2];
        assert_eq!(handle.send(Dpid(1), &half), Ok(()));
        assert_eq!(handle.send(Dpid(2), &half), Ok(()));
        assert_eq!(handle.send(Dpid(3), b"x"), Err(Error::Full(Dpid(3))));
    }

    #[test]
    fn a_program_goes_in_parts_that_fit_into_frames() {
        let (handle, mut posted) = handle();
        let long = || vec![0; 65_535].into_boxed_slice();
        let mut messages = vec![long(), long(), long()];
        messages.extend((0..=PART_CHANGES).map(|_| [0; 8].into()));
        drop(handle.program(Dpid(1), program(messages)));
        let mut parts = Vec::new();
        while let Ok(Posted { promise: Promised::Program(changes, _), job, .. }) = posted.try_recv()
        {
            assert!(job.bytes() <= PART_BYTES);
            parts.push(changes);
        }
        assert_eq!(parts, [2, PART_CHANGES, 2]);
    }

    #[test]
    fn a_node_that_ends_has_sent_nothing() {
        let (handle, posted) = handle();
        drop(posted);
        let gone = Error::UnknownSwitch(Dpid(1));
        assert_eq!(handle.send(Dpid(1), b"x"), Err(gone));
        let outcomes = poll(handle.program(Dpid(1), program(vec![[0; 8].into()])));
        assert_eq!(outcomes, Poll::Ready(vec![ChangeOutcome::NotSent(gone)]));
    }
}
