//! `interfaces` and `interface_ranges`: which ports a switch has, with which keys.

use std::collections::BTreeMap;

use super::Reading;
use crate::Place;
use crate::yaml::{Entry, Key, Node, Scalar};

/// Maximum number of ports of a switch. A range may name more in a few characters.
pub(super) const MAX_PORTS: usize = 4096;

/// A port with its keys: its own, and those of a range that it lacks.
pub(super) struct PortDraft {
    pub(super) place: Place,
    pub(super) key: Scalar,
    pub(super) entries: Vec<Entry>,
}

impl Reading {
    /// The ports of a switch.
    pub(super) fn port_drafts(&mut self, interfaces: &[Entry], ranges: &[Entry]) -> Vec<PortDraft> {
        let mut drafts: BTreeMap<Key, PortDraft> = BTreeMap::new();
        for entry in interfaces {
            let Some(entries) = self.port_keys(entry) else { continue };
            let number = match entry.value.get("number") {
                Some(number) => match number.value.scalar() {
                    Some(scalar) => scalar.key(),
                    None => {
                        let message =
                            format!("`number` cannot be {}; give the port's", number.value);
                        self.problem(&number.value.place, message);
                        continue;
                    }
                },
                None => entry.key.key(),
            };
            let draft = PortDraft {
                place: entry.place.clone(),
                key: entry.key.clone(),
                entries: entries.to_vec(),
            };
            if let Some(first) = drafts.insert(number, draft) {
                let message = format!(
                    "this port is declared again at line {}, and so ignored here; remove one",
                    entry.place.line
                );
                self.warning(&first.place, message);
            }
        }
        let mut ranged = BTreeMap::new();
        for entry in ranges {
            self.range(entry, &mut drafts, &mut ranged);
        }
        drafts.into_values().collect()
    }

    fn port_keys<'e>(&mut self, entry: &'e Entry) -> Option<&'e [Entry]> {
        let entries = entry.value.map();
        if entries.is_none() {
            let message = format!(
                "port `{}` is {}; give a map, such as `{{native_vlan: 100}}`",
                entry.key, entry.value
            );
            self.problem(&entry.value.place, message);
        }
        entries
    }

    fn range(
        &mut self,
        entry: &Entry,
        drafts: &mut BTreeMap<Key, PortDraft>,
        ranged: &mut BTreeMap<i128, u32>,
    ) {
        let Some(entries) = self.port_keys(entry) else { return };
        let numbers = match numbers(&entry.key.to_string()) {
            Ok(numbers) => numbers,
            Err(message) => return self.problem(&entry.place, message),
        };
        let entries: Vec<Entry> =
            entries.iter().filter(|it| it.key.text() != Some("number")).cloned().collect();
        for number in numbers {
            let line = entry.place.line;
            if let Some(other) = ranged.insert(number, line) {
                if other != line {
                    let message = format!(
                        "port {number} is in the range of line {other} too; ranges cannot overlap"
                    );
                    self.problem(&entry.place, message);
                    return;
                }
                continue;
            }
            let draft = drafts.entry(Key::Int(number)).or_insert_with(|| PortDraft {
                place: entry.place.clone(),
                key: Scalar::Int(number),
                entries: Vec::new(),
            });
            let own: Vec<Key> = draft.entries.iter().map(|entry| entry.key.key()).collect();
            let lacking = entries.iter().filter(|entry| !own.contains(&entry.key.key()));
            draft.entries.extend(lacking.cloned());
        }
    }

    /// The entries of `interfaces` or `interface_ranges`.
    pub(super) fn port_section<'n>(&mut self, node: Option<&'n Node>, key: &str) -> &'n [Entry] {
        let Some(node) = node else { return &[] };
        node.map().unwrap_or_else(|| {
            let message = format!("`{key}` is {node}; give a map of ports, or remove it");
            self.problem(&node.place, message);
            &[]
        })
    }
}

/// The numbers of a range: `1-6,8`. Only digits and the signs between them are read.
fn numbers(range: &str) -> Result<Vec<i128>, String> {
    let mut numbers = Vec::new();
    let mut rest = range;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let text = &rest[start..];
        let (first, behind) = text.split_at(digits(text));
        let last =
            behind.strip_prefix('-').filter(|it| it.starts_with(|c: char| c.is_ascii_digit()));
        let parse = |text: &str| text.parse::<i128>().unwrap_or(i128::MAX);
        let first_number = parse(first);
        let Some(last) = last else {
            numbers.push(first_number);
            rest = behind;
            continue;
        };
        let (last, behind) = last.split_at(digits(last));
        let last_number = parse(last);
        if first_number >= last_number {
            return Err(format!(
                "{first}-{last} is no range of ports; give the smaller number first"
            ));
        }
        let count = usize::try_from(last_number - first_number).unwrap_or(usize::MAX);
        if count >= MAX_PORTS {
            return Err(format!(
                "{first}-{last} has more ports than {MAX_PORTS}, the most of a switch"
            ));
        }
        numbers.extend(first_number..=last_number);
        rest = behind;
    }
    if numbers.is_empty() {
        return Err(format!("`{range}` is no range of ports; give one such as 1-6,8"));
    }
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > MAX_PORTS {
        return Err(format!("`{range}` has more ports than {MAX_PORTS}, the most of a switch"));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_faucet_reads_them() {
        for (range, expected) in [
            ("1-3", "1 2 3"),
            ("1-3,5,7-9", "1 2 3 5 7 8 9"),
            ("5", "5"),
            ("ports 2 to 4", "2 4"),
            ("1-2-4", "1 2 4"),
            ("3,1,3", "1 3"),
        ] {
            let numbers: Vec<String> =
                numbers(range).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(numbers.join(" "), expected, "{range}");
        }
        for range in ["abc", "", "3-1", "3-3", "1-4294967295", "1-99999999999999999999"] {
            assert!(numbers(range).is_err(), "{range}");
        }
    }
}
