//! Apps that run once in a cluster ([`Scope::Once`]): at which node they start, and until when.
//!
//! All such apps of a cluster have one leader, that of an [`EntryBook`] of their own. When it
//! becomes the leader, it stores the number of a new term for each app, and starts the app with a
//! [`Network`] of that term. The term lasts as long as the lease of the leader's own entry in the
//! store, as the leader itself measures it. So it is over at the leader before the store removes
//! the entry, and the others choose another leader after that.
//!
//! The stored number does two things. A node whose commit is accepted knows all commits, so it
//! is the leader at that moment, whatever it has missed before ([`EntryBook::lead_lease`]). And it
//! numbers the terms, for apps that store something themselves ([`Term::number`]).
//!
//! # What it is not
//! It does not interrupt a turn of a task. It does not fence what a leader of an earlier term
//! stores: each app does that, by the number of the term. If etcd is restored from an old snapshot
//! while nodes run, two of them may lead until they have read it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellrock_api::runtime::{DynApp, TermControl};
use bellrock_api::{
    Allowance, AppEvent, Dpid, EarlierFlows, Forwards, Handler, HostEntry, Match, Needs, Network,
    Scope, SwitchInfo, Term,
};

use crate::{BookModel, EntryBook, EntryStore, Words};

/// Time between two checks whether this node leads, and whether a term is over. A task that is
/// ready checks the latter itself, before its turn.
const CHECKED_EVERY: Duration = Duration::from_millis(100);

/// Time between two checks whether the tasks of a term have been dropped.
const DROPPED_CHECK: Duration = Duration::from_millis(5);

/// Name of the entry with the number of terms.
const TERMS: &str = "terms";

/// The number of terms so far.
#[derive(Default)]
struct Terms;

impl BookModel for Terms {
    type Value = u64;

    fn read(_: &str, value: &str) -> Result<u64, String> {
        Words::parse(value)?.read("count")
    }

    fn show(value: &u64) -> String {
        Words::default().with("count", value).show()
    }

    fn change(&mut self, _: &str, _: Option<&u64>, _: Option<&u64>) {}
}

/// Decides at which controller of a cluster the apps of [`Scope::Once`] run. All clones are of one
/// controller.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    book: EntryBook<Terms>,
    /// Whether the task of the book runs.
    runs: AtomicBool,
}

impl Leadership {
    /// The leadership of a cluster whose nodes share this store, which has nothing else. `node`:
    /// name of this one.
    #[must_use]
    pub fn shared(store: Arc<dyn EntryStore>, node: String) -> Self {
        let book = EntryBook::shared(store, node);
        Leadership(Arc::new(Shared { book, runs: AtomicBool::new(false) }))
    }

    /// The name of the node that leads, as far as this one knows.
    #[must_use]
    pub fn leader(&self) -> Option<String> {
        let book = &self.0.book;
        book.leader().filter(|leader| match leader == book.node() {
            true => book.lead_lease().is_some(),
            false => book.is_alive(leader),
        })
    }

    /// Returns an app that starts only where it is to run. Apps of other scopes are returned
    /// unchanged.
    #[must_use]
    pub fn keep(&self, app: Box<dyn DynApp>) -> Box<dyn DynApp> {
        match app.scope() {
            Scope::Once => Box::new(OnceApp { app: app.into(), leadership: self.clone() }),
            _ => app,
        }
    }

    /// Runs the app in each term of this node, as long as the controller runs.
    async fn run(self, app: Arc<dyn DynApp>, network: Network) {
        let book = &self.0.book;
        loop {
            network.sleep(CHECKED_EVERY).await;
            let Some(term) = self.begin().await else { continue };
            let number = term.number();
            let began = format!("the app {} runs at {}, term {number}", app.name(), book.node());
            network.publish(AppEvent::new("term_began", &began));
            let running = RunningTerm(term);
            app.start(&network.clone().with_term(Some(running.0.clone())));
            while !running.0.is_over() {
                network.sleep(CHECKED_EVERY).await;
            }
            running.0.end();
            while running.0.has_tasks() {
                network.sleep(DROPPED_CHECK).await;
            }
            let ended = format!("the app {} ran at {}, term {number}", app.name(), book.node());
            network.publish(AppEvent::new("term_ended", &ended));
        }
    }

    /// Begins a term, if this node is the leader.
    async fn begin(&self) -> Option<Term> {
        let book = self.0.book.clone();
        let lease = book.lead_lease()?;
        let order = book.order(|draft| {
            if !draft.is_leader() {
                return Err(());
            }
            let number = draft.value(TERMS).copied().unwrap_or_default() + 1;
            draft.put(TERMS, number);
            Ok(number)
        });
        let number = order.await.ok()?;
        let term = Term::begin(number, move || book.lead_lease() == Some(lease));
        (!term.is_over()).then_some(term)
    }
}

/// A term, which ends when the task that runs it panics or is dropped.
struct RunningTerm(Term);

impl Drop for RunningTerm {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// An app that starts at one node of the cluster.
struct OnceApp {
    app: Arc<dyn DynApp>,
    leadership: Leadership,
}

impl DynApp for OnceApp {
    fn name(&self) -> &'static str {
        self.app.name()
    }

    fn wants_packet_ins(&self) -> bool {
        self.app.wants_packet_ins()
    }

    fn forwards(&self) -> Forwards {
        self.app.forwards()
    }

    fn sees(&self) -> Option<Vec<Match>> {
        self.app.sees()
    }

    fn needs(&self) -> Needs {
        self.app.needs()
    }

    fn scope(&self) -> Scope {
        self.app.scope()
    }

    fn earlier_flows(&self) -> EarlierFlows {
        self.app.earlier_flows()
    }

    fn reports_refusals(&self) -> bool {
        self.app.reports_refusals()
    }

    fn counter_meanings(&self) -> Vec<(&'static str, &'static str)> {
        self.app.counter_meanings()
    }

    /// Starts the task that starts the app. It does not count as a task of the app.
    fn start(&self, network: &Network) {
        let own = network.clone().with_guard(None);
        let Leadership(shared) = &self.leadership;
        if !shared.runs.swap(true, Ordering::Relaxed) {
            own.spawn("leader of apps", shared.book.clone().run(own.clone()));
        }
        let (leadership, app, network) =
            (self.leadership.clone(), Arc::clone(&self.app), network.clone());
        own.supervise("run once", move || {
            leadership.clone().run(Arc::clone(&app), network.clone())
        });
    }

    fn switch_up(&self, network: &Network, switch: &SwitchInfo) -> Box<dyn Handler> {
        self.app.switch_up(network, switch)
    }

    fn hosts(&self, network: &Network, report: &mut dyn FnMut(Dpid, HostEntry) -> ControlFlow<()>) {
        self.app.hosts(network, report);
    }

    fn allowance(&self) -> Option<&Allowance> {
        self.app.allowance()
    }
}
