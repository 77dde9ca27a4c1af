//! A controller of real switches.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellrock::{Controller, ControllerBuilder, RunError};
use bellrock_config::apps::PythonFile;
use bellrock_daemon::{Configured, NotRun};
use bellrock_detached::Feed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::app_options::AppOptions;
use crate::command_run::{CommandController, CommandRun, failed};
use crate::error::Error;
use crate::own_app::{ChainApp, OwnApp};
use crate::runner::{Runner, SPIN};

/// A running controller. `bellrock.run` makes one, and calls `turn` when its file descriptor is
/// readable.
#[pyclass(module = "bellrock._native", frozen)]
pub(crate) struct NativeController {
    runner: Runner,
    /// What the workers write to, to wake the thread of the apps, arrives here.
    woken: UnixStream,
    controller: Mutex<Option<Running>>,
    /// What is doubtful about the order of the apps. The command logs it itself.
    warnings: Vec<String>,
}

/// A controller of a program, or of the command.
enum Running {
    Program(Controller),
    Command(CommandController),
}

impl Running {
    fn controller(&self) -> &Controller {
        match self {
            Running::Program(controller) => controller,
            Running::Command(command) => command.configured.controller(),
        }
    }

    fn stop(self) {
        match self {
            Running::Program(controller) => controller.stop(),
            Running::Command(command) => command.stop(),
        }
    }
}

/// One app of the chain: an object with its options, or the name of an app of Bellrock.
type ChainEntry<'py> = (Bound<'py, PyAny>, Option<AppOptions>);

/// Whether there is a control socket, or its path.
#[derive(FromPyObject)]
enum ControlSocket {
    IsThere(bool),
    At(PathBuf),
}

#[pymethods]
impl NativeController {
    /// Starts a controller with these apps. `report` is called with the name of an app and an
    /// exception of one of its handlers.
    #[new]
    #[pyo3(signature = (apps, report, *, listen, workers, control, http))]
    fn new(
        py: Python<'_>,
        apps: Vec<ChainEntry<'_>>,
        report: Py<PyAny>,
        listen: Vec<String>,
        workers: usize,
        control: ControlSocket,
        http: Option<String>,
    ) -> PyResult<Self> {
        let (feed, woken) = feed()?;
        let mut runner = Runner::new(feed, report, SPIN);
        let mut builder = Controller::builder().workers(workers).spare_cores(1);
        for address in listen {
            builder = builder.listen(address_of(&address)?);
        }
        for (app, options) in apps {
            builder = match options {
                Some(options) => builder.app(runner.add(app.unbind(), &options, |_| ())?),
                None => OwnApp::named(&app)?.add_to(builder),
            };
        }
        builder = match control {
            ControlSocket::IsThere(false) => builder,
            ControlSocket::IsThere(true) => builder.control_socket(),
            ControlSocket::At(path) => builder.control_socket_at(path),
        };
        if let Some(address) = http {
            let listen = vec![address_of(&address)?];
            builder = builder.http(bellrock::http::HttpSettings { listen, ..Default::default() });
        }
        let warnings = builder.chain_warnings();
        // Workers start meanwhile, and none may wait for Python.
        let controller = py.detach(|| builder.start());
        let controller = controller.map_err(|error| Error::new_err(error.to_string()))?;
        let controller = Mutex::new(Some(Running::Program(controller)));
        Ok(NativeController { runner, woken, controller, warnings })
    }

    /// Starts the controller of a run of the command. `apps` has the apps of each file.
    #[staticmethod]
    fn of_command(
        py: Python<'_>,
        run: &CommandRun,
        mut apps: HashMap<String, Vec<ChainEntry<'_>>>,
        report: Py<PyAny>,
    ) -> PyResult<Self> {
        let (feed, woken) = feed()?;
        let mut runner = Runner::new(Arc::clone(&feed), report, SPIN);
        let mut detached = HashMap::new();
        for file in run.config.python_files() {
            let name = file.path().display().to_string();
            let mut of_file = Vec::new();
            for (app, options) in apps.remove(&name).unwrap_or_default() {
                of_file.push(match options {
                    Some(options) => {
                        ChainApp::Python(runner.add(app.unbind(), &options, |_| ())?)
                    }
                    None => ChainApp::Own(OwnApp::named(&app)?),
                });
            }
            detached.insert(name, of_file);
        }
        let add = |builder: ControllerBuilder, file: &PythonFile| {
            let of_file = detached.remove(&file.path().display().to_string());
            Ok(of_file
                .into_iter()
                .flatten()
                .fold(builder, |builder, app: ChainApp| app.add_to(builder)))
        };
        let (config, options) = (run.config.clone(), run.options());
        let (log_level, signals) = (run.take_log_level()?, run.take_signals());
        let command = py.detach(|| {
            let configured = Configured::start_with_python(config, options, log_level, add)?;
            CommandController::new(configured, signals, feed)
                .map_err(|error| NotRun::from(RunError::Signals(error)))
        });
        let controller = Mutex::new(Some(Running::Command(command.map_err(failed)?)));
        Ok(NativeController { runner, woken, controller, warnings: Vec::new() })
    }

    /// What is doubtful about the order of the apps, for the log.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Whether a signal has asked the command to stop.
    #[getter]
    fn is_stopping(&self) -> bool {
        match &*self.controller() {
            Some(Running::Command(command)) => command.is_stopping(),
            _ => false,
        }
    }

    /// Addresses on which it listens.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        let controller = self.controller();
        let addresses = controller.as_ref().map_or(&[][..], |it| it.controller().addresses());
        addresses.iter().map(SocketAddr::to_string).collect()
    }

    /// Numbers of the cores to which workers are pinned.
    #[getter]
    fn worker_cores(&self) -> Vec<usize> {
        let controller = self.controller();
        controller.as_ref().map_or_else(Vec::new, |it| it.controller().worker_cores().to_vec())
    }

    /// The file descriptor that is readable when events wait.
    fn fileno(&self) -> RawFd {
        self.woken.as_raw_fd()
    }

    /// Calls `start` of all apps.
    fn start_apps(&self, py: Python<'_>) -> PyResult<()> {
        self.runner.start(py)
    }

    /// Replaces the object of an app, as when its file has changed: its flows are removed, unless
    /// it keeps or adopts them, `start` is called, and `switch_up` for each switch. Returns whether
    /// there is such an app.
    fn replace(&self, py: Python<'_>, name: &str, app: Py<PyAny>) -> PyResult<bool> {
        self.runner.forget_faults(name);
        // It may have been disabled for what is mended now. What the new one writes must be sent.
        let _ = self.controller().as_ref().map(|it| it.controller().enable_app(name));
        self.runner.replace(py, name, app)
    }

    /// Handles events for some milliseconds. Returns whether more wait.
    fn turn(&self, py: Python<'_>) -> PyResult<bool> {
        let mut bytes = [0; 64];
        if let Err(error) = (&self.woken).read(&mut bytes)
            && error.kind() != io::ErrorKind::WouldBlock
        {
            return Err(error.into());
        }
        self.runner.turn(py)
    }

    /// Whether a thread of the engine has failed.
    #[getter]
    fn has_failed(&self) -> bool {
        self.controller().as_ref().is_none_or(|it| it.controller().has_failed())
    }

    /// Sends what is written, closes all connections, and ends all threads.
    fn stop(&self, py: Python<'_>) {
        let controller = self.controller().take();
        py.detach(|| controller.map(Running::stop));
    }
}

impl NativeController {
    fn controller(&self) -> MutexGuard<'_, Option<Running>> {
        self.controller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What events go through, and the socket at which their arrival can be noticed.
fn feed() -> io::Result<(Arc<Feed>, UnixStream)> {
    let (bell, woken) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    woken.set_nonblocking(true)?;
    // If its buffer is full, the thread wakes anyway.
    let wake = move || _ = (&bell).write(&[1]);
    Ok((Arc::new(Feed::new(wake)), woken))
}

fn address_of(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| {
        let wrong = format!("{text:?} is not an address to listen on; write 127.0.0.1:6653");
        PyValueError::new_err(wrong)
    })
}

/// A controller that is dropped without `stop` stops too, without the interpreter's lock.
impl Drop for NativeController {
    fn drop(&mut self) {
        if let Some(controller) = self.controller().take() {
            Python::try_attach(|py| py.detach(|| controller.stop()));
        }
    }
}
