//! Where the control socket is, and what says so without the feature `control`.

#[cfg(feature = "control")]
use std::path::PathBuf;
#[cfg(feature = "control")]
use std::sync::Arc;

#[cfg(feature = "control")]
use bellrock_control::{Server, default_path};
#[cfg(feature = "control")]
use bellrock_query::Operator;

#[cfg(feature = "control")]
use crate::run_error::{Result, RunError};

/// Where the control socket is.
#[cfg(feature = "control")]
pub(crate) enum ControlPlace {
    Default,
    At(PathBuf),
}

#[cfg(feature = "control")]
impl ControlPlace {
    pub(crate) fn open(self, operator: &Arc<dyn Operator>) -> Result<Server> {
        let path = match self {
            ControlPlace::Default => default_path().map_err(RunError::ControlPlace)?,
            ControlPlace::At(path) => path,
        };
        let server = Server::start(&path, Arc::clone(operator))?;
        tracing::info!("control socket: {}", path.display());
        Ok(server)
    }
}

/// No type implements it, so a control socket without the feature `control` is a compile error.
#[cfg(not(feature = "control"))]
#[diagnostic::on_unimplemented(
    message = "a control socket needs the feature `control` of the crate `bellrock`",
    label = "there is no control socket without that feature",
    note = "in Cargo.toml: bellrock = {{ path = \"..\", features = [\"control\"] }}"
)]
pub trait ControlFeature<'f> {}
