//! The view of the demo: plain data, updated a few times a second.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::args::DemoApp;
use crate::terminal::amounts::{BitRate, ByteCount, MinutesSeconds, ShortNumber};

/// Samples of a curve.
const HISTORY: usize = 240;

/// Number of news lines kept.
const NEWS: usize = 100;

/// All data of the display.
pub(super) struct DemoView {
    pub(super) controller: SocketAddr,
    pub(super) app: DemoApp,
    pub(super) topology: String,
    pub(super) elapsed: Duration,
    /// Time of the automatic end, since the start.
    pub(super) end: Option<Duration>,
    pub(super) switches: Vec<SwitchView>,
    pub(super) hosts: Vec<HostView>,
    pub(super) links: Vec<LinkView>,
    pub(super) rates: Rates,
    pub(super) totals: Totals,
    pub(super) cuts: CutTotals,
    /// Packet-ins and frames per second, oldest first.
    pub(super) packet_in_curve: VecDeque<u64>,
    pub(super) frame_curve: VecDeque<u64>,
    /// News, oldest first.
    pub(super) news: VecDeque<NewsItem>,
    /// Number of news since the start.
    pub(super) news_count: usize,
}

/// An event on the display.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NewsItem {
    pub(super) at: Duration,
    pub(super) kind: NewsKind,
    pub(super) text: String,
}

/// Style of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewsKind {
    Plain,
    Bad,
    Good,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SwitchView {
    pub(super) name: String,
    /// OpenFlow version of its connection. `None`: not connected.
    pub(super) version: Option<String>,
    pub(super) flows: usize,
    pub(super) packet_ins_per_second: f64,
    pub(super) frames_per_second: f64,
}

/// A host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostView {
    pub(super) name: String,
    pub(super) ip: Ipv4Addr,
    /// Its switch and port.
    pub(super) place: String,
    pub(super) sent_bits_per_second: f64,
    pub(super) received_bits_per_second: f64,
    /// Round trip of its latest ping. `None`: not answered.
    pub(super) round_trip: Option<Duration>,
}

/// A link between two switches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkView {
    /// `s1:1 - s2:2`.
    pub(super) name: String,
    pub(super) is_up: bool,
    /// In both directions together.
    pub(super) frames_per_second: f64,
}

/// Rates per second, since the last update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) packet_ins: f64,
    pub(super) frames: f64,
    /// Bits that hosts received.
    pub(super) bits: f64,
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Connected switches.
    pub(super) connected: usize,
    /// Flows in all switches.
    pub(super) flows: usize,
    pub(super) packet_ins: u64,
    /// Frames that switches received.
    pub(super) frames: u64,
    /// Bytes that hosts received.
    pub(super) bytes: u64,
    pub(super) pings: u64,
    pub(super) lost_pings: u64,
    /// Datagrams of the streams, and how many of them were lost.
    pub(super) datagrams: u64,
    pub(super) lost_datagrams: u64,
}

/// All cuts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CutTotals {
    pub(super) cuts: u32,
    /// Cuts after which all streams arrived again.
    pub(super) healed: u32,
    pub(super) shortest: Duration,
    pub(super) longest: Duration,
}

impl CutTotals {
    /// Counts a cut that healed after this time.
    pub(super) fn heal(&mut self, after: Duration) {
        self.shortest = if self.healed == 0 { after } else { self.shortest.min(after) };
        self.longest = self.longest.max(after);
        self.healed += 1;
    }

    /// `3 cuts, healed in 4 to 12 ms`; empty without cuts.
    pub(super) fn text(&self) -> String {
        let Self { cuts, healed, shortest, longest } = *self;
        let (shortest, longest) = (shortest.as_millis(), longest.as_millis());
        let cuts = match cuts {
            0 => return String::new(),
            1 => "1 cut".to_owned(),
            n => format!("{n} cuts"),
        };
        match healed {
            0 => cuts,
            _ if shortest == longest => format!("{cuts}, healed in {longest} ms"),
            _ => format!("{cuts}, healed in {shortest} to {longest} ms"),
        }
    }
}

impl DemoView {
    pub(super) fn new(
        controller: SocketAddr,
        app: DemoApp,
        topology: String,
        end: Option<Duration>,
    ) -> Self {
        DemoView {
            controller,
            app,
            topology,
            elapsed: Duration::ZERO,
            end,
            switches: Vec::new(),
            hosts: Vec::new(),
            links: Vec::new(),
            rates: Rates::default(),
            totals: Totals::default(),
            cuts: CutTotals::default(),
            packet_in_curve: VecDeque::new(),
            frame_curve: VecDeque::new(),
            news: VecDeque::new(),
            news_count: 0,
        }
    }

    /// Adds a line of news.
    pub(super) fn add_news(&mut self, kind: NewsKind, text: String) {
        if self.news.len() == NEWS {
            self.news.pop_front();
        }
        self.news.push_back(NewsItem { at: self.elapsed, kind, text });
        self.news_count += 1;
    }

    /// The news after the first `count`, as lines.
    pub(super) fn news_since(&self, count: usize) -> String {
        let new = self.news_count.saturating_sub(count).min(self.news.len());
        let news = self.news.iter().skip(self.news.len() - new);
        news.map(|NewsItem { at, text, .. }| format!("{}  {text}\n", MinutesSeconds(*at))).collect()
    }

    /// Stores the current rates, also in the curves.
    pub(super) fn rate(&mut self, rates: Rates) {
        self.rates = rates;
        for (curve, rate) in
            [(&mut self.packet_in_curve, rates.packet_ins), (&mut self.frame_curve, rates.frames)]
        {
            if curve.len() == HISTORY {
                curve.pop_front();
            }
            curve.push_back(rate.round() as u64);
        }
    }

    /// The current state in one line.
    pub(super) fn line(&self) -> String {
        let Totals { connected, flows, pings, lost_pings, datagrams, lost_datagrams, .. } =
            self.totals;
        let Rates { packet_ins, frames, bits } = self.rates;
        let switches = self.switches.len();
        format!(
            "{}  switches {connected}/{switches}  flows {flows}  packet-ins {}/s  frames {}/s  \
             carried {}  datagrams {datagrams}, {lost_datagrams} lost  pings {pings}, {lost_pings} lost",
            MinutesSeconds(self.elapsed),
            ShortNumber(packet_ins),
            ShortNumber(frames),
            BitRate(bits),
        )
    }

    /// The summary at the end.
    pub(super) fn summary(&self) -> String {
        let Totals { flows, packet_ins, frames, bytes, .. } = self.totals;
        let Totals { pings, lost_pings, datagrams, lost_datagrams, .. } = self.totals;
        let (switches, hosts) = (self.switches.len(), self.hosts.len());
        let alone = match frames {
            0 => 0.0,
            _ => 100.0 * (1.0 - packet_ins as f64 / frames as f64).max(0.0),
        };
        let cuts = match self.cuts.text() {
            text if text.is_empty() => text,
            text => format!("{text}\n"),
        };
        format!(
            "{switches} switches and {hosts} hosts ({}) under the app {} for {}:\n{cuts}\
             {datagrams} datagrams, {lost_datagrams} of them lost; {pings} pings, {lost_pings} of them lost; \
             {} carried\n\
             {frames} frames through the switches, {packet_ins} of them sent to the controller: \
             {alone:.2} % went by the {flows} flows that it installed\n\
             Next: `bellrock emulate` has a prompt for such a network, `bellrock run` is the controller \
             for real ones.\n",
            self.topology,
            self.app.name(),
            MinutesSeconds(self.elapsed),
            ByteCount(bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> DemoView {
        DemoView::new("127.0.0.1:1".parse().unwrap(), DemoApp::Routing, "ring:6".into(), None)
    }

    #[test]
    fn curves_and_news_are_bounded() {
        let mut view = view();
        for _ in 0..10 * HISTORY {
            view.rate(Rates::default());
            view.add_news(NewsKind::Plain, String::new());
        }
        assert_eq!((view.frame_curve.len(), view.news.len()), (HISTORY, NEWS));
    }

    #[test]
    fn news_are_printed_once() {
        let mut view = view();
        view.add_news(NewsKind::Plain, "one".into());
        let seen = view.news_count;
        view.add_news(NewsKind::Bad, "two".into());
        assert_eq!(view.news_since(seen), "00:00  two\n");
        assert_eq!(view.news_since(view.news_count), "");
    }

    #[test]
    fn cuts_are_summed_up() {
        let mut cuts = CutTotals::default();
        assert_eq!(cuts.text(), "");
        cuts.cuts = 1;
        assert_eq!(cuts.text(), "1 cut");
        cuts.heal(Duration::from_millis(9));
        assert_eq!(cuts.text(), "1 cut, healed in 9 ms");
        cuts.cuts = 2;
        cuts.heal(Duration::from_millis(4));
        assert_eq!(cuts.text(), "2 cuts, healed in 4 to 9 ms");
    }
}
