//! A plot as PDF, for papers: lines stay lines at any size, and text can be selected and searched.
//!
//! # What it is
//! A backend of `plotters` that writes PDF operators (ISO 32000-1) with the crate `pdf-writer`.
//! Publishers and printers want all fonts embedded, so the built-in font is.
//!
//! # Coordinates
//! Backends get whole numbers, with y downwards. A point of the page has [`STEPS`] of these units,
//! so rounding is invisible. The page turns y around.

use std::collections::BTreeMap;
use std::convert::Infallible;

use ab_glyph::{Font, FontRef, GlyphId};
use pdf_writer::types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Name, Pdf, Rect, Ref, Str};
use plotters::prelude::{DrawingBackend, IntoDrawingArea};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind, FontTransform,
};

use super::{FONT_BYTES, Plot, PlotError, WIDTH, draw};

/// Steps of a coordinate per point of the page.
const STEPS: u32 = 16;

/// Font size of SVG and PDF, divided by the size that `plotters` gives, which is the height of a
/// line.
const SIZE_OF_LINE: f64 = 1.0 / 1.24;

/// Units of a PDF's glyph widths per font size (§9.2.4).
const GLYPH_UNITS: f32 = 1000.0;

/// Distance of the control points of a quarter circle, divided by its radius.
const QUARTER: f32 = 0.552_285;

const FONT_NAME: Name<'static> = Name(b"BRPLOT+DejaVuSans");
const FONT_IN_PAGE: Name<'static> = Name(b"F1");
const IDENTITY: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// Draws a plot as PDF: one page of the plot's size.
///
/// # Errors
/// [`PlotError`], if drawing fails, which should not happen.
pub fn pdf(plot: &Plot) -> Result<Vec<u8>, PlotError> {
    super::use_font(plot)?;
    let font = FontRef::try_from_slice(FONT_BYTES)
        .map_err(|_| plot.error("the built-in font cannot be read"))?;
    let height = draw::height(plot);
    let mut content = Content::new();
    let step = 1.0 / STEPS as f32;
    content.transform([step, 0.0, 0.0, -step, 0.0, height as f32]);
    let mut page = Page { content, letters: BTreeMap::new() };
    {
        let size = (WIDTH * STEPS, height * STEPS);
        let area = Pen { font: &font, size, page: &mut page }.into_drawing_area();
        draw::draw(plot, &area, STEPS).map_err(|error| plot.error(error))?;
    }
    Ok(file(&font, page, height))
}

struct Page {
    content: Content,
    /// Characters in use, by glyph.
    letters: BTreeMap<u16, char>,
}

/// The backend that draws.
struct Pen<'p> {
    font: &'p FontRef<'static>,
    size: (u32, u32),
    page: &'p mut Page,
}

/// Width of a glyph, divided by the font size.
fn width(font: &FontRef<'static>, glyph: GlyphId) -> f32 {
    font.h_advance_unscaled(glyph) / font.units_per_em().unwrap_or(GLYPH_UNITS)
}

impl Pen<'_> {
    fn fill(&mut self, color: BackendColor) {
        let [r, g, b] = rgb(color);
        self.page.content.set_fill_rgb(r, g, b);
    }

    fn stroke<S: BackendStyle>(&mut self, style: &S) {
        let [r, g, b] = rgb(style.color());
        self.page.content.set_stroke_rgb(r, g, b).set_line_width(style.stroke_width() as f32);
    }

    fn trace(&mut self, path: impl IntoIterator<Item = BackendCoord>) {
        for (nth, (x, y)) in path.into_iter().enumerate() {
            match nth {
                0 => self.page.content.move_to(x as f32, y as f32),
                _ => self.page.content.line_to(x as f32, y as f32),
            };
        }
    }
}

fn rgb(color: BackendColor) -> [f32; 3] {
    let (r, g, b) = color.rgb;
    [r, g, b].map(|part| f32::from(part) / 255.0)
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Pen<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.fill(color);
        self.page.content.rect(x as f32, y as f32, 1.0, 1.0).fill_nonzero();
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let (width, height) = (right - left, bottom - top);
        self.page.content.rect(left as f32, top as f32, width as f32, height as f32);
        match fill {
            true => {
                self.fill(style.color());
                self.page.content.fill_nonzero();
            }
            false => {
                self.stroke(style);
                self.page.content.stroke();
            }
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        self.stroke(style);
        self.trace(path);
        self.page.content.stroke();
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        match fill {
            true => self.fill(style.color()),
            false => self.stroke(style),
        }
        let (x, y, r) = (x as f32, y as f32, radius as f32);
        let control = r * QUARTER;
        let content = &mut self.page.content;
        content.move_to(x + r, y);
        content.cubic_to(x + r, y + control, x + control, y + r, x, y + r);
        content.cubic_to(x - control, y + r, x - r, y + control, x - r, y);
        content.cubic_to(x - r, y - control, x - control, y - r, x, y - r);
        content.cubic_to(x + control, y - r, x + r, y - control, x + r, y);
        match fill {
            true => content.fill_nonzero(),
            false => content.close_and_stroke(),
        };
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        self.fill(style.color());
        self.trace(corners);
        self.page.content.fill_nonzero();
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Drawn {
        let size = (style.size() * SIZE_OF_LINE) as f32;
        let mut glyphs = Vec::new();
        let mut width = 0.0;
        for letter in text.chars() {
            let glyph = self.font.glyph_id(letter);
            self.page.letters.insert(glyph.0, letter);
            glyphs.extend(glyph.0.to_be_bytes());
            width += self::width(self.font, glyph) * size;
        }
        let across = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -width / 2.0,
            HPos::Right => -width,
        };
        // Distance from the anchor down to the baseline. Capitals of this font are 0.73 of its size
        // high.
        let down = size
            * match style.anchor().v_pos {
                VPos::Top => 0.76,
                VPos::Center => 0.365,
                VPos::Bottom => 0.0,
            };
        // Text is upright if y goes upwards. Here y goes downwards, so it is turned around.
        let (cos, sin) = match style.transform() {
            FontTransform::None => (1.0, 0.0),
            FontTransform::Rotate90 => (0.0, 1.0),
            FontTransform::Rotate180 => (-1.0, 0.0),
            FontTransform::Rotate270 => (0.0, -1.0),
        };
        let at = (x as f32 + across * cos - down * sin, y as f32 + across * sin + down * cos);
        self.fill(style.color());
        self.page
            .content
            .begin_text()
            .set_font(FONT_IN_PAGE, size)
            .set_text_matrix([cos, sin, sin, -cos, at.0, at.1])
            .show(Str(&glyphs))
            .end_text();
        Ok(())
    }
}

/// Writes the file: the page with its font.
fn file(font: &FontRef<'static>, page: Page, height: u32) -> Vec<u8> {
    let [catalog, pages, leaf, content, composite, glyphs, descriptor, program, letters] =
        [1, 2, 3, 4, 5, 6, 7, 8, 9].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([leaf]).count(1);
    {
        let mut leaf = pdf.page(leaf);
        leaf.media_box(Rect::new(0.0, 0.0, WIDTH as f32, height as f32));
        leaf.parent(pages).contents(content);
        leaf.resources().fonts().pair(FONT_IN_PAGE, composite);
    }
    pdf.type0_font(composite)
        .base_font(FONT_NAME)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(glyphs)
        .to_unicode(letters);
    {
        let mut glyphs = pdf.cid_font(glyphs);
        glyphs.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(IDENTITY);
        glyphs.font_descriptor(descriptor).cid_to_gid_map_predefined(Name(b"Identity"));
        let mut widths = glyphs.widths();
        for glyph in page.letters.keys() {
            widths.consecutive(*glyph, [width(font, GlyphId(*glyph)) * GLYPH_UNITS]);
        }
    }
    let unit = GLYPH_UNITS / font.units_per_em().unwrap_or(GLYPH_UNITS);
    let (ascent, descent) = (font.ascent_unscaled() * unit, font.descent_unscaled() * unit);
    pdf.font_descriptor(descriptor)
        .name(FONT_NAME)
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(0.0, descent, GLYPH_UNITS, ascent))
        .italic_angle(0.0)
        .ascent(ascent)
        .descent(descent)
        .cap_height(730.0)
        .stem_v(80.0)
        .font_file2(program);
    pdf.stream(program, FONT_BYTES).pair(Name(b"Length1"), FONT_BYTES.len() as i32);
    let mut map = UnicodeCmap::new(Name(b"Letters"), IDENTITY);
    for (glyph, letter) in &page.letters {
        map.pair(*glyph, *letter);
    }
    pdf.stream(letters, &map.finish());
    pdf.stream(content, &page.content.finish());
    pdf.finish()
}
