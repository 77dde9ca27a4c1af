//! The layers of a configuration: defaults, a file, the environment, and flags.

use std::path::PathBuf;

use super::values::nearest;
use super::{Config, FileError, Places, files, settings};

/// A setting given by a flag or by the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Its key in the table of settings.
    pub key: &'static str,
    /// The name of the flag or of the variable, for errors.
    pub origin: String,
    /// Its values.
    pub values: Vec<String>,
}

/// Where settings come from. Whatever is absent leaves what is under it.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// Settings given by flags or the environment.
    pub overrides: Vec<Override>,
    /// Names of the apps of the chain, given by flags or the environment. They replace the chain of the
    /// file, but keep their settings in the file.
    pub apps: Vec<String>,
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

    /// Reads and checks the settings. The files that they name are read too.
    ///
    /// # Errors
    /// The configuration file cannot be used. Problems of other layers, contradictions, and wrong files
    /// are in [`Checked`].
    pub fn check(&self) -> Result<Checked, FileError> {
        let (mut config, mut places) = match &self.file {
            Some(path) => Config::from_file(path)?,
            None => (Config::default(), Places::default()),
        };
        let mut errors = Vec::new();
        for given in &self.overrides {
            errors.extend(apply(given, &mut config));
            places.forget(given.key);
        }
        if !self.apps.is_empty() {
            errors.extend(config.choose_apps(&self.apps).err());
            places.forget_chain();
        }
        let mut warnings = Vec::new();
        if errors.is_empty() {
            for contradiction in config.contradictions() {
                let text = match &self.file {
                    Some(path) => contradiction.located(&path.display().to_string(), &places),
                    None => contradiction.text.clone(),
                };
                if contradiction.is_error { errors.push(text) } else { warnings.push(text) }
            }
            errors.extend(files::wrong_files(&config));
        }
        Ok(Checked { config, errors, warnings })
    }
}

/// Applies a setting, or returns what is wrong with each value.
fn apply(given: &Override, config: &mut Config) -> Vec<String> {
    let Override { key, origin, values } = given;
    let Some(setting) = settings::all().find(|setting| setting.key == *key) else {
        return vec![format!("{origin}: there is no setting {key:?}")];
    };
    let texts: Vec<&str> = values.iter().map(String::as_str).collect();
    let items = (setting.set)(config, &texts).err().map(|wrong| wrong.0);
    let wrong = items.into_iter().flatten().map(|error| {
        let value = texts.get(error.item).copied().unwrap_or_default();
        format!("{origin} cannot be {value:?}; give {}", error.expected)
    });
    wrong.collect()
}

/// Begins the name of each variable.
const PREFIX: &str = "BELLROCK_";

/// The environment variable of a setting.
#[must_use]
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase())
}

/// Finds the names that have our prefix and are close to a variable of ours: each with the name that
/// was probably meant. `others` are the keys of variables that are not settings.
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
