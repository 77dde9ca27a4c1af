//! YAML as a tree with the place of every node, so that each error can name its place.
//!
//! This module does not know which settings exist.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned, UserMessageFormatter};

/// Line and column, counted from 1. Columns are characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column, in characters.
    pub column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// What to look for where the text is no YAML.
pub(crate) const ADVICE: &str = "look here and just above for a missing bracket, quote or colon, and a wrong \
     indentation; put values with special signs in quotes";

/// A value and where it begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value.
#[derive(Clone, Debug, Default)]
pub(crate) enum Value {
    /// No value, or `null`.
    #[default]
    Nothing,
    /// Text, a number or a truth value, as it is written.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) key: String,
    pub(crate) value: Node,
}

impl Node {
    /// The items of a list; one if it is a single value, `None` if it is something else.
    pub(crate) fn items(&self) -> Option<Vec<&Node>> {
        match &self.value {
            Value::List(items) => Some(items.iter().collect()),
            Value::Scalar(_) => Some(vec![self]),
            Value::Nothing | Value::Map(_) => None,
        }
    }

    /// The first key that a map has twice.
    fn duplicate_key(&self) -> Option<Problem> {
        match &self.value {
            Value::List(items) => items.iter().find_map(Node::duplicate_key),
            Value::Map(entries) => {
                let mut places = BTreeMap::new();
                entries.iter().find_map(|Entry { place, key, value }| {
                    match places.insert(key, *place) {
                        Some(first) => Some(Problem {
                            place: *place,
                            message: format!("`{key}` stands here twice; the first is at {first}"),
                        }),
                        None => value.duplicate_key(),
                    }
                })
            }
            Value::Nothing | Value::Scalar(_) => None,
        }
    }

    fn at(self, place: Place) -> Node {
        let value = match self.value {
            Value::List(items) => Value::List(items.into_iter().map(|it| it.at(place)).collect()),
            Value::Map(map) => Value::Map(map.into_iter().map(|it| it.at(place)).collect()),
            value => value,
        };
        Node { place, value }
    }
}

impl Entry {
    /// The same with all its parts at this place.
    pub(crate) fn at(self, place: Place) -> Entry {
        Entry { place, key: self.key, value: self.value.at(place) }
    }
}

/// YAML in one line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = |place| if place == 0 { "" } else { ", " };
        match self {
            Value::Nothing => f.write_str("null"),
            Value::Scalar(text) => f.write_str(&word(text)),
            Value::List(items) => {
                f.write_str("[")?;
                for (place, item) in items.iter().enumerate() {
                    write!(f, "{}{}", comma(place), item.value)?;
                }
                f.write_str("]")
            }
            Value::Map(entries) => {
                f.write_str("{")?;
                for (place, entry) in entries.iter().enumerate() {
                    write!(f, "{}{}: {}", comma(place), word(&entry.key), entry.value.value)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A text as YAML reads it: in quotes if it has more than letters, digits, spaces and a few signs.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:- ".contains(c);
    let is_safe = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "/_.".contains(c))
        && text.chars().all(is_plain)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !text.eq_ignore_ascii_case("null");
    if is_safe { text.to_owned() } else { format!("{text:?}") }
}

/// Reads one YAML document. A repeated key is an error. The parser limits nesting and aliases.
pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    parse_with(text, DuplicateKeyPolicy::Error).map_err(|problem| {
        // The parser knows the place of the second only.
        let all = parse_with(text, DuplicateKeyPolicy::LastWins).ok();
        all.and_then(|root| root.duplicate_key()).unwrap_or(problem)
    })
}

fn parse_with(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        // `off` is a word, not a truth value.
        strict_booleans: true,
        duplicate_keys: duplicate_keys,
    };
    let read = serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options);
    read.map(|root| node(root, text)).map_err(|error| Problem {
        place: error.location().map_or_else(Place::default, Place::from),
        message: format!(
            "{}; {ADVICE}",
            without_place(&error.render_with_formatter(&UserMessageFormatter))
        ),
    })
}

/// Removes the place, with which the parser ends its messages; our messages begin with it.
fn without_place(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Place { line: location.line(), column: location.column() }
    }
}

/// A value as the parser gives it.
enum Raw {
    Nothing,
    Text(String),
    /// A number or a truth value. `0010` and `1e5` are numbers too, so what counts is how it is
    /// written; this is how it was understood.
    Typed(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn node(raw: Spanned<Raw>, text: &str) -> Node {
    let place = raw.referenced.into();
    let value = match raw.value {
        Raw::Nothing => Value::Nothing,
        Raw::Text(text) => Value::Scalar(text),
        Raw::Typed(understood) => {
            Value::Scalar(written(raw.defined, text).map_or(understood, str::to_owned))
        }
        Raw::List(items) => Value::List(items.into_iter().map(|item| node(item, text)).collect()),
        Raw::Map(entries) => {
            let entry = |(key, value): (Spanned<String>, Spanned<Raw>)| Entry {
                place: key.referenced.into(),
                key: key.value,
                value: node(value, text),
            };
            Value::Map(entries.into_iter().map(entry).collect())
        }
    };
    Node { place, value }
}

/// The part of a text that a location spans.
fn written(location: Location, text: &str) -> Option<&str> {
    let (start, bytes) = (location.span().byte_offset()?, location.span().byte_len()?);
    let start = usize::try_from(start).ok()?;
    text.get(start..start.checked_add(usize::try_from(bytes).ok()?)?).map(str::trim)
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Typed(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_place() {
        let Ok(root) = parse("a: 1\nb:\n  - x\n  - {c: 1.0}\n") else { panic!("it is YAML") };
        let Value::Map(entries) = root.value else { panic!("a map") };
        assert_eq!(entries[1].key, "b");
        assert_eq!(entries[1].place, Place { line: 2, column: 1 });
        let Value::List(items) = &entries[1].value.value else { panic!("a list") };
        let Value::Map(inner) = &items[1].value else { panic!("a map") };
        assert_eq!(inner[0].value.place, Place { line: 4, column: 9 });
        assert!(matches!(&inner[0].value.value, Value::Scalar(text) if text == "1.0"));
    }

    #[test]
    fn a_scalar_is_what_is_written() {
        let text = "[0010, 00000000000001e5, 0x1f, 1.0, true, 'a b', 12:30:45, 08, 1_000, é, 0011]";
        let Value::List(items) = parse(text).unwrap().value else { panic!("a list") };
        let scalars: Vec<String> = items.iter().map(|item| item.value.to_string()).collect();
        let as_written = "0010 00000000000001e5 0x1f 1.0 true a b 12:30:45 08 1_000 \"é\" 0011";
        assert_eq!(scalars.join(" "), as_written);
        let text = "a: &x 0010\nb: *x\nc: [ 0010 ,0011 ] # comment\n";
        let root = parse(text).unwrap().value;
        assert_eq!(root.to_string(), "{a: 0010, b: 0010, c: [0010, 0011]}");
    }

    #[test]
    fn printed_words_read_back() {
        for text in [
            "a b", "a:", "a: b", "#x", "-", "", "null", "Null", "a ", " a", "[::]:2", "'", "\"",
            "[", "a,b", "a1:4", "é",
        ] {
            let Value::List(items) = parse(&format!("[{}]", word(text))).unwrap().value else {
                panic!("a list")
            };
            assert!(matches!(&items[..], [Node { value: Value::Scalar(it), .. }] if it == text));
        }
    }

    #[test]
    fn aliases_that_multiply_are_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let inside = vec![format!("*a{}", level - 1); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{inside}]\n"));
        }
        assert!(parse(&text).is_err(), "10^9 values from a kilobyte");
    }

    #[test]
    fn nesting_is_bounded() {
        let text = "[".repeat(100_000);
        assert!(parse(&text).is_err());
    }
}
