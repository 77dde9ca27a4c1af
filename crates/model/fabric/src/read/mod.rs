//! From files to an intent: every problem with its place.

mod acl;
mod check;
mod include;
mod meter;
mod output;
mod packet;
mod port;
mod ports;
mod router;
mod section;
mod stack;
mod switch;
mod values;
mod vlan;

use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use section::Section;

use crate::intent::{AclId, Intent, MeterId, Name, Unsupported, VlanId};
use crate::keys::{self, Part};
use crate::yaml::Entry;
use crate::{Files, Place, Problem, Problems, ReadFile};

/// A network that was declared.
#[derive(Clone, Debug)]
pub struct Declared {
    /// What it is to be.
    pub intent: Intent,
    /// The files that declare it, the first one first. If one of them changes, so may the network.
    pub files: Vec<ReadFile>,
    /// What is accepted, since Faucet accepts it, but is hardly meant.
    pub warnings: Vec<Problem>,
}

/// Reads a file and those that it includes.
///
/// # Errors
/// All problems that were found, by place. Nothing of a file with a problem is used.
pub fn read(path: &Path, files: &dyn Files) -> Result<Declared, Problems> {
    let mut reading = Reading::default();
    let top = include::read(path, files, &mut reading);
    let intent = reading.intent(&top);
    if reading.problems.is_empty() {
        let warnings = reading.warnings.sorted().list;
        Ok(Declared { intent, files: top.files, warnings })
    } else {
        Err(reading.problems.sorted())
    }
}

/// The result of reading, so far.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    problems: Problems,
    warnings: Problems,
    noted: Vec<Unsupported>,
    meters: BTreeMap<Name, MeterId>,
    acls: BTreeMap<Name, AclId>,
    /// Problems of the ACLs that nobody may use; by position.
    acl_problems: Vec<Vec<Problem>>,
    vlans: VlanIndex,
    mirrors: Vec<check::MirrorRef>,
    stack_ends: Vec<stack::EndRef>,
}

/// VLANs by the names that ports and routers use for them.
#[derive(Debug, Default)]
struct VlanIndex {
    by_key: BTreeMap<Name, VlanId>,
    by_vid: BTreeMap<u16, VlanId>,
    by_name: BTreeMap<Name, VlanId>,
}

impl Reading {
    pub(crate) fn problem(&mut self, place: &Place, message: impl Into<String>) {
        self.problems.add(place, message);
    }

    pub(crate) fn warning(&mut self, place: &Place, message: impl Into<String>) {
        self.warnings.add(place, message);
    }

    /// Keeps that a key was used whose effect may not be built yet.
    pub(crate) fn note_part(&mut self, key: &keys::Key, entry: &Entry) {
        let is_used = entry.value.is_truthy() && !section::is_preset(key, &entry.value);
        if key.part != Part::First && is_used {
            let place = entry.place.clone();
            self.noted.push(Unsupported { place, key: key.name, part: key.part });
        }
    }

    /// Makes the intent: what others refer to comes first.
    fn intent(&mut self, top: &include::Top) -> Intent {
        let mut intent = Intent { meters: self.meters(&top.meters), ..Intent::default() };
        self.acls(&top.acls, &mut intent);
        self.vlans(&top.vlans, &mut intent);
        let routers = self.routers(&top.routers);
        self.switches(&top.dps, &mut intent);
        self.resolve_routers(routers, &mut intent);
        self.check(&mut intent);
        intent.noted = std::mem::take(&mut self.noted);
        intent
    }
}

/// A port in an error: a number, or a name in quotes.
fn name_hint(name: &Name) -> String {
    match name {
        Name::Number(number) => number.to_string(),
        Name::Text(text) => format!("`{text}`"),
    }
}
