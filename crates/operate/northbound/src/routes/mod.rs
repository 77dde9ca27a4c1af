//! The routes, and the document of them.
//!
//! [`bellrock_query::DECLARED`] lists the routes of requests. Most of them pass on a request and
//! its answer ([`declared`]). The others have a function of their own, and so have the routes that
//! are no request.

mod declared;
mod messages;
mod network;
mod static_entries;
mod system;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, delete, get, on, post, put};
use axum::{Extension, Router};
use bellrock_query::{DECLARED, Declared, Method, Route, Schemas, add_schema, route};

use crate::access::{self, Caller};
use crate::answer::Shared;
use crate::documentation::{self, Operation};
use crate::layout::LayoutAnswer;
use crate::page;
use crate::problem::Problem;

/// Routes that are no request.
const HEALTHZ: Route = route! {
    /// Whether the server runs
    ///
    /// For supervisors that restart a process that hangs. Needs no token.
    Get healthz "/healthz" controller => Text "It runs."
};
const READYZ: Route = route! {
    /// Whether the controller is ready for switches
    ///
    /// For supervisors and load balancers: status 503 while it is not. Needs no token.
    Get readyz "/readyz" controller => Text "Switches can connect."
};
const METRICS: Route = route! {
    /// Metrics for Prometheus
    ///
    /// In its text format, version 0.0.4.
    Get metrics "/metrics" controller => Text "The metrics."
};
const TOKEN: Route = route! {
    /// The token of this request
    ///
    /// So a client knows whether it may order changes.
    Get token "/v1/token" controller => "The token, or null without one."
};
const LAYOUT: Route = route! {
    /// Where to draw the switches
    ///
    /// The unit is the length of a link. A layout stays while no switch and no link is added, and
    /// then changes as little as possible.
    Get layout "/v1/topology/layout" network => "The layout."
};

type Handler = MethodRouter<Arc<Shared>>;

/// The routes that are no request, each with the names of its answer's type and of rows in it.
fn others() -> [(&'static Route, &'static str, Option<&'static str>, Handler); 5] {
    [
        (&HEALTHZ, "", None, get(system::healthz)),
        (&READYZ, "", None, get(system::readyz)),
        (&METRICS, "", None, get(system::metrics)),
        (&TOKEN, "Option", Some("TokenAnswer"), get(system::token)),
        (&LAYOUT, "LayoutAnswer", None, get(network::layout)),
    ]
}

/// The function of a route that does more than to pass on a request and its answer.
fn of_its_own(id: &str) -> Option<Handler> {
    Some(match id {
        "switch" => get(network::switch),
        "move_switch" => post(network::move_switch),
        "events" => get(system::events),
        "reload" => post(system::reload),
        "reply" => get(messages::reply),
        "send" => post(messages::send),
        "entry" => get(static_entries::entry),
        "set" => post(static_entries::set),
        "set_one" => put(static_entries::set_one),
        "remove" => delete(static_entries::remove),
        _ => return None,
    })
}

/// The function of all other routes.
fn as_declared(declared: &'static Declared, route: &'static Route) -> Handler {
    let method = match route.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    };
    on(method, move |State(shared), Extension(caller): Extension<Caller>, asked: Request| {
        declared::answer(declared, route, shared, caller, asked)
    })
}

fn parts() -> (Router<Arc<Shared>>, serde_json::Value) {
    let (mut router, mut operations) = (Router::new(), Vec::new());
    let mut schemas = Schemas::new();
    add_schema::<Problem>("Problem", &mut schemas);
    add_schema::<network::MoveBody>("MoveBody", &mut schemas);
    add_schema::<messages::MessagesBody>("MessagesBody", &mut schemas);
    add_schema::<static_entries::StaticBody>("StaticBody", &mut schemas);
    add_schema::<system::TokenAnswer>("TokenAnswer", &mut schemas);
    add_schema::<LayoutAnswer>("LayoutAnswer", &mut schemas);
    for declared in DECLARED {
        if !declared.routes.is_empty() {
            (declared.schemas)(&mut schemas);
        }
        for route in declared.routes {
            let handler = of_its_own(route.id).unwrap_or_else(|| as_declared(declared, route));
            router = router.route(route.path, handler);
            operations.push(Operation { route, answer: declared.answer, row: declared.row });
        }
    }
    for (route, answer, row, handler) in others() {
        router = router.route(route.path, handler);
        operations.push(Operation { route, answer, row });
    }
    (router, documentation::document(&operations, &schemas))
}

/// The OpenAPI document of the interface, as JSON.
#[must_use]
pub fn openapi() -> serde_json::Value {
    parts().1
}

/// All routes.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let (routes, document) = parts();
    let page: Arc<str> = documentation::page(&document).into();
    let document: Arc<str> = document.to_string().into();
    let css = [(axum::http::header::CONTENT_TYPE, "text/css")];
    let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
    routes
        .route("/v1/openapi.json", get(async move || (json, document.to_string())))
        .route("/v1", get(async move || (documentation::PAGE_POLICY, Html(page.to_string()))))
        .route("/v1/page.css", get(async move || (css, documentation::PAGE_STYLE)))
        .merge(page::router())
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(shared), access::check))
        .with_state(Arc::clone(shared))
}

async fn no_such_path(request: Request) -> Response {
    Problem::no_such_path(request.uri().path()).into_response()
}

async fn wrong_method(request: Request) -> Response {
    Problem::wrong_method(request.method().as_str(), request.uri().path()).into_response()
}
