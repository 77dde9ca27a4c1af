//! The numbers of a plot as CSV (RFC 4180), for spreadsheets and other plotting programs.

use csv::WriterBuilder;

use super::{CurveShape, Plot, PlotError, Point, Unit};

/// Writes a plot's numbers: a row for each point, with everything that the picture shows of it.
///
/// The columns are the curve's name, its heading in the legend, x, y, minimum and maximum of the
/// runs (empty for a single run), and whether the generator limited the rate. The columns x and y
/// have the names of the axes, with their units. A level has no x, and a bound has no y.
///
/// # Errors
/// [`PlotError`], if writing fails, which should not happen.
pub fn csv(plot: &Plot) -> Result<String, PlotError> {
    let mut writer = WriterBuilder::new().from_writer(Vec::new());
    let head = ["curve", "group"].map(str::to_owned).into_iter();
    let axes = [&plot.x, &plot.y].map(|axis| match unit(axis.unit) {
        "" => axis.label.clone(),
        unit => format!("{} [{unit}]", axis.label),
    });
    let rest = ["minimum", "maximum", "generator_bound"].map(str::to_owned);
    writer.write_record(head.chain(axes).chain(rest)).map_err(|error| plot.error(error))?;
    for series in &plot.series {
        let mut row = |x: String, y: String, point: Option<&Point>| {
            let spread = point.and_then(|point| point.spread);
            let (least, most) =
                spread.map_or_else(Default::default, |(a, b)| (a.to_string(), b.to_string()));
            let hollow = point.is_some_and(|point| point.hollow).to_string();
            let cells = [&series.name, &series.group, &x, &y, &least, &most, &hollow];
            writer.write_record(cells).map_err(|error| plot.error(error))
        };
        match &series.shape {
            CurveShape::Curve(points) | CurveShape::Line(points) => {
                for point in points {
                    row(point.x.to_string(), point.y.to_string(), Some(point))?;
                }
            }
            CurveShape::Level(y) => row(String::new(), y.to_string(), None)?,
            CurveShape::Upright(x) => row(x.to_string(), String::new(), None)?,
        }
    }
    let bytes = writer.into_inner().map_err(|error| plot.error(error))?;
    String::from_utf8(bytes).map_err(|error| plot.error(error))
}

/// The unit of an axis, for the heading of its column.
const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "ns",
        Unit::Bytes => "bytes",
        Unit::Percent => "share, 0 to 1",
        Unit::Count | Unit::Share => "",
    }
}
