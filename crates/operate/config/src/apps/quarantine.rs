//! The app `quarantine`: its settings, and the file with its block list.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bellrock_apps::quarantine::{BadLine, BlockList};

use super::{AppChoice, Known, Stored};
use crate::files::WrongFile;
use crate::form::{Change, Form, Setting};
use crate::store::StorePlace;
use crate::values;

/// Maximum size of a block list, in bytes. A larger file is probably something else.
pub const MAX_BLOCK_LIST_BYTES: u64 = 4 << 20;

pub(super) const QUARANTINE: Known = Known {
    name: "quarantine",
    about: "Drops all packets of listed hosts at every switch, within milliseconds. It stands first \
            in the chain.",
    choice: || AppChoice::Quarantine(QuarantineSettings::default()),
    settings: SETTINGS,
    stored: Some(Stored { what: "blocked hosts", file: "blocked.json", shared: "blocked" }),
    idle: |choice| {
        let why = "nobody can name a host to block, and it has no `file`";
        choice.block_list().is_none().then_some(why)
    },
    wrong_files: |choice| wrong_file(choice).into_iter().collect(),
    ..Known::PLAIN
};

/// Settings of the app `quarantine`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSettings {
    /// The block list file that it watches.
    pub file: Option<PathBuf>,
    /// The file that keeps what operators have blocked.
    pub store: StorePlace,
}

impl AppChoice {
    /// The block list file.
    fn block_list(&self) -> Option<&Path> {
        match self {
            AppChoice::Quarantine(settings) => settings.file.as_deref(),
            _ => None,
        }
    }
}

const SETTINGS: &[Setting<AppChoice>] = &[
    Setting {
        key: "file",
        value: "PATH",
        about: "The block list, a watched file: one Ethernet address, or IPv4 or IPv6 address or \
            prefix, per line; # begins a comment. none: only `bellrock quarantine add` blocks.",
        change: Change::Live,
        form: Form::One {
            set: |choice, text| {
                if let AppChoice::Quarantine(settings) = choice {
                    settings.file = match text {
                        "" => {
                            return Err(values::Wrong::from(
                                "none, or the path of a file".to_owned(),
                            ));
                        }
                        "none" => None,
                        path => Some(path.into()),
                    };
                }
                Ok(())
            },
            show: |choice| match choice {
                AppChoice::Quarantine(QuarantineSettings { file: Some(file), .. }) => {
                    file.display().to_string()
                }
                _ => "none".to_owned(),
            },
        },
    },
    store_setting!("what `bellrock quarantine add` has blocked", "blocked.json"),
];

fn wrong_file(choice: &AppChoice) -> Option<WrongFile> {
    let error = read_block_list(choice.block_list()?).err()?;
    let setting = match error {
        BlockListError::Wrong { .. } => None,
        _ => Some("apps.quarantine.file".to_owned()),
    };
    Some(WrongFile { setting, text: error.to_string() })
}

/// Why a file is no block list.
#[derive(Debug, thiserror::Error)]
pub enum BlockListError {
    /// It cannot be read.
    #[error("{}: {error}; the block list must be there from the start, if only as an empty file", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is larger than [`MAX_BLOCK_LIST_BYTES`].
    #[error("{}: larger than {} MiB, so hardly a block list", .0.display(), MAX_BLOCK_LIST_BYTES >> 20)]
    TooLarge(PathBuf),
    /// It is not UTF-8 text.
    #[error("{}: not UTF-8 text", .0.display())]
    NotText(PathBuf),
    /// It has lines that block nothing: `FILE:LINE: message`, one a line.
    #[error("{}", lines(path, bad))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The lines.
        bad: Vec<BadLine>,
    },
}

fn lines(path: &Path, bad: &[BadLine]) -> String {
    let line = |bad: &BadLine| format!("{}:{}: {}", path.display(), bad.line, bad.problem);
    bad.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads a block list.
///
/// # Errors
/// [`BlockListError`], with all bad lines.
pub fn read_block_list(path: &Path) -> Result<BlockList, BlockListError> {
    let unreadable = |error| BlockListError::Unreadable { path: path.into(), error };
    let mut bytes = Vec::new();
    // To open a pipe without a writer would take for ever.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("it is no regular file")));
    }
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BLOCK_LIST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BLOCK_LIST_BYTES {
        return Err(BlockListError::TooLarge(path.into()));
    }
    let text = String::from_utf8(bytes).map_err(|_| BlockListError::NotText(path.into()))?;
    BlockList::parse(&text).map_err(|bad| BlockListError::Wrong { path: path.into(), bad })
}
