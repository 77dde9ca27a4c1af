//! Names that live as long as the process.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The name of an app as a constant. Names stand in events, rows of tasks and counters, which
/// outlive the app, and are copied freely. So apps may make their names at run time, and each
/// distinct name is kept once, for ever: as many as the apps that the program ever starts under
/// different names.
pub(crate) fn intern(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let made = |n: u32| intern(&format!("app{n}"));
        assert_eq!(made(1), "app1");
        assert!(std::ptr::eq(made(1), made(1)) && !std::ptr::eq(made(1), made(2)));
    }
}
