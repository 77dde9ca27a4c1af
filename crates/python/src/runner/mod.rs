//! Calls the handlers of the apps: the thread of the apps takes events from the feed here.

mod shared;
mod start;

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bellrock::openflow::{FlowStats, FromSwitch, MultipartReply, ReplyBody, frame};
use bellrock::{Needs, Network, Scope, SwitchInfo};
use bellrock_detached::{Delivery, DetachedApp, DetachedEvent, Feed, SwitchLink};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyNone;
use tracing::info;

use crate::app_options::AppOptions;
use crate::message::{PyErrorMessage, PyFlowRemoved, PyPortStatus, decode};
use crate::network::PyNetwork;
use crate::packet::PyPacketIn;
use crate::packets::PyPacketIns;
use crate::stats::PyFlowStats;
use crate::switch::PySwitch;
use crate::verdict::PyVerdict;

pub(crate) use shared::Shared;

/// How long handlers may hold back the coroutines, and what was written for earlier packets.
const TURN: Duration = Duration::from_millis(5);

/// How long what was written for a packet may wait for the next packets that came with it.
const POST_AFTER: Duration = Duration::from_micros(500);

/// How long the thread waits for another event after it has handled one before it sleeps: being
/// woken takes as long. Nearly all of the latency of a lone packet is in wake-ups.
pub(crate) const SPIN: Duration = Duration::from_micros(40);

/// One app: an object in Python, and its network.
pub(crate) struct RunnerApp {
    name: String,
    /// Another version of its code may take its place.
    app: Mutex<Py<PyAny>>,
    network: Arc<OnceLock<Network>>,
    /// The network with which it has started: that of the term, for an app that runs once in a
    /// cluster.
    started: Mutex<Option<Network>>,
    scope: Scope,
    /// Whether its flows may stay when its code is replaced.
    flows_may_stay: bool,
    keeps_flows: bool,
    needs: Needs,
    sees_packets: bool,
}

impl RunnerApp {
    fn network(&self) -> PyResult<&Network> {
        self.network.get().ok_or_else(|| PyValueError::new_err("the controller has not started"))
    }

    fn python_network(&self, shared: &Arc<Shared>) -> PyResult<PyNetwork> {
        Ok(self.python_network_of(self.network()?, shared))
    }

    fn python_network_of(&self, network: &Network, shared: &Arc<Shared>) -> PyNetwork {
        PyNetwork::new(network, self.keeps_flows, self.needs, shared)
    }

    fn object(&self, py: Python<'_>) -> Py<PyAny> {
        self.app.lock().unwrap_or_else(PoisonError::into_inner).clone_ref(py)
    }

    fn started(&self) -> MutexGuard<'_, Option<Network>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The methods of a handler that get events. `None`: it has none of that name.
struct Handlers {
    switch: Py<PySwitch>,
    app: usize,
    /// The barrier after which the new version of the app gets the switch: the flows of the last
    /// one are gone then. Packets that come meanwhile are dropped.
    renewed_after: Option<u32>,
    adopt: Option<Py<PyAny>>,
    packet_in: Option<Py<PyAny>>,
    packet_ins: Option<Py<PyAny>>,
    port_status: Option<Py<PyAny>>,
    flow_removed: Option<Py<PyAny>>,
    error: Option<Py<PyAny>>,
    unanswered: Option<Py<PyAny>>,
    barrier: Option<Py<PyAny>>,
    tick: Option<Py<PyAny>>,
    switch_down: Option<Py<PyAny>>,
}

impl Handlers {
    fn of(handler: &Bound<'_, PyAny>, switch: Py<PySwitch>, app: usize) -> Self {
        let method = |name: &str| {
            handler.getattr(name).ok().filter(|method| method.is_callable()).map(Bound::unbind)
        };
        Handlers {
            switch,
            app,
            renewed_after: None,
            adopt: method("adopt"),
            packet_in: method("packet_in"),
            packet_ins: method("packet_ins"),
            port_status: method("port_status"),
            flow_removed: method("flow_removed"),
            error: method("error"),
            unanswered: method("unanswered"),
            barrier: method("barrier"),
            tick: method("tick"),
            switch_down: method("switch_down"),
        }
    }
}

/// Takes the events of all apps of a controller.
pub(crate) struct Runner {
    pub(crate) shared: Arc<Shared>,
    apps: Vec<RunnerApp>,
    links: Mutex<HashMap<u64, Arc<Handlers>>>,
    /// How long to wait for events without sleeping.
    spin: Duration,
    /// Called with the name of an app and an exception of one of its handlers.
    report: Py<PyAny>,
}

impl Runner {
    pub(crate) fn new(feed: Arc<Feed>, report: Py<PyAny>, spin: Duration) -> Self {
        let shared = Shared::new(feed);
        Runner { shared, apps: Vec::new(), links: Mutex::default(), spin, report }
    }

    /// Adds an app, and returns what stands for it in the chain. `on_start` is called with its
    /// network when the controller starts.
    ///
    /// # Errors
    /// `ValueError` for options that do not exist.
    pub(crate) fn add(
        &mut self,
        app: Py<PyAny>,
        options: &AppOptions,
        on_start: impl Fn(&Network) + Send + Sync + 'static,
    ) -> PyResult<DetachedApp> {
        let network = Arc::new(OnceLock::new());
        let (own, scope, place) = (Arc::clone(&network), options.scope()?, self.apps.len());
        let shared = Arc::clone(&self.shared);
        let detached = DetachedApp::new(options.settings()?, &self.shared.feed, move |network| {
            // It is the same in all terms.
            let _ = own.set(network.clone().with_term(None));
            on_start(network);
            if scope == Scope::Once {
                shared.begin_term(place, network);
            }
        });
        self.apps.push(RunnerApp {
            name: options.name.clone(),
            app: Mutex::new(app),
            network,
            started: Mutex::default(),
            scope,
            flows_may_stay: options.flows_may_stay(),
            keeps_flows: options.keeps_flows,
            needs: options.needs()?,
            sees_packets: options.sees_packets(),
        });
        Ok(detached)
    }

    /// Handles events and results for at most one turn. Returns whether more wait; if not, the next
    /// one wakes the thread.
    ///
    /// # Errors
    /// An exception that is to end the program: `KeyboardInterrupt`, `SystemExit`.
    pub(crate) fn turn(&self, py: Python<'_>) -> PyResult<bool> {
        let end = Instant::now() + TURN;
        let feed = &self.shared.feed;
        let mut may_spin = false;
        loop {
            self.shared.set_results(py)?;
            self.follow_terms(py)?;
            match feed.pop() {
                Some(delivery) => {
                    self.handle(py, delivery)?;
                    may_spin = !self.spin.is_zero();
                }
                // Other threads of the program have the interpreter meanwhile.
                None if mem::take(&mut may_spin) => py.detach(|| spin(feed, self.spin)),
                None if !feed.sleep() => continue,
                // A result may have come before `sleep`, and then nobody wakes.
                None => {
                    return Ok(!self.shared.results.is_empty() || !self.shared.terms.is_empty());
                }
            }
            if Instant::now() >= end {
                return Ok(true);
            }
        }
    }

    fn handle(&self, py: Python<'_>, Delivery { link, event }: Delivery) -> PyResult<()> {
        if let DetachedEvent::SwitchUp(info, to_adopt) = event {
            return self.switch_up(py, &link, info, &to_adopt);
        }
        let handlers = self.links().get(&link.number()).map(Arc::clone);
        let Some(handlers) = handlers else { return Ok(()) };
        let h = &*handlers;
        let switch = h.switch.bind(py);
        if let Some(barrier) = h.renewed_after {
            match event {
                DetachedEvent::Barrier(xid) | DetachedEvent::Unanswered(xid) if xid == barrier => {
                    return self.begin_at(py, &link, (h.app, h.switch.clone_ref(py)), &[]);
                }
                DetachedEvent::PortStatus(..) | DetachedEvent::SwitchDown => {}
                _ => return Ok(()),
            }
        }
        match event {
            DetachedEvent::SwitchUp(..) => Ok(()),
            DetachedEvent::Adopt(flow) => {
                self.adopt(py, &link, h, &flow)?;
                self.shared.writers().post();
                Ok(())
            }
            DetachedEvent::PacketIns(messages) => self.packet_ins(py, &link, h, &messages),
            DetachedEvent::PortStatus(status, info) => {
                switch.get().set_info(info);
                self.call(py, (&link, h.app), &h.port_status, || {
                    Ok((switch, PyPortStatus(*status)))
                })
            }
            DetachedEvent::FlowRemoved(bytes) => {
                self.call(py, (&link, h.app), &h.flow_removed, || match decode(&bytes)? {
                    FromSwitch::FlowRemoved(flow) => {
                        Ok((switch, PyFlowRemoved::new(link.app(), &flow)))
                    }
                    _ => Err(PyValueError::new_err("it is no flow_removed")),
                })
            }
            DetachedEvent::Error(bytes) => self.call(py, (&link, h.app), &h.error, || {
                let message = FromSwitch::decode(&bytes)
                    .map_err(|error| PyValueError::new_err(error.to_string()))?;
                match message.body {
                    FromSwitch::Error(error) => {
                        Ok((switch, message.xid, PyErrorMessage::from(error)))
                    }
                    _ => Err(PyValueError::new_err("it is no error")),
                }
            }),
            DetachedEvent::Unanswered(xid) => {
                self.call(py, (&link, h.app), &h.unanswered, || Ok((switch, xid)))
            }
            DetachedEvent::Barrier(xid) => {
                self.call(py, (&link, h.app), &h.barrier, || Ok((switch, xid)))
            }
            DetachedEvent::Tick => self.call(py, (&link, h.app), &h.tick, || Ok((switch,))),
            DetachedEvent::SwitchDown => {
                switch.get().set_down();
                self.links().remove(&link.number());
                self.call(py, (&link, h.app), &h.switch_down, || Ok((switch,)))
            }
        }
    }

    fn switch_up(
        &self,
        py: Python<'_>,
        link: &Arc<SwitchLink>,
        info: Arc<SwitchInfo>,
        to_adopt: &[u8],
    ) -> PyResult<()> {
        let of_link = |app: &RunnerApp| app.name == link.network().app();
        let Some(place) = self.apps.iter().position(of_link) else { return Ok(()) };
        let app = &self.apps[place];
        // One that runs once in a cluster has not started at this node, perhaps.
        let network = app.network.get_or_init(|| link.network().clone());
        let switch = PySwitch::new(link, network, &self.shared, (info, app.sees_packets));
        self.begin_at(py, link, (place, Py::new(py, switch)?), to_adopt)
    }

    /// Makes the handler of an app for a switch.
    fn begin_at(
        &self,
        py: Python<'_>,
        link: &Arc<SwitchLink>,
        (place, switch): (usize, Py<PySwitch>),
        to_adopt: &[u8],
    ) -> PyResult<()> {
        let app = &self.apps[place];
        self.shared.writers().begin();
        let network_object = app.python_network(&self.shared)?;
        let object = app.object(py);
        let made = object.call_method1(
            py,
            intern!(py, "switch_up"),
            (network_object, switch.clone_ref(py)),
        );
        // A handler of a wrong shape is the app's fault at this switch, as an exception is.
        let made = made.and_then(|handler| {
            if handler.is_none(py) {
                return Ok(object.bind(py).clone());
            }
            let handler = handler.into_bound(py);
            let check = py.import(intern!(py, "bellrock._check"))?;
            check.call_method1(intern!(py, "check_handler"), (&app.name, &handler))?;
            Ok(handler)
        });
        let handler = match made {
            Ok(handler) => handler,
            Err(error) => {
                self.fail(py, link, place, error)?;
                // It passes everything on.
                PyNone::get(py).to_owned().into_any()
            }
        };
        let handlers = Handlers::of(&handler, switch, place);
        self.adopt(py, link, &handlers, to_adopt)?;
        self.links().insert(link.number(), Arc::new(handlers));
        self.shared.writers().post();
        Ok(())
    }

    /// Asks the handler about flows of an earlier run, and removes those that it does not adopt.
    /// The removals are sent before all that the handler has written: it may have installed the
    /// same flow.
    fn adopt(
        &self,
        py: Python<'_>,
        link: &Arc<SwitchLink>,
        handlers: &Handlers,
        messages: &[u8],
    ) -> PyResult<()> {
        let app = &self.apps[handlers.app];
        let (network, switch) = (app.network()?, handlers.switch.bind(py));
        let (mut adopted, mut removed) = (0, Vec::new());
        for flow in whole(messages).filter_map(reported_flow) {
            self.shared.writers().begin();
            let answer = handlers.adopt.as_ref().map(|method| {
                let stats = PyFlowStats::own(network, &flow);
                method.bind(py).call1((switch, stats)).and_then(|answer| answer.is_truthy())
            });
            match answer.transpose() {
                Ok(Some(true)) => adopted += 1,
                Ok(_) => removed.push(flow),
                Err(error) => {
                    removed.push(flow);
                    self.fail(py, link, handlers.app, error)?;
                }
            }
        }
        if removed.is_empty() {
            return Ok(());
        }
        let (dpid, app, count) = (link.dpid(), &app.name, removed.len());
        info!(%dpid, app, adopted, removed = count, "flows of an earlier run");
        if let Err(error) = switch.get().remove_first(&removed) {
            self.fail(py, link, handlers.app, error)?;
        }
        Ok(())
    }

    fn packet_ins(
        &self,
        py: Python<'_>,
        link: &Arc<SwitchLink>,
        handlers: &Handlers,
        messages: &[u8],
    ) -> PyResult<()> {
        if let Some(method) = &handlers.packet_ins {
            return self.batch(py, link, handlers, (method, messages));
        }
        let network = self.apps[handlers.app].network()?;
        // The clock of the controller: in a lab, runs with the same seed are equal.
        let mut posted = network.now();
        for message in whole(messages) {
            let Some(method) = &handlers.packet_in else {
                self.shared.writers().pass(link, network, message);
                continue;
            };
            self.shared.writers().begin();
            let result = PyPacketIn::make(py, message)
                .and_then(|packet| method.bind(py).call1((handlers.switch.bind(py), packet)));
            match result {
                Ok(verdict) if is_pass(&verdict) => {
                    self.shared.writers().pass(link, network, message);
                }
                Ok(_) => {}
                Err(error) => self.fail(py, link, handlers.app, error)?,
            }
            let now = network.now();
            if now.saturating_sub(posted) >= POST_AFTER {
                self.shared.writers().post();
                posted = now;
            }
        }
        self.shared.writers().post();
        Ok(())
    }

    /// Calls `packet_ins` once for all packets. It returns those to pass on, or nothing.
    fn batch(
        &self,
        py: Python<'_>,
        link: &Arc<SwitchLink>,
        handlers: &Handlers,
        (method, messages): (&Py<PyAny>, &[u8]),
    ) -> PyResult<()> {
        let network = self.apps[handlers.app].network()?;
        self.shared.writers().begin();
        let mut begin = 0;
        let places = whole(messages).map(|message| {
            let place = begin..begin + message.len();
            begin = place.end;
            place
        });
        let packets = PyPacketIns::new(messages, places.collect());
        let passed = method
            .bind(py)
            .call1((handlers.switch.bind(py), packets))
            .and_then(|passed| passed.extract::<Option<Passed<'_>>>());
        let pass = |message: &[u8]| self.shared.writers().pass(link, network, message);
        match passed {
            Ok(None) => {}
            Ok(Some(Passed::Together(packets))) => {
                packets.get().messages().for_each(|(_, message)| pass(message));
            }
            Ok(Some(Passed::Each(packets))) => {
                packets.iter().for_each(|packet| pass(PyPacketIn::message(packet)));
            }
            Err(error) => self.fail(py, link, handlers.app, error)?,
        }
        self.shared.writers().post();
        Ok(())
    }

    /// Calls a method of a handler for one event, if it has it.
    fn call<'py, A: PyCallArgs<'py>>(
        &self,
        py: Python<'py>,
        (link, app): (&Arc<SwitchLink>, usize),
        method: &Option<Py<PyAny>>,
        arguments: impl FnOnce() -> PyResult<A>,
    ) -> PyResult<()> {
        let Some(method) = method else { return Ok(()) };
        self.shared.writers().begin();
        let result = arguments().and_then(|arguments| method.bind(py).call1(arguments));
        if let Err(error) = result {
            self.fail(py, link, app, error)?;
        }
        self.shared.writers().post();
        Ok(())
    }

    /// Takes back what the event wrote, and reports the exception.
    fn fail(
        &self,
        py: Python<'_>,
        link: &Arc<SwitchLink>,
        app: usize,
        error: PyErr,
    ) -> PyResult<()> {
        self.shared.writers().undo();
        if ends_program(py, &error) {
            self.shared.writers().post();
            return Err(error);
        }
        let app = &self.apps[app];
        let text = error.to_string();
        self.report(py, app, error)?;
        self.shared.writers().fault(link, app.network()?, &text);
        Ok(())
    }

    /// Reports an exception of an app.
    ///
    /// # Errors
    /// It is to end the program.
    fn report(&self, py: Python<'_>, app: &RunnerApp, error: PyErr) -> PyResult<()> {
        if ends_program(py, &error) {
            return Err(error);
        }
        self.report.call1(py, (&app.name, error)).map(drop)
    }

    fn links(&self) -> MutexGuard<'_, HashMap<u64, Arc<Handlers>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an exception of an app ends the program. All others are its fault: a `CancelledError`
/// too, although it is no `Exception`.
fn ends_program(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<PySystemExit>(py)
}

/// The flow of a message of [`DetachedEvent::Adopt`].
fn reported_flow(message: &[u8]) -> Option<FlowStats<'_>> {
    match FromSwitch::decode(message).ok()?.body {
        FromSwitch::MultipartReply(MultipartReply { body: ReplyBody::Flow(flows), .. }) => {
            flows.iter().next()
        }
        _ => None,
    }
}

/// The packets that a handler passes on.
#[derive(FromPyObject)]
enum Passed<'py> {
    Together(Bound<'py, PyPacketIns>),
    Each(Vec<Bound<'py, PyPacketIn>>),
}

fn is_pass(verdict: &Bound<'_, PyAny>) -> bool {
    verdict.cast_exact::<PyVerdict>().is_ok_and(|verdict| *verdict.get() == PyVerdict::PASS)
}

/// Waits for an event without sleeping, for at most `time`. A worker on the same core goes on
/// meanwhile.
fn spin(feed: &Feed, time: Duration) {
    let end = Instant::now() + time;
    while feed.is_empty() && Instant::now() < end {
        thread::yield_now();
    }
}

/// The whole messages of a buffer, one after the other.
fn whole(mut messages: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let message = frame(messages).ok()??.bytes;
        messages = messages.get(message.len()..)?;
        Some(message)
    })
}
