//! Raw connections, for programs in Python that read and write OpenFlow messages themselves.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bellrock::openflow::frame;
use bellrock::raw::{RawConnection, RawEvent, RawOwner, RawSendError, RawUp};
use bellrock_config::{Checked, Override, Sources, settings};
use bellrock_daemon::{Configured, LogLevel, RunOptions, start_log, start_log_to};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::bell::Bell;
use crate::command_run::failed;
use crate::error::Error;
use crate::log_lines::LogLines;

create_exception!(
    bellrock,
    RawFull,
    Error,
    "Too many bytes wait for the switch. Nothing was sent; an event \"writable\" follows."
);

create_exception!(bellrock, RawClosed, Error, "The connection has ended. Nothing was sent.");

/// The log of this process. There is one, whatever the number of controllers.
static LOG: OnceLock<LogLevel> = OnceLock::new();

/// A running controller without apps: this program gets all messages of all switches.
#[pyclass(module = "bellrock._native", frozen)]
pub(crate) struct RawController {
    owner: RawOwner,
    /// Readable while events wait.
    bell: Arc<Bell>,
    configured: Mutex<Option<Configured>>,
    addresses: Vec<String>,
}

#[pymethods]
impl RawController {
    /// Starts it. `settings` are those of the command, by key and with their values; `file` is a
    /// configuration file under them. Lines of the log go to `log`, or to standard error; that of
    /// the first controller of a process counts.
    ///
    /// # Errors
    /// `ValueError`: a setting is wrong. `Error`: the controller cannot start.
    #[new]
    #[pyo3(signature = (settings, *, file = None, log = None))]
    fn new(
        py: Python<'_>,
        settings: Vec<(String, Vec<String>)>,
        file: Option<PathBuf>,
        log: Option<&LogLines>,
    ) -> PyResult<Self> {
        let overrides = settings.into_iter().map(override_of).collect::<PyResult<_>>()?;
        let sources = Sources { file, overrides, apps: Vec::new(), text: None, shared: None };
        let checked = sources.check().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let Checked { config, errors, warnings } = checked;
        if !errors.is_empty() {
            return Err(PyValueError::new_err(errors.join("\n")));
        }
        let start = || match log {
            Some(lines) => start_log_to(&config, lines.sink()),
            None => start_log(&config),
        };
        let level = LOG.get_or_init(start).clone();
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let bell = Arc::new(Bell::new()?);
        let options = RunOptions { sources, ..RunOptions::default() };
        let started = py.detach(|| Configured::start_raw(&config, options, level));
        let (configured, owner) = started.map_err(failed)?;
        let ring = Arc::clone(&bell);
        owner.on_event(move || ring.ring());
        let addresses = configured.controller().addresses();
        let addresses = addresses.iter().map(ToString::to_string).collect();
        Ok(RawController { owner, bell, configured: Mutex::new(Some(configured)), addresses })
    }

    /// Addresses on which it listens: those without TLS, then those with it.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.addresses.clone()
    }

    /// Numbers of the cores to which workers are pinned.
    #[getter]
    fn worker_cores(&self) -> Vec<usize> {
        let configured = self.configured();
        configured.as_ref().map_or_else(Vec::new, |it| it.controller().worker_cores().to_vec())
    }

    /// The file descriptor that is readable while events wait, and at the end.
    fn fileno(&self) -> RawFd {
        self.bell.fileno()
    }

    /// Takes the events that wait, at most so many, without waiting.
    fn take(&self, py: Python<'_>, max_events: usize) -> PyResult<Vec<PyRawEvent>> {
        self.bell.clear()?;
        let events = py.detach(|| self.owner.take(max_events));
        // The owner rings only when the first event comes.
        if events.len() == max_events || self.owner.is_over() {
            self.bell.ring();
        }
        events.into_iter().filter_map(|event| PyRawEvent::of(py, event).transpose()).collect()
    }

    /// Waits for an event, at most so long. Other threads of the program have the interpreter
    /// meanwhile. Returns whether there may be one.
    fn wait(&self, py: Python<'_>, milliseconds: u32) -> PyResult<bool> {
        Ok(py.detach(|| self.bell.wait(milliseconds))?)
    }

    /// Whether the controller has stopped, and no event is left.
    #[getter]
    fn is_over(&self) -> bool {
        self.owner.is_over()
    }

    /// Whether a thread of the engine has failed.
    #[getter]
    fn has_failed(&self) -> bool {
        self.configured().as_ref().is_none_or(|it| it.controller().has_failed())
    }

    /// Sends what is written, closes all connections, and ends all threads.
    fn stop(&self, py: Python<'_>) {
        let configured = self.configured().take();
        py.detach(|| configured.map(|it| it.stop("the program ends")));
    }
}

impl RawController {
    fn configured(&self) -> MutexGuard<'_, Option<Configured>> {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A controller that is dropped without `stop` stops too, without the interpreter's lock.
impl Drop for RawController {
    fn drop(&mut self) {
        if let Some(configured) = self.configured().take() {
            Python::try_attach(|py| py.detach(|| configured.stop("the program ends")));
        }
    }
}

fn override_of((key, values): (String, Vec<String>)) -> PyResult<Override> {
    let known = settings::all().map(|setting| setting.key).find(|known| *known == key);
    let wrong = || PyValueError::new_err(format!("there is no setting {key:?}"));
    Ok(Override { key: known.ok_or_else(wrong)?, origin: key.clone(), values })
}

/// An event of a raw connection.
#[pyclass(module = "bellrock._native", name = "RawEvent", frozen)]
pub(crate) struct PyRawEvent {
    kind: Kind,
    connection: Py<PyRawConnection>,
}

/// What an event is, with what only it has.
enum Kind {
    Up { peer: (String, u16), hello: Py<PyBytes>, features: Py<PyBytes> },
    Messages(Py<PyList>),
    Writable,
    Down(String),
}

impl PyRawEvent {
    /// Makes the value of an event. `None`: of a kind that this package does not know.
    fn of(py: Python<'_>, event: RawEvent) -> PyResult<Option<Self>> {
        let connection = Py::new(py, PyRawConnection(event.connection().clone()))?;
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        let kind = match event {
            RawEvent::Up(RawUp { switch, hello, features, .. }) => Kind::Up {
                peer: (switch.peer.ip().to_string(), switch.peer.port()),
                hello: bytes(&hello),
                features: bytes(&features),
            },
            RawEvent::Messages { bytes, .. } => Kind::Messages(split(py, &bytes)?),
            RawEvent::Writable(_) => Kind::Writable,
            RawEvent::Down { why, .. } => Kind::Down(why.to_string()),
            _ => return Ok(None),
        };
        Ok(Some(PyRawEvent { kind, connection }))
    }
}

/// Splits whole messages.
fn split(py: Python<'_>, mut rest: &[u8]) -> PyResult<Py<PyList>> {
    let messages = PyList::empty(py);
    while let Ok(Some(message)) = frame(rest) {
        messages.append(PyBytes::new(py, message.bytes))?;
        rest = rest.get(message.bytes.len()..).unwrap_or_default();
    }
    Ok(messages.unbind())
}

#[pymethods]
impl PyRawEvent {
    /// "up", "messages", "writable" or "down".
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        match self.kind {
            Kind::Up { .. } => pyo3::intern!(py, "up"),
            Kind::Messages(_) => pyo3::intern!(py, "messages"),
            Kind::Writable => pyo3::intern!(py, "writable"),
            Kind::Down(_) => pyo3::intern!(py, "down"),
        }
    }

    /// The connection.
    #[getter]
    fn connection(&self, py: Python<'_>) -> Py<PyRawConnection> {
        self.connection.clone_ref(py)
    }

    /// Of "up": the switch's address and port.
    #[getter]
    fn peer(&self) -> Option<(String, u16)> {
        match &self.kind {
            Kind::Up { peer, .. } => Some(peer.clone()),
            _ => None,
        }
    }

    /// Of "up": the switch's hello, as it came. Empty otherwise.
    #[getter]
    fn hello(&self, py: Python<'_>) -> Py<PyBytes> {
        match &self.kind {
            Kind::Up { hello, .. } => hello.clone_ref(py),
            _ => PyBytes::new(py, &[]).unbind(),
        }
    }

    /// Of "up": the switch's reply to the controller's features request. Empty otherwise.
    #[getter]
    fn features(&self, py: Python<'_>) -> Py<PyBytes> {
        match &self.kind {
            Kind::Up { features, .. } => features.clone_ref(py),
            _ => PyBytes::new(py, &[]).unbind(),
        }
    }

    /// Of "messages": the messages, in order, each as its bytes. Empty otherwise.
    #[getter]
    fn messages(&self, py: Python<'_>) -> Py<PyList> {
        match &self.kind {
            Kind::Messages(messages) => messages.clone_ref(py),
            _ => PyList::empty(py).unbind(),
        }
    }

    /// Of "down": why the connection has ended. Empty otherwise.
    #[getter]
    fn reason(&self) -> &str {
        match &self.kind {
            Kind::Down(reason) => reason,
            _ => "",
        }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<RawEvent {} of {:?}>", self.kind(py), self.connection.get().0)
    }
}

/// A raw connection.
#[pyclass(module = "bellrock._native", name = "RawConnection", frozen)]
pub(crate) struct PyRawConnection(RawConnection);

#[pymethods]
impl PyRawConnection {
    /// Number of the connection, unique in a controller.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    /// The switch's datapath id.
    #[getter]
    fn dpid(&self) -> u64 {
        self.0.dpid().0
    }

    /// The version byte of the connection: 1 for OpenFlow 1.0, 4 for 1.3.
    #[getter]
    fn version(&self) -> u8 {
        self.0.version().wire()
    }

    /// Number of this program's bytes that wait for the switch.
    #[getter]
    fn unsent(&self) -> usize {
        self.0.unsent()
    }

    /// Whether the connection has ended.
    #[getter]
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Sends whole messages, as they are. Never waits.
    ///
    /// # Errors
    /// `RawFull`, `RawClosed`, or `Error` for bytes that are no messages of a controller.
    fn send(&self, messages: &[u8]) -> PyResult<()> {
        self.0.send(messages).map_err(send_error)
    }

    /// Closes the connection, behind all that was sent. An event "down" follows.
    ///
    /// # Errors
    /// `RawFull`: its worker has too much mail; try again.
    fn close(&self, why: &str) -> PyResult<()> {
        self.0.close(why).map_err(send_error)
    }

    /// Leaves the switch unread until `resume`, after at most one more read.
    fn pause(&self) {
        self.0.pause();
    }

    /// Reads the switch again.
    fn resume(&self) {
        self.0.resume();
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.0)
    }
}

fn send_error(error: RawSendError) -> PyErr {
    let text = error.to_string();
    match error {
        RawSendError::Full { .. } => RawFull::new_err(text),
        RawSendError::Closed(_) => RawClosed::new_err(text),
        _ => Error::new_err(text),
    }
}
