//! The HTTP server of a controller, and what the log says of it.

use std::sync::Arc;

use bellrock_northbound::{HttpCounters, HttpSettings, Server};
use bellrock_query::Operator;

use crate::run_error::Result;

/// Starts the HTTP server, and logs the addresses of the web page and of REST.
pub(crate) fn serve_http(
    settings: &HttpSettings,
    operator: &Arc<dyn Operator>,
    counters: &HttpCounters,
) -> Result<Server> {
    let server = Server::start(settings, Arc::clone(operator), counters)?;
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    for address in server.addresses() {
        tracing::info!("web page: {scheme}://{address}/; REST: {scheme}://{address}/v1");
    }
    for address in server.ryu_addresses() {
        tracing::info!("REST interface of Ryu: http://{address}/stats");
    }
    Ok(server)
}
