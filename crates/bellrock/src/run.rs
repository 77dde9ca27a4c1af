//! A whole controller in a program of one's own.

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

/// What `main` of an app's own program returns.
pub type Result<T = (), E = RunError> = std::result::Result<T, E>;

/// Why a controller could not run. Its `Debug` is the sentence too, since that is what a `main`
/// that returns it prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The engine did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An app could do nothing where it stands in the chain.
    #[error("{0}")]
    Chain(String),
    /// A service that the app needs cannot be made.
    #[error(transparent)]
    Services(#[from] NoRandomness),
    /// The control socket cannot be opened.
    #[cfg(feature = "control")]
    #[error("{0}")]
    Control(String),
    /// The signals that end it cannot be watched for.
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
/// An app that is no more than its handler is made by [`per_switch`](crate::per_switch).
///
/// # Errors
/// [`RunError`].
pub fn run<A: App>(app: A) -> Result {
    Controller::new().app(app).run()
}

/// A controller with a chain of apps, in a program of one's own. The services that the apps need stand
/// in front of them; a worker runs on each core, and all that is not said has its default.
///
/// What is logged at level info and above goes to standard error, unless the program has
/// installed a subscriber of `tracing` of its own.
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

/// Nothing has this: it makes an error of the compiler of a control socket without its feature.
#[cfg(not(feature = "control"))]
#[diagnostic::on_unimplemented(
    message = "a control socket needs the feature `control` of the crate `bellrock`",
    label = "there is no control socket without that feature",
    note = "in Cargo.toml: bellrock = {{ path = \"..\", features = [\"control\"] }}"
)]
pub trait ControlFeature<'f> {}

impl Controller {
    /// One without apps, which would listen on 127.0.0.1:6653.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this app, behind those that it has: it gets the packets that they pass, and its flows
    /// are below theirs. An order in which an app could do nothing is an error of [`run`](Self::run); what is doubtful is
    /// logged as a warning. See [`App::forwards`].
    pub fn app<A: App>(mut self, app: A) -> Self {
        self.apps.push(Box::new(app));
        self
    }

    /// Listens on this address, instead of the default; called several times, on each of them. Port 0 takes a
    /// free one. Anybody who reaches an address can say that he is a switch.
    pub fn listen(mut self, address: impl Into<SocketAddr>) -> Self {
        self.listen.push(address.into());
        self
    }

    /// Answers `bellrock status`, `switches`, `counters`, `tasks` and the like, where these commands look by
    /// default (feature `control`). The commands of the apps that come with Bellrock, such as `bellrock reserve`,
    /// are for `bellrock run` alone.
    #[cfg(feature = "control")]
    pub fn control_socket(mut self) -> Self {
        self.control = Some(ControlPlace::Default);
        self
    }

    /// The same, with the socket at this path, for the command's `--control`.
    #[cfg(feature = "control")]
    pub fn control_socket_at(mut self, path: impl Into<PathBuf>) -> Self {
        self.control = Some(ControlPlace::At(path.into()));
        self
    }

    /// The same without the feature `control`: an error of the compiler that names the feature.
    #[cfg(not(feature = "control"))]
    pub fn control_socket(self) -> Self
    where
        for<'f> Self: ControlFeature<'f>,
    {
        self
    }

    /// The same without the feature `control`: an error of the compiler that names the feature.
    #[cfg(not(feature = "control"))]
    pub fn control_socket_at(self, _path: impl Into<std::path::PathBuf>) -> Self
    where
        for<'f> Self: ControlFeature<'f>,
    {
        self
    }

    /// Runs it until the process gets SIGTERM, SIGINT or SIGHUP; then what is written still goes out, and
    /// connections are closed. A second signal ends the process at once.
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

    /// Starts it, for a program that has more to do. It runs until [`Running::stop`].
    ///
    /// # Errors
    /// [`RunError`].
    pub fn start(self) -> Result<Running> {
        log::start();
        #[cfg(feature = "control")]
        let names = self.apps.iter().map(|app| app.name().to_owned()).collect();
        check_chain(&self.apps)?;
        let apps = chain(self.apps, &ServiceSettings::default())?;
        let mut settings = Settings::default();
        if !self.listen.is_empty() {
            settings.listen = self.listen;
        }
        let engine = Engine::start(&settings, apps)?;
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

/// Logs what is doubtful in a chain; the first thing that cannot work is an error.
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

/// A controller that runs, in threads of its own.
#[must_use = "it is to be stopped"]
pub struct Running {
    #[cfg(feature = "control")]
    control: Option<crate::cli::ControlSocket>,
    engine: Engine,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.engine.addresses()
    }

    /// The network, for what is no app: switches, links and hosts as snapshots, events, tasks.
    #[must_use]
    pub fn network(&self) -> Network {
        self.engine.monitor().network()
    }

    /// Stops it: what is written still goes out, connections are closed, threads have ended.
    pub fn stop(self) {
        // First, so that nobody asks what is half gone.
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
