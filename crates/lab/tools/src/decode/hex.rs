//! Messages as text: one message per line, in hexadecimal.
//!
//! `04 00 00 08 00 00 00 01`, `0400000800000001`, `04:00:00:08:00:00:00:01` and `0x04 0x00 ...` are
//! the same message. `#` starts a comment, and lines without a digit are skipped. A wrong line is
//! an error with its line and column. The lines after it are still read.

use std::io::{self, BufRead, Read};

/// Maximum length of a message, in bytes: the maximum of the header's length field.
pub(crate) const MAX_MESSAGE_BYTES: usize = u16::MAX as usize;

/// Maximum length of a line, in bytes. A longer line is an error, and its rest is skipped. Each
/// byte of a message may be written as `0xff, ` and still leave space for a comment.
pub(crate) const MAX_LINE_BYTES: usize = 8 * MAX_MESSAGE_BYTES;

/// A message and the number of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HexLine {
    /// Number of its line, from 1.
    pub(crate) number: u64,
    /// Its bytes, at least one.
    pub(crate) bytes: Vec<u8>,
}

/// Why a line is not a message. Lines and columns count from 1; columns count bytes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HexError {
    /// A character that is not allowed.
    #[error(
        "line {line}, column {column}: {found:?} is not a hexadecimal digit, a blank, a colon or the start of a comment"
    )]
    Character {
        /// The number of the line.
        line: u64,
        /// The column of the character.
        column: usize,
        /// The character, or the first byte of a character that is not ASCII.
        found: char,
    },
    /// A single digit where there should be two.
    #[error("line {line}, column {column}: half a byte; every byte needs two digits")]
    HalfByte {
        /// The number of the line.
        line: u64,
        /// The column of the digit.
        column: usize,
    },
    /// More bytes than the maximum of a message.
    #[error("line {line}, column {column}: more than {MAX_MESSAGE_BYTES} bytes in a message")]
    MessageTooLong {
        /// The number of the line.
        line: u64,
        /// The column of the first byte beyond the maximum.
        column: usize,
    },
    /// A line longer than [`MAX_LINE_BYTES`].
    #[error("line {line}, column {column}: the line is longer than {MAX_LINE_BYTES} bytes")]
    LineTooLong {
        /// The number of the line.
        line: u64,
        /// The first column that was not read.
        column: usize,
    },
    /// The input could not be read. No more lines follow.
    #[error("line {line}, column 1: cannot read")]
    Io {
        /// The number of the line that could not be read.
        line: u64,
        /// The error.
        source: io::Error,
    },
}

/// Reads messages line by line; see [`messages`].
#[derive(Debug)]
pub(crate) struct Messages<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    failed: bool,
}

/// Reads the messages of `input`, one per line. Ends with the input, or with its first read error.
pub(crate) fn messages<R: BufRead>(input: R) -> Messages<R> {
    Messages { input, line: Vec::new(), number: 0, failed: false }
}

impl<R: BufRead> Messages<R> {
    /// Reads the next line into `line`, without its end. `None` at the end of the input.
    fn next_line(&mut self) -> Option<Result<(), HexError>> {
        self.line.clear();
        self.number += 1;
        let line = self.number;
        let limit = MAX_LINE_BYTES as u64 + 1;
        let mut limited = self.input.by_ref().take(limit);
        match limited.read_until(b'\n', &mut self.line) {
            Err(source) => Some(Err(self.fail(source))),
            Ok(0) => None,
            Ok(_) if self.line.last() == Some(&b'\n') => Some(Ok(())),
            Ok(length) if length <= MAX_LINE_BYTES => Some(Ok(())),
            Ok(_) => Some(Err(match self.input.skip_until(b'\n') {
                Ok(_) => HexError::LineTooLong { line, column: MAX_LINE_BYTES + 1 },
                Err(source) => self.fail(source),
            })),
        }
    }

    fn fail(&mut self, source: io::Error) -> HexError {
        self.failed = true;
        HexError::Io { line: self.number, source }
    }
}

impl<R: BufRead> Iterator for Messages<R> {
    type Item = Result<HexLine, HexError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            if let Err(error) = self.next_line()? {
                return Some(Err(error));
            }
            match parse(self.number, &self.line) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Some(Ok(HexLine { number: self.number, bytes })),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}

/// Reads the bytes of a line.
fn parse(line: u64, text: &[u8]) -> Result<Vec<u8>, HexError> {
    let text = text.split(|&byte| byte == b'#').next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut at = 0;
    while let Some(&first) = text.get(at) {
        let column = at + 1;
        let second = text.get(at + 1).copied();
        if first.is_ascii_whitespace() || first == b':' {
            at += 1;
        } else if first == b'0' && matches!(second, Some(b'x' | b'X')) {
            at += 2;
        } else {
            let high = digit(first).ok_or(HexError::Character {
                line,
                column,
                found: char::from(first),
            })?;
            let low = second.and_then(digit).ok_or_else(|| match second {
                Some(found) if !found.is_ascii_whitespace() && found != b':' => {
                    HexError::Character { line, column: column + 1, found: char::from(found) }
                }
                _ => HexError::HalfByte { line, column },
            })?;
            if bytes.len() == MAX_MESSAGE_BYTES {
                return Err(HexError::MessageTooLong { line, column });
            }
            bytes.push(high << 4 | low);
            at += 2;
        }
    }
    Ok(bytes)
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<HexLine, String>> {
        messages(text.as_bytes()).map(|line| line.map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn every_way_of_writing_a_byte_is_read() {
        let hello = vec![4, 0, 0, 8, 0xab, 0xcd, 0, 1];
        for text in [
            "04000008abcd0001",
            "04 00 00 08 AB CD 00 01\r\n",
            "04:00:00:08:ab:cd:00:01\n",
            "0x04 0x00 0X00 0x08 0xab 0xcd 0x00 0x01 # hello",
            "0x04000008abcd0001",
            "\t0400 0008 abcd 0001\t#",
        ] {
            assert_eq!(read(text), [Ok(HexLine { number: 1, bytes: hello.clone() })], "{text:?}");
        }
    }

    #[test]
    fn lines_without_a_message_are_counted_and_passed_over() {
        let text = "# a comment\n\n  \n05\n#06\n07";
        let lines =
            [Ok(HexLine { number: 4, bytes: vec![5] }), Ok(HexLine { number: 6, bytes: vec![7] })];
        assert_eq!(read(text), lines);
    }

    #[test]
    fn an_error_names_line_and_column_and_the_next_line_is_read() {
        let lines = read("01\n02 zz\n03 4\n05 6:07\n1x\n0\u{e9}\n08");
        let shown: Vec<_> = lines
            .iter()
            .map(|line| match line {
                Ok(line) => format!("{line:?}"),
                Err(error) => error.split(": ").next().unwrap().to_owned(),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "HexLine { number: 1, bytes: [1] }",
                "line 2, column 4",
                "line 3, column 4",
                "line 4, column 4",
                "line 5, column 2",
                "line 6, column 2",
                "HexLine { number: 7, bytes: [8] }",
            ]
        );
        assert!(lines[2].as_ref().is_err_and(|error| error.contains("half a byte")));
    }

    #[test]
    fn the_longest_message_is_read_and_one_byte_more_is_an_error() {
        let longest = "ab".repeat(MAX_MESSAGE_BYTES);
        assert!(read(&longest)[0].as_ref().is_ok_and(|line| line.bytes.len() == MAX_MESSAGE_BYTES));
        let longer = format!("{longest}cd\n01");
        let lines = read(&longer);
        assert!(lines[0].as_ref().is_err_and(|error| error.starts_with("line 1, column 131071:")));
        assert!(lines[1].is_ok());
    }

    #[test]
    fn a_line_without_end_is_cut_at_the_bound() {
        let text = format!("{}\n01", " ".repeat(MAX_LINE_BYTES + 1));
        let lines = read(&text);
        assert!(lines[0].as_ref().is_err_and(|error| error.contains("is longer than")));
        assert_eq!(lines[1], Ok(HexLine { number: 2, bytes: vec![1] }));
        let fits = format!("{}\n01", " ".repeat(MAX_LINE_BYTES));
        assert_eq!(read(&fits), [Ok(HexLine { number: 2, bytes: vec![1] })]);
    }

    #[test]
    fn a_failing_input_ends_the_lines() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let lines: Vec<_> = messages(io::BufReader::new(Failing)).collect();
        assert!(matches!(lines[..], [Err(HexError::Io { line: 1, .. })]));
    }
}
