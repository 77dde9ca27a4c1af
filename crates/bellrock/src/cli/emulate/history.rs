//! Where the lines of the prompt are kept from one session to the next.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Lines that are kept, in memory and in the file.
pub(super) const MAX_LINES: usize = 1000;

/// The folder is the user's own, as the file is, which has mode 0600.
const FOLDER_MODE: u32 = 0o700;

/// The file of the history, in a folder that is there: `$XDG_STATE_HOME/bellrock/emulate-history`, or below
/// `~/.local/state`. None where there is no such folder; then lines are kept for this session only.
pub(super) fn file() -> Option<PathBuf> {
    let folder = folder(|name| env::var_os(name))?;
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&folder).ok()?;
    Some(folder.join("emulate-history"))
}

/// As the XDG base directory specification says; a relative path does not count.
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
