//! The lab: apps on an emulated network and a virtual clock, for tests.

use std::any::Any;
use std::net::Ipv4Addr;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

use bellrock::lab::{FaultKind, Faults, FlowState, Lab, LabBuilder, NamedTopology, TopologySpec};
use bellrock::{Needs, Network, Version};
use bellrock_detached::{Doorbell, Feed};
use futures_lite::FutureExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

use crate::address::PyMacAddr;
use crate::app_options::AppOptions;
use crate::argument::Arg;
use crate::error::Error;
use crate::network::PyNetwork;
use crate::own_app::{ChainApp, OwnApp};
use crate::packet::PyPacket;
use crate::runner::{Runner, Shared};

/// A lab. `bellrock.lab.Lab` wraps it.
///
/// Everything runs in the thread that calls it, so the methods of an app are called while a method
/// of this runs.
#[pyclass(module = "bellrock._native", unsendable)]
pub(crate) struct NativeLab {
    lab: Lab,
    shared: Arc<Shared>,
    failure: Failure,
    /// What any app needs.
    needs: Needs,
    /// Called with the name of an app that is disabled.
    report_disabled: Py<PyAny>,
    /// Apps of which it was called.
    disabled: Vec<&'static str>,
}

/// An exception that ends the test, from a method of an app: `KeyboardInterrupt`, `SystemExit`.
type Failure = Arc<Mutex<Option<PyErr>>>;

/// Names of two hosts.
type HostPair = (String, String);

/// The event loop of the coroutines, an object in Python, and what the lab's task calls.
struct PythonTask {
    runner: Runner,
    event_loop: Py<PyAny>,
    bell: Arc<Doorbell>,
    failure: Failure,
}

impl PythonTask {
    async fn run(task: Arc<OnceLock<PythonTask>>, network: Network) {
        // It is set before the controller starts.
        let Some(task) = task.get() else { return };
        let mut is_started = false;
        loop {
            let now = network.now().as_secs_f64();
            let next = Python::attach(|py| task.turn(py, now, &mut is_started));
            match next {
                Ok(None) => task.bell.rung().await,
                Ok(Some(until)) => {
                    let until = Duration::try_from_secs_f64(until).unwrap_or(Duration::ZERO);
                    task.bell.rung().or(async { network.sleep_until(until).await }).await;
                }
                Err(error) => {
                    *task.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return;
                }
            }
        }
    }

    /// Handles all events, then runs the coroutines. Returns the time at which one of them goes on.
    fn turn(&self, py: Python<'_>, now: f64, is_started: &mut bool) -> PyResult<Option<f64>> {
        let event_loop = self.event_loop.bind(py);
        event_loop.call_method1(intern!(py, "enter"), (now,))?;
        let result = self.turn_inside(py, is_started);
        event_loop.call_method0(intern!(py, "leave"))?;
        result
    }

    fn turn_inside(&self, py: Python<'_>, is_started: &mut bool) -> PyResult<Option<f64>> {
        if !*is_started {
            *is_started = true;
            self.runner.start(py)?;
        }
        while self.runner.turn(py)? {}
        self.event_loop.call_method0(py, intern!(py, "run_ready"))?.extract(py)
    }
}

#[pymethods]
impl NativeLab {
    #[new]
    #[pyo3(signature = (
        topology, is_file, apps, *, report, report_disabled, event_loop, seed, version, loop_free, checked
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn new(
        topology: &str,
        is_file: bool,
        apps: Vec<(Bound<'_, PyAny>, Option<AppOptions>)>,
        report: Py<PyAny>,
        report_disabled: Py<PyAny>,
        event_loop: Py<PyAny>,
        seed: u64,
        version: Option<&str>,
        loop_free: bool,
        checked: bool,
    ) -> PyResult<Self> {
        let spec = match is_file {
            true => TopologySpec::parse(topology),
            false => topology.parse().and_then(NamedTopology::build),
        };
        let mut builder = Lab::seeded(seed).topology(spec.map_err(lab_error)?);
        if loop_free {
            builder = builder.loop_free();
        }
        if !checked {
            builder = builder.unchecked();
        }
        if let Some(version) = version {
            let version: Version = version
                .parse()
                .map_err(|error| PyValueError::new_err(format!("version: {error}")))?;
            builder = builder.version(version);
        }
        let bell = Arc::new(Doorbell::default());
        let ring = Arc::clone(&bell);
        let mut runner =
            Runner::new(Arc::new(Feed::new(move || ring.ring())), report, Duration::ZERO);
        let task = Arc::new(OnceLock::new());
        let (mut chain, mut is_first, mut needs) = (Vec::new(), true, Needs::empty());
        for (app, options) in apps {
            let Some(options) = options else {
                let app = OwnApp::named(&app)?;
                needs |= app.needs();
                chain.push(ChainApp::Own(app));
                continue;
            };
            needs |= options.needs()?;
            let task = std::mem::take(&mut is_first).then(|| Arc::clone(&task));
            let app = runner.add(app.unbind(), &options, move |network| {
                if let Some(task) = &task {
                    let run = PythonTask::run(Arc::clone(task), network.clone());
                    network.spawn("python", run);
                }
            })?;
            chain.push(ChainApp::Python(app));
        }
        let (shared, failure) = (Arc::clone(&runner.shared), Failure::default());
        let python = PythonTask { runner, event_loop, bell, failure: Arc::clone(&failure) };
        // It is new.
        let _ = task.set(python);
        let lab = run(builder, chain)?;
        let disabled = Vec::new();
        let mut lab = NativeLab { lab, shared, failure, needs, report_disabled, disabled };
        lab.check()?;
        Ok(lab)
    }

    /// What a controller warns about when it starts these apps.
    fn warnings(&self) -> Vec<String> {
        self.lab.warnings().to_vec()
    }

    #[getter]
    fn now(&self) -> f64 {
        self.lab.now().as_secs_f64()
    }

    fn network(&self) -> PyResult<PyNetwork> {
        let network = self.lab.controller().ok_or_else(|| Error::new_err("no controller runs"))?;
        Ok(PyNetwork::new(&network, false, self.needs, &self.shared))
    }

    fn hosts(&self) -> Vec<String> {
        self.lab.topology().hosts().iter().map(|host| host.name.to_string()).collect()
    }

    fn switches(&self) -> Vec<(String, u64)> {
        let switches = self.lab.topology().switches().iter();
        switches.map(|switch| (switch.name.to_string(), switch.dpid)).collect()
    }

    /// The Ethernet and IPv4 address of a host.
    fn addresses(&self, host: &str) -> PyResult<(PyMacAddr, Ipv4Addr)> {
        let topology = self.lab.topology();
        match topology.hosts().iter().find(|other| &*other.name == host) {
            Some(host) => Ok((PyMacAddr(host.mac), host.ip)),
            None => Err(PyValueError::new_err(format!("there is no host {host}"))),
        }
    }

    fn ping(&mut self, source: &str, destination: &str) -> PyResult<bool> {
        self.with(|lab| lab.ping(source, destination))
    }

    fn ping_address(&mut self, source: &str, ip: Arg<Ipv4Addr>) -> PyResult<bool> {
        self.with(|lab| lab.ping_address(source, ip.0))
    }

    /// The pairs whose ping was not answered, and all results as text.
    fn ping_all(&mut self) -> PyResult<(Vec<HostPair>, String)> {
        self.with(|lab| {
            let results = lab.ping_all();
            (results.lost().to_vec(), results.to_string())
        })
    }

    fn udp(&mut self, source: &str, destination: &str, count: u64, interval: f64) -> PyResult<u64> {
        let interval = duration(interval)?;
        self.with(|lab| lab.udp(source, destination, count, interval))
    }

    /// Sends bytes over a flow like TCP's. Returns the number of bytes acknowledged, and whether
    /// all were.
    fn tcp(&mut self, source: &str, destination: &str, bytes: u64) -> PyResult<(u64, bool)> {
        self.with(|lab| {
            let report = lab.tcp(source, destination, bytes);
            (report.bytes, report.state == FlowState::Done)
        })
    }

    fn tcp_to_address(
        &mut self,
        source: &str,
        ip: Arg<Ipv4Addr>,
        bytes: u64,
    ) -> PyResult<(u64, bool)> {
        self.with(|lab| {
            let report = lab.tcp_to_address(source, ip.0, bytes);
            (report.bytes, report.state == FlowState::Done)
        })
    }

    fn send_frame(&mut self, source: &str, frame: &[u8]) -> PyResult<()> {
        self.with(|lab| lab.send_frame(source, frame))
    }

    fn capture(&mut self, host: &str) -> PyResult<Vec<PyPacket>> {
        let frames = self.with(|lab| lab.capture(host))?;
        Ok(frames.iter().map(|frame| PyPacket::of(frame)).collect())
    }

    fn run_for(&mut self, seconds: f64) -> PyResult<()> {
        let time = duration(seconds)?;
        self.with(|lab| lab.run_for(time))
    }

    fn link_down(&mut self, a: &str, b: &str) -> PyResult<()> {
        self.with(|lab| lab.link_down(a, b))
    }

    fn link_up(&mut self, a: &str, b: &str) -> PyResult<()> {
        self.with(|lab| lab.link_up(a, b))
    }

    fn move_host(&mut self, host: &str, switch: &str) -> PyResult<()> {
        self.with(|lab| lab.move_host(host, switch))
    }

    fn restart(&mut self, switch: &str, keep_tables: bool) -> PyResult<()> {
        self.with(|lab| lab.restart(switch, keep_tables))
    }

    fn disconnect(&mut self, switch: &str) -> PyResult<()> {
        self.with(|lab| lab.disconnect(switch))
    }

    fn reconnect(&mut self, switch: &str) -> PyResult<()> {
        self.with(|lab| lab.reconnect(switch))
    }

    fn silence(&mut self, switch: &str) -> PyResult<()> {
        self.with(|lab| lab.silence(switch))
    }

    fn is_up(&mut self, switch: &str) -> PyResult<bool> {
        self.with(|lab| lab.is_up(switch))
    }

    /// Draws faults of the kinds with these names, or of all kinds. Returns the plan as text, and
    /// the seconds after which it is over.
    fn inject(&mut self, seed: u64, kinds: Vec<String>, seconds: f64) -> PyResult<(String, f64)> {
        let span = duration(seconds)?;
        let kinds: Vec<FaultKind> =
            kinds.iter().map(|name| kind_of(name)).collect::<PyResult<_>>()?;
        let faults = match kinds.is_empty() {
            true => Faults::random(seed),
            false => Faults::of(seed, &kinds),
        };
        self.with(|lab| {
            let plan = lab.inject(&faults.within(span));
            (plan.to_string(), plan.lasts().as_secs_f64())
        })
    }

    fn flows(&mut self, switch: &str) -> PyResult<Vec<String>> {
        self.with(|lab| lab.flows(switch))
    }

    fn messages(&mut self, switch: &str) -> PyResult<Vec<String>> {
        self.with(|lab| lab.messages(switch).map(ToString::to_string).collect())
    }

    fn paths(&mut self, source: &str, destination: &str) -> PyResult<Vec<Vec<String>>> {
        self.with(|lab| lab.paths(source, destination))
    }

    fn findings(&mut self) -> PyResult<Vec<String>> {
        self.with(|lab| lab.findings())
    }

    fn duplicates(&mut self) -> PyResult<Vec<(String, u64)>> {
        self.with(|lab| lab.duplicates())
    }

    fn app_counter(&mut self, app: &str, name: &str) -> PyResult<Option<u64>> {
        self.with(|lab| lab.app_counter(app, name))
    }

    fn counter(&mut self, name: &str) -> PyResult<u64> {
        self.with(|lab| lab.counter(name))
    }

    fn digest(&self) -> u64 {
        self.lab.digest()
    }
}

impl NativeLab {
    /// Calls the lab. Its panics are about wrong names, and become exceptions.
    fn with<T>(&mut self, call: impl FnOnce(&mut Lab) -> T) -> PyResult<T> {
        // It checks names before it changes anything.
        print_no_wrong_names();
        let result = catch_unwind(AssertUnwindSafe(|| call(&mut self.lab)));
        self.check()?;
        result.map_err(|panic| PyValueError::new_err(text_of(&*panic)))
    }

    /// Returns the exception that ended the apps.
    fn check(&mut self) -> PyResult<()> {
        for name in self.lab.disabled_apps() {
            if !self.disabled.contains(&name) {
                self.disabled.push(name);
                Python::attach(|py| self.report_disabled.call1(py, (name,)))?;
            }
        }
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

/// Keeps panics about wrong names, which become exceptions, from being printed: those of calls in
/// this file. All others are printed as before.
fn print_no_wrong_names() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if info.location().is_none_or(|at| at.file() != file!()) {
                print(info);
            }
        }));
    });
}

/// Starts the lab with these apps.
fn run(mut builder: LabBuilder, mut apps: Vec<ChainApp>) -> PyResult<Lab> {
    let Some(last) = apps.pop() else {
        return Err(PyTypeError::new_err("a lab needs an app: Lab(topology, app)"));
    };
    for app in apps {
        builder = app.add_to(builder);
    }
    let lab = match last {
        ChainApp::Python(app) => builder.try_run(app),
        ChainApp::Own(app) => app.run_last(builder),
    };
    lab.map_err(lab_error)
}

fn lab_error(error: impl std::fmt::Display) -> PyErr {
    Error::new_err(error.to_string())
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{seconds} is no time in seconds")))
}

fn kind_of(name: &str) -> PyResult<FaultKind> {
    Ok(match name {
        "message_delay" => FaultKind::MessageDelay,
        "switch_order" => FaultKind::SwitchOrder,
        "connection_reset" => FaultKind::ConnectionReset,
        "connection_silence" => FaultKind::ConnectionSilence,
        "restart_with_tables" => FaultKind::RestartWithTables,
        "restart_without_tables" => FaultKind::RestartWithoutTables,
        "link_flap" => FaultKind::LinkFlap,
        other => return Err(PyValueError::new_err(format!("there is no fault {other:?}"))),
    })
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => String::from("the lab failed"),
    }
}
