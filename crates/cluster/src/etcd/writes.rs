//! Execution of transactions and of many independent writes.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::answers::{Response, Txn};
use super::client::{Answered, Call};
use super::endpoint::Failure;
use super::error::Doubt;
use super::limits::{MAX_BATCH, MAX_HISTORY_STEPS, MAX_TRANSACTION_BYTES, SETTLEMENT};
use super::transaction::{Operation, Outcome, Transaction, Write};
use super::{Client, Entry, Error, requests};

/// What the values of a key say about a write with an unknown outcome.
#[derive(Debug, PartialEq, Eq)]
enum Settled {
    /// It was executed, at this revision.
    Committed(i64),
    /// It was not, and its compare will never hold again.
    Conflict(Option<Entry>),
    /// It was not yet: its compare still holds.
    Unchanged,
    /// They do not say.
    Unclear,
}

impl Client {
    /// Executes a transaction.
    ///
    /// # Errors
    /// [`Error`]: it was not executed, and will not be.
    pub async fn transact(&self, transaction: &Transaction) -> Result<Outcome, Error> {
        transaction.check()?;
        let fence = transaction.fence();
        let body = requests::transaction(self.prefix(), transaction);
        match self.call::<Txn>(txn(body, fence.is_some())).await {
            Ok(Answered { answer, earlier, .. }) => {
                let settlement = Instant::now() + SETTLEMENT;
                Ok(self.answered(answer, None, earlier, fence.as_ref(), settlement).await)
            }
            Err(failure) => {
                let settlement = Instant::now() + SETTLEMENT;
                self.failed(failure, fence.as_ref(), settlement).await
            }
        }
    }

    /// Executes writes that do not depend on each other, in this order, many in one request: one
    /// that conflicts does not keep others from being executed. Returns an outcome for each.
    ///
    /// An error of one request (etcd has no space, a lease that is over) is that of all writes in
    /// it.
    pub async fn write_each(&self, writes: &[Write]) -> Vec<Result<Outcome, Error>> {
        let mut outcomes = Vec::with_capacity(writes.len());
        let mut rest = writes;
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(batch_length(rest));
            rest = others;
            outcomes.extend(self.write_batch(batch).await);
        }
        outcomes
    }

    async fn write_batch(&self, batch: &[Write]) -> Vec<Result<Outcome, Error>> {
        for write in batch {
            if let Err(error) = as_transaction(write).check() {
                // It is alone in its batch.
                return vec![Err(error); batch.len()];
            }
        }
        let body = requests::batch(self.prefix(), batch);
        let repeatable = batch.iter().all(Write::is_fence);
        let mut outcomes = Vec::with_capacity(batch.len());
        let called = self.call::<Txn>(txn(body, repeatable)).await;
        let settlement = Instant::now() + SETTLEMENT;
        let Answered { answer, earlier, endpoint } = match called {
            Ok(answered) => answered,
            Err(failure) => {
                for write in batch {
                    outcomes.push(self.failed(failure.clone(), Some(write), settlement).await);
                }
                return outcomes;
            }
        };
        let revision = answer.header.revision;
        let mut each = answer.responses.into_iter().map(|response| response.response_txn);
        for write in batch {
            outcomes.push(Ok(match each.next().flatten() {
                Some(one) => {
                    let earlier = earlier.clone();
                    self.answered(one, Some(revision), earlier, Some(write), settlement).await
                }
                None => {
                    let why = "an answer has fewer parts than its request".into();
                    Outcome::Unknown { why: self.endpoints()[endpoint].malformed(why) }
                }
            }));
        }
        outcomes
    }

    /// Reads an answer, in whose transaction it may have been executed at `revision` (that of its
    /// own header, if not given). A compare may have failed because an earlier attempt was
    /// executed.
    async fn answered(
        &self,
        answer: Txn,
        revision: Option<i64>,
        earlier: Option<Failure>,
        fence: Option<&Write>,
        settlement: Instant,
    ) -> Outcome {
        if answer.succeeded {
            return Outcome::Committed { revision: revision.unwrap_or(answer.header.revision) };
        }
        let found = self.found(answer.responses);
        let Some(Failure { error, doubt }) = earlier else { return Outcome::Conflict { found } };
        match self.settle(fence, settlement).await {
            Settled::Committed(revision) => Outcome::Committed { revision },
            Settled::Conflict(_) => Outcome::Conflict { found },
            // Another compare did not hold.
            Settled::Unchanged if doubt == Doubt::Past => Outcome::Conflict { found },
            Settled::Unchanged | Settled::Unclear => Outcome::Unknown { why: error },
        }
    }

    /// Finds out what became of a write that has no answer.
    async fn failed(
        &self,
        failure: Failure,
        fence: Option<&Write>,
        settlement: Instant,
    ) -> Result<Outcome, Error> {
        let Failure { error, doubt } = failure;
        if doubt == Doubt::None {
            return Err(error);
        }
        match self.settle(fence, settlement).await {
            Settled::Committed(revision) => Ok(Outcome::Committed { revision }),
            Settled::Conflict(found) => {
                Ok(Outcome::Conflict { found: found.into_iter().collect() })
            }
            Settled::Unchanged if doubt == Doubt::Past => Err(error),
            Settled::Unchanged | Settled::Unclear => Ok(Outcome::Unknown { why: error }),
        }
    }

    /// Looks for a write among the values that its key has had, from the newest to the compared
    /// one.
    async fn settle(&self, fence: Option<&Write>, until: Instant) -> Settled {
        let Some(fence) = fence else { return Settled::Unclear };
        let (key, mut newest, mut at) = (fence.operation.key(), None, 0);
        for _ in 0..MAX_HISTORY_STEPS {
            let left = until.saturating_duration_since(Instant::now());
            // It fails also when the revision was compacted.
            let Ok(entry) = self.read_at(key, at, left).await else { return Settled::Unclear };
            if at == 0 {
                newest.clone_from(&entry);
            }
            match step(fence, entry.as_ref(), at == 0) {
                Step::Settled(Settled::Conflict(_)) => return Settled::Conflict(newest),
                Step::Settled(settled) => return settled,
                Step::Before(revision) => at = revision,
            }
        }
        Settled::Unclear
    }

    fn found(&self, responses: Vec<Response>) -> Vec<Entry> {
        let ranges = responses.into_iter().filter_map(|response| response.response_range);
        let all = ranges.flat_map(|range| range.kvs);
        all.filter_map(|one| one.entry(self.prefix())).collect()
    }
}

/// What one value of the key says.
enum Step {
    Settled(Settled),
    /// Nothing; the value at this revision may say more.
    Before(i64),
}

fn step(fence: &Write, entry: Option<&Entry>, is_newest: bool) -> Step {
    // The compare holds, or the one that changed the key next was somebody else.
    let untouched = || if is_newest { Settled::Unchanged } else { Settled::Conflict(None) };
    let Some(entry) = entry else {
        // Who removed a key is not kept.
        return Step::Settled(if fence.revision == 0 { untouched() } else { Settled::Unclear });
    };
    if entry.mod_revision == fence.revision {
        return Step::Settled(untouched());
    }
    if entry.mod_revision < fence.revision {
        return Step::Settled(Settled::Unclear);
    }
    match &fence.operation {
        Operation::Put { value, lease, .. } if *value == entry.value && *lease == entry.lease => {
            Step::Settled(Settled::Committed(entry.mod_revision))
        }
        _ => Step::Before(entry.mod_revision - 1),
    }
}

/// Number of writes, from the first on, that fit into one request: each of another key.
fn batch_length(writes: &[Write]) -> usize {
    let (mut keys, mut bytes, mut length) = (BTreeSet::new(), 0, 0);
    for write in writes.iter().take(MAX_BATCH) {
        // The key is in the request three times.
        bytes += write.operation.bytes() + 2 * write.operation.key().len();
        let wrong = as_transaction(write).check().is_err();
        if wrong || bytes > MAX_TRANSACTION_BYTES || !keys.insert(write.operation.key()) {
            break;
        }
        length += 1;
    }
    // One that is wrong or too large by itself is refused by itself.
    length.max(1)
}

fn as_transaction(write: &Write) -> Transaction {
    Transaction { compares: Vec::new(), operations: vec![write.operation.clone()] }
}

fn txn(body: hyper::body::Bytes, repeatable: bool) -> Call {
    Call { path: requests::TXN, body, repeatable, linearizable: true, streamed: false }
}

#[cfg(test)]
mod tests {
    use super::super::LeaseId;
    use super::*;

    fn entry(value: &str, mod_revision: i64) -> Entry {
        Entry { key: b"k".into(), value: value.into(), mod_revision, lease: None }
    }

    /// What values of a key, the newest first, say about a write.
    fn settle(fence: &Write, values: &[Option<Entry>]) -> Settled {
        for (index, value) in values.iter().enumerate() {
            if let Step::Settled(settled) = step(fence, value.as_ref(), index == 0) {
                return settled;
            }
        }
        Settled::Unclear
    }

    #[test]
    fn values_of_a_key_settle_what_became_of_a_put() {
        let put = Write::put("k", "ours", 7);
        let settle = |values: &[Option<Entry>]| settle(&put, values);
        assert_eq!(settle(&[Some(entry("old", 7))]), Settled::Unchanged);
        assert_eq!(settle(&[Some(entry("ours", 9))]), Settled::Committed(9));
        let overwritten = [Some(entry("other", 12)), Some(entry("ours", 9))];
        assert_eq!(settle(&overwritten), Settled::Committed(9));
        let beaten = [Some(entry("other", 12)), Some(entry("old", 7))];
        assert_eq!(settle(&beaten), Settled::Conflict(None));
        assert_eq!(settle(&[None]), Settled::Unclear, "it was removed before or after");
        assert_eq!(settle(&[Some(entry("other", 12)), None]), Settled::Unclear);
        assert_eq!(settle(&[Some(entry("ours", 3))]), Settled::Unclear, "etcd went back");
        let mut leased = entry("ours", 9);
        leased.lease = Some(LeaseId(5));
        let beaten = [Some(leased), Some(entry("old", 7))];
        assert_eq!(settle(&beaten), Settled::Conflict(None), "another lease is another put");
    }

    #[test]
    fn values_of_a_key_settle_what_became_of_a_creation() {
        let put = Write::put("k", "ours", 0);
        let settle = |values: &[Option<Entry>]| settle(&put, values);
        assert_eq!(settle(&[None]), Settled::Unchanged);
        assert_eq!(settle(&[Some(entry("ours", 9))]), Settled::Committed(9));
        assert_eq!(settle(&[Some(entry("other", 9)), None]), Settled::Conflict(None));
    }

    #[test]
    fn values_of_a_key_settle_what_became_of_a_removal() {
        let delete = Write::delete("k", 7);
        let settle = |values: &[Option<Entry>]| settle(&delete, values);
        assert_eq!(settle(&[Some(entry("old", 7))]), Settled::Unchanged);
        assert_eq!(settle(&[None]), Settled::Unclear, "somebody removed it");
        let written = [Some(entry("other", 9)), Some(entry("old", 7))];
        assert_eq!(settle(&written), Settled::Conflict(None));
    }

    #[test]
    fn batches_are_bounded_and_have_each_key_once() {
        let writes: Vec<Write> =
            (0..MAX_BATCH * 2).map(|number| Write::put(format!("k{number}"), "v", 0)).collect();
        assert_eq!(batch_length(&writes), MAX_BATCH);
        assert_eq!(batch_length(&writes[..7]), 7);
        let mut again = writes[..7].to_vec();
        again[5] = Write::delete("k2", 1);
        assert_eq!(batch_length(&again), 5, "in the order that was asked for");
        let large = Write::put("x", vec![0; MAX_TRANSACTION_BYTES / 2], 0);
        let large = [large, Write::put("y", vec![0; MAX_TRANSACTION_BYTES / 2], 0)];
        assert_eq!(batch_length(&large), 1);
        let mut wrong = writes[..7].to_vec();
        wrong[3] = Write::put("", "", 0);
        assert_eq!(batch_length(&wrong), 3, "the others are executed");
        assert_eq!(batch_length(&wrong[3..]), 1);
    }
}
