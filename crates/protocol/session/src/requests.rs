//! Unanswered requests, and replies in several parts.

use std::borrow::Cow;
use std::time::Duration;

use bellrock_openflow::{DecodeError, MultipartKind, ReplyBody, RequestKind, Version};

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRejected {
    /// The maximum number of requests is unanswered.
    #[error("{limit} requests to this switch are unanswered; wait for some of them")]
    TooMany {
        /// [`max_requests`](crate::SessionSettings::max_requests).
        limit: u16,
    },
    /// A request with this xid is unanswered.
    #[error("a request with xid {xid:#010x} is unanswered; take a new xid")]
    XidInUse {
        /// The xid.
        xid: u32,
    },
}

/// A complete multipart reply: the bodies of all its parts, concatenated.
///
/// A reply of one part borrows the received bytes. A reply of several parts owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteReply<'b> {
    version: Version,
    kind: MultipartKind,
    bytes: Cow<'b, [u8]>,
}

impl<'b> CompleteReply<'b> {
    /// Checks the parts as one body.
    pub(crate) fn check(
        version: Version,
        kind: MultipartKind,
        bytes: Cow<'b, [u8]>,
    ) -> Result<Self, DecodeError> {
        ReplyBody::decode_parts(version, kind, &bytes)?;
        Ok(CompleteReply { version, kind, bytes })
    }

    /// Kind of the request.
    #[must_use]
    pub fn kind(&self) -> MultipartKind {
        self.kind
    }

    /// Its version, kind and bytes.
    #[must_use]
    pub fn into_parts(self) -> (Version, MultipartKind, Box<[u8]>) {
        (self.version, self.kind, self.bytes.into_owned().into_boxed_slice())
    }

    /// Decodes the reply. In an experimenter's reply of several parts, the data of each later part
    /// begins with its experimenter id, as received.
    ///
    /// # Errors
    /// None in practice: it was checked when it was complete.
    pub fn body(&self) -> Result<ReplyBody<'_>, DecodeError> {
        ReplyBody::decode_parts(self.version, self.kind, &self.bytes)
    }
}

/// The outcome of a part of a multipart reply.
pub(crate) enum PartOutcome<'b> {
    /// It was not requested.
    Unknown,
    /// More parts follow.
    Kept,
    /// The reply is too large. The request is over.
    Overflow,
    /// It was the last part. The request is over.
    Last(Cow<'b, [u8]>),
}

/// The unanswered requests of a session. Uses no heap memory while there are none.
#[derive(Debug, Default)]
pub(crate) struct RequestList {
    list: Vec<PendingRequest>,
    /// Total bytes of all parts kept.
    kept: usize,
}

#[derive(Debug)]
struct PendingRequest {
    xid: u32,
    kind: RequestKind,
    /// Time of the request.
    since: Duration,
    parts: Vec<u8>,
    /// The barrier behind it ([`RequestList::follow`]).
    barrier: Option<u32>,
    /// Whether it is such a barrier, and not a caller's request.
    is_guard: bool,
}

impl PendingRequest {
    fn new(xid: u32, kind: RequestKind, since: Duration) -> Self {
        PendingRequest { xid, kind, since, parts: Vec::new(), barrier: None, is_guard: false }
    }
}

impl RequestList {
    pub(crate) fn add(
        &mut self,
        xid: u32,
        kind: RequestKind,
        limit: u16,
        now: Duration,
    ) -> Result<(), RequestRejected> {
        if self.iter().count() >= usize::from(limit) {
            return Err(RequestRejected::TooMany { limit });
        }
        if self.position(xid).is_some() {
            return Err(RequestRejected::XidInUse { xid });
        }
        self.list.push(PendingRequest::new(xid, kind, now));
        Ok(())
    }

    /// Notes a barrier behind these requests: its reply ends those that are still unanswered. It
    /// does not count as a request.
    pub(crate) fn follow(&mut self, questions: &[u32], barrier: u32, now: Duration) {
        for question in self.list.iter_mut().filter(|its| questions.contains(&its.xid)) {
            question.barrier = Some(barrier);
        }
        let kind = RequestKind::Barrier;
        self.list
            .push(PendingRequest { is_guard: true, ..PendingRequest::new(barrier, kind, now) });
    }

    /// Whether this is the xid of a barrier behind a request.
    pub(crate) fn is_guard(&self, xid: u32) -> bool {
        self.list.iter().any(|request| request.is_guard && request.xid == xid)
    }

    /// Handles the reply to a barrier behind requests: each call ends and returns one request that
    /// has no answer. `None` at the end, which also ends the barrier. A request with a part of its
    /// answer stays.
    pub(crate) fn overtaken(&mut self, barrier: u32) -> Option<(u32, RequestKind)> {
        let is_silent =
            |request: &PendingRequest| request.barrier == Some(barrier) && request.parts.is_empty();
        if let Some(at) = self.list.iter().position(is_silent) {
            let question = self.remove(at);
            return Some((question.xid, question.kind));
        }
        self.end(barrier);
        None
    }

    /// Ends the request with this xid, of any kind.
    pub(crate) fn end(&mut self, xid: u32) -> Option<RequestKind> {
        let at = self.position(xid)?;
        Some(self.remove(at).kind)
    }

    /// Ends the request with this xid if it is of this kind.
    pub(crate) fn answer(&mut self, xid: u32, kind: RequestKind) -> bool {
        let at = self.position(xid).filter(|at| self.list.get(*at).is_some_and(|r| r.kind == kind));
        at.map(|at| self.remove(at)).is_some()
    }

    /// Takes a part of a multipart reply. All parts kept have at most `max_bytes`.
    pub(crate) fn part<'b>(
        &mut self,
        xid: u32,
        kind: MultipartKind,
        more: bool,
        body: &'b [u8],
        max_bytes: usize,
    ) -> PartOutcome<'b> {
        let Some(at) = self.position(xid) else { return PartOutcome::Unknown };
        let Some(request) = self.list.get_mut(at) else { return PartOutcome::Unknown };
        if request.kind != RequestKind::Multipart(kind) {
            return PartOutcome::Unknown;
        }
        if request.parts.is_empty() && !more {
            self.remove(at);
            return PartOutcome::Last(Cow::Borrowed(body));
        }
        if self.kept + body.len() > max_bytes {
            self.remove(at);
            return PartOutcome::Overflow;
        }
        append(&mut request.parts, body, max_bytes);
        self.kept += body.len();
        if more { PartOutcome::Kept } else { PartOutcome::Last(Cow::Owned(self.remove(at).parts)) }
    }

    /// Ends one request that was made at `latest` or earlier, if any.
    pub(crate) fn expire(&mut self, latest: Duration) -> Option<(u32, RequestKind)> {
        // Bounded: each turn ends one.
        loop {
            let at = self.list.iter().position(|request| request.since <= latest)?;
            let request = self.remove(at);
            if !request.is_guard {
                return Some((request.xid, request.kind));
            }
        }
    }

    /// Total bytes of all parts kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, RequestKind)> + '_ {
        let requests = self.list.iter().filter(|request| !request.is_guard);
        requests.map(|request| (request.xid, request.kind))
    }

    #[cfg(test)]
    pub(crate) fn heap_bytes(&self) -> usize {
        let parts = self.list.iter().map(|request| request.parts.capacity()).sum::<usize>();
        self.list.capacity() * size_of::<PendingRequest>() + parts
    }

    fn position(&self, xid: u32) -> Option<usize> {
        self.list.iter().position(|request| request.xid == xid)
    }

    fn remove(&mut self, at: usize) -> PendingRequest {
        let request = self.list.swap_remove(at);
        self.kept -= request.parts.len();
        if self.list.is_empty() {
            self.list = Vec::new();
        }
        request
    }
}

/// Appends. The capacity doubles as usual, but not beyond `max` bytes.
fn append(parts: &mut Vec<u8>, body: &[u8], max: usize) {
    let len = parts.len() + body.len();
    if len > parts.capacity() {
        let capacity = len.max(parts.capacity().saturating_mul(2).min(max));
        parts.reserve_exact(capacity - parts.len());
    }
    parts.extend_from_slice(body);
}
