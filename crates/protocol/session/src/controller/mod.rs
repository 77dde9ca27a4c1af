//! The controller's end of a connection.

mod handshake;
mod messages;

use std::time::Duration;

use bellrock_openflow::{
    Action, Bytes, ConfigFlags, EncodeError, FlowFlags, FlowMod, Hello, Match, Out, Port,
    RequestKind, RoleExtension, RoleMessage, SwitchConfig, ToSwitch, Version, frame,
};
use bellrock_pace::RateLimit;

use crate::close::{CloseReason, Stop};
use crate::description::SwitchDescription;
use crate::event::{SessionCounters, SessionEvent};
use crate::hello;
use crate::requests::{RequestList, RequestRejected};
use crate::settings::{FirstRole, SessionSettings};
use crate::xid;
use handshake::HandshakeStage;

/// Maximum time that packet-ins wait for a switch's answers before it comes up, from the first
/// packet. If neither an answer nor the barrier's reply comes, the switch comes up without. With
/// timers at multiples of 50 ms, it is at most 200 ms.
pub const PACKET_WAIT: Duration = Duration::from_millis(150);

/// The controller's end of a connection.
///
/// The caller
/// - passes received bytes to [`ControllerSession::next`], message by message, and calls
///   [`ControllerSession::received`] once for each read;
/// - sends what is written to `out`;
/// - calls [`ControllerSession::timeout`] when [`ControllerSession::deadline`] has passed;
/// - closes the connection when one of them returns a [`CloseReason`].
///
/// After the handshake, with the switch taken and no request unanswered, it uses no heap memory.
#[derive(Debug)]
pub struct ControllerSession {
    settings: SessionSettings,
    stage: HandshakeStage,
    /// The agreed version; before, the highest of this end.
    version: Version,
    xids: xid::XidSource,
    /// `xids` as it was when [`ControllerSession::take_sent`] was called last, and one further for
    /// each echo request since then.
    counted_xids: xid::XidSource,
    /// Start of the connection during the handshake. Later, the last sign of life or the last echo
    /// request.
    since: Duration,
    /// Time of the first packet-in, if one came before the end of the handshake.
    packets_since: Option<Duration>,
    /// An echo request was sent, and nothing has come since.
    echoed: bool,
    /// The xid of an unanswered probe.
    probe: Option<u32>,
    errors: RateLimit,
    requests: RequestList,
    counters: SessionCounters,
}

impl ControllerSession {
    /// Starts a connection: writes a hello.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn new(
        settings: &SessionSettings,
        now: Duration,
        out: &mut Out,
    ) -> Result<Self, EncodeError> {
        let mut xids = xid::XidSource::default();
        Hello::write(settings.versions, xids.next(xid::SESSION), out)?;
        Ok(ControllerSession {
            settings: *settings,
            stage: HandshakeStage::Hello,
            version: settings.versions.highest(),
            xids,
            counted_xids: xid::XidSource::default(),
            since: now,
            packets_since: None,
            echoed: false,
            probe: None,
            errors: RateLimit::per_second(settings.max_errors_per_second.into()),
            requests: RequestList::default(),
            counters: SessionCounters::default(),
        })
    }

    /// Processes the next message of `stream`, which has all received bytes that are not consumed
    /// yet. Returns its length and its event; `Ok(None)` if more bytes are needed.
    ///
    /// `out` gets the session's own answers. If it is full, returns [`SessionEvent::OutFull`] with
    /// 0 bytes consumed.
    ///
    /// # Errors
    /// The connection must be closed.
    #[inline]
    pub fn next<'b>(
        &mut self,
        stream: &'b [u8],
        now: Duration,
        out: &mut Out,
    ) -> Result<Option<(usize, SessionEvent<'b>)>, CloseReason> {
        let message = if matches!(self.stage, HandshakeStage::Hello) {
            hello::first_message(stream)?
        } else {
            frame(stream).map_err(|error| self.broken(stream, error, now, out))?
        };
        let Some(message) = message else { return Ok(None) };
        let mark = out.len();
        match self.message(message, now, out) {
            Ok(event) => Ok(Some((message.bytes.len(), event))),
            Err(Stop::Close(close)) => Err(close),
            Err(Stop::Full) if mark == 0 => Err(CloseReason::CannotWrite(EncodeError::Full)),
            Err(Stop::Full) => {
                out.truncate(mark);
                Ok(Some((0, SessionEvent::OutFull)))
            }
        }
    }

    /// Notes that the peer is alive: bytes came, or it took waiting bytes, behind which its own may
    /// wait.
    #[inline]
    pub fn received(&mut self, now: Duration) {
        if self.is_ready() {
            self.since = now;
            self.echoed = false;
        }
    }

    /// Time when [`ControllerSession::timeout`] must be called. Signs of life postpone it.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let settings = &self.settings;
        let deadline = self.since.saturating_add(match (&self.stage, self.echoed) {
            (HandshakeStage::Ready(_), false) => settings.echo_after,
            (HandshakeStage::Ready(_), true) => settings.dead_after,
            _ => settings.handshake_timeout,
        });
        match (&self.stage, self.packets_since) {
            (HandshakeStage::Describing(_), Some(since)) => deadline.min(since + PACKET_WAIT),
            _ => deadline,
        }
    }

    /// Handles the deadline: sends an echo request, or ends the handshake or a dead connection.
    /// Does nothing before the deadline. Returns whether it ended the handshake, like
    /// [`SessionEvent::Ready`]: missing descriptions are no longer awaited.
    ///
    /// An echo request that does not fit `out` is not sent, and the peer gets the same time: with a
    /// full `out`, taken bytes are its sign of life.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn timeout(&mut self, now: Duration, out: &mut Out) -> Result<bool, CloseReason> {
        if now < self.deadline() {
            return Ok(false);
        }
        if matches!(self.stage, HandshakeStage::Describing(_)) {
            self.since = now;
            self.undescribed();
            return Ok(true);
        }
        match (self.stage.waiting_for(), self.echoed) {
            (Some(waiting_for), _) => Err(CloseReason::HandshakeTimeout { waiting_for }),
            (None, true) => Err(CloseReason::Dead),
            (None, false) => {
                self.since = now;
                self.echoed = true;
                match self.echo(out) {
                    Ok(_) | Err(EncodeError::Full) => Ok(false),
                    Err(error) => Err(CloseReason::CannotWrite(error)),
                }
            }
        }
    }

    /// Sends an echo request at once, to check whether the switch is alive. The answer is
    /// [`SessionEvent::ProbeAnswered`]. A second probe replaces the first.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn probe(&mut self, out: &mut Out) -> Result<(), EncodeError> {
        self.probe = Some(self.echo(out)?);
        Ok(())
    }

    /// The agreed version; before, the highest of this end.
    #[must_use]
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the handshake is over.
    #[must_use]
    #[inline]
    pub fn is_ready(&self) -> bool {
        matches!(self.stage, HandshakeStage::Ready(_))
    }

    /// Takes the switch, once, after [`SessionEvent::Ready`].
    pub fn take_switch(&mut self) -> Option<SwitchDescription> {
        match &mut self.stage {
            HandshakeStage::Ready(switch) => switch.take().map(|switch| *switch),
            _ => None,
        }
    }

    /// A new xid of `owner`; see [`crate::xid`].
    #[inline]
    pub fn next_xid(&mut self, owner: u8) -> u32 {
        self.xids.next(owner)
    }

    /// Registers a request that the caller writes. Its reply, or an error about it, becomes an
    /// event. A reply to an unregistered request is counted and dropped.
    ///
    /// # Errors
    /// Too many requests are unanswered, or the xid is in use.
    pub fn request(
        &mut self,
        xid: u32,
        kind: RequestKind,
        now: Duration,
    ) -> Result<(), RequestRejected> {
        self.split().1.request(xid, kind, now)
    }

    /// Writes a barrier behind a registered request. If the barrier's reply comes without an answer
    /// before it, [`SessionEvent::Silent`] ends the request. A switch answers a barrier after
    /// everything before it (1.0 §5.3.7, 1.3.5 §7.3.8).
    ///
    /// # Errors
    /// [`EncodeError::Full`]. Then only its answer or the time limit ends the request.
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

    /// The role with which the connection began.
    #[must_use]
    pub fn first_role(&self) -> FirstRole {
        self.settings.first_role
    }

    /// Sets the switch's configuration. The handshake does it, unless the connection begins as a
    /// [standby](crate::FirstRole::Standby).
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn configure(&mut self, out: &mut Out) -> Result<(), EncodeError> {
        let set_up = SwitchConfig {
            flags: ConfigFlags::empty(),
            miss_send_len: self.settings.miss_send_len,
        };
        let xid = self.xids.next(xid::SESSION);
        ToSwitch::SetConfig(set_up).encode(self.version, xid, out)
    }

    /// Requests a role for `owner`, and returns the xid of the request. [`SessionEvent::Role`] is
    /// the answer; [`SessionEvent::Error`] and [`SessionEvent::Silent`] end the request too. The
    /// caller bounds the number of such requests: they do not count among those of
    /// [`ControllerSession::request`].
    ///
    /// 1.0 has no roles. The request is that of Open vSwitch's extension there, without a
    /// generation id.
    ///
    /// # Errors
    /// [`EncodeError::Full`]; [`EncodeError::Unsupported`] in 1.0 for a request that changes no
    /// role.
    pub fn request_role(
        &mut self,
        owner: u8,
        role: RoleMessage,
        now: Duration,
        out: &mut Out,
    ) -> Result<u32, EncodeError> {
        let xid = self.xids.next(owner);
        let kind = if self.version.has_roles() {
            ToSwitch::RoleRequest(role).encode(self.version, xid, out)?;
            RequestKind::Role
        } else {
            RoleExtension::Request(role.role).write(self.version, xid, out)?;
            RequestKind::Experimenter
        };
        // Never refused: the id is new, and the caller bounds their number.
        let _ = self.requests.add(xid, kind, u16::MAX, now);
        // Without the barrier, only an answer or the time limit ends the request.
        let _ = self.follow(xid, now, out);
        Ok(xid)
    }

    /// The transaction ids and the requests, for use at the same time.
    #[inline]
    pub fn split(&mut self) -> (&mut xid::XidSource, PendingRequests<'_>) {
        let ControllerSession { xids, requests, settings, .. } = self;
        (xids, PendingRequests { requests, max_requests: settings.max_requests })
    }

    /// Gives up one request that has been unanswered for [`SessionSettings::request_timeout`], and
    /// returns it. Call it regularly, until it returns `None`.
    pub fn give_up(&mut self, now: Duration) -> Option<(u32, RequestKind)> {
        self.requests.expire(now.checked_sub(self.settings.request_timeout)?)
    }

    /// The unanswered requests. The end of the connection ends them all.
    pub fn unanswered(&self) -> impl Iterator<Item = (u32, RequestKind)> + '_ {
        self.requests.iter()
    }

    /// Bytes kept of unfinished multipart replies. All other memory of a session is of fixed size.
    #[must_use]
    #[inline]
    pub fn kept_bytes(&self) -> usize {
        self.requests.kept()
    }

    /// Takes the counts since the last call.
    pub fn take_counters(&mut self) -> SessionCounters {
        std::mem::take(&mut self.counters)
    }

    /// The source of transaction ids. The difference of two of its states is the number of messages
    /// that were written between them.
    #[must_use]
    #[inline]
    pub fn xids(&self) -> xid::XidSource {
        self.xids
    }

    /// Takes the number of messages that were written with an xid of the session since the last
    /// call, without echo requests.
    pub fn take_sent(&mut self) -> u32 {
        let sent = self.xids.given_since(self.counted_xids);
        self.counted_xids = self.xids;
        sent
    }

    /// Writes the table-miss entry, which sends whole, unbuffered packets to the controller, and
    /// returns its xid. Without it, 1.3 drops packets that match no flow (1.3.5 §5.4). 1.0 sends
    /// them anyway, so nothing is written. The switch reports the removal of the entry.
    ///
    /// # Errors
    /// [`EncodeError::Full`].
    pub fn table_miss(&mut self, cookie: u64, out: &mut Out) -> Result<Option<u32>, EncodeError> {
        if !self.version.has_table_miss_entries() {
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
        self.counted_xids.next_count();
        ToSwitch::EchoRequest(Bytes(&[])).encode(self.version, xid, out)?;
        Ok(xid)
    }
}

/// The unanswered requests of a session.
#[derive(Debug)]
pub struct PendingRequests<'s> {
    requests: &'s mut RequestList,
    max_requests: u16,
}

impl PendingRequests<'_> {
    /// See [`ControllerSession::request`].
    ///
    /// # Errors
    /// Too many requests are unanswered, or the xid is in use.
    pub fn request(
        &mut self,
        xid: u32,
        kind: RequestKind,
        now: Duration,
    ) -> Result<(), RequestRejected> {
        self.requests.add(xid, kind, self.max_requests, now)
    }

    /// Like [`PendingRequests::request`], where `others` requests do not count: the caller bounds
    /// them itself.
    ///
    /// # Errors
    /// As for [`PendingRequests::request`].
    pub fn request_beside(
        &mut self,
        others: usize,
        xid: u32,
        kind: RequestKind,
        now: Duration,
    ) -> Result<(), RequestRejected> {
        let others = u16::try_from(others).unwrap_or(u16::MAX);
        self.requests.add(xid, kind, self.max_requests.saturating_add(others), now)
    }

    /// Notes that the caller writes a barrier behind a request: see [`ControllerSession::follow`].
    pub fn follow(&mut self, question: u32, barrier: u32, now: Duration) {
        self.requests.follow(&[question], barrier, now);
    }

    /// Ends a request that was not answered in time or could not be written. Returns its kind.
    pub fn cancel(&mut self, xid: u32) -> Option<RequestKind> {
        self.requests.end(xid)
    }

    /// Number of unanswered requests.
    #[must_use]
    pub fn count(&self) -> usize {
        self.requests.iter().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SwitchSession;

    /// Maximum size of an idle session. With the socket, the names, 48 ports and the apps' state, a
    /// switch must stay below 8 KiB.
    const MAX_SESSION_BYTES: usize = 264;

    #[test]
    fn an_idle_session_is_small_and_has_nothing_on_the_heap() {
        assert!(
            size_of::<ControllerSession>() <= MAX_SESSION_BYTES,
            "{}",
            size_of::<ControllerSession>()
        );
        for version in Version::ALL {
            let (mut up, mut down) = (Out::with_capacity(4096), Out::with_capacity(4096));
            let now = Duration::ZERO;
            let mut controller =
                ControllerSession::new(&SessionSettings::default(), now, &mut down).unwrap();
            let switch = SwitchDescription::new(1);
            let mut switch = SwitchSession::new(switch, version.into(), &mut up).unwrap();
            let mut take_turns = |controller: &mut ControllerSession, down: &mut Out| {
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
            // The only pointers to the heap: the stage's box and the requests.
            assert!(matches!(controller.stage, HandshakeStage::Ready(None)));
            assert_eq!(controller.requests.heap_bytes(), 0);
        }
    }
}
