//! The default configuration as a file, made from the tables of the settings.

use bellrock_api::Forwards;

use super::Config;
use super::apps::{AppChoice, KNOWN, Known};
use super::form::{Change, Setting};
use super::settings::GROUPS;

/// Maximum length of a comment line, in characters.
const WIDTH: usize = 110;

const HEADER: &str = "\
The configuration of Bellrock, with every setting at its default.

A setting that is left out has its default. Each can also be given as a flag (--max-connections for max_connections) or in \
the environment (BELLROCK_MAX_CONNECTIONS): a flag overrides the environment, and the environment overrides this file. \
`bellrock check FILE` checks a file.

Bytes are numbers with or without B, KiB, MiB or GiB. Times are numbers with ms, s, min or h, in seconds without a unit.

A setting with (live) can change while the controller runs; the others take effect at its next start.

Explanations have a space after their #. Settings that are not used have none: remove the # to use them.";

const CHAIN: &str = "The chain, in order: each packet goes to the first app, and on to the next as long as apps pass it on. \
                     An app without settings is just its name (- hub). An app of your own in Python is the path of \
                     its file (- ./my_app.py).";

const FIRST: &str = "Apps that stand before those that carry all packets:";
const INSTEAD: &str = "Apps that carry all packets. One of them is enough; to use another one, put a # before the lines \
                       of learning.";

/// The default configuration with the settings of all apps. Unused apps are commented out.
pub fn default_yaml() -> String {
    let config = Config::default();
    let mut file = File::default();
    file.comment("", HEADER);
    for (n, group) in GROUPS.iter().enumerate() {
        file.heading(group.heading);
        let mut section = "";
        for setting in group.settings {
            let own = setting.key.rsplit_once('.').map_or("", |(section, _)| section);
            file.open_sections(std::mem::replace(&mut section, own), own);
            file.setting(&indent(own), "", setting, &config);
        }
        if n == 0 {
            file.chain(&config.apps);
        }
    }
    file.0
}

/// What stands before the settings of a section.
fn indent(section: &str) -> String {
    let levels = if section.is_empty() { 0 } else { section.split('.').count() };
    "  ".repeat(levels)
}

#[derive(Default)]
struct File(String);

impl File {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Writes a comment, broken into lines between words. Empty lines separate paragraphs.
    fn comment(&mut self, indent: &str, text: &str) {
        let start = format!("{indent}#");
        let mut line = start.clone();
        for paragraph in text.split("\n\n") {
            if line != start {
                self.line(&std::mem::replace(&mut line, start.clone()));
                self.line(&start);
            }
            for word in paragraph.split_whitespace() {
                if line.chars().count() + 1 + word.chars().count() > WIDTH {
                    self.line(&std::mem::replace(&mut line, start.clone()));
                }
                line.push(' ');
                line.push_str(word);
            }
        }
        self.line(&line);
    }

    fn heading(&mut self, heading: &str) {
        self.line("");
        let rule = "-".repeat(WIDTH.saturating_sub(heading.len() + 3));
        self.line(&format!("# {heading} {rule}"));
    }

    /// Writes the heads of the sections that begin between a setting of one section and one of the
    /// next.
    fn open_sections(&mut self, before: &str, section: &str) {
        let mut outer = "";
        for (end, _) in section.match_indices('.').chain([(section.len(), "")]) {
            let inner = section.get(..end).unwrap_or(section);
            let is_open = before == inner || before.starts_with(&format!("{inner}."));
            if !is_open && !inner.is_empty() {
                if outer.is_empty() {
                    self.line("");
                }
                let name = inner.rsplit('.').next().unwrap_or(inner);
                self.line(&format!("{}{name}:", indent(outer)));
            }
            outer = inner;
        }
    }

    /// Writes a setting and its description. `off` is `#` if the setting is commented out.
    fn setting<T>(&mut self, indent: &str, off: &str, setting: &Setting<T>, of: &T) {
        if indent.is_empty() {
            self.line("");
        }
        match setting.change {
            Change::Live => self.comment(indent, &format!("{} (live)", setting.about)),
            Change::Restart => self.comment(indent, setting.about),
        }
        let value = setting.yaml(of);
        let key = setting.key.rsplit_once('.').map_or(setting.key, |(_, key)| key);
        self.line(&format!("{indent}{off}{key}: {value}"));
    }

    fn chain(&mut self, used: &[AppChoice]) {
        self.heading("Apps");
        self.line("");
        self.comment("", CHAIN);
        self.line("apps:");
        let (all, some): (Vec<&Known>, Vec<&Known>) =
            KNOWN.iter().partition(|known| known.forwards == Forwards::All);
        // Apps that only drop packets come first.
        for (title, known) in [(FIRST, some), (INSTEAD, all)] {
            self.comment("  ", title);
            for app in known {
                let off = if used.iter().any(|used| used.name() == app.name) { "" } else { "#" };
                self.line("");
                self.comment("  ", app.about);
                let colon = if app.settings.is_empty() { "" } else { ":" };
                self.line(&format!("  {off}- {}{colon}", app.name));
                for setting in app.settings {
                    self.setting("      ", off, setting, &(app.choice)());
                }
            }
            self.line("");
        }
        // The next heading adds its own empty line.
        self.0.pop();
    }
}
