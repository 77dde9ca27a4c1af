//! The differences between the two switches: the file of reasons, and the table in the manual.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::frame::Result;
use super::script::Script;

/// Markers in the manual around the table.
const BEGIN: &str = "<!-- differences: written by the conformance tests from the conversations -->";
const END: &str = "<!-- end of differences -->";

/// What Open vSwitch does, what the emulated switch does, and what the specification requires.
pub(crate) struct Reason {
    pub(crate) heading: String,
    pub(crate) text: String,
}

/// Reads the reasons by name: `== NAME: HEADING`, then the text.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<String, Reason>> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut reasons = BTreeMap::new();
    for part in text.split("\n== ").skip(1) {
        let (title, text) = part.split_once('\n').unwrap_or((part, ""));
        let (name, heading) =
            title.split_once(": ").ok_or_else(|| format!("`{title}` has no heading"))?;
        let text = text.trim().to_owned();
        if text.is_empty() {
            return Err(format!("`{name}` has no text"));
        }
        reasons.insert(name.to_owned(), Reason { heading: heading.to_owned(), text });
    }
    Ok(reasons)
}

/// The page with the table that the conversations give.
pub(crate) fn write(
    page: &str,
    reasons: &BTreeMap<String, Reason>,
    scripts: &[Script],
) -> Result<String> {
    let (head, rest) = page.split_once(BEGIN).ok_or("the page has no place for the differences")?;
    let (_, tail) = rest.split_once(END).ok_or("the differences on the page have no end")?;
    let all: usize = scripts.iter().map(|script| script.conversations.len()).sum();
    let differing = |script: &&Script| {
        script.conversations.iter().filter(|conversation| !conversation.differs.is_empty()).count()
    };
    let differ: usize = scripts.iter().map(|script| differing(&script)).sum();
    let mut text =
        format!("{head}{BEGIN}\n\n{all} conversations; in {differ} of them the switches differ.\n");
    for (name, reason) in reasons {
        let _ = write!(text, "\n### {}\n\n{}\n\n", reason.heading, reason.text);
        for script in scripts {
            let file = script.path.file_name().unwrap_or_default().to_string_lossy();
            let own = script
                .conversations
                .iter()
                .filter(|conversation| conversation.differs.contains(name));
            for conversation in own {
                let _ = writeln!(text, "- `{file}`: {}", conversation.title);
            }
        }
    }
    Ok(format!("{text}\n{END}{tail}"))
}
