//! Names apps whose tables get no more memory: a table does not fail then, it forgets old entries
//! for new ones.

use std::collections::BTreeMap;
use std::time::Duration;

use bellrock_api::{AppEvent, Network};
use bellrock_tables::Budget;

/// Time between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// Minimum time between two events about the same app.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Checks the budgets of apps from now on.
pub(crate) fn log_tables(network: &Network, budgets: &BTreeMap<String, Budget>) {
    if budgets.is_empty() {
        return;
    }
    let mut watched: Vec<Watched> = budgets.iter().map(Watched::new).collect();
    let published = network.clone();
    network.spawn("log of table memory", async move {
        loop {
            for one in &mut watched {
                if let Some(text) = one.look(published.now()) {
                    published.publish(AppEvent::new("table_memory_refused", &text).alarming());
                }
            }
            published.sleep(LOOK).await;
        }
    });
}

/// The budget of an app.
struct Watched {
    app: String,
    tables: Budget,
    /// Number of refusals, and time, of the last event.
    refusals: u64,
    reported: Option<Duration>,
}

impl Watched {
    fn new((app, tables): (&String, &Budget)) -> Self {
        Watched { app: app.clone(), tables: tables.clone(), refusals: 0, reported: None }
    }

    /// The text of an event, if one is due.
    fn look(&mut self, now: Duration) -> Option<String> {
        let refusals = self.tables.refusals();
        let is_due = self.reported.is_none_or(|at| now.saturating_sub(at) >= REPORTED_EVERY);
        if refusals == self.refusals || !is_due {
            return None;
        }
        (self.refusals, self.reported) = (refusals, Some(now));
        let Watched { app, tables, .. } = self;
        Some(format!(
            "the app {app} gets no more memory for its tables, which have {} of at most {} bytes; they asked \
             {refusals} times so far. Old entries are forgotten for new ones. Raise `table_memory_bytes`, that of all \
             apps or that of the app in `allow`",
            tables.used(),
            tables.limit()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_named_once_a_minute_while_its_tables_get_no_memory() {
        let tables = Budget::new(1000).share(100);
        let mut watched = Watched::new((&"learning".to_owned(), &tables));
        let mut look = |s| watched.look(Duration::from_secs(s));
        assert_eq!(look(0), None);
        let _part = tables.part(90).unwrap();
        assert!(tables.part(11).is_none());
        let text = look(1).unwrap();
        assert!(text.starts_with("the app learning gets no more memory"), "{text}");
        assert!(text.contains("90 of at most 100 bytes; they asked 1 times"), "{text}");
        assert_eq!(look(100), None, "no further one was refused");
        assert!(tables.part(11).is_none());
        assert!(look(101).is_some());
        assert!(tables.part(11).is_none());
        assert_eq!(look(102), None, "too soon");
        assert!(look(161).unwrap().contains("asked 3 times"));
    }
}
