//! Static entries in a store: they outlast the controller, and all controllers of a cluster have
//! the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellrock_book::{BookModel, Draft, EntryBook, NotOrdered};

use super::StaticEntries;
use super::check::Plan;
use super::form::{entry_name, read_stored, show_stored, stored_name};
use super::index::EntryIndex;
use super::order::{StaticChange, StaticEntry, StaticOrder, StaticRefusal};

/// The stored entries.
pub(super) type StoredEntries = EntryBook<EntryIndex>;

impl BookModel for EntryIndex {
    type Value = Arc<StaticEntry>;

    fn read(name: &str, value: &str) -> Result<Arc<StaticEntry>, String> {
        read_stored(name, value).map(Arc::new)
    }

    fn show(entry: &Arc<StaticEntry>) -> String {
        show_stored(entry)
    }

    /// Earlier releases count orders in an entry of their own, which stays as it is.
    fn has(name: &str) -> bool {
        entry_name(name).is_some()
    }

    fn change(
        &mut self,
        name: &str,
        _: Option<&Arc<StaticEntry>>,
        after: Option<&Arc<StaticEntry>>,
    ) {
        if let Some(name) = entry_name(name) {
            self.store(name, after);
        }
    }

    fn draft(
        &mut self,
        name: &str,
        _: Option<&Arc<StaticEntry>>,
        after: Option<&Arc<StaticEntry>>,
    ) {
        if let Some(name) = entry_name(name) {
            self.set(name, after);
        }
    }
}

impl StaticEntries {
    /// Sets and removes entries, or none of them, and returns when that is stored. Switches hear of
    /// it then. A store of a cluster takes an order that is larger than a commit in parts.
    ///
    /// The task of the app carries it out, so the controller must run.
    ///
    /// # Errors
    /// [`NotOrdered`]: the first entry or name that is wrong, or the store cannot be used.
    pub async fn order(
        &self,
        order: StaticOrder,
    ) -> Result<StaticChange, NotOrdered<StaticRefusal>> {
        // Entries that have ended must not be in the way.
        self.current(|_| ());
        self.note_versions(&order);
        let mut planner = Planner { order, seen: None, removed: BTreeSet::new() };
        let ordered = self.0.book.order(move |draft| planner.plan(draft)).await;
        self.take_stored();
        ordered
    }
}

/// An order, which may be checked several times until it is stored.
struct Planner {
    order: StaticOrder,
    /// What it changes, since it was checked first.
    seen: Option<Vec<SeenEntry>>,
    /// Numbers of the entries that it removes, also in earlier commits.
    removed: BTreeSet<u32>,
}

/// An entry that an order changes. Before that it counts only if it has not ended.
struct SeenEntry {
    name: String,
    before: Option<Arc<StaticEntry>>,
    after: Option<Arc<StaticEntry>>,
}

impl Planner {
    fn plan(&mut self, draft: &mut Draft<'_, EntryIndex>) -> Result<StaticChange, StaticRefusal> {
        self.check_unchanged(draft)?;
        // Those are removed already.
        self.order.remove.retain(|name| !draft.has_stored(&stored_name(name)));
        let Plan { set, remove, mut change } = draft.model().plan(&self.order)?;
        self.removed.extend(remove.iter().filter_map(|name| draft.model().numbers.get(name)));
        let changes = set.iter().map(|entry| (&entry.name, Some(entry)));
        let changes = changes.chain(remove.iter().map(|name| (name, None)));
        let see = |(name, after): (&String, Option<&Arc<StaticEntry>>)| {
            let before = draft.model().entry(name).cloned();
            SeenEntry { name: name.clone(), before, after: after.cloned() }
        };
        self.seen.get_or_insert_with(|| changes.map(see).collect());

        let is_stored = |entry: &&StaticEntry| draft.has_stored(&stored_name(&entry.name));
        let stored = self.order.set.iter().filter(is_stored).count();
        change.set += stored;
        change.unchanged -= stored;
        change.removed = self.removed.len();
        change.numbers.extend(&self.removed);

        let ended = self.ended(draft);
        let has_changed = set.len() + remove.len() > 0;
        for changes in draft.model().sequence(&set, &remove, draft.room()) {
            draft.together(|draft| {
                for (name, after) in changes {
                    match after {
                        Some(entry) => draft.put(&stored_name(&name), entry),
                        None => draft.remove(&stored_name(&name)),
                    }
                }
            });
        }
        if has_changed {
            // As many as fit into the commit: so they cost none of their own.
            let room = draft.room();
            ended.iter().take(room).for_each(|name| draft.remove(name));
        }
        Ok(change)
    }

    /// Returns names in the store of entries that have ended, and that the order does not set
    /// again.
    fn ended(&self, draft: &Draft<'_, EntryIndex>) -> Vec<String> {
        let set: BTreeSet<&str> = self.order.set.iter().map(|entry| &*entry.name).collect();
        let ended = draft.model().ended.keys().filter(|name| !set.contains(name.as_str()));
        ended.take(draft.room()).map(|name| stored_name(name)).collect()
    }

    /// Checks that nobody else has changed an entry of the order since it was checked first: who
    /// orders has not seen what he would replace.
    fn check_unchanged(&self, draft: &Draft<'_, EntryIndex>) -> Result<(), StaticRefusal> {
        for SeenEntry { name, before, after } in self.seen.iter().flatten() {
            let is_stored = draft.has_stored(&stored_name(name));
            let expected = if is_stored { after } else { before };
            if !is_same(expected.as_deref(), draft.model().entry(name).map(|entry| &**entry)) {
                return Err(StaticRefusal::Conflict(name.clone()));
            }
        }
        Ok(())
    }
}

/// Whether two entries differ by their numbers only, which no operator gives.
fn is_same(one: Option<&StaticEntry>, other: Option<&StaticEntry>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => *one == StaticEntry { number: one.number, ..other.clone() },
        (one, other) => one.is_none() && other.is_none(),
    }
}

#[cfg(test)]
mod tests;
