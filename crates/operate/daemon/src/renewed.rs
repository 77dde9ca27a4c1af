//! Notices which files of a configuration have other content than before: a renewed certificate has
//! the path of the earlier one, so that no setting changes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bellrock_config::Config;
use bellrock_query::RenewedFileRow;
use ring::digest::{Context, SHA256};

/// Maximum number of bytes of a file that are compared, far more than any of these files may have.
const MAX_COMPARED_BYTES: u64 = 16 << 20;

/// Size of the pieces in which a file is read, in bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The files that a reload reads again, by the settings that name them, each with a digest of its
/// content. `None`: it cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedFiles(BTreeMap<&'static str, (PathBuf, Option<Vec<u8>>)>);

impl NamedFiles {
    /// Reads all files of a configuration.
    pub(super) fn read(config: &Config) -> Self {
        let (http, tls, nodes) = (&config.http, &config.tls, &config.cluster.tls);
        let files = [
            ("http.certificate", &http.certificate),
            ("http.key", &http.key),
            ("http.tokens", &http.tokens),
            ("tls.certificate", &tls.certificate),
            ("tls.key", &tls.key),
            ("tls.ca", &tls.ca),
            ("tls.crl", &tls.crl),
            ("cluster.tls.certificate", &nodes.certificate),
            ("cluster.tls.key", &nodes.key),
            ("cluster.tls.ca", &nodes.ca),
            ("cluster.tls.crl", &nodes.crl),
        ];
        let files = files.into_iter().filter_map(|(setting, path)| {
            let path = path.as_ref()?;
            Some((setting, (path.clone(), digest(path).ok())))
        });
        NamedFiles(files.collect())
    }

    /// The files with the same paths as before and other content.
    pub(super) fn renewed(&self, before: &NamedFiles) -> Vec<RenewedFileRow> {
        let renewed = self.0.iter().filter(|(setting, (path, digest))| {
            before.0.get(*setting).is_some_and(|earlier| earlier.0 == *path && earlier.1 != *digest)
        });
        let row = |(setting, (path, _)): (&&str, &(PathBuf, _))| RenewedFileRow {
            setting: (*setting).to_owned(),
            path: path.display().to_string(),
        };
        renewed.map(row).collect()
    }
}

pub(super) fn digest(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?.take(MAX_COMPARED_BYTES);
    let (mut context, mut piece) = (Context::new(&SHA256), vec![0; PIECE_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(context.finish().as_ref().to_vec()),
            n => context.update(piece.get(..n).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_renewed_by_other_content_at_the_same_path() {
        let directory = crate::test_directory("renewed");
        let write = |name: &str, text: &str| {
            fs::write(directory.join(name), text).unwrap();
            directory.join(name)
        };
        let mut config = Config::default();
        config.http.certificate = Some(write("one.pem", "first"));
        config.tls.crl = Some(write("crl.pem", "none"));
        let before = NamedFiles::read(&config);
        // Written again as it was.
        write("one.pem", "first");
        assert_eq!(NamedFiles::read(&config).renewed(&before), []);
        write("one.pem", "second");
        write("crl.pem", "revoked");
        let renewed = NamedFiles::read(&config).renewed(&before);
        let settings: Vec<_> = renewed.iter().map(|row| row.setting.as_str()).collect();
        assert_eq!(settings, ["http.certificate", "tls.crl"]);
        assert_eq!(renewed[0].path, directory.join("one.pem").display().to_string());
        // Another path is a change of the setting, and a new setting is one too.
        config.http.certificate = Some(write("two.pem", "second"));
        config.http.key = Some(write("key.pem", "key"));
        config.tls.crl = None;
        assert_eq!(NamedFiles::read(&config).renewed(&before), []);
        fs::remove_dir_all(directory).unwrap();
    }
}
