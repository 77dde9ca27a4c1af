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
    /// It is not: the file cannot be written ([`Recording::failure`]). Reported once.
    Failed,
    /// It is not, as reported before.
    No,
}

/// A recording that is being written.
pub(crate) struct Recording {
    target: Target,
    /// `None`: the file is full, or cannot be written.
    file: Option<PcapngWriter<Box<dyn Write>>>,
    /// The file itself. `None`: standard output.
    end: Option<File>,
    /// Bytes of whole messages that the present file is known to have.
    whole: u64,
    failure: Option<io::Error>,
    files: u64,
}

impl Recording {
    /// Begins a recording.
    ///
    /// # Errors
    /// The file exists, or cannot be created.
    pub(crate) fn create(target: Target) -> io::Result<Self> {
        let end = target.path.as_ref().map(|path| create(path, target.force)).transpose()?;
        let file = begin(end.as_ref(), &target.comment)?;
        let whole = file.written();
        Ok(Recording { target, file: Some(file), end, whole, failure: None, files: 1 })
    }

    /// Why the file cannot be written any more.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Number of files so far.
    pub(crate) fn files(&self) -> u64 {
        self.files
    }

    /// Bytes of the present file.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.as_ref().map_or(self.whole, PcapngWriter::written)
    }

    /// Writes the start of a connection.
    pub(crate) fn open(&mut self, flow: &mut Flow, time: Duration) -> Written {
        self.write(|file| file.open(flow, time))
    }

    /// Writes a message.
    pub(crate) fn message(
        &mut self,
        flow: &mut Flow,
        time: Duration,
        from: Sender,
        bytes: &[u8],
    ) -> Written {
        self.write(|file| file.bytes(flow, time, from, bytes))
    }

    /// Writes that one end has closed the connection.
    pub(crate) fn close(&mut self, flow: &mut Flow, time: Duration, from: Sender) -> Written {
        self.write(|file| file.close(flow, time, from))
    }

    /// Writes buffered bytes to the file.
    pub(crate) fn flush(&mut self) -> Written {
        let Some(file) = &mut self.file else { return Written::No };
        let flushed = file.flush();
        self.whole = if flushed.is_ok() { file.written() } else { self.whole };
        flushed.map_or_else(|error| self.fail(error), |()| Written::Yes)
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut PcapngWriter<Box<dyn Write>>) -> io::Result<()>,
    ) -> Written {
        self.try_write(write).unwrap_or_else(|error| self.fail(error))
    }

    fn try_write(
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
        self.whole = file.written();
        let Some(path) = self.target.path.as_ref().filter(|_| self.target.keep > 0) else {
            self.file = None;
            return Ok(Written::Full);
        };
        rotate(path, self.target.keep)?;
        let end = create(path, false)?;
        let next = begin(Some(&end), &self.target.comment)?;
        self.whole = next.written();
        (self.end, self.files) = (Some(end), self.files + 1);
        write(self.file.insert(next))?;
        Ok(Written::Yes)
    }

    /// Records no more, and leaves a file with whole messages.
    fn fail(&mut self, error: io::Error) -> Written {
        // What is in its buffer is tried again here.
        self.file = None;
        if let Some(end) = &self.end {
            let _ = end.set_len(self.whole);
        }
        self.failure = Some(error);
        Written::Failed
    }
}

/// Begins a file, or the recording on standard output.
fn begin(end: Option<&File>, comment: &str) -> io::Result<PcapngWriter<Box<dyn Write>>> {
    let out: Box<dyn Write> = match end {
        Some(file) => Box::new(BufWriter::new(file.try_clone()?)),
        None => Box::new(BufWriter::new(io::stdout())),
    };
    let mut file = PcapngWriter::new(out, comment)?;
    file.flush()?;
    Ok(file)
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
        (0..messages).map(|_| write()).collect()
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

    struct FullDisk {
        left: usize,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let left = self.left.checked_sub(bytes.len());
            self.left = left.ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_ends_the_recording_once_and_keeps_whole_messages() {
        let path = crate::test_directory("record-failed").join("failed.pcapng");
        let _ = fs::remove_file(&path);
        let mut recording = Recording::create(target(&path, 0)).unwrap();
        assert_eq!(write_all(&mut recording, 3), [Written::Yes; 3]);
        assert_eq!(recording.flush(), Written::Yes);
        let whole = fs::read(&path).unwrap();
        let disk: Box<dyn Write> = Box::new(FullDisk { left: 400 });
        recording.file = Some(PcapngWriter::new(disk, "").unwrap());
        let written = write_all(&mut recording, 9);
        let failed = written.iter().position(|written| *written == Written::Failed).unwrap();
        assert!(written[failed + 1..].iter().all(|written| *written == Written::No));
        assert_eq!(recording.failure().unwrap().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert_eq!(recording.flush(), Written::No);
    }

    #[test]
    fn rotation_keeps_so_many_full_files() {
        let directory = crate::test_directory("record-rotate");
        let path = directory.join("r.pcapng");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let mut recording = Recording::create(target(&path, 2)).unwrap();
        assert!(write_all(&mut recording, 100).iter().all(|written| *written == Written::Yes));
        assert_eq!(recording.flush(), Written::Yes);
        assert!(recording.files() > 3);
        let mut names: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["r.pcapng", "r.pcapng.1", "r.pcapng.2"]);
    }
}
