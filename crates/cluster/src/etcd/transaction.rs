//! Transactions: what is compared, what is changed, and what came of it.

use std::collections::BTreeSet;

use super::limits::{MAX_OPERATIONS, MAX_TRANSACTION_BYTES};
use super::{Entry, Error, LeaseId};

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compare {
    /// The key was last changed at this revision; 0: it does not exist.
    Revision {
        /// Key.
        key: Vec<u8>,
        /// Revision.
        revision: i64,
    },
    /// The key has this value.
    Value {
        /// Key.
        key: Vec<u8>,
        /// Value.
        value: Vec<u8>,
    },
}

impl Compare {
    /// The key that is compared.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Compare::Revision { key, .. } | Compare::Value { key, .. } => key,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Compare::Revision { key, .. } => key.len(),
            Compare::Value { key, value } => key.len() + value.len(),
        }
    }
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Writes a value.
    Put {
        /// Key.
        key: Vec<u8>,
        /// Value.
        value: Vec<u8>,
        /// Lease that the key ends with.
        lease: Option<LeaseId>,
    },
    /// Removes the key.
    Delete {
        /// Key.
        key: Vec<u8>,
    },
}

impl Operation {
    /// The key that is changed.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Operation::Put { key, .. } | Operation::Delete { key } => key,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Operation::Put { key, value, .. } => key.len() + value.len(),
            Operation::Delete { key } => key.len(),
        }
    }
}

/// Changes that happen all at once if all compares hold, and else not at all.
///
/// ```
/// use bellrock_cluster::etcd::Transaction;
///
/// // Takes over from the node whose record has revision 7, and counts it.
/// let take_over = Transaction::new().unchanged("switches/a1", 7).put("switches/a1", "node2");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Conditions.
    pub compares: Vec<Compare>,
    /// Changes, each of another key.
    pub operations: Vec<Operation>,
}

impl Transaction {
    /// A transaction without compares and operations.
    #[must_use]
    pub fn new() -> Self {
        Transaction::default()
    }

    /// Adds the condition that a key was last changed at this revision; 0: that it does not exist.
    #[must_use]
    pub fn unchanged(mut self, key: impl Into<Vec<u8>>, revision: i64) -> Self {
        self.compares.push(Compare::Revision { key: key.into(), revision });
        self
    }

    /// Adds the condition that a key has this value.
    #[must_use]
    pub fn value(mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        self.compares.push(Compare::Value { key: key.into(), value: value.into() });
        self
    }

    /// Adds a write.
    #[must_use]
    pub fn put(mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        let (key, value) = (key.into(), value.into());
        self.operations.push(Operation::Put { key, value, lease: None });
        self
    }

    /// Adds a write of a key that ends with a lease.
    #[must_use]
    pub fn put_leased(
        mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        lease: LeaseId,
    ) -> Self {
        let (key, value) = (key.into(), value.into());
        self.operations.push(Operation::Put { key, value, lease: Some(lease) });
        self
    }

    /// Adds a removal.
    #[must_use]
    pub fn delete(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.operations.push(Operation::Delete { key: key.into() });
        self
    }

    pub(super) fn compared_keys(&self) -> BTreeSet<&[u8]> {
        self.compares.iter().map(Compare::key).collect()
    }

    /// Checks what etcd would refuse.
    pub(super) fn check(&self) -> Result<(), Error> {
        let count = self.compares.len().max(self.operations.len());
        if count > MAX_OPERATIONS {
            return Err(Error::TooManyOperations(count));
        }
        let keys = self.operations.iter().map(Operation::key);
        let has_empty = keys.chain(self.compares.iter().map(Compare::key)).any(<[u8]>::is_empty);
        if self.operations.is_empty() || has_empty {
            return Err(Error::EmptyTransaction);
        }
        let mut changed = BTreeSet::new();
        for key in self.operations.iter().map(Operation::key) {
            if !changed.insert(key) {
                return Err(Error::KeyTwice(String::from_utf8_lossy(key).into_owned()));
            }
        }
        let operations = self.operations.iter().map(Operation::bytes);
        let bytes = operations.chain(self.compares.iter().map(Compare::bytes)).sum();
        if bytes > MAX_TRANSACTION_BYTES {
            return Err(Error::TransactionTooLarge(bytes));
        }
        Ok(())
    }

    /// The operation that shows whether the transaction was executed, and lets it be executed only
    /// once: it changes a key whose revision is compared. A put is preferred, as its value can be
    /// read.
    pub(super) fn fence(&self) -> Option<Write> {
        let fences = self.operations.iter().filter_map(|operation| {
            let revision = self.compares.iter().find_map(|compare| match compare {
                Compare::Revision { key, revision } => {
                    (key == operation.key()).then_some(*revision)
                }
                Compare::Value { .. } => None,
            })?;
            Some(Write { operation: operation.clone(), revision })
        });
        // The removal of a key that does not exist changes nothing.
        let fences = fences.filter(|fence| fence.is_fence());
        fences.max_by_key(|fence| matches!(fence.operation, Operation::Put { .. }))
    }
}

/// A change of one key on condition of its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Change.
    pub operation: Operation,
    /// Revision that the key was last changed at; 0: it does not exist.
    pub revision: i64,
}

impl Write {
    /// A write of a key that was last changed at this revision; 0: that does not exist.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>, revision: i64) -> Self {
        let (key, value) = (key.into(), value.into());
        Write { operation: Operation::Put { key, value, lease: None }, revision }
    }

    /// A removal of a key that was last changed at this revision.
    pub fn delete(key: impl Into<Vec<u8>>, revision: i64) -> Self {
        Write { operation: Operation::Delete { key: key.into() }, revision }
    }

    pub(super) fn is_fence(&self) -> bool {
        self.revision != 0 || matches!(self.operation, Operation::Put { .. })
    }
}

/// What came of a transaction or a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed, once.
    Committed {
        /// Revision of its changes.
        revision: i64,
    },
    /// It was not executed: a compare did not hold.
    Conflict {
        /// What is there instead: the entries of those compared keys that exist.
        found: Vec<Entry>,
    },
    /// It was executed once, or it was not, or it may still be: etcd's answer was lost. Read before
    /// deciding anything that depends on it.
    Unknown {
        /// Why it is not known.
        why: Error,
    },
}

impl Outcome {
    /// Whether it was executed for certain.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        matches!(self, Outcome::Committed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_that_etcd_would_refuse_is_not_sent() {
        let many = |count: usize| {
            let keys = (0..count).map(|number| format!("k{number}"));
            keys.fold(Transaction::new(), |transaction, key| transaction.put(key, ""))
        };
        assert_eq!(many(MAX_OPERATIONS).check(), Ok(()));
        let count = MAX_OPERATIONS + 1;
        assert_eq!(many(count).check(), Err(Error::TooManyOperations(count)));
        let compares = (0..count).fold(many(1), |transaction, _| transaction.unchanged("k", 0));
        assert_eq!(compares.check(), Err(Error::TooManyOperations(count)));
        assert_eq!(Transaction::new().check(), Err(Error::EmptyTransaction));
        assert_eq!(Transaction::new().put("", "").check(), Err(Error::EmptyTransaction));
        assert_eq!(many(1).unchanged("", 0).check(), Err(Error::EmptyTransaction));
        let twice = Transaction::new().put("k", "1").delete("k");
        assert_eq!(twice.check(), Err(Error::KeyTwice("k".into())));
        let large = Transaction::new().put("k", vec![0; MAX_TRANSACTION_BYTES]);
        assert_eq!(large.check(), Err(Error::TransactionTooLarge(MAX_TRANSACTION_BYTES + 1)));
    }

    #[test]
    fn a_compared_key_that_changes_makes_it_repeatable() {
        let put = |key: &str| Transaction::new().put(key, "v");
        assert_eq!(put("k").fence(), None);
        assert_eq!(put("k").value("k", "u").fence(), None, "values come again");
        assert_eq!(put("k").unchanged("l", 7).fence(), None, "another key");
        assert_eq!(put("k").unchanged("k", 7).fence(), Some(Write::put("k", "v", 7)));
        let delete = Transaction::new().delete("k");
        assert_eq!(delete.clone().unchanged("k", 0).fence(), None, "nothing changes");
        let delete = delete.unchanged("k", 7);
        assert_eq!(delete.fence(), Some(Write::delete("k", 7)));
        let both = delete.put("l", "v").unchanged("l", 0).delete("m").unchanged("m", 3);
        assert_eq!(both.fence(), Some(Write::put("l", "v", 0)), "a put can be read");
    }
}
