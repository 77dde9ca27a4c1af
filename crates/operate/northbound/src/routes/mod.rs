//! The routes, and the document of them.
#![allow(unused_qualifications, reason = "what the macros of utoipa make")]

mod cluster;
mod identities;
mod messages;
mod network;
mod orders;
mod orphans;
mod relays;
mod static_entries;
mod system;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use bellrock_query::{DEFAULT_PAGE_ROWS, Page};
use serde::Deserialize;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access;
use crate::answer::Shared;
use crate::documentation;
use crate::page;
use crate::problem::Problem;

/// The document of the interface, without its paths.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Bellrock",
        description = "Asks a Bellrock OpenFlow controller, and orders changes. Datapath ids, ports and addresses \
                       are text. Names of fields have their units. Where a switch is named in a path, its datapath \
                       id and its name in the configuration are the same.\n\nOn a loopback address reading needs \
                       no token. Changes, and everything on other addresses, need `Authorization: Bearer TOKEN`. \
                       Errors are problems of RFC 9457.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "controller", description = "The controller itself"),
        (name = "network", description = "Switches, links, hosts and flows"),
        (name = "orders", description = "Reservations, circuits, quarantine and static flows"),
    ),
    components(schemas(Problem)),
    modifiers(&Tokens),
)]
struct Document;

/// Adds the tokens to the document.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

fn parts() -> (Router<Arc<Shared>>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(system::healthz))
        .routes(routes!(system::readyz))
        .routes(routes!(system::status))
        .routes(routes!(system::counters))
        .routes(routes!(system::counter_meanings))
        .routes(routes!(system::latencies))
        .routes(routes!(system::metrics))
        .routes(routes!(system::apps))
        .routes(routes!(system::tasks))
        .routes(routes!(system::events))
        .routes(routes!(system::token))
        .routes(routes!(system::reload))
        .routes(routes!(cluster::cluster))
        .routes(routes!(cluster::cluster_switches))
        .routes(routes!(cluster::move_switch))
        .routes(routes!(cluster::drain_node))
        .routes(routes!(cluster::balance_cluster))
        .routes(routes!(cluster::shared_config, cluster::set_shared_config))
        .routes(routes!(network::switches))
        .routes(routes!(network::switch))
        .routes(routes!(network::switch_ports))
        .routes(routes!(network::switch_flows))
        .routes(routes!(network::switch_groups))
        .routes(routes!(network::switch_meters))
        .routes(routes!(messages::reply))
        .routes(routes!(messages::send))
        .routes(routes!(network::ports))
        .routes(routes!(network::flows))
        .routes(routes!(orphans::orphans))
        .routes(routes!(orphans::clean))
        .routes(routes!(network::hosts))
        .routes(routes!(network::topology))
        .routes(routes!(network::layout))
        .routes(routes!(network::links))
        .routes(routes!(relays::relays, relays::judge))
        .routes(routes!(identities::identities))
        .routes(routes!(identities::forget))
        .routes(routes!(orders::circuits))
        .routes(routes!(orders::reservations, orders::reserve))
        .routes(routes!(orders::release))
        .routes(routes!(orders::blocked, orders::block))
        .routes(routes!(orders::unblock))
        .routes(routes!(static_entries::entries, static_entries::set))
        .routes(routes!(static_entries::entry, static_entries::set_one, static_entries::remove))
        .split_for_parts()
}

/// The OpenAPI document of the interface, as JSON.
#[must_use]
pub fn openapi() -> serde_json::Value {
    documentation::document(&parts().1)
}

/// All routes.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let (routes, document) = parts();
    let document = documentation::document(&document);
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

/// The part of a list that is wanted.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct PageParams {
    /// Number of rows before the page.
    skip: usize,
    /// Maximum number of rows in the page.
    #[param(minimum = 1, maximum = 10_000)]
    limit: usize,
}

impl Default for PageParams {
    fn default() -> Self {
        PageParams { skip: 0, limit: DEFAULT_PAGE_ROWS }
    }
}

impl PageParams {
    fn page(&self) -> Result<Page, Problem> {
        Ok(Page::new(self.skip, self.limit)?)
    }
}
