//! Tools of a laboratory: emulated networks, recordings, readers of captures.
//!
//! [`fn@emulate`] runs an emulated network for any controller, and [`fn@demo`] one with a
//! controller. [`fn@decode`] reads captures and recordings, [`fn@record`] makes recordings, and
//! [`fn@replay`] plays them. Each takes the arguments of its command.
//!
//! # What it is not
//! It asks no running controller: the command's own modules do. The load generator is
//! `bellrock-bench`.

mod decode;
mod demo;
mod emulate;
mod record;
mod replay;
pub mod terminal;

pub use decode::CaptureError;
pub use decode::command::{DecodeArgs, DecodeFailure, DecodeOutcome, run as decode};
pub use demo::{DemoArgs, run as demo};
pub use emulate::{EmulateArgs, run as emulate};
pub use record::{RecordArgs, run as record};
pub use replay::{ReplayArgs, ReplayOutcome, run as replay};

/// A new directory for a test.
#[cfg(test)]
fn test_directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("bellrock-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
