//! `bellrock new`: makes a project with an app, its test, and what to do next.
//!
//! `names` decides which names a project can have. The folders `python` and `rust` have the files, in which `NAME` stands
//! for the name of the project, and `SOURCES` for the folder of Bellrock's library.

mod names;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Failure, print};

/// Make a project: an app, its test, and how to run both
///
/// The project is a folder of that name, in Python unless --rust is given. The app is a learning
/// switch, to begin with. A folder that is there already must be empty.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct NewArgs {
    /// Name of the project, of its folder and of its app
    name: String,

    /// Make it in Python (the default)
    #[arg(long, conflicts_with = "rust")]
    python: bool,

    /// Make it in Rust
    #[arg(long)]
    rust: bool,

    /// Folder of Bellrock's sources, which a project in Rust uses
    ///
    /// Without it, the folder in which this command was built.
    #[arg(long, value_name = "DIR", requires = "rust")]
    sources: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  bellrock new my_switch               then: cd my_switch; bellrock run --app ./my_switch.py
  bellrock new my-switch --rust --sources ~/bellrock";

/// A file of a project: its name, in which `NAME` is replaced as in its text, and its text.
type Template = (&'static str, &'static str);

const PYTHON: &[Template] = &[
    ("NAME.py", include_str!("../../../../python/examples/learning.py")),
    ("test_NAME.py", include_str!("python/test.py")),
    ("pyproject.toml", include_str!("python/pyproject.toml")),
    ("README.md", include_str!("python/README.md")),
    (".gitignore", "__pycache__/\n.venv/\n.pytest_cache/\n.mypy_cache/\n"),
];

const RUST: &[Template] = &[
    ("src/main.rs", include_str!("rust/learning.rs")),
    ("Cargo.toml", include_str!("rust/Cargo.toml")),
    ("README.md", include_str!("rust/README.md")),
    (".gitignore", "/target\n"),
];

/// The library, from the folder of the sources.
const LIBRARY: &str = "crates/bellrock";

/// The folder of the sources, from that of this crate, in which it was built.
const BUILT_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(super) fn run(args: &NewArgs) -> Result<(), Failure> {
    let NewArgs { name, rust, sources, .. } = args;
    let replaced = match rust {
        false => {
            names::check_python(name).map_err(Failure::Wrong)?;
            [("NAME", name.clone()), ("VERSION", env!("CARGO_PKG_VERSION").to_owned())]
        }
        true => {
            names::check_rust(name).map_err(Failure::Wrong)?;
            let library = library(sources.as_deref())?;
            [("NAME", name.clone()), ("SOURCES", library.display().to_string())]
        }
    };
    make(Path::new(name), if *rust { RUST } else { PYTHON }, &replaced)?;
    let (language, next) = match rust {
        false => ("Python", "README.md has the commands to install, run and test it"),
        true => ("Rust", "`cargo run` runs it, and `cargo test` tests it"),
    };
    print(&format!("{name}: a project in {language}; {next}\n"))
}

/// The folder of the library, as a path that works from anywhere.
fn library(sources: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = sources.unwrap_or(Path::new(BUILT_IN)).join(LIBRARY);
    let found = folder.canonicalize().ok().filter(|found| found.join("Cargo.toml").is_file());
    found.ok_or_else(|| {
        Failure::Wrong(match sources {
            Some(sources) => format!(
                "--sources: {} has no {LIBRARY}; give the folder of Bellrock's sources",
                sources.display()
            ),
            None => {
                "a project in Rust uses Bellrock's sources; give their folder with --sources".into()
            }
        })
    })
}

/// Makes the folder with all files, or nothing.
fn make(folder: &Path, files: &[Template], replaced: &[(&str, String)]) -> Result<(), Failure> {
    let name = folder.display();
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(false) => {
            return Err(Failure::Failed(format!("{name} is there already, and not empty")));
        }
        Ok(true) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::Failed(format!("{name}: {error}"))),
    }
    // It gets its name when it is complete.
    let unfinished = PathBuf::from(format!(".{name}-{}", std::process::id()));
    let made = write(&unfinished, files, replaced).and_then(|()| fs::rename(&unfinished, folder));
    made.map_err(|error| {
        let _ = fs::remove_dir_all(&unfinished);
        Failure::Failed(format!("{name}: {error}"))
    })
}

fn write(folder: &Path, files: &[Template], replaced: &[(&str, String)]) -> io::Result<()> {
    let fill = |text: &str| {
        replaced.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    };
    for (name, text) in files {
        let path = folder.join(fill(name));
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, fill(text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, files: &[Template]) -> PathBuf {
        let place = crate::test_directory(name);
        fs::remove_dir_all(&place).unwrap();
        write(&place, files, &[("NAME", "my_app".into()), ("SOURCES", "/src".into())]).unwrap();
        place
    }

    #[test]
    fn a_project_has_all_files_with_its_name() {
        for (name, files, app) in [("new-py", PYTHON, "my_app.py"), ("new-rs", RUST, "src/main.rs")]
        {
            let place = made(name, files);
            assert!(place.join(app).is_file());
            for (file, _) in files {
                let path = place.join(file.replace("NAME", "my_app"));
                let text = fs::read_to_string(&path).unwrap();
                assert!(!text.contains("NAME") && !text.contains("SOURCES"), "{}", path.display());
            }
            fs::remove_dir_all(place).unwrap();
        }
    }
}
