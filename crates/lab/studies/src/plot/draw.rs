//! Draws a plot on any backend: frame, marks, curves, and a legend beside them.

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, DrawingAreaErrorKind, DrawingBackend, PathElement, Polygon,
    RGBColor, Rectangle, Text, TextStyle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, FontTransform, IntoFont, ShapeStyle};

use super::axis::Ruler;
use super::{CurveOwner, CurveShape, FONT, LEAST_HEIGHT, Plot, Point, Series, WIDTH};

const INK: RGBColor = RGBColor(32, 36, 44);
const PALE_INK: RGBColor = RGBColor(96, 104, 118);
const GRID: RGBColor = RGBColor(230, 233, 238);
const FRAME: RGBColor = RGBColor(150, 158, 170);
const CAVEAT: RGBColor = RGBColor(168, 62, 0);

const OURS: RGBColor = RGBColor(20, 92, 204);
const RESPONDER: RGBColor = RGBColor(60, 64, 72);
const PEERS: [RGBColor; 4] =
    [RGBColor(214, 92, 16), RGBColor(16, 138, 84), RGBColor(148, 60, 176), RGBColor(176, 128, 0)];
/// Paler than the colours of curves measured here.
const PUBLISHED: [RGBColor; 8] = [
    RGBColor(196, 110, 110),
    RGBColor(120, 150, 200),
    RGBColor(130, 170, 110),
    RGBColor(190, 150, 90),
    RGBColor(160, 130, 190),
    RGBColor(100, 170, 170),
    RGBColor(200, 120, 170),
    RGBColor(140, 140, 140),
];

/// Lengths in points. The scale converts them to pixels.
const LEFT: i32 = 74;
const TOP: i32 = 46;
const BOTTOM: i32 = 56;
const LEGEND_WIDTH: i32 = 306;
const LEGEND_LINE: i32 = 17;
const GROUP_GAP: i32 = 9;
/// Approximate width of a letter at an axis, and minimum gap between two marks of the lower axis.
const LETTER_WIDTH: i32 = 8;
const MARK_GAP: i32 = 8;
/// Distance from the top of a line to the middle of its small letters.
const LETTERS_MIDDLE: f64 = 6.0;
const TITLE_SIZE: i32 = 19;
const TEXT_SIZE: i32 = 14;
const SMALL_SIZE: i32 = 13;

/// Characters that fit in a line of the legend, and in one of its headings.
const NAME_CHARS: usize = 40;
const GROUP_CHARS: usize = 45;
/// Characters that fit in a line of caveats, which is as wide as the picture.
const CAVEAT_CHARS: usize = 130;
/// Top of the first of these lines, under the title.
const CAVEATS_TOP: i32 = 38;

/// Points of a line that are closer than this, in points of the picture, are drawn as one: a
/// distribution has thousands.
const NEAR: f64 = 0.2;

type Failed<DB> = DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>;
type Area<DB> = DrawingArea<DB, Shift>;

pub(super) fn height(plot: &Plot) -> u32 {
    let legend: i32 = legend(plot).iter().map(|entry| entry.height()).sum();
    LEAST_HEIGHT.max((top(plot) + legend + LEGEND_LINE).unsigned_abs())
}

/// Top of the frame, in points: below the title and the caveats.
fn top(plot: &Plot) -> i32 {
    TOP + caveats(plot).len() as i32 * LEGEND_LINE
}

/// The lines between title and frame.
fn caveats(plot: &Plot) -> Vec<String> {
    plot.caveats.iter().flat_map(|caveat| wrap(caveat, CAVEAT_CHARS)).collect()
}

/// Draws a plot with `scale` pixels per point.
pub(super) fn draw<DB: DrawingBackend>(
    plot: &Plot,
    area: &Area<DB>,
    scale: u32,
) -> Result<(), Failed<DB>> {
    area.fill(&WHITE)?;
    let canvas = Canvas::new(plot, area, scale as i32);
    canvas.frame(plot)?;
    // Measured curves go above published ones, and ours above all.
    for series in plot.series.iter().rev() {
        canvas.series(series)?;
    }
    canvas.legend(plot)
}

struct Canvas<'a, DB: DrawingBackend> {
    area: &'a Area<DB>,
    /// Pixels per point.
    scale: i32,
    x: Ruler,
    y: Ruler,
    /// The frame, in points.
    top: i32,
    right: i32,
    bottom: i32,
}

impl<'a, DB: DrawingBackend> Canvas<'a, DB> {
    fn new(plot: &Plot, area: &'a Area<DB>, scale: i32) -> Self {
        let points = || plot.series.iter().flat_map(points);
        let uprights = plot.series.iter().filter_map(|series| match series.shape {
            CurveShape::Upright(x) => Some(x),
            _ => None,
        });
        let levels = plot.series.iter().filter_map(|series| match series.shape {
            CurveShape::Level(y) => Some(y),
            _ => None,
        });
        let ys = points().flat_map(|point| {
            let (least, most) = point.spread.unwrap_or((point.y, point.y));
            [least, point.y, most]
        });
        Canvas {
            area,
            scale,
            x: Ruler::of(&plot.x, points().map(|point| point.x).chain(uprights)),
            y: Ruler::of(&plot.y, ys.chain(levels)),
            top: top(plot),
            right: WIDTH as i32 - LEGEND_WIDTH,
            bottom: height(plot) as i32 - BOTTOM,
        }
    }

    /// Position of a data point in the picture, in points; `None` if it is outside an axis.
    fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let (x, y) = (self.x.place(x)?, self.y.place(y)?);
        let (width, height) = (f64::from(self.right - LEFT), f64::from(self.bottom - self.top));
        Some((f64::from(LEFT) + x * width, f64::from(self.bottom) - y * height))
    }

    fn pixel(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let scale = f64::from(self.scale);
        ((x * scale).round() as i32, (y * scale).round() as i32)
    }

    fn path(&self, points: &[(f64, f64)], style: ShapeStyle) -> Result<(), Failed<DB>> {
        let pixels: Vec<_> = points.iter().map(|point| self.pixel(*point)).collect();
        self.area.draw(&PathElement::new(pixels, style))
    }

    fn line(&self, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Result<(), Failed<DB>> {
        let points = [from, to].map(|(x, y)| (f64::from(x), f64::from(y)));
        self.path(&points, self.stroke(color, 1.0))
    }

    fn stroke(&self, color: RGBColor, width: f64) -> ShapeStyle {
        color.stroke_width((width * f64::from(self.scale)).round().max(1.0) as u32)
    }

    fn text(
        &self,
        text: &str,
        (x, y): (i32, i32),
        size: i32,
        color: RGBColor,
        pos: (HPos, VPos),
    ) -> Result<(), Failed<DB>> {
        self.written(text, (x, y), font(size * self.scale), color, pos)
    }

    fn written(
        &self,
        text: &str,
        (x, y): (i32, i32),
        font: FontDesc<'static>,
        color: RGBColor,
        (horizontal, vertical): (HPos, VPos),
    ) -> Result<(), Failed<DB>> {
        let style = TextStyle::from(font).color(&color).pos(Pos::new(horizontal, vertical));
        self.area.draw(&Text::new(text.to_owned(), (x * self.scale, y * self.scale), style))
    }

    fn frame(&self, plot: &Plot) -> Result<(), Failed<DB>> {
        self.text(&plot.title, (LEFT, 12), TITLE_SIZE, INK, (HPos::Left, VPos::Top))?;
        for (nth, line) in caveats(plot).iter().enumerate() {
            let at = (LEFT, CAVEATS_TOP + nth as i32 * LEGEND_LINE);
            self.text(line, at, SMALL_SIZE, CAVEAT, (HPos::Left, VPos::Top))?;
        }
        let mut taken: Vec<(i32, i32)> = Vec::new();
        for (at, text) in &self.x.marks {
            let Some(share) = self.x.place(*at) else { continue };
            let x = LEFT + (share * f64::from(self.right - LEFT)).round() as i32;
            let half = (text.chars().count() as i32 * LETTER_WIDTH + MARK_GAP) / 2;
            if taken.iter().any(|(from, to)| x - half < *to && x + half > *from) {
                continue;
            }
            taken.push((x - half, x + half));
            self.line((x, self.top), (x, self.bottom), GRID)?;
            self.text(text, (x, self.bottom + 7), TEXT_SIZE, INK, (HPos::Center, VPos::Top))?;
        }
        for (at, text) in &self.y.marks {
            let Some(share) = self.y.place(*at) else { continue };
            let y = self.bottom - (share * f64::from(self.bottom - self.top)).round() as i32;
            self.line((LEFT, y), (self.right, y), GRID)?;
            self.text(text, (LEFT - 7, y), TEXT_SIZE, INK, (HPos::Right, VPos::Center))?;
        }
        self.line((LEFT, self.top), (LEFT, self.bottom), FRAME)?;
        self.line((LEFT, self.bottom), (self.right, self.bottom), FRAME)?;
        let (middle, under) = ((LEFT + self.right) / 2, self.bottom + 30);
        self.text(&plot.x.label, (middle, under), TEXT_SIZE, INK, (HPos::Center, VPos::Top))?;
        let font = font(TEXT_SIZE * self.scale).transform(FontTransform::Rotate270);
        let at = (10, (self.top + self.bottom) / 2);
        self.written(&plot.y.label, at, font, INK, (HPos::Center, VPos::Top))
    }

    fn series(&self, series: &Series) -> Result<(), Failed<DB>> {
        let look = CurveLook::of(series);
        match &series.shape {
            CurveShape::Curve(points) => {
                self.polyline(points, &look)?;
                for point in points {
                    self.spread(point, &look)?;
                    if let Some(at) = self.place(point.x, point.y) {
                        self.mark(at, &look, point.hollow)?;
                    }
                }
                Ok(())
            }
            CurveShape::Line(points) => {
                let placed = points.iter().filter_map(|p| self.place(p.x, p.y));
                self.dashes(&thinned(placed), &look)
            }
            CurveShape::Level(y) => {
                let Some(share) = self.y.place(*y) else { return Ok(()) };
                let y = f64::from(self.bottom) - share * f64::from(self.bottom - self.top);
                self.dashes(&[(f64::from(LEFT), y), (f64::from(self.right), y)], &look)
            }
            CurveShape::Upright(x) => {
                let Some(share) = self.x.place(*x) else { return Ok(()) };
                let x = f64::from(LEFT) + share * f64::from(self.right - LEFT);
                self.dashes(&[(x, f64::from(self.top)), (x, f64::from(self.bottom))], &look)
            }
        }
    }

    fn polyline(&self, points: &[Point], look: &CurveLook) -> Result<(), Failed<DB>> {
        let placed: Vec<_> = points.iter().filter_map(|p| self.place(p.x, p.y)).collect();
        self.dashes(&placed, look)
    }

    /// Draws a line through the points, dashed if its look says so.
    fn dashes(&self, points: &[(f64, f64)], look: &CurveLook) -> Result<(), Failed<DB>> {
        let style = self.stroke(look.color, look.width);
        let Some((on, off)) = look.dash else {
            return if points.len() > 1 { self.path(points, style) } else { Ok(()) };
        };
        let mut walked = 0.0;
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            let length = dx.hypot(dy);
            if length == 0.0 {
                continue;
            }
            let at = |d: f64| (from.0 + dx * d / length, from.1 + dy * d / length);
            let mut done = 0.0;
            while done < length {
                let phase: f64 = walked % (on + off);
                let left = if phase < on { on - phase } else { on + off - phase };
                // Never zero, so that the walk ends.
                let step = left.min(length - done).max(0.01);
                if phase < on {
                    self.path(&[at(done), at((done + step).min(length))], style)?;
                }
                done += step;
                walked += step;
            }
        }
        Ok(())
    }

    /// Draws the spread of several runs, from minimum to maximum.
    fn spread(&self, point: &Point, look: &CurveLook) -> Result<(), Failed<DB>> {
        let Some((least, most)) = point.spread else { return Ok(()) };
        let (Some(low), Some(high)) = (self.place(point.x, least), self.place(point.x, most))
        else {
            return Ok(());
        };
        let style = self.stroke(look.color, 1.0);
        for y in [low.1, high.1] {
            self.path(&[(low.0 - 3.0, y), (low.0 + 3.0, y)], style)?;
        }
        self.path(&[low, high], style)
    }

    fn mark(&self, (x, y): (f64, f64), look: &CurveLook, hollow: bool) -> Result<(), Failed<DB>> {
        let size = look.mark_size;
        let outline = self.stroke(look.color, 1.5);
        let fill = if hollow { WHITE.filled() } else { look.color.filled() };
        let corners = match look.mark {
            Mark::Circle => {
                let (center, radius) = (self.pixel((x, y)), (size * f64::from(self.scale)) as i32);
                self.area.draw(&Circle::new(center, radius, fill))?;
                return self.area.draw(&Circle::new(center, radius, outline));
            }
            Mark::Square => vec![(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)],
            Mark::Triangle => vec![(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
            Mark::Diamond => vec![(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        };
        let mut corners: Vec<_> = corners
            .into_iter()
            .map(|(dx, dy)| self.pixel((x + dx * size, y + dy * size)))
            .collect();
        self.area.draw(&Polygon::new(corners.clone(), fill))?;
        corners.extend(corners.first().copied());
        self.area.draw(&PathElement::new(corners, outline))
    }

    fn legend(&self, plot: &Plot) -> Result<(), Failed<DB>> {
        let left = self.right + 20;
        let mut y = self.top;
        for entry in legend(plot) {
            match &entry {
                LegendEntry::Group(lines) => {
                    for (nth, line) in lines.iter().enumerate() {
                        let at = (left, y + GROUP_GAP + nth as i32 * LEGEND_LINE);
                        self.text(line, at, SMALL_SIZE, PALE_INK, (HPos::Left, VPos::Top))?;
                    }
                }
                LegendEntry::Series(series, lines) => {
                    let look = CurveLook::of(series);
                    let middle = f64::from(y) + LETTERS_MIDDLE;
                    let (from, to) = (f64::from(left), f64::from(left) + 26.0);
                    self.dashes(&[(from, middle), (to, middle)], &look)?;
                    if matches!(series.shape, CurveShape::Curve(_)) {
                        self.mark((f64::midpoint(from, to), middle), &look, false)?;
                    }
                    for (nth, line) in lines.iter().enumerate() {
                        let at = (left + 34, y + nth as i32 * LEGEND_LINE);
                        self.text(line, at, SMALL_SIZE, INK, (HPos::Left, VPos::Top))?;
                    }
                }
                LegendEntry::Hollow(lines) => {
                    let look = CurveLook {
                        color: PALE_INK,
                        ..CurveLook::of_whose(CurveOwner::Ours, false)
                    };
                    let at = (f64::from(left) + 13.0, f64::from(y + GROUP_GAP) + LETTERS_MIDDLE);
                    self.mark(at, &look, true)?;
                    for (nth, line) in lines.iter().enumerate() {
                        let at = (left + 34, y + GROUP_GAP + nth as i32 * LEGEND_LINE);
                        self.text(line, at, SMALL_SIZE, PALE_INK, (HPos::Left, VPos::Top))?;
                    }
                }
            }
            y += entry.height();
        }
        let corner = (WIDTH as i32 * self.scale - 1, height(plot) as i32 * self.scale - 1);
        self.area.draw(&Rectangle::new([(0, 0), corner], GRID.stroke_width(1)))
    }
}

/// Returns the points of a line that can be seen apart, including the first and the last.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut last = None;
    for point in points {
        let (x, y) = kept.last().copied().unwrap_or((f64::INFINITY, f64::INFINITY));
        if (point.0 - x).abs() >= NEAR || (point.1 - y).abs() >= NEAR {
            kept.push(point);
            last = None;
        } else {
            last = Some(point);
        }
    }
    kept.extend(last);
    kept
}

fn points(series: &Series) -> impl Iterator<Item = Point> + Clone + '_ {
    let points: &[Point] = match &series.shape {
        CurveShape::Curve(points) | CurveShape::Line(points) => points,
        CurveShape::Level(_) | CurveShape::Upright(_) => &[],
    };
    points.iter().copied()
}

fn font(size: i32) -> FontDesc<'static> {
    FontDesc::new(FontFamily::Name(FONT), f64::from(size), FontStyle::Normal).into_font()
}

struct CurveLook {
    color: RGBColor,
    width: f64,
    dash: Option<(f64, f64)>,
    mark: Mark,
    mark_size: f64,
}

#[derive(Clone, Copy)]
enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
}

impl CurveLook {
    fn of(series: &Series) -> CurveLook {
        CurveLook::of_whose(series.whose, series.second)
    }

    fn of_whose(whose: CurveOwner, second: bool) -> CurveLook {
        let dash = second.then_some((7.0, 4.0));
        let full = |color, width, mark| CurveLook { color, width, dash, mark, mark_size: 4.0 };
        match whose {
            CurveOwner::Ours => full(OURS, 2.5, Mark::Circle),
            CurveOwner::Responder => full(RESPONDER, 1.5, Mark::Square),
            CurveOwner::Peer(n) => full(PEERS[n % PEERS.len()], 2.0, Mark::Triangle),
            CurveOwner::Published(n) => CurveLook {
                color: PUBLISHED[n % PUBLISHED.len()],
                width: 1.5,
                dash: Some((3.0, 3.0)),
                mark: Mark::Diamond,
                mark_size: 3.5,
            },
        }
    }
}

enum LegendEntry<'a> {
    Group(Vec<String>),
    Series(&'a Series, Vec<String>),
    Hollow(Vec<String>),
}

impl LegendEntry<'_> {
    fn height(&self) -> i32 {
        match self {
            LegendEntry::Group(lines) | LegendEntry::Hollow(lines) => {
                GROUP_GAP + lines.len() as i32 * LEGEND_LINE
            }
            LegendEntry::Series(_, lines) => lines.len() as i32 * LEGEND_LINE,
        }
    }
}

fn legend(plot: &Plot) -> Vec<LegendEntry<'_>> {
    let mut entries = Vec::new();
    let mut group = "";
    for series in &plot.series {
        if series.group != group {
            group = &series.group;
            entries.push(LegendEntry::Group(wrap(group, GROUP_CHARS)));
        }
        entries.push(LegendEntry::Series(series, wrap(&series.name, NAME_CHARS)));
    }
    if plot.series.iter().flat_map(points).any(|point| point.hollow) {
        let text =
            "hollow: generator-bound. The generator was busier, so the rate is only a minimum.";
        entries.push(LegendEntry::Hollow(wrap(text, NAME_CHARS)));
    }
    entries
}

/// Breaks a text between words into lines of at most `most` characters.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= most {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
