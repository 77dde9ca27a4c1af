//! What `bellrock run` hands over for a chain with apps in Python: its settings, its log, and its
//! signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bellrock::{Signal, Signals};
use bellrock_config::{Checked, Config};
use bellrock_daemon::{
    Configured, LogLevel, NotRun, PythonRun, ReloadHandle, RunOptions, start_log,
};
use bellrock_detached::Feed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tracing::warn;

use crate::error::Error;

/// Time after which the log reports that a handler delays the end.
const REPORT_DELAY: Duration = Duration::from_secs(1);

/// Time between two looks for a signal.
const CHECK_SIGNALS: Duration = Duration::from_millis(100);

/// A run that the command has handed over, with its settings.
#[pyclass(module = "bellrock._native", frozen)]
pub(crate) struct CommandRun {
    run: PythonRun,
    pub(crate) config: Config,
    warnings: Vec<String>,
    log_level: Mutex<Option<LogLevel>>,
    signals: Mutex<Option<Signals>>,
}

#[pymethods]
impl CommandRun {
    /// Reads what the command has written, and the settings.
    ///
    /// # Errors
    /// `Error`: the command has another version. `ValueError`: a setting is wrong.
    #[new]
    fn new(json: &str) -> PyResult<Self> {
        let run = PythonRun::from_text(json).map_err(|error| Error::new_err(error.to_string()))?;
        let wrong = |text: String| PyValueError::new_err(text);
        let checked = run.options.sources.check().map_err(|error| wrong(error.to_string()))?;
        let Checked { config, errors, warnings } = checked;
        if !errors.is_empty() {
            return Err(wrong(errors.join("\n")));
        }
        let (log_level, signals) = Default::default();
        Ok(CommandRun { run, config, warnings, log_level, signals })
    }

    /// Paths of the files with apps in Python, in the order of the chain.
    #[getter]
    fn files(&self) -> Vec<String> {
        self.config.python_files().map(|file| file.path().display().to_string()).collect()
    }

    /// Whether they are loaded again when they change.
    #[getter]
    fn reloads_apps(&self) -> bool {
        self.run.options.reload_apps
    }

    /// Starts the log, in the format and from the level of the settings.
    fn start_log(&self) {
        let level = start_log(&self.config);
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        for warning in self.run.warnings.iter().chain(&self.warnings) {
            warn!("{warning}");
        }
    }

    /// Watches for signals from here on. A second one ends the process, whatever Python does.
    fn watch_signals(&self) -> PyResult<()> {
        let signals = self.run.options.watch_signals().map_err(failed)?;
        *self.signals.lock().unwrap_or_else(PoisonError::into_inner) = Some(signals);
        Ok(())
    }
}

impl CommandRun {
    pub(crate) fn options(&self) -> RunOptions {
        self.run.options.clone()
    }

    /// The log's level, for the controller. There is one controller.
    pub(crate) fn take_log_level(&self) -> PyResult<LogLevel> {
        let level = self.log_level.lock().unwrap_or_else(PoisonError::into_inner).take();
        level.ok_or_else(|| PyValueError::new_err("the log has not started"))
    }

    /// The signals, if they are watched.
    pub(crate) fn take_signals(&self) -> Option<Signals> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

pub(crate) fn failed(error: NotRun) -> PyErr {
    Error::new_err(error.to_string())
}

/// A controller of the command, and the thread that follows its signals.
pub(crate) struct CommandController {
    pub(crate) configured: Configured,
    stopping: Arc<OnceLock<&'static str>>,
    has_ended: Arc<AtomicBool>,
}

impl CommandController {
    /// Follows the signals of a controller: a reload happens at once, also while a handler of an
    /// app blocks, and a signal to stop wakes the thread of the apps.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn new(
        configured: Configured,
        signals: Option<Signals>,
        feed: Arc<Feed>,
    ) -> std::io::Result<Self> {
        let (stopping, has_ended) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(false)));
        let controller = CommandController { configured, stopping, has_ended };
        if let Some(signals) = signals {
            let (stopping, ended) =
                (Arc::clone(&controller.stopping), Arc::clone(&controller.has_ended));
            let reload = controller.configured.reload_handle();
            let follow = move || follow(signals, &reload, &feed, (&stopping, &ended));
            thread::Builder::new().name("signals".into()).spawn(follow)?;
        }
        Ok(controller)
    }

    /// Whether a signal has asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get().is_some()
    }

    pub(crate) fn stop(self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.configured.stop(self.stopping.get().copied().unwrap_or("the program ends"));
    }
}

/// Follows the signals until the controller has ended.
fn follow(
    mut signals: Signals,
    reload: &ReloadHandle,
    feed: &Feed,
    (stopping, ended): (&OnceLock<&'static str>, &AtomicBool),
) {
    let mut asked: Option<Instant> = None;
    while !ended.load(Ordering::Relaxed) {
        match signals.poll() {
            Some(Signal::Reload) => reload.reload(),
            Some(Signal::Stop(signal)) => {
                // The first one counts.
                let _ = stopping.set(signal);
                asked.get_or_insert_with(Instant::now);
                feed.wake();
            }
            None => thread::sleep(CHECK_SIGNALS),
        }
        if asked.is_some_and(|asked| asked.elapsed() >= REPORT_DELAY) {
            warn!("a handler of an app delays the end; a second signal ends at once");
            return;
        }
    }
}
