//! Tokens: who may ask, and who may change something.
//!
//! A token is a random text that a client sends as `Authorization: Bearer TOKEN`. The controller
//! keeps a file with a line for each: a name, which the log shows, a scope, the SHA-256 of the
//! token, and the time when it expires, if it does (RFC 3339). So who reads the file cannot use a
//! token. A token has 256 random bits, so a plain hash of it cannot be guessed.
//!
//! ```text
//! # name   scope  SHA-256 of the token                                              expires
//! grafana  read   5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8
//! deploy   write  0b14d501a594442a01c6859541bcb3e8164d183d32937b851835442f69d5c94e  2027-02-21T12:00:00Z
//! ```
//!
//! The owner of the server may give it further ones ([`GivenTokens`]), such as those that the nodes
//! of a cluster share.

mod file;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use time::UtcDateTime;
use time::format_description::well_known::Rfc3339;

use crate::limits::{MAX_TOKEN_FILE_BYTES, TOKEN_FILE_LOOK};
pub use crate::revoke::remove;
use file::TokenFile;

/// Number of random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// Start of each token, by which scanners of leaked secrets find it.
const TOKEN_PREFIX: &str = "bellrock_";

/// Maximum length of a token's name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// To ask.
    Read,
    /// To ask, and to change something.
    Write,
}

impl Scope {
    /// The scope as it is written.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "read" => Ok(Scope::Read),
            "write" => Ok(Scope::Write),
            _ => Err(format!("{text:?} is no scope; give read or write")),
        }
    }
}

/// A token as the controller knows it: without the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenEntry {
    /// Its name, for the log.
    pub name: String,
    /// What it allows.
    pub scope: Scope,
    hash: [u8; 32],
    /// Nobody can use it from then on.
    expires: Option<UtcDateTime>,
}

impl TokenEntry {
    /// Makes a new token, which expires after `lifetime`, if that is given. Returns the entry for
    /// the file, and the token, which is not kept.
    ///
    /// # Errors
    /// The name or the lifetime is not possible, or the system has no random numbers.
    pub fn make(
        name: &str,
        scope: Scope,
        lifetime: Option<Duration>,
    ) -> Result<(TokenEntry, String), TokenError> {
        check_name(name).map_err(TokenError::Name)?;
        let expires = lifetime.map(expiry_after).transpose()?;
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::Random(error.to_string()))?;
        let token = format!("{TOKEN_PREFIX}{}", hex(&bytes));
        Ok((TokenEntry { name: name.to_owned(), scope, hash: hash(&token), expires }, token))
    }

    /// What follows the name in a line of the file.
    #[must_use]
    pub fn rest(&self) -> String {
        let end = self.expiry().map_or_else(String::new, |time| format!(" {time}"));
        format!("{} {}{end}", self.scope.word(), hex(&self.hash))
    }

    /// When it expires, as in the file.
    #[must_use]
    pub fn expiry(&self) -> Option<String> {
        self.expires.and_then(|time| time.format(&Rfc3339).ok())
    }

    /// The SHA-256 of the token.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.hash
    }

    /// Whether nobody can use it any more.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.expires.is_some_and(|time| time <= UtcDateTime::now())
    }

    /// Adds the entry to a file. A new file is readable for its owner only.
    ///
    /// # Errors
    /// The file has this name already, is wrong, or cannot be written.
    pub fn add_to(&self, path: &Path) -> Result<(), TokenError> {
        let failed = |error| TokenError::File { path: path.into(), error };
        let text = match read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        if parse(path, &text)?.iter().any(|other| other.name == self.name) {
            return Err(TokenError::Taken { name: self.name.clone(), path: path.into() });
        }
        let is_open = !text.is_empty() && !text.ends_with('\n');
        let line = format!("{}{self}\n", if is_open { "\n" } else { "" });
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).mode(0o600).open(path).map_err(failed)?;
        file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }
}

/// The line of the file.
impl fmt::Display for TokenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.rest())
    }
}

/// Why there are no tokens, or no new one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A line of the file is wrong.
    #[error("{}:{line}: {why}; a line is NAME SCOPE HASH [EXPIRES], as `bellrock token` writes it", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The name is not possible.
    #[error("{0}")]
    Name(String),
    /// The lifetime leads beyond the year 9999.
    #[error("a token cannot last {} days", .0.as_secs() / SECONDS_PER_DAY)]
    Lifetime(Duration),
    /// The file has a token of this name.
    #[error("{} has a token called {name} already; choose another name, or remove its line", path.display())]
    Taken {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The file has no token of this name.
    #[error("{} has no token called {name}; `bellrock token list` shows those that it has", path.display())]
    Unknown {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The system has no random numbers.
    #[error("the system has no random numbers: {0}")]
    Random(String),
}

/// For messages.
const SECONDS_PER_DAY: u64 = 86_400;

/// The time in whole seconds.
fn expiry_after(lifetime: Duration) -> Result<UtcDateTime, TokenError> {
    let wrong = || TokenError::Lifetime(lifetime);
    let seconds = time::Duration::try_from(lifetime).map_err(|_| wrong())?;
    let time = UtcDateTime::now().checked_add(seconds).ok_or_else(wrong)?;
    Ok(time.replace_nanosecond(0).unwrap_or(time))
}

fn check_name(name: &str) -> Result<(), String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_good) {
        return Ok(());
    }
    Err(format!(
        "a token cannot be called {name:?}; give up to {MAX_NAME_BYTES} letters, digits, dots, hyphens and \
         underscores"
    ))
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TOKEN_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TOKEN_FILE_BYTES {
        let why = format!("it has more than {MAX_TOKEN_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(text)
}

pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<TokenEntry>, TokenError> {
    let mut entries = Vec::<TokenEntry>::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let entry = parse_line(line).and_then(|entry| {
            match entries.iter().any(|other| other.name == entry.name) {
                true => Err(format!("the name {} stands twice", entry.name)),
                false => Ok(entry),
            }
        });
        let wrong = |why| TokenError::Line { path: path.into(), line: index + 1, why };
        entries.push(entry.map_err(wrong)?);
    }
    Ok(entries)
}

fn parse_line(line: &str) -> Result<TokenEntry, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, scope, hash, expires) = match words[..] {
        [name, scope, hash] => (name, scope, hash, None),
        [name, scope, hash, expires] => (name, scope, hash, Some(expires)),
        _ => return Err(format!("{} words", words.len())),
    };
    check_name(name)?;
    let hash = from_hex(hash).ok_or_else(|| "the hash is not 64 hexadecimal digits".to_owned())?;
    let expires = expires.map(|text| {
        let why = |_| format!("{text:?} is no time, such as 2027-02-21T12:00:00Z");
        UtcDateTime::parse(text, &Rfc3339).map_err(why)
    });
    Ok(TokenEntry {
        name: name.to_owned(),
        scope: scope.parse()?,
        hash,
        expires: expires.transpose()?,
    })
}

/// Reads a file of tokens, as the start of the server does.
///
/// # Errors
/// The file cannot be read, or has a wrong line.
pub fn read(path: &Path) -> Result<Vec<TokenEntry>, TokenError> {
    let text = read_text(path).map_err(|error| TokenError::File { path: path.into(), error })?;
    parse(path, &text)
}

/// Reads tokens of settings: by name, what follows it in a line of a file.
///
/// # Errors
/// What is wrong, with the name.
pub fn of_settings(settings: &BTreeMap<String, String>) -> Result<Vec<TokenEntry>, String> {
    let entry = |(name, rest): (&String, &String)| {
        let right = "give SCOPE HASH, or SCOPE HASH EXPIRES, as `bellrock token` prints it";
        parse_line(&format!("{name} {rest}")).map_err(|why| format!("{name}: {why}; {right}"))
    };
    settings.iter().map(entry).collect()
}

/// Tokens that the owner of a server gives it, beside those of its file. All clones share them.
#[derive(Clone, Debug, Default)]
pub struct GivenTokens(Arc<Mutex<Given>>);

#[derive(Clone, Debug, Default)]
struct Given {
    entries: Arc<[TokenEntry]>,
    /// Number of times that the file was to be read again.
    rereads: u64,
}

impl GivenTokens {
    /// Replaces all of them. Streams of those that are gone end within a second.
    pub fn replace(&self, entries: Vec<TokenEntry>) {
        self.lock().entries = entries.into();
    }

    /// Has the server read its file before it answers another request, also if it seems unchanged.
    pub fn reread_file(&self) {
        let mut given = self.lock();
        given.rereads = given.rereads.wrapping_add(1);
    }

    fn now(&self) -> Given {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Given> {
        // Each change of it is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All tokens of a server: those of its file, and those that it is given.
#[derive(Debug)]
pub(crate) struct TokenBook {
    file: Option<TokenFile>,
    given: GivenTokens,
}

impl TokenBook {
    /// Reads the file, if there is one.
    pub(crate) fn open(path: Option<&Path>, given: GivenTokens) -> Result<Self, TokenError> {
        let rereads = given.now().rereads;
        let file = path.map(|path| TokenFile::open(path, rereads)).transpose()?;
        Ok(TokenBook { file, given })
    }

    /// Whether there can be tokens.
    pub(crate) fn has_source(&self) -> bool {
        self.file.is_some() || !self.given.now().entries.is_empty()
    }

    fn entries(&self) -> [Arc<[TokenEntry]>; 2] {
        let Given { entries, rereads } = self.given.now();
        [self.file.as_ref().map(|file| file.entries(rereads)).unwrap_or_default(), entries]
    }

    /// The entry of this token.
    pub(crate) fn find(&self, token: &str) -> Option<TokenEntry> {
        let hash = hash(token);
        // No early end, so that the time does not show which entry is alike.
        let mut found = None;
        for entry in self.entries().iter().flat_map(|entries| entries.iter()) {
            if hash.ct_eq(&entry.hash).into() {
                found = Some(entry.clone());
            }
        }
        found
    }

    /// Whether a token that was found before is still there, and has not expired.
    pub(crate) fn still_has(&self, entry: &TokenEntry) -> bool {
        let is_it = |other: &TokenEntry| other.hash == entry.hash && !other.has_expired();
        self.entries().iter().any(|entries| entries.iter().any(is_it))
    }

    /// Looks again and again whether the file has changed, so that the log has what is wrong in it
    /// when it is written, not when the next token comes.
    pub(crate) async fn watch(&self) {
        let Some(file) = &self.file else { return };
        loop {
            tokio::time::sleep(TOKEN_FILE_LOOK).await;
            file.entries(self.given.now().rereads);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn book(path: &Path) -> TokenBook {
        TokenBook::open(Some(path), GivenTokens::default()).unwrap()
    }

    #[test]
    fn given_tokens_stand_beside_those_of_the_file_until_they_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        let (of_file, first) = TokenEntry::make("file", Scope::Read, None).unwrap();
        let (given, second) = TokenEntry::make("given", Scope::Write, None).unwrap();
        of_file.add_to(&path).unwrap();
        let tokens = GivenTokens::default();
        let book = TokenBook::open(Some(&path), tokens.clone()).unwrap();
        let without_file = TokenBook::open(None, tokens.clone()).unwrap();
        assert!(book.has_source() && !without_file.has_source());
        assert_eq!(book.find(&second), None);
        let settings = |rest: &str| [("given".to_owned(), rest.to_owned())].into();
        tokens.replace(of_settings(&settings(&given.rest())).unwrap());
        for book in [&book, &without_file] {
            assert_eq!(book.find(&second), Some(given.clone()));
            assert!(book.has_source() && book.still_has(&given));
        }
        assert_eq!(book.find(&first), Some(of_file));
        tokens.replace(Vec::new());
        assert!(book.find(&second).is_none() && !book.still_has(&given));
        let wrong = of_settings(&settings("read 12")).unwrap_err();
        assert!(
            wrong.starts_with("given: the hash is not 64 hexadecimal digits; give SCOPE"),
            "{wrong}"
        );
    }

    #[test]
    fn a_token_is_found_by_its_text_only() {
        let (read, token) = TokenEntry::make("grafana", Scope::Read, None).unwrap();
        let (write, other) = TokenEntry::make("scripts", Scope::Write, None).unwrap();
        assert_ne!(token, other);
        let text = format!("# tokens\n{read}\n\n{write} # of the operator\n");
        assert!(!text.contains(&token));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        fs::write(&path, text).unwrap();
        let book = book(&path);
        assert_eq!(book.find(&token), Some(read.clone()));
        assert_eq!(book.find(&other), Some(write));
        for wrong in ["", "x", &token[..token.len() - 1], &hex(&read.hash)] {
            assert_eq!(book.find(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_token_expires() {
        let make = |lifetime| TokenEntry::make("a", Scope::Read, lifetime).map(|(entry, _)| entry);
        assert!(make(Some(Duration::ZERO)).unwrap().has_expired());
        let entry = make(Some(Duration::from_secs(SECONDS_PER_DAY))).unwrap();
        assert!(!entry.has_expired() && !make(None).unwrap().has_expired());
        // As it was written.
        let line = entry.to_string();
        assert_eq!(parse_line(&line).unwrap(), entry, "{line}");
        let (line, _) = line.rsplit_once(' ').unwrap();
        assert!(parse_line(&format!("{line} 2001-01-01T00:00:00Z")).unwrap().has_expired());
        assert!(parse_line(&format!("{line} 2001-01-01")).unwrap_err().contains("is no time"));
        let error = make(Some(Duration::from_secs(u64::MAX))).unwrap_err();
        assert!(error.to_string().contains("cannot last"), "{error}");
    }

    #[test]
    fn a_token_whose_line_has_got_an_end_is_not_there_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        let (entry, _) = TokenEntry::make("first", Scope::Read, None).unwrap();
        fs::write(&path, format!("{entry} 2001-01-01T00:00:00Z\n")).unwrap();
        assert!(!book(&path).still_has(&entry));
        fs::write(&path, format!("{entry}\n")).unwrap();
        assert!(book(&path).still_has(&entry));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let hash = "0".repeat(64);
        let error = |text: &str| parse(Path::new("t"), text).unwrap_err().to_string();
        assert!(error("a read\n").starts_with("t:1: 2 words; a line is NAME SCOPE HASH [EXPIRES]"));
        assert!(error(&format!("\na admin {hash}\n")).contains("t:2: \"admin\" is no scope"));
        assert!(error("a read 12\n").contains("the hash is not 64 hexadecimal digits"));
        assert!(
            error(&format!("a read {hash}\na write {hash}\n"))
                .contains("t:2: the name a stands twice")
        );
        assert!(error(&format!("a/b read {hash}\n")).contains("cannot be called \"a/b\""));
    }

    #[test]
    fn a_name_is_given_once_and_the_file_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        let (entry, _) = TokenEntry::make("a", Scope::Read, None).unwrap();
        entry.add_to(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = entry.add_to(&path).unwrap_err().to_string();
        assert!(error.contains("has a token called a already"), "{error}");
        assert!(TokenEntry::make("", Scope::Read, None).is_err());
    }
}
