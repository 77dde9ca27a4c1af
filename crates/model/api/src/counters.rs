//! Sets of counters: numbers with a name and a meaning, which only grow.

use std::sync::atomic::{AtomicU64, Ordering};

/// Defines a set of counters: a struct with a field for each, of one type ([`CounterValue`]). The
/// name of a field is the name of its counter, and the comment above it is its meaning.
///
/// ```
/// bellrock_api::counters! {
///     /// Counters of one switch.
///     pub struct Counters: u64 {
///         /// Packets that were dropped.
///         dropped,
///         /// Packets that were sent on.
///         forwarded,
///     }
/// }
///
/// let mut counters = Counters::default();
/// counters.dropped += 1;
/// assert_eq!(counters.iter().collect::<Vec<_>>(), [("dropped", 1), ("forwarded", 0)]);
/// assert_eq!(Counters::ALL[1], ("forwarded", " Packets that were sent on."));
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$meta:meta])* $vis:vis struct $type:ident: $count:ty {
        $($(#[doc = $doc:literal])* $name:ident,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        $vis struct $type { $($(#[doc = $doc])* $vis $name: $count,)* }

        #[allow(dead_code, reason = "not every set is described")]
        impl $type {
            /// Name and meaning of each counter.
            $vis const ALL: &[(&'static str, &'static str)] =
                &[$((stringify!($name), concat!($($doc),*)),)*];

            /// Name and value of each counter.
            $vis fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($name), $crate::CounterValue::count(&self.$name)),)*].into_iter()
            }
        }
    };
}

/// The type of a counter. It follows from the threads that add to the counter:
/// - `u64`: its owner adds, and only its owner reads. For handlers.
/// - [`Counter`]: one thread adds, any thread reads.
/// - [`SharedCounter`]: any thread adds, any thread reads.
pub trait CounterValue {
    /// The current value.
    fn count(&self) -> u64;
}

impl CounterValue for u64 {
    fn count(&self) -> u64 {
        *self
    }
}

/// A number that one thread adds to and any thread reads.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds, without an atomic read-modify-write: only the owner may call it.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The current value.
    #[must_use]
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl CounterValue for Counter {
    fn count(&self) -> u64 {
        self.get()
    }
}

/// A number that any thread adds to and reads.
#[derive(Debug, Default)]
pub struct SharedCounter(AtomicU64);

impl SharedCounter {
    /// Adds.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The current value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl CounterValue for SharedCounter {
    fn count(&self) -> u64 {
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_each_kind_is_reported_by_its_name() {
        counters! {
            struct Shared: SharedCounter {
                /// Adds from all threads.
                added,
            }
        }
        counters! {
            struct Owned: Counter {
                /// Adds of the owner.
                added,
                /// Always zero,
                /// in two lines.
                zero,
            }
        }
        let (shared, owned) = (Shared::default(), Owned::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| shared.added.add(1)));
            }
        });
        owned.added.add(2);
        owned.added.add(3);
        assert_eq!(shared.iter().collect::<Vec<_>>(), [("added", 4000)]);
        assert_eq!(owned.iter().collect::<Vec<_>>(), [("added", 5), ("zero", 0)]);
        assert_eq!(Owned::ALL[1], ("zero", " Always zero, in two lines."));
    }
}
