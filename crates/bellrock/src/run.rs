//! A whole controller in one call, for programs that are an app and nothing else.

use std::fmt;

use bellrock_api::App;
use bellrock_engine::{Engine, Settings, StartError};
use bellrock_services::chain::{ServiceSettings, chain};
use bellrock_services::discovery::NoRandomness;

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
    /// A service that the app needs cannot be made.
    #[error(transparent)]
    Services(#[from] NoRandomness),
    /// SIGTERM and SIGINT cannot be watched for.
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

/// Runs a controller with this one app, and the network services that it needs, until the process gets SIGTERM or SIGINT; then what is
/// written still goes out, and connections are closed. A second signal ends the process at once.
///
/// All settings have their defaults: it listens on 127.0.0.1:6653 and says so on standard error,
/// with a worker on each core. A program that wants other settings uses `bellrock-engine`, or
/// offers its app to the command.
///
/// # Errors
/// [`RunError`].
pub fn run<A: App>(app: A) -> Result {
    let signals = Signals::watch().map_err(RunError::Signals)?;
    let apps = chain(vec![Box::new(app)], &ServiceSettings::default())?;
    let engine = Engine::start(&Settings::default(), apps)?;
    for address in engine.addresses() {
        eprintln!("listening on {address}");
    }
    let signal = signals.wait(&engine);
    engine.stop();
    signal.map(|_| ()).ok_or(RunError::Failed)
}
