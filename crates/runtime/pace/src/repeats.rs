//! A limit for events that repeat.

use std::collections::BTreeMap;
use std::time::Duration;

/// Limits reports of events that repeat: one report in a time window for each key, with the number
/// of events. So nobody floods the event list by repeating something. Its memory is bounded: keys
/// beyond a maximum share the window of a common key.
///
/// ```
/// # use std::time::Duration;
/// use bellrock_pace::Repeats;
///
/// let mut repeats = Repeats::new(Duration::from_secs(60), 1024);
/// let mut note = |second| repeats.note("port 1", "other ports", Duration::from_secs(second));
/// assert_eq!(note(0), Some(("port 1", 1)));
/// assert_eq!((note(1), note(59)), (None, None));
/// assert_eq!(note(60), Some(("port 1", 3)));
/// ```
#[derive(Debug)]
pub struct Repeats<K> {
    window: Duration,
    max_keys: usize,
    noted: BTreeMap<K, Repeated>,
}

#[derive(Debug)]
struct Repeated {
    /// Time of the last report.
    reported: Duration,
    /// Number of events since then.
    times: u64,
}

impl<K: Ord> Repeats<K> {
    /// Allows one report in a `window` for each of at most `max_keys` keys and for each common key.
    #[must_use]
    pub const fn new(window: Duration, max_keys: usize) -> Self {
        Repeats { window, max_keys, noted: BTreeMap::new() }
    }

    /// Counts an event. If there are too many keys, it counts for the common key `others`; callers
    /// use few common keys. Returns the key to report and the number of events since its last
    /// report, if it is time for a report.
    pub fn note(&mut self, key: K, others: K, now: Duration) -> Option<(K, u64)>
    where
        K: Clone,
    {
        let window = self.window;
        let is_recent = |repeated: &Repeated| now < repeated.reported.saturating_add(window);
        if self.noted.len() >= self.max_keys && !self.noted.contains_key(&key) {
            self.noted.retain(|_, repeated| is_recent(repeated));
        }
        let has_place = self.noted.len() < self.max_keys || self.noted.contains_key(&key);
        let key = if has_place { key } else { others };
        let times = match self.noted.get_mut(&key) {
            Some(repeated) if is_recent(repeated) => {
                repeated.times = repeated.times.saturating_add(1);
                return None;
            }
            Some(repeated) => repeated.times.saturating_add(1),
            None => 1,
        };
        self.noted.insert(key.clone(), Repeated { reported: now, times: 0 });
        Some((key, times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_beyond_the_maximum_share_a_window_and_old_keys_are_forgotten() {
        const WINDOW: Duration = Duration::from_secs(60);
        let mut repeats = Repeats::new(WINDOW, 2);
        let mut note = |key, second| repeats.note(key, 'z', Duration::from_secs(second));
        assert_eq!(note('a', 0), Some(('a', 1)));
        assert_eq!(note('b', 30), Some(('b', 1)));
        assert_eq!(note('c', 31), Some(('z', 1)));
        assert_eq!((note('d', 32), note('a', 33)), (None, None));
        assert_eq!(note('a', 60), Some(('a', 2)));
        // The windows of `b` and `z` are over.
        assert_eq!(note('e', 91), Some(('e', 1)));
        assert_eq!(note('f', 92), Some(('z', 1)));
        assert!(repeats.noted.len() <= 3);
    }
}
