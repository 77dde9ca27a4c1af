//! The switch, as handlers use it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bellrock_openflow::{
    Action, Bytes, EncodeError, Filling, FlowMod, FlowStatsRequest, List, MacAddr, Match,
    MultipartRequest, Out, PacketOut, Port, RequestBody, RequestKind, ToSwitch, Version, frame,
    xid,
};

use crate::packet::Solicitation;
use crate::role::refuse_role_change;
use crate::runtime::{Expected, SwitchControl};
use crate::{AppId, AsFlowMod, Cookie, Dpid, Error, FlowTemplate, PacketIn, Result, SwitchInfo};

/// Maximum number of allowed matches of a switch that wait for a flow ([`Switch::allow`]).
pub const MAX_ALLOWED: usize = 256;

/// A transaction id. Answers and errors of the switch repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Xid(pub u32);

/// Pending requests of a connection, for runtimes.
pub trait Requests {
    /// Notes that a request of this kind is about to be sent with this id.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`].
    fn expect_answer(&mut self, xid: u32, kind: RequestKind, now: Duration) -> Result<(), Error>;

    /// Notes that a barrier is about to be sent behind the request `request`. If the barrier's
    /// reply comes first, the request gets no answer.
    fn expect_overtaken(&mut self, request: u32, barrier: u32, now: Duration) {
        let _ = (request, barrier, now);
    }

    /// Notes that the message with this id was discarded: it gets no answer.
    fn expect_nothing(&mut self, xid: u32);

    /// Notes that a 1.0 request for flow statistics is about to be sent with this id. The reported
    /// flows with `cookie` that send to `out_port` are then removed one by one ([`Port::ANY`]: to
    /// any port).
    ///
    /// # Errors
    /// [`Error::TooManyRequests`].
    fn expect_removal(
        &mut self,
        xid: u32,
        cookie: Cookie,
        out_port: Port,
        now: Duration,
    ) -> Result<(), Error>;

    /// Notes that this app allows the packets of `matching` until then ([`Switch::allow`]).
    fn allow(&mut self, app: AppId, matching: &Match, until: Duration) {
        let _ = (app, matching, until);
    }
}

/// One switch during one event: its data, and the buffer of messages that is sent after the event.
///
/// Messages are sent in the order in which they are written, all in one system call.
pub struct Switch<'a> {
    info: &'a SwitchInfo,
    out: &'a mut Out,
    xids: &'a mut xid::XidSource,
    requests: &'a mut dyn Requests,
    now: Duration,
    app: AppId,
}

impl<'a> Switch<'a> {
    /// For runtimes: the switch `info` for this app. Messages go to `out`.
    #[must_use]
    #[inline]
    pub fn new(
        info: &'a SwitchInfo,
        out: &'a mut Out,
        xids: &'a mut xid::XidSource,
        requests: &'a mut dyn Requests,
        now: Duration,
        app: AppId,
    ) -> Self {
        Switch { info, out, xids, requests, now, app }
    }

    /// The app that handles the event.
    pub(crate) fn app(&self) -> AppId {
        self.app
    }

    /// Data of the switch.
    #[must_use]
    #[inline]
    pub fn info(&self) -> &'a SwitchInfo {
        self.info
    }

    /// Its datapath id.
    #[must_use]
    pub fn dpid(&self) -> Dpid {
        self.info.dpid
    }

    /// OpenFlow version of the connection.
    #[must_use]
    #[inline]
    pub fn version(&self) -> Version {
        self.info.version
    }

    /// Time since the controller started. Constant during an event.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Cookies of the calling app's flows.
    #[must_use]
    pub fn cookie(&self) -> Cookie {
        self.app.cookie()
    }

    /// Sends a packet out of `port`, from the switch's buffer if the packet is buffered.
    ///
    /// # Errors
    /// [`Error::Truncated`] if neither the switch nor the message has the whole packet.
    #[inline]
    pub fn packet_out(&mut self, packet: &PacketIn<'_>, port: Port) -> Result<(), Error> {
        self.packet_out_with(packet, &[Action::output(port)])
    }

    /// Applies `actions` to a packet, in the switch's buffer if the packet is buffered. An empty
    /// list drops the packet, which frees the buffer.
    ///
    /// # Errors
    /// [`Error::Truncated`] if neither the switch nor the message has the whole packet.
    #[inline]
    pub fn packet_out_with(
        &mut self,
        packet: &PacketIn<'_>,
        actions: &[Action<'_>],
    ) -> Result<(), Error> {
        if packet.buffer_id().is_none() {
            return self.packet_out_whole(packet, actions);
        }
        self.write(&ToSwitch::PacketOut(PacketOut {
            buffer_id: packet.buffer_id(),
            in_port: packet.in_port(),
            actions: List::of(actions),
            data: Bytes(&[]),
        }))?;
        Ok(())
    }

    /// Applies `actions` to a packet as it came in the message. Does not use the switch's buffer,
    /// even if the packet is buffered.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the message does not have the whole packet.
    #[inline]
    pub fn packet_out_whole(
        &mut self,
        packet: &PacketIn<'_>,
        actions: &[Action<'_>],
    ) -> Result<(), Error> {
        if !packet.is_whole() {
            let (have, total) = (packet.data().len(), usize::from(packet.total_len()));
            return Err(Error::Truncated { received: have, total });
        }
        self.write(&ToSwitch::PacketOut(PacketOut {
            buffer_id: None,
            in_port: packet.in_port(),
            actions: List::of(actions),
            data: Bytes(packet.data()),
        }))?;
        Ok(())
    }

    /// Sends a new packet, which begins with its Ethernet header.
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub fn send_packet(&mut self, data: &[u8], actions: &[Action<'_>]) -> Result<(), Error> {
        self.write(&Self::own_packet(self.version(), data, actions))?;
        Ok(())
    }

    /// Answers an ARP request for the address `ip`: it is at `mac`. The reply goes out of the
    /// packet's ingress port, to the sender only, with the packet's VLAN tags. Returns whether the
    /// packet requested that address: probes (RFC 5227 §2.1.1) do; announcements and replies do
    /// not.
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub fn answer_arp(
        &mut self,
        packet: &PacketIn<'_>,
        ip: Ipv4Addr,
        mac: MacAddr,
    ) -> Result<bool, Error> {
        let Some(arp) = packet.arp().filter(|arp| arp.is_request_for(ip)) else { return Ok(false) };
        self.send_packet(&arp.reply(mac), &[Action::output(packet.in_port())])?;
        Ok(true)
    }

    /// Like [`Switch::answer_arp`], for an IPv6 address: neighbour discovery (RFC 4861 §7.2.4).
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub fn answer_solicitation(
        &mut self,
        packet: &PacketIn<'_>,
        ip: Ipv6Addr,
        mac: MacAddr,
    ) -> Result<bool, Error> {
        let solicitation =
            Solicitation::read(packet.data()).filter(|solicitation| solicitation.target == ip);
        let Some(solicitation) = solicitation else { return Ok(false) };
        self.send_packet(&solicitation.advertisement(mac), &[Action::output(packet.in_port())])?;
        Ok(true)
    }

    /// The message of [`Switch::send_packet`], to send it from elsewhere
    /// ([`crate::Network::send`]). It has no ingress port; in 1.3 that is the controller port
    /// (1.3.5 §7.3.7).
    #[must_use]
    pub fn own_packet<'p>(
        version: Version,
        data: &'p [u8],
        actions: &'p [Action<'p>],
    ) -> ToSwitch<'p> {
        let in_port = match version.sends_from_controller_port() {
            true => Port::CONTROLLER,
            false => Port::ANY,
        };
        let (actions, data) = (List::of(actions), Bytes(data));
        ToSwitch::PacketOut(PacketOut { buffer_id: None, in_port, actions, data })
    }

    /// Adds, changes or removes flows of this app. The upper half of the cookie becomes the app's
    /// ([`Cookie`]); the lower half stays. The priority, 0 to 4095, becomes one of the app's band
    /// ([`crate::PriorityBand`]). Flows of other apps are never changed.
    ///
    /// Takes a [`FlowMod`] or a [`Flow`](crate::Flow). Not confirmed: if the switch refuses,
    /// [`crate::Handler::error`] gets the returned id.
    ///
    /// # Errors
    /// [`Error::Priority`], [`Error::Encode`]. In 1.0 also for commands that match several flows:
    /// use [`Switch::remove`] to remove them.
    #[inline]
    pub fn install(&mut self, flow: &impl AsFlowMod) -> Result<Xid, Error> {
        flow.as_flow_mod(|flow| {
            let flow = self.app.owned_flow_mod(self.info.version, flow)?;
            self.write(&ToSwitch::FlowMod(flow))
        })
    }

    /// Allows the switch to forward the packets of `matching` for this time, of those that the app
    /// sees ([`App::sees`](crate::App::sees)): allow, then pass the packet on.
    ///
    /// In this time, the next flow that an app behind installs here for some of these packets is
    /// installed a second time: only for packets of `matching`, above the flow that brings them to
    /// this app, and with a hard timeout at the end of the time. Then the next packet comes to this
    /// app again. This app's own flows of priority
    /// [`PriorityBand::MIDDLE`](crate::PriorityBand::MIDDLE) (the default) and above have priority
    /// over it, so a flow that drops these packets ends it at once.
    ///
    /// Only flows that handlers install count ([`Switch::install`]), not those that tasks program.
    /// An app behind that sees the packets too must allow them as well.
    ///
    /// The time is rounded up to seconds. At most [`MAX_ALLOWED`] matches of a switch wait for
    /// flows; the oldest ones give way.
    ///
    /// # Errors
    /// [`Error::Encode`] for a match that no switch of this version can have.
    pub fn allow(&mut self, matching: &Match, time: Duration) -> Result<(), Error> {
        matching.check()?;
        self.requests.allow(self.app, matching, self.now + time);
        Ok(())
    }

    /// Prepares a flow_mod that is sent millions of times with only a few different values, for
    /// [`Switch::install_for`] and [`Switch::install_from`], at switches of the same version.
    ///
    /// # Errors
    /// Those of [`Switch::install`]; a flow_mod of more than [`MAX_TEMPLATE_LEN`] bytes.
    ///
    /// [`MAX_TEMPLATE_LEN`]: bellrock_openflow::MAX_TEMPLATE_LEN
    pub fn template(&self, flow: &FlowMod<'_>) -> Result<FlowTemplate, Error> {
        self.app.template(self.info.version, flow)
    }

    /// Like [`Switch::install`], from a template, for flows that are installed millions of times.
    /// Set the values of the returned flow_mod, then [finish](Filling::finish) it.
    ///
    /// # Errors
    /// [`Error::Encode`], also for a template of another version.
    #[inline(always)]
    pub fn install_from<'f>(
        &'f mut self,
        template: &'f FlowTemplate,
    ) -> Result<Filling<'f>, Error> {
        if template.version() != self.info.version {
            let what = "a flow template of another version";
            return Err(EncodeError::Unsupported { what, version: self.info.version }.into());
        }
        Ok(template.fill(self.xids.next_count(), self.out)?)
    }

    /// Like [`Switch::install_from`], for the flow of a packet. The ingress port and the buffer of
    /// the packet, if any, are already set.
    ///
    /// # Errors
    /// [`Error::Encode`], also for a template of another version.
    #[inline(always)]
    pub fn install_for<'f>(
        &'f mut self,
        packet: &PacketIn<'_>,
        template: &'f FlowTemplate,
    ) -> Result<Filling<'f>, Error> {
        Ok(template.fill_for(packet, self.xids.next_count(), self.out)?)
    }

    /// Removes this app's flows that `matching` covers and that send to `out_port` ([`Port::ANY`]:
    /// to any port). Flows of other apps stay.
    ///
    /// 1.0 cannot select flows by cookie. There, the controller requests the matching flows and
    /// removes this app's one by one after the reply. Without a reply,
    /// [`crate::Handler::unanswered`] gets the returned id, and the flows stay.
    ///
    /// # Errors
    /// [`Error::Encode`]; in 1.0 [`Error::TooManyRequests`].
    pub fn remove(&mut self, matching: &Match, out_port: Port) -> Result<Xid, Error> {
        let cookie = self.app.cookie();
        if self.version().selects_by_cookie() {
            let flow = FlowMod::delete(matching).out_port(out_port);
            return self.write(&ToSwitch::FlowMod(flow.cookie_mask(cookie.with(0), Cookie::MASK)));
        }
        let mark = self.mark();
        let flows = FlowStatsRequest { out_port, ..FlowStatsRequest::all(matching) };
        let request = MultipartRequest::of(RequestBody::Flow(flows));
        let xid = self.write(&ToSwitch::MultipartRequest(request))?;
        let result = self.requests.expect_removal(xid.0, cookie, out_port, self.now);
        self.or_undo(mark, result)?;
        let result = self.follow_with_barrier(xid);
        self.or_undo(mark, result)?;
        Ok(xid)
    }

    /// Writes a barrier behind a request: if only the barrier is answered, the wait ends.
    fn follow_with_barrier(&mut self, request: Xid) -> Result<(), Error> {
        let barrier = self.xids.next(xid::SESSION);
        ToSwitch::BarrierRequest.encode(self.info.version, barrier, self.out)?;
        self.requests.expect_overtaken(request.0, barrier, self.now);
        Ok(())
    }

    /// Requests statistics or descriptions; [`crate::Handler::reply`] gets the answer. A barrier
    /// follows the request: if the switch answers only the barrier, [`crate::Handler::unanswered`]
    /// is called at once.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`], [`Error::Encode`].
    pub fn request(&mut self, body: RequestBody<'_>) -> Result<Xid, Error> {
        self.send(&ToSwitch::MultipartRequest(MultipartRequest::of(body)))
    }

    /// Requests that the switch finish all earlier messages; [`crate::Handler::barrier`] is called
    /// then.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`], [`Error::Encode`].
    pub fn barrier(&mut self) -> Result<Xid, Error> {
        self.send(&ToSwitch::BarrierRequest)
    }

    /// Sends any message but a change of the controller's role. Flow_mods are treated as by
    /// [`Switch::install`].
    ///
    /// # Errors
    /// [`Error::RoleChange`]; [`Error::TooManyRequests`] for one that expects an answer; those of
    /// [`Switch::install`]; [`Error::Encode`].
    pub fn send(&mut self, message: &ToSwitch<'_>) -> Result<Xid, Error> {
        if let ToSwitch::FlowMod(flow) = message {
            return self.install(flow);
        }
        refuse_role_change(message)?;
        let Some(kind) = RequestKind::of(message) else { return self.write(message) };
        let mark = self.mark();
        let xid = self.write(message)?;
        let result = self.requests.expect_answer(xid.0, kind, self.now);
        self.or_undo(mark, result)?;
        if let RequestKind::Multipart(_) = kind {
            let result = self.follow_with_barrier(xid);
            self.or_undo(mark, result)?;
        }
        Ok(xid)
    }

    /// Discards what was written since `mark` if its answer cannot be tracked.
    fn or_undo(&mut self, mark: usize, result: Result<(), Error>) -> Result<(), Error> {
        if result.is_err() {
            self.undo_to(mark);
        }
        result
    }

    #[inline]
    fn write(&mut self, message: &ToSwitch<'_>) -> Result<Xid, Error> {
        let xid = self.xids.next(self.app.owner());
        message.encode(self.info.version, xid, self.out)?;
        Ok(Xid(xid))
    }

    #[inline]
    pub(crate) fn mark(&self) -> usize {
        self.out.len()
    }
}

impl Switch<'_> {
    /// Expects what another writer expected for a message. `None`: it may not be sent.
    fn expect(&mut self, expected: &Expected) -> Option<()> {
        let now = self.now;
        match *expected {
            Expected::Allowed { .. } => {}
            Expected::Answer { xid, kind } => {
                self.requests.expect_answer(xid, kind, now).ok()?;
            }
            Expected::Removal { xid, cookie, out_port } => {
                self.requests.expect_removal(xid, cookie, out_port, now).ok()?;
            }
            Expected::Overtaken { .. } => {}
        }
        Some(())
    }

    /// Appends messages one by one: requests that may be sent, and barriers behind them with ids of
    /// this session.
    #[cold]
    fn append_requests(
        &mut self,
        mut messages: &[u8],
        expected: &[Expected],
    ) -> Result<Vec<Xid>, Error> {
        let mut refused = Vec::new();
        while let Ok(Some(message)) = frame(messages) {
            let xid = message.header.xid;
            let is_its_own = |expected: &Expected| match expected {
                Expected::Answer { xid: own, .. } | Expected::Removal { xid: own, .. } => {
                    *own == xid
                }
                Expected::Overtaken { .. } | Expected::Allowed { .. } => false,
            };
            let barrier_of = |expected: &Expected| match expected {
                Expected::Overtaken { request, barrier } if *barrier == xid => Some(*request),
                _ => None,
            };
            if let Some(request) = expected.iter().find_map(barrier_of) {
                if !refused.contains(&Xid(request)) {
                    let barrier = self.xids.next(xid::SESSION);
                    ToSwitch::BarrierRequest.encode(self.info.version, barrier, self.out)?;
                    self.requests.expect_overtaken(request, barrier, self.now);
                }
            } else if let Some(expected) = expected.iter().find(|it| is_its_own(it))
                && self.expect(expected).is_none()
            {
                refused.push(Xid(xid));
            } else {
                self.out.append(message.bytes)?;
            }
            messages = messages.get(message.bytes.len()..).unwrap_or(&[]);
        }
        Ok(refused)
    }
}

impl SwitchControl for Switch<'_> {
    fn append(&mut self, messages: &[u8], expected: &[Expected]) -> Result<Vec<Xid>, Error> {
        if messages.len() > self.out.room() {
            return Err(EncodeError::Full.into());
        }
        for allowed in expected {
            if let Expected::Allowed { matching, until } = allowed {
                self.requests.allow(self.app, matching, *until);
            }
        }
        if !expected.is_empty() {
            return self.append_requests(messages, expected);
        }
        self.out.append(messages)?;
        Ok(Vec::new())
    }

    #[cold]
    fn undo_to(&mut self, mark: usize) {
        let mut undone = self.out.as_slice().get(mark..).unwrap_or(&[]);
        while let Ok(Some(message)) = frame(undone) {
            self.requests.expect_nothing(message.header.xid);
            undone = undone.get(message.bytes.len()..).unwrap_or(&[]);
        }
        self.out.truncate(mark);
    }
}
