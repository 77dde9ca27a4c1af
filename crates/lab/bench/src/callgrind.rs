//! Counts the user instructions of a program with valgrind's callgrind.
//!
//! Times vary with the load of the machine; instruction counts do not, so tests can assert them.
//! [`per_unit`] runs a program twice with different numbers of packets. The difference, divided, is
//! the cost of one packet.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

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
    Ok(CountedProgram::start(program, arguments)?.end()?.all)
}

/// Counted user instructions of a program.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// All of them.
    pub all: u64,
    /// Those of each function, without the functions that it calls.
    functions: HashMap<String, u64>,
}

impl Counted {
    /// Instructions of all functions whose name contains `part`, such as `bellrock_tables::`. Code
    /// that the compiler has inlined counts for the function around it.
    #[must_use]
    pub fn of(&self, part: &str) -> u64 {
        let functions = self.functions.iter().filter(|(name, _)| name.contains(part));
        functions.map(|(_, count)| count).sum()
    }

    /// Reads callgrind's file. `None` if it is not complete.
    fn read(text: &str) -> Option<Self> {
        let mut counted = Counted { all: total(text)?, functions: HashMap::new() };
        // A name is written once, behind its number.
        let mut names = HashMap::new();
        let mut function = "";
        let mut is_of_callee = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
                let (number, name) = name.split_once(' ').unwrap_or((name, ""));
                let name = *names.entry(number).or_insert(name);
                if line.starts_with("fn=") {
                    function = name;
                }
            } else if line.starts_with("calls=") {
                is_of_callee = true;
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
                && !std::mem::take(&mut is_of_callee)
                && let Some(cost) = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok())
            {
                *counted.functions.entry(function.to_owned()).or_default() += cost;
            }
        }
        Some(counted)
    }
}

/// A running program whose user instructions are counted, as [`instructions`] counts them. Dropping
/// it kills it.
#[derive(Debug)]
pub struct CountedProgram {
    /// `None` at the end.
    child: Option<Child>,
    file: PathBuf,
    program: PathBuf,
    arguments: Vec<String>,
}

impl CountedProgram {
    /// Starts it.
    ///
    /// # Errors
    /// [`CallgrindError::NoValgrind`], [`CallgrindError::System`].
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self, CallgrindError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("bellrock-callgrind-{}-{number}", std::process::id());
        let file = std::env::temp_dir().join(file);
        let child = Command::new("valgrind")
            .arg("--tool=callgrind")
            .arg(format!("--toggle-collect={THE_KERNELS}"))
            .arg(format!("--toggle-collect={LEFT_OUT}"))
            // After `--toggle-collect`, which would turn it off.
            .arg("--collect-atstart=yes")
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => CallgrindError::NoValgrind,
                _ => CallgrindError::System { what: "valgrind".into(), error },
            })?;
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Ok(CountedProgram { child: Some(child), file, program: program.to_owned(), arguments })
    }

    /// Asks it to end (SIGTERM), for a program that runs until then. Returns its instructions.
    ///
    /// # Errors
    /// [`CallgrindError`]; also if it does not exit with status 0.
    pub fn terminate(self) -> Result<Counted, CallgrindError> {
        if let Some(pid) =
            self.child.as_ref().map(Child::id).and_then(|id| Pid::from_raw(id as i32))
        {
            // If it has ended already, its output says why.
            let _ = kill_process(pid, Signal::TERM);
        }
        self.end()
    }

    /// Waits until it ends. Returns its instructions.
    ///
    /// # Errors
    /// [`CallgrindError`]; also if it does not exit with status 0.
    pub fn end(mut self) -> Result<Counted, CallgrindError> {
        let failed = |said| CallgrindError::Failed {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            said,
        };
        let Some(child) = self.child.take() else { return Err(failed(String::new())) };
        let output = child
            .wait_with_output()
            .map_err(|error| CallgrindError::System { what: "valgrind".into(), error })?;
        let counted = fs::read_to_string(&self.file).ok().as_deref().and_then(Counted::read);
        counted.filter(|_| output.status.success()).ok_or_else(|| failed(said(&output)))
    }
}

impl Drop for CountedProgram {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        // If removal fails, the file stays in the temporary folder.
        let _ = fs::remove_file(&self.file);
    }
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
    fn each_function_has_its_own_instructions() {
        let text = "events: Ir\nfl=(1) x.rs\nfn=(1) a::one\n16 3\n+2 4\ncfn=(2) b::two\ncalls=5 20\n\
                    * 100\n-1 1\n\nfn=(2)\n7 60\nfn=(3) a::three\n* 40\n\ntotals: 108\n";
        let counted = Counted::read(text).unwrap_or_default();
        assert_eq!(counted.all, 108);
        assert_eq!(["a::one", "b::two", "a::", "c::"].map(|part| counted.of(part)), [8, 60, 48, 0]);
        assert!(Counted::read("events: Ir\nfn=(1) a\n1 2\n").is_none(), "not complete");
    }

    #[test]
    fn the_total_is_read_from_the_file() {
        let text = "events: Ir\nsummary: 17\n\nfn=x\n3 4\ntotals: 4262\n";
        assert_eq!(total(text), Some(4262));
        assert_eq!(total("events: Ir\nsummary: 17\n"), Some(17));
        assert_eq!(total(""), None);
    }
}
