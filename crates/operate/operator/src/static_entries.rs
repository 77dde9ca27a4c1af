//! Orders to the app `static`, and its entries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bellrock_api::{Dpid, Names};
use bellrock_apps::static_entries::{
    self as app, NotSetReason, StaticChange, StaticEntries, StaticOrder, StaticRefusal,
};
use bellrock_book::NotOrdered;
use bellrock_query::{
    DEFAULT_OWNER, ErrorKind, ListStatic, MAX_UNCONFIRMED_SHOWN, QueryError, Rows, SetStatic,
    StaticAnswer, StaticEntry, StaticProblem, StaticRow, StaticState, SwitchRef,
};
use bellrock_services::desired::{IntentState, MissingReason, UnsettledIntents};
use tracing::info;

use super::static_checks::{check_possible, find_absent, not_set, unfit_part};
use super::static_forms::{self, Shown};
use super::static_names::Place;
use super::wait::wait_until;
use super::{ControllerOperator, ORDER_TIMEOUT, name_of};

/// Maximum length of an owner's name, in characters.
const MAX_OWNER_CHARS: usize = 64;

/// What the master of a switch does with an entry.
const INSTALLS: &str = "installs it";

/// Word that operators of other tools give for all switches.
const ALL: &str = "all";

/// Time for the store to take an order. A large one has many commits.
const STORE_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for the app to tell how far the switches are.
const STATES_TIMEOUT: Duration = Duration::from_secs(4);

impl ControllerOperator {
    /// Sets and removes entries, and waits until the switches have confirmed that.
    ///
    /// # Errors
    /// What is wrong with the order; or the store cannot be written.
    pub(super) fn set_static(
        &self,
        names: &Names,
        order: &SetStatic,
    ) -> Result<StaticAnswer, QueryError> {
        let entries = self.static_entries()?;
        let network = &self.network;
        let owner = order.owner.as_deref().unwrap_or(DEFAULT_OWNER);
        check_owner(owner)?;
        let read = |(index, entry): (usize, &StaticEntry)| {
            let read = self.read_entry(names, entries, owner, entry);
            read.map_err(|error| within(&format!("entries[{index}]"), error))
        };
        let set = order.entries.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let static_order = StaticOrder {
            owner: owner.to_owned(),
            set,
            remove: order.remove.clone(),
            replace: order.replace,
        };
        let unresolved = entries.unresolved(&static_order);
        if let Some(absent) = find_absent(network, &unresolved) {
            return Err(not_set(&absent, &order.entries, &order.remove));
        }
        let change = stored(entries, static_order).map_err(|error| match error {
            NotOrdered::Refused(StaticRefusal::NotSet(error)) => {
                not_set(&error, &order.entries, &order.remove)
            }
            error => not_ordered(entries, &error),
        })?;
        let (set, removed) = (change.set, change.removed);
        info!("static entries of {owner}: {set} set, {removed} removed");
        let decided = entries.decided(&change.numbers);
        let open = match wait_until(Instant::now() + ORDER_TIMEOUT, decided) {
            Some(open) => open,
            // Those that are open still.
            None => {
                let mut open = self.unsettled(entries)?;
                open.retain(|number, _| change.numbers.contains(number));
                open
            }
        };
        let problems = self.problems(entries, &open, names);
        Ok(StaticAnswer {
            set,
            unchanged: change.unchanged,
            removed,
            unconfirmed: open.len(),
            waiting: open.values().filter(|state| is_waiting(state)).count(),
            problems,
            saved: entries.is_kept(),
            notice: self.notice(),
        })
    }

    /// The entries with their states.
    ///
    /// # Errors
    /// The switch or the entry does not exist.
    pub(super) fn list_static(
        &self,
        names: &Names,
        query: &ListStatic,
    ) -> Result<Rows<StaticRow>, QueryError> {
        let entries = self.static_entries()?;
        let dpid = query.switch.as_ref().map(|switch| self.dpid(names, switch)).transpose()?;
        let mut all = entries.all();
        all.retain(|entry| {
            dpid.is_none_or(|dpid| dpid == entry.dpid)
                && query.owner.as_ref().is_none_or(|owner| *owner == entry.owner)
                && query.name.as_ref().is_none_or(|name| *name == entry.name)
        });
        if let (Some(name), true) = (&query.name, all.is_empty()) {
            let missing = NotSetReason::Missing(name.clone());
            return Err(QueryError::not_found("name", missing.to_string()));
        }
        let unsettled = self.unsettled(entries)?;
        let now = entries.now();
        let elsewhere = self.elsewhere(names, INSTALLS);
        Ok(Rows::of(all, query.page).map(|entry| {
            let (state, why) = match unsettled.get(&entry.number) {
                None => (StaticState::Installed, None),
                Some(state) => {
                    let (state, why) = state_of(state, &elsewhere, names);
                    (state, Some(why))
                }
            };
            let Shown { flow, group, meter } = static_forms::show(&entry.wanted);
            StaticRow {
                switch_name: name_of(names, entry.dpid),
                name: entry.name,
                owner: entry.owner,
                dpid: entry.dpid,
                state,
                why,
                ttl_seconds: entry.end.map(|end| end.saturating_sub(now).as_secs()),
                flow,
                group,
                meter,
            }
        }))
    }

    fn static_entries(&self) -> Result<&StaticEntries, QueryError> {
        let handle = self.handles.static_entries.as_ref();
        handle.ok_or_else(|| self.no_handle("static", "static_entries"))
    }

    /// The entries of an order that are not confirmed.
    fn problems(
        &self,
        entries: &StaticEntries,
        open: &BTreeMap<u32, IntentState>,
        names: &Names,
    ) -> Vec<StaticProblem> {
        if open.is_empty() {
            return Vec::new();
        }
        let elsewhere = self.elsewhere(names, INSTALLS);
        let by_number: BTreeMap<u32, String> =
            entries.all().into_iter().map(|entry| (entry.number, entry.name)).collect();
        let problem = |(number, state): (&u32, &IntentState)| {
            let (state, why) = state_of(state, &elsewhere, names);
            StaticProblem { name: by_number.get(number).cloned(), state, why }
        };
        let mut problems: Vec<_> = open.iter().collect();
        // What somebody has to mend comes first, and what waits for its switch last.
        problems.sort_by_key(|(_, state)| {
            (!matches!(state, IntentState::Refused(..)), is_waiting(state))
        });
        problems.into_iter().take(MAX_UNCONFIRMED_SHOWN).map(problem).collect()
    }

    fn unsettled(&self, entries: &StaticEntries) -> Result<UnsettledIntents, QueryError> {
        let late =
            || QueryError::new(ErrorKind::Timeout, "the app `static` did not answer in time");
        wait_until(Instant::now() + STATES_TIMEOUT, entries.unsettled()).ok_or_else(late)
    }

    fn read_entry(
        &self,
        names: &Names,
        entries: &StaticEntries,
        owner: &str,
        entry: &StaticEntry,
    ) -> Result<app::StaticEntry, QueryError> {
        let dpid = self.dpid(names, &entry.switch).map_err(|unknown| match &entry.switch {
            SwitchRef::Name(name) if name.eq_ignore_ascii_case(ALL) => all_switches(),
            _ => unknown,
        })?;
        let info = self.network.switch(dpid);
        let place = Place { names, dpid, info: info.as_deref() };
        let entry = &place.identify(entry)?;
        let wanted = static_forms::read(entry)?;
        static_forms::check_actions(entry)?;
        check_possible(entry, &wanted, info.as_ref().map(|info| info.version))?;
        // A switch that is not connected refuses later what its version does not know.
        if let Some(info) = info {
            let unsayable = |error: bellrock_api::Error| {
                let why = format!("switch {} cannot have it: {error}", entry.switch);
                let fits = |wanted: &_| entries.check(wanted, info.version).is_ok();
                QueryError::invalid(&unfit_part(entry, &wanted, fits), why)
            };
            entries.check(&wanted, info.version).map_err(unsayable)?;
        }
        let ttl = entry.ttl_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        if ttl.is_some_and(|ttl| ttl.is_zero()) {
            let why =
                "an entry of 0 seconds would never be there; give at least 1, or leave it out";
            return Err(QueryError::invalid("ttl_seconds", why));
        }
        Ok(app::StaticEntry {
            name: entry.name.clone(),
            owner: owner.to_owned(),
            dpid,
            wanted,
            end: ttl.map(|ttl| entries.now() + ttl),
            number: 0,
        })
    }
}

/// An entry for all switches. Each one has its own, with its own state.
fn all_switches() -> QueryError {
    let why = "an entry is for one switch, and \"all\" is none; give each switch an entry with a name of its own, such \
               as in a file for `bellrock static apply`";
    QueryError::invalid("switch", why)
}

fn check_owner(owner: &str) -> Result<(), QueryError> {
    let is_printable = !owner.is_empty() && !owner.chars().any(char::is_control);
    if is_printable && owner.chars().count() <= MAX_OWNER_CHARS {
        return Ok(());
    }
    let why =
        format!("{owner:?} is not an owner; give 1 to {MAX_OWNER_CHARS} printable characters");
    Err(QueryError::invalid("owner", why))
}

/// Whether an entry waits for its switch to connect, or for this controller to be its master.
fn is_waiting(state: &IntentState) -> bool {
    matches!(state, IntentState::Left(_) | IntentState::Away(_))
}

/// The state of an entry that is not settled, and why it is not. `elsewhere`: the switches that
/// another controller changes.
fn state_of(
    state: &IntentState,
    elsewhere: &BTreeMap<Dpid, String>,
    names: &Names,
) -> (StaticState, String) {
    match state {
        IntentState::Settled => (StaticState::Installed, String::new()),
        IntentState::Leaving | IntentState::Due => {
            (StaticState::Pending, "the switch has not confirmed it yet".to_owned())
        }
        IntentState::Left(dpid) | IntentState::Away(dpid) => {
            let switch = name_of(names, *dpid).unwrap_or_else(|| dpid.to_string());
            match elsewhere.get(dpid) {
                Some(why) => (StaticState::Standby, why.clone()),
                None => (StaticState::Waiting, format!("switch {switch} is not connected")),
            }
        }
        IntentState::Restored(dpid) => {
            let switch = name_of(names, *dpid).unwrap_or_else(|| dpid.to_string());
            let why = format!(
                "switch {switch} did not have it as wanted when its tables were read; it is sent again, and the next \
                 report shows whether it is there"
            );
            (StaticState::Pending, why)
        }
        IntentState::Refused(_, why @ MissingReason::NotKept(_)) => {
            (StaticState::NotKept, why.to_string())
        }
        IntentState::Refused(_, why) => (StaticState::Refused, why.to_string()),
    }
}

/// Gives an order to the store, and waits until it has it.
fn stored(
    entries: &StaticEntries,
    order: StaticOrder,
) -> Result<StaticChange, NotOrdered<StaticRefusal>> {
    let ordered = wait_until(Instant::now() + STORE_TIMEOUT, entries.order(order));
    ordered.unwrap_or_else(|| Err(NotOrdered::Unknown("it is late".to_owned())))
}

fn not_ordered(entries: &StaticEntries, error: &NotOrdered<StaticRefusal>) -> QueryError {
    let is_refusal = |error: &NotOrdered<_>| matches!(error, NotOrdered::Refused(_));
    let kind = match error {
        error if is_refusal(error) => ErrorKind::Refused,
        NotOrdered::Partly { why, .. } if is_refusal(why) => ErrorKind::Refused,
        // etcd does not answer, or other nodes do not stop.
        _ if entries.is_shared() => ErrorKind::Timeout,
        _ => ErrorKind::Internal,
    };
    let text = match error {
        NotOrdered::Unknown(why) => format!(
            "whether this order was carried out is not known, as the answer of the store was lost: \
             bellrock static list shows it when the store answers ({why})"
        ),
        error => error.to_string(),
    };
    QueryError::new(kind, text)
}

/// The same error, about a field of a part of the request.
fn within(part: &str, error: QueryError) -> QueryError {
    let field = match &error.field {
        Some(field) => format!("{part}.{field}"),
        None => part.to_owned(),
    };
    error.at(&field)
}
