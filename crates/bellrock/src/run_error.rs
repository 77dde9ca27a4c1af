//! Why a controller could not run.

use std::fmt;

#[cfg(feature = "control")]
use bellrock_control::ServerError;
use bellrock_engine::StartError;
use bellrock_services::discovery::NoRandomness;

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
    #[error(transparent)]
    Control(#[from] ServerError),
    /// The control socket has no default path.
    #[cfg(feature = "control")]
    #[error("there is no place for the control socket: {0}; choose one with --control")]
    ControlPlace(#[source] std::io::Error),
    /// The HTTP server cannot start.
    #[cfg(feature = "http")]
    #[error(transparent)]
    Http(#[from] bellrock_northbound::ServerError),
    /// The node of a cluster cannot start.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Cluster(#[from] bellrock_cluster::StartError),
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
