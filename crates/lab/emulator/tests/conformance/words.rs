//! The parts of a conversation's lines: words, `key=value`, and lists with parentheses.

use bellrock_openflow::{Group, Meter, Port, Version};

use super::frame::{Result, number};

/// The Ethernet addresses of ports; the subject is asked for them before a conversation.
pub(crate) type Addresses = std::collections::BTreeMap<u32, bellrock_openflow::MacAddr>;

/// The context in which a message is built.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) version: Version,
    pub(crate) addresses: &'a Addresses,
}

/// Leaks a list. A run of the tests builds only a few hundred messages, which borrow their lists
/// until it ends.
pub(crate) fn keep<T>(items: Vec<T>) -> &'static [T] {
    items.leak()
}

/// The `key=value` and bare words of a line, separated by blanks and commas outside of parentheses.
pub(crate) struct Words<'t>(Vec<(&'t str, &'t str)>);

impl<'t> Words<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let words = split(text, |c| c == ',' || c.is_whitespace());
        Words(words.into_iter().map(|word| word.split_once('=').unwrap_or((word, ""))).collect())
    }

    /// Removes a value and returns it.
    pub(crate) fn take(&mut self, key: &str) -> Option<&'t str> {
        let at = self.0.iter().position(|(name, _)| *name == key)?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn number(&mut self, key: &str, usual: u64) -> Result<u64> {
        self.take(key).map_or(Ok(usual), number)
    }

    pub(crate) fn port(&mut self, key: &str, usual: Port) -> Result<Port> {
        self.take(key).map_or(Ok(usual), port)
    }

    pub(crate) fn group(&mut self, key: &str, usual: u32) -> Result<u32> {
        self.take(key).map_or(Ok(usual), group)
    }

    pub(crate) fn meter(&mut self, key: &str, usual: u32) -> Result<u32> {
        self.take(key).map_or(Ok(usual), meter)
    }

    pub(crate) fn table(&mut self, usual: u8) -> Result<u8> {
        match self.take("table") {
            None => Ok(usual),
            Some("ALL") => Ok(u8::MAX),
            Some(other) => Ok(number(other)? as u8),
        }
    }

    /// `value` or `value/mask`; without a mask, `usual_mask`.
    pub(crate) fn masked(&mut self, key: &str, usual_mask: u64) -> Result<(u64, u64)> {
        match self.take(key) {
            None => Ok((0, 0)),
            Some(text) => match text.split_once('/') {
                Some((value, mask)) => Ok((number(value)?, number(mask)?)),
                None => Ok((number(text)?, usual_mask)),
            },
        }
    }

    /// Removes the first word without a value and returns it.
    pub(crate) fn bare(&mut self) -> Option<&'t str> {
        let at = self.0.iter().position(|(_, value)| value.is_empty())?;
        Some(self.0.remove(at).0)
    }

    /// Removes and returns all words that are left.
    pub(crate) fn rest(&mut self) -> Vec<(&'t str, &'t str)> {
        std::mem::take(&mut self.0)
    }

    /// Fails if a word is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        match self.rest().first() {
            Some((key, _)) => Err(format!("`{key}` has no meaning here")),
            None => Ok(()),
        }
    }
}

/// The parts of a text between separators outside of parentheses, without empty parts.
pub(crate) fn split(text: &str, separator: impl Fn(char) -> bool) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            c if depth == 0 && separator(c) => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

pub(crate) fn port(text: &str) -> Result<Port> {
    Ok(match text {
        "IN_PORT" => Port::IN_PORT,
        "TABLE" => Port::TABLE,
        "NORMAL" => Port::NORMAL,
        "FLOOD" => Port::FLOOD,
        "ALL" => Port::ALL,
        "CONTROLLER" => Port::CONTROLLER,
        "LOCAL" => Port::LOCAL,
        "ANY" => Port::ANY,
        other => Port(number(other)? as u32),
    })
}

pub(crate) fn group(text: &str) -> Result<u32> {
    match text {
        "ALL" => Ok(Group::ALL),
        "ANY" => Ok(Group::ANY),
        other => Ok(number(other)? as u32),
    }
}

pub(crate) fn meter(text: &str) -> Result<u32> {
    match text {
        "ALL" => Ok(Meter::ALL),
        "CONTROLLER" => Ok(Meter::CONTROLLER),
        "SLOWPATH" => Ok(Meter::SLOWPATH),
        other => Ok(number(other)? as u32),
    }
}

/// Flags by their names or bits: `A|B|0x80`.
pub(crate) fn flags(text: &str, named: &[(&str, u64)]) -> Result<u64> {
    text.split('|').try_fold(0, |bits, name| match named.iter().find(|(known, _)| *known == name) {
        Some((_, bit)) => Ok(bits | bit),
        None => Ok(bits | number(name)?),
    })
}
