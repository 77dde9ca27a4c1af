//! The hosts to block, from both sources, and the switches that do not block them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bellrock_api::{Dpid, Publisher, Watch};

use super::list::{BlockList, Blocked, MAX_BLOCKED};

/// The hosts that a [`Quarantine`](super::Quarantine) blocks. All clones share the same lists.
///
/// There are two sources. The file is replaced as a whole ([`BlockLists::set_file`]). Single
/// entries are changed by [`BlockLists::add`] and [`BlockLists::remove`], and lost when the
/// controller ends. Entries of either source are blocked.
#[derive(Clone, Debug, Default)]
pub struct BlockLists(Arc<BlockListState>);

#[derive(Debug, Default)]
struct BlockListState {
    wanted: Publisher<WantedBlocks>,
    /// Entries that switches fail to block.
    gaps: Mutex<BTreeMap<Dpid, Gaps>>,
    file_problem: Mutex<Option<String>>,
}

/// Entries that a switch does not block, with the reason.
pub(super) type Gaps = BTreeMap<Blocked, String>;

/// Entries of both sources.
#[derive(Clone, Debug, Default)]
pub(super) struct WantedBlocks {
    file: BlockList,
    added: BTreeSet<Blocked>,
}

impl WantedBlocks {
    /// All entries to block.
    pub(super) fn all(&self) -> BTreeSet<Blocked> {
        self.file.iter().chain(&self.added).copied().collect()
    }
}

/// An entry and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// The blocked host or prefix.
    pub blocked: Blocked,
    /// Its line in the file; `None` if it was added singly.
    pub line: Option<usize>,
    /// The switches that do not block it, with the reason.
    pub gaps: Vec<(Dpid, String)>,
}

/// Reason why the lists were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChanged {
    /// It is listed already.
    #[error("{0} is blocked already")]
    Listed(Blocked),
    /// There are too many entries.
    #[error(
        "{MAX_BLOCKED} hosts and prefixes are blocked already, and more would not fit; use prefixes"
    )]
    Full,
    /// It is in the file, which only the operator changes.
    #[error("{blocked} is in line {line} of the file; remove it there")]
    InFile {
        /// The blocked host or prefix.
        blocked: Blocked,
        /// Its line.
        line: usize,
    },
    /// There is no such entry. A prefix that covers it may be listed.
    #[error("{0} is not on the list in this form; `bellrock quarantine list` shows all entries")]
    NotListed(Blocked),
}

impl BlockLists {
    /// Blocks a host, or a prefix.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub fn add(&self, blocked: Blocked) -> Result<(), NotChanged> {
        self.change(|wanted| {
            if wanted.file.line(&blocked).is_some() || wanted.added.contains(&blocked) {
                return Err(NotChanged::Listed(blocked));
            }
            if wanted.all().len() >= MAX_BLOCKED {
                return Err(NotChanged::Full);
            }
            wanted.added.insert(blocked);
            Ok(())
        })
    }

    /// Unblocks a host or a prefix that [`BlockLists::add`] blocked.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub fn remove(&self, blocked: Blocked) -> Result<(), NotChanged> {
        self.change(|wanted| {
            if wanted.added.remove(&blocked) {
                return Ok(());
            }
            Err(match wanted.file.line(&blocked) {
                Some(line) => NotChanged::InFile { blocked, line },
                None => NotChanged::NotListed(blocked),
            })
        })
    }

    /// Replaces the list of the file. If it is too long, together with the [added](BlockLists::add)
    /// entries, the previous list stays in force, and [`BlockLists::file_problem`] reports it.
    pub fn set_file(&self, file: BlockList) {
        let result = self.change(|wanted| {
            let next = WantedBlocks { file, added: wanted.added.clone() };
            if next.all().len() > MAX_BLOCKED {
                return Err(NotChanged::Full);
            }
            *wanted = next;
            Ok(())
        });
        *self.lock_problem() = result.err().map(|full| full.to_string());
    }

    /// Records why a changed file was not accepted. The previous list stays in force.
    pub fn reject_file(&self, problem: String) {
        *self.lock_problem() = Some(problem);
    }

    /// Reason why the present list differs from the file.
    #[must_use]
    pub fn file_problem(&self) -> Option<String> {
        self.lock_problem().clone()
    }

    /// Lists all blocked hosts and prefixes, in order.
    #[must_use]
    pub fn entries(&self) -> Vec<BlockEntry> {
        let (wanted, gaps) = (self.wanted().load(), self.gaps());
        let gaps_of = |blocked: &Blocked| {
            let at =
                gaps.iter().filter_map(|(dpid, gaps)| Some((*dpid, gaps.get(blocked)?.clone())));
            at.collect()
        };
        let entry = |blocked: Blocked| BlockEntry {
            blocked,
            line: wanted.file.line(&blocked),
            gaps: gaps_of(&blocked),
        };
        wanted.all().into_iter().map(entry).collect()
    }

    pub(super) fn wanted(&self) -> &Watch<WantedBlocks> {
        self.0.wanted.watch()
    }

    /// Records the entries that a switch does not block; none if it blocks all or has disconnected.
    pub(super) fn note_gaps(&self, dpid: Dpid, gaps: Gaps) {
        match gaps.is_empty() {
            true => self.gaps().remove(&dpid),
            false => self.gaps().insert(dpid, gaps),
        };
    }

    fn change(
        &self,
        change: impl FnOnce(&mut WantedBlocks) -> Result<(), NotChanged>,
    ) -> Result<(), NotChanged> {
        let mut outcome = Ok(());
        self.0.wanted.update(|present| {
            let mut next = present.clone();
            outcome = change(&mut next);
            next
        });
        outcome
    }

    fn lock_problem(&self) -> MutexGuard<'_, Option<String>> {
        self.0.file_problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gaps(&self) -> MutexGuard<'_, BTreeMap<Dpid, Gaps>> {
        // Each change of it is one insertion or removal.
        self.0.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_in_the_file_is_let_back_there_only() {
        let lists = BlockLists::default();
        let [host, guest, other]: [Blocked; 3] =
            ["00:00:00:00:00:01", "10.1.0.0/16", "10.1.0.1"].map(|text| text.parse().unwrap());
        lists.set_file(BlockList::parse("# who\n00:00:00:00:00:01").unwrap());
        assert_eq!(lists.add(guest), Ok(()));
        assert_eq!(lists.add(guest), Err(NotChanged::Listed(guest)));
        assert_eq!(lists.add(host), Err(NotChanged::Listed(host)));
        assert_eq!(lists.remove(host), Err(NotChanged::InFile { blocked: host, line: 2 }));
        assert_eq!(lists.remove(other), Err(NotChanged::NotListed(other)));
        let listed: Vec<_> = lists.entries().iter().map(|e| (e.blocked, e.line)).collect();
        assert_eq!(listed, [(host, Some(2)), (guest, None)]);
        assert_eq!(lists.remove(guest), Ok(()));
        lists.set_file(BlockList::default());
        assert_eq!(lists.entries(), []);
    }

    #[test]
    fn both_sources_together_are_bounded() {
        let lists = BlockLists::default();
        let file = |hosts: u32| {
            let host = |n: u32| format!("10.{}.{}.{}\n", n >> 16, n >> 8 & 255, n & 255);
            BlockList::parse(&(0..hosts).map(host).collect::<String>()).unwrap()
        };
        let host: Blocked = "00:00:00:00:00:01".parse().unwrap();
        lists.set_file(file(2));
        assert_eq!(lists.add(host), Ok(()));
        lists.set_file(file(MAX_BLOCKED as u32));
        assert!(lists.file_problem().unwrap().contains("more would not fit"));
        assert_eq!(lists.entries().len(), 3, "the list of before, and who was added");
        assert_eq!(lists.remove(host), Ok(()));
        lists.set_file(file(MAX_BLOCKED as u32));
        assert_eq!((lists.file_problem(), lists.entries().len()), (None, MAX_BLOCKED));
        assert_eq!(lists.add(host), Err(NotChanged::Full));
    }
}
