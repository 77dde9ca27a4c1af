//! Controllers that run in turn under the same load: the controller of the suite, the canned
//! responder, and others for comparison (peers).
//!
//! Each is a command line with placeholders. Two peers are built in. If one is not installed, the
//! error names the command that installs it.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::error::BenchError;

/// The learning switch for os-ken.
const OS_KEN_SCRIPT: &str = include_str!("../peers/os_ken_learning.py");

/// Name of that file beside the results.
const OS_KEN_FILE: &str = "os_ken_learning.py";

/// Names of the built-in peers.
pub const BUILT_IN: [&str; 2] = ["ovs-testcontroller", "os-ken"];

/// Environment variable with the folder that peers are installed in.
const FOLDER_VARIABLE: &str = "BELLROCK_PEERS";

/// Maximum number of switches of ovs-testcontroller, fixed in its source (`MAX_SWITCHES`).
const OVS_TESTCONTROLLER_SWITCHES: u32 = 16;

const MAX_NAME: usize = 40;

/// Role of a contestant in the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContestantRole {
    /// The controller that the suite measures.
    Ours,
    /// The canned responder.
    Responder,
    /// Another controller.
    Peer,
}

/// A controller to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contestant {
    /// Name in the report.
    pub name: String,
    /// Its role.
    pub role: ContestantRole,
    /// The command line, with placeholders: `{port}` and `{address}` to listen on, `{workers}`
    /// threads, `{read_bytes}` per read at most, and the path `{file}` of its file.
    pub command: String,
    /// A file that it needs, such as a configuration: name and contents. It is written beside the
    /// results, where it also documents the run.
    pub file: Option<(String, String)>,
    /// Variants with another file in its place, for experiments that compare a controller with
    /// itself.
    pub variants: Vec<ContestantVariant>,
    /// Maximum number of switches that it takes, if known.
    pub most_switches: Option<u32>,
}

/// A controller with another file, and perhaps with another command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContestantVariant {
    /// Name in experiments.
    pub name: &'static str,
    /// The file: name and contents.
    pub file: (String, String),
    /// The command line in place of the controller's, if it is another one.
    pub command: Option<String>,
}

/// Values of the placeholders.
#[derive(Clone, Copy, Debug)]
pub struct PlaceholderValues<'a> {
    /// Folder of its file.
    pub folder: &'a Path,
    /// Address to listen on.
    pub target: SocketAddr,
    /// Number of its threads.
    pub workers: usize,
    /// Maximum number of bytes per read.
    pub read_bytes: u32,
    /// Name of its variant.
    pub variant: Option<&'a str>,
}

impl Contestant {
    /// Returns whether the command has a placeholder for the address or port.
    #[must_use]
    pub fn listens_anywhere(&self) -> bool {
        self.command.contains("{port}") || self.command.contains("{address}")
    }

    /// Returns whether the command has a placeholder for the size of a read.
    pub fn has_read_size(&self) -> bool {
        self.command.contains("{read_bytes}")
    }

    /// Returns whether a variant of this name exists.
    pub fn has_variant(&self, name: &str) -> bool {
        self.variants.iter().any(|variant| variant.name == name)
    }

    /// Returns its file, if it needs one, and those of its variants: names and contents.
    pub fn files(&self) -> impl Iterator<Item = &(String, String)> {
        self.file.iter().chain(self.variants.iter().map(|variant| &variant.file))
    }

    /// Writes its file, if it needs one, and those of its variants into a folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_file(&self, folder: &Path) -> Result<(), BenchError> {
        self.files().try_for_each(|(name, contents)| {
            std::fs::write(folder.join(name), contents)
                .map_err(BenchError::system("write a controller's file"))
        })
    }

    /// Returns the command line with all placeholders filled in.
    #[must_use]
    pub fn command_line(&self, places: PlaceholderValues<'_>) -> String {
        let variant = self.variants.iter().find(|one| Some(one.name) == places.variant);
        let file = variant.map(|variant| &variant.file).or(self.file.as_ref());
        let name = file.map_or("", |(name, _)| name);
        let command = variant.and_then(|variant| variant.command.as_ref());
        let command = command.unwrap_or(&self.command);
        command
            .replace("{file}", &quoted(&places.folder.join(name)))
            .replace("{port}", &places.target.port().to_string())
            .replace("{address}", &places.target.to_string())
            .replace("{workers}", &places.workers.to_string())
            .replace("{read_bytes}", &places.read_bytes.to_string())
    }
}

/// Error in the description of a peer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// Neither a name and a command, nor a built-in peer.
    #[error(
        "{0:?} is not a peer; give NAME=\"COMMAND\", or a built-in peer: ovs-testcontroller, os-ken"
    )]
    Unknown(String),
    /// A name that is invalid or taken.
    #[error(
        "a peer cannot be called {0:?}; give at most 40 letters, digits, dots, underscores and hyphens, \
         and each name once; bellrock and responder are taken"
    )]
    Name(String),
    /// An empty command.
    #[error("the peer {0} has no command; give {0}=\"COMMAND\"")]
    NoCommand(String),
    /// The peer is not installed.
    #[error(
        "the peer {name} is not installed: {missing} is missing; run `scripts/tools install peers` \
             in Bellrock's sources ({how})"
    )]
    NotInstalled {
        /// Name of the peer.
        name: &'static str,
        /// The missing file or program.
        missing: String,
        /// What the install command does.
        how: &'static str,
    },
}

/// Parses `NAME=COMMAND`, or the name of a built-in peer.
///
/// # Errors
/// [`PeerError`].
pub fn parse(text: &str) -> Result<Contestant, PeerError> {
    match text.split_once('=') {
        Some((name, command)) => {
            let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let taken = ["bellrock", "responder"].contains(&name);
            if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(good) || taken {
                return Err(PeerError::Name(name.to_owned()));
            }
            if command.trim().is_empty() {
                return Err(PeerError::NoCommand(name.to_owned()));
            }
            Ok(peer(name, command.trim().to_owned()))
        }
        None if text == BUILT_IN[0] => ovs_testcontroller(),
        None if text == BUILT_IN[1] => os_ken(),
        None => Err(PeerError::Unknown(text.to_owned())),
    }
}

fn peer(name: &str, command: String) -> Contestant {
    let (name, role) = (name.to_owned(), ContestantRole::Peer);
    Contestant { name, role, command, file: None, variants: Vec::new(), most_switches: None }
}

/// Quotes a path for the shell.
#[must_use]
pub fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Debian's package openvswitch-testcontroller.
fn ovs_testcontroller() -> Result<Contestant, PeerError> {
    let name = BUILT_IN[0];
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain(["/usr/bin".into(), "/usr/sbin".into()]);
    let Some(program) = folders.find_map(|folder| existing(folder.join(name))) else {
        return Err(PeerError::NotInstalled {
            name,
            missing: name.to_owned(),
            how: "Debian's package openvswitch-testcontroller",
        });
    };
    // No control socket: it would need a folder of Open vSwitch's.
    let command = format!("{} --unixctl=none ptcp:{{port}}:127.0.0.1", quoted(&program));
    Ok(Contestant { most_switches: Some(OVS_TESTCONTROLLER_SWITCHES), ..peer(name, command) })
}

/// os-ken from PyPI in a virtual environment, with our learning switch.
fn os_ken() -> Result<Contestant, PeerError> {
    let name = BUILT_IN[1];
    let python = peers_folder().join("os-ken/bin/python");
    let Some(python) = existing(python.clone()) else {
        return Err(PeerError::NotInstalled {
            name,
            missing: python.display().to_string(),
            how: "os-ken from PyPI, into a virtual environment; BELLROCK_PEERS names the folder",
        });
    };
    let command = format!("{} {{file}} 127.0.0.1 {{port}}", quoted(&python));
    let file = Some((OS_KEN_FILE.to_owned(), OS_KEN_SCRIPT.to_owned()));
    Ok(Contestant { file, ..peer(name, command) })
}

/// The folder that `scripts/tools` installs peers in.
fn peers_folder() -> PathBuf {
    let folder = |name: &str| env::var_os(name).filter(|folder| !folder.is_empty());
    match (folder(FOLDER_VARIABLE), folder("XDG_DATA_HOME"), folder("HOME")) {
        (Some(folder), _, _) => folder.into(),
        (None, Some(data), _) => PathBuf::from(data).join("bellrock/peers"),
        (None, None, home) => {
            PathBuf::from(home.unwrap_or_default()).join(".local/share/bellrock/peers")
        }
    }
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_peer_is_a_name_and_a_command_with_places() {
        let peer = parse("pox=./pox.py --port={port} --threads={workers}").unwrap();
        assert_eq!((peer.name.as_str(), peer.role), ("pox", ContestantRole::Peer));
        assert!(peer.listens_anywhere() && !peer.has_read_size());
        let target = "127.0.0.1:7".parse().unwrap();
        let places = PlaceholderValues {
            folder: Path::new("/f"),
            target,
            workers: 2,
            read_bytes: 1,
            variant: None,
        };
        assert_eq!(peer.command_line(places), "./pox.py --port=7 --threads=2");
        let file = Some(("a'b".to_owned(), String::new()));
        let other = Contestant { command: "x {file} {address}".into(), file, ..peer.clone() };
        assert_eq!(other.command_line(places), "x '/f/a'\\''b' 127.0.0.1:7");
        let file = ("c".to_owned(), String::new());
        let odd = ContestantVariant { name: "odd", file: file.clone(), command: None };
        let command = Some("y {file}".to_owned());
        let odder = ContestantVariant { name: "odder", file, command };
        let other = Contestant { variants: vec![odd, odder], ..other };
        let line = |name| {
            let variant = Some(name);
            other.command_line(PlaceholderValues { variant, ..places })
        };
        assert_eq!([line("odd"), line("odder")], ["x '/f/c' 127.0.0.1:7", "y '/f/c'"]);
        assert!(other.has_variant("odd") && !other.has_variant("even"));
        assert!(!parse("nox=nox_core -i ptcp:6633").unwrap().listens_anywhere());
    }

    #[test]
    fn a_wrong_peer_is_an_error() {
        assert!(wrong("nox").contains("built-in peer: ovs-testcontroller, os-ken"));
        assert!(wrong("=x").contains("cannot be called \"\""));
        assert!(wrong("responder=x").contains("are taken"));
        assert!(wrong("a/b=x").contains("cannot be called"));
        assert!(wrong("a= ").contains("has no command"));
    }

    #[test]
    fn the_script_for_os_ken_is_some_30_lines() {
        let lines = OS_KEN_SCRIPT.lines().filter(|line| !line.is_empty()).count();
        assert!((20..45).contains(&lines), "{lines}");
    }
}
