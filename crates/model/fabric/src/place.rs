//! Where something stands in a file, and problems with their places.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of problems in one report, and of warnings. The others are counted.
pub const MAX_PROBLEMS: usize = 100;

/// A file, line and column, both counted from 1. Columns are characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as it was opened.
    pub file: Arc<Path>,
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

impl Place {
    /// The beginning of a file.
    #[must_use]
    pub fn start(file: &Path) -> Self {
        Place { file: file.into(), line: 1, column: 1 }
    }
}

/// `FILE:LINE:COLUMN`, which editors open.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// All problems of a file and of those that it includes, in the order of places; at most
/// [`MAX_PROBLEMS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems {
    /// The problems.
    pub list: Vec<Problem>,
    /// Number of problems that [`MAX_PROBLEMS`] left out.
    pub left_out: usize,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.list.iter().enumerate() {
            write!(f, "{}{problem}", if position == 0 { "" } else { "\n" })?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl Problems {
    pub(crate) fn add(&mut self, place: &Place, message: impl Into<String>) {
        let problem = Problem { place: place.clone(), message: message.into() };
        // An alias or a range of interfaces is read more than once.
        if self.list.contains(&problem) {
            return;
        }
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn sorted(mut self) -> Self {
        self.list.sort();
        self
    }
}

/// A file that was read. The caller may keep a hash of its text, to find out whether it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// Its path, resolved.
    pub path: PathBuf,
    /// Its text; `None` for an optional file that is absent or wrong, and so was skipped.
    pub text: Option<String>,
}
