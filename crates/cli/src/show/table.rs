//! Aligned tables. A terminal that is too narrow is shown as much of a table as it has room for;
//! other outputs are shown all of it.

use std::fmt::Write;
use std::io::{IsTerminal, stdout};

use super::printable;

/// Blanks between two columns.
const GAP: usize = 2;

/// Minimum width of a last column whose cells are wrapped.
const MIN_WRAPPED: usize = 24;

/// A table. Each column is as wide as its longest cell, and the last one is wrapped at the edge of
/// a terminal.
pub(crate) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    wide_table(head, &[], rows)
}

/// A table. A narrow terminal is shown it without these `optional` columns, the first ones first,
/// as far as it must be.
pub(crate) fn wide_table(
    head: &[&str],
    optional: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    fitted(head, optional, rows, terminal_columns())
}

/// A table whose first column is the names, if any row has one.
pub(super) fn named_table<'r>(
    head: &[&str],
    optional: &[&str],
    rows: impl Iterator<Item = (Option<&'r str>, Vec<String>)>,
) -> String {
    let rows: Vec<_> = rows.collect();
    if rows.iter().all(|(name, _)| name.is_none()) {
        return wide_table(head, optional, rows.into_iter().map(|(_, cells)| cells));
    }
    let cells = |(name, cells): (Option<&str>, Vec<String>)| {
        let name = name.map_or_else(|| "-".to_owned(), printable);
        [vec![name], cells].concat()
    };
    wide_table(&[&["NAME"], head].concat(), optional, rows.into_iter().map(cells))
}

/// The width of the terminal. `None`: the output is none, so that nothing is left out. Tests do not
/// depend on where they run.
fn terminal_columns() -> Option<usize> {
    let is_terminal = !cfg!(test) && stdout().is_terminal();
    let size = is_terminal.then(|| rustix::termios::tcgetwinsize(stdout()).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

fn fitted(
    head: &[&str],
    optional: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    limit: Option<usize>,
) -> String {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut columns = columns(std::iter::once(head).chain(rows).collect());
    let mut left_out = Vec::new();
    let mut room = None;
    if let Some(limit) = limit {
        let mut optional = optional.iter();
        room = loop {
            match room_of_last(&columns, limit) {
                Some(room) => break Some(room),
                None => {
                    let Some(name) = optional.next() else { break None };
                    columns.retain(|column| column.cells.first().is_none_or(|cell| cell != name));
                    left_out.push(*name);
                }
            }
        };
    }
    let mut text = lines(&columns, room);
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        let _ = writeln!(text, "(without {names}; a wider terminal, a pipe or --json shows all)");
    }
    text
}

/// A column of a table, from its head down. A row may end before it.
struct Column {
    cells: Vec<String>,
    width: usize,
}

fn columns(mut rows: Vec<Vec<String>>) -> Vec<Column> {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let column = |index: usize| {
        let cell = |row: &mut Vec<String>| row.get_mut(index).map(std::mem::take);
        let cells: Vec<String> = rows.iter_mut().map(|row| cell(row).unwrap_or_default()).collect();
        let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
        Column { cells, width }
    };
    (0..count).map(column).collect()
}

/// The width that a terminal has for the last column. `None`: the table is too wide for it.
fn room_of_last(columns: &[Column], limit: usize) -> Option<usize> {
    let Some((last, others)) = columns.split_last() else { return Some(limit) };
    let room = limit.checked_sub(others.iter().map(|column| column.width + GAP).sum())?;
    (room >= last.width.min(MIN_WRAPPED)).then_some(room)
}

/// The rows as lines. `room`: the width at which the last column is wrapped.
fn lines(columns: &[Column], room: Option<usize>) -> String {
    let Some((last, others)) = columns.split_last() else { return String::new() };
    let start = others.iter().map(|column| column.width + GAP).sum();
    let mut text = String::new();
    for (row, cell) in last.cells.iter().enumerate() {
        let mut line = String::new();
        for column in others {
            let (cell, width) = (column.cells.get(row).map_or("", String::as_str), column.width);
            let _ = write!(line, "{cell:width$}{:GAP$}", "");
        }
        for part in wrapped(cell, room.unwrap_or(usize::MAX)) {
            line.push_str(part);
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(start);
        }
    }
    text
}

/// The parts of a cell that have room, broken behind blanks and commas. A longer word is a part of
/// its own.
fn wrapped(cell: &str, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut end, mut width) = (0, 0, 0);
    for word in cell.split_inclusive([' ', ',']) {
        let more = word.chars().count();
        if width > 0 && width + word.trim_end().chars().count() > room {
            parts.extend(cell.get(start..end));
            (start, width) = (end, 0);
        }
        (end, width) = (end + word.len(), width + more);
    }
    parts.extend(cell.get(start..end));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(limit: Option<usize>) -> String {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["north", "1", "a port", "in use, and known for a long time to all"]),
            row(["s", "20", "-", ""]),
        ];
        fitted(&["SWITCH", "PORT", "KIND", "ABOUT"], &["KIND", "PORT"], rows.into_iter(), limit)
    }

    #[test]
    fn columns_are_aligned_and_all_there_where_no_terminal_is() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned()]];
        assert_eq!(table(&["X", "Y"], rows.into_iter()), "X     Y\na     1\nlong\n");
        let whole = "\
SWITCH  PORT  KIND    ABOUT
north   1     a port  in use, and known for a long time to all
s       20    -
";
        for limit in [None, Some(62), Some(200)] {
            assert_eq!(shown(limit), whole, "{limit:?}");
        }
    }

    #[test]
    fn a_narrow_terminal_is_shown_the_last_column_in_lines() {
        let wrapped = "\
SWITCH  PORT  KIND    ABOUT
north   1     a port  in use, and known for a
                      long time to all
s       20    -
";
        assert_eq!(shown(Some(49)), wrapped);
        assert!(shown(Some(49)).lines().all(|line| line.len() <= 49));
    }

    #[test]
    fn a_narrower_terminal_is_shown_less_columns_and_told_so() {
        let less = "\
SWITCH  PORT  ABOUT
north   1     in use, and known for a
              long time to all
s       20
(without KIND; a wider terminal, a pipe or --json shows all)
";
        assert_eq!(shown(Some(40)), less);
        assert!(shown(Some(33)).contains("(without KIND, PORT; "), "{}", shown(Some(33)));
        // There is no room for it, whatever is left out.
        assert!(shown(Some(9)).contains("in use, and known for a long time to all"));
    }

    #[test]
    fn a_word_that_is_too_long_stands_alone() {
        assert_eq!(wrapped("a abcdefgh b,c", 4), ["a ", "abcdefgh ", "b,c"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
