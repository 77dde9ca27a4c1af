//! Counters of one switch, shared by a service's handler and its task.

/// Counters that only grow. The handler and the task both add to them.
macro_rules! counters {
    ($(#[$doc:meta])* $type:ident { $($(#[$each:meta])* $field:ident: $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(super) struct $type {
            $($(#[$each])* pub(super) $field: $crate::counters::Count,)*
        }

        impl $type {
            /// Reports each counter by name.
            fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
                $(report($name, self.$field.get());)*
            }
        }
    };
}

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use counters;

/// A counter that several threads may add to.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
