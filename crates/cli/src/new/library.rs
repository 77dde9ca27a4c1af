//! Where a project in Rust gets Bellrock's library from: a folder with its sources, or a
//! repository. It is on no registry.

use std::env;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// The library, from the folder of the sources.
const LIBRARY: &str = "crates/bellrock";

/// The versions of other crates that Bellrock is tested with.
const TESTED_VERSIONS: &str = include_str!("../../../../Cargo.lock");

/// Comments of the dependency.
const FOLDER_COMMENT: &str = "\
# Bellrock is not on crates.io. This is the folder of its sources on your machine. For other machines, name a
# repository in both places: bellrock = { git = \"https://...\", features = [...] }";
const REPOSITORY_COMMENT: &str = "\
# Bellrock is not on crates.io. This is a repository of its sources; rev = \"...\" in both places stays at one commit.";

/// The library of a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Library {
    /// The source of the dependency, in TOML.
    pub(super) dependency: String,
    /// Says what that is.
    pub(super) comment: String,
    /// The text of `Cargo.lock`.
    pub(super) tested_versions: String,
}

impl Library {
    /// The library for a project in `project`, from a folder or a repository that the user names.
    ///
    /// # Errors
    /// What would be right.
    pub(super) fn choose(
        project: &Path,
        sources: Option<&Path>,
        git: Option<&str>,
    ) -> Result<Library, String> {
        if let Some(url) = git {
            return Library::of_repository(url);
        }
        let found;
        let sources = match sources {
            Some(sources) => sources,
            None => {
                found = env::current_exe().ok().and_then(|command| sources_around(&command));
                found.as_deref().ok_or(
                    "a project in Rust uses Bellrock's sources; give their folder with --sources DIR, or their \
                     repository with --git URL",
                )?
            }
        };
        Library::of_folder(project, sources)
    }

    fn of_repository(url: &str) -> Result<Library, String> {
        if url.is_empty() || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(format!(
                "--git: {url:?} is no repository; give its address, such as https://git.example.com/bellrock.git"
            ));
        }
        Ok(Library {
            dependency: format!("git = {}", Value::from(url)),
            comment: REPOSITORY_COMMENT.to_owned(),
            tested_versions: TESTED_VERSIONS.to_owned(),
        })
    }

    fn of_folder(project: &Path, sources: &Path) -> Result<Library, String> {
        let found = sources.canonicalize().ok().filter(|found| has_library(found));
        let found = found.ok_or_else(|| {
            format!(
                "--sources: {} has no {LIBRARY}; give the folder of Bellrock's sources",
                sources.display()
            )
        })?;
        let path = from_project(project, sources).unwrap_or(found).join(LIBRARY);
        let path = path.to_str().ok_or_else(|| {
            format!("--sources: Cargo takes no path that is not UTF-8: {}", sources.display())
        })?;
        let tested_versions = fs::read_to_string(sources.join("Cargo.lock"));
        Ok(Library {
            dependency: format!("path = {}", Value::from(path)),
            comment: FOLDER_COMMENT.to_owned(),
            tested_versions: tested_versions.unwrap_or_else(|_| TESTED_VERSIONS.to_owned()),
        })
    }
}

/// The path of the sources from the folder of the project, if the user gave both from the current
/// folder: so both can be moved together.
fn from_project(project: &Path, sources: &Path) -> Option<PathBuf> {
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let parts: Vec<_> = project.components().filter(|part| *part != Component::CurDir).collect();
    let is_below = parts.iter().all(is_plain);
    (is_below && sources.is_relative()).then(|| {
        let up: PathBuf = parts.iter().map(|_| Component::ParentDir).collect();
        up.join(sources.strip_prefix(".").unwrap_or(sources))
    })
}

/// The folder of Bellrock's sources in which this program lies, as after a build.
fn sources_around(program: &Path) -> Option<PathBuf> {
    let program = program.canonicalize().ok()?;
    program.ancestors().find(|folder| has_library(folder)).map(Path::to_owned)
}

fn has_library(folder: &Path) -> bool {
    folder.join(LIBRARY).join("Cargo.toml").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with what is looked for in sources.
    fn sources(name: &str) -> PathBuf {
        let place = crate::test_directory(name).canonicalize().unwrap();
        fs::create_dir_all(place.join(LIBRARY)).unwrap();
        fs::write(place.join(LIBRARY).join("Cargo.toml"), "").unwrap();
        fs::write(place.join("Cargo.lock"), "theirs").unwrap();
        place
    }

    #[test]
    fn a_command_finds_the_sources_that_it_was_built_in_and_no_others() {
        let place = sources("new-around");
        let release = place.join("target/release");
        fs::create_dir_all(&release).unwrap();
        fs::write(release.join("bellrock"), "").unwrap();
        assert_eq!(sources_around(&release.join("bellrock")), Some(place.clone()));
        let elsewhere = crate::test_directory("new-elsewhere");
        fs::write(elsewhere.join("bellrock"), "").unwrap();
        assert_eq!(sources_around(&elsewhere.join("bellrock")), None);
        for folder in [place, elsewhere] {
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn a_folder_stays_as_the_user_gave_it_and_has_its_own_versions() {
        let place = sources("new-folder");
        let library = Library::of_folder(Path::new("app"), &place).unwrap();
        let path = format!("path = \"{}/{LIBRARY}\"", place.display());
        assert_eq!((library.dependency, &*library.tested_versions), (path, "theirs"));
        fs::remove_dir_all(place).unwrap();
        for (project, sources, found) in [
            ("app", "bellrock", Some("../bellrock")),
            ("./app", "./bellrock", Some("../bellrock")),
            ("apps/one", "../bellrock", Some("../../../bellrock")),
            ("../app", "bellrock", None),
            ("/tmp/app", "bellrock", None),
            ("app", "/src/bellrock", None),
        ] {
            let path = from_project(Path::new(project), Path::new(sources));
            assert_eq!(path.as_deref(), found.map(Path::new), "{project} {sources}");
        }
    }

    #[test]
    fn a_repository_is_an_address() {
        let library = Library::of_repository("https://git.example.com/bellrock.git").unwrap();
        assert_eq!(library.dependency, "git = \"https://git.example.com/bellrock.git\"");
        assert!(library.tested_versions.contains("name = \"zerocopy\""));
        for wrong in ["", "a b", "https://x\n"] {
            let error = Library::of_repository(wrong).unwrap_err();
            assert!(error.contains("such as https://"), "{error}");
        }
    }
}
