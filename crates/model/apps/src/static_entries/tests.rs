//! Orders of static entries: what they change, what they are refused for, and ends.

use bellrock_api::openflow::{Action, GroupType};
use bellrock_api::{BucketEntry, Dpid, Flow, GroupEntry, Match, MeterEntry, Port};

use super::check::Plan;
use super::*;

fn flow(name: &str, dpid: u64, port: u32) -> StaticEntry {
    let flow = Flow::new(Match::any().in_port(Port(port))).output(Port(9));
    StaticEntry {
        name: name.to_owned(),
        owner: "alice".to_owned(),
        dpid: Dpid(dpid),
        wanted: flow.into(),
        end: None,
        number: 0,
    }
}

/// Carries out an order as a book does that stores it at once.
fn carry_out(
    index: &mut EntryIndex,
    order: StaticOrder,
    now: Duration,
) -> Result<StaticChange, NotSet> {
    index.expire(now);
    let Plan { set, remove, change } = index.plan(&order)?;
    set.iter().for_each(|entry| index.store(&entry.name, Some(entry)));
    remove.iter().for_each(|name| index.store(name, None));
    Ok(change)
}

/// Takes out what has ended. Returns the numbers.
fn expire(index: &mut EntryIndex, now: Duration) -> BTreeSet<u32> {
    index.take_changed();
    index.expire(now);
    index.take_changed()
}

fn set(index: &mut EntryIndex, entries: &[StaticEntry]) -> Result<StaticChange, String> {
    let owner = entries[0].owner.clone();
    let order = StaticOrder { owner, set: entries.to_vec(), ..StaticOrder::default() };
    carry_out(index, order, Duration::ZERO).map_err(|error| error.to_string())
}

fn remove(index: &mut EntryIndex, owner: &str, names: &[&str]) -> Result<StaticChange, String> {
    let remove = names.iter().map(|name| (*name).to_owned()).collect();
    let order = StaticOrder { owner: owner.to_owned(), remove, ..StaticOrder::default() };
    carry_out(index, order, Duration::ZERO).map_err(|error| error.to_string())
}

fn names(index: &EntryIndex) -> Vec<(&str, u32)> {
    index.entries().map(|entry| (&*entry.name, entry.number)).collect()
}

#[test]
fn a_name_keeps_its_number() {
    let mut book = EntryIndex::default();
    let change = set(&mut book, &[flow("a", 1, 1), flow("b", 1, 2)]).unwrap();
    assert_eq!((change.set, change.numbers.len()), (2, 2));
    // One is as before, one moves, and one is new.
    let change = set(&mut book, &[flow("c", 1, 3), flow("b", 2, 2), flow("a", 1, 1)]).unwrap();
    assert_eq!((change.set, change.unchanged), (2, 1));
    assert_eq!(names(&book), [("a", 1), ("b", 2), ("c", 3)]);
    // Two exchange their places.
    assert_eq!(set(&mut book, &[flow("a", 1, 3), flow("c", 1, 1)]).unwrap().set, 2);
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![flow("d", 1, 1)],
        remove: vec!["c".to_owned()],
        replace: true,
    };
    let change = carry_out(&mut book, order, Duration::ZERO).unwrap();
    assert_eq!((change.set, change.removed, change.numbers.len()), (1, 3, 4));
    assert_eq!(names(&book), [("d", 4)]);
}

#[test]
fn changes_that_are_taken_back_leave_all_as_it_was() {
    let mut book = EntryIndex::default();
    let until = |end, entry| StaticEntry { end: Some(Duration::from_secs(end)), ..entry };
    let all = [
        flow("kept", 1, 1),
        flow("moved", 1, 2),
        flow("removed", 1, 3),
        group("servers", 7, None),
        user("web", "group:7"),
        until(5, flow("over", 1, 6)),
    ];
    set(&mut book, &all).unwrap();
    book.expire(Duration::from_secs(5));
    book.take_changed();
    let parts = |book: &EntryIndex| {
        let places = book.places.clone();
        (book.by_number.clone(), book.numbers.clone(), places, book.ended.clone())
    };
    let before = parts(&book);
    let order = StaticOrder {
        owner: "alice".to_owned(),
        // "new" takes the place of "removed", and two exchange theirs.
        set: vec![
            flow("kept", 1, 2),
            flow("moved", 1, 1),
            flow("new", 1, 3),
            flow("over", 1, 7),
            group("more", 8, None),
        ],
        remove: ["removed", "web", "servers"].map(str::to_owned).to_vec(),
        replace: false,
    };
    let Plan { set, remove, .. } = book.plan(&order).unwrap();
    let changes = set.into_iter().map(|entry| (entry.name.clone(), Some(entry)));
    let changes: Vec<_> = changes.chain(remove.into_iter().map(|name| (name, None))).collect();
    let mut undo = Vec::new();
    for (name, after) in &changes {
        let before = book.entry(name).or_else(|| book.ended.get(name)).cloned();
        undo.push((name, before));
        book.set(name, after.as_ref());
    }
    assert_eq!(book.entries().count(), 5);
    undo.iter().rev().for_each(|(name, before)| book.set(name, before.as_ref()));
    assert_eq!(parts(&book), before);
    assert!(book.take_changed().is_empty(), "no switch hears of it");
    assert!(!book.references.was_static(Dpid(1), Reference::Group(8)), "it was never stored");
    let web = book.references.users(Dpid(1), Reference::Group(7)).count();
    assert_eq!(web, 1, "the group is in use again");
}

#[test]
fn a_wrong_order_changes_nothing_and_says_why() {
    let mut book = EntryIndex::default();
    book.last_reserved_meter = 100;
    set(&mut book, &[flow("a", 1, 1)]).unwrap();
    let meter =
        |id| StaticEntry { wanted: MeterEntry::drop_above_kbps(id, 5).into(), ..flow("m", 1, 1) };
    let high =
        StaticEntry { wanted: Flow::new(Match::any()).priority(4096).into(), ..flow("h", 1, 1) };
    let of_bob = |name| StaticEntry { owner: "bob".to_owned(), ..flow(name, 1, 1) };
    for (entries, part) in [
        (vec![flow("b", 1, 2), flow("", 1, 3)], "is not a name"),
        (vec![flow("a/b", 1, 3)], "is not a name"),
        (vec![flow("b", 1, 2), flow("b", 1, 3)], "b is there twice"),
        (vec![flow("b", 1, 2), flow("c", 1, 2)], "b is the same flow"),
        (vec![flow("b", 1, 1)], "a is the same flow"),
        (vec![of_bob("a")], "belongs to alice"),
        (vec![meter(100)], "give 101 to"),
        (vec![high], "give 0 to 4095"),
    ] {
        let error = set(&mut book, &entries).unwrap_err();
        assert!(error.contains(part), "{error}");
        assert_eq!(names(&book), [("a", 1)], "{error}");
    }
    assert!(remove(&mut book, "alice", &["x"]).unwrap_err().contains("there is no entry x"));
    assert!(remove(&mut book, "bob", &["a"]).unwrap_err().contains("belongs to alice"));
    assert_eq!(remove(&mut book, "alice", &["a"]).unwrap().removed, 1);
    assert!(set(&mut book, &[meter(101)]).is_ok());
}

#[test]
fn entries_are_bounded() {
    let mut book = EntryIndex::default();
    let all: Vec<_> =
        (0..=MAX_STATIC_ENTRIES as u32).map(|n| flow(&format!("f{n}"), 1, n)).collect();
    assert!(set(&mut book, &all).unwrap_err().contains("100000 entries is the maximum"));
    set(&mut book, &all[1..]).unwrap();
    assert!(set(&mut book, &all[..1]).is_err());
    assert!(set(&mut book, &all[1..2]).is_ok(), "an entry can be replaced");
}

#[test]
fn an_ended_entry_does_not_block_a_new_one() {
    let mut book = EntryIndex::default();
    let until = |end| Some(Duration::from_secs(end));
    let short = StaticEntry { end: until(5), ..flow("a", 1, 1) };
    let long = StaticEntry { end: until(7), ..flow("b", 1, 2) };
    set(&mut book, &[short.clone(), long]).unwrap();
    assert_eq!(book.next_end(), until(5));
    assert_eq!(expire(&mut book, Duration::from_secs(4)), BTreeSet::new());
    // The end of an entry moves.
    set(&mut book, &[StaticEntry { end: until(6), ..short }]).unwrap();
    assert_eq!(book.next_end(), until(6));
    let order = StaticOrder {
        owner: "bob".to_owned(),
        set: vec![StaticEntry { owner: "bob".to_owned(), ..flow("c", 1, 1) }],
        ..StaticOrder::default()
    };
    book.take_changed();
    carry_out(&mut book, order, Duration::from_secs(6)).unwrap();
    assert_eq!(book.take_changed(), BTreeSet::from([1, 3]), "the switch loses the old one");
    assert_eq!(names(&book), [("b", 2), ("c", 3)]);
}

fn group(name: &str, id: u32, next: Option<u32>) -> StaticEntry {
    let actions = next.map_or_else(Vec::new, |next| vec![Action::Group(next)]);
    let group = GroupEntry::new(id, GroupType::All).bucket(BucketEntry::of(&actions));
    StaticEntry { wanted: group.into(), ..flow(name, 1, 0) }
}

fn meter(name: &str, id: u32) -> StaticEntry {
    StaticEntry { wanted: MeterEntry::drop_above_kbps(id, 5).into(), ..flow(name, 1, 0) }
}

fn user(name: &str, text: &str) -> StaticEntry {
    let flow_of = Flow::new(Match::any().in_port(Port(5))).instructions(text).unwrap();
    StaticEntry { wanted: flow_of.into(), ..flow(name, 1, 0) }
}

#[test]
fn a_group_or_meter_that_an_entry_uses_stays() {
    let mut book = EntryIndex::default();
    let web = user("web", "meter:5,write_actions(group:7)");
    let all = [group("servers", 7, Some(8)), group("backup", 8, None), meter("limit", 5), web];
    set(&mut book, &all).unwrap();
    let before: Vec<_> = book.entries().cloned().collect();
    for (name, part) in [
        ("servers", "its group 7 is used by the entry web of alice"),
        ("backup", "its group 8 is used by the entry servers"),
        ("limit", "its meter 5 is used by the entry web"),
    ] {
        let error = remove(&mut book, "alice", &[name]).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    // An entry that would become another group or meter, or move to another switch.
    for changed in [
        group("servers", 9, None),
        flow("servers", 1, 1),
        StaticEntry { dpid: Dpid(2), ..group("servers", 7, None) },
    ] {
        let order =
            StaticOrder { owner: "alice".to_owned(), set: vec![changed], ..StaticOrder::default() };
        let error = carry_out(&mut book, order, Duration::ZERO).unwrap_err();
        assert_eq!(error.entry, Some(0));
        assert!(matches!(error.why, NotSetReason::InUse { .. }), "{error}");
    }
    // A file that keeps the flow only.
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![user("web", "group:7")],
        replace: true,
        ..StaticOrder::default()
    };
    assert!(
        carry_out(&mut book, order, Duration::ZERO).unwrap_err().to_string().contains("entry web")
    );
    // An order that removes a group which it uses.
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![user("other", "group:8")],
        remove: vec!["web".to_owned(), "servers".to_owned(), "backup".to_owned()],
        ..StaticOrder::default()
    };
    assert!(
        carry_out(&mut book, order, Duration::ZERO)
            .unwrap_err()
            .to_string()
            .contains("entry other")
    );
    assert_eq!(book.entries().cloned().collect::<Vec<_>>(), before, "nothing has changed");
    // Other buckets are no other group, and another entry may take the group over.
    set(&mut book, &[group("servers", 7, None)]).unwrap();
    let order = StaticOrder {
        owner: "alice".to_owned(),
        set: vec![group("again", 7, None)],
        remove: vec!["servers".to_owned()],
        ..StaticOrder::default()
    };
    carry_out(&mut book, order, Duration::ZERO).unwrap();
    assert_eq!(remove(&mut book, "alice", &["web", "again", "limit"]).unwrap().removed, 3);
    assert_eq!(remove(&mut book, "alice", &["backup"]).unwrap().removed, 1);
    assert!(book.references.users(Dpid(1), Reference::Group(8)).next().is_none());
}

#[test]
fn a_removed_group_cannot_be_used() {
    let mut book = EntryIndex::default();
    let unresolved = |book: &EntryIndex, entry: StaticEntry| {
        let order = StaticOrder { set: vec![entry], ..StaticOrder::default() };
        let used: Vec<_> = book.unresolved(&order).iter().map(|it| it.used).collect();
        used
    };
    // The switch may have them.
    let web = || user("web", "meter:5,group:7");
    assert_eq!(unresolved(&book, web()), [Reference::Group(7), Reference::Meter(5)]);
    set(&mut book, &[web()]).unwrap();
    remove(&mut book, "alice", &["web"]).unwrap();
    set(&mut book, &[group("servers", 7, None)]).unwrap();
    assert_eq!(unresolved(&book, web()), [Reference::Meter(5)]);
    remove(&mut book, "alice", &["servers"]).unwrap();
    let error = set(&mut book, &[web()]).unwrap_err();
    assert!(error.contains("the switch has no group 7"), "{error}");
    set(&mut book, &[web(), group("servers", 7, None)]).unwrap();
    // On another switch it was never an entry.
    set(&mut book, &[StaticEntry { dpid: Dpid(2), ..user("far", "group:7") }]).unwrap();
}

#[test]
fn a_group_that_has_ended_stays_until_nothing_uses_it() {
    let mut book = EntryIndex::default();
    let until = |end, entry| StaticEntry { end: Some(Duration::from_secs(end)), ..entry };
    let at = Duration::from_secs;
    let all = [
        until(5, group("servers", 7, Some(8))),
        until(4, group("backup", 8, None)),
        until(9, user("web", "group:7")),
    ];
    set(&mut book, &all).unwrap();
    assert_eq!(expire(&mut book, at(6)), BTreeSet::new());
    assert_eq!(book.next_end(), Some(at(9)));
    assert_eq!(expire(&mut book, at(9)).len(), 3);
    assert_eq!((names(&book), book.next_end()), (vec![], None));
    // It goes behind its last user.
    set(&mut book, &[until(5, group("servers", 7, None)), user("web", "group:7")]).unwrap();
    assert_eq!((expire(&mut book, at(6)), book.next_end()), (BTreeSet::new(), None));
    let order = StaticOrder {
        owner: "alice".to_owned(),
        remove: vec!["web".to_owned()],
        ..StaticOrder::default()
    };
    assert_eq!(carry_out(&mut book, order, at(7)).unwrap().removed, 1);
    assert_eq!((names(&book), book.next_end()), (vec![], None), "at once");
    // Given a new end in time, it stays.
    set(&mut book, &[until(5, group("servers", 7, None)), user("web", "group:7")]).unwrap();
    book.expire(at(6));
    set(&mut book, &[until(20, group("servers", 7, None))]).unwrap();
    remove(&mut book, "alice", &["web"]).unwrap();
    assert_eq!((expire(&mut book, at(8)), book.next_end()), (BTreeSet::new(), Some(at(20))));
}
