//! Plots as data, and as pictures of them: SVG for the report, PNG for slides, PDF for papers.
//!
//! # What it is
//! A [`Plot`] says which curves there are, on which axes, and whose they are. [`svg`], [`png()`] and
//! [`pdf()`] draw it. All come from the same code (`draw`), on backends of the crate `plotters`.
//! [`csv()`] writes its numbers.
//!
//! # What it is not
//! It knows nothing of experiments, and reads and writes no files.
//!
//! # Fonts
//! Letters have to be measured, and for PNG drawn, on machines that have no fonts at all. So one is
//! built in: DejaVu Sans, reduced to the characters that are used (`fonts/LICENSE`). An SVG names
//! `sans-serif`, and is shown in the reader's own. A PDF carries the built-in one.

mod axis;
mod csv;
mod draw;
mod pdf;

pub use self::axis::{Axis, Scale, Unit};
pub use self::csv::csv;
pub use self::pdf::pdf;

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::prelude::IntoDrawingArea;
use plotters::style::{FontStyle, register_font};

/// The width of a plot, in points of an SVG.
pub const WIDTH: u32 = 980;

/// Minimum height of a plot; one with a long legend is higher.
pub const LEAST_HEIGHT: u32 = 440;

/// Pixels of a PNG for each point.
const PNG_SCALE: u32 = 2;

/// The name that plots call their font by.
pub(crate) const FONT: &str = "sans-serif";

const FONT_BYTES: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");

/// Whose a curve is: it decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The controller that the suite is about.
    Ours,
    /// The canned responder's: what the machine allows.
    Responder,
    /// That of another controller that was run, the n-th.
    Peer(usize),
    /// Published by a study, measured on other hardware; the n-th in this plot.
    Published(usize),
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// The minimum and the maximum of several runs.
    pub spread: Option<(f64, f64)>,
    /// It is no result: the generator set the pace.
    pub hollow: bool,
}

impl Point {
    /// A point without a spread.
    #[must_use]
    pub const fn at(x: f64, y: f64) -> Self {
        Point { x, y, spread: None, hollow: false }
    }
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Points with lines between them.
    Curve(Vec<Point>),
    /// A line without marks: many points, such as a distribution.
    Line(Vec<Point>),
    /// A level for all x: one number that was published without one.
    Level(f64),
    /// A bound at some x, such as "under 10 ms" in a distribution of latencies.
    Upright(f64),
}

/// A curve with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The heading under which it stands there.
    pub group: String,
    /// Whose it is.
    pub whose: Whose,
    /// A second curve of the same owner, drawn with dashes.
    pub second: bool,
    /// What is drawn.
    pub shape: Shape,
}

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Its file's name, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What a reader has to know who sees nothing but the picture, such as that the machine was busy.
    pub caveats: Vec<String>,
    /// The axis at the bottom.
    pub x: Axis,
    /// The axis at the left.
    pub y: Axis,
    /// What is in it, in the order of the legend.
    pub series: Vec<Series>,
}

/// Why a plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the plot {plot} could not be drawn: {why}; this is a fault of the program")]
pub struct PlotError {
    plot: String,
    why: String,
}

impl Plot {
    fn error(&self, why: impl ToString) -> PlotError {
        PlotError { plot: self.name.clone(), why: why.to_string() }
    }
}

/// A plot as SVG.
///
/// # Errors
/// [`PlotError`], if a backend fails, which it should not.
pub fn svg(plot: &Plot) -> Result<String, PlotError> {
    use_font(plot)?;
    let mut text = String::new();
    {
        let size = (WIDTH, draw::height(plot));
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw::draw(plot, &area, 1).map_err(|error| plot.error(error))?;
        area.present().map_err(|error| plot.error(error))?;
    }
    Ok(text)
}

/// A plot as PNG, with twice as many pixels each way as the SVG has points.
///
/// # Errors
/// [`PlotError`], if a backend fails, which it should not.
pub fn png(plot: &Plot) -> Result<Vec<u8>, PlotError> {
    use_font(plot)?;
    let (width, height) = (WIDTH * PNG_SCALE, draw::height(plot) * PNG_SCALE);
    let mut pixels = vec![0; (width * height * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        draw::draw(plot, &area, PNG_SCALE).map_err(|error| plot.error(error))?;
        area.present().map_err(|error| plot.error(error))?;
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(|error| plot.error(error))?;
    writer.write_image_data(&pixels).map_err(|error| plot.error(error))?;
    writer.finish().map_err(|error| plot.error(error))?;
    Ok(file)
}

fn use_font(plot: &Plot) -> Result<(), PlotError> {
    register_font(FONT, FontStyle::Normal, FONT_BYTES)
        .map_err(|_| plot.error("the built-in font cannot be read"))
}

#[cfg(test)]
mod tests;
