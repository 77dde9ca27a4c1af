//! The web page for operators: files that are embedded in the program, in `page/` of this crate.
//!
//! The page is a client of `/v1` like any other one. It is served to anybody, since it has nothing
//! of the network in it; what it then asks for needs a token like all requests.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::answer::{Known, Part, Shared, tag};
use crate::problem::Problem;

/// The path of the page.
pub(crate) const ROOT: &str = "/";

/// What the paths of its other files begin with.
pub(crate) const FILES: &str = "/page/";

/// It runs and asks only what comes from the controller, so a name of a switch cannot become a
/// program, and no other page can be around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of each file.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-cache"),
];

/// A file of the page.
struct File {
    name: &'static str,
    media_type: &'static str,
    contents: &'static str,
}

macro_rules! files {
    ($($name:literal $media_type:literal,)*) => {
        &[$(File {
            name: $name,
            media_type: $media_type,
            contents: include_str!(concat!("../page/", $name)),
        },)*]
    };
}

/// The files. The first one is the page.
const ALL: &[File] = files! {
    "index.html" "text/html; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "style.css" "text/css; charset=utf-8",
    "main.js" "text/javascript; charset=utf-8",
    "api.js" "text/javascript; charset=utf-8",
    "dom.js" "text/javascript; charset=utf-8",
    "format.js" "text/javascript; charset=utf-8",
    "network.js" "text/javascript; charset=utf-8",
    "scene.js" "text/javascript; charset=utf-8",
    "map.js" "text/javascript; charset=utf-8",
    "detail.js" "text/javascript; charset=utf-8",
    "lists.js" "text/javascript; charset=utf-8",
    "cluster.js" "text/javascript; charset=utf-8",
    "orders.js" "text/javascript; charset=utf-8",
    "search.js" "text/javascript; charset=utf-8",
    "welcome.js" "text/javascript; charset=utf-8",
};

/// The routes of the page.
pub(crate) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route(ROOT, get(async |known: Known| respond(&ALL[0], &known)))
        .route("/page/{name}", get(file))
}

async fn file(_: State<Arc<Shared>>, Part(name): Part<String>, known: Known) -> Response {
    match ALL.iter().find(|file| file.name == name) {
        Some(file) => respond(file, &known),
        None => Problem::no_such_path(&format!("{FILES}{name}")).into_response(),
    }
}

fn respond(file: &File, known: &Known) -> Response {
    let tag = tag(file.contents.as_bytes());
    let own = [(header::CONTENT_TYPE, file.media_type), (header::ETAG, tag.as_str())];
    let (status, body) = match known.has(&tag) {
        true => (StatusCode::NOT_MODIFIED, Body::empty()),
        false => (StatusCode::OK, Body::from(file.contents)),
    };
    (status, HEADERS, own, body).into_response()
}
