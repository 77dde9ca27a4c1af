//! What other nodes of a cluster have stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bellrock_apps::static_entries as app;
use bellrock_services::store::{StoreEvent, StoreEvents, StoredChange, StoredEntry};
use futures_lite::StreamExt;
use tracing::{error, info, warn};

use super::super::wait::wait_until;
use super::saved::{self, ORDERS, entry_name, unix_seconds};
use super::{Known, Shared, lock, read_orders};

/// Time after which the thread looks whether the store is still there.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Time to read the store anew. Orders wait meanwhile.
const READ_ANEW_LIMIT: Duration = Duration::from_secs(5);

/// Number of names in a line of the log. The others are counted.
const NAMES_SHOWN: usize = 20;

/// Starts the thread that follows the store. It ends with the store.
pub(super) fn start(shared: &Arc<Shared>) {
    let (weak, events) = (Arc::downgrade(shared), shared.store.follow());
    let thread = thread::Builder::new().name("static-store".into());
    if let Err(error) = thread.spawn(move || run(&weak, events)) {
        lock(&shared.known).trouble = Some(format!("the thread that follows etcd: {error}"));
    }
}

fn run(shared: &Weak<Shared>, mut events: StoreEvents) {
    loop {
        let event = wait_until(Instant::now() + LOOK_EVERY, events.next());
        let Some(shared) = shared.upgrade() else { return };
        let Some(event) = event else { continue };
        let Some(event) = event else { return };
        if !shared.take(event) {
            events = shared.store.follow();
            shared.read_anew(&mut events);
        }
    }
}

impl Shared {
    /// Takes an event. Returns false if the store must be read anew for it.
    fn take(&self, event: StoreEvent) -> bool {
        let known = &mut *lock(&self.known);
        match event {
            StoreEvent::Unreachable(why) => {
                if known.trouble.replace(why.clone()).is_none() {
                    warn!("static entries cannot be changed: {why}");
                }
            }
            StoreEvent::Reachable => known.trouble = None,
            StoreEvent::Changed(changes) => self.changed(known, changes),
            StoreEvent::Read { revision, entries } => {
                known.trouble = None;
                // It was read before this node's last order, or has gone back.
                let counted = counted(&entries).map_or(0, |entry| entry.revision);
                if known.revisions.get(ORDERS).is_some_and(|of| counted < *of) {
                    return false;
                }
                self.read(known, revision, entries);
            }
        }
        self.put_back(known);
        self.followed.notify_all();
        true
    }

    /// Reads the store while nothing is ordered here: so what it lacks, it has lost.
    fn read_anew(&self, events: &mut StoreEvents) {
        let known = &mut *lock(&self.known);
        let until = Instant::now() + READ_ANEW_LIMIT;
        while let Some(Some(event)) = wait_until(until, events.next()) {
            match event {
                StoreEvent::Read { revision, entries } => {
                    let orders = counted(&entries).map_or(0, |entry| read_orders(&entry.value));
                    match orders < known.orders {
                        true => self.went_back(known, orders, &entries),
                        false => {
                            known.revisions.values_mut().for_each(|of| *of = 0);
                            self.read(known, revision, entries);
                        }
                    }
                    self.put_back(known);
                    return self.followed.notify_all();
                }
                StoreEvent::Unreachable(why) => known.trouble = Some(why),
                StoreEvent::Changed(_) | StoreEvent::Reachable => {}
            }
        }
    }

    fn read(&self, known: &mut Known, revision: u64, all: Vec<StoredEntry>) {
        let there: BTreeSet<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
        // What this node has stored since is not in it.
        let is_gone = |name: &str, of: u64| of <= revision && !there.contains(name);
        let gone = known.revisions.iter().filter(|(name, of)| is_gone(name, **of));
        let gone = gone.map(|(name, _)| StoredChange::Removed { name: name.clone(), revision });
        let mut changes: Vec<_> = gone.collect();
        changes.extend(all.into_iter().map(StoredChange::Put));
        self.changed(known, changes);
        if !known.is_loaded {
            known.is_loaded = true;
            self.entries.complete();
            let (entries, _) = self.entries.snapshot();
            info!("the cluster has {} static entries", entries.len());
        }
    }

    fn changed(&self, known: &mut Known, changes: Vec<StoredChange>) {
        let (now, unix) = (self.entries.now(), unix_seconds());
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        for change in changes {
            let (name, revision, value) = match change {
                StoredChange::Put(entry) => (entry.name, entry.revision, Some(entry.value)),
                StoredChange::Removed { name, revision } => (name, revision, None),
            };
            // This node's own, or older than that.
            if known.revisions.get(&name).is_some_and(|of| revision <= *of && value.is_some())
                || known.revisions.get(&name).is_some_and(|of| revision < *of)
            {
                continue;
            }
            match &value {
                Some(_) => known.revisions.insert(name.clone(), revision),
                None => known.revisions.remove(&name),
            };
            match (entry_name(&name), value) {
                (None, Some(value)) if name == ORDERS => known.orders = read_orders(&value),
                (None, _) => {}
                (Some(entry), value) => {
                    known.lost.remove(entry);
                    known.unreadable.remove(entry);
                    match value.map(|value| saved::read(&value, now, unix)) {
                        None => remove.push(entry.to_owned()),
                        Some(Ok(read)) => put.push(read),
                        // What was installed under this name stays.
                        Some(Err(why)) => {
                            warn!(entry, "a static entry that this release cannot read: {why}");
                            known.unreadable.insert(entry.to_owned());
                        }
                    }
                }
            }
        }
        self.entries.apply(put, &remove);
    }

    /// An old snapshot of the store was restored. `orders`: those that it includes.
    fn went_back(&self, known: &mut Known, orders: u64, all: &[StoredEntry]) {
        let (now, unix) = (self.entries.now(), unix_seconds());
        let (ours, _) = self.entries.snapshot();
        let mut last_number = ours.iter().map(|entry| entry.number).max().unwrap_or_default();
        let numbers: BTreeSet<u32> = ours.iter().map(|entry| entry.number).collect();
        let mut ours: BTreeMap<String, app::StaticEntry> =
            ours.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        known.revisions = all.iter().map(|entry| (entry.name.clone(), entry.revision)).collect();
        known.unreadable.clear();
        let (mut back, mut lost) = (Vec::new(), BTreeSet::new());
        for stored in all {
            let Some(name) = entry_name(&stored.name) else { continue };
            let Ok(mut entry) = saved::read(&stored.value, now, unix) else {
                known.unreadable.insert(name.to_owned());
                continue;
            };
            match ours.remove(name) {
                Some(our) if is_same(&our, &entry) => {}
                Some(_) => drop(lost.insert(name.to_owned())),
                None => {
                    if numbers.contains(&entry.number) {
                        last_number = last_number.max(entry.number).saturating_add(1);
                        entry.number = last_number;
                        lost.insert(name.to_owned());
                    }
                    back.push(entry);
                }
            }
        }
        lost.extend(ours.into_keys());
        error!(
            "etcd has the static entries of {orders} orders, and this node those of {}: an old snapshot of \
             etcd was restored. This node puts back: {}. Removed since the snapshot, and there again: {}",
            known.orders,
            listed(lost.iter().map(String::as_str)),
            listed(back.iter().map(|entry| entry.name.as_str())),
        );
        self.entries.apply(back, &[]);
        known.lost = lost;
    }
}

/// The number of orders among the entries of a store.
fn counted(all: &[StoredEntry]) -> Option<&StoredEntry> {
    all.iter().find(|entry| entry.name == ORDERS)
}

/// Whether two entries differ only by the second in which they end.
fn is_same(one: &app::StaticEntry, other: &app::StaticEntry) -> bool {
    let end = if one.end.is_some() == other.end.is_some() { one.end } else { other.end };
    *one == app::StaticEntry { end, ..other.clone() }
}

fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let count = names.len();
    let shown: Vec<&str> = names.take(NAMES_SHOWN).collect();
    match count {
        0 => "none".to_owned(),
        _ if count > shown.len() => {
            format!("{} and {} others", shown.join(", "), count - shown.len())
        }
        _ => shown.join(", "),
    }
}
