//! HTTP over the operator of a controller.
//!
//! - `/v1` is REST: every query and every order of [`bellrock_query`], as JSON. The document of it
//!   (OpenAPI 3.1) is made from the code, and is served at `/v1/openapi.json`.
//! - `/metrics` is for Prometheus: all counters, and the state of switches, hosts and apps, read
//!   when it is asked for. Ports and flows are counted by switches, which are asked now and then if
//!   [`StatisticsSettings`] say so.
//! - `/healthz` and `/readyz` are for supervisors.
//! - Interfaces of other controllers are [guests](guest).
//!
//! [`Server`] runs in one thread of its own with an async runtime, which no other part of the
//! controller uses. Requests that an operator answers block threads of a small pool. So a slow
//! switch, or a slow client, costs workers nothing.
//!
//! # Who may do what
//! On a loopback address anybody may read, and changes need a token ([`tokens`]). Any other address
//! needs TLS, and a token for everything but the two paths for supervisors and the files of the
//! page. A name in the `Host` header that is not of the loopback is refused there, since a web page
//! could have made a browser send it (DNS rebinding).
//!
//! # Limits
//! Each has a constant in [`limits`], and a counter in [`HttpCounters`].
//!
//! # What it is not
//! It knows no switches and no apps: only an [`Operator`](bellrock_query::Operator).

mod access;
mod answer;
#[cfg(test)]
mod clock_tests;
mod counters;
mod documentation;
#[cfg(fuzzing)]
#[allow(missing_docs, clippy::expect_used, reason = "for fuzz targets only")]
pub mod fuzzing;
pub mod guest;
mod incoming;
mod layout;
pub mod limits;
mod metrics;
mod outgoing;
mod page;
mod places;
mod problem;
mod revoke;
mod routes;
mod server;
mod settings;
mod stream;
mod tls;
pub mod tokens;
mod wrong_input;

pub use bellrock_tls::TlsFileError;
pub use counters::{HTTP_COUNTERS, HttpCounters, counted};
pub use routes::openapi;
pub use server::{Server, ServerError};
pub use settings::{HttpSettings, StatisticsSettings, TlsFiles};
pub use tls::{Certificate, LoadedCertificate, TlsError};
