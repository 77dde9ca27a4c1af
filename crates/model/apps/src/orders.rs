//! Orders to apps, and questions about what they keep (feature `orders`).
//!
//! An app that takes orders has a handle, and answers in `orders.rs` of its folder. What can be
//! ordered and asked is declared in [`bellrock_query::request`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::runtime::PromiseFuture;
use bellrock_api::{Dpid, HostId, Names, Network};
use bellrock_query::{Answer, ErrorKind, QueryError, Request};

use crate::bandwidth::HostName;

/// The handle of an app that takes orders.
pub trait AppOrders: Send + Sync {
    /// Answers a request. `None`: it is for another app.
    fn answer(&self, request: &Request, asked: &dyn Asked) -> Option<Result<Answer, QueryError>>;
}

impl<A: AppOrders + ?Sized> AppOrders for Arc<A> {
    fn answer(&self, request: &Request, asked: &dyn Asked) -> Option<Result<Answer, QueryError>> {
        (**self).answer(request, asked)
    }
}

/// The controller that an operator has asked, in the thread of a face that may wait.
pub trait Asked {
    /// The network.
    fn network(&self) -> &Network;

    /// Names of switches and hosts.
    fn names(&self) -> &Names;

    /// Writes to the log what an operator has done.
    fn log(&self, done: fmt::Arguments<'_>);

    /// Time for which [`wait`](Self::wait) waits.
    fn limit(&self) -> Duration;

    /// Waits until a future is ready, or the time is over.
    fn wait(&self, future: Pin<&mut dyn Future<Output = ()>>);

    /// What an answer to an order for all nodes of a cluster says, if this node does not serve.
    fn notice(&self) -> Option<String>;

    /// The switches that obey other nodes of the cluster.
    fn at_other_nodes(&self) -> BTreeSet<Dpid>;

    /// The switches at which this controller stands by, and why an order is not in force there.
    /// `does`: what a master does with what is ordered, such as "installs it".
    fn standbys(&self, does: &str) -> BTreeMap<Dpid, String>;

    /// The switches with a name that are connected to no node.
    fn missing(&self) -> Vec<Dpid>;
}

impl dyn Asked + '_ {
    /// Waits for a future, and returns its output. `None`: it is not ready in time.
    pub fn wait_for<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut output = None;
        {
            let fill = pin!(async { output = Some(future.await) });
            self.wait(fill);
        }
        output
    }

    /// Waits until an app has carried out an order.
    ///
    /// # Errors
    /// There is no answer in time, or at all.
    pub fn carried_out<T>(&self, answer: PromiseFuture<T>) -> Result<T, QueryError> {
        let answer = self.wait_for(answer).ok_or_else(|| {
            let limit = self.limit().as_secs();
            let why =
                format!("it is not done after {limit} s, and continues; ask for the result later");
            QueryError::new(ErrorKind::Timeout, why)
        })?;
        answer.ok_or_else(|| QueryError::new(ErrorKind::Refused, "the controller is stopping"))
    }
}

/// The text of a host, with its name if it has one.
pub(crate) fn host_text(names: &Names, host: HostId) -> String {
    match (names.name_of_host(host.mac), host.vlan) {
        (Some(name), Some(vlan)) => format!("{name}@{vlan}"),
        (Some(name), None) => name.to_owned(),
        (None, vlan) => HostName::Mac(host.mac, vlan).to_string(),
    }
}
