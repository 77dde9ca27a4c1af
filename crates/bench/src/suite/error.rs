//! Why a suite could not be done.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::plot::PlotError;

/// What is wrong, and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// An experiment that there is not.
    #[error("there is no experiment {name:?}; there are {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// Results would be mixed with others.
    #[error("the folder {0} is not empty; name another one with --out, or remove it")]
    NotEmpty(PathBuf),
    /// There are no results in a folder.
    #[error(
        "there is no raw.json in {0} nor in its folders; give a folder that `bellrock bench suite --out` made"
    )]
    NoResults(PathBuf),
    /// A file or folder.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// The system's word.
        error: io::Error,
    },
    /// Results that are not understood.
    #[error("{path} is not understood ({error}); was it made by another version, or edited?")]
    Raw {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// A contestant does not come up.
    #[error("{name}: {error}\n{said}")]
    Contestant {
        /// Which.
        name: String,
        /// What happened.
        error: Box<BenchError>,
        /// The end of its log. The folder with the log is gone, since there are no results.
        said: String,
    },
    /// A load that cannot be.
    #[error(transparent)]
    Bench(Box<BenchError>),
    /// A picture that cannot be drawn.
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

    /// For `map_err`: a file or folder could not be had.
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        move |error| SuiteError::File { path: path.to_owned(), error }
    }
}
