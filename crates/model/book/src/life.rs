//! What a process knows of the entry by which it shows that it lives.

use std::fmt;
use std::sync::Arc;

/// The lease of an entry that a store keeps as long as a process lives
/// ([`EntryStore::show_life`](super::EntryStore::show_life)), as the process knows it. All clones
/// are of the same entry.
#[derive(Clone)]
pub struct Life(Arc<dyn Fn() -> Option<u64> + Send + Sync>);

impl Life {
    /// Makes it of a function that answers as [`Life::lease`] does. Tasks call it often.
    #[must_use]
    pub fn new(lease: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        Life(Arc::new(lease))
    }

    /// A lease that does not end.
    #[must_use]
    pub fn endless() -> Self {
        Life::new(|| Some(0))
    }

    /// Returns the number of the lease, while the store certainly has the entry. `None` as soon as
    /// the store may have removed it, also if the store has not reported that. An entry that was
    /// removed, and is there again, has another number.
    #[must_use]
    pub fn lease(&self) -> Option<u64> {
        (self.0)()
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Life").field(&self.lease()).finish()
    }
}
