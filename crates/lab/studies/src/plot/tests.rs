//! Pictures contain all of the data.

use super::*;

fn plot() -> Plot {
    let series = |name: &str, group: &str, whose, shape| Series {
        name: name.into(),
        group: group.into(),
        whose,
        second: false,
        shape,
    };
    let spread = Point { spread: Some((2e6, 4e6)), hollow: true, ..Point::at(64.0, 3e6) };
    Plot {
        name: "rate".into(),
        title: "Rate & more".into(),
        caveats: vec!["quick: an impression".into()],
        x: Axis::new("switches", Scale::Log, Unit::Count),
        y: Axis::new("flow set-ups per second", Scale::Auto, Unit::Count),
        series: vec![
            series(
                "bellrock",
                "here",
                CurveOwner::Ours,
                CurveShape::Curve(vec![Point::at(16.0, 4e6), spread]),
            ),
            series(
                "a <peer>",
                "here",
                CurveOwner::Peer(0),
                CurveShape::Curve(vec![Point::at(16.0, 1e5)]),
            ),
            series("Beacon", "NUST 2013", CurveOwner::Published(0), CurveShape::Level(2e6)),
            series("a bound", "NUST 2013", CurveOwner::Published(1), CurveShape::Upright(32.0)),
            series(
                "many",
                "here",
                CurveOwner::Responder,
                CurveShape::Line(vec![Point::at(16.0, 5e6); 2]),
            ),
        ],
    }
}

#[test]
fn an_svg_has_all_names_axes_and_marks() {
    let text = svg(&plot()).unwrap();
    for part in ["Rate &amp; more", "switches", "flow set-ups per second", "1M", "50"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(text.contains("quick: an impression"), "what a reader has to know");
    for part in ["bellrock", "a &lt;peer&gt;", "Beacon", "NUST 2013", "generator-bound"] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(text.contains("#145CCC"), "the colour of ours");
    assert!(!text.contains("href"), "it loads nothing");
}

#[test]
fn a_png_can_be_read_and_shows_something() {
    let file = png(&plot()).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (WIDTH * PNG_SCALE, LEAST_HEIGHT * PNG_SCALE));
    let ours = pixels.chunks(3).filter(|pixel| *pixel == [20, 92, 204]).count();
    assert!(ours > 100, "{ours} pixels of ours");
    let white = pixels.chunks(3).filter(|pixel| *pixel == [255; 3]).count();
    assert!(white > pixels.len() / 6, "most of it is background");
}

#[test]
fn an_empty_plot_and_a_long_legend_are_drawn_too() {
    let mut plot = plot();
    let one = plot.series[0].clone();
    plot.series = vec![one; 40];
    let text = svg(&plot).unwrap();
    assert!(!text.contains(&format!("height=\"{LEAST_HEIGHT}\"")), "it has grown");
    plot.series.clear();
    svg(&plot).unwrap();
    png(&plot).unwrap();
}

#[test]
fn a_pdf_carries_its_font_and_its_text() {
    let file = pdf(&plot()).unwrap();
    assert!(file.starts_with(b"%PDF-"));
    let has = |part: &[u8]| file.windows(part.len()).any(|window| window == part);
    assert!(has(b"/FontFile2") && has(b"/ToUnicode"), "the font, and what its glyphs mean");
    assert!(has(b"%%EOF"));
    let empty = Plot { series: Vec::new(), ..plot() };
    assert!(pdf(&empty).unwrap().len() < file.len());
}

#[test]
fn the_numbers_of_a_plot_are_rows() {
    let text = csv(&plot()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "curve,group,switches,flow set-ups per second,minimum,maximum,generator_bound",
            "bellrock,here,16,4000000,,,false",
            "bellrock,here,64,3000000,2000000,4000000,true",
            "a <peer>,here,16,100000,,,false",
        ]
    );
    assert!(lines.contains(&"Beacon,NUST 2013,,2000000,,,false"), "a level has no x");
    assert!(lines.contains(&"a bound,NUST 2013,32,,,,false"), "a bound has no y");
}

#[test]
fn a_line_of_thousands_of_points_is_drawn_with_those_that_can_be_told_apart() {
    let points = (0..=100_000).map(|n| Point::at(f64::from(n), f64::from(n))).collect();
    let mut plot = plot();
    plot.series.truncate(1);
    plot.series[0].shape = CurveShape::Line(points);
    let text = svg(&plot).unwrap();
    assert!(text.len() < 100_000, "{} bytes", text.len());
    assert_eq!(csv(&plot).unwrap().lines().count(), 100_002, "the numbers are all there");
}
