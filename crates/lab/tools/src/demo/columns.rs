//! Tables that fit the terminal. A column is as wide as its contents. If there is no space for all
//! columns, the least important are left out. No number is ever cut.

use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Block, Cell, Row, Table};

/// Lines of a table besides its rows: its frame and the names of its columns.
pub(super) const FRAME_LINES: u16 = 3;

/// Columns of the terminal that the frame takes.
const FRAME_COLUMNS: u16 = 2;

/// Maximum number of blanks between two columns.
const MAX_SPACING: u16 = 4;

/// A column.
pub(super) struct Column {
    pub(super) name: &'static str,
    /// Whether the text is aligned to the right, as numbers are.
    pub(super) right: bool,
    /// Columns with the highest rank are left out first; 0 always stays.
    pub(super) rank: u8,
}

/// A column of text.
pub(super) const fn text(name: &'static str, rank: u8) -> Column {
    Column { name, right: false, rank }
}

/// A column of numbers.
pub(super) const fn number(name: &'static str, rank: u8) -> Column {
    Column { name, right: true, rank }
}

/// One cell.
#[derive(Clone)]
pub(super) struct GridCell {
    pub(super) text: String,
    pub(super) style: Style,
}

impl<T: ToString> From<T> for GridCell {
    fn from(text: T) -> Self {
        GridCell { text: text.to_string(), style: Style::new() }
    }
}

/// A table without its place on the screen.
pub(super) struct Grid<'c> {
    pub(super) title: String,
    pub(super) columns: &'c [Column],
    pub(super) rows: Vec<Vec<GridCell>>,
}

impl Grid<'_> {
    /// The width of each column.
    fn widths(&self) -> Vec<u16> {
        let width = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let cells = cells.map(|cell| cell.text.chars().count());
            let name = self.columns[index].name.len();
            cells.chain([name]).max().unwrap_or_default() as u16
        };
        (0..self.columns.len()).map(width).collect()
    }

    /// Width of the terminal that all columns need.
    pub(super) fn width(&self) -> u16 {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        FRAME_COLUMNS + total(&self.widths(), &all)
    }

    /// Number of lines that all rows need.
    pub(super) fn height(&self) -> u16 {
        u16::try_from(self.rows.len()).unwrap_or(u16::MAX).saturating_add(FRAME_LINES)
    }

    /// Indices of the columns that fit.
    fn fitting(&self, width: u16) -> Vec<usize> {
        let widths = self.widths();
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        while FRAME_COLUMNS + total(&widths, &shown) > width {
            let last = shown.iter().copied().max_by_key(|index| self.columns[*index].rank);
            match last.filter(|index| self.columns[*index].rank > 0) {
                Some(last) => shown.retain(|index| *index != last),
                None => break,
            }
        }
        shown
    }

    /// The table, for this area. Its lower edge says what does not fit.
    pub(super) fn table(&self, area: Rect) -> Table<'static> {
        let shown = self.fitting(area.width);
        let widths = self.widths();
        let lines = usize::from(area.height.saturating_sub(FRAME_LINES));
        let gaps = u16::try_from(shown.len().saturating_sub(1)).unwrap_or(u16::MAX).max(1);
        let spare = area.width.saturating_sub(FRAME_COLUMNS + total(&widths, &shown));
        let spacing = (1 + spare / gaps).min(MAX_SPACING);
        let cell = |index: usize, text: String, style: Style| {
            let text = Text::from(text);
            let text = if self.columns[index].right { text.right_aligned() } else { text };
            Cell::new(text).style(style)
        };
        let rows = self.rows.iter().take(lines).map(|row| {
            Row::new(shown.iter().map(|index| {
                let value = row.get(*index).cloned().unwrap_or_else(|| "".into());
                cell(*index, value.text, value.style)
            }))
        });
        let rows: Vec<Row<'static>> = rows.collect();
        let names =
            shown.iter().map(|&index| cell(index, self.columns[index].name.into(), Style::new()));
        let mut block = Block::bordered().title(self.title.clone());
        if self.rows.len() > lines {
            block = block.title_bottom(format!(" and {} more ", self.rows.len() - lines));
        }
        Table::new(rows, shown.iter().map(|index| Constraint::Length(widths[*index])))
            .column_spacing(spacing)
            .header(Row::new(names).style(Modifier::DIM))
            .block(block)
    }
}

/// The width of these columns, with a blank between each two.
fn total(widths: &[u16], shown: &[usize]) -> u16 {
    let sum: u16 = shown.iter().map(|index| widths[*index]).sum();
    sum + u16::try_from(shown.len().saturating_sub(1)).unwrap_or(u16::MAX)
}
