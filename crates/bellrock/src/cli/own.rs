//! The control socket of your own program ([`crate::Controller`]).

use std::path::PathBuf;
use std::sync::Arc;

use bellrock_engine::Engine;

use super::answers::Answers;
use super::control::{Server, default_path};
use super::operate::Commands;

/// A control socket, open until this is dropped.
pub(crate) struct ControlSocket {
    _server: Server,
}

/// Answers the questions of the command `bellrock`, at `path` or at the default path.
///
/// # Errors
/// Why the socket cannot be opened, and what to do.
pub(crate) fn serve_control(
    path: Option<PathBuf>,
    engine: &Engine,
    apps: Vec<String>,
) -> Result<ControlSocket, String> {
    let path = match path {
        Some(path) => path,
        None => default_path().map_err(|error| error.to_string())?,
    };
    let answers = Arc::new(Answers {
        monitor: engine.monitor(),
        network: engine.monitor().network(),
        listen: engine.addresses().to_vec(),
        apps,
        tables: None,
        commands: Commands::of_own_program(),
    });
    let server = Server::start(&path, move |question| answers.to(question));
    Ok(ControlSocket { _server: server.map_err(|error| error.to_string())? })
}
