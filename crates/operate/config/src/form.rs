//! What a setting is: its name and meaning, and how its value is read and shown.

use super::read::Reading;
use super::values::Wrong;
use super::yaml::{Entry, Node, Value, word};

/// One setting of a `T`.
pub struct Setting<T: 'static> {
    /// Its name in a file. Points separate the sections that it is in: `http.listen` is `listen` in
    /// the map `http`. The flag has `-` for `_` and `.`.
    pub key: &'static str,
    /// The placeholder of its value in the help.
    pub value: &'static str,
    /// Its effect, its unit, and what happens at a limit, in one or two sentences.
    pub about: &'static str,
    /// When a changed value takes effect.
    pub change: Change,
    /// How its value is read and shown.
    pub form: Form<T>,
}

/// When a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// While the controller runs.
    Live,
    /// At the next start.
    Restart,
}

impl Change {
    /// `live` or `restart`, as in the manual.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Change::Live => "live",
            Change::Restart => "restart",
        }
    }
}

/// How the value of a setting is read and shown.
pub enum Form<T: 'static> {
    /// One value.
    One {
        /// Sets it.
        set: fn(&mut T, &str) -> Result<(), Wrong>,
        /// Shows it, in a form that `set` reads.
        show: fn(&T) -> String,
    },
    /// One value, or a list of them.
    Many {
        /// Sets them: at least one.
        set: fn(&mut T, &[&str]) -> Result<(), Wrong>,
        /// Shows them with commas between, in a form that `set` reads.
        show: fn(&T) -> String,
    },
    /// A map from names (or other keys) to values.
    Map(MapForm<T>),
}

/// How a map is read and shown.
pub struct MapForm<T: 'static> {
    /// A map that it reads, for errors.
    pub(crate) example: &'static str,
    /// Sets all entries. Reports problems at their places.
    pub(crate) set: fn(&mut T, &[Entry], &mut Reading),
    /// Its keys and values. A value is YAML in one line that `set` reads.
    pub(crate) entries: fn(&T) -> Vec<(String, String)>,
    /// Splits the text of one entry, as a flag has it, into key and values.
    pub(crate) unpack: fn(&str) -> Option<Packed>,
}

/// A key and its values.
pub(crate) type Packed = (String, Vec<String>);

/// Stands for a list or map without entries, in files and flags.
pub(crate) const NONE: &str = "none";

impl<T> Setting<T> {
    /// Its value as the help shows it: items with commas between, or a map in one line of YAML.
    #[must_use]
    pub fn show(&self, of: &T) -> String {
        match &self.form {
            Form::One { show, .. } | Form::Many { show, .. } => show(of),
            Form::Map(map) => map.show(of),
        }
    }

    /// Its value as a file has it.
    #[must_use]
    pub fn yaml(&self, of: &T) -> String {
        let shown = self.show(of);
        match &self.form {
            Form::Many { .. } if shown.contains(',') => {
                let items: Vec<_> = shown.split(',').map(word).collect();
                format!("[{}]", items.join(", "))
            }
            Form::One { .. } | Form::Many { .. } => word(&shown),
            Form::Map(_) => shown,
        }
    }

    /// Whether it takes several values.
    #[must_use]
    pub fn takes_many(&self) -> bool {
        !matches!(self.form, Form::One { .. })
    }

    /// Sets it from the values of a flag or variable, named `origin`. Returns what is wrong.
    pub(crate) fn set(
        &self,
        to: &mut T,
        texts: &[&str],
        origin: &str,
        reading: &Reading,
    ) -> Vec<String> {
        let wrong = match &self.form {
            Form::One { set, .. } => set(to, texts.last().copied().unwrap_or_default()),
            Form::Many { set, .. } => set(to, texts),
            Form::Map(map) => {
                let mut entries = Vec::new();
                for text in texts.iter().filter(|text| **text != NONE) {
                    match map.entry(text) {
                        Some(entry) => entries.push(entry),
                        None => {
                            return vec![format!(
                                "{origin} cannot be {text:?}; give {NONE} or {}",
                                self.value
                            )];
                        }
                    }
                }
                let mut problems = reading.beside();
                (map.set)(to, &entries, &mut problems);
                let found = problems.problems.into_iter();
                return found.map(|problem| format!("{origin}: {}", problem.message)).collect();
            }
        };
        let items = wrong.err().map(|wrong| wrong.0).into_iter().flatten();
        let wrong = items.map(|error| {
            let value = texts.get(error.item).copied().unwrap_or_default();
            format!("{origin} cannot be {value:?}; give {}", error.expected)
        });
        wrong.collect()
    }

    /// Sets it from an entry of a file.
    pub(crate) fn read(&self, to: &mut T, entry: &Entry, reading: &mut Reading) {
        let key = &entry.key;
        let node = &entry.value;
        if matches!(node.value, Value::Nothing) {
            let text = format!("`{key}` has no value; leave the line out for the default");
            return reading.add(entry.place, text);
        }
        match &self.form {
            Form::One { set, .. } => match &node.value {
                Value::Scalar(text) => {
                    let wrong = set(to, text);
                    reading.add_wrong(key, wrong, &[(node, text)]);
                }
                _ => reading.add(node.place, format!("`{key}` takes one value")),
            },
            Form::Many { set, .. } => {
                let right = format!("`{key}` takes one value, or a list of them");
                let Some(items) = node.items().filter(|items| !items.is_empty()) else {
                    return reading.add(node.place, right);
                };
                let Some(texts) = texts(key, &items, reading) else { return };
                let plain: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
                let wrong = set(to, &plain);
                reading.add_wrong(key, wrong, &texts);
            }
            Form::Map(map) => map.read(to, entry, reading),
        }
    }
}

impl<T> MapForm<T> {
    fn show(&self, of: &T) -> String {
        let entries = (self.entries)(of);
        if entries.is_empty() {
            return NONE.to_owned();
        }
        let entries = entries.into_iter().map(|(key, value)| format!("{key}: {value}"));
        format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
    }

    /// The entry of a text. It has no place.
    fn entry(&self, text: &str) -> Option<Entry> {
        let (key, values) = (self.unpack)(text)?;
        let place = Default::default();
        let node = |text| Node { place, value: Value::Scalar(text) };
        let mut values: Vec<Node> = values.into_iter().map(node).collect();
        let value = match values.len() {
            1 => values.remove(0),
            _ => Node { place, value: Value::List(values) },
        };
        Some(Entry { place, key, value })
    }

    fn read(&self, to: &mut T, entry: &Entry, reading: &mut Reading) {
        let (key, node) = (&entry.key, &entry.value);
        match &node.value {
            Value::Map(entries) => (self.set)(to, entries, reading),
            Value::Scalar(text) if text == NONE => (self.set)(to, &[], reading),
            _ => self.read_packed(to, key, node, reading),
        }
    }

    /// Reads texts that each hold an entry, as files had them before there were maps. Warns, and
    /// shows the map to write.
    fn read_packed(&self, to: &mut T, key: &str, node: &Node, reading: &mut Reading) {
        let right = format!("`{key}` is a map, such as {}, or {NONE}", self.example);
        let Some(items) = node.items().filter(|items| !items.is_empty()) else {
            return reading.add(node.place, right);
        };
        let is_one = matches!(node.value, Value::Scalar(_));
        let mut entries = Vec::new();
        let mut is_right = true;
        for item in items {
            let texts = match &item.value {
                // A single text may have several, with commas between.
                Value::Scalar(text) if is_one => {
                    text.split(',').map(|text| self.entry(text)).collect()
                }
                Value::Scalar(text) => self.entry(text).map(|entry| vec![entry]),
                _ => None,
            };
            match texts {
                Some(texts) => entries.extend(texts.into_iter().map(|entry| entry.at(item.place))),
                None => {
                    is_right = false;
                    reading.add(item.place, right.clone());
                }
            }
        }
        if !is_right {
            return;
        }
        let before = reading.problems.len();
        (self.set)(to, &entries, reading);
        if reading.problems.len() == before {
            let map = Value::Map(entries);
            reading.warn(node.place, format!("`{key}` is a map now; write `{key}: {map}`"));
        }
    }
}

/// The texts of the items, or a problem. A file may write "0,1" as the command line does.
fn texts<'n>(
    key: &str,
    items: &[&'n Node],
    reading: &mut Reading,
) -> Option<Vec<(&'n Node, &'n str)>> {
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        match &item.value {
            Value::Scalar(text) => texts.push((*item, text.as_str())),
            _ => {
                reading.add(item.place, format!("`{key}` takes a list of single values"));
                return None;
            }
        }
    }
    match texts[..] {
        [(item, text)] => Some(text.split(',').map(|text| (item, text.trim())).collect()),
        _ => Some(texts),
    }
}
