//! Confirmations from a switch: outcomes of changes, and replies to requests.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bellrock_openflow::{
    DecodeError, ErrorCode, FromSwitch, Reason, ReplyBody, RequestKind, Version,
};
use futures_channel::oneshot;

use crate::waiting::contain;
use crate::{
    AppId, Change, ChangeOutcome, Dpid, Error, Latencies, Network, NoConfirmation, Refusal,
};

/// Default time for a switch to confirm changes.
pub const CONFIRM_WITHIN: Duration = Duration::from_secs(10);

/// Number of changes for which a switch gets one second more: as many as slow hardware makes in a
/// second.
pub const CHANGES_PER_SECOND: usize = 300;

/// Time that a slow switch needs for this number of changes, in whole seconds.
#[must_use]
pub fn time_for_changes(changes: usize) -> Duration {
    Duration::from_secs((changes / CHANGES_PER_SECOND) as u64)
}

/// Changes that go to one switch together. For runtimes.
#[derive(Debug)]
pub struct Program {
    /// The switch.
    pub dpid: Dpid,
    /// The changes, in order.
    pub changes: Changes,
    /// Time for the switch to confirm the changes, from when they were written.
    pub within: Duration,
}

/// The changes of a [`Program`], and who made them.
#[derive(Debug)]
pub enum Changes {
    /// Changes of an app, with its cookie and priorities.
    OfApp(AppId, Vec<Change>),
    /// Encoded messages of the switch's version, each whole, to send as they are.
    Messages(Vec<Box<[u8]>>),
}

impl Changes {
    /// The number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Changes::OfApp(_, changes) => changes.len(),
            Changes::Messages(messages) => messages.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The app that made them. `None`: an operator did.
    #[must_use]
    pub fn app(&self) -> Option<AppId> {
        match self {
            Changes::OfApp(app, _) => Some(*app),
            Changes::Messages(_) => None,
        }
    }
}

/// Changes on their way to a switch, from [`crate::Network::program`]. They are already sent,
/// whether or not a task awaits this future.
///
/// It resolves to one [`ChangeOutcome`] for each change, in their order.
#[must_use = "await it for the outcomes of the changes"]
#[derive(Debug)]
pub struct ProgramFuture {
    /// Outcomes known so far.
    outcomes: Vec<ChangeOutcome>,
    /// Parts that are still to come, in order, each with its number of changes.
    pending: std::collections::VecDeque<(usize, PromiseFuture<Vec<ChangeOutcome>>)>,
    /// Since when, for [`crate::Latencies`].
    sent: Option<(Network, Duration)>,
    /// Dropped when all outcomes are known, or this is dropped.
    held: Option<Box<dyn Any + Send + Sync>>,
}

impl ProgramFuture {
    /// For runtimes: all outcomes are known already.
    pub fn ready(outcomes: Vec<ChangeOutcome>) -> Self {
        ProgramFuture { outcomes, pending: Default::default(), sent: None, held: None }
    }

    /// For runtimes: the outcomes come in parts, each for this number of changes.
    pub fn in_parts(
        parts: impl IntoIterator<Item = (usize, PromiseFuture<Vec<ChangeOutcome>>)>,
    ) -> Self {
        let pending = parts.into_iter().collect();
        ProgramFuture { outcomes: Vec::new(), pending, sent: None, held: None }
    }

    /// For runtimes: holds a value until all outcomes are known, or this future is dropped.
    pub fn holding(self, held: impl Any + Send + Sync) -> Self {
        ProgramFuture { held: Some(Box::new(held)), ..self }
    }

    /// Measures the time until all changes are confirmed.
    pub(crate) fn measured(self, network: &Network) -> Self {
        ProgramFuture { sent: Some((network.clone(), network.now())), ..self }
    }
}

impl Future for ProgramFuture {
    type Output = Vec<ChangeOutcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<ChangeOutcome>> {
        while let Some((changes, answer)) = self.pending.front_mut() {
            let Poll::Ready(outcomes) = Pin::new(answer).poll(context) else {
                return Poll::Pending;
            };
            // The promise was dropped: the connection is gone.
            let lost = || vec![ChangeOutcome::Unknown(NoConfirmation::Disconnected); *changes];
            let mut outcomes = outcomes.unwrap_or_else(lost);
            self.outcomes.append(&mut outcomes);
            self.pending.pop_front();
        }
        if let Some((network, sent)) = self.sent.take()
            && self.outcomes.iter().all(|outcome| outcome.is_installed())
        {
            let time = network.now().saturating_sub(sent);
            network.extension::<Latencies>().confirmation.record(time);
        }
        self.held = None;
        Poll::Ready(std::mem::take(&mut self.outcomes))
    }
}

/// A complete reply to a request. Flows in it have their priorities in the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    version: Version,
    kind: RequestKind,
    bytes: Box<[u8]>,
}

impl Reply {
    /// For runtimes: takes a reply that is already checked. Of a multipart reply, it takes the
    /// bodies of all parts, concatenated; of any other reply, the message.
    #[must_use]
    pub fn new(version: Version, kind: RequestKind, bytes: Box<[u8]>) -> Self {
        Reply { version, kind, bytes }
    }

    /// The version of the switch.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The kind of the request.
    #[must_use]
    pub fn kind(&self) -> RequestKind {
        self.kind
    }

    /// The bytes of [`Reply::new`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes a multipart reply.
    ///
    /// # Errors
    /// It is a reply of another kind. A multipart reply was checked when it came.
    pub fn body(&self) -> Result<ReplyBody<'_>, DecodeError> {
        match self.kind {
            RequestKind::Multipart(kind) => {
                ReplyBody::decode_parts(self.version, kind, &self.bytes)
            }
            _ => Err(self.other_kind()),
        }
    }

    /// Decodes a reply that is not a multipart reply.
    ///
    /// # Errors
    /// It is a multipart reply. Any other reply was checked when it came.
    pub fn message(&self) -> Result<FromSwitch<'_>, DecodeError> {
        match self.kind {
            RequestKind::Multipart(_) => Err(self.other_kind()),
            _ => FromSwitch::decode(&self.bytes).map(|message| message.body),
        }
    }

    fn other_kind(&self) -> DecodeError {
        DecodeError {
            what: "header.type",
            offset: 1,
            reason: Reason::Unexpected(self.bytes.get(1).copied().unwrap_or_default()),
            answer: ErrorCode::RequestBadType,
        }
    }
}

/// Why a request got no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request was not sent.
    #[error(transparent)]
    NotSent(#[from] Error),
    /// The switch refused it.
    #[error("the switch refused the request: {0}")]
    Refused(Refusal),
    /// Neither the reply nor the barrier's reply behind it came in time: the switch is slow or
    /// stuck.
    #[error("the switch did not answer the request in time")]
    Unanswered,
    /// The switch answered the barrier behind the request, but not the request: it does not support
    /// this request (1.0 §5.3.7, 1.3.5 §7.3.8).
    #[error("the switch does not answer this request")]
    Silent,
    /// The reply cannot be decoded.
    #[error("the switch's answer cannot be read: {0}")]
    Unreadable(DecodeError),
    /// The reply was larger than `max_multipart_bytes`.
    #[error("the switch's answer is too large; set max_multipart_bytes higher")]
    TooLarge,
    /// The connection ended before the reply.
    #[error("the connection to the switch ended before it answered")]
    Disconnected,
    /// This controller has begun to stand by at the switch before the reply: another one may be its
    /// master.
    #[error(
        "this controller stands by at the switch now, and does not get its answer; try again, or \
         ask its master"
    )]
    StoodBy,
}

impl RequestError {
    /// Whether this is the final answer "none": the switch refuses the request, ignores it, or
    /// sends a reply that cannot be decoded. Do not repeat the request at once.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(
            self,
            RequestError::Refused(_) | RequestError::Silent | RequestError::Unreadable(_)
        )
    }
}

/// A request on its way to a switch, from [`crate::Network::request`]. It is already sent.
#[must_use = "await it for the reply"]
#[derive(Debug)]
pub struct RequestFuture(Result<PromiseFuture<Result<Reply, RequestError>>, Option<RequestError>>);

impl RequestFuture {
    /// For runtimes: the request was sent; the promise of `answer` receives the reply.
    pub fn sent(answer: PromiseFuture<Result<Reply, RequestError>>) -> Self {
        RequestFuture(Ok(answer))
    }

    /// For runtimes: the request was not sent.
    pub fn not_sent(error: Error) -> Self {
        RequestFuture(Err(Some(error.into())))
    }
}

impl Future for RequestFuture {
    type Output = Result<Reply, RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(answer) => {
                let answer = Pin::new(answer).poll(context);
                answer.map(|reply| reply.unwrap_or(Err(RequestError::Disconnected)))
            }
            Err(error) => Poll::Ready(Err(error.take().unwrap_or(RequestError::Disconnected))),
        }
    }
}

/// Delivers one value to a task, once.
#[derive(Debug)]
pub struct Promise<T>(Option<oneshot::Sender<T>>);

/// Waits for the value of a [`Promise`]. `None` if the promise was dropped.
#[must_use = "nothing waits unless it is awaited"]
#[derive(Debug)]
pub struct PromiseFuture<T>(oneshot::Receiver<T>);

/// Makes a promise and its answer.
pub fn promise<T>() -> (Promise<T>, PromiseFuture<T>) {
    let (sender, receiver) = oneshot::channel();
    (Promise(Some(sender)), PromiseFuture(receiver))
}

impl<T> Promise<T> {
    /// Delivers the value.
    pub fn resolve(mut self, value: T) {
        if let Some(sender) = self.0.take() {
            contain(|| drop(sender.send(value)));
        }
    }

    /// Whether nobody waits for the value any more.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.0.as_ref().is_none_or(oneshot::Sender::is_canceled)
    }
}

/// Wakes the waiting task.
impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            contain(|| drop(sender));
        }
    }
}

impl<T> Future for PromiseFuture<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(context).map(Result::ok)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Wake, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_answer_comes_once_and_a_broken_promise_is_none() {
        let (promise, answer) = promise();
        let mut answer = pin!(answer);
        assert!(poll(answer.as_mut()).is_pending());
        promise.resolve(3);
        assert_eq!(poll(answer.as_mut()), Poll::Ready(Some(3)));
        let (promise, answer) = super::promise::<u8>();
        assert!(!promise.is_abandoned());
        drop(promise);
        assert_eq!(poll(pin!(answer)), Poll::Ready(None));
        let (promise, answer) = super::promise::<u8>();
        drop(answer);
        assert!(promise.is_abandoned());
    }

    /// The waker of an app must not stop the worker that delivers the value.
    #[test]
    fn a_waker_that_panics_does_not_reach_who_keeps_or_drops_the_promise() {
        struct Panics;
        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic!("on purpose");
            }
        }
        let waker = Waker::from(Arc::new(Panics));
        for value in [Some(3), None] {
            let (promise, answer) = promise();
            let mut answer = pin!(answer);
            assert!(answer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            match value {
                Some(value) => promise.resolve(value),
                None => drop(promise),
            }
            assert_eq!(poll(answer.as_mut()), Poll::Ready(value));
        }
    }

    #[test]
    fn parts_are_put_together_and_a_part_that_is_lost_is_unknown() {
        let (first, answer_first) = promise();
        let (second, answer_second) = promise();
        let mut programmed = pin!(ProgramFuture::in_parts([(2, answer_first), (1, answer_second)]));
        drop(second);
        assert!(poll(programmed.as_mut()).is_pending());
        first.resolve(vec![ChangeOutcome::Installed; 2]);
        let lost = ChangeOutcome::Unknown(NoConfirmation::Disconnected);
        let all = vec![ChangeOutcome::Installed, ChangeOutcome::Installed, lost];
        assert_eq!(poll(programmed), Poll::Ready(all));
    }

    #[test]
    fn a_held_value_is_dropped_with_the_last_outcome_or_with_the_future() {
        for is_answered in [true, false] {
            let value = Arc::new(());
            let (promise, answer) = promise();
            let mut programmed = ProgramFuture::in_parts([(1, answer)]).holding(Arc::clone(&value));
            assert!(poll(Pin::new(&mut programmed)).is_pending());
            assert_eq!(Arc::strong_count(&value), 2);
            if is_answered {
                promise.resolve(vec![ChangeOutcome::Installed]);
                assert!(poll(Pin::new(&mut programmed)).is_ready());
            } else {
                drop(programmed);
            }
            assert_eq!(Arc::strong_count(&value), 1);
        }
    }
}
