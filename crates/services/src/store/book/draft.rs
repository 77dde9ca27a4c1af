//! The entries as an order sees and changes them, before they are stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{BookModel, COMMITS, Known, LEADER, StoreChange};
use crate::store::words::Words;

/// Entries of a book, with the changes of the orders so far that are stored together.
pub struct Draft<'k, M: BookModel> {
    known: &'k Known<M>,
    node: Option<&'k str>,
    changed: BTreeMap<String, Changed<M>>,
    /// Changes in order, each with what the entry had before in this draft.
    undo: Vec<(String, Option<Changed<M>>)>,
    bytes: usize,
    leads: bool,
}

/// A changed entry: its value and JSON form. `None`: it is removed.
type Changed<M> = Option<(Arc<<M as BookModel>::Value>, String)>;

impl<'k, M: BookModel> Draft<'k, M> {
    pub(super) fn new(known: &'k Known<M>, node: Option<&'k str>) -> Self {
        let (changed, undo) = (BTreeMap::new(), Vec::new());
        Draft { known, node, changed, undo, bytes: 0, leads: false }
    }

    /// The value of an entry.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&M::Value> {
        match self.changed.get(name) {
            Some(changed) => changed.as_ref().map(|(value, _)| &**value),
            None => self.known.values.get(name).map(|value| &**value),
        }
    }

    /// What is known of all stored entries, without the changes of this draft.
    #[must_use]
    pub fn model(&self) -> &M {
        &self.known.model
    }

    /// The changes of this draft: name, stored value, and value now.
    pub fn changes(
        &self,
    ) -> impl Iterator<Item = (&str, Option<&M::Value>, Option<&M::Value>)> + '_ {
        self.changed.iter().map(|(name, after)| {
            let before = self.known.values.get(name).map(|value| &**value);
            (name.as_str(), before, after.as_ref().map(|(value, _)| &**value))
        })
    }

    /// Whether this controller is the leader. If the order is stored, it was the leader then.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.known.is_leader(self.node)
    }

    /// Whether the controller of this name lives.
    #[must_use]
    pub fn is_alive(&self, node: &str) -> bool {
        self.known.is_alive(self.node, node)
    }

    /// Writes an entry. An equal value changes nothing.
    pub fn put(&mut self, name: &str, value: M::Value) {
        if self.value(name) == Some(&value) {
            return;
        }
        let shown = M::show(&value);
        self.change(name, Some((Arc::new(value), shown)));
    }

    /// Removes an entry, if it exists.
    pub fn remove(&mut self, name: &str) {
        if self.value(name).is_some() {
            self.change(name, None);
        }
    }

    fn change(&mut self, name: &str, after: Changed<M>) {
        let size = |changed: &Changed<M>| {
            name.len() + changed.as_ref().map_or(0, |(_, shown)| shown.len())
        };
        self.bytes += size(&after);
        let before = self.changed.insert(name.to_owned(), after);
        self.bytes -= before.as_ref().map_or(0, size);
        self.undo.push((name.to_owned(), before));
    }

    /// Makes this controller the leader, if the leader does not live and this one is next.
    pub(super) fn lead(&mut self) {
        self.leads = self.known.due_leader().map(String::as_str) == self.node;
    }

    /// The state to which [`Draft::undo_to`] goes back.
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    pub(super) fn undo_to(&mut self, mark: usize) {
        for (name, before) in self.undo.drain(mark..).rev() {
            let size = |changed: &Changed<M>| {
                name.len() + changed.as_ref().map_or(0, |(_, shown)| shown.len())
            };
            self.bytes += before.as_ref().map_or(0, size);
            let undone = match before {
                Some(before) => self.changed.insert(name.clone(), before),
                None => self.changed.remove(&name),
            };
            self.bytes -= undone.as_ref().map_or(0, size);
        }
    }

    /// Number of changes, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.changed.len(), self.bytes)
    }

    /// What is to be stored: nothing, or the changes and the next number of commits.
    pub(super) fn into_changes(self) -> Vec<StoreChange> {
        let expected = |name: &str| self.known.revisions.get(name).copied().unwrap_or_default();
        let mut changes = Vec::with_capacity(self.changed.len() + 2);
        for (name, changed) in self.changed {
            let expected = expected(&name);
            changes.push(match changed {
                Some((_, value)) => StoreChange::Put { name, value, expected },
                // It was made and removed in this draft.
                None if expected == 0 => continue,
                None => StoreChange::Remove { name, expected },
            });
        }
        if let Some(node) = self.node.filter(|_| self.leads) {
            let (value, name) = (Words::default().with("node", node).show(), LEADER.to_owned());
            changes.push(StoreChange::Put { expected: expected(LEADER), value, name });
        }
        if !changes.is_empty() {
            changes.push(commit_number(self.known.commits + 1, expected(COMMITS)));
        }
        changes
    }
}

/// The write of the number of commits.
pub(super) fn commit_number(commits: u64, expected: u64) -> StoreChange {
    let (value, name) = (Words::default().with("count", commits).show(), COMMITS.to_owned());
    StoreChange::Put { name, value, expected }
}
