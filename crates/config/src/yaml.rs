//! YAML as a tree with the place of every node, so that each error can name its place.
//!
//! This module does not know which settings exist.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned, UserMessageFormatter};

/// Line and column, counted from 1. Columns are characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column, in characters.
    pub column: u64,
}

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// A value and where it begins.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value.
#[derive(Debug)]
pub(crate) enum Value {
    /// No value, or `null`.
    Nothing,
    /// Text, a number or a truth value, as text.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) key: String,
    pub(crate) value: Node,
}

/// Reads one YAML document. A repeated key is an error. The parser limits nesting and aliases.
pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        // `off` is a word, not a truth value.
        strict_booleans: true,
    };
    let read = serde_saphyr::from_str_with_options::<Spanned<Value>>(text, options);
    read.map(Node::from).map_err(|error| Problem {
        place: error.location().map_or_else(Place::default, Place::from),
        message: without_place(&error.render_with_formatter(&UserMessageFormatter)),
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

impl From<Spanned<Value>> for Node {
    fn from(spanned: Spanned<Value>) -> Self {
        Node { place: spanned.referenced.into(), value: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // Debug keeps the point: 1.0 is a version, and 1 is not.
        Ok(Value::Scalar(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Scalar(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            list.push(item.into());
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Spanned<Value>>()? {
            map.push(Entry { place: key.referenced.into(), key: key.value, value: value.into() });
        }
        Ok(Value::Map(map))
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
