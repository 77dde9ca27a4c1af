//! How often the handlers of an app panic, at all switches together, and when that is enough.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellrock_api::HandlerError;

/// Panics of an app's handlers within [`PANIC_WINDOW`], at all switches together, at which the app is
/// disabled: one that fails over every packet costs more than it does.
pub const MAX_PANICS: usize = 10;

/// The time in which they have to come. Fewer are forgotten.
pub const PANIC_WINDOW: Duration = Duration::from_secs(60);

/// Bytes of the text of an error that are kept, of each app.
const MAX_ERROR_BYTES: usize = 512;

/// The health of one app. All workers share it.
#[derive(Debug, Default)]
pub(crate) struct Health {
    panics: AtomicU64,
    disabled: AtomicBool,
    /// When the last ones were, the oldest first.
    recent: Mutex<VecDeque<Duration>>,
    errors: AtomicU64,
    /// The text of the latest error that was logged, empty if there was none. It keeps its memory: errors come while
    /// packets do.
    last_error: Mutex<String>,
}

impl Health {
    /// A handler panicked. `true`: that disables the app.
    pub(crate) fn panicked(&self, now: Duration) -> bool {
        self.panics.fetch_add(1, Ordering::Relaxed);
        // What a panic in here could leave is still a list of times.
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(now);
        while recent.front().is_some_and(|first| now.saturating_sub(*first) > PANIC_WINDOW) {
            recent.pop_front();
        }
        if recent.len() < MAX_PANICS {
            return false;
        }
        recent.clear();
        !self.disabled.swap(true, Ordering::Relaxed)
    }

    /// Its handlers returned so many errors.
    pub(crate) fn failed(&self, errors: u64) {
        self.errors.fetch_add(errors, Ordering::Relaxed);
    }

    /// Keeps an error that is logged: its text, and its type. Not each error, since this takes a lock.
    pub(crate) fn keep_error(&self, error: &HandlerError) {
        let mut text = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        text.clear();
        // Only the app's own `Display` can fail: then there is no more of its text.
        let _ = write!(text, "{error}");
        let cut = text.floor_char_boundary(MAX_ERROR_BYTES);
        text.truncate(cut);
        if !error.type_name().is_empty() {
            let _ = write!(text, " ({})", error.type_name());
        }
    }

    /// How many errors its handlers have returned, and the latest that was kept.
    pub(crate) fn errors(&self) -> (u64, Option<String>) {
        let last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.errors.load(Ordering::Relaxed), (!last.is_empty()).then_some(last))
    }

    /// How often its handlers have panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Whether it gets no more events.
    #[inline]
    pub(crate) fn is_disabled(&self) -> bool {
        self.disabled.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_that_are_far_apart_are_forgiven_and_the_last_of_many_disables_once() {
        let health = Health::default();
        let s = Duration::from_secs;
        for i in 0..100 {
            assert!(!health.panicked(s(7 * i)));
        }
        assert!(!health.is_disabled());
        let disabled: Vec<_> = (0..20).filter(|_| health.panicked(s(2000))).collect();
        assert_eq!(disabled.len(), 1);
        assert!(health.is_disabled());
        assert_eq!(health.panics(), 120);
    }
}
