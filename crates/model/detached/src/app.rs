//! The app of the chain, and its handlers in the workers.

use std::mem;
use std::sync::Arc;

use bellrock_api::openflow::{FromSwitch, List, MAX_MESSAGE_LEN, MultipartReply, Out, ReplyBody};
use bellrock_api::runtime::SwitchControl;
use bellrock_api::{
    App, Batch, EarlierFlows, EncodeError, ErrorMessage, FlowRemoved, FlowStats, Forwards, Handler,
    HandlerError, Match, Needs, Network, PacketIn, PortStatus, Result, Scope, Switch, SwitchInfo,
    Verdict, Xid,
};

use crate::event::{DetachedEvent, encoded};
use crate::feed::Feed;
use crate::link::{AppCounts, MAX_WAITING_BYTES, Parcel, SwitchLink};

/// Maximum number of bytes of the flows of a switch that the app may adopt, as the switch reports
/// them. Further ones are removed. A removal is shorter than the report of its flow, so the app's
/// thread can remove all of them.
pub const MAX_ADOPT_BYTES: usize = MAX_WAITING_BYTES;

bellrock_api::counters! {
    /// What a detached app did not get.
    struct DetachedCounts: u64 {
        /// Packet_ins dropped because too many waited for the app's thread.
        packet_ins_dropped,
        /// Switches that went down for the app because too many events waited for its thread.
        switches_overrun,
        /// Messages of the app that are not sent: too many of its requests had no answer yet.
        requests_refused,
    }
}

/// Name and meaning of each counter of a detached app.
pub const DETACHED_COUNTERS: &[(&str, &str)] = DetachedCounts::ALL;

/// The events that the app's handlers want. Others are not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Packet_ins. Without them, switches get no table-miss entry for this app.
    pub packet_ins: bool,
    /// Changes of ports.
    pub port_status: bool,
    /// Removed flows.
    pub flow_removed: bool,
    /// A call each second.
    pub tick: bool,
}

/// What an app says of itself, as in [`App`].
#[derive(Clone, Debug)]
pub struct DetachedSettings {
    /// See [`App::name`].
    pub name: String,
    /// See [`App::forwards`].
    pub forwards: Forwards,
    /// See [`App::sees`].
    pub sees: Option<Vec<Match>>,
    /// See [`App::needs`].
    pub needs: Needs,
    /// See [`App::scope`].
    pub scope: Scope,
    /// See [`App::earlier_flows`]. Flows to adopt stay until the app's thread removes them.
    pub earlier_flows: EarlierFlows,
    /// The events that it wants.
    pub wanted: Wanted,
    /// Name and meaning of each of its own counters ([`SwitchLink::count`]).
    pub counters: Vec<(&'static str, &'static str)>,
}

/// An app whose handlers run in the thread that takes the events of a [`Feed`].
pub struct DetachedApp {
    settings: DetachedSettings,
    feed: Arc<Feed>,
    on_start: Box<dyn Fn(&Network) + Send + Sync>,
}

impl DetachedApp {
    /// Makes an app with these settings. `on_start` gets the app's network when the controller
    /// starts, or when each term of this node begins ([`App::start`]).
    pub fn new(
        settings: DetachedSettings,
        feed: &Arc<Feed>,
        on_start: impl Fn(&Network) + Send + Sync + 'static,
    ) -> Self {
        DetachedApp { settings, feed: Arc::clone(feed), on_start: Box::new(on_start) }
    }
}

impl App for DetachedApp {
    type Handler = DetachedHandler;

    fn name(&self) -> &str {
        &self.settings.name
    }

    fn wants_packet_ins(&self) -> bool {
        self.settings.wanted.packet_ins
    }

    fn forwards(&self) -> Forwards {
        self.settings.forwards
    }

    fn sees(&self) -> Option<Vec<Match>> {
        self.settings.sees.clone()
    }

    fn needs(&self) -> Needs {
        self.settings.needs
    }

    fn scope(&self) -> Scope {
        self.settings.scope
    }

    fn earlier_flows(&self) -> EarlierFlows {
        self.settings.earlier_flows
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        [DETACHED_COUNTERS, &self.settings.counters].concat()
    }

    fn start(&self, network: &Network) {
        (self.on_start)(network);
    }

    fn switch_up(&self, network: &Network, _: &SwitchInfo) -> DetachedHandler {
        DetachedHandler {
            feed: Arc::clone(&self.feed),
            network: network.clone(),
            wanted: self.settings.wanted,
            link: None,
            is_overrun: false,
            to_adopt: Vec::new(),
            adopt_bytes: 0,
            gathered: Vec::new(),
            counts: DetachedCounts::default(),
            app_counts: Arc::new(AppCounts::new(&self.settings.counters)),
        }
    }
}

/// The handler of a switch, in its worker: copies events into the feed, and sends what comes back.
pub struct DetachedHandler {
    feed: Arc<Feed>,
    network: Network,
    wanted: Wanted,
    /// `None`: the switch is not up for the app.
    link: Option<Arc<SwitchLink>>,
    /// Whether it waits for space to come up again.
    is_overrun: bool,
    /// Flows that the app's thread does not have yet, for the event that brings the switch up.
    to_adopt: Vec<u8>,
    /// Number of bytes of all flows to adopt.
    adopt_bytes: usize,
    /// Packet_ins of the current batch. Its memory is used again.
    gathered: Vec<u8>,
    counts: DetachedCounts,
    /// The app's own.
    app_counts: Arc<AppCounts>,
}

impl DetachedHandler {
    /// Brings the switch up for the app.
    fn begin(&mut self, info: &SwitchInfo) {
        let Some(app) = self.network.app_id() else { return };
        let (number, counts) = (self.feed.next_link(), Arc::clone(&self.app_counts));
        let place = (app, self.network.clone());
        let link = Arc::new(SwitchLink::new(number, info.dpid, info.version, place, counts));
        let up = DetachedEvent::SwitchUp(Arc::new(info.clone()), self.to_adopt.clone());
        self.is_overrun = !self.feed.push_event(&link, up);
        self.link = (!self.is_overrun).then_some(link);
        if !self.is_overrun {
            self.to_adopt = Vec::new();
        }
    }

    /// Queues an event. If it does not fit, the switch goes down for the app.
    fn push(&mut self, event: DetachedEvent) {
        let Some(link) = &self.link else { return };
        if self.feed.push_event(link, event) {
            return;
        }
        self.counts.switches_overrun += 1;
        self.is_overrun = true;
        self.end();
    }

    fn end(&mut self) {
        if let Some(link) = self.link.take() {
            self.feed.push_last(&link, DetachedEvent::SwitchDown);
        }
    }

    fn push_message(&mut self, message: &FromSwitch<'_>, xid: u32) -> Result<(), EncodeError> {
        let Some(link) = &self.link else { return Ok(()) };
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        let bytes = encoded(message, link.version(), xid, &mut out)?;
        self.push(match message {
            FromSwitch::FlowRemoved(_) => DetachedEvent::FlowRemoved(bytes),
            _ => DetachedEvent::Error(bytes),
        });
        Ok(())
    }
}

impl Handler for DetachedHandler {
    /// Leaves the decision to the app's thread. The flow stays until then.
    fn adopt(&mut self, switch: &mut Switch<'_>, flow: &FlowStats<'_>) -> Result<bool> {
        let mut out = Out::with_capacity(MAX_MESSAGE_LEN);
        let flows = [*flow];
        let report = MultipartReply::of(ReplyBody::Flow(List::of(&flows)));
        let report = FromSwitch::MultipartReply(report);
        let bytes = encoded(&report, switch.info().version, 0, &mut out)?;
        if self.adopt_bytes + bytes.len() > MAX_ADOPT_BYTES {
            return Ok(false);
        }
        self.adopt_bytes += bytes.len();
        if self.link.is_some() {
            self.push(DetachedEvent::Adopt(bytes));
            return Ok(self.link.is_some());
        }
        self.to_adopt.extend_from_slice(&bytes);
        Ok(true)
    }

    fn switch_up(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        self.begin(switch.info());
        Ok(())
    }

    fn packet_ins(&mut self, switch: &mut Switch<'_>, batch: &mut Batch<'_>) {
        if !self.wanted.packet_ins || self.link.is_none() {
            return;
        }
        let before = self.gathered.len();
        batch.for_each(switch, self);
        let Some(link) = &self.link else { return };
        let packets = mem::take(&mut self.gathered);
        if packets.len() > before && !self.feed.push_packets(link, &packets) {
            self.counts.packet_ins_dropped += count(&packets);
        }
        self.gathered = packets;
        self.gathered.clear();
    }

    fn packet_in(&mut self, _: &mut Switch<'_>, packet: &PacketIn<'_>) -> Result<Verdict> {
        self.gathered.extend_from_slice(packet.message());
        // The app's thread decides, and passes it on if it wants.
        Ok(Verdict::Consume)
    }

    fn port_status(&mut self, switch: &mut Switch<'_>, status: &PortStatus) -> Result<()> {
        // Even if no method of the app wants it: its data of the switch must be current.
        let info = Arc::new(switch.info().clone());
        self.push(DetachedEvent::PortStatus(Box::new(*status), info));
        Ok(())
    }

    fn flow_removed(&mut self, _: &mut Switch<'_>, flow: &FlowRemoved<'_>) -> Result<()> {
        if self.wanted.flow_removed {
            self.push_message(&FromSwitch::FlowRemoved(*flow), 0)?;
        }
        Ok(())
    }

    fn error(&mut self, _: &mut Switch<'_>, xid: Xid, error: &ErrorMessage<'_>) -> Result<()> {
        self.push_message(&FromSwitch::Error(*error), xid.0)?;
        Ok(())
    }

    fn unanswered(&mut self, _: &mut Switch<'_>, xid: Xid) -> Result<()> {
        self.push(DetachedEvent::Unanswered(xid.0));
        Ok(())
    }

    fn barrier(&mut self, _: &mut Switch<'_>, xid: Xid) -> Result<()> {
        self.push(DetachedEvent::Barrier(xid.0));
        Ok(())
    }

    fn tick(&mut self, switch: &mut Switch<'_>) -> Result<()> {
        if self.is_overrun && self.feed.has_space() {
            self.begin(switch.info());
        }
        if let Some(link) = &self.link {
            // The worker's mailbox was full when the app's thread called.
            if link.has_parcels() {
                let _ = self.network.resume(link.dpid());
            }
            if self.wanted.tick && !link.has_tick.swap(true, std::sync::atomic::Ordering::Relaxed) {
                self.push(DetachedEvent::Tick);
            }
        }
        Ok(())
    }

    fn resume(&mut self, switch: &mut Switch<'_>, passed_on: &mut Vec<u8>) -> Result<()> {
        let Some(link) = &self.link else { return Ok(()) };
        let counts = |parcel: &Parcel| !matches!(parcel, Parcel::Fault { version, .. } if *version != link.code_version());
        match std::iter::from_fn(|| link.pop()).find(counts) {
            None => Ok(()),
            Some(Parcel::Fault { why, .. }) => Err(HandlerError::fault(String::from(why))),
            Some(Parcel::Written { messages, expected, passed }) => {
                passed_on.extend_from_slice(&passed);
                let refused = switch.append(&messages, &expected)?;
                self.counts.requests_refused += refused.len() as u64;
                for xid in refused {
                    self.push(DetachedEvent::Unanswered(xid.0));
                }
                Ok(())
            }
        }
    }

    fn switch_down(&mut self, _: &SwitchInfo) {
        self.end();
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counts.iter().for_each(|(name, n)| report(name, n));
        self.app_counts.iter().for_each(|(name, n)| report(name, n));
    }
}

/// An app that is disabled gets no `switch_down`. Its thread hears of the end all the same.
impl Drop for DetachedHandler {
    fn drop(&mut self) {
        self.end();
    }
}

/// Number of whole messages.
fn count(mut messages: &[u8]) -> u64 {
    let mut n = 0;
    while let Ok(Some(message)) = bellrock_api::openflow::frame(messages) {
        messages = messages.get(message.bytes.len()..).unwrap_or(&[]);
        n += 1;
    }
    n
}
