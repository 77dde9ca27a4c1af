//! Axes: scales, marks, and the format of numbers.

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic. Numbers that are not above zero are left out.
    Log,
    /// Linear, unless the numbers are far apart (`WIDE`); then logarithmic.
    Auto,
}

/// Ratio of numbers above which an axis has to be logarithmic to show them apart.
pub(super) const WIDE: f64 = 12.0;

/// Format of the numbers of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers, with k, M or G for thousands: `1.5M`.
    Count,
    /// Nanoseconds: `15 µs`.
    Time,
    /// Bytes, with KiB and MiB.
    Bytes,
    /// Plain numbers with two decimals.
    Share,
    /// Shares from 0 to 1: `50%`.
    Percent,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its title, with the unit.
    pub label: String,
    /// Its scale.
    pub scale: Scale,
    /// Format of its numbers.
    pub unit: Unit,
    /// Numbers to mark, the most important first; any if empty. A mark without space is left out.
    pub marks: Vec<f64>,
}

impl Axis {
    /// Creates an axis.
    #[must_use]
    pub fn new(label: impl Into<String>, scale: Scale, unit: Unit) -> Self {
        Axis { label: label.into(), scale, unit, marks: Vec::new() }
    }
}

impl Unit {
    /// Writes a number as it appears at an axis or in a table.
    #[must_use]
    pub fn write(self, number: f64) -> String {
        let prefixed = |steps: &[(f64, &str)], rest: &str| {
            let step = steps.iter().find(|(size, _)| number.abs() >= *size * 0.9999);
            let (size, name) = step.copied().unwrap_or((1.0, rest));
            format!("{}{name}", digits(number / size))
        };
        match self {
            // Three digits would show 1,024 as 1,020.
            Unit::Count if is_short_whole(number) => format!("{number:.0}"),
            Unit::Count => prefixed(&[(1e9, "G"), (1e6, "M"), (1e3, "k")], ""),
            Unit::Time => prefixed(&[(1e9, " s"), (1e6, " ms"), (1e3, " µs")], " ns"),
            Unit::Bytes => prefixed(
                &[(1_073_741_824.0, " GiB"), (1_048_576.0, " MiB"), (1024.0, " KiB")],
                " B",
            ),
            Unit::Share => format!("{number:.2}"),
            Unit::Percent => format!("{:.0}%", number * 100.0),
        }
    }
}

/// Whether a number is whole, has four digits, and is not a multiple of 100.
fn is_short_whole(number: f64) -> bool {
    number.fract() == 0.0 && (1000.0..10_000.0).contains(&number) && number % 100.0 != 0.0
}

/// Writes three significant digits, without zeros at the end.
fn digits(number: f64) -> String {
    let text = match number.abs() {
        size if size >= 99.95 => format!("{number:.0}"),
        size if size >= 9.995 => format!("{number:.1}"),
        size if size >= 0.9995 || size == 0.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// An axis with its range and its marks.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    log: bool,
    from: f64,
    to: f64,
    /// Numbers to mark, with their texts.
    pub(crate) marks: Vec<(f64, String)>,
}

/// Approximate number of marks on a linear axis.
const MARKS: f64 = 6.0;

/// Maximum number of marks on a logarithmic axis.
const MOST_MARKS: usize = 12;

impl Ruler {
    /// Makes an axis that shows these numbers.
    pub(crate) fn of(axis: &Axis, numbers: impl Iterator<Item = f64> + Clone) -> Self {
        let finite = numbers.filter(|number| number.is_finite());
        let positive = finite.clone().filter(|number| *number > 0.0);
        let least = positive.fold(f64::INFINITY, f64::min);
        let most = finite.fold(0.0, f64::max);
        let log = match axis.scale {
            Scale::Linear => false,
            Scale::Log => least.is_finite(),
            Scale::Auto => least.is_finite() && most / least > WIDE,
        };
        let mut ruler = match log {
            true => Ruler::decades(axis.unit, least, most),
            false => Ruler::linear(axis.unit, most),
        };
        if !axis.marks.is_empty() {
            let marks = axis.marks.iter().filter(|mark| ruler.place(**mark).is_some());
            ruler.marks = marks.map(|mark| (*mark, axis.unit.write(*mark))).collect();
        }
        ruler
    }

    fn linear(unit: Unit, most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        // A share ends at one; other numbers get some space above them.
        let whole = matches!(unit, Unit::Share | Unit::Percent) && most <= 1.0;
        let room = if whole { 1.0 } else { most * 1.06 };
        let rough = room / MARKS;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * decade);
        let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(decade * 10.0);
        let to = if whole { 1.0 } else { (room / step).ceil() * step };
        let marks = (0..).map(|nth| f64::from(nth) * step).take_while(|at| *at <= to * 1.0001);
        let marks = marks.map(|at| (at, unit.write(at))).collect();
        Ruler { log: false, from: 0.0, to, marks }
    }

    fn decades(unit: Unit, least: f64, most: f64) -> Self {
        let (low, high) = (least.log10(), most.log10());
        let air = ((high - low) * 0.05).max(0.04);
        let (from, to) = (low - air, high + air);
        let at = |factors: &[f64]| -> Vec<f64> {
            let decades = from.floor() as i32..=to.ceil() as i32;
            let all =
                decades.flat_map(|decade| factors.iter().map(move |f| f * 10f64.powi(decade)));
            all.filter(|mark| (from..=to).contains(&mark.log10())).collect()
        };
        // Takes as many numbers as fit.
        let fine: [&[f64]; 3] = [&[1.0, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0]];
        let marks = fine.iter().map(|factors| at(factors)).find(|marks| marks.len() <= MOST_MARKS);
        let marks = marks.unwrap_or_else(|| at(&[1.0]));
        let marks = marks.into_iter().map(|mark| (mark, unit.write(mark))).collect();
        Ruler { log: true, from, to, marks }
    }

    /// Position of a number on the axis, 0 to 1; `None` if it is outside.
    pub(crate) fn place(&self, number: f64) -> Option<f64> {
        let at = if self.log { number.log10() } else { number };
        let share = (at - self.from) / (self.to - self.from);
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(scale: Scale, numbers: &[f64]) -> Vec<String> {
        let axis = Axis::new("x", scale, Unit::Count);
        Ruler::of(&axis, numbers.iter().copied()).marks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn numbers_are_written_short_with_their_unit() {
        assert_eq!(Unit::Count.write(1_500_000.0), "1.5M");
        assert_eq!(Unit::Count.write(999_999.9), "1M");
        assert_eq!(Unit::Count.write(0.25), "0.25");
        assert_eq!(
            [1024.0, 1500.0, 1024.5].map(|n| Unit::Count.write(n)),
            ["1024", "1.5k", "1.02k"]
        );
        assert_eq!(Unit::Time.write(12_340.0), "12.3 µs");
        assert_eq!(Unit::Time.write(100.0), "100 ns");
        assert_eq!(Unit::Bytes.write(65_536.0), "64 KiB");
        assert_eq!(Unit::Percent.write(0.995), "100%");
        assert_eq!(Unit::Count.write(0.0), "0");
    }

    #[test]
    fn axes_have_round_marks_and_room_for_all() {
        assert_eq!(marks(Scale::Linear, &[4.5]), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(
            marks(Scale::Log, &[1.0, 1000.0]),
            ["1", "2", "5", "10", "20", "50", "100", "200", "500", "1k"]
        );
        assert_eq!(marks(Scale::Auto, &[1.0, 5.0])[0], "0", "not far apart");
        assert_eq!(marks(Scale::Auto, &[1.0, 50.0])[0], "1", "far apart");
        assert_eq!(marks(Scale::Log, &[]), marks(Scale::Linear, &[]), "nothing to show");
    }

    #[test]
    fn a_place_is_a_share_of_the_axis() {
        let ruler = Ruler::of(&Axis::new("", Scale::Log, Unit::Count), [1.0, 100.0].into_iter());
        assert!((ruler.place(10.0).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!((ruler.place(0.0), ruler.place(1e9)), (None, None));
    }
}
