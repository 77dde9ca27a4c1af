//! Errors of a suite.

use std::io;
use std::path::{Path, PathBuf};

use bellrock_bench::BenchError;

use crate::plot::PlotError;

/// Why a suite failed, and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// An unknown experiment.
    #[error("there is no experiment {name:?}; there are {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Known experiments.
        known: Vec<&'static str>,
    },
    /// The folder for results is not empty.
    #[error("the folder {0} is not empty; name another one with --out, or remove it")]
    NotEmpty(PathBuf),
    /// A folder without results.
    #[error(
        "there is no raw.json in {0} or its folders; give a folder that `bellrock bench suite --out` made"
    )]
    NoResults(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Results that cannot be read.
    #[error("cannot read {path} ({error}); was it made by another version, or edited?")]
    Raw {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// A contestant that does not start.
    #[error("{name}: {error}\n{said}")]
    Contestant {
        /// Its name.
        name: String,
        /// What happened.
        error: Box<BenchError>,
        /// The end of its log. The folder with the log is removed, since there are no results.
        said: String,
    },
    /// An invalid load.
    #[error(transparent)]
    Bench(Box<BenchError>),
    /// A plot that cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl From<BenchError> for SuiteError {
    fn from(error: BenchError) -> Self {
        SuiteError::Bench(Box::new(error))
    }
}

impl SuiteError {
    pub(super) fn unknown(name: &str) -> Self {
        SuiteError::Unknown { name: name.to_owned(), known: super::names() }
    }

    /// Maps a system error to [`SuiteError::File`], for `map_err`.
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        move |error| SuiteError::File { path: path.to_owned(), error }
    }
}
