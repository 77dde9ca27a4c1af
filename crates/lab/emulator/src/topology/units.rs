//! The text forms of delays, losses and bandwidths.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A share of lost frames, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossRate(u32);

impl LossRate {
    /// No loss.
    pub const NONE: LossRate = LossRate(0);
    const WHOLE: u32 = 1_000_000;

    /// This many of a million frames; more than a million means all.
    #[must_use]
    pub const fn per_million(share: u32) -> LossRate {
        LossRate(if share > Self::WHOLE { Self::WHOLE } else { share })
    }

    /// Number of lost frames of a million.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

impl fmt::Display for LossRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 10_000, self.0 % 10_000);
        if part == 0 {
            return write!(f, "{whole}%");
        }
        let digits = format!("{part:04}");
        write!(f, "{whole}.{}%", digits.trim_end_matches('0'))
    }
}

impl FromStr for LossRate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANT: &str = "a loss is 0% to 100%, with at most four decimals, like 0.1%";
        let number = text.strip_suffix('%').ok_or(WANT)?;
        let millionths = decimal(number, 4).ok_or(WANT)?;
        match u32::try_from(millionths) {
            Ok(share) if share <= Self::WHOLE => Ok(LossRate(share)),
            _ => Err(WANT),
        }
    }
}

/// Bits per second, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkRate(u64);

impl LinkRate {
    /// The fastest link: 1 Pb/s, far more than a nanosecond clock can resolve.
    pub const MAX_BITS_PER_SECOND: u64 = 1_000_000_000_000_000;

    /// This many bits per second; at least 1, at most [`Self::MAX_BITS_PER_SECOND`].
    #[must_use]
    pub fn bits_per_second(bits: u64) -> LinkRate {
        LinkRate(bits.clamp(1, Self::MAX_BITS_PER_SECOND))
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// Time for this many bytes, rounded up to a nanosecond.
    #[must_use]
    pub fn time_of(self, bytes: usize) -> Duration {
        let bits = bytes as u128 * 8 * 1_000_000_000;
        let nanos = bits.div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

const BANDWIDTH_UNITS: [(&str, u64); 4] =
    [("T", 1_000_000_000_000), ("G", 1_000_000_000), ("M", 1_000_000), ("k", 1000)];

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = BANDWIDTH_UNITS.iter().find(|(_, size)| self.0.is_multiple_of(*size));
        let (name, size) = unit.copied().unwrap_or(("", 1));
        write!(f, "{}{name}", self.0 / size)
    }
}

impl FromStr for LinkRate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANT: &str = "a bandwidth is in bits per second, like 500k, 10M, 2.5G or 1T";
        let unit = BANDWIDTH_UNITS.iter().find(|(name, _)| text.ends_with(name));
        let bits = match unit {
            Some((name, size)) => {
                let thousandths = decimal(&text[..text.len() - name.len()], 3).ok_or(WANT)?;
                thousandths.checked_mul(size / 1000).ok_or(WANT)?
            }
            None => decimal(text, 0).ok_or(WANT)?,
        };
        if (1..=Self::MAX_BITS_PER_SECOND).contains(&bits) { Ok(LinkRate(bits)) } else { Err(WANT) }
    }
}

const DELAY_UNITS: [(&str, u64); 4] =
    [("ms", 1_000_000), ("us", 1000), ("ns", 1), ("s", 1_000_000_000)];
/// Maximum delay of a link: an hour.
const MAX_DELAY: Duration = Duration::from_secs(3600);

/// Reads a delay: `1ms`, `2.5us`, `3s`.
pub(super) fn parse_delay(text: &str) -> Result<Duration, &'static str> {
    const WANT: &str =
        "a delay is at most 3600s, with at most three decimals and a unit of ns, us, ms or s";
    let unit = DELAY_UNITS.iter().find(|(name, _)| text.ends_with(name));
    let (name, size) = unit.ok_or(WANT)?;
    let thousandths = decimal(&text[..text.len() - name.len()], 3).ok_or(WANT)?;
    let picos = thousandths.checked_mul(*size).ok_or(WANT)?;
    let delay = Duration::from_nanos(picos / 1000);
    if picos % 1000 != 0 || delay > MAX_DELAY { Err(WANT) } else { Ok(delay) }
}

/// A delay as text, in the largest unit without decimals.
pub(super) struct Delay(pub(super) Duration);

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (name, size) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1)]
            .into_iter()
            .find(|(_, size)| nanos.is_multiple_of(*size))
            .unwrap_or(("ns", 1));
        write!(f, "{}{name}", nanos / size)
    }
}

/// Reads a number with at most `places` decimals, as a multiple of 10^-`places`. Digits only.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || (part.len() > places && text.contains('.')) {
        return None;
    }
    let scale = 10_u64.pow(u32::try_from(places).ok()?);
    let part_scale = 10_u64.pow(u32::try_from(part.len()).ok()?);
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    whole.checked_add(part.parse::<u64>().ok()? * scale / part_scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_written_in_percent() {
        for (text, millionths) in
            [("0%", 0), ("0.1%", 1000), ("12.5%", 125_000), ("0.0001%", 1), ("100%", 1_000_000)]
        {
            let loss: LossRate = text.parse().unwrap();
            assert_eq!((loss.millionths(), loss.to_string().as_str()), (millionths, text));
        }
        for bad in ["", "1", "%", "-1%", "101%", "0.00001%", ".5%", "5.%", "1e1%"] {
            assert!(bad.parse::<LossRate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn bandwidths_have_the_units_of_the_trade() {
        for (text, bits) in
            [("1", 1), ("500k", 500_000), ("10M", 10_000_000), ("40G", 40_000_000_000)]
        {
            let bandwidth: LinkRate = text.parse().unwrap();
            assert_eq!((bandwidth.0, bandwidth.to_string().as_str()), (bits, text));
        }
        assert_eq!("2.5G".parse(), Ok(LinkRate(2_500_000_000)));
        for bad in ["", "0", "0M", "M", "10m", "10Mb", "-1k", "1.2345k", "99999999999999999999"] {
            assert!(bad.parse::<LinkRate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_frame_takes_its_bits_divided_by_the_bandwidth() {
        assert_eq!(LinkRate(10_000_000).time_of(1250), Duration::from_millis(1));
        assert_eq!(LinkRate(3).time_of(1), Duration::from_nanos(2_666_666_667));
    }

    #[test]
    fn delays_are_written_in_the_largest_unit_that_fits() {
        for (text, nanos) in [
            ("0s", 0),
            ("7ns", 7),
            ("1500us", 1_500_000),
            ("2ms", 2_000_000),
            ("3s", 3_000_000_000),
        ] {
            let delay = parse_delay(text).unwrap();
            assert_eq!((delay.as_nanos(), Delay(delay).to_string().as_str()), (nanos, text));
        }
        assert_eq!(parse_delay("0.5ms"), Ok(Duration::from_micros(500)));
        for bad in ["", "1", "ms", "1.5ns", "1m", "-1s", "3601s", "1.0001s"] {
            assert!(parse_delay(bad).is_err(), "{bad}");
        }
    }
}
