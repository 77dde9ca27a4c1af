//! A controller in your own program.

use std::fmt;
use std::net::SocketAddr;
#[cfg(feature = "control")]
use std::path::PathBuf;

use bellrock_api::{App, DynApp, Network};
use bellrock_engine::{Engine, Settings, StartError};
use bellrock_services::chain::{AppRole, ServiceSettings, chain, check};
use bellrock_services::discovery::NoRandomness;

use crate::event_log::log_events;
use crate::log;
use crate::signals::Signals;

/// What `main` of your own program returns.
pub type Result<T = (), E = RunError> = std::result::Result<T, E>;

/// Why a controller could not run. `Debug` prints the same sentence as `Display`, because a `main`
/// that returns the error prints it with `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The engine did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An app would get no packets at its place in the chain.
    #[error("{0}")]
    Chain(String),
    /// A service that an app needs cannot be made.
    #[error(transparent)]
    Services(#[from] NoRandomness),
    /// The control socket cannot be opened.
    #[cfg(feature = "control")]
    #[error("{0}")]
    Control(String),
    /// No handler for the signals that stop the controller can be installed.
    #[error("signals cannot be handled: {0}")]
    Signals(#[source] std::io::Error),
    /// A thread of the engine has failed, and the others were stopped.
    #[error("the controller has failed; its log says why")]
    Failed,
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Runs a controller with this one app: short for `Controller::new().app(app).run()`.
///
/// An app that consists only of its handler is made by [`per_switch`](crate::per_switch).
///
/// # Errors
/// [`RunError`].
pub fn run<A: App>(app: A) -> Result {
    Controller::new().app(app).run()
}

/// A controller with a chain of apps, in your own program. The services that the apps need stand in
/// front of them. One worker runs on each core. Every other setting has its default.
///
/// Everything logged at level info and above goes to standard error, unless the program has
/// installed its own `tracing` subscriber.
///
/// ```no_run
/// use bellrock::prelude::*;
/// # struct Nothing;
/// # impl Handler for Nothing {}
///
/// fn main() -> bellrock::Result {
///     let app = per_switch("nothing", |_| Nothing);
///     bellrock::Controller::new().app(app).listen(([0, 0, 0, 0], 6653)).run()
/// }
/// ```
#[derive(Default)]
#[must_use = "it does nothing until it runs"]
pub struct Controller {
    apps: Vec<Box<dyn DynApp>>,
    listen: Vec<SocketAddr>,
    #[cfg(feature = "control")]
    control: Option<ControlPlace>,
}

/// Where the control socket is.
#[cfg(feature = "control")]
enum ControlPlace {
    Default,
    At(PathBuf),
}

/// No type implements it, so a control socket without the feature `control` is a compile error.
#[cfg(not(feature = "control"))]
#[diagnostic::on_unimplemented(
    message = "a control socket needs the feature `control` of the crate `bellrock`",
    label = "there is no control socket without that feature",
    note = "in Cargo.toml: bellrock = {{ path = \"..\", features = [\"control\"] }}"
)]
pub trait ControlFeature<'f> {}

impl Controller {
    /// A controller without apps. It listens on 127.0.0.1:6653 unless [`listen`](Self::listen) is
    /// called.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds this app to the end of the chain. It gets the packets that the apps before it pass on,
    /// and its flows have lower priorities. If an app could do nothing in this order,
    /// [`run`](Self::run) returns an error. Doubtful orders are logged. See [`App::forwards`].
    pub fn app<A: App>(mut self, app: A) -> Self {
        self.apps.push(Box::new(app));
        self
    }

    /// Listens on this address instead of the default. Call it several times to listen on several
    /// addresses. Port 0 takes a free port. Anyone who reaches an address can claim to be a switch.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> Self {
        self.listen.push(address.into());
        self
    }

    /// Answers `bellrock status`, `switches`, `counters`, `tasks` and similar commands, at the path
    /// where they look by default (feature `control`). The commands of the apps that come with
    /// Bellrock, such as `bellrock reserve`, work only with `bellrock run`.
    #[cfg(feature = "control")]
    pub fn control_socket(mut self) -> Self {
        self.control = Some(ControlPlace::Default);
        self
    }

    /// The same, with the socket at this path, which the command takes as `--control`.
    #[cfg(feature = "control")]
    pub fn control_socket_at(mut self, path: impl Into<PathBuf>) -> Self {
        self.control = Some(ControlPlace::At(path.into()));
        self
    }

    /// The same without the feature `control`: a compile error that names the feature.
    #[cfg(not(feature = "control"))]
    pub fn control_socket(self) -> Self
    where
        for<'f> Self: ControlFeature<'f>,
    {
        self
    }

    /// The same without the feature `control`: a compile error that names the feature.
    #[cfg(not(feature = "control"))]
    pub fn control_socket_at(self, _path: impl Into<std::path::PathBuf>) -> Self
    where
        for<'f> Self: ControlFeature<'f>,
    {
        self
    }

    /// Runs the controller until the process gets SIGTERM, SIGINT or SIGHUP. Then it sends what is
    /// already written and closes all connections. A second signal ends the process at once.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(self) -> Result {
        let signals = Signals::watch().map_err(RunError::Signals)?;
        let running = self.start()?;
        let signal = signals.wait(&running.engine);
        running.stop();
        signal.map(|_| ()).ok_or(RunError::Failed)
    }

    /// Starts the controller and returns. The controller runs until [`Running::stop`].
    ///
    /// # Errors
    /// [`RunError`].
    pub fn start(self) -> Result<Running> {
        log::start();
        #[cfg(feature = "control")]
        let names = self.apps.iter().map(|app| app.name().to_owned()).collect();
        check_chain(&self.apps)?;
        let chain = chain(self.apps, &ServiceSettings::default())?;
        let mut settings = Settings::default();
        if !self.listen.is_empty() {
            settings.listen = self.listen;
        }
        let engine = Engine::start(&settings, chain)?;
        log_events(&engine.monitor().network());
        for address in engine.addresses() {
            tracing::info!("listening on {address}");
        }
        #[cfg(feature = "control")]
        let control = match self.control {
            None => None,
            Some(place) => {
                let path = match place {
                    ControlPlace::Default => None,
                    ControlPlace::At(path) => Some(path),
                };
                Some(crate::cli::serve_control(path, &engine, names).map_err(RunError::Control)?)
            }
        };
        Ok(Running {
            #[cfg(feature = "control")]
            control,
            engine,
        })
    }
}

/// Logs warnings for what is doubtful in a chain, and returns the first problem that is an error.
fn check_chain(apps: &[Box<dyn DynApp>]) -> Result {
    let roles: Vec<_> = apps.iter().map(|app| AppRole::of(app.as_ref())).collect();
    for problem in check(&roles) {
        if problem.is_error {
            return Err(RunError::Chain(problem.to_string()));
        }
        tracing::warn!("{problem}");
    }
    Ok(())
}

/// A running controller, in its own threads.
#[must_use = "it is to be stopped"]
pub struct Running {
    #[cfg(feature = "control")]
    control: Option<crate::cli::ControlSocket>,
    engine: Engine,
}

impl Running {
    /// Addresses on which it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.engine.addresses()
    }

    /// The network, for code outside of apps: snapshots, events, tasks.
    #[must_use]
    pub fn network(&self) -> Network {
        self.engine.monitor().network()
    }

    /// Stops the controller: sends what is already written, closes all connections, and waits for
    /// all threads to end.
    pub fn stop(self) {
        // First, so that no client asks a half-stopped engine.
        #[cfg(feature = "control")]
        drop(self.control);
        self.engine.stop();
    }
}

#[cfg(all(test, feature = "apps"))]
mod tests {
    use bellrock_apps::{Hub, Learning};

    use super::*;

    #[test]
    fn a_chain_in_which_an_app_gets_nothing_does_not_start() {
        let controller = Controller::new().app(Hub).app(Learning::default());
        let error =
            controller.listen(([127, 0, 0, 1], 0)).start().err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains("\"learning\" stands behind \"hub\""), "{error}");
        assert!(error.contains("leave one of the two out"), "{error}");
    }
}
