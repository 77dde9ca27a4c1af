//! Messages that the thread of the apps writes.

use std::time::Duration;

use bellrock_api::openflow::{Out, RequestKind, xid::XidSource};
use bellrock_api::runtime::{Expected, Requests};
use bellrock_api::{AppId, Cookie, Error, Match, Network, Port, Result, Switch, SwitchInfo};

use crate::link::{Parcel, SwitchLink};

/// Length of the buffer: what an app may write for one event, in bytes. A parcel of this length
/// fits the send buffer of a worker.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes messages to switches in the thread of the apps.
///
/// What is written for an event stays in the writer until [`post`](Self::post), so that an app that
/// fails can be undone to a [`Mark`].
pub struct Writer {
    out: Out,
    recorder: Recorder,
    passed: Vec<u8>,
}

/// The state of a [`Writer`] at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    written: usize,
    expected: usize,
    passed: usize,
}

impl Default for Writer {
    fn default() -> Self {
        let recorder = Recorder::default();
        Writer { out: Out::with_capacity(BUFFER_BYTES), recorder, passed: Vec::new() }
    }
}

impl Writer {
    /// Writes to a switch. `xids` is the source of its transaction ids, one for each link. `now` is
    /// the time of the controller's clock.
    ///
    /// # Errors
    /// [`Error::Full`] if too much waits for the switch's worker already; those of `write`.
    pub fn write<T>(
        &mut self,
        link: &SwitchLink,
        info: &SwitchInfo,
        (xids, now): (&mut XidSource, Duration),
        write: impl FnOnce(&mut Switch<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if link.is_full() {
            return Err(Error::Full(link.dpid()));
        }
        write(&mut Switch::new(info, &mut self.out, xids, &mut self.recorder, now, link.app()))
    }

    /// Passes a packet_in, a whole message, on to the rest of the chain.
    pub fn pass(&mut self, message: &[u8]) {
        self.passed.extend_from_slice(message);
    }

    /// The state now.
    #[must_use]
    pub fn mark(&self) -> Mark {
        let (written, expected) = (self.out.len(), self.recorder.0.len());
        Mark { written, expected, passed: self.passed.len() }
    }

    /// Number of bytes written since the last call of [`post`](Self::post).
    #[must_use]
    pub fn written(&self) -> usize {
        self.out.len()
    }

    /// Discards everything since a mark.
    pub fn undo_to(&mut self, mark: Mark) {
        self.out.truncate(mark.written);
        self.recorder.0.truncate(mark.expected);
        self.passed.truncate(mark.passed);
    }

    /// Sends everything to the worker of a switch. `network` is the app's. All since the last call
    /// must have been written to this switch.
    pub fn post(&mut self, link: &SwitchLink, network: &Network) {
        if self.out.is_empty() && self.passed.is_empty() && self.recorder.0.is_empty() {
            return;
        }
        link.push(Parcel::Written {
            messages: self.out.as_slice().into(),
            expected: self.recorder.0.as_slice().into(),
            passed: self.passed.as_slice().into(),
        });
        self.out.clear();
        self.recorder.0.clear();
        self.passed.clear();
        // If its mailbox is full, the worker looks once a second. If the switch is down, nothing
        // can be sent.
        let _ = network.resume(link.dpid());
    }

    /// Reports that the app failed at an event of this switch, which counts as a panic.
    pub fn fault(&mut self, link: &SwitchLink, network: &Network, why: &str) {
        link.push(Parcel::Fault { why: why.into(), version: link.code_version() });
        let _ = network.resume(link.dpid());
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({} bytes)", self.out.len())
    }
}

/// Records what a [`Switch`] expects, for the worker.
#[derive(Debug, Default)]
struct Recorder(Vec<Expected>);

impl Requests for Recorder {
    fn expect_answer(&mut self, xid: u32, kind: RequestKind, _: Duration) -> Result<(), Error> {
        self.0.push(Expected::Answer { xid, kind });
        Ok(())
    }

    fn expect_overtaken(&mut self, request: u32, barrier: u32, _: Duration) {
        self.0.push(Expected::Overtaken { request, barrier });
    }

    fn expect_nothing(&mut self, xid: u32) {
        self.0.retain(|expected| match expected {
            Expected::Answer { xid: own, .. } | Expected::Removal { xid: own, .. } => *own != xid,
            Expected::Overtaken { request, .. } => *request != xid,
            Expected::Allowed { .. } => true,
        });
    }

    fn allow(&mut self, _: AppId, matching: &Match, until: Duration) {
        self.0.push(Expected::Allowed { matching: Box::new(matching.clone()), until });
    }

    fn expect_removal(
        &mut self,
        xid: u32,
        cookie: Cookie,
        out_port: Port,
        _: Duration,
    ) -> Result<(), Error> {
        self.0.push(Expected::Removal { xid, cookie, out_port });
        Ok(())
    }
}
