//! The file with the history of the prompt.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Maximum number of lines in memory and in the file.
pub(super) const MAX_LINES: usize = 1000;

/// Mode of the folder: only its user has access, as to the file, which has mode 0600.
const FOLDER_MODE: u32 = 0o700;

/// Makes the folder of the history, and returns the file in it:
/// `$XDG_STATE_HOME/bellrock/emulate-history`, or the same below `~/.local/state`. `None` if that
/// is impossible; then the history ends with the session.
pub(super) fn file() -> Option<PathBuf> {
    let folder = folder(|name| env::var_os(name))?;
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder).ok()?;
    Some(folder.join("emulate-history"))
}

/// The folder by the XDG base directory specification. Relative paths are ignored.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")))?;
    Some(state.join("bellrock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_where_xdg_says() {
        let folder = |state: &str, home: &str| {
            folder(|name| match name {
                "XDG_STATE_HOME" => (!state.is_empty()).then(|| state.into()),
                _ => (!home.is_empty()).then(|| home.into()),
            })
        };
        assert_eq!(folder("/state", "/home/a"), Some("/state/bellrock".into()));
        assert_eq!(folder("", "/home/a"), Some("/home/a/.local/state/bellrock".into()));
        assert_eq!(folder("relative", "/home/a"), Some("/home/a/.local/state/bellrock".into()));
        assert_eq!(folder("", ""), None);
    }
}
