//! What a book takes in: reports of its store, and its own commits.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellrock_api::AppEvent;
use futures_lite::StreamExt;

use super::draft::Values;
use super::{
    BookModel, COMMITS, FOLLOW_AGAIN, FOLLOW_LIMIT, Known, LEADER, NAMES_SHOWN, NODE, Task,
};
use crate::words::Words;
use crate::{NotStored, StoreChange, StoreEvent, StoredChange, StoredEntry};

impl<M: BookModel> Task<M> {
    /// Takes what the store reports. `None`: it reports nothing any more.
    pub(super) async fn take(&mut self, event: Option<StoreEvent>) {
        let Some(event) = event else {
            self.network.sleep(FOLLOW_AGAIN).await;
            self.events = self.book.0.store.follow();
            return;
        };
        let is_read = matches!(event, StoreEvent::Read { .. });
        let is_taken = self.book.known().take(event);
        if !is_taken {
            self.read_anew().await;
        } else if is_read {
            self.is_mending = false;
        }
        self.book.publish();
    }

    /// Reads the store while nothing is stored here: so what it lacks, it has lost.
    async fn read_anew(&mut self) {
        self.events = self.book.0.store.follow();
        let (network, events) = (self.network.clone(), &mut self.events);
        let read = async {
            while let Some(event) = events.next().await {
                if let StoreEvent::Read { revision, entries } = event {
                    return Some((revision, entries));
                }
            }
            None
        };
        // What is read later is compared again.
        let Some(Some((revision, entries))) = network.timeout(FOLLOW_LIMIT, read).await else {
            return;
        };
        let stored_count = count_of(&entries);
        let wrong = {
            let mut known = self.book.known();
            if stored_count >= known.commits {
                known.take(StoreEvent::Read { revision, entries });
                self.is_mending = false;
                return;
            }
            known.went_back(revision, entries)
        };
        // Another controller may put back the same: then it is read several times.
        if !std::mem::replace(&mut self.is_mending, true) {
            self.report_old_snapshot(&wrong);
        }
        self.put_back(&wrong, stored_count).await;
    }

    /// Publishes which entries an old snapshot of the store lacks, and which it has too many.
    fn report_old_snapshot(&self, wrong: &[StoreChange]) {
        let is_put = |change: &&StoreChange| matches!(change, StoreChange::Put { .. });
        let (put, removed): (Vec<_>, Vec<_>) = wrong.iter().partition(is_put);
        let text = format!(
            "an old snapshot of the store was restored; this controller puts back: {}; removes again: {}",
            listed(&put),
            listed(&removed),
        );
        self.network.publish(AppEvent::new("store_put_back", &text).alarming());
    }

    /// Stores the changes that bring an older store to what is known. `stored_count`: the number of
    /// commits that the store has. What does not succeed is tried again when the store is read
    /// again.
    async fn put_back(&mut self, wrong: &[StoreChange], stored_count: u64) {
        let mut commits = self.book.0.store.limits().commits(wrong.chunks(1));
        let last = commits.pop().unwrap_or_default();
        // Until all is back the number stays that of the snapshot. So another controller that reads
        // the store meanwhile does not take it for whole.
        let commits = commits.into_iter().map(|part| (part, Some(stored_count)));
        for (part, count) in commits.chain([(last, None)]) {
            match self.commit(part, &Values::<M>::new(), count).await {
                Ok(()) => {}
                Err(error) => {
                    // Another controller does the same. What it has stored is read.
                    let is_conflict = matches!(error, NotStored::Conflict { .. });
                    if !is_conflict {
                        self.book.known().trouble = Some(error.to_string());
                    }
                    self.events = self.book.0.store.follow();
                    return;
                }
            }
        }
        self.is_mending = false;
    }
}

impl<M: BookModel> Known<M> {
    /// Takes an event. Returns false if the store has fewer commits than are known: it was read
    /// before the last one, or has gone back.
    pub(super) fn take(&mut self, event: StoreEvent) -> bool {
        match event {
            StoreEvent::Unreachable(why) => self.trouble = Some(why),
            StoreEvent::Reachable => self.trouble = None,
            StoreEvent::Changed(changes) => {
                changes.into_iter().for_each(|change| self.change(change));
            }
            StoreEvent::Read { revision, entries } => {
                self.trouble = None;
                if count_of(&entries) < self.commits {
                    return false;
                }
                self.read(revision, entries);
            }
        }
        true
    }

    fn read(&mut self, revision: u64, entries: Vec<StoredEntry>) {
        let there: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let names = self.revisions.keys().chain(self.values.keys()).chain(&self.unreadable);
        let mut gone: BTreeSet<String> =
            names.filter(|name| !there.contains(name.as_str())).cloned().collect();
        let nodes = self.nodes.iter().map(|node| format!("{NODE}{node}"));
        gone.extend(nodes.filter(|name| !there.contains(name.as_str())));
        for name in gone {
            self.revisions.remove(&name);
            self.set(&name, None);
        }
        // An entry may have another value with the same revision: a store that was restored from a
        // snapshot gives out its revisions again.
        for StoredEntry { name, value, revision } in entries {
            self.set_stored(name, value, revision);
        }
        // It has all commits of this controller, so what comes later has larger revisions.
        self.revision = revision;
        self.is_read = true;
    }

    fn change(&mut self, change: StoredChange) {
        let (name, revision, value) = match change {
            StoredChange::Put(entry) => (entry.name, entry.revision, Some(entry.value)),
            StoredChange::Removed { name, revision } => (name, revision, None),
        };
        // All that is in an order's way comes before it, so it is known with the order itself.
        if revision <= self.revision && !name.starts_with(NODE) {
            return;
        }
        match value {
            Some(value) => self.set_stored(name, value, revision),
            None => {
                self.revisions.remove(&name);
                self.set(&name, None);
            }
        }
    }

    fn set_stored(&mut self, name: String, value: String, revision: u64) {
        if !name.starts_with(NODE) {
            self.revisions.insert(name.clone(), revision);
        }
        self.set(&name, Some(&value));
    }

    /// Takes in the value of a name.
    fn set(&mut self, name: &str, value: Option<&str>) {
        let word = |key: &str| Words::parse(value?).ok()?.text(key).map(str::to_owned);
        if name == COMMITS {
            let count = word("count").and_then(|text| text.parse().ok()).unwrap_or_default();
            // It is smaller only in a snapshot that is being mended.
            self.commits = self.commits.max(count);
        } else if name == LEADER {
            self.leader = word("node");
        } else if let Some(node) = name.strip_prefix(NODE) {
            match value {
                Some(_) => self.nodes.insert(node.to_owned()),
                None => self.nodes.remove(node),
            };
        } else if M::has(name) {
            self.unreadable.remove(name);
            match value.map(|value| M::read(name, value)).transpose() {
                Ok(value) => self.set_value(name, value.map(Arc::new)),
                // What was known under this name stays.
                Err(_) => drop(self.unreadable.insert(name.to_owned())),
            }
        }
    }

    fn set_value(&mut self, name: &str, value: Option<Arc<M::Value>>) {
        let before = match &value {
            Some(value) => self.values.insert(name.to_owned(), Arc::clone(value)),
            None => self.values.remove(name),
        };
        self.model.change(name, before.as_deref(), value.as_deref());
    }

    /// Takes in a commit of this controller. As it had the next number, all others before it are
    /// known. `values`: those of its entries, as far as they are known.
    pub(super) fn committed(
        &mut self,
        changes: Vec<StoreChange>,
        values: &Values<M>,
        revision: u64,
    ) {
        for change in changes {
            match change {
                StoreChange::Put { name, value, .. } => match values.get(&name) {
                    Some(value) => {
                        self.unreadable.remove(&name);
                        self.set_value(&name, Some(Arc::clone(value)));
                        self.revisions.insert(name, revision);
                    }
                    None => self.set_stored(name, value, revision),
                },
                StoreChange::Remove { name, .. } => {
                    self.revisions.remove(&name);
                    self.set(&name, None);
                }
            }
        }
        self.revision = self.revision.max(revision);
    }

    /// Returns the changes that bring an older store to what is known.
    fn went_back(&mut self, revision: u64, entries: Vec<StoredEntry>) -> Vec<StoreChange> {
        self.revisions.clear();
        self.revision = revision;
        self.nodes.clear();
        self.leader = None;
        self.unreadable.clear();
        let mut changes = Vec::new();
        let mut missing: BTreeSet<String> = self.values.keys().cloned().collect();
        for StoredEntry { name, value, revision } in entries {
            // The store knows best who lives, and who leads.
            if name == COMMITS || name == LEADER || name.starts_with(NODE) {
                self.set_stored(name, value, revision);
                continue;
            }
            self.revisions.insert(name.clone(), revision);
            if !M::has(&name) {
                continue;
            }
            missing.remove(&name);
            let Some(known) = self.values.get(&name) else {
                changes.push(StoreChange::Remove { name, expected: revision });
                continue;
            };
            if M::read(&name, &value).as_ref() != Ok(known) {
                let value = M::show(known);
                changes.push(StoreChange::Put { name, value, expected: revision });
            }
        }
        for name in missing {
            let value = M::show(&self.values[&name]);
            changes.push(StoreChange::Put { name, value, expected: 0 });
        }
        changes
    }
}

/// Lists the first names of changed entries, and counts the others.
fn listed(changes: &[&StoreChange]) -> String {
    let names: Vec<&str> = changes.iter().take(NAMES_SHOWN).map(|change| change.name()).collect();
    match changes.len() - names.len() {
        _ if names.is_empty() => "none".to_owned(),
        0 => names.join(", "),
        others => format!("{} and {others} others", names.join(", ")),
    }
}

/// The number of commits among the entries of a store.
fn count_of(entries: &[StoredEntry]) -> u64 {
    let entry = entries.iter().find(|entry| entry.name == COMMITS);
    let words = entry.and_then(|entry| Words::parse(&entry.value).ok());
    words.and_then(|words| words.read("count").ok()).unwrap_or_default()
}
