//! Plots as data, and pictures of them: SVG for the report, PNG for slides, PDF for papers.
//!
//! # What it is
//! A [`Plot`] lists the curves, their axes and their owners. [`svg`], [`png()`] and [`pdf()`] draw
//! it. They share the same code (`draw`), on backends of the crate `plotters`. [`csv()`] writes its
//! numbers.
//!
//! # What it is not
//! It does not depend on experiments, and reads and writes no files.
//!
//! # Fonts
//! Text has to be measured, and for PNG drawn, even on machines without fonts. So one font is built
//! in: DejaVu Sans, reduced to the characters in use (`fonts/LICENSE`). An SVG names `sans-serif`,
//! and is shown in a font of the reader's machine. A PDF embeds the built-in font.

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

/// Width of a plot, in points of an SVG.
pub const WIDTH: u32 = 980;

/// Minimum height of a plot; one with a long legend is higher.
pub const LEAST_HEIGHT: u32 = 440;

/// Pixels of a PNG per point.
const PNG_SCALE: u32 = 2;

/// The font name that plots use.
pub(crate) const FONT: &str = "sans-serif";

const FONT_BYTES: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");

/// Owner of a curve, which decides its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveOwner {
    /// The controller that the suite measures.
    Ours,
    /// The canned responder: the limit of the machine.
    Responder,
    /// The n-th other controller that was run.
    Peer(usize),
    /// Published by a study, measured on other hardware; the n-th in this plot.
    Published(usize),
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position on the x axis.
    pub x: f64,
    /// Position on the y axis.
    pub y: f64,
    /// Minimum and maximum of several runs.
    pub spread: Option<(f64, f64)>,
    /// Not a result: the generator limited the rate.
    pub hollow: bool,
}

impl Point {
    /// Creates a point without a spread.
    #[must_use]
    pub const fn at(x: f64, y: f64) -> Self {
        Point { x, y, spread: None, hollow: false }
    }
}

/// Shape of a curve.
#[derive(Clone, Debug, PartialEq)]
pub enum CurveShape {
    /// Points with lines between them.
    Curve(Vec<Point>),
    /// A line without marks, for many points, such as a distribution.
    Line(Vec<Point>),
    /// A level for all x, for a published number without an x.
    Level(f64),
    /// A bound at an x, such as "under 10 ms" in a distribution of latencies.
    Upright(f64),
}

/// A curve with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its heading in the legend.
    pub group: String,
    /// Its owner.
    pub whose: CurveOwner,
    /// Whether it is a second curve of the same owner, which is dashed.
    pub second: bool,
    /// Its shape.
    pub shape: CurveShape,
}

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Name of its file, without extension.
    pub name: String,
    /// Title of the picture.
    pub title: String,
    /// Warnings for readers who see only the picture, such as that the machine was busy.
    pub caveats: Vec<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, in the order of the legend.
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

/// Draws a plot as SVG.
///
/// # Errors
/// [`PlotError`], if a backend fails, which should not happen.
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

/// Draws a plot as PNG, with two pixels per point of the SVG in each direction.
///
/// # Errors
/// [`PlotError`], if a backend fails, which should not happen.
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
