//! The file that keeps which certificate speaks for which datapath id.
//!
//! One line for each datapath id: its number, the fingerprint of the certificate's public key, and
//! the certificate's name, for people. An operator may edit it while the controller does not run.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use bellrock_engine::{
    Identities, IdentityMap, MAX_PINS, Pin, Pins, PinsChanged, TlsServer, UnnamedIdentity,
};
use tracing::warn;

use bellrock_book::file::state_file;

/// Maximum length of a line, in bytes: more than a datapath id, a fingerprint and a name need.
const MAX_LINE_BYTES: u64 = 512;

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = MAX_LINE_BYTES * MAX_PINS as u64;

const HEADER: &str = "\
# Which certificate speaks for which datapath id, as the controller has pinned them.
# Datapath id, fingerprint of the certificate's public key, name of the certificate.
";

/// Why the file of pins cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinFileError {
    /// It cannot be read, or cannot be written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It is too large.
    #[error("{}: larger than {} MiB, so hardly a file of pins", path.display(), MAX_FILE_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line is wrong.
    #[error("{}:{line}: not `DPID sha256:HEX NAME`; mend the line, or remove it", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

/// Makes the rules for certificates of switches, with the pins of a file, which is kept up to date.
/// A file that does not exist is made.
///
/// # Errors
/// [`PinFileError`].
pub fn identities_with_file(
    path: &Path,
    server: &TlsServer,
    unnamed: UnnamedIdentity,
    map: IdentityMap,
) -> Result<Identities, PinFileError> {
    let failed = |error| PinFileError::Io { path: path.into(), error };
    let pins = read(path)?;
    // Found out now rather than at the first switch.
    state_file::bring_up_to_date(path, text(&pins).as_bytes()).map_err(failed)?;
    // One notice is enough for all changes that the writer has not seen.
    let (notice, changes) = sync_channel(1);
    let changed: PinsChanged = Arc::new(move || {
        let _ = notice.try_send(());
    });
    let identities = Identities::new(server, unnamed, map, pins, Some(changed));
    let (written, path) = (identities.clone(), path.to_owned());
    let body = move || keep_up_to_date(&path, &written, &changes);
    thread::Builder::new().name("identities".into()).spawn(body).map_err(failed)?;
    Ok(identities)
}

/// Writes the file after each change, in a thread that ends with the process.
fn keep_up_to_date(path: &Path, identities: &Identities, changes: &Receiver<()>) {
    while changes.recv().is_ok() {
        if let Err(error) = write(path, &identities.pins()) {
            warn!(
                "{}: {error}; which certificate speaks for which switch is lost at the next restart",
                path.display()
            );
        }
    }
}

fn read(path: &Path) -> Result<Pins, PinFileError> {
    let failed = |error| PinFileError::Io { path: path.into(), error };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pins::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(PinFileError::TooLarge { path: path.into() });
    }
    let mut pins = Pins::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (dpid, key, name) = (next().parse(), next().parse(), next().into());
        match (dpid, key) {
            (Ok(dpid), Ok(key)) => drop(pins.insert(dpid, Pin { key, name })),
            _ => return Err(PinFileError::Line { path: path.into(), line: index + 1 }),
        }
    }
    Ok(pins)
}

fn write(path: &Path, pins: &Pins) -> io::Result<()> {
    state_file::replace(path, text(pins).as_bytes())
}

fn text(pins: &Pins) -> String {
    let mut text = HEADER.to_owned();
    for (dpid, Pin { key, name }) in pins {
        // A name is what a certificate says: it must not begin a line.
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        text.push_str(&format!("{dpid} {key} {name}\n"));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails so")]
mod tests {
    use bellrock_api::{Dpid, Fingerprint};

    use super::*;

    #[test]
    fn pins_read_as_they_were_written_and_a_name_is_no_line() {
        let place = std::env::temp_dir().join(format!("bellrock-pins-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let path = place.join("identities");
        assert_eq!(read(&path).unwrap(), Pins::new());
        let pin = |byte, name: &str| Pin { key: Fingerprint([byte; 32]), name: name.into() };
        let pins = Pins::from([
            (Dpid(1), pin(1, "switch id:5d9c a b")),
            (Dpid(2), pin(2, "")),
            (Dpid(u64::MAX), pin(3, "evil\n0000000000000007")),
        ]);
        write(&path, &pins).unwrap();
        let read_again = read(&path).unwrap();
        assert_eq!(read_again.len(), 3);
        assert_eq!(read_again.get(&Dpid(1)), pins.get(&Dpid(1)));
        assert_eq!(read_again.get(&Dpid(2)), pins.get(&Dpid(2)));
        assert_eq!(&*read_again.get(&Dpid(u64::MAX)).unwrap().name, "evil0000000000000007");
        std::fs::write(&path, "# a comment\n\n1 sha256:00 x\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error
                .ends_with("identities:3: not `DPID sha256:HEX NAME`; mend the line, or remove it"),
            "{error}"
        );
        std::fs::remove_dir_all(&place).unwrap();
    }
}
