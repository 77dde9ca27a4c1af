//! What an app in Python says of itself.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use bellrock::{EarlierFlows, Forwards, Needs, Scope};
use bellrock_detached::{DETACHED_COUNTERS, DetachedSettings, Wanted};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::matching::PyMatch;

/// What an app says of itself.
#[derive(FromPyObject)]
pub(crate) struct AppOptions {
    pub(crate) name: String,
    forwards: String,
    scope: String,
    needs: Vec<String>,
    /// `None`: it has not said.
    sees: Option<Vec<Py<PyMatch>>>,
    pub(crate) keeps_flows: bool,
    adopts_flows: bool,
    wants_packet_ins: bool,
    /// Name and meaning of each of its counters.
    counters: Vec<(String, String)>,
}

/// Maximum number of counters of an app.
const MAX_COUNTERS: usize = 64;

/// Maximum length of the name of a counter, and of its meaning, in bytes.
const MAX_COUNTER_BYTES: usize = 256;

impl AppOptions {
    /// The settings of the app in the chain.
    ///
    /// # Errors
    /// `ValueError` for options that do not exist, or contradict each other.
    pub(crate) fn settings(&self) -> PyResult<DetachedSettings> {
        let needs = self.needs()?;
        let sees =
            self.sees.as_ref().map(|sees| sees.iter().map(|it| it.get().0.clone()).collect());
        let forwards = match self.forwards.as_str() {
            "unknown" => Forwards::Unknown,
            "all" => Forwards::All,
            "selected" => Forwards::Selected,
            "nothing" => Forwards::Nothing,
            other => {
                return Err(PyValueError::new_err(format!(
                    "forwards: {other:?} is not \"unknown\", \"all\", \"selected\" or \"nothing\""
                )));
            }
        };
        let earlier_flows = match (self.keeps_flows, self.adopts_flows) {
            (false, false) => EarlierFlows::Remove,
            (false, true) => EarlierFlows::Adopt,
            (true, false) => EarlierFlows::Keep,
            (true, true) => {
                return Err(PyValueError::new_err(
                    "an app keeps all flows of an earlier run (keeps_flows), or adopts some of them \
                     (adopts_flows, or a method `adopt`), but not both",
                ));
            }
        };
        Ok(DetachedSettings {
            counters: self.static_counters()?,
            name: self.name.clone(),
            forwards,
            sees,
            needs,
            scope: self.scope()?,
            earlier_flows,
            wanted: Wanted {
                packet_ins: self.wants_packet_ins,
                port_status: true,
                flow_removed: true,
                tick: true,
            },
        })
    }
}

impl AppOptions {
    /// Whether it sees any packets.
    pub(crate) fn sees_packets(&self) -> bool {
        self.sees.as_ref().is_some_and(|sees| !sees.is_empty())
    }

    /// Whether flows of an earlier run, or of an earlier version of its code, may stay.
    pub(crate) fn flows_may_stay(&self) -> bool {
        self.keeps_flows || self.adopts_flows
    }

    /// Where its `start` is called in a cluster.
    ///
    /// # Errors
    /// `ValueError` for one that does not exist.
    pub(crate) fn scope(&self) -> PyResult<Scope> {
        match self.scope.as_str() {
            "per_switch" => Ok(Scope::PerSwitch),
            "once" => Ok(Scope::Once),
            other => Err(PyValueError::new_err(format!(
                "scope: {other:?} is not \"per_switch\" or \"once\""
            ))),
        }
    }

    /// The services that it needs.
    ///
    /// # Errors
    /// `ValueError` for one that does not exist.
    pub(crate) fn needs(&self) -> PyResult<Needs> {
        let mut needs = Needs::empty();
        for need in &self.needs {
            needs |= match need.as_str() {
                "topology" => Needs::TOPOLOGY,
                "hosts" => Needs::HOSTS,
                "paths" => Needs::PATHS,
                other => {
                    return Err(PyValueError::new_err(format!(
                        "needs: {other:?} is not \"topology\", \"hosts\" or \"paths\""
                    )));
                }
            };
        }
        Ok(needs)
    }

    fn static_counters(&self) -> PyResult<Vec<(&'static str, &'static str)>> {
        let wrong = |text: String| Err(PyValueError::new_err(format!("counters: {text}")));
        if self.counters.len() > MAX_COUNTERS {
            return wrong(format!("{MAX_COUNTERS} is the maximum, not {}", self.counters.len()));
        }
        let is_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        for (name, meaning) in &self.counters {
            if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_char) {
                return wrong(format!("{name:?} is no name; give one such as packets_blocked"));
            }
            if name.len() > MAX_COUNTER_BYTES || meaning.len() > MAX_COUNTER_BYTES {
                return wrong(format!("{MAX_COUNTER_BYTES} bytes are the maximum for {name:?}"));
            }
            if DETACHED_COUNTERS.iter().any(|(taken, _)| taken == name) {
                return wrong(format!("each app in Python has {name:?} already"));
            }
        }
        let counters = self.counters.iter();
        Ok(counters.map(|(name, meaning)| (interned(name), interned(meaning))).collect())
    }
}

/// Keeps a text as long as the process. Equal ones are kept once, so a program that makes many labs
/// does not grow.
fn interned(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(Box::from(text));
    texts.insert(kept);
    kept
}
