//! Counting the user instructions of a program, by valgrind's callgrind.
//!
//! Instructions do not depend on the machine's mood as times do, so they are what a test can assert.
//! What a program does once for each packet is what it does more when it has more packets: it runs
//! twice, and the difference is divided ([`per_unit`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Why instructions could not be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallgrindError {
    /// Valgrind is not installed.
    #[error("valgrind is not installed; it is Debian's package valgrind")]
    NoValgrind,
    /// A program cannot be started or a file not read.
    #[error("{what}: {error}")]
    System {
        /// Which.
        what: String,
        /// The system's word.
        error: io::Error,
    },
    /// The program failed, or valgrind did.
    #[error("{program} {arguments:?} failed under callgrind:\n{said}")]
    Failed {
        /// The program.
        program: PathBuf,
        /// What it was given.
        arguments: Vec<String>,
        /// What both said.
        said: String,
    },
    /// Cargo did not build the benchmark.
    #[error("cargo did not build the benchmark {name} of {package}:\n{said}")]
    Build {
        /// The package.
        package: String,
        /// The benchmark.
        name: String,
        /// What cargo said.
        said: String,
    },
}

/// Functions of such a name do in a benchmark what the kernel does in the real program.
const THE_KERNELS: &str = "*the_kernels_copy*";

/// User instructions of a program from its start to its end, but for those that stand for the kernel's
/// copy (functions named `the_kernels_copy`). Processes that it starts are not in it.
///
/// # Errors
/// [`CallgrindError`]; also when the program does not end with status 0.
pub fn instructions(program: &Path, arguments: &[&str]) -> Result<u64, CallgrindError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = format!("bellrock-callgrind-{}-{number}", std::process::id());
    let file = std::env::temp_dir().join(file);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--toggle-collect={THE_KERNELS}"))
        // Behind that, which would turn it off.
        .arg("--collect-atstart=yes")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CallgrindError::NoValgrind,
            _ => CallgrindError::System { what: "valgrind".into(), error },
        })?;
    let counted = fs::read_to_string(&file).ok().as_deref().and_then(total);
    // If it fails, a file stays in the folder for such files.
    let _ = fs::remove_file(&file);
    counted.filter(|_| output.status.success()).ok_or_else(|| CallgrindError::Failed {
        program: program.to_owned(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        said: said(&output),
    })
}

/// The instructions that a program spends on each unit of what its last argument counts: the
/// difference between so many and twice as many.
///
/// # Errors
/// As [`instructions`].
pub fn per_unit(program: &Path, arguments: &[&str], units: u64) -> Result<f64, CallgrindError> {
    let count = |units: u64| {
        let units = units.to_string();
        let all: Vec<&str> = arguments.iter().copied().chain([units.as_str()]).collect();
        instructions(program, &all)
    };
    let (once, twice) = (count(units)?, count(2 * units)?);
    Ok(twice.saturating_sub(once) as f64 / units as f64)
}

/// Builds a benchmark of this workspace with the release profile, and returns its path. For tests: it
/// needs cargo and the sources, in whose folder the caller is.
///
/// # Errors
/// Cargo's.
pub fn benchmark(package: &str, name: &str) -> Result<PathBuf, CallgrindError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["bench", "--no-run", "--locked", "--message-format=json"])
        .args(["-p", package, "--bench", name])
        .output()
        .map_err(|error| CallgrindError::System { what: "cargo".into(), error })?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages.lines().rev().find_map(|line| {
        let (_, behind) = line.split_once("\"executable\":\"")?;
        behind.split_once('"').map(|(path, _)| PathBuf::from(path))
    });
    executable.filter(|_| output.status.success()).ok_or_else(|| CallgrindError::Build {
        package: package.to_owned(),
        name: name.to_owned(),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The sum of all events in callgrind's file.
fn total(text: &str) -> Option<u64> {
    let lines = || text.lines().rev();
    let line = |key| lines().find_map(move |line: &str| line.strip_prefix(key));
    line("totals:").or_else(|| line("summary:"))?.trim().parse().ok()
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_the_file() {
        let text = "events: Ir\nsummary: 17\n\nfn=x\n3 4\ntotals: 4262\n";
        assert_eq!(total(text), Some(4262));
        assert_eq!(total("events: Ir\nsummary: 17\n"), Some(17));
        assert_eq!(total(""), None);
    }
}
