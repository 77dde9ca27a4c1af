//! What the server counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bellrock_query::{Answer, CounterMeaning, CounterPart, Operator, QueryError, Request};

/// Defines the counters and their list.
macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// The names of all counters, and what each counts.
        pub const HTTP_COUNTERS: &[(&str, &str)] = &[$((stringify!($name), $doc)),*];

        /// The counters of a server. Clones share them.
        #[derive(Clone, Debug, Default)]
        pub struct HttpCounters(Arc<Cells>);

        #[derive(Debug, Default)]
        struct Cells {
            $($name: AtomicU64,)*
        }

        impl HttpCounters {
            $(
                #[doc = $doc]
                pub(crate) fn $name(&self) {
                    self.0.$name.fetch_add(1, Ordering::Relaxed);
                }
            )*

            /// The names and values of all counters.
            #[must_use]
            pub fn values(&self) -> BTreeMap<String, u64> {
                [$((stringify!($name), &self.0.$name)),*]
                    .map(|(name, cell)| (name.to_owned(), cell.load(Ordering::Relaxed)))
                    .into()
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections,
    /// Connections closed at once, because there are too many.
    connections_refused,
    /// Connections without a request that were closed for new ones, because there are too many.
    connections_displaced,
    /// TLS handshakes that failed, or took too long.
    handshakes_failed,
    /// Connections that ended because what came is not HTTP, or a head was too large.
    connections_malformed,
    /// Connections that ended because no request came in time, or none with a complete head.
    connections_timed_out,
    /// Connections closed because the client took its answer too slowly, or not at all.
    answers_not_taken,
    /// Answers replaced by an error, because too many bytes of answers wait for their clients.
    answers_refused,
    /// Requests with a complete head.
    requests,
    /// Requests with a wrong path, method, parameter or body.
    requests_invalid,
    /// Orders that were carried out.
    changes,
    /// Requests without a valid token where one is needed.
    requests_unauthorized,
    /// Requests whose token does not allow them.
    requests_forbidden,
    /// Requests for another host name on a loopback address.
    hosts_refused,
    /// Requests above a rate.
    requests_over_limit,
    /// Requests that took too long, or found the operator busy.
    requests_timed_out,
    /// Streams of events that were refused, because there are too many.
    streams_refused,
    /// Requests with a body above the limit.
    bodies_too_large,
}

/// The same operator, which also reports the counters of a server.
#[must_use]
pub fn counted(operator: Arc<dyn Operator>, counters: &HttpCounters) -> Arc<dyn Operator> {
    Arc::new(Counted { operator, counters: counters.clone() })
}

fn meanings() -> impl Iterator<Item = CounterMeaning> {
    HTTP_COUNTERS.iter().map(|(name, meaning)| CounterMeaning {
        part: CounterPart::Http,
        app: None,
        name: (*name).to_owned(),
        meaning: meaning.trim().to_owned(),
    })
}

struct Counted {
    operator: Arc<dyn Operator>,
    counters: HttpCounters,
}

impl Operator for Counted {
    fn answer(&self, request: Request) -> Result<Answer, QueryError> {
        let mut answer = self.operator.answer(request)?;
        match &mut answer {
            Answer::GetCounters(counters) => counters.http = self.counters.values(),
            Answer::DescribeCounters(counters) => counters.extend(meanings()),
            _ => {}
        }
        Ok(answer)
    }
}
