//! A service's state for each switch that is up, for the switch's handler and the service's task.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellrock_api::Dpid;

/// One `T` for each switch.
#[derive(Debug, Default)]
pub(crate) struct Registry<T>(Mutex<BTreeMap<Dpid, Arc<T>>>);

impl<T: Default> Registry<T> {
    pub(crate) fn get(&self, dpid: Dpid) -> Option<Arc<T>> {
        self.lock().get(&dpid).cloned()
    }

    /// Adds a switch that came up. Its new state replaces that of an earlier connection.
    pub(crate) fn add(&self, dpid: Dpid) -> Arc<T> {
        let state = Arc::<T>::default();
        self.lock().insert(dpid, Arc::clone(&state));
        state
    }

    /// Removes a switch that went down, unless it has connected again.
    pub(crate) fn remove(&self, dpid: Dpid, state: &Arc<T>) {
        let mut all = self.lock();
        if all.get(&dpid).is_some_and(|other| Arc::ptr_eq(other, state)) {
            all.remove(&dpid);
        }
    }

    /// A panic under this lock leaves the map whole: each change is one call.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Dpid, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_removal_of_an_old_entry_leaves_the_new_one() {
        let registry = Registry::<u32>::default();
        let (first, second) = (registry.add(Dpid(1)), registry.add(Dpid(1)));
        registry.remove(Dpid(1), &first);
        assert!(registry.get(Dpid(1)).is_some_and(|its| Arc::ptr_eq(&its, &second)));
        registry.remove(Dpid(1), &second);
        assert_eq!(registry.get(Dpid(1)), None);
    }
}
