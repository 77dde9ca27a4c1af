//! Guests: interfaces of other controllers, each on addresses of its own.
//!
//! A guest is a crate above this one. It has the routes and the forms of another controller, and
//! asks the operator by [`GuestState`]. Scripts of another controller know no tokens. So a guest
//! listens on the loopback only, and pages of browsers may not use it. All else is as for every
//! request: the limits, the turns, the counters, the audit log.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bellrock_query::{Operator, Query, QueryError};

use crate::access::{self, Caller, Client};
use crate::answer::{Shared, body_bytes};

pub use crate::answer::all_pages;
pub use crate::problem::Problem;

/// An interface of another controller.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Its name in the log and in errors, such as "the interface of Ryu".
    pub name: &'static str,
    /// Addresses of the loopback on which it listens.
    pub listen: Vec<SocketAddr>,
    /// Its routes.
    pub routes: fn() -> Router<GuestState>,
}

impl Guest {
    /// Its name, and its first address that others than this machine can reach.
    pub(crate) fn in_the_open(&self) -> Option<(&'static str, SocketAddr)> {
        let address = self.listen.iter().find(|address| !address.ip().is_loopback());
        address.map(|address| (self.name, *address))
    }
}

/// What the routes of a guest ask.
#[derive(Clone)]
pub struct GuestState {
    /// The name of the guest.
    name: &'static str,
    shared: Arc<Shared>,
}

impl GuestState {
    /// Asks for what the controller has in memory, in a thread that may wait. `ask` puts the
    /// answers of several requests together.
    ///
    /// # Errors
    /// Those of `ask`, and too many requests.
    pub async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Operator) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.shared.ask_more(self.name, ask).await
    }

    /// The same for requests to a switch.
    ///
    /// # Errors
    /// As of [`GuestState::ask`].
    pub async fn ask_switch<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Operator) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.shared.ask_switch(self.name, ask).await
    }

    /// The same for what an order needs to know. Who only asks cannot delay it.
    ///
    /// # Errors
    /// As of [`GuestState::ask`].
    pub async fn ask_for_order<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Operator) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        self.shared.ask_for_order(self.name, ask).await
    }

    /// Gives an order. The audit log has it, with the name of the guest.
    ///
    /// # Errors
    /// The order is refused, or there are too many.
    pub async fn order<Q: Query>(&self, order: Q) -> Result<Q::Answer, Problem> {
        self.shared.order(Caller::guest(self.name), order).await
    }

    /// Reads the body of a request, within the limits of size and time.
    ///
    /// # Errors
    /// The body is too large, too slow, or ends early.
    pub async fn read_body<T: Send + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let bytes = body_bytes(request, &self.shared).await?;
        self.shared.parse(bytes, read).await
    }
}

/// The routes of a guest, behind the checks.
pub(crate) fn router(guest: &Guest, shared: &Arc<Shared>) -> Router {
    let state = GuestState { name: guest.name, shared: Arc::clone(shared) };
    let check = from_fn_with_state(Arc::clone(shared), check);
    (guest.routes)().layer(check).with_state(state)
}

/// Checks a request in the same way as all others, without a token. Guests have no tokens, so a
/// page that a browser shows must not reach them: browsers name the page's origin.
async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    shared.counters.requests();
    let Some(client) = request.extensions().get::<Client>().copied() else {
        return Problem::internal("the request has no remote address").into_response();
    };
    if let Err(problem) = access::check_client(&shared, client, None, &request) {
        return problem.into_response();
    }
    let is_of_page = request.headers().contains_key(header::ORIGIN)
        || request.headers().get("sec-fetch-site").is_some_and(|site| site != "none");
    if is_of_page {
        shared.counters.requests_forbidden();
        return Problem::forbidden("pages of browsers may not use this interface").into_response();
    }
    access::within_time(&shared, next.run(request)).await
}
