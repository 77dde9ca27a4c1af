//! Columns of lists: what a list shows of its rows, for every face that has tables.

/// How a list is shown: its command, and its columns.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Name of its command.
    pub command: &'static str,
    /// What the command does, in lines. More than a summary is behind an empty line.
    pub about: &'static str,
    /// What there is to say if it has no rows.
    pub none: &'static str,
    /// Its columns, from the left.
    pub columns: &'static [Column],
    /// Heads of columns that a narrow terminal is not shown, the first ones first.
    pub optional: &'static [&'static str],
}

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its head in a table.
    pub head: &'static str,
    /// The field of a row that it shows. It is the head in CSV.
    pub field: &'static str,
    /// How it shows it.
    pub cell: Cell,
    /// The text in a table for a value that is not there.
    pub none: &'static str,
}

/// How a column shows the value of a field. For a value that is not there it shows
/// [`Column::none`], and nothing in CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// As it is.
    Plain,
    /// A datapath id. In a table the name in `switch_name` stands for it, if there is one.
    Switch,
    /// A number of seconds, as a duration.
    Duration,
    /// A rate in kbit/s.
    Rate,
    /// A list, with a semicolon between its parts.
    Parts,
    /// A list, with a space between its parts.
    Words,
    /// A number in words: those for 0, those for 1, and those behind a larger number.
    Counted([&'static str; 3]),
}

impl Column {
    /// A column with this head that shows this field.
    #[must_use]
    pub const fn new(head: &'static str, field: &'static str, cell: Cell) -> Self {
        Column { head, field, cell, none: "-" }
    }

    /// Shows `none` in a table for a value that is not there.
    #[must_use]
    pub const fn or(self, none: &'static str) -> Self {
        Column { none, ..self }
    }
}
