//! Values as operators write them, read alike from files, flags and the environment.
//!
//! Each function reads one kind of value, or says what would be right.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Values that a setting does not accept: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(/** The values. */ pub Vec<WrongItem>);

/// A value that a setting does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongItem {
    /// Index of the value, from 0.
    pub item: usize,
    /// What would be right: the end of a sentence that begins with "give".
    pub expected: String,
}

impl From<String> for Wrong {
    fn from(expected: String) -> Self {
        Wrong(vec![WrongItem { item: 0, expected }])
    }
}

/// What a reader of one value returns: the value, or what would be right.
pub type Read<T> = Result<T, String>;

/// Applies a reader of one value to each value.
pub fn each<T>(values: &[&str], read: impl Fn(&str) -> Read<T>) -> Result<Vec<T>, Wrong> {
    let (mut right, mut wrong) = (Vec::with_capacity(values.len()), Vec::new());
    for (item, value) in values.iter().enumerate() {
        match read(value) {
            Ok(value) => right.push(value),
            Err(expected) => wrong.push(WrongItem { item, expected }),
        }
    }
    if wrong.is_empty() { Ok(right) } else { Err(Wrong(wrong)) }
}

/// A whole number in a range. `T` is wide enough for the range.
pub fn number<T: TryFrom<u64>>(text: &str, range: RangeInclusive<u64>) -> Read<T> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
}

const BYTE_UNITS: [(&str, u64); 4] =
    [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A number of bytes, with or without a unit: `65536`, `64 KiB`, `64KiB`.
pub fn bytes(text: &str, range: RangeInclusive<u64>) -> Read<usize> {
    with_unit(text, &BYTE_UNITS, 1)
        .filter(|bytes| range.contains(bytes))
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| {
            let (least, most) = (show_bytes(*range.start()), show_bytes(*range.end()));
            format!("a number of bytes from {least} to {most}, in B, KiB, MiB or GiB")
        })
}

/// Formats a number of bytes in the largest unit that is exact.
pub fn show_bytes(bytes: u64) -> String {
    let fits = |&&(_, size): &&(&str, u64)| bytes >= size && bytes.is_multiple_of(size);
    match BYTE_UNITS.iter().find(fits) {
        Some((unit, size)) => format!("{} {unit}", bytes / size),
        None => format!("{bytes} B"),
    }
}

const TIME_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("min", 60_000), ("ms", 1), ("s", 1000)];

/// A time, in seconds if it has no unit: `15`, `15 s`, `1.5s`, `500 ms`, `2 min`, `8 h`.
pub fn time(text: &str, range: RangeInclusive<Duration>) -> Read<Duration> {
    read_time(text).filter(|time| range.contains(time)).ok_or_else(|| {
        let (least, most) = (show_time(*range.start()), show_time(*range.end()));
        format!("a time from {least} to {most}, in ms, s, min or h")
    })
}

/// A time in whole seconds, as OpenFlow counts them: `10`, `10 s`, `10s`, `2 min`.
pub fn whole_seconds<T: TryFrom<u64>>(text: &str, range: RangeInclusive<u64>) -> Read<T> {
    let seconds =
        read_time(text).filter(|time| time.subsec_nanos() == 0).map(|time| time.as_secs());
    let seconds = seconds.filter(|seconds| range.contains(seconds));
    seconds.and_then(|seconds| T::try_from(seconds).ok()).ok_or_else(|| {
        format!(
            "a time in whole seconds from {} s to {} s, such as 10 s or 2 min",
            range.start(),
            range.end()
        )
    })
}

/// A time in whole milliseconds.
fn read_time(text: &str) -> Option<Duration> {
    if let Some(ms) = with_unit(text, &TIME_UNITS, 1000) {
        return Some(Duration::from_millis(ms));
    }
    let unit = TIME_UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (digits, size) = unit.unwrap_or((text, 1000));
    // At most three digits after the point, so that it is exact.
    let (whole, part) = digits.trim_end().split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 3 {
        return None;
    }
    let thousandths: u64 = format!("{part:0<3}").parse().ok()?;
    let ms =
        whole.parse::<u64>().ok()?.checked_mul(size)?.checked_add(thousandths * size / 1000)?;
    let is_whole = (thousandths * size).is_multiple_of(1000);
    is_whole.then_some(Duration::from_millis(ms))
}

/// Formats a time in seconds, or in milliseconds if it is not in whole seconds.
pub fn show_time(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    }
}

/// Reads a whole number with one of the units. `bare` is the size of a number without a unit.
fn with_unit(text: &str, units: &[(&str, u64)], bare: u64) -> Option<u64> {
    let unit = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (digits, size) = unit.unwrap_or((text, bare));
    digits.trim_end().parse::<u64>().ok()?.checked_mul(size)
}

/// One of a few words.
pub fn choice<T: Copy>(text: &str, words: &[(&str, T)]) -> Read<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        one_of(text, &all)
    })
}

/// The word for one of a few values.
pub fn show_choice<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> String {
    words
        .iter()
        .find(|(_, known)| known == value)
        .map_or_else(String::new, |(word, _)| (*word).into())
}

/// "one of a, b", with a guess which one was meant.
pub fn one_of(text: &str, words: &[&str]) -> String {
    let all = words.join(", ");
    match nearest(text, words) {
        Some(word) => format!("one of {all} (did you mean {word}?)"),
        None => format!("one of {all}"),
    }
}

/// The word closest to `text`. `None` if none is close, or if two are equally close.
pub fn nearest<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    /// Minimum similarity of a guess, from 0 to 1.
    const LEAST: f64 = 0.75;
    let mut scored: Vec<(f64, &str)> =
        words.iter().map(|word| (strsim::jaro_winkler(text, word), *word)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    match scored[..] {
        [(best, word), ..] if best > LEAST && scored.get(1).is_none_or(|next| next.0 < best) => {
            Some(word)
        }
        _ => None,
    }
}

/// `ADDRESS:PORT`, IPv6 in brackets.
pub fn address(text: &str) -> Read<SocketAddr> {
    text.parse().map_err(|_| {
        "an address and a port, such as 127.0.0.1:6653, 0.0.0.0:6653 or [::1]:6653".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_optional_and_spaces_too() {
        let range = 4096..=1 << 30;
        for (text, bytes_) in [
            ("65536", 65536),
            ("64 KiB", 65536),
            ("64KiB", 65536),
            ("5000 B", 5000),
            ("1 GiB", 1 << 30),
        ] {
            assert_eq!(bytes(text, range.clone()), Ok(bytes_), "{text}");
        }
        for text in [
            "",
            "KiB",
            "-1",
            "1 TiB",
            "64 kb",
            "1.5 MiB",
            "4095",
            "99999999999999999999 GiB",
            "17179869184 GiB",
        ] {
            let right = "a number of bytes from 4 KiB to 1 GiB, in B, KiB, MiB or GiB";
            assert_eq!(bytes(text, range.clone()), Err(right.to_owned()), "{text}");
        }
        let range = Duration::from_millis(100)..=Duration::from_secs(3600);
        for (text, ms) in [("15", 15_000), ("15 s", 15_000), ("500ms", 500), ("1h", 3_600_000)] {
            assert_eq!(time(text, range.clone()), Ok(Duration::from_millis(ms)), "{text}");
        }
        for (text, ms) in [("1.5 s", 1500), ("0.5", 500), ("1.25min", 75_000), ("2.0 s", 2000)] {
            assert_eq!(time(text, range.clone()), Ok(Duration::from_millis(ms)), "{text}");
        }
        let right = "a time from 100 ms to 3600 s, in ms, s, min or h";
        for text in
            ["99 ms", "", "s", "-1", "1.", ".5", "1.2345 s", "1.5 ms", "1e3", "1.-5", "2 hours"]
        {
            assert_eq!(time(text, range.clone()), Err(right.to_owned()), "{text}");
        }
    }

    #[test]
    fn whole_seconds_have_any_unit_but_no_parts() {
        for (text, seconds) in
            [("10", 10), ("10s", 10), ("10 s", 10), ("2 min", 120), ("0", 0), ("3000 ms", 3)]
        {
            assert_eq!(whole_seconds(text, 0..=120), Ok(seconds), "{text}");
        }
        for text in ["1500 ms", "0.5", "121", "3 min", "", "x", "99999999999999999999"] {
            let right = "a time in whole seconds from 0 s to 120 s, such as 10 s or 2 min";
            assert_eq!(whole_seconds::<u16>(text, 0..=120), Err(right.to_owned()), "{text}");
        }
    }

    #[test]
    fn printed_sizes_and_times_read_back() {
        for bytes_ in [1, 1023, 1024, 1 << 20, (1 << 20) + 1, 3 << 30] {
            assert_eq!(bytes(&show_bytes(bytes_), 0..=u64::MAX), Ok(bytes_ as usize));
        }
        for ms in [0, 1, 999, 1000, 1500, 60_000] {
            let shown = show_time(Duration::from_millis(ms));
            assert_eq!(time(&shown, Duration::ZERO..=Duration::MAX), Ok(Duration::from_millis(ms)));
        }
    }

    #[test]
    fn a_guess_is_made_only_when_it_is_a_good_one() {
        let words = ["coalesce", "immediate"];
        assert_eq!(nearest("imediate", &words), Some("immediate"));
        assert_eq!(nearest("colesce", &words), Some("coalesce"));
        assert_eq!(nearest("xyz", &words), None);
        assert_eq!(nearest("1.1", &["1.0", "1.3"]), None, "either");
    }
}
