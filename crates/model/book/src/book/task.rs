//! The task of a book: it stores orders, and takes in what the store reports.
//!
//! Orders that wait are stored together, as far as they fit into one commit. An order that alone is
//! larger than a commit is stored in parts, in the order of its writes. Other controllers may order
//! between two parts: then the rest is checked again, as a whole. If the controller ends between
//! two parts, the first ones stay stored, and nobody stores the others.

use std::collections::VecDeque;

use bellrock_api::Network;
use bellrock_api::runtime::promise;
use futures_lite::{FutureExt, StreamExt};

use super::draft::{Planned, Values, commit_number};
use super::order::{AnyJob, Order, Parts};
use super::{
    BookModel, COMMIT_LIMIT, COMMITS, Draft, EntryBook, FOLLOW_AGAIN, FOLLOW_LIMIT, Known,
    MAX_ATTEMPTS, MAX_BATCH, NotStored, OWN_BYTES, OWN_CHANGES, StoreChange, StoreEvent,
    StoreEvents, StoreLimits,
};

/// The task of a book.
pub(super) struct Task<M: BookModel> {
    pub(super) book: EntryBook<M>,
    pub(super) network: Network,
    pub(super) events: StoreEvents,
    /// Orders that did not fit into the last commit.
    pub(super) left: VecDeque<AnyJob<M>>,
    /// Whether the store has gone back, and is not whole yet.
    pub(super) is_mending: bool,
}

enum Next<M> {
    Event(Option<StoreEvent>),
    Job(AnyJob<M>),
}

/// Orders that are stored together.
struct Batch<M> {
    jobs: Vec<AnyJob<M>>,
    /// Those that do not fit, for the next commit.
    not_yet: VecDeque<AnyJob<M>>,
    /// What is stored of the first order, which is alone then.
    parts: Parts,
}

impl<M: BookModel> Task<M> {
    /// Takes an event, or carries out orders.
    pub(super) async fn next(&mut self) {
        let next = match self.left.pop_front() {
            Some(job) => Next::Job(job),
            None => {
                let (jobs, events) = (&self.book.0.jobs.1, &mut self.events);
                let event = async { Next::Event(events.next().await) };
                // The book has the sender too, so the channel does not end.
                let job = async {
                    match jobs.recv().await {
                        Ok(job) => Next::Job(job),
                        Err(_) => std::future::pending().await,
                    }
                };
                event.or(job).await
            }
        };
        match next {
            Next::Event(event) => self.take(event).await,
            Next::Job(job) => self.carry_out(job).await,
        }
    }

    /// Carries out this order, and those that wait, as far as they fit into one commit.
    async fn carry_out(&mut self, first: AnyJob<M>) {
        let (not_yet, parts) = (VecDeque::new(), Parts::default());
        let mut batch = Batch { jobs: vec![first], not_yet, parts };
        let mut attempts = 0;
        while attempts < MAX_ATTEMPTS {
            if let Err(error) = self.wait_until_whole().await {
                return self.finish(batch, &Err(error));
            }
            let planned = match self.plan(&mut batch) {
                Ok(planned) => planned,
                Err(error) => return self.finish(batch, &Err(error)),
            };
            let before = batch.parts.stored.len();
            match self.store(&planned, &mut batch.parts).await {
                Ok(()) => return self.finish(batch, &Ok(())),
                Err(NotStored::Conflict { name }) => {
                    if let Err(error) = self.wait_for_change(&name, &planned.changes).await {
                        return self.finish(batch, &Err(error));
                    }
                }
                Err(error) => return self.finish(batch, &Err(error)),
            }
            // A large order has many commits, and each may lose a race.
            let has_stored = batch.parts.stored.len() > before;
            attempts = if has_stored { 0 } else { attempts + 1 };
        }
        let why = "other controllers of the cluster order all the time: try again";
        self.finish(batch, &Err(NotStored::Unavailable(why.into())));
    }

    /// Plans the orders of a batch, and adds those that wait. What does not fit waits for the next.
    fn plan(&self, batch: &mut Batch<M>) -> Result<Planned<M>, NotStored> {
        let mut known = self.book.known();
        if let Some(why) = known.unusable() {
            return Err(NotStored::Unavailable(why));
        }
        let limits = self.book.0.store.limits().of_batch();
        let Batch { jobs, not_yet, parts } = batch;
        let (node, stored) = (self.book.0.node.as_deref(), &parts.stored);
        let mut draft = Draft::new(&mut known, node, limits.changes, stored);
        let mut index = 0;
        while let Some(mut job) = match jobs.len() > index {
            true => Some(jobs.remove(index)),
            false if jobs.len() >= MAX_BATCH || !stored.is_empty() => None,
            false => not_yet.pop_front().or_else(|| self.book.0.jobs.1.try_recv().ok()),
        } {
            let mark = draft.mark();
            if !job.plan(&mut draft) {
                draft.undo_to(mark);
            } else if draft.size().0 > limits.changes || draft.size().1 > limits.bytes {
                if index == 0 {
                    // It is stored alone, and in parts if the store does not allow as much.
                    jobs.insert(0, job);
                    jobs.drain(1..).rev().for_each(|job| not_yet.push_front(job));
                    return Ok(draft.into_planned());
                }
                draft.undo_to(mark);
                not_yet.push_front(job);
                jobs.drain(index..).rev().for_each(|job| not_yet.push_front(job));
                break;
            }
            jobs.insert(index, job);
            index += 1;
        }
        Ok(draft.into_planned())
    }

    fn finish(&mut self, batch: Batch<M>, stored: &Result<(), NotStored>) {
        let Batch { jobs, not_yet, parts } = batch;
        jobs.into_iter().for_each(|job| job.finish(stored.clone(), &parts));
        self.left.extend(not_yet);
    }

    /// Stores the changes of an order, or of several that fit into one commit. What is in one list
    /// is stored in one commit.
    async fn store(
        &mut self,
        Planned { changes, values }: &Planned<M>,
        parts: &mut Parts,
    ) -> Result<(), NotStored> {
        let limits = self.book.0.store.limits();
        if !changes.is_empty() {
            parts.expect(changes.iter().map(Vec::len).sum());
        }
        let several = changes.iter().filter(|together| together.len() > 1);
        several.into_iter().try_for_each(|together| limits.of_part().check(together))?;
        let mut commits = limits.commits(changes.iter().map(Vec::as_slice)).into_iter().peekable();
        while let Some(part) = commits.next() {
            self.commit(part.clone(), values, None).await?;
            if commits.peek().is_some() {
                parts.add(&part);
            }
        }
        Ok(())
    }

    /// Stores changes in one commit, with the number of commits, and takes them in. `values`: those
    /// of the entries, as far as they are known. `count`: the number, if it is not the next one.
    pub(super) async fn commit(
        &mut self,
        mut changes: Vec<StoreChange>,
        values: &Values<M>,
        count: Option<u64>,
    ) -> Result<(), NotStored> {
        changes.push({
            let known = self.book.known();
            let expected = known.revisions.get(COMMITS).copied().unwrap_or_default();
            commit_number(count.unwrap_or(known.commits + 1), expected)
        });
        let committed = self.book.0.store.commit(changes.clone());
        let late = || NotStored::Unknown("the store does not answer".into());
        let committed = self.network.timeout(COMMIT_LIMIT, committed).await;
        let revision = committed.unwrap_or_else(|| Err(late()))?;
        self.book.known().committed(changes, values, revision);
        self.book.publish();
        Ok(())
    }

    /// Waits until the store is whole again, if it has gone back. An order that is stored before
    /// would give it the number of commits of a whole one.
    async fn wait_until_whole(&mut self) -> Result<(), NotStored> {
        let network = self.network.clone();
        let wait = async {
            while self.is_mending {
                let event = self.events.next().await;
                self.take(event).await;
            }
        };
        if network.timeout(FOLLOW_LIMIT, wait).await.is_some() {
            return Ok(());
        }
        // What was to be put back may be half done.
        self.events = self.book.0.store.follow();
        let why =
            "an old snapshot of the store was restored, and what it lacks is not put back yet";
        Err(NotStored::Unavailable(why.into()))
    }

    /// Waits until this controller knows of another revision of an entry than these changes expect,
    /// or of another commit. If the store has gone back meanwhile, and what it lacked is put back,
    /// the entry may be as expected again.
    async fn wait_for_change(
        &mut self,
        name: &str,
        changes: &[Vec<StoreChange>],
    ) -> Result<(), NotStored> {
        let network = self.network.clone();
        let revision = |known: &Known<M>| known.revisions.get(name).copied().unwrap_or_default();
        let expected = changes.iter().flatten().find(|change| change.name() == name);
        let expected = match expected {
            Some(change) => change.expected(),
            None => revision(&self.book.known()),
        };
        let last_commit =
            |known: &Known<M>| known.revisions.get(COMMITS).copied().unwrap_or_default();
        let commit = last_commit(&self.book.known());
        let is_as_before =
            |known: &Known<M>| revision(known) == expected && last_commit(known) == commit;
        let wait = async {
            while is_as_before(&self.book.known()) {
                let event = self.events.next().await;
                self.take(event).await;
            }
        };
        if network.timeout(FOLLOW_LIMIT, wait).await.is_some() {
            return Ok(());
        }
        if self.is_mending {
            // What was to be put back may be half done.
            self.events = self.book.0.store.follow();
        }
        let why = self.book.known().trouble.clone().unwrap_or_else(|| "it is late".into());
        let why = format!("this node does not see what other nodes have stored: {why}");
        Err(NotStored::Unavailable(why))
    }

    /// Makes this controller the leader, if the leader has ended and this one is next.
    pub(super) async fn lead_if_due(&mut self) {
        let Some(node) = self.book.0.node.clone() else { return };
        if self.book.known().due_leader() != Some(&node) {
            return;
        }
        let (answer, answered) = promise();
        let plan = move |draft: &mut Draft<'_, M>| {
            draft.lead();
            Ok::<_, ()>(())
        };
        self.carry_out(Box::new(Order::new(plan, answer))).await;
        match answered.await {
            Some(Ok(())) => {}
            // It is tried again after the next event.
            _ => self.network.sleep(FOLLOW_AGAIN).await,
        }
    }
}

impl StoreLimits {
    /// What the orders of a batch may have together.
    fn of_batch(self) -> Self {
        StoreLimits {
            changes: self.changes.saturating_sub(OWN_CHANGES).min(MAX_BATCH),
            bytes: self.bytes.saturating_sub(OWN_BYTES),
        }
    }

    /// What a part of an order may have beside the number of commits.
    fn of_part(self) -> Self {
        StoreLimits {
            changes: self.changes.saturating_sub(1),
            bytes: self.bytes.saturating_sub(OWN_BYTES),
        }
    }

    /// Splits changes into commits, as few as fit beside the number of commits. Each slice is in
    /// one commit. One that is too large has a commit alone, and the store refuses it.
    pub(super) fn commits<'c>(
        self,
        changes: impl IntoIterator<Item = &'c [StoreChange]>,
    ) -> Vec<Vec<StoreChange>> {
        let most = self.of_part();
        let (mut commits, mut bytes) = (Vec::<Vec<StoreChange>>::new(), 0_usize);
        for together in changes {
            let more = together.iter().map(StoreChange::bytes).fold(0, usize::saturating_add);
            bytes = bytes.saturating_add(more);
            let fits = |commit: &&mut Vec<StoreChange>| {
                commit.len() + together.len() <= most.changes && bytes <= most.bytes
            };
            match commits.last_mut().filter(fits) {
                Some(commit) => commit.extend_from_slice(together),
                None => {
                    bytes = more;
                    commits.push(together.to_vec());
                }
            }
        }
        commits
    }
}
