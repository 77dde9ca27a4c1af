//! The live display, on the terminal's other screen.
//!
//! [`Screen`] takes the terminal and gives it back when it is dropped, so also while a panic unwinds;
//! a panic's message is printed after that, where it can be read.

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
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table};
use ratatui::{Frame, Terminal};

use super::view::{HostView, SwitchView, View};
use crate::cli::amounts::{BitRate, Clock, Short};

/// Lines of the curves with their frame, and of the news.
const CURVE_LINES: u16 = 6;
const NEWS_LINES: u16 = 7;

/// On a terminal with less lines the news are left out, and then the curves.
const LINES_WITH_NEWS: u16 = 26;
const LINES_WITH_CURVES: u16 = 18;

/// Columns of the switches. The hosts have the rest; where it is less than this, not their addresses.
const SWITCH_COLUMNS: u16 = 38;
const COLUMNS_WITH_ADDRESS: u16 = 54;

/// Whether the terminal is ours now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// What somebody wants of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    /// Take a link down, or the one that is down up.
    Link,
}

/// The terminal, for as long as it is ours.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Self> {
        let (before, ours) = (std::panic::take_hook(), thread::current().id());
        std::panic::set_hook(Box::new(move |panic| {
            // The controller's threads catch the panics of apps, and the demo goes on.
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

    /// Draws.
    pub(super) fn draw(&mut self, view: &View) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, view)).map(|_| ())
    }

    /// The key that was pressed, if one was that means something.
    pub(super) fn key(&mut self) -> io::Result<Option<Key>> {
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            // Ctrl-C is a key here: the terminal makes no signal of it.
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('c' | 'd') if control => return Ok(Some(Key::Quit)),
                KeyCode::Char('q') | KeyCode::Esc => return Ok(Some(Key::Quit)),
                KeyCode::Char('l') => return Ok(Some(Key::Link)),
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

/// Gives the terminal back as it was, if it is ours. For whoever ends the process at once, too.
pub(super) fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // There is nobody to tell: the terminal may be gone.
        let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

fn draw(frame: &mut Frame, view: &View) {
    let lines = frame.area().height;
    let curves = if lines < LINES_WITH_CURVES { 0 } else { CURVE_LINES };
    let news = if lines < LINES_WITH_NEWS { 0 } else { NEWS_LINES };
    let [title, tables, curve, told, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(4),
        Constraint::Length(curves),
        Constraint::Length(news),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [left, right] =
        Layout::horizontal([Constraint::Length(SWITCH_COLUMNS), Constraint::Fill(1)]).areas(tables);
    frame.render_widget(title_line(view), title);
    frame.render_widget(switches(&view.switches, left), left);
    frame.render_widget(hosts(&view.hosts, right), right);
    if curves > 0 {
        let [left, right] =
            Layout::horizontal([Constraint::Length(SWITCH_COLUMNS), Constraint::Fill(1)])
                .areas(curve);
        let text = format!(" packet-ins: {}/s ", Short(view.rates.packet_ins));
        draw_curve(frame, left, text, view.packet_in_curve.iter().copied(), Color::Yellow);
        let text = format!(
            " frames: {}/s, hosts receive {} ",
            Short(view.rates.frames),
            BitRate(view.rates.bits)
        );
        draw_curve(frame, right, text, view.frame_curve.iter().copied(), Color::Green);
    }
    if news > 0 {
        frame.render_widget(told_lines(view, told), told);
    }
    frame.render_widget(
        Line::from(vec![
            " q".bold(),
            " or Ctrl-C ends    ".into(),
            "l".bold(),
            " takes a link down, and up again".into(),
        ])
        .style(Style::new().add_modifier(Modifier::DIM)),
        keys,
    );
}

fn title_line(view: &View) -> Paragraph<'_> {
    let time = match view.end {
        Some(end) => format!("{} of {}", Clock(view.elapsed), Clock(end)),
        None => Clock(view.elapsed).to_string(),
    };
    let totals = &view.totals;
    Paragraph::new(Line::from(vec![
        " Bellrock demo ".bold(),
        Span::raw(format!(
            "  {}  {}  pings {}, {} lost  {time} ",
            view.controller, view.topology, totals.pings, totals.lost
        )),
    ]))
    .style(Style::new().add_modifier(Modifier::REVERSED))
}

/// How many rows of a table fit, with the last one for "and more" where not all do.
fn cut(all: usize, area: Rect) -> (usize, usize) {
    let room = usize::from(area.height.saturating_sub(3));
    if all <= room { (all, 0) } else { (room.saturating_sub(1), all - room.saturating_sub(1)) }
}

fn right(text: impl ToString) -> Cell<'static> {
    Cell::new(ratatui::text::Text::from(text.to_string()).alignment(Alignment::Right))
}

fn switches(switches: &[SwitchView], area: Rect) -> Table<'_> {
    let (shown, more) = cut(switches.len(), area);
    let row = |switch: &SwitchView| {
        let (state, color) = match &switch.version {
            Some(version) => (format!("up, {version}"), Color::Green),
            None => ("away".to_owned(), Color::Red),
        };
        Row::new([
            Cell::new(switch.name.clone()),
            Cell::new(state).style(color),
            right(switch.flows),
            right(Short(switch.packet_ins_per_second)),
            right(Short(switch.frames_per_second)),
        ])
    };
    let mut rows: Vec<Row> = switches[..shown].iter().map(row).collect();
    if more > 0 {
        rows.push(Row::new([format!("+{more}")]));
    }
    let widths = [
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Fill(1),
        Constraint::Length(6),
        Constraint::Length(8),
    ];
    let names = Row::new([
        Cell::new("name"),
        Cell::new("state"),
        right("flows"),
        right("asks/s"),
        right("frames/s"),
    ]);
    Table::new(rows, widths)
        .header(names.style(Modifier::DIM))
        .block(Block::bordered().title(format!(" {} switches ", switches.len())))
}

fn hosts(hosts: &[HostView], area: Rect) -> Table<'_> {
    let (shown, more) = cut(hosts.len(), area);
    let has_address = area.width >= COLUMNS_WITH_ADDRESS;
    let cells = |name: &str, address: Cell<'static>, rest: [Cell<'static>; 4]| {
        let address = has_address.then_some(address);
        Row::new([Cell::new(name.to_owned())].into_iter().chain(address).chain(rest))
    };
    let row = |host: &HostView| {
        let rest = [
            Cell::new(host.place.clone()),
            right(round_trip(host.round_trip)),
            right(BitRate(host.sent_bits_per_second)),
            right(BitRate(host.received_bits_per_second)),
        ];
        cells(&host.name, Cell::new(host.ip.to_string()), rest)
    };
    let mut rows: Vec<Row> = hosts[..shown].iter().map(row).collect();
    if more > 0 {
        rows.push(Row::new([format!("+{more}")]));
    }
    let [name, place, ping, rate] = [5, 5, 8, 9].map(Constraint::Length);
    let address = has_address.then_some(Constraint::Fill(1));
    let widths = [name].into_iter().chain(address).chain([place, ping, rate, rate]);
    let rest = [Cell::new("at"), right("ping"), right("sends"), right("receives")];
    let names = cells("name", Cell::new("address"), rest);
    Table::new(rows, widths)
        .header(names.style(Modifier::DIM))
        .block(Block::bordered().title(format!(" {} hosts ", hosts.len())))
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
    // The newest at the right edge, and the curve grows to the left.
    let width = usize::from(area.width.saturating_sub(2));
    let mut shown: Vec<u64> = curve.rev().take(width).collect();
    shown.resize(width, 0);
    shown.reverse();
    let block = Block::bordered().title(title);
    frame.render_widget(Sparkline::default().data(&shown).style(color).block(block), area);
}

fn told_lines(view: &View, area: Rect) -> Paragraph<'_> {
    let room = usize::from(area.height.saturating_sub(2));
    let skip = view.news.len().saturating_sub(room);
    let lines = view.news.iter().skip(skip);
    let lines: Vec<Line> =
        lines.map(|(at, what)| Line::from(format!("{} {what}", Clock(*at)))).collect();
    Paragraph::new(lines).block(Block::bordered().title(" what happens "))
}

#[cfg(test)]
mod tests {
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::cli::demo::view::{Rates, Totals};

    fn view(n_switches: usize) -> View {
        let mut view = View::new("127.0.0.1:40123".parse().unwrap(), "tree:2,3".into(), None);
        let switch = |number| SwitchView {
            name: format!("s{number}"),
            version: (number != 2).then(|| "1.3".to_owned()),
            flows: 42,
            packet_ins_per_second: 3.0,
            frames_per_second: 12_345.0,
        };
        view.switches = (1..=n_switches).map(switch).collect();
        view.hosts = vec![HostView {
            name: "h1".into(),
            ip: "10.0.0.1".parse().unwrap(),
            place: "s2:1".into(),
            sent_bits_per_second: 94.1e6,
            received_bits_per_second: 0.0,
            round_trip: Some(Duration::from_micros(420)),
        }];
        view.totals = Totals { pings: 17, ..Totals::default() };
        view.rate(Rates { packet_ins: 12.0, frames: 54_321.0, bits: 1e9 });
        view.tell("h1 pings h9: 0.42 ms".into());
        view
    }

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_is_on_a_screen_of_usual_size() {
        let text = drawn(&view(4), 100, 30);
        for part in [
            "Bellrock demo   127.0.0.1:40123",
            "pings 17, 0 lost",
            "4 switches",
            "up, 1.3",
            "away",
            "12.3 k",
            "1 hosts",
            "10.0.0.1",
            "0.42 ms",
            "94.1 Mb/s",
            "packet-ins: 12/s",
            "00:00 h1 pings h9: 0.42 ms",
            "q or Ctrl-C ends",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said() {
        let text = drawn(&view(320), 80, 24);
        assert!(text.contains("320 switches"), "{text}");
        assert!(text.lines().any(|line| line.contains("│+3")), "how many more there are: {text}");
        assert!(!text.contains("what happens"), "{text}");
        for part in ["12.3 k", "94.1 Mb/s", "pings 17, 0 lost  00:00"] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn no_size_is_too_small() {
        for (width, height) in [(1, 1), (3, 2), (20, 5), (80, 9), (300, 100)] {
            drawn(&view(10), width, height);
        }
    }
}
