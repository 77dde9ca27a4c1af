//! Controllers of a configuration, as `bellrock run` runs them.
//!
//! [`bellrock_config`] reads settings; this module puts a controller together from them, applies
//! changes while it runs, and reports to the service manager. The command and the Python package
//! are its users.
//!
//! ```no_run
//! use bellrock::Signal;
//! use bellrock_config::Sources;
//! use bellrock_daemon::{Configured, RunOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = RunOptions { sources: Sources::file("bellrock.yaml"), ..RunOptions::default() };
//! let config = options.sources.check()?.config;
//! let log_level = bellrock_daemon::start_log(&config);
//! let mut signals = options.watch_signals()?;
//! let configured = Configured::start(config, options, log_level)?;
//! let signal = loop {
//!     match signals.wait(configured.controller()) {
//!         Some(Signal::Reload) => configured.reload(),
//!         Some(Signal::Stop(signal)) => break signal,
//!         None => break "failure",
//!     }
//! };
//! configured.stop(signal);
//! # Ok(())
//! # }
//! ```
//!
//! - `builder` makes the controller, and `reload` holds the handles of what can change. `apps`
//!   makes the apps, and `stores` is where they keep what must outlast a controller.
//! - `named_files` checks the files that settings name, and `renewed` notices that they have other
//!   content.
//! - `cluster_files` checks the files of TLS between nodes, and towards etcd.
//! - `shared_config` follows what the nodes of a cluster share.
//! - `switch_tls` prepares TLS towards switches, and `followed_file` watches a file of an app.
//! - `python_run` is what the command hands over to Python for a chain with apps in Python.
//! - `log` is the log, `announce` its first lines, and `service` reports to systemd.

mod announce;
mod apps;
mod builder;
mod cluster;
mod cluster_files;
mod followed_file;
mod log;
mod named_files;
mod not_run;
mod python_run;
mod reload;
mod renewed;
mod service;
mod shared_config;
mod stores;
mod switch_tls;
mod upgraded_store;

use std::io::{IsTerminal, stderr};
use std::sync::Arc;

use bellrock::raw::RawOwner;
use bellrock::{Controller, ControllerBuilder, RunError, Signals};
use bellrock_api::runtime::DynApp;
use bellrock_config::apps::{AppChoice, PythonFile};
use bellrock_config::{Config, Sources};
use bellrock_tables::Budget;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

pub use followed_file::FollowedFileError;
pub use log::{LogLevel, start_log, start_log_to};
pub use named_files::{Store, check};
pub use not_run::NotRun;
pub use python_run::{PythonRun, PythonRunError};
pub use reload::difference;
pub use stores::store_path;
pub use switch_tls::SwitchTlsError;

use reload::Reloader;
use shared_config::SharedConfigNode;

/// How to run, beside the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct RunOptions {
    /// Where the configuration came from, to read it again.
    pub sources: Sources,
    /// Whether to read it again when its file changes.
    pub watch_config: bool,
    /// Whether files with apps in Python are loaded again when they change.
    #[serde(default)]
    pub reload_apps: bool,
}

impl RunOptions {
    /// Watches for the signals of a controller from here on. Call it before any thread starts.
    ///
    /// SIGHUP reloads the configuration of a service. It ends a controller without a file, or at a
    /// terminal: the terminal has been closed then.
    ///
    /// # Errors
    /// The system refuses to install the handlers.
    pub fn watch_signals(&self) -> Result<Signals, NotRun> {
        let reloads = self.sources.file.is_some() && !stderr().is_terminal();
        let signals = if reloads { Signals::watch_with_reload() } else { Signals::watch() };
        Ok(signals.map_err(RunError::Signals)?)
    }
}

/// A running controller of a configuration, which takes changes.
#[must_use = "it is to be stopped"]
pub struct Configured {
    controller: Controller,
    reloader: Arc<Reloader>,
}

/// Cores without a worker, unless the configuration has a number of workers: apps in Python, and a
/// raw owner, have one thread, which works more than a worker.
const CORES_OF_ONE_THREAD: usize = 1;

impl Configured {
    /// Starts the controller, lets operators reload its configuration, and reports to the service
    /// manager that it is ready.
    ///
    /// # Errors
    /// [`NotRun`], also for a chain with apps in Python.
    pub fn start(config: Config, options: RunOptions, log_level: LogLevel) -> Result<Self, NotRun> {
        Configured::start_with_python(config, options, log_level, without_python)
    }

    /// The same, with apps in Python: `add` adds those of a file to the end of the chain.
    ///
    /// # Errors
    /// [`NotRun`], also those of `add`.
    pub fn start_with_python(
        config: Config,
        options: RunOptions,
        log_level: LogLevel,
        mut add: impl FnMut(ControllerBuilder, &PythonFile) -> Result<ControllerBuilder, NotRun>,
    ) -> Result<Self, NotRun> {
        check_cluster_files(&config)?;
        let (mut builder, parts) = builder::builder(&config, &builder::as_configured, &mut add)?;
        if config.python_files().next().is_some() {
            builder = builder.spare_cores(CORES_OF_ONE_THREAD);
            // The check of the configuration knew nothing of these apps.
            for doubt in builder.chain_warnings() {
                warn!("{doubt}");
            }
        }
        Configured::start_announced(&config, options, log_level, builder, parts)
    }

    /// The same with other apps in place of configured ones, for experiments: `substitute` makes
    /// the app of a choice, whose tables have this budget, or leaves the configured one.
    ///
    /// # Errors
    /// As of [`Configured::start`].
    pub fn start_substituted(
        config: Config,
        options: RunOptions,
        log_level: LogLevel,
        substitute: impl Fn(&AppChoice, &Budget) -> Option<Box<dyn DynApp>>,
    ) -> Result<Self, NotRun> {
        check_cluster_files(&config)?;
        let (builder, parts) = builder::builder(&config, &substitute, &mut without_python)?;
        Configured::start_announced(&config, options, log_level, builder, parts)
    }

    fn start_announced(
        config: &Config,
        options: RunOptions,
        log_level: LogLevel,
        builder: ControllerBuilder,
        parts: builder::Parts,
    ) -> Result<Self, NotRun> {
        let configured = Configured::start_built(config, options, log_level, builder, parts)?;
        announce::announce(config, &configured.controller);
        service::ready(&configured.controller);
        Ok(configured)
    }

    /// The same for a raw owner, in place of the apps of the configuration, which do not run.
    ///
    /// # Errors
    /// [`NotRun`], also for a node of a cluster.
    pub fn start_raw(
        config: &Config,
        options: RunOptions,
        log_level: LogLevel,
    ) -> Result<(Self, RawOwner), NotRun> {
        check_cluster_files(config)?;
        let without_apps = Config { apps: Vec::new(), allow: Default::default(), ..config.clone() };
        let none = &mut |builder, _: &PythonFile| Ok(builder);
        let (builder, parts) = builder::builder(&without_apps, &builder::as_configured, none)?;
        let (builder, owner) = builder.spare_cores(CORES_OF_ONE_THREAD).raw_owner();
        let configured = Configured::start_built(config, options, log_level, builder, parts)?;
        service::ready(&configured.controller);
        Ok((configured, owner))
    }

    fn start_built(
        config: &Config,
        options: RunOptions,
        log_level: LogLevel,
        builder: ControllerBuilder,
        parts: builder::Parts,
    ) -> Result<Self, NotRun> {
        let RunOptions { sources, watch_config, reload_apps, .. } = options;
        let shared_config = parts.shared_config.clone();
        let reloader = Reloader::new((sources, reload_apps), config.clone(), log_level, parts);
        let shared_config = shared_config
            .map(|(store, node)| SharedConfigNode::new(store, node, Arc::clone(&reloader)));
        let by_operator = Arc::clone(&reloader);
        let builder = builder.reload(Arc::new(move |order| by_operator.reload(order)));
        let builder = match &shared_config {
            Some(shared) => builder.shared_config(Arc::clone(shared) as Arc<_>),
            None => builder,
        };
        let controller = builder.start()?;
        if let Some(shared) = shared_config {
            shared.follow(controller.network()).map_err(NotRun::Watch)?;
        }
        if watch_config {
            reloader.watch_file().map_err(NotRun::Watch)?;
        }
        Ok(Configured { controller, reloader })
    }

    /// The controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Reads the configuration again, and applies what has changed. The log has the result.
    pub fn reload(&self) {
        self.reloader.reload_and_log();
    }

    /// Reloads from another thread.
    pub fn reload_handle(&self) -> ReloadHandle {
        ReloadHandle(Arc::clone(&self.reloader))
    }

    /// Stops the controller in order. `why` is for the log, such as the name of a signal.
    pub fn stop(self, why: &str) {
        service::stopping();
        info!("{why}: writing what waits, closing connections (a second signal ends at once)");
        self.controller.stop();
        drop(self.reloader);
        info!("stopped");
    }
}

/// Apps in Python need an interpreter.
fn without_python(_: ControllerBuilder, file: &PythonFile) -> Result<ControllerBuilder, NotRun> {
    Err(NotRun::Python(file.path().display().to_string()))
}

fn check_cluster_files(config: &Config) -> Result<(), NotRun> {
    match cluster_files::wrong(config).into_iter().flatten().next() {
        Some(wrong) => Err(NotRun::Cluster(wrong.text)),
        None => Ok(()),
    }
}

/// Reloads the configuration of a controller. All clones are of one controller.
#[derive(Clone)]
pub struct ReloadHandle(Arc<Reloader>);

impl ReloadHandle {
    /// As [`Configured::reload`].
    pub fn reload(&self) {
        self.0.reload_and_log();
    }
}

/// A new directory for a test.
#[cfg(test)]
pub(crate) fn test_directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
