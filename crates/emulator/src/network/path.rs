//! The hops that frames take, remembered on request.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::packet::{Frame, digest};
use crate::topology::{End, HostId};

/// What tells a frame that a host or a controller sent from all others. Its copies share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(u64);

impl TraceId {
    /// Of frames whose hops are not remembered.
    const NONE: TraceId = TraceId(0);
}

/// A frame has gone from one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Which frame.
    pub trace: TraceId,
    /// The host that sent it; None for one that a controller made.
    pub source: Option<HostId>,
    /// When it arrived.
    pub at: Duration,
    /// Where it left.
    pub from: End,
    /// Where it arrived.
    pub to: End,
    /// Whether its destination is a group.
    pub group: bool,
}

/// Where a frame comes from that is put on a link.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A host sends it.
    Host(HostId),
    /// A switch passes on this one, as it is or changed.
    Trace(TraceId),
    /// A controller has it sent: a frame that it was given, or its own.
    Controller,
    /// A switch does something by itself.
    Switch,
}

/// The hops that are remembered.
pub(super) struct Hops {
    most: usize,
    hops: VecDeque<Hop>,
    last: u64,
    /// Frames by their digest, with the host that sent them: what a controller gives back is known
    /// by its bytes. Never iterated, so its order does not matter.
    known: HashMap<u64, TraceId>,
    /// The digests, oldest first; there are at most as many as hops.
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
