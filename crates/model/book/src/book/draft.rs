//! The entries as an order sees and changes them, before they are stored.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{BookModel, COMMITS, Known, LEADER, StoreChange};
use crate::words::Words;

/// Entries of a book, with the changes of the orders so far that are stored together.
pub struct Draft<'k, M: BookModel> {
    known: &'k mut Known<M>,
    node: Option<&'k str>,
    /// Maximum number of changes of one commit.
    most: usize,
    /// Names of the entries that the order has stored in earlier commits.
    stored: &'k BTreeSet<String>,
    changed: BTreeMap<String, Changed<M>>,
    /// Changes in order, each with what the entry had before in this draft.
    undo: Vec<(String, Option<Changed<M>>)>,
    /// Indexes in `undo` of changes that are stored in the commit of the change before.
    tied: BTreeSet<usize>,
    bytes: usize,
    leads: bool,
}

/// A changed entry: its value and JSON form. `None`: it is removed.
type Changed<M> = Option<(Arc<<M as BookModel>::Value>, String)>;

/// What orders change, to be stored.
pub(super) struct Planned<M: BookModel> {
    /// The changes besides the number of commits, in the order in which they were written first.
    /// What is in one list is stored in one commit.
    pub(super) changes: Vec<Vec<StoreChange>>,
    /// The values of the entries that are written, which the book takes in when they are stored:
    /// reading them again from their JSON form would cost as much as the rest of an order.
    pub(super) values: Values<M>,
}

/// Values of entries, by name.
pub(super) type Values<M> = HashMap<String, Arc<<M as BookModel>::Value>>;

impl<'k, M: BookModel> Draft<'k, M> {
    pub(super) fn new(
        known: &'k mut Known<M>,
        node: Option<&'k str>,
        most: usize,
        stored: &'k BTreeSet<String>,
    ) -> Self {
        let (changed, undo, tied) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        Draft { known, node, most, stored, changed, undo, tied, bytes: 0, leads: false }
    }

    /// The value of an entry.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&M::Value> {
        match self.changed.get(name) {
            Some(changed) => changed.as_ref().map(|(value, _)| &**value),
            None => self.known.values.get(name).map(|value| &**value),
        }
    }

    /// What is known of all stored entries. Whether it includes the changes of this draft is up to
    /// the model ([`BookModel::draft`]).
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

    /// Number of further changes that fit into the commit. An order that is larger than a commit is
    /// stored in parts.
    #[must_use]
    pub fn room(&self) -> usize {
        self.most.saturating_sub(self.changed.len())
    }

    /// Whether this order has stored its change of this entry in an earlier commit: the order is
    /// larger than a commit, and is checked again, as another controller was faster.
    #[must_use]
    pub fn has_stored(&self, name: &str) -> bool {
        self.stored.contains(name)
    }

    /// Writes an entry. An equal value changes nothing. Of an order that is larger than a commit,
    /// what is written first is stored first.
    pub fn put(&mut self, name: &str, value: M::Value) {
        if self.value(name) == Some(&value) {
            return;
        }
        let shown = M::show(&value);
        // Other controllers, and the next run, read this form.
        debug_assert!(M::read(name, &shown).as_ref() == Ok(&value), "{name} is not {shown}");
        self.change(name, Some((Arc::new(value), shown)));
    }

    /// Removes an entry, if it exists.
    pub fn remove(&mut self, name: &str) {
        if self.value(name).is_some() {
            self.change(name, None);
        }
    }

    /// Stores the changes of `write` in one commit, also if the order is stored in parts. The book
    /// refuses an order in which they are larger than a commit of the store.
    pub fn together(&mut self, write: impl FnOnce(&mut Self)) {
        let first = self.mark();
        write(self);
        self.tied.extend(first + 1..self.mark());
    }

    fn change(&mut self, name: &str, after: Changed<M>) {
        let before = self.now(name);
        let value = after.as_ref().map(|(value, _)| Arc::clone(value));
        self.known.model.draft(name, before.as_deref(), value.as_deref());
        self.bytes += size(name, &after);
        let before = self.changed.insert(name.to_owned(), after);
        self.bytes -= before.as_ref().map_or(0, |before| size(name, before));
        self.undo.push((name.to_owned(), before));
    }

    /// The value of an entry, to keep.
    fn now(&self, name: &str) -> Option<Arc<M::Value>> {
        match self.changed.get(name) {
            Some(changed) => changed.as_ref().map(|(value, _)| Arc::clone(value)),
            None => self.known.values.get(name).cloned(),
        }
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
        self.tied.retain(|index| *index < mark);
        for (name, before) in self.undo.split_off(mark).into_iter().rev() {
            let undone = self.now(&name);
            self.bytes += before.as_ref().map_or(0, |before| size(&name, before));
            let change = match before {
                Some(before) => self.changed.insert(name.clone(), before),
                None => self.changed.remove(&name),
            };
            self.bytes -= change.as_ref().map_or(0, |change| size(&name, change));
            let value = self.now(&name);
            self.known.model.draft(&name, undone.as_deref(), value.as_deref());
        }
    }

    /// Number of changes, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.changed.len(), self.bytes)
    }

    /// Returns what is to be stored. The model is without it again.
    pub(super) fn into_planned(mut self) -> Planned<M> {
        let mut changes: Vec<Vec<StoreChange>> = Vec::with_capacity(self.changed.len() + 1);
        let mut values = HashMap::with_capacity(self.changed.len());
        let mut seen = BTreeSet::new();
        let undo = self.undo.iter().enumerate();
        for (index, (name, _)) in undo.filter(|(_, (name, _))| seen.insert(name)) {
            let (name, expected) = (name.clone(), self.expected(name));
            let change = match self.changed.get(&name) {
                Some(Some((value, shown))) => {
                    values.insert(name.clone(), Arc::clone(value));
                    StoreChange::Put { name, value: shown.clone(), expected }
                }
                // With 0 it was made and removed in this draft.
                Some(None) if expected != 0 => StoreChange::Remove { name, expected },
                _ => continue,
            };
            match changes.last_mut().filter(|_| self.tied.contains(&index)) {
                Some(together) => together.push(change),
                None => changes.push(vec![change]),
            }
        }
        if let Some(node) = self.node.filter(|_| self.leads) {
            let (value, name) = (Words::default().with("node", node).show(), LEADER.to_owned());
            changes.push(vec![StoreChange::Put { expected: self.expected(LEADER), value, name }]);
        }
        self.undo_to(0);
        Planned { changes, values }
    }

    fn expected(&self, name: &str) -> u64 {
        self.known.revisions.get(name).copied().unwrap_or_default()
    }
}

/// Bytes of the name and the JSON form of a changed entry.
fn size<V>(name: &str, changed: &Option<(Arc<V>, String)>) -> usize {
    name.len() + changed.as_ref().map_or(0, |(_, shown)| shown.len())
}

/// The write of the number of commits.
pub(super) fn commit_number(commits: u64, expected: u64) -> StoreChange {
    let (value, name) = (Words::default().with("count", commits).show(), COMMITS.to_owned());
    StoreChange::Put { name, value, expected }
}
