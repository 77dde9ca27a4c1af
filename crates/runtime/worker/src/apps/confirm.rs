//! Changes that a switch confirms, and requests of tasks.
//!
//! A *program* is a series of messages, one for each change, followed by a barrier. The messages
//! have consecutive transaction ids of one owner, so an error identifies its change. All errors
//! come before the barrier's reply (1.0 §5.3.7, 1.3.5 §7.3.8): a change without an error by then is
//! installed. If the connection ends before, or the barrier's reply is late, the outcome is
//! [`ChangeOutcome::Unknown`].
//!
//! Waiting programs are written together, with one barrier. So the small programs of one app,
//! however many, delay another app's program only by the barriers under way.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bellrock_api::openflow::{ErrorMessage, FromSwitch, HEADER_LEN, Out, RequestKind, frame};
use bellrock_api::runtime::{Changes, Program, Promise, promise};
use bellrock_api::{
    AppId, ChangeOutcome, Dpid, Error, NoConfirmation, ProgramFuture, Refusal, Reply, RequestError,
    RequestFuture, Result, ToSwitch, Version, time_for_changes,
};
use bellrock_session::{ControllerSession, xid};
use tracing::debug;

use crate::apps::Worker;
use crate::apps::asker::{Ended, PROGRAM, TASK};
use crate::apps::flood;
use crate::apps::table_miss::is_removed_by;
use crate::draft::draft;
use crate::mailbox::ConnectionId;
use crate::settings::FLUSH_BYTES;
use crate::transport::{ConnectionKey, Transport};

/// Maximum number of changes before one barrier: of several waiting programs, or a part of a larger
/// one.
pub(crate) const PROGRAM_CHANGES: usize = 1024;

/// Maximum number of unanswered barriers of programs for one switch. Further programs wait in the
/// worker.
pub(crate) const BARRIERS_UNANSWERED: usize = 8;

/// Maximum bytes of waiting programs for one switch. A further one is not sent.
pub(crate) const PROGRAM_BACKLOG_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of unanswered requests of tasks to one switch. A further one is not sent.
pub(crate) const TASK_REQUESTS: usize = 16;

/// Maximum number of unanswered requests of tasks to one switch, with barriers.
pub const TASKS_UNANSWERED: u16 = (TASK_REQUESTS + BARRIERS_UNANSWERED) as u16;

/// Minimum for [`bellrock_session::SessionSettings::max_requests`]: requests of tasks, and some for
/// handlers.
pub const MIN_REQUESTS: u16 = TASKS_UNANSWERED + 8;

/// Changes on their way to a switch.
pub(crate) struct PostedProgram {
    dpid: Dpid,
    /// The app that made the changes. `None`: an operator did.
    app: Option<AppId>,
    /// The encoded messages. Their transaction ids are set later.
    bytes: Box<[u8]>,
    changes: usize,
    within: Duration,
    promise: Promise<Vec<ChangeOutcome>>,
}

/// A request on its way to a switch.
pub(crate) struct PostedRequest {
    dpid: Dpid,
    bytes: Box<[u8]>,
    kind: RequestKind,
    promise: Promise<std::result::Result<Reply, RequestError>>,
}

/// The pending work of tasks at one switch.
#[derive(Default)]
pub(crate) struct Confirmations {
    /// Programs that are not written yet.
    queue: VecDeque<PostedProgram>,
    waiting_bytes: usize,
    /// Programs that are written but not confirmed.
    sent: VecDeque<SentBatch>,
    /// Unanswered requests, by their transaction ids.
    requests: Vec<(u32, Promise<std::result::Result<Reply, RequestError>>)>,
}

/// Programs that were written with one barrier behind them.
struct SentBatch {
    /// Transaction id of the first change, without its owner. The others follow.
    first: u32,
    /// Number of changes of all programs together.
    changes: usize,
    barrier: u32,
    /// Refusals so far: one error for each change, however many the switch sends.
    refused: BTreeMap<usize, Refusal>,
    /// Time limit.
    deadline: Duration,
    /// The programs, in order.
    programs: Vec<SentProgram>,
}

/// A program that was sent: its app, its number of changes, and its waiting task.
struct SentProgram {
    app: Option<AppId>,
    changes: usize,
    promise: Promise<Vec<ChangeOutcome>>,
}

impl SentBatch {
    /// Index of the change with this transaction id.
    fn change(&self, xid: u32) -> Option<usize> {
        // Counts run from 1 to the maximum, then start again at 1.
        let count = xid & xid::MAX_COUNT;
        let offset = (count + xid::MAX_COUNT - self.first) % xid::MAX_COUNT;
        Some(offset as usize).filter(|change| *change < self.changes)
    }

    fn end(self, outcome: ChangeOutcome) {
        let mut outcomes = vec![outcome; self.changes];
        for (change, refusal) in self.refused {
            if let Some(outcome) = outcomes.get_mut(change) {
                *outcome = ChangeOutcome::Refused(refusal);
            }
        }
        let mut outcomes = outcomes.into_iter();
        for program in self.programs {
            program.promise.resolve(outcomes.by_ref().take(program.changes).collect());
        }
    }
}

impl PostedProgram {
    fn not_sent(self, error: Error) {
        self.promise.resolve(vec![ChangeOutcome::NotSent(error); self.changes]);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl PostedRequest {
    fn not_sent(self, error: Error) {
        self.promise.resolve(Err(error.into()));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Encodes a program in a version, and posts it in parts. All changes are encoded first: if one
/// cannot be, none is sent.
pub(crate) fn post_program(
    program: &Program,
    version: Version,
    mut post: impl FnMut(PostedProgram) -> std::result::Result<(), PostedProgram>,
) -> ProgramFuture {
    let parts = match encode(&program.changes, version) {
        Ok(parts) => parts,
        Err((at, error)) => {
            let mut outcomes = vec![ChangeOutcome::Withheld; program.changes.len()];
            if let Some(outcome) = outcomes.get_mut(at) {
                *outcome = ChangeOutcome::NotSent(error);
            }
            return ProgramFuture::ready(outcomes);
        }
    };
    let mut answers = Vec::with_capacity(parts.len());
    for (changes, bytes) in parts {
        let (promise, answer) = promise();
        answers.push((changes, answer));
        let (dpid, app, within) = (program.dpid, program.changes.app(), program.within);
        let posted = PostedProgram { dpid, app, bytes: bytes.into(), changes, within, promise };
        if let Err(posted) = post(posted) {
            posted.not_sent(Error::Full(dpid));
        }
    }
    ProgramFuture::in_parts(answers)
}

/// A part of a program: the number of its changes, and their messages.
type Part = (usize, Vec<u8>);

/// Encodes changes, in parts of [`PROGRAM_CHANGES`]. The error has the index of the change that
/// cannot be encoded.
fn encode(changes: &Changes, version: Version) -> std::result::Result<Vec<Part>, (usize, Error)> {
    let mut parts = Vec::<Part>::new();
    for at in 0..changes.len() {
        if at % PROGRAM_CHANGES == 0 {
            parts.push((0, Vec::new()));
        }
        let Some((number, bytes)) = parts.last_mut() else { break };
        *number += 1;
        match changes {
            Changes::OfApp(app, changes) => draft(|out| {
                changes[at].encode(*app, version, 0, out).map_err(|error| (at, error))?;
                bytes.extend_from_slice(out.as_slice());
                Ok(())
            })?,
            Changes::Messages(messages) => bytes.extend_from_slice(&messages[at]),
        }
    }
    Ok(parts)
}

/// Encodes a request in a version, and posts it.
pub(crate) fn post_request(
    dpid: Dpid,
    message: &ToSwitch<'_>,
    version: Version,
    post: impl FnOnce(PostedRequest) -> std::result::Result<(), PostedRequest>,
) -> RequestFuture {
    let Some(kind) = RequestKind::awaited_by(message) else {
        return RequestFuture::not_sent(Error::NotARequest);
    };
    let written = draft(|out| message.encode(version, 0, out).map(|()| Box::from(out.as_slice())));
    let bytes = match written {
        Ok(bytes) => bytes,
        Err(error) => return RequestFuture::not_sent(error.into()),
    };
    let (promise, answer) = promise();
    match post(PostedRequest { dpid, bytes, kind, promise }) {
        Ok(()) => RequestFuture::sent(answer),
        Err(_) => RequestFuture::not_sent(Error::Full(dpid)),
    }
}

impl Worker {
    /// Handles a program for a switch of this worker, which may be gone.
    pub(crate) fn program<T: Transport>(
        &mut self,
        to: ConnectionId,
        posted: PostedProgram,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.local_up_key(to) else {
            self.counters.mail_undeliverable.add(1);
            let error = self.not_up(to, posted.dpid);
            return posted.not_sent(error);
        };
        let Some(connection) = self.connections.get_mut(key) else { return };
        self.counters.mail_in.add(1);
        let confirms = connection.own.confirms.get_or_insert_default();
        if confirms.waiting_bytes + posted.bytes() > PROGRAM_BACKLOG_BYTES {
            let dpid = posted.dpid;
            return posted.not_sent(Error::Full(dpid));
        }
        confirms.waiting_bytes += posted.bytes();
        confirms.queue.push_back(posted);
        self.write_programs(key, now, transport);
    }

    /// Writes waiting programs, as many as may be unconfirmed.
    fn write_programs<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        loop {
            let Some(connection) = self.connections.get_mut(key) else { return };
            let Some(confirms) = connection.own.confirms.as_deref_mut() else { return };
            if confirms.sent.len() >= BARRIERS_UNANSWERED {
                return;
            }
            let batch = confirms.take_waiting();
            if batch.is_empty() {
                return;
            }
            // Earlier bytes in the buffer go first. A program can be longer than a batch's answers,
            // so it gets the whole buffer.
            self.flush(key, transport);
            let is_miss_removed = self.wants_packet_ins()
                && batch.iter().any(|it| it.app.is_none() && is_removed_by(&it.bytes));
            let Some(connection) = self.connections.get_mut(key) else { return };
            let Some(confirms) = connection.own.confirms.as_deref_mut() else { return };
            // The switch processes earlier changes first.
            let before = confirms.sent.iter().map(|sent| sent.changes).sum();
            let (sent, mut bytes) = number(&mut connection.session, batch, before, now);
            if connection.own.uses_all_for_flood {
                flood::use_all(&mut bytes);
            }
            self.counters.changes_sent.add(sent.changes as u64);
            confirms.sent.push_back(sent);
            for part in bytes.chunks(FLUSH_BYTES) {
                self.send(key, part, transport);
            }
            if is_miss_removed && let Some((connection, out)) = self.flushed(key, transport) {
                connection.write_table_miss(out, None, now);
                self.flush(key, transport);
            }
        }
    }

    /// Handles a request of a task.
    pub(crate) fn task_request<T: Transport>(
        &mut self,
        to: ConnectionId,
        mut request: PostedRequest,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(key) = self.local_up_key(to) else {
            self.counters.mail_undeliverable.add(1);
            let error = self.not_up(to, request.dpid);
            return request.not_sent(error);
        };
        self.flush(key, transport);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let confirms = connection.own.confirms.get_or_insert_default();
        let waiting = confirms.requests.len();
        if waiting >= TASK_REQUESTS {
            return request
                .promise
                .resolve(Err(Error::TooManyRequests { unanswered: waiting }.into()));
        }
        let xid = connection.session.next_xid(TASK);
        if register(&mut connection.session, xid, request.kind, now).is_err() {
            return request
                .promise
                .resolve(Err(Error::TooManyRequests { unanswered: waiting }.into()));
        }
        set_xid(&mut request.bytes, xid);
        confirms.requests.push((xid, request.promise));
        self.counters.mail_in.add(1);
        self.send(key, &request.bytes, transport);
        // If this fails, only an answer or the time limit ends the request.
        let Some(connection) = self.connections.get_mut(key) else { return };
        let _ = connection.session.follow(xid, now, &mut self.out);
        self.flush(key, transport);
    }

    /// Ends a task's request: its future returns the reply, or why there is none.
    pub(crate) fn task_ended(&mut self, key: ConnectionKey, xid: u32, ended: Ended<'_>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let version = connection.session.version();
        let Some(confirms) = connection.own.confirms.as_deref_mut() else { return };
        let Some(at) = confirms.requests.iter().position(|(id, _)| *id == xid) else { return };
        let (_, promise) = confirms.requests.swap_remove(at);
        promise.resolve(match ended {
            Ended::Multipart(reply) => {
                let (version, kind, bytes) = reply.into_parts();
                Ok(Reply::new(version, RequestKind::Multipart(kind), bytes))
            }
            Ended::Reply(body) => match reply_of(&body, version, xid) {
                Some(reply) => Ok(reply),
                None => return,
            },
            Ended::Refused(error) => Err(RequestError::Refused(Refusal::from(&error))),
            Ended::Silent => Err(RequestError::Silent),
            Ended::Late => Err(RequestError::Unanswered),
            Ended::TooLarge => Err(RequestError::TooLarge),
            Ended::Unreadable(error) => Err(RequestError::Unreadable(error)),
        });
    }

    /// Ends the programs whose barrier has this id, or notes that the switch refuses a change.
    pub(crate) fn program_ended<T: Transport>(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        ended: &Ended<'_>,
        now: Duration,
        transport: &mut T,
    ) {
        let outcome = match ended {
            Ended::Reply(FromSwitch::BarrierReply) => ChangeOutcome::Installed,
            Ended::Refused(error) if self.record_refusal(key, xid, error) => return,
            // The reply to the barrier never comes.
            Ended::Refused(_) | Ended::Late | Ended::Unreadable(_) => {
                ChangeOutcome::Unknown(NoConfirmation::TimedOut)
            }
            // No end of a barrier.
            Ended::Multipart(_) | Ended::Reply(_) | Ended::Silent | Ended::TooLarge => return,
        };
        let Some(confirms) = self.confirms(key) else { return };
        if let Some(at) = confirms.sent.iter().position(|sent| sent.barrier == xid) {
            self.end_program(key, at, outcome, now, transport);
        }
    }

    /// Notes that the switch has refused a change. `false`: no change has this id.
    pub(crate) fn record_refusal(
        &mut self,
        key: ConnectionKey,
        xid: u32,
        error: &ErrorMessage<'_>,
    ) -> bool {
        let Some(confirms) = self.confirms(key) else { return false };
        let Some((sent, change)) =
            confirms.sent.iter_mut().find_map(|sent| sent.change(xid).map(|change| (sent, change)))
        else {
            return false;
        };
        if let Entry::Vacant(slot) = sent.refused.entry(change) {
            slot.insert(Refusal::from(error));
            self.counters.changes_refused.add(1);
        }
        true
    }

    /// The app that sent the unconfirmed change with this id.
    pub(crate) fn app_of_change(&self, key: ConnectionKey, xid: u32) -> Option<AppId> {
        let confirms = self.connections.get(key)?.own.confirms.as_deref()?;
        let (sent, change) =
            confirms.sent.iter().find_map(|sent| sent.change(xid).map(|change| (sent, change)))?;
        let mut end = 0;
        let program = sent.programs.iter().find(|program| {
            end += program.changes;
            change < end
        });
        program.and_then(|program| program.app)
    }

    /// Gives up programs that have reached their time limit.
    pub(crate) fn give_up_programs<T: Transport>(
        &mut self,
        key: ConnectionKey,
        now: Duration,
        transport: &mut T,
    ) {
        // Bounded: the number of unconfirmed programs is limited, and those that follow are written
        // now.
        while let Some(confirms) = self.confirms(key)
            && let Some(at) = confirms.sent.iter().position(|sent| sent.deadline <= now)
        {
            debug!(key, "a program of changes was not confirmed in time");
            self.end_program(
                key,
                at,
                ChangeOutcome::Unknown(NoConfirmation::TimedOut),
                now,
                transport,
            );
        }
    }

    fn end_program<T: Transport>(
        &mut self,
        key: ConnectionKey,
        at: usize,
        outcome: ChangeOutcome,
        now: Duration,
        transport: &mut T,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(confirms) = connection.own.confirms.as_deref_mut() else { return };
        let Some(sent) = confirms.sent.remove(at) else { return };
        // A later reply of the barrier is then ignored.
        connection.session.split().1.cancel(sent.barrier);
        let changes = sent.changes as u64;
        match outcome {
            ChangeOutcome::Installed => {
                self.counters.changes_confirmed.add(changes - sent.refused.len() as u64);
            }
            _ => self.counters.changes_unknown.add(changes),
        }
        sent.end(outcome);
        self.write_programs(key, now, transport);
    }

    fn confirms(&mut self, key: ConnectionKey) -> Option<&mut Confirmations> {
        self.connections.get_mut(key)?.own.confirms.as_deref_mut()
    }
}

impl Confirmations {
    /// Takes the next programs for one barrier: as many as fit, all with the same time limit.
    fn take_waiting(&mut self) -> Vec<PostedProgram> {
        let (mut batch, mut changes) = (Vec::<PostedProgram>::new(), 0);
        while let Some(next) = self.queue.front()
            && batch.first().is_none_or(|first| {
                first.within == next.within && changes + next.changes <= PROGRAM_CHANGES
            })
            && let Some(next) = self.queue.pop_front()
        {
            changes += next.changes;
            self.waiting_bytes -= next.bytes();
            batch.push(next);
        }
        batch
    }

    /// Ends all pending work, because the connection has ended, or this controller stands by.
    /// `why`: what has become of requests. Returns the number of unknown changes.
    pub(crate) fn end(self, why: RequestError) -> u64 {
        let unknown = self.sent.iter().map(|sent| sent.changes as u64).sum();
        self.sent
            .into_iter()
            .for_each(|sent| sent.end(ChangeOutcome::Unknown(NoConfirmation::Disconnected)));
        for posted in self.queue {
            let dpid = posted.dpid;
            posted.not_sent(match why {
                RequestError::StoodBy => Error::NoMaster(dpid),
                _ => Error::UnknownSwitch(dpid),
            });
        }
        for (_, promise) in self.requests {
            promise.resolve(Err(why));
        }
        unknown
    }
}

/// Gives consecutive transaction ids to the messages of programs, and appends a barrier. `before`
/// is the number of earlier, unconfirmed changes.
fn number(
    session: &mut ControllerSession,
    batch: Vec<PostedProgram>,
    before: usize,
    now: Duration,
) -> (SentBatch, Vec<u8>) {
    let mut messages =
        Vec::with_capacity(batch.iter().map(PostedProgram::bytes).sum::<usize>() + HEADER_LEN);
    let (mut first, mut changes) = (None, 0);
    // All have the same time limit.
    let within = batch.first().map_or(Duration::ZERO, |posted| posted.within);
    let mut programs = Vec::with_capacity(batch.len());
    for mut posted in batch {
        let mut at = 0;
        for _ in 0..posted.changes {
            let xid = session.next_xid(PROGRAM);
            first.get_or_insert(xid & xid::MAX_COUNT);
            let Some(rest) = posted.bytes.get_mut(at..) else { break };
            let len = frame(rest).ok().flatten().map_or(rest.len(), |message| message.bytes.len());
            set_xid(rest, xid);
            at += len;
        }
        messages.extend_from_slice(&posted.bytes);
        changes += posted.changes;
        let PostedProgram { app, changes, promise, .. } = posted;
        programs.push(SentProgram { app, changes, promise });
    }
    let barrier = session.next_xid(PROGRAM);
    let mut out = Out::with_capacity(HEADER_LEN);
    // It fits, and every version has it.
    let _ = ToSwitch::BarrierRequest.encode(session.version(), barrier, &mut out);
    messages.extend_from_slice(out.as_slice());
    // Never refused: the id is new, and the number of barriers is bounded here.
    let _ = register(session, barrier, RequestKind::Barrier, now);
    let first = first.unwrap_or_default();
    let deadline = now.saturating_add(within).saturating_add(time_for_changes(before + changes));
    (SentBatch { first, changes, barrier, refused: BTreeMap::new(), deadline, programs }, messages)
}

/// Copies the reply to a task's request. `None`: it is no reply, which no session passes on.
fn reply_of(body: &FromSwitch<'_>, version: Version, xid: u32) -> Option<Reply> {
    let kind = RequestKind::answered_by(body)?;
    draft(|out| {
        body.encode(version, xid, out).ok()?;
        Some(Reply::new(version, kind, out.as_slice().into()))
    })
}

/// Registers a request that does not count among those of the apps.
fn register(
    session: &mut ControllerSession,
    xid: u32,
    kind: RequestKind,
    now: Duration,
) -> Result<(), Error> {
    let (_, mut pending) = session.split();
    let waiting = pending.count();
    let expected = pending.request_beside(waiting, xid, kind, now);
    expected.map_err(|_| Error::TooManyRequests { unanswered: waiting })
}

/// Writes the transaction id into the first message.
fn set_xid(message: &mut [u8], xid: u32) {
    const XID: std::ops::Range<usize> = 4..8;
    if let Some(field) = message.get_mut(XID) {
        field.copy_from_slice(&xid.to_be_bytes());
    }
}
