//! Compares the messages of one end with those in the recording.
//!
//! Two messages are equal if they have the same bytes, xids aside: an end numbers its messages as
//! it likes. Order does not count.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;

use bellrock_openflow::{FromSwitch, HEADER_LEN, MessageKind, MultipartKind, ToSwitch, Version};

use super::super::decode::peers::Sender;
use crate::terminal::printable;

/// Messages that are in one of the two only, and printed: so many of each.
const SHOWN: usize = 10;

/// Maximum characters of a printed message.
const SHOWN_CHARS: usize = 160;

/// The kind of a message: its type, and that of the multipart message.
pub(super) type KindKey = (u8, u16);

/// The kind of a message.
pub(super) fn kind_of(version: Version, bytes: &[u8]) -> KindKey {
    let kind = bytes.get(1).copied().unwrap_or_default();
    let is_multipart = matches!(
        MessageKind::from_wire(version, kind),
        Some(MessageKind::MultipartRequest | MessageKind::MultipartReply)
    );
    let multipart = bytes.get(HEADER_LEN..HEADER_LEN + 2).filter(|_| is_multipart);
    let multipart = multipart.and_then(|bytes| bytes.try_into().ok()).map(u16::from_be_bytes);
    (kind, multipart.unwrap_or_default())
}

fn name_of(version: Version, (kind, multipart): KindKey) -> String {
    let plain = |name: &str| {
        name.trim_start_matches("OFPT_")
            .trim_start_matches("OFPMP_")
            .trim_start_matches("OFPST_")
            .to_ascii_lowercase()
    };
    match MessageKind::from_wire(version, kind) {
        Some(known @ (MessageKind::MultipartRequest | MessageKind::MultipartReply)) => {
            let of = MultipartKind::from_wire(version, multipart)
                .map_or_else(|| multipart.to_string(), |of| plain(of.name(version)));
            format!("{} {of}", plain(known.name(version)))
        }
        Some(known) => plain(known.name(version)),
        None => format!("type {kind}"),
    }
}

fn without_xid(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(xid) = bytes.get_mut(4..8) {
        xid.fill(0);
    }
    bytes
}

/// Numbers of messages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    recorded: u64,
    now: u64,
    equal: u64,
}

/// The comparison for one connection.
#[derive(Debug)]
pub(super) struct Comparison {
    version: Version,
    sender: Sender,
    tallies: BTreeMap<KindKey, Tally>,
    /// Places of recorded messages that no live one has matched, by their bytes.
    unmatched: HashMap<Vec<u8>, VecDeque<usize>>,
    recorded: Vec<Box<[u8]>>,
    is_matched: Vec<bool>,
    /// Live messages that match none: the first ones.
    additional: Vec<Vec<u8>>,
    additional_count: u64,
}

impl Comparison {
    /// Compares with these recorded messages of one end.
    pub(super) fn new(version: Version, sender: Sender, recorded: Vec<Box<[u8]>>) -> Self {
        let (mut tallies, mut unmatched) = (BTreeMap::<KindKey, Tally>::new(), HashMap::new());
        for (place, bytes) in recorded.iter().enumerate() {
            tallies.entry(kind_of(version, bytes)).or_default().recorded += 1;
            let places: &mut VecDeque<usize> = unmatched.entry(without_xid(bytes)).or_default();
            places.push_back(place);
        }
        let is_matched = vec![false; recorded.len()];
        let (additional, additional_count) = (Vec::new(), 0);
        Comparison {
            version,
            sender,
            tallies,
            unmatched,
            recorded,
            is_matched,
            additional,
            additional_count,
        }
    }

    /// Takes a live message. Returns the place of the equal recorded one, if there is one left.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<usize> {
        let tally = self.tallies.entry(kind_of(self.version, bytes)).or_default();
        tally.now += 1;
        let place = self.unmatched.get_mut(&without_xid(bytes)).and_then(VecDeque::pop_front);
        match place {
            Some(place) => {
                tally.equal += 1;
                if let Some(matched) = self.is_matched.get_mut(place) {
                    *matched = true;
                }
            }
            None => {
                self.additional_count += 1;
                if self.additional.len() < SHOWN {
                    self.additional.push(bytes.to_vec());
                }
            }
        }
        place
    }

    /// Whether both have the same messages.
    pub(super) fn is_equal(&self) -> bool {
        self.additional_count == 0 && self.is_matched.iter().all(|matched| *matched)
    }

    /// A table of the kinds, and the first messages that only one of both has.
    pub(super) fn report(&self) -> String {
        let mut text =
            format!("  {:32}{:>10}{:>10}{:>10}\n", "MESSAGE", "RECORDED", "NOW", "EQUAL");
        for (kind, Tally { recorded, now, equal }) in &self.tallies {
            let name = name_of(self.version, *kind);
            let _ = writeln!(text, "  {name:32}{recorded:>10}{now:>10}{equal:>10}");
        }
        let missing: Vec<_> =
            self.recorded.iter().zip(&self.is_matched).filter(|(_, m)| !**m).collect();
        for (bytes, _) in missing.iter().take(SHOWN) {
            let _ = writeln!(text, "  - {}", self.print(bytes));
        }
        for bytes in &self.additional {
            let _ = writeln!(text, "  + {}", self.print(bytes));
        }
        let shown = missing.len().min(SHOWN) + self.additional.len();
        let further = (missing.len() as u64 + self.additional_count).saturating_sub(shown as u64);
        if further > 0 {
            let _ = writeln!(text, "  and {further} more that only one of both has");
        }
        text
    }

    fn print(&self, bytes: &[u8]) -> String {
        let decoded = match self.sender {
            Sender::Switch => FromSwitch::decode(bytes).map(|message| message.to_string()),
            Sender::Controller => ToSwitch::decode(bytes).map(|message| message.to_string()),
        };
        let text = decoded.unwrap_or_else(|error| {
            format!("{} ({error})", name_of(self.version, kind_of(self.version, bytes)))
        });
        let text = text.lines().next().unwrap_or_default();
        let short: String = text.chars().take(SHOWN_CHARS).collect();
        let dots = if text.chars().nth(SHOWN_CHARS).is_some() { "..." } else { "" };
        format!("{}{dots}", printable(&short))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, xid: u8, body: u8) -> Box<[u8]> {
        [4, kind, 0, 9, 0, 0, 0, xid, body].into()
    }

    #[test]
    fn messages_are_equal_whatever_their_xids_and_order_are() {
        let recorded = vec![message(20, 1, 0), message(14, 2, 5), message(14, 3, 5)];
        let mut comparison = Comparison::new(Version::V1_3, Sender::Controller, recorded);
        assert_eq!(comparison.take(&message(14, 9, 5)), Some(1));
        assert_eq!(comparison.take(&message(20, 9, 0)), Some(0));
        assert!(!comparison.is_equal(), "one is missing");
        assert_eq!(comparison.take(&message(14, 9, 5)), Some(2));
        assert!(comparison.is_equal());
        assert_eq!(comparison.take(&message(14, 9, 5)), None);
        assert!(!comparison.is_equal(), "one is additional");
        let report = comparison.report();
        let row = report.lines().find(|line| line.contains("flow_mod")).unwrap();
        let row: Vec<_> = row.split_whitespace().collect();
        assert_eq!(row, ["flow_mod", "2", "3", "2"]);
        assert_eq!(report.lines().filter(|line| line.starts_with("  + flow_mod")).count(), 1);
    }

    #[test]
    fn a_bounded_number_of_differences_is_printed() {
        let recorded: Vec<_> = (0..50).map(|n| message(14, 0, n)).collect();
        let mut comparison = Comparison::new(Version::V1_0, Sender::Controller, recorded);
        (100..130).for_each(|n| assert_eq!(comparison.take(&message(14, 0, n)), None));
        let report = comparison.report();
        assert_eq!(report.matches("\n  - ").count(), SHOWN);
        assert_eq!(report.matches("\n  + ").count(), SHOWN);
        assert!(report.ends_with("and 60 more that only one of both has\n"), "{report}");
    }
}
