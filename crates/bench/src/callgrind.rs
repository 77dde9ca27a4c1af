//! Counts the user instructions of a program with valgrind's callgrind.
//!
//! Times vary with the load of the machine; instruction counts do not, so tests can assert them.
//! [`per_unit`] runs a program twice with different numbers of packets. The difference, divided, is
//! the cost of one packet.

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
    #[error("valgrind is not installed (Debian package: valgrind)")]
    NoValgrind,
    /// A program could not be started, or a file could not be read.
    #[error("{what}: {error}")]
    System {
        /// The program or file.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// The program or valgrind failed.
    #[error("{program} {arguments:?} failed under callgrind:\n{said}")]
    Failed {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// Output of both.
        said: String,
    },
    /// Cargo did not build the benchmark.
    #[error("cargo did not build the benchmark {name} of {package}:\n{said}")]
    Build {
        /// The package.
        package: String,
        /// The benchmark.
        name: String,
        /// Cargo's output.
        said: String,
    },
}

/// Functions with this name stand for the kernel's copying; in the real program the kernel does it.
const THE_KERNELS: &str = "*the_kernels_copy*";

/// Functions with this name are not what a benchmark measures.
const LEFT_OUT: &str = "*left_out_*";

/// Counts the user instructions of a program from start to end. Functions named `the_kernels_copy`
/// (which stand for the kernel's copy) or `left_out_...`, and child processes, are left out.
///
/// # Errors
/// [`CallgrindError`]; also if the program does not exit with status 0.
pub fn instructions(program: &Path, arguments: &[&str]) -> Result<u64, CallgrindError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = format!("bellrock-callgrind-{}-{number}", std::process::id());
    let file = std::env::temp_dir().join(file);
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--toggle-collect={THE_KERNELS}"))
        .arg(format!("--toggle-collect={LEFT_OUT}"))
        // After `--toggle-collect`, which would turn it off.
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
    // If removal fails, the file stays in the temporary folder.
    let _ = fs::remove_file(&file);
    counted.filter(|_| output.status.success()).ok_or_else(|| CallgrindError::Failed {
        program: program.to_owned(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        said: said(&output),
    })
}

/// Counts the instructions per unit. The last argument of the program is the number of units. The
/// result is the difference between a run with `units` and a run with twice as many, per unit.
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

/// Builds a benchmark of this workspace with the release profile, and returns its path. For tests:
/// it needs cargo, and the current folder has to be in the sources.
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

/// Returns the sum of all events in callgrind's file.
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
