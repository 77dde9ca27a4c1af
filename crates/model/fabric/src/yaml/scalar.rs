//! Plain scalars: which of them are numbers, truth values, dates or nothing.
//!
//! The rules are those of ruamel.yaml 0.18 for YAML 1.2, which Faucet loads its files with. `0x1f`,
//! `0o17`, `0b11` and `1_000` are whole numbers, `010` is ten. `yes`, `no`, `on` and `off` are
//! text, and so is `12:34`. `2001-02-03` is a date.

use super::Scalar;

/// Resolves a plain scalar.
pub(super) fn plain(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        _ => {}
    }
    if let Some(number) = int(text) {
        return Scalar::Int(number);
    }
    if let Some(number) = float(text) {
        return Scalar::Float(number);
    }
    if is_date(text) { Scalar::Date(text.to_owned()) } else { Scalar::Text(text.into()) }
}

/// Splits a sign off.
fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// A whole number, at the ends of the range if it is larger.
pub(super) fn int(text: &str) -> Option<i128> {
    let (is_negative, digits) = sign(text);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x', ..] => (16, &digits[2..]),
        [b'0', b'o', ..] => (8, &digits[2..]),
        [b'0', b'b', ..] => (2, &digits[2..]),
        _ => (10, digits),
    };
    let is_digit = |c: char| c == '_' || c.is_digit(radix);
    if digits.is_empty() || !digits.chars().all(is_digit) {
        return None;
    }
    let mut number: i128 = 0;
    let mut count = 0;
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        count += 1;
        number = number.saturating_mul(radix.into()).saturating_add(digit.into());
    }
    // `_` alone is no number; ruamel fails on it.
    (count > 0).then(|| if is_negative { number.saturating_neg() } else { number })
}

/// A number with a point or an exponent.
fn float(text: &str) -> Option<f64> {
    let (_, rest) = sign(text);
    match rest {
        ".inf" | ".Inf" | ".INF" => {
            return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        ".nan" | ".NaN" | ".NAN" if rest == text => return Some(f64::NAN),
        _ => {}
    }
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (rest, None),
    };
    if let Some(exponent) = exponent {
        let (_, digits) = sign(exponent);
        if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
    }
    let are_digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit() || c == b'_');
    let is_right = match mantissa.split_once('.') {
        Some(("", part)) => !part.is_empty() && are_digits(part) && part.bytes().any(is_digit),
        Some((whole, part)) => {
            whole.starts_with(|c: char| c.is_ascii_digit()) && are_digits(whole) && are_digits(part)
        }
        None => {
            exponent.is_some()
                && mantissa.starts_with(|c: char| c.is_ascii_digit())
                && are_digits(mantissa)
        }
    };
    is_right.then(|| text.replace('_', "").parse().ok()).flatten()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// `YYYY-MM-DD`, alone or with a time behind it.
fn is_date(text: &str) -> bool {
    let shape = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, want)| match want {
                b'0' => byte.is_ascii_digit(),
                want => byte == want,
            })
    };
    if shape(text, "0000-00-00") {
        return true;
    }
    let Some((date, time)) = text.split_once(['T', 't', ' ', '\t']) else { return false };
    let mut parts = date.split('-');
    let short = |part: Option<&str>, most| {
        part.is_some_and(|part| (1..=most).contains(&part.len()) && part.bytes().all(is_digit))
    };
    let is_day = parts.next().is_some_and(|year| shape(year, "0000"))
        && short(parts.next(), 2)
        && short(parts.next(), 2)
        && parts.next().is_none();
    let time = time.trim_start();
    let time = if time.as_bytes().get(1) == Some(&b':') { format!("0{time}") } else { time.into() };
    is_day && time.get(..8).is_some_and(|time| shape(time, "00:00:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_yaml_1_2_as_ruamel_reads_it() {
        for (text, number) in [
            ("0", 0),
            ("1", 1),
            ("-7", -7),
            ("+7", 7),
            ("0x1f", 31),
            ("0xCAFEF00D", 0xcafe_f00d),
            ("0o17", 15),
            ("0b101", 5),
            ("010", 10),
            ("1_000", 1000),
            ("0xffffffffffffffff", u64::MAX.into()),
            ("0xfffffffffffffffffffffffffffffffffffffff", i128::MAX),
        ] {
            assert_eq!(plain(text), Scalar::Int(number), "{text}");
        }
        for (text, number) in [("1.0", 1.0), ("5.5", 5.5), (".5", 0.5), ("1e3", 1e3), ("1.", 1.0)] {
            assert_eq!(plain(text), Scalar::Float(number), "{text}");
        }
    }

    #[test]
    fn words_of_yaml_1_1_are_text() {
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "12:34",
            "0x",
            "0xg",
            "1.2.3",
            "1:2:3:4:5:6",
            "_",
            "<<x",
            "=",
            "e3",
            "._",
            "-",
            "00:11:22:33:44:55",
            "nULL",
            "tRUE",
            "1e",
            "10.0.0.1",
        ] {
            assert_eq!(plain(text), Scalar::Text(text.into()), "{text}");
        }
    }

    #[test]
    fn dates_nothing_and_truth_are_themselves() {
        assert_eq!(plain("1967-07-31"), Scalar::Date("1967-07-31".into()));
        assert_eq!(plain("2001-2-3 4:05:06"), Scalar::Date("2001-2-3 4:05:06".into()));
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(plain(text), Scalar::Null, "{text}");
        }
        assert_eq!(plain("True"), Scalar::Bool(true));
        assert_eq!(plain("FALSE"), Scalar::Bool(false));
    }
}
