//! The switch, as handlers use it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellrock::flow::{FlowCommand, FlowFlags, PriorityBand};
use bellrock::openflow::xid::XidSource;
use bellrock::{
    Action, Error, Flow, FlowMod, FlowStats, MacAddr, Match, Network, Port, Switch, SwitchInfo,
};
use bellrock_detached::{SwitchLink, Writer};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use crate::action::{PyAction, actions_of};
use crate::argument::Arg;
use crate::error::command_error;
use crate::flow::PyFlow;
use crate::flows_for_packets::FlowsForPackets;
use crate::info::{PyPortInfo, PySwitchInfo};
use crate::matching::{PyMatch, named_fields};
use crate::packet::PyPacketIn;
use crate::packets::PyPacketIns;
use crate::runner::Shared;

/// Number of bytes of removals that are sent together.
const PARCEL_BYTES: usize = 64 << 10;

/// A switch that is up. Its methods write messages, which are sent after the event, in order.
///
/// It may be kept, and written to at any time and from coroutines: then messages are sent at once.
/// After `switch_down`, writing is an `Error`; if the switch comes up again, there is a new object.
#[pyclass(name = "Switch", module = "bellrock", frozen)]
pub(crate) struct PySwitch {
    link: Arc<SwitchLink>,
    network: Network,
    shared: Arc<Shared>,
    is_up: AtomicBool,
    /// Whether the app sees any packets (`App.sees`).
    sees_packets: bool,
    state: Mutex<State>,
}

struct State {
    info: Arc<SwitchInfo>,
    xids: XidSource,
}

impl PySwitch {
    pub(crate) fn new(
        link: &Arc<SwitchLink>,
        network: &Network,
        shared: &Arc<Shared>,
        (info, sees_packets): (Arc<SwitchInfo>, bool),
    ) -> Self {
        PySwitch {
            link: Arc::clone(link),
            network: network.clone(),
            shared: Arc::clone(shared),
            is_up: AtomicBool::new(true),
            sees_packets,
            state: Mutex::new(State { info, xids: XidSource::default() }),
        }
    }

    pub(crate) fn link(&self) -> &Arc<SwitchLink> {
        &self.link
    }

    /// Removes all flows of the app. Returns the id of a barrier, after which they are gone.
    ///
    /// # Errors
    /// `Error`: the switch is not up, or too much waits for it.
    pub(crate) fn remove_all(&self) -> PyResult<u32> {
        self.write(|switch| {
            switch.remove(&Match::any(), Port::ANY)?;
            switch.barrier()
        })
        .map(|xid| xid.0)
    }

    pub(crate) fn set_info(&self, info: Arc<SwitchInfo>) {
        self.state().info = info;
    }

    pub(crate) fn set_down(&self) {
        self.is_up.store(false, Ordering::Relaxed);
    }

    fn info(&self) -> Arc<SwitchInfo> {
        Arc::clone(&self.state().info)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(&self, write: impl FnOnce(&mut Switch<'_>) -> Result<T, Error>) -> PyResult<T> {
        if !self.is_up.load(Ordering::Relaxed) {
            return Err(command_error(Error::UnknownSwitch(self.link.dpid())));
        }
        let State { info, xids } = &mut *self.state();
        let (to, clock) = ((&self.link, &self.network), (xids, self.network.now()));
        self.shared.writers().write(to, info, clock, write).map_err(command_error)
    }
}

impl PySwitch {
    /// Removes exactly these flows of the app, before what was written for the current event.
    ///
    /// # Errors
    /// `Error`: they cannot be sent. Some may be.
    pub(crate) fn remove_first(&self, flows: &[FlowStats<'_>]) -> PyResult<()> {
        let mut writer = Writer::default();
        let State { info, xids } = &mut *self.state();
        for flow in flows {
            let old = FlowMod::delete(flow.matching).strict().priority(flow.priority);
            let old = if info.version.names_tables() { old.table(flow.table) } else { old };
            let clock = (&mut *xids, self.network.now());
            writer
                .write(&self.link, info, clock, |switch| switch.install(&old))
                .map_err(command_error)?;
            if writer.written() > PARCEL_BYTES {
                writer.post(&self.link, &self.network);
            }
        }
        writer.post(&self.link, &self.network);
        Ok(())
    }
}

/// One port, or actions.
#[derive(FromPyObject)]
pub(crate) enum Outputs {
    Port(u32),
    Action(PyAction),
    Actions(Vec<PyAction>),
}

impl Outputs {
    /// The actions, as the library has them.
    ///
    /// # Errors
    /// `ValueError`: one cannot be written.
    fn actions(&self) -> PyResult<Vec<Action<'static>>> {
        match self {
            Outputs::Port(port) => Ok(vec![Action::output(Port(*port))]),
            Outputs::Action(action) => actions_of(slice::from_ref(action)),
            Outputs::Actions(actions) => actions_of(actions),
        }
    }
}

#[pymethods]
impl PySwitch {
    /// Its datapath id.
    #[getter]
    fn dpid(&self) -> u64 {
        self.link.dpid().0
    }

    /// OpenFlow version of the connection: "1.0" or "1.3".
    #[getter]
    fn version(&self) -> String {
        self.link.version().to_string()
    }

    /// Whether it is up: whether messages can be sent.
    #[getter]
    fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Its data, as they are now.
    #[getter(info)]
    fn current_info(&self) -> PySwitchInfo {
        PySwitchInfo(self.info())
    }

    /// Its ports, as they are now.
    #[getter]
    fn ports(&self) -> Vec<PyPortInfo> {
        self.info().ports.iter().copied().map(PyPortInfo).collect()
    }

    /// Finds a port by its number.
    fn port(&self, number: u32) -> Option<PyPortInfo> {
        self.info().port(Port(number)).copied().map(PyPortInfo)
    }

    /// Sends a packet out of a port, or applies actions to it. An empty list drops it, which frees
    /// the switch's buffer.
    ///
    /// Raises `Error` if neither the switch nor the message has the whole packet.
    fn packet_out(&self, packet: &Bound<'_, PyPacketIn>, to: &Bound<'_, PyAny>) -> PyResult<()> {
        let view = PyPacketIn::view(packet)?;
        // The most frequent form, without a list.
        if let Ok(port) = to.cast_exact::<PyInt>() {
            let port = Port(port.extract()?);
            return self.write(|switch| switch.packet_out(&view, port));
        }
        let actions = to.extract::<Outputs>()?.actions()?;
        self.write(|switch| switch.packet_out_with(&view, &actions))
    }

    /// Sends a new packet, which begins with its Ethernet header, out of a port or with actions.
    fn send_packet(&self, data: &[u8], to: Outputs) -> PyResult<()> {
        let actions = to.actions()?;
        self.write(|switch| switch.send_packet(data, &actions))
    }

    /// Installs a flow. With a packet, the packet takes the flow's actions too, as far as they are
    /// applied at once.
    ///
    /// It is not confirmed: if the switch refuses, the handler's `error` gets the returned id.
    /// Raises `Error` if the version of the switch cannot express the flow.
    #[pyo3(signature = (flow, packet=None))]
    fn install(
        &self,
        flow: &Bound<'_, PyFlow>,
        packet: Option<&Bound<'_, PyPacketIn>>,
    ) -> PyResult<u32> {
        let flow = &flow.get().0;
        let view = packet.map(PyPacketIn::view).transpose()?;
        let buffer_id = view.as_ref().and_then(|view| view.buffer_id());
        let xid = self.write(|switch| {
            let install = |flow_mod: &FlowMod<'_>| switch.install(&flow_mod.buffer_id(buffer_id));
            flow.with_flow_mod(FlowCommand::Add, install)
        })?;
        if let Some(view) = view.filter(|view| view.buffer_id().is_none()) {
            self.write(|switch| switch.packet_out_whole(&view, &flow.applied()))?;
        }
        Ok(xid.0)
    }

    /// Allows the switch to forward the packets of `matching` for so many seconds, of those that
    /// the app sees (`App.sees`): allow, then return `Verdict.PASS`.
    ///
    /// The next flow that an app behind installs for such packets then carries them past this app,
    /// until the time is over. A flow of this app with the default priority or a higher one, such
    /// as one that drops, has priority over it.
    #[pyo3(signature = (matching, seconds=30.0))]
    fn allow(&self, matching: &Bound<'_, PyMatch>, seconds: f64) -> PyResult<()> {
        if !self.sees_packets {
            return Err(PyValueError::new_err(
                "allow is for packets that the app sees: write `sees = Match(…)` in the class of the app",
            ));
        }
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
        let Some(time) = time else {
            let wrong =
                format!("seconds={seconds}: give the time for which it is allowed, such as 30");
            return Err(PyValueError::new_err(wrong));
        };
        self.write(|switch| switch.allow(&matching.get().0, time))
    }

    /// Installs a flow for each packet, and sends the packet with it: to the port at its place in
    /// `ports`, a sequence of port numbers. A packet whose port is `None` stays as it is; these are
    /// returned. The flows match the packets' own values of the named fields, and of those that
    /// they depend on.
    ///
    /// Raises `ValueError` if a packet lacks a field, or the ports are more or fewer than the
    /// packets.
    #[pyo3(signature = (
        packets, ports, /, *fields, table=0, priority=PriorityBand::MIDDLE, number=0, idle_timeout=0,
        hard_timeout=0, send_flow_removed=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn install_each(
        &self,
        packets: &Bound<'_, PyPacketIns>,
        ports: &Bound<'_, PyAny>,
        fields: &Bound<'_, PyTuple>,
        table: u8,
        priority: u16,
        number: u32,
        idle_timeout: u16,
        hard_timeout: u16,
        send_flow_removed: bool,
    ) -> PyResult<PyPacketIns> {
        let mut flags = FlowFlags::empty();
        flags.set(FlowFlags::SEND_FLOW_REM, send_flow_removed);
        let settings = Flow::new(Match::any())
            .table(table)
            .priority(priority)
            .number(number)
            .idle(idle_timeout)
            .hard(hard_timeout)
            .flags(flags);
        let flows = FlowsForPackets::new(packets.get(), ports, &named_fields(fields)?, settings)?;
        self.write(|switch| flows.install(switch)).map(|()| flows.others())
    }

    /// Sends packets out of a port, or applies actions to each, as `packet_out` does.
    fn packet_out_each(&self, packets: &Bound<'_, PyPacketIns>, to: Outputs) -> PyResult<()> {
        let actions = to.actions()?;
        self.write(|switch| {
            let mut packets = packets.get().packets();
            packets.try_for_each(|(_, packet)| switch.packet_out_with(&packet, &actions))
        })
    }

    /// Removes this app's flows that `matching` covers, of those that send to `out_port`. Flows of
    /// other apps stay.
    #[pyo3(signature = (matching=None, out_port=None))]
    fn remove(
        &self,
        matching: Option<&Bound<'_, PyMatch>>,
        out_port: Option<u32>,
    ) -> PyResult<u32> {
        let out_port = out_port.map_or(Port::ANY, Port);
        let all = Match::any();
        let matching = matching.map_or(&all, |matching| &matching.get().0);
        self.write(|switch| switch.remove(matching, out_port)).map(|xid| xid.0)
    }

    /// Adds to a counter of the app, one of `App.counters`. Operators see it in `bellrock counters`
    /// and in the metrics.
    #[pyo3(signature = (name, n=1))]
    fn count(&self, name: &str, n: u64) -> PyResult<()> {
        match self.link.count(name, n) {
            true => Ok(()),
            false => Err(PyKeyError::new_err(format!("{name}: the app has it not in `counters`"))),
        }
    }

    /// Requests that the switch finish all earlier messages; the handler's `barrier` gets the
    /// returned id then.
    fn barrier(&self) -> PyResult<u32> {
        self.write(|switch| switch.barrier()).map(|xid| xid.0)
    }

    /// Answers an ARP request for the address `ip`: it is at `mac`. Returns whether the packet
    /// requested that address.
    fn answer_arp(
        &self,
        packet: &Bound<'_, PyPacketIn>,
        ip: Arg<Ipv4Addr>,
        mac: Arg<MacAddr>,
    ) -> PyResult<bool> {
        let view = PyPacketIn::view(packet)?;
        self.write(|switch| switch.answer_arp(&view, ip.0, mac.0))
    }

    /// Answers a neighbour solicitation for the IPv6 address `ip`: it is at `mac`. Returns whether
    /// the packet requested that address.
    fn answer_solicitation(
        &self,
        packet: &Bound<'_, PyPacketIn>,
        ip: Arg<Ipv6Addr>,
        mac: Arg<MacAddr>,
    ) -> PyResult<bool> {
        let view = PyPacketIn::view(packet)?;
        self.write(|switch| switch.answer_solicitation(&view, ip.0, mac.0))
    }

    fn __repr__(&self) -> String {
        let state = if self.is_up() { "" } else { ", down" };
        format!("<Switch {}, OpenFlow {}{state}>", self.link.dpid(), self.link.version())
    }
}
