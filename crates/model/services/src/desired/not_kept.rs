//! Changes that a switch confirms and does not keep.
//!
//! Some switches report an entry otherwise than they confirmed it: without its cookie, with a
//! shorter length for packets to the controller, with written actions for applied ones. Some let
//! one flow replace another. Without an end each audit would correct the same entries again. So
//! corrections are counted: a change that was confirmed [`NOT_KEPT_AFTER`] times, each time after
//! the same report, and is not in the report that follows, is *not kept*. It is sent again at
//! growing intervals, and does not count as installed until [`KEPT_AFTER`] reports in a row have
//! it.
//!
//! A connection that ends takes the counts with it: the switch may come back with other software.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bellrock_api::{Change, Deviation, FlowKey, FlowNormalizer, ReportedFlow, Version};

use super::compare::{ChangeResult, DueChange, EntryKey};
use super::read::{KnownEntries, is_reactive};

/// Number of equal corrections that a switch has confirmed, after which it does not keep the entry.
pub const NOT_KEPT_AFTER: u32 = 2;

/// Time after which an entry that a switch does not keep is sent again at first. It doubles each
/// time, up to [`NOT_KEPT_AGAIN_MAX`]. It is sent after the next audit.
pub const NOT_KEPT_AGAIN: Duration = Duration::from_secs(120);

/// Maximum of [`NOT_KEPT_AGAIN`].
pub const NOT_KEPT_AGAIN_MAX: Duration = Duration::from_secs(30 * 60);

/// Number of reports in a row with an entry, after which its corrections are forgotten. Of two
/// flows that replace each other, each is in every second report.
pub const KEPT_AFTER: u32 = 3;

/// Time after which the tables are read again when a correction is confirmed: only the report shows
/// whether the entry is there.
pub const VERIFY_AFTER: Duration = Duration::from_secs(10);

/// Maximum number of entries of a switch, for each app, whose corrections are counted. Further ones
/// are corrected after each audit.
const MAX_CORRECTED: usize = 65_536;

/// The corrections of one switch.
#[derive(Debug, Default)]
pub(super) struct NotKept {
    corrected: HashMap<EntryKey, Correction>,
    /// Entries that the last audit found to be others than the confirmed ones.
    deviating: HashSet<EntryKey>,
    /// Number of entries in `corrected` that the switch does not keep.
    count: usize,
}

/// Equal corrections of one entry.
#[derive(Debug)]
struct Correction {
    intent: u32,
    change: Change,
    result: ChangeResult,
    /// What the switch reported before the correction.
    previous: Option<ChangeResult>,
    times: u32,
    /// It was sent since the last audit.
    is_sent: bool,
    /// Number of reports in a row that have the result.
    reports: u32,
    not_kept: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    why: Deviation,
    length: Duration,
    until: Duration,
}

/// What an audit has found about corrected entries.
#[derive(Debug, Default)]
pub(super) struct KeptReport {
    /// Number of flows that were changed from outside, without those that the switch does not keep.
    pub(super) altered: usize,
    /// Number of entries that the switch does not keep, as this audit has shown first.
    pub(super) not_kept: usize,
    /// One of them, and what the switch reports.
    pub(super) example: Option<Box<str>>,
    /// The switch keeps all entries that it did not keep before.
    pub(super) is_over: bool,
}

impl NotKept {
    /// Notes that a switch has confirmed a change of an entry that was `previous` before. Returns
    /// whether it is one that the switch does not keep.
    pub(super) fn note_confirmed(
        &mut self,
        due: &DueChange,
        previous: Option<&ChangeResult>,
    ) -> bool {
        if self.deviating.is_empty() && self.corrected.is_empty() {
            return false;
        }
        let key = due.result.key();
        if let Some(correction) = self.corrected.get_mut(&key)
            && correction.change == due.change
        {
            // After a pause it may replace its own contents.
            if correction.previous.as_ref() == previous || correction.not_kept.is_some() {
                correction.times += 1;
            } else {
                (correction.times, correction.previous) = (1, previous.cloned());
            }
            correction.is_sent = true;
            return correction.not_kept.is_some();
        }
        // Another change of the entry begins anew.
        let old = self.corrected.remove(&key);
        self.count -= usize::from(old.as_ref().is_some_and(|old| old.not_kept.is_some()));
        if (old.is_some() || self.deviating.contains(&key)) && self.corrected.len() < MAX_CORRECTED
        {
            let correction = Correction {
                intent: due.intent,
                change: due.change.clone(),
                result: due.result.clone(),
                previous: previous.cloned(),
                times: 1,
                is_sent: true,
                reports: 0,
                not_kept: None,
            };
            self.corrected.insert(key, correction);
        }
        false
    }

    /// Returns how the switch deviates from a change that it does not keep, while the change is not
    /// to be sent.
    pub(super) fn held(
        &self,
        now: Duration,
        change: &Change,
        result: &ChangeResult,
    ) -> Option<Deviation> {
        let correction = self.not_kept(result)?;
        let pause = correction.not_kept.as_ref()?;
        (now < pause.until && correction.change == *change).then_some(pause.why)
    }

    /// Returns how the switch deviates from an entry that it reports now, but does not keep.
    pub(super) fn doubtful(&self, result: &ChangeResult) -> Option<Deviation> {
        let correction = self.not_kept(result).filter(|correction| correction.result == *result)?;
        Some(correction.not_kept.as_ref()?.why)
    }

    fn not_kept(&self, result: &ChangeResult) -> Option<&Correction> {
        if self.count == 0 {
            return None;
        }
        self.corrected.get(&result.key())
    }

    /// Returns the intents of entries that a report did not have as wanted, and that were corrected
    /// since. The next report shows whether they are there. A confirmed removal is settled.
    pub(super) fn unverified(&self) -> impl Iterator<Item = u32> {
        let is_unverified =
            |it: &&Correction| it.is_sent && it.not_kept.is_none() && it.result.is_entry();
        self.corrected.values().filter(is_unverified).map(|correction| correction.intent)
    }

    /// Whether a correction was sent since the last report.
    pub(super) fn needs_report(&self) -> bool {
        self.corrected.values().any(|correction| correction.is_sent)
    }

    /// Whether the switch keeps all its entries, as far as is known.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sends the changes of these intents again.
    pub(super) fn retry(&mut self, intents: impl Fn(u32) -> bool) -> bool {
        let mut had_any = false;
        for correction in self.corrected.values_mut().filter(|held| intents(held.intent)) {
            if let Some(pause) = &mut correction.not_kept {
                (pause.until, had_any) = (Duration::ZERO, true);
            }
        }
        had_any
    }

    /// Returns the flows that were missing before each correction. They may be there under another
    /// cookie.
    pub(super) fn missing_flows(&self) -> Arc<HashSet<FlowKey>> {
        let missing = self.corrected.values().filter(|correction| correction.previous.is_none());
        Arc::new(missing.filter_map(|missing| missing.result.flow_key().cloned()).collect())
    }

    /// Notes the entries before an audit, and those that the switch has reported. `by_order`:
    /// orders of operators may have changed them.
    pub(super) fn note_audit(
        &mut self,
        now: Duration,
        version: Version,
        before: &KnownEntries,
        reported: &KnownEntries,
        by_order: bool,
    ) -> KeptReport {
        let mut report = KeptReport::default();
        let had_any = self.count > 0;
        self.deviating = deviating(before, reported);
        let count = &mut self.count;
        self.corrected.retain(|_, correction| {
            let is_sent = std::mem::take(&mut correction.is_sent);
            if reported.has(&correction.result) {
                correction.reports += 1;
                let is_kept = correction.reports >= KEPT_AFTER;
                *count -= usize::from(is_kept && correction.not_kept.is_some());
                return !is_kept;
            }
            correction.reports = 0;
            match &mut correction.not_kept {
                Some(pause) if is_sent => {
                    pause.length = (pause.length * 2).min(NOT_KEPT_AGAIN_MAX);
                    pause.until = now + pause.length;
                }
                None if correction.times >= NOT_KEPT_AFTER => {
                    let (why, text) = correction.deviation(version, reported);
                    let (length, until) = (NOT_KEPT_AGAIN, now + NOT_KEPT_AGAIN);
                    correction.not_kept = Some(Pause { why, length, until });
                    (*count, report.not_kept) = (*count + 1, report.not_kept + 1);
                    report.example.get_or_insert(text.into_boxed_str());
                }
                _ => {}
            }
            true
        });
        let is_altered = |key: &&EntryKey| {
            let correction = self.corrected.get(key);
            matches!(key, EntryKey::Flow(_)) && correction.is_none_or(|it| it.not_kept.is_none())
        };
        report.altered = self.deviating.iter().filter(is_altered).count();
        if by_order {
            // Who changes flows by orders does not fight, and the switch keeps what it confirms.
            self.deviating.clear();
        }
        report.is_over = had_any && self.count == 0;
        report
    }
}

impl Correction {
    /// Returns how the report deviates from the result, and says it.
    fn deviation(&self, version: Version, reported: &KnownEntries) -> (Deviation, String) {
        match &self.result {
            ChangeResult::Flow(wanted) => {
                let key = &wanted.key;
                let found = reported.flows.get(key).or_else(|| reported.strangers.get(key));
                let mut text = format!("flow {} priority={}: ", key.matching, key.priority);
                text += &match found {
                    None => "it does not report it".to_owned(),
                    Some(found) => {
                        let difference = FlowNormalizer::new(version).difference(wanted, found);
                        format!("it reports {difference}")
                    }
                };
                (wanted.deviation(found), text)
            }
            ChangeResult::NoFlow(key) => {
                let matching = &key.matching;
                let text = format!(
                    "flow {matching} priority={}: it still reports it after its removal",
                    key.priority
                );
                (Deviation::Present, text)
            }
            ChangeResult::Group(id, wanted) => entry("group", *id, wanted, reported.groups.get(id)),
            ChangeResult::Meter(id, wanted) => entry("meter", *id, wanted, reported.meters.get(id)),
            ChangeResult::NoGroup(id) => {
                (Deviation::Present, format!("group {id}: it still reports it after its removal"))
            }
            ChangeResult::NoMeter(id) => {
                (Deviation::Present, format!("meter {id}: it still reports it after its removal"))
            }
        }
    }
}

fn entry(what: &str, id: u32, wanted: &str, reported: Option<&String>) -> (Deviation, String) {
    match reported {
        None => (Deviation::Missing, format!("{what} {id}: it does not report it")),
        Some(other) => {
            let text = format!("{what} {id}: it reports {other} instead of {wanted}");
            (Deviation::Contents, text)
        }
    }
}

/// Returns the entries that differ from the confirmed ones, except reactive flows, and groups and
/// meters that are new: another app may have added those.
fn deviating(before: &KnownEntries, reported: &KnownEntries) -> HashSet<EntryKey> {
    let is_kept = |(_, flow): &(&FlowKey, &ReportedFlow)| !is_reactive(flow);
    let differs = |(key, flow): &(&FlowKey, &ReportedFlow)| reported.flows.get(key) != Some(flow);
    let is_new = |(key, _): &(&FlowKey, &ReportedFlow)| !before.flows.contains_key(key);
    let changed = before.flows.iter().filter(is_kept).filter(differs);
    let new = reported.flows.iter().filter(is_kept).filter(is_new);
    let flows = changed.chain(new).map(|(key, _)| EntryKey::Flow(key.clone()));
    let groups = before.groups.iter().filter(|(id, text)| reported.groups.get(id) != Some(text));
    let meters = before.meters.iter().filter(|(id, text)| reported.meters.get(id) != Some(text));
    flows
        .chain(groups.map(|(id, _)| EntryKey::Group(*id)))
        .chain(meters.map(|(id, _)| EntryKey::Meter(*id)))
        .collect()
}
