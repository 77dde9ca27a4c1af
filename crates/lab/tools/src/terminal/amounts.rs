//! Amounts in a form that is easy to read.

use std::fmt;
use std::time::Duration;

/// Minutes and seconds: `01:30`.
pub struct MinutesSeconds(pub Duration);

impl fmt::Display for MinutesSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        write!(f, "{:02}:{:02}", seconds / 60, seconds % 60)
    }
}

/// A number of at most four characters and its magnitude: `12.3 k`, `940`.
pub struct ShortNumber(pub f64);

impl fmt::Display for ShortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bounds are for the rounded number: 999.6 would print as "1000".
        let (number, unit) = match self.0 {
            n if n >= 999.5e6 => (n / 1e9, " G"),
            n if n >= 999.5e3 => (n / 1e6, " M"),
            n if n >= 999.5 => (n / 1e3, " k"),
            n => return f.pad(&format!("{n:.0}")),
        };
        let text = if number < 99.95 {
            format!("{number:.1}{unit}")
        } else {
            format!("{number:.0}{unit}")
        };
        f.pad(&text)
    }
}

/// Bits per second: `94.1 Mb/s`.
pub struct BitRate(pub f64);

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_unit(self.0, "b/s"))
    }
}

/// A number of bytes: `11.8 MB`.
pub struct ByteCount(pub u64);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&with_unit(self.0 as f64, "B"))
    }
}

fn with_unit(amount: f64, unit: &str) -> String {
    let short = ShortNumber(amount).to_string();
    if short.contains(' ') { format!("{short}{unit}") } else { format!("{short} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0.0, "0"),
            (940.2, "940"),
            (1234.0, "1.2 k"),
            (99_960.0, "100 k"),
            (123_456.0, "123 k"),
            (999_700.0, "1.0 M"),
            (94.1e6, "94.1 M"),
        ] {
            assert_eq!(ShortNumber(number).to_string(), text);
        }
        assert_eq!(BitRate(94.1e6).to_string(), "94.1 Mb/s");
        assert_eq!(ByteCount(11_800_000).to_string(), "11.8 MB");
        assert_eq!(BitRate(0.0).to_string(), "0 b/s");
        assert_eq!(MinutesSeconds(Duration::from_secs(90)).to_string(), "01:30");
    }
}
