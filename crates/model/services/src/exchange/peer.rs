//! What is known of the exchange with a peer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use bellrock_api::Dpid;

use super::digest::Buckets;
use super::frame::PeerFrame;
use super::outbox::Outbox;
use crate::discovery::MAX_SWITCHES;

/// What is known of the exchange with a peer.
#[derive(Default)]
pub(super) struct PeerState {
    pub(super) outbox: Outbox,
    /// The stream of frames that come from it, and the number of the last one.
    pub(super) stream: u64,
    pub(super) number: u64,
    /// Number of frames of the stream that were applied.
    pub(super) applied: u64,
    /// Number of frames that it was last reported.
    pub(super) reported: u64,
    pub(super) waiting: Arc<AtomicUsize>,
    /// The number of its last start.
    instance: Option<u64>,
    /// All its switches.
    switches: Arc<BTreeSet<Dpid>>,
    report: IncomingReport,
}

/// The report that a peer is about to make.
#[derive(Default)]
struct IncomingReport {
    switches: Buckets,
    hosts: Buckets,
    /// The switches that it has reported since the beginning.
    reported: BTreeSet<Dpid>,
}

/// What a frame means for those that come later.
#[derive(Default)]
pub(super) struct Noted {
    /// The peer has started again.
    pub(super) has_restarted: bool,
    /// A report has ended.
    pub(super) end: ReportEnd,
    /// All switches of the peer, for a digest.
    pub(super) switches: Arc<BTreeSet<Dpid>>,
}

/// The end of a report.
#[derive(Default)]
pub(super) struct ReportEnd {
    /// All switches of the reported buckets.
    pub(super) reported: Arc<BTreeSet<Dpid>>,
    /// All switches of the peer.
    pub(super) all: Arc<BTreeSet<Dpid>>,
    pub(super) switches: Buckets,
    pub(super) hosts: Buckets,
}

impl PeerState {
    /// A peer to which streams of frames go that are numbered after this one.
    pub(super) fn new(stream: u64) -> Self {
        PeerState { outbox: Outbox::after(stream), ..PeerState::default() }
    }

    /// A stream of frames of the peer begins.
    pub(super) fn begin(&mut self, stream: u64) {
        (self.stream, self.number, self.applied, self.reported) = (stream, 0, 0, 0);
        self.report = IncomingReport::default();
    }

    /// Notes a frame of the peer.
    pub(super) fn note(&mut self, frame: &PeerFrame) -> Noted {
        let mut noted = Noted::default();
        match frame {
            PeerFrame::Key { instance, .. } => {
                let before = self.instance.replace(*instance);
                noted.has_restarted = before.is_some_and(|before| before != *instance);
            }
            PeerFrame::Begin { switches, hosts } => {
                let (switches, hosts, reported) = (*switches, *hosts, BTreeSet::new());
                self.report = IncomingReport { switches, hosts, reported };
            }
            PeerFrame::Switch { facts, .. } => {
                let dpid = facts.dpid;
                if self.switches.len() < MAX_SWITCHES || self.switches.contains(&dpid) {
                    Arc::make_mut(&mut self.switches).insert(dpid);
                    self.report.reported.insert(dpid);
                }
            }
            PeerFrame::Left(dpids) => {
                for dpid in dpids {
                    Arc::make_mut(&mut self.switches).remove(dpid);
                    self.report.reported.remove(dpid);
                }
            }
            PeerFrame::End => noted.end = self.end_report(),
            PeerFrame::Digest { .. } => noted.switches = Arc::clone(&self.switches),
            _ => {}
        }
        noted
    }

    fn end_report(&mut self) -> ReportEnd {
        let IncomingReport { switches, hosts, reported } = std::mem::take(&mut self.report);
        Arc::make_mut(&mut self.switches)
            .retain(|dpid| !switches.has_switch(*dpid) || reported.contains(dpid));
        let (reported, all) = (Arc::new(reported), Arc::clone(&self.switches));
        ReportEnd { reported, all, switches, hosts }
    }
}
