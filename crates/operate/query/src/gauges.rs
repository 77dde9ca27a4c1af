//! Numbers of the rows of a list, for monitoring.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{BlockedList, Operator, Page, Query, QueryError, Rows};

/// A number of rows of a list, or one for each value of a label, such as their state.
pub struct Gauge<R: 'static> {
    /// Name of the family of series.
    pub name: &'static str,
    /// What it is the number of.
    pub about: &'static str,
    /// Which rows it counts.
    pub count: Count<R>,
}

/// Which rows a [`Gauge`] counts.
pub enum Count<R: 'static> {
    /// Those that this holds of.
    If(fn(&R) -> bool),
    /// The rows with each value of a label. The first values are reported even if no row has them.
    By(&'static str, &'static [&'static str], fn(&R) -> String),
}

/// What a [`Gauge`] has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GaugeNumbers {
    /// Name of the family of series.
    pub name: &'static str,
    /// What it is the number of.
    pub about: &'static str,
    /// The numbers, each with its label and value if there is one.
    pub numbers: Vec<(Option<(&'static str, String)>, u64)>,
}

/// Asks for a list, and counts its rows.
pub type ReadGauges = fn(&dyn Operator) -> Result<Vec<GaugeNumbers>, QueryError>;

/// An answer that has rows.
pub(crate) trait Listed {
    /// A row.
    type Row: 'static;

    /// The rows.
    fn listed(self) -> Rows<Self::Row>;
}

impl<R: 'static> Listed for Rows<R> {
    type Row = R;

    fn listed(self) -> Rows<R> {
        self
    }
}

impl Listed for BlockedList {
    type Row = crate::BlockedRow;

    fn listed(self) -> Rows<Self::Row> {
        self.hosts
    }
}

/// Asks for all pages of a list, and counts its rows.
///
/// # Errors
/// Those of the operator.
pub(crate) fn count<Q: Query<Answer: Listed>>(
    operator: &dyn Operator,
    query: impl Fn(Page) -> Q,
    gauges: &[Gauge<<Q::Answer as Listed>::Row>],
) -> Result<Vec<GaugeNumbers>, QueryError> {
    let mut rows = Vec::new();
    loop {
        let page = operator.ask(query(Page::largest(rows.len())))?.listed();
        let is_last = page.rows.is_empty();
        rows.extend(page.rows);
        if is_last || rows.len() >= page.total {
            break;
        }
    }
    Ok(gauges.iter().map(|gauge| gauge.of(&rows)).collect())
}

impl<R> Gauge<R> {
    fn of(&self, rows: &[R]) -> GaugeNumbers {
        let numbers = match &self.count {
            Count::If(holds) => {
                vec![(None, rows.iter().filter(|row| holds(row)).count() as u64)]
            }
            Count::By(label, known, value) => {
                let known = known.iter().map(|value| ((*value).to_owned(), 0));
                let mut numbers: BTreeMap<String, u64> = known.collect();
                rows.iter().for_each(|row| *numbers.entry(value(row)).or_default() += 1);
                numbers.into_iter().map(|(value, n)| (Some((*label, value)), n)).collect()
            }
        };
        GaugeNumbers { name: self.name, about: self.about, numbers }
    }
}

/// The word for a state, as JSON has it.
pub(crate) fn word(state: &impl Serialize) -> String {
    let word = serde_json::to_value(state).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, CircuitRow, CircuitState, DECLARED, MAX_PAGE_ROWS, Request};

    /// Circuits, of which two are on the second page.
    struct Circuits;

    impl Operator for Circuits {
        fn answer(&self, request: Request) -> Result<Answer, QueryError> {
            let Request::ListCircuits(query) = request else { panic!("{}", request.name()) };
            let row = |number: usize| CircuitRow {
                name: number.to_string(),
                endpoints: Vec::new(),
                state: if number == 0 { CircuitState::Down } else { CircuitState::Up },
                why: None,
                bare_links: None,
                path: Vec::new(),
            };
            let rows = (0..MAX_PAGE_ROWS + 2).map(row);
            Ok(Answer::ListCircuits(Rows::of(rows, query.page)))
        }
    }

    #[test]
    fn the_rows_of_all_pages_are_counted_by_their_states() {
        let declared = DECLARED.iter().find(|declared| declared.name == "list_circuits").unwrap();
        let [all] = &(declared.gauges.unwrap())(&Circuits).unwrap()[..] else { panic!("one") };
        let number = |state: &str, n| (Some(("state", state.to_owned())), n);
        let up = MAX_PAGE_ROWS as u64 + 1;
        assert_eq!(all.numbers, [number("down", 1), number("installing", 0), number("up", up)]);
    }
}
