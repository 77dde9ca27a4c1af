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
    for (guest, address) in server.guest_addresses() {
        tracing::info!("{guest}: http://{address}/");
    }
    Ok(server)
}
