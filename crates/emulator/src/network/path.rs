//! The hops of frames, kept on request.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::packet::{Frame, digest};
use crate::topology::{End, HostId};

/// Identifies a frame that a host or a controller sent. Its copies share the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(u64);

impl TraceId {
    /// The id of all frames while hops are not kept.
    const NONE: TraceId = TraceId(0);
}

/// A frame went from one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The frame.
    pub trace: TraceId,
    /// The host that sent it; `None` if a controller made it.
    pub source: Option<HostId>,
    /// Time of arrival.
    pub at: Duration,
    /// The port where it left.
    pub from: End,
    /// The port where it arrived.
    pub to: End,
    /// Whether its destination is a group address.
    pub group: bool,
}

/// The source of a frame that is put on a link.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A host sends it.
    Host(HostId),
    /// A switch forwards this frame, changed or unchanged.
    Trace(TraceId),
    /// A controller sends it: a frame from a packet_in, or a new one.
    Controller,
    /// A switch does something by itself.
    Switch,
}

/// The hops that are kept.
pub(super) struct Hops {
    most: usize,
    hops: VecDeque<Hop>,
    last: u64,
    /// Trace ids by the digest of the frame, to recognise a frame that a controller sends back.
    /// Never iterated, so the order does not matter.
    known: HashMap<u64, TraceId>,
    /// The digests, the oldest first; at most as many as hops.
    digests: VecDeque<u64>,
    sources: HashMap<TraceId, HostId>,
    traces: VecDeque<TraceId>,
}

impl Hops {
    pub(super) fn new(most: usize) -> Self {
        Hops {
            most,
            hops: VecDeque::new(),
            last: 0,
            known: HashMap::new(),
            digests: VecDeque::new(),
            sources: HashMap::new(),
            traces: VecDeque::new(),
        }
    }

    /// The id of a frame that is put on a link.
    #[inline]
    pub(super) fn begin(&mut self, source: Source, frame: &Frame) -> TraceId {
        if self.most == 0 { TraceId::NONE } else { self.identify(source, frame) }
    }

    fn identify(&mut self, source: Source, frame: &Frame) -> TraceId {
        let digest = digest(frame);
        let known = self.known.get(&digest).copied();
        let trace = match source {
            Source::Trace(trace) => trace,
            Source::Controller | Source::Switch => known.unwrap_or_else(|| self.fresh(None)),
            Source::Host(host) => self.fresh(Some(host)),
        };
        if known != Some(trace) {
            if self.digests.len() == self.most
                && let Some(oldest) = self.digests.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.digests.push_back(digest);
            self.known.insert(digest, trace);
        }
        trace
    }

    fn fresh(&mut self, source: Option<HostId>) -> TraceId {
        self.last += 1;
        let trace = TraceId(self.last);
        if let Some(host) = source {
            if self.traces.len() == self.most
                && let Some(oldest) = self.traces.pop_front()
            {
                self.sources.remove(&oldest);
            }
            self.traces.push_back(trace);
            self.sources.insert(trace, host);
        }
        trace
    }

    #[inline]
    pub(super) fn note(
        &mut self,
        trace: TraceId,
        at: Duration,
        [from, to]: [End; 2],
        frame: &Frame,
    ) {
        if self.most == 0 {
            return;
        }
        if self.hops.len() == self.most {
            self.hops.pop_front();
        }
        let group = frame.first().is_some_and(|byte| byte & 1 != 0);
        let source = self.sources.get(&trace).copied();
        self.hops.push_back(Hop { trace, source, at, from, to, group });
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Hop> {
        self.hops.iter()
    }

    pub(super) fn forget(&mut self) {
        self.hops.clear();
    }
}
