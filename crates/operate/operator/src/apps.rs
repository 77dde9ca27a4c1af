//! Orders to apps, and questions about what they keep: the handle of the app answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bellrock_api::{Dpid, Names, Network};
use bellrock_apps::orders::Asked;
use bellrock_query::{Answer, DECLARED, ErrorKind, QueryError, Request};
use tracing::info;

use super::wait::wait_until;
use super::{ControllerOperator, ORDER_TIMEOUT, missing};

impl ControllerOperator {
    /// This controller, as apps and services see it that take an order.
    pub(super) fn asked<'a>(&'a self, names: &'a Names) -> AskedOperator<'a> {
        AskedOperator { operator: self, names }
    }

    /// Lets the app answer that the request is for.
    ///
    /// # Errors
    /// Those of the app; or it does not run.
    pub(super) fn ask_app(&self, names: &Names, request: &Request) -> Result<Answer, QueryError> {
        let asked = self.asked(names);
        let mut answers = self.handles.apps.iter().map(|app| app.answer(request, &asked));
        answers.find_map(|answer| answer).unwrap_or_else(|| {
            let declared = DECLARED.iter().find(|declared| declared.name == request.name());
            Err(match declared.and_then(|declared| declared.app) {
                Some(app) => self.no_handle(app, "orders"),
                None => {
                    let why = format!("nothing answers {}", request.name());
                    QueryError::new(ErrorKind::Internal, why)
                }
            })
        })
    }

    /// Explains why no app takes an order. `method`: of the builder, takes the app's handle.
    pub(super) fn no_handle(&self, app: &str, method: &str) -> QueryError {
        let why = if self.apps.iter().any(|name| name == app) {
            format!(
                "the app `{app}` runs, but this program has not given its handle to the controller; call \
                 `{method}` of the builder"
            )
        } else {
            format!(
                "this needs the app `{app}`, which this controller does not run; put it in the chain, before the \
                 apps that carry all packets: `bellrock run --app {app} --app learning`"
            )
        };
        QueryError::new(ErrorKind::AppNotRunning, why)
    }
}

/// The controller, as an app that takes an order sees it.
pub(super) struct AskedOperator<'a> {
    operator: &'a ControllerOperator,
    names: &'a Names,
}

impl Asked for AskedOperator<'_> {
    fn network(&self) -> &Network {
        &self.operator.network
    }

    fn names(&self) -> &Names {
        self.names
    }

    fn log(&self, done: fmt::Arguments<'_>) {
        info!("{done}");
    }

    fn limit(&self) -> Duration {
        ORDER_TIMEOUT
    }

    fn wait(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        let _ = wait_until(Instant::now() + ORDER_TIMEOUT, future);
    }

    fn notice(&self) -> Option<String> {
        self.operator.notice()
    }

    fn at_other_nodes(&self) -> BTreeSet<Dpid> {
        self.operator.at_other_nodes().into_keys().collect()
    }

    fn standbys(&self, does: &str) -> BTreeMap<Dpid, String> {
        self.operator.standbys(self.names, does)
    }

    fn missing(&self) -> Vec<Dpid> {
        missing::named(self.operator, self.names)
    }
}
