//! What `bellrock run` hands over to Python, which runs a chain with apps in Python.

use serde::{Deserialize, Serialize};

use super::RunOptions;

/// A run of a controller in Python, as text between two processes: that of the command, which has
/// read the command line, and the interpreter that takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PythonRun {
    /// Version of Bellrock of the command.
    version: String,
    /// How to run.
    pub options: RunOptions,
    /// Warnings that only the command knows, for the log.
    pub warnings: Vec<String>,
}

/// Why a text is no run of this version.
#[derive(Debug, thiserror::Error)]
pub enum PythonRunError {
    /// The other process has another version of Bellrock.
    #[error(
        "the command bellrock has version {command}, and the Python package bellrock {}; install the package of version \
         {command}",
        VERSION
    )]
    Version {
        /// That of the command.
        command: String,
    },
    /// It cannot be read.
    #[error("`bellrock run` starts this program; it does not read {0}")]
    Text(#[from] serde_json::Error),
}

/// Version of this library, and so of the command or the Python package that has it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The part of a run that all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: String,
}

impl PythonRun {
    /// Makes a run of this version.
    #[must_use]
    pub fn new(options: RunOptions, warnings: Vec<String>) -> Self {
        PythonRun { version: VERSION.to_owned(), options, warnings }
    }

    /// Writes it as a text.
    ///
    /// # Errors
    /// A path is not UTF-8.
    pub fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads a text that the command of the same version has written.
    ///
    /// # Errors
    /// [`PythonRunError`].
    pub fn from_text(text: &str) -> Result<Self, PythonRunError> {
        let Versioned { version } = serde_json::from_str(text)?;
        if version != VERSION {
            return Err(PythonRunError::Version { command: version });
        }
        Ok(serde_json::from_str(text)?)
    }
}

#[cfg(test)]
mod tests {
    use bellrock_config::{Override, Sources};

    use super::*;

    #[test]
    fn a_run_is_read_as_it_was_written_and_another_version_is_refused() {
        let listen = Override {
            key: "listen",
            origin: "--listen".to_owned(),
            values: vec!["127.0.0.1:1".to_owned(), "[::1]:2".to_owned()],
        };
        let sources = Sources {
            file: Some("/etc/bellrock.yaml".into()),
            overrides: vec![listen],
            apps: vec!["./my_app.py".to_owned(), "learning".to_owned()],
            text: None,
            shared: None,
        };
        let options = RunOptions { sources, watch_config: true, ..RunOptions::default() };
        let run = PythonRun::new(options, vec!["BELLROCK_X is no setting".to_owned()]);
        let text = run.to_text().unwrap();
        assert_eq!(PythonRun::from_text(&text).unwrap(), run);
        // What other versions hand over may have another form.
        let other = PythonRun::from_text(r#"{"version": "0.0.0", "chain": []}"#).unwrap_err();
        let other = other.to_string();
        assert!(other.contains("the command bellrock has version 0.0.0, and"), "{other}");
        assert!(other.ends_with("install the package of version 0.0.0"), "{other}");
        let wrong = text.replace("\"listen\"", "\"lisen\"");
        let wrong = PythonRun::from_text(&wrong).unwrap_err().to_string();
        assert!(wrong.contains("there is no setting \"lisen\""), "{wrong}");
        assert!(PythonRun::from_text("").is_err());
    }
}
