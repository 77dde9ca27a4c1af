//! Requests of this node, to switches that other nodes are master of.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bellrock_api::{ChangeOutcome, Dpid, Error, NoConfirmation, Reply, RequestError};

use super::frame::{Answer, AnswerBody, RemoteFrame, Request};
use super::{
    FIRST_PAUSE, Frames, LONGEST_PAUSE, MAX_ATTEMPTS, MAX_REPLY_BYTES, MasterOf, Posted, Promised,
    RequestCounters,
};
use crate::node::{NodeId, NodeSet};

/// Requests by switch.
#[derive(Default)]
pub(super) struct Outgoing {
    /// Nodes that this one is connected to.
    connected: NodeSet,
    lanes: BTreeMap<Dpid, Lane>,
    /// Requests without an answer, by number.
    sent: BTreeMap<u64, Sent>,
    /// When their time is over.
    deadlines: BTreeSet<(Duration, u64)>,
    /// When lanes look for their master again.
    attempts: BTreeSet<(Duration, Dpid)>,
    last_number: u64,
    last_stream: u64,
    counters: RequestCounters,
}

/// The requests for one switch, in order.
#[derive(Default)]
struct Lane {
    /// Number of its stream.
    stream: u64,
    /// Not sent yet.
    waiting: VecDeque<Posted>,
    /// Numbers of those without an answer.
    sent: BTreeSet<u64>,
    /// Refused by a node that is not the master: to be sent again.
    refused: BTreeMap<u64, Posted>,
    /// When it looks for its master again. Nothing is sent before.
    paused_until: Option<Duration>,
    /// Attempts that have failed in a row.
    failed: u32,
}

struct Sent {
    node: NodeId,
    posted: Posted,
    deadline: Duration,
}

impl Outgoing {
    /// Sends a request behind all others for its switch.
    pub(super) fn post(
        &mut self,
        now: Duration,
        posted: Posted,
        master: MasterOf<'_>,
        out: &mut Frames,
    ) {
        self.counters.sent += 1;
        let (dpid, stream) = (posted.dpid, self.last_stream);
        let lane = self.lanes.entry(dpid).or_insert_with(|| Lane { stream, ..Lane::default() });
        lane.waiting.push_back(posted);
        self.send_waiting(now, dpid, master, out);
    }

    /// Takes an answer. An answer that nobody waits for is dropped.
    pub(super) fn answer(
        &mut self,
        now: Duration,
        node: NodeId,
        answer: Answer,
        master: MasterOf<'_>,
        out: &mut Frames,
    ) {
        let Answer { number, body } = answer;
        let Some(sent) = self.sent.get_mut(&number).filter(|sent| sent.node == node) else {
            return;
        };
        if let AnswerBody::Part(part) = body {
            return sent.posted.promise.add(&part);
        }
        let Some(posted) = self.take(number) else { return };
        let Some(lane) = self.lanes.get_mut(&posted.dpid) else { return };
        let dpid = posted.dpid;
        if body == AnswerBody::NotMaster {
            lane.refused.insert(number, posted);
        } else {
            lane.failed = 0;
            match body {
                AnswerBody::NotSent(_) => self.counters.not_sent += 1,
                _ => self.counters.answered += 1,
            }
            posted.answered(body);
        }
        self.settle(now, dpid, master, out);
    }

    pub(super) fn connected(&mut self, node: NodeId) {
        self.connected.insert(node);
    }

    /// The connection to a node has ended.
    pub(super) fn disconnected(
        &mut self,
        now: Duration,
        node: NodeId,
        master: MasterOf<'_>,
        out: &mut Frames,
    ) {
        self.connected.remove(node);
        self.answers_lost(now, node, master, out);
    }

    /// Answers of a node may be lost: nobody knows what has become of the requests to it.
    pub(super) fn answers_lost(
        &mut self,
        now: Duration,
        node: NodeId,
        master: MasterOf<'_>,
        out: &mut Frames,
    ) {
        let of_node = self.sent.iter().filter(|(_, sent)| sent.node == node);
        let numbers: Vec<u64> = of_node.map(|(&number, _)| number).collect();
        let mut dpids = BTreeSet::new();
        for number in numbers {
            let Some(posted) = self.take(number) else { continue };
            dpids.insert(posted.dpid);
            self.counters.unknown += 1;
            posted.lost();
        }
        for dpid in dpids {
            self.settle(now, dpid, master, out);
        }
    }

    /// Gives up what is late, and looks for masters again.
    pub(super) fn advance(&mut self, now: Duration, master: MasterOf<'_>, out: &mut Frames) {
        while let Some(&(at, number)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            if let Some(posted) = self.take(number) {
                let dpid = posted.dpid;
                self.counters.unknown += 1;
                posted.late();
                self.settle(now, dpid, master, out);
            }
        }
        while let Some(&(at, dpid)) = self.attempts.first()
            && at <= now
        {
            self.attempts.pop_first();
            if let Some(lane) = self.lanes.get_mut(&dpid) {
                lane.paused_until = None;
                self.send_waiting(now, dpid, master, out);
            }
        }
    }

    /// When something is due.
    pub(super) fn next_wake(&self) -> Option<Duration> {
        let first = |times: Option<Duration>, other: Option<Duration>| match (times, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        first(self.deadlines.first().map(|it| it.0), self.attempts.first().map(|it| it.0))
    }

    /// Number of requests since the start.
    pub(super) fn counters(&self) -> RequestCounters {
        self.counters
    }

    /// Removes a request that has been sent.
    fn take(&mut self, number: u64) -> Option<Posted> {
        let Sent { posted, deadline, .. } = self.sent.remove(&number)?;
        self.deadlines.remove(&(deadline, number));
        if let Some(lane) = self.lanes.get_mut(&posted.dpid) {
            lane.sent.remove(&number);
        }
        Some(posted)
    }

    /// When all that follows a refused request is refused too, or answered otherwise, it goes
    /// again, as a new stream, before all that came later.
    fn settle(&mut self, now: Duration, dpid: Dpid, master: MasterOf<'_>, out: &mut Frames) {
        let Some(lane) = self.lanes.get_mut(&dpid) else { return };
        let first_refused = lane.refused.keys().next().copied();
        let is_waiting = first_refused
            .is_some_and(|refused| lane.sent.last().is_some_and(|&last| last > refused));
        if is_waiting {
            return;
        }
        if first_refused.is_some() {
            while let Some((_, posted)) = lane.refused.pop_last() {
                lane.waiting.push_front(posted);
            }
            self.last_stream += 1;
            lane.stream = self.last_stream;
            self.pause(now, dpid);
        } else {
            self.send_waiting(now, dpid, master, out);
        }
    }

    fn send_waiting(&mut self, now: Duration, dpid: Dpid, master: MasterOf<'_>, out: &mut Frames) {
        let Some(lane) = self.lanes.get_mut(&dpid) else { return };
        if lane.paused_until.is_some() || !lane.refused.is_empty() {
            return;
        }
        while let Some(posted) = lane.waiting.pop_front() {
            let Some(node) = master(dpid).filter(|&node| self.connected.contains(node)) else {
                lane.waiting.push_front(posted);
                return self.pause(now, dpid);
            };
            self.last_number += 1;
            let number = self.last_number;
            let deadline = now + posted.limit;
            let request = Request { number, stream: lane.stream, dpid, job: posted.job.clone() };
            lane.sent.insert(number);
            self.deadlines.insert((deadline, number));
            self.sent.insert(number, Sent { node, posted, deadline });
            out.push((node, RemoteFrame::Request(request)));
        }
        if lane.sent.is_empty() {
            self.lanes.remove(&dpid);
        }
    }

    /// Waits before the next attempt to find the master. After too many, nothing is sent.
    fn pause(&mut self, now: Duration, dpid: Dpid) {
        let Some(lane) = self.lanes.get_mut(&dpid) else { return };
        lane.failed += 1;
        if lane.failed > MAX_ATTEMPTS {
            lane.failed = 0;
            let waiting = std::mem::take(&mut lane.waiting);
            if lane.sent.is_empty() {
                self.lanes.remove(&dpid);
            }
            for posted in waiting {
                self.counters.not_sent += 1;
                posted.promise.not_sent(Error::NoMaster(dpid));
            }
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << (lane.failed - 1)).min(LONGEST_PAUSE);
        lane.paused_until = Some(now + pause);
        self.attempts.insert((now + pause, dpid));
    }
}

impl Posted {
    /// The switch or its master has answered.
    fn answered(self, body: AnswerBody) {
        match (self.promise, body) {
            (promise, AnswerBody::NotSent(error)) => promise.not_sent(error.into()),
            (Promised::Program(changes, promise), AnswerBody::Outcomes(outcomes))
                if outcomes.len() == changes =>
            {
                promise.resolve(outcomes.into_iter().map(ChangeOutcome::from).collect());
            }
            (Promised::Reply(version, kind, promise, mut bytes), AnswerBody::Reply(last)) => {
                promise.resolve(if bytes.len() + last.len() > MAX_REPLY_BYTES {
                    Err(RequestError::TooLarge)
                } else {
                    bytes.extend_from_slice(&last);
                    Ok(Reply::new(version, kind, bytes.into()))
                });
            }
            (Promised::Reply(_, _, promise, _), AnswerBody::NoReply(error)) => {
                promise.resolve(Err(error.into()));
            }
            (Promised::Nothing, _) => {}
            // An answer to another question: it says nothing.
            (promise, _) => promise.unknown(NoConfirmation::TimedOut),
        }
    }

    /// The link to the master has ended.
    fn lost(self) {
        self.promise.unknown(NoConfirmation::Disconnected);
    }

    /// No answer came in time.
    fn late(self) {
        self.promise.unknown(NoConfirmation::TimedOut);
    }
}

impl Promised {
    /// Adds a part of a reply. Beyond the maximum, only the length is kept in mind.
    fn add(&mut self, part: &[u8]) {
        if let Promised::Reply(.., bytes) = self
            && bytes.len() <= MAX_REPLY_BYTES
        {
            bytes.extend_from_slice(part);
        }
    }

    /// Nobody knows what has become of it.
    fn unknown(self, why: NoConfirmation) {
        match self {
            Promised::Nothing => {}
            Promised::Program(changes, promise) => {
                promise.resolve(vec![ChangeOutcome::Unknown(why); changes]);
            }
            Promised::Reply(_, _, promise, _) => promise.resolve(Err(match why {
                NoConfirmation::Disconnected => RequestError::Disconnected,
                NoConfirmation::TimedOut => RequestError::Unanswered,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use bellrock_api::ProgramFuture;
    use bellrock_api::runtime::{EncodedProgram, Remote};
    use tokio::sync::mpsc;

    use super::super::{MARGIN, RemoteHandle};
    use super::*;

    const SWITCH: Dpid = Dpid(0xa1);
    const WITHIN: Duration = Duration::from_secs(3);

    fn node(place: usize) -> NodeId {
        NodeId::new(place).unwrap()
    }

    /// Node 0, which is connected to nodes 1 and 2.
    struct Sender {
        handle: RemoteHandle,
        posted: mpsc::Receiver<Posted>,
        outgoing: Outgoing,
        master: Option<NodeId>,
        now: Duration,
        out: Frames,
    }

    impl Sender {
        fn new() -> Self {
            let (posts, posted) = mpsc::channel(64);
            let mut outgoing = Outgoing::default();
            outgoing.connected(node(1));
            outgoing.connected(node(2));
            Sender {
                handle: RemoteHandle { posts, counts: Default::default() },
                posted,
                outgoing,
                master: Some(node(1)),
                now: Duration::ZERO,
                out: Vec::new(),
            }
        }

        fn program(&mut self, mark: u8) -> ProgramFuture {
            let messages = vec![[mark; 8].into()];
            let program = EncodedProgram { messages, within: WITHIN, is_order: false };
            let future = self.handle.program(SWITCH, program);
            let posted = self.posted.try_recv().unwrap();
            let master = self.master;
            self.outgoing.post(self.now, posted, &|_| master, &mut self.out);
            future
        }

        /// What was sent since: node, stream, number and first byte of each request.
        fn sent(&mut self) -> Vec<(NodeId, u64, u64, u8)> {
            let sent = self.out.drain(..).map(|(node, frame)| match frame {
                RemoteFrame::Request(request) => match request.job {
                    super::super::Job::Program { messages, .. } => {
                        (node, request.stream, request.number, messages[0])
                    }
                    job => panic!("{job:?}"),
                },
                RemoteFrame::Answer(answer) => panic!("{answer:?}"),
            });
            sent.collect()
        }

        fn marks(&mut self) -> Vec<(usize, u8)> {
            self.sent().into_iter().map(|(node, _, _, mark)| (node.index(), mark)).collect()
        }

        fn answer(&mut self, from: usize, number: u64, body: AnswerBody) {
            let (answer, master) = (Answer { number, body }, self.master);
            self.outgoing.answer(self.now, node(from), answer, &|_| master, &mut self.out);
        }

        fn wait(&mut self, time: Duration) {
            self.now += time;
            let master = self.master;
            self.outgoing.advance(self.now, &|_| master, &mut self.out);
        }
    }

    fn outcome(future: ProgramFuture) -> Poll<Vec<ChangeOutcome>> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn installed() -> AnswerBody {
        AnswerBody::outcomes(&[ChangeOutcome::Installed])
    }

    fn is_idle(sender: &Sender) -> bool {
        let Outgoing { lanes, sent, deadlines, attempts, .. } = &sender.outgoing;
        lanes.is_empty() && sent.is_empty() && deadlines.is_empty() && attempts.is_empty()
    }

    #[test]
    fn refused_requests_go_to_the_next_master_before_later_ones() {
        let mut sender = Sender::new();
        let [one, two, three] = [1, 2, 3].map(|mark| sender.program(mark));
        let sent = sender.sent();
        let numbers: Vec<u64> = sent.iter().map(|&(.., number, _)| number).collect();
        assert_eq!(
            sent.iter().map(|it| (it.0, it.3)).collect::<Vec<_>>(),
            [(node(1), 1), (node(1), 2), (node(1), 3)]
        );
        // The switch moves after the first one.
        sender.master = Some(node(2));
        sender.answer(1, numbers[1], AnswerBody::NotMaster);
        let four = sender.program(4);
        sender.wait(LONGEST_PAUSE);
        assert_eq!(sender.marks(), [], "the third one may still be refused");
        sender.answer(1, numbers[2], AnswerBody::NotMaster);
        assert_eq!(sender.marks(), [], "the next master may not be one yet");
        sender.wait(FIRST_PAUSE);
        let again = sender.sent();
        assert_eq!(
            again.iter().map(|it| (it.0, it.3)).collect::<Vec<_>>(),
            [(node(2), 2), (node(2), 3), (node(2), 4)]
        );
        assert!(again.iter().all(|it| it.1 > sent[0].1), "it is another stream");
        for (number, from) in [(numbers[0], 1), (again[2].2, 2), (again[1].2, 2), (again[0].2, 2)] {
            sender.answer(from, number, installed());
        }
        for future in [one, two, three, four] {
            assert_eq!(outcome(future), Poll::Ready(vec![ChangeOutcome::Installed]));
        }
        assert!(is_idle(&sender));
        // Each counts once, however often it was sent.
        let counted = RequestCounters { sent: 4, answered: 4, ..RequestCounters::default() };
        assert_eq!(sender.outgoing.counters(), counted);
    }

    #[test]
    fn without_a_master_nothing_is_sent_and_the_sender_learns_it() {
        let mut sender = Sender::new();
        sender.master = None;
        let one = sender.program(1);
        for _ in 0..MAX_ATTEMPTS {
            sender.wait(LONGEST_PAUSE);
        }
        let unknown = ChangeOutcome::NotSent(Error::NoMaster(SWITCH));
        assert_eq!((outcome(one), sender.marks()), (Poll::Ready(vec![unknown]), vec![]));
        assert!(is_idle(&sender));
        // A master that appears in time gets it.
        let two = sender.program(2);
        sender.master = Some(node(2));
        sender.wait(FIRST_PAUSE);
        assert_eq!(sender.marks(), [(2, 2)]);
        // A node that refuses for ever is not asked for ever.
        for _ in 0..MAX_ATTEMPTS {
            let number = sender.outgoing.last_number;
            sender.answer(2, number, AnswerBody::NotMaster);
            sender.wait(LONGEST_PAUSE);
        }
        assert_eq!(outcome(two), Poll::Ready(vec![unknown]));
        assert!(is_idle(&sender));
        let counted = RequestCounters { sent: 2, not_sent: 2, ..RequestCounters::default() };
        assert_eq!(sender.outgoing.counters(), counted);
    }

    #[test]
    fn a_lost_link_leaves_the_outcome_unknown_and_the_next_master_gets_only_what_comes_later() {
        let mut sender = Sender::new();
        let one = sender.program(1);
        let number = sender.sent()[0].2;
        sender.outgoing.disconnected(sender.now, node(1), &|_| None, &mut sender.out);
        let lost = ChangeOutcome::Unknown(NoConfirmation::Disconnected);
        assert_eq!(outcome(one), Poll::Ready(vec![lost]));
        sender.answer(1, number, installed());
        // Node 1 counts as master until others notice; it is not connected.
        let two = sender.program(2);
        assert_eq!(sender.marks(), []);
        sender.master = Some(node(2));
        sender.wait(FIRST_PAUSE);
        assert_eq!(sender.marks(), [(2, 2)]);
        let counted = RequestCounters { sent: 2, unknown: 1, ..RequestCounters::default() };
        assert_eq!(sender.outgoing.counters(), counted);
        drop(two);
    }

    #[test]
    fn a_node_that_does_not_answer_is_given_up_and_holds_up_nothing() {
        let mut sender = Sender::new();
        let one = sender.program(1);
        let number = sender.sent()[0].2;
        let limit = WITHIN + MARGIN;
        assert_eq!(sender.outgoing.next_wake(), Some(limit));
        sender.wait(limit);
        let late = ChangeOutcome::Unknown(NoConfirmation::TimedOut);
        assert_eq!(outcome(one), Poll::Ready(vec![late]));
        assert!(is_idle(&sender));
        // Its answer comes too late, and is no answer to anything else.
        let two = sender.program(2);
        sender.answer(1, number, installed());
        // Nor is that of a node that was not asked.
        let number = sender.sent()[0].2;
        sender.answer(2, number, installed());
        assert!(!is_idle(&sender));
        sender.answer(1, number, AnswerBody::outcomes(&[]));
        assert_eq!(outcome(two), Poll::Ready(vec![late]), "an answer to another question");
    }
}
