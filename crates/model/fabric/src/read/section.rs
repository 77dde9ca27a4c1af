//! A map of a file whose keys are in a table: unknown keys, wrong types and wrong numbers are
//! problems, and what is left is read as plain values.

use std::sync::Arc;

use super::Reading;
use crate::Place;
use crate::keys::{Key, Preset, Types};
use crate::yaml::{Entry, Node, Scalar, Value};

/// Minimum similarity of a guess, from 0 to 1.
const LEAST_SIMILARITY: f64 = 0.75;

/// A map whose keys were checked. It sees entries with right values only; an empty value is as good
/// as none.
pub(crate) struct Section<'n> {
    keys: &'static [Key],
    entries: Vec<&'n Entry>,
    pub(crate) place: Place,
}

impl<'n> Section<'n> {
    /// Checks the entries against the table. `what` is for errors: "key of a VLAN".
    pub(crate) fn of(
        entries: &'n [Entry],
        place: &Place,
        keys: &'static [Key],
        what: &str,
        reading: &mut Reading,
    ) -> Section<'n> {
        let mut right = Vec::with_capacity(entries.len());
        for entry in entries {
            let known = keys.iter().find(|key| Some(key.name) == entry.key.text());
            let Some(key) = known else {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                reading.problem(&entry.place, unknown(&entry.key, what, &names));
                continue;
            };
            if !entry.value.is_null() && is_right(key, &entry.value, reading) {
                reading.note_part(key, entry);
                right.push(entry);
            }
        }
        Section { keys, entries: right, place: place.clone() }
    }

    /// One without entries.
    pub(crate) fn nothing(place: &Place, keys: &'static [Key]) -> Section<'static> {
        Section { keys, entries: Vec::new(), place: place.clone() }
    }

    /// As [`Section::of`]; `None` after a problem if the node is no map.
    pub(crate) fn of_node(
        node: &'n Node,
        keys: &'static [Key],
        what: &str,
        reading: &mut Reading,
    ) -> Option<Section<'n>> {
        match &node.value {
            Value::Map(entries) => Some(Section::of(entries, &node.place, keys, what, reading)),
            _ => {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                let message = format!("{node} stands where a map must be, with: {}", list(&names));
                reading.problem(&node.place, message);
                None
            }
        }
    }

    /// The value of a key, if it is there and not empty.
    pub(crate) fn node(&self, key: &str) -> Option<&'n Arc<Node>> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&'n Entry> {
        self.entries.iter().copied().find(|entry| entry.key.text() == Some(key))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &'n Entry> {
        self.entries.iter().copied()
    }

    /// Where the key stands, or else the section.
    pub(crate) fn place_of(&self, key: &str) -> &Place {
        self.entry(key).map_or(&self.place, |entry| &entry.place)
    }

    /// The value of a key with a plain value, or its preset.
    pub(crate) fn value<T: FromValue>(&self, key: &str) -> T {
        let preset = self.keys.iter().find(|row| row.name == key).map(|row| row.preset);
        let value = match self.node(key).and_then(|node| node.scalar()) {
            Some(scalar) => Some(scalar.clone()),
            None => preset.and_then(scalar_of),
        };
        T::from_value(value.as_ref())
    }

    /// The row of a key and whether its value is not what the preset says, and not empty or false.
    pub(crate) fn is_changed(&self, key: &Key) -> bool {
        self.node(key.name).is_some_and(|node| node.is_truthy() && !is_preset(key, node))
    }
}

fn scalar_of(preset: Preset) -> Option<Scalar> {
    match preset {
        Preset::Nothing | Preset::Other(_) => None,
        Preset::Bool(is) => Some(Scalar::Bool(is)),
        Preset::Int(number) => Some(Scalar::Int(number)),
        Preset::Float(number) => Some(Scalar::Float(number)),
        Preset::Text(text) => Some(Scalar::Text(text.into())),
    }
}

/// Whether a node is what the key has anyway.
pub(crate) fn is_preset(key: &Key, node: &Node) -> bool {
    match (scalar_of(key.preset), node.scalar()) {
        (Some(preset), Some(value)) => preset.key() == value.key(),
        _ => false,
    }
}

fn is_right(key: &Key, node: &Node, reading: &mut Reading) -> bool {
    if !key.types.has(types_of(node)) {
        let message = format!("`{}` cannot be {node}; give {}", key.name, key.types);
        reading.problem(&node.place, message);
        return false;
    }
    let number = node.scalar().and_then(Scalar::int);
    if let (Some(number), Some((least, most))) = (number, key.range)
        && !(least..=most).contains(&number)
    {
        let message = format!(
            "`{}` cannot be {number}; give a whole number from {least} to {most}",
            key.name
        );
        reading.problem(&node.place, message);
        return false;
    }
    true
}

pub(crate) fn types_of(node: &Node) -> Types {
    match &node.value {
        Value::List(_) => Types::LIST,
        Value::Map(_) => Types::MAP,
        Value::Scalar(scalar) => match scalar {
            // No key takes them; null was left out before.
            Scalar::Null | Scalar::Date(_) => Types::NONE,
            Scalar::Bool(_) => Types::INT_OR_BOOL,
            Scalar::Int(_) => Types::INT,
            Scalar::Float(_) => Types::FLOAT,
            Scalar::Text(_) => Types::TEXT,
        },
    }
}

/// "did you mean ...", or all that there are.
pub(crate) fn unknown(key: &Scalar, what: &str, names: &[&str]) -> String {
    let hint = match nearest(&key.to_string(), names) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "there are none".to_owned(),
        None => format!("there are: {}", list(names)),
    };
    format!("`{key}` is no {what}; {hint}")
}

/// Maximum number of names in an error.
const MAX_LISTED: usize = 60;

pub(crate) fn list(names: &[&str]) -> String {
    let shown = names.get(..MAX_LISTED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(MAX_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The name closest to `text`. `None` if none is close, or if two are equally close.
fn nearest<'w>(text: &str, names: &[&'w str]) -> Option<&'w str> {
    let mut scored: Vec<(f64, &str)> =
        names.iter().map(|name| (strsim::jaro_winkler(text, name), *name)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    match scored[..] {
        [(best, name), ..]
            if best > LEAST_SIMILARITY && scored.get(1).is_none_or(|next| next.0 < best) =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// What a plain value becomes. Types and ranges were checked before.
pub(crate) trait FromValue {
    fn from_value(value: Option<&Scalar>) -> Self;
}

macro_rules! from_number {
    ($($type:ty)*) => {$(
        impl FromValue for $type {
            fn from_value(value: Option<&Scalar>) -> Self {
                let number = value.and_then(Scalar::int).unwrap_or_default();
                // The ranges of the tables fit; after a problem the value does not matter.
                <$type>::try_from(number).unwrap_or(<$type>::MAX)
            }
        }

        impl FromValue for Option<$type> {
            fn from_value(value: Option<&Scalar>) -> Self {
                value.map(|value| <$type>::from_value(Some(value)))
            }
        }
    )*};
}
from_number!(u8 u16 u32 u64 i64);

impl FromValue for bool {
    fn from_value(value: Option<&Scalar>) -> Self {
        value.and_then(Scalar::int).is_some_and(|number| number != 0)
    }
}

impl FromValue for f64 {
    fn from_value(value: Option<&Scalar>) -> Self {
        match value {
            Some(Scalar::Float(number)) => *number,
            _ => 0.0,
        }
    }
}

impl FromValue for Option<Arc<str>> {
    fn from_value(value: Option<&Scalar>) -> Self {
        match value {
            Some(Scalar::Text(text)) => Some(Arc::clone(text)),
            _ => None,
        }
    }
}

impl FromValue for Arc<str> {
    fn from_value(value: Option<&Scalar>) -> Self {
        Option::from_value(value).unwrap_or_else(|| "".into())
    }
}
