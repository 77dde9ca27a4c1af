//! Byte strings in messages: of any length, or of fixed size with padding.

use std::fmt;
use std::ops::Deref;

/// Bytes without an OpenFlow meaning: a frame, an echo's payload, an experimenter's data. They
/// print and serialise as hexadecimal.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Bytes(bytes)
    }
}

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({self})")
    }
}

/// Prints a text from the network. Escapes everything that a terminal does not show as a character.
pub(crate) fn escaped(text: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\'' | '\\' => write!(f, "{c}")?,
                c => write!(f, "{}", c.escape_debug())?,
            }
        }
        if !chunk.invalid().is_empty() {
            f.write_str("\u{fffd}")?;
        }
    }
    Ok(())
}

/// A text of at most `N` bytes, padded with zeros: names of ports and tables, descriptions of
/// switches.
///
/// All bytes are kept, even those after the first zero. Comparison and printing use only the bytes
/// before it.
#[derive(Clone, Copy)]
pub struct FixedStr<const N: usize>(pub [u8; N]);

impl<const N: usize> FixedStr<N> {
    /// Makes a field from `text`, cut to `N - 1` bytes so that a final zero fits.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
            *to = from;
        }
        FixedStr(bytes)
    }

    /// Returns the bytes before the first zero.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

impl<const N: usize> PartialEq for FixedStr<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> Eq for FixedStr<N> {}

impl<const N: usize> Default for FixedStr<N> {
    fn default() -> Self {
        FixedStr([0; N])
    }
}

/// Escapes control and invisible characters: the text comes from the network and goes to terminals
/// and logs.
impl<const N: usize> fmt::Display for FixedStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(self.as_bytes(), f)
    }
}

impl<const N: usize> fmt::Debug for FixedStr<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Bytes<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<const N: usize> serde::Serialize for FixedStr<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_text_ends_at_its_first_zero_and_hides_no_control_characters() {
        let name = FixedStr(*b"s1-eth1\0\x07junk\0\0\0");
        assert_eq!(name.to_string(), "s1-eth1");
        assert_eq!(name, FixedStr::<16>::new("s1-eth1"));
        assert_eq!(FixedStr(*b"a\x1b[2Jb\xff\0").to_string(), "a\\u{1b}[2Jb\u{fffd}");
        assert_eq!(FixedStr::<4>::new("abcdef").as_bytes(), b"abc");
    }
}
