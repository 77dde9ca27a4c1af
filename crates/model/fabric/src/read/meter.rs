//! `meters`.

use std::collections::btree_map;

use bellrock_openflow::MeterFlags;

use super::values::{name_of, number};
use super::{Reading, Section};
use crate::Place;
use crate::intent::{Meter, MeterBand, MeterId};
use crate::keys::{BAND, Key, METER, METER_ENTRY};
use crate::yaml::{Entry, Node};

/// Flags of meters, by name.
const FLAGS: &[(&str, MeterFlags)] = &[
    ("KBPS", MeterFlags::KBPS),
    ("PKTPS", MeterFlags::PKTPS),
    ("BURST", MeterFlags::BURST),
    ("STATS", MeterFlags::STATS),
];

impl Reading {
    pub(super) fn meters(&mut self, entries: &[Entry]) -> Vec<Meter> {
        let mut meters = Vec::new();
        for entry in entries {
            let Some(meter) = self.meter(entry) else { continue };
            let id = MeterId(u32::try_from(meters.len()).unwrap_or(u32::MAX));
            if let btree_map::Entry::Vacant(place) = self.meters.entry(meter.name.clone()) {
                place.insert(id);
                meters.push(meter);
            }
        }
        meters
    }

    fn meter(&mut self, entry: &Entry) -> Option<Meter> {
        let name = self.key_name(entry, "meter")?;
        let section = Section::of_node(&entry.value, METER, "key of a meter", self)?;
        if section.entry("meter_id").is_none() {
            self.problem(
                &entry.place,
                format!("meter `{name}` has no `meter_id`; give its number"),
            );
        }
        let Some(node) = section.node("entry") else {
            let message = format!("meter `{name}` has no `entry`; give it `flags` and `bands`");
            self.problem(&entry.place, message);
            return None;
        };
        let entries = self.known(node, METER_ENTRY, "key of a meter's entry");
        let meter_entry =
            Section::of(&entries, &node.place, METER_ENTRY, "key of a meter's entry", self);
        let flags = self.flags(&meter_entry);
        let nodes = meter_entry.node("bands").and_then(|node| node.list()).unwrap_or_default();
        if nodes.is_empty() {
            let message = "the meter has no bands; give `bands: [{type: DROP, rate: 1000}]`";
            self.problem(&node.place, message);
        }
        let bands = nodes.iter().filter_map(|node| self.band(node)).collect();
        let number = section.value("meter_id");
        Some(Meter { place: entry.place.clone(), name, number, flags, bands })
    }

    /// The entries with known keys. Others are ignored, as in Faucet, but not in silence.
    fn known(&mut self, node: &Node, keys: &[Key], what: &str) -> Vec<Entry> {
        let entries = node.map().unwrap_or_default();
        self.warn_unused(entries, keys, what);
        let is_known = |entry: &&Entry| keys.iter().any(|key| Some(key.name) == entry.key.text());
        entries.iter().filter(is_known).cloned().collect()
    }

    fn flags(&mut self, section: &Section<'_>) -> MeterFlags {
        let place = section.place_of("flags").clone();
        let Some(node) = section.node("flags") else {
            self.problem(&place, "the meter has no `flags`; give `flags: KBPS` or `PKTPS`");
            return MeterFlags::default();
        };
        let one = std::slice::from_ref(node);
        let nodes = node.list().unwrap_or(one);
        if nodes.is_empty() {
            self.problem(&place, "the meter has no `flags`; give `flags: KBPS` or `PKTPS`");
        }
        let mut flags = MeterFlags::default();
        for node in nodes {
            let text = node.scalar().and_then(|scalar| scalar.text());
            match FLAGS.iter().find(|(name, _)| Some(*name) == text) {
                Some((_, flag)) => flags |= *flag,
                None => {
                    let message = format!("{node} is no flag; give KBPS, PKTPS, BURST or STATS");
                    self.problem(&node.place, message);
                }
            }
        }
        flags
    }

    fn band(&mut self, node: &Node) -> Option<MeterBand> {
        if node.map().is_none() {
            self.problem(
                &node.place,
                format!("{node} is no band; give `{{type: DROP, rate: 1000}}`"),
            );
            return None;
        }
        let entries = self.known(node, BAND, "key of a band");
        for entry in entries.iter().filter(|entry| entry.value.is_null()) {
            let message = format!("`{}` is empty; give it a value, or remove it", entry.key);
            self.problem(&entry.value.place, message);
        }
        let section = Section::of(&entries, &node.place, BAND, "key of a band", self);
        let kind = section.node("type").and_then(|node| node.scalar()).and_then(|it| it.text());
        let is_remark = match kind {
            Some("DROP") => false,
            Some("DSCP_REMARK") => true,
            _ => {
                let place = section.place_of("type").clone();
                self.problem(&place, "`type` of a band must be DROP or DSCP_REMARK");
                return None;
            }
        };
        let rate = self.band_number(&section, "rate", u32::MAX.into());
        let burst_size = self.band_number(&section, "burst_size", u32::MAX.into());
        let level = self.band_number(&section, "prec_level", u8::MAX.into());
        let dscp_remark = is_remark.then_some(level as u8);
        let place: Place = node.place.clone();
        Some(MeterBand { place, rate: rate as u32, burst_size: burst_size as u32, dscp_remark })
    }

    fn band_number(&mut self, section: &Section<'_>, key: &str, most: u64) -> u64 {
        let Some(node) = section.node(key) else { return 0 };
        let number = node.scalar().and_then(number).and_then(|number| u64::try_from(number).ok());
        number.filter(|number| *number <= most).unwrap_or_else(|| {
            let message = format!("`{key}` cannot be {node}; give a whole number from 0 to {most}");
            self.problem(&node.place, message);
            0
        })
    }

    /// The name of an entry of a section of the top.
    pub(super) fn key_name(&mut self, entry: &Entry, what: &str) -> Option<crate::intent::Name> {
        let name = name_of(&entry.key);
        if name.is_none() {
            let message = format!("`{}` cannot name a {what}; give a word or a number", entry.key);
            self.problem(&entry.place, message);
        }
        name
    }
}
