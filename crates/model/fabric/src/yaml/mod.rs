//! YAML 1.2 as a tree with the place of every node. It does not know which keys exist.
//!
//! Scalars are resolved as ruamel.yaml's safe loader does, which Faucet uses: see [`scalar`].

mod compose;
mod scalar;

use std::fmt;
use std::sync::Arc;

pub(crate) use compose::compose;

use crate::Place;

/// A value and where it begins. An alias shares the node of its anchor.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Scalar(Scalar),
    List(Vec<Arc<Node>>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) key: Scalar,
    pub(crate) value: Arc<Node>,
}

/// A value without parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    /// At the ends of the range if it is written with more digits.
    Int(i128),
    Float(f64),
    /// A date or a time.
    Date(String),
    Text(Arc<str>),
}

/// A key of a map, to compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Int(i128),
    Text(Arc<str>),
    Other(String),
}

impl Node {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Scalar(Scalar::Null))
    }

    pub(crate) fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Arc<Node>]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn map(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.map()?.iter().find(|entry| entry.key.text() == Some(key))
    }

    /// Whether Python would say it is true: not null, false, zero or empty.
    pub(crate) fn is_truthy(&self) -> bool {
        match &self.value {
            Value::Scalar(scalar) => match scalar {
                Scalar::Null => false,
                Scalar::Bool(is) => *is,
                Scalar::Int(number) => *number != 0,
                Scalar::Float(number) => *number != 0.0,
                Scalar::Date(_) => true,
                Scalar::Text(text) => !text.is_empty(),
            },
            Value::List(items) => !items.is_empty(),
            Value::Map(entries) => !entries.is_empty(),
        }
    }
}

impl Scalar {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Scalar::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number. A truth value is one too, as in Python.
    pub(crate) fn int(&self) -> Option<i128> {
        match self {
            Scalar::Int(number) => Some(*number),
            Scalar::Bool(is) => Some((*is).into()),
            _ => None,
        }
    }

    /// What makes it the same key of a map as another one: `1`, `0x1` and `true` are.
    pub(crate) fn key(&self) -> Key {
        match (self.int(), self) {
            (Some(number), _) => Key::Int(number),
            (None, Scalar::Text(text)) => Key::Text(Arc::clone(text)),
            (None, other) => Key::Other(other.to_string()),
        }
    }
}

/// As YAML writes it, for errors.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Null => f.write_str("null"),
            Scalar::Bool(is) => write!(f, "{is}"),
            Scalar::Int(number) => write!(f, "{number}"),
            Scalar::Float(number) => write!(f, "{number:?}"),
            Scalar::Date(text) => f.write_str(text),
            Scalar::Text(text) => f.write_str(text),
        }
    }
}

/// What it is, for errors: `a list`, `true (a truth value)`, `"abc"`.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::List(_) => f.write_str("a list"),
            Value::Map(_) => f.write_str("a map"),
            Value::Scalar(Scalar::Null) => f.write_str("empty"),
            Value::Scalar(Scalar::Text(text)) => write!(f, "{text:?}"),
            Value::Scalar(scalar) => write!(f, "{scalar}"),
        }
    }
}
