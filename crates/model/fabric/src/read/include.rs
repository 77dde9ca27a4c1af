//! The top of a file, and the files that it includes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Reading, Section};
use crate::keys::{BELLROCK, TOP};
use crate::yaml::{Entry, Key, Node, Scalar, Value, compose};
use crate::{Files, Place, ReadFile};

/// Maximum depth of includes. Loops are found before.
const MAX_DEPTH: usize = 32;

/// Maximum number of files that are read. A file that is included twice counts twice.
const MAX_FILES: usize = 1024;

/// The sections of all files together.
#[derive(Debug, Default)]
pub(super) struct Top {
    pub(super) dps: Vec<Entry>,
    pub(super) vlans: Vec<Entry>,
    pub(super) acls: Vec<Entry>,
    pub(super) meters: Vec<Entry>,
    pub(super) routers: Vec<Entry>,
    pub(super) files: Vec<ReadFile>,
}

/// The sections that files have together, in the order of [`Top`].
const SECTIONS: [&str; 5] = ["dps", "vlans", "acls", "meters", "routers"];

/// The entries of each of [`SECTIONS`]. A later entry takes the place of an earlier one of its
/// name.
#[derive(Clone, Default)]
struct Merged([Vec<Entry>; SECTIONS.len()]);

impl Merged {
    fn add(&mut self, other: &Merged) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            let mut index: BTreeMap<Key, usize> =
                own.iter().enumerate().map(|(position, it)| (it.key.key(), position)).collect();
            for entry in other {
                match index.get(&entry.key.key()).and_then(|position| own.get_mut(*position)) {
                    Some(earlier) => *earlier = entry.clone(),
                    None => {
                        index.insert(entry.key.key(), own.len());
                        own.push(entry.clone());
                    }
                }
            }
        }
    }
}

/// Paths of files, with whether they were read.
type Seen = BTreeSet<PathBuf>;

pub(super) fn read(path: &Path, files: &dyn Files, reading: &mut Reading) -> Top {
    let mut includer = Includer { files, read: Vec::new() };
    let mut seen = Seen::new();
    let mut merged = Merged::default();
    let start = Place::start(path);
    let real = files.real_path(path);
    if let Err(problem) = includer.file(&real, &mut seen, &mut merged, 0, reading) {
        problem.report(&start, reading);
    }
    let [dps, vlans, acls, meters, routers] = merged.0;
    if dps.is_empty() && reading.problems.is_empty() {
        let message = "no switch is declared: give `dps:` with one at least";
        reading.problem(&start, message);
    }
    Top { dps, vlans, acls, meters, routers, files: includer.read }
}

struct Includer<'f> {
    files: &'f dyn Files,
    read: Vec<ReadFile>,
}

/// Why a file is not used. An optional file is skipped then.
enum Skipped {
    /// It cannot be opened.
    Absent(String),
    /// It has problems, which are not reported yet.
    Wrong(Box<Reading>),
}

impl Skipped {
    fn report(self, place: &Place, reading: &mut Reading) {
        match self {
            Skipped::Absent(message) => reading.problem(place, message),
            Skipped::Wrong(wrong) => {
                for problem in wrong.problems.list {
                    reading.problem(&problem.place, problem.message);
                }
                reading.problems.left_out += wrong.problems.left_out;
            }
        }
    }
}

impl Includer<'_> {
    /// Reads a file and what it includes into `merged`. `seen` has the files around it, and gets
    /// this one and those that it includes.
    fn file(
        &mut self,
        path: &Path,
        seen: &mut Seen,
        merged: &mut Merged,
        depth: usize,
        reading: &mut Reading,
    ) -> Result<(), Skipped> {
        let name = path.display();
        if self.read.len() >= MAX_FILES {
            return Err(Skipped::Absent(format!("more than {MAX_FILES} files are included")));
        }
        let text = self.files.text(path).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => "there is no such file",
                io::ErrorKind::InvalidData => "it is not UTF-8",
                _ => return Skipped::Absent(format!("{name} cannot be read: {error}")),
            };
            Skipped::Absent(format!("{name} cannot be read: {hint}"))
        })?;
        let mut own = Reading::default();
        let parts = self.parts(path, &text, &mut own);
        let Some(parts) = parts.filter(|_| own.problems.is_empty()) else {
            return Err(Skipped::Wrong(Box::new(own)));
        };
        let position = self.read.len();
        self.read.push(ReadFile { path: path.to_owned(), text: Some(text) });
        let mut new_seen = seen.clone();
        new_seen.insert(path.to_owned());
        let mut new = merged.clone();
        new.add(&parts.merged);
        let mut result = Ok(());
        for include in parts.includes {
            let real = self.files.real_path(&parent(path).join(&*include.path));
            // Faucet compares with the files around this one, not with those before it.
            let outcome = if seen.contains(&real) || depth >= MAX_DEPTH {
                let hint = "a file cannot include itself; remove one of the includes";
                Err(Skipped::Absent(format!("{} is read already: {hint}", real.display())))
            } else {
                self.file(&real, &mut new_seen, &mut new, depth + 1, &mut own)
            };
            let Err(skipped) = outcome else { continue };
            if include.is_required {
                skipped.report(&include.place, &mut own);
                result = Err(());
                continue;
            }
            self.skip(skipped, &include, &real, &mut own);
            new_seen.insert(real);
        }
        if result.is_err() {
            self.read.truncate(position);
            return Err(Skipped::Wrong(Box::new(own)));
        }
        for warning in own.warnings.list {
            reading.warning(&warning.place, warning.message);
        }
        seen.append(&mut new_seen);
        *merged = new;
        Ok(())
    }

    /// Leaves an optional file out. Faucet does so if it is wrong too; that is a warning here.
    fn skip(&mut self, skipped: Skipped, include: &Include, real: &Path, own: &mut Reading) {
        if let Skipped::Wrong(wrong) = skipped {
            for problem in wrong.problems.list {
                own.warning(&problem.place, format!("{}; the file is skipped", problem.message));
            }
            let message =
                format!("`{}` has problems and is skipped, as it is optional", include.path);
            own.warning(&include.place, message);
        }
        self.read.push(ReadFile { path: real.to_owned(), text: None });
    }

    /// The sections and includes of a file.
    fn parts(&self, path: &Path, text: &str, own: &mut Reading) -> Option<Parts> {
        let file: Arc<Path> = Arc::from(path);
        let root = compose(text, &file, &mut own.problems)?;
        let Value::Map(entries) = &root.value else {
            let message = match root.is_null() {
                true => "the file is empty: give `dps:` with a switch at least".to_owned(),
                false => format!("{root} stands where keys must be, such as `dps:` and `vlans:`"),
            };
            own.problem(&root.place, message);
            return None;
        };
        if entries.is_empty() {
            own.problem(&root.place, "the file is empty: give `dps:` with a switch at least");
        }
        for entry in entries.iter().filter(|entry| entry.value.is_null()) {
            let known = |key: &&str| *key != "bellrock" && TOP.iter().any(|row| row.name == *key);
            if let Some(key) = entry.key.text().filter(known) {
                let what = if key.starts_with("include") { "a list of files" } else { "entries" };
                let message = format!("`{key}` is empty; give it {what}, or remove it");
                own.problem(&entry.value.place, message);
            }
        }
        // An empty list is as good as an empty map.
        let entries: Vec<Entry> = entries
            .iter()
            .filter(|entry| {
                let is_section = entry.key.text().is_some_and(|key| SECTIONS.contains(&key));
                !(is_section && entry.value.list().is_some_and(<[_]>::is_empty))
            })
            .cloned()
            .collect();
        let section = Section::of(&entries, &root.place, TOP, "key of the file", own);
        let mut parts = Parts::default();
        for (to, name) in parts.merged.0.iter_mut().zip(SECTIONS) {
            if let Some(entries) = section.node(name).and_then(|node| node.map()) {
                *to = entries.to_vec();
            }
        }
        if let Some(node) = section.node("bellrock") {
            Section::of_node(node, BELLROCK, "key of Bellrock yet", own);
        }
        for (key, is_required) in [("include", true), ("include-optional", false)] {
            for node in section.node(key).and_then(|node| node.list()).unwrap_or_default() {
                parts.includes.extend(include(node, is_required, own));
            }
        }
        Some(parts)
    }
}

#[derive(Default)]
struct Parts {
    merged: Merged,
    includes: Vec<Include>,
}

struct Include {
    place: Place,
    path: Arc<str>,
    is_required: bool,
}

fn include(node: &Node, is_required: bool, own: &mut Reading) -> Option<Include> {
    let path = match node.scalar() {
        Some(Scalar::Text(path)) => Some(Arc::clone(path)),
        Some(Scalar::Null) | None => None,
        Some(other) => Some(other.to_string().into()),
    };
    if path.is_none() {
        own.problem(&node.place, format!("{node} is no file; give its path"));
    }
    path.map(|path| Include { place: node.place.clone(), path, is_required })
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}
