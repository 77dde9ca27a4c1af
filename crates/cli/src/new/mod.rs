//! `bellrock new`: makes a project with an app, its test, and what to do next.
//!
//! `names` decides which names a project can have, and `library` where a project in Rust gets
//! Bellrock from. The folders `python` and `rust` have the files, in which `NAME` stands for the
//! name of the project. Other words that are replaced have braces, so that no name contains one.

mod library;
mod names;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{Failure, print};
use library::Library;

/// Make a project: an app, its test, and how to run both
///
/// The project is a folder of that name, in Python unless --rust is given. The app is a learning
/// switch, to begin with. A folder that is there already must be empty.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct NewArgs {
    /// Name of the project, of its folder and of its app; other folders may stand before it:
    /// apps/my_switch
    #[arg(value_name = "NAME")]
    folder: PathBuf,

    /// Make it in Python (the default)
    #[arg(long, conflicts_with = "rust")]
    python: bool,

    /// Make it in Rust
    #[arg(long)]
    rust: bool,

    /// Folder of Bellrock's sources, which a project in Rust uses
    ///
    /// Without it and --git, the folder that this command was built in, if it lies there still.
    #[arg(long, value_name = "DIR", requires = "rust", conflicts_with = "git")]
    sources: Option<PathBuf>,

    /// Repository of Bellrock's sources, instead of a folder
    #[arg(long, value_name = "URL", requires = "rust")]
    git: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  bellrock new my_switch               then: cd my_switch; bellrock run --app ./my_switch.py
  bellrock new apps/my-switch --rust --sources ~/bellrock";

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
    ("Cargo.lock", "{TESTED_VERSIONS}"),
    ("README.md", include_str!("rust/README.md")),
    (".gitignore", "/target\n"),
];

pub(super) fn run(args: &NewArgs) -> Result<(), Failure> {
    let NewArgs { folder, rust, sources, git, .. } = args;
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
    let (files, replaced) = if *rust {
        names::check_rust(&name).map_err(Failure::Wrong)?;
        let library = Library::choose(folder, sources.as_deref(), git.as_deref());
        let Library { dependency, comment, tested_versions } = library.map_err(Failure::Wrong)?;
        let words = [
            ("NAME", name),
            ("{WHERE}", comment),
            ("{LIBRARY}", dependency),
            ("{TESTED_VERSIONS}", tested_versions),
        ];
        (RUST, Vec::from(words))
    } else {
        names::check_python(&name).map_err(Failure::Wrong)?;
        (PYTHON, vec![("NAME", name), ("VERSION", env!("CARGO_PKG_VERSION").to_owned())])
    };
    make(folder, files, &replaced)?;
    let (language, next) = match rust {
        false => ("Python", "README.md has the commands to install, run and test it"),
        true => ("Rust", "`cargo run` runs it, and `cargo test` tests it"),
    };
    print(&format!("{}: a project in {language}; {next}\n", folder.display()))
}

/// Makes the folder with all files, and the folders above it, or nothing.
fn make(folder: &Path, files: &[Template], replaced: &[(&str, String)]) -> Result<(), Failure> {
    let shown = folder.display();
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(false) => {
            return Err(Failure::Failed(format!("{shown} is there already, and not empty")));
        }
        Ok(true) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::Failed(format!("{shown}: {error}"))),
    }
    let above = folder.ancestors().skip(1);
    let absent: Vec<_> =
        above.take_while(|it| !it.as_os_str().is_empty() && !it.exists()).collect();
    // It gets its name when it is complete.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = folder.with_file_name(format!(".{name}-{}", std::process::id()));
    let made = write(&unfinished, files, replaced).and_then(|()| fs::rename(&unfinished, folder));
    made.map_err(|error| {
        let _ = fs::remove_dir_all(&unfinished);
        for folder in absent {
            let _ = fs::remove_dir(folder);
        }
        Failure::Failed(format!("{shown}: {error}"))
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
        let words = ["NAME", "VERSION", "{WHERE}", "{LIBRARY}", "{TESTED_VERSIONS}"];
        write(&place, files, &words.map(|word| (word, "my_app".into()))).unwrap();
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
                assert!(!text.contains("NAME") && !text.contains("LIBRARY"), "{}", path.display());
            }
            fs::remove_dir_all(place).unwrap();
        }
    }
}
