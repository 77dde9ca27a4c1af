//! The live display, on the alternate screen of the terminal.
//!
//! [`Screen`] takes over the terminal and restores it when it is dropped, also while a panic
//! unwinds. The message of a panic is printed afterwards, where it can be read.

use std::io::{self, Stdout, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Sparkline};
use ratatui::{Frame, Terminal};

use super::columns::{Column, FRAME_LINES, Grid, GridCell, number, text};
use super::view::{DemoView, HostView, LinkView, NewsItem, NewsKind, SwitchView};
use crate::terminal::amounts::{BitRate, MinutesSeconds, ShortNumber};

/// Minimum lines of the news with their frame; the line of keys is shown from this many lines on.
const NEWS_LINES: u16 = 5;
const LINES_WITH_KEYS: u16 = 8;

/// Minimum and maximum lines of the curves with their frame.
const MIN_CURVE_LINES: u16 = 5;
const MAX_CURVE_LINES: u16 = 14;

/// Minimum rows of a table.
const MIN_ROWS: u16 = 2;

/// Whether this process controls the terminal now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A command of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenCommand {
    Quit,
    /// Cuts a link, or mends the one that is down.
    Link,
}

/// The terminal, under our control until this is dropped.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes over the terminal.
    pub(super) fn take() -> io::Result<Self> {
        let (before, ours) = (std::panic::take_hook(), thread::current().id());
        std::panic::set_hook(Box::new(move |panic| {
            // The controller's threads catch the panics of apps, and the demo continues.
            if thread::current().id() == ours {
                give_back();
            }
            before(panic);
        }));
        TAKEN.store(true, Ordering::SeqCst);
        let taken = enable_raw_mode()
            .and_then(|()| execute!(stdout(), EnterAlternateScreen, cursor::Hide))
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws the view. `is_cut` is whether a link is down.
    pub(super) fn draw(&mut self, view: &DemoView, is_cut: bool) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, view, is_cut)).map(|_| ())
    }

    /// The command of the key that was pressed, if any.
    pub(super) fn key(&mut self) -> io::Result<Option<ScreenCommand>> {
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            // Ctrl-C is a key here: the terminal does not turn it into a signal.
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('c' | 'd') if control => return Ok(Some(ScreenCommand::Quit)),
                KeyCode::Char('q') | KeyCode::Esc => return Ok(Some(ScreenCommand::Quit)),
                KeyCode::Char('l') => return Ok(Some(ScreenCommand::Link)),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal if we control it. Also for code that ends the process at once.
pub(super) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Errors are ignored: the terminal may be gone.
        let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

fn draw(frame: &mut Frame, view: &DemoView, is_cut: bool) {
    let grids = [hosts(&view.hosts), switches(&view.switches), links(&view.links)];
    let Heights { tables, curves, keys } = Heights::of(frame.area().height, &grids);
    let [title, table_area, curve_area, news_area, key_area] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(tables),
        Constraint::Length(curves),
        Constraint::Fill(1),
        Constraint::Length(keys),
    ])
    .areas(frame.area());
    frame.render_widget(title_line(view, title.width), title);
    if tables > 0 {
        draw_tables(frame, &grids, table_area);
    }
    if curves > 0 {
        draw_curves(frame, view, curve_area);
    }
    frame.render_widget(news(view, news_area), news_area);
    if keys > 0 {
        frame.render_widget(key_line(is_cut), key_area);
    }
}

/// Lines of the parts of the screen. The news get the rest.
struct Heights {
    tables: u16,
    curves: u16,
    keys: u16,
}

impl Heights {
    /// The news, which show how the network heals, come first; then tables, then curves.
    fn of(lines: u16, grids: &[Grid<'_>]) -> Self {
        let keys = u16::from(lines >= LINES_WITH_KEYS);
        let lines = lines.saturating_sub(1 + keys + NEWS_LINES);
        let wanted = grids.iter().map(Grid::height).max().unwrap_or_default();
        let tables = if lines < FRAME_LINES + MIN_ROWS { 0 } else { wanted.min(lines) };
        // The curves and more news share the rest.
        let left = lines - tables;
        let curves = match left {
            0..MIN_CURVE_LINES => 0,
            left => (left * 2 / 3).clamp(MIN_CURVE_LINES, MAX_CURVE_LINES),
        };
        Heights { tables, curves, keys }
    }
}

/// Draws tables side by side, as far as the width allows: hosts, switches, and links if all fit.
fn draw_tables(frame: &mut Frame, grids: &[Grid<'_>; 3], area: Rect) {
    let [hosts, switches, links] = grids;
    let both = switches.width() + hosts.width();
    let shown: Vec<(&Grid<'_>, Constraint)> = if both + links.width() <= area.width {
        // The tables share the remaining width.
        [switches, hosts, links].map(|grid| (grid, Constraint::Fill(grid.width()))).into()
    } else if both <= area.width {
        vec![(switches, Constraint::Length(switches.width())), (hosts, Constraint::Fill(1))]
    } else {
        [switches, hosts].map(|grid| (grid, Constraint::Fill(grid.width()))).into()
    };
    let areas = Layout::horizontal(shown.iter().map(|(_, constraint)| *constraint)).split(area);
    for ((grid, _), area) in shown.iter().zip(areas.iter()) {
        frame.render_widget(grid.table(*area), *area);
    }
}

fn draw_curves(frame: &mut Frame, view: &DemoView, area: Rect) {
    let [left, right] = Layout::horizontal([Constraint::Fill(2), Constraint::Fill(3)]).areas(area);
    let text = format!(" packet-ins: {}/s ", ShortNumber(view.rates.packet_ins));
    draw_curve(frame, left, text, view.packet_in_curve.iter().copied(), Color::Yellow);
    let text = format!(
        " frames: {}/s, hosts receive {} ",
        ShortNumber(view.rates.frames),
        BitRate(view.rates.bits)
    );
    draw_curve(frame, right, text, view.frame_curve.iter().copied(), Color::Green);
}

fn key_line(is_cut: bool) -> Line<'static> {
    let link = if is_cut { " mends the link" } else { " cuts a link" };
    Line::from(vec![" q".bold(), " or Ctrl-C ends   ".into(), "l".bold(), link.into()])
        .style(Style::new().add_modifier(Modifier::DIM))
}

/// The title. The least important parts are left out first if the space is too small.
fn title_line(view: &DemoView, width: u16) -> Paragraph<'static> {
    let time = match view.end {
        Some(end) => format!("{} of {}", MinutesSeconds(view.elapsed), MinutesSeconds(end)),
        None => MinutesSeconds(view.elapsed).to_string(),
    };
    let totals = &view.totals;
    // Each part with its rank; 0 always stays.
    let mut parts = vec![
        (4, view.controller.to_string()),
        (2, format!("{} on {}", view.app.name(), view.topology)),
        (1, view.cuts.text()),
        (3, format!("{} of {} datagrams lost", totals.lost_datagrams, totals.datagrams)),
        (5, format!("{} of {} pings lost", totals.lost_pings, totals.pings)),
        (0, time),
    ];
    parts.retain(|(_, text)| !text.is_empty());
    let name = " Bellrock demo ";
    let length = |parts: &[(u8, String)]| {
        name.len() + parts.iter().map(|(_, text)| text.len() + 2).sum::<usize>() + 1
    };
    while length(&parts) > usize::from(width) {
        let last = parts.iter().map(|(rank, _)| *rank).max().filter(|rank| *rank > 0);
        match last {
            Some(last) => parts.retain(|(rank, _)| *rank != last),
            None => break,
        }
    }
    let rest: String = parts.iter().map(|(_, text)| format!("  {text}")).collect();
    Paragraph::new(Line::from(vec![name.bold(), Span::raw(rest)]))
        .style(Style::new().add_modifier(Modifier::REVERSED))
}

const SWITCH_COLUMNS: [Column; 5] = [
    text("name", 0),
    text("state", 1),
    number("flows", 2),
    number("packet-ins/s", 4),
    number("frames/s", 3),
];

fn switches(switches: &[SwitchView]) -> Grid<'static> {
    let row = |switch: &SwitchView| {
        let (state, color) = match &switch.version {
            Some(version) => (format!("up, {version}"), Color::Green),
            None => ("away".to_owned(), Color::Red),
        };
        vec![
            GridCell::from(&switch.name),
            GridCell { text: state, style: color.into() },
            switch.flows.into(),
            ShortNumber(switch.packet_ins_per_second).into(),
            ShortNumber(switch.frames_per_second).into(),
        ]
    };
    Grid {
        title: format!(" {} switches ", switches.len()),
        columns: &SWITCH_COLUMNS,
        rows: switches.iter().map(row).collect(),
    }
}

const HOST_COLUMNS: [Column; 6] = [
    text("name", 0),
    text("address", 4),
    text("at", 3),
    number("ping", 2),
    number("sends", 5),
    number("receives", 1),
];

fn hosts(hosts: &[HostView]) -> Grid<'static> {
    let row = |host: &HostView| {
        vec![
            GridCell::from(&host.name),
            host.ip.into(),
            (&host.place).into(),
            round_trip(host.round_trip).into(),
            BitRate(host.sent_bits_per_second).into(),
            BitRate(host.received_bits_per_second).into(),
        ]
    };
    Grid {
        title: format!(" {} hosts ", hosts.len()),
        columns: &HOST_COLUMNS,
        rows: hosts.iter().map(row).collect(),
    }
}

const LINK_COLUMNS: [Column; 3] = [text("link", 0), text("state", 1), number("frames/s", 2)];

/// The links between switches, the one that is down first.
fn links(links: &[LinkView]) -> Grid<'static> {
    let row = |link: &LinkView| {
        let (state, color) = if link.is_up { ("up", Color::Green) } else { ("cut", Color::Red) };
        vec![
            GridCell::from(&link.name),
            GridCell { text: state.into(), style: color.into() },
            ShortNumber(link.frames_per_second).into(),
        ]
    };
    let in_order = links.iter().filter(|link| !link.is_up).chain(links.iter().filter(|l| l.is_up));
    Grid {
        title: format!(" {} links ", links.len()),
        columns: &LINK_COLUMNS,
        rows: in_order.map(row).collect(),
    }
}

fn round_trip(time: Option<Duration>) -> String {
    match time {
        Some(time) if time < Duration::from_millis(100) => {
            format!("{:.2} ms", time.as_secs_f64() * 1e3)
        }
        Some(time) => format!("{} ms", time.as_millis()),
        None => "-".to_owned(),
    }
}

fn draw_curve(
    frame: &mut Frame,
    area: Rect,
    title: String,
    curve: impl DoubleEndedIterator<Item = u64>,
    color: Color,
) {
    // The newest value is at the right edge.
    let width = usize::from(area.width.saturating_sub(2));
    let mut shown: Vec<u64> = curve.rev().take(width).collect();
    shown.resize(width, 0);
    shown.reverse();
    let block = Block::bordered().title(title);
    frame.render_widget(Sparkline::default().data(&shown).style(color).block(block), area);
}

fn news(view: &DemoView, area: Rect) -> Paragraph<'static> {
    let lines = usize::from(area.height.saturating_sub(2));
    let shown = view.news.iter().skip(view.news.len().saturating_sub(lines));
    let line = |NewsItem { at, kind, text }: &NewsItem| {
        let style = match kind {
            NewsKind::Plain => Style::new(),
            NewsKind::Bad => Color::Red.into(),
            NewsKind::Good => Color::Green.into(),
        };
        Line::from(vec![
            Span::raw(format!("{} ", MinutesSeconds(*at))),
            Span::styled(text.clone(), style),
        ])
    };
    let lines: Vec<Line<'static>> = shown.map(line).collect();
    Paragraph::new(lines).block(Block::bordered().title(" what happens "))
}

#[cfg(test)]
mod tests {
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::demo::args::DemoApp;
    use crate::demo::view::{CutTotals, Rates, Totals};

    fn view(n_switches: usize) -> DemoView {
        let at = "127.0.0.1:40123".parse().unwrap();
        let mut view = DemoView::new(at, DemoApp::Routing, "ring:6".into(), None);
        let switch = |number| SwitchView {
            name: format!("s{number}"),
            version: (number != 2).then(|| "1.3".to_owned()),
            flows: 42,
            packet_ins_per_second: 3.0,
            frames_per_second: 12_345.0,
        };
        view.switches = (1..=n_switches).map(switch).collect();
        let host = |number| HostView {
            name: format!("h{number}"),
            ip: [10, 0, 0, number as u8].into(),
            place: format!("s{number}:1"),
            sent_bits_per_second: 94.1e6,
            received_bits_per_second: 8.3e6,
            round_trip: Some(Duration::from_micros(420)),
        };
        view.hosts = (1..=n_switches).map(host).collect();
        let link = |number| LinkView {
            name: format!("s{number}:2 - s{}:3", number + 1),
            is_up: number != 3,
            frames_per_second: 3456.0,
        };
        view.links = (1..=n_switches).map(link).collect();
        view.totals =
            Totals { pings: 17, datagrams: 60_000, lost_datagrams: 31, ..Totals::default() };
        view.cuts = CutTotals { cuts: 2, ..CutTotals::default() };
        view.cuts.heal(Duration::from_millis(4));
        view.cuts.heal(Duration::from_millis(12));
        view.rate(Rates { packet_ins: 12.0, frames: 54_321.0, bits: 1e9 });
        view.add_news(
            NewsKind::Good,
            "healed in 12 ms: 31 datagrams lost in 3 of 6 streams".into(),
        );
        view
    }

    fn drawn(view: &DemoView, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view, true)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_is_on_a_large_screen() {
        let text = drawn(&view(6), 160, 40);
        for part in [
            "Bellrock demo   127.0.0.1:40123  routing on ring:6  2 cuts, healed in 4 to 12 ms",
            "31 of 60000 datagrams lost",
            "0 of 17 pings lost",
            "6 switches",
            "up, 1.3",
            "away",
            "packet-ins/s",
            "12.3 k",
            "6 hosts",
            "10.0.0.1",
            "0.42 ms",
            "94.1 Mb/s",
            "6 links",
            "s3:2 - s4:3",
            "cut",
            "packet-ins: 12/s",
            "00:00 healed in 12 ms",
            "q or Ctrl-C ends",
            "l mends the link",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    /// On usual sizes of terminals, a number is shown with its unit, or its column is left out.
    #[test]
    fn small_screens_drop_columns_and_no_digits() {
        for (width, height) in [(80, 24), (60, 20), (120, 40), (200, 60), (40, 12)] {
            let text = drawn(&view(6), width, height);
            assert!(text.contains("healed in 12 ms"), "{width}x{height}\n{text}");
            let has_title = text.contains("healed in 4 to 12 ms");
            assert!(has_title || width < 60, "{width}x{height}\n{text}");
            let rows: Vec<&str> = text.lines().filter(|line| line.contains("│s")).collect();
            assert!(rows.len() >= 2, "{width}x{height}\n{text}");
            for word in
                rows.iter().flat_map(|row| row.split(['│', ' ', '"']).filter(|w| !w.is_empty()))
            {
                let whole = [
                    "up,", "1.3", "away", "42", "3", "12.3", "k", "0.42", "ms", "94.1", "8.3",
                    "Mb/s", "up", "cut", "-", "3.5",
                ];
                let is_name = word.starts_with(['s', 'h']) || word.starts_with("10.0.0.");
                assert!(whole.contains(&word) || is_name, "{width}x{height}: {word:?}\n{text}");
            }
        }
    }

    #[test]
    fn rows_that_do_not_fit_are_counted() {
        let text = drawn(&view(320), 80, 24);
        assert!(text.contains("320 switches") && text.contains(" and 306 more "), "{text}");
        assert!(text.contains("what happens") && text.contains("healed in 12 ms"), "{text}");
    }

    #[test]
    fn a_large_screen_is_used() {
        let text = drawn(&view(6), 200, 60);
        let blank = text.lines().filter(|line| line.trim_matches(['"', ' ', '│']).is_empty());
        assert!(blank.count() < 35, "{text}");
        assert!(drawn(&view(40), 200, 60).contains("s40"), "rows have the place");
    }

    #[test]
    fn no_size_is_too_small() {
        for (width, height) in [(1, 1), (3, 2), (20, 5), (80, 9), (300, 100), (10, 40)] {
            drawn(&view(10), width, height);
        }
    }
}
