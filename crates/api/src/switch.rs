//! A switch, as a handler commands it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bellrock_openflow::{
    Action, Bytes, EncodeError, Filling, FlowMod, FlowStatsRequest, List, MacAddr, Match,
    MultipartRequest, Out, PacketOut, Port, RequestBody, ToSwitch, Version, frame, xid,
};

use crate::packet::Solicitation;
use crate::{AppId, Cookie, Dpid, Error, FlowTemplate, PacketIn, Result, SwitchInfo};

/// A transaction id: what comes back in the switch's answers and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Xid(pub u32);

/// What a runtime keeps of the messages of a connection that expect answers.
pub trait Requests {
    /// A message that expects an answer is about to be sent under this id.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`].
    fn expect_answer(
        &mut self,
        xid: u32,
        message: &ToSwitch<'_>,
        now: Duration,
    ) -> Result<(), Error>;

    /// A barrier is about to be sent behind the question with this id: where its reply comes first, no answer
    /// will come.
    fn expect_overtaken(&mut self, question: u32, barrier: u32, now: Duration) {
        let _ = (question, barrier, now);
    }

    /// The message with this id was taken back: no answer will come.
    fn expect_nothing(&mut self, xid: u32);

    /// A request for flow statistics of 1.0 is about to be sent under this id: the flows that the answer
    /// tells of are to be removed one by one, those with `cookie` and no others, and only where they
    /// send to `out_port` ([`Port::ANY`]: wherever they send to).
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
}

/// One switch, during one event: what is known of it, and the buffer that goes to it when the
/// event is over.
///
/// Messages go out in the order in which they are written, in one system call for as many as
/// there are.
pub struct Switch<'a> {
    info: &'a SwitchInfo,
    out: &'a mut Out,
    xids: &'a mut xid::Counter,
    requests: &'a mut dyn Requests,
    now: Duration,
    app: AppId,
}

impl<'a> Switch<'a> {
    /// For runtimes: the switch `info`, whose messages go to `out`, for this app.
    #[must_use]
    #[inline]
    pub fn new(
        info: &'a SwitchInfo,
        out: &'a mut Out,
        xids: &'a mut xid::Counter,
        requests: &'a mut dyn Requests,
        now: Duration,
        app: AppId,
    ) -> Self {
        Switch { info, out, xids, requests, now, app }
    }

    /// The app whose event it is.
    pub(crate) fn app(&self) -> AppId {
        self.app
    }

    /// What is known of it.
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

    /// The version that it speaks.
    #[must_use]
    #[inline]
    pub fn version(&self) -> Version {
        self.info.version
    }

    /// Time since the controller started. It stands still during an event.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// The cookies of the calling app's flows.
    #[must_use]
    pub fn cookie(&self) -> Cookie {
        self.app.cookie()
    }

    /// Sends a packet on, out of `port`, from the switch's buffer where it kept the packet.
    ///
    /// # Errors
    /// [`Error::Truncated`] when neither the switch nor the message has all of the packet.
    #[inline]
    pub fn packet_out(&mut self, packet: &PacketIn<'_>, port: Port) -> Result<(), Error> {
        self.packet_out_with(packet, &[Action::output(port)])
    }

    /// Does `actions` to a packet, in the switch's buffer where it kept the packet. No actions
    /// drop it, which frees the buffer.
    ///
    /// # Errors
    /// [`Error::Truncated`] when neither the switch nor the message has all of the packet.
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

    /// Does `actions` to a packet, as it came in the message. Where the switch kept it, its buffer is
    /// not used.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the message does not have all of the packet.
    #[inline]
    pub fn packet_out_whole(
        &mut self,
        packet: &PacketIn<'_>,
        actions: &[Action<'_>],
    ) -> Result<(), Error> {
        if !packet.is_whole() {
            let (have, total) = (packet.data().len(), usize::from(packet.total_len()));
            return Err(Error::Truncated { have, total });
        }
        self.write(&ToSwitch::PacketOut(PacketOut {
            buffer_id: None,
            in_port: packet.in_port(),
            actions: List::of(actions),
            data: Bytes(packet.data()),
        }))?;
        Ok(())
    }

    /// Sends a packet of the controller's own, from its Ethernet header on.
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub fn send_packet(&mut self, data: &[u8], actions: &[Action<'_>]) -> Result<(), Error> {
        self.write(&Self::own_packet(self.version(), data, actions))?;
        Ok(())
    }

    /// Answers a packet that asks by ARP for the address `ip`: it is at `mac`. The reply goes out of the port that
    /// the packet came in by, to the asker alone, with the packet's VLAN tags. Returns whether the packet asked
    /// for that address: probes (RFC 5227 §2.1.1) do; announcements and replies do not.
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub fn answer_arp(
        &mut self,
        packet: &PacketIn<'_>,
        ip: Ipv4Addr,
        mac: MacAddr,
    ) -> Result<bool, Error> {
        let Some(arp) = packet.arp().filter(|arp| arp.asks_for(ip)) else { return Ok(false) };
        self.send_packet(&arp.reply(mac), &[Action::output(packet.in_port())])?;
        Ok(true)
    }

    /// The same for an IPv6 address, by neighbour discovery (RFC 4861 §7.2.4).
    ///
    /// # Errors
    /// [`Error::Encode`].
    pub fn answer_solicitation(
        &mut self,
        packet: &PacketIn<'_>,
        ip: Ipv6Addr,
        mac: MacAddr,
    ) -> Result<bool, Error> {
        let asked = Solicitation::read(packet.data()).filter(|asked| asked.target == ip);
        let Some(asked) = asked else { return Ok(false) };
        self.send_packet(&asked.advertisement(mac), &[Action::output(packet.in_port())])?;
        Ok(true)
    }

    /// The message by which [`Switch::send_packet`] does that, for who is not the switch's handler
    /// ([`crate::Network::send`]). It came in nowhere: in 1.3 that is said as from the controller (1.3.5 §7.3.7).
    #[must_use]
    pub fn own_packet<'p>(
        version: Version,
        data: &'p [u8],
        actions: &'p [Action<'p>],
    ) -> ToSwitch<'p> {
        let in_port = match version {
            Version::V1_0 => Port::ANY,
            Version::V1_3 => Port::CONTROLLER,
        };
        let (actions, data) = (List::of(actions), Bytes(data));
        ToSwitch::PacketOut(PacketOut { buffer_id: None, in_port, actions, data })
    }

    /// Adds, changes or removes flows of this app. The upper half of the cookie becomes the app's own
    /// ([`Cookie`]), the lower half stays; the priority, 0 to 4095, becomes one of the app's band
    /// ([`crate::PriorityBand`]). Flows of others are not touched.
    ///
    /// Not confirmed: if the switch refuses, [`crate::Handler::error`] gets the id returned here.
    ///
    /// # Errors
    /// [`Error::Priority`], [`Error::Encode`]; in 1.0 for commands that mean several flows, too: to
    /// remove those, there is [`Switch::remove`].
    #[inline]
    pub fn install(&mut self, flow: &FlowMod<'_>) -> Result<Xid, Error> {
        let flow = self.app.own(self.info.version, flow)?;
        self.write(&ToSwitch::FlowMod(flow))
    }

    /// Prepares flows that are installed by the million, alike but for a dozen values: for
    /// [`Switch::install_for`] and [`Switch::install_from`], at switches of this one's version.
    ///
    /// # Errors
    /// Those of [`Switch::install`]; a flow_mod of more than [`MAX_TEMPLATE_LEN`] bytes.
    ///
    /// [`MAX_TEMPLATE_LEN`]: bellrock_openflow::MAX_TEMPLATE_LEN
    pub fn template(&self, flow: &FlowMod<'_>) -> Result<FlowTemplate, Error> {
        self.app.template(self.info.version, flow)
    }

    /// Adds, changes or removes flows as a template says: what [`Switch::install`] does, for flows
    /// that are installed by the million. The flow_mod gets its values then, and is
    /// [finished](Filling::finish).
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

    /// The same for the flow of a packet, which has its values from the start that the packet's message
    /// says: the ingress port, and the buffer that the packet waits in, if it does.
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

    /// Removes this app's flows that `matching` covers and that send to `out_port`
    /// ([`Port::ANY`]: wherever they send to). Flows of others stay.
    ///
    /// 1.0 cannot tell flows by their cookies. There the switch is asked for the flows that fit, and those
    /// of this app are removed one by one when it has told them. If it does not,
    /// [`crate::Handler::unanswered`] gets the id returned here, and the flows stay.
    ///
    /// # Errors
    /// [`Error::Encode`]; in 1.0 [`Error::TooManyRequests`].
    pub fn remove(&mut self, matching: &Match, out_port: Port) -> Result<Xid, Error> {
        let cookie = self.app.cookie();
        match self.version() {
            Version::V1_3 => {
                let flow = FlowMod::delete(matching).out_port(out_port);
                self.write(&ToSwitch::FlowMod(flow.cookie_mask(cookie.with(0), Cookie::MASK)))
            }
            Version::V1_0 => {
                let mark = self.mark();
                let flows = FlowStatsRequest { out_port, ..FlowStatsRequest::all(matching) };
                let request = MultipartRequest::of(RequestBody::Flow(flows));
                let xid = self.write(&ToSwitch::MultipartRequest(request))?;
                let asked = self.requests.expect_removal(xid.0, cookie, out_port, self.now);
                self.or_undo(mark, asked)?;
                let followed = self.follow(xid);
                self.or_undo(mark, followed)?;
                Ok(xid)
            }
        }
    }

    /// Writes a barrier behind a question, so that a switch which does not answer it is not waited for.
    fn follow(&mut self, question: Xid) -> Result<(), Error> {
        let barrier = self.xids.next(xid::SESSION);
        ToSwitch::BarrierRequest.encode(self.info.version, barrier, self.out)?;
        self.requests.expect_overtaken(question.0, barrier, self.now);
        Ok(())
    }

    /// Asks for statistics or descriptions; [`crate::Handler::reply`] gets the answer. A barrier follows the
    /// question: where the switch answers that one only, [`crate::Handler::unanswered`] is called at once.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`], [`Error::Encode`].
    pub fn request(&mut self, body: RequestBody<'_>) -> Result<Xid, Error> {
        self.send(&ToSwitch::MultipartRequest(MultipartRequest::of(body)))
    }

    /// Asks the switch to finish everything before; [`crate::Handler::barrier`] is told when.
    ///
    /// # Errors
    /// [`Error::TooManyRequests`], [`Error::Encode`].
    pub fn barrier(&mut self) -> Result<Xid, Error> {
        self.send(&ToSwitch::BarrierRequest)
    }

    /// Sends any message. A flow_mod is one of this app's, as by [`Switch::install`].
    ///
    /// # Errors
    /// [`Error::TooManyRequests`] for one that expects an answer; those of [`Switch::install`];
    /// [`Error::Encode`].
    pub fn send(&mut self, message: &ToSwitch<'_>) -> Result<Xid, Error> {
        if let ToSwitch::FlowMod(flow) = message {
            return self.install(flow);
        }
        let expects_answer = matches!(
            message,
            ToSwitch::MultipartRequest(_)
                | ToSwitch::BarrierRequest
                | ToSwitch::RoleRequest(_)
                | ToSwitch::GetAsyncRequest
                | ToSwitch::GetConfigRequest
                | ToSwitch::QueueGetConfigRequest(_)
                | ToSwitch::FeaturesRequest
                | ToSwitch::EchoRequest(_)
        );
        if !expects_answer {
            return self.write(message);
        }
        let mark = self.mark();
        let xid = self.write(message)?;
        let asked = self.requests.expect_answer(xid.0, message, self.now);
        self.or_undo(mark, asked)?;
        if matches!(message, ToSwitch::MultipartRequest(_)) {
            let followed = self.follow(xid);
            self.or_undo(mark, followed)?;
        }
        Ok(xid)
    }

    /// Takes back what was written since `mark` if nobody will wait for its answer.
    fn or_undo(&mut self, mark: usize, asked: Result<(), Error>) -> Result<(), Error> {
        if asked.is_err() {
            self.undo_to(mark);
        }
        asked
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

    /// For runtimes: takes back what was written since the buffer had this length.
    #[cold]
    pub fn undo_to(&mut self, mark: usize) {
        let mut taken_back = self.out.as_slice().get(mark..).unwrap_or(&[]);
        while let Ok(Some(message)) = frame(taken_back) {
            self.requests.expect_nothing(message.header.xid);
            taken_back = taken_back.get(message.bytes.len()..).unwrap_or(&[]);
        }
        self.out.truncate(mark);
    }
}
