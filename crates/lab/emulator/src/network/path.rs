//! The hops of frames, kept on request.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::packet::{EthernetFrame, digest};
use crate::topology::{HostIndex, LinkEnd};

/// Identifies a frame that a host or a controller sent. Its copies share the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(u64);

impl TraceId {
    /// The id of all frames while hops are not kept.
    const NONE: TraceId = TraceId(0);
}

/// A frame went from one port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHop {
    /// The frame.
    pub trace: TraceId,
    /// The host that sent it; `None` if a controller made it.
    pub source: Option<HostIndex>,
    /// Time of arrival.
    pub at: Duration,
    /// The port where it left.
    pub from: LinkEnd,
    /// The port where it arrived.
    pub to: LinkEnd,
    /// Whether its destination is a group address.
    pub group: bool,
}

/// The source of a frame that is put on a link.
#[derive(Clone, Copy)]
pub(super) enum FrameSource {
    /// A host sends it.
    Host(HostIndex),
    /// A switch forwards this frame, changed or unchanged.
    Trace(TraceId),
    /// A controller sends it: a frame from a packet_in, or a new one.
    Controller,
    /// A switch does something by itself.
    Switch,
}

/// The hops that are kept.
pub(super) struct FrameHops {
    maximum: usize,
    hops: VecDeque<FrameHop>,
    last: u64,
    /// Trace ids by the digest of the frame, to recognise a frame that a controller sends back.
    /// Never iterated, so the order does not matter.
    known: HashMap<u64, TraceId>,
    /// The digests, the oldest first; at most as many as hops.
    digests: VecDeque<u64>,
    sources: HashMap<TraceId, HostIndex>,
    traces: VecDeque<TraceId>,
}

impl FrameHops {
    pub(super) fn new(maximum: usize) -> Self {
        FrameHops {
            maximum,
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
    pub(super) fn begin(&mut self, source: FrameSource, frame: &EthernetFrame) -> TraceId {
        if self.maximum == 0 { TraceId::NONE } else { self.identify(source, frame) }
    }

    fn identify(&mut self, source: FrameSource, frame: &EthernetFrame) -> TraceId {
        let digest = digest(frame);
        let known = self.known.get(&digest).copied();
        let trace = match source {
            FrameSource::Trace(trace) => trace,
            FrameSource::Controller | FrameSource::Switch => {
                known.unwrap_or_else(|| self.fresh(None))
            }
            FrameSource::Host(host) => self.fresh(Some(host)),
        };
        if known != Some(trace) {
            if self.digests.len() == self.maximum
                && let Some(oldest) = self.digests.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.digests.push_back(digest);
            self.known.insert(digest, trace);
        }
        trace
    }

    fn fresh(&mut self, source: Option<HostIndex>) -> TraceId {
        self.last += 1;
        let trace = TraceId(self.last);
        if let Some(host) = source {
            if self.traces.len() == self.maximum
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
        [from, to]: [LinkEnd; 2],
        frame: &EthernetFrame,
    ) {
        if self.maximum == 0 {
            return;
        }
        if self.hops.len() == self.maximum {
            self.hops.pop_front();
        }
        let group = frame.first().is_some_and(|byte| byte & 1 != 0);
        let source = self.sources.get(&trace).copied();
        self.hops.push_back(FrameHop { trace, source, at, from, to, group });
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &FrameHop> {
        self.hops.iter()
    }

    pub(super) fn forget(&mut self) {
        self.hops.clear();
    }
}
