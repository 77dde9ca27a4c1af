//! The face of Bellrock: the library that authors of apps import and, behind the feature `cli`, the command.

#[cfg(feature = "cli")]
pub mod cli;
