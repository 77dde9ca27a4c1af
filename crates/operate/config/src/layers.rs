//! The layers of a configuration: defaults, a file, what the nodes of a cluster share, the
//! environment, and flags.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, de};

use super::files::{self, WrongFile};
use super::read::Reading;
use super::shared::SharedSettings;
use super::values::nearest;
use super::yaml::{Node, Place, Problem};
use super::{Config, FileError, names, parse_file, read_file, settings};

/// A setting given by a flag or by the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Override {
    /// Its key in the table of settings.
    pub key: &'static str,
    /// The name of the flag or of the variable, for errors.
    pub origin: String,
    /// Its values.
    pub values: Vec<String>,
}

/// Where settings come from. Whatever is absent leaves what is under it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// Settings given by flags or the environment.
    pub overrides: Vec<Override>,
    /// Names of the apps of the chain, or paths of files of Python, given by flags or the
    /// environment. They replace the chain of the file, but keep their settings in the file.
    pub apps: Vec<String>,
    /// The text of the file, if it was read already.
    #[serde(skip)]
    pub text: Option<String>,
    /// What the nodes of a cluster share: the text of a file with some of the settings. They
    /// replace those of the file.
    #[serde(skip)]
    pub shared: Option<String>,
}

/// A configuration, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The settings. Do not use them if there are errors.
    pub config: Config,
    /// Why the configuration cannot be used: a line for each reason.
    pub errors: Vec<String>,
    /// What is probably not meant: a line for each.
    pub warnings: Vec<String>,
}

impl Sources {
    /// Only a file.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Sources { file: Some(path.into()), ..Sources::default() }
    }

    /// Reads the text of the file, if there is one, so that a check later has what it has now.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_text(self) -> Result<Self, FileError> {
        let text = self.file.as_deref().map(read_file).transpose()?;
        Ok(Sources { text, ..self })
    }

    /// Reads and checks the settings. The files that they name are read too.
    ///
    /// # Errors
    /// The configuration file, or what nodes share, cannot be used. Problems of other layers,
    /// contradictions, and wrong files are in [`Checked`].
    pub fn check(&self) -> Result<Checked, FileError> {
        self.check_with(|_| Vec::new())
    }

    /// The same, with the files that only other crates can read, such as certificates:
    /// `wrong_files` reads those of a configuration without other errors.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_with(
        &self,
        wrong_files: impl FnOnce(&Config) -> Vec<WrongFile>,
    ) -> Result<Checked, FileError> {
        let root = match (&self.file, &self.text) {
            (Some(path), Some(text)) => parse_file(path, text)?,
            (Some(path), None) => parse_file(path, &read_file(path)?)?,
            (None, _) => Node::default(),
        };
        let mut shared =
            self.shared.as_deref().map(SharedSettings::parse).transpose()?.unwrap_or_default();
        let (mut config, mut reading, mut errors) =
            (Config::default(), Reading::default(), Vec::new());
        let (names, others): (Vec<_>, Vec<_>) =
            self.overrides.iter().partition(|given| names::KEYS.contains(&given.key));
        config.read(&root, &mut reading, |config, reading| {
            shared.read_names(config, reading);
            names.iter().for_each(|given| errors.extend(apply(given, config, reading)));
        });
        if let (Some(path), false) = (&self.file, reading.problems.is_empty()) {
            let problems = reading.problems;
            return Err(FileError::Wrong { path: path.clone(), problems });
        }
        shared.read_settings(&mut config, &mut reading);
        for given in others {
            errors.extend(apply(given, &mut config, &mut reading));
        }
        if !self.apps.is_empty() {
            errors.extend(config.choose_apps(&self.apps).err());
            reading.places.forget_chain();
        }
        shared.read_apps(&mut config, &mut reading);
        shared.finish()?;
        let located = |problem: &Problem| {
            let file = self.file.as_deref().unwrap_or(Path::new("")).display();
            let Place { line, column } = problem.place;
            format!("{file}:{line}:{column}: warning: {}", problem.message)
        };
        let mut warnings: Vec<String> = reading.warnings.iter().map(located).collect();
        if errors.is_empty() {
            for contradiction in config.contradictions() {
                let text = match &self.file {
                    Some(path) => {
                        contradiction.located(&path.display().to_string(), &reading.places)
                    }
                    None => contradiction.text.clone(),
                };
                if contradiction.is_error { errors.push(text) } else { warnings.push(text) }
            }
            let of_apps = if self.apps.is_empty() { "apps" } else { "--app" };
            let wrong = files::wrong_files(&config, of_apps).chain(wrong_files(&config));
            errors.extend(wrong.map(|WrongFile { setting, text }| {
                let place = setting.and_then(|key| reading.places.last_of(&[key]));
                match (&self.file, place) {
                    (Some(file), Some(Place { line, column })) => {
                        format!("{}:{line}:{column}: {text}", file.display())
                    }
                    _ => text,
                }
            }));
        }
        Ok(Checked { config, errors, warnings })
    }
}

/// An [`Override`] whose key may be in no table.
#[derive(Deserialize)]
struct UncheckedOverride {
    key: String,
    origin: String,
    values: Vec<String>,
}

impl<'de> Deserialize<'de> for Override {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let UncheckedOverride { key, origin, values } = Deserialize::deserialize(deserializer)?;
        let known = settings::all().map(|setting| setting.key).find(|known| *known == key);
        let missing = || de::Error::custom(format!("there is no setting {key:?}"));
        Ok(Override { key: known.ok_or_else(missing)?, origin, values })
    }
}

/// Applies a setting, or returns what is wrong with its values.
fn apply(given: &Override, config: &mut Config, reading: &mut Reading) -> Vec<String> {
    let Override { key, origin, values } = given;
    let Some(setting) = settings::all().find(|setting| setting.key == *key) else {
        return vec![format!("{origin}: there is no setting {key:?}")];
    };
    reading.places.forget(key);
    let texts: Vec<&str> = values.iter().map(String::as_str).collect();
    setting.set(config, &texts, origin, reading)
}

/// Begins the name of each variable.
const PREFIX: &str = "BELLROCK_";

/// The environment variable of a setting.
#[must_use]
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}

/// Finds the names that have our prefix and are close to a variable of ours: each with the name
/// that was probably meant. `others` are the keys of variables that are not settings.
#[must_use]
pub fn misspelled_variables(
    names: impl Iterator<Item = String>,
    others: &[&str],
) -> Vec<(String, String)> {
    let keys = settings::all().map(|setting| setting.key).chain(others.iter().copied());
    let ours: Vec<String> = keys.map(variable).collect();
    let ours: Vec<&str> = ours.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
    let foreign = names.filter_map(|name| {
        let key = name.strip_prefix(PREFIX).filter(|key| !ours.contains(key))?;
        nearest(key, &ours).map(|near| (name.clone(), format!("{PREFIX}{near}")))
    });
    foreign.collect()
}
