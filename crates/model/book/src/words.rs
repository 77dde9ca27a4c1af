//! The text form of an entry's value: words `key=value` in a JSON string.
//!
//! ```text
//! "from=02:00:00:00:00:01 to=02:00:00:00:00:04 kbps=60000"
//! ```
//!
//! Bytes that would end a word or a string are written as `%` with two hexadecimal digits. A reader
//! passes over keys that it does not know, so a newer release can add some.

use std::fmt::{Display, Write};
use std::str::FromStr;

/// The words of a value. A key can come several times; order counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<(String, String)>);

impl Words {
    /// Adds a word.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Display) -> Self {
        self.0.push((key.to_owned(), value.to_string()));
        self
    }

    /// Adds a word, if there is a value.
    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// The first value of a key.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// All values of a key.
    pub fn all<'w>(&'w self, key: &'w str) -> impl Iterator<Item = &'w str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Reads the value of a key that must exist.
    ///
    /// # Errors
    /// The key is missing, or its value is wrong: a text for the log.
    pub fn read<T: FromStr>(&self, key: &str) -> Result<T, String> {
        self.read_some(key)?.ok_or_else(|| format!("{key} is missing"))
    }

    /// Reads the value of a key that may be missing.
    ///
    /// # Errors
    /// The value is wrong: a text for the log.
    pub fn read_some<T: FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        let read = |text: &str| text.parse().map_err(|_| format!("{key}={text} is wrong"));
        self.text(key).map(read).transpose()
    }

    /// Returns the value of the entry: a JSON string.
    #[must_use]
    pub fn show(&self) -> String {
        let mut text = String::from('"');
        for (number, (key, value)) in self.0.iter().enumerate() {
            if number > 0 {
                text.push(' ');
            }
            text.push_str(key);
            text.push('=');
            for byte in value.bytes() {
                if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'%') {
                    text.push(char::from(byte));
                } else {
                    // A write into a text does not fail.
                    let _ = write!(text, "%{byte:02x}");
                }
            }
        }
        text.push('"');
        text
    }

    /// Reads the value of an entry.
    ///
    /// # Errors
    /// It has another form: a text for the log.
    pub fn parse(value: &str) -> Result<Self, String> {
        let wrong = || format!("{value} has another form");
        let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let word = |word: &str| {
            let (key, value) = word.split_once('=')?;
            Some((key.to_owned(), unescape(value)?))
        };
        let words = inner.ok_or_else(wrong)?.split(' ').filter(|word| !word.is_empty());
        Ok(Words(words.map(word).collect::<Option<_>>().ok_or_else(wrong)?))
    }
}

fn unescape(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_read_as_they_were_written(values in proptest::collection::vec("\\PC*|[\"\\\\% =\n]*", 0..6)) {
            let words = values.iter().fold(Words::default(), |words, value| words.with("k", value));
            let shown = words.show();
            prop_assert!(shown.is_ascii() && !shown[1..shown.len() - 1].contains(['"', '\\', '\n']), "{}", shown);
            prop_assert_eq!(Words::parse(&shown), Ok(words));
        }

        #[test]
        fn other_texts_do_not_panic(text in "\\PC*|\"[ -~]*\"") {
            let _ = Words::parse(&text);
        }
    }

    #[test]
    fn values_are_read_and_unknown_keys_are_passed_over() {
        let words =
            Words::default().with("kbps", 7).with_some("why", None::<u8>).with("new", "x y");
        assert_eq!(words.show(), r#""kbps=7 new=x%20y""#);
        assert_eq!(words.read::<u64>("kbps"), Ok(7));
        assert_eq!(words.read_some::<u64>("why"), Ok(None));
        assert_eq!(words.read::<u64>("new"), Err("new=x y is wrong".into()));
        assert_eq!(words.read::<u64>("id"), Err("id is missing".into()));
        for wrong in ["", "7", "\"", "\"k\"", "\"k=%\"", "\"k=%f\"", "\"k=%ff\"", "{\"k\":1}"] {
            assert!(Words::parse(wrong).is_err(), "{wrong}");
        }
    }
}
