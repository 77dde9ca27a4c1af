//! What a table costs that all switches share: an experiment of the studies.
//!
//! McNettle plots flow set-ups by threads with one table for all switches: with compare-and-swap
//! they scale, behind a mutex and in transactions they do not (Fig. 20). Bellrock's own table takes
//! no lock. Here are the two others, for the same app ([`GlobalLearning`]): [`InMutex`] and
//! [`InTransactions`].
//!
//! `bellrock bench suite shared-state` draws the plot, and `bellrock bench targets` has a row for
//! each. Both start `bellrock bench shared-table`, which is a controller with one of these tables.
//!
//! # What it is not
//! A setting of the controller, or anything for use: the tables cost two to twenty times as much.

mod mutex;
mod transactions;

use bellrock_api::runtime::DynApp;
use bellrock_apps::{GlobalLearning, LearningSettings};
use bellrock_tables::Budget;

pub use mutex::InMutex;
pub use transactions::InTransactions;

/// A way to share the table that is measured against the table without locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostlyTable {
    /// [`InMutex`].
    Mutex,
    /// [`InTransactions`].
    Transactions,
}

impl CostlyTable {
    /// Makes `global_learning` with this table, boxed for a chain. The code of its packet path is
    /// compiled in this crate, with the optimisation that the workspace sets for it.
    #[must_use]
    #[inline(never)]
    pub fn app(self, settings: LearningSettings, budget: &Budget) -> Box<dyn DynApp> {
        match self {
            CostlyTable::Mutex => Box::new(GlobalLearning::<InMutex>::new(settings, budget)),
            CostlyTable::Transactions => {
                Box::new(GlobalLearning::<InTransactions>::new(settings, budget))
            }
        }
    }
}
