//! Which names a project can have. A name is also that of a module in Python, or of a crate in
//! Rust.

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Words of Python's grammar.
const PYTHON_WORDS: &str = "False None True and as assert async await break class continue def del elif else except finally for \
     from global if import in is lambda nonlocal not or pass raise return try while with yield";

/// Modules of Python's standard library (3.10 to 3.13), the package itself, and what its projects
/// use: a file of such a name would take their place.
const PYTHON_MODULES: &str = "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii \
     bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent \
     configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis \
     distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
     functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib \
     imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap \
     marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers \
     opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix \
     posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline \
     reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr \
     socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct \
     subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios test textwrap this threading \
     time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata \
     unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile \
     zipimport zlib zoneinfo bellrock conftest pytest mypy";

/// Words of Rust's grammar.
const RUST_WORDS: &str = include_str!("rust/words.txt");

/// Crates that every program has, names of folders that Cargo keeps for itself, and the library.
const RUST_CRATES: &str = "alloc bellrock build core deps examples incremental proc_macro std test";

/// Whether a project in Python can have this name.
///
/// # Errors
/// What would be right.
pub(super) fn check_python(name: &str) -> Result<(), String> {
    check_form(name, "letters, digits and _", |c| c == '_')?;
    check_words(name, PYTHON_WORDS, "a word of Python")?;
    check_words(name, PYTHON_MODULES, "a module that Python or the project uses")
}

/// Whether a project in Rust can have this name.
///
/// # Errors
/// What would be right.
pub(super) fn check_rust(name: &str) -> Result<(), String> {
    check_form(name, "letters, digits, _ and -", |c| c == '_' || c == '-')?;
    check_words(name, RUST_WORDS, "a word of Rust")?;
    check_words(name, RUST_CRATES, "a crate or a folder that Rust uses")
}

fn check_form(name: &str, right: &str, also: impl Fn(char) -> bool) -> Result<(), String> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let begins = name.starts_with(is_letter);
    let is_right = begins && name.chars().all(|c| c.is_ascii_alphanumeric() || also(c));
    if is_right && name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name of a project; give up to {MAX_NAME_BYTES} {right}, with a letter first, such as my_app"
    ))
}

fn check_words(name: &str, words: &str, what: &str) -> Result<(), String> {
    match words.split_whitespace().any(|word| word == name) {
        true => Err(format!(
            "{name:?} is {what}; give another name, such as my_{}",
            name.to_lowercase()
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_modules_and_crates() {
        for name in ["my_app", "_a", "Hub2", "learning"] {
            assert_eq!(check_python(name), Ok(()), "{name}");
            assert_eq!(check_rust(name), Ok(()), "{name}");
        }
        assert_eq!(check_rust("my-app"), Ok(()));
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        for name in
            ["", "my-app", "2hubs", "a b", "é", "a/b", "..", "class", "json", "bellrock", &long]
        {
            let wrong = check_python(name).unwrap_err();
            assert!(wrong.contains("such as my_"), "{wrong}");
        }
        for name in ["", "-app", "a.b", "a/b", "fn", "test", "_", "bellrock", &long] {
            let wrong = check_rust(name).unwrap_err();
            assert!(wrong.contains("such as my_"), "{wrong}");
        }
        assert_eq!(
            check_python("signal").unwrap_err(),
            "\"signal\" is a module that Python or the project uses; give another name, such as my_signal"
        );
    }
}
