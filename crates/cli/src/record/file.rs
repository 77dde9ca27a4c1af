//! The file of a recording: its permissions, its size, and its rotation.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::decode::peers::Sender;
use super::pcapng::{Flow, PcapngWriter};

/// Only the owner may read a recording: it has the traffic of the network in it.
const MODE: u32 = 0o600;

/// Where the recording goes, and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `None`: standard output.
    pub(crate) path: Option<PathBuf>,
    /// Whether an existing file is replaced.
    pub(crate) force: bool,
    /// Maximum bytes of a file.
    pub(crate) max_bytes: u64,
    /// Number of full files that are kept. 0: the recording ends when the file is full.
    pub(crate) keep: u16,
    /// Comment in each file.
    pub(crate) comment: String,
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is in the file.
    Yes,
    /// It is not: the file is full. Reported once.
    Full,
    /// It is not, as reported before.
    No,
}

/// A recording that is being written.
pub(crate) struct Recording {
    target: Target,
    /// `None`: the file is full.
    file: Option<PcapngWriter<Box<dyn Write>>>,
    files: u64,
}

impl Recording {
    /// Begins a recording.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(crate) fn create(target: Target) -> io::Result<Self> {
        let out: Box<dyn Write> = match &target.path {
            Some(path) => Box::new(BufWriter::new(create(path, target.force)?)),
            None => Box::new(BufWriter::new(io::stdout())),
        };
        let mut file = PcapngWriter::new(out, &target.comment)?;
        file.flush()?;
        Ok(Recording { target, file: Some(file), files: 1 })
    }

    /// Number of files so far.
    pub(crate) fn files(&self) -> u64 {
        self.files
    }

    /// Bytes of the present file.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.as_ref().map_or(self.target.max_bytes, PcapngWriter::written)
    }

    /// Writes the start of a connection.
    pub(crate) fn open(&mut self, flow: &mut Flow, time: Duration) -> io::Result<Written> {
        self.write(|file| file.open(flow, time))
    }

    /// Writes a message.
    pub(crate) fn message(
        &mut self,
        flow: &mut Flow,
        time: Duration,
        from: Sender,
        bytes: &[u8],
    ) -> io::Result<Written> {
        self.write(|file| file.bytes(flow, time, from, bytes))
    }

    /// Writes that one end has closed the connection.
    pub(crate) fn close(
        &mut self,
        flow: &mut Flow,
        time: Duration,
        from: Sender,
    ) -> io::Result<Written> {
        self.write(|file| file.close(flow, time, from))
    }

    /// Writes buffered bytes to the file.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), PcapngWriter::flush)
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut PcapngWriter<Box<dyn Write>>) -> io::Result<()>,
    ) -> io::Result<Written> {
        let Some(file) = &mut self.file else { return Ok(Written::No) };
        // A message is written whole, so a file is longer than the limit by at most one.
        if file.written() < self.target.max_bytes {
            write(file)?;
            return Ok(Written::Yes);
        }
        file.flush()?;
        let Some(path) = self.target.path.as_ref().filter(|_| self.target.keep > 0) else {
            self.file = None;
            return Ok(Written::Full);
        };
        rotate(path, self.target.keep)?;
        let out: Box<dyn Write> = Box::new(BufWriter::new(create(path, false)?));
        let mut next = PcapngWriter::new(out, &self.target.comment)?;
        write(&mut next)?;
        self.file = Some(next);
        self.files += 1;
        Ok(Written::Yes)
    }
}

/// Creates a file that only its owner may read.
fn create(path: &Path, force: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(MODE);
    if !force {
        return options.create_new(true).open(path);
    }
    // A new file: the old one may have other permissions, or be a link.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    options.create_new(true).open(path)
}

/// Renames FILE to FILE.1, FILE.1 to FILE.2, and so on. The last one is replaced.
fn rotate(path: &Path, keep: u16) -> io::Result<()> {
    for n in (1..keep).rev() {
        match fs::rename(numbered(path, n), numbered(path, n + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, numbered(path, 1))
}

fn numbered(path: &Path, n: u16) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn target(path: &Path, keep: u16) -> Target {
        let (path, comment) = (Some(path.to_owned()), String::new());
        Target { path, force: false, max_bytes: 1000, keep, comment }
    }

    fn write_all(recording: &mut Recording, messages: usize) -> Vec<Written> {
        let mut flow = Flow::new(([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 6653).into());
        let mut write = || {
            recording.message(&mut flow, Duration::ZERO, Sender::Switch, &[4, 2, 0, 8, 0, 0, 0, 0])
        };
        (0..messages).map(|_| write().unwrap()).collect()
    }

    #[test]
    fn a_full_file_ends_the_recording_and_nobody_else_may_read_it() {
        let path = crate::test_directory("record-full").join("full.pcapng");
        let _ = fs::remove_file(&path);
        let mut recording = Recording::create(target(&path, 0)).unwrap();
        let written = write_all(&mut recording, 30);
        let fit = written.iter().take_while(|written| **written == Written::Yes).count();
        assert!((5..15).contains(&fit), "{fit}");
        assert_eq!(written[fit], Written::Full);
        assert!(written[fit + 1..].iter().all(|written| *written == Written::No));
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert!((1000..1200).contains(&metadata.len()), "{}", metadata.len());
        // It is not replaced without being asked.
        let exists = Recording::create(target(&path, 0)).err().unwrap();
        assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        drop(Recording::create(Target { force: true, ..target(&path, 0) }).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn rotation_keeps_so_many_full_files() {
        let directory = crate::test_directory("record-rotate");
        let path = directory.join("r.pcapng");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let mut recording = Recording::create(target(&path, 2)).unwrap();
        assert!(write_all(&mut recording, 100).iter().all(|written| *written == Written::Yes));
        recording.flush().unwrap();
        assert!(recording.files() > 3);
        let mut names: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["r.pcapng", "r.pcapng.1", "r.pcapng.2"]);
    }
}
