//! The hosts to block, from both sources, and the switches that are not known to block them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bellrock_api::{AppEvent, Dpid, Network, Publisher, Version, Watch};
use bellrock_services::desired::{IncludedOrders, SwitchOrders};

use super::list::{BlockList, Blocked, MAX_BLOCKED};
use super::stored::StoredBlocks;

/// The hosts that a [`Quarantine`](super::Quarantine) blocks. All clones share the same lists.
///
/// There are two sources. The file is replaced as a whole ([`BlockLists::set_file`]). Single
/// entries are changed by [`BlockLists::add`] and [`BlockLists::remove`], and lost when the
/// controller ends; with a store ([`BlockLists::stored`]) they are changed by [`BlockLists::block`]
/// and [`BlockLists::unblock`] only, and stay. Entries of either source are blocked.
#[derive(Clone, Debug, Default)]
pub struct BlockLists(Arc<BlockListState>);

#[derive(Debug, Default)]
struct BlockListState {
    wanted: Publisher<WantedBlocks>,
    /// The switches that are up.
    switches: Mutex<BTreeMap<Dpid, SwitchBlocks>>,
    /// Number of changes of `switches`.
    noted: Publisher<u64>,
    file_problem: Mutex<Option<String>>,
    /// Where a problem of the file is an alarm, once the app has started.
    network: OnceLock<Network>,
    book: Option<StoredBlocks>,
}

/// Name of the alarm that the present list differs from the file, and what it is about. It ends
/// with the next list of the file that is in force.
const REFUSED: &str = "block_list_refused";
const SUBJECT: &str = "file";

/// Which entries a switch blocks.
#[derive(Debug)]
pub(super) struct SwitchBlocks {
    /// Revision of the lists that the switch has been brought to, as far as it can: it has
    /// confirmed the entries of that revision, except those in `gaps`.
    pub(super) revision: u64,
    /// Entries that it does not block, or has not confirmed.
    pub(super) gaps: Gaps,
    /// Orders of operators at this switch, and those that its last report includes.
    pub(super) orders: SwitchOrders,
    pub(super) included_orders: IncludedOrders,
}

/// Entries that a switch does not block, with the reason.
pub(super) type Gaps = BTreeMap<Blocked, BlockGap>;

/// Why a switch is not known to block an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockGap {
    /// Its drops are on their way, or the switch has yet to report its flows.
    #[error("the switch has not confirmed it yet")]
    Unconfirmed,
    /// An order of an operator may have removed its drops.
    #[error("an operator's order has changed the switch, and its flows are being read")]
    Reading,
    /// The switch did not confirm the drops. They are sent again.
    #[error("{0}")]
    Failed(String),
    /// The switch refuses the drops. They are sent again from time to time.
    #[error("{0}")]
    Refused(String),
    /// Its version cannot express the drops.
    #[error("OpenFlow {0} does not know IPv6")]
    Unsupported(Version),
}

impl BlockGap {
    /// Whether the switch is going to confirm or refuse the entry, so that it is worth to wait.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self, BlockGap::Unconfirmed | BlockGap::Reading)
    }
}

impl SwitchBlocks {
    /// Of a switch that has just come up, and has confirmed nothing.
    pub(super) fn of_new_connection(orders: SwitchOrders) -> Self {
        let included_orders = IncludedOrders::of_new_connection(orders.counts());
        SwitchBlocks { revision: 0, gaps: Gaps::new(), orders, included_orders }
    }

    /// Why the switch is not known to block an entry that is wanted since this revision.
    fn gap(&self, blocked: &Blocked, since: u64) -> Option<BlockGap> {
        if since > self.revision {
            return Some(BlockGap::Unconfirmed);
        }
        if let Some(gap) = self.gaps.get(blocked) {
            return Some(gap.clone());
        }
        self.included_orders.is_outdated(self.orders.counts()).then_some(BlockGap::Reading)
    }
}

/// Entries of both sources.
#[derive(Clone, Debug, Default)]
pub(super) struct WantedBlocks {
    file: BlockList,
    added: BTreeSet<Blocked>,
    /// Number of changes so far.
    revision: u64,
    /// The revision at which each entry became wanted.
    since: BTreeMap<Blocked, u64>,
}

impl WantedBlocks {
    /// All entries to block.
    pub(super) fn all(&self) -> BTreeSet<Blocked> {
        self.since.keys().copied().collect()
    }

    /// Number of changes so far.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The revision at which an entry became wanted.
    pub(super) fn since(&self, blocked: &Blocked) -> Option<u64> {
        self.since.get(blocked).copied()
    }
}

/// An entry and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEntry {
    /// The blocked host or prefix.
    pub blocked: Blocked,
    /// Its line in the file; `None` if it was added singly.
    pub line: Option<usize>,
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
    /// It could not be stored.
    #[error("{0}")]
    NotStored(String),
}

impl BlockLists {
    pub(super) fn of(book: StoredBlocks) -> Self {
        let state = BlockListState { book: Some(book), ..BlockListState::default() };
        let lists = BlockLists(Arc::new(state));
        // What is known already is blocked before the first switch comes up.
        lists.take_stored();
        lists
    }

    pub(super) fn book(&self) -> Option<&StoredBlocks> {
        self.0.book.as_ref()
    }

    /// The line of the file that lists an entry.
    pub(super) fn line(&self, blocked: &Blocked) -> Option<usize> {
        self.wanted().load().file.line(blocked)
    }

    /// Number of entries of the file.
    pub(super) fn file_len(&self) -> usize {
        self.wanted().load().file.iter().count()
    }

    /// Replaces the single entries.
    pub(super) fn set_added(&self, added: &BTreeSet<Blocked>) {
        let _ = self.change(|wanted| {
            let file = wanted.file.clone();
            let since =
                |blocked: &Blocked| (*blocked, wanted.since(blocked).unwrap_or(wanted.revision));
            let all: BTreeMap<_, _> = file.iter().chain(added).map(since).collect();
            (wanted.added, wanted.since) = (added.clone(), all);
            Ok(())
        });
    }

    /// Blocks a host, or a prefix.
    ///
    /// # Errors
    /// [`NotChanged`].
    pub fn add(&self, blocked: Blocked) -> Result<(), NotChanged> {
        self.change(|wanted| {
            if wanted.file.line(&blocked).is_some() || wanted.added.contains(&blocked) {
                return Err(NotChanged::Listed(blocked));
            }
            if wanted.since.len() >= MAX_BLOCKED {
                return Err(NotChanged::Full);
            }
            wanted.added.insert(blocked);
            wanted.since.insert(blocked, wanted.revision);
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
                if wanted.file.line(&blocked).is_none() {
                    wanted.since.remove(&blocked);
                }
                return Ok(());
            }
            Err(match wanted.file.line(&blocked) {
                Some(line) => NotChanged::InFile { blocked, line },
                None => NotChanged::NotListed(blocked),
            })
        })
    }

    /// Checks whether the list of a file fits beside the single entries.
    ///
    /// # Errors
    /// [`NotChanged::Full`].
    pub fn check_file(&self, file: &BlockList) -> Result<(), NotChanged> {
        let wanted = self.wanted().load();
        let all: BTreeSet<Blocked> = file.iter().chain(&wanted.added).copied().collect();
        if all.len() > MAX_BLOCKED { Err(NotChanged::Full) } else { Ok(()) }
    }

    /// Replaces the list of the file. If it is too long, together with the [added](BlockLists::add)
    /// entries, the previous list stays in force, and [`BlockLists::file_problem`] reports it.
    pub fn set_file(&self, file: BlockList) {
        let result = self.change(|wanted| {
            let since =
                |blocked: &Blocked| (*blocked, wanted.since(blocked).unwrap_or(wanted.revision));
            let all: BTreeMap<_, _> = file.iter().chain(&wanted.added).map(since).collect();
            if all.len() > MAX_BLOCKED {
                return Err(NotChanged::Full);
            }
            (wanted.file, wanted.since) = (file, all);
            Ok(())
        });
        self.note_problem(result.err().map(|full| full.to_string()));
    }

    /// Records why a changed file was not accepted. The previous list stays in force.
    pub fn reject_file(&self, problem: String) {
        self.note_problem(Some(problem));
    }

    /// Makes problems of the file alarms of this network.
    pub(super) fn report_to(&self, network: &Network) {
        let is_first = self.0.network.set(network.clone()).is_ok();
        if let Some(problem) = self.file_problem().filter(|_| is_first) {
            self.note_problem(Some(problem));
        }
    }

    fn note_problem(&self, problem: Option<String>) {
        let event = match &problem {
            Some(why) => {
                let text = format!("the block list of the file is not in force: {why}");
                AppEvent::new(REFUSED, &text).alarming_until_ended(SUBJECT)
            }
            None => AppEvent::new("block_list_taken", "the block list of the file is in force")
                .ending(REFUSED, SUBJECT),
        };
        let is_reported = self.0.network.get();
        if let Some(network) = is_reported.filter(|it| problem.is_some() || it.would_end(&event)) {
            network.publish(event);
        }
        *self.lock_problem() = problem;
    }

    /// Reason why the present list differs from the file.
    #[must_use]
    pub fn file_problem(&self) -> Option<String> {
        self.lock_problem().clone()
    }

    /// Lists all blocked hosts and prefixes, in order.
    #[must_use]
    pub fn entries(&self) -> Vec<BlockEntry> {
        let wanted = self.wanted().load();
        let entry = |blocked: Blocked| BlockEntry { blocked, line: wanted.file.line(&blocked) };
        wanted.all().into_iter().map(entry).collect()
    }

    /// Returns the switches that are up and not known to block an entry, with the reason.
    #[must_use]
    pub fn gaps(&self, blocked: &Blocked) -> Vec<(Dpid, BlockGap)> {
        let Some(since) = self.wanted().load().since(blocked) else { return Vec::new() };
        let switches = self.switches();
        let gap =
            |(dpid, blocks): (&Dpid, &SwitchBlocks)| Some((*dpid, blocks.gap(blocked, since)?));
        switches.iter().filter_map(gap).collect()
    }

    /// Waits until all switches that are up have confirmed an entry, or refused it.
    pub async fn decided(&self, blocked: Blocked) {
        loop {
            let noted = self.0.noted.watch().load();
            if !self.gaps(&blocked).iter().any(|(_, gap)| gap.is_pending()) {
                return;
            }
            self.0.noted.watch().newer(noted.version()).await;
        }
    }

    pub(super) fn wanted(&self) -> &Watch<WantedBlocks> {
        self.0.wanted.watch()
    }

    /// Records which entries a switch blocks.
    pub(super) fn note(&self, dpid: Dpid, blocks: SwitchBlocks) {
        self.switches().insert(dpid, blocks);
        self.0.noted.update(|noted| noted + 1);
    }

    /// Records that a switch is not up any more.
    pub(super) fn note_down(&self, dpid: Dpid) {
        self.switches().remove(&dpid);
        self.0.noted.update(|noted| noted + 1);
    }

    fn change(
        &self,
        change: impl FnOnce(&mut WantedBlocks) -> Result<(), NotChanged>,
    ) -> Result<(), NotChanged> {
        let mut outcome = Ok(());
        self.0.wanted.update(|present| {
            let mut next = present.clone();
            next.revision += 1;
            outcome = change(&mut next);
            next
        });
        outcome
    }

    fn lock_problem(&self) -> MutexGuard<'_, Option<String>> {
        self.0.file_problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn switches(&self) -> MutexGuard<'_, BTreeMap<Dpid, SwitchBlocks>> {
        // Each change of it is one insertion or removal.
        self.0.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_the_file_are_unblocked_only_there() {
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
