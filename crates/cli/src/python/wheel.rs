//! How to get the Python package: its wheel, which is built or packaged with the command. No
//! package index has it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

const OWN: &str = env!("CARGO_PKG_VERSION");

/// Where the wheel can be, seen from the folder of the binary: beside it, where the Debian package
/// has it, and where `make wheel` builds it.
const PLACES: &[&str] = &["", "../share/bellrock", "../wheels/release"];

/// What to do for an interpreter that lacks the package of this version. `extra` names a part of
/// the package that needs more, such as `[osken]`.
pub(crate) fn advice(interpreter: &str, extra: &str) -> String {
    let binary = env::current_exe().and_then(fs::canonicalize).ok();
    let wheel = binary.as_deref().and_then(Path::parent).and_then(find);
    advice_for(wheel.as_deref(), interpreter, extra)
}

fn advice_for(wheel: Option<&Path>, interpreter: &str, extra: &str) -> String {
    match wheel {
        Some(wheel) => {
            let quote = if extra.is_empty() { "" } else { "'" };
            format!("{interpreter} -m pip install {quote}{}{extra}{quote}", wheel.display())
        }
        None => format!(
            "build its wheel in Bellrock's sources (`make wheel`), and install that: {interpreter} -m pip install \
             PATH/bellrock-{OWN}-cp310-abi3-linux_{}.whl{extra}; or install the Debian package python3-bellrock",
            env::consts::ARCH
        ),
    }
}

/// Finds the wheel of this version, seen from the folder of the binary.
fn find(folder: &Path) -> Option<PathBuf> {
    let is_wheel = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with(&format!("bellrock-{OWN}-")) && name.ends_with(".whl")
    };
    let wheels = PLACES.iter().filter_map(|place| fs::read_dir(folder.join(place)).ok());
    let wheel = wheels.flatten().flatten().map(|entry| entry.path()).find(is_wheel)?;
    Some(fs::canonicalize(&wheel).unwrap_or(wheel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_a_command_if_the_wheel_is_there() {
        let wheel = Path::new("/usr/share/bellrock/bellrock-1.0-x.whl");
        let found = |extra| advice_for(Some(wheel), "python3", extra);
        assert_eq!(found(""), "python3 -m pip install /usr/share/bellrock/bellrock-1.0-x.whl");
        assert_eq!(
            found("[osken]"),
            "python3 -m pip install '/usr/share/bellrock/bellrock-1.0-x.whl[osken]'"
        );
        let build = advice_for(None, "python3", "");
        assert!(build.contains("make wheel") && build.contains(OWN), "{build}");
    }

    #[test]
    fn the_wheel_of_this_version_is_found_beside_the_binary_and_in_the_package() {
        let place = env::temp_dir().join(format!("bellrock-wheel-{}", std::process::id()));
        let (binaries, share) = (place.join("bin"), place.join("share/bellrock"));
        for folder in [&binaries, &share] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(binaries.join("bellrock-0.0.0-other.whl"), "").unwrap();
        assert_eq!(find(&binaries), None);
        let packaged = share.join(format!("bellrock-{OWN}-any.whl"));
        fs::write(&packaged, "").unwrap();
        assert_eq!(find(&binaries), Some(fs::canonicalize(packaged).unwrap()));
        fs::remove_dir_all(&place).unwrap();
    }
}
