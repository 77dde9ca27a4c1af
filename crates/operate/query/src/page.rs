//! Lists in pages.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::QueryError;

/// Number of rows in a page, if a request does not choose.
pub const DEFAULT_PAGE_ROWS: usize = 1000;

/// Maximum number of rows in a page.
pub const MAX_PAGE_ROWS: usize = 10_000;

/// The part of a list that a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "PageFields")]
pub struct Page {
    skip: usize,
    limit: usize,
}

impl Page {
    /// The page after the first `skip` rows, with up to `limit` rows.
    ///
    /// # Errors
    /// `limit` is not from 1 to [`MAX_PAGE_ROWS`].
    pub fn new(skip: usize, limit: usize) -> Result<Self, QueryError> {
        if (1..=MAX_PAGE_ROWS).contains(&limit) {
            Ok(Page { skip, limit })
        } else {
            Err(QueryError::invalid(
                "page.limit",
                format!(
                    "a page cannot have {limit} rows; give a limit from 1 to {MAX_PAGE_ROWS}, and `skip` for later \
                     pages"
                ),
            ))
        }
    }

    /// The page of maximum size after the first `skip` rows.
    #[must_use]
    pub fn largest(skip: usize) -> Self {
        Page { skip, limit: MAX_PAGE_ROWS }
    }

    /// Number of rows before this page.
    #[must_use]
    pub fn skip(self) -> usize {
        self.skip
    }

    /// Maximum number of rows.
    #[must_use]
    pub fn limit(self) -> usize {
        self.limit
    }
}

impl Default for Page {
    fn default() -> Self {
        Page { skip: 0, limit: DEFAULT_PAGE_ROWS }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PageFields {
    skip: usize,
    limit: usize,
}

impl Default for PageFields {
    fn default() -> Self {
        let Page { skip, limit } = Page::default();
        PageFields { skip, limit }
    }
}

impl TryFrom<PageFields> for Page {
    type Error = QueryError;

    fn try_from(fields: PageFields) -> Result<Self, QueryError> {
        Page::new(fields.skip, fields.limit)
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Rows<T> {
    /// Number of rows on all pages.
    pub total: usize,
    /// Number of rows before this page.
    pub skipped: usize,
    /// The rows of this page.
    pub rows: Vec<T>,
    /// Why rows may be missing. `None`: the list is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

impl<T> Rows<T> {
    /// Cuts a page out of the whole list.
    pub fn of(all: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>, page: Page) -> Self {
        let all = all.into_iter();
        let (total, skipped) = (all.len(), page.skip.min(all.len()));
        let rows = all.skip(page.skip).take(page.limit).collect();
        Rows { total, skipped, rows, incomplete: None }
    }

    /// Cuts a page out of a list that is in no order. Only the rows of the page are sorted: a long
    /// list costs one pass, and no look at the order of the others.
    pub fn of_unsorted(
        mut all: Vec<T>,
        page: Page,
        mut by: impl FnMut(&T, &T) -> Ordering,
    ) -> Self {
        let total = all.len();
        let skipped = page.skip.min(total);
        if 0 < skipped && skipped < total {
            all.select_nth_unstable_by(skipped, &mut by);
        }
        let mut rows = all.split_off(skipped);
        if page.limit < rows.len() {
            rows.select_nth_unstable_by(page.limit, &mut by);
            rows.truncate(page.limit);
        }
        rows.sort_unstable_by(by);
        Rows { total, skipped, rows, incomplete: None }
    }

    /// Applies `row` to each row.
    pub fn map<U>(self, row: impl FnMut(T) -> U) -> Rows<U> {
        let Rows { total, skipped, rows, incomplete } = self;
        Rows { total, skipped, rows: rows.into_iter().map(row).collect(), incomplete }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_list_fit_together() {
        let page = |skip, limit| {
            let Rows { total, skipped, rows, .. } = Rows::of(0..5, Page::new(skip, limit).unwrap());
            (total, skipped, rows)
        };
        assert_eq!(page(0, 2), (5, 0, vec![0, 1]));
        assert_eq!(page(4, 2), (5, 4, vec![4]));
        assert_eq!(page(9, 2), (5, 5, vec![]));
    }

    #[test]
    fn pages_of_an_unsorted_list_are_those_of_the_sorted_one() {
        let unsorted: Vec<u32> = (0..1000u32).map(|n| n.wrapping_mul(7919) % 1000).collect();
        for (skip, limit) in
            [(0, 10), (1, 1), (500, 100), (990, 10), (995, 10), (1000, 1), (7, 10_000)]
        {
            let page = Page::new(skip, limit).unwrap();
            let cut = Rows::of_unsorted(unsorted.clone(), page, Ord::cmp);
            assert_eq!(cut, Rows::of(0..1000, page), "{skip} {limit}");
        }
        let none = Rows::of_unsorted(Vec::<u32>::new(), Page::default(), Ord::cmp);
        assert_eq!((none.total, none.rows), (0, Vec::new()));
    }

    /// The rows on other pages are never sorted: the number of comparisons grows with the list
    /// only.
    #[test]
    fn a_page_of_a_long_list_costs_one_pass() {
        const ROWS: u32 = 100_000;
        let unsorted: Vec<u32> = (0..ROWS).map(|n| n.wrapping_mul(7919) % ROWS).collect();
        let mut compared = 0;
        let page = Page::new(50_000, 100).unwrap();
        let cut = Rows::of_unsorted(unsorted, page, |a, b| {
            compared += 1;
            a.cmp(b)
        });
        assert_eq!(cut.rows[..2], [50_000, 50_001]);
        // Sorting all of them takes some 17 comparisons a row.
        assert!(compared < 6 * ROWS, "{compared}");
    }

    #[test]
    fn a_page_is_bounded_however_it_is_made() {
        assert!(Page::new(0, 0).is_err() && Page::new(0, MAX_PAGE_ROWS + 1).is_err());
        let read = serde_json::from_str::<Page>;
        assert_eq!(read("{}").unwrap(), Page::default());
        assert_eq!(read(r#"{"skip": 7, "limit": 3}"#).unwrap(), Page::new(7, 3).unwrap());
        let error = read(r#"{"limit": 10001}"#).unwrap_err().to_string();
        assert!(error.contains("give a limit from 1 to 10000"), "{error}");
        assert!(read(r#"{"skp": 7}"#).is_err());
    }
}
