//! The controller's end of one connection.

mod handshake;
mod messages;

use std::time::Duration;

use bellrock_openflow::{
    Action, Bytes, EncodeError, FlowFlags, FlowMod, Hello, Match, Out, Port, ToSwitch, Version,
    frame,
};

use crate::close::{Close, Stop};
use crate::description::SwitchDescription;
use crate::event::{Counters, Event};
use crate::hello;
use crate::limiter::Limiter;
use crate::requests::{RequestError, RequestKind, Requests};
use crate::settings::Settings;
use crate::xid;
use handshake::Stage;

/// How long packet-ins wait for what a switch is asked before it comes up, from the first of them: with
/// neither an answer nor the reply to the barrier behind the question, it comes up without. Timers that
/// fire at multiples of 50 ms make it 200 ms at the most.
pub const PACKET_WAIT: Duration = Duration::from_millis(150);

/// The controller's end of one connection.
///
/// The caller
/// - gives received bytes to [`Controller::next`], message by message, and calls
///   [`Controller::received`] once for each read;
/// - sends what is written to `out`;
/// - calls [`Controller::timeout`] when [`Controller::deadline`] has passed;
/// - closes the connection when one of them returns a [`Close`].
///
/// Once the handshake is over and the switch was taken, it has nothing on the heap while no request
/// is unanswered.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    stage: Stage,
    /// The version agreed on; the highest of ours before.
    version: Version,
    xids: xid::Counter,
    /// When the connection began, in the handshake; then when the peer last showed life, or an
    /// echo was sent to it.
    since: Duration,
    /// When the first packet-in came, if one came before the handshake was over.
    packets_since: Option<Duration>,
    /// An echo was sent, and nothing has come since.
    echoed: bool,
    /// The xid of a probe that is not answered yet.
    probe: Option<u32>,
    errors: Limiter,
    requests: Requests,
    counters: Counters,
}

impl Controller {
    /// Starts a connection: writes our hello.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn new(settings: &Settings, now: Duration, out: &mut Out) -> Result<Self, EncodeError> {
        let mut xids = xid::Counter::default();
        Hello::write(settings.versions.as_slice(), xids.next(xid::SESSION), out)?;
        Ok(Controller {
            settings: *settings,
            stage: Stage::Hello,
            version: settings.versions.highest(),
            xids,
            since: now,
            packets_since: None,
            echoed: false,
            probe: None,
            errors: Limiter::default(),
            requests: Requests::default(),
            counters: Counters::default(),
        })
    }

    /// Takes the next message off `stream`, all bytes that were received and are not consumed yet.
    /// Says how many bytes it was and what it meant; `Ok(None)` means that more are needed.
    ///
    /// `out` gets the session's own answers. Where it is full, [`Event::OutFull`] comes with 0
    /// bytes consumed.
    ///
    /// # Errors
    /// The connection has to be closed.
    #[inline]
    pub fn next<'b>(
        &mut self,
        stream: &'b [u8],
        now: Duration,
        out: &mut Out,
    ) -> Result<Option<(usize, Event<'b>)>, Close> {
        let message = if matches!(self.stage, Stage::Hello) {
            hello::first_message(stream)?
        } else {
            frame(stream).map_err(|error| self.broken(stream, error, now, out))?
        };
        let Some(message) = message else { return Ok(None) };
        let mark = out.len();
        match self.message(message, now, out) {
            Ok(event) => Ok(Some((message.bytes.len(), event))),
            Err(Stop::Close(close)) => Err(close),
            Err(Stop::Full) if mark == 0 => Err(Close::CannotWrite(EncodeError::Full)),
            Err(Stop::Full) => {
                out.truncate(mark);
                Ok(Some((0, Event::OutFull)))
            }
        }
    }

    /// Bytes came: the peer is alive.
    #[inline]
    pub fn received(&mut self, now: Duration) {
        if self.is_ready() {
            self.since = now;
            self.echoed = false;
        }
    }

    /// The peer took bytes that had been waiting for it. That counts as life too: its own bytes may
    /// be waiting behind them.
    #[inline]
    pub fn drained(&mut self, now: Duration) {
        self.received(now);
    }

    /// When [`Controller::timeout`] has to be called. Later life moves it on, so ask again.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let settings = &self.settings;
        let deadline = self.since.saturating_add(match (&self.stage, self.echoed) {
            (Stage::Ready(_), false) => settings.echo_after,
            (Stage::Ready(_), true) => settings.dead_after,
            _ => settings.handshake_timeout,
        });
        match (&self.stage, self.packets_since) {
            (Stage::Describing(_), Some(since)) => deadline.min(since + PACKET_WAIT),
            _ => deadline,
        }
    }

    /// Does what is due: sends an echo, or finds that the handshake or the peer's life is over.
    /// Does nothing before the deadline. Returns whether it ended the handshake, as [`Event::Ready`]
    /// does: what the switch has not described of itself is waited for no longer.
    ///
    /// An echo that does not fit `out` is not sent, and the peer is given the same time: with a
    /// full `out`, taking bytes is what shows its life.
    ///
    /// # Errors
    /// The connection has to be closed.
    pub fn timeout(&mut self, now: Duration, out: &mut Out) -> Result<bool, Close> {
        if now < self.deadline() {
            return Ok(false);
        }
        if matches!(self.stage, Stage::Describing(_)) {
            self.since = now;
            self.undescribed();
            return Ok(true);
        }
        match (self.stage.waiting_for(), self.echoed) {
            (Some(waiting_for), _) => Err(Close::HandshakeTimeout { waiting_for }),
            (None, true) => Err(Close::Dead),
            (None, false) => {
                self.since = now;
                self.echoed = true;
                match self.echo(out) {
                    Ok(_) | Err(EncodeError::Full) => Ok(false),
                    Err(error) => Err(Close::CannotWrite(error)),
                }
            }
        }
    }

    /// Sends an echo at once, to find out whether the switch is alive; [`Event::ProbeAnswered`]
    /// comes if it is. A second probe takes the place of the first.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn probe(&mut self, out: &mut Out) -> Result<(), EncodeError> {
        self.probe = Some(self.echo(out)?);
        Ok(())
    }

    /// The version agreed on. Before that, the highest that is spoken here.
    #[must_use]
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the handshake is over.
    #[must_use]
    #[inline]
    pub fn is_ready(&self) -> bool {
        matches!(self.stage, Stage::Ready(_))
    }

    /// The switch, once, after [`Event::Ready`].
    pub fn take_switch(&mut self) -> Option<SwitchDescription> {
        match &mut self.stage {
            Stage::Ready(switch) => switch.take().map(|switch| *switch),
            _ => None,
        }
    }

    /// A new xid of `owner`; see [`crate::xid`].
    #[inline]
    pub fn next_xid(&mut self, owner: u8) -> u32 {
        self.xids.next(owner)
    }

    /// Registers a request that the caller writes: its reply, and an error about it, come as events
    /// then. A reply to a request that is not registered is counted and dropped.
    ///
    /// # Errors
    /// Too many are unanswered, or the xid is in use.
    pub fn request(
        &mut self,
        xid: u32,
        kind: RequestKind,
        now: Duration,
    ) -> Result<(), RequestError> {
        self.split().1.request(xid, kind, now)
    }

    /// Sends a barrier behind a question, a request that was registered: where its reply comes without an
    /// answer before it, [`Event::Silent`] ends the question. A switch answers a barrier after all that
    /// stands before it (1.0 §5.3.7, 1.3.5 §7.3.8).
    ///
    /// # Errors
    /// [`EncodeError::Full`]. The question is then ended by its answer or by time alone.
    pub fn follow(
        &mut self,
        question: u32,
        now: Duration,
        out: &mut Out,
    ) -> Result<(), EncodeError> {
        let barrier = self.xids.next(xid::SESSION);
        ToSwitch::BarrierRequest.encode(self.version, barrier, out)?;
        self.requests.follow(&[question], barrier, now);
        Ok(())
    }

    /// The transaction ids and the requests, each to be used beside the other.
    #[inline]
    pub fn split(&mut self) -> (&mut xid::Counter, Pending<'_>) {
        let Controller { xids, requests, settings, .. } = self;
        (xids, Pending { requests, max_requests: settings.max_requests })
    }

    /// Gives up a request that has waited for its answer longer than
    /// [`Settings::request_timeout`], and says which; `None` when there is none. To be asked every
    /// now and then, until it says `None`.
    pub fn give_up(&mut self, now: Duration) -> Option<(u32, RequestKind)> {
        self.requests.expire(now.checked_sub(self.settings.request_timeout)?)
    }

    /// The requests that are unanswered. When the connection ends, they never will be.
    pub fn unanswered(&self) -> impl Iterator<Item = (u32, RequestKind)> + '_ {
        self.requests.iter()
    }

    /// Bytes of unfinished multipart replies that are kept. All else that a session holds is of
    /// fixed size.
    #[must_use]
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.requests.kept()
    }

    /// Counts since this was last called.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }

    /// Writes the entry that sends packets without a flow to the controller, whole and unbuffered,
    /// and says its xid. 1.3 drops them without (1.3.5 §5.4); 1.0 sends them anyway, so nothing is
    /// written there. The switch tells when somebody removes it.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn table_miss(&mut self, cookie: u64, out: &mut Out) -> Result<Option<u32>, EncodeError> {
        if self.version == Version::V1_0 {
            return Ok(None);
        }
        let (any, actions) = (Match::any(), [Action::output(Port::CONTROLLER)]);
        let entry = FlowMod::add(&any).priority(0).cookie(cookie).actions(&actions);
        let entry = entry.flags(FlowFlags::SEND_FLOW_REM);
        let xid = self.xids.next(xid::SESSION);
        ToSwitch::FlowMod(entry).encode(self.version, xid, out)?;
        Ok(Some(xid))
    }

    fn echo(&mut self, out: &mut Out) -> Result<u32, EncodeError> {
        let xid = self.xids.next(xid::SESSION);
        ToSwitch::EchoRequest(Bytes(&[])).encode(self.version, xid, out)?;
        Ok(xid)
    }
}

/// The requests of a session that are not answered.
#[derive(Debug)]
pub struct Pending<'s> {
    requests: &'s mut Requests,
    max_requests: u16,
}

impl Pending<'_> {
    /// See [`Controller::request`].
    ///
    /// # Errors
    /// Too many are unanswered, or the xid is in use.
    pub fn request(
        &mut self,
        xid: u32,
        kind: RequestKind,
        now: Duration,
    ) -> Result<(), RequestError> {
        self.requests.add(xid, kind, self.max_requests, now)
    }

    /// The same where so many other requests are unanswered that do not count among the most allowed:
    /// those of a caller who bounds them himself.
    ///
    /// # Errors
    /// As [`Pending::request`].
    pub fn request_beside(
        &mut self,
        others: usize,
        xid: u32,
        kind: RequestKind,
        now: Duration,
    ) -> Result<(), RequestError> {
        let others = u16::try_from(others).unwrap_or(u16::MAX);
        self.requests.add(xid, kind, self.max_requests.saturating_add(others), now)
    }

    /// Notes that a barrier which the caller writes stands behind a question: see [`Controller::follow`].
    pub fn follow(&mut self, question: u32, barrier: u32, now: Duration) {
        self.requests.follow(&[question], barrier, now);
    }

    /// Gives up a request: for one that is not answered in time, or could not be written. Says
    /// what it asked for.
    pub fn cancel(&mut self, xid: u32) -> Option<RequestKind> {
        self.requests.end(xid)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.requests.iter().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Switch, Versions};

    /// Bytes of an idle session. With the socket, the names, 48 ports and what the apps keep, a
    /// switch is to stay below 8 KiB.
    const MAX_SESSION_BYTES: usize = 256;

    #[test]
    fn an_idle_session_is_small_and_has_nothing_on_the_heap() {
        assert!(size_of::<Controller>() <= MAX_SESSION_BYTES, "{}", size_of::<Controller>());
        for version in [Version::V1_0, Version::V1_3] {
            let (mut up, mut down) = (Out::with_capacity(4096), Out::with_capacity(4096));
            let now = Duration::ZERO;
            let mut controller = Controller::new(&Settings::default(), now, &mut down).unwrap();
            let switch = SwitchDescription::new(1);
            let mut switch = Switch::new(switch, Versions::Only(version), &mut up).unwrap();
            let mut take_turns = |controller: &mut Controller, down: &mut Out| {
                let mut bytes = down.as_slice();
                while let Some((used, _)) = switch.next(bytes, &mut up).unwrap() {
                    bytes = &bytes[used..];
                }
                down.clear();
                let mut bytes = up.as_slice();
                while let Some((used, _)) = controller.next(bytes, now, down).unwrap() {
                    bytes = &bytes[used..];
                }
                up.clear();
            };
            while !controller.is_ready() {
                take_turns(&mut controller, &mut down);
            }
            controller.take_switch().unwrap();
            for _ in 0..64 {
                let xid = controller.next_xid(1);
                controller.request(xid, RequestKind::Barrier, Duration::ZERO).unwrap();
                ToSwitch::BarrierRequest.encode(version, xid, &mut down).unwrap();
            }
            assert!(controller.requests.heap_bytes() > 0);
            take_turns(&mut controller, &mut down);
            assert_eq!(controller.unanswered().count(), 0);
            // All that can point to the heap: the stage's box and the requests.
            assert!(matches!(controller.stage, Stage::Ready(None)));
            assert_eq!(controller.requests.heap_bytes(), 0);
        }
    }
}
